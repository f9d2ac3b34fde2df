"""Elements: what the columns of a row hold in; the row's set of hashed elements out, without any text being cut.

It stands where the shingler stands for texts, and everything behind it is the same. A bag becomes a set by expansion:
the i-th further occurrence of an element is an element of its own, so that plain Jaccard is Σmin/Σmax of the counts.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import from_bytes, from_lists, from_numbers, from_numpy, invalid_at, present, to_numpy
from minwise.errors import InputError
from minwise.text.chunks import text_chunk
from minwise.text.shingling import hash_member

__all__ = [
    "ITEM_RULE",
    "MAX_ELEMENTS",
    "Elements",
    "Made",
    "Reasons",
    "Words",
    "all_but",
    "decoded",
    "gather_sets",
    "hash_column",
    "hash_objects",
    "is_item",
    "key_column",
    "keys_of",
    "mixed",
    "plain",
    "too_many_reason",
    "without",
]

# A set is held whole, and several at a time: as many elements as the longest text that is read has bytes for.
MAX_ELEMENTS = 1 << 24
# 2⁶⁴ divided by the golden ratio, as in DESIGN, section 3.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
INT64 = range(-(2**63), 2**63)
ITEM_RULE = "must be whole numbers or strings"

Words = NDArray[np.uint64]
Reasons = dict[int, str]
# An array with one value per row, null where there is none, and why.
Made = tuple[pa.Array, Reasons]


class Elements(ABC):
    """How some columns of a row become what the row is compared by. Plain data, so that it can be sent to others."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""

    @abstractmethod
    def complaint(self, name: str, kind: pa.DataType) -> str | None:
        """What is wrong with a column of this type, if anything is."""

    @abstractmethod
    def of_arrow(self, columns: Sequence[pa.Array]) -> Made:
        """What rows of a table with types are compared by."""

    @abstractmethod
    def of_values(self, rows: Sequence[Sequence[Any] | None]) -> Made:
        """What rows of values without types are compared by; None is a row that can not be used. Bytes are text."""

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Every setting that differs from the default, under its public name."""


def mixed(words: Words) -> Words:
    """Each word stirred: ``mix`` of DESIGN, section 3."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def gather_sets(
    owners: NDArray[np.int64], elements: Words, counts: NDArray[np.int64] | None, rows: int
) -> tuple[pa.Array, Reasons]:
    """The sets of ``rows`` owners as a list column, ascending and distinct; too large ones are null.

    Args:
        owners: Whose each element is.
        elements: The elements, in any order.
        counts: How often each is there, so that a bag is made of them, in which those of one owner add up; None for
            sets.
        rows: How many owners there are.
    """
    order = np.lexsort((elements, owners))
    owners, elements = owners[order], elements[order]
    first = np.ones(len(elements), dtype=bool)
    first[1:] = (owners[1:] != owners[:-1]) | (elements[1:] != elements[:-1])
    starts = np.flatnonzero(first)
    owners, elements = owners[starts], elements[starts]
    times = np.ones(len(starts), dtype=np.int64)
    if counts is not None and len(starts):
        times = np.add.reduceat(counts[order], starts)
    sizes = np.zeros(rows, dtype=np.int64)
    np.add.at(sizes, owners, times)
    reasons = {row: too_many_reason(int(sizes[row])) for row in np.flatnonzero(sizes > MAX_ELEMENTS).tolist()}
    if reasons:
        times = np.where(sizes[owners] > MAX_ELEMENTS, 0, times)
        sizes[list(reasons)] = 0
    elements = _expanded(owners, elements, times)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return from_lists(offsets, from_numpy(elements), all_but(reasons, rows)), reasons


def too_many_reason(count: int) -> str:
    """What is wrong with a set that is too large."""
    return f"has {count} elements, more than {MAX_ELEMENTS}"


def _expanded(owners: NDArray[np.int64], elements: Words, times: NDArray[np.int64]) -> Words:
    """Each element as often as it occurs, the further occurrences as elements of their own; ascending per owner."""
    if not len(times) or (times == 1).all():
        return elements
    owners, elements = np.repeat(owners, times), np.repeat(elements, times)
    ordinal = (np.arange(len(elements)) - np.repeat(np.cumsum(times) - times, times)).astype(np.uint64)
    elements = np.where(ordinal == 0, elements, mixed(elements + ordinal * GOLDEN))
    return elements[np.lexsort((elements, owners))]


def all_but(missing: Iterable[int], rows: int) -> NDArray[np.bool_]:
    """A flag for each of so many rows, set but for those that are missing."""
    valid = np.ones(rows, dtype=bool)
    valid[list(missing)] = False
    return valid


def without(array: pa.Array, missing: Iterable[int]) -> pa.Array:
    """A list column that is null in some rows more."""
    valid = present(array) & all_but(missing, len(array))
    return from_lists(to_numpy(array.offsets), array.values, valid)


def hash_column(column: pa.Array, seed: int) -> Words:
    """The hashes of values as those of :meth:`ShingleSets.from_sets`; of a null it is anything."""
    if pa.types.is_integer(column.type):
        if column.type == pa.uint64() and len(column) and int(to_numpy(column).max()) >= 2**63:
            return np.array([hash_member(value or 0, 0, seed) for value in column.to_pylist()], dtype=np.uint64)
        return _kernel.hash_integers(to_numpy(column).astype(np.int64), seed)
    chunk = text_chunk(column)
    return _kernel.hash_strings(chunk.offsets, chunk.data, seed)


def is_item(kind: pa.DataType) -> bool:
    """Whether values of a type can be items."""
    flat = (pa.string(), pa.large_string(), pa.string_view(), pa.null())
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_integer(kind)) or kind in flat


def plain(column: pa.Array) -> pa.Array:
    """The values without a dictionary; strings in one buffer, and a null of no type as a string."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.large_string()) if column.type in (pa.string_view(), pa.null()) else column


def decoded(value: bytes, name: str) -> str:
    """Bytes of a file as text.

    Raises:
        InputError: If they are none.
    """
    invalid = invalid_at(value)
    if invalid is not None:
        raise InputError(f"{name} is not valid UTF-8 at byte {invalid}")
    return value.decode()


def hash_objects(items: Sequence[Any], seed: int) -> Words:
    """The hashes of whole numbers and strings, as those of :meth:`ShingleSets.from_sets`."""
    if all(type(item) is str for item in items):
        return hash_column(from_bytes([item.encode() for item in items], pa.large_string()), seed)
    return np.array([hash_member(item, 0, seed) for item in items], dtype=np.uint64)


def keys_of(values: Sequence[Any]) -> pa.Array:
    """Names of groups: int64 if all are such numbers, large_string otherwise; None stays null."""
    if all(value is None or (type(value) is int and value in INT64) for value in values):
        return from_numbers(values, np.int64)
    return from_bytes([None if value is None else str(value).encode() for value in values], pa.large_string())


def key_column(column: pa.Array) -> pa.Array:
    """The names of groups in a column: int64 if it is of such numbers, large_string otherwise; null stays null."""
    column = plain(column)
    if not pa.types.is_integer(column.type):
        return column.cast(pa.large_string())
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:  # unsigned and beyond
        return column.cast(pa.large_string())
