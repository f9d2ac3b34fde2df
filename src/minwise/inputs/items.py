"""Sets of items: columns of lists, of delimited strings or of single values, and rows that each add an item to a group.

Items are whole numbers or strings. A list becomes the set (or the bag) of its hashed items; for ``transpose`` the items
stay themselves. A row with a null list, a null item or an item of another type has a fault. Items of a list can have
weights: those of a second list of the row, or of the item in every set.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise._internal.arrays import from_lists, from_numpy, to_numpy, valid_mask, validity_bitmap
from minwise.errors import InputError
from minwise.inputs.elements import (
    ITEM_RULE,
    MAX_ELEMENTS,
    Elements,
    Extracted,
    Hashes,
    Reasons,
    build_sets,
    decode_items,
    decode_utf8,
    hash_column,
    hash_values,
    id_array,
    id_column,
    is_item_type,
    set_null,
    valid_except,
    value_type,
)
from minwise.inputs.weights import MAX_WEIGHT, MIN_WEIGHT, ItemWeights, build_weighted_sets, weight_reason

__all__ = ["GroupedItems", "ItemLists", "ItemSets", "SingleValue", "split_items"]

LIST_RULE = "must be a list of items with shingle set"
STRING_REMEDY = "set separator to split strings"
WEIGHT_RULE = f"must be a whole number from 0 to {MAX_ELEMENTS}, or a number from {MIN_WEIGHT} to {MAX_WEIGHT}"
WEIGHTS_RULE = "must be a list of numbers, one for each item"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSets(Elements):
    """A column of lists, or of strings that are split at a separator, as sets of their items.

    Attributes:
        column: The column.
        separator: The separator of items within a string; without it strings are rejected.
        bag: Whether an item that occurs twice counts twice.
        seed: Seed of the hash.
        weight: The column with the weight of each item of the row; None for equal weights.
        weights: Weights of items, the same in every set; None for equal weights.
    """

    column: str
    separator: str | None = None
    bag: bool = False
    seed: int = 1
    weight: str | None = None
    weights: ItemWeights | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of items and, if there is one, that of their weights."""
        return (self.column, *([] if self.weight is None else [self.weight]))

    @property
    def holds_weights(self) -> bool:
        """Whether elements hold their weights."""
        return self.weight is not None or self.weights is not None

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of sets that differ from their defaults."""
        weights = None if self.weights is None else self.weights.setting
        given = {"bag": self.bag, "separator": self.separator, "weight": self.weight, "weights": weights}
        return {"shingle": "set", **{name: value for name, value in given.items() if value}}

    def setting_of(self, column: str) -> str:
        """Return the setting that names a column."""
        return "weight" if column == self.weight else "text_column"

    def type_problem(self, name: str, kind: pa.DataType) -> str | None:
        """Accept lists of whole numbers or strings, and strings if there is a separator."""
        kind = value_type(kind)
        if name == self.weight:
            return _weights_problem(name, kind, split=self.separator is not None)
        if kind in (pa.string(), pa.large_string(), pa.string_view(), pa.null()):
            rejected = self.separator is None and kind != pa.null()
            return f"{name} {LIST_RULE}, got a column of {kind}; {STRING_REMEDY}" if rejected else None
        if not _is_list_type(kind):
            return f"{name} {LIST_RULE}, got a column of {kind}"
        return None if is_item_type(kind.value_type) else f"items of {name} {ITEM_RULE}, got a column of {kind}"

    def from_arrow(self, columns: Sequence[pa.Array]) -> Extracted:
        """Return the sets of a column."""
        column = columns[0]
        if not all(_is_list_type(each.type) for each in columns):
            return self.from_values(list(zip(*(decode_items(each).to_pylist() for each in columns), strict=True)))
        offsets, items, reasons = _split_list_column(column, self.column)
        owners = np.repeat(np.arange(len(column)), np.diff(offsets))
        lists = columns[1].to_pylist() if self.weight is not None else None
        return self.sets_of(owners, hash_column(items, self.seed), len(column), reasons, lists)

    def from_values(self, rows: Sequence[Sequence[Any] | None]) -> Extracted:
        """Return the sets of lists of items, or of delimited strings."""
        items, owners, reasons = _collect_items(rows, self.column, self.separator)
        lists = [None if row is None else row[1] for row in rows] if self.weight is not None else None
        return self.sets_of(owners, hash_values(items, self.seed), len(rows), reasons, lists)

    def sets_of(
        self,
        owners: NDArray[np.int64],
        hashes: Hashes,
        rows: int,
        reasons: Reasons,
        lists: Sequence[object] | None,
    ) -> Extracted:
        """Return the sets of rows, ascending and distinct.

        Args:
            owners: The row of each item, ascending.
            hashes: The hash of each item.
            rows: The number of rows.
            reasons: Why rows cannot be used.
            lists: The weights of the items of each row, if there is a column of them.
        """
        if self.holds_weights:
            sets, unfit = self._weighted_sets(owners, hashes, rows, reasons, lists)
        else:
            sets, unfit = build_sets(owners, hashes, np.ones(len(owners), dtype=np.int64) if self.bag else None, rows)
        return set_null(sets, reasons), {**unfit, **reasons}

    def _weighted_sets(
        self,
        owners: NDArray[np.int64],
        hashes: Hashes,
        rows: int,
        reasons: Reasons,
        lists: Sequence[object] | None,
    ) -> Extracted:
        weights = np.ones(len(hashes)) if self.weights is None else self.weights.of(hashes)
        if lists is not None:
            sizes = np.bincount(owners, minlength=rows)
            weights = weights * self._listed_weights(lists, sizes.tolist(), reasons)
        elif not self.bag:
            _, first = np.unique(np.stack([owners.astype(np.uint64), hashes]), axis=1, return_index=True)
            owners, hashes, weights = owners[first], hashes[first], weights[first]
        return build_weighted_sets(owners, hashes, weights, rows)

    def _listed_weights(self, lists: Sequence[object], sizes: Sequence[int], reasons: Reasons) -> NDArray[np.float64]:
        """Return the weights of the items of all rows; those of a row that cannot be used are 0."""
        assert self.weight is not None  # the caller has its values
        found: list[NDArray[np.float64]] = [np.empty(0)]
        for row, (value, size) in enumerate(zip(lists, sizes, strict=True)):
            try:
                weights = _row_weights(value, self.weight, self.separator, size) if row not in reasons else None
            except InputError as error:
                reasons[row], weights = str(error), None
            found.append(np.zeros(size) if weights is None else weights)
        return np.concatenate(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemLists(Elements):
    """The column of :class:`ItemSets` as lists of the items themselves, to swap the roles of sets and items.

    Attributes:
        column: The column.
        separator: Separator of items in a string; None if the column has lists.
        bag: Whether repeated items count.
    """

    column: str
    separator: str | None = None
    bag: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The only column."""
        return (self.column,)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of sets that differ from their defaults."""
        return ItemSets(column=self.column, separator=self.separator, bag=self.bag).settings

    def setting_of(self, column: str) -> str:
        """Return the setting of the only column."""
        return "text_column"

    def type_problem(self, name: str, kind: pa.DataType) -> str | None:
        """Accept the types that :class:`ItemSets` accepts."""
        return ItemSets(column=self.column, separator=self.separator).type_problem(name, kind)

    def from_arrow(self, columns: Sequence[pa.Array]) -> Extracted:
        """Return lists of int64 or large_string."""
        column = columns[0]
        if not _is_list_type(column.type):
            return self.from_values([[value] for value in decode_items(column).to_pylist()])
        offsets, items, reasons = _split_list_column(column, self.column)
        return from_lists(offsets, id_column(items), valid_except(reasons, len(column))), reasons

    def from_values(self, rows: Sequence[Sequence[Any] | None]) -> Extracted:
        """Return lists of int64 if all items fit, else of large_string."""
        items, owners, reasons = _collect_items(rows, self.column, self.separator)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(rows)))]).astype(np.int64)
        return from_lists(offsets, id_array(items), valid_except(reasons, len(rows))), reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleValue(Elements):
    """A column of single values, each the only element of its row; the set is empty where it is null or empty.

    Attributes:
        column: The column.
    """

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The only column."""
        return (self.column,)

    @property
    def settings(self) -> dict[str, Any]:
        """No settings."""
        return {}

    def type_problem(self, name: str, kind: pa.DataType) -> str | None:
        """Accept whole numbers and strings."""
        return None if is_item_type(kind) else f"{name} {ITEM_RULE}, got a column of {kind}"

    def from_arrow(self, columns: Sequence[pa.Array]) -> Extracted:
        """Hash each value as text, so that a number equals the same number of a file without types."""
        return self.from_values([[value] for value in decode_items(columns[0]).to_pylist()])

    def from_values(self, rows: Sequence[Sequence[Any] | None]) -> Extracted:
        """Hash each value as text."""
        texts = [None if row is None else _value_text(row[0]) for row in rows]
        owners = np.array([row for row, text in enumerate(texts) if text], dtype=np.int64)
        sets, _ = build_sets(owners, hash_values([text for text in texts if text], 0), None, len(rows))
        return set_null(sets, [number for number, row in enumerate(rows) if row is None]), {}


def _value_text(value: object) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else None if value is None else str(value)


def _weights_problem(name: str, kind: Any, *, split: bool) -> str | None:  # noqa: ANN401 - pyarrow has no types
    """Return why a column of weights of items cannot be used, or None; strings of them can be ``split``."""
    numbers = kind.value_type if _is_list_type(kind) else None
    is_usable = numbers is not None and (pa.types.is_integer(numbers) or pa.types.is_floating(numbers))
    if is_usable or kind == pa.null() or numbers == pa.null() or (split and is_item_type(kind)):
        return None
    return f"{name} {WEIGHTS_RULE}, got a column of {kind}"


def _row_weights(value: object, name: str, separator: str | None, size: int) -> NDArray[np.float64]:
    """Return the weights of the items of one row.

    Raises:
        InputError: If they are not as many numbers as there are items, one is out of range, or all are 0.
    """
    if value is None:
        raise InputError(f"{name} is null")
    text = decode_utf8(value, name) if isinstance(value, bytes) else value
    listed = split_items(text, separator) if isinstance(text, str) and separator is not None else text
    if not isinstance(listed, list):
        raise InputError(f"{name} {WEIGHTS_RULE}, got {type(text).__name__}")
    if len(listed) != size:
        raise InputError(f"{name} {WEIGHTS_RULE}, got {len(listed)} for {size}")
    numbers = np.array([_number(weight) for weight in listed], dtype=np.float64)
    wrong = np.flatnonzero(~((numbers == 0) | (numbers >= MIN_WEIGHT) & (numbers <= MAX_WEIGHT)))
    if len(wrong):
        raise InputError(weight_reason(name, listed[int(wrong[0])]))
    if size and not numbers.any():
        raise InputError(f"{name} must not be 0 for every item of a set")
    return numbers


def _is_list_type(kind: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _split_list_column(column: pa.Array, name: str) -> tuple[NDArray[np.int64], pa.Array, Reasons]:
    """Return offsets from 0, items and reasons of a list column; a row that cannot be used has no items."""
    valid = valid_mask(column)
    reasons = dict.fromkeys(np.flatnonzero(~valid).tolist(), f"{name} is null")
    column = column.cast(pa.large_list(column.type.value_type)) if not pa.types.is_large_list(column.type) else column
    items = decode_items(column.flatten())  # flatten drops the items that a null list may have
    sizes = np.where(valid, np.diff(to_numpy(column.offsets)), 0)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    if items.null_count:
        nulls = np.flatnonzero(~valid_mask(items))
        for row in (np.searchsorted(offsets, nulls, side="right") - 1).tolist():
            reasons.setdefault(row, f"{name} holds a null item")
    return offsets, items, reasons


def _collect_items(
    rows: Sequence[Sequence[Any] | None], name: str, separator: str | None
) -> tuple[list[Any], NDArray[np.int64], Reasons]:
    """Return the items of rows without types, the row of each item, and the reasons of rows that cannot be used."""
    items: list[Any] = []
    sizes: list[int] = []
    reasons: Reasons = {}
    for number, row in enumerate(rows):
        found: Sequence[Any] = ()
        try:
            found = () if row is None else _row_items(row[0], name, separator)
        except InputError as error:
            reasons[number] = str(error)
        items.extend(found)
        sizes.append(len(found))
    missing = {number: "" for number, row in enumerate(rows) if row is None}
    return items, np.repeat(np.arange(len(rows)), sizes), {**missing, **reasons}


def _row_items(value: object, name: str, separator: str | None) -> Sequence[Any]:
    """Return the items of one row, which are whole numbers or strings."""
    if value is None:
        raise InputError(f"{name} is null")
    text = decode_utf8(value, name) if isinstance(value, bytes) else value
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
    """Return the items of a line, split at the separator or at white space; stripped, without empty ones."""
    if separator is None:
        return text.split()
    return [item for part in text.split(separator) if (item := part.strip())]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedItems(Elements):
    """Rows that each add an item to a group.

    Attributes:
        group: The column with the id of the group.
        item: The column of the item.
        weight: The column with the count or the weight of the item; None for 1.
        bag: Whether an item that occurs twice counts twice; with weights it always does.
        transposed: Whether the item column identifies the groups and the group column holds their elements.
        seed: Seed of the hash.
    """

    group: str
    item: str
    weight: str | None = None
    bag: bool = False
    transposed: bool = False
    seed: int = 1

    @property
    def columns(self) -> tuple[str, ...]:
        """The column of the group id, that of the element and, if there is one, that of the weight."""
        pair = (self.item, self.group) if self.transposed else (self.group, self.item)
        return (*pair, *([] if self.weight is None else [self.weight]))

    @property
    def settings(self) -> dict[str, Any]:
        """The names of the columns."""
        given = {"bag": self.bag, "group_by": self.group, "item": self.item, "weight": self.weight}
        return {"shingle": "set", **{name: value for name, value in given.items() if value}}

    def type_problem(self, name: str, kind: pa.DataType) -> str | None:
        """Accept whole numbers and strings for groups and items, numbers for weights."""
        if name == self.weight:
            is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or kind == pa.null()
            return None if is_number else f"{name} must be numbers, got a column of {kind}"
        return None if is_item_type(kind) else f"{name} {ITEM_RULE}, got a column of {kind}"

    def from_arrow(self, columns: Sequence[pa.Array]) -> Extracted:
        """Return structs of key (int64 or large_string), element and count."""
        reasons: Reasons = {}
        keys, items = (decode_items(column) for column in columns[:2])
        for name, column in zip(self.columns, (keys, items), strict=False):
            _note_missing(name, column, reasons)
        counts = np.ones(len(keys))
        if self.weight is not None:
            counts = _weight_counts(columns[2], self.weight, reasons)
        return _structs(id_column(keys), hash_column(items, self.seed), counts, reasons), reasons

    def from_values(self, rows: Sequence[Sequence[Any] | None]) -> Extracted:
        """Return structs of key, element and count of rows without types."""
        reasons: Reasons = {}
        keys: list[Any] = []
        items: list[Any] = []
        counts: list[float] = []
        for number, row in enumerate(rows):
            key: int | str | None = None
            item: int | str = ""
            count = 0.0
            try:
                if row is not None:
                    key, item = _check_name(row[0], self.columns[0]), _check_name(row[1], self.columns[1])
                    count = 1 if self.weight is None else _parse_weight(row[2], self.weight)
            except InputError as error:
                reasons[number] = str(error)
                key, item = None, ""
            keys.append(key)
            items.append(item)
            counts.append(count)
        missing = {number: "" for number, row in enumerate(rows) if row is None}
        hashes = hash_values(items, self.seed)
        reasons = {**missing, **reasons}
        return _structs(id_array(keys), hashes, np.array(counts, dtype=np.float64), reasons), reasons


def _structs(keys: pa.Array, elements: Hashes, counts: NDArray[np.float64], missing: Reasons) -> pa.Array:
    fields = {"key": keys, "element": from_numpy(elements), "count": from_numpy(counts)}
    kind = pa.struct([(name, column.type) for name, column in fields.items()])
    valid = validity_bitmap(valid_except(missing, len(keys)))
    return pa.Array.from_buffers(kind, len(keys), [valid], children=list(fields.values()))


def _note_missing(name: str, column: pa.Array, reasons: Reasons) -> None:
    """Add a reason for each null or empty value."""
    for row in np.flatnonzero(~valid_mask(column)).tolist() if column.null_count else ():
        reasons.setdefault(row, f"{name} is null")
    if not pa.types.is_integer(column.type):
        empty = to_numpy(pc.binary_length(column)) == 0
        for row in np.flatnonzero(empty & valid_mask(column)).tolist():
            reasons.setdefault(row, f"{name} is empty")


def _weight_counts(column: pa.Array, name: str, reasons: Reasons) -> NDArray[np.float64]:
    """Return weights; an invalid one becomes 0 and gets a reason."""
    values = to_numpy(column.cast(pa.float64()))
    good = valid_mask(column) & _is_weight(values)
    for row in np.flatnonzero(~good).tolist():
        value = column[row].as_py()
        reasons.setdefault(row, f"{name} is null" if value is None else f"{name} {WEIGHT_RULE}, got {value}")
    return np.where(good, values, 0)


def _is_weight(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return a flag for each value that can be the weight of an item of a group."""
    with np.errstate(invalid="ignore"):
        whole = (values >= 0) & (values <= MAX_ELEMENTS) & (values == np.floor(values))
        good: NDArray[np.bool_] = whole | (values >= MIN_WEIGHT) & (values <= MAX_WEIGHT)
    return good


def _check_name(value: object, name: str) -> int | str:
    """Return a group or an item: a whole number or a string that is not empty."""
    text = decode_utf8(value, name) if isinstance(value, bytes) else value
    if text is None:
        raise InputError(f"{name} is null")
    if isinstance(text, bool) or not isinstance(text, (int, str)):
        raise InputError(f"{name} {ITEM_RULE}, got {type(text).__name__}")
    if text == "":
        raise InputError(f"{name} is empty")
    return text


def _parse_weight(value: object, name: str) -> float:
    """Return a weight: a number, or a string of one."""
    if value is None or value in ("", b""):
        raise InputError(f"{name} is null")
    text = decode_utf8(value, name) if isinstance(value, bytes) else value
    number = _number(text)
    if not _is_weight(np.array([number]))[0]:
        raise InputError(f"{name} {WEIGHT_RULE}, got {text}")
    return number


def _number(value: object) -> float:
    """Return a number, or a string of one; NaN for anything else."""
    try:
        return float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else np.nan
    except (ValueError, OverflowError):
        return np.nan
