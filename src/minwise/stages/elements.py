"""Elements: what the columns of a row hold in; the row's set of hashed elements out, without any text being cut.

It stands where the shingler stands for texts, and everything behind it is the same. A bag becomes a set by expansion:
the i-th further occurrence of an element is an element of its own, so that plain Jaccard is Σmin/Σmax of the counts.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise.errors import InputError
from minwise.formats.arrays import from_bytes, from_numbers, from_numpy, invalid_at, present, to_numpy
from minwise.stages.read import text_chunk
from minwise.stages.shingle import hash_member

__all__ = [
    "MAX_ELEMENTS",
    "Elements",
    "ItemLists",
    "ItemSets",
    "OneValue",
    "gather_sets",
    "hash_column",
    "mixed",
    "split_items",
    "too_many_reason",
]

# A set is held whole, and several at a time: as many elements as the longest text that is read has bytes for.
MAX_ELEMENTS = 1 << 24
# 2⁶⁴ divided by the golden ratio, as in DESIGN, section 3.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
INT64 = range(-(2**63), 2**63)
ITEM_RULE = "must be whole numbers or strings"
LIST_RULE = "must be a list of items with shingle set"
STRING_REMEDY = "separator says where to cut strings"

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
        """The same of rows without types; None for a row that can not be used. Bytes are text."""

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
    return _list_column(offsets, elements, reasons), reasons


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


def _list_column(offsets: NDArray[np.int64], elements: Words, missing: Iterable[int]) -> pa.Array:
    """A list column over the arrays, null where rows are missing."""
    valid = np.ones(len(offsets) - 1, dtype=bool)
    valid[list(missing)] = False
    bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    kind = pa.large_list(pa.uint64())
    return pa.Array.from_buffers(
        kind, len(valid), [bits, pa.py_buffer(np.ascontiguousarray(offsets))], -1, 0, [from_numpy(elements)]
    )


def without(array: pa.Array, missing: Iterable[int]) -> pa.Array:
    """A list column that is null in some rows more."""
    rows = sorted(missing)
    if not rows:
        return array
    valid = present(array).copy()
    valid[rows] = False
    offsets = to_numpy(array.offsets)
    return _list_column(offsets - offsets[0], to_numpy(array.values)[offsets[0] : offsets[-1]], np.flatnonzero(~valid))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSets(Elements):
    """A column of lists, or of strings that are cut at a separator, as sets of their items.

    Attributes:
        column: The column.
        separator: What stands between items where they are in one string; without it strings are refused.
        bag: Whether an item that is there twice counts twice.
        seed: Seed of the hash.
    """

    column: str
    separator: str | None = None
    bag: bool = False
    seed: int = 1

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)

    @property
    def settings(self) -> dict[str, Any]:
        """Those of sets."""
        given = {"bag": self.bag, "separator": self.separator}
        return {"shingle": "set", **{name: value for name, value in given.items() if value}}

    def complaint(self, name: str, kind: pa.DataType) -> str | None:
        """Lists of whole numbers or strings; strings if there is a separator to cut them at."""
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if kind in (pa.string(), pa.large_string(), pa.string_view(), pa.null()):
            uncut = self.separator is None and kind != pa.null()
            return f"{name} {LIST_RULE}, got a column of {kind}; {STRING_REMEDY}" if uncut else None
        if not _is_list(kind):
            return f"{name} {LIST_RULE}, got a column of {kind}"
        return None if is_item(kind.value_type) else f"items of {name} {ITEM_RULE}, got a column of {kind}"

    def of_arrow(self, columns: Sequence[pa.Array]) -> Made:
        """The sets of a column."""
        column = columns[0]
        if not _is_list(column.type):
            return self.of_values([[value] for value in plain(column).to_pylist()])
        offsets, items, reasons = list_parts(column, self.column)
        owners = np.repeat(np.arange(len(column)), np.diff(offsets))
        return self._made(owners, hash_column(items, self.seed), len(column), reasons)

    def of_values(self, rows: Sequence[Sequence[Any] | None]) -> Made:
        """The sets of lists of items, or of strings of them."""
        items, owners, reasons = item_lists(rows, self.column, self.separator)
        return self._made(owners, hash_objects(items, self.seed), len(rows), reasons)

    def _made(self, owners: NDArray[np.int64], hashes: Words, rows: int, reasons: Reasons) -> Made:
        counts = np.ones(len(owners), dtype=np.int64) if self.bag else None
        sets, large = gather_sets(owners, hashes, counts, rows)
        return without(sets, reasons), {**large, **reasons}


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemLists(Elements):
    """The same column as lists of the items themselves, for whoever turns sets and items round.

    Attributes:
        column: The column.
        separator: As in :class:`ItemSets`.
        bag: As in :class:`ItemSets`.
    """

    column: str
    separator: str | None = None
    bag: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)

    @property
    def settings(self) -> dict[str, Any]:
        """Nothing beyond that of sets."""
        return ItemSets(column=self.column, separator=self.separator, bag=self.bag).settings

    def complaint(self, name: str, kind: pa.DataType) -> str | None:
        """As of sets."""
        return ItemSets(column=self.column, separator=self.separator).complaint(name, kind)

    def of_arrow(self, columns: Sequence[pa.Array]) -> Made:
        """Lists of int64 or large_string."""
        column = columns[0]
        if not _is_list(column.type):
            return self.of_values([[value] for value in plain(column).to_pylist()])
        offsets, items, reasons = list_parts(column, self.column)
        return _lists(offsets, key_column(items), reasons), reasons

    def of_values(self, rows: Sequence[Sequence[Any] | None]) -> Made:
        """Lists of int64 if all items are such, else of large_string."""
        items, owners, reasons = item_lists(rows, self.column, self.separator)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(rows)))]).astype(np.int64)
        return _lists(offsets, keys_of(items), reasons), reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class OneValue(Elements):
    """A column of single values, each the one element of its row; none where it is null or empty.

    Attributes:
        column: The column.
    """

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)

    @property
    def settings(self) -> dict[str, Any]:
        """None."""
        return {}

    def complaint(self, name: str, kind: pa.DataType) -> str | None:
        """Whole numbers or strings."""
        return None if is_item(kind) else f"{name} {ITEM_RULE}, got a column of {kind}"

    def of_arrow(self, columns: Sequence[pa.Array]) -> Made:
        """A value is its text, so that numbers of one file equal those of another that has no types."""
        return self.of_values([[value] for value in plain(columns[0]).to_pylist()])

    def of_values(self, rows: Sequence[Sequence[Any] | None]) -> Made:
        """As above."""
        texts = [None if row is None else _text_of(row[0]) for row in rows]
        owners = np.array([row for row, text in enumerate(texts) if text], dtype=np.int64)
        sets, _ = gather_sets(owners, hash_objects([text for text in texts if text], 0), None, len(rows))
        return without(sets, [number for number, row in enumerate(rows) if row is None]), {}


def _text_of(value: object) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else None if value is None else str(value)


def _is_list(kind: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def list_parts(column: pa.Array, name: str) -> tuple[NDArray[np.int64], pa.Array, Reasons]:
    """Offsets and items of a list column from its first on, and why rows can not be used: these have no items."""
    kept = present(column)
    reasons = dict.fromkeys(np.flatnonzero(~kept).tolist(), f"{name} is null")
    column = column.cast(pa.large_list(column.type.value_type)) if not pa.types.is_large_list(column.type) else column
    items = plain(column.flatten())  # leaves out what a null list may have
    sizes = np.where(kept, np.diff(to_numpy(column.offsets)), 0)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    if items.null_count:
        nulls = np.flatnonzero(~present(items))
        for row in (np.searchsorted(offsets, nulls, side="right") - 1).tolist():
            reasons.setdefault(row, f"{name} holds a null item")
    return offsets, items, reasons


def item_lists(
    rows: Sequence[Sequence[Any] | None], name: str, separator: str | None
) -> tuple[list[Any], NDArray[np.int64], Reasons]:
    """The items of rows without types, whose they are, and why rows can not be used."""
    items: list[Any] = []
    sizes: list[int] = []
    reasons: Reasons = {}
    for number, row in enumerate(rows):
        found: Sequence[Any] = ()
        try:
            found = () if row is None else _items(row[0], name, separator)
        except InputError as error:
            reasons[number] = str(error)
        items.extend(found)
        sizes.append(len(found))
    missing = {number: "" for number, row in enumerate(rows) if row is None}
    return items, np.repeat(np.arange(len(rows)), sizes), {**missing, **reasons}


def _items(value: object, name: str, separator: str | None) -> Sequence[Any]:
    """The items of one row, which are whole numbers or strings."""
    if value is None:
        raise InputError(f"{name} is null")
    text = decoded(value, name) if isinstance(value, bytes) else value
    if isinstance(text, str):
        if separator is None:
            raise InputError(f"{name} {LIST_RULE}, got a string; {STRING_REMEDY}")
        return split_items(text, separator)
    if not isinstance(text, list):
        raise InputError(f"{name} {LIST_RULE}, got {type(text).__name__}")
    for item in text:
        if item is None:
            raise InputError(f"{name} holds a null item")
        if isinstance(item, bool) or not isinstance(item, (int, str)):
            raise InputError(f"items of {name} {ITEM_RULE}, got {type(item).__name__}")
    return text


def split_items(text: str, separator: str | None) -> list[str]:
    """The items of a line: what stands between separators, or in white space, and without that around it."""
    if separator is None:
        return text.split()
    return [item for part in text.split(separator) if (item := part.strip())]


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
    """The same of a column."""
    column = plain(column)
    if not pa.types.is_integer(column.type):
        return column.cast(pa.large_string())
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:  # unsigned and beyond
        return column.cast(pa.large_string())


def _lists(offsets: NDArray[np.int64], items: pa.Array, missing: Iterable[int]) -> pa.Array:
    valid = np.ones(len(offsets) - 1, dtype=bool)
    valid[list(missing)] = False
    bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    kind = pa.large_list(items.type)
    return pa.Array.from_buffers(kind, len(valid), [bits, pa.py_buffer(offsets)], -1, 0, [items])
