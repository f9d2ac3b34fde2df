"""Records: the fields of a row in; one set of their shingles, each with its field's weight, out.

A shingle x of field f is the element mix(x ^ hash(f)); with weight w there are w elements of it. Jaccard of such sets
is Σ w·|shared shingles of f| over Σ w·|all shingles of f|: a field of weight 2 counts twice.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from minwise._internal.arrays import from_bytes
from minwise.checks import check_whole, show
from minwise.errors import ConfigError, InputError
from minwise.inputs.elements import Elements, Made, Reasons, decoded, gather_sets, hash_objects, mixed, without
from minwise.text.shingling import MAX_SIZE, Shingler

__all__ = ["Field", "Records", "parse_fields"]

# A shingle longer than any field is the whole of it.
WHOLE = f"char:{MAX_SIZE}"
DIGITS = 3
MAX_WEIGHT = 1000
RULE = "fields must be NAME:char:N, NAME:word:N, NAME:digits:N or NAME:whole, separated by spaces"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record.

    Attributes:
        name: Its column.
        kind: ``char:N`` or ``word:N``; ``digits:N`` for shingles of its digits alone; ``whole`` for the value itself.
        weight: How much its shingles count.
    """

    name: str
    kind: str
    weight: int = 1

    @property
    def spec(self) -> str:
        """What a shingler calls it."""
        if self.kind == "whole":
            return WHOLE
        return self.kind.replace("digits", "char")


def parse_fields(fields: object, weights: object) -> tuple[Field, ...]:
    """Fields as a user names them: ``"name:char:3 phone:digits"`` or a mapping, with weights such as ``"name=2"``.

    >>> parse_fields("name:char:3 phone:digits", "name=2")
    (Field(name='name', kind='char:3', weight=2), Field(name='phone', kind='digits:3', weight=1))
    """
    kinds = _kinds(fields)
    given = _weights(weights)
    for name in given:
        if name not in kinds:
            raise ConfigError(f"weights must be of fields, got {show(name)}; fields are: {', '.join(kinds)}")
    return tuple(Field(name, kind, given.get(name, 1)) for name, kind in sorted(kinds.items()))


def _kinds(fields: object) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, kind in _pairs("fields", fields, ":", RULE):
        if name in found:
            raise ConfigError(f"fields must be named once each, got {show(name)} twice")
        found[name] = _kind(name, kind)
    if not found:
        raise ConfigError(f"{RULE}, got {show(fields)}")
    return found


def _kind(name: str, kind: object) -> str:
    kind = f"digits:{DIGITS}" if kind == "digits" else kind
    if not isinstance(kind, str) or kind.partition(":")[0] not in ("char", "word", "digits", "whole"):
        raise ConfigError(f"{RULE}, got {show(f'{name}:{kind}')}")
    try:
        Shingler(Field(name, kind).spec)
    except ConfigError:
        raise ConfigError(f"{RULE}, N from 1 to {MAX_SIZE}, got {show(f'{name}:{kind}')}") from None
    return kind


def _weights(weights: object) -> dict[str, int]:
    rule = "weights must be NAME=N, separated by spaces"
    found: dict[str, int] = {}
    for name, weight in () if weights is None else _pairs("weights", weights, "=", rule):
        number = int(weight) if isinstance(weight, str) and weight.isascii() and weight.isdigit() else weight
        found[name] = check_whole(f"weights of {name}", number, 1, MAX_WEIGHT)
    return found


def _pairs(setting: str, given: object, between: str, rule: str) -> list[tuple[str, Any]]:
    """Names and what is said of them, from a mapping or from one string; quotation marks hold a name together."""
    if isinstance(given, Mapping):
        pairs: list[Any] = list(given.items())
    elif isinstance(given, str):
        try:
            pairs = [tuple(word.split(between, 1)) for word in shlex.split(given)]
        except ValueError as error:
            raise ConfigError(f"{rule}, got {show(given)}: {error}") from None
    else:
        raise ConfigError(f"{setting} must be a string or a mapping, got {show(given)}")
    for pair in pairs:
        if len(pair) != 2 or not isinstance(pair[0], str) or not pair[0]:
            raise ConfigError(f"{rule}, got {show(between.join(map(str, pair)))}")
    return pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class Records(Elements):
    """Rows that are compared by several fields at once.

    Attributes:
        fields: The fields, in order of their names.
        bag: Whether a shingle that a field has twice counts twice.
        seed: Seed of the hash.
    """

    fields: tuple[Field, ...]
    bag: bool = False
    seed: int = 1

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the fields."""
        return tuple(field.name for field in self.fields)

    @property
    def settings(self) -> dict[str, Any]:
        """Fields and weights as the command takes them."""
        fields = " ".join(shlex.quote(f"{field.name}:{field.kind}") for field in self.fields)
        weights = " ".join(shlex.quote(f"{field.name}={field.weight}") for field in self.fields if field.weight > 1)
        bag = {"bag": True} if self.bag else {}
        return {"shingle": "set", **bag, "fields": fields, **({"weights": weights} if weights else {})}

    def complaint(self, name: str, kind: pa.DataType) -> str | None:
        """Anything that has a text: strings, numbers, dates."""
        if pa.types.is_nested(kind) or pa.types.is_interval(kind):
            return f"{name} must be strings, numbers or dates, got a column of {kind}"
        return None

    def of_arrow(self, columns: Sequence[pa.Array]) -> Made:
        """One set per row; a null field has no shingles."""
        reasons: Reasons = {}
        texts = [_texts(column, field.name, reasons) for column, field in zip(columns, self.fields, strict=True)]
        return self._made(texts, reasons)

    def of_values(self, rows: Sequence[Sequence[Any] | None]) -> Made:
        """One set per row of values without types; a field of None has no shingles."""
        reasons: Reasons = {}
        texts = []
        for place, field in enumerate(self.fields):
            values = [_text(row and row[place], field.name, number, reasons) for number, row in enumerate(rows)]
            texts.append(from_bytes(values, pa.large_string()))
        reasons.update({number: "" for number, row in enumerate(rows) if row is None})
        return self._made(texts, reasons)

    def _made(self, texts: Sequence[pa.Array], reasons: Reasons) -> Made:
        rows = len(texts[0])
        owners, elements, counts = [], [], []
        for field, column in zip(self.fields, texts, strict=True):
            if field.kind.startswith("digits"):
                column = pc.replace_substring_regex(column, "[^0-9]", "")
            sets = Shingler(field.spec, bag=self.bag, seed=self.seed).shingle(column, threads=1)
            owners.append(np.repeat(np.arange(rows), np.diff(sets.offsets)))
            elements.append(mixed(sets.hashes ^ hash_objects([field.name], self.seed)))
            counts.append(np.full(len(sets.hashes), field.weight, dtype=np.int64))
        sets, large = gather_sets(np.concatenate(owners), np.concatenate(elements), np.concatenate(counts), rows)
        return without(sets, reasons), {**large, **reasons}


def _texts(column: pa.Array, name: str, reasons: Reasons) -> pa.Array:
    """A column as strings, "" where it is null or not valid."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if kind in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.string(), pa.large_string(), pa.string_view()):
        values = column.cast(pa.large_binary())
        try:
            column = values.cast(pa.large_string())
        except pa.ArrowInvalid:
            texts = [_text(value, name, row, reasons) for row, value in enumerate(values.to_pylist())]
            return from_bytes(texts, pa.large_string())
    column = column.cast(pa.large_string())
    return pc.coalesce(column, pa.scalar("", pa.large_string())) if column.null_count else column


def _text(value: object, name: str, row: int, reasons: Reasons) -> bytes:
    """A value as the bytes of a string; nothing, with a reason, if it has none."""
    try:
        if isinstance(value, bytes):
            decoded(value, name)
            return value
        if isinstance(value, (list, dict)):
            raise InputError(f"{name} must be a string or a number, got {type(value).__name__}")
        return b"" if value is None else str(value).encode()
    except InputError as error:
        reasons.setdefault(row, str(error))
        return b""
