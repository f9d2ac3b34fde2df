"""Kernel index of sets: exactly the matches that comparing all sets finds, for any counts and block sizes."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.random_corpora import all_pairs
from support.strategies import WORD, effort

from minwise import _kernel

from .test_exact_join import Sets, families, thresholds

Batch = tuple[NDArray[np.int64], NDArray[np.uint64]]
Match = tuple[int, int, float]


def batch(sets: Sets) -> Batch:
    """Return offsets and elements of sets, each ascending, as the kernel expects."""
    elements = [element for members in sets for element in sorted(members)]
    return np.cumsum([0, *map(len, sets)]), np.array(elements, dtype=np.uint64)


def matches(index: _kernel.SetIndex, sets: Sets, most: int, threads: int) -> tuple[Counter[Match], list[int]]:
    """Return every match of the sets, numbered from 0, and the number of sets that each call processed."""
    (offsets, elements), numbers = batch(sets), np.arange(len(sets), dtype=np.uint32)
    found, taken = Counter[Match](), list[int]()
    while len(numbers):
        queries, members, similarities, done = index.matches(offsets, elements, numbers, most, threads)
        found.update(zip(queries.tolist(), members.tolist(), similarities.tolist(), strict=True))
        taken.append(done)
        offsets, numbers = offsets[done:], numbers[done:]
    return found, taken


def matches_within(index: _kernel.SetIndex, most: int, threads: int) -> tuple[Counter[Match], list[int]]:
    """Return every match among the members, the smaller number first, and the number of members of each call."""
    found, taken = Counter[Match](), list[int]()
    while sum(taken) < len(index):
        queries, members, similarities, done = index.matches_within(sum(taken), most, threads)
        low, high = np.minimum(queries, members), np.maximum(queries, members)
        found.update(zip(low.tolist(), high.tolist(), similarities.tolist(), strict=True))
        taken.append(done)
    return found, taken


def expected_matches(sets: Sets, members: list[int], threshold: float) -> Counter[Match]:
    """Return the matches of every set with every other member, by comparing them."""
    found = Counter[Match]()
    for query, member in product(range(len(sets)), members):
        shared = len(sets[query] & sets[member])
        if query != member and shared and shared / len(sets[query] | sets[member]) >= threshold:
            found[query, member, shared / len(sets[query] | sets[member])] += 1
    return found


def index_of(
    sets: Sets, members: list[int], threshold: float, rarity: _kernel.Rarity, *, all_counted: bool, border: int = 0
) -> _kernel.SetIndex:
    """Return an index of some of the sets, built from two batches."""
    batches = [batch([sets[number] for number in part]) for part in (members[:border], members[border:])]
    return _kernel.SetIndex(threshold, rarity, all_counted, batches, np.array(members, dtype=np.uint32), 2)


wild_sets = st.lists(
    st.frozensets(st.sampled_from((0, 1, 2, 3, 2**32, 2**63, WORD - 1, WORD)) | st.integers(0, 20), max_size=9)
    | st.frozensets(st.integers(0, WORD), max_size=3),
    max_size=14,
)


@effort(6)
@given(
    sets=wild_sets | families(),
    threshold=thresholds | st.just(0.0),
    elements=st.sampled_from((0, 5, 500)),
    room=st.sampled_from((0, 1, 2, 3, 8, 64, 1 << 20)),
    counted=st.sampled_from(("all", "all, undeclared", "members")),
    threads=st.sampled_from((1, 1, 2)),
    data=st.data(),
)
def test_matches_are_those_of_comparing_all_with_all(
    sets: Sets, threshold: float, elements: int, room: int, counted: str, threads: int, data: st.DataObject
) -> None:
    """For any size of the rarity table, and whether it counts all sets or only those of the index."""
    members = data.draw(st.lists(st.sampled_from(range(len(sets))), unique=True)) if sets else []
    rarity = _kernel.Rarity(elements, room)
    rarity.add(batch([sets[number] for number in members] if counted == "members" else sets)[1], threads)
    border = data.draw(st.integers(0, len(members)))
    index = index_of(sets, members, threshold, rarity, all_counted=counted == "all", border=border)
    assert len(index) == len(members)
    expected = expected_matches(sets, members, threshold)
    assert matches(index, sets, 10**9, threads)[0] == expected
    inside = {match: 1 for match in expected if match[0] in members and match[0] < match[1]}
    assert matches_within(index, 10**9, threads)[0] == Counter(inside)


@pytest.mark.parametrize("threads", [1, 2])
def test_matches_are_returned_in_blocks(threads: int) -> None:
    """A block ends when it is full, after at least 32 queries; no match is lost or returned twice."""
    rng = np.random.default_rng(1)
    sets: Sets = [frozenset(rng.integers(0, 40, size=rng.integers(0, 6)).tolist()) for _ in range(10_000)]
    rarity = _kernel.Rarity(100, 1 << 20)
    rarity.add(batch(sets)[1], threads)
    few = list(range(30, 60))
    index = index_of(sets, few, 0.5, rarity, all_counted=True)
    pieces, taken = matches(index, sets, 1, threads)
    assert len(taken) > 10
    assert (sum(taken), min(taken[:-1]) >= 32) == (10_000, True)
    assert pieces == expected_matches(sets, few, 0.5)
    assert matches(index, sets, 10**9, threads) == (pieces, [10_000])
    index = index_of(sets, list(range(10_000)), 0.5, rarity, all_counted=True)
    pieces, taken = matches_within(index, 1, threads)
    assert len(taken) > 100
    assert (sum(taken), min(taken[:-1]) >= 32) == (10_000, True)
    assert matches_within(index, 10**9, threads) == (pieces, [10_000])
    assert {match[:2]: match[2] for match in pieces if match[1] < 300} == all_pairs(sets[:300], 0.5)
    assert max(pieces.values()) == 1


def test_every_member_and_query_needs_a_number() -> None:
    rarity, single = _kernel.Rarity(1, 2), batch([frozenset({1})])
    with pytest.raises(ValueError, match="number"):
        _kernel.SetIndex(0.5, rarity, False, [single, single], np.zeros(1, dtype=np.uint32), 1)
    index = _kernel.SetIndex(0.5, rarity, False, [single], np.zeros(1, dtype=np.uint32), 1)
    with pytest.raises(ValueError, match="number"):
        index.matches(*single, np.zeros(2, dtype=np.uint32), 1, 1)
