"""Published: the output directory of an earlier run in; its report, its tables and the inputs it was made from out."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from minwise.config import check_path
from minwise.errors import ConfigError, FormatError, MismatchError
from minwise.formats.files import File, FileSource, is_url, reading
from minwise.formats.opening import open_sources
from minwise.formats.source import Columns, Source, Unreadable
from minwise.formats.tables_out import TABLE_ROWS
from minwise.formats.text_files import TextFiles
from minwise.results.changes import change_of

__all__ = ["Published"]

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
