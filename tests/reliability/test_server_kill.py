"""Kill -9 of a server while several clients write: the next server has all acknowledged changes.

One index is used for all rounds. There are 10 by default; `make torture` runs 100.
"""

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from server.raw_connections import wait_until
from server.running import PATIENCE_SECONDS, Server, start
from server.writers import Writer
from support.commands import TORTURE
from support.index_faults.children import fast_folder

import minwise as mw

KILLS = 100 if TORTURE else 10
WRITERS = 4
# Maximum additional time of the writers after each has received a response.
SECONDS = 0.5
# Documents of earlier rounds, stored and removed ones, that are checked in each round.
SAMPLE = 50


@pytest.fixture
def path() -> Iterator[Path]:
    """Create an index, on a disk where syncs cost nothing if there is one."""
    with fast_folder() as folder:
        mw.Index.create(folder / "news.mw", threshold=0.5, shingle="word:2", store_text=True).close()
        yield folder / "news.mw"


class KilledIndex:
    """An index whose servers are killed.

    Attributes:
        there: Texts of all acknowledged documents.
        gone: All documents whose removal was acknowledged.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.draw = path, random.Random(17)
        self.there: dict[str, str] = {}
        self.gone: set[str] = set()

    def round(self, number: int) -> None:
        """Start a server, check the changes of earlier rounds, run writers, and kill it."""
        server = start(self.path)
        try:
            self.check(server)
            writers = [Writer(server, f"{number}{letter}") for letter in "abcdefgh"[:WRITERS]]
            for writer in writers:
                writer.start()
            assert wait_until(lambda: all(writer.responses for writer in writers))
            time.sleep(self.draw.random() * SECONDS)
            assert server.stop(signal.SIGKILL) == -signal.SIGKILL
        finally:
            server.end()
        for writer in writers:
            writer.join(PATIENCE_SECONDS)
            self.there |= writer.there
            self.gone |= writer.gone
        self.verify({name for writer in writers for name in writer.there}, {*self.gone})

    def check(self, server: Server) -> None:
        """Check some documents over HTTP."""
        connection = server.connect()
        for name in self.sample(list(self.there)):
            assert server.get(f"/v1/documents/{name}", connection=connection).json["text"] == self.there[name]
        for name in self.sample(sorted(self.gone)):
            assert server.get(f"/v1/documents/{name}", connection=connection).status == 404
        connection.close()

    def sample(self, names: list[str]) -> list[str]:
        """Return a random sample."""
        return self.draw.sample(names, min(SAMPLE, len(names)))

    def verify(self, there: set[str], gone: set[str]) -> None:
        """Check that the index is undamaged and has exactly the expected documents."""
        with mw.Index.open(self.path) as index:
            assert index.verify() == []
            wrong = [name for name in there if index.get(name).text != self.there[name]]
            assert wrong == []
            assert [name for name in gone if name in index] == []


@pytest.mark.timeout(3000)
def test_acknowledged_changes_survive_kills(path: Path) -> None:
    """The index is checked after each kill and after all of them."""
    index = KilledIndex(path)
    for number in range(KILLS):
        index.round(number)
    index.verify(set(index.there), index.gone)
    assert len(index.there) >= KILLS * WRITERS
    assert index.gone
