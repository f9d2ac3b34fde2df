"""Functions that child processes with the shim run: all steps under a trace, or one step with a failing call."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

import minwise as mw
from minwise.errors import ConfigError
from support.index_faults.children import Channel
from support.index_faults.shim import Fault, Manner, Shim
from support.index_faults.steps import CONSTANTS, INDEX, matching_state, prove_writable, script
from support.index_faults.trace import Kind
from support.index_faults.workload import set_constants

__all__ = [
    "ARMED",
    "CLOSING",
    "LATER",
    "OPENING_STEPS",
    "OVER",
    "keep_snapshots",
    "open_and_close",
    "reopen_during_read",
    "run_all_steps",
    "run_with_fault",
]

# Marks in the trace of `run_with_fault`: before the step, after it, before the second write, before closing.
ARMED, OVER, LATER, CLOSING = "armed", "over", "later", "closing"
# Steps that start without an open index.
OPENING_STEPS = ("create", "open")
# The step with the first write after opening.
FRESH = "add after opening"


def run_all_steps(channel: Channel) -> None:
    """Run every step in a watched directory, with marks in the trace where each step begins and ends."""
    job = channel.receive()
    set_constants(CONSTANTS)
    folder, shim, index = Path(job["folder"]), Shim(), None
    shim.watch(folder, Path(job["trace"]))
    for number, step in enumerate(script().steps):
        shim.mark(f"begin {number}")
        index = step.run(index, folder)
        shim.mark(f"end {number}")
    channel.send(True)


def open_and_close(channel: Channel) -> None:
    """Open and close the index that a power cut left, in a watched directory."""
    job = channel.receive()
    set_constants(CONSTANTS)
    folder = Path(job["folder"])
    Shim().watch(folder, Path(job["trace"]))
    mw.Index.open(folder / INDEX, "w").close()
    channel.send(True)


def keep_snapshots(channel: Channel) -> None:
    """Run every step, and keep a copy of the directory before each of them.

    The index is closed in all copies except the one before ``open``, which a killed process left.
    """
    job = channel.receive()
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
    channel.send(True)


class _FaultyRun:
    """A run of one step in which a call fails."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.folder, self.shim = Path(job["folder"]), Shim()
        whole, number = script(), job["step"]
        self.step, self.names = whole.steps[number], whole.names
        self.allowed = {"before": whole.states[number], "after": whole.states[number + 1]}
        shutil.copytree(job["snapshot"], self.folder)
        self.shim.watch(self.folder, Path(job["trace"]))
        self.index: mw.Index | None = None
        if self.step.name not in OPENING_STEPS:
            self.index = mw.Index.open(self.folder / INDEX, "w")
            if self.step.name != FRESH:
                prove_writable(self.index)  # writes and syncs the log before the step

    def run(self) -> None:
        """Run the step."""
        self.index = self.step.run(self.index, self.folder)

    def retry(self) -> None:
        """Run the step again; open the index if ``create`` made it but could not open it."""
        try:
            self.run()
        except ConfigError as error:
            if self.step.name != "create" or str(self.folder / INDEX) not in str(error):
                raise
            self.index = mw.Index.open(self.folder / INDEX, "w")

    def write(self) -> None:
        """Add and remove a document."""
        assert self.index is not None
        prove_writable(self.index)

    def add(self, document: list[str]) -> None:
        """Add a document, given as id and text."""
        assert self.index is not None
        self.index.add(document[:1], document[1:])

    def attempt(self, call: Callable[[], None]) -> dict[str, Any]:
        """Return kind, message and number of the error that a call raises; empty if it succeeds."""
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
        """Return the name of the allowed state that this process sees, or a description of the error."""
        assert self.index is not None
        try:
            return matching_state(self.index, self.allowed, self.names)
        except Exception as error:
            return f"{type(error).__name__}: {error}"


def run_with_fault(channel: Channel) -> None:
    """Run one step with a fault, check the index, write again and close; send the outcome of each."""
    job = channel.receive()
    set_constants(CONSTANTS)
    faulty = _FaultyRun(job)
    shim, result = faulty.shim, dict[str, Any]()
    shim.mark(ARMED)
    shim.fail(Fault(**job["fault"]))
    result["step"] = faulty.attempt(faulty.run)
    result["calls"] = shim.seen()
    if job["fault"]["manner"] == Manner.ONWARD and faulty.index is not None:
        result["full"] = faulty.attempt(faulty.write)
    shim.release()
    shim.mark(OVER)
    if faulty.step.name in OPENING_STEPS and result["step"]:
        result["retry"] = faulty.attempt(faulty.retry)
    if faulty.index is not None:
        result["state"] = faulty.state()
        shim.mark(LATER)
        result["later"] = faulty.attempt(faulty.write)
        shim.mark(CLOSING)
        result["later state"] = faulty.state()
        result["close"] = faulty.attempt(faulty.index.close)
    channel.send(result)


def reopen_during_read(channel: Channel) -> None:
    """Let a sync fail, reopen the index during a read transaction, add a document, and send the errors."""
    job = channel.receive()
    set_constants(CONSTANTS)
    faulty = _FaultyRun(job)
    assert faulty.index is not None
    faulty.shim.fail(Fault(kinds=[Kind.SYNC], nth=1, error=errno.EIO))
    failed = faulty.attempt(faulty.run)
    faulty.shim.release()
    faulty.index.close()
    reader = apsw.Connection(str(faulty.folder / INDEX / "index.db"), flags=apsw.SQLITE_OPEN_READONLY)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM documents").fetchall()
    faulty.index = mw.Index.open(faulty.folder / INDEX, "w")
    added = faulty.attempt(lambda: faulty.add(job["document"]))
    channel.send({"failed": failed, "added": added})
    os._exit(0)  # without closing, as in a power failure
