"""Expiry of documents over HTTP."""

import json
from pathlib import Path

import pytest

import minwise as mw
from minwise.index import expiry
from server.documents.articles import article, post
from server.running import Server, serving

CREATED = ("2025-01-01", "2026-01-01", None, "soon", 1735689599)


def fill(server: Server, topic: str) -> str:
    """Add documents with times, and return the name of their time field, which no other test uses."""
    field = f"created {topic}"
    post(server, *((f"{topic} {number}", article(f"{topic}{number}"), {field: value})
                   for number, value in enumerate(CREATED)))  # fmt: skip
    return field


def test_documents_before_a_time_are_removed(server: Server, reader: mw.Index, topic: str) -> None:
    field = fill(server, topic)
    body = {"before": "2025-06-01T00:00:00Z", "time_field": field}
    others = len(reader) - len(CREATED)
    expected = {
        "read": others + 5, "expired": 2, "undated": others + 1, "unreadable": 1,
        "oldest": "2024-12-31T23:59:59Z", "before": "2025-06-01T00:00:00Z",
    }  # fmt: skip
    dry = server.post("/v1/expire", {**body, "dry_run": True})
    assert (dry.status, dry.json) == (200, expected)
    assert [f"{topic} {number}" in reader for number in range(5)] == [True] * 5
    answer = server.post("/v1/expire", body)
    assert (answer.status, answer.json) == (200, expected)
    assert [f"{topic} {number}" in reader for number in range(5)] == [False, True, True, True, False]
    again = server.post("/v1/expire", body).json
    assert (again["read"], again["expired"]) == (others + 3, 0)
    assert reader.verify() == []


def test_documents_of_an_age_are_removed(server: Server, reader: mw.Index, topic: str) -> None:
    field = fill(server, topic)
    assert server.post("/v1/expire", {"older_than": "9999w", "time_field": field}).json["expired"] == 0
    assert server.post("/v1/expire", {"older_than": "1h", "time_field": field}).json["expired"] == 3
    assert [f"{topic} {number}" in reader for number in range(5)] == [False, False, True, True, False]


@pytest.mark.parametrize(
    "body",
    [
        {}, [], "30d", None, {"older_than": "30d"}, {"before": "2026-01-01T00:00:00Z"}, {"time_field": "created"},
        {"older_than": "30d", "before": "2026-01-01T00:00:00Z", "time_field": "created"},
        {"older_than": "30", "time_field": "created"}, {"older_than": 30, "time_field": "created"},
        {"older_than": "0d", "time_field": "created"}, {"older_than": "10000d", "time_field": "created"},
        {"older_than": "30d\n", "time_field": "created"}, {"older_than": "30d", "time_field": ""},
        {"older_than": "30d", "time_field": None}, {"older_than": "30d", "time_field": "created", "all": True},
        {"before": "2026-01-01", "time_field": "created"}, {"before": 1767225600, "time_field": "created"},
        {"before": "2026-01-01T00:00:00", "time_field": "created"},
        {"older_than": "30d", "time_field": "created", "dry_run": 1},
    ],
)  # fmt: skip
def test_invalid_expiries_are_refused(server: Server, body: object) -> None:
    answer = server.ask("POST", "/v1/expire", json.dumps(body).encode())
    assert (answer.status, answer.error) == (422, "bad_value")
    assert server.get("/readyz").status == 200


def test_a_read_only_server_refuses_an_expiry(tmp_path: Path) -> None:
    """Also a dry run, which needs the right to write, too."""
    mw.Index.create(tmp_path / "read.mw").close()
    with serving(tmp_path / "read.mw", "--read-only") as server:
        for dry_run in (True, False):
            answer = server.post("/v1/expire", {"older_than": "1d", "time_field": "created", "dry_run": dry_run})
            assert (answer.status, answer.error) == (403, "read_only")


def test_an_expiry_of_many_transactions_is_complete(tmp_path: Path) -> None:
    """The number of documents is more than that of one transaction."""
    count = expiry.STEP_DOCUMENTS * 2 + 1
    with mw.Index.create(tmp_path / "many.mw", shingle="word:1") as index:
        index.add(range(count), ["a text"] * count, [{"created": number} for number in range(count)])
    with serving(tmp_path / "many.mw") as server:
        answer = server.post("/v1/expire", {"before": "1970-01-01T02:00:00Z", "time_field": "created"}).json
        assert (answer["read"], answer["expired"]) == (count, 7200)
        assert server.get("/v1/stats").json["documents"] == count - 7200
