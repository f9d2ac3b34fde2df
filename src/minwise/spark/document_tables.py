"""DataFrames of documents: checked columns, the signatures of all rows and the shingle sets of some."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from minwise._internal.arrays import to_numpy
from minwise.checks import check_type, show
from minwise.errors import ConfigError, InputError
from minwise.inputs.columns import Selection, to_batches
from minwise.inputs.elements import set_null
from minwise.inputs.source import BATCH_BYTES, Columns
from minwise.keep_rules import KeepRule
from minwise.search.bands import element_arrays
from minwise.settings import SearchSettings
from minwise.spark.arrow_columns import SPARK_TYPES, elements_column, signature_columns, signature_fields
from minwise.spark.blocks import BLOCKS, Batches, collected, rows_of_blocks
from minwise.spark.frame_tasks import set_blocks_of
from minwise.text.shingling import ShingleSets

__all__ = ["DocumentTable", "DocumentTables", "value_name"]

INTEGERS = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
TEXTS = (t.StringType, t.BinaryType)
SCALARS = (*INTEGERS, *TEXTS, t.BooleanType, t.FloatType, t.DoubleType, t.DecimalType)
TIMES = (t.DateType, t.TimestampType, t.TimestampNTZType)


def value_name(number: int) -> str:
    """Return the name of the values of a table's keep column."""
    return f"value{number}"


@dataclass(frozen=True, kw_only=True)
class DocumentTable:
    """DataFrame of documents whose columns exist and have usable types.

    Attributes:
        frame: The DataFrame as it was given.
        name: Name of the DataFrame in error messages.
        text: Text columns; several are joined by a line break.
        id: Id column.
        id_type: Type that ids are cast to.
        keep_columns: Columns that the keep rule compares.
    """

    frame: DataFrame
    name: str
    text: tuple[str, ...]
    id: str
    id_type: t.DataType
    keep_columns: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        frame: object,
        *,
        name: str,
        text: str | Sequence[str],
        id: str,  # noqa: A002 - the name in the public interface
        settings: SearchSettings,
    ) -> "DocumentTable":
        """Return the checked table.

        Raises:
            ConfigError: If a column name is wrong.
            InputError: If it is no DataFrame, or a column is missing, ambiguous, or of a type that cannot be used.
        """
        found = check_type(name, frame, DataFrame, "; use minwise.pairs, clusters or dedup for what is no DataFrame")
        columns = Columns.of(text, id)
        if len(set(columns.text)) < len(columns.text):
            raise ConfigError(f"text must name each column once, got {show(text)}")
        if settings.shingler is None and len(columns.text) > 1:
            raise ConfigError(f"text must name one column with shingle='set', got {show(text)}")
        types = {column: _type_of(found, column, name) for column in (*columns.text, id)}
        for column in columns.text:
            _check_text(name, column, types[column], sets=settings.shingler is None)
        if not _is_id(types[id]):
            shown = types[id].simpleString()
            raise InputError(f"{name}: {id} must be numbers, strings, dates or a struct of these, got {shown}")
        return cls(frame=found, name=name, text=columns.text, id=id, id_type=types[id])

    def with_keep_columns(self, rule: KeepRule) -> "DocumentTable":
        """Return the table with the columns that the keys of a keep rule compare."""
        columns = tuple(dict.fromkeys(key.column for key in rule.sort_keys if key.column))
        for column in columns:
            kind = _type_of(self.frame, column, self.name)
            if not isinstance(kind, (*SCALARS, *TIMES)):
                raise InputError(
                    f"{self.name}: {column} must be numbers, strings or dates, got a column of {kind.simpleString()}"
                )
        return replace(self, keep_columns=columns)

    @property
    def ids(self) -> Column:
        """The ids, cast to the common type."""
        return _column(self.id).cast(self.id_type).alias("id")

    @property
    def _texts(self) -> list[Column]:
        return [_column(name).alias(alias) for name, alias in zip(self.text, _text_names(self.text), strict=True)]

    def sketched(self, settings: SearchSettings) -> DataFrame:
        """Return ``id``, the keep values as ``value0`` and so on, and those of ``arrow_columns.signature_columns``."""
        keep_values = [_column(name).alias(value_name(number)) for number, name in enumerate(self.keep_columns)]
        chosen = self.frame.select(self.ids, *keep_values, *self._texts)
        schema = t.StructType(chosen.schema.fields[: 1 + len(keep_values)])
        for field in signature_fields(settings):
            schema.add(field.name, SPARK_TYPES[field.type])
        return chosen.mapInArrow(partial(_sketch, settings=settings, names=self.text), schema)

    def set_blocks(self, wanted: DataFrame, settings: SearchSettings) -> DataFrame:
        """Return blocks of the sets of the documents in ``wanted``, which has ``place``, ``cell`` and ``id``."""
        chosen = (
            self.frame.select(self.ids, *self._texts)
            .join(wanted, "id")
            .select("place", "cell", *_text_names(self.text))
        )
        return chosen.mapInArrow(partial(_set_blocks, settings=settings, names=_text_names(self.text)), BLOCKS)

    def elements(self, settings: SearchSettings) -> DataFrame:
        """Return ``place``, which is the id, and ``elements`` of all documents."""
        chosen = self.frame.select(_column(self.id).cast("long"), *self._texts)
        return chosen.mapInArrow(partial(_shingle, settings=settings, names=self.text), "place long, elements binary")

    def without(self, removed: DataFrame) -> DataFrame:
        """Return the rows of the DataFrame whose ids are not in ``removed``."""
        unused_name = f"{''.join(self.frame.columns)}_"
        others = removed.select(f.col("id").alias(unused_name))
        return self.frame.join(others, _column(self.id) == _column(unused_name), "left_anti")


@dataclass(frozen=True)
class DocumentTables:
    """Tables of a search.

    Attributes:
        own: The table that is deduplicated.
        against: The table that it is only compared against, if there is one.
    """

    own: DocumentTable
    against: DocumentTable | None = None

    @classmethod
    def of(cls, own: DocumentTable, against: DocumentTable | None) -> "DocumentTables":
        """Return the tables with ids of one type: integers of different widths are cast, all else must be equal."""
        if against is None or own.id_type == against.id_type:
            return cls(own, against)
        types = (own.id_type, against.id_type)
        if not all(isinstance(kind, INTEGERS) for kind in types):
            own_type, other_type = (kind.simpleString() for kind in types)
            raise InputError(
                f"against must have ids of the same type as the DataFrame, got {other_type} and {own_type}; cast them"
            )
        return cls(replace(own, id_type=t.LongType()), replace(against, id_type=t.LongType()))

    @property
    def all(self) -> list[DocumentTable]:
        """Both tables."""
        return [self.own] if self.against is None else [self.against, self.own]

    def sketched(self, settings: SearchSettings) -> DataFrame:
        """Return the signatures of all rows, with ``own``: whether a row is of the table that is deduplicated."""
        return self._union(lambda table: table.sketched(settings).withColumn("own", f.lit(table is self.own)))

    def set_blocks(self, wanted: DataFrame, settings: SearchSettings) -> DataFrame:
        """Return blocks of the sets of the documents in ``wanted``: ``own``, ``place``, ``cell`` and ``id``."""

        def blocks(table: DocumentTable) -> DataFrame:
            own = f.col("own") == (table is self.own)
            return table.set_blocks(wanted.filter(own).drop("own"), settings)

        return self._union(blocks)

    def _union(self, make: Callable[[DocumentTable], DataFrame]) -> DataFrame:
        """Return the rows that are made of all tables; a column that one lacks is null there."""
        return reduce(lambda rows, more: rows.unionByName(more, allowMissingColumns=True), map(make, self.all))


def _text_names(text: tuple[str, ...]) -> tuple[str, ...]:
    """Return names for the text columns that differ from all other columns."""
    return tuple(f"text_{number}" for number in range(len(text)))


def _column(name: str) -> Column:
    """Return the column of exactly this name, whatever characters it contains."""
    return f.col("`" + name.replace("`", "``") + "`")


def _type_of(frame: DataFrame, column: str, name: str) -> t.DataType:
    found = [field.dataType for field in frame.schema.fields if field.name == column]
    if len(found) != 1:
        fault = "more than one column" if found else "no column"
        raise InputError(f"{name} has {fault} {column!r}; its columns are: {', '.join(frame.columns)}")
    return found[0]


def _check_text(name: str, column: str, kind: t.DataType, *, sets: bool) -> None:
    if sets and not (isinstance(kind, t.ArrayType) and isinstance(kind.elementType, (*INTEGERS, *TEXTS))):
        rule = "must be an array of whole numbers, strings or bytes with shingle='set'"
        raise InputError(f"{name}: {column} {rule}, got a column of {kind.simpleString()}")
    if not sets and not isinstance(kind, TEXTS):
        raise InputError(f"{name}: {column} must be strings or bytes, got a column of {kind.simpleString()}")


def _is_id(kind: t.DataType) -> bool:
    if isinstance(kind, t.StructType):
        return bool(kind.fields) and all(_is_id(field.dataType) for field in kind.fields)
    return isinstance(kind, (*SCALARS, *TIMES))


def _sketch(batches: Batches, *, settings: SearchSettings, names: tuple[str, ...]) -> Batches:
    """Yield the signatures of rows whose last columns are the text, after their other columns."""
    for rows in batches:
        others = rows.columns[: len(rows.columns) - len(names)]
        for first, texts, reasons in _documents(rows, settings, names):
            columns = signature_columns(texts, settings, reasons)
            head = [column.slice(first, len(texts)) for column in others]
            head_names = rows.schema.names[: len(head)]
            yield pa.RecordBatch.from_arrays([*head, *columns.values()], names=[*head_names, *columns])


def _shingle(batches: Batches, *, settings: SearchSettings, names: tuple[str, ...]) -> Batches:
    """Yield the sets of rows whose first column is the place and whose others are the text."""
    for rows in batches:
        for first, texts, _ in _documents(rows, settings, names):
            places = rows.column(0).slice(first, len(texts))
            yield pa.RecordBatch.from_arrays([places, elements_column(texts, settings)], names=["place", "elements"])


def _set_blocks(batches: Batches, *, settings: SearchSettings, names: tuple[str, ...]) -> Batches:
    """Yield blocks of the sets of rows whose first columns are place and cell and whose others are the text."""
    sets = (found for rows in batches for found in _placed_sets(rows, settings, names))
    for held in collected(sets, lambda found: found[-1].nbytes):  # so that blocks are not small
        yield from rows_of_blocks(set_blocks_of(*map(np.concatenate, zip(*held, strict=True))))


def _placed_sets(
    rows: pa.RecordBatch, settings: SearchSettings, names: tuple[str, ...]
) -> Iterator[tuple[NDArray[Any], ...]]:
    """Yield places, cells, sizes and elements of the sets of consecutive rows."""
    for first, texts, _ in _documents(rows, settings, names):
        if not texts.null_count:
            places, cells = (to_numpy(rows.column(index))[first : first + len(texts)] for index in (0, 1))
            offsets, elements = element_arrays(texts, settings.shingler, 1)
            yield places, cells, np.diff(offsets), elements


def _documents(
    rows: pa.RecordBatch, settings: SearchSettings, names: tuple[str, ...]
) -> Iterator[tuple[int, pa.Array, dict[int, str]]]:
    """Yield texts or sets of consecutive rows: the first row, the values, and the reason for each null by row."""
    texts = pa.RecordBatch.from_arrays(rows.columns[len(rows.columns) - len(names) :], names=list(names))
    if settings.shingler is None:
        yield 0, *_hashed_sets(texts.column(0), names[0])
        return
    for batch in to_batches(texts, 0, Selection(Columns(text=names), None), "", BATCH_BYTES, is_file=False):
        yield batch.first, batch.values, {(fault.row or 0) - batch.first: fault.reason for fault in batch.faults}


def _hashed_sets(column: pa.Array, name: str) -> tuple[pa.Array, dict[int, str]]:
    """Return sets of hashed elements, null where there is no usable set, and the reason for each null by row."""
    found = [_members(value) for value in column]
    reasons = {row: f"{name} {members}" for row, members in enumerate(found) if isinstance(members, str)}
    sets = ShingleSets.from_sets([] if isinstance(members, str) else members for members in found)
    return set_null(sets.to_arrow(), reasons), reasons


def _members(value: pa.Scalar) -> list[object] | str:
    """Return the elements of a set, or the reason why it cannot be used."""
    try:
        members = value.as_py()
    except UnicodeDecodeError:
        return "holds a string that is not valid UTF-8"
    if members is None:
        return "is null"
    return "holds a null" if None in members else members
