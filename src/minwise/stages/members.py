"""Members: the rows of a long table in; for each the group it names, the element it adds to it, and how often out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise.arrays import bitmap, from_numpy, present, to_numpy
from minwise.errors import InputError
from minwise.stages.elements import (
    ITEM_RULE,
    MAX_ELEMENTS,
    Elements,
    Made,
    Reasons,
    all_but,
    decoded,
    hash_column,
    hash_objects,
    is_item,
    key_column,
    keys_of,
    plain,
)

__all__ = ["Members"]

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
