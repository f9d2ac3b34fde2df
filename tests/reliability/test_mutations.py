"""Mutated inputs, work directories, indexes, outputs and stored arrays: no signal, no raw error, no wrong count.

By default some cases of each target; ``python tests/support/mutation_cases.py --rounds 1000``, which `make torture`
calls, runs tens of thousands.
"""

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.mutation_cases import (
    TARGETS,
    BrokenPromiseError,
    Outcome,
    Target,
    Worker,
    attempt,
    check_outcome,
    run_target,
)

ROUNDS = 12


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    with Worker(tmp_path_factory.mktemp("findings")) as worker:
        yield worker


@pytest.mark.parametrize("target", TARGETS)
def test_mutated_files_give_a_right_result_or_one_line(worker: Worker, target: str) -> None:
    assert run_target(worker, target, range(ROUNDS)) == []


@pytest.mark.parametrize(
    ("status", "err", "reason"),
    [
        (3, "minwise: x\n", "undocumented exit code"),
        (1, "Traceback (most recent call last):\n", "raw error"),
        (0, "thread 'main' panicked at src/lib.rs\n", "raw error"),
        (1, "minwise: x\nsecond line\n", "a failure must print one line"),
        (74, "", "a failure must print one line"),
    ],
)
def test_broken_promise_is_noticed(status: int, err: str, reason: str) -> None:
    with pytest.raises(BrokenPromiseError, match=reason):
        check_outcome(("dedup",), Outcome(status, "", err))


def test_raw_exception_is_a_finding_with_its_last_line(tmp_path: Path) -> None:
    def run(folder: Path, original: Path, draw: random.Random) -> None:
        raise IndexError("list index out of range")

    reason = attempt(Target("x", lambda folder: None, run), tmp_path, {"number": 0, "folder": str(tmp_path)})
    assert reason is not None
    assert reason.startswith("raw exception: IndexError: list index out of range")


def test_signal_is_a_finding_and_the_next_case_runs(tmp_path: Path) -> None:
    with Worker(tmp_path) as worker:
        assert worker.run("signature file", 0) is None
        assert worker._process
        os.kill(worker._process.pid, signal.SIGSEGV)
        worker._process.wait()
        finding = worker.run("signature file", 1)
        assert finding is not None
        assert f"exit code {-signal.SIGSEGV}" in finding.reason
        assert (tmp_path / "signature-file-1" / "reason.txt").exists()
        assert worker.run("signature file", 1) is None
