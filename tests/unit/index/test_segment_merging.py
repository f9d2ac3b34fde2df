"""Choice of segments to merge: it keeps their number small, and rewrites each posting rarely."""

import math

from hypothesis import given
from hypothesis import strategies as st

from minwise.index.store import SegmentFile
from minwise.index.writer import FANOUT, first_to_merge

FLUSHED = 300_000


def segments(sizes: list[int]) -> list[SegmentFile]:
    """Return segments with these numbers of postings."""
    return [SegmentFile(f"segment-{number}", number, number + 1, size) for number, size in enumerate(sizes)]


def test_four_segments_of_similar_size_are_merged() -> None:
    large = FLUSHED * FANOUT
    assert first_to_merge(segments([])) is None
    assert first_to_merge(segments([large, FLUSHED, FLUSHED, FLUSHED])) is None
    assert first_to_merge(segments([large, FLUSHED, FLUSHED, FLUSHED, FLUSHED])) == 1


def test_small_segments_are_merged_with_a_full_level_above_them() -> None:
    assert first_to_merge(segments([4 * FLUSHED] * 4)) == 0
    assert first_to_merge(segments([4 * FLUSHED, 4 * FLUSHED, FLUSHED, 4 * FLUSHED, 4 * FLUSHED, 1])) == 0
    assert first_to_merge(segments([16 * FLUSHED, 4 * FLUSHED, 4 * FLUSHED, FLUSHED])) is None
    assert first_to_merge(segments([16 * FLUSHED, 1, 1, 1, 1])) == 1


@given(st.lists(st.integers(1, 6 * FLUSHED), min_size=1, max_size=300))
def test_number_of_segments_and_rewritten_postings_are_bounded(flushes: list[int]) -> None:
    """There are at most three segments per level, and a posting is rewritten at most once per level."""
    sizes: list[int] = []
    written = 0
    for flushed in flushes:
        sizes.append(flushed)
        written += flushed
        while (first := first_to_merge(segments(sizes))) is not None:
            merged = sum(sizes[first:])
            written += merged
            sizes[first:] = [merged]
    levels = 1 + math.floor(math.log2(sum(flushes)) / 2)
    assert len(sizes) <= (FANOUT - 1) * (levels + 1)
    # A merge moves four segments of a level, and the smaller ones among them, to a higher level.
    assert written <= sum(flushes) * (1 + levels + 1)
