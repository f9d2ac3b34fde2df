"""Measurement of the wall time, the processor time and the peak memory of commands.

Memory is read from ``/proc`` while the command runs. The value that ``wait4`` reports afterwards is not usable: on
Linux it starts with the memory of the parent at the time of the fork.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import mmap
import os
import platform
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
LIBC = ctypes.CDLL(None)
KCMP = {"x86_64": 312, "aarch64": 272}.get(platform.machine())  # number of the system call that compares processes


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
        cpu_seconds: User and system time of the process and all its descendants, each up to its last sample.
    """

    seconds: float
    peak_bytes: int
    code: int
    output: str
    errors: str
    load: float
    limited: bool
    finished: bool = True
    cpu_seconds: float = 0

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
        peak_bytes, cpu_seconds, finished = watch_family(process, start + bound_seconds)
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
            cpu_seconds=cpu_seconds,
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


def watch_family(process: subprocess.Popen[bytes], deadline: float) -> tuple[int, float, bool]:
    """Wait for a process; return the peak memory and the processor time of its family, and whether it ended by itself.

    The high-water mark of the process itself comes from the kernel and is exact; the sum over descendants is sampled.
    Pages that processes share count for each of them. The processor time is not that of ``wait4``, which lacks the
    descendants that their parent has not waited for, such as the Python workers of Spark.
    """
    peak_bytes, spent = 0, dict[int, float]()
    while time.perf_counter() < deadline:
        pids = list(family(process.pid))
        resident = sum(status_bytes(pid, "VmRSS") for pid in pids if not shares_memory(pid))
        peak_bytes = max(peak_bytes, resident, status_bytes(process.pid, "VmHWM"))
        spent.update((pid, max(spent.get(pid, 0), cpu_seconds_of(pid))) for pid in pids)
        try:
            process.wait(SAMPLE_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        return peak_bytes, sum(spent.values()), True
    for pid in list(family(process.pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()
    return peak_bytes, sum(spent.values()), False


def family(pid: int) -> Iterator[int]:
    """Yield the ids of a process and all its descendants."""
    yield pid
    for child in children(pid):
        yield from family(child)


def children(pid: int) -> list[int]:
    """Return the ids of the children of a process; those of threads that end meanwhile may be missing."""
    found: list[int] = []
    with contextlib.suppress(OSError):  # the process has ended
        for thread in list(Path(f"/proc/{pid}/task").iterdir()):
            with contextlib.suppress(OSError):  # the thread has ended
                found += map(int, (thread / "children").read_text(encoding="ascii").split())
    return found


def status_bytes(pid: int, field: str) -> int:
    """Return a field of ``/proc/PID/status`` in bytes; 0 if the process has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    found = re.search(rf"^{field}:\s*(\d+) kB", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def cpu_seconds_of(pid: int) -> float:
    """Return the user and system time of a process; 0 if it has ended."""
    fields = stat_fields(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0


def shares_memory(pid: int) -> bool:
    """Return whether a process still uses the memory of its parent: between ``vfork`` and ``exec``, as it starts.

    Counted twice, a process of 400 MB that starts others had a peak of 820 MB.
    """
    fields = stat_fields(pid)
    same_memory = 1  # KCMP_VM
    return bool(fields) and KCMP is not None and LIBC.syscall(KCMP, pid, int(fields[1]), same_memory, 0, 0) == 0


def stat_fields(pid: int) -> list[str]:
    """Return state, parent and further fields of ``/proc/PID/stat``; an empty list if the process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


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
