"""Passages: what two texts share, place by place, against what brute force finds in short ones."""

import time
from collections.abc import Callable
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import minwise as mw
from minwise.comparison import passages as shared_runs
from minwise.comparison.passages import Passage, align_passages, find_runs, heaviest_chain, number_shared
from minwise.text.shingling import ShingleSpans

# Few different tokens, so that they repeat themselves, and short enough to try everything.
tokens = st.integers(2, 6).flatmap(lambda kinds: st.lists(st.integers(0, kinds), max_size=14))
intervals = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5), st.integers(1, 9)), max_size=9)


def spans_of(numbers: list[int]) -> ShingleSpans:
    """A text with a shingle at every place."""
    places = np.arange(len(numbers) + 1, dtype=np.uint64)
    return ShingleSpans(np.array(numbers, dtype=np.uint64), places[:-1], places[1:])


def aligned(left: list[int], right: list[int]) -> list[Passage]:
    """The passages of two texts of numbers."""
    return align_passages(spans_of(left), spans_of(right))


@given(left=tokens, right=tokens)
@example(left=[0, 1, 2], right=[0, 1, 5, 1, 2])
def test_passages_are_equal_in_both_texts(left: list[int], right: list[int]) -> None:
    """Shingle by shingle."""
    for one in aligned(left, right):
        assert left[one.left_start : one.left_end] == right[one.right_start : one.right_end]
        assert one.left_start < one.left_end


@given(left=tokens, right=tokens)
@example(left=[0, 1, 2], right=[0, 1, 5, 1, 2])
def test_passages_go_on_as_far_as_the_texts_agree(left: list[int], right: list[int]) -> None:
    """Neither the shingle before nor the one after is the same in both."""
    for one in aligned(left, right):
        if one.left_start and one.right_start:
            assert left[one.left_start - 1] != right[one.right_start - 1]
        if one.left_end < len(left) and one.right_end < len(right):
            assert left[one.left_end] != right[one.right_end]


@given(left=tokens, right=tokens)
@example(left=[1, 1, 2], right=[1, 2, 1, 2, 1])
def test_every_shared_shingle_is_in_a_passage(left: list[int], right: list[int]) -> None:
    """Every occurrence of it, in either text; and nothing else is. No passage is there twice."""
    passages = aligned(left, right)
    covered = {place for one in passages for place in range(one.left_start, one.left_end)}
    assert covered == {place for place, token in enumerate(left) if token in right}
    covered = {place for one in passages for place in range(one.right_start, one.right_end)}
    assert covered == {place for place, token in enumerate(right) if token in left}
    assert len({one[:4] for one in passages}) == len(passages)


@given(left=tokens, right=tokens)
def test_the_backbone_keeps_the_order_of_both_texts(left: list[int], right: list[int]) -> None:
    """Each of its passages ends after the one before it, on the left and on the right."""
    backbone = sorted((one for one in aligned(left, right) if not one.moved), key=lambda one: one.left_end)
    assert all(one.left_end < other.left_end and one.right_end < other.right_end for one, other in pairwise(backbone))


@given(left=tokens, right=tokens)
def test_the_backbone_is_the_heaviest_of_all_chains(left: list[int], right: list[int]) -> None:
    """Of the parts of passages that no other has: none of the chains of them holds more shingles."""
    runs = find_runs(*number_shared(spans_of(left).hashes, spans_of(right).hashes), np.isin(left, right))
    parts = list(zip(runs.there.tolist(), (runs.there + runs.length).tolist(), runs.length.tolist(), strict=True))
    ends = {one.left_end for one in aligned(left, right) if not one.moved}
    kept = [part for part, end in zip(parts, (runs.here + runs.length).tolist(), strict=True) if end in ends]
    assert all(part[1] <= other[0] for part, other in pairwise(kept))
    assert sum(part[2] for part in kept) == weight_by_brute_force(parts)


def weight_by_brute_force(parts: list[tuple[int, int, int]]) -> int:
    """The most weight of any choice of (start, end, weight) in which none starts before the one ahead has ended."""
    chains = (chosen for size in range(len(parts) + 1) for chosen in combinations(parts, size))
    fitting = (chosen for chosen in chains if all(one[1] <= other[0] for one, other in pairwise(chosen)))
    return max(sum(part[2] for part in chosen) for chosen in fitting)


@given(chosen=intervals)
def test_the_heaviest_chain_of_intervals(chosen: list[tuple[int, int, int]]) -> None:
    """Equals what trying all of them finds, whatever their order, lengths and weights."""
    parts = [(start, start + length, weight) for start, length, weight in chosen]
    columns = np.array(parts, dtype=np.int64).reshape(-1, 3).T
    kept = [part for part, flag in zip(parts, heaviest_chain(*columns), strict=True) if flag]
    assert all(part[1] <= other[0] for part, other in pairwise(kept))
    assert sum(part[2] for part in kept) == weight_by_brute_force(parts)


@given(left=tokens, right=tokens)
def test_shared_shingles_have_equal_numbers(left: list[int], right: list[int]) -> None:
    """Small ones; the others have one that is in the other text nowhere."""
    here, there = number_shared(spans_of(left).hashes, spans_of(right).hashes)
    assert [[mine == other for other in there] for mine in here] == [
        [mine == other for other in right] for mine in left
    ]
    shared = sorted({*here[here >= 0].tolist()})
    assert shared == list(range(len(shared)))


def test_numbers_tell_hashes_apart_that_differ_in_their_low_bits_only() -> None:
    """Those give way to the place while sorting: 200 pairs of hashes with 2 bits of difference, mixed."""
    base = np.arange(200, dtype=np.uint64) << np.uint64(40)
    left = np.concatenate([base, base + np.uint64(1), base])
    right = np.concatenate([base + np.uint64(1), base + np.uint64(3), base + np.uint64(1)])
    here, there = number_shared(left, right)
    np.testing.assert_array_equal(here >= 0, np.isin(left, right))
    np.testing.assert_array_equal(here[200:400], there[:200])
    np.testing.assert_array_equal(here[200:400], there[400:])
    assert len(np.unique(here[200:400])) == 200


def test_long_passages_are_followed_to_their_end() -> None:
    """Through all sizes of chunks, to both sides: a change at every place of a long text."""
    text = np.random.default_rng(1).integers(0, 2**63, 3000).tolist()
    for place in [*range(0, 100, 7), *range(100, 3000, 611)]:
        other = [*text[:place], 5, *text[place + 1 :]]
        found = [(one.left_start, one.left_end) for one in aligned(text, other)]
        assert found == [span for span in ((0, place), (place + 1, 3000)) if span[0] < span[1]]


def test_a_passage_reaches_back_where_its_start_was_tried_elsewhere() -> None:
    """The place that goes on longest is not among those tried; the run found at its end still reaches back to it."""
    few = 3 * shared_runs.TRIED
    left = [*([7] * 40), 1]
    right = [*([7, 2] * few), *([7] * 40), 1]
    assert (0, 41, 2 * few, 2 * few + 41) in [one[:4] for one in aligned(left, right)]


def test_ties_go_to_what_follows() -> None:
    """A phrase that is there three times in both texts is not moved: the first belongs to the first, and so on."""
    left = [9, 9, 1, 2, 9, 9, 3, 4, 9, 9]
    right = [9, 9, 5, 6, 9, 9, 7, 8, 9, 9]
    assert aligned(left, right) == [
        Passage(0, 2, 0, 2, False), Passage(4, 6, 4, 6, False), Passage(8, 10, 8, 10, False)
    ]  # fmt: skip


def test_what_changed_places_is_moved() -> None:
    """The shorter one of two that did; both sides are told."""
    left, right = [1, 2, 3, 4, 5, 6, 7], [6, 7, 1, 2, 3, 4, 5]
    assert aligned(left, right) == [Passage(0, 5, 2, 7, False), Passage(5, 7, 0, 2, True)]


def test_what_is_told_again_is_moved() -> None:
    """Once it is in its place, and once more it is not."""
    assert aligned([1, 2, 3], [1, 2, 3, 8, 1, 2]) == [Passage(0, 3, 0, 3, False), Passage(0, 2, 4, 6, True)]


@pytest.mark.parametrize(("left", "right"), [([], []), ([1], []), ([], [1]), ([1, 2], [3])])
def test_texts_that_share_nothing(left: list[int], right: list[int]) -> None:
    """Have no passage."""
    assert aligned(left, right) == []


@pytest.mark.parametrize("spec", ["word:1", "word:3", "char:4", "byte:4"])
def test_places_are_those_of_the_text(spec: str) -> None:
    """Code points; bytes for byte shingles."""
    left, right = "Über die Brücke, ging 漁 sie.", "Nachts, ÜBER die brücke ging 漁 sie gern."
    shingler = mw.Shingler(spec)
    first, second = (text.encode() if shingler.kind == "byte" else text for text in (left, right))
    for one in align_passages(shingler.spans(first), shingler.spans(second)):
        cut = [first[one.left_start : one.left_end], second[one.right_start : one.right_end]]
        sets = shingler.shingle(cut)
        assert set(sets[0]) == set(sets[1])
    assert align_passages(shingler.spans(first), shingler.spans(second))


def words(count: int, kinds: int, seed: int) -> list[int]:
    """A text of random words."""
    return [int(word) for word in np.random.default_rng(seed).integers(0, kinds, count)]


SHAPES: dict[str, Callable[[int], tuple[list[int], list[int]]]] = {
    "one word": lambda n: ([1] * n, [1] * (n - 3)),
    "two words in turn": lambda n: ([1, 2] * (n // 2), [2, 1] * (n // 2)),
    "rotated": lambda n: (text := words(n, 10**9, 1), text[n // 3 :] + text[: n // 3]),
    "rotated, few words": lambda n: (text := words(n, 50, 1), text[n // 3 :] + text[: n // 3]),
    "unequal periods": lambda n: ([1, 2, 3] * (n // 3), [1, 2, 3, 4] * (n // 4)),
    "blocks of one word": lambda n: (([1] * 99 + [2]) * (n // 100), ([1] * 70 + [2] + [1] * 28 + [3]) * (n // 100)),
    "two words at random": lambda n: (words(n, 2, 1), words(n, 2, 2)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_time_grows_with_the_text(shape: str) -> None:
    """Eight times the text takes at most 24 times as long, where a quadratic search would take 64 times as long.

    The time is that of this thread alone, the better of two, for the machine may be busy.
    """
    spent = {length: min(seconds_to_align(shape, length) for _ in range(2)) for length in (20_000, 160_000)}
    assert spent[160_000] < 24 * max(spent[20_000], 0.005)


def seconds_to_align(shape: str, length: int) -> float:
    """What the passages of two texts of a shape take."""
    left, right = (spans_of(text) for text in SHAPES[shape](length))
    start = time.thread_time()
    align_passages(left, right)
    return time.thread_time() - start
