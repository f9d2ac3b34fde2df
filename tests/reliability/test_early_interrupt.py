"""Ctrl-C while modules are imported: exit code 130 and no traceback."""

import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import INTERRUPTED

# The process interrupts itself when it begins to import a module.
PROGRAM = """
import os, signal, sys

def interrupt(event, arguments):
    if event == "import" and arguments[0] == module:
        os.kill(os.getpid(), signal.SIGINT)

module = sys.argv.pop(1)
sys.addaudithook(interrupt)
from minwise.cli import main
main()
"""
TEXTS = '{"text": "one two three four five six"}\n' * 3


def interrupted(folder: Path, module: str, *, before: str = "") -> subprocess.CompletedProcess[str]:
    """Run a search that is interrupted at the import of a module."""
    (folder / "texts.jsonl").write_text(TEXTS)
    command = [sys.executable, "-c", before + PROGRAM, module, "pairs", "texts.jsonl", "-o", "found.csv"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("module", ["minwise.cli.command", "click", "minwise.cli.serve", "numpy", "pyarrow"])
def test_an_interrupt_during_imports_is_quiet(tmp_path: Path, module: str) -> None:
    done = interrupted(tmp_path, module)
    assert (done.returncode, done.stdout) == (INTERRUPTED, ""), done
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") <= 1
    assert not (tmp_path / "found.csv").exists()


def test_an_ignored_interrupt_stays_ignored(tmp_path: Path) -> None:
    """A background job of a shell ignores Ctrl-C."""
    done = interrupted(tmp_path, "click", before="import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n")
    assert done.returncode == 0, done
    assert (tmp_path / "found.csv").exists()
