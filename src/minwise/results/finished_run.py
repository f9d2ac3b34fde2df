"""Finished run: the output directory of an earlier run, its inputs as they are now, and the status of each input row.

:func:`minwise.results.restore` and :func:`minwise.results.write_report` open it. Inputs are found by the names and the
working directory in ``run.json`` and checked against their fingerprints; row by row, ``clusters.parquet`` and
``removed.parquet`` tell what was kept. Outputs of other kinds than deduplications have ``documents.parquet`` instead of
``clusters.parquet``. A flag per input row is held in memory, and no text.
"""

import os
import re
from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from minwise._internal.arrays import to_numpy
from minwise.checks import check_path
from minwise.errors import ConfigError, FormatError, MismatchError
from minwise.inputs.files import File, FileSource, is_url, translate_errors
from minwise.inputs.open_sources import open_files
from minwise.inputs.source import Columns, Source, TextSettings, UnreadableError
from minwise.inputs.table_writer import TABLE_ROWS
from minwise.inputs.text_files import TextFiles

__all__ = ["FinishedRun", "RestoredDocuments", "RowStatus", "input_change"]

NANOSECONDS = 10**9
# Escape sequence in a name for a byte that is not UTF-8.
ESCAPED_BYTE = re.compile(r"\\u(dc[89a-f][0-9a-f])")
# End of the name that a report gives to several text files.
SEVERAL_FILES = re.compile(r" \(\d+ files\)$")
Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]


def input_change(files: Sequence[File], before: Mapping[str, Any]) -> str | None:
    """Describe how the files of an input differ from an earlier fingerprint, in one line; None if they do not.

    Args:
        files: The files of the input as they are now.
        before: The fingerprint that the input had.
    """
    try:
        return _text_files_change(files, before) if "files" in before else _file_change(files[0], before)
    except FileNotFoundError as error:
        return f"{error.filename} has been deleted since the run"


def _file_change(file: File, before: Mapping[str, Any]) -> str | None:
    now = file.fingerprint()
    if now["bytes"] != before["bytes"]:
        return f"{file.name} has changed since the run: {_bytes(now['bytes'])} now, {_bytes(before['bytes'])} then"
    if now["modified"] != before["modified"]:
        times = f"modified {_time(now['modified'])} now, {_time(before['modified'])} then"
        return f"{file.name} has changed since the run: {times}"
    return None


def _text_files_change(files: Sequence[File], before: Mapping[str, Any]) -> str | None:
    """Describe a change of many files, of which only total size, digest and last modification are known."""
    now = TextFiles(files, [file.name for file in files]).fingerprint()
    if now["digest"] == before["digest"]:
        return None
    for file in files:
        modified = file.fingerprint()["modified"]
        if _is_later(modified, before["modified"]):
            times = f"modified {_time(modified)} now, {_time(before['modified'])} at the latest then"
            return f"{file.name} has changed since the run: {times}"
    what = files[0].name if len(files) == 1 else f"one of the {len(files):,} files from {files[0].name} on"
    if now["bytes"] != before["bytes"]:
        total = "" if len(files) == 1 else "together "
        return f"{what} has changed since the run: {total}{_bytes(now['bytes'])} now, {_bytes(before['bytes'])} then"
    return f"{what} has changed since the run: its size or the time when it was modified"


def _is_later(time: object, reference: object) -> bool:
    return isinstance(time, int) and isinstance(reference, int) and time > reference


def _bytes(count: object) -> str:
    return f"{count:,} bytes" if isinstance(count, int) else f"{count} bytes"


def _time(modified: object) -> str:
    """Format a time in nanoseconds, to the last digit; return the version of a remote file unchanged."""
    if not isinstance(modified, int):
        return str(modified)
    seconds, rest = divmod(modified, NANOSECONDS)
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S}.{rest:09d} UTC"


@dataclass(frozen=True, slots=True)
class _RunFile(File):
    """Input file with the name recorded by the run, opened independently of the current directory.

    Attributes:
        directory: The working directory of the run.
    """

    directory: str = ""

    @property
    def location(self) -> str:
        """The absolute path, or the URL."""
        return _absolute(self.path, self.directory)

    def size_bytes(self) -> int:
        """Return the size of the file as it is stored."""
        return File(self.location).size_bytes()

    def fingerprint(self) -> dict[str, object]:
        """Return the fingerprint under the name recorded by the run."""
        return {**File(self.location).fingerprint(), "name": self.name}

    def version(self) -> tuple[int, int, int]:
        """Return bytes, modification time and inode as of now."""
        return File(self.location).version()

    def open(self) -> BinaryIO:
        """Open the file as it is stored."""
        return File(self.location).open()

    def open_arrow(self) -> pa.NativeFile:
        """Open the file for Arrow."""
        return File(self.location).open_arrow()


@dataclass(frozen=True)
class FinishedRun:
    """Output directory of an earlier run.

    Attributes:
        folder: The directory.
        report: The content of ``report.json``.
        record: The content of ``run.json``.
    """

    folder: Path
    report: dict[str, Any]
    record: dict[str, Any]

    @classmethod
    def open(cls, output: str | PathLike[str], *, kinds: Collection[str] = ("dedup",)) -> "FinishedRun":
        """Open the run that wrote ``output``.

        Args:
            output: The directory.
            kinds: Kinds of outputs that the caller can read.

        Raises:
            OSError: If there is no such directory.
            FormatError: If it is not the output of a run, was written by an older version, or is damaged.
            ConfigError: If the output is of another kind.
        """
        folder = check_path("OUT", output)
        folder.stat()
        if not (folder / "report.json").is_file():
            raise FormatError(f"{folder}: must be a directory that minwise dedup wrote, got one without report.json")
        # here: msgspec takes 10 ms
        from minwise.results.output_schema import KINDS, REPORTS, StoredEditReport, StoredRun, decode

        content = (folder / "report.json").read_bytes()
        _refuse_vectors(folder, content)
        kind = _kind(folder, content, kinds)
        rule = f"must be written by {KINDS[kind]}"
        report = decode(folder / "report.json", content, REPORTS.get(kind, StoredEditReport), rule)
        if not (folder / "run.json").is_file():
            version = report["minwise"]
            raise FormatError(
                f"{folder}: has no run.json, as written by an older minwise, got {version}; run minwise dedup again"
            )
        record = decode(folder / "run.json", (folder / "run.json").read_bytes(), StoredRun)
        record["directory"] = _existing(record["directory"])
        return cls(folder, report, record)

    @property
    def kind(self) -> str:
        """Kind of the output, one of ``KINDS``."""
        return str(self.report.get("kind", "dedup"))

    @property
    def marked(self) -> bool:
        """Whether all rows were marked, and none was removed."""
        return self.report["settings"].get("mark") is True

    @property
    def rows_table(self) -> str:
        """Name of the table that has a row for each readable document."""
        from minwise.results.output_schema import rows_table

        return rows_table(self.kind)

    @property
    def columns(self) -> Columns:
        """The columns that were read."""
        given = self.record["columns"]
        html = bool(self.report["settings"].get("html", False))
        return Columns(text=tuple(given["text"]), id=given["id"], html=html)

    @property
    def root(self) -> str:
        """The common parent of the inputs, as recorded by the run."""
        return str(self.record["root"])

    @cached_property
    def rows(self) -> list[int]:
        """Number of rows of each input."""
        return [int(row["rows"]) for row in self._input_rows]

    @property
    def _input_rows(self) -> list[dict[str, Any]]:
        """The entry of each input in the report, in document order."""
        rows = [row for row in self.report["sources"] if not row.get("against")]
        read, total = self.report["counts"]["read"], sum(row["rows"] for row in rows)
        if total != read:
            raise FormatError(
                f"{self.folder / 'report.json'}: must count all rows, got {total:,} of {read:,} in sources"
            )
        if len(rows) != len(self.record["inputs"]):
            inputs = len(self.record["inputs"])
            raise FormatError(
                f"{self.folder}: run.json and report.json must be of one run, got {inputs} and {len(rows)} sources"
            )
        return rows

    @cached_property
    def files(self) -> list[list[File]]:
        """The files of each input.

        Raises:
            ConfigError: If an input was not a file.
            FormatError: If the text files of an input are unknown.
        """
        for row in self._input_rows:
            if row["source"] in ("", "-"):
                what = "standard input" if row["source"] else "a table in memory"
                raise ConfigError(f"{self.folder}: its input was {what}; there is no file to read again")
        text_names = iter(self._text_names)
        return [
            [
                self.file(name)
                for name in ([next(text_names) for _ in range(entry["files"])] if "files" in entry else [entry["name"]])
            ]
            for entry in self.record["inputs"]
        ]

    def file(self, name: str) -> File:
        """Return the file of a name, in which bytes that are not UTF-8 may be escaped."""
        directory = str(self.record["directory"])
        return _RunFile(_existing(name, directory), directory=directory)

    @cached_property
    def _text_names(self) -> list[str]:
        """The names of all text files, in document order: each is a document, so the table of all documents has it.

        Those that could not be read are in quarantine.jsonl, after the ones that were only compared against.
        """
        expected = sum(entry.get("files", 0) for entry in self.record["inputs"])
        names = list(self._text_ids)
        missing = expected - len(names)
        if missing > 0:
            names += [name for name in self._quarantined_files() if name not in self._table_names][-missing:]
        if len(names) != expected:
            raise FormatError(
                f"{self.folder}: must name all its {expected} text files, got {len(names)}: which ones could not be "
                "read is only known with on_error='quarantine'; run dedup again"
            )
        return sorted(names, key=lambda name: os.fsencode(self.file(name).path))

    @property
    def _table_names(self) -> set[str]:
        return {entry["name"] for entry in self.record["inputs"] if "files" not in entry}

    @cached_property
    def _text_ids(self) -> dict[str, str]:
        """The id of each text file that could be read, by its name."""
        if not any("files" in entry for entry in self.record["inputs"]):
            return {}
        tables = self._table_names
        columns = (batch.columns for batch in self.batches(self.rows_table, ["id", "source"]))
        rows = (row for ids, sources in columns for row in zip(sources.to_pylist(), ids.to_pylist(), strict=True))
        return {source: str(identity) for source, identity in rows if source not in tables}

    def _quarantined_files(self) -> Iterator[str]:
        return (fault["source"] for fault in self.faults() if fault["row"] == 0)

    def faults(self) -> Iterator[dict[str, Any]]:
        """Yield source, row and reason of everything in quarantine."""
        from minwise.results.output_schema import StoredFault, decode

        path = self.folder / "quarantine.jsonl"
        if path.is_file():
            with path.open("rb") as lines:
                yield from (decode(path, line, StoredFault) for line in lines)

    def source(self, number: int) -> Source:
        """Open an input under the name recorded by the run; it must exist."""
        return self.open_source(self.files[number], as_texts="files" in self.record["inputs"][number])

    def open_source(self, files: list[File], *, as_texts: bool) -> Source:
        """Open text files as one source, or a single table file, as the run read them."""
        if as_texts:
            return self._open_texts(files, [self._text_ids.get(file.name, file.name) for file in files])
        return self._as_read(self._open_table(files, self.record.get("format")))

    def _open_texts(self, files: list[File], ids: list[str]) -> Source:
        return self._as_read(TextFiles(files, ids))

    def _as_read(self, source: Source) -> Source:
        TextSettings(self.record.get("delimiter"), self.record.get("encoding")).apply([source])
        return source

    def _open_table(self, files: list[File], format: str | None = None) -> Source:  # noqa: A002 - its name elsewhere
        (file,) = files
        sets = self.report["settings"].get("shingle") == "set"
        path = _absolute(file.path, str(self.record["directory"]))
        (source,) = open_files([path], format=format, sets=sets).sources
        if isinstance(source, FileSource):
            source.file, source.name = file, file.name
        return source

    def change(self, number: int) -> str | None:
        """Describe how an input has changed since the run, in one line; None if it has not."""
        return input_change(self.files[number], self.record["inputs"][number])

    def refuse_changes(self, remedy: str = "can only be restored from its unchanged input") -> None:
        """Raise MismatchError if an input has changed since the run; the message ends with directory and remedy."""
        for number in range(len(self.files)):
            self._refuse(self.change(number), remedy)

    def _refuse(self, change: str | None, remedy: str) -> None:
        if change is not None:
            raise MismatchError(f"{change}; {self.folder} {remedy}")

    def reference_sources(self, remedy: str) -> list[Source]:
        """Open the sources that were only compared against.

        Raises:
            ConfigError: If one of them was not a file.
            MismatchError: If one of them has changed since the run; the message ends with directory and remedy.
        """
        sources: list[Source] = []
        for entry in self.record["against"]:
            if entry["name"] == "against":
                raise ConfigError(f"{self.folder}: its reference corpus was in memory; there is no file to read again")
            if os.path.isdir(_absolute(entry["name"], str(self.record["directory"]))):  # noqa: PTH112 - as written
                rule = f"{self.folder}: was run with the index {entry['name']}, to which its kept rows were added"
                raise ConfigError(f"{rule}; it cannot be computed again")
            files, ids = self._recorded(entry)
            self._refuse(input_change(files, entry), remedy)
            sources.append(self.open_source(files, as_texts=False) if ids is None else self._open_texts(files, ids))
        return sources

    def _recorded(self, entry: Mapping[str, Any]) -> tuple[list[File], list[str] | None]:
        """Return the files of a fingerprint, and the ids of text files."""
        texts = entry.get("texts")
        files = [self.file(name) for name, _ in texts or [(entry["name"], "")]]
        return files, None if texts is None else [identity for _, identity in texts]

    def eval_sources(self) -> Iterator[tuple[list[str], Source | None, str]]:
        """Yield the names of each source of evaluation items, the source, and its change since the run.

        A source that has changed is None. Its format, delimiter and encoding are detected, as the run did.
        """
        for entry in self.record.get("evals", []):
            if "rows" in entry:
                yield [entry["name"]], None, "the evaluation items were in memory"
                continue
            files, ids = self._recorded(entry)
            change = input_change(files, entry)
            names = [file.name for file in files]
            if change is not None:
                yield names, None, change
            else:
                yield names, self._open_table(files) if ids is None else TextFiles(files, ids), ""

    def input_paths(self) -> list[str]:
        """Return the absolute path of everything that the run read, including what it only compared against."""
        directory = str(self.record["directory"])
        against = [SEVERAL_FILES.sub("", row["source"]) for row in self.report["sources"] if row.get("against")]
        own = [file.path for files in self.files for file in files]
        return [_absolute(path, directory) for path in (*own, *against) if path not in ("", "-", "against")]

    def batches(self, name: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one of its tables in pieces; all columns if none are named.

        Raises:
            FormatError: If the table is damaged or lacks a column.
        """
        from minwise.results.output_schema import check_rows

        with self._table(name) as parquet:
            for batch in parquet.iter_batches(TABLE_ROWS, columns=columns):
                check_rows(self.folder / name, batch)
                yield batch

    def schema(self, name: str) -> pa.Schema:
        """Return the columns of one of its tables."""
        with self._table(name) as parquet:
            return parquet.schema_arrow

    @contextmanager
    def _table(self, name: str) -> Iterator[Any]:
        from minwise.results.output_schema import check_schema

        file = File(str(self.folder / name))
        try:
            with translate_errors(file), file.open_arrow() as raw:
                parquet = pq.ParquetFile(raw)
                check_schema(self.folder / name, parquet.schema_arrow, self.kind)
                yield parquet
        except UnreadableError as error:
            raise FormatError(f"{file.path}: must be the table of a run, {error}; run minwise dedup again") from None


def _refuse_vectors(folder: Path, content: bytes) -> None:
    """Raise if the report is one of vectors, which has another measure."""
    try:
        settings = orjson.loads(content)["settings"]
    except (ValueError, TypeError, LookupError):
        return  # refused with the reason by the caller
    if isinstance(settings, dict) and settings.get("measure", "containment") != "containment":
        raise FormatError(
            f"{folder}: must be the output of minwise dedup, got that of minwise vectors dedup;"
            " read its removed.parquet and clusters.parquet instead"
        )


def _kind(folder: Path, content: bytes, kinds: Collection[str]) -> str:
    """Return the kind of an output from its report; raise if it is none of ``kinds``."""
    from minwise.results.output_schema import DEDUP, KINDS

    try:
        kind = orjson.loads(content).get("kind", DEDUP)
    except (ValueError, AttributeError):
        return DEDUP  # refused with the reason by the caller
    if kind not in KINDS:
        known = ", ".join(KINDS)
        raise FormatError(f"{folder / 'report.json'}: kind must be one of {known}, got {kind!r}; use a newer minwise")
    if kind not in kinds:
        writers = " or ".join(KINDS[one] for one in kinds)
        raise ConfigError(f"{folder}: must be the output of {writers}, got that of {KINDS[kind]}")
    return str(kind)


def _existing(name: str, directory: str = "") -> str:
    """Return the path of a name in which bytes that are not UTF-8 may be escaped, if there is such a path."""
    path = ESCAPED_BYTE.sub(lambda match: chr(int(match[1], 16)), name)
    return path if os.path.lexists(_absolute(path, directory)) else name


def _absolute(path: str, directory: str) -> str:
    """Return a path relative to a directory as an absolute path; a URL unchanged."""
    return path if is_url(path) or Path(path).is_absolute() else f"{directory.rstrip('/')}/{path}"


@dataclass(frozen=True)
class RestoredDocuments:
    """Documents that were marked as kept again.

    Attributes:
        documents: Number of documents.
        ids: How many of them have each of their ids, as text.
    """

    documents: int
    ids: Counter[str]


class RowStatus:
    """Whether each row of the input is kept, by its number in document order."""

    def __init__(self, run: FinishedRun) -> None:
        self._run = run
        self._starts = np.concatenate([[0], np.cumsum(run.rows)]).astype(np.int64)

    @cached_property
    def kept(self) -> Flags:
        """A flag per row: every readable document that was not removed.

        Raises:
            FormatError: If the tables are damaged, or belong to another run.
        """
        kept = np.zeros(self._starts[-1], dtype=np.bool_)
        self._mark(kept, self._run.rows_table, "documents", is_kept=True)
        self._mark(kept, "removed.parquet", "removed", is_kept=False)
        return kept

    def _mark(self, kept: Flags, name: str, count: str, *, is_kept: bool) -> None:
        """Set the flags of all rows that a table lists; each must change once, and the report has the total."""
        rows = 0
        for batch in self._run.batches(name, ["source", "row"]):
            numbers = self.numbers(batch, name)
            twice = (np.diff(numbers) <= 0).any()  # both tables are in document order
            if twice or (kept[numbers] == is_kept).any():
                raise self._other_run(name, "a row that is listed twice, or is in no cluster")
            kept[numbers] = is_kept
            rows += len(numbers)
        expected = self._run.report["counts"][count]
        if rows != expected:
            raise self._other_run(name, f"{rows:,} rows where report.json has {expected:,}")

    def of_source(self, number: int) -> Flags:
        """Return the flags of one input."""
        return self.kept[slice(*self.span(number))]

    def span(self, number: int) -> tuple[int, int]:
        """Return the number of the first row of an input, and one past its last."""
        return int(self._starts[number]), int(self._starts[number + 1])

    def restore(self, ids: Container[str]) -> RestoredDocuments:
        """Mark every removed document with one of the ids as kept; numeric ids are compared as decimal text."""
        kept, restored = self.kept, Counter[str]()
        for batch in self._run.batches("removed.parquet", ["id", "source", "row"]):
            given = [None if value is None else str(value) for value in batch.column("id").to_pylist()]
            back = np.fromiter((text is not None and text in ids for text in given), dtype=np.bool_, count=len(given))
            kept[self.numbers(batch)[back]] = True
            restored.update(
                text for text, chosen in zip(given, back.tolist(), strict=True) if chosen and text is not None
            )
        return RestoredDocuments(restored.total(), restored)

    def numbers(self, batch: pa.RecordBatch, name: str = "removed.parquet") -> Numbers:
        """Return the numbers of the documents that a piece of a table lists by source and row.

        Raises:
            FormatError: If a row is not one of the input.
        """
        sources, rows = batch.column("source"), batch.column("row")
        encoded = sources.dictionary_encode()
        spans = list(self._spans(encoded.dictionary.to_pylist(), name))
        starts, ends = (np.array([span[side] for span in spans], dtype=np.int64) for side in (0, 1))
        which, within = to_numpy(encoded.indices), to_numpy(rows)
        numbers: Numbers = starts[which] + within
        outside = numbers >= ends[which]
        if outside.any():
            index = int(np.flatnonzero(outside)[0])
            raise self._other_run(name, f"row {within[index]} of {sources[index].as_py()}, which has no such row")
        return numbers

    def _spans(self, sources: list[str], name: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of the documents of each file."""
        for source in sources:
            if source not in self._file_spans:
                raise self._other_run(name, f"{source}, which is none of the inputs")
            yield self._file_spans[source]

    @cached_property
    def _file_spans(self) -> dict[str, tuple[int, int]]:
        """Start and end of the documents of each file, by its name."""
        spans = {}
        for number, files in enumerate(self._run.files):
            start, end = int(self._starts[number]), int(self._starts[number + 1])
            if "files" in self._run.record["inputs"][number]:
                spans.update({file.name: (start + row, start + row + 1) for row, file in enumerate(files)})
            else:
                spans[files[0].name] = (start, end)
        return spans

    def _other_run(self, name: str, what: str) -> FormatError:
        path = self._run.folder / name
        return FormatError(f"{path}: must be the table of this run, got {what}; run minwise dedup again")
