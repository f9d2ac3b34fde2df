"""Batch worker: waiting tasks are processed together and in order, and failures do not affect other tasks."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from minwise.server.service import BatchWorker

PATIENCE_SECONDS = 60
MOST = 3


class Work:
    """Doubles numbers; blocks in the first batch until it is released.

    Attributes:
        batches: The processed batches.
        begun: Set when the first batch starts.
        let: Set to release the first batch.
    """

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.begun, self.let = threading.Event(), threading.Event()

    def __call__(self, tasks: Sequence[int]) -> Sequence[Any]:
        """Return the outcomes; a negative number is an error, and zero fails the whole batch."""
        self.batches.append(list(tasks))
        self.begun.set()
        assert self.let.wait(PATIENCE_SECONDS)
        if 0 in tasks:
            raise OSError("the disk is gone")
        return [ValueError(f"{task} is negative") if task < 0 else 2 * task for task in tasks]


Waiting = list["asyncio.Task[Any]"]


def run(talk: Callable[[BatchWorker[int], Work], Awaitable[None]]) -> Work:
    """Run a test with a worker; return the work after the worker is closed."""
    work = Work()

    async def both() -> None:
        worker = BatchWorker("testing", work, MOST)
        try:
            await asyncio.wait_for(talk(worker, work), PATIENCE_SECONDS)
        finally:
            work.let.set()
            await asyncio.to_thread(worker.close)

    asyncio.run(both())
    return work


async def queue(worker: BatchWorker[int], work: Work, *tasks: int) -> Waiting:
    """Submit tasks; the first one is in progress and the others wait."""
    first = asyncio.ensure_future(worker.run(tasks[0]))
    await asyncio.to_thread(work.begun.wait, PATIENCE_SECONDS)
    waiting = [first, *(asyncio.ensure_future(worker.run(task)) for task in tasks[1:])]
    await asyncio.sleep(0)  # so that all tasks are submitted
    return waiting


async def outcomes(waiting: Waiting) -> list[Any]:
    """Return the results of tasks; errors as text."""
    return [str(one) if isinstance(one, BaseException) else one for one in await gathered(waiting)]


async def gathered(waiting: Waiting) -> list[Any]:
    """Return the results and errors of tasks."""
    return await asyncio.gather(*waiting, return_exceptions=True)


def test_waiting_tasks_are_batched_in_order() -> None:
    """Up to the maximum batch size."""

    async def talk(worker: BatchWorker[int], work: Work) -> None:
        waiting = await queue(worker, work, 1, 2, 3, 4, 5)
        work.let.set()
        assert await outcomes(waiting) == [2, 4, 6, 8, 10]

    assert run(talk).batches == [[1], [2, 3, 4], [5]]


def test_an_error_belongs_to_its_task() -> None:
    async def talk(worker: BatchWorker[int], work: Work) -> None:
        waiting = await queue(worker, work, 1, 2, -3, 4)
        work.let.set()
        assert await outcomes(waiting) == [2, 4, "-3 is negative", 8]

    run(talk)


def test_a_failed_batch_fails_all_its_tasks_and_the_worker_continues() -> None:
    async def talk(worker: BatchWorker[int], work: Work) -> None:
        waiting = await queue(worker, work, 1, 2, 0, 4, 5)
        work.let.set()
        assert await outcomes(waiting) == [2, *3 * ["the disk is gone"], 10]
        with pytest.raises(OSError, match="gone"):
            await worker.run(0)
        assert await worker.run(6) == 12

    run(talk)


def test_cancelled_tasks_are_not_processed() -> None:
    async def talk(worker: BatchWorker[int], work: Work) -> None:
        waiting = await queue(worker, work, 1, 2, 3, 4, 5, 6, 7)
        for one in (waiting[2], *waiting[4:]):
            one.cancel()
        work.let.set()
        assert await outcomes([waiting[0], waiting[1], waiting[3]]) == [2, 4, 8]
        assert all(isinstance(one, asyncio.CancelledError) for one in await gathered(waiting[4:]))
        assert await worker.run(8) == 16

    assert run(talk).batches == [[1], [2, 4], [8]]


@pytest.mark.parametrize("task", [1, -1, 0])
def test_a_task_may_be_cancelled_while_it_is_processed(task: int) -> None:
    """Its result or error is dropped."""

    async def talk(worker: BatchWorker[int], work: Work) -> None:
        waiting = await queue(worker, work, task, 2)
        waiting[0].cancel()
        assert isinstance((await gathered(waiting[:1]))[0], asyncio.CancelledError)
        work.let.set()
        assert await outcomes(waiting[1:]) == [4]

    assert run(talk).batches == [[task], [2]]


def test_closing_processes_the_queue() -> None:
    """Except for cancelled tasks."""

    async def talk(worker: BatchWorker[int], work: Work) -> None:
        waiting = await queue(worker, work, 1, 2, 3)
        waiting[1].cancel()
        closing = asyncio.ensure_future(asyncio.to_thread(worker.close))
        work.let.set()
        await closing
        assert await outcomes([waiting[0], waiting[2]]) == [2, 6]

    assert run(talk).batches == [[1], [3]]


def test_the_event_loop_may_end_before_the_work() -> None:
    work = Work()

    async def leave() -> BatchWorker[int]:
        worker = BatchWorker("testing", work, MOST)
        await queue(worker, work, 1, 2)
        return worker

    worker = asyncio.run(leave())
    work.let.set()
    worker.close()
    assert work.batches == [[1]]
