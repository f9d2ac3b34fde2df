"""Document values: values of named columns that are kept for each document, to order documents or to group them.

Values that order documents have their own type: numbers, strings or dates. Labels are compared as strings, whatever
their type: numbers by their shortest decimal form, so that 7 and 7.0 are one label, booleans as true and false, times
in ISO form. The fields of CSV are labels as they are.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from math import isfinite, isnan
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from minwise._internal.arrays import from_bytes, from_numbers
from minwise.inputs.elements import decode_dictionary

__all__ = ["DocumentValues", "RowValues", "ValueColumn", "distinct_columns", "label", "label_column", "slice_values"]

# Arrays of values by the key of their column.
DocumentValues = Mapping[str, pa.Array]
# The fraction of a second without the zeros at its end.
ZEROS, POINT = r"(\.\d*?)0+(Z?)$", r"\.(Z?)$"


class ValueColumn(NamedTuple):
    """A column whose values are kept for each document.

    Attributes:
        name: The column.
        is_label: Whether its values are compared as strings; otherwise they order documents.
        of_references: Whether documents that are only compared against have values, too.
    """

    name: str
    is_label: bool = False
    of_references: bool = False

    @property
    def key(self) -> str:
        """Name of its values in batches and in the work directory."""
        return f"{'label' if self.is_label else 'value'}:{self.name}"

    def of_column(self, column: pa.Array) -> pa.Array:
        """Return the values of an Arrow column."""
        return label_column(column) if self.is_label else decode_dictionary(column)


def distinct_columns(columns: Iterable[ValueColumn]) -> tuple[ValueColumn, ...]:
    """Return each column once, of references if any of its occurrences is."""
    found: dict[str, ValueColumn] = {}
    for column in columns:
        before = found.get(column.key, column)
        found[column.key] = column._replace(of_references=column.of_references or before.of_references)
    return tuple(found.values())


def slice_values(values: DocumentValues, start: int, rows: int) -> DocumentValues:
    """Return the values of ``rows`` rows from ``start``."""
    return {key: column.slice(start, rows) for key, column in values.items()}


def label_column(column: pa.Array) -> pa.Array:
    """Return the values of an Arrow column as labels; NaN is null."""
    column = decode_dictionary(column)
    kinds = pa.types
    if kinds.is_floating(column.type) or kinds.is_decimal(column.type):
        return _distinct_labels(column)
    if kinds.is_timestamp(column.type) or kinds.is_time(column.type):
        return _time_labels(column)
    if column.type in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.string_view()):
        column = column.cast(pa.large_binary())
    try:
        labels = column.cast(pa.large_string())
        labels.validate(full=True)
    except (pa.ArrowInvalid, UnicodeDecodeError):  # bytes that are not UTF-8
        return _row_labels(column.cast(pa.large_binary()).to_pylist())
    return labels


def _distinct_labels(column: pa.Array) -> pa.Array:
    """Return the labels of numbers, of which each is converted once."""
    coded = column.dictionary_encode()
    numbers = coded.dictionary
    wide = numbers.to_numpy(zero_copy_only=False) if pa.types.is_floating(column.type) else numbers.to_pylist()
    return _row_labels(wide).take(coded.indices)


def _time_labels(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        column = column.cast(pa.timestamp(column.type.unit, "UTC"))
    labels = pc.replace_substring_regex(column.cast(pa.large_string()), ZEROS, r"\1\2")
    return pc.replace_substring_regex(labels, POINT, r"\1")


def _row_labels(values: Iterable[Any]) -> pa.Array:
    """Return the labels of Python or NumPy values; lists and objects have none."""
    labels = (label(value) for value in values)
    return from_bytes([None if found is None else found.encode() for found in labels], pa.large_string())


def label(value: Any) -> str | None:  # noqa: ANN401 - any value of a row
    """Return a Python or NumPy value as a label; None if it is none.

    >>> [label(value) for value in ("wiki", 7, 7.0, 0.1, True, None)]
    ['wiki', '7', '7', '0.1', 'true', None]
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        return format(value.normalize(), "f") if value else "0"
    if isinstance(value, (float, np.floating)) and not isnan(value):
        return np.format_float_positional(value, trim="-") if value else "0"
    return None


class RowValues:
    """Converter of the document values of rows that a reader parses one by one.

    Args:
        columns: The columns whose values are kept.
        digits_are_numbers: Whether the string of a number orders documents as the number does, as in CSV.
    """

    def __init__(self, columns: Sequence[ValueColumn], *, digits_are_numbers: bool) -> None:
        self.columns = columns
        self._ordered = {
            column.key: _OrderedValues(digits_are_numbers=digits_are_numbers)
            for column in columns
            if not column.is_label
        }

    @property
    def knows_kinds(self) -> bool:
        """Whether no further row can decide the type of a column."""
        return all(column.kind is not None for column in self._ordered.values())

    def arrays(self, rows: Sequence[Sequence[object]]) -> dict[str, pa.Array]:
        """Return the values of rows, each with a value for each column."""
        return {column.key: array for column, array in zip(self.columns, self._arrays(rows), strict=True)}

    def _arrays(self, rows: Sequence[Sequence[object]]) -> Iterator[pa.Array]:
        for number, column in enumerate(self.columns):
            values = [row[number] for row in rows]
            yield _row_labels(values) if column.is_label else self._ordered[column.key].array(values)


class _OrderedValues:
    """Values that order documents: numbers or strings, as the first one that is not null decides.

    Numbers are float64, so whole numbers beyond 2**53 are rounded. A value of the other kind is null.
    """

    def __init__(self, *, digits_are_numbers: bool) -> None:
        self.digits_are_numbers = digits_are_numbers
        self.kind: type[float] | type[str] | None = None

    def array(self, values: Sequence[object]) -> pa.Array:
        """Return the values of some rows; of the null type until the first value that is not null."""
        parsed = [self._parse(value) for value in values]
        if self.kind is None:
            self.kind = next((type(value) for value in parsed if value is not None), None)
        if self.kind is float:
            return from_numbers([value if isinstance(value, float) else None for value in parsed], np.float64)
        if self.kind is str:
            texts = [value.encode() if isinstance(value, str) else None for value in values]
            return from_bytes(texts, pa.large_string())
        return pa.nulls(len(values))

    def _parse(self, value: object) -> float | str | None:
        """Return a finite number or a string; with ``digits_are_numbers`` the string of a number is a number."""
        if isinstance(value, (int, float)):
            return float(value) if isfinite(value) else None
        if not isinstance(value, str) or (self.digits_are_numbers and not value):
            return None
        if not self.digits_are_numbers or "_" in value:
            return value
        try:
            number = float(value)
        except ValueError:
            return value
        return number if isfinite(number) else None
