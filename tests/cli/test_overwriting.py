"""One rule for outputs of all commands: what exists and is not empty is replaced with --overwrite only."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.commands import OK, USAGE, digest, one_line, run

FERRY = "the ferry leaves the old harbour at six in the morning and the gulls follow it far out to the open sea"
INDEX = "a.mw"
# Arguments without the output, and the output.
FILES = {
    "pairs": (("pairs", "in.jsonl", "-o"), "out.csv"),
    "clusters": (("clusters", "in.jsonl", "-o"), "out.jsonl"),
    "audit": (("audit", "in.jsonl", "-o"), "out.json"),
    "compare": (("compare", "a.txt", "b.txt", "-o"), "out.html"),
    "vectors pairs": (("vectors", "pairs", "v.npy", "--radius", "2", "-o"), "out.csv"),
    "vectors near": (("vectors", "near", "v.npy", "v.npy", "--top", "1", "-o"), "out.csv"),
    "index query": (("index", "query", INDEX, "in.jsonl", "-o"), "out.jsonl"),
    "index add": (("index", "add", INDEX, "in.jsonl", "--on-duplicate-id", "skip", "--unique", "-o"), "out.jsonl"),
    "index export": (("index", "export", INDEX), "out.parquet"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the working directory, with an input for every command."""
    rows = [{"id": "a", "text": FERRY}, {"id": "b", "text": FERRY.upper()}, {"id": "c", "text": "alone"}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(FERRY)
    np.save(tmp_path / "v.npy", np.random.default_rng(1).normal(size=(8, 4)).astype(np.float32))
    assert run(tmp_path, "index", "create", INDEX).status == OK
    assert run(tmp_path, "index", "add", INDEX, "in.jsonl").status == OK
    return tmp_path


@pytest.mark.parametrize(("command", "output"), FILES.values(), ids=FILES)
def test_file_with_content_is_replaced_with_overwrite_only(folder: Path, command: tuple[str, ...], output: str) -> None:
    (folder / output).write_text("precious")
    before = digest(folder)
    message = one_line(run(folder, *command, output), USAGE)
    assert message == (
        f"minwise: output must be new or empty, got {output} with 8 bytes; give another -o or --overwrite\n"
    )
    assert digest(folder) == before
    done = run(folder, *command, output, "--overwrite")
    assert done.status == OK, done.err
    assert (folder / output).read_bytes() != b"precious"


@pytest.mark.parametrize(("command", "output"), FILES.values(), ids=FILES)
def test_empty_file_is_replaced_without_a_question(folder: Path, command: tuple[str, ...], output: str) -> None:
    (folder / output).touch()
    assert run(folder, *command, output).status == OK


def test_directories_follow_the_same_rule(folder: Path) -> None:
    """`dedup` and `restore` write to a new or empty directory, or replace one with --overwrite."""
    assert run(folder, "dedup", "in.jsonl", "-o", "out").status == OK
    (folder / "other").mkdir()
    assert run(folder, "restore", "out", "--all", "-o", "other").status == OK
    for command in (("dedup", "in.jsonl", "-o", "out"), ("restore", "out", "--all", "-o", "other")):
        message = one_line(run(folder, *command), USAGE)
        assert "output must be new or empty, got " in message
        assert message.endswith("with files in it; give another -o or --overwrite\n")
        assert run(folder, *command, "--overwrite").status == OK


def test_file_at_a_url_follows_the_same_rule(folder: Path) -> None:
    url = f"file://{folder}/out.csv"
    assert run(folder, "pairs", "in.jsonl", "-o", url).status == OK
    assert "must be new or empty" in one_line(run(folder, "pairs", "in.jsonl", "-o", url), USAGE)
    assert run(folder, "pairs", "in.jsonl", "-o", url, "--overwrite").status == OK
