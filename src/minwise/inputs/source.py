"""Source: what every format offers; columns asked for in, batches of texts, ids and faults out, kept rows copied."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise._internal.arrays import from_numpy, repeat_string
from minwise.checks import show
from minwise.errors import ConfigError
from minwise.inputs.elements import Elements
from minwise.text.html import readable_texts

__all__ = ["BATCH_BYTES", "BATCH_ROWS", "Batch", "Columns", "Fault", "Source", "Unreadable"]

# Bytes of text in a batch, about: enough to keep every core busy, little beside the memory a run is given.
BATCH_BYTES = 1 << 25
# Rows in a batch, at most: short texts cost more beside their bytes than in them.
BATCH_ROWS = 65_536


class Unreadable(Exception):  # noqa: N818 - it never leaves this package: a source turns it into its last fault
    """A file can not be read, or not read on; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a row can not be used, or with ``row`` None why the rest of a file can not.

    Attributes:
        source: Name of the file.
        row: Row within the file, counted from 0.
        reason: One line for a person, such as ``text is null``.
    """

    source: str
    row: int | None
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values under their names."""
        return asdict(self)

    def __str__(self) -> str:
        where = [self.source, "" if self.row is None else f"row {self.row}"]
        return ": ".join([*filter(None, where), self.reason])


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Which columns are read.

    Attributes:
        text: The columns of the text; several are joined by a line break.
        id: The column of the id; None takes ``id`` where a file has it.
        rank: The column by which a keep policy such as ``max:COL`` compares: numbers, strings or dates.
        metadata: Columns that are read as they are, whatever JSON can hold of them.
        elements: What makes sets of the columns in ``text``, if they are not texts.
        html: Whether texts are pages of HTML, of which only what a reader sees counts.
    """

    text: tuple[str, ...] = ("text",)
    id: str | None = None
    rank: str | None = None
    metadata: tuple[str, ...] = ()
    elements: Elements | None = None
    html: bool = False

    @classmethod
    def of(
        cls,
        text_column: str | Sequence[str],
        id_column: str | None,
        *,
        rank: str | None = None,
        metadata_columns: str | Sequence[str] = (),
    ) -> "Columns":
        """The columns as a user names them.

        Raises:
            ConfigError: If a name is none.
        """
        text = _names("text_column", text_column)
        if not text:
            raise ConfigError(f"text_column must be a name or several, got {show(text_column)}")
        if id_column is not None and not (isinstance(id_column, str) and id_column):
            raise ConfigError(f"id_column must be a name, got {show(id_column)}")
        return cls(text=text, id=id_column, rank=rank, metadata=_names("metadata_columns", metadata_columns))


def _names(setting: str, given: str | Sequence[str]) -> tuple[str, ...]:
    """One name or several as a tuple."""
    several = [given] if isinstance(given, str) else given
    if not isinstance(several, (list, tuple)) or not all(isinstance(name, str) and name for name in several):
        raise ConfigError(f"{setting} must be a name or several, got {show(given)}")
    return tuple(several)


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows that follow each other in a source.

    Attributes:
        first: Row number of the first row within the source.
        texts: String, large_string, binary or large_binary; null where there is no usable text. With ``elements``,
            what these make of a row: mostly a list of hashed elements.
        ids: int64 or large_string, null where a row has none; None if the source has no ids. A source whose file has no
            types (JSONL) may give whole numbers in one batch and strings in the next.
        rank: The values that a keep policy compares, null where a row has none; None if no such column was asked for.
        faults: One for each null text; a last, empty batch holds the one with row None if a source can not be read on.
        metadata: A JSON object for each row with the columns of metadata, None where a row has no value; None if no
            such column was asked for.
    """

    first: int
    texts: pa.Array
    ids: pa.Array | None = None
    rank: pa.Array | None = None
    faults: tuple[Fault, ...] = ()
    metadata: list[dict[str, Any]] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def part(self, start: int, stop: int) -> "Batch":
        """Some of the rows, with their faults."""
        if (start, stop) == (0, len(self)):
            return self
        texts = self.texts.slice(start, stop - start)
        ids, rank = (None if column is None else column.slice(start, stop - start) for column in (self.ids, self.rank))
        before = self.texts.slice(0, start).null_count
        faults = self.faults[before : before + texts.null_count]  # a fault per null, in their order
        metadata = None if self.metadata is None else self.metadata[start:stop]
        return Batch(self.first + start, texts, ids, rank, faults, metadata)


class Source(ABC):
    """A file, a run of text files or a table, as rows that are numbered from 0.

    Attributes:
        name: The path as the user gave it, normalised; a URL as it is; "" for a table in memory. What a terminal or a
            JSON file could not show is escaped.
    """

    name: str

    @abstractmethod
    def fingerprint(self) -> dict[str, object]:
        """Name, ``bytes`` and ``modified`` as of now: what changes when the source does."""

    @abstractmethod
    def size_bytes(self) -> int:
        """Bytes that there are to read, for a progress bar."""

    def known_rows(self) -> int | None:
        """The number of rows if it can be told without reading them all."""
        return None

    def cuts(self, most_bytes: int) -> list[int]:
        """Rows at which it can be cut so that the pieces, of about ``most_bytes``, are read as cheaply as the whole."""
        return []

    def batches(
        self, columns: Columns, *, wanted: NDArray[np.bool_] | None = None, batch_bytes: int = BATCH_BYTES
    ) -> Iterator[Batch]:
        """Yields the rows in batches of about ``batch_bytes`` of text, in order.

        Args:
            columns: What to read.
            wanted: A flag per row; batches without any wanted row may be left out, all others come complete.
            batch_bytes: Bytes of text in a batch, about. No row depends on it.

        Raises:
            OSError: If reading itself fails. A file that is damaged ends in a batch with a fault instead.
        """
        rows = 0
        try:
            for batch in self._read(columns, wanted, batch_bytes):
                rows = batch.first + len(batch)
                yield replace(batch, texts=readable_texts(batch.texts)) if columns.html else batch
        except Unreadable as error:
            nothing = pa.nulls(0, pa.large_string() if columns.elements is None else pa.large_list(pa.uint64()))
            yield Batch(rows, nothing, faults=(Fault(self.name, None, str(error)),))

    @abstractmethod
    def _read(self, columns: Columns, wanted: NDArray[np.bool_] | None, batch_bytes: int) -> Iterator[Batch]:
        """The batches; raises ``Unreadable`` where they can not go on."""

    def locate(self, rows: NDArray[np.int64]) -> tuple[pa.Array, NDArray[np.int64]]:
        """File name and row within that file, for each of ``rows``."""
        return repeat_string(self.name, len(rows)), rows

    def paths(self) -> list[str]:
        """The files it reads; none if it is in memory."""
        return []

    def default_ids(self, rows: NDArray[np.int64]) -> pa.Array:
        """The ids of ``rows`` where the source itself has none: ``name:row``."""
        numbers = from_numpy(rows.astype(np.int64)).cast(pa.large_string())
        name, colon = (repeat_string(one, len(rows)) for one in (self.name, ":"))
        return pc.binary_join_element_wise(name, numbers, colon)

    @abstractmethod
    def copy_kept(self, keep: NDArray[np.bool_], folder: Path, root: str) -> int:
        """Writes the kept rows to ``folder``, under the name relative to ``root``, in the format they came in.

        Args:
            keep: A flag per row.
            folder: Where the copies go; made if it is not there.
            root: The common parent of all sources, as ``open_sources`` gives it.

        Returns:
            How many rows were written: as many as ``keep`` has set, unless the source has changed since it was read.
        """
