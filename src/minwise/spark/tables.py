"""Tables: a user's DataFrames in; the signatures of their rows, and the sets of some of them, out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from minwise._internal.arrays import from_lists, to_numpy
from minwise.checks import check_type, show
from minwise.errors import ConfigError, InputError
from minwise.inputs.columns import Selection, to_batches
from minwise.inputs.elements import all_but
from minwise.inputs.source import BATCH_BYTES, Columns
from minwise.settings import FindSettings
from minwise.spark.signatures import NAMES, elements_column, signature_columns, signature_fields
from minwise.text.shingling import ShingleSets

__all__ = ["Table", "Tables"]

Batches = Iterator[pa.RecordBatch]

WHOLE = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
TEXT = (t.StringType, t.BinaryType)
PLAIN = (*WHOLE, *TEXT, t.BooleanType, t.FloatType, t.DoubleType, t.DecimalType)
TIMES = (t.DateType, t.TimestampType, t.TimestampNTZType)


@dataclass(frozen=True, kw_only=True)
class Table:
    """A DataFrame of documents, whose columns are known to be there and to be what they should.

    Attributes:
        frame: The DataFrame as it was given.
        name: What an error calls it.
        text: The columns of the text; several are joined by a line break.
        id: The column of the id.
        id_type: What ids are cast to.
        rank: The column that the keep policy compares, if it is one that does.
    """

    frame: DataFrame
    name: str
    text: tuple[str, ...]
    id: str
    id_type: t.DataType
    rank: str | None = None

    @classmethod
    def of(
        cls,
        frame: object,
        *,
        name: str,
        text: str | Sequence[str],
        id: str,  # noqa: A002 - what users call it
        settings: FindSettings,
    ) -> "Table":
        """The table, if it is one.

        Raises:
            ConfigError: If a name is none.
            InputError: If it is no DataFrame, or a column is missing, there twice, or of a type that can not be used.
        """
        found = check_type(name, frame, DataFrame, "; use minwise.pairs, clusters or dedup for what is no DataFrame")
        columns = Columns.of(text, id)
        if len(set(columns.text)) < len(columns.text):
            raise ConfigError(f"text must name each column once, got {show(text)}")
        if settings.shingler is None and len(columns.text) > 1:
            raise ConfigError(f"text must name one column with shingle='set', got {show(text)}")
        kinds = {one: _type_of(found, one, name) for one in (*columns.text, id)}
        for one in columns.text:
            _check_text(name, one, kinds[one], sets=settings.shingler is None)
        if not _is_id(kinds[id]):
            shown = kinds[id].simpleString()
            raise InputError(f"{name}: {id} must be numbers, strings, dates or a struct of these, got {shown}")
        return cls(frame=found, name=name, text=columns.text, id=id, id_type=kinds[id])

    def ranked(self, column: str | None) -> "Table":
        """The table with the column that a keep policy compares."""
        if column is None:
            return self
        kind = _type_of(self.frame, column, self.name)
        if not isinstance(kind, (*PLAIN, *TIMES)):
            raise InputError(
                f"{self.name}: {column} must be numbers, strings or dates, got a column of {kind.simpleString()}"
            )
        return replace(self, rank=column)

    @property
    def ids(self) -> Column:
        """The ids as they are compared."""
        return _column(self.id).cast(self.id_type).alias("id")

    @property
    def _texts(self) -> list[Column]:
        return [_column(name).alias(one) for name, one in zip(self.text, _text_names(self.text), strict=True)]

    def sketched(self, settings: FindSettings) -> DataFrame:
        """``id``, ``rank`` if there is one, and what :func:`minwise.spark.signatures.signature_columns` gives."""
        rank = [] if self.rank is None else [_column(self.rank).alias("rank")]
        chosen = self.frame.select(self.ids, *rank, *self._texts)
        schema = t.StructType(chosen.schema.fields[: 1 + len(rank)])
        for field in signature_fields(settings):
            schema.add(field.name, NAMES[field.type])
        return chosen.mapInArrow(partial(_sketch, settings=settings, names=self.text), schema)

    def sets(self, wanted: DataFrame, settings: FindSettings) -> DataFrame:
        """``place`` and ``elements`` of the documents that ``wanted``, ``place`` and ``id``, names."""
        chosen = self.frame.select(self.ids, *self._texts).join(wanted, "id")
        return replace(self, frame=chosen, id="place", text=_text_names(self.text)).elements(settings)

    def elements(self, settings: FindSettings) -> DataFrame:
        """``place``, which is the id, and ``elements`` of all documents."""
        chosen = self.frame.select(_column(self.id).cast("long"), *self._texts)
        return chosen.mapInArrow(partial(_shingle, settings=settings, names=self.text), "place long, elements binary")

    def without(self, gone: DataFrame) -> DataFrame:
        """The rows of the DataFrame whose ids are not among ``gone``."""
        unlike_any = f"{''.join(self.frame.columns)}_"
        others = gone.select(f.col("id").alias(unlike_any))
        return self.frame.join(others, _column(self.id) == _column(unlike_any), "left_anti")


@dataclass(frozen=True)
class Tables:
    """What there is to read.

    Attributes:
        own: The table that is deduplicated.
        against: The table that is only compared against, if there is one.
    """

    own: Table
    against: Table | None = None

    @classmethod
    def of(cls, own: Table, against: Table | None) -> "Tables":
        """The tables with ids of one type: whole numbers of different sizes are cast, all else must be equal."""
        if against is None or own.id_type == against.id_type:
            return cls(own, against)
        kinds = (own.id_type, against.id_type)
        if not all(isinstance(kind, WHOLE) for kind in kinds):
            one, other = (kind.simpleString() for kind in kinds)
            raise InputError(
                f"against must have ids of the same type as the DataFrame, got {other} and {one}; cast them"
            )
        return cls(replace(own, id_type=t.LongType()), replace(against, id_type=t.LongType()))

    @property
    def all(self) -> list[Table]:
        """Both tables."""
        return [self.own] if self.against is None else [self.against, self.own]

    def sketched(self, settings: FindSettings) -> DataFrame:
        """The signatures of all rows; ``own`` says of which table one is."""
        own = self.own.sketched(settings).withColumn("own", f.lit(True))
        if self.against is None:
            return own
        against = self.against.sketched(settings).withColumn("own", f.lit(False))
        return own.unionByName(against, allowMissingColumns=True)

    def sets(self, wanted: DataFrame, settings: FindSettings) -> DataFrame:
        """``place`` and ``elements`` of the documents that ``wanted``, ``own``, ``place`` and ``id``, names."""
        own = self.own.sets(wanted.filter("own").drop("own"), settings)
        if self.against is None:
            return own
        return own.union(self.against.sets(wanted.filter("not own").drop("own"), settings))


def _text_names(text: tuple[str, ...]) -> tuple[str, ...]:
    """Names for the columns of the text that no other column has."""
    return tuple(f"text_{place}" for place in range(len(text)))


def _column(name: str) -> Column:
    """The column of exactly this name, whatever is in it."""
    return f.col("`" + name.replace("`", "``") + "`")


def _type_of(frame: DataFrame, column: str, name: str) -> t.DataType:
    found = [field.dataType for field in frame.schema.fields if field.name == column]
    if len(found) != 1:
        fault = "more than one column" if found else "no column"
        raise InputError(f"{name} has {fault} {column!r}; its columns are: {', '.join(frame.columns)}")
    return found[0]


def _check_text(name: str, column: str, kind: t.DataType, *, sets: bool) -> None:
    if sets and not (isinstance(kind, t.ArrayType) and isinstance(kind.elementType, (*WHOLE, *TEXT))):
        rule = "must be an array of whole numbers, strings or bytes with shingle='set'"
        raise InputError(f"{name}: {column} {rule}, got a column of {kind.simpleString()}")
    if not sets and not isinstance(kind, TEXT):
        raise InputError(f"{name}: {column} must be strings or bytes, got a column of {kind.simpleString()}")


def _is_id(kind: t.DataType) -> bool:
    if isinstance(kind, t.StructType):
        return bool(kind.fields) and all(_is_id(field.dataType) for field in kind.fields)
    return isinstance(kind, (*PLAIN, *TIMES))


def _sketch(batches: Batches, *, settings: FindSettings, names: tuple[str, ...]) -> Batches:
    """The signatures of rows that end with the columns of the text."""
    for rows in batches:
        others = rows.columns[: len(rows.columns) - len(names)]
        for first, texts, reasons in _documents(rows, settings, names):
            columns = signature_columns(texts, settings)
            if reasons:
                known = columns["fault"].to_pylist()
                columns["fault"] = pa.array([reasons.get(row, fault) for row, fault in enumerate(known)], pa.string())
            mine = [column.slice(first, len(texts)) for column in others]
            head = rows.schema.names[: len(mine)]
            yield pa.RecordBatch.from_arrays([*mine, *columns.values()], names=[*head, *columns])


def _shingle(batches: Batches, *, settings: FindSettings, names: tuple[str, ...]) -> Batches:
    """The sets of rows that start with the place and go on with the columns of the text."""
    for rows in batches:
        for first, texts, _ in _documents(rows, settings, names):
            places = rows.column(0).slice(first, len(texts))
            yield pa.RecordBatch.from_arrays([places, elements_column(texts, settings)], names=["place", "elements"])


def _documents(
    rows: pa.RecordBatch, settings: FindSettings, names: tuple[str, ...]
) -> Iterator[tuple[int, pa.Array, dict[int, str]]]:
    """The texts or sets of some rows at a time: the row of the first, and the reason for each null among them."""
    texts = pa.RecordBatch.from_arrays(rows.columns[len(rows.columns) - len(names) :], names=list(names))
    if settings.shingler is None:
        yield 0, *_sets(texts.column(0), names[0])
        return
    for batch in to_batches(texts, 0, Selection(Columns(text=names), None), "", BATCH_BYTES):
        yield batch.first, batch.texts, {(fault.row or 0) - batch.first: fault.reason for fault in batch.faults}


def _sets(column: pa.Array, name: str) -> tuple[pa.Array, dict[int, str]]:
    """Hashed elements; null, with a reason, where there is no set or it has something in it that is no element."""
    members: list[list[object]] = []
    reasons: dict[int, str] = {}
    for row in range(len(column)):
        found = _members(column[row])
        if isinstance(found, str):
            reasons[row] = f"{name} {found}"
            found = []
        members.append(found)
    sets = ShingleSets.from_sets(members).to_arrow()
    if not reasons:
        return sets, reasons
    return from_lists(to_numpy(sets.offsets), sets.values, all_but(reasons, len(sets))), reasons


def _members(value: pa.Scalar) -> list[object] | str:
    """The elements of a set, or what is wrong with it."""
    try:
        members = value.as_py()
    except UnicodeDecodeError:
        return "holds a string that is not valid UTF-8"
    if members is None:
        return "is null"
    return "holds a null" if None in members else members
