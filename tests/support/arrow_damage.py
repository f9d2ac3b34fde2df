"""Damaged Arrow IPC files, and a process that reads them; started by `reliability/test_damaged_arrow.py`.

Each file is a small table of every kind of column, of which a few bytes, words or lengths were changed at random. The
process prints a line for each seed whose file ended in anything but rows, faults or an error of minwise; a signal ends
it, and the last seed that it wrote to its progress file is the one to blame.
"""

import random
import resource
import struct
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from minwise.errors import MinwiseError
from minwise.inputs.arrow_ipc import ArrowFile
from minwise.inputs.document_values import ValueColumn
from minwise.inputs.files import File
from minwise.inputs.source import Columns

__all__ = ["COLUMNS", "damage", "encode", "table"]

ROWS = 12
# Formats with their compression.
FORMATS: list[tuple[Callable[..., Any], str | None]] = [
    (ipc.new_file, None),
    (ipc.new_stream, None),
    (ipc.new_file, "zstd"),
    (ipc.new_stream, "zstd"),
    (ipc.new_file, "lz4"),
]
# Address space of the process: an allocation of a damaged length fails instead of using the memory of the machine.
MAX_MEMORY = 6 << 30
INTS = (-1, 2**31 - 1, -(2**31), 1 << 24, 100, 7, 0)
LONGS = (-1, 2**63 - 1, -(2**63), 1 << 40, 1 << 33, 100, 7, 0)


@cache
def table() -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return a table with a column of every layout."""
    texts = [f"text {row} of the harbour {row * row}" for row in range(ROWS)]
    codes, offsets = pa.array([row % 2 for row in range(ROWS)], pa.int8()), list(range(ROWS + 1))
    entries = pa.array([texts[row % 3] for row in range(ROWS)]).dictionary_encode()
    children = [pa.array(range(ROWS)), pa.array(texts)]
    return pa.table(
        {
            "text": texts,
            "id": [f"i{row}" for row in range(ROWS)],
            "number": [row if row % 3 else None for row in range(ROWS)],
            "dictionary": entries,
            "list": [[text, text] for text in texts],
            "large_list": pa.array([[text] for text in texts], pa.large_list(pa.string())),
            "dictionary_list": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), entries),
            "struct": [{"a": text, "b": [row]} for row, text in enumerate(texts)],
            "map": pa.array([[("k", row)] for row in range(ROWS)], pa.map_(pa.string(), pa.int32())),
            "view": pa.array(texts, pa.string_view()),
            "list_view": pa.array([[row] for row in range(ROWS)], pa.list_view(pa.int64())),
            "runs": pa.RunEndEncodedArray.from_arrays(pa.array([4, 8, ROWS], pa.int32()), pa.array(["x", "y", "z"])),
            "dense": pa.UnionArray.from_dense(codes, pa.array([row // 2 for row in range(ROWS)], pa.int32()), children),
            "sparse": pa.UnionArray.from_sparse(codes, children),
            "vector": pa.array([[1.0, 2.0]] * ROWS, pa.list_(pa.float32(), 2)),
            "null": pa.nulls(ROWS),
            "time": pa.array(range(ROWS), pa.timestamp("ns", "UTC")),
            "date": pa.array([86_400_000 * row for row in range(ROWS)], pa.date64()),
            "decimal": pa.array(range(ROWS), pa.decimal128(10, 2)),
            "uuid": pa.array([bytes([row]) * 16 for row in range(ROWS)], pa.uuid()),
        }
    )


COLUMNS = tuple(table().column_names)
KEEP_COLUMNS = ("number", "time", "date", "decimal", "id")
TEXT_COLUMNS = ("text", "text", "dictionary", "list", "large_list", "struct.a", "view", "dictionary_list")


@cache
def encode(number: int, columns: tuple[str, ...]) -> bytes:
    """Return some columns of the table in one of ``FORMATS``, in three record batches."""
    new, compression = FORMATS[number]
    rows, sink = table().select(columns), pa.BufferOutputStream()
    with new(sink, rows.schema, options=ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(rows, max_chunksize=5)
    return bytes(sink.getvalue())


def damage(data: bytes, rng: random.Random) -> bytes:
    """Return the bytes with a few bits, bytes, words or lengths changed, moved or cut off."""
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        at = rng.randrange(len(changed))
        word, long = at & ~3, at & ~7
        (value,) = struct.unpack("<I", bytes(changed[word : word + 4]).ljust(4, b"\0"))
        other = rng.randrange(len(changed))
        start, patch = rng.choice(
            [
                (at, bytes([changed[at] ^ 1 << rng.randrange(8)])),
                (at, bytes([rng.choice([0, 1, 127, 128, 255])])),
                (word, struct.pack("<i", rng.choice(INTS))),
                (word, struct.pack("<I", (value + rng.choice([-1, 1, 4, 8, 1000])) % 2**32)),
                (long, struct.pack("<q", rng.choice(LONGS))),
                (at, bytes(changed[other : other + rng.choice([4, 8, 16])])),
            ]
        )
        changed[start : start + len(patch)] = patch[: len(changed) - start]
    return bytes(changed[: rng.randrange(1, len(changed))] if rng.random() < 0.05 else changed)


def read(seed: int, folder: Path) -> None:
    """Read, copy and print the damaged file of a seed as a run does."""
    rng = random.Random(seed)
    columns = COLUMNS if rng.random() < 0.4 else ("text", *rng.sample(COLUMNS[1:], rng.randint(1, 3)))
    path = folder / "in.arrow"
    path.write_bytes(damage(encode(rng.randrange(len(FORMATS)), columns), rng))
    source, keep_column = ArrowFile(File(str(path))), rng.choice(KEEP_COLUMNS)
    wanted = Columns(
        text=(rng.choice(TEXT_COLUMNS),),
        values=(ValueColumn(keep_column), ValueColumn(keep_column, is_label=True)) if keep_column in columns else (),
        metadata=tuple(rng.sample(columns, min(len(columns), 3))),
    )
    source.known_rows()
    source.column_problem(wanted)
    rows = 0
    for batch in source.batches(wanted):
        assert batch.first == rows
        assert batch.values.null_count == sum(fault.row is not None for fault in batch.faults)
        rows += len(batch)
        for array in (batch.values, batch.ids, *batch.document_values.values()):
            if array is not None:
                array.filter(array.is_valid()).cast(array.type)  # reads every value
    with suppress(MinwiseError):
        source.copy_kept(np.ones(rows, bool), folder / "out", str(folder))
    with suppress(MinwiseError):
        kept(source, rows)


def kept(source: ArrowFile, rows: int) -> None:
    """Read all rows as objects."""
    for _ in source.kept_objects(np.ones(rows, bool)):
        pass


def main(start: int, stop: int, progress: Path) -> None:
    """Read the files of some seeds and print every failure."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    with tempfile.TemporaryDirectory(dir=progress.parent) as folder:
        for seed in range(start, stop):
            progress.write_text(str(seed))
            try:
                read(seed, Path(folder))
            except Exception as error:
                sys.stdout.write(f"seed {seed}: {type(error).__name__}: {error}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
