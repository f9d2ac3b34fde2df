"""Copying: who is kept in; a file for each source, written by executors, out."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.arrays import from_numpy, to_numpy
from minwise.errors import InputError, MinwiseError
from minwise.inputs.files import is_url, url_filesystem
from minwise.inputs.source import Source
from minwise.search.documents import Documents
from minwise.spark.reading import TASK_BYTES, in_directory, raise_failure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["copy_sources"]

Batches = Iterator[pa.RecordBatch]
# How directories begin in which a copy is not yet whole.
UNFINISHED = ".copy-"
COPIED = pa.schema([("path", pa.string()), ("bytes", pa.int64()), ("rows", pa.int64()), ("fault", pa.string())])


def copy_sources(session: "SparkSession", documents: Documents, keep: NDArray[np.bool_], folder: str) -> int:
    """Copies the kept rows of every source.

    Args:
        session: Whose executors write.
        documents: What there is.
        keep: A flag per row of the input.
        folder: A directory that does not exist yet and that executors see as the driver does, or a URL.

    Returns:
        How many rows were written.
    """
    corpus = documents.corpus
    numbers = np.arange(corpus.against, len(corpus.sources))
    packed = [np.packbits(keep[documents.within_input(int(number))]).tobytes() for number in numbers]
    table = pa.table({"source": from_numpy(numbers), "keep": pa.array(packed, pa.binary())})
    size = sum(source.size_bytes() for source in corpus.sources[corpus.against :])
    parts = int(np.clip(size // TASK_BYTES + 1, min(len(numbers), 8), len(numbers)))
    sources, root, rows, directory = corpus.sources, corpus.root, documents.rows, str(Path.cwd())

    def copy(batches: Batches) -> Batches:
        with in_directory(directory):
            for batch in batches:
                for place, number in enumerate(to_numpy(batch.column("source")).tolist()):
                    bits = np.frombuffer(batch.column("keep")[place].as_buffer(), dtype=np.uint8)
                    mine = np.unpackbits(bits, count=rows[number]).view(np.bool_)
                    yield _copied(sources[number], mine, folder, root)

    frame = session.createDataFrame(table).repartitionByRange(parts, "source")
    copied = frame.mapInArrow(copy, "path string, bytes long, rows long, fault string").toArrow()
    return _check(copied, folder)


def _copied(source: Source, keep: NDArray[np.bool_], folder: str, root: str) -> pa.RecordBatch:
    """Copies a source out of sight, so that an attempt that is cut short leaves nothing, and then puts it in place."""
    remote = is_url(folder)
    beside = None if remote else Path(folder).parent
    with TemporaryDirectory(prefix=UNFINISHED, dir=beside) as hidden:
        try:
            rows = source.copy_kept(keep, Path(hidden), root)
        except MinwiseError as error:
            return _told([("", 0)], 0, f"{type(error).__name__}: {error}")
        found = sorted(path for path in Path(hidden).rglob("*") if path.is_file())
        files = [(path.relative_to(hidden).as_posix(), path.stat().st_size) for path in found]
        for path, (name, _) in zip(found, files, strict=True):
            _put(path, f"{folder}/{name}", remote=remote)
    return _told(files or [("", 0)], rows, None)


def _put(path: Path, target: str, *, remote: bool) -> None:
    if remote:
        filesystem, place = url_filesystem(target)
        filesystem.makedirs(place.rpartition("/")[0], exist_ok=True)
        filesystem.put_file(str(path), place)
    else:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)


def _told(files: list[tuple[str, int]], rows: int, fault: str | None) -> pa.RecordBatch:
    """What is said of a source: its files, and its rows with the first of them."""
    told = [{"path": path, "bytes": size, "rows": 0, "fault": fault} for path, size in files]
    return pa.RecordBatch.from_pylist([{**told[0], "rows": rows}, *told[1:]], COPIED)


def _check(copied: pa.Table, folder: str) -> int:
    """The rows that were written, if all files are where the driver sees them."""
    for fault in copied.column("fault").drop_null().to_pylist():
        raise_failure(fault)
    if not is_url(folder):
        for row in copied.to_pylist():
            path = Path(folder) / row["path"]
            if row["path"] and (not path.is_file() or path.stat().st_size != row["bytes"]):
                raise InputError(
                    f"{path} was written by an executor and is not here: "
                    "-o must be on storage that all machines share, or a URL"
                )
        Path(folder).mkdir(exist_ok=True)
        for leftover in Path(folder).parent.glob(f"{UNFINISHED}*"):  # of executors that died
            shutil.rmtree(leftover, ignore_errors=True)
    return sum(copied.column("rows").to_pylist())
