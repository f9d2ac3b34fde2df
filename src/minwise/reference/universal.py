"""MinHash in one pass over the rows of a boolean matrix, with k universal hash functions, and a trace of it.

Permuting a long matrix is infeasible (see `permutation_bytes`), so k functions h(x) = ((a·x + b) mod p) mod N replace k
permutations. Slots start at ∞, and each row lowers the slots of the columns that are 1 in it (Carter & Wegman, 1979;
Leskovec, Rajaraman & Ullman, *Mining of Massive Datasets*, section 3.3). The arithmetic is exact, with Python integers;
with wrapping 64-bit words the same formula would be another function. The pipeline uses `reference.sketch` instead.
"""

import math
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from minwise.errors import ConfigError

__all__ = [
    "UniversalHash",
    "draw_universal_hashes",
    "is_prime",
    "one_pass_signature",
    "permutation_bytes",
    "rows_from_columns",
    "trace_one_pass",
]

Row = tuple[int, Sequence[int]]
Slots = list[list[float]]

# With these witnesses the test is exact below 3.3·10²⁴ (Sorenson & Webster, 2017).
WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)
MAX_PRIME = 3_317_044_064_679_887_385_961_980


@dataclass(frozen=True, slots=True, kw_only=True)
class UniversalHash:
    """Hash function h(x) = ((a·x + b) mod p) mod N.

    Attributes:
        a: Multiplier, 1 … p − 1.
        b: Addend, 0 … p − 1.
        prime: A prime above N, p.
        buckets: Number of values, N; with fewer than the number of rows, some rows collide.

    >>> h = UniversalHash(a=3, b=1, prime=7, buckets=5)
    >>> [h(x) for x in range(5)]
    [1, 4, 0, 3, 1]
    """

    a: int
    b: int
    prime: int
    buckets: int

    def __post_init__(self) -> None:
        if self.buckets < 1:
            raise ConfigError(f"buckets must be at least 1, got {self.buckets}")
        if self.prime <= self.buckets or not is_prime(self.prime):
            raise ConfigError(f"prime must be a prime above {self.buckets}, got {self.prime}")
        if not 1 <= self.a < self.prime or not 0 <= self.b < self.prime:
            raise ConfigError(f"a must be in 1 … p−1 and b in 0 … p−1, got a={self.a}, b={self.b}, p={self.prime}")

    def __call__(self, x: int) -> int:
        """Return the hash of row number x."""
        return (self.a * x + self.b) % self.prime % self.buckets


def draw_universal_hashes(count: int, rows: int, seed: int = 1) -> list[UniversalHash]:
    """Return random universal functions for a matrix, with N = rows and p the first prime above it."""
    draw = random.Random(seed)
    prime = next(number for number in range(rows + 1, 2 * rows + 2) if is_prime(number))  # Bertrand's postulate
    return [
        UniversalHash(a=draw.randrange(1, prime), b=draw.randrange(prime), prime=prime, buckets=rows)
        for _ in range(count)
    ]


def rows_from_columns(columns: Iterable[Iterable[int]]) -> list[Row]:
    """Convert sets given by column to rows: (row, columns that are 1 in it), sorted by row.

    >>> rows_from_columns([{0, 3}, {2}, {1, 3, 4}])
    [(0, [0]), (1, [2]), (2, [1]), (3, [0, 2]), (4, [2])]
    """
    ones = sorted((row, number) for number, column in enumerate(columns) for row in set(column))
    return [(row, [number for _, number in group]) for row, group in groupby(ones, itemgetter(0))]


def one_pass_signature(rows: Iterable[Row], columns: int, functions: Sequence[Callable[[int], int]]) -> Slots:
    """Return the signature of each column, one slot per function; all slots of an empty column are ∞.

    Args:
        rows: Row numbers with the columns that are 1 in them, in any order, each row once.
        columns: Number of columns.
        functions: Hash functions of the row number, such as `UniversalHash`.

    >>> h, g = (lambda x: (x + 1) % 5), (lambda x: (3 * x + 1) % 5)
    >>> one_pass_signature(rows_from_columns([{0, 3}, {2}, {1, 3, 4}, {0, 2, 3}]), 4, [h, g])
    [[1, 0], [3, 2], [0, 0], [1, 0]]
    """
    last = deque(trace_one_pass(rows, columns, functions), maxlen=1)
    return last[0] if last else _unset(columns, functions)


def trace_one_pass(rows: Iterable[Row], columns: int, functions: Sequence[Callable[[int], int]]) -> Iterator[Slots]:
    """Yield the signatures after each row.

    Args:
        rows: Row numbers with the columns that are 1 in them, in any order, each row once.
        columns: Number of columns.
        functions: Hash functions of the row number, such as `UniversalHash`.
    """
    slots = _unset(columns, functions)
    for row, ones in rows:
        values = [function(row) for function in functions]
        for column in ones:
            slots[column] = [min(slot, value) for slot, value in zip(slots[column], values, strict=True)]
        yield [list(signature) for signature in slots]


def permutation_bytes(universe: int, item_bytes: int = 4) -> int:
    """Return the size of one explicit permutation of the universe, in bytes.

    >>> permutation_bytes(10**9)
    4000000000
    """
    return universe * item_bytes


def is_prime(number: int) -> bool:
    """Return whether a number is prime, by the test of Miller and Rabin with witnesses that make it exact.

    >>> [number for number in range(20) if is_prime(number)]
    [2, 3, 5, 7, 11, 13, 17, 19]
    """
    if number >= MAX_PRIME:
        raise ConfigError(f"prime must be below {MAX_PRIME}, got {number}")
    if number < 2 or any(number % small == 0 for small in WITNESSES):
        return number in WITNESSES
    return all(_passes(number, witness) for witness in WITNESSES)


def _passes(number: int, witness: int) -> bool:
    """Return whether witnessᵈ is 1, or −1 after some squarings, for number − 1 = d·2ˢ with d odd."""
    odd, squarings = number - 1, 0
    while odd % 2 == 0:
        odd, squarings = odd // 2, squarings + 1
    power = pow(witness, odd, number)
    return power == 1 or any(pow(power, 2**i, number) == number - 1 for i in range(squarings))


def _unset(columns: int, functions: Sequence[Callable[[int], int]]) -> Slots:
    return [[math.inf] * len(functions) for _ in range(columns)]
