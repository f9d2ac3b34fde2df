"""run.json and report.html: written beside every result, in little time, and never at the price of the result."""

import json
import os
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.expect import complaint

import minwise as mw
from minwise._internal.array_files import FileKind
from minwise.inputs.jsonl import JsonLinesFile
from minwise.progress import Silence, Stopwatch
from minwise.results import report_writer as automatic_report
from minwise.search import workdir as work_files
from minwise.search.engine import RememberedTexts

FERRY = "the ferry leaves the old harbour at six in the morning and the gulls follow it far out to the open sea"
TEXTS = [FERRY, "something else entirely, of which there is only one", FERRY.upper(), f"{FERRY} again"]
STAGES = ["read and sketch", "band", "shingle candidates", "verify", "group", "write", "report"]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file in the current directory."""
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("in/a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS), encoding="utf-8")
    return "in/a.jsonl"


def run_of(folder: str | Path) -> dict[str, Any]:
    """What run.json says."""
    return dict(json.loads((Path(folder) / "run.json").read_text(encoding="utf-8")))


def test_facts_of_a_run(file: str) -> None:
    """Everything that is needed to read the inputs again, and what the run took."""
    before = datetime.now(timezone.utc) - timedelta(seconds=1)
    mw.dedup(mw.Files([file]), "out", memory="1GB", threads=2, format="jsonl")
    run = run_of("out")
    assert before <= datetime.fromisoformat(run["started"]) <= datetime.now(timezone.utc)
    assert [one["stage"] for one in run["stages"]] == STAGES
    assert 0 < sum(one["seconds"] for one in run["stages"]) <= run["seconds"] < 60
    assert run["peak_memory_bytes"] >= run["peak_memory_before_bytes"] > 10**7
    status = Path(file).stat()
    fingerprint = {"name": file, "bytes": status.st_size, "modified": status.st_mtime_ns}
    expected = {
        "minwise": mw.__version__,
        "resumed": False,
        "memory_limit_bytes": 10**9,
        "threads": 2,
        "directory": str(Path.cwd()),
        "root": "in",
        "columns": {"text": ["text"], "id": None},
        "format": "jsonl",
        "inputs": [fingerprint],
    }
    assert {name: run[name] for name in expected} == expected
    measured = {"started", "seconds", "stages", "peak_memory_bytes", "peak_memory_before_bytes"}
    assert run.keys() - expected.keys() == measured


def test_facts_of_a_table_in_memory(tmp_path: Path) -> None:
    """It has a fingerprint too, and the texts on its page come from memory; what is compared against is no input."""
    mw.dedup(TEXTS, tmp_path / "out", against=["another"], id_column=None)
    run = run_of(tmp_path / "out")
    assert [one["name"] for one in run["inputs"]] == [""]
    assert (run["inputs"][0]["rows"], run["threads"], run["format"]) == (4, os.cpu_count(), None)
    assert "FERRY" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_the_input_is_noted_as_it_was_at_the_beginning(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An input that changes while it is copied is not the one that the run has read."""
    size, copy = Path(file).stat().st_size, JsonLinesFile.copy_kept

    def copy_and_change(self: JsonLinesFile, *arguments: Any) -> int:  # noqa: ANN401
        written = copy(self, *arguments)
        Path(file).write_text("{}\n", encoding="utf-8")
        return written

    monkeypatch.setattr(JsonLinesFile, "copy_kept", copy_and_change)
    mw.dedup(mw.Files([file]), "out")
    assert run_of("out")["inputs"][0]["bytes"] == size


def test_a_resumed_run_and_one_that_was_published(file: str) -> None:
    """A run that goes on says so and has fewer stages; one that finds all done leaves run.json and the page alone."""
    mw.dedup(mw.Files([file]), "first", work="work")
    assert not run_of("first")["resumed"]
    Path("first").rename("elsewhere")
    mw.dedup(mw.Files([file]), "first", work="work")
    assert run_of("first")["resumed"]
    assert [one["stage"] for one in run_of("first")["stages"]] == ["group", "write", "report"]
    before = {path: path.read_bytes() for path in Path("first").iterdir() if path.is_file()}
    assert mw.dedup(mw.Files([file]), "first", work="work").published
    assert {path: path.read_bytes() for path in Path("first").iterdir() if path.is_file()} == before
    assert (Path("first") / "report.json").read_bytes() == (Path("elsewhere") / "report.json").read_bytes()


def test_a_page_that_was_written_anew_is_still_the_published_output(file: str) -> None:
    """So the same command again has nothing to do, rather than an output in its way."""
    mw.dedup(mw.Files([file]), "out", work="work")
    Path("out/report.html").write_text("another, and longer or shorter", encoding="utf-8")
    Path("out/audit.json").write_text("{}", encoding="utf-8")
    assert mw.dedup(mw.Files([file]), "out", work="work").published
    Path("out/removed.parquet").write_bytes(b"")
    message = complaint(mw.ConfigError, lambda: mw.dedup(mw.Files([file]), "out", work="work"))
    assert "with files in it" in message


def test_work_of_an_earlier_version_is_refused(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pieces mean something else; the message says what to do."""
    with monkeypatch.context() as patch:
        patch.setattr(work_files, "KIND", FileKind(*work_files.KIND[:1], 1, *work_files.KIND[2:]))
        mw.dedup(mw.Files([file]), work="work")
    message = complaint(mw.FormatError, lambda: mw.dedup(mw.Files([file]), work="work"))
    assert "the format version must be 3, got 1; delete the work directory and start again" in message


def test_writing_twice(file: str) -> None:
    """Each output has the stages of the search and those of its own writing; the time between does not count."""
    result = mw.dedup(mw.Files([file]))
    time.sleep(0.3)
    began = time.monotonic()
    result.write("one")
    result.rethreshold(0.9).write("two")
    spent = time.monotonic() - began
    for folder in ("one", "two"):
        assert [one["stage"] for one in run_of(folder)["stages"]] == STAGES
        found = sum(one["seconds"] for one in run_of(folder)["stages"][:4])
        assert run_of(folder)["seconds"] <= found + spent + 0.25


def test_texts_on_the_page(file: str) -> None:
    """Those of candidates were read anyway; of a small corpus the others are read too."""
    mw.dedup(mw.Files([file]), "out")
    page = Path("out/report.html").read_text(encoding="utf-8")
    assert "FERRY" in page
    assert "were not read" not in page


def pages_without_reading(source: Any, monkeypatch: pytest.MonkeyPatch, room: int) -> str:  # noqa: ANN401 - any source
    """The page of a corpus that is not small, with room to remember so many bytes."""
    monkeypatch.setattr(automatic_report, "SMALL_BYTES", -1)
    monkeypatch.setattr("minwise.search.engine.RememberedTexts", lambda _: RememberedTexts(room))
    mw.dedup(source, "out")
    return Path("out/report.html").read_text(encoding="utf-8")


def test_texts_of_candidates_are_shown_without_reading_them_again(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However large the corpus is; a copy, which is no candidate, is not."""
    page = pages_without_reading(mw.Files([file]), monkeypatch, 10**6)
    assert "the gulls follow it far out" in page
    assert "FERRY" not in page


def test_texts_for_which_there_is_no_room_are_left_out(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page says so, and what adds them."""
    page = pages_without_reading(mw.Files([file]), monkeypatch, 10)
    assert "The texts of 3 documents were not read, to keep the run short; minwise report" in page
    assert "the gulls follow it far out" not in page


@pytest.mark.usefixtures("file")
def test_standard_input_and_tables_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the page does not promise it."""
    page = pages_without_reading(TEXTS, monkeypatch, 10)
    assert "The texts of 3 documents were not read, to keep the run short." in page


@pytest.mark.parametrize("room", [0, 1, 8, 9, 12, 100])
def test_what_is_remembered(room: int) -> None:
    """The first texts that fit, by their documents; from the first on that does not, none."""
    texts = RememberedTexts(room)
    texts.add(np.array([3, 7]), pa.array(["four", "more"]).slice(0))
    texts.add(np.array([8, 20, 21]), pa.array(["skipped", "nine", "", "end"]).slice(1))
    given = {3: b"four", 7: b"more", 8: b"nine", 20: b"", 21: b"end"}
    ends = {3: 4, 7: 8, 8: 12, 20: 12, 21: 15}
    fitting = {one: text for one, text in given.items() if 0 < ends[one] <= room}
    assert {one: texts.get(one) for one in given} == {one: fitting.get(one) for one in given}
    assert texts.get(5) is None


def test_a_bug_in_the_page_does_not_cost_the_result(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All else is written, and a warning says what happened."""

    def broken(*_: object, **__: object) -> str:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("minwise.report.page.report_page", broken)
    with pytest.warns(UserWarning, match=r"report.html could not be made, a bug .* ZeroDivisionError"):
        mw.dedup(mw.Files([file]), "out")
    names = {path.name for path in Path("out").iterdir()}
    assert names == {"kept", "removed.parquet", "clusters.parquet", "report.json", "run.json"}


def test_a_stopwatch_tells_the_watcher_everything() -> None:
    """Stages, totals and progress pass through; the time of each is noted when it is over."""
    heard: list[Any] = []

    class Watcher(Silence):
        def stage(self, name: str, total: int | None, unit: str, *, done: int = 0) -> Any:  # noqa: ANN401
            heard.append((name, total, unit, done))
            return super().stage(name, total, unit, done=done)

        def advance(self, amount: int) -> None:
            heard.append(amount)

    watch = Stopwatch(Watcher())
    with watch.stage("read", 10, "documents", done=3) as stage:
        stage.advance(7)
        time.sleep(0.02)
    assert heard == [("read", 10, "documents", 3), 7]
    assert [name for name, _ in watch.stages] == ["read"]
    assert 0.02 <= watch.stages[0][1] <= watch.seconds
    watch.stop()
    stopped = watch.seconds
    time.sleep(0.02)
    assert watch.seconds == stopped
    further = watch.go_on()
    with further.unseen("write"):
        time.sleep(0.02)
    assert [name for name, _ in further.stages] == ["read", "write"]
    assert further.seconds >= stopped + 0.02
    assert (watch.seconds, len(watch.stages), further.started) == (stopped, 1, watch.started)
