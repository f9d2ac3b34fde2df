"""Service: an open index, the worker threads that use it, and its health."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any, Generic, Literal, TypeVar

import minwise as mw
from minwise.comparison import Comparison
from minwise.errors import ConfigError
from minwise.index import Decision, Expired
from minwise.server.errors import ApiError, busy
from minwise.server.index_tasks import (
    AddTask,
    BatchReader,
    BatchWriter,
    ChangeTask,
    IndexCall,
    QueryTask,
    RemoveTask,
    SubmittedDocument,
)
from minwise.server.messages import FoundMessage
from minwise.server.metrics import Metrics
from minwise.server.settings import ServerSettings

__all__ = ["BatchWorker", "Service"]

# Tasks of one batch. A batch of queries takes some milliseconds; a batch of changes is one transaction.
MAX_QUERY_BATCH, MAX_CHANGE_BATCH = 32, 256
# Comparisons, and text searches, that run or wait.
MAX_COMPARISONS, MAX_SEARCHES = 8, 8
# Descriptions of plans that are kept; one has 2 kB.
MAX_PLANS = 4096
# A query with a text of more characters would delay others: with passages it takes at least ten milliseconds.
LONG_TEXT = 20_000

Task = TypeVar("Task")
TaskFuture = asyncio.Future[Any]


class BatchWorker(Generic[Task]):
    """A thread that processes all waiting tasks as one batch, in their order, while the event loop continues.

    A batch of sixteen queries takes between a third of the time of sixteen single ones (ten thousand documents) and two
    thirds (a million), and sixteen documents share one sync of the disk. The worker never waits for a batch to fill:
    the tasks that arrived during the last batch are the next one.
    """

    def __init__(self, name: str, work: Callable[[Sequence[Task]], Sequence[Any]], max_batch: int) -> None:
        """Start the thread.

        Args:
            name: Name of the thread.
            work: Returns the result or the exception of each task.
            max_batch: Maximum number of tasks of a batch.
        """
        self._work, self._max_batch = work, max_batch
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[tuple[Task, TaskFuture] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def run(self, task: Task) -> Any:  # noqa: ANN401 - depends on the task
        """Return the result of a task, or raise its exception."""
        future = self._loop.create_future()
        self._queue.put((task, future))
        return await future

    def close(self) -> None:
        """Process all tasks of the queue, and end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        is_last = False
        while not is_last:
            batch, is_last = self._take_batch()
            wanted = [(task, future) for task, future in batch if not future.cancelled()]
            outcomes = self._outcomes([task for task, _ in wanted])
            with suppress(RuntimeError):  # the event loop is closed, and nothing waits for the results
                self._loop.call_soon_threadsafe(_resolve, [future for _, future in wanted], outcomes)

    def _take_batch(self) -> tuple[list[tuple[Task, TaskFuture]], bool]:
        """Wait for a task; return it with those behind it, and whether the worker is to end."""
        batch: list[tuple[Task, TaskFuture]] = []
        entry = self._queue.get()
        while entry is not None:
            batch.append(entry)
            if len(batch) == self._max_batch:
                return batch, False
            try:
                entry = self._queue.get_nowait()
            except Empty:
                return batch, False
        return batch, True

    def _outcomes(self, tasks: list[Task]) -> Sequence[Any]:
        if not tasks:
            return []
        try:
            return self._work(tasks)
        except BaseException as error:
            return [error] * len(tasks)


def _resolve(futures: Sequence[TaskFuture], outcomes: Sequence[Any]) -> None:
    """Set the results of futures that are not cancelled."""
    for future, outcome in zip(futures, outcomes, strict=True):
        if future.cancelled():
            continue
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)


class Service:
    """An index that is served.

    The index is open four times: for a thread that writes, one that reads, one for queries with long texts, and one for
    lists and text searches, so that no query waits for the disk, for a long text or for a search. Work that needs no
    index has its own threads.

    Attributes:
        settings: The settings of the server.
        plan: Threshold, bands and rows of the index.
        exact: Whether similarities are exact.
        metrics: The metrics of the server.
        draining: Whether the server is stopping.
    """

    def __init__(self, settings: ServerSettings) -> None:
        """Open the index; :meth:`start` starts the threads."""
        self.settings = settings
        self.metrics = Metrics()
        self.draining = False
        self._workers = ExitStack()
        with ExitStack() as handles:

            def open_index(mode: Literal["r", "w"], cache: int | str = 0) -> mw.Index:
                return handles.enter_context(mw.Index.open(settings.index, mode, cache=cache))

            writer = None if settings.read_only else open_index("w")
            self._reader = open_index("r", settings.cache)
            if self._reader.elements is not None:
                rule = "index must be of texts for a service, which takes texts"
                raise ConfigError(f"{rule}, got one of sets or records: {settings.index}")
            self._slow_reader, self._browse_reader = open_index("r"), open_index("r")
            self._handles = handles.pop_all()
        self._batch_writer = None if writer is None else BatchWriter(writer)
        self.plan, self.exact = self._reader.plan, self._reader.store != "sketch"
        # Comparisons use public seeds: a client must not learn which sketches collide under the secret one.
        self._shingler = replace(self._reader.shingler, seed=mw.Shingler().seed)
        self._scheme = replace(self._reader.scheme, seed=mw.FastSketch().seed)

    def start(self) -> None:
        """Start the threads; to be called in the running event loop."""
        self._read_worker: BatchWorker[QueryTask | IndexCall] = self._start_worker(
            "reading", BatchReader(self._reader), MAX_QUERY_BATCH
        )
        self._slow_worker: BatchWorker[QueryTask | IndexCall] = self._start_worker(
            "reading slowly", BatchReader(self._slow_reader), 1
        )
        self._browse_worker: BatchWorker[QueryTask | IndexCall] = self._start_worker(
            "browsing", BatchReader(self._browse_reader), 1
        )
        if self._batch_writer is not None:
            work = self.metrics.counting_changes(self._batch_writer)
            self._write_worker: BatchWorker[ChangeTask] = self._start_worker("writing", work, MAX_CHANGE_BATCH)
        self._compare_pool, self._helper_pool, self._plan_pool = (
            self._start_pool(name) for name in ("comparing", "helper", "planning")
        )
        self._plans: dict[tuple[tuple[str, Any], ...], dict[str, Any]] = {}
        self._comparisons = self._searches = 0

    def _start_pool(self, name: str) -> ThreadPoolExecutor:
        pool = ThreadPoolExecutor(1, name)
        self._workers.callback(pool.shutdown, wait=False, cancel_futures=True)
        return pool

    def _start_worker(
        self, name: str, work: Callable[[Sequence[Any]], Sequence[Any]], max_batch: int
    ) -> BatchWorker[Any]:
        worker: BatchWorker[Any] = BatchWorker(name, work, max_batch)
        self._workers.callback(worker.close)
        return worker

    def close(self) -> None:
        """Finish the work of all threads, and close the index."""
        with self._handles:
            self._workers.close()

    async def check(self) -> None:
        """Raise an error if the index cannot be read, or if its last change has failed."""
        await self.count()
        if self._batch_writer is not None and self._batch_writer.failure is not None:
            raise self._batch_writer.failure.with_traceback(None)  # which would grow with every check

    async def count(self) -> int:
        """Return the number of documents."""
        count: int = await self._read_worker.run(len)
        return count

    async def query(self, query: QueryTask) -> FoundMessage:
        """Return the near-duplicates of a text."""
        worker = self._read_worker if len(query.text) <= LONG_TEXT else self._slow_worker
        found: FoundMessage = await worker.run(query)
        return found

    async def call_index(self, call: IndexCall) -> Any:  # noqa: ANN401 - depends on the call
        """Return the result of a call that only reads; it may take long."""
        return await self._slow_worker.run(call)

    async def browse(self, call: IndexCall) -> Any:  # noqa: ANN401 - depends on the call
        """Return the result of a call that reads many documents."""
        return await self._browse_worker.run(call)

    async def add(self, documents: list[SubmittedDocument], *, unique: bool, on_duplicate_id: str) -> list[Decision]:
        """Add documents; return what was done with each, once it is durable."""
        decisions: list[Decision] = await self._writer().run(AddTask(documents, unique, on_duplicate_id))
        return decisions

    async def remove(self, ids: list[str | int]) -> set[str]:
        """Remove documents; return the ids that were in the index, as text, once the removal is durable."""
        removed: set[str] = await self._writer().run(RemoveTask(ids))
        return removed

    async def expire(self, **rule: Any) -> Expired:  # noqa: ANN401 - parameters of Index.expire
        """Remove documents by their time; other changes are made between its transactions."""
        steps: Iterator[Expired] = await self._writer().run(lambda index: index.expire_steps(**rule))
        found: Expired = await self._writer().run(lambda _: next(steps))
        while (counts := await self._writer().run(lambda _: next(steps, None))) is not None:
            found = counts
        return found

    def _writer(self) -> BatchWorker[ChangeTask]:
        if self._batch_writer is None:
            raise ApiError("read_only", "the server is read_only and accepts no changes")
        return self._write_worker

    async def run_comparison(self, work: Callable[[], Any]) -> Any:  # noqa: ANN401 - depends on the work
        """Return the result of a comparison, which can take seconds: one runs at a time, and few may wait."""
        if self._comparisons >= MAX_COMPARISONS:
            raise busy(f"{self._comparisons} comparisons are running or waiting, the maximum")
        self._comparisons += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._compare_pool, work)
        finally:
            self._comparisons -= 1

    async def search_texts(self, call: IndexCall) -> Any:  # noqa: ANN401 - depends on the call
        """Return the result of a text search, which reads megabytes: one runs at a time, and few may wait."""
        if self._searches >= MAX_SEARCHES:
            raise busy(f"{self._searches} text searches are running or waiting, the maximum")
        self._searches += 1
        try:
            return await self.browse(call)
        finally:
            self._searches -= 1

    async def describe_plan(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the description of a plan for these parameters. It is computed once, and delays no other request."""
        key = tuple(given.items())
        if key in self._plans:
            return self._plans[key]
        described: dict[str, Any] = await asyncio.get_running_loop().run_in_executor(
            self._plan_pool, lambda: mw.plan(**given).to_dict()
        )
        if len(self._plans) >= MAX_PLANS:
            self._plans.clear()
        self._plans[key] = described
        return described

    async def run_helper(self, work: Callable[[], Any]) -> Any:  # noqa: ANN401 - depends on the work
        """Return the result of work that takes milliseconds and would block the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._helper_pool, work)

    def compare(self, left: str, right: str) -> Comparison:
        """Compare two texts with the shingles and the plan of the index."""
        return mw.compare(left, right, shingler=self._shingler, scheme=self._scheme, plan=self.plan)
