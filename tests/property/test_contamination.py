"""Evaluation items in documents: the kernel and the search against a dictionary of all n-grams."""

import random
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minwise as mw
from minwise import _kernel
from minwise.reference.contamination import contaminated_documents, item_ngrams, rare_ngrams
from minwise.search import contamination as search
from minwise.search import first_pass
from minwise.text.chunks import text_chunk

SIZES = st.integers(5, 9)
ALPHABETS = st.sampled_from(["a", "ab", "abcdefgh", "漢字かな", "🙂éßа", "ⅷ½ﬁ"])
SHARES = st.sampled_from([0.1, 0.25, 1 / 3, 0.5, 0.6, 1.0])


@st.composite
def corpora(draw: st.DrawFn) -> tuple[list[list[str]], list[list[str]]]:
    """Documents and items of few different tokens: random ones, and documents with edited pieces of items."""
    alphabet = draw(ALPHABETS)

    def sequence(most: int) -> list[str]:
        return draw(st.lists(st.sampled_from(alphabet), max_size=most))

    items = [sequence(20) for _ in range(draw(st.integers(1, 4)))]
    items += [list(draw(st.sampled_from(items)))] if draw(st.booleans()) else []
    documents = []
    for _ in range(draw(st.integers(1, 6))):
        piece = list(draw(st.sampled_from(items)))[draw(st.integers(0, 3)) :]
        for position in draw(st.lists(st.integers(0, 19), max_size=2)):
            piece[position : position + 1] = [draw(st.sampled_from(alphabet))]
        documents.append([*sequence(6), *piece, *sequence(6)])
        documents += [documents[-1]] if draw(st.booleans()) else []
    return documents, items


def tokens_and_spans(text: str) -> tuple[list[str], list[tuple[int, int]]]:
    spans = mw.Shingler("word:1").spans(text)
    offsets = zip(spans.starts.tolist(), spans.ends.tolist(), strict=True)
    return [str(element) for element in spans.hashes], list(offsets)


def expected_hits(texts: list[str], items: list[str], size: int, **options: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - as the reference
    own, others = ([tokens_and_spans(text) for text in side] for side in (texts, items))
    found = contaminated_documents([tokens for tokens, _ in own], [tokens for tokens, _ in others], size, **options)
    hits = []
    for hit in found:
        (_, spans), (tokens, places) = own[hit.document], others[hit.item]
        runs = [
            {
                "start": spans[start][0],
                "end": spans[start + count - 1][1],
                "eval_start": places[place][0],
                "eval_end": places[place + count - 1][1],
            }
            for start, count, place in hit.runs
        ]
        shares = {"share": hit.matched / hit.rare, "score": hit.covered / len(tokens)}
        hits.append({"id": hit.document, "eval_id": hit.item, "ngrams": hit.matched, **shares, "spans": runs})
    return hits


def hits(texts: list[str], items: list[str], size: int, **options: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - settings
    found = mw.decontaminate(texts, items, ngram=size, threads=1, **options).hits
    rows: list[dict[str, Any]] = found.select(["id", "eval_id", "ngrams", "share", "score", "spans"]).to_pylist()
    return rows


def checkable(items: list[str], size: int) -> bool:
    return any(item_ngrams(tokens_and_spans(item)[0], size) for item in items)


@settings(max_examples=150, deadline=None)
@given(corpora(), SIZES, SHARES, st.sampled_from([" ", ", ", "\n — "]))
def test_every_hit_is_found_with_its_spans(
    corpus: tuple[list[list[str]], list[list[str]]], size: int, share: float, separator: str
) -> None:
    documents, items = corpus
    texts, evals = ([separator.join(tokens) for tokens in side] for side in (documents, items))
    if not checkable(evals, size):
        with pytest.raises(mw.MinwiseError, match="evals must have an item that can be checked"):
            hits(texts, evals, size)
        return
    rule = {"min_share": share, "common_share": 1.0}
    assert hits(texts, evals, size, **rule) == expected_hits(texts, evals, size, **rule)


@settings(max_examples=80, deadline=None)
@given(corpora(), SIZES, st.sampled_from([0.01, 0.3, 0.5]), st.integers(0, 3))
def test_common_ngrams_do_not_count(
    corpus: tuple[list[list[str]], list[list[str]]], size: int, share: float, count: int
) -> None:
    documents, items = corpus
    texts, evals = ([" ".join(tokens) for tokens in side] for side in (documents, items))
    if not checkable(evals, size):
        return
    rule: dict[str, Any] = {"min_share": 0.3, "common_share": share, "common_count": count}
    assert hits(texts, evals, size, **rule) == expected_hits(texts, evals, size, **rule)
    own, others = ([tokens_and_spans(text)[0] for text in side] for side in (texts, evals))
    rare = rare_ngrams(own, others, size, share, count)
    uncheckable = mw.decontaminate(texts, evals, ngram=size, threads=1, **rule).uncheckable["eval_id"].to_pylist()
    assert uncheckable == [
        number for number, item in enumerate(others) if not rare.intersection(item_ngrams(item, size))
    ]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.text(st.sampled_from("aB e\u0301\u0323ﬁ½ﷺ漢ひﾊﾞ🙂각ที่\u00ad_9"), max_size=60), min_size=1, max_size=3),
    st.integers(0, 5),
    st.integers(5, 7),
)
def test_offsets_are_those_of_the_original_text(texts: list[str], start: int, size: int) -> None:
    items = [f"{text[start:]} {text}" for text in texts]
    if not checkable(items, size):
        return
    rule = {"min_share": 0.01, "common_share": 1.0}
    assert hits(texts, items, size, **rule) == expected_hits(texts, items, size, **rule)


def long_texts() -> tuple[list[str], list[str]]:
    """Documents of several pieces of 512 KiB, with items at their cuts."""
    generator = random.Random(1)
    words = [f"wörter{number}" for number in range(900)]
    long = " ".join(generator.choices(words, k=150_000))
    items = [" ".join(generator.choices(words, k=count)) for count in (5, 7, 12, 13, 40)]
    places = [generator.randrange(len(long)) for _ in range(20)]
    places += range(400_000, 530_000, 13_000)
    planted = list(long)
    for number, at in enumerate(sorted(places, reverse=True)):
        planted[at:at] = f" {items[number % len(items)]} "
    return ["".join(planted), long], items


def test_long_documents_are_cut_without_a_trace() -> None:
    texts, items = long_texts()
    rule = {"min_share": 0.1, "common_share": 1.0}
    found = hits(texts, items, 13, **rule)
    assert found == expected_hits(texts, items, 13, **rule)
    assert sum(len(hit["spans"]) for hit in found) >= 25


@pytest.mark.parametrize("change", ["threads", "spill", "blocks", "parts"])
def test_threads_and_memory_do_not_change_the_result(change: str) -> None:
    generator = random.Random(2)
    items = [" ".join(generator.choices("abcd", k=30)) for _ in range(60)]
    texts = [
        " ".join([*generator.choices("abcd", k=20), *item.split()[: generator.randrange(30)]]) for item in items * 5
    ]
    rule: dict[str, Any] = {"ngram": 7, "min_share": 0.1, "common_share": 0.2, "threads": 1}
    expected = mw.decontaminate(texts, items, **rule)
    assert expected.hits.num_rows > 200
    with (
        mock.patch.multiple(
            search,
            WAITING_SHARE=10**9 if change == "spill" else search.WAITING_SHARE,
            COUNTED_PAIRS=50 if change == "blocks" else search.COUNTED_PAIRS,
        ),
        mock.patch.object(first_pass, "PART_DOCUMENTS", 7 if change == "parts" else 1 << 18),
    ):
        threads = 3 if change == "threads" else 1
        source = iter({"text": text} for text in texts) if change == "parts" else texts
        found = mw.decontaminate(source, items, **{**rule, "threads": threads})
    assert found.hits.to_pylist() == expected.hits.to_pylist()
    assert found.report["items"] == expected.report["items"]


def test_faults_of_the_kernel_name_the_text() -> None:
    table = search.item_table(mw.Shingler("word:1"), 5, pa.array([b"a b c d e f", b"\xff"]))
    assert table.faults == [(1, "is not valid UTF-8 at byte 0")]
    chunk = text_chunk(pa.array([b"x a b c d e", b"\xff", b""]))
    counts, _, offsets, grams, faults = table.scan(chunk.offsets, chunk.data, 1)
    assert (counts.tolist(), offsets.tolist(), grams.tolist()) == ([6, 0, 0], [0, 1, 1, 1], [0])
    assert faults == [(1, "is not valid UTF-8 at byte 0")]
    assert _kernel.ITEM_TOKENS == 5
