"""minwise dedup --passages: output, restoring, options and errors."""

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import FAILURE, OK, USAGE, Job, run
from support.restored_runs import contents

HEADER = "Published under the terms of the town library, all rights reserved"
TEXTS = {
    "a": f"{HEADER}. Ferries leave at noon.",
    "b": f'Boats "{HEADER}"; nothing, else.',
    "c": "Nothing at all.",
    "d": f"{HEADER}!",
    "e": f"Ünder 漢字 {HEADER}.\nMore 🙂.",
}
LEFT = {"a": TEXTS["a"], "b": "Boats nothing, else.", "c": TEXTS["c"], "e": "Ünder 漢字\nMore 🙂."}
FORMATS = ("docs.jsonl", "docs.json", "docs.csv", "docs.parquet", "texts")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [{"id": name, "text": text, "n": number} for number, (name, text) in enumerate(TEXTS.items())]
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (tmp_path / "docs.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    with (tmp_path / "docs.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["id", "text", "n"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "docs.parquet")
    (tmp_path / "texts").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "texts" / f"{name}.txt").write_text(text, encoding="utf-8", newline="")
    return tmp_path


def texts_in(path: Path) -> dict[str, str]:
    """Return the texts of a file, or of the files of a folder, by their ids."""
    if path.is_dir():
        return {file.stem: file.read_bytes().decode() for file in path.iterdir()}
    if path.suffix == ".parquet":
        rows = pq.read_table(path).to_pylist()
    elif path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    else:
        data = path.read_text(encoding="utf-8")
        rows = json.loads(data) if path.suffix == ".json" else list(map(json.loads, data.splitlines()))
    return {row["id"]: row["text"] for row in rows}


def cut(folder: Path, *arguments: str) -> None:
    done = run(folder, "dedup", *arguments, "--passages", "--min-tokens", "5", "-o", "out", "--quiet")
    assert (done.status, done.out, done.err) == (OK, "", "")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_cut_and_restored_byte_for_byte(folder: Path, name: str) -> None:
    cut(folder, name)
    kept = folder / "out" / "kept"
    assert texts_in(kept if name == "texts" else kept / name) == LEFT
    cuts, removed = (pq.read_table(folder / "out" / f"{table}.parquet").to_pylist() for table in ("cuts", "removed"))
    assert [(Path(row["id"]).stem, Path(row["other_id"]).stem) for row in cuts] == [("b", "a"), ("d", "a"), ("e", "a")]
    assert [(Path(row["id"]).stem, row["reason"], row["text"]) for row in removed] == [("d", "nothing is left", "")]
    assert run(folder, "restore", "out", "--all", "-o", "back", "--quiet").status == OK
    original = {path.name: path.read_bytes() for path in (folder / name).iterdir()} if name == "texts" else None
    assert contents(folder / "back" / "kept") == (original or {name: (folder / name).read_bytes()})


@pytest.mark.parametrize(
    ("snap", "left"),
    [("line", f"Boats.\r\n\t\r\n{HEADER}. Ünder 漢字 sail\n"), ("sentence", "Boats.\r\nÜnder 漢字 sail\n")],
)
def test_whole_lines_and_sentences_are_cut_and_restored_byte_for_byte(folder: Path, snap: str, left: str) -> None:
    """A repeat that is part of a line stays with `line`."""
    lines = f"Boats.\r\n{HEADER}.\r\n\t\r\n{HEADER}. Ünder 漢字 sail\n"
    (folder / "first.jsonl").write_text(json.dumps({"id": "z", "text": f"{HEADER}."}) + "\n", encoding="utf-8")
    (folder / "second.csv").write_text(f'id,text\ny,"{lines}"\n', encoding="utf-8", newline="")
    cut(folder, "first.jsonl", "second.csv", "--snap", snap)
    assert texts_in(folder / "out" / "kept" / "second.csv") == {"y": left}
    assert run(folder, "restore", "out", "--all", "-o", "back", "--quiet").status == OK
    assert contents(folder / "back" / "kept") == {
        name: (folder / name).read_bytes() for name in ("first.jsonl", "second.csv")
    }


def test_documents_are_restored_by_id_and_the_others_stay_cut(folder: Path) -> None:
    cut(folder, "docs.jsonl")
    (folder / "ids").write_text("d\ne\n", encoding="utf-8")
    done = run(folder, "restore", "out", "--ids", "ids", "-o", "back", "--json")
    assert json.loads(done.out) == {
        "output": "back", "restored": 1, "still_removed": 0, "quarantined": 0, "uncut": 1, "rows": 5,
    }  # fmt: skip
    expected = {**TEXTS, "b": LEFT["b"]}
    assert texts_in(folder / "back" / "kept" / "docs.jsonl") == expected
    assert pq.read_table(folder / "back" / "cuts.parquet").column("id").to_pylist() == ["b"]
    (folder / "ids").write_text("c\n", encoding="utf-8")
    done = run(folder, "restore", "out", "--ids", "ids", "-o", "more")
    assert (done.status, "an id is not among its removed and cut documents: 'c'" in done.err) == (FAILURE, True)


def test_kept_rows_go_to_standard_output(folder: Path) -> None:
    arguments = ("--passages", "--min-tokens", "5", "-o", "-", "--quiet")
    done = run(folder, "dedup", "docs.csv", *arguments)
    cut(folder, "docs.csv")
    assert (done.status, done.out) == (OK, (folder / "out/kept/docs.csv").read_bytes().decode())
    piped = run(folder, "dedup", "-", "--format", "jsonl", *arguments, job=Job(stdin="docs.jsonl"))
    assert {row["id"]: row["text"] for row in map(json.loads, piped.out.splitlines())} == LEFT


def test_short_rests_are_removed_with_their_reason(folder: Path) -> None:
    cut(folder, "docs.jsonl", "--min-left", "4")
    removed = pq.read_table(folder / "out" / "removed.parquet").to_pylist()
    assert [(row["id"], row["tokens"], row["left"], row["text"]) for row in removed] == [
        ("b", 14, 3, "Boats nothing, else."),
        ("d", 11, 0, ""),
    ]
    documents = pq.read_table(folder / "out" / "documents.parquet").to_pylist()
    assert [(row["id"], row["cut_tokens"], row["kept"]) for row in documents] == [
        ("a", 0, True), ("b", 11, False), ("c", 0, True), ("d", 11, False), ("e", 11, True),
    ]  # fmt: skip


def test_the_report_names_repeats_and_shows_cuts_in_context(folder: Path) -> None:
    done = run(folder, "dedup", "docs.jsonl", "--passages", "--min-tokens", "5", "-o", "out")
    assert "3 passages, 33 of 58 tokens" in done.out
    report = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))
    [repeat] = report["most_repeated"]
    assert (repeat["repeats"], repeat["first"]["id"], repeat["text"]) == (3, "a", HEADER)
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert "Most repeated passages" in page
    assert 'Boats </span><del>"Published under' in page.replace("&quot;", '"')
    (folder / "out" / "report.html").unlink()
    assert run(folder, "report", "out", "--quiet").status == OK
    again = (folder / "out" / "report.html").read_text(encoding="utf-8")
    shown, shown_again = (text[text.index('id="repeated"') : text.index('id="timing"')] for text in (page, again))
    assert shown_again == shown


def test_a_document_is_explained_by_its_cuts(folder: Path) -> None:
    cut(folder, "docs.jsonl")
    done = run(folder, "explain", "out", "b")
    assert (done.status, "first in a, 0-66" in done.out, "11 of 14 tokens, in 1 passage" in done.out) == (
        OK,
        True,
        True,
    )
    assert "removed: nothing is left" in run(folder, "explain", "out", "docs.jsonl:3").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--passages", "--threshold", "0.5"], "--threshold must be left out with passages, which has no search"),
        (["--passages", "--exact"], "exact must be left out with passages, which has no search"),
        (["--passages", "--html"], "html must be left out with passages, which cannot cut markup"),
        (["--min-tokens", "9"], "--min-tokens must be left out without passages, got 9; set --passages"),
        (["--snap", "line"], "snap must be left out without passages, got 'line'; set --passages"),
        (["--min-left", "1"], "--min-left must be left out without passages, got 1; set --passages"),
        (["--passages", "--min-left", "-1"], "--min-left must be a whole number from 0 to"),
        (["--passages", "--dry-run"], "--dry-run estimates a search for near-duplicates: leave out --passages"),
    ],
)
def test_settings_of_the_other_task_are_refused_in_one_line(folder: Path, arguments: list[str], message: str) -> None:
    done = run(folder, "dedup", "docs.jsonl", "-o", "out", *arguments)
    assert (done.status, done.out, done.err.count("\n")) == (USAGE, "", 1)
    assert message in done.err


def test_unreadable_rows_are_quarantined_and_counted(folder: Path) -> None:
    with (folder / "docs.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "f", "text": null}\n')
    cut(folder, "docs.jsonl")
    counts = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))["counts"]
    assert (counts["read"], counts["kept"], counts["removed"], counts["quarantined"]) == (6, 4, 1, 1)
    assert json.loads((folder / "out" / "quarantine.jsonl").read_text(encoding="utf-8"))["row"] == 5
