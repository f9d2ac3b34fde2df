"""`minwise pairs` and `minwise clusters`: tables of every format, options, and exit codes."""

import csv
import io
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.commands import FAILURE, MINWISE, OK, USAGE, execute, hidden, one_line, run

import minwise as mw

BASE = "the ferry leaves the old harbour at six in the morning and the gulls follow it far out to the open sea"
TEXTS = {
    "b": [BASE, "nothing in common with the others, really", BASE],
    "a": [BASE.replace("six", "eight"), BASE.upper(), "also alone on its page here"],
}
# a.jsonl precedes b.jsonl; its rows are a0, a1, a2.
PAIRS = [("a0", "a1"), ("a0", "b0"), ("a0", "b2"), ("a1", "b0"), ("a1", "b2"), ("b0", "b2")]
FIND = ("--threshold", "0.5")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the working directory, with two files."""
    for name, texts in TEXTS.items():
        rows = [json.dumps({"id": f"{name}{row}", "text": text}) for row, text in enumerate(texts)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows) + "\n")
    return tmp_path


def read(path: Path, text: str | None = None) -> list[dict[str, Any]]:
    """Return the rows of a table, with numbers parsed."""
    if path.suffix == ".parquet":
        return list(pq.read_table(path).to_pylist())
    content = path.read_text() if text is None else text
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in content.splitlines()]
    rows = csv.DictReader(io.StringIO(content), delimiter="\t" if path.suffix == ".tsv" else ",")
    numbers = {"similarity": float, "size": int, "left_row": int, "right_row": int}
    return [{name: numbers.get(name, str)(value) for name, value in row.items()} for row in rows]


@pytest.mark.parametrize("name", ["p.parquet", "p.csv", "p.tsv", "p.jsonl"])
def test_pairs_are_written_in_every_format(folder: Path, name: str) -> None:
    """All pairs, identical documents included, in document order for any order of the arguments."""
    done = run(folder, "pairs", "b.jsonl", "a.jsonl", "-o", name, *FIND)
    assert (done.status, done.err) == (OK, "")
    assert "6 pairs among 6 documents" in done.out
    rows = read(folder / name)
    assert [list(row) for row in rows] == [["left", "right", "similarity"]] * 6
    assert [(row["left"], row["right"]) for row in rows] == PAIRS
    similar = mw.compare(TEXTS["a"][0], BASE).similarity
    assert [row["similarity"] for row in rows] == [similar] * 3 + [1.0] * 3
    assert hidden(folder) == []


def test_standard_output_has_json_lines_only(folder: Path) -> None:
    """The summary is on standard error."""
    done = run(folder, "pairs", "a.jsonl", "b.jsonl", "-o", "-", *FIND)
    assert done.status == OK
    assert run(folder, "pairs", "a.jsonl", "b.jsonl", "-o", "p.jsonl", *FIND).status == OK
    assert done.out == (folder / "p.jsonl").read_text()
    assert "6 pairs" in done.err
    assert run(folder, "pairs", "a.jsonl", "b.jsonl", "-o", "-", "--quiet", *FIND).err == ""


def test_pairs_of_standard_input_are_found(folder: Path) -> None:
    """`cat a.jsonl | minwise pairs - -o -`."""
    done = execute(folder, "pairs", "-", "-o", "-", "--quiet", *FIND, stdin=(folder / "a.jsonl").read_bytes())
    assert (done.returncode, done.stderr) == (OK, b"")
    assert [(row["left"], row["right"]) for row in map(json.loads, done.stdout.splitlines())] == [("a0", "a1")]


@pytest.mark.parametrize(
    "arguments",
    [
        ["a.jsonl", "b.jsonl", "--sources"],
        ["a.jsonl", "--sources", "b.jsonl"],
        ["--sources", "a.jsonl", "b.jsonl"],
    ],
    ids=" ".join,
)
def test_sources_adds_source_and_row_of_each_document(folder: Path, arguments: list[str]) -> None:
    done = run(folder, "pairs", *arguments, "-o", "p.csv", *FIND)
    assert (done.status, done.err) == (OK, "")
    rows = read(folder / "p.csv")
    assert list(rows[0]) == [
        "left", "left_source", "left_row", "right", "right_source", "right_row", "similarity",
    ]  # fmt: skip
    assert [(row["left"], row["right"]) for row in rows] == PAIRS
    for side in ("left", "right"):
        assert all(row[side] == f"{row[f'{side}_source'][0]}{row[f'{side}_row']}" for row in rows)
        assert all(row[f"{side}_source"].endswith(".jsonl") for row in rows)


@pytest.mark.parametrize(
    "arguments",
    [["a.jsonl", "b.jsonl", "--rows"], ["--rows", "a.jsonl", "b.jsonl"], ["a.jsonl", "--rows", "b.jsonl"], ["--rows"]],
    ids=" ".join,
)
def test_rows_without_a_number_is_a_usage_error(folder: Path, arguments: list[str]) -> None:
    done = run(folder, "pairs", "-o", "p.csv", *arguments)
    assert (done.status, done.out) == (USAGE, "")
    assert "'--rows'" in done.err
    assert not (folder / "p.csv").exists()


@pytest.mark.parametrize("layout", ["--bands 20 --rows 5", "--rows 5 --bands 20", "--bands=20 --rows=5"])
@pytest.mark.parametrize("sources", [[], ["--sources"]])
def test_rows_with_a_number_is_the_slots_of_a_band(folder: Path, layout: str, sources: list[str]) -> None:
    """It adds no columns."""
    done = run(folder, "pairs", *layout.split(), *sources, "a.jsonl", "b.jsonl", "-o", "p.csv", "--json", *FIND)
    assert (done.status, done.err) == (OK, "")
    plan = json.loads(done.out)["plan"]
    assert (plan["bands"], plan["rows"]) == (20, 5)
    assert ("left_source" in read(folder / "p.csv")[0]) is bool(sources)


def test_json_report_has_counts_settings_and_caps(folder: Path) -> None:
    done = run(folder, "pairs", "a.jsonl", "b.jsonl", "-o", "p.csv", "--json", *FIND)
    found = json.loads(done.out)
    assert (found["pairs"], found["counts"]["documents"], found["counts"]["quarantined"]) == (6, 6, 0)
    assert found["caps"]["identical_pairs_left_out"] == 0
    assert found["settings"]["threshold"] == 0.5
    assert found["run"]["output"] == "p.csv"


def test_table_without_pairs_has_its_columns(folder: Path) -> None:
    (folder / "one.jsonl").write_text('{"id": "x", "text": "all alone"}\n')
    for name in ("p.parquet", "p.csv", "p.jsonl"):
        assert run(folder, "pairs", "one.jsonl", "-o", name).status == OK
    assert pq.read_schema(folder / "p.parquet").names == ["left", "right", "similarity"]
    assert (folder / "p.csv").read_text().strip() == '"left","right","similarity"'
    assert (folder / "p.jsonl").read_text() == ""


def test_report_counts_capped_pairs_of_copies(tmp_path: Path) -> None:
    """A copy is paired with the first sixteen only: of the 780 pairs of 40 copies, 16·24 + 120 are written."""
    (tmp_path / "in.jsonl").write_text(json.dumps({"text": BASE}) + "\n")
    (tmp_path / "in.jsonl").write_text((tmp_path / "in.jsonl").read_text() * 40)
    found = json.loads(run(tmp_path, "pairs", "in.jsonl", "-o", "p.csv", "--max-bucket", "20", "--json").out)
    assert found["pairs"] == 16 * 24 + 120
    assert found["caps"]["identical_groups"] == 1
    assert found["caps"]["identical_pairs_left_out"] == 780 - found["pairs"]
    assert len(read(tmp_path / "p.csv")) == found["pairs"]
    everything = json.loads(run(tmp_path, "pairs", "in.jsonl", "-o", "all.csv", "--json").out)
    assert (everything["pairs"], everything["caps"]["identical_pairs_left_out"]) == (780, 0)


def test_column_of_estimates_is_similarity_estimate(folder: Path) -> None:
    """Without exact verification."""
    assert run(folder, "pairs", "a.jsonl", "-o", "p.csv", "--verify", "signature", *FIND).status == OK
    assert (folder / "p.csv").read_text().splitlines()[0] == '"left","right","similarity_estimate"'


@pytest.mark.parametrize("name", ["c.parquet", "c.csv", "c.jsonl"])
def test_clusters_are_written_in_every_format(folder: Path, name: str) -> None:
    """Every document has the first document and the size of its cluster."""
    done = run(folder, "clusters", "b.jsonl", "a.jsonl", "-o", name, *FIND)
    assert (done.status, done.err) == (OK, "")
    assert "1 cluster among 6 documents" in done.out
    assert [tuple(row.values()) for row in read(folder / name)] == [
        ("a0", "a0", 4), ("a1", "a0", 4), ("a2", "a2", 1), ("b0", "a0", 4), ("b1", "b1", 1), ("b2", "a0", 4),
    ]  # fmt: skip


def test_components_join_chains_and_stars_do_not(tmp_path: Path) -> None:
    """All documents of a star are similar to its first one."""
    words = [f"w{number}" for number in range(60)]
    texts = [" ".join(words[start : start + 30]) for start in (0, 4, 8)]
    lines = [json.dumps({"id": number, "text": text}) for number, text in enumerate(texts)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    options = ["--threshold", "0.7", "--shingle", "word:1", "--recall", "0.999"]
    for group, expected in (("components", [0, 0, 0]), ("star", [0, 0, 2])):
        assert run(tmp_path, "clusters", "in.jsonl", "-o", f"{group}.jsonl", "--group", group, *options).status == OK
        assert [row["cluster"] for row in read(tmp_path / f"{group}.jsonl")] == expected


@pytest.mark.parametrize("command", ["pairs", "clusters"])
@pytest.mark.parametrize("name", ["out", "out.txt", "out.xlsx", "out.parquet.gz"])
def test_output_of_unknown_format_is_rejected_before_inputs_are_read(folder: Path, command: str, name: str) -> None:
    """The error lists the known endings; the input does not exist, which would be another error."""
    line = one_line(run(folder, command, "none.jsonl", "-o", name), USAGE)
    assert name in line
    assert ".parquet" in line


@pytest.mark.parametrize("command", ["pairs", "clusters"])
def test_output_that_is_an_input_is_rejected(folder: Path, command: str) -> None:
    before = (folder / "a.jsonl").read_bytes()
    line = one_line(run(folder, command, "a.jsonl", "b.jsonl", "-o", "./a.jsonl"), USAGE)
    assert "a.jsonl" in line
    assert (folder / "a.jsonl").read_bytes() == before


@pytest.mark.parametrize("command", ["pairs", "clusters"])
def test_faulty_rows_are_named_and_skipped(folder: Path, command: str) -> None:
    """With --on-error fail there is no table."""
    (folder / "bad.jsonl").write_text('{"id": "x", "text": null}\n')
    done = run(folder, command, "a.jsonl", "bad.jsonl", "-o", "out.csv", "--on-error", "quarantine")
    assert done.status == OK
    assert "1 row could not be read and is left out" in done.out
    assert "bad.jsonl: row 0: text is null" in done.out
    (folder / "out.csv").unlink()
    line = one_line(run(folder, command, "a.jsonl", "bad.jsonl", "-o", "out.csv", "--on-error", "fail"), FAILURE)
    assert "bad.jsonl: row 0: text is null" in line
    assert not (folder / "out.csv").exists()


@pytest.mark.parametrize("command", ["pairs", "clusters"])
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--threshold", "7"),
        ("--shingle", "word"),
        ("--memory", "1MB"),
        ("--threads", "0"),
        ("--bands", "3"),
        ("--keep", "last"),
    ],
)
def test_wrong_values_are_a_usage_error(folder: Path, command: str, option: str, value: str) -> None:
    """The error has the name; `--keep` is not an option of these commands."""
    done = run(folder, command, "a.jsonl", "-o", "out.csv", option, value)
    assert (done.status, done.out) == (USAGE, "")
    assert option.lstrip("-") in done.err
    assert not (folder / "out.csv").exists()


def test_missing_input_is_a_usage_error(folder: Path) -> None:
    for arguments in (["pairs", "-o", "p.csv"], ["clusters", "-o", "c.csv"]):
        done = run(folder, *arguments)
        assert done.status == USAGE
        assert "Missing argument" in done.err


@pytest.mark.parametrize("command", ["pairs", "clusters"])
def test_closed_standard_output_ends_the_command(tmp_path: Path, command: str) -> None:
    """As with `| head -1`, for a table that exceeds the pipe buffer: no traceback, and no waiting."""
    lines = [json.dumps({"id": number, "text": BASE}) for number in range(600)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    with subprocess.Popen(
        [MINWISE, command, "in.jsonl", "-o", "-", "--quiet"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout
        assert process.stderr
        first = json.loads(process.stdout.readline())
        process.stdout.close()
        status = process.wait(timeout=60)
        assert process.stderr.read() == b""
    assert first in ({"left": 0, "right": 1, "similarity": 1.0}, {"id": 0, "cluster": 0, "size": 600})
    assert status == FAILURE or command == "clusters"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_full_standard_output_is_one_line_with_exit_code_74(folder: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [MINWISE, "pairs", "a.jsonl", "-o", "-", "--quiet", *FIND],
            cwd=folder, stdout=full, stderr=subprocess.PIPE, env={**os.environ}, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 74
    assert done.stderr.count(b"\n") == 1
    assert b"No space left on device" in done.stderr


def test_second_run_with_a_work_directory_writes_the_same_table(folder: Path) -> None:
    arguments = ["pairs", "a.jsonl", "b.jsonl", "--work", "work", *FIND]
    assert run(folder, *arguments, "-o", "one.parquet").status == OK
    assert run(folder, *arguments, "-o", "two.parquet", "--threads", "1").status == OK
    assert (folder / "one.parquet").read_bytes() == (folder / "two.parquet").read_bytes()
