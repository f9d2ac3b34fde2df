"""Poisoned indexes: an attacker without the seed can neither slow down nor change the answers of others.

The attack adds documents of three kinds: carriers of the shingles that win the slots of one band under the default
seed, near-copies of victims, and copies of one text.
"""

import os
import random
from collections.abc import Iterator, Sequence
from time import thread_time_ns

import numpy as np
import pytest
from numpy.typing import NDArray
from support.poisoning import VICTIMS, Poisoned, build_poisoned, carrier, first_band, fresh_text, near_copy

import minwise as mw
from minwise.options import MAX_CANDIDATES

POISONED = 100_000 if os.environ.get("MINWISE_TORTURE") == "1" else 24_000
CLEAN, QUERIES = 3_000, 60
# Number of timings of each query in each index, in turn; the minimum counts.
ROUNDS = 9
SLOWDOWN = 2.0
# Comparisons that may take as long as one clean query. Measured: 225 and 286.
COMPARED_PER_QUERY = 100
SECRET = 0x5EC2E7_5EED

Times = NDArray[np.float64]


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Poisoned]:
    """Yield indexes with a seed that the attacker does not know; it is fixed, so that every run is the same."""
    pair = build_poisoned(tmp_path_factory.mktemp("poison"), CLEAN, POISONED, SECRET)
    yield pair
    pair.close()


def clean_queries(texts: Sequence[str]) -> list[str]:
    """Return new texts, and near-copies of documents that are not attacked."""
    rng = random.Random(6)
    return [fresh_text(rng) for _ in range(QUERIES // 2)] + [near_copy(text, rng) for text in texts[-QUERIES // 2 :]]


def time_queries(
    indexes: Poisoned, queries: Sequence[str], max_candidates: int = MAX_CANDIDATES
) -> tuple[Times, Times]:
    """Return the minimum time of each query in the clean and in the poisoned index.

    It is processor time of this thread, which runs a query from start to end, and the indexes are queried in turn. So
    other load on the machine, and the disk, whose data is already cached, do not count.
    """
    best = np.full((2, len(queries)), np.inf)
    for _ in range(ROUNDS):
        for column, query in enumerate(queries):
            for row, index in enumerate((indexes.clean, indexes.poisoned)):
                start = thread_time_ns()
                index.query(query, max_candidates=max_candidates)
                best[row, column] = min(best[row, column], thread_time_ns() - start)
    return best[0], best[1]


def assert_not_slower(
    indexes: Poisoned, queries: Sequence[str], max_candidates: int = MAX_CANDIDATES, most: float = SLOWDOWN
) -> None:
    """Check that neither the median nor the slow queries take more than ``most`` times as long."""
    clean, poisoned = time_queries(indexes, queries, max_candidates)
    for share in (0.5, 0.9):
        slower = float(np.quantile(poisoned, share) / np.quantile(clean, share))
        assert slower <= most, f"quantile {share}: {slower:.2f} times the time of the clean index"


def attacked_slowdown(compared: int) -> float:
    """Return how many times as long a query may take that compares this number of documents of the attack."""
    return SLOWDOWN + compared / COMPARED_PER_QUERY


def test_attack_works_against_a_known_seed(indexes: Poisoned) -> None:
    """Under the default seed nine of ten carriers share one bucket, otherwise none; else the tests prove nothing."""
    rng = random.Random(7)
    carriers = [carrier(indexes.winners, rng) for _ in range(500)]
    for seed, minimum, maximum in ((1, 450, 500), (SECRET, 1, 5)):
        slots = first_band(carriers, indexes.poisoned.plan, seed)
        assert minimum <= np.unique(slots, axis=0, return_counts=True)[1].max() <= maximum


def test_clean_queries_are_not_slower(indexes: Poisoned) -> None:
    """Queries without and with hits."""
    assert_not_slower(indexes, clean_queries(indexes.texts))


def test_queries_for_a_document_with_thousands_of_copies_are_not_slower(indexes: Poisoned) -> None:
    """Its first copies settle the answer, so the others are not read."""
    assert_not_slower(indexes, indexes.victims[-1:] * QUERIES)


def test_time_for_victims_is_proportional_to_their_near_copies(indexes: Poisoned) -> None:
    """Their thousands of near-copies are compared, like those of a real template, up to ``max_candidates``."""
    near_copies = max(len(answer) for answer in indexes.poisoned.query_many(indexes.victims[:-1], top=10_000))
    assert near_copies >= 0.8 * POISONED / 3 / VICTIMS
    assert_not_slower(indexes, indexes.victims[:-1], most=attacked_slowdown(near_copies))


def test_fewer_candidates_bound_the_time_for_victims(indexes: Poisoned) -> None:
    """The members of the buckets are still read, of which a thousand take as long as ten comparisons."""
    members = indexes.poisoned.plan.bands * POISONED / 3 / VICTIMS
    assert_not_slower(indexes, indexes.victims[:-1], 100, attacked_slowdown(100 + round(members / 100)))
    assert all(answer.truncated for answer in indexes.poisoned.query_many(indexes.victims[:-1], max_candidates=100))


def test_both_limits_bound_the_time_for_victims_as_for_others(tmp_path_factory: pytest.TempPathFactory) -> None:
    """An index that gives up recall for text with many near-copies: 64 members of a bucket, 32 candidates."""
    pair = build_poisoned(tmp_path_factory.mktemp("bounded"), CLEAN, POISONED, SECRET, max_bucket=64)
    assert_not_slower(pair, pair.victims, max_candidates=32)
    pair.close()


def test_queries_that_carry_winning_shingles_are_not_slower(indexes: Poisoned) -> None:
    """Their shingles would share a bucket with every third poisoned document if the seed were known."""
    rng = random.Random(8)
    assert_not_slower(indexes, [carrier(indexes.winners, rng) for _ in range(QUERIES // 2)])


def test_answers_to_clean_queries_are_unchanged(indexes: Poisoned) -> None:
    """The same hits with the same similarities, and no search was cut short."""
    queries = clean_queries(indexes.texts)
    clean, poisoned = indexes.clean.query_many(queries), indexes.poisoned.query_many(queries)
    assert poisoned == clean
    assert sum(len(answer) for answer in clean) >= QUERIES // 2 - 2
    assert not any(answer.truncated for answer in clean)


def test_answers_to_victims_are_complete(indexes: Poisoned) -> None:
    """All near-copies are compared by default, so that the most similar ones are found."""
    for victim, answer in zip(indexes.victims, indexes.poisoned.query_many(indexes.victims), strict=True):
        assert answer[0].similarity == 1.0
        assert len(answer) == 10
        assert not answer.truncated
        assert indexes.clean.query(victim)[0] == answer[0]


def test_what_a_limit_leaves_out_is_counted(indexes: Poisoned) -> None:
    """A victim shares shingles only with its near-copies, so all candidates are hits of a complete search."""
    everything = indexes.poisoned.query_many(indexes.victims[:-1], top=10_000)
    for victim, complete in zip(indexes.victims, everything, strict=False):
        answer = indexes.poisoned.query(victim, max_candidates=100)
        assert (answer.truncated, answer.truncated_by) == (True, "candidates")
        assert answer.left_out + 100 == len(complete)


def test_known_seed_does_not_slow_other_queries_down(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Although all carriers share a bucket; queries that carry its shingles compare its members, up to the limits."""
    rng = random.Random(9)
    pair = build_poisoned(tmp_path_factory.mktemp("known"), CLEAN // 3, POISONED // 3, 1)
    carriers = [carrier(pair.winners, rng) for _ in range(QUERIES // 3)]
    assert_not_slower(pair, clean_queries(pair.texts))
    assert_not_slower(pair, carriers, most=attacked_slowdown(min(MAX_CANDIDATES, POISONED // 9)))
    limited = pair.poisoned.query_many(carriers, max_candidates=32)
    assert sum(answer.truncated_by == "candidates" for answer in limited) >= 0.8 * len(carriers)
    pair.close()


def test_near_copies_have_the_intended_similarity() -> None:
    rng = random.Random(1)
    text = fresh_text(rng)
    sets = mw.Shingler("word:5").shingle([text, near_copy(text, rng)])
    assert mw.jaccard(sets[0], sets[1]) == 51 / 61
