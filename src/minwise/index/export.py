"""Export: an index in, a Parquet file of ids, metadata and signatures out."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from minwise.arrays import from_bytes, from_matrix
from minwise.durable import atomic_writer
from minwise.index.records import DocumentRecord
from minwise.index.settings import IndexSettings
from minwise.index.store import Store
from minwise.stages.shingle import ShingleSets

__all__ = ["write_signatures"]

# Documents in a row group.
GROUP = 1 << 14


def write_signatures(path: Path, settings: IndexSettings, store: Store) -> int:
    """Writes id, metadata and signature of every document, in the order they were added; returns how many.

    A signature is a row of slots; of an index that stores sketches, 16 bits of each. It is null for a document without
    elements. The settings are in the file's metadata, without a seed that is secret.
    """
    schema = _schema(settings)
    written = 0
    with atomic_writer(path) as file, pq.ParquetWriter(file, schema) as writer:
        rows = (DocumentRecord.decode(record) for _, record in store.checked_rows("documents"))
        for group in _groups(rows):
            ids = from_bytes([record.name for record in group], pa.large_string())
            about = from_bytes([record.metadata or None for record in group], pa.large_string())
            columns = [ids, about, _signatures(group, settings)]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
            written += len(group)
    return written


def _schema(settings: IndexSettings) -> pa.Schema:
    slot = pa.uint16() if settings.store == "sketch" else pa.from_numpy_dtype(settings.scheme.settings.dtype)
    fields = [
        ("id", pa.large_string()),
        ("metadata", pa.large_string()),
        ("signature", pa.list_(slot, settings.plan.slots)),
    ]
    return pa.schema(fields, metadata={"minwise": orjson.dumps(settings.shown())})


def _groups(rows: Iterator[DocumentRecord]) -> Iterator[list[DocumentRecord]]:
    while group := list(islice(rows, GROUP)):
        yield group


def _signatures(group: list[DocumentRecord], settings: IndexSettings) -> pa.Array:
    filled = np.array([bool(record.body) for record in group])
    return from_matrix(_slots(group, filled, settings), filled)


def _slots(group: list[DocumentRecord], filled: NDArray[np.bool_], settings: IndexSettings) -> NDArray[np.generic]:
    bodies = b"".join(record.body for record in group)
    if settings.store == "sketch":
        slots = np.zeros((len(group), settings.plan.slots), dtype="<u2")
        slots[filled] = np.frombuffer(bodies, dtype="<u2").reshape(-1, settings.plan.slots)
        return slots
    offsets = np.cumsum([0, *(len(record.body) // 8 for record in group)], dtype=np.int64)
    sets = ShingleSets(offsets, np.frombuffer(bodies, dtype="<u8"), settings=settings.shingler.settings)
    return settings.scheme.sketch(sets).slots
