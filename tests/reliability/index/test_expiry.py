"""Kill -9 during an expiry: each transaction is done or not, in their order, and the same call finishes the rest.

By default the expiry is killed at a sample of its calls; `make torture` kills it at 2,000 of them.
"""

import shutil
import signal
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from support.commands import TORTURE
from support.index_faults.children import fast_folder, start
from support.index_faults.worker import work
from support.index_faults.workload import SETTINGS, Operation

import minwise as mw

KILLS = 2000 if TORTURE else 40
# Little data creates several transactions, and segments of which some are dropped.
STEP = 5
CONSTANTS = {
    "minwise.index.expiry.STEP_DOCUMENTS": STEP,
    "minwise.index.writer.FLUSH_DOCUMENTS": 8,
    "minwise.index.writer.FANOUT": 100,
}
# Documents before this number expire, except every 20th of those after the first 16.
BEFORE, DOCUMENTS = 40, 48
EXPIRY = Operation(kind="expire", before=1000)
FILES = {"index.db", "index.db-wal", "index.db-shm", "head", "writer.lock"}


def text_of(number: int) -> str:
    """Return a text that shares no shingle with any other."""
    return " ".join(f"w{number}x{word}" for word in range(8))


def rank_of(number: int) -> int:
    """Return the time of a document."""
    return number if number < BEFORE and (number < 16 or number % 20) else 1000 + number


@pytest.fixture
def original(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield an index of six segments of eight documents, of which the first two expire as a whole."""
    for name, value in CONSTANTS.items():
        monkeypatch.setattr(name, value)
    with fast_folder() as folder, mw.Index.create(folder / "original.mw", **SETTINGS) as index:
        for first in range(0, DOCUMENTS, 8):
            ids = range(first, first + 8)
            index.add(ids, [text_of(number) for number in ids], [{"rank": rank_of(number)} for number in ids])
        index.close()
        yield folder / "original.mw"


def run(path: Path, call: int) -> dict[str, Any]:
    """Expire in a child that is killed at a call, none if 0; return its reports."""
    aim = {"counting": True, "target": "expire", "call": call, "signal_number": signal.SIGKILL if call else 0}
    job = {"path": str(path), "constants": CONSTANTS, "operations": [asdict(EXPIRY)], "aim": aim}
    child, events = start(work, job), dict[str, Any]()
    try:
        while True:
            event = child.receive()
            events[str(event.get("done"))] = event
    except EOFError:
        assert child.wait() == (-signal.SIGKILL if call else 0)
        return events


def states() -> list[list[int]]:
    """Return the documents after each transaction: of each portion of documents, the expired ones are removed."""
    read = [
        {number for number in range(done) if rank_of(number) < 1000} for done in (*range(0, DOCUMENTS, STEP), DOCUMENTS)
    ]
    return [[number for number in range(DOCUMENTS) if number not in expired] for expired in read]


def check(index: mw.Index) -> list[int]:
    """Check that the index is intact and answers as its documents require, and return their ids."""
    ids = [int(document.id) for document in reversed(index.newest(1000).documents)]
    assert index.verify() == []
    answers = index.query_many([text_of(number) for number in range(DOCUMENTS)])
    assert [[hit.id for hit in answer] for answer in answers] == [
        [number] if number in ids else [] for number in range(DOCUMENTS)
    ]
    return ids


@pytest.mark.timeout(1200)
def test_an_expiry_killed_at_any_call_is_done_in_part_and_can_be_repeated(original: Path) -> None:
    counted, reached = original.with_name("counted.mw"), set[int]()
    shutil.copytree(original, counted)
    calls = run(counted, 0)["0"]["calls"]
    with mw.Index.open(counted) as index:
        finished = index.stats()["segments"]
        assert check(index) == states()[-1]
        assert [segment["postings"] for segment in finished][:2] != [0, 0], "adjacent ones are one"
        assert finished[0]["postings"] == 0
    for call in range(2, calls, max(1, calls // KILLS)):
        path = original.with_name(f"killed {call}.mw")
        shutil.copytree(original, path)
        run(path, call)
        with mw.Index.open(path, "w") as index:
            ids = check(index)
            assert ids in states()
            reached.add(states().index(ids))
            assert {file.name for file in path.iterdir()} <= {*FILES, *(s["file"] for s in index.stats()["segments"])}
            EXPIRY.run(index)
            assert check(index) == states()[-1]
            assert [s["postings"] for s in index.stats()["segments"]] == [s["postings"] for s in finished]
        shutil.rmtree(path)
    assert len(reached) > len(states()) // 2, "the kills came all in the same transactions"
