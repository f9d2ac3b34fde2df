"""Expiry of documents: times, refusals, counts, transactions, and segments that are dropped as a whole."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from support.expect import error_message

import minwise as mw
from minwise.errors import ConfigError, FormatError
from minwise.index import expiry, writer
from minwise.index.expiry import read_time

NEW_YEAR = 1767225600  # 2026-01-01 in UTC
FLUSH_AT = 8


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[mw.Index]:
    """Yield an empty index with a segment for every eight documents, and no merges."""
    monkeypatch.setattr(writer, "FLUSH_DOCUMENTS", FLUSH_AT)
    monkeypatch.setattr(writer, "FANOUT", 100)
    with mw.Index.create(tmp_path / "index.mw", shingle="word:1", threshold=0.5, seed=1, store_text=True) as made:
        yield made


def add(index: mw.Index, times: list[Any], prefix: str = "d") -> None:
    """Add a document for each value of the field ``created``, with words that no other has."""
    names = [f"{prefix}{number}" for number in range(len(times))]
    index.add(names, [f"{name}a {name}b {name}c" for name in names], [{"created": value} for value in times])


def names(index: mw.Index) -> list[str]:
    """Return the ids in the order of addition."""
    return [str(document.id) for document in reversed(index.newest(10_000).documents)]


def files(index: mw.Index) -> list[tuple[str, int]]:
    """Return name and number of postings of each segment."""
    return [(segment["file"], segment["postings"]) for segment in index.stats()["segments"]]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2026-01-01", NEW_YEAR),
        ("20260101", NEW_YEAR),
        (" 2026-01-01\n", NEW_YEAR),
        ("2026-01-01T00:00:00Z", NEW_YEAR),
        ("2026-01-01t00:00z", NEW_YEAR),
        ("2026-01-01 00", NEW_YEAR),
        ("20260101T000000Z", NEW_YEAR),
        ("2026-01-01T02:00:00+02:00", NEW_YEAR),
        ("2025-12-31T19:30:00-0430", NEW_YEAR),
        ("2026-01-01 00:00:00 +00", NEW_YEAR),
        ("2025-12-31T23:59:60Z", NEW_YEAR),
        ("2026-01-01T00:00:00.250", NEW_YEAR + 0.25),
        ("2026-01-01T00:00:00,123456789Z", NEW_YEAR + 0.123456789),
        ("0001-01-01", -62135596800),
        ("1767225600", NEW_YEAR),
        ("-1767225600.5", -NEW_YEAR - 0.5),
        (NEW_YEAR, NEW_YEAR),
        (1.5, 1.5),
        (-(10**30), -(10**30)),
        (0, 0),
    ],
)
def test_times_are_read(value: object, seconds: float) -> None:
    assert read_time(value) == seconds


@pytest.mark.parametrize(
    "value",
    [
        "", "yesterday", "2026", "2026-01", "202601", "2026-13-01", "2026-02-30", "2026-01-01T24:00", "0000-01-01",
        "2026-0101", "2026-01-01T", "2026-01-01T00:60", "2026-01-01T00:00:61", "2026-01-01T00:00+24:00", "01/02/2026",
        "2026-01-01T00:0000", "2026-W01-1", "١٧٦٧٢٢٥٦٠٠", "1e12", "nan", "inf", True, False, [], {}, ["2026-01-01"],
    ],
)  # fmt: skip
def test_other_values_are_no_times(value: object) -> None:
    assert read_time(value) is None


def test_documents_before_a_time_are_removed_and_others_counted(index: mw.Index) -> None:
    add(index, ["2025-12-31", "2026-01-01", NEW_YEAR - 1, str(NEW_YEAR - 1), None, "soon", True, "2026-06-01"])
    index.add(["bare", "other"], ["one", "two"], [None, {"published": "2020-01-01"}])
    found = index.expire(before="2026-01-01", time_field="created")
    assert found == (10, 3, 3, 2, "2025-12-31T00:00:00Z", "2026-01-01T00:00:00Z")
    assert names(index) == ["d1", "d4", "d5", "d6", "d7", "bare", "other"]
    assert index.query("d0a d0b d0c").hits == ()
    assert index.verify() == []
    assert index.expire(before="2026-01-01", time_field="created")[:4] == (7, 0, 3, 2)
    assert index.add(["d0"], ["again"], [{"created": "2025-01-01"}]).added == 1


@pytest.mark.parametrize(
    "before",
    [
        "2026-01-01", "2026-01-01T01:00+01:00", date(2026, 1, 1), datetime(2026, 1, 1),
        datetime(2025, 12, 31, 23, tzinfo=timezone(timedelta(hours=-1))),
    ],
)  # fmt: skip
def test_a_time_is_given_as_text_date_or_datetime(index: mw.Index, before: str | date) -> None:
    add(index, [NEW_YEAR - 1, NEW_YEAR])
    assert index.expire(before=before, time_field="created")[:2] == (2, 1)
    assert names(index) == ["d1"]


@pytest.mark.parametrize(
    ("older_than", "seconds"),
    [("1h", 3600), ("30d", 30 * 86_400), ("2w", 14 * 86_400), (timedelta(minutes=5), 300), ("9999w", 9999 * 604_800)],
)
def test_an_age_counts_from_now(
    index: mw.Index, monkeypatch: pytest.MonkeyPatch, older_than: str | timedelta, seconds: int
) -> None:
    monkeypatch.setattr("time.time", lambda: NEW_YEAR + 0.9)
    add(index, [NEW_YEAR - seconds - 1, NEW_YEAR - seconds])
    assert index.expire(older_than, time_field="created")[:2] == (2, 1)
    assert names(index) == ["d1"]


@pytest.mark.parametrize(
    "older_than",
    ["", "30", "3600", 3600, 30.0, "0d", "-1d", "1.5d", "30 d", "30m", "30s", "1y", "10000d", "1d12h", "d", "٣d", True,
     timedelta(0), timedelta(days=-1), timedelta(weeks=10_000)],
)  # fmt: skip
def test_other_ages_are_refused(index: mw.Index, older_than: Any) -> None:  # noqa: ANN401 - wrong on purpose
    message = error_message(ConfigError, lambda: index.expire(older_than, time_field="created"))
    assert message.startswith("older_than must be ")
    assert "\n" not in message


@pytest.mark.parametrize("before", ["", "30d", "1767225600", 1767225600, "2026-02-30", True])
def test_other_times_are_refused(index: mw.Index, before: Any) -> None:  # noqa: ANN401 - wrong on purpose
    message = error_message(ConfigError, lambda: index.expire(before=before, time_field="created"))
    assert message.startswith("before must be an ISO 8601 date or time, such as 2026-01-01, got ")


def test_a_call_needs_one_time_and_a_field(index: mw.Index) -> None:
    neither = error_message(ConfigError, lambda: index.expire(time_field="created"))
    both = error_message(ConfigError, lambda: index.expire("1d", before="2026-01-01", time_field="created"))
    assert neither.endswith("got neither")
    assert both.endswith("got both")
    unnamed = error_message(ConfigError, lambda: index.expire("1d"))
    assert unnamed.endswith("an index does not store when a document was added")
    assert error_message(ConfigError, lambda: index.expire("1d", time_field="")).endswith("got ''")


def test_steps_are_checked_before_the_first_one(index: mw.Index) -> None:
    with pytest.raises(ConfigError):
        index.expire_steps("1d")


def test_a_dry_run_counts_only_and_needs_no_writer(index: mw.Index) -> None:
    add(index, ["2025-01-01", "2027-01-01"])
    commits = index.stats()["commits"]
    with mw.Index.open(index.path) as reader:
        found = reader.expire(before="2026-01-01", time_field="created", dry_run=True)
        with pytest.raises(ConfigError, match="open for reading"):
            reader.expire(before="2026-01-01", time_field="created")
    assert found == index.expire(before="2026-01-01", time_field="created", dry_run=True)
    assert found[:2] == (2, 1)
    assert (names(index), index.stats()["commits"]) == (["d0", "d1"], commits)


def test_an_empty_index_expires_nothing(index: mw.Index) -> None:
    assert index.expire("1d", time_field="created")[:5] == (0, 0, 0, 0, None)


def test_progress_reaches_the_number_of_documents(index: mw.Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "STEP_DOCUMENTS", 2)
    add(index, ["2025-01-01"] * 5)
    seen: list[tuple[str, int, int | None, str]] = []
    index.expire(before="2026-01-01", time_field="created", progress=lambda *event: seen.append(event))
    assert seen == [("expire", done, 5, "documents") for done in (0, 2, 4, 5)]


def test_only_segments_without_remaining_documents_are_replaced(index: mw.Index) -> None:
    """Those that stay are not written again."""
    for day in range(1, 6):
        add(index, [f"2026-01-{day:02}"] * FLUSH_AT, f"day{day} ")
    old = files(index)
    assert len(old) == 5
    index.expire(before="2026-01-03T12:00", time_field="created")
    dropped, *kept = files(index)
    assert (dropped[1], kept) == (0, old[3:])
    assert {path.name for path in index.path.glob("*.post")} == {name for name, _ in (dropped, *kept)}
    assert len(names(index)) == 2 * FLUSH_AT
    assert index.verify() == []
    index.expire(before="2026-01-04T12:00", time_field="created")
    assert files(index)[1:] == old[4:], "adjacent empty segments are one"
    commits = index.stats()["commits"]
    index.expire(before="2026-01-04T12:00", time_field="created")
    assert index.stats()["commits"] == commits, "nothing changes"


def test_a_segment_with_one_remaining_document_stays(index: mw.Index) -> None:
    add(index, [*["2025-01-01"] * (FLUSH_AT - 1), "2027-01-01"])
    old = files(index)
    index.expire(before="2026-01-01", time_field="created")
    assert files(index) == old
    index.remove(["d7"])
    index.expire(before="2026-01-01", time_field="created")
    assert files(index) == [("segment-00000002.post", 0)]


@pytest.mark.parametrize("left", [0, 7, 32_768, 65_535, 65_536, 99_999])
def test_one_remaining_document_of_a_large_segment_is_noticed(index: mw.Index, left: int) -> None:
    """Wherever it is, and documents outside of the segment do not count."""
    view, bits = index._view, np.full(12_500, 255, dtype=np.uint8)
    view.removed = bits
    assert view.are_removed(0, 100_000)
    assert not view.are_removed(0, 100_001), "numbers beyond the bitmap are not removed"
    bits[left // 8] &= ~np.uint8(1 << left % 8)
    assert not view.are_removed(0, 100_000)
    assert view.are_removed(0, left)
    assert view.are_removed(left + 1, 100_000)


def test_a_dropped_segment_is_not_read(index: mw.Index) -> None:
    """Damage in it is gone with it, also in a compaction."""
    add(index, ["2025-01-01"] * FLUSH_AT)
    add(index, ["2027-01-01"] * FLUSH_AT, "new ")
    first, _ = index.stats()["segments"]
    content = bytearray((index.path / first["file"]).read_bytes())
    content[1030] ^= 1
    (index.path / first["file"]).write_bytes(content)
    with pytest.raises(FormatError):
        index.compact()
    index.expire(before="2026-01-01", time_field="created")
    index.compact()
    assert index.verify() == []
    assert len(names(index)) == FLUSH_AT


def test_a_failed_drop_is_made_up_for_by_the_next_call(index: mw.Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """The removals are durable, so it is no error."""
    add(index, ["2025-01-01"] * FLUSH_AT)
    old = files(index)
    with monkeypatch.context() as patched:
        patched.setattr(writer.Writer, "_replace_segments", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
        assert index.expire(before="2026-01-01", time_field="created").expired == FLUSH_AT
    assert (files(index), names(index)) == (old, [])
    index.expire(before="2026-01-01", time_field="created")
    assert files(index)[0][1] == 0


def test_other_calls_run_between_transactions(index: mw.Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader sees each as soon as it is done; documents that are added meanwhile are not read."""
    monkeypatch.setattr(expiry, "STEP_DOCUMENTS", 3)
    add(index, ["2025-01-01"] * 7)
    with mw.Index.open(index.path) as reader:
        steps = index.expire_steps(before="2026-01-01", time_field="created")
        assert (next(steps)[:2], names(reader)) == ((3, 3), ["d3", "d4", "d5", "d6"])
        index.add(["late"], ["a late document"], [{"created": "2025-01-01"}])
        index.remove(["d3", "d4"])
        assert (next(steps)[:2], names(reader)) == ((5, 5), ["late"])
        assert list(steps) == []
    assert index.expire(before="2026-01-01", time_field="created").expired == 1


def test_a_transaction_ends_after_some_bytes(index: mw.Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that memory does not grow with the documents."""
    monkeypatch.setattr(expiry, "STEP_BYTES", 200)
    add(index, ["2025-01-01"] * 12)
    steps = index.expire_steps(before="2026-01-01", time_field="created")
    assert [counts.read for counts in steps] == [4, 8, 12, 12]


def test_a_reader_keeps_its_snapshot(index: mw.Index) -> None:
    """Segments that are dropped while it reads stay readable for it."""
    add(index, ["2025-01-01"] * FLUSH_AT)
    with mw.Index.open(index.path) as reader:
        assert [hit.id for hit in reader.query("d3a d3b d3c")] == ["d3"]
        with reader._reading():
            index.expire(before="2026-01-01", time_field="created")
            answer = reader._lookup.query(
                reader._sketcher.sketch(["d3a d3b d3c"]), 0.5, 10, 100, None, measure="jaccard", with_text=True
            )
            assert [(hit.id, hit.text) for hit in answer[0]] == [("d3", "d3a d3b d3c")]
        assert reader.query("d3a d3b d3c").hits == ()


def test_a_damaged_document_is_an_error(index: mw.Index) -> None:
    """As in every call that reads it."""
    add(index, ["2025-01-01"] * 3)
    index.close()
    connection = apsw.Connection(str(index.path / "index.db"))
    connection.execute("UPDATE documents SET record = CAST(record || x'00' AS BLOB) WHERE number = 1")
    connection.close()
    with mw.Index.open(index.path, "w") as opened, pytest.raises(FormatError, match="row 1 is damaged"):
        opened.expire(before="2026-01-01", time_field="created")
