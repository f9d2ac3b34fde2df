"""Removing documents, refused changes, and durability over HTTP."""

import json
from pathlib import Path

import pytest

import minwise as mw
from server.documents.articles import article, get, post, remove, stored
from server.running import Server, serving


def test_a_document_is_removed_once(server: Server, reader: mw.Index, topic: str) -> None:
    server.add(topic, article(topic))
    assert remove(server, topic).json == {"removed": 1}
    assert topic not in reader
    for again in (remove(server, topic), get(server, topic)):
        assert (again.status, again.error) == (404, "not_found")
    assert server.post("/v1/query", {"text": article(topic)}).json["hits"] == []
    assert server.add(topic, article(f"{topic}else")).json["results"][0]["fate"] == "added"


def test_a_batch_is_removed(server: Server, reader: mw.Index, topic: str) -> None:
    """Missing ids are listed as they were given."""
    post(server, *((f"{topic} {number}", article(f"{topic}{number}"), None) for number in range(4)))
    ids = [f"{topic} 0", f"{topic} none", f"{topic} 2", f"{topic} 0", 10**15]
    answer = server.ask("DELETE", "/v1/documents", {"ids": ids})
    assert (answer.status, answer.json) == (200, {"removed": 2, "missing": [f"{topic} none", 10**15]})
    assert [f"{topic} {number}" in reader for number in range(4)] == [False, True, False, True]
    again = server.ask("DELETE", "/v1/documents", {"ids": ids[:1]})
    assert (again.status, again.json) == (200, {"removed": 0, "missing": ids[:1]})


def test_a_number_and_its_digits_are_removed_as_one(server: Server, topic: str) -> None:
    """And neither is missing."""
    name = 10**12
    server.add(name, article(topic))
    answer = server.ask("DELETE", "/v1/documents", {"ids": [name, str(name)]})
    assert answer.json == {"removed": 1, "missing": []}


@pytest.mark.parametrize("body", [{"ids": []}, {}, {"ids": "a"}, {"ids": None}, {"ids": ["a"], "all": True}, [], "a"])
def test_invalid_removals_are_refused(server: Server, body: object) -> None:
    answer = server.ask("DELETE", "/v1/documents", body)
    assert (answer.status, answer.error) == (422, "bad_value")


@pytest.mark.parametrize(
    "body",
    [
        {}, {"id": "a"}, {"text": "a b"}, {"documents": []}, {"documents": None}, {"documents": {}}, [], "a", 5, None,
        {"id": "a", "text": "a b", "documents": [{"id": "a", "text": "a b"}]}, {"id": "a", "text": "a b", "more": 1},
        [{"id": "a", "text": "a b"}], {"documents": [{"id": "a", "text": "a b"}, {"id": "b"}]}, {"documents": [[]]},
        {"documents": ["a"]}, {"documents": [{"documents": [{"id": "a", "text": "a b"}]}]},
    ],
)  # fmt: skip
def test_invalid_additions_are_refused(server: Server, reader: mw.Index, body: object) -> None:
    """A batch with one invalid document stores none."""
    answer = server.ask("POST", "/v1/documents", json.dumps(body).encode())
    assert (answer.status, answer.error) == (422, "bad_value")
    assert "a" not in reader


def test_a_read_only_server_refuses_changes(tmp_path: Path) -> None:
    """It answers all other requests, and another process may write."""
    path = tmp_path / "read.mw"
    with mw.Index.create(path, threshold=0.5, shingle="word:2", store_text=True) as writer:
        writer.add(["a"], [article("a")])
        with serving(path, "--read-only") as server:
            document = {"id": "b", "text": article("b")}
            refused = [
                server.post("/v1/documents", document),
                server.post("/v1/documents?unique=true", {"documents": [document]}),
                remove(server, "a"),
                remove(server, "none"),
                server.ask("DELETE", "/v1/documents", {"ids": ["a"]}),
            ]
            assert [(answer.status, answer.error) for answer in refused] == [(403, "read_only")] * 5
            assert stored(server, "a")["text"] == article("a")
            assert server.get("/v1/stats").json["read_only"] is True
            writer.add(["b"], [article("b")])
            assert [hit["id"] for hit in server.post("/v1/query", {"text": article("b")}).json["hits"]] == ["b"]
            writer.remove(["a"])
            assert get(server, "a").status == 404


def test_changes_are_visible_to_other_processes(server: Server, reader: mw.Index, topic: str) -> None:
    for number in range(20):
        name, text = f"{topic} {number}", article(f"{topic}{number}")
        server.add(name, text, {"n": number})
        assert reader.get(name).text == text
        assert [hit.id for hit in reader.query(text)] == [name]
        server.post("/v1/documents?on_duplicate_id=replace", {"id": name, "text": text, "metadata": {"n": -1}})
        assert reader.get(name).metadata == {"n": -1}
        if number % 2:
            remove(server, name)
            assert name not in reader
    assert reader.verify() == []


def test_changes_survive_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "again.mw"
    mw.Index.create(path, threshold=0.5, shingle="word:2", store_text=True).close()
    with serving(path) as first:
        post(first, *((f"a {number}", article(f"a{number}"), None) for number in range(10)))
        remove(first, "a 3")
    with serving(path) as second:
        found = [one["id"] for one in second.get("/v1/documents").json["documents"]]
        assert found == [f"a {number}" for number in (9, 8, 7, 6, 5, 4, 2, 1, 0)]
        assert get(second, "a 3").status == 404
