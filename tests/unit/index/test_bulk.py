"""Bulk: whatever holds documents is added to an index, decided on or looked up, a portion at a time."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from support.expect import complaint

import minwise as mw
from minwise.index import readers as reading

TEXTS = ["one two three four five six", "seven eight nine ten eleven", "One, two, three, four, five, six!", "alone"]
ROWS: list[dict[str, Any]] = [
    {"id": f"d{row}", "text": text, "lang": "en" if row % 2 else None} for row, text in enumerate(TEXTS)
]
COUNTS = {"read": 4, "added": 4, "replaced": 0, "skipped": 0, "unchanged": 0, "quarantined": 0, "unreadable": 0}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[mw.Index]:
    """An empty index."""
    with mw.Index.create(tmp_path / "news.mw", seed=1) as made:
        yield made


def lines(rows: list[dict[str, Any]]) -> io.BytesIO:
    """An open file of JSON lines."""
    return io.BytesIO(b"".join(json.dumps(row).encode() + b"\n" for row in rows))


def sources(folder: Path) -> dict[str, Any]:
    """The same documents in many ways."""
    (folder / "in.jsonl").write_bytes(lines(ROWS).getvalue())
    table = pa.Table.from_pylist(ROWS)
    return {
        "path": folder / "in.jsonl", "files": mw.Files([str(folder / "*.jsonl")]), "open file": lines(ROWS),
        "rows": ROWS, "table": table, "pandas": pd.DataFrame(ROWS), "polars": pl.DataFrame(ROWS),
        "reader": table.to_reader(),
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["path", "files", "open file", "rows", "table", "pandas", "polars", "reader"])
def test_every_kind_of_source(index: mw.Index, tmp_path: Path, kind: str) -> None:
    """Is added with its metadata."""
    counts = index.add_from(sources(tmp_path)[kind], metadata_columns="lang")
    assert counts == {**COUNTS, "faults": []}
    assert [index.get(row["id"]).metadata for row in ROWS] == [{"lang": row["lang"]} for row in ROWS]
    answers = list(index.query_from(sources(tmp_path)[kind], where={"lang": None}))
    assert [(one["id"], [hit["id"] for hit in one["hits"]]) for one in answers] == [
        ("d0", ["d0", "d2"]), ("d1", []), ("d2", ["d0", "d2"]), ("d3", []),
    ]  # fmt: skip


def test_texts_alone_are_numbered(index: mw.Index) -> None:
    """As they are in a table without ids."""
    assert index.add_from(TEXTS)["added"] == 4
    assert [hit.id for hit in index.query(TEXTS[0])] == [0, 2]


def test_portions_are_small_and_each_is_durable(index: mw.Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """By documents and by bytes; what comes before a failure stays, and the same call goes on."""
    monkeypatch.setattr(reading, "MOST_DOCUMENTS", 3)
    taken: list[int] = []
    add = index.add

    def watched(ids: list[Any], *rest: Any, **options: Any) -> mw.Added:  # noqa: ANN401
        taken.append(len(ids))
        if taken == [3, 3, 2]:
            raise OSError(28, "No space left on device")
        return add(ids, *rest, **options)

    monkeypatch.setattr(index, "add", watched)
    rows = [{"id": row, "text": f"text {row} of {row * 7} more"} for row in range(8)]
    with pytest.raises(OSError, match="No space"):
        index.add_from(rows)
    assert (taken, len(index)) == ([3, 3, 2], 6)
    assert index.add_from(rows) == {**COUNTS, "read": 8, "added": 2, "unchanged": 6, "faults": []}
    taken.clear()
    monkeypatch.setattr(reading, "MOST_BYTES", 34)
    index.add_from(rows)
    assert taken == [2, 2, 2, 2]


def test_decisions_and_kept_rows(index: mw.Index) -> None:
    """Of a table: decisions in order, kept rows as JSON lines; where neither is wanted only the counts."""
    kept, decisions = io.BytesIO(), io.BytesIO()
    counts = index.add_stream(ROWS, kept, decisions, metadata_columns=["lang"])
    assert (counts["added"], counts["duplicates"], counts["truncated"]) == (3, 1, 0)
    decided = [json.loads(line) for line in decisions.getvalue().splitlines()]
    assert [(one["id"], one["fate"], one["duplicate_of"]) for one in decided] == [
        ("d0", "added", None), ("d1", "added", None), ("d2", "duplicate", "d0"), ("d3", "added", None),
    ]  # fmt: skip
    assert [json.loads(line) for line in kept.getvalue().splitlines()] == [
        {"id": row["id"], "text": row["text"], "metadata": {"lang": row["lang"]}} for row in ROWS if row["id"] != "d2"
    ]
    assert index.add_stream(lines(ROWS), metadata_columns=["lang"])["unchanged"] == 3


def test_a_last_line_without_a_line_feed(index: mw.Index) -> None:
    """Gets one; everything else of a line stays as it is."""
    kept = io.BytesIO()
    index.add_stream(io.BytesIO(b'\xef\xbb\xbf{"id" :1, "text":"a b c"}\n\n{"id":2,  "text":"d e f"}'), kept)
    assert kept.getvalue() == b'{"id" :1, "text":"a b c"}\n{"id":2,  "text":"d e f"}\n'


def test_a_line_without_an_id_says_nothing_of_the_next(index: mw.Index) -> None:
    """In a stream each has its own; in a query it is called after its row."""
    rows: list[dict[str, Any]] = [{"text": "a b c"}, {"id": "x", "text": "d e f"}, {"id": None, "text": "g h i"}]
    counts = index.add_from(lines(rows), on_error="skip")
    assert [(fault["row"], fault["reason"]) for fault in counts["faults"]] == [(0, "needs an id"), (2, "needs an id")]
    assert [one["id"] for one in index.query_from(lines(rows))] == ["-:0", "x", "-:2"]


def test_faults_are_told_and_listed(index: mw.Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """All are told as they come and counted; the first are listed."""
    monkeypatch.setattr(reading, "LISTED_FAULTS", 2)
    told: list[str] = []
    source = [None, "a b c", None, "d e f", None]
    counts = index.add_from(source, on_error="quarantine", on_fault=told.append)
    assert told == ["row 0: text is null", "row 2: text is null", "row 4: text is null"]
    assert (counts["read"], counts["added"], counts["quarantined"]) == (5, 2, 3)
    assert counts["faults"] == [{"source": "", "row": row, "reason": "text is null"} for row in (0, 2)]
    message = complaint(mw.InputError, lambda: index.add_from(source))
    assert message == "row 0: text is null; on-error quarantine goes on without it"


def test_texts_that_are_not_utf8(tmp_path: Path) -> None:
    """Are faults with their place, unless shingles are bytes."""
    column = pa.array([b"good words", b"bad \xff"], pa.binary())
    with mw.Index.create(tmp_path / "words.mw") as index:
        counts = index.add_from(pa.table({"text": column}), on_error="skip")
    assert counts["faults"] == [{"source": "", "row": 1, "reason": "is not valid UTF-8 at byte 4"}]
    with mw.Index.create(tmp_path / "bytes.mw", shingle="byte:3") as index:
        kept = io.BytesIO()
        assert index.add_stream(pa.table({"text": column}), kept)["added"] == 2
        assert len(index.query([b"bad \xff"])[0]) == 1
    assert json.loads(kept.getvalue().splitlines()[1])["text"] == "bad \ufffd"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"txet_column": "text"}, "there is no setting 'txet_column'; settings are: text_column"),
        ({"on_error": "ignore"}, "on_error must be one of"),
        ({"memory": "1kB"}, "memory must be at least"),
        ({"format": "csv"}, "format must be jsonl for a stream"),
    ],
)
def test_settings_that_break_their_rule(index: mw.Index, options: dict[str, str], message: str) -> None:
    """Are refused by every call, before anything is read."""
    for call in (index.add_from, index.query_from, index.add_stream):
        assert complaint(mw.ConfigError, lambda call=call: call(lines(ROWS), **options)).startswith(message)  # type: ignore[misc]
    assert len(index) == 0


def test_a_query_has_no_metadata_to_read(index: mw.Index) -> None:
    """So the setting is refused there."""
    assert "no setting 'metadata_columns'" in complaint(
        mw.ConfigError, lambda: index.query_from(ROWS, metadata_columns="lang")
    )


def test_what_holds_no_texts(index: mw.Index) -> None:
    """Sets, an open file of text, a number."""
    sets = mw.Shingler().shingle(TEXTS)
    for source, message in ((sets, "got sets"), (io.StringIO("{}"), "binary mode"), (5, "got int")):
        assert message in complaint(mw.InputError, lambda given=source: index.add_from(given))  # type: ignore[misc]


def test_an_index_that_is_open_for_reading(index: mw.Index) -> None:
    """Can be asked, but not added to."""
    with mw.Index.open(index.path) as reader:
        assert next(reader.query_from(TEXTS)) == {"id": 0, "hits": [], "truncated": False}
        assert "reading" in complaint(mw.ConfigError, lambda: reader.add_from(TEXTS))
