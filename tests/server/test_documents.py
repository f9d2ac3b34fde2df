"""Documents over HTTP: what becomes of each, what keeps one out, and that it is there for everybody once it is said."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import minwise as mw
from server.running import Answer, Server, serving

SHINGLER = mw.Shingler("word:2")
# Limits of what an id and a text may be.
LONGEST_ID, LONGEST_TEXT = 1000, 10**6

topics = itertools.count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index that stores texts, for all tests here."""
    path = tmp_path_factory.mktemp("documents") / "news.mw"
    mw.Index.create(path, threshold=0.5, shingle="word:2", store="text").close()
    return path


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """One server for all tests here: each has ids and words of its own."""
    with serving(folder) as running:
        yield running


@pytest.fixture
def reader(folder: Path) -> Iterator[mw.Index]:
    """The same index, opened by another process than the server: this one."""
    with mw.Index.open(folder) as index:
        yield index


@pytest.fixture
def topic() -> str:
    """A word that no other test has."""
    return f"topic{next(topics)}x"


def article(topic: str, words: int = 40, *, changed: int = 0) -> str:
    """A text of which every word is the topic's own; the last few may be others."""
    kept = [f"{topic}w{number}" for number in range(words - changed)]
    return " ".join([*kept, *(f"{topic}other{number}" for number in range(changed))])


def similarity(left: str, right: str) -> float:
    """The Jaccard similarity of the shingle sets, computed without an index."""
    sets = SHINGLER.shingle([left, right])
    return mw.jaccard(sets[0].tolist(), sets[1].tolist())


def post(server: Server, *documents: tuple[str | int, str, Any], query: str = "") -> list[dict[str, Any]]:
    """Adds a batch; what became of each."""
    listed = [{"id": name, "text": text, "metadata": about} for name, text, about in documents]
    answer = server.post(f"/v1/documents{query}", {"documents": listed})
    assert answer.status == 200, answer.body
    assert set(answer.json) == {"results"}
    results: list[dict[str, Any]] = answer.json["results"]
    assert [one["id"] for one in results] == [name for name, _, _ in documents]
    return results


def stored(server: Server, name: str | int) -> dict[str, Any]:
    """What is under an id."""
    answer = get(server, name)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json
    return found


def get(server: Server, name: str | int) -> Answer:
    """The answer for an id, whatever characters it has."""
    return server.get(f"/v1/documents/{quote(str(name), safe='')}")


def filled(template: str, given: str) -> bytes:
    """A body with JSON put in, which may be wrong."""
    return template.replace("GIVEN", given).encode()


def remove(server: Server, name: str | int) -> Answer:
    """Removes one document."""
    return server.ask("DELETE", f"/v1/documents/{quote(str(name), safe='')}")


# What becomes of a document


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


# What keeps a document out


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


# Ids


@pytest.mark.parametrize(("first", "second"), [(5, "5"), ("6", 6), (-7, "-7"), (2**63 - 1, str(2**63 - 1))])
def test_a_number_and_its_digits_are_one_id(server: Server, topic: str, first: str | int, second: str | int) -> None:
    """It is given back as it came first."""
    server.add(first, article(topic))
    assert stored(server, second)["id"] == first
    assert server.add(second, article(topic)).json["results"][0]["fate"] == "unchanged"
    assert server.add(second, article(f"{topic}else")).status == 409
    assert remove(server, second).json == {"removed": 1}
    assert get(server, first).status == 404


ODD_IDS = {
    "slash": "a/b", "slashes": "//a///b/", "only a slash": "/", "encoded": "a%2Fb", "percent": "100%", "dot": ".",
    "dots": "..", "up": "../../etc/passwd", "inside": "a/../b", "query": "a?b=c&d", "fragment": "a#b", "plus": "a+b",
    "blank": " ", "blanks": " a  b ", "zeros": "007", "minus": "-0", "line": "a\nb\r\n", "tab": "\t", "nul": "a\x00b",
    "unicode": "ünïcödé/日本語", "emoji": "👩\u200d👩\u200d👧", "not normalised": "e\u0301", "normalised": "\u00e9",
    "backslash": "a\\b", "quote": "\"'", "markup": "<script>alert(1)</script>", "semicolon": "a;b",
    "right to left": "\u202ea",
    "huge number": "9" * 40, "long": "x" * LONGEST_ID, "long emoji": "🦆" * LONGEST_ID, "not a character": "\uffff",
}  # fmt: skip


@pytest.mark.parametrize("kind", ODD_IDS)
def test_any_string_is_an_id(server: Server, reader: mw.Index, topic: str, kind: str) -> None:
    """It can be added, looked at, found and removed, and is no other's."""
    name, text = ODD_IDS[kind], article(topic)
    assert server.add(name, text).json["results"][0] | {"duplicates": None} == {
        "id": name, "fate": "added", "duplicate_of": None, "similarity": None, "duplicates": None,
    }  # fmt: skip
    assert name in reader
    assert (stored(server, name)["id"], stored(server, name)["text"]) == (name, text)
    assert [hit["id"] for hit in server.post("/v1/query", {"text": text}).json["hits"]] == [name]
    assert server.get("/v1/documents?limit=1").json["documents"][0]["id"] == name
    assert remove(server, name).json == {"removed": 1}
    assert name not in reader


@pytest.mark.parametrize(
    "given",
    [
        '""',
        "null",
        "true",
        "1.5",
        "[]",
        '["a"]',
        "{}",
        str(2**63),
        str(-(2**63) - 1),
        "1e400",
        f'"{"x" * (LONGEST_ID + 1)}"',
    ],
)
def test_what_is_no_id_is_refused(server: Server, given: str) -> None:
    """Of a document, and of one that is to go."""
    for body in ('{"id": GIVEN, "text": "a b"}', '{"documents": [{"id": GIVEN, "text": "a b"}]}'):
        answer = server.post("/v1/documents", filled(body, given))
        assert (answer.status, answer.error) == (422, "bad_value"), given[:50]
    answer = server.ask("DELETE", "/v1/documents", filled('{"ids": [GIVEN]}', given))
    assert (answer.status, answer.error) == (422, "bad_value"), given[:50]


@pytest.mark.parametrize("path", ["%ff", "%c3", "%ed%a0%80", "a%fe", "%f4%90%80%80", "%c0%af"])
def test_bytes_that_are_no_text_name_no_document(server: Server, topic: str, path: str) -> None:
    """Above all not the one that is named by the sign for what can not be read."""
    text = article(topic)
    for name in ("\ufffd", "\ufffd\ufffd\ufffd", "a\ufffd"):
        server.post("/v1/documents?on_duplicate_id=replace", {"id": name, "text": text})
    for method in ("GET", "DELETE"):
        answer = server.ask(method, f"/v1/documents/{path}")
        assert (answer.status, answer.error) == (422, "bad_value")
    assert [stored(server, name)["text"] for name in ("\ufffd", "\ufffd\ufffd\ufffd", "a\ufffd")] == [text] * 3


# Texts and metadata


ODD_TEXTS = {
    "empty": "", "blank": " \n\t ", "punctuation": "... !? — …", "one word": "word", "nul": "a\x00b c\x00d e",
    "control": "a\x01b\x1b[31m c\x7f d\x85 e", "emoji": "👩\u200d👩\u200d👧 🇩🇪 🦆 " * 20,
    "lines": "a\r\nb\rc\nd\u2028e\u2029f",
    "marks": "e\u0301 ﬁ ½ ß İ ǆ " * 9, "markup": "<b>a</b> &amp; <script>x()</script>", "cjk": "你好世界" * 30,
    "right to left": "שלום עולם \u202e abc", "byte order": "\ufeffone two", "last": "\U0010ffff \uffff \ue000",
    "quotes": '"\\/\'\b\f', "one long word": "x" * 10**5,
}  # fmt: skip


@pytest.mark.parametrize("kind", ODD_TEXTS)
def test_any_text_is_stored_as_it_is(server: Server, reader: mw.Index, topic: str, kind: str) -> None:
    """To the last character, with as many shingles as it has; and a query for it is answered."""
    text = ODD_TEXTS[kind]
    assert server.add(topic, text).json["results"][0]["fate"] == "added"
    assert stored(server, topic)["text"] == text == reader.get(topic).text
    assert stored(server, topic)["shingles"] == len(SHINGLER.shingle([text])[0])
    answer = server.post("/v1/query", {"text": text})
    assert (answer.status, answer.json["hits"] == []) == (200, not len(SHINGLER.shingle([text])[0]))
    assert server.add(topic, text).json["results"][0]["fate"] == "unchanged"
    assert remove(server, topic).json == {"removed": 1}


@pytest.mark.parametrize("unit", ["x ", "ü ", "🦆 "])
def test_a_text_of_the_largest_size_is_stored(server: Server, topic: str, unit: str) -> None:
    """The size is that of its UTF-8; one byte more is too many."""
    text = unit * (LONGEST_TEXT // len(unit.encode()))
    text += "x" * (LONGEST_TEXT - len(text.encode()))
    assert server.add(topic, text).json["results"][0]["fate"] == "added"
    assert stored(server, topic)["text"] == text
    answer = server.add(f"{topic} more", text + "x")
    assert (answer.status, answer.error) == (413, "document_too_large")
    assert get(server, f"{topic} more").status == 404
    remove(server, topic)


@pytest.mark.parametrize("sent", ["\\ud800", "a\\udc00b", "\\udc00\\ud800", "\\ud800\\ud800"])
@pytest.mark.parametrize("place", ["id", "text", "metadata", "key"])
def test_half_a_character_is_refused(server: Server, place: str, sent: str) -> None:
    """A lone surrogate is no character, wherever it stands: no text can hold it."""
    document = {
        "id": f'{{"id": "{sent}", "text": "a b"}}',
        "text": f'{{"id": "half", "text": "{sent}"}}',
        "metadata": f'{{"id": "half", "text": "a b", "metadata": {{"a": ["{sent}"]}}}}',
        "key": f'{{"id": "half", "text": "a b", "metadata": {{"{sent}": 1}}}}',
    }[place]
    answer = server.post("/v1/documents", document.encode())
    assert (answer.status, answer.error) in ((400, "bad_json"), (422, "bad_value"))
    assert get(server, "half").status == 404


@pytest.mark.parametrize("given", ["null", "1", '["a"]', "{}", "true"])
def test_what_is_no_text_is_refused(server: Server, given: str) -> None:
    """Whatever it is."""
    answer = server.post("/v1/documents", filled('{"id": "text", "text": GIVEN}', given))
    assert (answer.status, answer.error) == (422, "bad_value")


METADATA: dict[str, dict[str, Any]] = {
    "empty": {}, "nested": {"a": {"b": [{"c": [1, [2, [3]]]}, {}]}},
    "kinds": {"a": None, "b": True, "c": False, "d": []},
    "unicode": {"ключ": "значение 🦆", "": "empty key", "e\u0301": "\u00e9"}, "escapes": {'"\\\n': "\x00\x1f\u2028"},
    "integers": {"a": 0, "b": -1, "c": 2**53 + 1, "d": 2**63 - 1, "e": -(2**63), "f": 2**64 - 1},
    "floats": {"a": 0.1, "b": 1.0, "c": 1e-320, "d": 1.7976931348623157e308, "e": 0.1 + 0.2, "f": -1.5e-7},
    "names of ours": {"id": 1, "text": 2, "metadata": {"metadata": 3}}, "many": {f"k{n}": n for n in range(1000)},
}  # fmt: skip


@pytest.mark.parametrize("kind", METADATA)
def test_metadata_comes_back_as_it_was_sent(server: Server, reader: mw.Index, topic: str, kind: str) -> None:
    """From every place that shows it, with whole numbers whole and others to the last bit."""
    about = METADATA[kind]
    assert server.add(topic, article(topic), about).status == 200
    hit = server.post("/v1/query", {"text": article(topic), "where": about}).json["hits"][0]
    listed = server.get("/v1/documents?limit=1").json["documents"][0]
    for found in (stored(server, topic)["metadata"], hit["metadata"], listed["metadata"], reader.get(topic).metadata):
        assert json.dumps(found, sort_keys=True) == json.dumps(about, sort_keys=True)
    assert server.add(topic, article(topic), about).json["results"][0]["fate"] == "unchanged"


@pytest.mark.parametrize("given", ["[]", '"a"', "1", "true", '[{"a": 1}]'])
def test_what_is_no_object_is_no_metadata(server: Server, given: str) -> None:
    """It is refused."""
    answer = server.post("/v1/documents", filled('{"id": "about", "text": "a b", "metadata": GIVEN}', given))
    assert (answer.status, answer.error) == (422, "bad_value")


@pytest.mark.parametrize("given", ["NaN", "Infinity", "-Infinity", "01", "+1", ".5", "1.", "0x10", "1_000", "nan"])
def test_what_is_no_number_of_json_is_refused(server: Server, given: str) -> None:
    """Though Python would take some of it."""
    answer = server.post("/v1/documents", filled('{"id": "about", "text": "a b", "metadata": {"a": GIVEN}}', given))
    assert (answer.status, answer.error) == (400, "bad_json")


@pytest.mark.parametrize("given", ["1e400", "-1e400", str(10**30), str(-(2**64)), "9" * 400, "9" * 5000])
def test_a_number_beyond_all_others_is_kept_or_refused(server: Server, topic: str, given: str) -> None:
    """It never becomes another number, and is never a failure of the server."""
    body = f'{{"id": "{topic}", "text": "a b", "metadata": {{"a": GIVEN}}}}'
    answer = server.post("/v1/documents", filled(body, given))
    if answer.status == 200:
        assert stored(server, topic)["metadata"] == {"a": int(given)}
    else:
        assert (answer.status, answer.error) in ((400, "bad_json"), (422, "bad_value"))
        assert get(server, topic).status == 404


# Removing


def test_a_document_is_removed_once(server: Server, reader: mw.Index, topic: str) -> None:
    """The second time it is not there; nobody finds it any more."""
    server.add(topic, article(topic))
    assert remove(server, topic).json == {"removed": 1}
    assert topic not in reader
    for again in (remove(server, topic), get(server, topic)):
        assert (again.status, again.error) == (404, "not_found")
    assert server.post("/v1/query", {"text": article(topic)}).json["hits"] == []
    assert server.add(topic, article(f"{topic}else")).json["results"][0]["fate"] == "added"


def test_a_batch_is_removed(server: Server, reader: mw.Index, topic: str) -> None:
    """As many as were there, each once; ids that had none are named, as they were given."""
    post(server, *((f"{topic} {number}", article(f"{topic}{number}"), None) for number in range(4)))
    ids = [f"{topic} 0", f"{topic} none", f"{topic} 2", f"{topic} 0", 10**15]
    answer = server.ask("DELETE", "/v1/documents", {"ids": ids})
    assert (answer.status, answer.json) == (200, {"removed": 2, "missing": [f"{topic} none", 10**15]})
    assert [f"{topic} {number}" in reader for number in range(4)] == [False, True, False, True]
    again = server.ask("DELETE", "/v1/documents", {"ids": ids[:1]})
    assert (again.status, again.json) == (200, {"removed": 0, "missing": ids[:1]})


def test_a_number_and_its_digits_are_removed_as_one(server: Server, topic: str) -> None:
    """And neither is missing."""
    name = 10**12 + next(topics)
    server.add(name, article(topic))
    answer = server.ask("DELETE", "/v1/documents", {"ids": [name, str(name)]})
    assert answer.json == {"removed": 1, "missing": []}


@pytest.mark.parametrize("body", [{"ids": []}, {}, {"ids": "a"}, {"ids": None}, {"ids": ["a"], "all": True}, [], "a"])
def test_what_names_no_documents_removes_none(server: Server, body: object) -> None:
    """It is refused."""
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
def test_what_is_neither_a_document_nor_a_batch_is_refused(server: Server, reader: mw.Index, body: object) -> None:
    """All of it: a batch with one bad document stores none."""
    answer = server.ask("POST", "/v1/documents", json.dumps(body).encode())
    assert (answer.status, answer.error) == (422, "bad_value")
    assert "a" not in reader


# Who may, and when it is there


def test_a_server_that_only_reads_changes_nothing(tmp_path: Path) -> None:
    """It says so, whatever is sent, and answers everything else; meanwhile another process may write."""
    path = tmp_path / "read.mw"
    with mw.Index.create(path, threshold=0.5, shingle="word:2", store="text") as writer:
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


def test_what_was_answered_is_there_for_everybody(server: Server, reader: mw.Index, topic: str) -> None:
    """After each answer a reader in another process sees it, and what it sees is sound."""
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


def test_what_was_answered_is_there_after_an_end_and_a_new_beginning(tmp_path: Path) -> None:
    """Another server over the same index knows all of it, and nothing else."""
    path = tmp_path / "again.mw"
    mw.Index.create(path, threshold=0.5, shingle="word:2", store="text").close()
    with serving(path) as first:
        post(first, *((f"a {number}", article(f"a{number}"), None) for number in range(10)))
        remove(first, "a 3")
    with serving(path) as second:
        found = [one["id"] for one in second.get("/v1/documents").json["documents"]]
        assert found == [f"a {number}" for number in (9, 8, 7, 6, 5, 4, 2, 1, 0)]
        assert get(second, "a 3").status == 404
