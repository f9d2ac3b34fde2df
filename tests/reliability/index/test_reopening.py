"""After kill -9 an index of any size is open again at once.

`make torture` kills the writer of a million documents 100 times; by default it is a small index and few kills, and the
time is only recorded, since what a small one takes says nothing.
"""

import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.commands import TORTURE
from support.index_faults.children import Line, start

import minwise as mw

DOCUMENTS = 1_000_000 if TORTURE else 20_000
KILLS = 100 if TORTURE else 4
BATCH = 2000
LIMIT_SECONDS = 0.25
LIFE_SECONDS = 0.5


def signatures(index: mw.Index, seed: int, count: int) -> mw.Signatures:
    """Signatures of documents that have nothing in common."""
    slots = np.random.default_rng(seed).integers(0, 2**64, size=(count, index.plan.slots), dtype=np.uint64)
    return mw.Signatures(slots, settings=index.scheme.settings, shingle_settings=index.shingler.settings)


def grow(line: Line) -> None:
    """The child: adds batches and single documents in turn, and tells how many there are after each."""
    path: str = line.receive()
    with mw.Index.open(path, "w") as index:
        while True:
            first = len(index)
            count = 1 if first % 2 else BATCH - 1
            index.add_signatures(range(first, first + count), signatures(index, first, count))
            line.send(first + count)


def growth(path: Path, seconds: float) -> int:
    """How many documents a child acknowledged until it was killed; 0 if none."""
    child = start(grow, str(path))
    count = 0
    end = time.monotonic() + seconds
    with suppress(TimeoutError):
        while True:
            count = child.receive(max(0.0, end - time.monotonic()))
    child.kill()
    with suppress(EOFError):
        while True:
            count = child.receive()
    assert child.wait() == -signal.SIGKILL
    return count


@pytest.mark.timeout(3000)
def test_reopening_takes_no_time(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """For a reader and then for a writer, and everything that was acknowledged is there."""
    path = tmp_path / "index.mw"
    settings: dict[str, Any] = {"bands": 16, "rows": 4, "slots": 64, "store": "sketch", "seed": 1}
    with mw.Index.create(path, **settings) as index:
        for first in range(0, DOCUMENTS, 10_000):
            index.add_signatures(range(first, first + 10_000), signatures(index, first, 10_000))
    draw = random.Random(5)
    seconds = []
    documents = DOCUMENTS
    for _ in range(KILLS):
        acknowledged = max(documents, growth(path, draw.random() * LIFE_SECONDS))
        for mode in ("r", "w"):
            started = time.monotonic()
            with mw.Index.open(path, mode) as index:
                seconds.append(time.monotonic() - started)
                documents = len(index)
                assert acknowledged <= documents <= acknowledged + BATCH
                assert documents - 1 in index
                assert documents not in index
    with mw.Index.open(path) as index:
        assert index.verify() == []
    late = float(np.quantile(seconds, 0.99))
    record_property("reopening_p99_seconds", late)
    assert not TORTURE or late <= LIMIT_SECONDS
