"""Listing documents over HTTP: every document appears once, the newest first, also during changes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import minwise as mw
from server.running import Server, serving

USUAL, MOST = 50, 100


@pytest.fixture
def server(emptied_server: Server) -> Server:
    """Return the shared server with an empty index."""
    return emptied_server


def page(server: Server, query: str = "") -> tuple[list[Any], int | None]:
    """Return the ids of a list and the start of the next one."""
    answer = server.get(f"/v1/documents{query}")
    assert answer.status == 200, answer.body
    assert set(answer.json) == {"documents", "next"}
    return [one["id"] for one in answer.json["documents"]], answer.json["next"]


def pages(server: Server, limit: int) -> Iterator[list[Any]]:
    """Return all lists, one after the other."""
    ids, following = page(server, f"?limit={limit}")
    yield ids
    while following is not None:
        before = following
        ids, following = page(server, f"?limit={limit}&before={before}")
        assert following is None or following < before
        yield ids


def add(server: Server, first: int, end: int) -> None:
    """Add documents with numbers as ids."""
    listed = [{"id": number, "text": text_of(number), "metadata": {"n": number}} for number in range(first, end)]
    assert server.post("/v1/documents", {"documents": listed}).status == 200


def remove(server: Server, *ids: int) -> None:
    """Remove documents."""
    assert server.ask("DELETE", "/v1/documents", {"ids": list(ids)}).json == {"removed": len(ids), "missing": []}


def text_of(number: int) -> str:
    """Return the text of a number."""
    return f"document {number} has {number * 7} words of {number * 11} letters"


def test_an_empty_index_has_an_empty_list(server: Server) -> None:
    assert page(server) == ([], None)
    assert page(server, "?before=5") == ([], None)


def test_a_listed_document_has_the_beginning_of_its_text(server: Server) -> None:
    """With metadata and number of shingles."""
    text = "🦆 one two three " * 1000
    server.add("long", text, {"a": 1})
    server.add(7, "\n short\x00 one ")
    short, long = server.get("/v1/documents").json["documents"]
    assert short == {"id": 7, "metadata": None, "snippet": "\n short\x00 one ", "shingles": 1}
    assert set(long) == {"id", "metadata", "snippet", "shingles"}
    assert text.startswith(long["snippet"])
    assert 0 < len(long["snippet"]) < 1000
    assert (long["metadata"], long["shingles"]) == ({"a": 1}, len(mw.Shingler("word:2").shingle([text])[0]))


@pytest.mark.parametrize("limit", [1, 3, 7, 20, 21, 100])
def test_lists_contain_every_document_once(server: Server, limit: int) -> None:
    """The newest first; each list except the last is full."""
    add(server, 0, 21)
    found = list(pages(server, limit))
    assert [name for one in found for name in one] == list(range(21))[::-1]
    assert all(len(one) == limit for one in found[:-1])
    assert len(found) <= 21 // limit + 1


def test_default_limit(server: Server) -> None:
    add(server, 0, USUAL + 1)
    ids, following = page(server)
    assert ids == list(range(1, USUAL + 1))[::-1]
    assert following is not None
    assert page(server, f"?before={following}") == ([0], None)


def test_a_replaced_document_is_the_newest(server: Server) -> None:
    """Also one that is added again after its removal."""
    add(server, 0, 5)
    replaced = {"id": 1, "text": "another text of one"}
    assert server.post("/v1/documents?on_duplicate_id=replace", replaced).json["results"][0]["fate"] == "replaced"
    remove(server, 3)
    add(server, 3, 4)
    add(server, 4, 5)
    assert page(server)[0] == [3, 1, 4, 2, 0]


def test_lists_continue_during_changes(server: Server) -> None:
    """A document that exists all the time appears once; new ones do not appear in between."""
    add(server, 0, 60)
    seen, following = page(server, "?limit=7")
    number = 60
    while following is not None:
        add(server, number, number + 5)
        remove(server, number - 2, number - 60)
        number += 5
        ids, following = page(server, f"?limit=7&before={following}")
        seen += ids
    gone = {one for start in range(60, number, 5) for one in (start - 2, start - 60)}
    assert seen == sorted(set(seen), reverse=True)
    assert set(range(60)) - gone <= set(seen) <= set(range(60))


def test_a_list_continues_after_a_removed_document(server: Server) -> None:
    add(server, 0, 10)
    ids, following = page(server, "?limit=3")
    assert ids == [9, 8, 7]
    remove(server, 7, 6, 5)
    assert page(server, f"?limit=3&before={following}")[0] == [4, 3, 2]
    remove(server, 4, 3, 2, 1, 0)
    assert page(server, f"?limit=3&before={following}") == ([], None)


def test_a_list_is_full_although_most_documents_are_removed(server: Server) -> None:
    add(server, 0, 1000)
    remove(server, *range(20, 980))
    ids, following = page(server, "?limit=30")
    assert ids == [*range(999, 979, -1), *range(19, 9, -1)]
    assert page(server, f"?limit=30&before={following}") == (list(range(9, -1, -1)), None)


def test_removing_everything_leaves_an_empty_list(server: Server) -> None:
    """And new documents appear again."""
    add(server, 0, 30)
    remove(server, *range(30))
    assert page(server) == ([], None)
    add(server, 30, 31)
    assert page(server) == ([30], None)


def test_positions_beyond_both_ends(server: Server) -> None:
    add(server, 0, 5)
    assert page(server, "?before=0") == ([], None)
    for beyond in (10**6, 2**31, 2**32 - 2):
        assert page(server, f"?before={beyond}")[0] == [4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    "query",
    [
        "limit=0", "limit=-1", f"limit={MOST + 1}", "limit=x", "limit=", "limit=1.5", "limit=true",
        "limit=9" + "9" * 30, "limit=%00", "before=x", "before=", "before=-1", "before=1.5",
        "before=" + "9" * 30, "limit=5&limit=6", "after=3", "limit=5&offset=2", "Limit=5", "limit[]=5",
    ],
)  # fmt: skip
def test_invalid_list_options_are_refused(server: Server, query: str) -> None:
    """The message names the option."""
    answer = server.get(f"/v1/documents?{query}")
    assert (answer.status, answer.error) == (422, "bad_value")


def test_a_read_only_server_lists_new_documents(tmp_path: Path) -> None:
    """Also after segments were flushed, merged and compacted."""
    path = tmp_path / "read.mw"
    settings: dict[str, Any] = {"threshold": 0.5, "shingle": "word:2"}
    with mw.Index.create(path, **settings) as writer, serving(path, "--read-only") as server:
        for start in range(0, 50, 10):
            writer.add(range(start, start + 10), [text_of(number) for number in range(start, start + 10)])
            writer.flush()
            assert [name for one in pages(server, 4) for name in one] == list(range(start + 10))[::-1]
        writer.remove(range(0, 50, 2))
        writer.compact()
        assert [name for one in pages(server, 4) for name in one] == list(range(1, 50, 2))[::-1]
