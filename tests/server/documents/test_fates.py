"""Adding documents over HTTP: the result of each, and what keeps one out."""

from typing import Any

import pytest

import minwise as mw
from server.documents.articles import SHINGLER, article, get, post, similarity, stored
from server.running import Server


def test_one_document_is_added(server: Server, reader: mw.Index, topic: str) -> None:
    """It is returned unchanged, and another process sees it."""
    text = article(topic)
    answer = server.add(topic, text, {"lang": "en"})
    assert answer.status == 200
    result: dict[str, Any] = {"id": topic, "fate": "added", "duplicate_of": None, "similarity": None, "duplicates": []}
    assert answer.json == {"results": [result]}
    shingles = len(SHINGLER.shingle([text])[0])
    assert stored(server, topic) == {"id": topic, "metadata": {"lang": "en"}, "text": text, "shingles": shingles}
    found = reader.get(topic)
    assert (found.text, found.metadata) == (text, {"lang": "en"})


def test_metadata_may_be_omitted(server: Server, topic: str) -> None:
    """That is the same as null."""
    document = {"id": topic, "text": article(topic)}
    assert server.post("/v1/documents", document).json["results"][0]["fate"] == "added"
    assert server.add(topic, article(topic), None).json["results"][0]["fate"] == "unchanged"
    assert stored(server, topic)["metadata"] is None


def test_a_batch_is_answered_in_its_order(server: Server, reader: mw.Index, topic: str) -> None:
    documents = [(f"{topic} {number}", article(f"{topic}{number}"), {"n": number}) for number in range(50)]
    assert {one["fate"] for one in post(server, *documents)} == {"added"}
    for name, text, about in documents:
        found = reader.get(name)
        assert (found.text, found.metadata) == (text, about)


@pytest.mark.parametrize(
    ("policy", "same", "other_text", "other_metadata"),
    [
        ("error", "unchanged", "conflict", "conflict"),
        ("skip", "unchanged", "skipped", "skipped"),
        ("replace", "unchanged", "replaced", "replaced"),
    ],
)
@pytest.mark.parametrize("unique", [False, True])
def test_fate_of_a_batch_document_with_a_taken_id(
    server: Server, topic: str, policy: str, same: str, other_text: str, other_metadata: str, unique: bool
) -> None:
    """A document that is not stored leaves the old one unchanged."""
    names = [f"{topic} {kind}" for kind in ("same", "text", "metadata")]
    texts = [article(f"{topic}{number}") for number in range(3)]
    post(server, *((name, text, {"n": 1}) for name, text in zip(names, texts, strict=True)))
    sent = [(names[0], texts[0], {"n": 1}), (names[1], article(f"{topic}9"), {"n": 1}), (names[2], texts[2], {"n": 2})]
    query = f"?on_duplicate_id={policy}&unique={'true' if unique else 'false'}"
    results = post(server, *sent, (f"{topic} new", article(f"{topic}8"), None), query=query)
    assert [one["fate"] for one in results] == [same, other_text, other_metadata, "added"]
    replaced = policy == "replace"
    assert stored(server, names[1])["text"] == (sent[1][1] if replaced else texts[1])
    assert stored(server, names[2])["metadata"] == {"n": 2 if replaced else 1}


def test_a_single_document_with_a_taken_id_is_refused(server: Server, topic: str) -> None:
    """With status 409; the old one is unchanged."""
    server.add(topic, article(topic))
    answer = server.add(topic, article(f"{topic}other"))
    assert (answer.status, answer.error) == (409, "id_taken")
    assert topic in answer.json["error"]["message"]
    assert stored(server, topic)["text"] == article(topic)


def test_a_single_document_with_a_taken_id_is_skipped_or_replaced(server: Server, topic: str) -> None:
    server.add(topic, article(topic))
    document = {"id": topic, "text": article(f"{topic}other")}
    skipped = server.post("/v1/documents?on_duplicate_id=skip", document)
    assert (skipped.status, skipped.json["results"][0]["fate"]) == (200, "skipped")
    replaced = server.post("/v1/documents?on_duplicate_id=replace", document)
    assert (replaced.status, replaced.json["results"][0]["fate"]) == (200, "replaced")
    assert stored(server, topic)["text"] == document["text"]


def test_a_batch_of_one_conflicts_like_any_batch(server: Server, topic: str) -> None:
    """Only a single document has an error status."""
    server.add(topic, article(topic))
    assert post(server, (topic, article(f"{topic}other"), None))[0]["fate"] == "conflict"


def test_a_repeated_id_in_a_batch(server: Server, topic: str) -> None:
    """The first document is stored before the second one is decided."""
    first, second = article(f"{topic}a"), article(f"{topic}b")
    fates = [one["fate"] for one in post(server, (topic, first, None), (topic, first, None), (topic, second, None))]
    assert fates == ["added", "unchanged", "conflict"]
    both = [(topic, second, None), (topic, first, None)]
    assert [one["fate"] for one in post(server, *both, query="?on_duplicate_id=replace")] == ["replaced", "replaced"]
    assert stored(server, topic)["text"] == first


def test_a_repeated_request_changes_nothing(server: Server, topic: str) -> None:
    documents = [(f"{topic} {number}", article(f"{topic}{number}"), {"n": number}) for number in range(3)]
    post(server, *documents)
    before = server.get("/v1/stats").json
    for query in ("", "?unique=true", "?on_duplicate_id=skip", "?on_duplicate_id=replace&unique=true"):
        assert {one["fate"] for one in post(server, *documents, query=query)} == {"unchanged"}
    after = server.get("/v1/stats").json
    assert (after["documents"], after["removed"]) == (before["documents"], before["removed"])


def test_a_near_duplicate_of_a_stored_document_is_kept_out(server: Server, reader: mw.Index, topic: str) -> None:
    """The response lists the most similar ones first, with shared passages."""
    texts = {f"{topic} {changed}": article(topic, changed=changed) for changed in (0, 3, 6, 9)}
    post(server, *((name, text, {"changed": name}) for name, text in texts.items()))
    text = article(topic, changed=3) + " end"
    answer = server.post("/v1/documents?unique=true", {"id": f"{topic} new", "text": text})
    (result,) = answer.json["results"]
    expected = sorted(((-similarity(text, other), name) for name, other in texts.items()))
    assert (answer.status, result["fate"], result["duplicate_of"]) == (200, "duplicate", f"{topic} 3")
    assert result["similarity"] == -expected[0][0]
    assert [(-hit["similarity"], hit["id"]) for hit in result["duplicates"]] == expected
    for hit in result["duplicates"]:
        assert hit["exact"]
        assert hit["metadata"] == {"changed": hit["id"]}
        assert hit["snippet"]["text"] in texts[hit["id"]]
    assert get(server, f"{topic} new").status == 404
    assert f"{topic} new" not in reader


def test_a_near_duplicate_within_a_batch_is_kept_out(server: Server, reader: mw.Index, topic: str) -> None:
    texts = [article(topic), article(topic, changed=5), article(f"{topic}else")]
    results = post(server, *((f"{topic} {n}", text, None) for n, text in enumerate(texts)), query="?unique=true")
    assert [one["fate"] for one in results] == ["added", "duplicate", "added"]
    assert (results[1]["duplicate_of"], results[1]["similarity"]) == (f"{topic} 0", similarity(texts[0], texts[1]))
    assert [(hit["id"], hit["similarity"]) for hit in results[1]["duplicates"]] == [
        (f"{topic} 0", results[1]["similarity"])
    ]
    assert [f"{topic} {number}" in reader for number in range(3)] == [True, False, True]


def test_a_duplicate_of_a_document_replaced_later_in_the_batch(server: Server, topic: str) -> None:
    """The result is that of the moment of the decision."""
    documents = [
        (f"{topic} a", article(topic), None),
        (f"{topic} b", article(topic, changed=5), None),
        (f"{topic} a", article(f"{topic}else"), None),
    ]
    results = post(server, *documents, query="?unique=true&on_duplicate_id=replace")
    assert [one["fate"] for one in results] == ["added", "duplicate", "replaced"]
    assert (results[1]["duplicate_of"], results[1]["similarity"]) == (
        f"{topic} a",
        similarity(article(topic), article(topic, changed=5)),
    )
    assert results[1]["duplicates"][0]["id"] == f"{topic} a"
    assert stored(server, f"{topic} a")["text"] == article(f"{topic}else")


def test_the_deciding_duplicate_is_listed_first(server: Server, topic: str) -> None:
    """Although a query considers fewer candidates than a decision, and equally similar documents are older."""
    near_copies = [(f"{topic} {number}", f"{article(topic)} {topic}end{number}", None) for number in range(60)]
    post(server, *near_copies, (f"{topic} like", article(topic), None))
    (result,) = post(server, (f"{topic} new", article(topic), {"new": True}), query="?unique=true")
    assert (result["fate"], result["duplicate_of"], result["similarity"]) == ("duplicate", f"{topic} like", 1)
    assert result["duplicates"][0]["id"] == f"{topic} like"
    similarities = [hit["similarity"] for hit in result["duplicates"]]
    assert similarities == sorted(similarities, reverse=True)


def test_a_new_version_is_no_duplicate_of_its_old_version(server: Server, topic: str) -> None:
    server.add(topic, article(topic))
    results = post(server, (topic, article(topic, changed=2), None), query="?unique=true&on_duplicate_id=replace")
    assert [one["fate"] for one in results] == ["replaced"]


def test_texts_without_shingles_are_not_similar(server: Server, topic: str) -> None:
    """Two empty texts are two documents."""
    results = post(server, (f"{topic} a", "", None), (f"{topic} b", "", None), query="?unique=true")
    assert [one["fate"] for one in results] == ["added", "added"]


@pytest.mark.parametrize(
    "given", ["unique=yes", "unique=", "unique=2", "unique=null", "on_duplicate_id=ignore", "unique=true&unique=true"]
)
def test_invalid_options_are_refused(server: Server, topic: str, given: str) -> None:
    """The message lists the choices, and nothing is stored."""
    answer = server.post(f"/v1/documents?{given}", {"id": topic, "text": article(topic)})
    assert (answer.status, answer.error) == (422, "bad_value")
    assert given.split("=")[0] in answer.json["error"]["message"]
    assert get(server, topic).status == 404
