"""Bulk ingestion: documents of every kind of source are added, deduplicated or looked up in batches."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from support.expect import error_message

import minwise as mw
from minwise.errors import ConfigError, InputError
from minwise.index import Added, ingest
from minwise.inputs import Files

TEXTS = ["one two three four five six", "seven eight nine ten eleven", "One, two, three, four, five, six!", "alone"]
ROWS: list[dict[str, Any]] = [
    {"id": f"d{row}", "text": text, "lang": "en" if row % 2 else None} for row, text in enumerate(TEXTS)
]
COUNTS = {"read": 4, "added": 4, "replaced": 0, "skipped": 0, "unchanged": 0, "quarantined": 0, "unreadable": 0}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[mw.Index]:
    with mw.Index.create(tmp_path / "news.mw", seed=1) as created:
        yield created


def lines(rows: list[dict[str, Any]]) -> io.BytesIO:
    """Return an open file of JSON lines."""
    return io.BytesIO(b"".join(json.dumps(row).encode() + b"\n" for row in rows))


def sources(folder: Path) -> dict[str, Any]:
    """Return the same documents as each kind of source."""
    (folder / "in.jsonl").write_bytes(lines(ROWS).getvalue())
    table = pa.Table.from_pylist(ROWS)
    return {
        "path": folder / "in.jsonl", "files": Files([str(folder / "*.jsonl")]), "open file": lines(ROWS),
        "rows": ROWS, "table": table, "pandas": pd.DataFrame(ROWS), "polars": pl.DataFrame(ROWS),
        "reader": table.to_reader(),
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["path", "files", "open file", "rows", "table", "pandas", "polars", "reader"])
def test_every_kind_of_source_is_added_with_metadata(index: mw.Index, tmp_path: Path, kind: str) -> None:
    counts = index.add_from(sources(tmp_path)[kind], metadata_columns="lang")
    assert counts == {**COUNTS, "faults": []}
    assert [index.get(row["id"]).metadata for row in ROWS] == [{"lang": row["lang"]} for row in ROWS]
    answers = list(index.query_from(sources(tmp_path)[kind], where={"lang": None}))
    assert [(answer["id"], [hit["id"] for hit in answer["hits"]]) for answer in answers] == [
        ("d0", ["d0", "d2"]), ("d1", []), ("d2", ["d0", "d2"]), ("d3", []),
    ]  # fmt: skip


def test_texts_without_ids_get_their_row_numbers(index: mw.Index) -> None:
    assert index.add_from(TEXTS)["added"] == 4
    assert [hit.id for hit in index.query(TEXTS[0])] == [0, 2]


def test_batches_are_limited_in_documents_and_bytes_and_each_is_durable(
    index: mw.Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches before a failure stay in the index, and the same call completes the rest."""
    monkeypatch.setattr(ingest, "BATCH_DOCUMENTS", 3)
    sizes: list[int] = []
    add = index.add

    def recording_add(ids: list[Any], *rest: Any, **options: Any) -> Added:  # noqa: ANN401
        sizes.append(len(ids))
        if sizes == [3, 3, 2]:
            raise OSError(28, "No space left on device")
        return add(ids, *rest, **options)

    monkeypatch.setattr(index, "add", recording_add)
    rows = [{"id": row, "text": f"text {row} of {row * 7} more"} for row in range(8)]
    with pytest.raises(OSError, match="No space"):
        index.add_from(rows)
    assert (sizes, len(index)) == ([3, 3, 2], 6)
    assert index.add_from(rows) == {**COUNTS, "read": 8, "added": 2, "unchanged": 6, "faults": []}
    sizes.clear()
    monkeypatch.setattr(ingest, "BATCH_BYTES", 64)  # a row has about 28 bytes: text, id and offsets
    index.add_from(rows)
    assert sizes == [2, 2, 2, 2]


def test_decisions_and_kept_rows_of_a_table(index: mw.Index) -> None:
    kept, decisions = io.BytesIO(), io.BytesIO()
    counts = index.add_stream(ROWS, kept, decisions, metadata_columns=["lang"])
    assert (counts["added"], counts["duplicates"], counts["truncated"]) == (3, 1, 0)
    decided = [json.loads(line) for line in decisions.getvalue().splitlines()]
    assert [(row["id"], row["fate"], row["duplicate_of"]) for row in decided] == [
        ("d0", "added", None), ("d1", "added", None), ("d2", "duplicate", "d0"), ("d3", "added", None),
    ]  # fmt: skip
    assert [json.loads(line) for line in kept.getvalue().splitlines()] == [
        {"id": row["id"], "text": row["text"], "metadata": {"lang": row["lang"]}} for row in ROWS if row["id"] != "d2"
    ]
    assert index.add_stream(lines(ROWS), metadata_columns=["lang"])["unchanged"] == 3


def test_kept_lines_are_unchanged_except_for_a_missing_line_feed(index: mw.Index) -> None:
    kept = io.BytesIO()
    index.add_stream(io.BytesIO(b'\xef\xbb\xbf{"id" :1, "text":"a b c"}\n\n{"id":2,  "text":"d e f"}'), kept)
    assert kept.getvalue() == b'{"id" :1, "text":"a b c"}\n{"id":2,  "text":"d e f"}\n'


def test_each_line_of_a_stream_needs_its_own_id_except_in_a_query(index: mw.Index) -> None:
    rows: list[dict[str, Any]] = [{"text": "a b c"}, {"id": "x", "text": "d e f"}, {"id": None, "text": "g h i"}]
    counts = index.add_from(lines(rows), on_error="skip")
    assert [(fault["row"], fault["reason"]) for fault in counts["faults"]] == [(0, "needs an id"), (2, "needs an id")]
    assert [row["id"] for row in index.query_from(lines(rows))] == ["-:0", "x", "-:2"]


def test_all_faults_are_reported_and_the_first_are_listed(index: mw.Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minwise.inputs.source.LISTED_FAULTS", 2)
    reported: list[str] = []
    source = [None, "a b c", None, "d e f", None]
    counts = index.add_from(source, on_error="quarantine", on_fault=reported.append)
    assert reported == ["row 0: text is null", "row 2: text is null", "row 4: text is null"]
    assert (counts["read"], counts["added"], counts["quarantined"]) == (5, 2, 3)
    assert counts["faults"] == [{"source": "", "row": row, "reason": "text is null"} for row in (0, 2)]
    message = error_message(InputError, lambda: index.add_from(source))
    assert message == "row 0: text is null; set on_error='quarantine' to skip such rows"


def test_invalid_utf8_is_a_fault_unless_shingles_are_bytes(tmp_path: Path) -> None:
    column = pa.array([b"good words", b"bad \xff"], pa.binary())
    with mw.Index.create(tmp_path / "words.mw") as index:
        counts = index.add_from(pa.table({"text": column}), on_error="skip")
    assert counts["faults"] == [{"source": "", "row": 1, "reason": "is not valid UTF-8 at byte 4"}]
    with mw.Index.create(tmp_path / "bytes.mw", shingle="byte:3") as index:
        kept = io.BytesIO()
        assert index.add_stream(pa.table({"text": column}), kept)["added"] == 2
        assert len(index.query_many([b"bad \xff"])[0]) == 1
    assert json.loads(kept.getvalue().splitlines()[1])["text"] == "bad \ufffd"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_error": "ignore"}, "on_error must be one of"),
        ({"memory": "1kB"}, "memory must be at least"),
        ({"format": "csv"}, "format must be jsonl for a stream"),
    ],
)
def test_invalid_options_are_refused_before_reading(index: mw.Index, options: dict[str, str], message: str) -> None:
    for call in (index.add_from, index.query_from, index.add_stream):
        assert error_message(ConfigError, lambda call=call: call(lines(ROWS), **options)).startswith(message)  # type: ignore[misc]
    assert len(index) == 0


def test_unknown_options_are_refused(index: mw.Index) -> None:
    for call in (index.add_from, index.query_from, index.add_stream):
        with pytest.raises(TypeError, match="unexpected keyword argument 'txet_column'"):
            call(lines(ROWS), txet_column="text")  # type: ignore[call-arg]
    assert len(index) == 0


def test_query_from_has_no_metadata_columns(index: mw.Index) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'metadata_columns'"):
        index.query_from(ROWS, metadata_columns="lang")  # type: ignore[call-arg]


def test_sources_without_texts_are_refused(index: mw.Index) -> None:
    sets = mw.Shingler().shingle(TEXTS)
    for source, message in ((sets, "got sets"), (io.StringIO("{}"), "binary mode"), (5, "got int")):
        assert message in error_message(InputError, lambda given=source: index.add_from(given))  # type: ignore[misc]


def test_index_open_for_reading_can_be_queried_but_not_added_to(index: mw.Index) -> None:
    with mw.Index.open(index.path) as reader:
        assert next(reader.query_from(TEXTS)) == {"id": 0, "hits": [], "truncated": False}
        assert "reading" in error_message(ConfigError, lambda: reader.add_from(TEXTS))


def test_rows_with_metadata_that_nests_too_deep_are_quarantined(index: mw.Index) -> None:
    """They failed the whole run."""
    deep = json.loads("[" * 300 + "]" * 300)
    rows = [{"id": name, "text": f"some words of {name}", "about": about} for name, about in (("a", 1), ("b", deep))]
    counts = index.add_from(lines(rows), metadata_columns="about", on_error="quarantine")
    assert (counts["read"], counts["added"], counts["quarantined"]) == (2, 1, 1)
    assert "at most 200 levels" in counts["faults"][0]["reason"]
    assert "at most 200 levels" in error_message(
        InputError, lambda: index.add_from(lines(rows), metadata_columns="about")
    )
