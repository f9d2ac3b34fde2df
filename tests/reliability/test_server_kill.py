"""Kill -9 of a server while several clients write: when it comes again, all that it has acknowledged is there.

One index lives through all rounds. By default there are 10; `make torture` makes it 100.
"""

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from server.running import PATIENCE_SECONDS, Server, start
from server.wires import wait_until
from server.writers import Writer
from support.commands import TORTURE
from support.index_faults.children import fast_folder

import minwise as mw

KILLS = 100 if TORTURE else 10
WRITERS = 4
# Each has heard something by then; so much longer they go on, at most.
SECONDS = 0.5
# Of former rounds so many documents are looked at again, of either kind.
SAMPLE = 50


@pytest.fixture
def path() -> Iterator[Path]:
    """A new index, where syncing costs nothing if there is such a place."""
    with fast_folder() as folder:
        mw.Index.create(folder / "news.mw", threshold=0.5, shingle="word:2", store="text").close()
        yield folder / "news.mw"


class Life:
    """An index whose servers are killed.

    Attributes:
        there: The texts of all documents that were acknowledged.
        gone: All documents whose removal was.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.draw = path, random.Random(17)
        self.there: dict[str, str] = {}
        self.gone: set[str] = set()

    def round(self, number: int) -> None:
        """A server looks at what former ones have left, serves some who write, and is killed."""
        server = start(self.path)
        try:
            self.check(server)
            writers = [Writer(server, f"{number}{letter}") for letter in "abcdefgh"[:WRITERS]]
            for writer in writers:
                writer.start()
            assert wait_until(lambda: all(writer.told for writer in writers))
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
        """Some documents over HTTP."""
        connection = server.connect()
        for name in self.sample(list(self.there)):
            assert server.get(f"/v1/documents/{name}", connection=connection).json["text"] == self.there[name]
        for name in self.sample(sorted(self.gone)):
            assert server.get(f"/v1/documents/{name}", connection=connection).status == 404
        connection.close()

    def sample(self, names: list[str]) -> list[str]:
        """Some of them."""
        return self.draw.sample(names, min(SAMPLE, len(names)))

    def verify(self, there: set[str], gone: set[str]) -> None:
        """The index is whole, and has all these documents and none of those."""
        with mw.Index.open(self.path) as index:
            assert index.verify() == []
            wrong = [name for name in there if index.get(name).text != self.there[name]]
            assert wrong == []
            assert [name for name in gone if name in index] == []


@pytest.mark.timeout(3000)
def test_kills_at_random_moments(path: Path) -> None:
    """After each, and after all of them: every acknowledged document is there, every removed one is gone."""
    life = Life(path)
    for number in range(KILLS):
        life.round(number)
    life.verify(set(life.there), life.gone)
    assert len(life.there) >= KILLS * WRITERS
    assert life.gone
