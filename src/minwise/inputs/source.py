"""Interface of every input format: a source yields its rows in batches and copies the kept ones.

A row that cannot be used has a null value and a :class:`Fault` with the reason. A file that cannot be read any further
ends in an empty batch whose fault has no row number.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise._internal.arrays import from_numpy, repeat_string, valid_mask
from minwise.checks import check_delimiter, check_encoding, show
from minwise.errors import ConfigError, InputError
from minwise.inputs.document_values import DocumentValues, ValueColumn, slice_values
from minwise.inputs.elements import Elements
from minwise.text.html import html_to_text

if TYPE_CHECKING:
    from minwise.inputs.files import File, FileVersions
    from minwise.inputs.row_edits import RowEdits

__all__ = [
    "BATCH_BYTES",
    "BATCH_ROWS",
    "LISTED_FAULTS",
    "Batch",
    "ColumnError",
    "Columns",
    "CopyError",
    "Fault",
    "FaultLog",
    "RowMask",
    "Source",
    "TextSettings",
    "UnreadableError",
    "fault_error",
    "unusable_error",
]

# Approximate bytes of text in a batch: enough to keep every core busy, little compared with the memory of a run.
BATCH_BYTES = 1 << 25
# Maximum rows in a batch: the overhead of a short text is larger than its bytes.
BATCH_ROWS = 65_536

# One flag per row of a source.
RowMask = NDArray[np.bool_]


class UnreadableError(Exception):
    """The content of a file is invalid from some point on; the message is the reason. A source reports it."""


class ColumnError(UnreadableError):
    """A source lacks a column, or has one of a type that cannot be used, so none of its rows can be."""


class CopyError(InputError):
    """Kept rows cannot be copied: a column that only the copy reads is damaged."""


# Faults that a report lists; without an output directory there is no quarantine file with all of them.
LISTED_FAULTS = 100


@dataclass(frozen=True, slots=True)
class Fault:
    """The reason why a row cannot be used or, if ``row`` is None, why the rest of a file cannot.

    Attributes:
        source: Name of the file.
        row: Row within the file, counted from 0.
        reason: One line for the user, such as ``text is null``.
    """

    source: str
    row: int | None
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes as a dictionary."""
        return asdict(self)

    def __str__(self) -> str:
        where = [self.source, "" if self.row is None else f"row {self.row}"]
        return ": ".join([*filter(None, where), self.reason])


def fault_error(fault: object) -> InputError:
    """Return the error that ends a run at a fault, with ``on_error="fail"``."""
    return InputError(f"{fault}; set on_error='quarantine' to skip such rows")


def unusable_error(source: "Source", reason: str, *, alone: bool) -> InputError:
    """Return the error that ends a run at an input of which no row can be used.

    Args:
        source: The input.
        reason: Why its first row, or all of it, cannot be used.
        alone: Whether it is the only input, so that nothing is left to go on with.
    """
    rows = source.count_rows() or 0
    unusable = "its only row cannot be used" if rows == 1 else f"none of its {rows:,} rows can be used" if rows else ""
    what = [source.name, unusable, reason]
    remedy = "" if alone else "; set on_error='quarantine' to go on without this input"
    return InputError(": ".join(filter(None, what)) + remedy)


@dataclass(slots=True)
class FaultLog:
    """Rows that cannot be used: their number, and the first of them.

    Attributes:
        on_error: ``fail``, ``quarantine-rows``, ``quarantine`` or ``skip``.
        count: Number of faults.
        shown: The first 100 faults.
    """

    on_error: str
    count: int = 0
    shown: list[Fault] = field(default_factory=list)

    def add(self, faults: list[Fault]) -> None:
        """Add faults.

        Raises:
            InputError: If there are any and ``on_error`` is ``fail``.
        """
        if faults and self.on_error == "fail":
            raise fault_error(faults[0])
        self.count += len(faults)
        self.shown.extend(faults[: LISTED_FAULTS - len(self.shown)])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for the work directory."""
        return {"count": self.count, "shown": [[fault.source, fault.row, fault.reason] for fault in self.shown]}

    def restore(self, values: dict[str, Any]) -> None:
        """Replace the content by what :meth:`to_dict` returned."""
        self.count, self.shown = values["count"], [Fault(*fault) for fault in values["shown"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The columns to read.

    Attributes:
        text: The text columns; several are joined by a line break.
        id: The id column; None selects ``id`` where a file has it.
        values: The columns whose values are kept for each document.
        metadata: Columns that are returned as JSON values.
        elements: How the columns in ``text`` become sets; None if they are texts.
        html: Whether texts are HTML pages, of which only the visible text counts.
    """

    text: tuple[str, ...] = ("text",)
    id: str | None = None
    values: tuple[ValueColumn, ...] = ()
    metadata: tuple[str, ...] = ()
    elements: Elements | None = None
    html: bool = False

    @classmethod
    def of(
        cls,
        text_column: str | Sequence[str],
        id_column: str | None,
        *,
        values: tuple[ValueColumn, ...] = (),
        metadata_columns: str | Sequence[str] = (),
    ) -> "Columns":
        """Return the columns that a user named.

        Raises:
            ConfigError: If a name is empty or not a string.
        """
        text = _column_names("text_column", text_column)
        if not text:
            raise ConfigError(f"text_column must be one or more names, got {show(text_column)}")
        if id_column is not None and not (isinstance(id_column, str) and id_column):
            raise ConfigError(f"id_column must be a name, got {show(id_column)}")
        metadata = _column_names("metadata_columns", metadata_columns)
        return cls(text=text, id=id_column, values=values, metadata=metadata)


@dataclass(frozen=True, slots=True)
class TextSettings:
    """How text files are read, where the user decides it instead of the first bytes of a file.

    Attributes:
        delimiter: The delimiter of CSV and TSV.
        encoding: The encoding of all text files.
    """

    delimiter: str | None = None
    encoding: str | None = None

    @classmethod
    def of(cls, delimiter: object, encoding: object) -> "TextSettings":
        """Return the settings that a user gave.

        Raises:
            ConfigError: If a value is invalid.
        """
        return cls(check_delimiter(delimiter), check_encoding(encoding))

    def apply(self, sources: "Iterable[Source]") -> None:
        """Let sources be read like this; a format without a setting ignores it."""
        for source in sources:
            for name, value in self._given():
                if name in source.text_settings:
                    source.decide(name, value)

    def check_used(self, sources: "Sequence[Source]") -> None:
        """Raise :class:`~minwise.errors.ConfigError` if a setting was given that no source has."""
        for name, value in self._given():
            if not any(name in source.text_settings for source in sources):
                what = "CSV or TSV" if name == "delimiter" else "a text file"
                raise ConfigError(f"{name} must be left out where no input is {what}, got {show(value)}")

    def _given(self) -> list[tuple[str, str]]:
        return [(name, value) for name, value in asdict(self).items() if value is not None]


def _column_names(setting: str, given: str | Sequence[str]) -> tuple[str, ...]:
    """Return one or more names as a tuple."""
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) and name for name in names):
        raise ConfigError(f"{setting} must be one or more names, got {show(given)}")
    return tuple(names)


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive rows of a source.

    Attributes:
        first: Row number of the first row within the source.
        values: What rows are compared by, null where a row cannot be used. Texts are string, large_string, binary or
            large_binary; sets are lists of hashed elements, vectors fixed-size lists of numbers.
        ids: int64 or large_string, null where a row has none; None if the source has no ids. A format without a schema
            (JSON lines) may give whole numbers in one batch and strings in the next.
        document_values: The values that are kept for each document, null where a row has none, by the key of their
            column.
        faults: One for each null value. If a source cannot be read to its end, its last batch is empty and holds one
            fault whose row is None.
        metadata: A JSON object for each row with the metadata columns, None where a row has no value; None without
            metadata columns.
    """

    first: int
    values: pa.Array
    ids: pa.Array | None = None
    document_values: DocumentValues = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    metadata: list[dict[str, Any]] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def slice(self, start: int, stop: int) -> "Batch":
        """Return the rows from ``start`` up to ``stop``, with their faults."""
        if (start, stop) == (0, len(self)):
            return self
        values = self.values.slice(start, stop - start)
        ids = None if self.ids is None else self.ids.slice(start, stop - start)
        document_values = slice_values(self.document_values, start, stop - start)
        nulls_before = self.values.slice(0, start).null_count
        faults = self.faults[nulls_before : nulls_before + values.null_count]  # one fault per null, in their order
        metadata = None if self.metadata is None else self.metadata[start:stop]
        return Batch(self.first + start, values, ids, document_values, faults, metadata)


def _null_values(columns: Columns, rows: int) -> pa.Array:
    return pa.nulls(rows, pa.large_string() if columns.elements is None else pa.large_list(pa.uint64()))


class Source(ABC):
    """A file, a run of text files or a table in memory, as rows numbered from 0.

    Attributes:
        name: The path as the user gave it, normalised; a URL unchanged; "" for a table in memory. Bytes that a terminal
            or a JSON file cannot show are escaped.
    """

    name: str
    # Whether each row is a file of its own. All such files count as one input: an unreadable one is a bad row.
    is_loose = False
    # Settings of text files that the format has; each is an attribute of the source, None to detect it.
    text_settings: tuple[str, ...] = ()
    # What the files were when the run began; None before :meth:`note_files`.
    versions: "FileVersions | None" = None
    # Memory of the run in bytes; None if there is no limit.
    memory: int | None = None
    # Number of threads that may encode the kept rows of this source.
    encoders: int = 1

    def decide(self, name: str, value: str) -> None:
        """Use the value of one of ``text_settings`` instead of detecting it."""
        setattr(self, name, value)

    def limit_memory(self, memory: int) -> None:
        """Let reading take about ``memory`` bytes, in a format whose files can require any amount."""
        self.memory = memory

    @abstractmethod
    def fingerprint(self) -> dict[str, object]:
        """Return name, ``bytes`` and ``modified`` as of now; they change when the source changes."""

    @abstractmethod
    def size_bytes(self) -> int:
        """Return the bytes to read, for a progress bar."""

    def known_rows(self) -> int | None:
        """Return the number of rows, or None if only reading all of them would tell."""
        return None

    def count_rows(self) -> int | None:
        """Return the number of rows, even if they must be read; None if a format has no rows without their columns."""
        return self.known_rows()

    def reading(self) -> str | None:
        """Return how the source is read where a user may doubt it, such as ``;-separated, cp1252``; None otherwise."""
        return None

    def column_names(self) -> list[str] | None:
        """Return the names of the columns, of JSON those of the first objects; None if rows have no columns.

        Raises:
            UnreadableError: If the source cannot be read.
        """
        return None

    def origins(self) -> "Sequence[Source]":
        """Return the sources that were opened for the user: this one, or those that its rows were made of."""
        return [self]

    def split_points(self, max_bytes: int) -> list[int]:
        """Return rows at which to split the source into pieces of about ``max_bytes``.

        Reading the pieces costs no more than reading the whole; a format that cannot be split returns no rows.
        """
        return []

    def column_problem(self, columns: Columns) -> str | None:
        """Return why no row can be used, as far as it is known before any is read; None otherwise."""
        try:
            self._select(columns)
        except UnreadableError as error:
            return str(error)
        return None

    def _select(self, columns: Columns) -> object:
        """Return the columns of the source to read; a format without a schema has nothing to check.

        Raises:
            ColumnError: If a column is missing, or has a type that cannot be used.
        """
        return None

    def batches(
        self, columns: Columns, *, wanted: RowMask | None = None, batch_bytes: int = BATCH_BYTES
    ) -> Iterator[Batch]:
        """Yield the rows in order, in batches of about ``batch_bytes`` of text.

        Args:
            columns: The columns to read.
            wanted: A flag per row; batches without any wanted row may be left out, all others are complete.
            batch_bytes: Approximate bytes of text in a batch. No row depends on it.

        Raises:
            OSError: If the system fails to read. A damaged file ends in a batch with a fault instead.
        """
        rows = 0
        try:
            for batch in self._read(columns, wanted, batch_bytes):
                rows = batch.first + len(batch)
                yield self._parse_html(batch) if columns.html else batch
                del batch  # before the next one is read
        except UnreadableError as error:
            if isinstance(error, ColumnError):
                for batch in self._unusable_rows(columns, str(error)):
                    rows = batch.first + len(batch)
                    yield batch
            yield Batch(rows, _null_values(columns, 0), faults=(Fault(self.name, None, str(error)),))

    def _parse_html(self, batch: Batch) -> Batch:
        """Return the batch with the visible texts of its pages; a page that is not parsed has a fault."""
        values, problems = html_to_text(batch.values)
        names, numbers = self.locate(np.array([batch.first + row for row in problems], dtype=np.int64))
        located = zip(problems.items(), names.to_pylist(), numbers.tolist(), strict=True)
        refused = [(row, Fault(name, number, reason)) for (row, reason), name, number in located]
        nulls = np.flatnonzero(~valid_mask(batch.values)).tolist()
        faults = sorted([*zip(nulls, batch.faults, strict=False), *refused], key=lambda entry: entry[0])
        whole = batch.faults[len(nulls) :]
        return replace(batch, values=values, faults=(*(fault for _, fault in faults), *whole))

    def _unusable_rows(self, columns: Columns, reason: str) -> Iterator[Batch]:
        """Yield all rows as faults, if their number is known."""
        total = self.count_rows() or 0
        for first in range(0, total, BATCH_ROWS):
            rows = np.arange(first, min(total, first + BATCH_ROWS), dtype=np.int64)
            names, numbers = self.locate(rows)
            faults = [Fault(name, row, reason) for name, row in zip(names.to_pylist(), numbers.tolist(), strict=True)]
            yield Batch(first, _null_values(columns, len(rows)), faults=tuple(faults))

    @abstractmethod
    def _read(self, columns: Columns, wanted: RowMask | None, batch_bytes: int) -> Iterator[Batch]:
        """Yield the batches; raise ``UnreadableError`` where the source cannot be read any further."""

    def locate(self, rows: NDArray[np.int64]) -> tuple[pa.Array, NDArray[np.int64]]:
        """Return the file name and the row within that file for each of ``rows``."""
        return repeat_string(self.name, len(rows)), rows

    def index_of(self, row: int) -> int | None:
        """Return the number of a row of the file among those of the source; None if it has no such row."""
        return row

    def paths(self) -> list[str]:
        """Return the paths of the files that are read; none for a source in memory."""
        return [file.path for file in self.stored_files()]

    def stored_files(self) -> "Sequence[File]":
        """Return the files that are read; none for a source in memory."""
        return []

    def note_files(self) -> None:
        """Note size, modification time and inode of the files, for :meth:`refuse_changes`."""
        from minwise.inputs.files import FileVersions  # here, because files import this module

        self.versions = FileVersions(self.stored_files())

    def change(self, *, remote: bool = True) -> InputError | None:
        """Return an error if a file has changed since :meth:`note_files`; None otherwise.

        Args:
            remote: Whether to ask for the versions of files at URLs, too; each is a request.
        """
        return None if self.versions is None else self.versions.change(remote=remote)

    def refuse_changes(self, *, remote: bool = True) -> None:
        """Raise :class:`~minwise.errors.InputError` if a file has changed since :meth:`note_files`."""
        change = self.change(remote=remote)
        if change is not None:
            raise change

    def default_ids(self, rows: NDArray[np.int64]) -> pa.Array:
        """Return ``name:row`` for each of ``rows``: the ids of a source that has none."""
        numbers = from_numpy(rows.astype(np.int64)).cast(pa.large_string())
        name, colon = (repeat_string(text, len(rows)) for text in (self.name, ":"))
        return pc.binary_join_element_wise(name, numbers, colon)

    @abstractmethod
    def copy_kept(self, keep: RowMask, folder: Path, root: str, edits: "RowEdits | None" = None) -> int:
        """Write the kept rows to ``folder``, in their own format and under the name relative to ``root``.

        Args:
            keep: A flag per row.
            folder: Directory of the copies, created if it is missing.
            root: The common parent of all sources, as ``open_sources`` returns it.
            edits: Edits of the kept rows; without them the rows are unchanged.

        Returns:
            The number of rows written: as many as ``keep`` has set, unless the source has changed since it was read.
        """

    def note_damage(self) -> bool:
        """Read every column, and from now on treat rows that cannot be copied as unreadable.

        Returns:
            Whether there are such rows. A format whose rows are read as a whole has none.
        """
        return False

    def kept_objects(self, keep: RowMask, edits: "RowEdits | None" = None) -> Iterator[Any]:
        """Yield the kept rows as values that JSON can hold: objects of all columns.

        Args:
            keep: A flag per row.
            edits: Edits of the kept rows; without them the rows are unchanged.
        """
        raise InputError(f"{self.name or 'the input'}: its rows cannot be written as JSON")
