"""Arrow IPC files, Feather files and streams: reading, and copies in the same format."""

import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest
from pyarrow import ipc
from support.expect import error_message
from support.source_rows import TEXTS, faults_of, ids_of, kept, masks, texts_of

from minwise._internal.arrays import to_numpy
from minwise.errors import InputError
from minwise.inputs import arrow_ipc, ipc_messages, table_writer
from minwise.inputs.arrow_ipc import ArrowFile
from minwise.inputs.files import File
from minwise.inputs.ipc_messages import read_file_messages
from minwise.inputs.memory_sources import TableSource
from minwise.inputs.source import Columns, Fault
from minwise.text.chunks import text_chunk

Table = Any


def write_stream(table: Table, path: Path) -> None:
    """Write a stream in batches of three rows."""
    with ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)


def write_file(table: Table, path: Path) -> None:
    """Write a file in batches of three rows."""
    with ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)


def write_feather(table: Table, path: Path) -> None:
    """Write a compressed file, as pandas does."""
    pyarrow.feather.write_feather(table, str(path), chunksize=3)


WRITE: dict[str, Callable[[Table, Path], None]] = {
    "file.arrow": write_file,
    "stream.arrow": write_stream,
    "x.feather": write_feather,
}
TABLE = pa.table(
    {"text": TEXTS, "id": list(range(len(TEXTS))), "more": [[text] for text in TEXTS]}
).replace_schema_metadata({"origin": "here"})
every_format = pytest.mark.parametrize("name", WRITE)


def source(table: Table, path: Path) -> ArrowFile:
    """Return the source of a table written to ``path``."""
    WRITE[path.name](table, path)
    return ArrowFile(File(str(path)))


@every_format
def test_texts_and_ids_are_read(name: str, tmp_path: Path) -> None:
    """Batches of any size; the number of rows is known unless it is a stream."""
    file = source(TABLE, tmp_path / name)
    assert texts_of(file) == texts_of(file, batch_bytes=1) == TEXTS
    assert ids_of(file) == list(range(len(TEXTS)))
    assert file.known_rows() == (None if name.startswith("stream") else len(TEXTS))
    assert faults_of(file) == []


@every_format
@pytest.mark.parametrize("mask", range(5))
def test_a_copy_has_the_format_and_schema_of_its_input_and_the_kept_rows(name: str, mask: int, tmp_path: Path) -> None:
    file = source(TABLE, tmp_path / name)
    keep = masks(len(TEXTS))[mask]
    assert file.copy_kept(keep, tmp_path / "out", str(tmp_path)) == keep.sum()
    path = tmp_path / "out" / name
    reader = ipc.open_stream(path) if name.startswith("stream") else ipc.open_file(path)
    assert reader.schema.equals(TABLE.schema, check_metadata=True)
    assert reader.read_all().to_pylist() == kept(TABLE.to_pylist(), keep)


@every_format
def test_the_bytes_of_a_copy_do_not_depend_on_the_batches_of_the_input(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_writer, "GROUP_ROWS", 2)
    keep = np.array([True, False, True, True, False, True, True])
    copies = set()
    for number, table in enumerate([TABLE, pa.concat_tables([TABLE[:1], TABLE[1:2], TABLE[2:]])]):
        (tmp_path / str(number)).mkdir()
        file = source(table, tmp_path / str(number) / name)
        file.copy_kept(keep, tmp_path / str(number) / "out", str(tmp_path / str(number)))
        copies.add((tmp_path / str(number) / "out" / name).read_bytes())
    assert len(copies) == 1


@every_format
def test_dictionaries_are_read_and_copied(name: str, tmp_path: Path) -> None:
    """In a stream they may differ from batch to batch."""
    chunks = [pa.array(["a", "b", "a"]).dictionary_encode(), pa.array(["c", "a", None]).dictionary_encode()]
    table = pa.table({"text": pa.chunked_array(chunks)})
    table = table if name.startswith("stream") else table.unify_dictionaries()
    file = source(table, tmp_path / name)
    assert texts_of(file) == ["a", "b", "a", "c", "a", None]
    assert faults_of(file) == [Fault(file.name, 5, "text is null")]
    file.copy_kept(np.array([False, True, True, True, True, False]), tmp_path / "out", str(tmp_path))
    assert texts_of(ArrowFile(File(str(tmp_path / "out" / name)))) == ["b", "a", "c", "a"]


@every_format
def test_views_are_copied_as_views(name: str, tmp_path: Path) -> None:
    """As polars writes them, also within lists and structs."""
    view = pa.string_view()
    fields = [("text", view), ("l", pa.large_list(view)), ("s", pa.struct([("a", pa.list_(view))]))]
    table = pa.Table.from_pylist([{"text": x, "l": [x], "s": {"a": [x, None]}} for x in TEXTS], pa.schema(fields))
    file = source(table, tmp_path / name)
    file.copy_kept(np.arange(len(TEXTS)) % 2 == 0, tmp_path / "out", str(tmp_path))
    path = tmp_path / "out" / name
    copy = (ipc.open_stream(path) if name.startswith("stream") else ipc.open_file(path)).read_all()
    assert copy.schema == table.schema
    assert copy.to_pylist() == table.to_pylist()[::2]


def test_batches_without_a_wanted_row_are_left_out(tmp_path: Path) -> None:
    file = source(TABLE, tmp_path / "file.arrow")
    wanted = np.zeros(len(TEXTS), dtype=np.bool_)
    wanted[4] = True
    assert [(batch.first, len(batch)) for batch in file.batches(Columns(), wanted=wanted)] == [(3, 3)]


@pytest.mark.parametrize("data", [b"", b"no Arrow", b"ARROW1\0\0" + bytes(50), b"\xff\xff\xff\xff\xff\xff\xff\x7f" * 4])
def test_a_file_that_is_not_arrow_is_one_fault_and_has_no_copy(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    path.write_bytes(data)
    file = ArrowFile(File(str(path)))
    assert [fault.row for fault in faults_of(file)] == [None]
    assert file.known_rows() is None
    assert file.copy_kept(np.empty(0, dtype=np.bool_), tmp_path / "out", str(tmp_path)) == 0
    assert not (tmp_path / "out").exists()


def test_a_truncated_stream_yields_its_complete_batches(tmp_path: Path) -> None:
    """Then a fault; the rows before it can be copied, more cannot."""
    file = source(TABLE, tmp_path / "stream.arrow")
    path = Path(file.name)
    path.write_bytes(path.read_bytes()[:-200])
    assert texts_of(file) == TEXTS[:6]
    assert [fault.row for fault in faults_of(file)] == [None]
    assert file.copy_kept(np.ones(6, dtype=np.bool_), tmp_path / "out", str(tmp_path)) == 6
    every = np.ones(7, dtype=np.bool_)
    assert "cannot be copied" in error_message(InputError, lambda: file.copy_kept(every, tmp_path / "2", str(tmp_path)))


def test_offsets_outside_their_buffer_are_a_fault(tmp_path: Path) -> None:
    """They must not cause a read outside the buffer; invalid UTF-8, also in a list, is passed on."""
    offsets = pa.py_buffer(np.array([0, 5, 3], dtype=np.int32))
    invalid_offsets = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"abcdef")])
    for column in ("text", "id", "other"):
        table = pa.table({"text": ["a", "b"], "id": ["a", "b"], column: invalid_offsets})
        file = source(table, tmp_path / "file.arrow")
        columns = Columns() if column != "other" else Columns(text=("other",))
        assert [fault.row for fault in faults_of(file, columns)] == [0, 1]
    invalid = pa.array([b"\xff"]).view(pa.string())
    nested = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), invalid)
    file = source(pa.table({"text": invalid, "nested": nested}), tmp_path / "file.arrow")
    assert [batch.values.cast(pa.binary()).to_pylist() for batch in file.batches(Columns())] == [[b"\xff"]]
    assert file.copy_kept(np.ones(1, dtype=np.bool_), tmp_path / "out", str(tmp_path)) == 1


def write_batches(path: Path, columns: list[Any], *, stream: bool = False, compression: str | None = None) -> ArrowFile:
    """Write a record batch of two texts for each of the columns ``other``."""
    batches = [
        pa.record_batch({"text": [f"a {number}", f"b {number}"], "other": c}) for number, c in enumerate(columns)
    ]
    options = ipc.IpcWriteOptions(compression=compression)
    with (ipc.new_stream if stream else ipc.new_file)(path, batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return ArrowFile(File(str(path)))


NOT_UTF8 = pa.array([b"\xff", b"ok"]).view(pa.string())
BAD_OFFSETS = pa.Array.from_buffers(
    pa.string(), 2, [None, pa.py_buffer(np.array([0, 1 << 30, 2], dtype=np.int32)), pa.py_buffer(b"ab")]
)
BAD_INDEX = pa.DictionaryArray.from_arrays(pa.array([0, 1 << 20], pa.int32()), pa.array(["x"]), safe=False)


def pair(left: Any, right: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return structs of two columns; the first has text that is not UTF-8, which Arrow finds first."""
    return pa.StructArray.from_arrays([left, right], ["a", "b"])


LIST_OFFSETS = pa.array([0, 1, 2], pa.int32())
KEYS = pa.array(["k", "l"])
# Columns of two rows, and the same with an offset or an index outside its buffer.
DAMAGED = {
    "string": (pa.array(["x", "y"]), BAD_OFFSETS),
    "dictionary": (pa.array(["x", "x"]).dictionary_encode(), BAD_INDEX),
    "list": (pa.array([["x"], ["y"]]), pa.ListArray.from_arrays(LIST_OFFSETS, BAD_OFFSETS)),
    "list of dictionaries": (
        pa.ListArray.from_arrays(LIST_OFFSETS, pa.array(["x", "x"]).dictionary_encode()),
        pa.ListArray.from_arrays(LIST_OFFSETS, BAD_INDEX),
    ),
    "map": (
        pa.MapArray.from_arrays(LIST_OFFSETS, KEYS, pa.array(["x", "y"])),
        pa.MapArray.from_arrays(LIST_OFFSETS, KEYS, BAD_OFFSETS),
    ),
    "struct": (pair(NOT_UTF8, KEYS), pair(NOT_UTF8, BAD_OFFSETS)),
    "fixed-size list": (
        pa.FixedSizeListArray.from_arrays(KEYS, 1),
        pa.FixedSizeListArray.from_arrays(BAD_OFFSETS, 1),
    ),
    "union": (
        pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [KEYS]),
        pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [BAD_OFFSETS]),
    ),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", DAMAGED)
def test_text_that_is_not_utf8_does_not_hide_damage_behind_it(kind: str, stream: bool, tmp_path: Path) -> None:
    """The rows of the damaged batch are faults; those before and after it are read and copied."""
    good, bad = (pair(NOT_UTF8, column) for column in DAMAGED[kind])
    file = write_batches(tmp_path / "in.arrow", [good, bad, good], stream=stream)
    columns = Columns(metadata=("other",))
    faults = faults_of(file, columns)
    assert [fault.row for fault in faults] == [0, 2, 3, 4]
    assert "record batch 1 cannot be read" in faults[1].reason
    assert texts_of(file, columns) == [None, "b 0", None, None, None, "b 2"]
    assert file.copy_kept(np.array([1, 1, 0, 0, 1, 1], bool), tmp_path / "out", str(tmp_path)) == 4
    every = np.ones(6, dtype=np.bool_)
    assert "cannot be copied" in error_message(InputError, lambda: file.copy_kept(every, tmp_path / "2", str(tmp_path)))


def change(path: Path, old: bytes, new: bytes) -> None:
    """Replace bytes that a file must have once."""
    data = path.read_bytes()
    assert data.count(old) >= 1
    path.write_bytes(data.replace(old, new, 1))


def test_a_length_beyond_the_end_of_the_file_allocates_nothing(tmp_path: Path) -> None:
    file = write_batches(tmp_path / "in.arrow", [pa.array(["x" * 1000, "y"])] * 2)
    raw = (tmp_path / "in.arrow").read_bytes()
    with pa.OSFile(str(tmp_path / "in.arrow")) as stored:
        _, messages = read_file_messages(stored, len(raw))
    change(tmp_path / "in.arrow", struct.pack("<q", messages[0].body_bytes), struct.pack("<q", 1 << 50))
    (fault,) = faults_of(file)
    assert fault.row is None
    assert "has a body of 1125899906842624 bytes, beyond the end" in fault.reason
    assert file.known_rows() is None


@pytest.mark.parametrize("stream", [False, True])
def test_a_batch_that_decompresses_to_far_more_than_its_bytes_is_not_read(
    stream: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ipc_messages, "MAX_INFLATED_BYTES", 1 << 20)
    columns = [pa.array(["x", "y"]), pa.array(["x" * (1 << 21), "y"]), pa.array(["x", "y"])]
    file = write_batches(tmp_path / "in.arrow", columns, stream=stream, compression="zstd")
    faults = faults_of(file)
    assert [fault.row for fault in faults] == ([None] if stream else [2, 3])
    assert "more than 256 times as many; write smaller record batches" in faults[0].reason
    assert texts_of(file) == ["a 0", "b 0", *([] if stream else [None, None, "a 2", "b 2"])]


@pytest.mark.parametrize("stream", [False, True])
def test_a_large_batch_is_mapped_from_a_copy_of_its_own(
    stream: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same rows, in slices; no temporary file is left."""
    monkeypatch.setattr(arrow_ipc, "LARGE_BYTES", 100)
    monkeypatch.setattr(arrow_ipc, "BATCH_BYTES", 100)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    file = source(pa.concat_tables([TABLE, TABLE]), tmp_path / ("stream.arrow" if stream else "file.arrow"))
    assert texts_of(file) == TEXTS * 2
    assert file.copy_kept(np.ones(14, dtype=np.bool_), tmp_path / "out", str(tmp_path)) == 14
    assert texts_of(ArrowFile(File(str(next((tmp_path / "out").iterdir()))))) == TEXTS * 2
    assert list((tmp_path / "temporary").iterdir()) == []


# Never deleted: a buffer that outlives its pool ends the process when it is freed.
POOLS: list[Any] = []


@pytest.fixture
def memory() -> Iterator[Any]:
    """Yield a memory pool that counts what Arrow allocates from now on."""
    before, counted = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    POOLS.append(counted)
    pa.set_memory_pool(counted)
    yield counted
    pa.set_memory_pool(before)


@pytest.mark.parametrize("kind", ["view", "dictionary"])
def test_rows_that_share_one_text_are_read_and_copied_in_small_pieces(kind: str, memory: Any, tmp_path: Path) -> None:  # noqa: ANN401
    """400 rows of one text of a mebibyte; a piece has at most 32 MiB, and two or three of them are held."""
    long = pa.array(["x" * (1 << 20)], pa.string_view())
    zeros = pa.array([0] * 400, pa.int32())
    views = b"".join([bytes(long.buffers()[1])] * 400)
    column = (
        pa.Array.from_buffers(pa.string_view(), 400, [None, pa.py_buffer(views), long.buffers()[2]])
        if kind == "view"
        else pa.DictionaryArray.from_arrays(zeros, long.cast(pa.string()))
    )
    with ipc.new_file(tmp_path / "in.arrow", pa.schema([("text", column.type)])) as writer:
        writer.write_batch(pa.record_batch({"text": column}))
    file = ArrowFile(File(str(tmp_path / "in.arrow")))
    assert sum(len(batch) for batch in file.batches(Columns())) == 400
    assert memory.max_memory() < 150 << 20
    next(file.kept_objects(np.ones(400, dtype=np.bool_)))
    assert memory.max_memory() < 150 << 20


def test_a_buffer_may_be_longer_than_its_values() -> None:
    """By any number of bytes: Arrow accepts it, and a damaged length may say so."""
    text = pa.array(["one", "two"])
    offsets = pa.py_buffer(bytes(text.buffers()[1])[:12] + bytes(3))
    columns = {"text": pa.Array.from_buffers(pa.string(), 2, [None, offsets, text.buffers()[2]])}
    columns["id"] = pa.Array.from_buffers(pa.int64(), 2, [None, pa.py_buffer(bytes(21))])
    assert text_chunk(columns["text"][1:]).offsets.tolist() == [3, 6]
    assert to_numpy(columns["id"][1:]).tolist() == [0]
    assert texts_of(TableSource(pa.table(columns))) == ["one", "two"]
