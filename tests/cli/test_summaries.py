"""Summaries of runs: seconds of stages, notes, entries that are skipped, and rows that cannot be used."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import OK, run

COMMANDS = {
    "dedup": ("dedup", "in.jsonl", "-o", "out"),
    "pairs": ("pairs", "in.jsonl"),
    "clusters": ("clusters", "in.jsonl", "-o", "c.csv"),
    "audit": ("audit", "in.jsonl"),
}
STAGES = re.compile(r"read [\d.]+ s · band [\d.]+ s")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the working directory, with a table of which seven rows cannot be used."""
    rows = [{"id": row, "text": f"document number {row} has these words and some others"} for row in range(12)]
    lines = [json.dumps(row) for row in rows] + ["{}"] * 7
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_summary_has_seconds_of_stages_and_five_faults_of_a_file(folder: Path, command: tuple[str, ...]) -> None:
    done = run(folder, *command)
    assert (done.status, done.err) == (OK, "")
    assert STAGES.search(done.out)
    assert done.out.count("  in.jsonl: row ") == 5
    assert "  … and 2 more in in.jsonl\n" in done.out


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_file_of_which_no_row_can_be_used_is_one_line(folder: Path, command: tuple[str, ...]) -> None:
    pq.write_table(pa.table({"content": ["one two three"] * 30}), folder / "bad.parquet")
    done = run(folder, *command, "bad.parquet", "--on-error", "quarantine")
    assert (done.status, done.err) == (OK, "")
    (line,) = [line for line in done.out.splitlines() if "bad.parquet" in line]
    assert line.startswith("  bad.parquet: all 30 rows: has no column 'text'")
    assert line.endswith("did you mean --text-column content?")


def test_summary_names_the_quarantine_file(folder: Path) -> None:
    lines = run(folder, "dedup", "in.jsonl", "-o", "out").out.splitlines()
    assert "quarantined  7 rows could not be read" in lines
    assert "  all of them are in out/quarantine.jsonl" in lines[-2:]
    assert (folder / "out" / "quarantine.jsonl").is_file()
    skipped = run(folder, "dedup", "in.jsonl", "-o", "skipped", "--on-error", "skip").out
    assert "quarantine.jsonl" not in skipped


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_notes_of_the_report_are_shown_with_names_of_options(folder: Path, command: tuple[str, ...]) -> None:
    rows = [json.dumps({"id": 1, "text": f"two words{row}"}) for row in range(30)]
    (folder / "in.jsonl").write_text("\n".join(rows) + "\n")
    done = run(folder, *command)
    notes = [line for line in done.out.splitlines() if line.startswith("note: ")]
    assert any("share the id 1" in note for note in notes)
    assert any("--shingle char:5 fits" in note for note in notes)


def test_unusable_input_is_named_in_the_last_lines(folder: Path) -> None:
    (folder / "other.csv").write_text("title\nno such column\n")
    for command in (COMMANDS["dedup"], COMMANDS["pairs"]):
        done = run(folder, *command, "other.csv", "--on-error", "quarantine")
        assert done.status == OK, done.err
        assert any("other.csv: " in line and "has no column 'text'" in line for line in done.out.splitlines()[-12:])


def test_skipped_entries_are_counted_by_reason(folder: Path) -> None:
    texts = folder / "texts"
    texts.mkdir()
    for name in ("a.txt", "b.txt", ".hidden.txt"):
        (texts / name).write_text(f"the text of {name}")
    for command in ("dedup", "pairs", "audit"):
        output = ("-o", "out") if command == "dedup" else ()
        shown = run(folder, command, "texts", *output).out
        assert re.search(r"1 entry: names that begin with a dot \(1\)", shown), shown
