"""Valley: pairs by similarity in; a threshold that parts them where few are, if there is such a place, out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minwise.errors import ConfigError
from minwise.plan import plan

__all__ = ["Spread", "Suggestion", "suggest"]

# Bins that are looked at together: one alone is low by chance too often.
STRETCH = 3
# A valley is one if it is at most so deep against the lower of its two sides, and the difference is this many standard
# deviations of two counts: about twenty stretches are looked at, so three would be passed by chance now and then.
VALLEY_DEPTH, VALLEY_DEVIATIONS = 0.5, 4.0
# A suggestion that is nearer to the threshold than this is none.
WORTH_SAYING = 0.04


@dataclass(frozen=True, slots=True)
class Spread:
    """How many pairs of a range of similarities were seen, and how many the whole corpus has, with the interval.

    ``documents`` are the sampled documents that are in these pairs.
    """

    start: float
    end: float
    seen: int
    documents: int
    estimated: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A threshold at which the similarities themselves have a gap, and the plan for it."""

    threshold: float
    bands: int
    rows: int
    recall: float
    why: str


def suggest(spread: list[Spread], threshold: float, recall: float, slots: int) -> Suggestion | None:
    """A threshold in the deepest valley of the similarities, if it is clear and not where the threshold stands.

    What is counted are documents, not pairs, of which one large cluster would give thousands.
    """
    valley = _valley(np.array([one.documents for one in spread], dtype=np.int64))
    if valley is None:
        return None
    first, last = valley
    better = round((spread[first].start + spread[last].end) / 2, 2)
    if abs(better - threshold) < WORTH_SAYING:
        return None
    try:
        found = plan(better, recall, slots=slots)
    except ConfigError:  # no plan reaches it
        return None
    pairs = sum(one.estimated for one in spread if min(better, threshold) <= one.start < max(better, threshold))
    change = "would join" if better < threshold else "would leave out"
    why = (
        f"Few pairs are between {spread[first].start:g} and {spread[last].end:g}, many below and above; "
        f"it {change} about {pairs:,.0f} pairs."
    )
    return Suggestion(better, found.bands, found.rows, found.recall, why)


def _valley(counts: NDArray[np.int64]) -> tuple[int, int] | None:
    """The first and last bin of the lowest stretch between two higher ones, if it is clearly lower than both."""
    if len(counts) < 3 * STRETCH:
        return None
    sums = np.convolve(counts, np.ones(STRETCH), "valid")
    best, found = VALLEY_DEPTH, None
    for place in range(STRETCH, len(sums) - STRETCH):
        side = min(sums[: place - STRETCH + 1].max(), sums[place + STRETCH :].max())
        clear = side - sums[place] >= VALLEY_DEVIATIONS * np.sqrt(side + sums[place])
        if side and clear and sums[place] / side < best:
            best, found = sums[place] / side, place
    if found is None:
        return None
    last = found
    while last + STRETCH < len(sums) and sums[last + 1] <= sums[found]:
        last += 1
    return found, last + STRETCH - 1
