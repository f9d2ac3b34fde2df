"""Which segments are merged: few of them, each posting written seldom."""

import math

from hypothesis import given
from hypothesis import strategies as st

from minwise.index.store import SegmentFile
from minwise.index.writer import FANOUT, due

FLUSHED = 300_000


def segments(sizes: list[int]) -> list[SegmentFile]:
    """Segments of so many postings."""
    return [SegmentFile(f"segment-{place}", place, place + 1, size) for place, size in enumerate(sizes)]


def test_four_of_a_size() -> None:
    """Three stay as they are; the fourth makes one of them, a larger one before them does not take part."""
    large = FLUSHED * FANOUT
    assert due(segments([])) is None
    assert due(segments([large, FLUSHED, FLUSHED, FLUSHED])) is None
    assert due(segments([large, FLUSHED, FLUSHED, FLUSHED, FLUSHED])) == 1


def test_small_ones_behind_large_ones() -> None:
    """They go along when a level above is full, and are no reason to touch a large one."""
    assert due(segments([4 * FLUSHED] * 4)) == 0
    assert due(segments([4 * FLUSHED, 4 * FLUSHED, FLUSHED, 4 * FLUSHED, 4 * FLUSHED, 1])) == 0
    assert due(segments([16 * FLUSHED, 4 * FLUSHED, 4 * FLUSHED, FLUSHED])) is None
    assert due(segments([16 * FLUSHED, 1, 1, 1, 1])) == 1


@given(st.lists(st.integers(1, 6 * FLUSHED), min_size=1, max_size=300))
def test_segments_stay_few_and_merges_cheap(flushes: list[int]) -> None:
    """However flushes differ: at most three segments per level; a posting is rewritten at most once per level."""
    sizes: list[int] = []
    written = 0
    for flushed in flushes:
        sizes.append(flushed)
        written += flushed
        while (first := due(segments(sizes))) is not None:
            merged = sum(sizes[first:])
            written += merged
            sizes[first:] = [merged]
    levels = 1 + math.floor(math.log2(sum(flushes)) / 2)
    assert len(sizes) <= (FANOUT - 1) * (levels + 1)
    # A merge takes four of a level to a higher one, and what goes along from below it too: each time a posting climbs.
    assert written <= sum(flushes) * (1 + levels + 1)
