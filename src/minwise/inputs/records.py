"""Records: rows compared by several fields, each cut into shingles of its own kind and weight.

A shingle x of field f is the element mix(x ^ hash(f)); with a whole weight w it becomes w elements. The Jaccard
similarity of such sets is Σ w·|shared shingles of f| / Σ w·|all shingles of f|: a field of weight 2 counts twice. If a
weight is not whole, the lowest byte of an element is the number of its field, and the search weighs elements by it; the
similarity has the same formula. A null field has no shingles; a row has a fault if a field is not valid UTF-8, a list
or an object.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from minwise._internal.arrays import from_bytes
from minwise.checks import show
from minwise.errors import ConfigError, InputError
from minwise.inputs.elements import (
    Elements,
    Extracted,
    Reasons,
    build_sets,
    decode_dictionary,
    decode_utf8,
    hash_values,
    mix_hashes,
    set_null,
)
from minwise.inputs.weights import WEIGHTS_RULE, parse_pairs, parse_weight
from minwise.text.shingling import MAX_SIZE, Shingler

__all__ = ["Field", "RecordFields", "parse_fields"]

# A shingle size longer than any field makes the whole value one shingle.
WHOLE = f"char:{MAX_SIZE}"
DEFAULT_DIGITS = 3
# Fields whose elements can have weights that are not whole.
MAX_WEIGHTED_FIELDS = 256
FIELDS_RULE = "fields must be NAME:char:N, NAME:word:N, NAME:digits:N or NAME:whole, separated by spaces"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record.

    Attributes:
        name: Its column.
        kind: ``char:N`` or ``word:N``; ``digits:N`` for shingles of its digits alone; ``whole`` for the value itself.
        weight: How much each of its shingles counts.
    """

    name: str
    kind: str
    weight: float = 1

    @property
    def spec(self) -> str:
        """The shingle specification that :class:`Shingler` takes."""
        if self.kind == "whole":
            return WHOLE
        return self.kind.replace("digits", "char")


def parse_fields(fields: object, weights: object) -> tuple[Field, ...]:
    """Parse fields such as ``"name:char:3 phone:digits"`` and weights such as ``"name=2"``; both may be mappings.

    >>> parse_fields("name:char:3 phone:digits", "name=2")
    (Field(name='name', kind='char:3', weight=2), Field(name='phone', kind='digits:3', weight=1))

    Raises:
        ConfigError: If a field, a kind or a weight breaks its rule.
    """
    kinds = _parse_kinds(fields)
    given = _parse_weights(weights)
    for name in given:
        if name not in kinds:
            raise ConfigError(f"weights must be of fields, got {show(name)}; fields are: {', '.join(kinds)}")
    fields = tuple(Field(name, kind, given.get(name, 1)) for name, kind in sorted(kinds.items()))
    if len(fields) > MAX_WEIGHTED_FIELDS and any(field.weight != int(field.weight) for field in fields):
        rule = f"weights must be whole numbers with more than {MAX_WEIGHTED_FIELDS} fields"
        raise ConfigError(f"{rule}, got {show(weights)} for {len(fields)}")
    return fields


def _parse_kinds(fields: object) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, kind in parse_pairs("fields", fields, ":", FIELDS_RULE):
        if not isinstance(name, str) or not name:
            raise ConfigError(f"{FIELDS_RULE}, got {show(f'{name}:{kind}')}")
        if name in found:
            raise ConfigError(f"fields must be named once each, got {show(name)} twice")
        found[name] = _check_kind(name, kind)
    if not found:
        raise ConfigError(f"{FIELDS_RULE}, got {show(fields)}")
    return found


def _check_kind(name: str, kind: object) -> str:
    kind = f"digits:{DEFAULT_DIGITS}" if kind == "digits" else kind
    if not isinstance(kind, str) or kind.partition(":")[0] not in ("char", "word", "digits", "whole"):
        raise ConfigError(f"{FIELDS_RULE}, got {show(f'{name}:{kind}')}")
    try:
        Shingler(Field(name, kind).spec)
    except ConfigError:
        raise ConfigError(f"{FIELDS_RULE}, N from 1 to {MAX_SIZE}, got {show(f'{name}:{kind}')}") from None
    return kind


def _parse_weights(weights: object) -> dict[str, float]:
    pairs = () if weights is None else parse_pairs("weights", weights, "=", WEIGHTS_RULE)
    return {name: parse_weight(name, weight) for name, weight in pairs}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFields(Elements):
    """Several fields of a row as one set of weighted shingles.

    Attributes:
        fields: The fields, in order of their names.
        bag: Whether a shingle that occurs twice in a field counts twice.
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
        """Fields and weights as the command line takes them."""
        fields = " ".join(shlex.quote(f"{field.name}:{field.kind}") for field in self.fields)
        weights = " ".join(shlex.quote(f"{field.name}={field.weight}") for field in self.fields if field.weight != 1)
        bag = {"bag": True} if self.bag else {}
        return {"shingle": "set", **bag, "fields": fields, **({"weights": weights} if weights else {})}

    @property
    def factors(self) -> tuple[float, ...] | None:
        """The weight of each field if one of them is not a whole number."""
        weights = tuple(field.weight for field in self.fields)
        return None if all(isinstance(weight, int) for weight in weights) else weights

    def type_problem(self, name: str, kind: pa.DataType) -> str | None:
        """Accept every type that has a text form: strings, numbers, dates."""
        if pa.types.is_nested(kind) or pa.types.is_interval(kind):
            return f"{name} must be strings, numbers or dates, got a column of {kind}"
        return None

    def from_arrow(self, columns: Sequence[pa.Array]) -> Extracted:
        """Return one set per row; a null field has no shingles."""
        reasons: Reasons = {}
        texts = [_column_texts(column, field.name, reasons) for column, field in zip(columns, self.fields, strict=True)]
        return self._sets(texts, reasons)

    def from_values(self, rows: Sequence[Sequence[Any] | None]) -> Extracted:
        """Return one set per row of values without types; a field of None has no shingles."""
        reasons: Reasons = {}
        texts = []
        for position, field in enumerate(self.fields):
            values = [row and row[position] for row in rows]
            encoded = [_value_bytes(value, field.name, number, reasons) for number, value in enumerate(values)]
            texts.append(from_bytes(encoded, pa.large_string()))
        reasons.update({number: "" for number, row in enumerate(rows) if row is None})
        return self._sets(texts, reasons)

    def _sets(self, texts: Sequence[pa.Array], reasons: Reasons) -> Extracted:
        rows = len(texts[0])
        owners, elements, counts = [], [], []
        classified = self.factors is not None
        for number, (field, column) in enumerate(zip(self.fields, texts, strict=True)):
            if field.kind.startswith("digits"):
                column = pc.replace_substring_regex(column, "[^0-9]", "")
            sets = Shingler(field.spec, bag=self.bag, seed=self.seed).shingle(column, threads=1)
            owners.append(np.repeat(np.arange(rows), np.diff(sets.offsets)))
            hashed = mix_hashes(sets.hashes ^ hash_values([field.name], self.seed))
            elements.append(hashed & ~np.uint64(255) | np.uint64(number) if classified else hashed)
            counts.append(np.full(len(sets.hashes), 1 if classified else int(field.weight), dtype=np.int64))
        sets, oversized = build_sets(np.concatenate(owners), np.concatenate(elements), np.concatenate(counts), rows)
        return set_null(sets, reasons), {**oversized, **reasons}


def _column_texts(column: pa.Array, name: str, reasons: Reasons) -> pa.Array:
    """Return a column as strings, "" where it is null or not valid UTF-8."""
    column = decode_dictionary(column)
    kind = column.type
    if kind in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.string(), pa.large_string(), pa.string_view()):
        values = column.cast(pa.large_binary())
        try:
            column = values.cast(pa.large_string())
        except pa.ArrowInvalid:
            texts = [_value_bytes(value, name, row, reasons) for row, value in enumerate(values.to_pylist())]
            return from_bytes(texts, pa.large_string())
    column = column.cast(pa.large_string())
    return pc.coalesce(column, pa.scalar("", pa.large_string())) if column.null_count else column


def _value_bytes(value: object, name: str, row: int, reasons: Reasons) -> bytes:
    """Return a value as the bytes of a string; b"" and a reason if it has no text form."""
    try:
        if isinstance(value, bytes):
            decode_utf8(value, name)
            return value
        if isinstance(value, (list, dict)):
            raise InputError(f"{name} must be a string or a number, got {type(value).__name__}")
        return b"" if value is None else str(value).encode()
    except InputError as error:
        reasons.setdefault(row, str(error))
        return b""
