"""Indexes of sets and records: what is added, found, changed and refused, in memory and from files."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.expect import error_message
from support.index_edits import edit_json

import minwise as mw
from minwise.errors import ConfigError, FormatError, InputError, MismatchError
from minwise.inputs.records import FIELDS_RULE

PEOPLE: list[dict[str, Any]] = [
    {"id": "p1", "name": "Ann Miller", "phone": "555-1234", "city": "Bonn"},
    {"id": "p2", "name": "Anne Miller", "phone": "(555) 1234", "city": "Ulm"},
    {"id": "p3", "name": "Bob Stone", "phone": None, "city": "Bonn"},
]
BASKETS: list[list[int | str]] = [["bread", "milk", 3], ["milk", "bread", 3, "jam"], ["tea"], []]
NO_TEXTS = "store_text must be left out for an index of sets or records, got True"
FIELDS = {"fields": "name:char:2 phone:digits", "weights": "phone=2", "threshold": 0.5, "seed": 4}


def people(folder: Path, **settings: Any) -> mw.Index:  # noqa: ANN401 - settings
    """Return an index of people with three of them."""
    index = mw.Index.create(folder / "people.mw", **{**FIELDS, **settings})
    index.add([row["id"] for row in PEOPLE], PEOPLE, [{"city": row["city"]} for row in PEOPLE])
    return index


def baskets(folder: Path, **settings: Any) -> mw.Index:  # noqa: ANN401 - settings
    """Return an index of four baskets, of which the last is empty."""
    index = mw.Index.create(folder / "baskets.mw", shingle="set", threshold=0.5, seed=4, **settings)
    index.add(range(4), BASKETS)
    return index


def test_similarities_of_records_are_those_of_a_run(tmp_path: Path) -> None:
    pairs = mw.pairs(PEOPLE, fields="name:char:2 phone:digits", weights="phone=2", threshold=0.5).to_pylist()
    (pair,) = pairs
    with people(tmp_path) as index:
        assert [(hit.id, hit.similarity) for hit in index.query(PEOPLE[0])] == [
            ("p1", 1.0), ("p2", pair["similarity"]),
        ]  # fmt: skip
        assert index.query({"name": "Bob Stone", "phone": None}, where={"city": "Bonn"})[0].id == "p3"


def test_similarities_of_sets_are_jaccard(tmp_path: Path) -> None:
    with baskets(tmp_path) as index:
        assert [(hit.id, hit.similarity) for hit in index.query(["milk", "bread", 3])] == [(0, 1.0), (1, 0.75)]
        assert index.query(frozenset(["bread", "milk", 3])) == index.query(("milk", "bread", 3, 3))
        assert index.query(["milk", "bread", "3"]).hits == index.query(["milk", "bread", "x"]).hits
        assert index.query([]).hits == ()
        assert [len(answer) for answer in index.query_many(pa.array([["tea"], ["jam", "tea"]]))] == [1, 1]


def test_bags_count_repeated_items(tmp_path: Path) -> None:
    with baskets(tmp_path, bag=True) as index:
        assert [hit.similarity for hit in index.query(["milk", "bread", 3, 3])] == [0.75, 0.6]


def test_an_index_grows_and_shrinks(tmp_path: Path) -> None:
    with people(tmp_path) as index:
        assert index.add(["p1"], PEOPLE[:1], [{"city": "Bonn"}]).unchanged == 1
        message = error_message(InputError, lambda: index.add(["p1"], PEOPLE[1:2]))
        assert "p1" in message
        (decision,) = index.add_unique(["new"], [{"name": "Ann Millar", "phone": "5551234"}])
        assert (decision.fate, decision.duplicate_of) == ("duplicate", "p1")
        assert index.add(["p3"], [{"name": "Rob Stone", "phone": 9}], on_duplicate_id="replace").replaced == 1
        index.flush()
        assert index.remove(["p1"]) == 1
        index.compact()
        assert index.verify() == []
    with mw.Index.open(tmp_path / "people.mw") as index:
        assert [hit.id for hit in index.query(PEOPLE[0])] == ["p2"]
        index.backup(tmp_path / "copy.mw")
        assert "set" in repr(index._repr_html_())
    with mw.Index.open(tmp_path / "copy.mw", "w") as copy:
        assert copy.query(PEOPLE[1])[0].id == "p2"
        assert copy.export(tmp_path / "out.parquet") == 2
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column("id").to_pylist() == ["p2", "p3"]
    assert table.column("signature").null_count == 0


def test_sketches_of_sets(tmp_path: Path) -> None:
    with baskets(tmp_path, sketch_only=True) as index:
        (first, *_) = index.query(["bread", "milk", 3])
        assert (first.id, first.exact) == (0, False)
        assert index.export(tmp_path / "out.parquet") == 4


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet", "rows", "stream"])
def test_records_of_sources(tmp_path: Path, kind: str) -> None:
    """Each kind gives the records of the others."""
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in PEOPLE)
    (tmp_path / "in.jsonl").write_bytes(lines)
    rows = [",".join(str(value or "") for value in row.values()) for row in PEOPLE]
    (tmp_path / "in.csv").write_text("\n".join([",".join(PEOPLE[0]), *rows]) + "\n")
    pq.write_table(pa.Table.from_pylist(PEOPLE), tmp_path / "in.parquet")
    source: Any = {"rows": PEOPLE, "stream": io.BytesIO(lines)}.get(kind, tmp_path / f"in.{kind}")
    with mw.Index.create(tmp_path / "x.mw", **FIELDS) as index, people(tmp_path) as expected:  # type: ignore[arg-type]
        assert index.add_from(source, metadata_columns="city")["added"] == 3
        for row in PEOPLE:
            assert index.get(row["id"]).elements.tolist() == expected.get(row["id"]).elements.tolist()  # type: ignore[union-attr]
            assert index.get(row["id"]).metadata == {"city": row["city"]}
        answers = list(index.query_from(PEOPLE))
    assert [[hit["id"] for hit in answer["hits"]] for answer in answers] == [["p1", "p2"], ["p2", "p1"], ["p3"]]


def test_sets_of_sources(tmp_path: Path) -> None:
    """Lists of a column, strings with a separator, and lines of items."""
    (tmp_path / "in.csv").write_text("id,items\na,bread;milk\nb,tea\n")
    (tmp_path / "in.jsonl").write_text('{"id": "c", "items": ["milk", "bread"]}\n{"id": "d", "items": 5}\n')
    with mw.Index.create(tmp_path / "x.mw", shingle="set") as index:
        index.add_from(tmp_path / "in.csv", text_column="items", separator=";")
        counts = index.add_from(tmp_path / "in.jsonl", text_column="items", on_error="quarantine")
        assert (counts["added"], counts["quarantined"]) == (1, 1)
        assert counts["faults"][0]["reason"] == "items must be a list of items with shingle set, got int"
        assert [hit.id for hit in index.query(["bread", "milk"])] == ["a", "c"]
        counts = index.add_from([["bread", "milk"], ["tea"]])
        assert counts["added"] == 2
        assert [hit.id for hit in index.query(["tea"])] == ["b", 1]


def test_sets_in_memory_are_hashed_with_the_seed_of_the_index(tmp_path: Path) -> None:
    """Also as rows with metadata and as columns; a list of mixed items is refused, since a column cannot hold it."""
    with mw.Index.create(tmp_path / "x.mw", shingle="set", seed=2**64 - 1) as index:
        index.add(["call"], [["tea", "jam"]])
        index.add_from([{"id": "row", "text": ["tea", "jam"], "day": 3}], metadata_columns="day")
        index.add_from(pa.table({"id": ["column"], "text": [["jam", "tea"]]}))
        assert [(hit.id, hit.metadata) for hit in index.query(["tea", "jam"])] == [
            ("call", None), ("row", {"day": 3}), ("column", None),
        ]  # fmt: skip
        message = error_message(InputError, lambda: index.add_from([["tea", 5]]))
        assert message == "items must all be whole numbers or all be strings in sets in memory"
        index.add(["number"], [np.array([3, 5])])
        assert [hit.id for hit in index.query([5, 3])] == ["number"]
        hashed = mw.ShingleSets.from_sets([[3, 5]])
        message = error_message(InputError, lambda: index.add(["x"], hashed))
        assert message == "documents must be a list of them, got ShingleSets"


def test_a_stream_is_deduplicated_line_by_line(tmp_path: Path) -> None:
    lines = [
        json.dumps({**row, "id": f"n{n}"}).encode() + b"\n"
        for n, row in enumerate([PEOPLE[0], {"name": "Zoe", "phone": 1}])
    ]
    kept, decisions = io.BytesIO(), io.BytesIO()
    with people(tmp_path) as index:
        counts = index.add_stream(io.BytesIO(b"".join(lines)), kept, decisions)
        assert (counts["added"], counts["duplicates"]) == (1, 1)
        assert kept.getvalue() == lines[1]
        message = error_message(ConfigError, lambda: index.add_stream(PEOPLE, io.BytesIO()))
    assert message == "source must be a stream of JSON lines to keep rows that are sets or records, got files"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fields": "name:char:3", "store_text": True}, NO_TEXTS),
        ({"shingle": "set", "store_text": True}, NO_TEXTS),
        ({"weights": "name=2"}, "weights must be left out without fields or sets, got 'name=2'"),
        ({"fields": "name:char:3", "weights": "phone=2"}, "weights must be of fields, got 'phone'; fields are: name"),
        ({"fields": "name"}, f"{FIELDS_RULE}, got 'name'"),
        ({"fields": "name:char:3", "weights": "name=.5"}, "weights must be whole numbers for an index, got 'name=.5'"),
        ({"fields": "name:char:3", "shingle": "word:3"}, "shingle must be left out with fields, got 'word:3'"),
        ({"shingle": "set", "strip_accents": True}, "strip_accents must be left out with shingle set, got True"),
        ({"fields": "name:char:3", "lowercase": False}, "lowercase must be left out with fields, got False"),
    ],
)  # fmt: skip
def test_settings_that_contradict_are_refused(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    assert error_message(ConfigError, lambda: mw.Index.create(tmp_path / "x.mw", **settings)) == message
    assert not (tmp_path / "x.mw").exists()


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("Ann", "document 0 must be a record, a mapping with the fields name, phone, got str"),
        (["Ann"], "document 0 must be a record, a mapping with the fields name, phone, got list"),
        ({"name": "Ann"}, "document 0 has no field 'phone'; None stands for an unknown value"),
        ({"name": ["Ann"], "phone": 1}, "document 0: name must be a string or a number, got list"),
    ],
)
def test_documents_of_another_kind_are_refused_by_an_index_of_records(
    document: Any, message: str, tmp_path: Path  # noqa: ANN401 - wrong values
) -> None:  # fmt: skip
    with people(tmp_path) as index:
        assert error_message(InputError, lambda: index.query(document)) == message
        assert error_message(InputError, lambda: index.add(["x"], [document])) == message
        assert len(index) == 3


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("milk", "document 0 must be a collection of items, got str"),
        ({"milk": 1}, "document 0 must be a collection of items, got dict"),
        ([None], "document 0: text holds a null item"),
        ([1.5], "document 0: items of text must be whole numbers or strings, got float"),
    ],
)
def test_documents_of_another_kind_are_refused_by_an_index_of_sets(
    document: Any, message: str, tmp_path: Path  # noqa: ANN401 - wrong values
) -> None:  # fmt: skip
    with baskets(tmp_path) as index:
        assert error_message(InputError, lambda: index.query(document)) == message


def test_an_index_of_texts_takes_texts_only(tmp_path: Path) -> None:
    with mw.Index.create(tmp_path / "x.mw") as index:
        assert index.elements is None
        assert "got dict" in error_message(InputError, lambda: index.query(PEOPLE[0]))
        message = error_message(ConfigError, lambda: index.add_from(PEOPLE, separator=";"))
        assert message == "separator must be left out unless the index is of sets, got ';'"


def test_what_needs_texts_is_refused(tmp_path: Path) -> None:
    with people(tmp_path) as index, baskets(tmp_path, sketch_only=True) as sketches:
        message = error_message(ConfigError, lambda: index.add_from(PEOPLE, text_column="name"))
        assert message.startswith("text_column must be left out for an index of records with the fields name, phone")
        message = error_message(ConfigError, lambda: index.shingler)
        assert message.startswith("shingler is of an index of texts, got one of records: ")
        signatures = mw.FastSketch(slots=sketches.plan.slots).sketch_texts(["a b"], mw.Shingler())
        message = error_message(ConfigError, lambda: sketches.add_signatures(["x"], signatures))
        assert message == "signatures can be added to an index of texts only, got one of sets"
        assert "stores texts" in error_message(ConfigError, lambda: index.search_text("Ann"))
        assert "stores texts" in error_message(ConfigError, lambda: list(index.query_from(PEOPLE, passages=True)))


def test_settings_are_those_of_creation(tmp_path: Path) -> None:
    with people(tmp_path) as index:
        settings = index.stats()["settings"]
    assert (settings["fields"], settings["weights"]) == (
        {"name": "char:2", "phone": "digits:3"},
        {"name": 1, "phone": 2},
    )
    with mw.Index.open(tmp_path / "people.mw") as index:
        assert index.stats()["settings"] == settings
    with mw.Index.create(tmp_path / "y.mw", fields={"a:b c": "whole"}) as index:
        index.add([1], [{"a:b c": "x"}])
    with mw.Index.open(tmp_path / "y.mw") as index:
        assert [hit.id for hit in index.query({"a:b c": "x"})] == [1]


@pytest.mark.parametrize(
    "change",
    [
        {"fields": {"name": "char:3", "phone": "digits:3"}},
        {"weights": {"name": 1, "phone": 1}},
        {"bag": True},
        {"seed": 5},
    ],
)  # fmt: skip
def test_changed_settings_in_the_manifest_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    """With the fingerprints of both."""
    people(tmp_path).close()
    edit_json(tmp_path / "people.mw", 0, lambda settings: settings.update(change))
    message = error_message(MismatchError, lambda: mw.Index.open(tmp_path / "people.mw"))
    assert "the settings must give the same sketches as at creation: fingerprint " in message


@pytest.mark.parametrize(
    "change",
    [{"shingle": "word:5"}, {"weights": {"city": 1}}, {"fields": {}}, {"bag": 1}, {"lowercase": True}, {"version": 2}],
)
def test_invalid_settings_in_the_manifest_are_damage(change: dict[str, Any], tmp_path: Path) -> None:
    people(tmp_path).close()
    edit_json(tmp_path / "people.mw", 0, lambda settings: settings.update(change))
    assert str(tmp_path / "people.mw" / "index.db") in error_message(
        FormatError, lambda: mw.Index.open(tmp_path / "people.mw")
    )
