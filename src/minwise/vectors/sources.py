"""Sources of vectors: matrices in memory, ``.npy`` files and list columns of Parquet files."""

import math
import os
import tokenize
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from minwise._internal.arrays import from_matrix, from_numpy, to_numpy, valid_mask
from minwise.checks import show
from minwise.errors import ConfigError, InputError
from minwise.inputs.files import File, translate_errors
from minwise.inputs.parquet import ParquetFile
from minwise.inputs.row_edits import RowEdits
from minwise.inputs.source import BATCH_ROWS, Batch, Columns, Fault, Source, UnreadableError
from minwise.text.chunks import ArrowArray, ArrowStream

__all__ = ["MatrixSource", "NpyVectors", "ParquetVectors", "VectorSource", "VectorsLike", "open_vectors"]

# Types that are converted to float32 without loss, and float64, which is rounded.
ACCEPTED = ("float32", "uint8", "float64", "float16", "int8", "int16")
# Types that the kernel reads without conversion.
DIRECT = (np.dtype(np.float32), np.dtype(np.uint8))
# Readers of the header of an .npy file, by version.
NPY_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
NPY_ERRORS = (
    EOFError, MemoryError, OverflowError, RecursionError, SyntaxError, TypeError, ValueError, tokenize.TokenError,
)  # fmt: skip
# Bytes of the rows that are copied at once.
COPIED_BYTES = 1 << 25
TYPE_RULE = f"vectors must be of {', '.join(ACCEPTED[:-1])} or {ACCEPTED[-1]}"


# A matrix with a row per vector, a list of rows, an Arrow array of lists, or the path of an .npy or .parquet file.
VectorsLike = ArrayLike | PathLike[str] | ArrowArray | ArrowStream


class _NpyHeader(NamedTuple):
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int


class VectorSource(Source):
    """Vectors as rows that are numbered from 0; the number is the id.

    Attributes:
        dims: Values per vector.
        rows: Number of vectors.
    """

    dims: int
    rows: int

    @property
    def matrix(self) -> NDArray[Any] | None:
        """All vectors as one float32 or uint8 matrix in memory; None if a copy would be needed."""
        return None

    @property
    def matrix_type(self) -> np.dtype[Any]:
        """The type of a matrix that holds all vectors."""
        return DIRECT[0]

    @property
    @abstractmethod
    def given_type(self) -> str:
        """Name of the type of the values as they are given, for messages."""

    def known_rows(self) -> int:
        """Return the number of vectors."""
        return self.rows

    def size_bytes(self) -> int:
        """Return the size of the values as float32."""
        return 4 * self.rows * self.dims

    def default_ids(self, rows: NDArray[np.int64]) -> pa.Array:
        """Return the row numbers."""
        return from_numpy(rows.astype(np.int64))

    @abstractmethod
    def copy_kept(self, keep: NDArray[np.bool_], folder: Path, root: str, edits: RowEdits | None = None) -> int:
        """Write the kept rows in the format of the input; return how many there are."""

    def blocks(self, batch_bytes: int) -> Iterator[Batch]:
        """Yield the rows in batches of about ``batch_bytes``."""
        return self.batches(Columns(), batch_bytes=batch_bytes)


class MatrixSource(VectorSource):
    """A matrix in memory.

    Args:
        values: The matrix, with a row per vector.
        path: The file that it was read from, if there is one.

    Raises:
        InputError: If it is no matrix, has no columns or has another type.
    """

    def __init__(self, values: NDArray[Any], path: Path | None = None) -> None:
        _check_matrix("vectors" if path is None else str(path), values.shape, values.dtype)
        self.values, self.path = values, path
        self.name = "" if path is None else path.as_posix()
        self.rows, self.dims = len(values), max(1, values.shape[1])

    @property
    def matrix(self) -> NDArray[Any] | None:
        """The matrix, if the kernel can read it without conversion."""
        direct = self.values.dtype in DIRECT and self.values.flags.c_contiguous
        return self.values if direct and self.values.shape[1] else None

    @property
    def matrix_type(self) -> np.dtype[Any]:
        """The type of the values, if the kernel can read it."""
        return self.values.dtype if self.values.dtype in DIRECT else DIRECT[0]

    @property
    def given_type(self) -> str:
        """Name of the type of the values."""
        return self.values.dtype.name

    def fingerprint(self) -> dict[str, object]:
        """Return shape and type, and size and modification time of a file."""
        identity: dict[str, object] = {"name": self.name, "bytes": self.values.nbytes, "modified": None}
        if self.path is not None:
            status = self.path.stat()
            identity = {"name": self.name, "bytes": status.st_size, "modified": status.st_mtime_ns}
        return {**identity, "rows": self.rows, "dims": self.dims, "type": self.values.dtype.name}

    def stored_files(self) -> Sequence[File]:
        """Return the file, if there is one."""
        return [] if self.path is None else [File(str(self.path))]

    def copy_kept(self, keep: NDArray[np.bool_], folder: Path, root: str, edits: RowEdits | None = None) -> int:
        """Write the kept rows to an ``.npy`` file."""
        name = "vectors.npy" if self.path is None else self.path.name
        np.save(folder / name, self.values[keep], allow_pickle=False)
        return int(np.count_nonzero(keep))

    def _read(self, columns: Columns, wanted: NDArray[np.bool_] | None, batch_bytes: int) -> Iterator[Batch]:
        step = int(np.clip(batch_bytes // (4 * self.dims), 1, BATCH_ROWS))
        for first in range(0, self.rows, step):
            yield Batch(first, from_matrix(_to_direct(self.values[first : first + step])))


class NpyVectors(VectorSource):
    """An ``.npy`` file, read block by block: a mapped file that is truncated meanwhile ends the process with SIGBUS.

    Args:
        path: The file.
        header: Shape, type and offset of its values, which are stored row by row.

    Raises:
        InputError: If it is no matrix, has no columns or has another type.
    """

    def __init__(self, path: Path, header: _NpyHeader) -> None:
        _check_matrix(str(path), header.shape, header.dtype)
        self.path, self.name, self._header = path, path.as_posix(), header
        self.rows, self.dims = header.shape[0], max(1, header.shape[1])

    @property
    def matrix_type(self) -> np.dtype[Any]:
        """The type of the values, if the kernel can read it."""
        return self._header.dtype if self._header.dtype in DIRECT else DIRECT[0]

    @property
    def given_type(self) -> str:
        """Name of the type of the values."""
        return self._header.dtype.name

    def fingerprint(self) -> dict[str, object]:
        """Return shape and type, size and modification time of the file."""
        status = self.path.stat()
        identity: dict[str, object] = {"name": self.name, "bytes": status.st_size, "modified": status.st_mtime_ns}
        return {**identity, "rows": self.rows, "dims": self.dims, "type": self._header.dtype.name}

    def stored_files(self) -> Sequence[File]:
        """Return the file."""
        return [File(str(self.path))]

    def copy_kept(self, keep: NDArray[np.bool_], folder: Path, root: str, edits: RowEdits | None = None) -> int:
        """Write the kept rows with the type of the file."""
        kept, descr = int(np.count_nonzero(keep)), np.lib.format.dtype_to_descr(self._header.dtype)
        header = {"descr": descr, "fortran_order": False, "shape": (kept, self._header.shape[1])}
        with (folder / self.path.name).open("wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for first, values in self._values(COPIED_BYTES):
                file.write(np.ascontiguousarray(values[keep[first : first + len(values)]]).data)
        return kept

    def _values(self, batch_bytes: int) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the rows in blocks of about ``batch_bytes``, each with the number of its first row."""
        step = int(np.clip(batch_bytes // (4 * self.dims), 1, BATCH_ROWS))
        with self.path.open("rb") as file:
            file.seek(self._header.offset)
            for first in range(0, self.rows, step):
                rows = min(step, self.rows - first)
                values = np.fromfile(file, self._header.dtype, rows * self.dims)
                if len(values) < rows * self.dims:
                    raise UnreadableError("truncated file: it was shortened while it was read")
                yield first, values.reshape(rows, self.dims)

    def _read(self, columns: Columns, wanted: NDArray[np.bool_] | None, batch_bytes: int) -> Iterator[Batch]:
        for first, values in self._values(batch_bytes):
            yield Batch(first, from_matrix(_to_direct(values)))


class ParquetVectors(VectorSource):
    """A list column of a Parquet file; a null or a row of another length than the first is a fault.

    Args:
        path: The file.
        column: The column; may be None if exactly one holds lists of numbers.

    Raises:
        InputError: If the file is not Parquet or has no such column.
    """

    def __init__(self, path: Path, column: str | None) -> None:
        self.path, self.name = path, path.as_posix()
        with _naming_file(path), pq.ParquetFile(path) as file:
            self.column = _list_column(path, file.schema_arrow, column)
            self.rows = int(file.metadata.num_rows)
            self.kind = file.schema_arrow.field(self.column).type
            self.dims = self._length(file)

    def _length(self, file: Any) -> int:  # noqa: ANN401 - pyarrow has no types
        """Return the length of the first vector that is not empty."""
        if pa.types.is_fixed_size_list(self.kind):
            return max(1, int(self.kind.list_size))
        for rows in file.iter_batches(1024, columns=[self.column]):
            lengths = np.diff(to_numpy(rows.column(0).offsets))[valid_mask(rows.column(0))]
            if lengths.any():
                return int(lengths[np.flatnonzero(lengths)[0]])
        return 1

    @property
    def matrix_type(self) -> np.dtype[Any]:
        """The type of the values, if the kernel can read it."""
        return DIRECT[self.kind.value_type == pa.uint8()]

    @property
    def given_type(self) -> str:
        """Name of the type of the values."""
        return str(self.kind.value_type)

    def fingerprint(self) -> dict[str, object]:
        """Return size and modification time of the file, and the column."""
        status = self.path.stat()
        return {"name": self.name, "bytes": status.st_size, "modified": status.st_mtime_ns, "column": self.column}

    def stored_files(self) -> Sequence[File]:
        """Return the file."""
        return [File(str(self.path))]

    def copy_kept(self, keep: NDArray[np.bool_], folder: Path, root: str, edits: RowEdits | None = None) -> int:
        """Write the kept rows with all columns, the schema and the codecs of the file."""
        parent = self.path.parent.as_posix()
        return ParquetFile(File(self.name)).copy_kept(keep, folder, "" if parent == "." else parent, edits)

    def _read(self, columns: Columns, wanted: NDArray[np.bool_] | None, batch_bytes: int) -> Iterator[Batch]:
        step, first = int(np.clip(batch_bytes // (8 * self.dims), 1, BATCH_ROWS)), 0
        with (
            translate_errors(File(str(self.path))),
            pq.ParquetFile(self.path, page_checksum_verification=True) as file,
        ):
            for rows in file.iter_batches(step, columns=[self.column]):
                yield self._batch(first, rows.column(0))
                first += len(rows)

    def _batch(self, first: int, lists: pa.Array) -> Batch:
        valid = valid_mask(lists)
        if pa.types.is_fixed_size_list(self.kind):
            starts = (np.arange(len(lists)) + lists.offset) * self.dims
            lengths = np.full(len(lists), self.kind.list_size)
        else:
            offsets = to_numpy(lists.offsets).astype(np.int64)
            starts, lengths = offsets[:-1], np.diff(offsets)
        values = _to_direct(to_numpy(lists.values))
        nulls_before = np.concatenate([[0], np.cumsum(~valid_mask(lists.values))])
        ends = starts + np.where(valid, lengths, 0)
        nulls = nulls_before[ends] - nulls_before[starts] if lists.values.null_count else 0
        good = valid & (lengths == self.dims) & (nulls == 0)
        matrix = np.zeros((len(lists), self.dims), dtype=values.dtype)
        matrix[good] = values[starts[good, None] + np.arange(self.dims)]
        reasons = [self._reason(bool(valid[row]), int(lengths[row])) for row in np.flatnonzero(~good).tolist()]
        faulty = (first + np.flatnonzero(~good)).tolist()
        faults = [Fault(self.name, row, reason) for row, reason in zip(faulty, reasons, strict=True)]
        return Batch(first, from_matrix(matrix, good), faults=tuple(faults))

    def _reason(self, valid: bool, length: int) -> str:
        if not valid:
            return f"{self.column} is null"
        if length != self.dims:
            return f"{self.column} must have {self.dims} values as the first vector has, got {length}"
        return f"{self.column} has a null among its values"


def _list_column(path: Path, schema: pa.Schema, wanted: str | None) -> str:
    """Return the given column, or the only one that holds lists of numbers."""
    lists = [field.name for field in schema if _is_list(field.type)]
    if wanted is None and len(lists) == 1:
        return str(lists[0])
    if wanted is None:
        shown = ", ".join(lists) or "none"
        raise InputError(f"{path}: column must be given unless exactly one column holds lists of numbers, got {shown}")
    if wanted not in schema.names:
        raise InputError(f"{path}: has no column {wanted!r}; its columns are: {', '.join(schema.names)}")
    kind = schema.field(wanted).type
    if wanted not in lists:
        raise InputError(f"{path}: {wanted} must be lists of {', '.join(ACCEPTED)}, got a column of {kind}")
    return wanted


def _is_list(kind: pa.DataType) -> bool:
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return lists and str(kind.value_type).replace("double", "float64").replace("halffloat", "float16") in (
        *ACCEPTED,
        "float",
    )


def _check_matrix(where: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise InputError unless shape and type are those of a matrix of vectors."""
    if len(shape) != 2:
        raise InputError(f"{where} must be a matrix with a row per vector, got shape {shape}")
    if dtype.newbyteorder("=").name not in ACCEPTED:
        remedy = "; np.packbits(bits, axis=1) makes bit vectors of them" if dtype == np.bool_ else ""
        raise InputError(f"{where}: {TYPE_RULE}, got {dtype}{remedy}")
    if shape[0] and not shape[1]:
        raise InputError(f"{where}: vectors must have at least one value, got shape {shape}")


@contextmanager
def _naming_file(path: Path) -> Iterator[None]:
    """Raise an InputError with the path for a file that is not Parquet."""
    try:
        with translate_errors(File(str(path))):
            yield
    except (UnreadableError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: must be a Parquet file: {error}") from None


def _to_direct(values: NDArray[Any]) -> NDArray[Any]:
    """Return values of a type that the kernel reads; those too large for float32 become infinite, which is a fault."""
    if values.dtype in DIRECT:
        return np.ascontiguousarray(values)
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values, dtype=np.float32)


def open_vectors(vectors: VectorsLike | VectorSource, column: str | None = None) -> VectorSource:
    """Return a source of vectors.

    Args:
        vectors: A matrix or what NumPy converts to one, an Arrow array of lists, or the path of an .npy or .parquet
            file.
        column: Column of a Parquet file; ignored for all others.

    Raises:
        ConfigError: If the path has another suffix.
        InputError: If the vectors are no matrix of numbers.
    """
    if isinstance(vectors, VectorSource):
        return vectors
    if isinstance(vectors, (str, PathLike)):
        return _open_file(Path(vectors), column)
    if isinstance(vectors, (pa.Array, pa.ChunkedArray)):
        vectors = vectors.to_pylist()
    try:
        values = vectors if isinstance(vectors, np.ndarray) else np.asarray(vectors)
    except ValueError:
        raise InputError("vectors must all have as many values as the first, got rows of different lengths") from None
    if values.dtype.kind in "iu" and not isinstance(vectors, np.ndarray):  # a list of lists of whole numbers
        values = values.astype(np.float32)
    if values.shape == (0,):
        values = values.reshape(0, 0).astype(np.float32)
    return MatrixSource(values)


def _open_file(path: Path, column: str | None) -> VectorSource:
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        if not path.is_file():
            path.stat()  # raises the precise error
        return ParquetVectors(path, column)
    if suffix != ".npy":
        raise ConfigError(f"vectors must be an .npy or .parquet file, got {show(str(path))}")
    try:
        header = _npy_header(path)
        values = np.load(path, allow_pickle=False) if header is None else header
    except NPY_ERRORS as error:
        raise InputError(f"{path}: must be an .npy file of numbers: {' '.join(str(error).split())}") from None
    return NpyVectors(path, values) if isinstance(values, _NpyHeader) else MatrixSource(values, path)


def _npy_header(path: Path) -> _NpyHeader | None:
    """Return the header of a matrix that is stored row by row; None for one that must be read as a whole.

    Raises:
        ValueError: If the file is damaged or truncated.
    """
    with path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        if version not in NPY_HEADERS:
            return None
        shape, by_column, dtype = NPY_HEADERS[version](file)
        header, size = _NpyHeader(shape, dtype, file.tell()), os.fstat(file.fileno()).st_size
    if not dtype.hasobject and math.prod(shape) * dtype.itemsize > size - header.offset:
        raise ValueError(f"it is truncated: its {size:,} bytes cannot hold values of shape {shape}")
    return None if by_column or dtype.hasobject or len(shape) != 2 else header
