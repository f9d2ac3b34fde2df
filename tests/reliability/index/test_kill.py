"""Kill -9 at any moment: nothing acknowledged is lost, and no operation is stored in part.

One index is used in all rounds. In each round a child writes to it and is killed: during an operation of a kind that
is chosen in turn, or at any moment. By default 20 rounds; `make torture` makes it 1,000.
"""

import random
import signal
from collections.abc import Callable, Iterator

import pytest
from support.commands import TORTURE
from support.index_faults.checks import differences
from support.index_faults.children import fast_folder
from support.index_faults.kill_rounds import KillRounds
from support.index_faults.worker import CLOSING, OPENING, STAGES
from support.index_faults.workload import WEIGHTS

import minwise as mw

KILLS = 1000 if TORTURE else 20
INTERRUPTS = 200 if TORTURE else 10
# Share of signals that are sent at a call; the others are sent at a point in time.
COUNTED = 0.6
# Actions during which a signal is sent; None is any moment.
TARGETS = [*STAGES, None, *WEIGHTS, None]
KILL_TARGETS = [*TARGETS, OPENING, CLOSING]


@pytest.fixture
def rounds() -> Iterator[KillRounds]:
    """Yield a new index."""
    with fast_folder() as folder:
        yield KillRounds(folder, random.Random(11))


@pytest.mark.timeout(3000)
def test_kills_at_random_moments(rounds: KillRounds, record_property: Callable[[str, object], None]) -> None:
    """The state is always the last acknowledged one or the next one, complete."""
    for number in range(KILLS):
        target = KILL_TARGETS[number % len(KILL_TARGETS)]
        rounds.round(target, counting=target is not None and rounds.draw.random() < COUNTED)
    with mw.Index.open(rounds.path, "w") as index:
        assert differences(index, rounds.model, [*rounds.model.documents, *rounds.model.removed]) == []
    record_property("hits", dict(rounds.hits))
    record_property("slowest_reopening_seconds", max(rounds.reopened))
    assert rounds.hits.total() >= KILLS / 4, rounds.hits
    if TORTURE:
        assert rounds.hits.keys() >= set(KILL_TARGETS) - {None}, rounds.hits


@pytest.mark.timeout(1200)
def test_interrupts_at_random_moments(rounds: KillRounds) -> None:
    """Ctrl-C also leaves the state before or after the operation, and the open index remains usable."""
    for number in range(INTERRUPTS):
        target = TARGETS[number % len(TARGETS)]
        rounds.round(target, signal.SIGINT, counting=target is not None and rounds.draw.random() < COUNTED)
    assert rounds.hits.total() >= INTERRUPTS / 4, rounds.hits
