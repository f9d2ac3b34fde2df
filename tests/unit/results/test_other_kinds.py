"""Outputs of other kinds than deduplications: they can be restored, and readers of another kind refuse them."""

import json
from pathlib import Path

import pytest
from support.commands import USAGE, run
from support.restored_runs import contents, dedup, removed, restore

import minwise as mw
from minwise.errors import FormatError

TEXTS = ["the cat sat on the mat all day", "The cat sat on the mat, all day.", "a dog"]


@pytest.fixture
def other_kind(tmp_path: Path) -> Path:
    """Return a folder with the output of a deduplication under the names that other kinds use."""
    rows = (json.dumps({"id": number, "text": text}) for number, text in enumerate(TEXTS))
    (tmp_path / "in.jsonl").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    dedup(tmp_path, "in.jsonl")
    (tmp_path / "out" / "clusters.parquet").rename(tmp_path / "out" / "documents.parquet")
    set_kind(tmp_path, "decontamination")
    return tmp_path


def set_kind(folder: Path, kind: str) -> None:
    path = folder / "out" / "report.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), "kind": kind}), encoding="utf-8")


def test_an_output_of_another_kind_is_restored(other_kind: Path) -> None:
    restore(other_kind, "--all")
    assert contents(other_kind / "back" / "kept") == {"in.jsonl": (other_kind / "in.jsonl").read_bytes()}
    assert removed(other_kind) == []
    restore(other_kind, ids=["1"])
    assert (other_kind / "back" / "kept" / "in.jsonl").read_bytes() == (other_kind / "in.jsonl").read_bytes()


@pytest.mark.parametrize(
    "arguments", [["report", "out"], ["explain", "out", "1"], ["rethreshold", "out", "--threshold", "0.9"]]
)
def test_readers_of_deduplications_refuse_other_kinds_in_one_line(other_kind: Path, arguments: list[str]) -> None:
    more = ["-o", "higher"] if arguments[0] == "rethreshold" else []
    done = run(other_kind, *arguments, *more)
    assert (done.status, done.out) == (USAGE, "")
    assert done.err.startswith("minwise: out: must be the output of minwise dedup")
    assert done.err.endswith(", got that of minwise decontaminate\n")
    assert done.err.count("\n") == 1


def test_an_unknown_kind_is_refused(other_kind: Path) -> None:
    set_kind(other_kind, "poems")
    with pytest.raises(FormatError, match="kind must be one of dedup, passages, decontamination, got 'poems'"):
        mw.restore(other_kind / "out", other_kind / "back")
