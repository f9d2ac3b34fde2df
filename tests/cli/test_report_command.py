"""``minwise report``: the page of a finished run written again, with an audit or without its inputs; errors."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.commands import FAILURE, INPUT_OUTPUT, OK, USAGE, execute, hidden, one_line, run
from support.restored_runs import contents, dedup
from support.small_corpus import FERRY, ROWS, TRAIN, json_lines, write

import minwise as mw
from minwise.results import write_report

PRINTED = "out/report.html: open it in a browser\n"
AUDITED = "97 of 100 pairs found"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the directory of the command, after a run that removed d2 and d4."""
    write(tmp_path / "in.jsonl", ROWS)
    dedup(tmp_path, "in.jsonl")
    return tmp_path


def page(folder: Path, *arguments: str, note: str = "") -> str:
    """Run the command, assert the note on standard error, and return the page."""
    done = run(folder, "report", "out", *arguments)
    assert (done.status, done.out) == (OK, PRINTED)
    if note:
        assert done.err.startswith("note: ")
        assert done.err.count("\n") == 1
        assert note in done.err
    else:
        assert done.err == ""
    assert hidden(folder / "out") == []
    return (folder / "out/report.html").read_text(encoding="utf-8")


def has_text(page: str, text: str) -> bool:
    """Return whether a text is on a page, regardless of marks between its words."""
    parts = [" ".join(part.split()) for part in page.replace("<", "\n<").replace(">", ">\n").split("\n")]
    return " ".join(text.split()) in " ".join(" ".join(part for part in parts if part and part[0] != "<").split())


def audit_of(folder: Path, **settings: object) -> dict[str, Any]:
    """Return an audit of the run, with changed settings if any are given."""
    report = json.loads((folder / "out/report.json").read_text())
    names = ("verify", "group", "keep")
    shared = {name: value for name, value in report["settings"].items() if name not in names}
    share = {"value": 0.97, "low": 0.9, "high": 0.99}
    return {
        "minwise": mw.__version__, "settings": {**shared, **settings}, "plan": report["plan"],
        "documents": report["counts"]["read"], "text_bytes": report["text_bytes"]["read"],
        "identical": 1, "sampled": 5, "complete": True, "threshold": 0.8, "floor": 0.4, "confidence": 0.95,
        "recall": {**share, "pairs": 100, "found": 97, "promised": 0.995},
        "documents_with_duplicates": {**share, "documents": 50, "found": 48},
        "precision": {**share, "candidates": 120, "pairs": 100},
        "bins": [{"from": 0.8, "to": 0.85, "pairs": 100, "found": 97, **share, "promised": 0.995}],
        "histogram": [{"from": 0.8, "to": 0.82, "pairs": 100, "estimated": 100.0, "low": 90.0, "high": 110.0}],
        "suggestion": None,
    }  # fmt: skip


def write_audit(folder: Path, audit: object) -> Path:
    """Write an audit to a file."""
    (folder / "measured.json").write_text(json.dumps(audit))
    return folder / "measured.json"


def test_the_page_is_written_again_and_nothing_else_changes(folder: Path) -> None:
    before = contents(folder)
    (folder / "out/report.html").unlink()
    made = page(folder)
    assert has_text(made, FERRY)
    assert has_text(made, f"{TRAIN} {TRAIN.split()[0]}")
    after = contents(folder)
    assert {**after, "out/report.html": b""} == {**before, "out/report.html": b""}


def test_inputs_are_found_from_another_directory(folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    done = run(folder / "elsewhere", "report", "../out")
    assert (done.status, done.out, done.err) == (OK, f"../{PRINTED}", "")
    assert has_text((folder / "out/report.html").read_text(), FERRY)


def test_quiet_prints_nothing(folder: Path) -> None:
    done = run(folder, "report", "out", "--quiet")
    assert (done.status, done.out, done.err) == (OK, "", "")


@pytest.mark.parametrize("name", ["in.parquet", "in.csv.gz", "in.arrow"])
def test_texts_of_other_formats_are_read(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, ROWS)
    dedup(tmp_path, name)
    assert has_text(page(tmp_path), FERRY)


def test_a_deleted_text_file_makes_all_texts_unavailable(tmp_path: Path) -> None:
    """Text files have one fingerprint together."""
    (tmp_path / "texts").mkdir()
    for row in ROWS:
        (tmp_path / "texts" / f"{row['id']}.txt").write_text(row["text"])
    dedup(tmp_path, "texts")
    assert has_text(page(tmp_path), FERRY)
    (tmp_path / "texts/d3.txt").unlink()
    assert not has_text(page(tmp_path, note="texts/d3.txt has been deleted since the run"), FERRY)


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "gone": (Path.unlink, "has been deleted since the run"),
    "longer": (lambda path: path.write_bytes(path.read_bytes() + b"\n"), "has changed since the run"),
    "later": (lambda path: os.utime(path, ns=(0, 1)), "has changed since the run"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_texts_of_a_changed_input_are_left_out_with_a_note(tmp_path: Path, change: str) -> None:
    """Texts of other inputs are shown."""
    write(tmp_path / "a.jsonl", [ROWS[0], ROWS[2]])
    write(tmp_path / "b.jsonl", [ROWS[1], ROWS[4]])
    dedup(tmp_path, "a.jsonl", "b.jsonl")
    action, message = CHANGES[change]
    action(tmp_path / "a.jsonl")
    made = page(tmp_path, note=message)
    assert re.search(rf"The text of \S+ is not shown: \S*a\.jsonl {message}", made)
    assert not has_text(made, FERRY)
    assert has_text(made, TRAIN)


def test_an_input_without_shown_texts_may_be_deleted(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [ROWS[0], ROWS[2]])
    write(tmp_path / "b.jsonl", [ROWS[3]])
    dedup(tmp_path, "a.jsonl", "b.jsonl")
    (tmp_path / "b.jsonl").unlink()
    assert has_text(page(tmp_path), FERRY)


def test_texts_of_a_reference_corpus_are_shown_unless_it_was_modified(tmp_path: Path) -> None:
    write(tmp_path / "old.jsonl", [ROWS[0]])
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "train.txt").write_text(TRAIN)
    (tmp_path / "old" / "other.txt").write_text("another")
    write(tmp_path / "in.jsonl", [ROWS[2], ROWS[4]])
    dedup(tmp_path, "in.jsonl", "--against", "old", "--against", "old.jsonl")
    made = page(tmp_path)
    assert has_text(made, FERRY)
    assert has_text(made, f"{TRAIN} {TRAIN.split()[0]}")
    os.utime(tmp_path / "old.jsonl", ns=(0, 4 * 10**18))
    made = page(tmp_path, note="old.jsonl may have changed since the run")
    assert not has_text(made, FERRY)
    assert has_text(made, f"{TRAIN} {TRAIN.split()[0]}")
    (tmp_path / "old" / "train.txt").unlink()
    page(tmp_path, note="old.jsonl may have changed since the run, and 1 more input has changed")


def test_the_page_with_texts_is_kept_if_they_are_not_available_again(folder: Path) -> None:
    """Also after a second time."""
    before = (folder / "out/report.html").read_bytes()
    assert b'class="sides' in before
    (folder / "in.jsonl").unlink()
    for _ in range(2):
        assert 'class="sides' not in page(folder, note="has been deleted since the run")
        assert (folder / "out/report-with-texts.html").read_bytes() == before


def test_a_run_on_standard_input_has_a_page_without_texts(folder: Path) -> None:
    shutil.rmtree(folder / "out")
    assert execute(folder, "dedup", "-", "-o", "out", "--quiet", stdin=json_lines(ROWS)).returncode == OK
    assert not has_text(page(folder, note="its input was standard input; there is no file to read again"), FERRY)


@pytest.mark.parametrize("kind", ["texts", "sets"])
def test_a_run_in_memory_has_a_page_without_texts(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets have no texts, so there is no note."""
    monkeypatch.chdir(tmp_path)
    if kind == "sets":
        mw.dedup([{1, 2, 3}, {1, 2, 3}, {4}], "out", shingle="set")
    else:
        mw.dedup([FERRY, FERRY.upper(), TRAIN], "out")
    notes: list[str] = []
    assert write_report("out", on_note=notes.append) == Path("out/report.html")
    assert notes == ([] if kind == "sets" else [
        "No texts are shown: out: its input was a table in memory; there is no file to read again."
    ])  # fmt: skip


def test_an_audit_is_copied_and_shown_on_every_later_page(folder: Path) -> None:
    assert AUDITED not in page(folder)
    audit = write_audit(folder, audit_of(folder))
    assert AUDITED in page(folder, "--audit", "measured.json")
    assert (folder / "out/audit.json").read_bytes() == audit.read_bytes()
    audit.unlink()
    assert AUDITED in page(folder)
    assert AUDITED in page(folder, "--audit", "out/audit.json")


@pytest.mark.parametrize(
    ("name", "value"),
    [("threshold", 0.7), ("shingle", "word:4"), ("bands", 7), ("rows", 2), ("scheme", "minhash"), ("seed", 2),
     ("lowercase", False), ("bag", True), ("max_bucket", 16)],
)  # fmt: skip
def test_an_audit_of_other_settings_is_refused_with_both_values(folder: Path, name: str, value: object) -> None:
    write_audit(folder, audit_of(folder, **{name: value}))
    before = contents(folder)
    line = one_line(run(folder, "report", "out", "--audit", "measured.json"), FAILURE)
    ours = json.loads((folder / "out/report.json").read_text())["settings"][name]
    option = "--max-bucket" if name == "max_bucket" else name  # the command names settings as its options
    assert f"measured.json: must be an audit with the settings of out: {option} is {value!r} in the audit" in line
    assert f"{ours!r} in the run" in line
    assert contents(folder) == before


@pytest.mark.parametrize("setting", [("verify", "none"), ("keep", "last"), ("group", "components")])
def test_settings_that_do_not_affect_an_audit_may_differ(folder: Path, setting: tuple[str, str]) -> None:
    write_audit(folder, audit_of(folder, **dict([setting])))
    assert AUDITED in page(folder, "--audit", "measured.json")


def test_an_audit_of_other_documents_is_refused(folder: Path) -> None:
    audit = audit_of(folder)
    write_audit(folder, {**audit, "text_bytes": audit["text_bytes"] + 1})
    message = one_line(run(folder, "report", "out", "--audit", "measured.json"), FAILURE)
    assert "must be an audit of the documents of out" in message
    assert not (folder / "out/audit.json").exists()


def test_an_audit_of_an_exact_run_is_refused(folder: Path) -> None:
    audit = write_audit(folder, audit_of(folder))
    dedup(folder, "in.jsonl", "--exact", "--overwrite")
    message = one_line(run(folder, "report", "out", "--audit", audit.name), FAILURE)
    assert "is of an exact run, which misses nothing" in message


@pytest.mark.parametrize("content", [b"", b"no JSON", b"[]", b"{}", b'{"minwise": "0.1.0", "settings": {}}', b"\xff"])
def test_a_file_that_is_no_audit_is_refused(folder: Path, content: bytes) -> None:
    """Both as an argument and in OUT."""
    (folder / "measured.json").write_bytes(content)
    before = contents(folder)
    line = one_line(run(folder, "report", "out", "--audit", "measured.json"), FAILURE)
    assert "measured.json: must be an audit of minwise" in line
    assert contents(folder) == before
    (folder / "measured.json").rename(folder / "out/audit.json")
    assert "out/audit.json: must be an audit of minwise" in one_line(run(folder, "report", "out"), FAILURE)


def test_a_missing_audit_file_is_reported(folder: Path) -> None:
    line = one_line(run(folder, "report", "out", "--audit", "nowhere.json"), INPUT_OUTPUT)
    assert line == "minwise: nowhere.json: No such file or directory\n"


def test_a_directory_that_is_no_output_is_refused(folder: Path) -> None:
    """A missing path, a file, another directory, or no argument."""
    line = one_line(run(folder, "report", "nowhere"), INPUT_OUTPUT)
    assert line == "minwise: nowhere: No such file or directory\n"
    for path in (".", "in.jsonl", "out/kept"):
        line = one_line(run(folder, "report", path), FAILURE)
        assert line.startswith(f"minwise: {path}: must be a directory that minwise dedup wrote")
    assert run(folder, "report").status == USAGE


def test_an_output_without_run_json_is_refused(folder: Path) -> None:
    (folder / "out/run.json").unlink()
    line = one_line(run(folder, "report", "out"), FAILURE)
    assert line.startswith("minwise: out: has no run.json, as written by an older minwise")


@pytest.mark.parametrize("key", ["plan", "counts", "sources", "largest_clusters", "just_below"])
def test_a_report_of_another_version_is_refused_with_the_missing_key(folder: Path, key: str) -> None:
    report = json.loads((folder / "out/report.json").read_text())
    (folder / "out/report.json").write_text(json.dumps({name: report[name] for name in report if name != key}))
    line = one_line(run(folder, "report", "out"), FAILURE)
    assert line.startswith("minwise: out/report.json: must be written by ")
    assert f"got one without {key}" in line or f"missing required field `{key}`" in line
