"""Text search over HTTP: all pages together contain every document with the phrase, and each response is bounded."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import minwise as mw
from minwise.server import service
from minwise.server.errors import ApiError
from minwise.server.service import Service
from minwise.server.settings import ServerSettings
from server.running import Server, serving

# More than one response searches.
MANY = 12_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve many short texts; every thousandth contains the phrase."""
    path = tmp_path_factory.mktemp("search") / "news.mw"
    with mw.Index.create(path, shingle="word:2", store_text=True) as index:
        texts = [f"{'The night ferry' if number % 1000 == 7 else 'A train'} number {number}" for number in range(MANY)]
        index.add(range(MANY), texts)
        index.add(["long"], [f"{'before ' * 5000}🚢 the NIGHT\nferry{' after' * 5000}"], [{"source": "wire"}])
    with serving(path, "--read-only") as running:
        yield running


def search(server: Server, **parameters: object) -> Any:  # noqa: ANN401 - a response
    """Return a response."""
    return server.get(f"/v1/search?{urlencode(parameters)}")


def test_pages_contain_every_document_with_the_phrase_once(server: Server) -> None:
    """The newest first; a response searches a bounded number of documents, and says where the next one continues."""
    ids, searched, before = [], 0, None
    while True:
        answer = search(server, contains="Night  ferry", limit=5, **({} if before is None else {"before": before}))
        assert answer.status == 200, answer.body
        assert set(answer.json) == {"documents", "searched", "next"}
        assert len(answer.json["documents"]) <= 5
        assert answer.json["searched"] <= 5000
        ids += [one["id"] for one in answer.json["documents"]]
        searched += answer.json["searched"]
        before = answer.json["next"]
        if before is None:
            break
    assert ids == ["long", *range(MANY - 993, 0, -1000)]
    assert searched == MANY + 1


def test_a_match_has_a_snippet_with_the_phrase_marked(server: Server) -> None:
    """Offsets count code points."""
    (found,) = search(server, contains="night ferry", limit=1).json["documents"]
    snippet = found["snippet"]
    ((start, end),) = snippet["spans"]
    assert (found["id"], found["metadata"]) == ("long", {"source": "wire"})
    assert snippet["text"][start:end] == "NIGHT\nferry"
    assert snippet["length"] == 5000 * 7 + len("🚢 the NIGHT\nferry") + 5000 * 6
    assert 0 < snippet["start"] <= 5000 * 7
    assert len(snippet["text"]) <= 240


def test_a_phrase_that_nothing_contains(server: Server) -> None:
    found = search(server, contains="zebra", before=3).json
    assert found == {"documents": [], "searched": 3, "next": None}


@pytest.mark.parametrize(
    ("parameters", "about"),
    [
        ({}, "contains"),
        ({"contains": ""}, "contains"),
        ({"contains": "a" * 201}, "contains"),
        ({"contains": "a", "limit": 0}, "limit"),
        ({"contains": "a", "limit": 101}, "limit"),
        ({"contains": "a", "before": -1}, "before"),
        ({"contains": "a", "after": 1}, "after"),
    ],
)
def test_wrong_parameters_are_refused(server: Server, parameters: dict[str, object], about: str) -> None:
    answer = search(server, **parameters)
    assert (answer.status, answer.json["error"]["code"]) == (422, "bad_value")
    assert about in answer.json["error"]["message"]


def test_an_index_without_texts_says_so(tmp_path: Path) -> None:
    mw.Index.create(tmp_path / "news.mw").close()
    with serving(tmp_path / "news.mw") as running:
        answer = search(running, contains="ferry")
    assert (answer.status, answer.json["error"]["code"]) == (422, "bad_value")
    assert (
        "needs an index that stores texts, got one of shingles; create it with store_text"
        in answer.json["error"]["message"]
    )


def test_few_searches_may_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are told to try again, so that reading a document never waits for many searches."""
    monkeypatch.setattr(service, "MAX_SEARCHES", 1)
    mw.Index.create(tmp_path / "news.mw", store_text=True).close()

    async def run() -> list[Any]:
        opened = Service(ServerSettings(index=tmp_path / "news.mw", read_only=True))
        opened.start()
        try:
            searches = [opened.search_texts(lambda index: index.search_text("a")) for _ in range(2)]
            return await asyncio.gather(*searches, return_exceptions=True)
        finally:
            opened.close()

    first, second = asyncio.run(run())
    assert first.matches == []
    assert isinstance(second, ApiError)
    assert second.code == "busy"
