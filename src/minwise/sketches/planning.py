"""Choice of bands and rows for a similarity threshold, and the S-curve of the choice.

A signature of m = b·r slots is divided into b bands of r slots. Two documents become a candidate pair when they agree
in all slots of at least one band (Leskovec, Rajaraman & Ullman, *Mining of Massive Datasets*, section 3.4). More rows
make a band stricter, so fewer dissimilar pairs become candidates; more bands give a similar pair more chances.

`plan` guarantees a recall at the threshold. `plan_by_area` is the classic choice: it balances the missed area of the
curve above the threshold against the accepted area below, and guarantees nothing at the threshold itself.
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
from minwise.checks import check_integer, show
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
# 1,023 slots it is not exact, but even with 16,384 the relative error of the areas is 1e-11 (with 256 nodes, 1e-6).
MAX_NODES = 512
# Bound of the difference between a value of the curve in an array and alone. Both are accurate to some units in the
# last place of numbers below 1, about 1e-15.
CURVE_ERROR = 1e-12
# The asymptotic roots of a Legendre polynomial have at least two right digits, and each step doubles them.
NEWTON_STEPS = 4
# Minimum step of a table; a finer table would be too long to read.
MIN_STEP = 0.0001
# Significant digits of computed numbers in reports. Of sixteen, the last ones differ between processors.
REPORT_DIGITS = 10


class CurvePoint(NamedTuple):
    """Point of the S-curve: the probability that a pair of this similarity becomes a candidate."""

    similarity: float
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Layout of bands and rows, with its S-curve and error areas.

    Attributes:
        threshold: Minimum similarity of a pair to be found.
        bands: Number of bands, ``b``. More bands give more candidates.
        rows: Slots per band, ``r``. More rows make each band stricter.
        wanted_recall: Requested recall; None if the layout was not chosen by recall.
        recall: Probability that a pair at the threshold becomes a candidate.

    Raises:
        ConfigError: If a setting is out of range or ``bands * rows`` exceeds the maximum number of slots.
    """

    threshold: float
    bands: int
    rows: int
    wanted_recall: float | None = None
    recall: float = field(init=False)

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "threshold": _check_share("threshold", self.threshold, one_allowed=True),
            "bands": check_integer("bands", self.bands, 1, _kernel.MAX_SLOTS),
            "rows": check_integer("rows", self.rows, 1, _kernel.MAX_SLOTS),
        }
        if self.wanted_recall is not None:
            checked["wanted_recall"] = _check_share("wanted_recall", self.wanted_recall)
        if checked["bands"] * checked["rows"] > _kernel.MAX_SLOTS:
            layout = f"{checked['bands']}·{checked['rows']} = {checked['bands'] * checked['rows']}"
            raise ConfigError(f"bands·rows must be at most {_kernel.MAX_SLOTS} slots, got {layout}")
        checked["recall"] = float(_curve(checked["threshold"], checked["bands"], checked["rows"]))
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        wanted = "" if self.wanted_recall is None else f", wanted_recall={self.wanted_recall:g}"
        layout = f"threshold={self.threshold:g}, bands={self.bands}, rows={self.rows}"
        return f"Plan({layout}{wanted}, recall={self.recall:.4f})"

    def _repr_html_(self) -> str:
        """Return the S-curve for a notebook."""
        from minwise._internal.display import notebook  # imported here because few callers draw
        from minwise.sketches.s_curve import inline_curve

        return notebook(inline_curve(self))

    @property
    def slots(self) -> int:
        """Slots used by the bands, b·r."""
        return self.bands * self.rows

    @property
    def layout(self) -> str:
        """Bands and rows as text, such as ``26 bands × 8 rows``."""
        return f"{_pluralize(self.bands, 'band')} × {_pluralize(self.rows, 'row')}"

    @property
    def steepest(self) -> float:
        """Approximate similarity at which the curve is steepest, (1/b)^(1/r)."""
        return approximate_threshold(self.bands, self.rows)

    @property
    def false_candidate_rate(self) -> float:
        """Share of pairs that become candidates if their similarities are uniform between 0 and the threshold.

        Most pairs of a real corpus have almost nothing in common, so its own rate is far lower. The number serves to
        compare layouts.
        """
        return self.false_positive_area() / self.threshold

    def probability(self, similarity: Real) -> Real:
        """Return the probability that a pair of this similarity becomes a candidate; see `candidate_probability`.

        Args:
            similarity: Jaccard similarity of the pair, a number or an array, between 0 and 1.

        >>> print(f"{plan(0.8, 0.99).probability(0.5):.4f}")
        0.0968
        """
        return candidate_probability(similarity, self.bands, self.rows)

    def false_positive_area(self) -> float:
        """Return the area below the curve left of the threshold, ∫₀ᵗ P(s) ds: pairs compared in vain."""
        return float(_areas(self.threshold, np.array([self.bands]), self.rows, _nodes_for(self.slots))[0][0])

    def false_negative_area(self) -> float:
        """Return the area above the curve right of the threshold, ∫ₜ¹ (1 − P(s)) ds: missed pairs."""
        return float(_areas(self.threshold, np.array([self.bands]), self.rows, _nodes_for(self.slots))[1][0])

    def table(self, step: float = 0.05) -> list[CurvePoint]:
        """Return the S-curve as points from similarity 0 to 1; the last point is always at 1.

        Args:
            step: Difference between the similarities of two points, at least 0.0001 and at most 1.

        >>> [f"{point.probability:.4f}" for point in plan(0.8, 0.99).table(step=0.25)]
        ['0.0000', '0.0004', '0.0968', '0.9356', '1.0000']
        """
        step = _check_share("step", step, one_allowed=True)
        if step < MIN_STEP:
            raise ConfigError(f"step must be at least {MIN_STEP}, got {show(step)}")
        # Rounding to twelve digits turns 3·0.05 = 0.15000000000000002 into 0.15 and avoids a last step just below 1.
        inner = [round(number * step, 12) for number in range(math.ceil(round(1 / step, 9)))]
        return [CurvePoint(similarity, self.probability(similarity)) for similarity in (*inner, 1.0)]

    def to_dict(self) -> dict[str, Any]:
        """Return every number of the plan by name, ready for JSON; computed ones with ten significant digits.

        The last digits of NumPy's powers, logarithms and sums differ between processors; a report must not.
        """
        return {
            "threshold": self.threshold,
            "wanted_recall": self.wanted_recall,
            "recall": _round(self.recall),
            "bands": self.bands,
            "rows": self.rows,
            "slots": self.slots,
            "steepest": _round(self.steepest),
            "false_positive_area": _round(self.false_positive_area()),
            "false_negative_area": _round(self.false_negative_area()),
            "false_candidate_rate": _round(self.false_candidate_rate),
        }

    def plot(self, path: str | PathLike[str]) -> None:
        """Write the S-curve with both error areas to an SVG file, atomically.

        Args:
            path: The file, ending in ``.svg``; an existing file is replaced.

        Raises:
            ConfigError: If the path has another ending.
        """
        if not fspath(path).lower().endswith(".svg"):
            raise ConfigError(f"plot must be a file that ends in .svg, got {show(fspath(path))}")
        from minwise.sketches.s_curve import write_curve  # imported here because few callers draw

        write_curve(self, path)

    def __str__(self) -> str:
        return (
            f"{self.layout} ({_pluralize(self.slots, 'slot')}): recall {self.recall:.4f} at threshold "
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
    """Return the strictest layout that finds a pair at the threshold with the requested recall.

    Of all layouts with b·r ≤ slots and P(threshold) ≥ recall it is the one with the most rows, and of these the one
    with the fewest bands. The recall of pairs above the threshold is higher.

    Args:
        threshold: Minimum similarity of a pair to be found, above 0 and at most 1. Default: 0.8.
        recall: Minimum probability that a pair at the threshold becomes a candidate, between 0 and 1. Default: 0.99.
        slots: Maximum number of slots. Default: 256.
        bands: Number of bands of a fixed layout; ``recall`` and ``slots`` are then ignored. Requires ``rows``.
        rows: Slots per band of a fixed layout. Requires ``bands``.

    Raises:
        ConfigError: If ``slots`` are too few for the recall; the message contains the recall they reach and the
            number of slots that would suffice.

    >>> print(plan(threshold=0.7, recall=0.99))
    37 bands × 6 rows (222 slots): recall 0.9903 at threshold 0.7, steepest near 0.55
    """
    threshold = _check_share("threshold", threshold, one_allowed=True)
    recall = _check_share("recall", recall)
    slots = check_integer("slots", slots, 1, _kernel.MAX_SLOTS)
    if bands is not None and rows is not None:
        return Plan(threshold=threshold, bands=bands, rows=rows)
    if bands is not None or rows is not None:
        lone = f"rows {show(rows)} without bands" if bands is None else f"bands {show(bands)} without rows"
        raise ConfigError(f"bands and rows must be given together, got {lone}; give both or neither")
    probable = _probable_rows(threshold, recall, slots)
    strictest = next((rows for rows in probable if _curve(threshold, slots // rows, rows) >= recall), None)
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
    """Return the layout with the smallest weighted sum of false positive and false negative area.

    Other tools choose a layout this way. Of equally good layouts it is the one with the fewest slots. The areas are
    those of `Plan`. The steep part of the curve is then at the threshold, so about half of the pairs there are missed;
    use `plan` where that matters. All layouts are tried: 0.04 s with 256 slots, a few seconds with 16,384.

    Args:
        threshold: Minimum similarity of a pair to be found, above 0 and at most 1. Default: 0.8.
        slots: Maximum number of slots. Default: 256.
        false_positive_weight: Cost per unit of area below the curve left of the threshold, at least 0. Default: 0.5.
        false_negative_weight: Cost per unit of area above the curve right of the threshold, at least 0. Default: 0.5.

    Raises:
        ConfigError: If an argument is out of range or both weights are 0.

    >>> print(plan_by_area(threshold=0.7))
    25 bands × 10 rows (250 slots): recall 0.5115 at threshold 0.7, steepest near 0.72
    """
    threshold = _check_share("threshold", threshold, one_allowed=True)
    slots = check_integer("slots", slots, 1, _kernel.MAX_SLOTS)
    positive = _check_weight("false_positive_weight", false_positive_weight)
    negative = _check_weight("false_negative_weight", false_negative_weight)
    if positive == negative == 0:
        raise ConfigError("false_positive_weight and false_negative_weight must not both be 0, got 0 and 0")
    best = (math.inf, 0, 0, 0)
    for rows in range(1, slots + 1):
        bands = np.arange(1, slots // rows + 1)
        below, above = _areas(threshold, bands, rows, _nodes_for(slots))
        cost = positive * below + negative * above
        cheapest = int(np.argmin(cost))  # the first minimum, which has the fewest bands
        best = min(best, (float(cost[cheapest]), rows * (cheapest + 1), cheapest + 1, rows))
    return Plan(threshold=threshold, bands=best[2], rows=best[3])


def candidate_probability(similarity: Real, bands: int, rows: int) -> Real:
    """Return the S-curve 1 − (1 − sʳ)ᵇ: the probability that a pair of similarity s agrees in at least one band.

    It is computed with ``log1p`` and ``expm1``, because the plain formula loses every digit near s = 0 (s = 0.001,
    r = 6 gives 0 instead of b·10⁻¹⁸).

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
    """Return (1/b)^(1/r), the approximate similarity at which the S-curve is steepest.

    At that point the probability is about 1 − 1/e ≈ 0.63, not one half.

    Args:
        bands: Number of bands, ``b``.
        rows: Slots per band, ``r``.

    >>> round(approximate_threshold(bands=10, rows=5), 3)
    0.631
    """
    _check_layout(bands, rows)
    return float((1 / bands) ** (1 / rows))


def band_slices(bands: int, rows: int) -> list[slice]:
    """Return the slots of each band: band i has slots i·r … i·r + r − 1.

    Args:
        bands: Number of bands, ``b``.
        rows: Slots per band, ``r``.

    >>> band_slices(bands=2, rows=3)
    [slice(0, 3, None), slice(3, 6, None)]
    """
    _check_layout(bands, rows)
    return [slice(band * rows, (band + 1) * rows) for band in range(bands)]


def _curve(similarity: float | Floats, bands: int | NDArray[np.int64], rows: int | NDArray[np.int64]) -> Floats:
    """Return the S-curve without checks; shared, so that `plan` and `Plan.recall` compute the same bits."""
    with np.errstate(divide="ignore"):  # s = 1: log1p(-1) is -inf and 1 - exp(-inf) is correct
        curve: Floats = -np.expm1(bands * np.log1p(-np.power(similarity, rows)))
    return np.abs(curve)  # s = 0 gives minus zero


def _probable_rows(threshold: float, recall: float, slots: int) -> list[int]:
    """Return every number of rows that reaches the recall, and hardly any other, in descending order.

    All are computed at once: one by one, 16,384 slots take 130 ms. Arrays and single numbers differ by some units in
    the last place, so the caller computes each number again.
    """
    rows = np.arange(slots, 0, -1)
    probable: list[int] = rows[_curve(threshold, slots // rows, rows) >= recall - CURVE_ERROR].tolist()
    return probable


def _fewest_bands(threshold: float, recall: float, rows: int) -> int:
    """Return the smallest number of bands that reaches the recall; `_kernel.MAX_SLOTS` + 1 if none does."""
    numbers = range(1, _kernel.MAX_SLOTS + 1)
    return bisect_left(numbers, recall, key=lambda bands: float(_curve(threshold, bands, rows))) + 1


def _unreachable(threshold: float, recall: float, slots: int) -> str:
    """Return the error message for a recall that is too high; bands of one row reach the highest recall."""
    from decimal import ROUND_FLOOR, Context  # imported here to keep `import minwise` fast

    best = Context(prec=4, rounding=ROUND_FLOOR).create_decimal(float(_curve(threshold, slots, 1)))
    needed = _fewest_bands(threshold, recall, 1)
    most = _kernel.MAX_SLOTS
    remedy = f"at least {needed} slots reach it" if needed <= most else f"not even {most} slots, the most, reach it"
    limit = f"at most {best} at threshold {show(threshold)} with {_pluralize(slots, 'slot')}"
    return f"recall must be {limit}, got {show(recall)}: {remedy}"


def _round(number: float) -> float:
    """Round to the significant digits that are equal on every processor."""
    return float(f"{number:.{REPORT_DIGITS}g}")


def _pluralize(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _areas(threshold: float, bands: NDArray[np.int64], rows: int, nodes: int) -> tuple[Floats, Floats]:
    """Return the false positive and false negative area for each number of bands.

    Gauss's rule is applied on either side of the threshold. Every term is positive, so even the smallest area keeps
    its digits.
    """
    points, weights = _gauss_rule(nodes)
    below = np.log1p(-np.power(threshold * points, rows))
    above = np.log1p(-np.power(threshold + (1 - threshold) * points, rows)) if threshold < 1 else np.zeros(nodes)
    accepted = -np.expm1(np.multiply.outer(bands, below))
    missed = np.exp(np.multiply.outer(bands, above))
    return threshold * (accepted @ weights), (1 - threshold) * (missed @ weights)


def _nodes_for(slots: int) -> int:
    """Return the number of nodes that is exact for polynomials of degree ``slots``."""
    return min(slots // 2 + 1, MAX_NODES)


@lru_cache(maxsize=MAX_NODES)  # all of them: one takes up to 10 ms, and 8 KB
def _gauss_rule(nodes: int) -> tuple[Floats, Floats]:
    """Return the points and weights of the Gauss-Legendre rule on [0, 1].

    Newton's method from the asymptotic roots takes a fortieth of the time of NumPy's ``leggauss``, which computes the
    eigenvalues of a matrix; a client of the server chooses the number of nodes.
    """
    points = -np.cos(np.pi * (np.arange(nodes) + 0.75) / (nodes + 0.5))
    for _ in range(NEWTON_STEPS):
        value, slope = _legendre(nodes, points)
        points -= value / slope
    points = (points - points[::-1]) / 2  # symmetric, as the roots are
    weights = 1 / ((1 - points) * (1 + points) * _legendre(nodes, points)[1] ** 2)
    return (points + 1) / 2, weights / weights.sum()


def _legendre(degree: int, points: Floats) -> tuple[Floats, Floats]:
    """Return the Legendre polynomial of a degree, and its derivative."""
    before, value = np.ones_like(points), points.copy()
    for n in range(1, degree):
        before, value = value, ((2 * n + 1) * points * value - n * before) / (n + 1)
    return value, degree * (before - points * value) / ((1 - points) * (1 + points))


def _check_layout(bands: int, rows: int) -> None:
    for name, value in (("bands", bands), ("rows", rows)):
        if value < 1:
            raise ConfigError(f"{name} must be at least 1, got {show(value)}")


def _check_share(name: str, value: object, *, one_allowed: bool = False) -> float:
    """Return a number above 0 and below 1, or at most 1 if ``one_allowed``; NumPy scalars become plain ones."""
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
    """Return the value as a float; nan if it is not a number. A ``bool`` is not a number."""
    if isinstance(value, bool) or not isinstance(value, RealNumber):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # an integer larger than any float
        return math.inf
