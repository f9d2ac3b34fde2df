"""Nearest documents: the kernel and the search against comparing all sets with all."""

from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.strategies import effort

import minwise as mw
from minwise import _kernel, reference
from minwise.reference import Neighbour
from minwise.search import nearest as search
from minwise.search.bands import NO_DOCUMENT

Sets = list[frozenset[int]]
UNITS = 1 << 20
NOTHING = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint32), np.empty(0))


@st.composite
def families(draw: st.DrawFn, least: int = 1) -> Sets:
    """Sets over few elements, of which some are common, with copies, near copies and empty sets."""
    sets: Sets = []
    for _ in range(draw(st.integers(least, 14))):
        kind = draw(st.sampled_from(["new", "new", "copy", "near", "empty"]))
        elements = set(draw(st.frozensets(st.integers(0, 12), max_size=8)))
        if kind == "copy" and sets:
            elements = set(draw(st.sampled_from(sets)))
        elif kind == "near" and sets:
            elements = set(draw(st.sampled_from(sets))) ^ {draw(st.integers(0, 12))}
        elif kind == "empty":
            elements = set()
        sets.append(frozenset(elements))
    return sets


tops = st.sampled_from([1, 2, 3, 5, 1000])
floors = st.sampled_from([0.0, 0.2, 0.5, 1.0])


def arrays(sets: Sets) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return sets as the kernel takes them; elements are spread over all 64 bits."""
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in sets])]).astype(np.int64)
    spread = [sorted(spread_element(element) for element in one) for one in sets]
    return offsets, np.array([element for one in spread for element in one], dtype=np.uint64)


def spread_element(element: int) -> int:
    return int(reference.mix(element + 1))


def some_weights(sets: Sets) -> "_kernel.Weights":
    frequencies = _kernel.Frequencies(6)
    frequencies.add(arrays(sets)[1], 1)
    return _kernel.Weights(frequencies.counts(), len(sets), 1)


def kernel_rows(
    queries: Sets, sets: Sets, cuts: list[int], weights: "_kernel.Weights | None", top: int, floor: float, *, own: bool
) -> list[Neighbour]:
    """Return the rows that are found in one index after the other."""
    offsets, elements = arrays(queries)
    numbers = np.arange(len(queries), dtype=np.uint32) if own else np.full(len(queries), NO_DOCUMENT, dtype=np.uint32)
    earlier = NOTHING
    for start, end in zip([0, *cuts], [*cuts, len(sets)], strict=True):
        members = np.arange(start, end, dtype=np.uint32)
        index = _kernel.NearestIndex(weights, [arrays(sets[start:end])], members, 1)
        found, right, similarity, done = index.nearest(offsets, elements, numbers, earlier, top, floor, 1)
        assert done == len(queries)
        ends = np.cumsum(np.bincount(found, minlength=len(queries)))
        earlier = (np.concatenate([[0], ends]).astype(np.int64), right, similarity)
    ranks = np.arange(len(found)) - earlier[0][found] + 1
    columns = (found.tolist(), right.tolist(), similarity.tolist(), ranks.tolist())
    return list(zip(*columns, strict=True))


@effort(3)
@given(sets=families(), top=tops, floor=floors, weighted=st.booleans(), cut=st.integers(0, 14))
@example(sets=[frozenset()], top=1, floor=0.0, weighted=False, cut=0)
def test_kernel_finds_what_comparing_all_finds(sets: Sets, top: int, floor: float, weighted: bool, cut: int) -> None:
    weights = some_weights(sets) if weighted else None
    units = {
        element: UNITS if weights is None else round(float(weights.of(arrays([frozenset([element])])[1])[0]) * UNITS)
        for element in range(14)
    }
    expected = reference.nearest_sets(sets, None, top, floor, units.__getitem__)
    assert kernel_rows(sets, sets, [min(cut, len(sets))], weights, top, floor, own=True) == expected
    each = list(range(1, len(sets)))  # indexes of one set
    assert kernel_rows(sets, sets, each, weights, top, floor, own=True) == expected
    other = reference.nearest_sets(sets[:cut], sets, top, floor, units.__getitem__)
    assert kernel_rows(sets[:cut], sets, [], weights, top, floor, own=False) == other


def found_rows(source: Sets, among: Sets | None = None, **options: Any) -> list[Neighbour]:  # noqa: ANN401 - settings
    listed = None if among is None else [*map(list, among)]
    table = mw.nearest([*map(list, source)], among=listed, shingle="set", **options)
    assert table.column_names[2] == ("containment" if "measure" in options else "similarity")
    return [tuple(row.values()) for row in table.to_pylist()]


@effort(2)
@given(sets=families(), among=st.none() | families(), top=tops, floor=floors)
@example(sets=[frozenset({1})] * 9 + [frozenset({1, 2})], among=None, top=3, floor=0.0)
@example(sets=[frozenset({1})] * 3, among=[frozenset({1})] * 4 + [frozenset({1, 2})], top=5, floor=0.0)
@example(sets=[frozenset()], among=None, top=5, floor=0.0)
def test_documents_have_the_neighbours_of_comparing_all(sets: Sets, among: Sets | None, top: int, floor: float) -> None:
    expected = reference.nearest_sets(sets, among, top, floor)
    assert found_rows(sets, among, top=top, at_least=floor) == expected
    contained = reference.nearest_sets(sets, among, top, floor, is_contained=True)
    assert found_rows(sets, among, top=top, at_least=floor, measure="containment") == contained


@effort(2)
@given(sets=families(), among=st.none() | families(), top=tops)
@example(sets=[frozenset({1}), frozenset({1})], among=[frozenset({1})] * 3, top=1)
def test_mutual_and_matched_rows_follow_their_definitions(sets: Sets, among: Sets | None, top: int) -> None:
    rows = reference.nearest_sets(sets, among, top)
    back = rows if among is None else reference.nearest_sets(among, sets, top)
    mutual = reference.mutual_neighbours(rows, back)
    same = among is None
    assert found_rows(sets, among, top=top, mutual=True) == mutual
    assert found_rows(sets, among, top=top, one_to_one=True) == reference.best_first_matching(rows, same_side=same)
    both = reference.best_first_matching(mutual, same_side=same)
    assert found_rows(sets, among, top=top, one_to_one=True, mutual=True) == both


@effort(1)
@given(sets=families(least=3), among=st.none() | families(), top=tops, flags=st.tuples(st.booleans(), st.booleans()))
@pytest.mark.parametrize("constant", ["ELEMENT_BYTES", "ROW_BYTES"])
def test_memory_does_not_change_the_result(
    constant: str, sets: Sets, among: Sets | None, top: int, flags: tuple[bool, bool]
) -> None:
    """Indexes of one set, and rows of one document at a time."""
    options = {"top": top, "mutual": flags[0], "one_to_one": flags[1]}
    expected = found_rows(sets, among, **options)
    with mock.patch.object(search, constant, 2**40):
        assert found_rows(sets, among, threads=1, **options) == expected


def test_sets_of_different_texts_may_be_equal() -> None:
    """Such documents are not copies of each other, but have similarity 1 as copies have."""
    texts = ["a b a b a b", "a b a b", "a b a b a b", "b a b", "a c"]
    rows = mw.nearest(texts, shingle="word:2", top=5).to_pylist()
    assert [row["right"] for row in rows if row["left"] == 2] == [0, 1, 3]
    assert {row["similarity"] for row in rows} == {1.0}


def test_bags_are_compared_with_their_counts() -> None:
    rows = mw.nearest([["a", "a", "b"], ["a", "b"], ["a", "a"]], shingle="set", bag=True, top=1).to_pylist()
    assert [(row["right"], row["similarity"]) for row in rows] == [(1, 2 / 3), (0, 2 / 3), (0, 2 / 3)]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_do_not_change_the_bytes(tmp_path: Any, threads: int) -> None:  # noqa: ANN401 - a path
    draw = np.random.default_rng(3)
    sets = [set(draw.integers(0, 60, draw.integers(0, 12)).tolist()) for _ in range(3000)]
    table = mw.nearest(sets, shingle="set", top=4, threads=threads, memory="256MB")
    assert table.to_arrow() == mw.nearest(sets, shingle="set", top=4).to_arrow()
