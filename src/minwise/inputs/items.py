"""Items: columns of lists or of single values in; the sets of their items out, or the items themselves."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise._internal.arrays import bitmap, from_lists, from_numpy, present, to_numpy
from minwise.errors import InputError
from minwise.inputs.elements import (
    ITEM_RULE,
    MAX_ELEMENTS,
    Elements,
    Made,
    Reasons,
    Words,
    all_but,
    decoded,
    gather_sets,
    hash_column,
    hash_objects,
    is_item,
    key_column,
    keys_of,
    plain,
    without,
)

__all__ = ["ItemLists", "ItemSets", "Members", "OneValue", "split_items"]

LIST_RULE = "must be a list of items with shingle set"
STRING_REMEDY = "separator says where to cut strings"


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
        """The settings of sets that are not the usual ones."""
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
        return from_lists(offsets, key_column(items), all_but(reasons, len(column))), reasons

    def of_values(self, rows: Sequence[Sequence[Any] | None]) -> Made:
        """Lists of int64 if all items are such, else of large_string."""
        items, owners, reasons = item_lists(rows, self.column, self.separator)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(rows)))]).astype(np.int64)
        return from_lists(offsets, keys_of(items), all_but(reasons, len(rows))), reasons


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


WEIGHT_RULE = f"must be a whole number from 0 to {MAX_ELEMENTS}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Members(Elements):
    """A row says that an item belongs to a group.

    Attributes:
        group: The column that names the group.
        item: The column of the item.
        weight: The column of how often it is there; None for once.
        bag: Whether an item that is there twice counts twice; with weights it always does.
        turned: Whether items name the groups and groups are their elements.
        seed: Seed of the hash.
    """

    group: str
    item: str
    weight: str | None = None
    bag: bool = False
    turned: bool = False
    seed: int = 1

    @property
    def columns(self) -> tuple[str, ...]:
        """What names the group, what is its element and, if there is one, the weight."""
        pair = (self.item, self.group) if self.turned else (self.group, self.item)
        return (*pair, *([] if self.weight is None else [self.weight]))

    @property
    def settings(self) -> dict[str, Any]:
        """The names of the columns."""
        given = {"bag": self.bag, "group_by": self.group, "item": self.item, "weight": self.weight}
        return {"shingle": "set", **{name: value for name, value in given.items() if value}}

    def complaint(self, name: str, kind: pa.DataType) -> str | None:
        """Groups and items are whole numbers or strings, weights are numbers."""
        if name == self.weight:
            number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or kind == pa.null()
            return None if number else f"{name} must be whole numbers, got a column of {kind}"
        return None if is_item(kind) else f"{name} {ITEM_RULE}, got a column of {kind}"

    def of_arrow(self, columns: Sequence[pa.Array]) -> Made:
        """Structs of key (int64 or large_string), element and count."""
        reasons: Reasons = {}
        keys, items = (plain(column) for column in columns[:2])
        for name, column in zip(self.columns, (keys, items), strict=False):
            _note_missing(name, column, reasons)
        counts = np.ones(len(keys), dtype=np.int64)
        if self.weight is not None:
            counts = _whole_weights(columns[2], self.weight, reasons)
        return _structs(key_column(keys), hash_column(items, self.seed), counts, reasons), reasons

    def of_values(self, rows: Sequence[Sequence[Any] | None]) -> Made:
        """Group, element and count of each row of values without types."""
        reasons: Reasons = {}
        keys: list[Any] = []
        items: list[Any] = []
        counts: list[int] = []
        for number, row in enumerate(rows):
            key: int | str | None = None
            item: int | str = ""
            count = 0
            try:
                if row is not None:
                    key, item = _name(row[0], self.columns[0]), _name(row[1], self.columns[1])
                    count = 1 if self.weight is None else _weight(row[2], self.weight)
            except InputError as error:
                reasons[number] = str(error)
                key, item = None, ""
            keys.append(key)
            items.append(item)
            counts.append(count)
        missing = {number: "" for number, row in enumerate(rows) if row is None}
        hashes = hash_objects(items, self.seed)
        reasons = {**missing, **reasons}
        return _structs(keys_of(keys), hashes, np.array(counts, dtype=np.int64), reasons), reasons


def _structs(keys: pa.Array, elements: NDArray[np.uint64], counts: NDArray[np.int64], missing: Reasons) -> pa.Array:
    fields = {"key": keys, "element": from_numpy(elements), "count": from_numpy(counts)}
    kind = pa.struct([(name, column.type) for name, column in fields.items()])
    valid = bitmap(all_but(missing, len(keys)))
    return pa.Array.from_buffers(kind, len(keys), [valid], children=list(fields.values()))


def _note_missing(name: str, column: pa.Array, reasons: Reasons) -> None:
    for row in np.flatnonzero(~present(column)).tolist() if column.null_count else ():
        reasons.setdefault(row, f"{name} is null")
    if not pa.types.is_integer(column.type):
        empty = to_numpy(pc.binary_length(column)) == 0
        for row in np.flatnonzero(empty & present(column)).tolist():
            reasons.setdefault(row, f"{name} is empty")


def _whole_weights(column: pa.Array, name: str, reasons: Reasons) -> NDArray[np.int64]:
    """Weights as whole numbers; 0 with a reason where one is none."""
    values = to_numpy(column.cast(pa.float64()))
    with np.errstate(invalid="ignore"):
        good = present(column) & (values >= 0) & (values <= MAX_ELEMENTS) & (values == np.floor(values))
    for row in np.flatnonzero(~good).tolist():
        value = column[row].as_py()
        reasons.setdefault(row, f"{name} is null" if value is None else f"{name} {WEIGHT_RULE}, got {value}")
    return np.where(good, values, 0).astype(np.int64)


def _name(value: object, name: str) -> int | str:
    """A group or an item: a whole number or a string that is not empty."""
    text = decoded(value, name) if isinstance(value, bytes) else value
    if text is None:
        raise InputError(f"{name} is null")
    if isinstance(text, bool) or not isinstance(text, (int, str)):
        raise InputError(f"{name} {ITEM_RULE}, got {type(text).__name__}")
    if text == "":
        raise InputError(f"{name} is empty")
    return text


def _weight(value: object, name: str) -> int:
    """A weight: a whole number, or what spells one."""
    if value is None or value in ("", b""):
        raise InputError(f"{name} is null")
    text = decoded(value, name) if isinstance(value, bytes) else value
    try:
        number = float(text) if isinstance(text, (int, float, str)) and not isinstance(text, bool) else -1.0
    except (ValueError, OverflowError):
        number = -1.0
    if not 0 <= number <= MAX_ELEMENTS or number != int(number):
        raise InputError(f"{name} {WEIGHT_RULE}, got {text}")
    return int(number)
