"""Opening an index of any size after kill -9 takes little time.

`make torture` kills the writer of a million documents 100 times; by default the index is small and there are few kills,
and the time is only recorded, since that of a small index says nothing.
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
from support.index_faults.children import Channel, start

import minwise as mw
from minwise.sketches import Signatures

DOCUMENTS = 1_000_000 if TORTURE else 20_000
KILLS = 100 if TORTURE else 4
BATCH = 2000
LIMIT_SECONDS = 0.25
MAX_GROWTH_SECONDS = 0.5


def signatures(index: mw.Index, seed: int, count: int) -> Signatures:
    """Return signatures of dissimilar documents."""
    slots = np.random.default_rng(seed).integers(0, 2**64, size=(count, index.plan.slots), dtype=np.uint64)
    return Signatures(slots, settings=index.scheme.settings, shingle_settings=index.shingler.settings)


def grow(channel: Channel) -> None:
    """Add batches and single documents in turn, and send the number of documents after each."""
    path: str = channel.receive()
    with mw.Index.open(path, "w") as index:
        while True:
            first = len(index)
            count = 1 if first % 2 else BATCH - 1
            index.add_signatures(range(first, first + count), signatures(index, first, count))
            channel.send(first + count)


def growth(path: Path, seconds: float) -> int:
    """Return the number of documents that a child acknowledged until it was killed; 0 if none."""
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
def test_reopening_after_a_kill_is_fast(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """This holds for a reader and then for a writer, and everything acknowledged is present."""
    path = tmp_path / "index.mw"
    settings: dict[str, Any] = {"bands": 16, "rows": 4, "slots": 64, "sketch_only": True, "seed": 1}
    with mw.Index.create(path, **settings) as index:
        for first in range(0, DOCUMENTS, 10_000):
            index.add_signatures(range(first, first + 10_000), signatures(index, first, 10_000))
    draw = random.Random(5)
    seconds = []
    documents = DOCUMENTS
    for _ in range(KILLS):
        acknowledged = max(documents, growth(path, draw.random() * MAX_GROWTH_SECONDS))
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
    p99 = float(np.quantile(seconds, 0.99))
    record_property("reopening_p99_seconds", p99)
    assert not TORTURE or p99 <= LIMIT_SECONDS
