"""The worker: what waits is done together and in order, and nobody's failure or absence is anybody else's."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from minwise.server.service import BatchWorker

PATIENCE_SECONDS = 60
MOST = 3


class Work:
    """Doubles numbers; while it is held it stands at the first batch, as work on a long text does.

    Attributes:
        batches: What was worked on together.
        begun: Set when the first batch is there.
        let: To be set for it to go on.
    """

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.begun, self.let = threading.Event(), threading.Event()

    def __call__(self, tasks: Sequence[int]) -> Sequence[Any]:
        """The outcomes; a negative number is an error, and zero an error of the whole batch."""
        self.batches.append(list(tasks))
        self.begun.set()
        assert self.let.wait(PATIENCE_SECONDS)
        if 0 in tasks:
            raise OSError("the disk is gone")
        return [ValueError(f"{task} is negative") if task < 0 else 2 * task for task in tasks]


Waiting = list["asyncio.Task[Any]"]


def run(talk: Callable[[BatchWorker[int], Work], Awaitable[None]]) -> Work:
    """What was worked on in the end, when somebody has talked to a worker and it is closed."""
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
    """Gives the worker tasks, the first of which is begun and the others wait."""
    first = asyncio.ensure_future(worker.run(tasks[0]))
    await asyncio.to_thread(work.begun.wait, PATIENCE_SECONDS)
    waiting = [first, *(asyncio.ensure_future(worker.run(task)) for task in tasks[1:])]
    await asyncio.sleep(0)  # in which all of them are handed over
    return waiting


async def outcomes(waiting: Waiting) -> list[Any]:
    """What came of tasks; errors as their texts."""
    return [str(one) if isinstance(one, BaseException) else one for one in await gathered(waiting)]


async def gathered(waiting: Waiting) -> list[Any]:
    """What came of tasks, with errors."""
    return await asyncio.gather(*waiting, return_exceptions=True)


def test_what_waits_is_done_together_and_in_order() -> None:
    """As many as are allowed at a time."""

    async def talk(worker: BatchWorker[int], work: Work) -> None:
        waiting = await queue(worker, work, 1, 2, 3, 4, 5)
        work.let.set()
        assert await outcomes(waiting) == [2, 4, 6, 8, 10]

    assert run(talk).batches == [[1], [2, 3, 4], [5]]


def test_an_error_is_told_to_whom_it_concerns() -> None:
    """Others of the same batch get what they asked for."""

    async def talk(worker: BatchWorker[int], work: Work) -> None:
        waiting = await queue(worker, work, 1, 2, -3, 4)
        work.let.set()
        assert await outcomes(waiting) == [2, 4, "-3 is negative", 8]

    run(talk)


def test_work_that_fails_is_told_to_all_and_the_desk_goes_on() -> None:
    """To all whose tasks were in it; the next batch is worked on as ever."""

    async def talk(worker: BatchWorker[int], work: Work) -> None:
        waiting = await queue(worker, work, 1, 2, 0, 4, 5)
        work.let.set()
        assert await outcomes(waiting) == [2, *3 * ["the disk is gone"], 10]
        with pytest.raises(OSError, match="gone"):
            await worker.run(0)
        assert await worker.run(6) == 12

    run(talk)


def test_what_nobody_waits_for_any_more_is_not_done() -> None:
    """A client may leave while its task waits, and all of them may."""

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
def test_a_client_may_leave_while_its_task_is_worked_on(task: int) -> None:
    """What comes of it is dropped, be it an error or not, and others get theirs."""

    async def talk(worker: BatchWorker[int], work: Work) -> None:
        waiting = await queue(worker, work, task, 2)
        waiting[0].cancel()
        assert isinstance((await gathered(waiting[:1]))[0], asyncio.CancelledError)
        work.let.set()
        assert await outcomes(waiting[1:]) == [4]

    assert run(talk).batches == [[task], [2]]


def test_closing_ends_what_came_before() -> None:
    """But for what nobody waits for."""

    async def talk(worker: BatchWorker[int], work: Work) -> None:
        waiting = await queue(worker, work, 1, 2, 3)
        waiting[1].cancel()
        closing = asyncio.ensure_future(asyncio.to_thread(worker.close))
        work.let.set()
        await closing
        assert await outcomes([waiting[0], waiting[2]]) == [2, 6]

    assert run(talk).batches == [[1], [3]]


def test_the_loop_may_end_before_the_work() -> None:
    """As at the end of a server that had to stop: the work is done, and nobody is told."""
    work = Work()

    async def leave() -> BatchWorker[int]:
        worker = BatchWorker("testing", work, MOST)
        await queue(worker, work, 1, 2)
        return worker

    worker = asyncio.run(leave())
    work.let.set()
    worker.close()
    assert work.batches == [[1]]
