"""An input that changes during a run: the run fails in one line that names the file, and nothing is written."""

import json
import os
import shutil
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.commands import FAILURE, Job, hidden, one_line, resume, run
from support.expect import error_message

import minwise as mw
from minwise.errors import InputError
from minwise.inputs import Files

FERRY = "the ferry leaves the old harbour at six in the morning and the gulls follow it far out to the open sea"
OTHER = "a kettle on the stove begins to sing while rain runs down the window of the kitchen of the lighthouse"
STAGES = ("read and sketch", "band", "shingle candidates", "verify", "write")


def row(text: str, number: int) -> str:
    """Return a JSON line whose length does not depend on the text."""
    return json.dumps({"id": number, "text": text.ljust(120)}) + "\n"


def rows(text: str = FERRY) -> str:
    """Return the lines of an input whose second document is a copy of the first."""
    return row(text, 0) + row(FERRY, 1) + row("alone", 2)


def overwrite(path: Path) -> None:
    """Replace the text of the witness; size and inode stay."""
    with path.open("r+") as file:
        file.write(rows(OTHER))


def append(path: Path) -> None:
    with path.open("a") as file:
        file.write(row(FERRY, 3))


def swap(path: Path) -> None:
    """Put another file of the same size and modification time in its place."""
    other = path.with_suffix(".other")
    other.write_text(rows(OTHER))
    shutil.copystat(path, other)
    other.replace(path)


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "overwritten": (overwrite, "got another modification time"),
    "appended": (append, "bytes at first and"),
    "swapped": (swap, "got another file of the same name"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a directory with an input of three rows, whose time is long ago."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(rows())
        os.utime(tmp_path / f"{name}.jsonl", ns=(10**18, 10**18))
    return tmp_path


def changing(change: Callable[[Path], None], path: Path, stage: str) -> Callable[..., None]:
    """Return a progress function that changes a file once, when a stage starts."""
    pending = [change]

    def progress(name: str, *_: object) -> None:
        if name == stage and pending:
            pending.pop()(path)

    return progress


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("change", "what"), CHANGES.values(), ids=CHANGES)
def test_changed_input_is_not_published(folder: Path, change: Callable[[Path], None], what: str, stage: str) -> None:
    message = error_message(
        InputError,
        lambda: mw.dedup(Files(["a.jsonl", "b.jsonl"]), "out", progress=changing(change, folder / "b.jsonl", stage)),
    )
    assert message.startswith("b.jsonl: an input must stay the same during a run, ")
    assert what in message
    assert not (folder / "out").exists()
    assert hidden(folder) == []


def test_deleted_input_is_not_published(folder: Path) -> None:
    progress = changing(Path.unlink, folder / "b.jsonl", "verify")
    message = error_message(InputError, lambda: mw.dedup(Files(["a.jsonl", "b.jsonl"]), "out", progress=progress))
    assert message.startswith("b.jsonl: an input must stay the same during a run, got one that was deleted; ")
    assert not (folder / "out").exists()


WRITERS: dict[str, Callable[[Any], object]] = {
    "pairs": lambda progress: mw.write_pairs("a.jsonl", "out.csv", progress=progress),
    "pairs with truth": lambda progress: mw.write_pairs("a.jsonl", "out.csv", truth="id", progress=progress),
    "preview": lambda progress: mw.write_pairs("a.jsonl", None, progress=progress),
    "clusters": lambda progress: mw.write_clusters("a.jsonl", "out.csv", progress=progress),
    "groups": lambda progress: mw.write_pairs("a.jsonl", "out.csv", group_by="text", item="id", progress=progress),
    "audit": lambda progress: mw.audit("a.jsonl", output="out.json", progress=progress),
    "in memory": lambda progress: mw.pairs("a.jsonl", progress=progress),
    "against": lambda progress: mw.dedup("b.jsonl", "out", against="a.jsonl", progress=progress),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_no_command_writes_a_result_of_a_changed_input(folder: Path, write: Callable[[Any], object]) -> None:
    before = sorted(path.name for path in folder.iterdir())
    message = error_message(InputError, lambda: write(changing(append, folder / "a.jsonl", "band")))
    assert message.startswith("a.jsonl: an input must stay the same during a run, ")
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("name", ["a.jsonl", "texts"], ids=["one file", "text files"])
def test_texts_of_a_result_are_read_from_the_same_rows_or_not_at_all(folder: Path, name: str) -> None:
    """A result in memory reads kept rows and texts on demand."""
    (folder / "texts").mkdir()
    for number in range(3):
        (folder / "texts" / f"{number}.txt").write_text(FERRY if number < 2 else "alone")
    result = mw.dedup(name)
    path = folder / "texts/2.txt" if name == "texts" else folder / name
    append(path)
    assert OTHER not in result._repr_html_()
    for use in (lambda: result.kept, lambda: result.write("out"), lambda: result.write_kept(BytesIO())):
        assert path.name in error_message(InputError, use)
    assert not (folder / "out").exists()


def test_kept_rows_of_a_changed_input_are_not_printed(folder: Path) -> None:
    result, output = mw.dedup("a.jsonl"), BytesIO()
    overwrite(folder / "a.jsonl")
    assert "another modification time" in error_message(InputError, lambda: result.write_kept(output))
    assert output.getvalue() == b""


def test_changed_vectors_are_not_searched(folder: Path) -> None:
    path = folder / "v.npy"
    np.save(path, np.eye(8, dtype=np.float32))
    os.utime(path, ns=(10**18, 10**18))
    search = mw.EuclideanLSH.plan(str(path), radius=2.0).fit(str(path))

    def touch(*_: object) -> None:
        path.touch()

    for write in (
        lambda: search.write_pairs(2.0, "out.csv", progress=touch),
        lambda: search.write_query(str(path), "out.csv", top=1, progress=touch),
    ):
        assert "v.npy: an input must stay the same" in error_message(InputError, write)
        assert not (folder / "out.csv").exists()


def test_command_names_the_file_and_resumes_with_the_changed_input(folder: Path) -> None:
    """With --work, the earlier stages belong to the earlier input, which is refused with both values."""
    stopped = run(folder, "dedup", "a.jsonl", "-o", "out", "--work", "work", job=Job(stage_trap=("write", "stop")))
    append(folder / "a.jsonl")
    message = one_line(resume(stopped.child), FAILURE)
    assert message.startswith("minwise: a.jsonl: an input must stay the same during a run, got ")
    assert message.endswith("; run again when it is complete\n")
    assert not (folder / "out").exists()
    assert "belongs to a run with inputs.a.jsonl.bytes" in one_line(
        run(folder, "dedup", "a.jsonl", "-o", "out", "--work", "work"), FAILURE
    )


def test_unchanged_input_that_is_only_read_is_published(folder: Path) -> None:
    """Access times, links and permissions are not content."""

    def look(*_: object) -> None:
        (folder / "a.jsonl").read_bytes()
        (folder / "a.jsonl").chmod(0o600)
        os.link(folder / "a.jsonl", folder / f"link{len(list(folder.glob('link*')))}")

    mw.dedup("a.jsonl", "out", progress=look)
    assert (folder / "out/report.json").exists()
