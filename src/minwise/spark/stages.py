"""Stages: what makes a table in; the finished table out, made once and found again by a later run.

With a place, every stage is a directory of Parquet files with a list of them, which is written last; without one, it is
held by Spark.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from minwise.errors import FormatError
from minwise.inputs.files import is_url, url_filesystem
from minwise.search.workdir import refuse_other_run
from minwise.spark.errors import spark_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Folder", "Stages"]

MANIFEST = "manifest.json"
# Spark takes no notice of files with such a name when it reads a directory.
LISTING = "_files.json"
ROWS_PER_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
SPECIAL = re.compile(r"([\[\]{}*?\\])")


class Folder:
    """A directory, by path or URL, that the driver and Spark both see.

    Attributes:
        place: What a user calls it.
    """

    def __init__(self, place: str) -> None:
        self.place = place.rstrip("/")
        if is_url(place):
            filesystem, self._path = url_filesystem(self.place)
            self._files: Any = fs.PyFileSystem(fs.FSSpecHandler(filesystem))
            self._url = self.place
        else:
            self._path = str(Path(place).absolute())
            self._files = fs.LocalFileSystem()
            self._url = f"file://{self._path}"

    def url(self, name: str) -> str:
        """What Spark calls a directory in here when it writes it."""
        return f"{self._url}/{name}"

    def pattern(self, name: str) -> str:
        """What Spark calls it when it reads it: there a name is a pattern."""
        return SPECIAL.sub(r"\\\1", self.url(name))

    def sizes(self, name: str) -> dict[str, int]:
        """The Parquet files of a directory in here, in order, and their bytes."""
        selector = fs.FileSelector(f"{self._path}/{name}", allow_not_found=True)
        found = [(one.base_name, one.size) for one in self._files.get_file_info(selector)]
        return {file: size for file, size in sorted(found) if file.endswith(".parquet") and file[0] not in "._"}

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return bool(self._files.get_file_info(f"{self._path}/{name}").type == fs.FileType.File)

    def read_json(self, name: str) -> dict[str, Any]:
        """A file of facts."""
        with self._files.open_input_stream(f"{self._path}/{name}") as file:
            try:
                return dict(json.loads(file.read()))
            except ValueError as error:
                raise FormatError(
                    f"{self.place}/{name}: must be JSON: {error}; delete the work directory and start again"
                ) from None

    def write_json(self, name: str, facts: dict[str, Any]) -> None:
        """A file of facts, which appears whole or not at all."""
        path = f"{self._path}/{name}"
        self._files.create_dir(path.rpartition("/")[0], recursive=True)
        with self._files.open_output_stream(f"{path}.tmp") as file:
            file.write(json.dumps(facts, indent=1).encode())
        self._files.move(f"{path}.tmp", path)

    def delete(self, name: str) -> None:
        """Deletes a directory in here, if it is there."""
        if self._files.get_file_info(f"{self._path}/{name}").type == fs.FileType.Directory:
            self._files.delete_dir(f"{self._path}/{name}")

    def open_parquet(self, name: str) -> pq.ParquetFile:
        """A Parquet file in here."""
        return pq.ParquetFile(f"{self._path}/{name}", filesystem=self._files)

    def write_parquet(self, name: str, table: pa.Table) -> None:
        """A Parquet file in here."""
        path = f"{self._path}/{name}"
        self._files.create_dir(path.rpartition("/")[0], recursive=True)
        pq.write_table(table, path, filesystem=self._files, compression="zstd")


class Stages:
    """The finished stages of one run.

    Attributes:
        session: Who makes them.
        folder: Where they are; None if Spark holds them.
    """

    def __init__(self, session: "SparkSession", place: str | None, manifest: dict[str, Any]) -> None:
        """Opens the stages of a run.

        Raises:
            MismatchError: If those at ``place`` are of a run with another manifest.
        """
        self.session = session
        self.folder = None if place is None else Folder(place)
        if self.folder is not None:
            if self.folder.has(MANIFEST):
                refuse_other_run(self.folder.place, self.folder.read_json(MANIFEST), manifest)
            else:
                self.folder.write_json(MANIFEST, manifest)

    def run(self, name: str, make: "Callable[[], DataFrame]", *, rows_per_batch: int | None = None) -> "DataFrame":
        """A finished stage, which is made if it is not there.

        Args:
            name: What it is called, and its directory.
            make: Says how to make it.
            rows_per_batch: Rows that go to Python at once, if they are large.
        """
        if self.folder is not None and self.is_finished(name):
            return self.read(name)
        with spark_errors(name), self._batches_of(rows_per_batch):
            if self.folder is None:
                from minwise.spark.holding import held  # here, because few have Spark

                return held(make())
            make().write.mode("overwrite").parquet(self.folder.url(name))
        self._finish(name)
        return self.read(name)

    def put(self, name: str, tables: Iterable[pa.Table]) -> "DataFrame":
        """A stage that the driver itself makes, of one table at least."""
        if self.folder is None:
            return self.session.createDataFrame(pa.concat_tables(tables))
        if not self.is_finished(name):
            self.folder.delete(name)
            for number, table in enumerate(tables):
                self.folder.write_parquet(f"{name}/part-{number:05}.parquet", table)
            self._finish(name)
        return self.read(name)

    def is_finished(self, name: str) -> bool:
        """Whether all files of a stage are there as they were written."""
        if self.folder is None or not self.folder.has(f"{name}/{LISTING}"):
            return False
        return self.folder.read_json(f"{name}/{LISTING}") == self.folder.sizes(name)

    def read(self, name: str) -> "DataFrame":
        """A stage that is finished."""
        return self.session.read.parquet(self._place.pattern(name))

    def bytes(self, name: str) -> int:
        """The bytes of a stage's files; 0 if there is no such stage."""
        return sum(self._place.sizes(name).values())

    def batches(self, name: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """What the driver reads of a finished stage, file by file."""
        for file in self._place.sizes(name):
            with self._place.open_parquet(f"{name}/{file}") as parquet:
                yield from parquet.iter_batches(columns=columns)

    def rows(self, name: str) -> int:
        """How many rows a finished stage has."""
        total = 0
        for file in self._place.sizes(name):
            with self._place.open_parquet(f"{name}/{file}") as parquet:
                total += parquet.metadata.num_rows
        return total

    @property
    def _place(self) -> Folder:
        """Where files are; whoever lets Spark hold its stages has none to read."""
        if self.folder is None:
            raise ValueError("a stage that Spark holds has no files")
        return self.folder

    def _finish(self, name: str) -> None:
        self._place.write_json(f"{name}/{LISTING}", self._place.sizes(name))

    @contextmanager
    def _batches_of(self, rows: int | None) -> Iterator[None]:
        """Lets Spark send so many rows to Python at once."""
        if rows is None:
            yield
            return
        before = self.session.conf.get(ROWS_PER_BATCH)
        self.session.conf.set(ROWS_PER_BATCH, str(rows))
        try:
            yield
        finally:
            self.session.conf.set(ROWS_PER_BATCH, str(before))
