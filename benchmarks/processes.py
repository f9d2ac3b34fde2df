"""Processes: a command in, its wall time and its peak memory out.

Memory is read from ``/proc`` while the command runs. What ``wait4`` reports afterwards will not do: on Linux it begins
with what the parent held when it started the child.
"""

from __future__ import annotations

import contextlib
import json
import math
import mmap
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

SAMPLE_SECONDS = 0.02
ERROR_CHARACTERS = 2000  # of the end of what a failed command wrote
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a command.

    Attributes:
        seconds: Wall time from start to end of the process.
        peak_bytes: Most resident memory of the process and all it started, together.
        code: Exit code; negative if a signal ended it.
        output: What it wrote to standard output.
        errors: The end of what it wrote to standard error.
        load: Load of the machine when it ended.
        limited: Whether the system would have ended it above the memory limit.
        finished: Whether it came to an end by itself, within the time it was given.
    """

    seconds: float
    peak_bytes: int
    code: int
    output: str
    errors: str
    load: float
    limited: bool
    finished: bool = True

    def told(self, what: str) -> dict[str, Any]:
        """Return what it said of itself: the JSON object that its output ends with.

        Raises:
            SystemExit: If it failed; ``what`` did.
        """
        if self.code:
            raise SystemExit(f"{what} failed with {self.code}:\n{self.errors}")
        return dict(json.loads(self.output[self.output.rfind("\n{") + 1 :]))


def run_measured(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    limit_bytes: int | None = None,
    bound_seconds: float = math.inf,
    cores: int | None = None,
    warm_bytes: int = 0,
) -> Run:
    """Run a command to its end.

    Args:
        command: Program and arguments.
        environment: Variables beside our own.
        limit_bytes: Memory above which the system should end it, where systemd can do that.
        bound_seconds: Time after which it and all it started are ended.
        cores: How many of our cores it and all it starts may use; None for all.
        warm_bytes: Memory that is made ready before the clock starts.
    """
    warm_memory(warm_bytes)
    limited = limit_bytes is not None and can_limit_memory()
    whole = [*scope(limit_bytes), *command] if limited and limit_bytes else list(command)
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        variables = {**own_variables(), **(environment or {})}
        process = subprocess.Popen(whole, cwd=ROOT, env=variables, stdout=output, stderr=errors)
        if cores is not None:
            os.sched_setaffinity(process.pid, sorted(os.sched_getaffinity(0))[:cores])
        peak_bytes, finished = watch_memory(process, start + bound_seconds)
        seconds = time.perf_counter() - start
        output.seek(0)
        errors.seek(0)
        return Run(
            seconds=seconds,
            peak_bytes=peak_bytes,
            code=process.returncode,
            output=output.read(),
            errors=errors.read()[-ERROR_CHARACTERS:].strip(),
            load=os.getloadavg()[0],
            limited=limited,
            finished=finished,
        )


def own_variables() -> dict[str, str]:
    """Return our own variables, but the one that keeps Python from remembering what it compiled.

    What pip installs comes compiled; a tree that is worked on would be compiled again at every start, which took our
    command a fifth of the time it needs for ten thousand documents.
    """
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def run_told(command: Sequence[str]) -> dict[str, Any]:
    """Run a command that measures itself; return what it told, with its peak memory and the machine's load."""
    run = run_measured(command)
    return {**run.told(" ".join(command)), "peak_bytes": run.peak_bytes, "load": run.load}


def warm_memory(count: int) -> None:
    """Use so many bytes once and give them back.

    A virtual machine hands memory that lies free back to its host, and waits for it when it is wanted again: 2 GB took
    6 s, and 0.2 s right afterwards. Without this, whoever needs most memory would pay for what others left alone.
    """
    if count:
        mmap.mmap(-1, count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE).close()


def watch_memory(process: subprocess.Popen[bytes], deadline: float) -> tuple[int, bool]:
    """Wait for a process; return the most memory it and its children held at a time, and whether it ended by itself.

    The kernel's own high-water mark of the process misses no moment; the sum over children is sampled.
    """
    peak_bytes = 0
    while time.perf_counter() < deadline:
        together = sum(status_bytes(pid, "VmRSS") for pid in family(process.pid))
        peak_bytes = max(peak_bytes, together, status_bytes(process.pid, "VmHWM"))
        try:
            process.wait(SAMPLE_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        return peak_bytes, True
    for pid in list(family(process.pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()
    return peak_bytes, False


def family(pid: int) -> Iterator[int]:
    """Yield a process and all that descend from it."""
    yield pid
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = listed.read_text(encoding="ascii").split()
        except OSError:
            continue  # the thread has ended
        for child in children:
            yield from family(int(child))


def status_bytes(pid: int, field: str) -> int:
    """Return a field of ``/proc/PID/status``, 0 if the process has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    found = re.search(rf"^{field}:\s*(\d+) kB", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


@cache
def can_limit_memory() -> bool:
    """Whether systemd runs here and lets us have a scope with a memory limit."""
    try:
        return subprocess.run([*scope(2**30), "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def scope(limit_bytes: int) -> list[str]:
    """Return what to put before a command so that systemd ends it above a memory limit."""
    whose = [] if os.geteuid() == 0 else ["--user"]
    return ["systemd-run", *whose, "--scope", "--quiet", "--collect", "-p", f"MemoryMax={limit_bytes}"]
