"""Changes: the fingerprint of an input as it was in, what is different about it now, for a person to read, out."""

import json
import os
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from minwise._internal.arrays import to_numpy
from minwise.checks import check_path
from minwise.errors import ConfigError, FormatError, MismatchError
from minwise.inputs.files import File, FileSource, is_url, reading
from minwise.inputs.open_sources import open_sources
from minwise.inputs.source import Columns, Source, Unreadable
from minwise.inputs.table_writer import TABLE_ROWS
from minwise.inputs.text_files import TextFiles

__all__ = ["Fates", "Published", "Restored", "change_of"]

NANOSECONDS = 10**9


def change_of(files: Sequence[File], before: Mapping[str, Any]) -> str | None:
    """What is different about the files of an input, in one line that names the file; None if nothing is.

    Args:
        files: The files of the input, as they are now.
        before: The fingerprint that the input had.
    """
    try:
        return _change_of_texts(files, before) if "files" in before else _change_of_file(files[0], before)
    except FileNotFoundError as error:
        return f"{error.filename} is gone since the run"


def _change_of_file(file: File, before: Mapping[str, Any]) -> str | None:
    now = file.fingerprint()
    if now["bytes"] != before["bytes"]:
        return f"{file.name} has changed since the run: {_bytes(now['bytes'])} now, {_bytes(before['bytes'])} then"
    if now["modified"] != before["modified"]:
        times = f"modified {_time(now['modified'])} now, {_time(before['modified'])} then"
        return f"{file.name} has changed since the run: {times}"
    return None


def _change_of_texts(files: Sequence[File], before: Mapping[str, Any]) -> str | None:
    """Of many files only the sum is known, and when the last of them was modified."""
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
        whole = "" if len(files) == 1 else "together "
        return f"{what} has changed since the run: {whole}{_bytes(now['bytes'])} now, {_bytes(before['bytes'])} then"
    return f"{what} has changed since the run: its size or the time when it was modified"


def _is_later(one: object, other: object) -> bool:
    return isinstance(one, int) and isinstance(other, int) and one > other


def _bytes(count: object) -> str:
    return f"{count:,} bytes" if isinstance(count, int) else f"{count} bytes"


def _time(modified: object) -> str:
    """A time in nanoseconds as a person reads it, to the last digit; the version of a server as it is."""
    if not isinstance(modified, int):
        return str(modified)
    seconds, rest = divmod(modified, NANOSECONDS)
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S}.{rest:09d} UTC"


Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Restored:
    """What was put back.

    Attributes:
        documents: How many.
        ids: Their ids, as text.
    """

    documents: int
    ids: set[str]


# What stands in a name for a byte that is no UTF-8.
ESCAPED_BYTE = re.compile(r"\\u(dc[89a-f][0-9a-f])")
# What the report calls a run of text files.
SEVERAL_FILES = re.compile(r" \(\d+ files\)$")
NEEDED = {
    "report.json": {"minwise": str, "settings": dict, "counts": dict, "sources": list},
    "run.json": {"directory": str, "root": str, "columns": dict, "inputs": list},
}


@dataclass(frozen=True, slots=True)
class _FileOfRun(File):
    """A file under the name that the run knew it by, opened where it stands, whatever the current directory is.

    Attributes:
        directory: Where the run was started.
    """

    directory: str = ""

    @property
    def place(self) -> str:
        """The path from the root of the file system, or the URL."""
        return _place(self.path, self.directory)

    def size_bytes(self) -> int:
        """Bytes of the file as it lies there."""
        return File(self.place).size_bytes()

    def fingerprint(self) -> dict[str, object]:
        """The fingerprint under the run's name."""
        return {**File(self.place).fingerprint(), "name": self.name}

    def open(self) -> BinaryIO:
        """The bytes of the file as they lie there."""
        return File(self.place).open()

    def open_arrow(self, *, memory_map: bool = False) -> pa.NativeFile:
        """The bytes of the file as Arrow reads them."""
        return File(self.place).open_arrow(memory_map=memory_map)


@dataclass(frozen=True)
class Published:
    """What an earlier run left, opened again.

    Attributes:
        folder: The output directory.
        report: The content of ``report.json``.
        run: The content of ``run.json``.
    """

    folder: Path
    report: dict[str, Any]
    run: dict[str, Any]

    @classmethod
    def open(cls, output: str | PathLike[str]) -> "Published":
        """The run that wrote ``output``.

        Raises:
            OSError: If there is no such directory.
            FormatError: If it is not the output of a run, of an older version's run, or damaged.
        """
        folder = check_path("OUT", output)
        folder.stat()
        if not (folder / "report.json").is_file():
            raise FormatError(f"{folder}: must be a directory that minwise dedup wrote, got one without report.json")
        report = _read_facts(folder / "report.json")
        if not (folder / "run.json").is_file():
            version = report["minwise"]
            raise FormatError(
                f"{folder}: has no run.json, as written by an older minwise, got {version}; run minwise dedup again"
            )
        return cls(folder, report, _read_facts(folder / "run.json"))

    @property
    def columns(self) -> Columns:
        """What was read of the inputs."""
        given = self.run["columns"]
        html = bool(self.report["settings"].get("html", False))
        return Columns(text=tuple(given["text"]), id=given["id"], html=html)

    @property
    def root(self) -> str:
        """The directory that the inputs have in common, as the run knew it."""
        return str(self.run["root"])

    @cached_property
    def rows(self) -> list[int]:
        """Rows of each input."""
        return [int(row["rows"]) for row in self._own_sources]

    @property
    def _own_sources(self) -> list[dict[str, Any]]:
        """What the report says of each input, in document order."""
        found = [row for row in self.report["sources"] if not row.get("against")]
        if len(found) != len(self.run["inputs"]):
            inputs = len(self.run["inputs"])
            raise FormatError(
                f"{self.folder}: run.json and report.json must be of one run, got {inputs} and {len(found)} sources"
            )
        return found

    @cached_property
    def files(self) -> list[list[File]]:
        """The files of each input.

        Raises:
            ConfigError: If an input was no file.
            FormatError: If the directory does not tell which text files an input had.
        """
        for row in self._own_sources:
            if row["source"] in ("", "-"):
                what = "standard input" if row["source"] else "a table in memory"
                raise ConfigError(f"{self.folder}: its input was {what}; there is no file to go back to")
        names = iter(self._text_names)
        return [
            [
                self.file(name)
                for name in ([next(names) for _ in range(one["files"])] if "files" in one else [one["name"]])
            ]
            for one in self.run["inputs"]
        ]

    def file(self, name: str) -> File:
        """The file of a name; bytes in it that are no UTF-8 were escaped."""
        directory = str(self.run["directory"])
        path = ESCAPED_BYTE.sub(lambda found: chr(int(found[1], 16)), name)
        return _FileOfRun(path if os.path.lexists(_place(path, directory)) else name, directory)

    @cached_property
    def _text_names(self) -> list[str]:
        """The names of all text files, in document order: each is a document, so clusters.parquet has it.

        Those that could not be read are in quarantine.jsonl, behind the ones that were only compared against.
        """
        wanted = sum(one.get("files", 0) for one in self.run["inputs"])
        if not wanted:
            return []
        tables = {one["name"] for one in self.run["inputs"] if "files" not in one}
        batches = self.batches("clusters.parquet", ["source"])
        found = [name for batch in batches for name in batch.column("source").to_pylist() if name not in tables]
        missing = wanted - len(found)
        if missing > 0:
            found += [name for name in self._quarantined_files() if name not in tables][-missing:]
        if len(found) != wanted:
            raise FormatError(
                f"{self.folder}: must name all its {wanted} text files, got {len(found)}: which ones could not be read "
                "is only known with --on-error quarantine; run minwise dedup again"
            )
        return sorted(found, key=lambda name: os.fsencode(self.file(name).path))

    def _quarantined_files(self) -> Iterator[str]:
        path = self.folder / "quarantine.jsonl"
        if path.is_file():
            with path.open(encoding="utf-8") as lines:
                faults = (_parse(path, line) for line in lines)
                yield from (fault["source"] for fault in faults if fault["row"] == 0)

    def source(self, number: int) -> Source:
        """One of the inputs, opened again under the name that the run knew it by; it must be there."""
        return self.open_files(self.files[number], as_texts="files" in self.run["inputs"][number])

    def open_files(self, files: list[File], *, as_texts: bool) -> Source:
        """Text files as one source, or a file that is a table."""
        if as_texts:
            return TextFiles(files, [file.name for file in files])
        (file,) = files
        sets = self.report["settings"].get("shingle") == "set"
        place = _place(file.path, str(self.run["directory"]))
        (source,), _ = open_sources([place], format=self.run["format"], sets=sets)
        if isinstance(source, FileSource):
            source.file, source.name = file, file.name
        return source

    def change(self, number: int) -> str | None:
        """What is different about an input since the run, in one line; None if nothing is."""
        return change_of(self.files[number], self.run["inputs"][number])

    def refuse_changes(self) -> None:
        """Raises MismatchError if an input is not what it was."""
        for number in range(len(self.files)):
            change = self.change(number)
            if change is not None:
                raise MismatchError(f"{change}; {self.folder} can only be restored from its input as it was")

    def places(self) -> list[str]:
        """Where everything stands that the run read, also what it only compared against."""
        directory = str(self.run["directory"])
        against = [SEVERAL_FILES.sub("", row["source"]) for row in self.report["sources"] if row.get("against")]
        own = [file.path for files in self.files for file in files]
        return [_place(path, directory) for path in (*own, *against) if path not in ("", "-", "against")]

    def batches(self, name: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of one of its tables, a piece at a time; all columns if none are named."""
        with self._table(name) as parquet:
            missing = [column for column in columns or [] if column not in parquet.schema_arrow.names]
            if missing:
                raise FormatError(f"{self.folder / name}: must have a column {missing[0]}; run minwise dedup again")
            yield from parquet.iter_batches(TABLE_ROWS, columns=columns)

    def schema(self, name: str) -> pa.Schema:
        """The columns of one of its tables."""
        with self._table(name) as parquet:
            return parquet.schema_arrow

    @contextmanager
    def _table(self, name: str) -> Iterator[Any]:
        file = File(str(self.folder / name))
        try:
            with reading(file), file.open_arrow() as raw:
                yield pq.ParquetFile(raw)
        except Unreadable as error:
            raise FormatError(f"{file.path}: must be the table of a run, {error}; run minwise dedup again") from None


def _place(path: str, directory: str) -> str:
    """Where a path leads that was given in a directory."""
    return path if is_url(path) or path.startswith("/") else f"{directory.rstrip('/')}/{path}"


def _read_facts(path: Path) -> dict[str, Any]:
    """One of the JSON files, which has all that is needed of it."""
    facts = _parse(path, path.read_bytes())
    for name, kind in NEEDED[path.name].items():
        if not isinstance(facts.get(name), kind):
            raise FormatError(f"{path}: must be written by minwise dedup, got one without {name}")
    return facts


def _parse(path: Path, data: bytes | str) -> dict[str, Any]:
    try:
        facts = json.loads(data)
    except ValueError as error:
        raise FormatError(f"{path}: must be JSON: {error}; run minwise dedup again") from None
    if not isinstance(facts, dict):
        raise FormatError(f"{path}: must be a JSON object, got {type(facts).__name__}")
    return facts


class Fates:
    """Whether each row of the input is kept, by its number in document order; a flag per row is all it holds."""

    def __init__(self, published: Published) -> None:
        self._published = published
        self._starts = np.concatenate([[0], np.cumsum(published.rows)]).astype(np.int64)

    @cached_property
    def kept(self) -> Flags:
        """A flag per row: every readable document that was not removed.

        Raises:
            FormatError: If the tables are damaged, or not of this run.
        """
        kept = np.zeros(self._starts[-1], dtype=np.bool_)
        self._mark(kept, "clusters.parquet", "documents", is_kept=True)
        self._mark(kept, "removed.parquet", "removed", is_kept=False)
        return kept

    def _mark(self, kept: Flags, name: str, count: str, *, is_kept: bool) -> None:
        """Sets the flags of all rows that a table lists, each of which changes once; the report knows how many."""
        rows = 0
        for batch in self._published.batches(name, ["source", "row"]):
            numbers = self.numbers(batch, name)
            twice = (np.diff(numbers) <= 0).any()  # both tables are in document order
            if twice or (kept[numbers] == is_kept).any():
                raise self._other_run(name, "a row that is listed twice, or is in no cluster")
            kept[numbers] = is_kept
            rows += len(numbers)
        expected = self._published.report["counts"][count]
        if rows != expected:
            raise self._other_run(name, f"{rows:,} rows where report.json has {expected:,}")

    def of_source(self, number: int) -> Flags:
        """The flags of one input."""
        return self.kept[self._starts[number] : self._starts[number + 1]]

    def restore(self, ids: Container[str]) -> Restored:
        """Keeps every removed document that has one of the ids; ids that are numbers go by their digits."""
        kept, found, documents = self.kept, set[str](), 0
        for batch in self._published.batches("removed.parquet", ["id", "source", "row"]):
            given = [None if one is None else str(one) for one in batch.column("id").to_pylist()]
            back = np.fromiter((one is not None and one in ids for one in given), dtype=np.bool_, count=len(given))
            kept[self.numbers(batch)[back]] = True
            documents += int(np.count_nonzero(back))
            found |= {one for one, chosen in zip(given, back.tolist(), strict=True) if chosen and one is not None}
        return Restored(documents, found)

    def numbers(self, batch: pa.RecordBatch, name: str = "removed.parquet") -> Numbers:
        """The numbers of the documents that a piece of a table lists by source and row."""
        sources, rows = batch.column("source"), batch.column("row")
        if sources.null_count or rows.null_count or rows.type != pa.int64():
            raise self._other_run(name, "a row without source and row")
        encoded = sources.dictionary_encode()
        spans = list(self._spans(encoded.dictionary.to_pylist(), name))
        starts, ends = (np.array([span[side] for span in spans], dtype=np.int64) for side in (0, 1))
        which, within = to_numpy(encoded.indices), to_numpy(rows)
        numbers: Numbers = starts[which] + within
        outside = (within < 0) | (numbers >= ends[which])
        if outside.any():
            place = int(np.flatnonzero(outside)[0])
            raise self._other_run(name, f"row {within[place]} of {sources[place].as_py()}, which has no such row")
        return numbers

    def _spans(self, names: list[str], name: str) -> Iterator[tuple[int, int]]:
        """Where the documents of each file begin and end."""
        for source in names:
            if source not in self._places:
                raise self._other_run(name, f"{source}, which is none of the inputs")
            yield self._places[source]

    @cached_property
    def _places(self) -> dict[str, tuple[int, int]]:
        """The first number and the one past the last, by the name of the file."""
        places = {}
        for number, files in enumerate(self._published.files):
            start, end = int(self._starts[number]), int(self._starts[number + 1])
            if "files" in self._published.run["inputs"][number]:
                places.update({file.name: (start + row, start + row + 1) for row, file in enumerate(files)})
            else:
                places[files[0].name] = (start, end)
        return places

    def _other_run(self, name: str, what: str) -> FormatError:
        path = self._published.folder / name
        return FormatError(f"{path}: must be the table of this run, got {what}; run minwise dedup again")
