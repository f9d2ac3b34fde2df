"""Clustering: stars and components equal the reference for any blocks; keep orders equal a plain sort."""

import math
from collections.abc import Callable, Iterator
from datetime import date, datetime
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.keep_orders import order_of
from support.strategies import effort

from minwise.reference.banding import components, star
from minwise.search.bands import NO_DOCUMENT
from minwise.search.clustering import CopyGroups, KeepOrder, PairBlock, cluster_by_components, cluster_by_star

DOCUMENTS = 14
SIMILARITIES = (0.8, 0.8, 0.85, 0.9, 1.0)

Pairs = dict[tuple[int, int], float]
Groups = list[list[int]]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Pairs, Groups]:
    """Draw pairs of leaders, and the groups of copies of some leaders."""
    owners = draw(st.lists(st.integers(0, DOCUMENTS), min_size=DOCUMENTS, max_size=DOCUMENTS))
    groups: dict[int, list[int]] = {}
    for document, owner in enumerate(owners):
        groups.setdefault(owner if owner < 4 else 100 + document, []).append(document)
    leaders = sorted(members[0] for members in groups.values())
    possible = list(combinations(leaders, 2))
    pairs = (
        draw(st.dictionaries(st.sampled_from(possible), st.sampled_from(SIMILARITIES), max_size=25)) if possible else {}
    )
    return pairs, sorted(members for members in groups.values() if len(members) > 1)


def copy_groups(groups: Groups) -> CopyGroups:
    """Return the groups as two arrays."""
    starts = np.cumsum([0, *map(len, groups)]).astype(np.uint64)
    return CopyGroups(np.array([member for group in groups for member in group], dtype=np.uint32), starts)


def as_blocks(pairs: Pairs, most: int) -> Callable[[], Iterator[PairBlock]]:
    """Return the pairs in ascending order, ``most`` per block."""
    listed = sorted(pairs.items())

    def blocks() -> Iterator[PairBlock]:
        for start in range(0, len(listed), most):
            piece = listed[start : start + most]
            low, high = (np.array([pair[side] for pair, _ in piece], dtype=np.uint32) for side in (0, 1))
            yield PairBlock(low, high, np.array([similarity for _, similarity in piece]))

    return blocks


def with_copies(pairs: Pairs, groups: Groups) -> Pairs:
    """Add every pair of copies: 1.0 within a group, the leaders' similarity between groups."""
    members = {group[0]: group for group in groups}
    full = {pair: 1.0 for group in groups for pair in combinations(group, 2)}
    for (left, right), similarity in pairs.items():
        for first in members.get(left, [left]):
            for second in members.get(right, [right]):
                full[min(first, second), max(first, second)] = similarity
    return full


@effort(4)
@given(graph=graphs(), most=st.sampled_from((1, 2, 5, 100)), protected=st.sampled_from((0, 0, 1, 4)))
@example(graph=({}, []), most=1, protected=0)
@example(graph=({(0, 1): 0.8, (1, 2): 0.9, (2, 3): 0.85}, []), most=1, protected=0)
@example(graph=({(0, 1): 0.8}, [[1, 2, 3]]), most=1, protected=0)
def test_stars_equal_the_reference(graph: tuple[Pairs, Groups], most: int, protected: int) -> None:
    """As if every copy were in pairs of its own; protected documents are kept even if they are similar."""
    pairs, groups = graph
    pairs = {pair: value for pair, value in pairs.items() if pair[1] >= protected}
    full = {pair: value for pair, value in with_copies(pairs, groups).items() if pair[1] >= protected}
    found = cluster_by_star(as_blocks(pairs, most), copy_groups(groups), DOCUMENTS, protected)
    kept, removed = star(full, DOCUMENTS)
    assert np.flatnonzero(~found.removed).tolist() == kept
    assert {
        document: (int(found.witness[document]), float(found.similarity[document])) for document in removed
    } == removed
    assert (found.witness[kept] == NO_DOCUMENT).all()
    assert np.isnan(found.similarity[kept]).all()


@given(graph=graphs())
def test_stars_of_unknown_similarities_keep_the_same_documents(graph: tuple[Pairs, Groups]) -> None:
    """The witness is the first kept partner; copies have their leader with 1.0."""
    pairs, groups = graph
    unknown = dict.fromkeys(pairs, math.nan)
    found = cluster_by_star(as_blocks(unknown, 3), copy_groups(groups), DOCUMENTS)
    kept, removed = star(with_copies(dict.fromkeys(pairs, 0.5), groups), DOCUMENTS)
    assert np.flatnonzero(~found.removed).tolist() == kept
    assert {document: int(found.witness[document]) for document in removed} == {
        document: witness for document, (witness, _) in removed.items()
    }
    known = [document for document, (_, similarity) in removed.items() if similarity == 1.0]
    assert np.flatnonzero(found.similarity == 1.0).tolist() == known


@effort(4)
@given(graph=graphs(), most=st.sampled_from((1, 2, 5, 100)))
@example(graph=({(0, 8): 1.0, (1, 8): 1.0}, [[1, 3], [8, 9]]), most=1)
def test_components_equal_the_reference(graph: tuple[Pairs, Groups], most: int) -> None:
    """Copies are connected to their leader."""
    pairs, groups = graph
    found = cluster_by_components(as_blocks(pairs, most), copy_groups(groups), DOCUMENTS)
    assert found.tolist() == components(with_copies(pairs, groups), DOCUMENTS)


@pytest.mark.parametrize("seed", range(3))
def test_large_random_graphs_equal_a_graph_search(seed: int) -> None:
    """Thousands of documents in chains and hubs, where the paths of the union-find are long."""
    rng, documents = np.random.default_rng(seed), 3000
    ends = np.sort(rng.integers(0, documents, size=(2500, 2)), axis=1)
    chain = np.column_stack([np.arange(1000, 1400), np.arange(1001, 1401)])
    pairs: Pairs = {(int(low), int(high)): 0.9 for low, high in np.concatenate([ends, chain]) if low < high}
    nothing = copy_groups([])
    found = cluster_by_components(as_blocks(pairs, 700), nothing, documents)
    partners: dict[int, list[int]] = {number: [] for number in range(documents)}
    for low, high in pairs:
        partners[low].append(high)
        partners[high].append(low)
    label = [-1] * documents
    for first in range(documents):
        waiting = [first] if label[first] < 0 else []
        while waiting:
            document = waiting.pop()
            if label[document] < 0:
                label[document] = first
                waiting.extend(partners[document])
    assert found.tolist() == label
    stars = cluster_by_star(as_blocks(pairs, 700), nothing, documents)
    kept = set(np.flatnonzero(~stars.removed).tolist())
    for document in range(documents):
        has_kept_before = any(other in kept for other in partners[document] if other < document)
        assert (document in kept) != has_kept_before


def test_leaders_and_followers_of_copy_groups() -> None:
    groups = copy_groups([[1, 4, 6], [2, 3]])
    assert len(groups) == 2
    assert groups.sizes.tolist() == [3, 2]
    assert groups.leaders.tolist() == [1, 2]
    assert [side.tolist() for side in groups.followers()] == [[4, 6, 3], [1, 1, 2]]


def expected_order(count: int, protected: int, key: Callable[[int], Any]) -> list[int]:
    """Return protected documents, then the others by a stable sort."""
    return [*range(protected), *sorted(range(protected, count), key=key)]


def assert_orders(order: KeepOrder, expected: list[int]) -> None:
    """Assert the order and its inverse."""
    assert order.document_at.tolist() == expected
    assert order.rank_of[expected].tolist() == list(range(len(expected)))


@given(lengths=st.lists(st.sampled_from((0, 1, 2, 3, 2**40)), max_size=12), data=st.data())
@example(lengths=[], data=None)
def test_plain_policies_equal_a_sort(lengths: list[int], data: st.DataObject | None) -> None:
    """Ties by document order; protected documents first, for any length."""
    protected = 0 if data is None else data.draw(st.integers(0, len(lengths)))
    count, array = len(lengths), np.array(lengths, dtype=np.uint64)
    for policy, key in (
        ("first", lambda document: document),
        ("last", lambda document: -document),
        ("longest", lambda document: -lengths[document]),
        ("shortest", lambda document: lengths[document]),
    ):
        order = order_of(policy, count, references=protected, lengths=array)
        assert_orders(order, expected_order(count, protected, key))


COLUMNS: dict[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "int64": (pa.int64(), (-(2**63), -1, 0, 5, 2**53, 2**53 + 1, 2**63 - 1)),
    "uint64": (pa.uint64(), (0, 1, 2**64 - 1, 2**64 - 2)),
    "double": (pa.float64(), (-math.inf, -1.5, -0.0, 0.0, 1e-300, 3.5, math.inf, math.nan)),
    "float": (pa.float32(), (-1.5, 0.0, 3.5, math.nan)),
    "string": (pa.string(), ("", "a", "B", "ä", "10", "9", "ab", "\U0001f642", "\uffff")),
    "large_string": (pa.large_string(), ("", "a", "z")),
    "date": (pa.date32(), (date(1969, 1, 1), date(2024, 2, 29), date(2024, 3, 1))),
    "timestamp": (pa.timestamp("us"), (datetime(1969, 1, 1), datetime(2024, 2, 29, 12), datetime(2024, 2, 29, 13))),
    "bool": (pa.bool_(), (False, True)),
}


@pytest.mark.parametrize("policy", ["max:score", "min:score"])
@pytest.mark.parametrize("column", COLUMNS)
@effort(0.5)
@given(data=st.data())
def test_policies_by_column_equal_a_sort(policy: str, column: str, data: st.DataObject) -> None:
    """Nulls and NaN last, in document order; strings by code points; ties by document order."""
    kind, values = COLUMNS[column]
    scores: list[Any] = data.draw(st.lists(st.none() | st.sampled_from(values), max_size=12))
    protected = data.draw(st.integers(0, len(scores)))

    def missing(document: int) -> bool:
        return scores[document] is None or scores[document] != scores[document]

    present = sorted({score for document, score in enumerate(scores) if not missing(document)})
    number = {value: index for index, value in enumerate(present)}
    sign = -1 if policy.startswith("max") else 1
    documents = range(len(scores))
    keys = [(missing(document), 0 if missing(document) else sign * number[scores[document]]) for document in documents]
    expected = expected_order(len(scores), protected, keys.__getitem__)
    order = order_of(policy, len(scores), references=protected, values={"score": pa.array(scores, kind)})
    assert_orders(order, expected)
