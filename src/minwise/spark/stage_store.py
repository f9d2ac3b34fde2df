"""Finished stages of a Spark run: each is made once, and found again by a later run.

With a directory, a stage is a folder of Parquet files with a list of them, their sizes and checksums, that is written
last and verified by a run that resumes. Without one, the executors hold it as a checkpoint.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from minwise._internal.array_files import stream_checksum
from minwise._internal.arrays import from_numbers
from minwise.inputs.files import is_url, url_filesystem
from minwise.search.workdir import damaged_file, decode_json, encode_json, refuse_other_run
from minwise.spark.arrow_columns import Batches
from minwise.spark.errors import spark_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["StageFolder", "StageStore", "checkpoint"]

MANIFEST = "manifest.json"
# Spark ignores files whose name begins with an underscore when it reads a directory.
LISTING = "_files.json"
# Bytes of a stage whose checksums the driver computes itself: a job of executors takes longer than reading them.
DRIVER_BYTES = 1 << 26
ROWS_PER_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
SPECIAL = re.compile(r"([\[\]{}*?\\])")


def checkpoint(frame: "DataFrame") -> "DataFrame":
    """Return the evaluated DataFrame, held by the executors until it is no longer referenced, without its plan.

    Each partition is on two executors where there are several, so that a run survives the loss of one, not of more.

    ``persist`` keeps the plan, and every plan contains those before it, once for each use; Spark traverses all of it.
    On a busy machine a first run over 191 rows took 163 seconds that way and 52 this way, and a fourth run ended the
    session.
    """
    from pyspark import StorageLevel

    master = frame.sparkSession.conf.get("spark.master", "") or ""
    one_process = master == "local" or master.startswith("local[")
    level = StorageLevel.MEMORY_AND_DISK if one_process else StorageLevel.MEMORY_AND_DISK_2
    return frame.localCheckpoint(storageLevel=level)


class StageFolder:
    """Directory, by path or URL, that the driver and Spark both see.

    Attributes:
        path: The path or URL as the user gave it.
    """

    def __init__(self, path: str) -> None:
        self.path = path.rstrip("/")
        if is_url(path):
            filesystem, self._root = url_filesystem(self.path)
            self._files: Any = fs.PyFileSystem(fs.FSSpecHandler(filesystem))
            self._url = self.path
        else:
            self._root = str(Path(path).absolute())
            self._files = fs.LocalFileSystem()
            self._url = f"file://{self._root}"

    @property
    def location(self) -> str:
        """The absolute path or URL, which is the same on all machines."""
        return self.path if is_url(self.path) else self._root

    def url(self, name: str) -> str:
        """Return the URL at which Spark writes a directory in this one."""
        return f"{self._url}/{name}"

    def pattern(self, name: str) -> str:
        """Return the URL at which Spark reads it: there a name is a glob pattern."""
        return SPECIAL.sub(r"\\\1", self.url(name))

    def sizes(self, name: str) -> dict[str, int]:
        """Return the Parquet files of a directory in this one, sorted, and their bytes."""
        selector = fs.FileSelector(f"{self._root}/{name}", allow_not_found=True)
        found = [(info.base_name, info.size) for info in self._files.get_file_info(selector)]
        return {file: size for file, size in sorted(found) if file.endswith(".parquet") and file[0] not in "._"}

    def has(self, name: str) -> bool:
        """Return whether there is such a file."""
        return bool(self._files.get_file_info(f"{self._root}/{name}").type == fs.FileType.File)

    def read_json(self, name: str) -> dict[str, Any]:
        """Return the content of a JSON file; raise FormatError if it is damaged."""
        with self._files.open_input_stream(f"{self._root}/{name}") as file:
            return decode_json(file.read(), f"{self.path}/{name}")

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        """Write a JSON file atomically."""
        path = f"{self._root}/{name}"
        self._files.create_dir(path.rpartition("/")[0], recursive=True)
        with self._files.open_output_stream(f"{path}.tmp") as file:
            file.write(encode_json(content))
        self._files.move(f"{path}.tmp", path)

    def delete(self, name: str) -> None:
        """Delete a directory in this one, if there is one."""
        if self._files.get_file_info(f"{self._root}/{name}").type == fs.FileType.Directory:
            self._files.delete_dir(f"{self._root}/{name}")

    def checksum(self, name: str) -> int:
        """Return the CRC-32C of a file."""
        path = f"{self._root}/{name}"
        with self._files.open_input_stream(path) as file:
            return stream_checksum(file, self._files.get_file_info(path).size)

    def open_parquet(self, name: str) -> pq.ParquetFile:
        """Open a Parquet file."""
        return pq.ParquetFile(f"{self._root}/{name}", filesystem=self._files)

    def write_parquet(self, name: str, table: pa.Table) -> None:
        """Write a Parquet file."""
        path = f"{self._root}/{name}"
        self._files.create_dir(path.rpartition("/")[0], recursive=True)
        pq.write_table(table, path, filesystem=self._files, compression="zstd")


class StageStore:
    """Finished stages of one run.

    Attributes:
        session: Session that makes them.
        folder: Directory of the stages; None if the executors hold them.
    """

    def __init__(self, session: "SparkSession", path: str | None, manifest: dict[str, Any]) -> None:
        """Open the stages of a run.

        Args:
            session: Session that makes them.
            path: Path or URL of the directory; None lets the executors hold them.
            manifest: Settings and inputs of the run.

        Raises:
            MismatchError: If those at ``path`` belong to a run with another manifest.
        """
        self.session = session
        self._verified: set[str] = set()
        self.folder = None if path is None else StageFolder(path)
        if self.folder is not None:
            if self.folder.has(MANIFEST):
                refuse_other_run(self.folder.path, self.folder.read_json(MANIFEST), manifest)
            else:
                self.folder.write_json(MANIFEST, manifest)

    def run(self, name: str, make: "Callable[[], DataFrame]", *, rows_per_batch: int | None = None) -> "DataFrame":
        """Return a finished stage, which is made if it does not exist.

        Args:
            name: Name of the stage and of its directory.
            make: Returns the DataFrame to evaluate.
            rows_per_batch: Rows per Arrow batch sent to Python, if they are large.
        """
        if self.folder is not None and self.is_finished(name):
            return self.read(name)
        with spark_errors(name), self._batch_size(rows_per_batch):
            if self.folder is None:
                return checkpoint(make())
            make().write.mode("overwrite").parquet(self.folder.url(name))
        self._finish(name)
        return self.read(name)

    def put(self, name: str, tables: Iterable[pa.Table]) -> "DataFrame":
        """Return a stage made of tables of the driver, at least one."""
        if self.folder is None:
            return self.session.createDataFrame(pa.concat_tables(tables))
        if not self.is_finished(name):
            self.folder.delete(name)
            for number, table in enumerate(tables):
                self.folder.write_parquet(f"{name}/part-{number:05}.parquet", table)
            self._finish(name)
        return self.read(name)

    def is_finished(self, name: str) -> bool:
        """Return whether all files of a stage exist with the sizes they were written with.

        Raises:
            FormatError: If one of them is damaged.
        """
        if self.folder is None or not self.folder.has(f"{name}/{LISTING}"):
            return False
        listing = self.folder.read_json(f"{name}/{LISTING}")
        if {file: size for file, (size, _) in listing.items()} != self.folder.sizes(name):
            return False
        if name not in self._verified:
            self._verify(name, listing)
        return True

    def _verify(self, name: str, listing: dict[str, list[int]]) -> None:
        now = self._checksums(name)
        for file in (file for file, (_, crc) in listing.items() if now[file] != crc):
            raise damaged_file(f"{self._directory.path}/{name}/{file}")
        self._verified.add(name)

    def _checksums(self, name: str) -> dict[str, int]:
        """Return the checksum of each file of a stage, computed by the executors if there is much to read."""
        folder, sizes = self._directory, self._directory.sizes(name)
        if sum(sizes.values()) <= DRIVER_BYTES:
            return {file: folder.checksum(f"{name}/{file}") for file in sizes}
        path = folder.location

        def compute(batches: Batches) -> Batches:
            stored = StageFolder(path)
            for batch in batches:
                found = [stored.checksum(f"{name}/{file}") for file in batch.column("file").to_pylist()]
                yield pa.record_batch({"file": batch.column("file"), "crc": from_numbers(found, np.int64)})

        files = self.session.createDataFrame(pa.table({"file": pa.array(list(sizes), pa.string())}))
        computed = files.repartition(len(sizes)).mapInArrow(compute, "file string, crc long").toArrow()
        return dict(zip(*(computed.column(column).to_pylist() for column in ("file", "crc")), strict=True))

    def read(self, name: str) -> "DataFrame":
        """Return a finished stage."""
        return self.session.read.parquet(self._directory.pattern(name))

    def bytes(self, name: str) -> int:
        """Return the bytes of a stage's files; 0 if there is no such stage."""
        return sum(self._directory.sizes(name).values())

    def batches(self, name: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield columns of a finished stage on the driver, file by file."""
        for file in self._directory.sizes(name):
            with self._directory.open_parquet(f"{name}/{file}") as parquet:
                yield from parquet.iter_batches(columns=columns)

    def rows(self, name: str) -> int:
        """Return the number of rows of a finished stage."""
        total = 0
        for file in self._directory.sizes(name):
            with self._directory.open_parquet(f"{name}/{file}") as parquet:
                total += parquet.metadata.num_rows
        return total

    @property
    def _directory(self) -> StageFolder:
        if self.folder is None:
            raise ValueError("a stage that the executors hold has no files")
        return self.folder

    def _finish(self, name: str) -> None:
        sizes, checksums = self._directory.sizes(name), self._checksums(name)
        self._directory.write_json(f"{name}/{LISTING}", {file: [size, checksums[file]] for file, size in sizes.items()})
        self._verified.add(name)

    @contextmanager
    def _batch_size(self, rows: int | None) -> Iterator[None]:
        """Make Spark send this many rows to Python at once inside the block."""
        if rows is None:
            yield
            return
        before = self.session.conf.get(ROWS_PER_BATCH)
        self.session.conf.set(ROWS_PER_BATCH, str(rows))
        try:
            yield
        finally:
            self.session.conf.set(ROWS_PER_BATCH, str(before))
