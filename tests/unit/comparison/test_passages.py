"""Shared passages of two texts, compared with brute force on short ones."""

import time
from collections.abc import Callable
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import minwise as mw
from minwise.comparison import passages as passages_module
from minwise.comparison.passages import Passage, align_passages, find_runs, heaviest_chain, number_shared
from minwise.text.shingling import ShingleSpans

# Few different tokens, so that they repeat, and short enough for brute force.
tokens = st.integers(2, 6).flatmap(lambda kinds: st.lists(st.integers(0, kinds), max_size=14))
intervals = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5), st.integers(1, 9)), max_size=9)


def spans_of(numbers: list[int]) -> ShingleSpans:
    """Return a text with a shingle at every position."""
    positions = np.arange(len(numbers) + 1, dtype=np.uint64)
    return ShingleSpans(np.array(numbers, dtype=np.uint64), positions[:-1], positions[1:])


def aligned(left: list[int], right: list[int]) -> list[Passage]:
    """Return the passages of two texts of numbers."""
    return align_passages(spans_of(left), spans_of(right))


@given(left=tokens, right=tokens)
@example(left=[0, 1, 2], right=[0, 1, 5, 1, 2])
def test_passages_are_equal_in_both_texts(left: list[int], right: list[int]) -> None:
    for passage in aligned(left, right):
        assert left[passage.left_start : passage.left_end] == right[passage.right_start : passage.right_end]
        assert passage.left_start < passage.left_end


@given(left=tokens, right=tokens)
@example(left=[0, 1, 2], right=[0, 1, 5, 1, 2])
def test_passages_are_maximal(left: list[int], right: list[int]) -> None:
    for passage in aligned(left, right):
        if passage.left_start and passage.right_start:
            assert left[passage.left_start - 1] != right[passage.right_start - 1]
        if passage.left_end < len(left) and passage.right_end < len(right):
            assert left[passage.left_end] != right[passage.right_end]


@given(left=tokens, right=tokens)
@example(left=[1, 1, 2], right=[1, 2, 1, 2, 1])
def test_every_shared_shingle_is_in_a_passage(left: list[int], right: list[int]) -> None:
    """Every occurrence of it in either text, and no other shingle. No passage occurs twice."""
    passages = aligned(left, right)
    covered = {position for passage in passages for position in range(passage.left_start, passage.left_end)}
    assert covered == {position for position, token in enumerate(left) if token in right}
    covered = {position for passage in passages for position in range(passage.right_start, passage.right_end)}
    assert covered == {position for position, token in enumerate(right) if token in left}
    assert len({passage[:4] for passage in passages}) == len(passages)


@given(left=tokens, right=tokens)
def test_the_backbone_keeps_the_order_of_both_texts(left: list[int], right: list[int]) -> None:
    unmoved = (passage for passage in aligned(left, right) if not passage.moved)
    ends = [(passage.left_end, passage.right_end) for passage in sorted(unmoved, key=lambda passage: passage.left_end)]
    assert all(before[0] < after[0] and before[1] < after[1] for before, after in pairwise(ends))


@given(left=tokens, right=tokens)
def test_the_backbone_is_the_heaviest_of_all_chains(left: list[int], right: list[int]) -> None:
    """No chain of runs has more shingles; a run is the part of a passage that is in no earlier one."""
    runs = find_runs(*number_shared(spans_of(left).hashes, spans_of(right).hashes), np.isin(left, right))
    parts = list(
        zip(runs.other_start.tolist(), (runs.other_start + runs.length).tolist(), runs.length.tolist(), strict=True)
    )
    ends = {passage.left_end for passage in aligned(left, right) if not passage.moved}
    kept = [part for part, end in zip(parts, (runs.start + runs.length).tolist(), strict=True) if end in ends]
    assert all(before[1] <= after[0] for before, after in pairwise(kept))
    assert sum(part[2] for part in kept) == weight_by_brute_force(parts)


def weight_by_brute_force(parts: list[tuple[int, int, int]]) -> int:
    """Return the highest weight of any chain of (start, end, weight), by trying all of them."""
    chains = (chosen for size in range(len(parts) + 1) for chosen in combinations(parts, size))
    fitting = (chosen for chosen in chains if all(before[1] <= after[0] for before, after in pairwise(chosen)))
    return max(sum(part[2] for part in chosen) for chosen in fitting)


@given(chosen=intervals)
def test_heaviest_chain_equals_brute_force(chosen: list[tuple[int, int, int]]) -> None:
    parts = [(start, start + length, weight) for start, length, weight in chosen]
    columns = np.array(parts, dtype=np.int64).reshape(-1, 3).T
    kept = [part for part, flag in zip(parts, heaviest_chain(*columns), strict=True) if flag]
    assert all(before[1] <= after[0] for before, after in pairwise(kept))
    assert sum(part[2] for part in kept) == weight_by_brute_force(parts)


@given(left=tokens, right=tokens)
def test_shared_shingles_have_equal_numbers(left: list[int], right: list[int]) -> None:
    """Shared shingles are numbered from 0; any other number is in one text only."""
    numbers, others = number_shared(spans_of(left).hashes, spans_of(right).hashes)
    assert [[number == other for other in others] for number in numbers] == [
        [shingle == other for other in right] for shingle in left
    ]
    shared = sorted({*numbers[numbers >= 0].tolist()})
    assert shared == list(range(len(shared)))


def test_hashes_that_differ_in_their_low_bits_have_different_numbers() -> None:
    """Positions replace the low bits while sorting: 200 pairs of hashes with 2 bits of difference, mixed."""
    base = np.arange(200, dtype=np.uint64) << np.uint64(40)
    left = np.concatenate([base, base + np.uint64(1), base])
    right = np.concatenate([base + np.uint64(1), base + np.uint64(3), base + np.uint64(1)])
    numbers, others = number_shared(left, right)
    np.testing.assert_array_equal(numbers >= 0, np.isin(left, right))
    np.testing.assert_array_equal(numbers[200:400], others[:200])
    np.testing.assert_array_equal(numbers[200:400], others[400:])
    assert len(np.unique(numbers[200:400])) == 200


def test_long_passages_are_found_completely() -> None:
    """Across all chunk sizes and in both directions: a change at many positions of a long text."""
    text = np.random.default_rng(1).integers(0, 2**63, 3000).tolist()
    for position in [*range(0, 100, 7), *range(100, 3000, 611)]:
        other = [*text[:position], 5, *text[position + 1 :]]
        found = [(passage.left_start, passage.left_end) for passage in aligned(text, other)]
        assert found == [span for span in ((0, position), (position + 1, 3000)) if span[0] < span[1]]


def test_a_passage_is_extended_backwards() -> None:
    """The longest run is not among the positions tried; the run found at its end is extended back to its start."""
    few = 3 * passages_module.TRIED
    left = [*([7] * 40), 1]
    right = [*([7, 2] * few), *([7] * 40), 1]
    assert (0, 41, 2 * few, 2 * few + 41) in [passage[:4] for passage in aligned(left, right)]


def test_repeated_phrases_are_paired_in_order() -> None:
    """A phrase that occurs three times in both texts is not moved."""
    left = [9, 9, 1, 2, 9, 9, 3, 4, 9, 9]
    right = [9, 9, 5, 6, 9, 9, 7, 8, 9, 9]
    assert aligned(left, right) == [
        Passage(0, 2, 0, 2, False), Passage(4, 6, 4, 6, False), Passage(8, 10, 8, 10, False)
    ]  # fmt: skip


def test_the_shorter_of_two_swapped_passages_is_moved() -> None:
    left, right = [1, 2, 3, 4, 5, 6, 7], [6, 7, 1, 2, 3, 4, 5]
    assert aligned(left, right) == [Passage(0, 5, 2, 7, False), Passage(5, 7, 0, 2, True)]


def test_a_repetition_is_moved() -> None:
    assert aligned([1, 2, 3], [1, 2, 3, 8, 1, 2]) == [Passage(0, 3, 0, 3, False), Passage(0, 2, 4, 6, True)]


@pytest.mark.parametrize(("left", "right"), [([], []), ([1], []), ([], [1]), ([1, 2], [3])])
def test_unrelated_texts_have_no_passages(left: list[int], right: list[int]) -> None:
    assert aligned(left, right) == []


@pytest.mark.parametrize("spec", ["word:1", "word:3", "char:4", "byte:4"])
def test_positions_are_code_points_or_bytes(spec: str) -> None:
    left, right = "Über die Brücke, ging 漁 sie.", "Nachts, ÜBER die brücke ging 漁 sie gern."
    shingler = mw.Shingler(spec)
    first, second = (text.encode() if shingler.kind == "byte" else text for text in (left, right))
    for passage in align_passages(shingler.spans(first), shingler.spans(second)):
        texts = [first[passage.left_start : passage.left_end], second[passage.right_start : passage.right_end]]
        sets = shingler.shingle(texts)
        assert set(sets[0]) == set(sets[1])
    assert align_passages(shingler.spans(first), shingler.spans(second))


def words(count: int, kinds: int, seed: int) -> list[int]:
    """Return a text of random words."""
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
def test_time_is_not_quadratic(shape: str) -> None:
    """Eight times the text takes at most 24 times as long; a quadratic search would take 64 times as long.

    The time is that of this thread, the better of two, because the machine may be busy.
    """
    spent = {length: min(seconds_to_align(shape, length) for _ in range(2)) for length in (20_000, 160_000)}
    assert spent[160_000] < 24 * max(spent[20_000], 0.005)


def seconds_to_align(shape: str, length: int) -> float:
    """Return the processor time of aligning two texts of a shape."""
    left, right = (spans_of(text) for text in SHAPES[shape](length))
    start = time.thread_time()
    align_passages(left, right)
    return time.thread_time() - start
