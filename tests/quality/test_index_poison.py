"""Poisoned indexes: who does not know the seed can neither drag queries down nor change what others are answered.

The attacker adds documents of three kinds: such that carry the shingles that win the slots of one band under the
default seed, near-copies of victims, and copies of one text.
"""

import os
import random
from collections.abc import Iterator, Sequence
from time import thread_time_ns

import numpy as np
import pytest
from numpy.typing import NDArray
from support.poisoning import Poisoned, carrier, first_band, fresh_text, near_copy, poison_an_index

import minwise as mw

POISONED = 100_000 if os.environ.get("MINWISE_TORTURE") == "1" else 24_000
CLEAN, QUERIES = 3_000, 60
# How often each query is timed in each index, turn by turn; the least time counts.
ROUNDS = 9
SLOWDOWN = 2.0
SECRET = 0x5EC2E7_5EED

Times = NDArray[np.float64]


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Poisoned]:
    """With a seed that the attacker does not know; the test does, so that every run is the same."""
    pair = poison_an_index(tmp_path_factory.mktemp("poison"), CLEAN, POISONED, SECRET)
    yield pair
    pair.close()


def clean_queries(texts: Sequence[str]) -> list[str]:
    """Texts that nobody has, and near-copies of documents that nobody attacks."""
    rng = random.Random(6)
    return [fresh_text(rng) for _ in range(QUERIES // 2)] + [near_copy(one, rng) for one in texts[-QUERIES // 2 :]]


def time_queries(indexes: Poisoned, queries: Sequence[str]) -> tuple[Times, Times]:
    """The least time of each query in the clean and in the poisoned index.

    It is processor time of this thread, in which a query runs from end to end, and both indexes are asked in turn: what
    else the machine does meanwhile, and the disk, which is not asked again for what it has just read, stay out of it.
    """
    best = np.full((2, len(queries)), np.inf)
    for _ in range(ROUNDS):
        for place, query in enumerate(queries):
            for row, index in enumerate((indexes.clean, indexes.poisoned)):
                start = thread_time_ns()
                index.query(query)
                best[row, place] = min(best[row, place], thread_time_ns() - start)
    return best[0], best[1]


def assert_not_dragged_down(indexes: Poisoned, queries: Sequence[str]) -> None:
    """Neither the usual query nor the slow ones take twice as long."""
    clean, poisoned = time_queries(indexes, queries)
    for share in (0.5, 0.9):
        slower = float(np.quantile(poisoned, share) / np.quantile(clean, share))
        assert slower <= SLOWDOWN, f"quantile {share}: {slower:.2f} times the time of the clean index"


def test_the_attack_works_against_a_known_seed(indexes: Poisoned) -> None:
    """Otherwise nothing would be proved: under the default seed nine of ten carriers share one bucket, else none."""
    rng = random.Random(7)
    carriers = [carrier(indexes.winners, rng) for _ in range(500)]
    for seed, least, most in ((1, 450, 500), (SECRET, 1, 5)):
        slots = first_band(carriers, indexes.poisoned.plan, seed)
        assert least <= np.unique(slots, axis=0, return_counts=True)[1].max() <= most


def test_clean_queries_are_not_dragged_down(indexes: Poisoned) -> None:
    """Those that find nothing, and those that find what they should."""
    assert_not_dragged_down(indexes, clean_queries(indexes.texts))


def test_queries_for_the_victims_are_not_dragged_down(indexes: Poisoned) -> None:
    """Though thousands of documents share all of their buckets."""
    assert_not_dragged_down(indexes, indexes.victims)


def test_queries_that_carry_the_poison_are_not_dragged_down(indexes: Poisoned) -> None:
    """With the shingles that would share a bucket with every third poisoned document, were the seed known."""
    rng = random.Random(8)
    assert_not_dragged_down(indexes, [carrier(indexes.winners, rng) for _ in range(QUERIES // 2)])


def test_answers_to_clean_queries_are_unchanged(indexes: Poisoned) -> None:
    """The same hits with the same similarities, and nothing was cut."""
    queries = clean_queries(indexes.texts)
    clean, poisoned = indexes.clean.query(queries), indexes.poisoned.query(queries)
    assert poisoned == clean
    assert sum(len(answer) for answer in clean) >= QUERIES // 2 - 2
    assert not any(answer.truncated for answer in clean)


def test_cut_work_is_told(indexes: Poisoned) -> None:
    """For every victim: hits are there, and it is said that there may be more."""
    for victim in indexes.victims:
        assert not indexes.clean.query(victim).truncated
        answer = indexes.poisoned.query(victim)
        assert answer.truncated
        assert answer[0].similarity == 1.0
        assert len(answer) == 10


def test_a_known_seed_costs_no_more(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Even where all carriers share a bucket, it is cut like any other, and told."""
    rng = random.Random(9)
    pair = poison_an_index(tmp_path_factory.mktemp("known"), CLEAN // 3, POISONED // 3, 1)
    carriers = [carrier(pair.winners, rng) for _ in range(QUERIES // 3)]
    assert_not_dragged_down(pair, clean_queries(pair.texts))
    assert sum(answer.truncated for answer in pair.poisoned.query(carriers)) >= 0.8 * len(carriers)
    pair.close()


def test_near_copies_are_as_alike_as_they_are_meant_to_be() -> None:
    """Above the threshold, and not equal."""
    rng = random.Random(1)
    text = fresh_text(rng)
    sets = mw.Shingler("word:5").shingle([text, near_copy(text, rng)])
    assert mw.jaccard(sets[0], sets[1]) == 51 / 61
