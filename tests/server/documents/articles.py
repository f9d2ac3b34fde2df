"""Texts of unique words, and requests that add, get and remove them."""

from typing import Any
from urllib.parse import quote

import minwise as mw
from server.running import Answer, Server

__all__ = ["SHINGLER", "article", "filled", "get", "post", "remove", "similarity", "stored"]

SHINGLER = mw.Shingler("word:2")


def article(topic: str, words: int = 40, *, changed: int = 0) -> str:
    """Return a text whose words all belong to the topic, except possibly the last ones."""
    kept = [f"{topic}w{number}" for number in range(words - changed)]
    return " ".join([*kept, *(f"{topic}other{number}" for number in range(changed))])


def similarity(left: str, right: str) -> float:
    """Return the Jaccard similarity of two texts without an index."""
    sets = SHINGLER.shingle([left, right])
    return mw.jaccard(sets[0].tolist(), sets[1].tolist())


def post(server: Server, *documents: tuple[str | int, str, Any], query: str = "") -> list[dict[str, Any]]:
    """Add a batch; return the results."""
    listed = [{"id": name, "text": text, "metadata": about} for name, text, about in documents]
    answer = server.post(f"/v1/documents{query}", {"documents": listed})
    assert answer.status == 200, answer.body
    assert set(answer.json) == {"results"}
    results: list[dict[str, Any]] = answer.json["results"]
    assert [one["id"] for one in results] == [name for name, _, _ in documents]
    return results


def stored(server: Server, name: str | int) -> dict[str, Any]:
    """Return the document with an id."""
    answer = get(server, name)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json
    return found


def get(server: Server, name: str | int) -> Answer:
    """Return the response for an id with any characters."""
    return server.get(f"/v1/documents/{quote(str(name), safe='')}")


def filled(template: str, given: str) -> bytes:
    """Return a body with JSON inserted, which may be invalid."""
    return template.replace("GIVEN", given).encode()


def remove(server: Server, name: str | int) -> Answer:
    """Remove a document."""
    return server.ask("DELETE", f"/v1/documents/{quote(str(name), safe='')}")
