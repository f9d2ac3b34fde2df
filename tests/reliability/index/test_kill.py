"""Kill -9 at any moment of an index's life: nothing acknowledged is lost, nothing is there by half.

One index lives through all rounds. In each a child writes to it and is killed: in the middle of an operation of a kind
that takes its turn, or at any moment at all. By default 20 rounds; `make torture` makes it 1,000.
"""

import random
import signal
from collections.abc import Callable, Iterator

import pytest
from support.commands import TORTURE
from support.index_faults.checks import deviations
from support.index_faults.children import quick_folder
from support.index_faults.life import Life
from support.index_faults.worker import CLOSING, OPENING, STAGES
from support.index_faults.workload import WEIGHTS

import minwise as mw

KILLS = 1000 if TORTURE else 20
INTERRUPTS = 200 if TORTURE else 10
# How many come at a certain call; the others come at a certain time.
COUNTED = 0.6
# What a signal is aimed at; None is any moment.
TARGETS = [*STAGES, None, *WEIGHTS, None]
TARGETS_OF_KILLS = [*TARGETS, OPENING, CLOSING]


@pytest.fixture
def life() -> Iterator[Life]:
    """A new index."""
    with quick_folder() as folder:
        yield Life(folder, random.Random(11))


@pytest.mark.timeout(3000)
def test_kills_at_random_moments(life: Life, record_property: Callable[[str, object], None]) -> None:
    """Each kind of operation takes its turn; the state is always one that was acknowledged or the next one, whole."""
    for number in range(KILLS):
        target = TARGETS_OF_KILLS[number % len(TARGETS_OF_KILLS)]
        life.round(target, counting=target is not None and life.draw.random() < COUNTED)
    with mw.Index.open(life.path, "w") as index:
        assert deviations(index, life.model, [*life.model.documents, *life.model.gone]) == []
    record_property("hits", dict(life.hits))
    record_property("slowest_reopening_seconds", max(life.reopened))
    assert life.hits.total() >= KILLS / 4, life.hits
    if TORTURE:
        assert life.hits.keys() >= set(TARGETS_OF_KILLS) - {None}, life.hits


@pytest.mark.timeout(1200)
def test_interrupts_at_random_moments(life: Life) -> None:
    """Ctrl-C too leaves a state from before or after the operation; and the index that it hit goes on."""
    for number in range(INTERRUPTS):
        target = TARGETS[number % len(TARGETS)]
        life.round(target, signal.SIGINT, counting=target is not None and life.draw.random() < COUNTED)
    assert life.hits.total() >= INTERRUPTS / 4, life.hits
