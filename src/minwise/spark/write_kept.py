"""Output files of the kept rows, written by executors, one or more per source."""

import pickle
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import cloudpickle

from minwise._internal.arrays import from_numpy, to_numpy
from minwise.errors import InputError, MinwiseError
from minwise.inputs.files import is_url, url_filesystem
from minwise.inputs.row_edits import RowEdits
from minwise.inputs.source import Source
from minwise.search.documents import Documents
from minwise.spark.arrow_columns import ddl
from minwise.spark.blocks import Batches
from minwise.spark.read_tasks import TASK_BYTES, working_directory
from minwise.spark.stage_store import raise_failure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["write_kept"]

# Prefix of directories with incomplete copies.
UNFINISHED = ".copy-"
WRITTEN = pa.schema([("path", pa.string()), ("bytes", pa.int64()), ("rows", pa.int64()), ("fault", pa.string())])


def write_kept(
    session: "SparkSession",
    documents: Documents,
    keep: NDArray[np.bool_],
    folder: str,
    edits: Mapping[int, RowEdits] = MappingProxyType({}),
) -> int:
    """Write the kept rows of every source.

    Args:
        session: Session whose executors write.
        documents: Documents of the run.
        keep: Flag per row of the input.
        folder: Directory that does not exist yet and that the executors share with the driver, or a URL.
        edits: Edits of the kept rows, by number of the source. Only the task of a source gets them.

    Returns:
        The number of rows written.
    """
    corpus = documents.corpus
    numbers = np.arange(corpus.against, len(corpus.sources))
    packed = [np.packbits(keep[documents.input_slice(int(number))]).tobytes() for number in numbers]
    pickled = [cloudpickle.dumps(edits.get(int(number))) for number in numbers]  # type: ignore[no-untyped-call]
    columns = {"source": from_numpy(numbers), "keep": pa.array(packed, pa.binary())}
    table = pa.table({**columns, "edits": pa.array(pickled, pa.binary())})
    size = sum(source.size_bytes() for source in corpus.sources[corpus.against :])
    partitions = int(np.clip(size // TASK_BYTES + 1, min(len(numbers), 8), len(numbers)))
    sources, root, rows, directory = corpus.sources, corpus.root, documents.rows, str(Path.cwd())

    def write(batches: Batches) -> Batches:
        with working_directory(directory):
            for batch in batches:
                for index, number in enumerate(to_numpy(batch.column("source")).tolist()):
                    bits = np.frombuffer(batch.column("keep")[index].as_buffer(), dtype=np.uint8)
                    flags = np.unpackbits(bits, count=rows[number]).view(np.bool_)
                    source_edits = pickle.loads(batch.column("edits")[index].as_buffer())
                    yield _write_source(sources[number], flags, source_edits, folder, root)

    frame = session.createDataFrame(table).repartitionByRange(partitions, "source")
    return _check_written(frame.mapInArrow(write, ddl(WRITTEN)).toArrow(), folder)


def _write_source(
    source: Source, keep: NDArray[np.bool_], edits: RowEdits | None, folder: str, root: str
) -> pa.RecordBatch:
    """Write a source to a hidden directory and move it from there, so that a failed attempt leaves no files."""
    remote = is_url(folder)
    with TemporaryDirectory(prefix=UNFINISHED, dir=None if remote else Path(folder).parent) as hidden:
        try:
            rows = source.copy_kept(keep, Path(hidden), root, edits)
        except MinwiseError as error:
            return _written([("", 0)], 0, f"{type(error).__name__}: {error}")
        found = sorted(path for path in Path(hidden).rglob("*") if path.is_file())
        files = [(path.relative_to(hidden).as_posix(), path.stat().st_size) for path in found]
        for path, (name, _) in zip(found, files, strict=True):
            _move(path, f"{folder}/{name}", remote=remote)
    return _written(files or [("", 0)], rows, None)


def _move(path: Path, target: str, *, remote: bool) -> None:
    if remote:
        filesystem, remote_path = url_filesystem(target)
        filesystem.makedirs(remote_path.rpartition("/")[0], exist_ok=True)
        filesystem.put_file(str(path), remote_path)
    else:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)


def _written(files: list[tuple[str, int]], rows: int, fault: str | None) -> pa.RecordBatch:
    """Return a row per file of a source; the first has the number of its rows."""
    found = [{"path": path, "bytes": size, "rows": 0, "fault": fault} for path, size in files]
    return pa.RecordBatch.from_pylist([{**found[0], "rows": rows}, *found[1:]], WRITTEN)


def _check_written(written: pa.Table, folder: str) -> int:
    """Return the number of rows written, or raise InputError if the driver does not see a file."""
    for fault in written.column("fault").drop_null().to_pylist():
        raise_failure(fault)
    if not is_url(folder):
        for row in written.to_pylist():
            path = Path(folder) / row["path"]
            if row["path"] and (not path.is_file() or path.stat().st_size != row["bytes"]):
                raise InputError(
                    f"{path} was written by an executor and is not here: "
                    "output must be on storage that all machines share, or a URL"
                )
        Path(folder).mkdir(exist_ok=True)
        for leftover in Path(folder).parent.glob(f"{UNFINISHED}*"):  # of executors that died
            shutil.rmtree(leftover, ignore_errors=True)
    return sum(written.column("rows").to_pylist())
