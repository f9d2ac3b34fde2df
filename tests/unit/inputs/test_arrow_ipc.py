"""Arrow IPC files, Feather files and streams: reading, and copies in the same format."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest
from pyarrow import ipc
from support.expect import error_message
from support.source_rows import TEXTS, faults_of, ids_of, kept, masks, texts_of

from minwise.errors import InputError
from minwise.inputs import table_writer
from minwise.inputs.arrow_ipc import ArrowFile
from minwise.inputs.files import File
from minwise.inputs.source import Columns, Fault

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
