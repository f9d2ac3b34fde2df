"""How far chance may carry a result: every bound of this folder, with the one failure probability they share.

Seeds are fixed, so a test either always passes or always fails; ``FAILURE`` is how likely a right implementation would
have been given a bad seed. With some 1,500 assertions that is 1.5 in 1,000 for the whole folder.
"""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FAILURE = 1e-6
# Two-sided normal quantile of FAILURE, 4.89: central limit theorem, for means of thousands of bounded numbers.
QUANTILE = NormalDist().inv_cdf(1 - FAILURE / 2)


def standard_error(values: Floats) -> float:
    """Standard error of the mean of independent values, from their own spread."""
    return float(np.std(values, ddof=1)) / math.sqrt(values.size)


def assert_mean(values: Floats, expected: float, slack: float = 0.0) -> None:
    """The mean is the expected one within QUANTILE standard errors (central limit theorem), and a derived slack."""
    assert abs(float(values.mean()) - expected) <= QUANTILE * standard_error(values) + slack


def assert_mean_at_most(values: Floats, most: float) -> None:
    """The mean is not above this, within QUANTILE standard errors."""
    assert float(values.mean()) <= most + QUANTILE * standard_error(values)


def assert_share(hits: NDArray[np.bool_], expected: float) -> None:
    """The share of hits is the expected chance, within QUANTILE standard errors of a binomial share."""
    assert abs(float(hits.mean()) - expected) <= QUANTILE * math.sqrt(expected * (1 - expected) / hits.size)


def assert_uniform(cells: NDArray[np.integer], count: int) -> None:
    """Numbers 0 … count−1 come equally often: Pearson's statistic lies where χ² with count−1 degrees does.

    P[χ²_n ≥ n + 2√(nx) + 2x] ≤ e^−x and P[χ²_n ≤ n − 2√(nx)] ≤ e^−x (Laurent & Massart, 2000, lemma 1). The lower end
    is for values spread more evenly than chance would.
    """
    observed = np.bincount(cells.astype(np.int64), minlength=count)
    assert len(observed) == count
    expected = cells.size / count
    assert expected >= 100  # so that Pearson's statistic is close to χ²
    statistic, degrees, x = float(((observed - expected) ** 2).sum() / expected), count - 1, math.log(2 / FAILURE)
    assert statistic <= degrees + 2 * math.sqrt(degrees * x) + 2 * x
    assert statistic >= degrees - 2 * math.sqrt(degrees * x)
