"""Boolean matrices, explicit permutations, bins and universal hash functions."""

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minwise import reference as ref
from minwise.errors import ConfigError

small_sets = st.frozensets(st.integers(0, 5))


def test_matrix_of_sets() -> None:
    """Rows are in order of first occurrence."""
    matrix = ref.boolean_matrix([["x", "y"], ["y", "z"], []])
    assert matrix.rows == ("x", "y", "z")
    assert matrix.cells.astype(int).tolist() == [[1, 0, 0], [1, 1, 0], [0, 1, 0]]


@given(left=small_sets, right=small_sets)
def test_row_counts_are_set_sizes(left: frozenset[int], right: frozenset[int]) -> None:
    """a, b, c and d are |X∩Y|, |X∖Y|, |Y∖X| and the rest."""
    cells = ref.boolean_matrix([left, right], rows=range(6)).cells
    counts = ref.count_row_types(cells[:, 0], cells[:, 1])
    assert counts == (len(left & right), len(left - right), len(right - left), 6 - len(left | right))
    expected = len(left & right) / len(left | right) if left | right else 0
    assert ref.column_similarity(cells[:, 0], cells[:, 1]) == expected


@pytest.mark.parametrize(("left", "right"), [({0, 1, 2}, {1, 2, 3}), ({0}, {0, 4}), ({0, 1}, {2, 3})])
def test_agreement_over_all_permutations_is_the_similarity(left: set[int], right: set[int]) -> None:
    """Exactly, over all 120 permutations of five rows."""
    cells = ref.boolean_matrix([left, right], rows=range(5)).cells
    signature = ref.permutation_signature(cells, itertools.permutations(range(5)))
    agreed = sum(x == y for x, y in signature)
    assert Fraction(agreed, 120) == Fraction(len(left & right), len(left | right))


def test_order_and_position_are_inverse_views() -> None:
    """The first row in the order is the row with the smallest position."""
    cells = ref.boolean_matrix([{0, 3}, {2}, set()], rows=range(4)).cells
    order = [2, 0, 3, 1]
    positions = [order.index(row) for row in range(4)]
    by_order = [None if row is None else positions[row] for row in ref.minhash_by_order(cells, order)]
    assert by_order == ref.minhash_by_position(cells, positions) == [1, 0, None]


@pytest.mark.parametrize(("left", "right"), [({0, 1, 2}, {1, 2, 3}), ({0, 1}, {1, 4}), ({5}, {5})])
def test_one_permutation_estimate_is_unbiased(left: set[int], right: set[int]) -> None:
    """Exactly, over all 720 permutations of six members in three bins, which are never all empty."""
    total = Fraction(0)
    for positions in itertools.permutations(range(6)):
        bins = [ref.one_permutation_bins((positions[x] for x in members), 6, 3) for members in (left, right)]
        total += Fraction(ref.one_permutation_estimate(*bins)).limit_denominator(3)
    assert total / 720 == Fraction(len(left & right), len(left | right))


def test_one_pass_equals_the_permutation_it_computes() -> None:
    """(2x + 1) mod 5 permutes five rows, so the one-pass algorithm equals the explicit permutation."""
    sets = [{0, 3}, {2}, {1, 3, 4}]
    function = ref.UniversalHash(a=2, b=1, prime=7, buckets=5)
    positions = [(2 * x + 1) % 5 for x in range(5)]
    rows = ref.rows_from_columns(sets)
    signature = ref.one_pass_signature(rows, 3, [lambda x: positions[x]])
    assert [slot for (slot,) in signature] == ref.minhash_by_position(
        ref.boolean_matrix(sets, rows=range(5)).cells, positions
    )
    assert [function(x) for x in range(5)] == [1, 3, 0, 0, 2]


def test_one_pass_does_not_depend_on_the_row_order() -> None:
    rows = ref.rows_from_columns([{0, 3}, {2}, {1, 3, 4}])
    functions = ref.draw_universal_hashes(6, rows=5, seed=2)
    assert ref.one_pass_signature(rows, 3, functions) == ref.one_pass_signature(rows[::-1], 3, functions)


def test_empty_columns_stay_at_infinity() -> None:
    assert ref.one_pass_signature([], 2, [abs]) == [[float("inf")], [float("inf")]]


def test_universal_functions_are_exact_beyond_64_bits() -> None:
    """The product has 122 bits."""
    prime = 2**61 - 1
    function = ref.UniversalHash(a=prime - 1, b=prime - 1, prime=prime, buckets=2**60)
    assert function(prime - 1) == 0
    assert function(2) == (prime - 3) % 2**60


def test_universal_family_has_the_collision_probability_of_theory() -> None:
    """Two rows collide in at most 1/N of all functions of the family (Carter & Wegman, 1979)."""
    prime, buckets = 11, 5
    family = [ref.UniversalHash(a=a, b=b, prime=prime, buckets=buckets) for a in range(1, prime) for b in range(prime)]
    for x, y in itertools.combinations(range(prime), 2):
        assert sum(function(x) == function(y) for function in family) <= len(family) / buckets


def test_primes_below_ten_thousand() -> None:
    """Compared with a sieve."""
    sieve = [True] * 10_000
    for number in range(2, 100):
        for multiple in range(number * number, 10_000, number):
            sieve[multiple] = False
    assert [number for number in range(10_000) if ref.is_prime(number)] == [n for n in range(2, 10_000) if sieve[n]]


@pytest.mark.parametrize("number", [561, 3_215_031_751, 341_550_071_728_321, 3_825_123_056_546_413_051])
def test_pseudoprimes_are_not_prime(number: int) -> None:
    """A Carmichael number and strong pseudoprimes to the first 4, 7 and 9 prime bases."""
    assert not ref.is_prime(number)


def test_large_primes_are_found() -> None:
    """A Mersenne prime, and the largest prime below 2⁶⁴."""
    assert ref.is_prime(2**61 - 1)
    assert ref.is_prime(18_446_744_073_709_551_557)


@pytest.mark.parametrize(
    ("a", "b", "prime", "buckets", "message"),
    [
        (1, 0, 5, 5, "prime above 5, got 5"),
        (1, 0, 9, 5, "prime above 5, got 9"),
        (0, 0, 7, 5, "a must be in"),
        (1, 7, 7, 5, "a must be in"),
        (1, 0, 7, 0, "buckets must be at least 1"),
    ],
)
def test_functions_that_are_not_universal_are_refused(a: int, b: int, prime: int, buckets: int, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ref.UniversalHash(a=a, b=b, prime=prime, buckets=buckets)


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(ConfigError, match="same rows, got 2 and 3"):
        ref.count_row_types([0, 1], [0, 1, 1])
    with pytest.raises(ConfigError, match="one dimension"):
        ref.count_row_types([[0]], [[1]])
    with pytest.raises(ConfigError, match="two dimensions"):
        ref.minhash_by_position([0, 1], [0, 1])
    with pytest.raises(ConfigError, match="each of"):
        ref.minhash_by_position([[0], [1]], [1, 1])
    with pytest.raises(ConfigError, match="same number of slots"):
        ref.agreement([1], [1, 2])
    with pytest.raises(ConfigError, match="multiple of bins, got 10 and 4"):
        ref.one_permutation_bins([1], 10, 4)
    with pytest.raises(ConfigError, match="outside"):
        ref.one_permutation_bins([16], 16, 4)
