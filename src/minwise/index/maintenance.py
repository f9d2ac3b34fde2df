"""Backup: an index in, a copy of one of its states in a new directory out. New indexes appear in the same way."""

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from minwise._internal.arrays import from_bytes, from_matrix
from minwise._internal.atomic import atomic_writer
from minwise.errors import ConfigError, FormatError
from minwise.index.answers import Damage
from minwise.index.database import DATABASE, naming_file, sync
from minwise.index.records import DocumentRecord, checksum_of, find_damaged
from minwise.index.settings import IndexSettings
from minwise.index.store import TABLES, Store
from minwise.index.view import View
from minwise.text.shingling import ShingleSets

__all__ = ["back_up", "describe", "find_damage", "new_directory", "write_signatures"]


@contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """A directory beside ``path`` that takes its place once it is complete and on disk."""
    path = path.resolve()  # a link keeps pointing where it points
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ConfigError(f"{path} must be a new or an empty directory, got one that holds something; delete it first")
    _make_lasting(path.parent)
    _forget_unfinished(path)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    unfinished.mkdir()
    with _held(unfinished):
        try:
            yield unfinished
            sync(unfinished)
            os.replace(unfinished, path)  # noqa: PTH105 - what Path.replace says of files, this says of directories too
            sync(path.parent)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise


def _forget_unfinished(path: Path) -> None:
    """Deletes what others began in the same place and were kept from finishing; not what somebody is at."""
    ours = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.tmp")
    for unfinished in (one for one in path.parent.iterdir() if ours.fullmatch(one.name)):
        with suppress(OSError), _held(unfinished):
            shutil.rmtree(unfinished)


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Holds a directory, as long as the process lives at most.

    Raises:
        BlockingIOError: If another process holds it.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _make_lasting(folder: Path) -> None:
    """Makes a directory and its parents, those that are not there, and their names last."""
    if not folder.exists():
        _make_lasting(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def back_up(store: Store, segments: Sequence[Path], path: Path) -> None:
    """Copies the database that a snapshot shows, and the segments of its state; all of it is durable before it appears.

    Raises:
        FileNotFoundError: If a segment has been merged away since the snapshot was taken: take another.
    """
    with ExitStack() as stack:
        opened = [stack.enter_context(segment.open("rb")) for segment in segments]  # from now on they can be read
        with new_directory(path) as unfinished:
            store.copy_to(unfinished / DATABASE)
            for file, segment in zip(opened, segments, strict=True):
                _copy(file, unfinished / segment.name)


def _copy(file: BinaryIO, path: Path) -> None:
    with naming_file(path), path.open("xb") as copy:
        shutil.copyfileobj(file, copy, 1 << 20)
    sync(path)


def find_damage(settings: IndexSettings, view: View, store: Store) -> list[Damage]:
    """Reads every byte that is part of the index, and compares it with its checksum; then counts and digest."""
    damages = [*_damaged_segments(view), *_damaged_rows(settings, view, store)]
    known = {damage.what for damage in damages}
    damages += [Damage(str(store.path), what) for what in store.complaints() if what not in known]
    return damages


def _damaged_segments(view: View) -> Iterator[Damage]:
    """Reads the files that are open: another process may have merged them away by name."""
    for place, path in enumerate(view.segment_paths()):
        what = view.postings.check_segment(place)
        if what is not None:
            yield Damage(str(path), what)


def _damaged_rows(settings: IndexSettings, view: View, store: Store) -> Iterator[Damage]:
    digest, path = 0, str(store.path)
    for table in TABLES:
        rows = 0
        try:
            for number, record in store.rows(table):
                rows += 1
                if find_damaged([(number, record)]) is not None:
                    yield Damage(path, f"{table}: row {number} is damaged")
                elif table in ("documents", "texts"):
                    digest += (number << 32) + checksum_of(record)
        except FormatError as error:
            yield Damage(path, str(error).removeprefix(f"{path}: "))
        expected = view.state.documents if table == "documents" or settings.store == "text" else 0
        if table in ("documents", "texts") and rows != expected:
            yield Damage(path, f"{table}: {expected} rows must be there, got {rows}")
    if digest % 2**64 != view.state.digest:
        yield Damage(path, "documents: the digest of all rows is not that of the manifest")


def describe(settings: IndexSettings, view: View, store: Store) -> dict[str, Any]:
    """Documents, files, bytes, memory and settings; without a seed that is secret."""
    state, opened = view.state, view.postings.segments()
    segments = [
        {"file": one.name, "bytes": size, "documents": one.high - one.low, "postings": one.postings}
        for one, (*_, size) in zip(state.segments, opened, strict=True)
    ]
    return {
        "documents": state.documents,
        "removed": state.next - state.documents,
        "recent": state.next - state.flushed,
        "commits": state.commit,
        "bytes": store.database_bytes + sum(size for *_, size in opened),
        "database_bytes": store.database_bytes,
        "segments": segments,
        "resident_bytes": view.postings.resident_bytes,
        "settings": settings.shown(),
    }


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
