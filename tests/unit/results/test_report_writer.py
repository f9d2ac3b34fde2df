"""run.json and report.html: written with every result, quickly, and without endangering the result."""

import json
import os
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.expect import error_message

import minwise as mw
from minwise._internal.array_files import FileKind
from minwise.errors import ConfigError, FormatError
from minwise.inputs import Files
from minwise.progress import NullProgress, Stopwatch
from minwise.results import report_writer
from minwise.search import workdir
from minwise.search.verification import TextCache

FERRY = "the ferry leaves the old harbour at six in the morning and the gulls follow it far out to the open sea"
TEXTS = [FERRY, "something else entirely, of which there is only one", FERRY.upper(), f"{FERRY} again"]
STAGES = ["read and sketch", "band", "shingle candidates", "verify", "group", "write", "report"]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a file in the current directory."""
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("in/a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS), encoding="utf-8")
    return "in/a.jsonl"


def run_json(folder: str | Path) -> dict[str, Any]:
    """Return the content of run.json."""
    return dict(json.loads((Path(folder) / "run.json").read_text(encoding="utf-8")))


@pytest.mark.posix
def test_run_json_has_the_peak_memory(file: str) -> None:
    mw.dedup(Files([file]), "out")
    run = run_json("out")
    assert run["peak_memory_bytes"] >= run["peak_memory_before_bytes"] > 10**7


def test_run_json_describes_inputs_and_cost(file: str) -> None:
    before = datetime.now(timezone.utc) - timedelta(seconds=1)
    mw.dedup(Files([file]), "out", memory="1GB", threads=2, format="jsonl")
    run = run_json("out")
    assert before <= datetime.fromisoformat(run["started"]) <= datetime.now(timezone.utc)
    assert [entry["stage"] for entry in run["stages"]] == STAGES
    assert 0 < sum(entry["seconds"] for entry in run["stages"]) <= run["seconds"] < 60
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
        "delimiter": None,
        "encoding": None,
        "inputs": [fingerprint],
        "against": [],
    }
    assert {name: run[name] for name in expected} == expected
    assert (run["options"]["format"], run["options"]["threshold"], run["options"]["keep"]) == ("jsonl", 0.8, "first")
    assert not run["options"].keys() & {"memory", "threads", "work", "progress", "engine", "against"}
    measured = {"options", "started", "seconds", "stages", "peak_memory_bytes", "peak_memory_before_bytes"}
    assert run.keys() - expected.keys() == measured


def test_run_json_of_a_table_in_memory(tmp_path: Path) -> None:
    """It has a fingerprint, and its page shows texts; documents compared against are not an input."""
    mw.dedup(TEXTS, tmp_path / "out", against=["another"], id_column=None)
    run = run_json(tmp_path / "out")
    assert [entry["name"] for entry in run["inputs"]] == [""]
    assert (run["inputs"][0]["rows"], run["threads"], run["format"]) == (4, os.cpu_count(), None)
    assert "FERRY" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_resumed_and_published_runs(file: str) -> None:
    """A resumed run has fewer stages; a run whose output is published changes no file."""
    mw.dedup(Files([file]), "first", work="work")
    assert not run_json("first")["resumed"]
    Path("first").rename("elsewhere")
    mw.dedup(Files([file]), "first", work="work")
    assert run_json("first")["resumed"]
    assert [entry["stage"] for entry in run_json("first")["stages"]] == ["group", "write", "report"]
    before = {path: path.read_bytes() for path in Path("first").iterdir() if path.is_file()}
    assert mw.dedup(Files([file]), "first", work="work").published
    assert {path: path.read_bytes() for path in Path("first").iterdir() if path.is_file()} == before
    assert (Path("first") / "report.json").read_bytes() == (Path("elsewhere") / "report.json").read_bytes()


def test_an_output_with_a_rewritten_page_is_still_published(file: str) -> None:
    """So the same command has nothing to do, instead of finding a directory with files."""
    mw.dedup(Files([file]), "out", work="work")
    Path("out/report.html").write_text("another, and longer or shorter", encoding="utf-8")
    Path("out/audit.json").write_text("{}", encoding="utf-8")
    assert mw.dedup(Files([file]), "out", work="work").published
    Path("out/removed.parquet").write_bytes(b"")
    message = error_message(ConfigError, lambda: mw.dedup(Files([file]), "out", work="work"))
    assert "with files in it" in message


def test_a_work_directory_of_another_version_is_refused(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the remedy."""
    with monkeypatch.context() as patch:
        patch.setattr(workdir, "KIND", FileKind(*workdir.KIND[:1], 1, *workdir.KIND[2:]))
        mw.dedup(Files([file]), work="work")
    message = error_message(FormatError, lambda: mw.dedup(Files([file]), work="work"))
    assert "the format version must be 5, got 1; delete the work directory and start again" in message


def test_a_result_can_be_written_twice(file: str) -> None:
    """Each output has the stages of the search and of its own writing; the time between is not counted."""
    result = mw.dedup(Files([file]))
    time.sleep(0.3)
    began = time.monotonic()
    result.write("one")
    result.rethreshold(0.9).write("two")
    spent = time.monotonic() - began
    for folder in ("one", "two"):
        assert [entry["stage"] for entry in run_json(folder)["stages"]] == STAGES
        searched = sum(entry["seconds"] for entry in run_json(folder)["stages"][:4])
        assert run_json(folder)["seconds"] <= searched + spent + 0.25


def test_the_page_of_a_small_corpus_shows_all_texts(file: str) -> None:
    """Texts of candidates are cached, the others are read again."""
    mw.dedup(Files([file]), "out")
    page = Path("out/report.html").read_text(encoding="utf-8")
    assert "FERRY" in page
    assert "were not read" not in page


def page_of_large_corpus(source: Any, monkeypatch: pytest.MonkeyPatch, budget: int) -> str:  # noqa: ANN401 - any source
    """Return the page of a corpus that is not read again, with a text cache of ``budget`` bytes."""
    monkeypatch.setattr(report_writer, "SMALL_BYTES", -1)
    monkeypatch.setattr("minwise.search.verification.TextCache", lambda _: TextCache(budget))
    mw.dedup(source, "out")
    return Path("out/report.html").read_text(encoding="utf-8")


def test_cached_texts_of_candidates_are_shown(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy is not a candidate, so its text is not cached."""
    page = page_of_large_corpus(Files([file]), monkeypatch, 10**6)
    assert "the gulls follow it far out" in page
    assert "FERRY" not in page


def test_texts_that_do_not_fit_the_cache_are_left_out(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page says so, and names the command that adds them."""
    page = page_of_large_corpus(Files([file]), monkeypatch, 10)
    assert "The texts of 3 documents were not read, to keep the run short; minwise report" in page
    assert page.count("is not shown: its input is too large for a run to read it a second time.") == 4
    assert "the gulls follow it far out" not in page


@pytest.mark.usefixtures("file")
def test_a_table_in_memory_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the page names no command that adds its texts."""
    page = page_of_large_corpus(TEXTS, monkeypatch, 10)
    assert "The texts of 3 documents were not read, to keep the run short." in page
    assert "is not shown: its input was in memory." in page


@pytest.mark.parametrize("budget", [0, 1, 8, 9, 12, 100])
def test_the_text_cache_holds_the_first_texts_that_fit(budget: int) -> None:
    """The first text that does not fit closes it."""
    texts = TextCache(budget)
    texts.add(np.array([3, 7]), pa.array(["four", "more"]).slice(0))
    texts.add(np.array([8, 20, 21]), pa.array(["skipped", "nine", "", "end"]).slice(1))
    given = {3: b"four", 7: b"more", 8: b"nine", 20: b"", 21: b"end"}
    ends = {3: 4, 7: 8, 8: 12, 20: 12, 21: 15}
    fitting = {document: text for document, text in given.items() if 0 < ends[document] <= budget}
    assert {document: texts.get(document) for document in given} == {
        document: fitting.get(document) for document in given
    }
    assert texts.get(5) is None


def test_a_bug_in_the_page_does_not_lose_the_result(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All other files are written, with a warning."""

    def broken(*_: object, **__: object) -> str:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("minwise.report.page.report_page", broken)
    with pytest.warns(UserWarning, match=r"report.html could not be made, a bug .* ZeroDivisionError"):
        mw.dedup(Files([file]), "out")
    names = {path.name for path in Path("out").iterdir()}
    assert names == {"kept", "removed.parquet", "clusters.parquet", "report.json", "run.json"}


def test_a_stopwatch_forwards_progress_and_measures_stages() -> None:
    events: list[Any] = []

    class RecordingProgress(NullProgress):
        def stage(self, name: str, total: int | None, unit: str, *, done: int = 0) -> Any:  # noqa: ANN401
            events.append((name, total, unit, done))
            return super().stage(name, total, unit, done=done)

        def advance(self, amount: int) -> None:
            events.append(amount)

    watch = Stopwatch(RecordingProgress())
    with watch.stage("read", 10, "documents", done=3) as stage:
        stage.advance(7)
        time.sleep(0.02)
    assert events == [("read", 10, "documents", 3), 7]
    assert [name for name, _ in watch.stages] == ["read"]
    assert 0.02 <= watch.stages[0][1] <= watch.seconds
    watch.stop()
    stopped = watch.seconds
    time.sleep(0.02)
    assert watch.seconds == stopped
    further = watch.resume()
    with further.timed("write"):
        time.sleep(0.02)
    assert [name for name, _ in further.stages] == ["read", "write"]
    assert further.seconds >= stopped + 0.02
    assert (watch.seconds, len(watch.stages), further.started) == (stopped, 1, watch.started)
