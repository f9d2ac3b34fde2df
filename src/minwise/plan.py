"""Plan: a similarity in, the chance that banding proposes the pair out.

A signature of m = b·r slots is cut into b bands of r slots. Two documents become a candidate pair when at least one
band agrees in all of its slots (Leskovec, Rajaraman & Ullman, *Mining of Massive Datasets*, section 3.4).
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from minwise.config import show
from minwise.errors import ConfigError

__all__ = ["approximate_threshold", "band_slices", "candidate_probability"]

Real = TypeVar("Real", float, NDArray[np.float64])


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
    if np.any(np.asarray(similarity) < 0) or np.any(np.asarray(similarity) > 1):
        raise ConfigError(f"similarity must be between 0 and 1, got {show(similarity)}")
    with np.errstate(divide="ignore"):  # s = 1: log1p(-1) is -inf, and 1 - exp(-inf) is the right answer
        curve: Real = -np.expm1(bands * np.log1p(-(similarity**rows)))
    return curve


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


def _check_layout(bands: int, rows: int) -> None:
    for name, value in (("bands", bands), ("rows", rows)):
        if value < 1:
            raise ConfigError(f"{name} must be at least 1, got {show(value)}")
