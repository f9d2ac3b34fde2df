"""Parquet: texts of every type, reads of the needed row groups and columns only, and copies like their input."""

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.expect import error_message
from support.source_rows import TEXTS, faults_of, ids_of, kept, masks, plain, texts_of, values_of

from minwise.errors import InputError
from minwise.inputs import parquet, row_reader, table_writer
from minwise.inputs.document_values import ValueColumn
from minwise.inputs.files import File
from minwise.inputs.parquet import ParquetFile
from minwise.inputs.parquet_pages import ColumnPages, Page, read_pages
from minwise.inputs.source import Columns, Fault

KINDS = [
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.large_binary(),
    pa.string_view(),
    pa.binary_view(),
    pa.dictionary(pa.int32(), pa.string()),
]


def source(path: Path, table: pa.Table, **options: Any) -> ParquetFile:  # noqa: ANN401 - of pyarrow
    """Return the source of a table written to ``path``."""
    pq.write_table(table, path, **options)
    return ParquetFile(File(str(path)))


def many(rows: int = 1000) -> pa.Table:
    """Return different texts of different lengths."""
    numbers = range(rows)
    return pa.table(
        {"text": [f"{n} " * (n % 50) for n in numbers], "id": list(numbers), "more": [[n] for n in numbers]}
    )


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_type_of_text_is_read_and_copied(kind: Any, tmp_path: Path) -> None:  # noqa: ANN401 - pyarrow has no types
    """Also in batches of one row."""
    binary = pa.array([text.encode() for text in TEXTS])
    array = pa.array(TEXTS).dictionary_encode() if pa.types.is_dictionary(kind) else binary.cast(kind)
    file = source(tmp_path / "x.parquet", pa.table({"text": array}))
    file.copy_kept(np.ones(len(TEXTS), dtype=np.bool_), tmp_path / "out", str(tmp_path))
    copy = pq.ParquetFile(tmp_path / "out" / "x.parquet")
    assert copy.schema_arrow == pq.read_schema(file.name)
    assert [plain(batch.column(0)) for batch in copy.iter_batches()] == [TEXTS]
    assert texts_of(file) == texts_of(file, batch_bytes=1) == TEXTS
    assert file.known_rows() == len(TEXTS)
    assert ids_of(file) == []


@pytest.mark.parametrize("kind", [pa.int64(), pa.list_(pa.field("element", pa.int64())), pa.binary(3)], ids=str)
def test_a_text_column_of_another_type_is_a_fault_of_the_file(kind: Any, tmp_path: Path) -> None:  # noqa: ANN401
    file = source(tmp_path / "x.parquet", pa.table({"text": pa.nulls(2, kind)}))
    reason = f"text must be strings, got a column of {kind}"
    assert faults_of(file) == [Fault(file.name, row, reason) for row in (0, 1, None)]


def test_a_missing_column_is_a_fault_that_lists_the_columns(tmp_path: Path) -> None:
    file = source(tmp_path / "x.parquet", pa.table({"a": ["x"], "b": [1]}))
    assert faults_of(file)[0].reason == (
        "has no column 'text'; its columns are: a (string), b (int64); did you mean text_column='a'?"
    )
    assert faults_of(file, Columns(text=("a",), id="c"))[0].reason.startswith("has no column 'c'")
    assert faults_of(file, Columns(text=("a",), values=(ValueColumn("c"),)))[0].reason.startswith("has no column 'c'")


def test_the_columns_of_a_damaged_file_are_listed_without_a_sample(tmp_path: Path) -> None:
    """Few rows are read for it: a row may take any memory."""
    file = source(
        tmp_path / "x.parquet",
        pa.table({"a": ["x y"] * 100, "b": ["z"] * 100}),
        compression="zstd",
        use_dictionary=False,
    )
    start = pages_of(file)[0].start
    data = bytearray(Path(file.name).read_bytes())
    data[start : start + 4] = bytes(4)
    Path(file.name).write_bytes(data)
    assert faults_of(file)[0].reason.startswith("has no column 'text'; its columns are: a (string), b (string)")
    assert len(faults_of(file)) == 101


def test_text_columns_are_joined_and_a_null_in_one_is_a_fault(tmp_path: Path) -> None:
    table = pa.table({"title": ["a", None, "c", None], "body": [b"x", b"y", None, None]})
    file = source(tmp_path / "x.parquet", table)
    columns = Columns(text=("title", "body"))
    assert texts_of(file, columns) == ["a\nx", None, None, None]
    expected = [(1, "title is null"), (2, "body is null"), (3, "title is null")]
    assert [(fault.row, fault.reason) for fault in faults_of(file, columns)] == expected
    assert [fault.row for fault in faults_of(file, columns, batch_bytes=1)] == [1, 2, 3]


def test_each_row_of_a_column_of_the_null_type_is_a_fault(tmp_path: Path) -> None:
    """Pandas writes the null type for a column without values."""
    file = source(tmp_path / "x.parquet", pa.table({"text": pa.nulls(2)}))
    assert [fault.reason for fault in faults_of(file)] == ["text is null"] * 2


@pytest.mark.parametrize(
    ("ids", "expected", "kind"),
    [
        (pa.array([1, None, 3], pa.int16()), [1, None, 3], pa.int64()),
        (pa.array([1, 2, 3], pa.uint64()), [1, 2, 3], pa.int64()),
        (pa.array([1, 2, 2**64 - 1], pa.uint64()), ["1", "2", str(2**64 - 1)], pa.large_string()),
        (pa.array(["a", None, "c"]), ["a", None, "c"], pa.large_string()),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"], pa.large_string()),
        (pa.array([b"a", None, b"c"]), ["a", None, "c"], pa.large_string()),
        (pa.nulls(3), [None] * 3, pa.large_string()),
    ],
)
def test_ids_of_every_type_are_int64_or_strings(ids: Any, expected: list[Any], kind: Any, tmp_path: Path) -> None:  # noqa: ANN401
    """A null stays null."""
    file = source(tmp_path / "x.parquet", pa.table({"text": ["x"] * 3, "id": ids, "key": ids}))
    for columns in (Columns(), Columns(id="key")):
        assert ids_of(file, columns) == expected
        assert [batch.ids.type for batch in file.batches(columns) if batch.ids is not None] == [kind]


def test_ids_of_a_wrong_type_are_a_fault_of_the_file_and_wrong_bytes_of_the_row(tmp_path: Path) -> None:
    file = source(tmp_path / "x.parquet", pa.table({"text": ["x"], "id": [0.5]}))
    assert faults_of(file)[0].reason == "id must be strings or whole numbers, got a column of double"
    file = source(tmp_path / "y.parquet", pa.table({"text": ["x", None, "z"], "id": [b"a", b"b", b"c\xff"]}))
    expected = [Fault(file.name, 1, "text is null"), Fault(file.name, 2, "id is not valid UTF-8 at byte 1")]
    assert faults_of(file) == expected
    assert ids_of(file) == ["a", "b", None]


def test_keep_values_have_their_type_and_a_list_is_rejected(tmp_path: Path) -> None:
    dates = pa.array([1, None], pa.date32())
    file = source(tmp_path / "x.parquet", pa.table({"text": ["x", "y"], "when": dates, "list": [[1], [2]]}))
    assert values_of(file, "when") == dates.to_pylist()
    assert "list" in faults_of(file, Columns(values=(ValueColumn("list"),)))[0].reason


def test_invalid_utf8_is_passed_on(tmp_path: Path) -> None:
    """The kernel finds it and reports its offset."""
    invalid = pa.array([b"a", b"\xff"]).view(pa.string())
    file = source(tmp_path / "x.parquet", pa.table({"text": invalid}))
    (batch,) = file.batches(Columns())
    assert batch.values.cast(pa.binary()).to_pylist() == [b"a", b"\xff"]
    assert faults_of(file) == []


@pytest.mark.parametrize("batch_bytes", [1, 1000, 1 << 25])
def test_batches_have_at_most_batch_bytes_or_one_row(batch_bytes: int, tmp_path: Path) -> None:
    file = source(tmp_path / "x.parquet", many(), row_group_size=170)
    for batch in file.batches(Columns(), batch_bytes=batch_bytes):
        assert len(batch) == 1 or sum(map(len, plain(batch.values))) <= batch_bytes
    assert texts_of(file, batch_bytes=batch_bytes) == many()["text"].to_pylist()
    assert faults_of(file, batch_bytes=batch_bytes) == []


def test_rows_of_a_dictionary_of_16_mb_are_read_in_batches(tmp_path: Path) -> None:
    """Arrow writes such a page for a batch of long texts; the longest one limits the rows, not their sum."""
    texts = [f"{number} ".ljust(20_000, "x") for number in range(800)]
    file = source(tmp_path / "x.parquet", pa.table({"text": texts}), dictionary_pagesize_limit=1 << 30)
    batches = list(file.batches(Columns(), batch_bytes=4 * 10**6))
    assert [text for batch in batches for text in plain(batch.values)] == texts
    assert len(batches) < 10


def test_row_groups_without_a_wanted_row_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = source(tmp_path / "x.parquet", many(), row_group_size=100)
    groups = []
    read = parquet._RowGroups._group

    def record(reader: Any, number: int) -> Any:  # noqa: ANN401 - as _group
        groups.append(number)
        return read(reader, number)

    monkeypatch.setattr(parquet._RowGroups, "_group", record)
    wanted = np.zeros(1000, dtype=np.bool_)
    wanted[[250, 999]] = True
    assert [(batch.first, len(batch)) for batch in file.batches(Columns(), wanted=wanted)] == [(200, 100), (900, 100)]
    assert groups == [2, 9]
    assert list(file.batches(Columns(), wanted=np.zeros(1000, dtype=np.bool_))) == []


@pytest.mark.parametrize(("copies", "words", "unique"), [(9_000, 2_000, 0), (60_000, 400, 2_000)])
def test_dictionaries_are_read_in_bounded_memory(copies: int, words: int, unique: int, tmp_path: Path) -> None:
    """A copy of a page has a few bytes in the file; decoded in one batch, all copies would take at least 90 MB."""
    page = "page " * words
    texts = [page] * copies + [f"{number} {page}" for number in range(unique)]
    file = source(tmp_path / "x.parquet", pa.table({"text": texts}))
    before = pa.total_allocated_bytes()
    peak = rows = 0
    for batch in file.batches(Columns()):
        peak = max(peak, pa.total_allocated_bytes() - before)
        rows += len(batch)
    assert rows == len(texts)
    assert peak < 3 << 24
    before = pa.total_allocated_bytes()
    for batch in file.batches(Columns(), batch_bytes=1 << 20):
        assert pa.total_allocated_bytes() - before < 1 << 25
        assert sum(map(len, plain(batch.values[:1]))) <= 1 << 20


# Pages of about 1,000 bytes.
PAGES = {"use_dictionary": False, "data_page_size": 1000, "write_batch_size": 20, "compression": "zstd"}


def damage(file: ParquetFile, group: int, column: int = 0) -> None:
    """Overwrite the middle of a column of a row group."""
    chunk = pq.read_metadata(file.name).row_group(group).column(column)
    data = bytearray(Path(file.name).read_bytes())
    middle = chunk.data_page_offset + chunk.total_compressed_size // 2
    data[middle : middle + 50] = bytes(50)
    Path(file.name).write_bytes(data)


@pytest.mark.parametrize("batch_bytes", [1, 300, 1 << 25])
def test_only_the_rows_of_a_group_from_a_damaged_page_on_are_faults(batch_bytes: int, tmp_path: Path) -> None:
    """All others are read and can be copied, whatever the batch size; ids keep their type."""
    file = source(tmp_path / "x.parquet", many(), row_group_size=400, **PAGES)
    damage(file, 1)
    expected = many()["text"].to_pylist()
    texts = texts_of(file, batch_bytes=batch_bytes)
    lost = [row for row, text in enumerate(texts) if text is None]
    assert lost == list(range(lost[0], 800))
    assert 400 < lost[0] < 800
    assert [text for text in texts if text is not None] == kept(expected, ~np.isin(np.arange(1000), lost))
    faults = faults_of(file, batch_bytes=batch_bytes)
    assert [fault.row for fault in faults] == lost
    assert {fault.reason[:29] for fault in faults} == {"row group 1: cannot be read: "}
    assert ids_of(file) == [None if row in lost else row for row in range(1000)]
    readable = ~np.isin(np.arange(1000), lost)
    assert file.copy_kept(readable, tmp_path / "out", str(tmp_path)) == 1000 - len(lost)
    assert pq.read_table(tmp_path / "out" / "x.parquet")["text"].to_pylist() == kept(expected, readable)
    everything = np.ones(1000, dtype=np.bool_)
    for copy in (
        lambda: file.copy_kept(everything, tmp_path / "2", str(tmp_path)),
        lambda: [*file.kept_objects(everything)],
    ):
        assert "cannot be copied: row group 1: cannot be read: " in error_message(InputError, copy)


def test_damage_of_a_nested_text_is_a_fault_of_its_rows(tmp_path: Path) -> None:
    texts = [f"{number} words" for number in range(1000)]
    table = pa.table({"a": [{"b": {"c": text}, "d": 1} for text in texts], "id": [str(n) for n in range(1000)]})
    file = source(tmp_path / "x.parquet", table, row_group_size=400, **PAGES)
    damage(file, 0)
    columns = Columns(text=("a.b.c",), metadata=("a.d",))
    batches = list(file.batches(columns))
    lost = [fault.row for batch in batches for fault in batch.faults]
    assert lost == list(range(lost[0] or 0, 400))
    assert texts_of(file, columns)[400:] == texts[400:]
    assert sum(len(batch.metadata or []) for batch in batches) == 1000


def test_a_wrong_letter_is_damage_where_pages_have_checksums(tmp_path: Path) -> None:
    options = {"compression": "none", "use_dictionary": False, "row_group_size": 10}
    file = source(tmp_path / "x.parquet", many(20), write_page_checksum=True, **options)
    data = bytearray((tmp_path / "x.parquet").read_bytes())
    text = str(many(20)["text"][15]).encode()
    data[data.index(text) + 1] ^= 1
    (tmp_path / "x.parquet").write_bytes(data)
    faults = [fault for batch in file.batches(Columns()) for fault in batch.faults]
    assert [fault.row for fault in faults] == list(range(10, 20))
    assert all("row group 1" in fault.reason and "CRC" in fault.reason for fault in faults)


def promise(path: Path, rows: int, promised: int, count: int = -1) -> None:
    """Write another number of rows to the footer, in its first ``count`` places or in all."""
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    # Integers are zigzag varints, these of two bytes.
    old, new = (bytes([(2 * number & 0x7F) | 0x80, 2 * number >> 7]) for number in (rows, promised))
    path.write_bytes(data[:footer] + data[footer:].replace(old, new, count))


def test_rows_that_a_row_group_promises_and_does_not_hold_are_faults(tmp_path: Path) -> None:
    file = source(tmp_path / "x.parquet", pa.table({"text": ["one"] * 77}))
    promise(tmp_path / "x.parquet", 77, 99)
    reason = "row group 0: cannot be read: it ends before its last row"
    assert faults_of(file) == [Fault(file.name, row, reason) for row in range(77, 99)]
    assert texts_of(file) == ["one"] * 77 + [None] * 22
    assert file.known_rows() == 99


def test_a_footer_that_contradicts_itself_is_a_fault_of_the_file(tmp_path: Path) -> None:
    """Otherwise a changed byte could promise any number of rows, all to be listed as faults."""
    file = source(tmp_path / "x.parquet", pa.table({"text": ["one"] * 77}))
    promise(tmp_path / "x.parquet", 77, 99, count=1)
    assert [(fault.row, fault.reason) for fault in faults_of(file)] == [
        (None, "cannot be read: its footer contradicts itself about the number of rows")
    ]
    promise(tmp_path / "x.parquet", 99, 77)
    promise(tmp_path / "x.parquet", 77, 99, count=2)
    promise(tmp_path / "x.parquet", 99, 77, count=1)
    assert [(fault.row, fault.reason) for fault in faults_of(file)] == [
        (None, "cannot be read: its footer promises 77 rows in row group 0, of which column text has 99 values")
    ]


def test_a_row_longer_than_a_record_may_be_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids, keep values and metadata count; columns that are only copied do not."""
    monkeypatch.setattr(row_reader, "MAX_RECORD_BYTES", 50)
    columns = {"text": ["a" * 38, "b" * 39, "c", "d"], "id": ["x" * 4] * 4, "more": ["", "", "m" * 50, "m" * 10]}
    file = source(tmp_path / "x.parquet", pa.table({**columns, "other": ["o" * 99] * 4}))
    for batch_bytes in (1, 1 << 25):
        found = list(file.batches(Columns(metadata=("more",)), batch_bytes=batch_bytes))
        faults = [fault for batch in found for fault in batch.faults]
        assert faults == [Fault(file.name, row, "is longer than 50 bytes") for row in (2,)]
        assert sum(len(batch) for batch in found) == 4
    monkeypatch.setattr(row_reader, "MAX_RECORD_BYTES", 42)
    assert [fault.row for fault in faults_of(file)] == [1]
    assert file.copy_kept(np.ones(4, dtype=np.bool_), tmp_path / "out", str(tmp_path)) == 4


def test_rows_from_a_page_on_that_takes_more_than_half_of_the_memory_are_faults(tmp_path: Path) -> None:
    """The rows before it and the other row groups are read; without a limit all are."""
    texts = [f"text {number}" for number in range(10)] + ["long " * 4000] + ["after"] * 9 + ["next group"] * 20
    pages = {"use_dictionary": False, "write_batch_size": 1, "data_page_size": 1, "row_group_size": 20}
    file = source(tmp_path / "x.parquet", pa.table({"text": texts}), **pages)
    assert texts_of(file) == texts
    file.limit_memory(30_000)
    for batch_bytes in (1, 40, 1 << 20):
        assert texts_of(file, batch_bytes=batch_bytes) == [*texts[:10], *[None] * 10, *texts[20:]]
    size = next(page.size for page in pages_of(file) if page.size > 15_000)
    reason = f"row group 0: a page of column text takes {size} bytes, which requires a memory of at least {2 * size}"
    assert faults_of(file) == [Fault(file.name, row, reason) for row in range(10, 20)]


def pages_of(file: ParquetFile) -> list[Page]:
    """Return the pages of the first column chunk."""
    with pa.OSFile(file.name) as raw:
        return list(read_pages(raw, pq.read_metadata(file.name).row_group(0).column(0)))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
def test_page_headers_tell_values_and_sizes(version: str, codec: str, tmp_path: Path) -> None:
    texts = [f"{number} " * (number % 50) for number in range(1000)]
    options = {"data_page_version": version, "compression": codec, "data_page_size": 1000, "write_batch_size": 20}
    file = source(tmp_path / "x.parquet", pa.table({"text": texts}), use_dictionary=False, **options)
    pages = pages_of(file)
    assert len(pages) > 10
    assert sum(page.values for page in pages) == 1000
    chunk = pq.read_metadata(file.name).row_group(0).column(0)
    headers = chunk.total_compressed_size - sum(page.stored for page in pages)
    assert headers == chunk.total_uncompressed_size - sum(page.size for page in pages) > 0
    longest = max(map(len, texts))
    file = source(tmp_path / "y.parquet", pa.table({"text": texts * 2}), **options)
    with pa.OSFile(file.name) as raw:
        column = ColumnPages(raw, pq.read_metadata(file.name).row_group(0).column(0), decoded=True, whole=False)
        assert column.pages[0].values == len(set(texts))
        assert column.value_bytes == longest or codec == "lz4"
        assert column.value_bytes >= longest


def test_long_minimums_in_a_page_header_are_skipped(tmp_path: Path) -> None:
    texts = [f"{number} ".ljust(5_000, "x") for number in range(10)]
    options = {"use_dictionary": False, "write_page_index": False, "write_statistics": True}
    file = source(tmp_path / "x.parquet", pa.table({"text": texts}), **options)
    assert [page.values for page in pages_of(file)] == [10]


@pytest.mark.parametrize("encoding", ["dictionary", "DELTA_BYTE_ARRAY", "PLAIN"])
def test_rows_that_expand_are_decoded_few_at_a_time(encoding: str, tmp_path: Path) -> None:
    """Short texts first, so that no sample of rows would tell; a piece may decode to four times its bytes."""
    short = [f"short text {number}" for number in range(3_000)]
    long = ["long " * 20_000] * 1_000
    options = (
        {"use_dictionary": True}
        if encoding == "dictionary"
        else {"use_dictionary": False, "column_encoding": {"text": encoding}}
    )
    file = source(tmp_path / "x.parquet", pa.table({"text": short + long}), compression="zstd", **options)
    before, peak, rows = pa.total_allocated_bytes(), 0, 0
    for batch in file.batches(Columns(), batch_bytes=1 << 20):
        peak = max(peak, pa.total_allocated_bytes() - before)
        rows += len(batch)
    assert rows == 4_000
    # A piece of 4 MiB, the batch of 1 MiB made of it, and the page.
    page = max(page.size for page in pages_of(file))
    assert peak < (1 << 23) + 2 * page


@pytest.mark.parametrize("data", [b"", b"not Parquet", b"PAR1" + bytes(100) + b"PAR1"])
def test_a_file_that_is_not_parquet_is_one_fault_and_has_no_copy(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(data)
    file = ParquetFile(File(str(path)))
    assert [(fault.row, fault.reason[:15]) for fault in faults_of(file)] == [
        (None, "is not a Parque" if data.startswith(b"not") else "cannot be read:")
    ]
    assert file.known_rows() is None
    assert file.copy_kept(np.empty(0, dtype=np.bool_), tmp_path / "out", str(tmp_path)) == 0
    assert not (tmp_path / "out").exists()


def test_a_missing_file_is_a_system_error(tmp_path: Path) -> None:
    file = ParquetFile(File(str(tmp_path / "x.parquet")))
    with pytest.raises(FileNotFoundError) as caught:
        list(file.batches(Columns()))
    assert caught.value.filename == file.name


@pytest.mark.parametrize("mask", range(5))
def test_a_copy_has_schema_metadata_codecs_and_the_kept_rows(mask: int, tmp_path: Path) -> None:
    table = many().replace_schema_metadata({"origin": "here"})
    table = table.append_column("tags", pa.array([{"a": str(n)} for n in range(1000)]))
    codecs = {"text": "zstd", "id": "gzip", "more.list.element": "none", "tags.a": "snappy"}
    file = source(tmp_path / "x.parquet", table, compression=codecs, row_group_size=300)
    keep = masks(1000)[mask]
    assert file.copy_kept(keep, tmp_path / "out", str(tmp_path)) == keep.sum()
    copy = pq.ParquetFile(tmp_path / "out" / "x.parquet")
    assert copy.schema_arrow.equals(pq.read_schema(file.name), check_metadata=True)
    assert copy.read().to_pylist() == kept(table.to_pylist(), keep)
    if keep.any():
        group = copy.metadata.row_group(0)
        found = {group.column(i).path_in_schema: group.column(i).compression for i in range(4)}
        assert [found[name] for name in codecs] == ["ZSTD", "GZIP", "UNCOMPRESSED", "SNAPPY"]


def test_the_bytes_of_a_copy_do_not_depend_on_row_groups_and_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_writer, "GROUP_ROWS", 150)
    monkeypatch.setattr(table_writer, "GROUP_BYTES", 9000)
    keep = masks(1000)[2]
    copies = set()
    for number, (rows, batch) in enumerate([(1000, 1 << 25), (7, 1 << 25), (300, 1), (300, 5000)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.setattr(parquet, "BATCH_BYTES", batch)
        file = source(folder / "x.parquet", many(), row_group_size=rows)
        file.copy_kept(keep, folder / "out", str(folder))
        copies.add((folder / "out" / "x.parquet").read_bytes())
    assert len(copies) == 1
    metadata = pq.read_metadata(folder / "out" / "x.parquet")
    assert metadata.num_row_groups > 3
    assert max(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)) <= 150


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_while_copying_is_an_error_with_errno_and_path(tmp_path: Path) -> None:
    """The path of the copy, not that of the input."""
    file = source(tmp_path / "x.parquet", many(20_000), compression="none")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x.parquet").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as caught:
        file.copy_kept(np.ones(20_000, dtype=np.bool_), tmp_path / "out", str(tmp_path))
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / "out" / "x.parquet"))
