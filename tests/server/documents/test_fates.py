"""Documents over HTTP: what becomes of each, and what keeps one out."""

from typing import Any

import pytest

import minwise as mw
from server.documents.articles import SHINGLER, article, get, post, similarity, stored
from server.running import Server


def test_one_document_is_added(server: Server, reader: mw.Index, topic: str) -> None:
    """It comes back with everything that was sent, and another process has it."""
    text = article(topic)
    answer = server.add(topic, text, {"lang": "en"})
    assert answer.status == 200
    result: dict[str, Any] = {"id": topic, "fate": "added", "duplicate_of": None, "similarity": None, "duplicates": []}
    assert answer.json == {"results": [result]}
    shingles = len(SHINGLER.shingle([text])[0])
    assert stored(server, topic) == {"id": topic, "metadata": {"lang": "en"}, "text": text, "shingles": shingles}
    found = reader.get(topic)
    assert (found.text, found.metadata) == (text, {"lang": "en"})


def test_metadata_may_be_left_out(server: Server, topic: str) -> None:
    """Then there is none, as when it is null; the second is a repetition of the first."""
    document = {"id": topic, "text": article(topic)}
    assert server.post("/v1/documents", document).json["results"][0]["fate"] == "added"
    assert server.add(topic, article(topic), None).json["results"][0]["fate"] == "unchanged"
    assert stored(server, topic)["metadata"] is None


def test_a_batch_is_answered_in_its_order(server: Server, reader: mw.Index, topic: str) -> None:
    """Each document for itself; all are there afterwards."""
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
def test_the_fate_of_a_document_whose_id_is_taken(
    server: Server, topic: str, policy: str, same: str, other_text: str, other_metadata: str, unique: bool
) -> None:
    """By what is asked for; what is not stored leaves what is there as it was."""
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


def test_one_document_whose_id_is_taken_is_refused(server: Server, topic: str) -> None:
    """409 with an error that names the id; what was there is there."""
    server.add(topic, article(topic))
    answer = server.add(topic, article(f"{topic}other"))
    assert (answer.status, answer.error) == (409, "id_taken")
    assert topic in answer.json["error"]["message"]
    assert stored(server, topic)["text"] == article(topic)


def test_one_document_whose_id_is_taken_is_skipped_or_replaced_if_asked(server: Server, topic: str) -> None:
    """A document alone has the same choices as one of a batch."""
    server.add(topic, article(topic))
    document = {"id": topic, "text": article(f"{topic}other")}
    skipped = server.post("/v1/documents?on_duplicate_id=skip", document)
    assert (skipped.status, skipped.json["results"][0]["fate"]) == (200, "skipped")
    replaced = server.post("/v1/documents?on_duplicate_id=replace", document)
    assert (replaced.status, replaced.json["results"][0]["fate"]) == (200, "replaced")
    assert stored(server, topic)["text"] == document["text"]


def test_a_batch_of_one_conflicts_like_any_batch(server: Server, topic: str) -> None:
    """Only a document that is sent alone is answered with a status of its own."""
    server.add(topic, article(topic))
    assert post(server, (topic, article(f"{topic}other"), None))[0]["fate"] == "conflict"


def test_an_id_twice_in_one_batch(server: Server, topic: str) -> None:
    """The first is there when it is the second's turn."""
    first, second = article(f"{topic}a"), article(f"{topic}b")
    fates = [one["fate"] for one in post(server, (topic, first, None), (topic, first, None), (topic, second, None))]
    assert fates == ["added", "unchanged", "conflict"]
    both = [(topic, second, None), (topic, first, None)]
    assert [one["fate"] for one in post(server, *both, query="?on_duplicate_id=replace")] == ["replaced", "replaced"]
    assert stored(server, topic)["text"] == first


def test_a_repeated_request_changes_nothing(server: Server, topic: str) -> None:
    """So a client that missed the answer may ask again, and again."""
    documents = [(f"{topic} {number}", article(f"{topic}{number}"), {"n": number}) for number in range(3)]
    post(server, *documents)
    before = server.get("/v1/stats").json
    for query in ("", "?unique=true", "?on_duplicate_id=skip", "?on_duplicate_id=replace&unique=true"):
        assert {one["fate"] for one in post(server, *documents, query=query)} == {"unchanged"}
    after = server.get("/v1/stats").json
    assert (after["documents"], after["removed"]) == (before["documents"], before["removed"])


def test_a_near_duplicate_is_kept_out_by_what_is_there(server: Server, reader: mw.Index, topic: str) -> None:
    """The most similar one first, each with its exact similarity and what it shares."""
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


def test_a_near_duplicate_of_an_earlier_one_of_the_same_batch(server: Server, reader: mw.Index, topic: str) -> None:
    """The first of a batch keeps the others out."""
    texts = [article(topic), article(topic, changed=5), article(f"{topic}else")]
    results = post(server, *((f"{topic} {n}", text, None) for n, text in enumerate(texts)), query="?unique=true")
    assert [one["fate"] for one in results] == ["added", "duplicate", "added"]
    assert (results[1]["duplicate_of"], results[1]["similarity"]) == (f"{topic} 0", similarity(texts[0], texts[1]))
    assert [(hit["id"], hit["similarity"]) for hit in results[1]["duplicates"]] == [
        (f"{topic} 0", results[1]["similarity"])
    ]
    assert [f"{topic} {number}" in reader for number in range(3)] == [True, False, True]


def test_a_witness_that_is_replaced_later_in_the_batch(server: Server, topic: str) -> None:
    """What is said is what was decided: the witness had that text when it was the duplicate's turn."""
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


def test_the_witness_comes_first_in_a_crowd(server: Server, topic: str) -> None:
    """Though a query looks at fewer candidates than a decision does, and equally similar ones came before it."""
    crowd = [(f"{topic} {number}", f"{article(topic)} {topic}end{number}", None) for number in range(60)]
    post(server, *crowd, (f"{topic} like", article(topic), None))
    (result,) = post(server, (f"{topic} new", article(topic), {"new": True}), query="?unique=true")
    assert (result["fate"], result["duplicate_of"], result["similarity"]) == ("duplicate", f"{topic} like", 1)
    assert result["duplicates"][0]["id"] == f"{topic} like"
    similarities = [hit["similarity"] for hit in result["duplicates"]]
    assert similarities == sorted(similarities, reverse=True)


def test_a_document_that_would_take_its_own_place_is_no_duplicate_of_it(server: Server, topic: str) -> None:
    """A new version of a document is like its old one, and replaces it."""
    server.add(topic, article(topic))
    results = post(server, (topic, article(topic, changed=2), None), query="?unique=true&on_duplicate_id=replace")
    assert [one["fate"] for one in results] == ["replaced"]


def test_a_text_without_shingles_is_like_no_other(server: Server, topic: str) -> None:
    """Two empty texts are two documents."""
    results = post(server, (f"{topic} a", "", None), (f"{topic} b", "", None), query="?unique=true")
    assert [one["fate"] for one in results] == ["added", "added"]


@pytest.mark.parametrize(
    "given", ["unique=yes", "unique=", "unique=2", "unique=null", "on_duplicate_id=ignore", "unique=true&unique=true"]
)
def test_a_choice_that_is_none_is_refused(server: Server, topic: str, given: str) -> None:
    """With the choices there are; and nothing is stored."""
    answer = server.post(f"/v1/documents?{given}", {"id": topic, "text": article(topic)})
    assert (answer.status, answer.error) == (422, "bad_value")
    assert given.split("=")[0] in answer.json["error"]["message"]
    assert get(server, topic).status == 404
