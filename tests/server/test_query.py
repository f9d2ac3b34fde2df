"""Queries over HTTP: the hits of the library, with the spans of shared passages."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.index_oracle import storing

import minwise as mw
from minwise.index import Answer
from server.running import Server, serving

SHINGLER = mw.Shingler("word:2")
WORDS = [f"word{number}" for number in range(60)]
SETTINGS: dict[str, Any] = {"threshold": 0.4, "shingle": "word:2", "max_bucket": 16}
# Characters of one, two and four bytes, composed ones, and ones whose length changes by normalisation.
ODD = "Straße 🦆🦆 ﬁne café e\u0301t\u0301e\u0301 ½ İstanbul 日本語 ǅ Ω\u0302 — \x00 end; "


def texts() -> dict[str, str]:
    """Return documents of many degrees of similarity by id."""
    near = {
        f"near {count}": " ".join([*WORDS[:count], *(f"other{count}x{n}" for n in range(60 - count))])
        for count in range(20, 61, 4)
    }
    return {
        **near,
        "again": near["near 40"],
        "moved": " ".join([*WORDS[30:], *WORDS[:30]]),
        "signs": " ".join(WORDS).title().replace(" ", " -- "),
        "odd": ODD + " ".join(WORDS[:50]) + " " + ODD,
        "odd too": ODD * 3,
        "within": " ".join(f"before{n}" for n in range(8)) + " " + " ".join(WORDS[10:50]) + " after" * 40,
        "stranger": " ".join(f"stranger{n}" for n in range(60)),
        "empty": "",
    }  # fmt: skip


METADATA: dict[str, dict[str, Any] | None] = {
    name: None if "odd" in name else {"name": name, "long": len(text) > 400, "one": 1, "deep": {"a": [1, None]}}
    for name, text in texts().items()
}
ASKED = [
    *texts().values(), " ".join(WORDS), " ".join(WORDS[:25]), "🦆 " + " ".join(WORDS[:45]), ODD + "more words",
    " ".join(WORDS).upper(), "nothing like it", " \n ", " ".join(WORDS[40:]) + "\n" + " ".join(WORDS[:40]),
]  # fmt: skip


def build(path: Path, **settings: Any) -> None:  # noqa: ANN401 - settings of an index
    """Create an index with all documents, some of them removed, replaced or moved to a segment."""
    with mw.Index.create(path, **{**SETTINGS, **settings}) as index:
        index.add(["gone", "odd"], [" ".join(WORDS), "replaced soon"])
        index.remove(["gone"])
        index.flush()
        index.add(list(texts()), list(texts().values()), list(METADATA.values()), on_duplicate_id="replace")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create an index that stores texts."""
    path = tmp_path_factory.mktemp("query") / "news.mw"
    build(path, store_text=True)
    return path


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """Serve all tests of this file, none of which changes anything."""
    with serving(folder, "--read-only") as running:
        yield running


@pytest.fixture(scope="module")
def index(folder: Path) -> Iterator[mw.Index]:
    """Open the same index without a server."""
    with mw.Index.open(folder) as opened:
        yield opened


# Ids that an index may contain although no client may send them, and a text deep inside another.
ODD_IDS: list[str | int] = [2**70, -(2**70), "x" * 3000]
ODD_TEXT = " ".join(f"odd{number}" for number in range(60))
INSIDE = " ".join(f"middle{number}" for number in range(4000))


@pytest.fixture(scope="module")
def near_copies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, mw.Index]]:
    """Serve another index: forty near-copies, a long document, and unusual ids."""
    path = tmp_path_factory.mktemp("near_copies") / "news.mw"
    with mw.Index.create(path, **SETTINGS, store_text=True) as index:
        index.add(range(40), [f"{' '.join(WORDS)} {number}" for number in range(40)])
        index.add(["long"], ["🦆 before " * 1500 + INSIDE + " after" * 2000])
        index.add(ODD_IDS, [ODD_TEXT] * 3)
        with serving(path, "--read-only") as running:
            yield running, index


def ask(server: Server, text: str, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - options of a query
    """Return the response to a query."""
    answer = server.post("/v1/query", {"text": text, **options})
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json
    assert set(found) == {"hits", "truncated", "truncated_by", "left_out", "capped_buckets", "threshold"}
    for hit in found["hits"]:
        assert set(hit) == {"id", "similarity", "exact", "metadata", "snippet", "spans"}
    return found


def assert_same(found: dict[str, Any], expected: Answer) -> None:
    """Check for the same documents in the same order with the same similarities."""
    assert [(hit["id"], hit["similarity"], hit["metadata"], hit["exact"]) for hit in found["hits"]] == [
        (hit.id, hit.similarity, hit.metadata, hit.exact) for hit in expected
    ]
    for name in ("truncated", "truncated_by", "left_out", "capped_buckets"):
        assert found[name] == getattr(expected, name)


# Hits


@pytest.mark.parametrize(
    "options",
    [{}, {"top": 1}, {"top": 3}, {"top": 100}, {"threshold": 0.4}, {"threshold": 0.7, "top": 2}, {"threshold": 1}],
)
def test_hits_are_those_of_the_library(server: Server, index: mw.Index, options: dict[str, Any]) -> None:
    """For every text, number of hits and threshold."""
    numbers = set()
    for text in ASKED:
        found = ask(server, text, **options)
        assert_same(found, index.query(text, **options))
        assert found["threshold"] == options.get("threshold", 0.4)
        numbers.add(len(found["hits"]))
    assert len(numbers) > 1


@pytest.mark.parametrize(
    "where",
    [
        None, {}, {"one": 1}, {"one": 1.0}, {"one": True}, {"one": "1"}, {"name": "near 40"}, {"long": True, "one": 1},
        {"deep": {"a": [1, None]}}, {"deep": {"a": [1]}}, {"none": None}, {"name": None},
    ],
)  # fmt: skip
def test_filters_are_those_of_the_library(server: Server, index: mw.Index, where: dict[str, Any] | None) -> None:
    for text in ASKED[:12]:
        assert_same(ask(server, text, where=where), index.query(text, where=where))


def test_some_filters_match(server: Server) -> None:
    """So that the test above compares something."""
    text = " ".join(WORDS)
    everything = ask(server, text, top=100)["hits"]
    assert [hit["id"] for hit in ask(server, text, where={"name": "near 40"})["hits"]] == ["near 40"]
    assert 0 < len(ask(server, text, where={"one": 1}, top=100)["hits"]) < len(everything)


def test_a_truncated_search_is_reported(near_copies: tuple[Server, mw.Index]) -> None:
    """With the reason: forty near-copies are in buckets that hold sixteen."""
    server, index = near_copies
    found = ask(server, " ".join(WORDS), top=20)
    assert_same(found, index.query(" ".join(WORDS), top=20))
    assert (found["truncated"], found["truncated_by"]) == (True, "bucket")
    fewer = ask(server, " ".join(WORDS), top=20, max_candidates=5)
    assert_same(fewer, index.query(" ".join(WORDS), top=20, max_candidates=5))
    assert (fewer["truncated_by"], len(fewer["hits"])) == ("candidates", 5)


def test_without_a_threshold_the_answer_says_what_it_cannot_know(server: Server, index: mw.Index) -> None:
    for text in ASKED[:12]:
        found = server.post("/v1/query", {"text": text, "threshold": 0, "top": 5}).json
        expected = index.query(text, 0, 5)
        assert [(hit["id"], hit["similarity"], hit["recall"]) for hit in found["hits"]] == [
            (hit.id, hit.similarity, hit.recall) for hit in expected
        ]
        assert (found["threshold"], found["complete_above"]) == (0, expected.complete_above)
        assert found["complete_above"] is not None


def test_a_query_without_hits(server: Server, index: mw.Index) -> None:
    for text in ("", "nothing like it", "...", "\x00"):
        assert ask(server, text) == {
            "hits": [], "truncated": False, "truncated_by": None, "left_out": 0, "capped_buckets": 0, "threshold": 0.4
        }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "about"),
    [
        ({"threshold": 0.39}, "threshold"), ({"threshold": -1}, "threshold"),
        ({"threshold": 1.01}, "threshold"), ({"threshold": "0.5"}, "threshold"), ({"threshold": True}, "threshold"),
        ({"top": 0}, "top"), ({"top": 101}, "top"), ({"top": -1}, "top"), ({"top": 1.5}, "top"), ({"top": "1"}, "top"),
        ({"top": None}, "top"), ({"top": 10**30}, "top"), ({"where": []}, "where"), ({"where": "a"}, "where"),
        ({"passages": 1}, "passages"), ({"passages": None}, "passages"), ({"text": None}, "text"),
        ({"text": 5}, "text"),
        ({"more": 1}, "more"), ({"id": "a"}, "id"),
    ],
)  # fmt: skip
def test_invalid_queries_are_refused(server: Server, options: dict[str, Any], about: str) -> None:
    """The message names the field."""
    answer = server.post("/v1/query", {"text": "a b c", **options})
    assert (answer.status, answer.error) == (422, "bad_value")
    assert about in answer.json["error"]["message"]


def test_a_threshold_below_that_of_the_index_is_refused_with_both_values(server: Server) -> None:
    message = server.post("/v1/query", {"text": "a b", "threshold": 0.25}).json["error"]["message"]
    assert "0.25" in message
    assert "0.4" in message


# Passages


def shared_spans(server: Server, index: mw.Index, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return every hit with its stored text."""
    for hit in ask(server, text, top=100)["hits"]:
        stored = index.get(hit["id"]).text
        assert isinstance(stored, str)
        yield stored, hit


@pytest.mark.parametrize("text", ASKED, ids=range(len(ASKED)))
def test_spans_are_those_of_a_comparison(server: Server, index: mw.Index, text: str) -> None:
    for stored, hit in shared_spans(server, index, text):
        compared = mw.compare(text, stored, shingler=SHINGLER)
        assert hit["similarity"] == compared.similarity
        assert hit["spans"]["query"] == [list(span) for span in compared.spans_left]
        assert hit["spans"]["document"] == [list(span) for span in compared.spans_right]


def pairs_of(text: str) -> set[tuple[str, str]]:
    """Return the shingles of a text, computed independently."""
    words = text.split()
    return set(pairwise(words))


def test_spans_contain_exactly_the_shared_shingles(server: Server, index: mw.Index) -> None:
    text = " ".join([*WORDS[:20], "new", *WORDS[20:50], "newer"])
    plain = [
        (stored, hit) for stored, hit in shared_spans(server, index, text) if stored.isascii() and stored.islower()
    ]
    assert len(plain) > 5
    for stored, hit in plain:
        both = pairs_of(text) & pairs_of(stored)
        for side, whole in (("query", text), ("document", stored)):
            within = [pairs_of(whole[start:end]) for start, end in hit["spans"][side]]
            assert set().union(*within) == both
            assert all(whole[start:end] == whole[start:end].strip() for start, end in hit["spans"][side])


def test_spans_are_counted_in_code_points(server: Server) -> None:
    """An emoji is one, although it is two UTF-16 units and four bytes."""
    shared = " ".join(WORDS[:50])
    (hit,) = [hit for hit in ask(server, "🦆🦆🦆 ü " + shared, top=100)["hits"] if hit["id"] == "odd"]
    assert hit["spans"]["query"][-1] == [6, 6 + len(shared)]
    assert hit["spans"]["document"] == [[len(ODD), len(ODD) + len(shared)]]


@pytest.mark.parametrize("text", ASKED, ids=range(len(ASKED)))
def test_a_snippet_is_a_part_of_the_stored_text(server: Server, index: mw.Index, text: str) -> None:
    """With the spans in it relative to its start."""
    for stored, hit in shared_spans(server, index, text):
        snippet = hit["snippet"]
        start, end = snippet["start"], snippet["start"] + len(snippet["text"])
        assert stored[start:end] == snippet["text"] != ""
        assert snippet["length"] == len(stored)
        cut = [
            (max(s, start) - start, min(e, end) - start) for s, e in hit["spans"]["document"] if s < end and e > start
        ]
        assert [tuple(span) for span in snippet["spans"]] == cut != []


def test_a_snippet_shows_a_passage_deep_inside_a_long_text(near_copies: tuple[Server, mw.Index]) -> None:
    (hit,) = ask(near_copies[0], INSIDE)["hits"]
    assert hit["id"] == "long"
    assert 0 < len(hit["snippet"]["text"]) < 2000
    start, end = hit["snippet"]["spans"][0]
    assert hit["snippet"]["text"][start:end] in INSIDE


def test_passages_are_optional(server: Server, index: mw.Index) -> None:
    for text in ASKED[:6]:
        found = ask(server, text, passages=False)
        assert_same(found, index.query(text))
        assert all(hit["spans"] is None and hit["snippet"] is None for hit in found["hits"])


# Other indexes


@pytest.mark.parametrize(("store", "exact"), [("shingles", True), ("sketch", False)])
def test_an_index_without_texts_finds_the_same_documents(tmp_path: Path, store: str, exact: bool) -> None:
    """And reports whether similarities are exact."""
    path = tmp_path / "plain.mw"
    build(path, **storing(store))
    with mw.Index.open(path) as index, serving(path, "--read-only") as server:
        for text in ASKED:
            found = ask(server, text)
            assert_same(found, index.query(text))
            assert all(hit["spans"] is None and hit["snippet"] is None for hit in found["hits"])
            assert all(hit["exact"] is exact for hit in found["hits"])
        document = server.get("/v1/documents/near%2040").json
        shingles = len(SHINGLER.shingle([texts()["near 40"]])[0])
        assert (document["text"], document["shingles"]) == (None, shingles if exact else None)
        listed = server.get("/v1/documents?limit=1").json["documents"][0]
        assert (listed["snippet"], listed["shingles"]) == (None, 0 if exact else None)


@pytest.mark.parametrize(("shingle", "bag"), [("char:5", True), ("byte:5", False), ("word:1", True)])
def test_spans_of_other_shingles(tmp_path: Path, shingle: str, bag: bool) -> None:
    """Are code points too, also those of byte shingles."""
    path = tmp_path / "other.mw"
    build(path, shingle=shingle, bag=bag, store_text=True)
    with mw.Index.open(path) as index, serving(path, "--read-only") as server:
        for text in ASKED:
            found = ask(server, text)
            assert_same(found, index.query(text))
            for hit in found["hits"]:
                stored = str(index.get(hit["id"]).text)
                assert_spans_fit(text, hit["spans"]["query"])
                assert_spans_fit(stored, hit["spans"]["document"])
                assert_spans_fit(hit["snippet"]["text"], hit["snippet"]["spans"])
                if hit["similarity"] == 1 and text == stored:
                    assert hit["spans"]["document"] == hit["spans"]["query"]
                    assert hit["spans"]["query"][-1][1] <= len(text)
                    assert "byte" not in shingle or hit["spans"]["query"] == [[0, len(text)]]


def assert_spans_fit(text: str, spans: list[list[int]]) -> None:
    """Check that spans are within the text, in order and not empty."""
    flat = [place for span in spans for place in span]
    assert flat == sorted(flat)
    assert all(0 <= start < end <= len(text) for start, end in spans)


def test_documents_that_are_not_utf8(tmp_path: Path) -> None:
    """Are found, without a text."""
    path, text = tmp_path / "bytes.mw", " ".join(WORDS)
    with mw.Index.create(path, **{**SETTINGS, "shingle": "byte:4"}, store_text=True) as index:
        index.add(["bytes", "text"], [text.encode() + bytes(range(256)), text])
    with serving(path, "--read-only") as server:
        whole, broken = ask(server, text)["hits"]
        assert (whole["id"], whole["spans"]["query"]) == ("text", [[0, len(text)]])
        assert (broken["id"], broken["spans"], broken["snippet"]) == ("bytes", None, None)
        found = server.get("/v1/documents/bytes").json
        assert (found["id"], found["text"], found["shingles"] > 256) == ("bytes", None, True)
        assert [one["snippet"] is None for one in server.get("/v1/documents").json["documents"]] == [False, True]


def test_ids_that_exceed_the_limits_of_requests(near_copies: tuple[Server, mw.Index]) -> None:
    """Are returned unchanged."""
    server, _ = near_copies
    assert [hit["id"] for hit in ask(server, ODD_TEXT)["hits"]] == ODD_IDS
    listed = server.get("/v1/documents?limit=3").json["documents"]
    assert [one["id"] for one in listed] == ODD_IDS[::-1]
    assert server.get(f"/v1/documents/{2**70}").json["id"] == 2**70


def test_containment_finds_what_holds_the_text_or_lies_in_it(server: Server, folder: Path) -> None:
    """With the side that lies in the other, and the probability of finding it; other queries have neither."""
    body = {"text": " ".join(WORDS[:40]), "threshold": 0.9, "measure": "containment", "passages": False}
    hits = server.post("/v1/query", body).json["hits"]
    with mw.Index.open(folder) as index:
        answer = index.query(str(body["text"]), 0.9, measure="containment")
    assert [(hit["id"], hit["similarity"], hit["contained"], hit["recall"]) for hit in hits] == [
        (hit.id, hit.similarity, hit.contained, hit.recall) for hit in answer
    ]
    assert {"signs", "near 44"} <= {hit["id"] for hit in hits if hit["contained"] == "query"}
    plain = server.post("/v1/query", {"text": body["text"], "passages": False}).json["hits"]
    assert plain
    assert not {"contained", "recall"} & {key for hit in plain for key in hit}
    assert server.post("/v1/query", {**body, "measure": "cosine"}).status == 422
