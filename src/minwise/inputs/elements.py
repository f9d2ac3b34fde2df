"""Elements of sets: an interface from the columns of a row to its set of hashed elements, and its shared parts.

For rows that are sets, records or groups, an :class:`Elements` object takes the role that the shingler has for texts;
all later stages are the same. A bag becomes a set by expansion: the i-th further occurrence of an element is an element
of its own, so plain Jaccard of the expanded sets is Σmin/Σmax of the counts.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import (
    from_bytes,
    from_lists,
    from_numbers,
    from_numpy,
    invalid_utf8_offset,
    to_numpy,
    valid_mask,
)
from minwise.errors import InputError
from minwise.text.chunks import text_chunk
from minwise.text.shingling import hash_member

__all__ = [
    "INT64_RANGE",
    "ITEM_RULE",
    "MAX_ELEMENTS",
    "Elements",
    "Extracted",
    "Hashes",
    "Reasons",
    "build_sets",
    "decode_dictionary",
    "decode_items",
    "decode_utf8",
    "hash_column",
    "hash_values",
    "id_array",
    "id_column",
    "is_item_type",
    "mix_hashes",
    "set_null",
    "too_many_elements",
    "valid_except",
    "value_type",
]

# A set is held in memory as a whole, and several at a time: the limit allows as many elements as the longest text that
# is read has bytes for.
MAX_ELEMENTS = 1 << 24
# 2⁶⁴ divided by the golden ratio, as in the appendix of DESIGN.
GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)
INT64_RANGE = range(-(2**63), 2**63)
ITEM_RULE = "must be whole numbers or strings"

Hashes = NDArray[np.uint64]
# The reason why a row cannot be used, by row number.
Reasons = dict[int, str]
# An array with one value per row, null where a row cannot be used, and the reasons.
Extracted = tuple[pa.Array, Reasons]


class Elements(ABC):
    """Rule by which columns of a row become the value that the row is compared by. Plain data that can be pickled."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns to read."""

    def setting_of(self, column: str) -> str | None:
        """Return the setting that names one of the columns; None if the setting holds more than the name."""
        return next((name for name, value in self.settings.items() if value == column), None)

    @abstractmethod
    def type_problem(self, name: str, kind: pa.DataType) -> str | None:
        """Return why a column of this type cannot be used, or None."""

    @abstractmethod
    def from_arrow(self, columns: Sequence[pa.Array]) -> Extracted:
        """Return the values of rows of a typed table."""

    @abstractmethod
    def from_values(self, rows: Sequence[Sequence[Any] | None]) -> Extracted:
        """Return the values of rows without types; None is a row that cannot be used. Bytes are text."""

    @property
    def factors(self) -> tuple[float, ...] | None:
        """The weight of each class of elements, the lowest byte of an element; None if all weigh the same."""
        return None

    @property
    def holds_weights(self) -> bool:
        """Whether every element holds its weight."""
        return False

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Every setting that differs from its default, under its public name."""


def mix_hashes(hashes: Hashes) -> Hashes:
    """Apply ``mix`` of the appendix of DESIGN to each hash."""
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return hashes ^ (hashes >> np.uint64(31))


def build_sets(owners: NDArray[np.int64], elements: Hashes, counts: NDArray[np.int64] | None, rows: int) -> Extracted:
    """Return the sets of ``rows`` owners as a list column, ascending and distinct; oversized sets are null.

    Args:
        owners: The row that each element belongs to.
        elements: The elements, in any order.
        counts: How often each occurs, to build bags, in which the counts of an owner add up; None for sets.
        rows: The number of owners.
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
    reasons = {row: too_many_elements(int(sizes[row])) for row in np.flatnonzero(sizes > MAX_ELEMENTS).tolist()}
    if reasons:
        times = np.where(sizes[owners] > MAX_ELEMENTS, 0, times)
        sizes[list(reasons)] = 0
    elements = _expand(owners, elements, times)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return from_lists(offsets, from_numpy(elements), valid_except(reasons, rows)), reasons


def too_many_elements(count: int) -> str:
    """Return the reason why a set of ``count`` elements cannot be used."""
    return f"has {count} elements, more than {MAX_ELEMENTS}"


def _expand(owners: NDArray[np.int64], elements: Hashes, times: NDArray[np.int64]) -> Hashes:
    """Repeat each element, with further occurrences as elements of their own; the result is ascending per owner."""
    if not len(times) or (times == 1).all():
        return elements
    owners, elements = np.repeat(owners, times), np.repeat(elements, times)
    ordinal = (np.arange(len(elements)) - np.repeat(np.cumsum(times) - times, times)).astype(np.uint64)
    elements = np.where(ordinal == 0, elements, mix_hashes(elements + ordinal * GOLDEN_RATIO))
    return elements[np.lexsort((elements, owners))]


def valid_except(invalid: Iterable[int], rows: int) -> NDArray[np.bool_]:
    """Return a flag for each of ``rows`` rows, set except for the ``invalid`` ones."""
    valid = np.ones(rows, dtype=bool)
    valid[list(invalid)] = False
    return valid


def set_null(array: pa.Array, rows: Iterable[int]) -> pa.Array:
    """Return a list column that is also null in ``rows``."""
    valid = valid_mask(array) & valid_except(rows, len(array))
    return from_lists(to_numpy(array.offsets), array.values, valid)


def hash_column(column: pa.Array, seed: int) -> Hashes:
    """Hash values as :meth:`ShingleSets.from_sets` does; hashes at null positions are undefined."""
    if pa.types.is_integer(column.type):
        if column.type == pa.uint64() and len(column) and int(to_numpy(column).max()) >= 2**63:
            return np.array([hash_member(value or 0, 0, seed) for value in column.to_pylist()], dtype=np.uint64)
        return _kernel.hash_integers(to_numpy(column).astype(np.int64), seed)
    chunk = text_chunk(column)
    return _kernel.hash_strings(chunk.offsets, chunk.data, seed)


def hash_values(values: Sequence[Any], seed: int) -> Hashes:
    """Hash whole numbers and strings as :meth:`ShingleSets.from_sets` does."""
    if all(type(value) is str for value in values):
        return hash_column(from_bytes([value.encode() for value in values], pa.large_string()), seed)
    return np.array([hash_member(value, 0, seed) for value in values], dtype=np.uint64)


def is_item_type(kind: pa.DataType) -> bool:
    """Return whether values of a type can be items."""
    kind = value_type(kind)
    return bool(pa.types.is_integer(kind)) or kind in (pa.string(), pa.large_string(), pa.string_view(), pa.null())


def value_type(kind: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return the type of the values of a column: of a dictionary, that of its entries."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def decode_dictionary(column: pa.Array) -> pa.Array:
    """Return the column without a dictionary."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def decode_items(column: pa.Array) -> pa.Array:
    """Return items without a dictionary, strings in one buffer, and the null type as large_string."""
    column = decode_dictionary(column)
    return column.cast(pa.large_string()) if column.type in (pa.string_view(), pa.null()) else column


def decode_utf8(value: bytes, name: str) -> str:
    """Return bytes of a file as text.

    Raises:
        InputError: If they are not UTF-8.
    """
    invalid = invalid_utf8_offset(value)
    if invalid is not None:
        raise InputError(f"{name} is not valid UTF-8 at byte {invalid}")
    return value.decode()


def id_array(values: Sequence[int | str | None]) -> pa.Array:
    """Return ids of documents, groups or items: int64 if all fit, else large_string, in which a number is its digits.

    None stays null.
    """
    if all(value is None or (isinstance(value, int) and value in INT64_RANGE) for value in values):
        return from_numbers([None if value is None else int(value) for value in values], np.int64)
    return from_bytes([None if value is None else str(value).encode() for value in values], pa.large_string())


def id_column(column: pa.Array) -> pa.Array:
    """Return a column of ids as int64 if all fit, else as large_string; null stays null."""
    column = decode_items(column)
    if not pa.types.is_integer(column.type):
        return column.cast(pa.large_string())
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:  # uint64 values of 2**63 or more
        return column.cast(pa.large_string())
