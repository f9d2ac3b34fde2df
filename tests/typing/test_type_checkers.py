"""Type checkers accept the correct calls of ``calls.py`` and reject the wrong ones, line by line."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CALLS = Path(__file__).with_name("calls.py")


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """Return a copy of the calls outside of the repository, where a user's program would be."""
    return Path(shutil.copy(CALLS, tmp_path))


def marked_lines() -> set[int]:
    lines = CALLS.read_text(encoding="utf-8").splitlines()
    return {number for number, line in enumerate(lines, 1) if "# wrong:" in line}


def output_of(module: str, *arguments: str, folder: Path) -> str:
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280, check=False).stdout


def test_both_kinds_of_calls_are_tried() -> None:
    calls = [line for line in CALLS.read_text(encoding="utf-8").splitlines() if "mw." in line]
    assert len(marked_lines()) >= 30
    assert len(calls) - len(marked_lines()) >= 10


def test_mypy_rejects_wrong_calls_only(calls: Path) -> None:
    output = output_of("mypy", "--strict", "--cache-dir", "cache", calls.name, folder=calls.parent)
    rejected = {int(found) for found in re.findall(rf"^{calls.name}:(\d+): error", output, re.MULTILINE)}
    assert rejected == marked_lines(), output


def test_pyright_rejects_wrong_calls_only(calls: Path) -> None:
    output = output_of("pyright", "--outputjson", "--pythonpath", sys.executable, calls.name, folder=calls.parent)
    problems = json.loads(output)["generalDiagnostics"]
    rejected = {problem["range"]["start"]["line"] + 1 for problem in problems if problem["severity"] == "error"}
    assert rejected == marked_lines(), output
