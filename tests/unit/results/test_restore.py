"""Restoring from Python: accepted ids, inputs that change, and how inputs are found."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.expect import error_message

import minwise as mw
from minwise.errors import ConfigError, FormatError, InputError, MismatchError
from minwise.inputs import Files
from minwise.progress import NullProgress
from minwise.results.finished_run import FinishedRun

FERRY = "the ferry leaves the old harbour at six in the morning and the gulls follow it far out to the open sea"


@pytest.fixture
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a directory with an output in which documents 1 to 4 were removed, for document 0."""
    monkeypatch.chdir(tmp_path)
    rows = [{"id": number, "text": FERRY} for number in range(5)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    mw.dedup("in.jsonl", "out")
    return tmp_path


def ids(folder: str) -> list[Any]:
    """Return the ids of the rows in a restored directory."""
    return [json.loads(line)["id"] for line in Path(folder, "kept/in.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    "given",
    [[1, 3], ["1", "3"], (1, "3"), {1, 3}, np.array([1, 3]), np.array([1, 3], dtype=np.uint8), iter([3, 1, 3])],
    ids=lambda given: type(given).__name__,
)
def test_ids_of_any_python_type(workdir: Path, given: Any) -> None:  # noqa: ANN401
    """A number and its digits are the same id; any iterable is accepted."""
    assert mw.restore("out", Path("back"), ids=given) == {
        "restored": 2, "still_removed": 2, "quarantined": 0, "rows": 3,
    }  # fmt: skip
    assert ids("back") == [0, 1, 3]
    assert pq.read_table("back/removed.parquet").column("id").to_pylist() == [2, 4]


def test_an_id_of_several_removed_documents_is_refused_unless_all_matches_are_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"id": name, "text": FERRY} for name in ("a", "b", "b", "b", "c", "c", "d")]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    mw.dedup("in.jsonl", "out")
    message = "out: 3 removed documents have the id 'b'; set all_matches=True to restore all of them"
    assert error_message(InputError, lambda: mw.restore("out", "back", ids=["b", "d"])) == message
    assert "'b' (and 1 more such ids);" in error_message(InputError, lambda: mw.restore("out", "back", ids=["c", "b"]))
    assert not Path("back").exists()
    assert mw.restore("out", "back", ids=["b", "d"], all_matches=True)["restored"] == 4
    assert ids("back") == ["a", "b", "b", "b", "d"]


def test_an_empty_list_of_ids_restores_nothing(workdir: Path) -> None:
    """Without ids everything is restored."""
    assert mw.restore("out", "none", ids=[])["restored"] == 0
    assert ids("none") == [0]
    assert mw.restore("out", "all")["restored"] == 4
    assert ids("all") == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("123", "ids must be several ids, such as a list, got '123'"),
        (b"1", "ids must be several ids, such as a list, got b'1'"),
        (1, "ids must be several ids, such as a list, got 1"),
        ([1.5], "an id must be a string or a whole number, got 1.5"),
        ([None], "an id must be a string or a whole number, got None"),
        ([b"1"], "an id must be a string or a whole number, got b'1'"),
    ],
)
def test_wrong_ids_are_refused_before_anything_is_written(workdir: Path, given: Any, message: str) -> None:  # noqa: ANN401
    assert error_message(ConfigError, lambda: mw.restore("out", "back", ids=given)) == message
    assert not Path("back").exists()


def test_the_id_of_a_kept_document_is_refused(workdir: Path) -> None:
    message = error_message(InputError, lambda: mw.restore("out", "back", ids=[0, 1]))
    assert message == "out: an id is not among its removed documents: '0'; removed.parquet lists all of them"


@pytest.mark.parametrize("path", ["", None, 3])
def test_wrong_paths_are_refused_by_name(workdir: Path, path: Any) -> None:  # noqa: ANN401
    assert error_message(ConfigError, lambda: mw.restore("out", path)).startswith("output must be a path")
    assert error_message(ConfigError, lambda: mw.restore(path, "back")).startswith("OUT must be a path")


@pytest.mark.parametrize("source", [[FERRY, FERRY], pa.table({"text": [FERRY, FERRY]})], ids=["list", "table"])
def test_a_run_on_a_table_in_memory_cannot_be_restored(workdir: Path, source: Any) -> None:  # noqa: ANN401
    mw.dedup(source, "memory")
    message = error_message(ConfigError, lambda: mw.restore("memory", "back"))
    assert message == "memory: its input was a table in memory; there is no file to read again"


def test_documents_compared_against_are_not_restored(workdir: Path) -> None:
    mw.dedup("in.jsonl", "fresh", against=[FERRY])
    assert mw.restore("fresh", "back", ids=[0, 4])["rows"] == 2
    assert ids("back") == [0, 4]


def change_unnoticed(path: Path, content: bytes) -> None:
    """Change a file without changing its size or modification time."""
    before = path.stat()
    assert len(content) == before.st_size
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_missing_rows_are_detected_by_their_count(workdir: Path) -> None:
    """Size and time of the input are unchanged; nothing is published."""
    path = workdir / "in.jsonl"
    change_unnoticed(path, path.read_bytes().replace(b"}\n{", b"} {", 1).ljust(path.stat().st_size, b" "))
    message = error_message(mw.MinwiseError, lambda: mw.restore("out", "back", ids=[1, 2, 3, 4]))
    assert message == "5 rows were to be written, 4 were: did the input change?"
    assert sorted(path.name for path in workdir.iterdir()) == ["in.jsonl", "out"]


@pytest.mark.parametrize("chosen", [None, [1]], ids=["all", "ids"])
def test_an_input_that_changes_during_the_copy_is_refused(workdir: Path, chosen: list[int] | None) -> None:
    """It is checked after the copy, and nothing is published."""

    class ChangingProgress(NullProgress):
        def advance(self, amount: int) -> None:
            with (workdir / "in.jsonl").open("a") as file:
                file.write("\n")

    message = error_message(MismatchError, lambda: mw.restore("out", "back", ids=chosen, progress=ChangingProgress()))
    assert message.startswith("in.jsonl has changed since the run: ")
    assert sorted(path.name for path in workdir.iterdir()) == ["in.jsonl", "out"]


def test_a_changed_input_is_refused_before_anything_is_written(workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even a temporary directory is created."""
    (workdir / "in.jsonl").write_text("")

    def write_nothing(*_: object) -> None:
        raise AssertionError("something was about to be written")

    monkeypatch.setattr("minwise.results.restoration.temporary_workdir", write_nothing)
    monkeypatch.setattr("minwise.results.restoration.publish", write_nothing)
    for chosen in (None, [1]):
        error_message(MismatchError, lambda chosen=chosen: mw.restore("out", "back", ids=chosen))  # type: ignore[misc]


def rewrite_run(change: Callable[[dict[str, Any]], object]) -> None:
    """Change run.json."""
    path = Path("out/run.json")
    run = json.loads(path.read_text())
    change(run)
    path.write_text(json.dumps(run))


def test_text_files_outside_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each copy goes where that of the run went, from any current directory."""
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        (folder / "a.txt").write_text(FERRY)
        (folder / "b.txt").write_text(f"something that only {folder.name} has, and nothing else")
    monkeypatch.chdir(here)
    mw.dedup(Files(["a.txt", "b.txt", "../there"]), tmp_path / "out")
    monkeypatch.chdir(there)
    assert mw.restore(tmp_path / "out", tmp_path / "back")["rows"] == 4
    kept = tmp_path / "back/kept"
    names = {path.relative_to(kept).as_posix() for path in kept.rglob("*.txt")}
    assert names == {"a.txt", "b.txt", "_up/there/a.txt", "_up/there/b.txt"}
    assert (kept / "b.txt").read_text() == (here / "b.txt").read_text()


def test_an_input_at_a_url_is_checked_and_restored(workdir: Path) -> None:
    pytest.importorskip("fsspec")
    mw.dedup(f"file://{workdir}/in.jsonl", "remote", overwrite=True)
    assert mw.restore("remote", "back", ids=[2])["rows"] == 2
    (workdir / "in.jsonl").write_text("")
    message = error_message(MismatchError, lambda: mw.restore("remote", "other"))
    assert message.startswith(f"file://{workdir}/in.jsonl has changed since the run: 0 bytes now")


def test_run_and_report_with_different_sources_are_refused(workdir: Path) -> None:
    rewrite_run(lambda run: run["inputs"].append({"name": "other.jsonl", "bytes": 1, "modified": 1}))
    message = error_message(FormatError, lambda: mw.restore("out", "back"))
    assert message == "out: run.json and report.json must be of one run, got 2 and 1 sources"


def test_every_input_is_opened_in_the_format_of_the_run(workdir: Path) -> None:
    """A CSV file was read as a text, and is again."""
    (workdir / "tree").mkdir()
    for name in ("a.txt", "b.csv", "c.txt"):
        (workdir / "tree" / name).write_text(f"one text, {name}")
    mw.dedup("tree", "forest", format="text")
    run = FinishedRun.open("forest")
    assert [[file.name for file in files] for files in run.files] == [["tree/a.txt", "tree/b.csv", "tree/c.txt"]]
    assert run.change(0) is None
    assert run.source(0).known_rows() == 3


def test_the_size_of_table_pieces_makes_no_difference(workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mw.restore("out", "whole", ids=[1, 4])
    monkeypatch.setattr("minwise.results.finished_run.TABLE_ROWS", 1)
    mw.restore("out", "pieces", ids=[1, 4])
    for name in ("kept/in.jsonl", "removed.parquet"):
        assert Path("pieces", name).read_bytes() == Path("whole", name).read_bytes()
