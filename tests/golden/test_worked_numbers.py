"""Published worked numbers, one test each.

The numbers come from lectures and a report on shingling, minhashing, locality-sensitive hashing, b-bit minwise
hashing and one permutation hashing. Where a source has a misprint, the test has the correct value and says so.
"""

import math
from collections import Counter
from string import ascii_lowercase

import numpy as np
import pytest

import minwise as mw
from minwise import reference
from minwise.sketches import OnePermutation, hamming, jaccard_distance, row_counts
from minwise.sketches import estimates as estimate
from minwise.sketches.planning import approximate_threshold, band_slices, candidate_probability

INF = math.inf

# Rows of the matrix of C7; its four columns are the sets.
SEVEN_ROWS = [[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1], [1, 0, 1, 0], [1, 0, 1, 0]]


def binomial_fourth_moment(probability: float, trials: int) -> float:
    """Return E[(p̂ − p)⁴] of a share p̂ of independent trials: pq(1 + 3(n−2)pq)/n³."""
    pq = probability * (1 - probability)
    return pq * (1 + 3 * (trials - 2) * pq) / trials**3


def test_c01_three_shared_of_eight() -> None:
    """3 in the intersection, 8 in the union."""
    left, right = set("abcde"), set("cdefgh")
    assert (len(left & right), len(left | right)) == (3, 8)
    assert mw.jaccard(left, right) == 3 / 8
    assert jaccard_distance(left, right) == 5 / 8


def test_c02_bit_vectors() -> None:
    """10111 and 10011 share 3 of 4."""
    counts = row_counts([1, 0, 1, 1, 1], [1, 0, 0, 1, 1])
    assert counts == (3, 1, 0, 1)
    left, right = {0, 2, 3, 4}, {0, 3, 4}
    assert (len(left & right), len(left | right)) == (3, 4)
    assert mw.jaccard(left, right) == 3 / 4
    assert jaccard_distance(left, right) == 1 / 4


@pytest.mark.parametrize("rows", [["01", "10", "11", "00", "11", "01"], ["11", "01", "10", "00", "11", "10"]])
def test_c03_four_row_types(rows: list[str]) -> None:
    """Rows of type a, b and c decide: 2 of 5 in both examples."""
    left, right = ([int(row[column]) for row in rows] for column in (0, 1))
    counts = row_counts(left, right)
    assert counts.a == 2
    assert counts.a + counts.b + counts.c == 5
    assert reference.count_row_types(left, right) == tuple(counts)
    assert reference.column_similarity(left, right) == 0.4


def test_c04_seven_by_four_matrix() -> None:
    """The first two columns agree in 3 of 6 rows."""
    rows = ["1110", "1101", "0101", "0001", "1001", "1110", "1010"]
    cells = np.array([[int(cell) for cell in row] for row in rows])
    counts = row_counts(cells[:, 0], cells[:, 1])
    assert (counts.a, counts.a + counts.b + counts.c) == (3, 6)
    assert reference.column_similarity(cells[:, 0], cells[:, 1]) == 3 / 6


def test_c05_minhash_by_row_order() -> None:
    """In the order b, e, a, d, c the first ones are in rows a, c, b, a."""
    cells = [[1, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 1], [0, 0, 1, 0]]
    order = [ascii_lowercase.index(row) for row in "beadc"]
    found = reference.minhash_by_order(cells, order)
    assert [ascii_lowercase[row] for row in found if row is not None] == ["a", "c", "b", "a"]


def test_c06_minhash_by_mapping() -> None:
    """Positions 4, 1, 5, 3, 2 give 3, 1, 2."""
    matrix = reference.boolean_matrix([{1, 4}, {2, 3, 4}, {3, 5}], rows=[1, 2, 3, 4, 5])
    assert reference.minhash_by_position(matrix.cells, [4, 1, 5, 3, 2]) == [3, 1, 2]


def test_c07_signature_matrix() -> None:
    """Three permutations, twice; similarities of columns and of signatures."""
    first = [[1, 3, 7, 6, 2, 5, 4], [4, 2, 1, 3, 6, 7, 5], [3, 4, 7, 6, 1, 2, 5]]
    second = [[2, 3, 7, 6, 1, 5, 4], [4, 2, 1, 3, 6, 7, 5], [3, 4, 7, 2, 6, 1, 5]]
    assert reference.permutation_signature(SEVEN_ROWS, first) == [[1, 2, 1, 2], [2, 1, 4, 1], [2, 1, 2, 1]]
    signature = reference.permutation_signature(SEVEN_ROWS, second)
    assert signature == [[2, 1, 2, 1], [2, 1, 4, 1], [1, 2, 1, 2]]
    columns, slots = np.array(SEVEN_ROWS).T, list(zip(*signature, strict=True))
    pairs = [(0, 2), (1, 3), (0, 1), (2, 3)]
    assert [reference.column_similarity(columns[i], columns[j]) for i, j in pairs] == [0.75, 0.75, 0, 0]
    assert [reference.agreement(slots[i], slots[j]) for i, j in pairs] == [2 / 3, 1, 0, 0]


def test_c08_one_pass_trace() -> None:
    """Two functions over five rows, slot by slot."""
    rows = reference.rows_from_columns([{1, 3, 4}, {2, 3, 5}])
    steps = list(reference.trace_one_pass(rows, 2, [lambda x: x % 5, lambda x: (2 * x + 1) % 5]))
    assert steps == [
        [[1, 3], [INF, INF]],
        [[1, 3], [2, 0]],
        [[1, 2], [2, 0]],
        [[1, 2], [2, 0]],
        [[1, 2], [0, 0]],
    ]


def test_c09_one_pass_signature() -> None:
    """Two functions over four sets."""
    rows = reference.rows_from_columns([{0, 3}, {2}, {1, 3, 4}, {0, 2, 3}])
    functions = [lambda x: (x + 1) % 5, lambda x: (3 * x + 1) % 5]
    assert reference.one_pass_signature(rows, 4, functions) == [[1, 0], [3, 2], [0, 0], [1, 0]]


def test_c10_shingles_as_set_and_bag() -> None:
    """The shingle ab occurs twice: three elements as a set, four as a bag."""
    assert Counter(reference.shingle_strings("abcab", "char:2")) == {"ab": 2, "bc": 1, "ca": 1}
    as_set = mw.Shingler("char:2").shingle(["abcab"])[0]
    as_bag = mw.Shingler("char:2", bag=True).shingle(["abcab"])[0]
    assert (len(as_set), len(as_bag)) == (3, 4)
    assert set(as_set.tolist()) < set(as_bag.tolist())


def test_c11_trelemorele() -> None:
    """Ten positions, seven different shingles."""
    expected = {"tr", "re", "el", "le", "em", "mo", "or"}
    assert set(reference.shingle_strings("trelemorele", "char:2")) == expected
    assert len(mw.Shingler("char:2").shingle(["trelemorele"])[0]) == len(expected)


def test_c12_moving_a_word_changes_the_shingles_around_it() -> None:
    """Three shingles are lost and three gained."""
    texts = ["ala ma kota", "ma kota ala"]
    before, after = (set(reference.shingle_strings(text, "char:3")) for text in texts)
    assert before - after == {"la ", "a m", " ma"}
    assert after - before == {"ta ", "a a", " al"}
    sets = mw.Shingler("char:3").shingle(texts)
    assert hamming(sets[0].tolist(), sets[1].tolist()) == 6


def test_c13_count_of_word_shingles() -> None:
    """A text of n tokens has n + 1 − k shingles."""
    text = "the little dog loughed to see such craft"
    assert len(reference.tokens(text)) == 8
    assert len(reference.shingle_strings(text, "word:2")) == 7
    assert len(mw.Shingler("word:2").shingle([text])[0]) == 7
    for size in range(1, 9):
        assert len(mw.Shingler(f"word:{size}").spans(text).hashes) == 8 + 1 - size


def test_c14_resemblance_of_toy_pages() -> None:
    """One shingle of three is shared."""
    texts = ["u v u v", "w v u"]
    left, right = (set(reference.shingle_strings(text, "word:2")) for text in texts)
    assert (left, right) == ({"u v", "v u"}, {"w v", "v u"})
    assert mw.jaccard(left, right) == 1 / 3
    sets = mw.Shingler("word:2").shingle(texts)
    assert mw.jaccard(sets[0].tolist(), sets[1].tolist()) == 1 / 3


def test_c15_s_curve_of_twenty_bands_of_five() -> None:
    """The table of the curve at b = 20, r = 5."""
    curve = candidate_probability(np.array([0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]), bands=20, rows=5)
    assert curve[:-1].round(3).tolist() == [0.006, 0.047, 0.186, 0.470, 0.802, 0.975]
    assert curve[-1].round(4) == 0.9996


def test_c16_one_band_and_all_twenty() -> None:
    """The lectures print 0.00035, 99.965 % and 0.0474: truncated, not rounded."""

    def one_band(similarity: float) -> float:
        return candidate_probability(similarity, bands=1, rows=5)

    def twenty_bands(similarity: float) -> float:
        return candidate_probability(similarity, bands=20, rows=5)

    assert [round(float(one_band(s)), 5) for s in (0.8, 0.3, 0.4)] == [0.32768, 0.00243, 0.01024]
    missed = 1 - twenty_bands(0.8)
    assert round(missed, 6) == 0.000356
    assert round(1 / missed, -3) == 3000
    assert round(100 * twenty_bands(0.8), 4) == 99.9644
    assert round(twenty_bands(0.3), 5) == 0.04749


def test_c17_ten_bands_of_five() -> None:
    """The curve at b = 10, r = 5, its threshold, and the layout of 4 bands of 3 rows."""
    curve = candidate_probability(np.array([0.5, 0.6, 0.8]), bands=10, rows=5)
    assert curve.round(3).tolist() == [0.272, 0.555, 0.981]
    assert round(approximate_threshold(bands=10, rows=5), 3) == 0.631
    assert sum(len(range(50)[band]) for band in band_slices(bands=10, rows=5)) == 50
    layout = [list(range(12))[band] for band in band_slices(bands=4, rows=3)]
    assert layout == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]


def test_c18_bytes_pairs_and_days() -> None:
    """'About' in the sources means one digit, and n(n−1)/2 is within 1/n of n²/2."""
    assert reference.signature_bytes(documents=100_000, slots=100, slot_bytes=4) == 40 * 10**6
    assert reference.pair_count(100_000) == pytest.approx(5e9, rel=1e-5)
    assert reference.pair_count(10**6) == pytest.approx(5e11, rel=1e-6)
    assert reference.comparison_days(10**6, 1e6, seconds_per_day=1e5) == pytest.approx(5, rel=1e-6)
    assert reference.comparison_days(10**7, 1e6, seconds_per_day=1e5) > 365
    assert reference.false_candidates(10**12, 0.006 + 0.001) == pytest.approx(7e9, rel=1e-12)
    assert reference.permutation_bytes(10**9) == 4 * 10**9


def test_c19_slots_for_an_error() -> None:
    """One lecture prints 20 for the middle one: it omits the square root of σ ≤ 1/(2√k)."""
    assert estimate.slots_for() == 400
    found = [estimate.slots_for(error=0.05, confidence=confidence) for confidence in (0.90, 0.95, 0.99)]
    assert found == [289, 400, 676]


def test_c20_one_bit_costs_three_times_the_variance() -> None:
    """One bit at R = 0.5 compared with 64-bit samples: 64/3 times less storage."""
    c1, c2 = (float(constant) for constant in estimate.bbit_constants(1000, 1000, None, bits=1))
    probability = estimate.bbit_collision_probability(0.5, c1, c2)
    assert probability == 0.75
    growth = estimate.bbit_variance(0.5, 100, c1, c2) / estimate.minhash_variance(0.5, 100)
    assert growth == (probability * (1 - probability) / (1 / 4)) / (0.5 * 0.5) == 3
    assert round(64 / growth, 1) == 21.3


def test_c21_one_permutation_of_sixteen() -> None:
    """D = 16 in four bins; X and Y match in one of three."""
    x, y, z = (reference.one_permutation_bins(s, 16, 4) for s in ({2, 4, 7, 13}, {0, 3, 6, 13}, {0, 1, 10, 12}))
    assert x == [2, 0, None, 1]
    assert y == [0, 2, None, 1]
    assert z == [0, None, 2, 0]
    assert sum(left is None and right is None for left, right in zip(x, y, strict=True)) == 1
    assert sum(left is not None and left == right for left, right in zip(x, y, strict=True)) == 1
    assert reference.one_permutation_estimate(x, y) == 1 / 3


def test_c22_approximation_error_of_b_bits_in_a_small_universe() -> None:
    """The report says below 0.01 at D = 20; exact counting shows that this holds for most sizes, not for all."""
    worst = {bits: reference.worst_approximation_error(20, bits) for bits in (1, 2, 3, 4)}
    assert round(worst[1][0], 4) == 0.0152
    assert max(error for error, _ in worst.values()) == worst[2][0]
    assert round(worst[2][0], 4) == 0.0206
    assert worst[2][1] == (1, 1, 0)
    errors = [np.abs(reference.approximation_error(20, bits)) for bits in (1, 2, 3, 4)]
    below = [np.nanmean(np.where(np.isnan(error), np.nan, error < 0.01)) for error in errors]
    assert min(below) > 0.5
    assert round(max(reference.worst_approximation_error(50, bits)[0] for bits in (1, 2, 3, 4)), 4) == 0.0094


def test_c23_one_permutation_is_as_good_as_k() -> None:
    """By theory at least as good; both measured mean squared errors are those of theory.

    The bound: for n independent pairs the mean of (R̂−R)² has a standard error of at most √(μ₄/n). μ₄ is that of the
    binomial with k trials for k functions, and at most that of the binomial with m trials for one permutation with m
    occupied bins (sampling without replacement is never worse for a convex function: Hoeffding, 1963, theorem 4). By
    Chebyshev each mean is within 10 standard errors with probability 0.99; the seed is fixed.
    """
    for jaccard in (0.1, 0.5, 0.9):
        for size, union in ((16, 20), (64, 200), (256, 300), (256, 10**6)):
            by_one = estimate.one_permutation_variance(jaccard, bins=size, union_size=union)
            assert by_one <= estimate.minhash_variance(jaccard, slots=size)

    pairs, slots, jaccard, union = 2000, 64, 0.5, 200
    bases = range(0, 1000 * pairs, 1000)
    sets = mw.ShingleSets.from_sets([range(base + 50 * i, base + 50 * i + 150) for base in bases for i in (0, 1)])
    indices = np.arange(2 * pairs).reshape(pairs, 2)

    def squared_error(scheme: OnePermutation | mw.MinHash) -> float:
        return float(np.mean((scheme.sketch(sets).estimate_many(indices).value - jaccard) ** 2))

    by_one, by_many = squared_error(OnePermutation(bins=slots)), squared_error(mw.MinHash(slots=slots))
    fewest = slots // 2  # 200 members leave 32 or more of 64 bins empty with probability below C(64, 32)·2⁻²⁰⁰
    bound_one = 10 * math.sqrt(binomial_fourth_moment(jaccard, fewest) / pairs)
    bound_many = 10 * math.sqrt(binomial_fourth_moment(jaccard, slots) / pairs)
    assert abs(by_one - estimate.one_permutation_variance(jaccard, bins=slots, union_size=union)) < bound_one
    assert abs(by_many - estimate.minhash_variance(jaccard, slots=slots)) < bound_many
    assert by_one < by_many
