"""Columns by path: nested fields and lists of strings in every format, and proposals for wrong names."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from support.expect import error_message
from support.source_rows import faults_of, ids_of, texts_of

import minwise as mw
from minwise.errors import InputError
from minwise.inputs.column_paths import find_path, find_value, missing_column, schema_leaves
from minwise.inputs.document_values import ValueColumn
from minwise.inputs.memory_sources import TableSource, as_table
from minwise.inputs.source import Columns, Source

BODY = "the ferry leaves the harbour at noon and returns before dusk"
OTHER = "a museum of clocks opens its doors to visitors on the first of May"
ROWS: list[dict[str, Any]] = [
    {"meta": {"key": "k0", "rank": 1, "lang": "en"}, "doc": {"body": BODY, "parts": ["the ferry", "leaves"]}},
    {"meta": {"key": "k1", "rank": 2, "lang": "de"}, "doc": {"body": BODY + "!", "parts": []}},
    {"meta": {"key": "k2", "rank": 3, "lang": "fr"}, "doc": {"body": OTHER, "parts": ["a museum"]}},
]
FORMATS = ["in.jsonl", "in.json", "in.parquet", "in.arrow"]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows, indent=1))
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=2)
    else:
        feather.write_feather(pa.Table.from_pylist(rows), path)
    return path


def open_source(folder: Path, name: str, rows: list[dict[str, Any]]) -> Source:
    from minwise.inputs.open_sources import open_files

    if name == "memory":
        return TableSource(as_table(rows))
    return open_files([str(write(folder / name, rows))]).sources[0]


@pytest.mark.parametrize("name", [*FORMATS, "memory"])
def test_text_id_keep_value_and_metadata_are_found_by_path(name: str, tmp_path: Path) -> None:
    columns = Columns(text=("doc.body",), id="meta.key", values=(ValueColumn("meta.rank"),), metadata=("meta.lang",))
    source = open_source(tmp_path, name, ROWS)
    assert texts_of(source, columns) == [row["doc"]["body"] for row in ROWS]
    assert ids_of(source, columns) == ["k0", "k1", "k2"]
    batches = list(source.batches(columns))
    assert [value for batch in batches for value in batch.document_values["value:meta.rank"].to_pylist()] == [1, 2, 3]
    assert [row for batch in batches for row in batch.metadata or ()] == [
        {"meta.lang": lang} for lang in ("en", "de", "fr")
    ]


@pytest.mark.parametrize("name", [*FORMATS, "memory"])
def test_a_list_of_strings_is_one_text_joined_by_line_breaks(name: str, tmp_path: Path) -> None:
    source = open_source(tmp_path, name, ROWS)
    assert texts_of(source, Columns(text=("doc.parts",))) == ["the ferry\nleaves", "", "a museum"]


@pytest.mark.parametrize("name", [*FORMATS, "memory"])
def test_a_path_leads_through_a_list_of_objects(name: str, tmp_path: Path) -> None:
    """As in records of conversations."""
    rows: list[dict[str, Any]] = [
        {"turns": [{"role": "user", "content": "one"}, {"role": "system", "content": "two"}]},
        {"turns": []},
    ]
    source = open_source(tmp_path, name, rows)
    if name in ("in.jsonl", "in.json"):  # without a schema, an empty list has no fields
        assert texts_of(source, Columns(text=("turns.content",)))[0] == "one\ntwo"
    else:
        assert texts_of(source, Columns(text=("turns.content",))) == ["one\ntwo", ""]


@pytest.mark.parametrize("name", [*FORMATS, "memory"])
def test_a_column_with_the_name_itself_comes_before_the_path(name: str, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"doc": {"body": "nested"}, "doc.body": "by name"}]
    assert texts_of(open_source(tmp_path, name, rows), Columns(text=("doc.body",))) == ["by name"]


@pytest.mark.parametrize("name", [*FORMATS, "memory"])
def test_a_null_on_the_path_is_a_fault_of_its_row(name: str, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"doc": {"body": "a"}}, {"doc": None}, {"doc": {"body": None}}]
    faults = faults_of(open_source(tmp_path, name, rows), Columns(text=("doc.body",)))
    assert [(fault.row, fault.reason) for fault in faults] == [(1, "doc.body is null"), (2, "doc.body is null")]


def test_a_null_within_a_list_is_a_fault_of_its_row() -> None:
    table = TableSource(pa.table({"text": pa.array([["a", None], ["b"], None])}))
    faults = [(fault.row, fault.reason) for fault in faults_of(table)]
    assert faults == [(0, "text holds a null"), (2, "text is null")]


def test_objects_in_memory_may_have_fields_of_several_types() -> None:
    """Arrow has no such type; the other fields must stay usable."""
    rows = [{"doc": {"body": BODY, "size": 1}}, {"doc": {"body": OTHER, "size": "2"}}]
    assert mw.dedup(rows, text_column="doc.body").report["counts"]["kept"] == 2


@pytest.mark.parametrize("name", FORMATS)
def test_dedup_pairs_and_index_take_paths(name: str, tmp_path: Path) -> None:
    file = write(tmp_path / name, ROWS)
    settings: dict[str, Any] = {"text_column": "doc.body", "id_column": "meta.key"}
    removed = mw.dedup(file, keep="max:meta.rank", **settings).removed
    assert removed["id"].to_pylist() == ["k0"]
    assert mw.pairs(file, **settings).to_pylist() == [{"left": "k0", "right": "k1", "similarity": 1.0}]
    with mw.Index.create(tmp_path / "x.mw") as index:
        index.add_from(str(file), metadata_columns="meta.lang", **settings)
        assert index.query(BODY)[0].metadata == {"meta.lang": "en"}


LIKELY = [
    ({"id": 1, "content": "x y"}, "content"),
    ({"id": "1", "title": "abc", "raw_content": "x"}, "raw_content"),
    ({"id": 1, "doc": {"title": "abc", "markdown": "x"}}, "doc.markdown"),
    ({"id": 1, "Text": "x"}, "Text"),
    ({"id": 1, "review_text": "x", "title": "a longer title"}, "review_text"),
    ({"id": 1, "texts": ["x"]}, "texts"),
    ({"id": 1, "paragraph": "x"}, "paragraph"),
    ({"key": "k1", "summary_of_it": "a long sentence of many words"}, "summary_of_it"),
]


@pytest.mark.parametrize(("row", "meant"), LIKELY, ids=[meant for _, meant in LIKELY])
@pytest.mark.parametrize("name", [*FORMATS, "memory", "in.csv"])
def test_the_likely_text_column_is_proposed_and_never_chosen(
    name: str, row: dict[str, Any], meant: str, tmp_path: Path
) -> None:
    if name == "in.csv":
        flat = {key: value for key, value in row.items() if not isinstance(value, (dict, list))}
        if meant not in flat:
            return
        pd.DataFrame([flat]).to_csv(tmp_path / name, index=False)
        source: Any = str(tmp_path / name)
    else:
        source = [row] if name == "memory" else str(write(tmp_path / name, [row]))
    message = error_message(InputError, lambda: mw.dedup(source))
    assert "has no column 'text'; its columns are: " in message
    assert f"; did you mean text_column='{meant}'?" in message


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.Table.from_pylist], ids=["pandas", "polars", "arrow"])
def test_tables_in_memory_list_columns_with_types_and_propose_one(make: Any) -> None:  # noqa: ANN401
    message = error_message(InputError, lambda: mw.dedup(make([{"n": 1, "body": "x"}])))
    assert message.endswith("its columns are: n (int64), body (string); did you mean text_column='body'?")


def test_other_misspelt_columns_are_proposed_too() -> None:
    rows = [{"doc_id": "a", "text": BODY, "score": 1}]
    for settings, meant in (
        ({"id_column": "docid"}, "id_column='doc_id'"),
        ({"keep": "max:scores"}, "'score'"),
        ({"text_column": "txt"}, "text_column='text'"),
    ):
        message = error_message(InputError, lambda settings=settings: mw.dedup(rows, **settings))  # type: ignore[misc]
        assert message.endswith(f"; did you mean {meant}?")
    message = error_message(InputError, lambda: mw.pairs(rows, group_by="doc", item="score"))
    assert message.endswith("; did you mean group_by='doc_id'?")


def test_a_struct_as_text_proposes_its_text_field() -> None:
    message = error_message(InputError, lambda: mw.dedup([{"text": {"n": 1, "body": "x"}}]))
    assert message.endswith("; did you mean text_column='text.body'?")


def test_many_columns_are_listed_in_part() -> None:
    leaves = schema_leaves(pa.schema([(f"c{number}", pa.int64()) for number in range(50)]))
    assert missing_column("text", leaves).endswith("c19 (int64), and 30 more")


def test_names_with_dots_are_found_at_every_level() -> None:
    schema = pa.schema([("a.b", pa.struct([("c.d", pa.string())])), ("a", pa.struct([("x", pa.string())]))])
    assert find_path(schema, "a.b.c.d") == ("a.b", "c.d")
    assert find_path(schema, "a.x") == ("a", "x")
    assert find_path(schema, "a.y") is None
    assert find_value({"a.b": {"c.d": 1}, "a": {"x": 2}}, "a.b.c.d") == 1
