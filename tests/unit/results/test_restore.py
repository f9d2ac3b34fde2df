"""Restoring from Python: which ids it takes, what it makes of inputs that change under it, and where it finds them."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.expect import complaint

import minwise as mw
from minwise.progress import Silence
from minwise.results.published import Published

FERRY = "the ferry leaves the old harbour at six in the morning and the gulls follow it far out to the open sea"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory to stand in, with an output of which documents 1 to 4 were removed, for document 0."""
    monkeypatch.chdir(tmp_path)
    rows = [{"id": number, "text": FERRY} for number in range(5)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    mw.dedup("in.jsonl", "out")
    return tmp_path


def ids(folder: str) -> list[int]:
    """The ids of the rows in a restored directory."""
    return [json.loads(line)["id"] for line in Path(folder, "kept/in.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    "given",
    [[1, 3], ["1", "3"], (1, "3"), {1, 3}, np.array([1, 3]), np.array([1, 3], dtype=np.uint8), iter([3, 1, 3])],
    ids=lambda given: type(given).__name__,
)
def test_ids_as_python_has_them(place: Path, given: Any) -> None:  # noqa: ANN401
    """Numbers and their digits are the same id; anything that gives them one by one will do."""
    assert mw.restore("out", Path("back"), ids=given) == {
        "restored": 2, "still_removed": 2, "quarantined": 0, "rows": 3,
    }  # fmt: skip
    assert ids("back") == [0, 1, 3]
    assert pq.read_table("back/removed.parquet").column("id").to_pylist() == [2, 4]


def test_no_ids_are_not_all_ids(place: Path) -> None:
    """An empty list restores nothing, none at all restores everything."""
    assert mw.restore("out", "none", ids=[])["restored"] == 0
    assert ids("none") == [0]
    assert mw.restore("out", "all")["restored"] == 4
    assert ids("all") == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("123", "ids must be several ids, such as a list, got '123'"),
        (b"1", "ids must be several ids, such as a list, got b'1'"),
        (1, "ids must be several ids, such as a list, got 1"),
        ([1.5], "an id must be a string or a whole number, got 1.5"),
        ([None], "an id must be a string or a whole number, got None"),
        ([b"1"], "an id must be a string or a whole number, got b'1'"),
    ],
)
def test_what_are_no_ids(place: Path, given: Any, said: str) -> None:  # noqa: ANN401
    """One line, and nothing written."""
    assert complaint(mw.ConfigError, lambda: mw.restore("out", "back", ids=given)) == said
    assert not Path("back").exists()


def test_a_document_that_was_kept(place: Path) -> None:
    """Is not among the removed ones."""
    said = complaint(mw.InputError, lambda: mw.restore("out", "back", ids=[0, 1]))
    assert said == "out: an id is not among its removed documents: '0'; removed.parquet has them all"


@pytest.mark.parametrize("path", ["", None, 3])
def test_what_is_no_path(place: Path, path: Any) -> None:  # noqa: ANN401
    """Both are named by what they are."""
    assert complaint(mw.ConfigError, lambda: mw.restore("out", path)).startswith("output must be a path")
    assert complaint(mw.ConfigError, lambda: mw.restore(path, "back")).startswith("OUT must be a path")


@pytest.mark.parametrize("source", [[FERRY, FERRY], pa.table({"text": [FERRY, FERRY]})], ids=["list", "table"])
def test_a_table_in_memory(place: Path, source: Any) -> None:  # noqa: ANN401
    """There is no file to go back to."""
    mw.dedup(source, "memory")
    said = complaint(mw.ConfigError, lambda: mw.restore("memory", "back"))
    assert said == "memory: its input was a table in memory; there is no file to go back to"


def test_against_in_memory(place: Path) -> None:
    """Makes no difference: nothing of it is written."""
    mw.dedup("in.jsonl", "fresh", against=[FERRY])
    assert mw.restore("fresh", "back", ids=[0, 4])["rows"] == 2
    assert ids("back") == [0, 4]


def same_look(path: Path, content: bytes) -> None:
    """Changes a file so that neither its size nor its time tells."""
    before = path.stat()
    assert len(content) == before.st_size
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_rows_that_are_not_there_any_more(place: Path) -> None:
    """Although size and time are what they were: counted, and nothing is published."""
    path = place / "in.jsonl"
    same_look(path, path.read_bytes().replace(b"}\n{", b"} {", 1).ljust(path.stat().st_size, b" "))
    said = complaint(mw.MinwiseError, lambda: mw.restore("out", "back", ids=[1, 2, 3, 4]))
    assert said == "5 rows were to be written, 4 were: did the input change?"
    assert sorted(one.name for one in place.iterdir()) == ["in.jsonl", "out"]


@pytest.mark.parametrize("chosen", [None, [1]], ids=["all", "ids"])
def test_an_input_that_changes_while_it_is_copied(place: Path, chosen: list[int] | None) -> None:
    """Is seen afterwards, and nothing is published."""

    class Meddler(Silence):
        def advance(self, amount: int) -> None:
            with (place / "in.jsonl").open("a") as file:
                file.write("\n")

    said = complaint(mw.MismatchError, lambda: mw.restore("out", "back", ids=chosen, progress=Meddler()))
    assert said.startswith("in.jsonl has changed since the run: ")
    assert sorted(one.name for one in place.iterdir()) == ["in.jsonl", "out"]


def test_a_changed_input_is_refused_before_anything_is_written(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even a temporary directory is made."""
    (place / "in.jsonl").write_text("")

    def write_nothing(*_: object) -> None:
        raise AssertionError("something was about to be written")

    monkeypatch.setattr("minwise.results.restore.temporary_work", write_nothing)
    monkeypatch.setattr("minwise.results.restore.publish", write_nothing)
    for chosen in (None, [1]):
        complaint(mw.MismatchError, lambda chosen=chosen: mw.restore("out", "back", ids=chosen))  # type: ignore[misc]


def rewrite_run(change: Callable[[dict[str, Any]], object]) -> None:
    """Changes what a run noted."""
    path = Path("out/run.json")
    run = json.loads(path.read_text())
    change(run)
    path.write_text(json.dumps(run))


def test_text_files_above_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And in it, as one run of files: each copy goes where that of the run went, from wherever it is called."""
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        (folder / "a.txt").write_text(FERRY)
        (folder / "b.txt").write_text(f"something that only {folder.name} has, and nobody else")
    monkeypatch.chdir(here)
    mw.dedup(mw.Files(["a.txt", "b.txt", "../there"]), tmp_path / "out")
    monkeypatch.chdir(there)
    assert mw.restore(tmp_path / "out", tmp_path / "back")["rows"] == 4
    kept = tmp_path / "back/kept"
    found = {path.relative_to(kept).as_posix() for path in kept.rglob("*.txt")}
    assert found == {"a.txt", "b.txt", "_up/there/a.txt", "_up/there/b.txt"}
    assert (kept / "b.txt").read_text() == (here / "b.txt").read_text()


def test_a_url(place: Path) -> None:
    """Is opened as it was, and its fingerprint compared."""
    pytest.importorskip("fsspec")
    mw.dedup(f"file://{place}/in.jsonl", "remote", overwrite=True)
    assert mw.restore("remote", "back", ids=[2])["rows"] == 2
    (place / "in.jsonl").write_text("")
    said = complaint(mw.MismatchError, lambda: mw.restore("remote", "other"))
    assert said.startswith(f"file://{place}/in.jsonl has changed since the run: 0 bytes now")


def test_a_run_that_can_not_be_read_as_one(place: Path) -> None:
    """Sources of run.json and report.json that do not belong together."""
    rewrite_run(lambda run: run["inputs"].append({"name": "other.jsonl", "bytes": 1, "modified": 1}))
    said = complaint(mw.FormatError, lambda: mw.restore("out", "back"))
    assert said == "out: run.json and report.json must be of one run, got 2 and 1 sources"


def test_every_input_is_opened_as_what_it_was(place: Path) -> None:
    """A table among mostly texts was a text, and is one again."""
    (place / "tree").mkdir()
    for name in ("a.txt", "b.csv", "c.txt"):
        (place / "tree" / name).write_text(f"one text, {name}")
    mw.dedup("tree", "forest")
    published = Published.open("forest")
    assert [[file.name for file in files] for files in published.files] == [["tree/a.txt", "tree/b.csv", "tree/c.txt"]]
    assert published.change(0) is None
    assert published.source(0).known_rows() == 3


def test_many_pieces(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are read and written a piece at a time; where they are cut makes no difference."""
    mw.restore("out", "whole", ids=[1, 4])
    monkeypatch.setattr("minwise.results.published.TABLE_ROWS", 1)
    mw.restore("out", "pieces", ids=[1, 4])
    for name in ("kept/in.jsonl", "removed.parquet"):
        assert Path("pieces", name).read_bytes() == Path("whole", name).read_bytes()
