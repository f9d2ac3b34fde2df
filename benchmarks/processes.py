"""Measurement of the wall time and the peak memory of commands.

Memory is read from ``/proc`` while the command runs. The value that ``wait4`` reports afterwards is not usable: on
Linux it starts with the memory of the parent at the time of the fork.
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
ERROR_CHARACTERS = 2000  # kept from the end of the standard error of a failed command
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a command.

    Attributes:
        seconds: Wall time from start to end of the process.
        peak_bytes: Peak resident memory of the process and all its descendants together.
        code: Exit code; negative if a signal ended the process.
        output: Standard output.
        errors: End of standard error.
        load: Load average of the machine at the end.
        limited: Whether systemd enforced the memory limit.
        finished: Whether the process ended by itself within the time limit.
    """

    seconds: float
    peak_bytes: int
    code: int
    output: str
    errors: str
    load: float
    limited: bool
    finished: bool = True

    def result(self, description: str) -> dict[str, Any]:
        """Return the JSON object at the end of the output.

        Raises:
            SystemExit: If the command failed; ``description`` names it in the message.
        """
        if self.code:
            raise SystemExit(f"{description} failed with {self.code}:\n{self.errors}")
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
        environment: Additional environment variables.
        limit_bytes: Memory limit, enforced by systemd where it is available.
        bound_seconds: Time after which the command and all its descendants are killed.
        cores: Number of cores for the command and its descendants; None for all.
        warm_bytes: Memory to touch before the measurement starts.
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
    """Return the environment without ``PYTHONDONTWRITEBYTECODE``.

    Packages installed by pip are compiled. A source tree without bytecode files would be compiled at every start, which
    took a fifth of the time of the command with ten thousand documents.
    """
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def run_self_timed(command: Sequence[str]) -> dict[str, Any]:
    """Run a command that measures itself; return its result with its peak memory and the load of the machine."""
    run = run_measured(command)
    return {**run.result(" ".join(command)), "peak_bytes": run.peak_bytes, "load": run.load}


def warm_memory(count: int) -> None:
    """Touch ``count`` bytes once and release them.

    A virtual machine returns free memory to its host and waits when it needs the memory again: 2 GB took 6 s, and 0.2 s
    immediately afterwards. Without this, the tool that needs most memory would be charged for that.
    """
    if count:
        mmap.mmap(-1, count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE).close()


def watch_memory(process: subprocess.Popen[bytes], deadline: float) -> tuple[int, bool]:
    """Wait for a process; return the peak memory of it and its descendants, and whether it ended by itself.

    The high-water mark of the process itself comes from the kernel and is exact; the sum over descendants is sampled.
    """
    peak_bytes = 0
    while time.perf_counter() < deadline:
        total = sum(status_bytes(pid, "VmRSS") for pid in family(process.pid))
        peak_bytes = max(peak_bytes, total, status_bytes(process.pid, "VmHWM"))
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
    """Yield the ids of a process and all its descendants."""
    yield pid
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = listed.read_text(encoding="ascii").split()
        except OSError:
            continue  # the thread has ended
        for child in children:
            yield from family(int(child))


def status_bytes(pid: int, field: str) -> int:
    """Return a field of ``/proc/PID/status`` in bytes; 0 if the process has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    found = re.search(rf"^{field}:\s*(\d+) kB", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


@cache
def can_limit_memory() -> bool:
    """Return whether systemd runs and can create a scope with a memory limit."""
    try:
        return subprocess.run([*scope(2**30), "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def scope(limit_bytes: int) -> list[str]:
    """Return the command prefix that makes systemd enforce a memory limit."""
    user = [] if os.geteuid() == 0 else ["--user"]
    return ["systemd-run", *user, "--scope", "--quiet", "--collect", "-p", f"MemoryMax={limit_bytes}"]
