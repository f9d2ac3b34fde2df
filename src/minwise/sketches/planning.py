"""Plan: a threshold and a recall in, bands and rows with their S-curve out.

A signature of m = b·r slots is cut into b bands of r slots. Two documents become a candidate pair when at least one
band agrees in all of its slots (Leskovec, Rajaraman & Ullman, *Mining of Massive Datasets*, section 3.4). More rows
make a band stricter, so fewer dissimilar pairs are proposed; more bands give a similar pair more chances.

`plan` asks for a recall at the threshold. `plan_by_area` is the classic choice: it weighs what the curve misses above
the threshold against what it lets through below, and promises nothing at the threshold itself.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import lru_cache
from numbers import Real as RealNumber
from os import PathLike, fspath
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise.checks import check_whole, show
from minwise.errors import ConfigError

__all__ = [
    "CurvePoint",
    "Plan",
    "approximate_threshold",
    "band_slices",
    "candidate_probability",
    "plan",
    "plan_by_area",
]

Floats = NDArray[np.float64]
Real = TypeVar("Real", float, Floats)

# The curve is a polynomial of degree b·r, and Gauss's rule with n nodes is exact up to degree 2n − 1. With more than
# 1,023 slots it no longer is, but even at 16,384 the areas are right to 1e-11 of themselves (with 256 nodes, to 1e-6).
MOST_NODES = 512
# A table of finer steps than this is no longer one to read.
LEAST_STEP = 0.0001
# Digits of computed numbers in reports. Of sixteen, the last ones differ from processor to processor.
TOLD_DIGITS = 10


class CurvePoint(NamedTuple):
    """A point of the S-curve: pairs of this similarity become candidates with this probability."""

    similarity: float
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A layout of bands and rows, and what it finds and misses.

    Attributes:
        threshold: The similarity from which on a pair is wanted.
        bands: Number of bands, ``b``. More bands propose more pairs.
        rows: Slots per band, ``r``. More rows make each band stricter.
        wanted_recall: The recall asked for; None if the layout was not chosen by it.
        recall: The recall reached: the probability that a pair just at the threshold becomes a candidate.
    """

    threshold: float
    bands: int
    rows: int
    wanted_recall: float | None = None
    recall: float = field(init=False)

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "threshold": _check_share("threshold", self.threshold, one_allowed=True),
            "bands": check_whole("bands", self.bands, 1, _kernel.MAX_SLOTS),
            "rows": check_whole("rows", self.rows, 1, _kernel.MAX_SLOTS),
        }
        if self.wanted_recall is not None:
            checked["wanted_recall"] = _check_share("wanted_recall", self.wanted_recall)
        if checked["bands"] * checked["rows"] > _kernel.MAX_SLOTS:
            layout = f"{checked['bands']}·{checked['rows']} = {checked['bands'] * checked['rows']}"
            raise ConfigError(f"bands·rows must be at most {_kernel.MAX_SLOTS} slots, got {layout}")
        checked["recall"] = float(_curve(checked["threshold"], checked["bands"], checked["rows"]))
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def slots(self) -> int:
        """Slots that the bands use, b·r."""
        return self.bands * self.rows

    @property
    def layout(self) -> str:
        """Bands and rows in words, such as ``26 bands × 8 rows``."""
        return f"{_counted(self.bands, 'band')} × {_counted(self.rows, 'row')}"

    @property
    def steepest(self) -> float:
        """(1/b)^(1/r): about the similarity at which the curve is steepest."""
        return approximate_threshold(self.bands, self.rows)

    @property
    def false_candidate_rate(self) -> float:
        """The share of pairs that become candidates, if their similarities are spread evenly below the threshold.

        Most pairs of a real corpus have nearly nothing in common, so its own rate is far lower. The number is for
        comparing layouts.
        """
        return self.false_positive_area() / self.threshold

    def probability(self, similarity: Real) -> Real:
        """How likely a pair of this similarity becomes a candidate; a number or an array, see `candidate_probability`.

        >>> print(f"{plan(0.8, 0.99).probability(0.5):.4f}")
        0.0968
        """
        return candidate_probability(similarity, self.bands, self.rows)

    def false_positive_area(self) -> float:
        """The area below the curve left of the threshold, ∫₀ᵗ P(s) ds: pairs proposed in vain."""
        return float(_areas(self.threshold, np.array([self.bands]), self.rows, _nodes_for(self.slots))[0][0])

    def false_negative_area(self) -> float:
        """The area above the curve right of the threshold, ∫ₜ¹ (1 − P(s)) ds: pairs that are missed."""
        return float(_areas(self.threshold, np.array([self.bands]), self.rows, _nodes_for(self.slots))[1][0])

    def table(self, step: float = 0.05) -> list[CurvePoint]:
        """The curve from 0 to 1, a row per step; the last row is always 1.

        >>> [f"{point.probability:.4f}" for point in plan(0.8, 0.99).table(step=0.25)]
        ['0.0000', '0.0004', '0.0968', '0.9356', '1.0000']
        """
        step = _check_share("step", step, one_allowed=True)
        if step < LEAST_STEP:
            raise ConfigError(f"step must be at least {LEAST_STEP}, got {show(step)}")
        # Twelve digits take the 0.15000000000000002 out of 3·0.05, and a last step that all but reaches 1.
        inner = [round(number * step, 12) for number in range(math.ceil(round(1 / step, 9)))]
        return [CurvePoint(similarity, self.probability(similarity)) for similarity in (*inner, 1.0)]

    def to_dict(self) -> dict[str, Any]:
        """Every number of the plan by name, ready for JSON; computed ones to ten digits.

        NumPy computes powers, logarithms and sums in ways of the processor's own, which differ in the last digits. What
        stands in a report must not.
        """
        return {
            "threshold": self.threshold,
            "wanted_recall": self.wanted_recall,
            "recall": _told(self.recall),
            "bands": self.bands,
            "rows": self.rows,
            "slots": self.slots,
            "steepest": _told(self.steepest),
            "false_positive_area": _told(self.false_positive_area()),
            "false_negative_area": _told(self.false_negative_area()),
            "false_candidate_rate": _told(self.false_candidate_rate),
        }

    def plot(self, path: str | PathLike[str]) -> None:
        """Draws the curve with both areas into an SVG file, which appears whole or not at all.

        Args:
            path: The file, ending in ``.svg``; one that exists is replaced.
        """
        if not fspath(path).lower().endswith(".svg"):
            raise ConfigError(f"plot must be a file that ends in .svg, got {show(fspath(path))}")
        from minwise.sketches.s_curve import write_curve  # here, because few who plan also draw

        write_curve(self, path)

    def __str__(self) -> str:
        return (
            f"{self.layout} ({_counted(self.slots, 'slot')}): recall {self.recall:.4f} at threshold "
            f"{self.threshold:g}, steepest near {self.steepest:.2f}"
        )


def plan(
    threshold: float = 0.8,
    recall: float = 0.99,
    *,
    slots: int = 256,
    bands: int | None = None,
    rows: int | None = None,
) -> Plan:
    """The strictest layout that finds a pair at the threshold with the wanted recall.

    Of all layouts with b·r ≤ slots and P(threshold) ≥ recall it is the one with the most rows, and of these the one
    with the fewest bands. The recall of pairs above the threshold is higher.

    Args:
        threshold: The similarity from which on a pair is wanted, above 0 and at most 1.
        recall: The least probability that a pair at the threshold becomes a candidate, between 0 and 1.
        slots: The most slots that may be used.
        bands: Number of bands of a layout to take as it is, whatever ``recall`` and ``slots`` say.
        rows: Its slots per band; bands and rows go together.

    Raises:
        ConfigError: If so few slots can not reach the recall; the message says what they reach and how many can.

    >>> print(plan(threshold=0.7, recall=0.99))
    37 bands × 6 rows (222 slots): recall 0.9903 at threshold 0.7, steepest near 0.55
    """
    threshold = _check_share("threshold", threshold, one_allowed=True)
    recall = _check_share("recall", recall)
    slots = check_whole("slots", slots, 1, _kernel.MAX_SLOTS)
    if bands is not None and rows is not None:
        return Plan(threshold=threshold, bands=bands, rows=rows)
    if bands is not None or rows is not None:
        lone = f"rows {show(rows)} without bands" if bands is None else f"bands {show(bands)} without rows"
        raise ConfigError(f"bands and rows must be given together, got {lone}; give both or neither")
    strictest = next((rows for rows in range(slots, 0, -1) if _curve(threshold, slots // rows, rows) >= recall), None)
    if strictest is None:
        raise ConfigError(_unreachable(threshold, recall, slots))
    fewest = _fewest_bands(threshold, recall, strictest)
    return Plan(threshold=threshold, bands=fewest, rows=strictest, wanted_recall=recall)


def plan_by_area(
    threshold: float = 0.8,
    *,
    slots: int = 256,
    false_positive_weight: float = 0.5,
    false_negative_weight: float = 0.5,
) -> Plan:
    """The layout with the least weighted sum of false positive and false negative area, as in other tools.

    Of equally good ones it takes the one with the fewest slots. The areas are those of `Plan`. The steep part of the
    curve comes to lie at the threshold, so that about half of the pairs there are missed; use `plan` where that
    matters. It tries every layout: 0.04 s with 256 slots, a few seconds with 16,384.

    Args:
        threshold: The similarity from which on a pair is wanted, above 0 and at most 1.
        slots: The most slots that may be used.
        false_positive_weight: What a unit of area below the curve left of the threshold costs.
        false_negative_weight: What a unit of area above the curve right of the threshold costs.

    >>> print(plan_by_area(threshold=0.7))
    25 bands × 10 rows (250 slots): recall 0.5115 at threshold 0.7, steepest near 0.72
    """
    threshold = _check_share("threshold", threshold, one_allowed=True)
    slots = check_whole("slots", slots, 1, _kernel.MAX_SLOTS)
    positive = _check_weight("false_positive_weight", false_positive_weight)
    negative = _check_weight("false_negative_weight", false_negative_weight)
    if positive == negative == 0:
        raise ConfigError("false_positive_weight and false_negative_weight must not both be 0, got 0 and 0")
    best = (math.inf, 0, 0, 0)
    for rows in range(1, slots + 1):
        bands = np.arange(1, slots // rows + 1)
        below, above = _areas(threshold, bands, rows, _nodes_for(slots))
        cost = positive * below + negative * above
        cheapest = int(np.argmin(cost))  # the first of several, which has the fewest bands
        best = min(best, (float(cost[cheapest]), rows * (cheapest + 1), cheapest + 1, rows))
    return Plan(threshold=threshold, bands=best[2], rows=best[3])


def candidate_probability(similarity: Real, bands: int, rows: int) -> Real:
    """The S-curve 1 − (1 − sʳ)ᵇ: how likely a pair of similarity s shares at least one band.

    It is computed through ``log1p`` and ``expm1``: near s = 0 the plain formula loses every digit (s = 0.001, r = 6
    gives 0 instead of b·10⁻¹⁸).

    Args:
        similarity: Jaccard similarity of the pair, a number or an array, between 0 and 1.
        bands: Number of bands, ``b``.
        rows: Slots per band, ``r``.

    >>> print(f"{candidate_probability(0.8, bands=20, rows=5):.4f}")
    0.9996
    """
    _check_layout(bands, rows)
    try:
        shares = np.asarray(similarity, dtype=np.float64)
    except (TypeError, ValueError):
        shares = np.array(np.nan)
    if not np.all((shares >= 0) & (shares <= 1)):
        raise ConfigError(f"similarity must be between 0 and 1, got {show(similarity)}")
    curve = _curve(shares, bands, rows)
    result: Real = curve if shares.ndim else float(curve)  # type: ignore[assignment]
    return result


def approximate_threshold(bands: int, rows: int) -> float:
    """(1/b)^(1/r): about the similarity at which the S-curve is steepest.

    At that point the curve stands near 1 − 1/e ≈ 0.63, not at one half.

    >>> round(approximate_threshold(bands=10, rows=5), 3)
    0.631
    """
    _check_layout(bands, rows)
    return float((1 / bands) ** (1 / rows))


def band_slices(bands: int, rows: int) -> list[slice]:
    """Which slots belong to which band: band i holds slots i·r … i·r + r − 1.

    >>> band_slices(bands=2, rows=3)
    [slice(0, 3, None), slice(3, 6, None)]
    """
    _check_layout(bands, rows)
    return [slice(band * rows, (band + 1) * rows) for band in range(bands)]


def _curve(similarity: float | Floats, bands: int, rows: int) -> Floats:
    """The S-curve without checks; one place, so that a chosen layout is judged by the very number it was chosen by."""
    with np.errstate(divide="ignore"):  # s = 1: log1p(-1) is -inf, and 1 - exp(-inf) is the right answer
        curve: Floats = -np.expm1(bands * np.log1p(-np.power(similarity, rows)))
    return np.abs(curve)  # s = 0 would be minus zero


def _fewest_bands(threshold: float, recall: float, rows: int) -> int:
    """The least number of bands that reaches the recall; one more than `_kernel.MAX_SLOTS` if none does."""
    tried = range(1, _kernel.MAX_SLOTS + 1)
    return bisect_left(tried, recall, key=lambda bands: float(_curve(threshold, bands, rows))) + 1


def _unreachable(threshold: float, recall: float, slots: int) -> str:
    """What to say of a recall that is too high; bands of one row reach the most."""
    from decimal import ROUND_FLOOR, Context  # here, because importing minwise should stay quick

    best = Context(prec=4, rounding=ROUND_FLOOR).create_decimal(float(_curve(threshold, slots, 1)))
    needed = _fewest_bands(threshold, recall, 1)
    most = _kernel.MAX_SLOTS
    remedy = f"at least {needed} slots reach it" if needed <= most else f"not even {most} slots, the most, reach it"
    limit = f"at most {best} at threshold {show(threshold)} with {_counted(slots, 'slot')}"
    return f"recall must be {limit}, got {show(recall)}: {remedy}"


def _told(number: float) -> float:
    """A number as every processor tells it."""
    return float(f"{number:.{TOLD_DIGITS}g}")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _areas(threshold: float, bands: NDArray[np.int64], rows: int, nodes: int) -> tuple[Floats, Floats]:
    """False positive and false negative area of each number of bands, by Gauss's rule on either side of the threshold.

    Every term is positive, so even the smallest area keeps its digits.
    """
    places, weights = _gauss_rule(nodes)
    below = np.log1p(-np.power(threshold * places, rows))
    above = np.log1p(-np.power(threshold + (1 - threshold) * places, rows)) if threshold < 1 else np.zeros(nodes)
    proposed = -np.expm1(np.multiply.outer(bands, below))
    missed = np.exp(np.multiply.outer(bands, above))
    return threshold * (proposed @ weights), (1 - threshold) * (missed @ weights)


def _nodes_for(slots: int) -> int:
    """Enough nodes to be exact for polynomials of degree ``slots``."""
    return min(slots // 2 + 1, MOST_NODES)


@lru_cache(maxsize=16)
def _gauss_rule(nodes: int) -> tuple[Floats, Floats]:
    """Places and weights of the Gauss-Legendre rule on [0, 1]."""
    places, weights = np.polynomial.legendre.leggauss(nodes)
    return (places + 1) / 2, weights / 2


def _check_layout(bands: int, rows: int) -> None:
    for name, value in (("bands", bands), ("rows", rows)):
        if value < 1:
            raise ConfigError(f"{name} must be at least 1, got {show(value)}")


def _check_share(name: str, value: object, *, one_allowed: bool = False) -> float:
    """A number above 0 and below 1, or at most 1; NumPy's numbers become plain ones."""
    share = _plain_number(value)
    if not 0 < share <= 1 or (share == 1 and not one_allowed):
        rule = "above 0 and at most 1" if one_allowed else "between 0 and 1, both excluded"
        raise ConfigError(f"{name} must be a number {rule}, got {show(value)}")
    return share


def _check_weight(name: str, value: object) -> float:
    weight = _plain_number(value)
    if not 0 <= weight < math.inf:
        raise ConfigError(f"{name} must be a number of at least 0, got {show(value)}")
    return weight


def _plain_number(value: object) -> float:
    """The value as a float, nan if it is no number; a truth value is none."""
    if isinstance(value, bool) or not isinstance(value, RealNumber):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # an integer beyond every float
        return math.inf
