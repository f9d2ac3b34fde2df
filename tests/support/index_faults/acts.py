"""What children with the shim do to an index: live once and be watched, or do one step in which a call fails."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

import minwise as mw
from support.index_faults.children import Line
from support.index_faults.faults import Fault, Manner, Shim
from support.index_faults.steps import CONSTANTS, INDEX, matching, prove_writable, script
from support.index_faults.trace import Kind
from support.index_faults.workload import set_constants

__all__ = [
    "ARMED",
    "BEGINNINGS",
    "CLOSING",
    "LATER",
    "OVER",
    "keep_snapshots",
    "live",
    "open_and_close",
    "reopen_beside_a_reader",
    "suffer",
]

# Marks in the trace of `suffer`: before the step, after it, before writing again, before closing.
ARMED, OVER, LATER, CLOSING = "armed", "over", "later", "closing"
# Steps at whose beginning no index is open.
BEGINNINGS = ("create", "open")
# The step that is the first to write after an opening.
FRESH = "add after opening"


def live(line: Line) -> None:
    """Does every step in a directory that is watched, with marks where each begins and has been acknowledged."""
    job = line.receive()
    set_constants(CONSTANTS)
    folder, shim, index = Path(job["folder"]), Shim(), None
    shim.watch(folder, Path(job["trace"]))
    for number, step in enumerate(script().steps):
        shim.mark(f"begin {number}")
        index = step.run(index, folder)
        shim.mark(f"end {number}")
    line.send(True)


def open_and_close(line: Line) -> None:
    """Opens what a power cut has left, in a directory that is watched."""
    job = line.receive()
    set_constants(CONSTANTS)
    folder = Path(job["folder"])
    Shim().watch(folder, Path(job["trace"]))
    mw.Index.open(folder / INDEX, "w").close()
    line.send(True)


def keep_snapshots(line: Line) -> None:
    """Does every step and keeps a copy of the directory as it was before each of them.

    The index is closed in all but one: that which is opened again was left by a process that died.
    """
    job = line.receive()
    set_constants(CONSTANTS)
    folder, snapshots, index = Path(job["folder"]), Path(job["snapshots"]), None
    for number, step in enumerate(script().steps):
        if step.name == "close":
            shutil.copytree(folder, snapshots / str(number + 1))
            (snapshots / str(number + 1) / INDEX / "segment-00009999.post").write_bytes(b"unfinished")
        if index is not None:
            index.close()
        if not (snapshots / str(number)).exists():
            shutil.copytree(folder, snapshots / str(number))
        if index is not None:
            index = mw.Index.open(folder / INDEX, "w")
        index = step.run(index, folder)
    line.send(True)


class _Sufferer:
    """A process in which a call of one step fails, and what it sees of it."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.folder, self.shim = Path(job["folder"]), Shim()
        whole, number = script(), job["step"]
        self.step, self.names = whole.steps[number], whole.names
        self.allowed = {"before": whole.states[number], "after": whole.states[number + 1]}
        shutil.copytree(job["snapshot"], self.folder)
        self.shim.watch(self.folder, Path(job["trace"]))
        self.index: mw.Index | None = None
        if self.step.name not in BEGINNINGS:
            self.index = mw.Index.open(self.folder / INDEX, "w")
            if self.step.name != FRESH:
                prove_writable(self.index)  # so that the log has been written and synced before

    def run(self) -> None:
        """The step."""
        self.index = self.step.run(self.index, self.folder)

    def retry(self) -> None:
        """The step again; what was made already and only not opened is opened."""
        try:
            self.run()
        except mw.ConfigError as error:
            if self.step.name != "create" or str(self.folder / INDEX) not in str(error):
                raise
            self.index = mw.Index.open(self.folder / INDEX, "w")

    def write(self) -> None:
        """Something else."""
        assert self.index is not None
        prove_writable(self.index)

    def add(self, document: list[str]) -> None:
        """One more document: its id and its text."""
        assert self.index is not None
        self.index.add(document[:1], document[1:])

    def attempt(self, call: Callable[[], None]) -> dict[str, Any]:
        """How a call ended: with which kind of error, and what it said; nothing if there was none."""
        try:
            call()
        except OSError as error:
            return {"kind": "OSError", "message": str(error), "number": error.errno}
        except mw.MinwiseError as error:
            return {"kind": type(error).__name__, "message": str(error)}
        except Exception as error:
            return {"kind": "unclear", "message": f"{type(error).__name__}: {error}"}
        return {}

    def state(self) -> str:
        """In which of the allowed states this process sees the index, or what is wrong with it."""
        assert self.index is not None
        try:
            return matching(self.index, self.allowed, self.names)
        except Exception as error:
            return f"{type(error).__name__}: {error}"


def suffer(line: Line) -> None:
    """Does one step with a fault, looks at what is there, writes again and closes; answers with how all of it went."""
    job = line.receive()
    set_constants(CONSTANTS)
    self = _Sufferer(job)
    shim, result = self.shim, dict[str, Any]()
    shim.mark(ARMED)
    shim.fail(Fault(**job["fault"]))
    result["step"] = self.attempt(self.run)
    result["calls"] = shim.seen()
    if job["fault"]["manner"] == Manner.ONWARD and self.index is not None:
        result["full"] = self.attempt(self.write)
    shim.release()
    shim.mark(OVER)
    if self.step.name in BEGINNINGS and result["step"]:
        result["retry"] = self.attempt(self.retry)
    if self.index is not None:
        result["state"] = self.state()
        shim.mark(LATER)
        result["later"] = self.attempt(self.write)
        shim.mark(CLOSING)
        result["later state"] = self.state()
        result["close"] = self.attempt(self.index.close)
    line.send(result)


def reopen_beside_a_reader(line: Line) -> None:
    """A sync fails; the index is opened again while somebody reads it, and takes a document; answers with errors."""
    job = line.receive()
    set_constants(CONSTANTS)
    self = _Sufferer(job)
    assert self.index is not None
    self.shim.fail(Fault(kinds=[Kind.SYNC], nth=1, error=errno.EIO))
    failed = self.attempt(self.run)
    self.shim.release()
    self.index.close()
    reader = apsw.Connection(str(self.folder / INDEX / "index.db"), flags=apsw.SQLITE_OPEN_READONLY)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM documents").fetchall()
    self.index = mw.Index.open(self.folder / INDEX, "w")
    added = self.attempt(lambda: self.add(job["document"]))
    line.send({"failed": failed, "added": added})
    os._exit(0)  # as when the power fails
