"""Finished stages of a Spark run: each is made once, and found again by a later run.

There are two kinds. A stage of files (:meth:`StageStore.run_tasks`) is a directory of work files that tasks write by
themselves, so that Spark needs no connector to the storage, and their arrays do not pass through Java. A stage of rows
(:meth:`StageStore.run`) is a DataFrame in Parquet files, or a checkpoint that the executors hold if there is no
directory. Each directory has a list of its files, which is written last; other files are of attempts that failed.
"""

import json
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import fs

from minwise import errors
from minwise._internal.array_files import Arrays, stream_checksum
from minwise._internal.arrays import from_numbers
from minwise.errors import FormatError, InputError, MinwiseError
from minwise.inputs.files import is_url, url_filesystem
from minwise.inputs.source import CopyError
from minwise.search.workdir import WorkDirectory, damaged_file, decode_json, encode_json, refuse_other_run
from minwise.spark.blocks import Batches
from minwise.spark.errors import spark_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "FILES",
    "StageFile",
    "StageFiles",
    "StageFolder",
    "StageStore",
    "attempt_name",
    "checkpoint",
    "raise_failure",
    "rows_of_files",
    "task_directory",
]

MANIFEST = "manifest.json"
# Version of the stages. Those of another version are refused.
FORMAT = 2
# Spark ignores files whose name begins with an underscore when it reads a directory.
LISTING = "_files.json"
# Bytes of a stage of rows whose checksums the driver computes itself: a job takes longer than reading them.
DRIVER_BYTES = 1 << 26
ROWS_PER_BATCH, BYTES_PER_BATCH = (f"spark.sql.execution.arrow.max{unit}PerBatch" for unit in ("Records", "Bytes"))
# Settings of stages that exchange blocks: rows, of up to 16 MB each, and bytes that are sent to Python at once. The
# number of partitions is planned, so Spark need not plan again after each shuffle.
BLOCK_SETTINGS = {ROWS_PER_BATCH: "64", BYTES_PER_BATCH: "64m", "spark.sql.adaptive.enabled": "false"}
SPECIAL = re.compile(r"([\[\]{}*?\\])")
# Rows that tasks return of the files that they have written.
FILES = "file string, bytes long, facts string"


def _batch_settings(rows: int | None) -> dict[str, str]:
    """Return the settings that limit the bytes, and the rows, that are sent to Python at once.

    Spark 4.0 does not limit bytes by default, and the blocks of a hot bucket may be more than Arrow's 2 GB.
    """
    limit = {BYTES_PER_BATCH: BLOCK_SETTINGS[BYTES_PER_BATCH]}
    return limit if rows is None else {ROWS_PER_BATCH: str(rows), **limit}


class StageFile(NamedTuple):
    """File of a stage.

    Attributes:
        name: Its name in the directory of the stage.
        size: Its bytes.
        facts: What the driver has to know of it.
    """

    name: str
    size: int
    facts: dict[str, Any]


class StageFiles(NamedTuple):
    """Files of a finished stage."""

    folder: "StageFolder"
    stage: str
    files: list[StageFile]

    def opened(self) -> Iterator[tuple[StageFile, WorkDirectory]]:
        """Yield each file, and a directory that has it."""
        for file in self.files:
            with self.folder.reading(self.stage, file.name) as work:
                yield file, work


def exchange_name(stage: str) -> str:
    """Return the name of the directory of blocks that the tasks of a stage exchange."""
    return f"{stage}-exchange"


def attempt_name(task: int, number: int = 0) -> str:
    """Return a name for a file of a task that no other attempt uses; names sort by task and number."""
    return f"{task:09}-{number:06}-{secrets.token_hex(4)}"


def rows_of_files(files: Iterable[StageFile]) -> Batches:
    """Yield a row for each file; an error that every attempt would raise again becomes the last row."""
    try:
        for file in files:
            yield _file_row(*file)
    except MinwiseError as error:
        yield _file_row("", 0, {"failure": f"{type(error).__name__}: {error}"})


def _file_row(name: str, size: int, facts: dict[str, Any]) -> pa.RecordBatch:
    return pa.record_batch({"file": [name], "bytes": [size], "facts": [json.dumps(facts)]})


def _succeeded(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of files; raise the first error that a task reported."""
    for facts in (json.loads(row["facts"]) for row in rows):
        if "failure" in facts:
            raise_failure(facts["failure"])
    return rows


def task_directory() -> TemporaryDirectory[str]:
    """Return a temporary directory of a task, in the local directory of Spark, which is deleted with the executor."""
    return TemporaryDirectory(dir=os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or None)


def raise_failure(failure: str) -> None:
    """Raise an error that a task reported as ``CLASS: message``."""
    name, _, message = failure.partition(": ")
    raise CopyError(message) if name == CopyError.__name__ else getattr(errors, name, MinwiseError)(message)


def checkpoint(frame: "DataFrame") -> "DataFrame":
    """Return the evaluated DataFrame, on the disks of executors until it is no longer referenced, without its plan.

    Each partition is on two executors where there are several, so that a run survives the loss of one, not of more.
    Partitions in memory left too little of it for the sorts of the next stage: a million passages ended with an
    OutOfMemoryError of Java in 1 GB.

    ``persist`` keeps the plan, and every plan contains those before it, once for each use; Spark traverses all of it.
    On a busy machine a first run over 191 rows took 163 seconds that way and 52 this way, and a fourth run ended the
    session.
    """
    from pyspark import StorageLevel

    master = frame.sparkSession.conf.get("spark.master", "") or ""
    one_process = master == "local" or master.startswith("local[")
    level = StorageLevel.DISK_ONLY if one_process else StorageLevel.DISK_ONLY_2
    return frame.localCheckpoint(storageLevel=level)


class StageFolder:
    """Directory, by path or URL, that the driver and Spark both see.

    Attributes:
        path: The path or URL as the user gave it.
    """

    def __init__(self, path: str) -> None:
        self.path = path.rstrip("/")
        if is_url(path):
            self._remote, self._root = url_filesystem(self.path)
            self._files: Any = fs.PyFileSystem(fs.FSSpecHandler(self._remote))
            self._url = self.path
        else:
            self._root = str(Path(path).absolute())
            self._files = fs.LocalFileSystem()
            self._url = f"file://{self._root}"

    @property
    def location(self) -> str:
        """The absolute path or URL, which is the same on all machines."""
        return self.path if is_url(self.path) else self._root

    def exchange(self, stage: str, task: int) -> Path | None:
        """Return the file in which a task sends blocks to the others of a stage; None at a URL."""
        return None if is_url(self.path) else Path(self._root) / exchange_name(stage) / f"{task:09}"

    def url(self, name: str) -> str:
        """Return the URL at which Spark writes a directory in this one."""
        return f"{self._url}/{name}"

    def pattern(self, name: str) -> str:
        """Return the URL at which Spark reads it: there a name is a glob pattern."""
        return SPECIAL.sub(r"\\\1", self.url(name))

    def sizes(self, name: str) -> dict[str, int]:
        """Return the visible files of a directory in this one, sorted, and their bytes."""
        if is_url(self.path):
            self._remote.invalidate_cache()  # executors have written there
        selector = fs.FileSelector(f"{self._root}/{name}", allow_not_found=True)
        found = [(info.base_name, info.size) for info in self._files.get_file_info(selector)]
        return {file: size for file, size in sorted(found) if file[0] not in "._"}

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

    def keep_files(self, stage: str, sizes: dict[str, int]) -> None:
        """Delete all files of a stage but these, which are of attempts that failed.

        Raises:
            InputError: If one of them is not here as it was written.
        """
        found = self.sizes(stage)
        for file in (file for file, size in sizes.items() if found.get(file) != size):
            raise InputError(
                f"{self.path}/{stage}/{file} was written by an executor and is not here: "
                "work and output must be on storage that all machines share, or URLs"
            )
        for file in found.keys() - sizes.keys():
            self._files.delete_file(f"{self._root}/{stage}/{file}")

    @contextmanager
    def writing(self, stage: str) -> Iterator[WorkDirectory]:
        """Yield a work directory whose files belong to the stage when the block ends."""
        if not is_url(self.path):
            target = Path(self._root) / stage
            target.mkdir(parents=True, exist_ok=True)
            yield WorkDirectory(target, durable=False)
            return
        with task_directory() as name:
            yield WorkDirectory(Path(name), durable=False)
            self._remote.makedirs(f"{self._root}/{stage}", exist_ok=True)
            for path in Path(name).iterdir():
                self._remote.put_file(str(path), f"{self._root}/{stage}/{path.name}")

    @contextmanager
    def reading(self, stage: str, *names: str) -> Iterator[WorkDirectory]:
        """Yield a work directory with these files of a stage.

        Raises:
            FormatError: If the content that is read in the block is damaged.
        """
        if not is_url(self.path):
            yield WorkDirectory(Path(self._root) / stage, durable=False)
            return
        with task_directory() as folder:
            for name in names:
                self._remote.get_file(f"{self._root}/{stage}/{name}", f"{folder}/{name}")
            try:
                yield WorkDirectory(Path(folder), durable=False)
            except FormatError as error:
                raise FormatError(str(error).replace(folder, f"{self.path}/{stage}")) from None


class StageStore:
    """Finished stages of one run.

    Attributes:
        session: Session that makes them.
        folder: Directory of the stages; None if the executors hold them.
        resumed: Whether the directory held an earlier run.
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
        self.resumed = self.folder is not None and self.folder.has(MANIFEST)
        if self.folder is not None:
            manifest = {**manifest, "stages": FORMAT}
            if self.resumed:
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
        with spark_errors(name), self._set(_batch_settings(rows_per_batch)):
            if self.folder is None:
                return checkpoint(make())
            make().write.mode("overwrite").parquet(self.folder.url(name))
        sizes, checksums = self.folder.sizes(name), self._checksums(name)
        self._finish(name, {file: [size, checksums[file]] for file, size in sizes.items()})
        self._verified.add(name)
        return self.read(name)

    def run_tasks(self, name: str, make: "Callable[[], DataFrame]") -> StageFiles:
        """Return the files of a finished stage, sorted by name; they are made if there is no such stage.

        Args:
            name: Name of the stage and of its directory.
            make: Returns the DataFrame of tasks that write the files, with the schema ``FILES``.
        """
        folder = self.directory
        if not self._has_files(name):
            for earlier in (name, exchange_name(name)):
                folder.delete(earlier)
            with spark_errors(name), self._set(BLOCK_SETTINGS):
                rows = make().toArrow().to_pylist()
            listing = dict(sorted((row["file"], [row["bytes"], json.loads(row["facts"])]) for row in _succeeded(rows)))
            folder.keep_files(name, {file: size for file, (size, _) in listing.items()})
            self._finish(name, listing)
            folder.delete(exchange_name(name))
        return StageFiles(folder, name, self.files(name))

    def files(self, name: str) -> list[StageFile]:
        """Return the files of a finished stage of files, sorted by name."""
        listing = self.directory.read_json(f"{name}/{LISTING}")
        return [StageFile(file, size, facts) for file, (size, facts) in listing.items()]

    def write_files(self, name: str, files: Iterable[tuple[str, Arrays]]) -> None:
        """Write files of arrays on the driver, in place of those of an earlier run."""
        self.directory.delete(name)
        for file, arrays in files:
            with self.directory.writing(name) as work:
                work.write(file, arrays)

    def _has_files(self, name: str) -> bool:
        """Return whether a stage of files is finished. Their checksums are verified when they are read."""
        if not self.directory.has(f"{name}/{LISTING}"):
            return False
        sizes, listing = self.directory.sizes(name), self.directory.read_json(f"{name}/{LISTING}")
        return all(sizes.get(file) == size for file, (size, _) in listing.items())

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
            raise damaged_file(f"{self.directory.path}/{name}/{file}")
        self._verified.add(name)

    def _checksums(self, name: str) -> dict[str, int]:
        """Return the checksum of each file of a stage, computed by the executors if there is much to read."""
        folder, sizes = self.directory, self.directory.sizes(name)
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
        return self.session.read.parquet(self.directory.pattern(name))

    @property
    def location(self) -> str:
        """Path or URL of the directory, which is the same on all machines."""
        return self.directory.location

    @property
    def directory(self) -> StageFolder:
        """Directory of the stages.

        Raises:
            ValueError: If the executors hold them.
        """
        if self.folder is None:
            raise ValueError("a stage that the executors hold has no files")
        return self.folder

    def _finish(self, name: str, listing: dict[str, list[Any]]) -> None:
        self.directory.write_json(f"{name}/{LISTING}", listing)

    @contextmanager
    def _set(self, wanted: dict[str, str]) -> Iterator[None]:
        """Change settings of the session inside the block."""
        before = {name: str(self.session.conf.get(name)) for name in wanted}
        try:
            for name, value in wanted.items():
                self.session.conf.set(name, value)
            yield
        finally:
            for name, value in before.items():
                self.session.conf.set(name, value)
