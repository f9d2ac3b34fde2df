"""Edits of kept rows: in every format, an ordinary reader finds the rows that Python strings without the cuts give."""

import csv
import gzip
import io
import json
import tracemalloc
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather, ipc
from support.expect import error_message
from support.row_edits import MARKS, Cut, FixedEdits, cut_parts, mark
from support.strategies import effort

from minwise import _kernel
from minwise.errors import ConfigError, InputError
from minwise.inputs import row_edits, table_edits, table_writer
from minwise.inputs.arrow_ipc import ArrowFile
from minwise.inputs.baskets import BasketFile
from minwise.inputs.delimited import DelimitedFile
from minwise.inputs.files import File
from minwise.inputs.items import ItemSets
from minwise.inputs.json_array import JsonArrayFile
from minwise.inputs.jsonl import JsonLinesFile
from minwise.inputs.memory_sources import TableSource, as_table
from minwise.inputs.parquet import ParquetFile
from minwise.inputs.row_edits import check_added, check_cuts_possible
from minwise.inputs.source import Columns, Source
from minwise.inputs.text_files import LinesFile, TextFiles

# Characters of one to four bytes, a combining mark, and whatever some format escapes or quotes.
LETTERS = [*"ab c,;\t\"'\\/\n\ré中🙂\u0301\u2028{}[]:\x7f", "\r\n", "👩\u200d👧"]
TEXT = st.lists(st.sampled_from(LETTERS), max_size=12).map("".join)
NAMES = ("text", "body")

Row = dict[str, Any]
# Rows, the cuts of each that has any, and which rows are kept.
Case = tuple[list[Row], dict[int, list[Cut]], list[bool]]


@st.composite
def edited_rows(draw: st.DrawFn) -> Case:
    """Return rows with two texts, cuts of some, and which rows are kept."""
    rows = [
        {"id": f"n{number}", "text": draw(TEXT), "body": draw(TEXT), "other": draw(TEXT)}
        for number in range(draw(st.integers(1, 6)))
    ]
    cuts = {}
    for number, row in enumerate(rows):
        most = len(row["text"]) + 1 + len(row["body"])
        points = sorted(draw(st.sets(st.integers(0, most), max_size=6)))
        cuts[number] = [(start, end) for start, end in zip(points[::2], points[1::2], strict=False)]
    return rows, {number: found for number, found in cuts.items() if found}, [draw(st.booleans()) for _ in rows]


def expected_rows(rows: list[Row], edits: FixedEdits, keep: Sequence[bool]) -> list[Row]:
    """Return the kept rows with their edits."""
    found = []
    for number, row in enumerate(rows):
        left = cut_parts([row[name] for name in edits.text], edits.cuts.get(number, ()))
        added = {name: mark(number)[name] for name in edits.names}
        found.append({**row, **dict(zip(edits.text, left, strict=True)), **added})
    return [row for row, kept in zip(found, keep, strict=True) if kept]


def copied(source: Source, folder: Path, keep: Sequence[bool], edits: FixedEdits | None) -> bytes:
    """Return the copy of a source in a folder."""
    flags = np.array(keep, dtype=np.bool_)
    assert source.copy_kept(flags, folder / "out", str(folder), edits) == flags.sum()
    (path,) = [path for path in (folder / "out").rglob("*") if path.is_file()]
    return path.read_bytes()


def read_csv(data: bytes, delimiter: str) -> list[Row]:
    return list(csv.DictReader(io.StringIO(data.decode(), newline=""), delimiter=delimiter))


def as_fields(row: Row) -> Row:
    """Return the values as CSV has them."""
    texts = {True: "true", False: "false", None: ""}
    return {name: value if isinstance(value, str) else texts[value] for name, value in row.items()}


@given(
    case=edited_rows(),
    escaped=st.booleans(),
    end=st.sampled_from(["\n", "\r\n"]),
    added=st.booleans(),
    flipped=st.booleans(),
)
def test_objects_of_json_lines_lose_only_the_cuts(
    tmp_path_factory: pytest.TempPathFactory, case: Case, escaped: bool, end: str, added: bool, flipped: bool
) -> None:
    rows, cuts, keep = case
    folder = tmp_path_factory.mktemp("jsonl")
    edits = FixedEdits(cuts, NAMES[::-1] if flipped else NAMES, MARKS if added else pa.schema([]))
    lines = [json.dumps(row, ensure_ascii=escaped) for row in rows]
    (folder / "x.jsonl").write_bytes("".join(line + end for line in lines).encode())
    data = copied(JsonLinesFile(File(str(folder / "x.jsonl"))), folder, keep, edits)
    expected = expected_rows(rows, edits, keep)
    assert [json.loads(line) for line in data.splitlines()] == expected
    objects = JsonLinesFile(File(str(folder / "x.jsonl"))).kept_objects(np.array(keep, dtype=np.bool_), edits)
    assert [json.loads(orjson.dumps(found)) for found in objects] == expected
    if not added:
        unedited = {lines[number] for number in range(len(rows)) if number not in cuts and keep[number]}
        assert unedited <= set(data.decode().split(end))


@given(case=edited_rows(), indent=st.sampled_from([None, 2]), added=st.booleans())
def test_elements_of_json_arrays_lose_only_the_cuts(
    tmp_path_factory: pytest.TempPathFactory, case: Case, indent: int | None, added: bool
) -> None:
    rows, cuts, keep = case
    folder = tmp_path_factory.mktemp("json")
    edits = FixedEdits(cuts, NAMES, MARKS if added else pa.schema([]))
    (folder / "x.json").write_text(json.dumps(rows, indent=indent))
    source = JsonArrayFile(File(str(folder / "x.json")))
    expected = expected_rows(rows, edits, keep)
    assert json.loads(copied(source, folder, keep, edits)) == expected
    assert list(source.kept_objects(np.array(keep, dtype=np.bool_), edits)) == expected


@given(
    case=edited_rows(),
    delimiter=st.sampled_from([",", ";", "\t"]),
    layout=st.sampled_from([("\r\n", csv.QUOTE_MINIMAL), ("\r\n", csv.QUOTE_ALL), ("\n", csv.QUOTE_ALL)]),
    added=st.booleans(),
)
def test_records_of_csv_lose_only_the_cuts(
    tmp_path_factory: pytest.TempPathFactory, case: Case, delimiter: str, layout: tuple[str, Any], added: bool
) -> None:
    rows, cuts, keep = case
    folder = tmp_path_factory.mktemp("csv")
    edits = FixedEdits(cuts, NAMES, MARKS if added else pa.schema([]))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(
        text, ["id", *NAMES, "other"], delimiter=delimiter, lineterminator=layout[0], quoting=layout[1]
    )
    writer.writeheader()
    writer.writerows(rows)
    (folder / "x.csv").write_bytes(text.getvalue().encode())
    source = DelimitedFile(File(str(folder / "x.csv")), ",", delimiter=delimiter, encoding="utf-8")
    expected = [as_fields(row) for row in expected_rows(rows, edits, keep)]
    assert read_csv(copied(source, folder, keep, edits), delimiter) == expected
    assert list(source.kept_objects(np.array(keep, dtype=np.bool_), edits)) == expected


def typed(rows: list[Row], kind: pa.DataType) -> pa.Table:
    """Return the rows as a table whose texts have a type."""
    columns = {name: pa.array([row[name] for row in rows], pa.string()) for name in rows[0]}
    for name in NAMES:
        if pa.types.is_dictionary(kind):
            columns[name] = columns[name].dictionary_encode().cast(kind)
        elif kind in (pa.binary(), pa.large_binary()):
            columns[name] = pa.array([row[name].encode() for row in rows], kind)
        else:
            columns[name] = columns[name].cast(kind)
    return pa.table(columns)


def plain(table: pa.Table) -> list[Row]:
    """Return the rows of a table, bytes as text."""
    rows = table.to_pylist()
    return [
        {name: value.decode() if isinstance(value, bytes) else value for name, value in row.items()} for row in rows
    ]


def write_arrow(table: pa.Table, path: Path) -> None:
    new = ipc.new_stream if path.suffix == ".arrows" else ipc.new_file
    with new(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


TYPES = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int8(), pa.large_string()),
]
TABLE_FORMATS: dict[
    str, tuple[Callable[[pa.Table, Path], None], Callable[[File], Source], Callable[[Path], pa.Table]]
] = {
    "x.parquet": (lambda table, path: pq.write_table(table, path, row_group_size=3), ParquetFile, pq.read_table),
    "x.arrow": (write_arrow, ArrowFile, lambda path: ipc.open_file(str(path)).read_all()),
    "x.arrows": (write_arrow, ArrowFile, lambda path: ipc.open_stream(str(path)).read_all()),
}


@pytest.mark.parametrize("name", [*TABLE_FORMATS, "memory"])
@effort(0.4)
@given(case=edited_rows(), kind=st.sampled_from(TYPES), added=st.booleans())
def test_rows_of_tables_lose_only_the_cuts(
    tmp_path_factory: pytest.TempPathFactory, name: str, case: Case, kind: pa.DataType, added: bool
) -> None:
    rows, cuts, keep = case
    table = typed(rows, kind)
    edits = FixedEdits(cuts, NAMES, MARKS if added else pa.schema([]))
    flags = np.array(keep, dtype=np.bool_)
    expected = expected_rows(rows, edits, keep)
    schema = pa.schema([*table.schema, *edits.added])
    if name == "memory":
        kept = TableSource(table).kept_table(flags, edits)
        assert kept.schema == schema
    else:
        write, open_file, read = TABLE_FORMATS[name]
        folder = tmp_path_factory.mktemp("tables")
        write(table, folder / name)
        source = open_file(File(str(folder / name)))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(table_writer, "GROUP_ROWS", 2)  # so that a dictionary grows within a file
            copied(source, folder, keep, edits)
        kept = read(folder / "out" / name)
        unchanged = folder / "unchanged"
        source.copy_kept(flags, unchanged, str(folder))
        assert pa.schema([*read(unchanged / name).schema, *edits.added]) == kept.schema
        assert [plain(pa.Table.from_pylist([row]))[0] for row in source.kept_objects(flags, edits)] == expected
    assert plain(kept) == expected


@given(
    texts=st.lists(st.lists(st.lists(TEXT, max_size=3), max_size=3), min_size=1, max_size=4),
    points=st.sets(st.integers(0, 40), max_size=10),
    as_table=st.booleans(),
)
def test_strings_of_nested_lists_are_parts_of_a_text(
    tmp_path_factory: pytest.TempPathFactory, texts: list[list[list[str]]], points: set[int], as_table: bool
) -> None:
    rows: list[Row] = [{"doc": {"pages": [{"lines": page} for page in pages], "n": 1}} for pages in texts]
    parts = [[line for page in pages for line in (page or [""])] or [""] for pages in texts]
    ordered = sorted(points)
    cuts = {}
    for number, lines in enumerate(parts):
        most = len("\n".join(lines))
        cuts[number] = [
            (start, min(end, most)) for start, end in zip(ordered[::2], ordered[1::2], strict=False) if start < most
        ]
    edits = FixedEdits(cuts, ("doc.pages.lines",))
    expected = []
    for number, pages in enumerate(texts):
        left = iter(cut_parts(parts[number], cuts[number]))
        kept = [[next(left) for _ in page or [""]][: len(page)] for page in pages]
        expected.append({"doc": {"pages": [{"lines": page} for page in kept], "n": 1}})
    keep = [True] * len(rows)
    if as_table:
        kind = pa.struct([("pages", pa.list_(pa.struct([("lines", pa.list_(pa.string()))]))), ("n", pa.int64())])
        table = pa.table({"doc": pa.array([row["doc"] for row in rows], kind)})
        assert TableSource(table).kept_table(np.array(keep), edits).to_pylist() == expected
    else:
        folder = tmp_path_factory.mktemp("nested")
        (folder / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        data = copied(JsonLinesFile(File(str(folder / "x.jsonl"))), folder, keep, edits)
        assert [json.loads(line) for line in data.splitlines()] == expected


@effort(0.5)
@given(case=edited_rows(), encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]), packed=st.booleans())
def test_text_files_and_lines_lose_only_the_cuts(
    tmp_path_factory: pytest.TempPathFactory, case: Case, encoding: str, packed: bool
) -> None:
    rows, cuts, keep = case
    folder = tmp_path_factory.mktemp("texts")
    texts = ["-" + row["text"] for row in rows]
    cuts = {row: [(a, b) for a, b in found if b <= len(texts[row])] for row, found in cuts.items()}
    edits, flags = FixedEdits(cuts), np.array(keep, dtype=np.bool_)
    left = [cut_parts([text], cuts.get(number, ()))[0] for number, text in enumerate(texts)]
    kept = [text for text, is_kept in zip(left, keep, strict=True) if is_kept]
    files = [folder / f"{number}.txt{'.gz' if packed else ''}" for number in range(len(texts))]
    for path, text in zip(files, texts, strict=True):
        path.write_bytes(gzip.compress(text.encode(encoding)) if packed else text.encode(encoding))
    source = TextFiles([File(str(path)) for path in files], [path.name for path in files])
    assert source.copy_kept(flags, folder / "out", str(folder), edits) == flags.sum()
    copies = [(folder / "out" / path.name).read_bytes() for path, is_kept in zip(files, keep, strict=True) if is_kept]
    assert [gzip.decompress(data) if packed else data for data in copies] == [text.encode(encoding) for text in kept]
    assert [row["text"] for row in source.kept_objects(flags, edits)] == kept

    lines = [text.replace("\n", "_").replace("\r", "_") for text in texts]
    (folder / "lines").mkdir()
    (folder / "lines" / "x.txt").write_bytes("".join(line + "\r\n" for line in lines).encode(encoding))
    file = LinesFile(File(str(folder / "lines" / "x.txt")))
    left = [cut_parts([line], cuts.get(number, ()))[0] for number, line in enumerate(lines)]
    kept = [line for line, is_kept in zip(left, keep, strict=True) if is_kept]
    # A byte order mark belongs to the first row, not to the file.
    found = copied(file, folder / "lines", keep, edits).decode(encoding).removeprefix("\ufeff")
    assert found == "".join(line + "\r\n" for line in kept)
    assert [row["text"] for row in file.kept_objects(flags, edits)] == kept


@given(text=st.text(max_size=300), points=st.sets(st.integers(0, 320), max_size=20), escaped=st.booleans())
def test_the_kernel_finds_the_bytes_of_code_points(text: str, points: set[int], escaped: bool) -> None:
    """Against the length of the encoded start of the text; ``json.dumps`` escapes every character beyond ASCII."""

    def encoded(part: str) -> bytes:
        return json.dumps(part).encode()[1:-1] if escaped else part.encode()

    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "ignore")
    data = np.frombuffer(b"x" + encoded(text) + b"yz", dtype=np.uint8)
    start, end = np.array([1]), np.array([len(data) - 2])
    ordered = np.array(sorted(points), dtype=np.int64)
    found = _kernel.text_offsets(data, start, end, np.zeros(len(ordered), dtype=np.int64), ordered, escaped)
    assert found.tolist() == [1 + len(encoded(text[:point])) for point in sorted(points)]
    assert _kernel.text_lengths(data, start, end, escaped).tolist() == [len(text)]


def test_all_bytes_of_json_outside_the_cuts_stay(tmp_path: Path) -> None:
    """Escapes, spaces, key order, repeated keys of which the last counts, and faulty rows between edited ones."""
    lines = [
        '{ "text" : "a\\u00e9\\ud83d\\ude42b\\/" , "n":1.50 }\r\n',
        '{"text": 1}\n',
        "\n",
        '{"text":"first","t\\u0065xt":"caf\\u00E9 🙂!","z":[1, 2]}\n',
        '{"text":"unedited \\u00e9"}\n',
        "not json\n",
        '{"text":"whole"}',
    ]
    (tmp_path / "x.jsonl").write_text("".join(lines))
    edits = FixedEdits({0: [(1, 3)], 2: [(0, 3), (5, 6)], 5: [(0, 5)]})
    data = copied(
        JsonLinesFile(File(str(tmp_path / "x.jsonl"))), tmp_path, [True, False, True, True, False, True], edits
    )
    assert data.decode() == (
        '{ "text" : "ab\\/" , "n":1.50 }\r\n'
        '{"text":"first","t\\u0065xt":"\\u00E9 !","z":[1, 2]}\n'
        '{"text":"unedited \\u00e9"}\n'
        '{"text":""}\n'
    )


def test_added_members_follow_those_of_an_object(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('[\n  {\n    "text": "a"\n  },\n  "b\\n", {"text": "c", "x": {}}\n]')
    data = copied(
        JsonArrayFile(File(str(tmp_path / "x.json"))), tmp_path, [True] * 3, FixedEdits({1: [(1, 2)]}, added=MARKS)
    )
    assert data.decode() == (
        '[\n{\n    "text": "a","flag":true,"note":null\n  },\n'
        '{"text":"b","flag":false,"note":"row \\"1\\", marked"},\n'
        '{"text": "c", "x": {},"flag":true,"note":"é\\n"}\n]\n'
    )


def test_all_bytes_of_csv_outside_the_cuts_stay(tmp_path: Path) -> None:
    """Fields with needless quotation marks, blank lines, records of too few fields, and none at the end of the file."""
    (tmp_path / "x.csv").write_bytes(
        '\ufeffid;text;"other"\r\n"1";"a ""b"" é";  x\r\n\r\n2;three\r\n3;ab"c;"y"\n4;"all";z'.encode()
    )
    edits = FixedEdits({0: [(2, 4)], 2: [(0, 2)], 3: [(0, 3)]}, added=MARKS)
    data = copied(DelimitedFile(File(str(tmp_path / "x.csv")), ","), tmp_path, [True, False, True, True], edits)
    assert data.decode() == (
        '\ufeffid;text;"other";flag;note\r\n"1";"a """" é"'.replace('""""', "XX").replace("a XX é", 'a "" é')
        + ';  x;true;\r\n3;"""c";"y";true;"é\n"\n4;"";z;false;plain'
    )


def test_a_sole_field_that_is_cut_to_nothing_is_still_a_record(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("text\nall\nb\n")
    data = copied(DelimitedFile(File(str(tmp_path / "x.csv")), ","), tmp_path, [True, True], FixedEdits({0: [(0, 3)]}))
    assert data == b'text\n""\nb\n'


def open_every(folder: Path) -> dict[str, tuple[Source, list[bool]]]:
    """Return a source of every format that can be edited, with flags of kept rows."""
    table = pa.table({"text": ["one", "two", "three"], "id": [1, 2, 3]})
    pq.write_table(table, folder / "x.parquet", compression="zstd")
    feather.write_feather(table, str(folder / "x.feather"))
    (folder / "x.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n{"text": "three"}')
    (folder / "x.json").write_text('[{"text": "one"}, "two", {"text": "three"}]')
    (folder / "x.csv").write_text("id,text\r\n1,one\r\n2,two\r\n3,three")
    (folder / "x.txt").write_text("one\ntwo\nthree")
    files = {path.name: File(str(path)) for path in folder.iterdir()}
    keep = [True, False, True]
    return {
        "parquet": (ParquetFile(files["x.parquet"]), keep),
        "feather": (ArrowFile(files["x.feather"]), keep),
        "jsonl": (JsonLinesFile(files["x.jsonl"]), keep),
        "json": (JsonArrayFile(files["x.json"]), keep),
        "csv": (DelimitedFile(files["x.csv"], ","), keep),
        "lines": (LinesFile(files["x.txt"]), keep),
        "text": (TextFiles([files["x.txt"]], ["x"]), [True]),
        "memory": (TableSource(table), keep),
    }


FORMATS = ["parquet", "feather", "jsonl", "json", "csv", "lines", "text", "memory"]


@pytest.mark.parametrize("name", FORMATS)
def test_edits_without_cuts_and_columns_change_no_byte(tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    source, keep = open_every(tmp_path / "in")[name]
    copies = []
    for number, edits in enumerate([None, FixedEdits()]):
        folder = tmp_path / str(number)
        folder.mkdir()
        source.copy_kept(np.array(keep), folder, str(tmp_path / "in"), edits)
        copies.append([path.read_bytes() for path in folder.iterdir()])
    assert copies[0] == copies[1]


@pytest.mark.parametrize("name", FORMATS)
def test_a_source_without_text_column_and_kept_rows_is_copied_without_rows(tmp_path: Path, name: str) -> None:
    """Its rows have faults."""
    source, keep = open_every(tmp_path)[name]
    edits = FixedEdits(text=("missing",), added=pa.schema([]) if name in ("lines", "text") else MARKS)
    (tmp_path / "out").mkdir()
    assert source.copy_kept(np.zeros(len(keep), dtype=np.bool_), tmp_path / "out", str(tmp_path), edits) == 0
    assert edits.asked == []
    copies = {path.suffix: path for path in (tmp_path / "out").iterdir()}
    assert len(copies) == (name != "text")
    if name == "csv":
        assert copies[".csv"].read_bytes() == b"id,text,flag,note\r\n"
    if name in ("parquet", "memory"):
        assert pq.read_schema(copies[".parquet"]).names == ["text", "id", "flag", "note"]


@pytest.mark.parametrize("name", FORMATS)
def test_a_cut_beyond_its_text_ends_the_copy(tmp_path: Path, name: str) -> None:
    source, keep = open_every(tmp_path)[name]
    edits = FixedEdits({0: [(0, 99)]})
    message = error_message(
        InputError, lambda: source.copy_kept(np.array(keep), tmp_path / "out", str(tmp_path), edits)
    )
    assert message == "a text is shorter than the cuts in it: did the input change?"


def test_edits_are_asked_for_once_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_edits, "GROUP_ROWS", 3)
    monkeypatch.setattr(table_edits, "BATCH_BYTES", 20)
    texts = [f"text {number}" for number in range(10)]
    keep = [number % 3 != 1 for number in range(10)]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    for source in (JsonLinesFile(File(str(tmp_path / "x.jsonl"))), TableSource(as_table(texts))):
        edits = FixedEdits({number: [(0, 4)] for number in range(10)})
        source.copy_kept(np.array(keep), tmp_path / "out", str(tmp_path), edits)
        assert list(chain.from_iterable(edits.asked)) == np.flatnonzero(keep).tolist()
        assert len(edits.asked) >= 3
    kept = [json.loads(line)["text"] for line in (tmp_path / "out" / "x.jsonl").read_text().splitlines()]
    assert kept == pq.read_table(tmp_path / "out" / "documents.parquet")["text"].to_pylist()
    assert kept == [f" {number}" for number in range(10) if number % 3 != 1]


def test_a_copy_keeps_codecs_metadata_and_other_columns(tmp_path: Path) -> None:
    columns = {"text": ["one", "two"], "n": [[1], None], "long": ["x", "y"]}
    schema = pa.schema(
        [("text", pa.string()), ("n", pa.list_(pa.int8())), ("long", pa.large_string())], {"made": "by us"}
    )
    pq.write_table(
        pa.table(columns, schema),
        tmp_path / "x.parquet",
        compression={"text": "gzip", "n.list.element": "zstd", "long": "none"},
    )
    nested = pa.schema([("marks", pa.list_(pa.struct([("id", pa.string())])))])

    class Nested(FixedEdits):
        def of_rows(self, rows: Any) -> Any:  # noqa: ANN401 - as its base
            edited = FixedEdits(self.cuts).of_rows(rows)
            return edited._replace(values=[pa.array([[{"id": "q"}]] * len(rows), nested.field(0).type)])

    copied(ParquetFile(File(str(tmp_path / "x.parquet"))), tmp_path, [True, True], Nested({0: [(0, 3)]}, added=nested))
    copy = pq.ParquetFile(tmp_path / "out" / "x.parquet")
    assert copy.schema_arrow == pa.schema([*schema, *nested])
    assert copy.schema_arrow.metadata[b"made"] == b"by us"
    assert copy.read().to_pylist()[0] == {"text": "", "n": [1], "long": "x", "marks": [{"id": "q"}]}
    group = copy.metadata.row_group(0)
    assert [group.column(number).compression for number in range(4)] == ["GZIP", "ZSTD", "UNCOMPRESSED", "GZIP"]


def test_a_dictionary_that_cannot_hold_the_edited_texts_is_an_error(tmp_path: Path) -> None:
    texts = (
        pa.array([f"{number:03} text" for number in range(127)])
        .dictionary_encode()
        .cast(pa.dictionary(pa.int8(), pa.string()))
    )
    write_arrow(pa.table({"text": texts}), tmp_path / "x.arrow")
    edits = FixedEdits({number: [(3, 8)] for number in range(127)})
    message = error_message(
        InputError, lambda: copied(ArrowFile(File(str(tmp_path / "x.arrow"))), tmp_path, [True] * 127, edits)
    )
    assert message.startswith("a text column of dictionary<values=string, indices=int8, ordered=0> cannot hold the 1")
    assert message.endswith("cast it to string")


def test_columns_that_exist_are_refused(tmp_path: Path) -> None:
    sources = open_every(tmp_path)
    for name in ("parquet", "feather", "csv", "memory"):
        message = error_message(ConfigError, lambda: check_added(sources[name][0], pa.schema([("id", pa.string())])))  # noqa: B023
        assert message.endswith("has a column 'id' already; rename it, since the output has one of that name"), name
        check_added(sources[name][0], MARKS)
    for name in ("jsonl", "json"):
        assert error_message(ConfigError, lambda: check_added(sources[name][0], pa.schema([("text", pa.string())])))  # noqa: B023
        check_added(sources[name][0], MARKS)
    for name in ("lines", "text"):
        message = error_message(ConfigError, lambda: check_added(sources[name][0], MARKS))  # noqa: B023
        rule = "cannot get a column 'flag': its rows are texts or sets without columns"
        assert message.endswith(f"{rule}; leave it out, or give them as a table")
        check_added(sources[name][0], pa.schema([]))


def test_an_object_that_has_an_added_column_later_ends_the_copy(tmp_path: Path) -> None:
    """Even if the key is escaped; the name within a text or an inner object is no column."""
    (tmp_path / "x.jsonl").write_text('{"text": "note", "a": {"note": 1}}\n{"text": "x", "n\\u006fte": 1}\n')
    source = JsonLinesFile(File(str(tmp_path / "x.jsonl")))
    copied(source, tmp_path, [True, False], FixedEdits(added=MARKS))
    message = error_message(InputError, lambda: copied(source, tmp_path, [True, True], FixedEdits(added=MARKS)))
    assert message.endswith(
        "x.jsonl: row 1: has a column 'note' already; rename it, since the output has one of that name"
    )


def test_baskets_are_not_edited(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("a b\n")
    message = error_message(
        ConfigError,
        lambda: copied(BasketFile(File(str(tmp_path / "x.txt")), named=False), tmp_path, [True], FixedEdits()),
    )
    assert message.endswith("x.txt: its lines are sets, which have neither texts nor columns to edit")


def test_cuts_need_texts() -> None:
    check_cuts_possible(Columns(text=("a", "b")), "action='cut'")
    for columns, reason in (
        (Columns(html=True), "action='cut' needs texts, got html=True, which reads only the visible text of pages"),
        (
            Columns(elements=ItemSets(column="text")),
            "action='cut' needs texts, got sets or records, which have none to cut",
        ),
        (Columns(text=("a", "a")), "action='cut' needs different text columns, got a, a"),
    ):
        assert error_message(ConfigError, lambda: check_cuts_possible(columns, "action='cut'")) == reason  # noqa: B023


def test_the_dictionary_of_an_arrow_file_grows_with_each_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file cannot replace a dictionary; a text that is left twice has one entry."""
    monkeypatch.setattr(table_writer, "GROUP_ROWS", 2)
    texts = ["one", "two", "one", "three", "four", "ne"]
    write_arrow(pa.table({"text": pa.array(texts).dictionary_encode()}), tmp_path / "x.arrow")
    edits = FixedEdits({0: [(0, 1)], 2: [(0, 2)], 3: [(0, 1)], 4: [(1, 2)]})
    copied(ArrowFile(File(str(tmp_path / "x.arrow"))), tmp_path, [True] * 6, edits)
    column = ipc.open_file(str(tmp_path / "out" / "x.arrow")).read_all()["text"]
    assert column.to_pylist() == ["ne", "two", "e", "hree", "fur", "ne"]
    assert column.combine_chunks().dictionary.to_pylist() == ["one", "two", "three", "four", "ne", "e", "hree", "fur"]


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.txt"])
def test_a_large_record_takes_a_few_times_its_size(tmp_path: Path, name: str) -> None:
    """Even with characters that Python holds in four bytes each, and many cuts."""
    text = 'a🙂é "' * 200_000
    packed = text.replace('"', '""')
    content = {"x.jsonl": json.dumps({"text": text}) + "\n", "x.csv": f'id,text\n1,"{packed}"\n', "x.txt": text}
    (tmp_path / name).write_text(content[name], encoding="utf-8")
    file = File(str(tmp_path / name))
    sources: list[Source] = [JsonLinesFile(file), DelimitedFile(file, ","), LinesFile(file)]
    source = sources[["x.jsonl", "x.csv", "x.txt"].index(name)]
    edits = FixedEdits({0: [(start, start + 50) for start in range(0, len(text), 100)]})
    tracemalloc.start()
    try:
        source.copy_kept(np.array([True]), tmp_path / "out", str(tmp_path), edits)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6 * file.size_bytes()
