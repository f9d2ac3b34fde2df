"""Service: an open index, the desks that work on it, and whether it is well."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import minwise as mw
from minwise.server.desk import Desk
from minwise.server.errors import ApiError, busy
from minwise.server.messages import Found
from minwise.server.metrics import Metrics
from minwise.server.settings import ServerSettings
from minwise.server.work import Add, Ask, Query, Reading, Remove, Submitted, Writing

__all__ = ["Service"]

# Tasks that a desk takes at a time. A batch of queries takes some milliseconds; one of changes is a transaction.
MOST_QUERIES, MOST_CHANGES = 32, 256
MOST_COMPARED = 8
# Characters from which on a text would hold up others: with passages it takes ten milliseconds and more.
LONG = 20_000


class Service:
    """An index that is served.

    It is open several times: for a thread that writes, one that reads, and one that reads what takes longer, so that
    nobody who asks waits for the disk or for a long text. What needs no index has threads of its own.

    Attributes:
        settings: How it behaves.
        plan: Threshold, bands and rows.
        exact: Whether similarities are exact.
        metrics: What it has done.
        draining: Whether it is about to stop.
    """

    def __init__(self, settings: ServerSettings) -> None:
        """Opens the index; the desks come with :meth:`start`."""
        self.settings = settings
        self.metrics = Metrics()
        self.draining = False
        self._desks = ExitStack()
        with ExitStack() as opened:

            def open_index(mode: str, cache: int | str = 0) -> mw.Index:
                return opened.enter_context(mw.Index.open(settings.index, mode, cache=cache))

            writer = None if settings.read_only else open_index("w")
            self._reader, self._slow_reader = open_index("r", settings.cache), open_index("r")
            self._opened = opened.pop_all()
        self._changes = None if writer is None else Writing(writer)
        self.plan, self.exact = self._reader.plan, self._reader.store != "sketch"
        # With seeds that everybody knows: which sketches collide under the secret one is nobody's business.
        self._shingler = replace(self._reader.shingler, seed=mw.Shingler().seed)
        self._scheme = replace(self._reader.scheme, seed=mw.FastSketch().seed)

    def start(self) -> None:
        """Starts the desks, in the event loop that is running."""
        self._reading: Desk[Query | Ask] = self._desk("reading", Reading(self._reader), MOST_QUERIES)
        self._reading_slowly: Desk[Query | Ask] = self._desk("reading slowly", Reading(self._slow_reader), 1)
        if self._changes is not None:
            changes = self.metrics.counting_changes(self._changes)
            self._writing: Desk[Add | Remove] = self._desk("writing", changes, MOST_CHANGES)
        self._comparing, self._aside = (ThreadPoolExecutor(1, name) for name in ("comparing", "aside"))
        for pool in (self._comparing, self._aside):
            self._desks.callback(pool.shutdown, wait=False, cancel_futures=True)
        self._compared = 0

    def _desk(self, name: str, work: Callable[[Sequence[Any]], Sequence[Any]], most: int) -> Desk[Any]:
        desk: Desk[Any] = Desk(name, work, most)
        self._desks.callback(desk.close)
        return desk

    def close(self) -> None:
        """Ends the work that has begun, and closes the index."""
        with self._opened:
            self._desks.close()

    async def check(self) -> None:
        """Raises if the index can not be read, or can not be changed until it is opened again."""
        await self.count()
        if self._changes is not None and self._changes.failure is not None:
            raise self._changes.failure.with_traceback(None)  # or every question would make it longer

    async def count(self) -> int:
        """How many documents there are."""
        count: int = await self._reading.do(len)
        return count

    async def query(self, query: Query) -> Found:
        """The near-duplicates of a text."""
        desk = self._reading if len(query.text) <= LONG else self._reading_slowly
        found: Found = await desk.do(query)
        return found

    async def ask(self, ask: Ask) -> Any:  # noqa: ANN401 - what the call gives
        """What a call that only reads gives."""
        return await self._reading_slowly.do(ask)

    async def add(self, documents: list[Submitted], *, unique: bool, on_duplicate_id: str) -> list[mw.Decision]:
        """Adds documents; what became of each, when it is durable."""
        decisions: list[mw.Decision] = await self._desk_for_changes().do(Add(documents, unique, on_duplicate_id))
        return decisions

    async def remove(self, ids: list[str | int]) -> set[str]:
        """Removes documents; the ids that had one, as text, when they are gone."""
        gone: set[str] = await self._desk_for_changes().do(Remove(ids))
        return gone

    def _desk_for_changes(self) -> Desk[Add | Remove]:
        if self._changes is None:
            raise ApiError("read_only", "the server was started with --read-only; nothing can be changed here")
        return self._writing

    async def comparing(self, work: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the work gives
        """What comparing texts gives, which can take seconds: one at a time, and few may wait."""
        if self._compared >= MOST_COMPARED:
            raise busy(f"{self._compared} comparisons are worked on or wait, which is the most")
        self._compared += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._comparing, work)
        finally:
            self._compared -= 1

    async def aside(self, work: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the work gives
        """What some work gives that takes milliseconds."""
        return await asyncio.get_running_loop().run_in_executor(self._aside, work)

    def compare(self, left: str, right: str) -> mw.Comparison:
        """Two texts, cut as those of the index are."""
        return mw.compare(left, right, shingler=self._shingler, scheme=self._scheme, plan=self.plan)
