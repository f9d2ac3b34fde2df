"""The S-curve and the layout of bands."""

import numpy as np
import pytest

from minwise.errors import ConfigError
from minwise.plan import approximate_threshold, band_slices, candidate_probability


def test_curve_runs_from_zero_to_one() -> None:
    """And never falls."""
    curve = candidate_probability(np.linspace(0, 1, 101), bands=16, rows=4)
    assert (curve[0], curve[-1]) == (0, 1)
    assert np.all(np.diff(curve) >= 0)


def test_curve_keeps_its_digits_near_zero() -> None:
    """b·sʳ is the first term of the curve, right to b·sʳ/2 of itself."""
    assert candidate_probability(0.001, bands=20, rows=6) == pytest.approx(20 * 1e-18, rel=1e-12)


def test_one_band_of_one_row_is_the_similarity() -> None:
    """The curve without amplification."""
    assert candidate_probability(0.37, bands=1, rows=1) == pytest.approx(0.37, rel=1e-15)


def test_threshold_lies_where_the_curve_is_near_its_middle() -> None:
    """At (1/b)^(1/r) the curve is 1 − (1 − 1/b)ᵇ, between 1 − 1/e and 3/4 for b ≥ 2."""
    for bands, rows in ((2, 8), (20, 5), (100, 2)):
        assert 1 - np.exp(-1) <= candidate_probability(approximate_threshold(bands, rows), bands, rows) <= 0.75 + 1e-12


def test_bands_cover_every_slot_once() -> None:
    """In order, without gap or overlap."""
    slots = list(range(35))
    assert [slot for band in band_slices(bands=7, rows=5) for slot in slots[band]] == slots


@pytest.mark.parametrize(("bands", "rows", "message"), [(0, 5, "bands must be at least 1, got 0"), (5, -1, "rows")])
def test_impossible_layouts_are_refused(bands: int, rows: int, message: str) -> None:
    """A band needs a row and a signature a band."""
    with pytest.raises(ConfigError, match=message):
        band_slices(bands, rows)


@pytest.mark.parametrize("similarity", [-0.1, 1.1])
def test_impossible_similarity_is_refused(similarity: float) -> None:
    """It is a share."""
    with pytest.raises(ConfigError, match="similarity must be between 0 and 1"):
        candidate_probability(similarity, bands=5, rows=4)
