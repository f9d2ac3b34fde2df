"""`minwise report` as a user runs it: the page made anew, with an audit, without inputs, and what is refused."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.commands import FAILURE, INPUT_OUTPUT, OK, USAGE, execute, hidden, one_line, run
from support.restored_runs import contents, dedup
from support.small_corpus import FERRY, ROWS, TRAIN, json_lines, write

import minwise as mw

PRINTED = "out/report.html: open it in a browser\n"
AUDITED = "97 of 100 pairs found"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the files are and the command runs, after a run that removed d2 and d4."""
    write(tmp_path / "in.jsonl", ROWS)
    dedup(tmp_path, "in.jsonl")
    return tmp_path


def page(folder: Path, *arguments: str, note: str = "") -> str:
    """The page that the command makes; on standard error there is the note, if any."""
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
    """Whether a text is on a page, whatever marks there are between its words."""
    words = [" ".join(part.split()) for part in page.replace("<", "\n<").replace(">", ">\n").split("\n")]
    return " ".join(text.split()) in " ".join(" ".join(word for word in words if word and word[0] != "<").split())


def audit_of(folder: Path, **settings: object) -> dict[str, Any]:
    """What an audit of a run might have measured, with other settings perhaps."""
    report = json.loads((folder / "out/report.json").read_text())
    names = ("verify", "group", "keep")
    own = {name: value for name, value in report["settings"].items() if name not in names}
    share = {"value": 0.97, "low": 0.9, "high": 0.99}
    return {
        "minwise": mw.__version__, "settings": {**own, **settings}, "plan": report["plan"],
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
    """An audit as a file."""
    (folder / "measured.json").write_text(json.dumps(audit))
    return folder / "measured.json"


def test_the_page_is_made_anew(folder: Path) -> None:
    """With the texts, and nothing else in OUT is touched."""
    before = contents(folder)
    (folder / "out/report.html").unlink()
    made = page(folder)
    assert has_text(made, FERRY)
    assert has_text(made, f"{TRAIN} {TRAIN.split()[0]}")
    after = contents(folder)
    assert {**after, "out/report.html": b""} == {**before, "out/report.html": b""}


def test_standing_elsewhere(folder: Path) -> None:
    """The inputs are found where the run had them."""
    (folder / "elsewhere").mkdir()
    done = run(folder / "elsewhere", "report", "../out")
    assert (done.status, done.out, done.err) == (OK, f"../{PRINTED}", "")
    assert has_text((folder / "out/report.html").read_text(), FERRY)


def test_quiet(folder: Path) -> None:
    """Nothing is printed."""
    done = run(folder, "report", "out", "--quiet")
    assert (done.status, done.out, done.err) == (OK, "", "")


@pytest.mark.parametrize("name", ["in.parquet", "in.csv.gz", "in.arrow"])
def test_other_formats(tmp_path: Path, name: str) -> None:
    """Have texts too."""
    write(tmp_path / name, ROWS)
    dedup(tmp_path, name)
    assert has_text(page(tmp_path), FERRY)


def test_text_files(tmp_path: Path) -> None:
    """Of which one that is gone takes the texts of all with it: only together they have a fingerprint."""
    (tmp_path / "texts").mkdir()
    for row in ROWS:
        (tmp_path / "texts" / f"{row['id']}.txt").write_text(row["text"])
    dedup(tmp_path, "texts")
    assert has_text(page(tmp_path), FERRY)
    (tmp_path / "texts/d3.txt").unlink()
    assert not has_text(page(tmp_path, note="texts/d3.txt is gone since the run"), FERRY)


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "gone": (Path.unlink, "is gone since the run"),
    "longer": (lambda path: path.write_bytes(path.read_bytes() + b"\n"), "has changed since the run"),
    "later": (lambda path: os.utime(path, ns=(0, 1)), "has changed since the run"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_input_that_is_not_what_it_was(tmp_path: Path, change: str) -> None:
    """The page says so and does without its texts; those of other inputs are there."""
    write(tmp_path / "a.jsonl", [ROWS[0], ROWS[2]])
    write(tmp_path / "b.jsonl", [ROWS[1], ROWS[4]])
    dedup(tmp_path, "a.jsonl", "b.jsonl")
    action, said = CHANGES[change]
    action(tmp_path / "a.jsonl")
    made = page(tmp_path, note=said)
    assert "a.jsonl" in made
    assert said in made
    assert not has_text(made, FERRY)
    assert has_text(made, TRAIN)


def test_an_input_of_which_nothing_is_shown(tmp_path: Path) -> None:
    """May be gone: no text of it is missed."""
    write(tmp_path / "a.jsonl", [ROWS[0], ROWS[2]])
    write(tmp_path / "b.jsonl", [ROWS[3]])
    dedup(tmp_path, "a.jsonl", "b.jsonl")
    (tmp_path / "b.jsonl").unlink()
    assert has_text(page(tmp_path), FERRY)


def test_against(tmp_path: Path) -> None:
    """The kept texts may be of another corpus, tables or text files, unless these were modified since."""
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
    page(tmp_path, note="old.jsonl may have changed since the run, and 1 more inputs are not what they were")


def test_texts_that_can_not_be_had_again_are_kept(folder: Path) -> None:
    """The page that showed them stands beside the new one, also after a second time."""
    before = (folder / "out/report.html").read_bytes()
    assert b"<mark" in before
    (folder / "in.jsonl").unlink()
    for _ in range(2):
        assert "<mark" not in page(folder, note="is gone since the run")
        assert (folder / "out/report-with-texts.html").read_bytes() == before


def test_standard_input(folder: Path) -> None:
    """There is no file to go back to, but there is a page."""
    shutil.rmtree(folder / "out")
    assert execute(folder, "dedup", "-", "-o", "out", "--quiet", stdin=json_lines(ROWS)).returncode == OK
    assert not has_text(page(folder, note="its input was standard input; there is no file to go back to"), FERRY)


@pytest.mark.parametrize("kind", ["texts", "sets"])
def test_what_was_in_memory(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Likewise; sets have no texts, so none are missing."""
    monkeypatch.chdir(tmp_path)
    if kind == "sets":
        mw.dedup([{1, 2, 3}, {1, 2, 3}, {4}], "out", shingle="set")
    else:
        mw.dedup([FERRY, FERRY.upper(), TRAIN], "out")
    notes: list[str] = []
    assert mw.write_report("out", on_note=notes.append) == Path("out/report.html")
    assert notes == ([] if kind == "sets" else [
        "No texts are shown: out: its input was a table in memory; there is no file to go back to."
    ])  # fmt: skip


def test_an_audit(folder: Path) -> None:
    """Is copied, shown, and shown from then on."""
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
def test_an_audit_of_other_settings(folder: Path, name: str, value: object) -> None:
    """Both values of the first that differs; OUT stays as it is."""
    write_audit(folder, audit_of(folder, **{name: value}))
    before = contents(folder)
    line = one_line(run(folder, "report", "out", "--audit", "measured.json"), FAILURE)
    ours = json.loads((folder / "out/report.json").read_text())["settings"][name]
    assert f"measured.json: must be an audit with the settings of out: {name} is {value!r} in the audit" in line
    assert f"{ours!r} in the run" in line
    assert contents(folder) == before


@pytest.mark.parametrize("setting", [("verify", "none"), ("keep", "last"), ("group", "components")])
def test_settings_that_an_audit_does_not_have(folder: Path, setting: tuple[str, str]) -> None:
    """Choose among what was found, and make no difference."""
    write_audit(folder, audit_of(folder, **dict([setting])))
    assert AUDITED in page(folder, "--audit", "measured.json")


def test_an_audit_of_other_documents(folder: Path) -> None:
    """Of as many with the same settings, but not these."""
    audit = audit_of(folder)
    write_audit(folder, {**audit, "text_bytes": audit["text_bytes"] + 1})
    message = one_line(run(folder, "report", "out", "--audit", "measured.json"), FAILURE)
    assert "must be an audit of the documents of out" in message
    assert not (folder / "out/audit.json").exists()


def test_an_audit_of_an_exact_run(folder: Path) -> None:
    """There is nothing to measure."""
    audit = write_audit(folder, audit_of(folder))
    dedup(folder, "in.jsonl", "--exact", "--overwrite")
    message = one_line(run(folder, "report", "out", "--audit", audit.name), FAILURE)
    assert "is of an exact run, which misses nothing" in message


@pytest.mark.parametrize("content", [b"", b"no JSON", b"[]", b"{}", b'{"minwise": "0.1.0", "settings": {}}', b"\xff"])
def test_a_file_that_is_no_audit(folder: Path, content: bytes) -> None:
    """Given, or in OUT."""
    (folder / "measured.json").write_bytes(content)
    before = contents(folder)
    line = one_line(run(folder, "report", "out", "--audit", "measured.json"), FAILURE)
    assert "measured.json: must be an audit of minwise" in line
    assert contents(folder) == before
    (folder / "measured.json").rename(folder / "out/audit.json")
    assert "out/audit.json: must be an audit of minwise" in one_line(run(folder, "report", "out"), FAILURE)


def test_no_audit_file(folder: Path) -> None:
    """The name."""
    line = one_line(run(folder, "report", "out", "--audit", "nowhere.json"), INPUT_OUTPUT)
    assert line == "minwise: nowhere.json: No such file or directory\n"


def test_no_directory(folder: Path) -> None:
    """Of an earlier run: not there, a file, another directory, or none named."""
    line = one_line(run(folder, "report", "nowhere"), INPUT_OUTPUT)
    assert line == "minwise: nowhere: No such file or directory\n"
    for place in (".", "in.jsonl", "out/kept"):
        line = one_line(run(folder, "report", place), FAILURE)
        assert line.startswith(f"minwise: {place}: must be a directory that minwise dedup wrote")
    assert run(folder, "report").status == USAGE


def test_a_directory_of_an_older_version(folder: Path) -> None:
    """Which had no run.json: the remedy is to run it again."""
    (folder / "out/run.json").unlink()
    line = one_line(run(folder, "report", "out"), FAILURE)
    assert line.startswith("minwise: out: has no run.json, as written by an older minwise")


@pytest.mark.parametrize("key", ["plan", "counts", "sources", "largest_clusters", "just_below"])
def test_a_report_without_what_the_page_shows(folder: Path, key: str) -> None:
    """As another version may have written it: one line that says what is missing."""
    report = json.loads((folder / "out/report.json").read_text())
    (folder / "out/report.json").write_text(json.dumps({name: report[name] for name in report if name != key}))
    line = one_line(run(folder, "report", "out"), FAILURE)
    assert line.startswith("minwise: out/report.json: must be written by ")
    assert f"got one without {key}" in line
