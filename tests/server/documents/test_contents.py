"""Ids, texts and metadata over HTTP: valid ones are returned unchanged, others are refused."""

import json
from typing import Any

import pytest

import minwise as mw
from server.documents.articles import SHINGLER, article, filled, get, remove, stored
from server.running import Server

# Limits of ids and texts.
LONGEST_ID, LONGEST_TEXT = 1000, 10**6


@pytest.mark.parametrize(("first", "second"), [(5, "5"), ("6", 6), (-7, "-7"), (2**63 - 1, str(2**63 - 1))])
def test_a_number_and_its_digits_are_one_id(server: Server, topic: str, first: str | int, second: str | int) -> None:
    """It is returned as it was first added."""
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
    """It can be added, found and removed, and is distinct from all others."""
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
def test_invalid_ids_are_refused(server: Server, given: str) -> None:
    """When adding and when removing."""
    for body in ('{"id": GIVEN, "text": "a b"}', '{"documents": [{"id": GIVEN, "text": "a b"}]}'):
        answer = server.post("/v1/documents", filled(body, given))
        assert (answer.status, answer.error) == (422, "bad_value"), given[:50]
    answer = server.ask("DELETE", "/v1/documents", filled('{"ids": [GIVEN]}', given))
    assert (answer.status, answer.error) == (422, "bad_value"), given[:50]


@pytest.mark.parametrize("path", ["%ff", "%c3", "%ed%a0%80", "a%fe", "%f4%90%80%80", "%c0%af"])
def test_a_path_that_is_not_utf8_names_no_document(server: Server, topic: str, path: str) -> None:
    """In particular not the one named U+FFFD."""
    text = article(topic)
    for name in ("\ufffd", "\ufffd\ufffd\ufffd", "a\ufffd"):
        server.post("/v1/documents?on_duplicate_id=replace", {"id": name, "text": text})
    for method in ("GET", "DELETE"):
        answer = server.ask(method, f"/v1/documents/{path}")
        assert (answer.status, answer.error) == (422, "bad_value")
    assert [stored(server, name)["text"] for name in ("\ufffd", "\ufffd\ufffd\ufffd", "a\ufffd")] == [text] * 3


ODD_TEXTS = {
    "empty": "", "blank": " \n\t ", "punctuation": "... !? — …", "one word": "word", "nul": "a\x00b c\x00d e",
    "control": "a\x01b\x1b[31m c\x7f d\x85 e", "emoji": "👩\u200d👩\u200d👧 🇩🇪 🦆 " * 20,
    "lines": "a\r\nb\rc\nd\u2028e\u2029f",
    "marks": "e\u0301 ﬁ ½ ß İ ǆ " * 9, "markup": "<b>a</b> &amp; <script>x()</script>", "cjk": "你好世界" * 30,
    "right to left": "שלום עולם \u202e abc", "byte order": "\ufeffone two", "last": "\U0010ffff \uffff \ue000",
    "quotes": '"\\/\'\b\f', "one long word": "x" * 10**5,
}  # fmt: skip


@pytest.mark.parametrize("kind", ODD_TEXTS)
def test_any_text_is_stored_unchanged(server: Server, reader: mw.Index, topic: str, kind: str) -> None:
    """With its number of shingles, and it can be queried."""
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
    """Measured in UTF-8; one more byte is refused."""
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
def test_unpaired_surrogates_are_refused(server: Server, place: str, sent: str) -> None:
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
def test_invalid_texts_are_refused(server: Server, given: str) -> None:
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
def test_metadata_is_returned_unchanged(server: Server, reader: mw.Index, topic: str, kind: str) -> None:
    """By all routes, with exact numbers."""
    about = METADATA[kind]
    assert server.add(topic, article(topic), about).status == 200
    hit = server.post("/v1/query", {"text": article(topic), "where": about}).json["hits"][0]
    listed = server.get("/v1/documents?limit=1").json["documents"][0]
    for found in (stored(server, topic)["metadata"], hit["metadata"], listed["metadata"], reader.get(topic).metadata):
        assert json.dumps(found, sort_keys=True) == json.dumps(about, sort_keys=True)
    assert server.add(topic, article(topic), about).json["results"][0]["fate"] == "unchanged"


@pytest.mark.parametrize("given", ["[]", '"a"', "1", "true", '[{"a": 1}]'])
def test_metadata_that_is_not_an_object_is_refused(server: Server, given: str) -> None:
    answer = server.post("/v1/documents", filled('{"id": "about", "text": "a b", "metadata": GIVEN}', given))
    assert (answer.status, answer.error) == (422, "bad_value")


@pytest.mark.parametrize("given", ["NaN", "Infinity", "-Infinity", "01", "+1", ".5", "1.", "0x10", "1_000", "nan"])
def test_numbers_that_are_not_json_are_refused(server: Server, given: str) -> None:
    """Although Python would accept some of them."""
    answer = server.post("/v1/documents", filled('{"id": "about", "text": "a b", "metadata": {"a": GIVEN}}', given))
    assert (answer.status, answer.error) == (400, "bad_json")


@pytest.mark.parametrize("given", ["1e400", "-1e400", str(10**30), str(-(2**64)), "9" * 400, "9" * 5000])
def test_a_huge_number_is_kept_or_refused(server: Server, topic: str, given: str) -> None:
    """It is never changed, and never an internal error."""
    body = f'{{"id": "{topic}", "text": "a b", "metadata": {{"a": GIVEN}}}}'
    answer = server.post("/v1/documents", filled(body, given))
    if answer.status == 200:
        assert stored(server, topic)["metadata"] == {"a": int(given)}
    else:
        assert (answer.status, answer.error) in ((400, "bad_json"), (422, "bad_value"))
        assert get(server, topic).status == 404
