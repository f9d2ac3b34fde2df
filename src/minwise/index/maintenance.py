"""Maintenance of an index: creation and backup of directories, verification, statistics and export."""

import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from minwise._internal.arrays import from_bytes, from_matrix
from minwise._internal.atomic import rename_directory
from minwise._internal.locks import locked_directory
from minwise._internal.temporary import output_writer
from minwise.errors import ConfigError, FormatError
from minwise.index.clusters import Clusters
from minwise.index.database import DATABASE, REMEDY, add_file_name, create_private, sync
from minwise.index.records import DocumentRecord, checksum_of
from minwise.index.result_types import Damage, IndexStats, SegmentStats
from minwise.index.settings import IndexSettings
from minwise.index.store import TABLES, Store
from minwise.index.view import View
from minwise.text.shingling import ShingleSets

__all__ = ["back_up", "describe", "find_damage", "new_directory", "write_signatures"]


@contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """Yield a temporary directory in the same parent, and rename it to ``path`` once it is complete and durable.

    Only its owner can enter it, unless ``path`` is an empty directory, whose mode it gets.

    Raises:
        ConfigError: If ``path`` exists and is not an empty directory.
    """
    path = path.resolve()  # a symbolic link keeps its target
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ConfigError(f"{path} must be a new or empty directory, got one with files in it; delete it first")
    _make_directories(path.parent)
    _delete_unfinished(path)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    unfinished.mkdir(mode=0o700)
    unfinished.chmod(stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o700)
    with locked_directory(unfinished):
        try:
            yield unfinished
            sync(unfinished)
            rename_directory(unfinished, path)
            sync(path.parent)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise


def _delete_unfinished(path: Path) -> None:
    """Delete temporary directories of interrupted processes; those of running processes are locked."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.tmp")
    for unfinished in (entry for entry in path.parent.iterdir() if pattern.fullmatch(entry.name)):
        with suppress(OSError), locked_directory(unfinished):
            shutil.rmtree(unfinished)


def _make_directories(folder: Path) -> None:
    """Create a directory and its missing parents, and sync their entries."""
    if not folder.exists():
        _make_directories(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def back_up(store: Store, segments: Sequence[Path], path: Path) -> None:
    """Copy the database of the current snapshot, and the segments of its state, to a new directory.

    The copy is durable before it appears under its name.

    Raises:
        FileNotFoundError: If the writer has merged a segment since the snapshot was taken; retry with a new one.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(segment.open("rb")) for segment in segments]  # readable even if deleted now
        with new_directory(path) as unfinished:
            store.copy_to(unfinished / DATABASE)
            for file, segment in zip(files, segments, strict=True):
                _copy(file, unfinished / segment.name)


def _copy(file: BinaryIO, path: Path) -> None:
    with add_file_name(path), os.fdopen(create_private(path), "wb") as copy:
        shutil.copyfileobj(file, copy, 1 << 20)
    sync(path)


def find_damage(settings: IndexSettings, view: View, store: Store) -> list[Damage]:
    """Read every byte of the index, compare it with its checksum, and check counts and digest."""
    damages = [*_damaged_segments(view), *_damaged_rows(settings, view, store)]
    if settings.assign:
        rows = Clusters(store, view.state.next).damaged_rows()
        damages += [Damage(str(store.path), row.removeprefix(f"{store.path}: ")) for row in rows]
    known = {damage.what for damage in damages}
    damages += [Damage(str(store.path), message) for message in store.integrity_errors() if message not in known]
    return damages


def _damaged_segments(view: View) -> Iterator[Damage]:
    """Check the open segments: another process may have merged and deleted the files."""
    for position, path in enumerate(view.segment_paths()):
        damage = view.check_segment(position)
        if damage is not None:
            yield Damage(str(path), damage)


def _damaged_rows(settings: IndexSettings, view: View, store: Store) -> Iterator[Damage]:
    digest, path = 0, str(store.path)
    for table in TABLES:
        rows = 0
        try:
            for number, record in store.rows(table):
                rows += 1
                if store.find_damaged(table, [(number, record)]) is not None:
                    yield Damage(path, f"{table}: row {number} is damaged")
                    continue
                if table in ("documents", "texts"):
                    digest += (number << 32) + checksum_of(record)
                if table == "documents":
                    yield from _damaged_content(settings, store, number, record)
        except FormatError as error:
            yield Damage(path, str(error).removeprefix(f"{path}: "))
        expected = view.state.documents if table == "documents" or settings.store == "text" else 0
        if table in ("documents", "texts") and rows != expected:
            yield Damage(path, f"{table}: {expected} rows must be there, got {rows}")
    if digest % 2**64 != view.state.digest:
        yield Damage(path, "documents: the digest of all rows is not that of the manifest")


def _damaged_content(settings: IndexSettings, store: Store, number: int, record: bytes) -> Iterator[Damage]:
    """Decode a document whose checksum is right."""
    try:
        with store.decoding("documents", number):
            document = DocumentRecord.decode(record)
            document.decode_metadata()
            elements = np.frombuffer(document.body if settings.exact else b"", dtype="<u8")
            if (elements[1:] <= elements[:-1]).any():
                raise ValueError("the elements must ascend")
    except FormatError as error:
        yield Damage(str(store.path), str(error).removeprefix(f"{store.path}: ").removesuffix(f"; {REMEDY}"))


def describe(settings: IndexSettings, view: View, store: Store) -> IndexStats:
    """Return counts, sizes and settings; a secret seed is left out."""
    state, sizes = view.state, view.segment_bytes()
    segments: list[SegmentStats] = [
        {"file": segment.name, "bytes": size, "documents": segment.high - segment.low, "postings": segment.postings}
        for segment, size in zip(state.segments, sizes, strict=True)
    ]
    return {
        "documents": state.documents,
        "removed": state.next - state.documents,
        "recent": state.next - state.flushed,
        "commits": state.commit,
        "bytes": store.database_bytes + sum(sizes),
        "database_bytes": store.database_bytes,
        "segments": segments,
        "resident_bytes": view.resident_bytes,
        "settings": settings.to_dict(),
    }


# Documents per Parquet row group.
ROW_GROUP_DOCUMENTS = 1 << 14


def write_signatures(path: Path, settings: IndexSettings, store: Store, *, overwrite: bool = True) -> int:
    """Write id, metadata and signature of every document, in the order of addition, and return their number.

    A signature is a list of slots; 16 bits of each slot if the index stores sketches. It is null for a document without
    elements. The metadata of the file holds the settings, without a secret seed.
    """
    schema = _schema(settings)
    written = 0
    with output_writer(path, overwrite=overwrite) as file, pq.ParquetWriter(file, schema) as writer:
        documents = (_decoded(store, *row) for row in store.checked_rows("documents"))
        while group := list(islice(documents, ROW_GROUP_DOCUMENTS)):
            ids = from_bytes([record.encoded_id for record in group], pa.large_string())
            metadata = from_bytes([record.metadata or None for record in group], pa.large_string())
            columns = [ids, metadata, _signatures(group, settings)]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
            written += len(group)
    return written


def _decoded(store: Store, number: int, record: bytes) -> DocumentRecord:
    with store.decoding("documents", number):
        return DocumentRecord.decode(record)


def _schema(settings: IndexSettings) -> pa.Schema:
    slot = pa.from_numpy_dtype(settings.scheme.settings.dtype) if settings.exact else pa.uint16()
    fields = [
        ("id", pa.large_string()),
        ("metadata", pa.large_string()),
        ("signature", pa.list_(slot, settings.plan.slots)),
    ]
    return pa.schema(fields, metadata={"minwise": orjson.dumps(settings.to_dict())})


def _signatures(group: list[DocumentRecord], settings: IndexSettings) -> pa.Array:
    filled = np.array([bool(record.body) for record in group])
    return from_matrix(_slots(group, filled, settings), filled)


def _slots(group: list[DocumentRecord], filled: NDArray[np.bool_], settings: IndexSettings) -> NDArray[np.generic]:
    bodies = b"".join(record.body for record in group)
    if not settings.exact:
        slots = np.zeros((len(group), settings.plan.slots), dtype="<u2")
        slots[filled] = np.frombuffer(bodies, dtype="<u2").reshape(-1, settings.plan.slots)
        return slots
    offsets = np.cumsum([0, *(len(record.body) // 8 for record in group)], dtype=np.int64)
    sets = ShingleSets(offsets, np.frombuffer(bodies, dtype="<u8"))
    return settings.scheme.sketch(sets).slots
