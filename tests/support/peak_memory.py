"""Peak memory of a child process, as the kernel of the system counted it."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from support.commands import MINWISE, without_stages

__all__ = ["PROMISED_BYTES", "Measured", "run_measured"]

# `--memory 256MB`, the smallest limit, and what the interpreter and its libraries may take besides.
PROMISED_BYTES = (256 + 300) * 10**6
# The peak of a child includes that of the process that started it until `exec`, so a small interpreter starts it.
SPAWNER = """
import os, sys
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(child, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
"""
TIMEOUT_SECONDS = 600


@dataclass(frozen=True)
class Measured:
    """Result of a measured run.

    Attributes:
        status: Exit code, or the negative number of the signal that ended it.
        peak: Peak memory in bytes.
        error: Standard error, without the lines of stages.
    """

    status: int
    peak: int
    error: str


def run_measured(folder: Path, *arguments: str, python: str | None = None) -> Measured:
    """Run the command, or the Python program ``python``, in a folder with an empty standard output.

    Args:
        folder: Working directory.
        arguments: Arguments of the command or of the program.
        python: Program to run instead of the command.
    """
    command = [MINWISE, *arguments] if python is None else [sys.executable, "-c", python, *arguments]
    done = subprocess.run(
        [sys.executable, "-S", "-I", "-c", SPAWNER, *command],
        cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=True,
    )  # fmt: skip
    *_, last = done.stdout.splitlines()
    status, peak = map(int, last.split())
    return Measured(status, peak, without_stages(done.stderr))
