"""Statistical bounds of the quality tests, with their common failure probability.

Seeds are fixed, so a test either always passes or always fails; ``FAILURE`` is the probability that a correct
implementation was given an unlucky seed. With about 1,500 assertions that is 1.5 in 1,000 for the whole folder.
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
    """Return the standard error of the mean of independent values, from their own variance."""
    return float(np.std(values, ddof=1)) / math.sqrt(values.size)


def assert_mean(values: Floats, expected: float, slack: float = 0.0) -> None:
    """Assert that the mean is as expected, within QUANTILE standard errors (central limit theorem) and the slack."""
    assert abs(float(values.mean()) - expected) <= QUANTILE * standard_error(values) + slack


def assert_mean_at_most(values: Floats, most: float) -> None:
    """Assert that the mean is at most this, within QUANTILE standard errors."""
    assert float(values.mean()) <= most + QUANTILE * standard_error(values)


def assert_share(hits: NDArray[np.bool_], expected: float) -> None:
    """Assert that the share of hits is as expected, within QUANTILE standard errors of a binomial share."""
    assert abs(float(hits.mean()) - expected) <= QUANTILE * math.sqrt(expected * (1 - expected) / hits.size)


def assert_uniform(cells: NDArray[np.integer], count: int) -> None:
    """Assert that the numbers 0 … count−1 are equally frequent, by Pearson's statistic with count−1 degrees of freedom.

    P[χ²_n ≥ n + 2√(nx) + 2x] ≤ e^−x and P[χ²_n ≤ n − 2√(nx)] ≤ e^−x (Laurent & Massart, 2000, lemma 1). The lower end
    is for values spread more evenly than by chance.
    """
    observed = np.bincount(cells.astype(np.int64), minlength=count)
    assert len(observed) == count
    expected = cells.size / count
    assert expected >= 100  # so that Pearson's statistic is close to χ²
    statistic, degrees, x = float(((observed - expected) ** 2).sum() / expected), count - 1, math.log(2 / FAILURE)
    assert statistic <= degrees + 2 * math.sqrt(degrees * x) + 2 * x
    assert statistic >= degrees - 2 * math.sqrt(degrees * x)
