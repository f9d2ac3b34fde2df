"""Repeated passages: the kernel and the search against a dictionary of all L-grams and a DP without hashes."""

import random
from bisect import bisect_right
from itertools import pairwise
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.passages import covered_starts

import minwise as mw
from minwise import _kernel
from minwise.reference.passages import Passage, repeated_passages
from minwise.reference.units import repeated_units, unit_starts
from minwise.search import first_pass
from minwise.search import passages as search
from minwise.text.chunks import text_chunk
from minwise.text.shingling import kernel_shingler
from minwise.text.units import UnitName

SIZES = st.integers(1, 12)
ALPHABETS = st.sampled_from(["a", "ab", "abc", "abcdefgh", "漢字かな", "🙂éßа", "ⅷ½ﬁ"])


def thue_morse(length: int) -> list[str]:
    return ["ab"[number.bit_count() % 2] for number in range(length)]


@st.composite
def corpora(draw: st.DrawFn) -> list[list[str]]:
    """Documents of few different tokens: random, periodic, Thue-Morse, and edited copies of earlier ones."""
    alphabet, documents = draw(ALPHABETS), list[list[str]]()
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["random", "periodic", "morse", "copy"]))
        length = draw(st.integers(0, 60))
        if kind == "copy" and documents:
            tokens = list(draw(st.sampled_from(documents)))
            for position in draw(st.lists(st.integers(0, 59), max_size=2)):
                tokens[position : position + 1] = [draw(st.sampled_from(alphabet))]
        elif kind == "morse":
            tokens = thue_morse(length)
        elif kind == "periodic":
            tokens = (draw(st.lists(st.sampled_from(alphabet), min_size=1, max_size=5)) * length)[:length]
        else:
            tokens = draw(st.lists(st.sampled_from(alphabet), min_size=length, max_size=length))
        documents.append(tokens)
    return documents


def tokens_and_spans(text: str) -> tuple[list[str], list[tuple[int, int]]]:
    spans = mw.Shingler("word:1").spans(text)
    return [str(element) for element in spans.hashes], list(
        zip(spans.starts.tolist(), spans.ends.tolist(), strict=True)
    )


def expected_rows(texts: list[str], size: int, **options: Any) -> list[dict[str, int]]:  # noqa: ANN401 - as the reference
    tokenised = [tokens_and_spans(text) for text in texts]
    found = repeated_passages([tokens for tokens, _ in tokenised], size, **options)
    spans = [spans for _, spans in tokenised]

    def row(passage: Passage) -> dict[str, int]:
        own, other, tokens = spans[passage.document], spans[passage.other], passage.tokens
        return {
            "id": passage.document,
            "start": own[passage.start][0],
            "end": own[passage.start + tokens - 1][1],
            "other_id": passage.other,
            "other_start": other[passage.other_start][0],
            "other_end": other[passage.other_start + tokens - 1][1],
            "tokens": tokens,
        }

    return [row(passage) for passage in found]


@settings(max_examples=100, deadline=None)
@given(corpora(), SIZES, st.sampled_from([" ", ", ", "\n — "]))
def test_every_repeat_is_found_with_its_first_occurrence(documents: list[list[str]], size: int, separator: str) -> None:
    texts = [separator.join(tokens) for tokens in documents]
    assert mw.passages(texts, min_tokens=size, threads=1).to_pylist() == expected_rows(texts, size)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text(st.sampled_from("aB e\u0301\u0323ﬁ½ﷺ漢ひﾊﾞ🙂각ที่\u00ad_9"), max_size=60), max_size=4),
    st.integers(1, 4),
)
def test_offsets_are_those_of_the_original_text(texts: list[str], size: int) -> None:
    assert mw.passages(texts, min_tokens=size, threads=1).to_pylist() == expected_rows(texts, size)


@settings(max_examples=40, deadline=None)
@given(corpora(), SIZES)
def test_the_dictionary_agrees_with_a_dp_without_hashes(documents: list[list[str]], size: int) -> None:
    found = covered_starts(documents, size)
    starts = {
        (passage.document, passage.start + i): (passage.other, passage.other_start + i)
        for passage in repeated_passages(documents, size)
        for i in range(passage.tokens - size + 1)
    }
    assert starts == found


@settings(max_examples=60, deadline=None)
@given(corpora(), corpora(), SIZES)
def test_only_the_reference_corpus_counts_as_first_occurrence(
    references: list[list[str]], documents: list[list[str]], size: int
) -> None:
    against, texts = ([" ".join(tokens) for tokens in corpus] for corpus in (references, documents))
    expected = expected_rows([*against, *texts], size, references=len(against))
    found = mw.passages(
        [{"id": len(against) + number, "text": text} for number, text in enumerate(texts)],
        against=[{"id": number, "text": text} for number, text in enumerate(against)],
        min_tokens=size,
        threads=1,
    )
    assert found.to_pylist() == expected


@settings(max_examples=30, deadline=None)
@given(corpora(), SIZES)
def test_keep_order_decides_which_occurrence_is_the_first(documents: list[list[str]], size: int) -> None:
    texts = [" ".join(tokens) for tokens in documents]
    order = list(reversed(range(len(texts))))
    assert mw.passages(texts, min_tokens=size, keep="last", threads=1).to_pylist() == expected_rows(
        texts, size, order=order
    )


@pytest.mark.parametrize("size", [1, 50, 3000])
def test_long_documents_are_cut_without_a_trace(size: int) -> None:
    generator = random.Random(1)
    words = [f"wörter{number}" for number in range(900)]
    long = " ".join(generator.choices(words, k=150_000))  # pieces have 512 KiB
    texts = [long, long[500_000:1_000_000], "x " + long[30_000:900_000]]
    assert all(len(text.encode()) > 1 << 19 for text in (texts[0], texts[2]))
    found = mw.passages(texts, min_tokens=size, threads=1).to_pylist()
    assert found == expected_rows(texts, size)


@pytest.mark.parametrize("change", ["threads", "spill", "ranges", "batches"])
def test_threads_and_memory_do_not_change_the_result(change: str) -> None:
    generator = random.Random(2)
    texts = [" ".join(generator.choices("abcdefgh", k=200)) for _ in range(300)]
    texts += [text[50:300] for text in texts[:100]]
    expected = mw.passages(texts, min_tokens=6, threads=1)
    assert expected.num_rows > 100
    if change == "threads":
        found = mw.passages(texts, min_tokens=6, threads=3)
    elif change == "spill":
        with mock.patch.object(search, "WAITING_SHARE", 10**9):
            found = mw.passages(texts, min_tokens=6, threads=1)
    elif change == "ranges":
        with (
            mock.patch.object(search, "GROUPED_SHARE", 10**5),
            mock.patch.object(search, "COVER_SHARE", 10**6),
            mock.patch.object(search, "MERGED_COVERS", 2000),
        ):
            found = mw.passages(texts, min_tokens=6, threads=1)
    else:
        with mock.patch.object(first_pass, "PART_DOCUMENTS", 7):
            found = mw.passages(iter({"text": text} for text in texts), min_tokens=6, threads=1)
    assert found.to_pylist() == expected.to_pylist()


def test_a_fault_of_the_scanner_names_the_text() -> None:
    scanner = _kernel.PassageScanner(kernel_shingler(mw.Shingler("word:1")), 2, 1, 10**6, print)
    chunk = text_chunk(pa.array([b"a b c", b"\xff", b""]))
    counts, faults = scanner.scan(chunk.offsets, chunk.data, np.arange(3, dtype=np.uint32), 1)
    assert counts.tolist() == [3, 0, 0]
    assert faults == [(1, "is not valid UTF-8 at byte 0")]


UNITS = st.sampled_from(["line", "sentence", "paragraph"])
UNIT_TEXTS = st.lists(
    st.lists(st.sampled_from(["a b", "A, b", "ab", "漢", "e\u0301 é", "🙂", "..."]), max_size=12).flatmap(
        lambda parts: st.lists(
            st.sampled_from([". ", "\n", "\n\n", "\r\n", "。", '." ', " "]), min_size=len(parts), max_size=len(parts)
        ).map(lambda ends: "".join(part + end for part, end in zip(parts, ends, strict=True)))
    ),
    max_size=5,
)


def expected_units(texts: list[str], unit: UnitName, size: int = 1, **options: Any) -> list[dict[str, int]]:  # noqa: ANN401 - as the reference
    documents: list[list[list[str]]] = []
    bounds: list[list[tuple[int, int]]] = []
    for text in texts:
        starts = unit_starts(text, unit)
        units: list[list[str]] = [[] for _ in starts]
        for token, (start, _) in zip(*tokens_and_spans(text), strict=True):
            units[bisect_right(starts, start) - 1].append(token)
        documents.append(units)
        bounds.append(list(pairwise([*starts, len(text)])))

    def span(document: int, index: int) -> tuple[int, int]:
        start, end = bounds[document][index]
        whole = texts[document][start:end]
        return end - len(whole.lstrip()), start + len(whole.rstrip())

    rows: list[dict[str, int]] = []
    for found in repeated_units(documents, size, **options):
        (start, end), (other_start, other_end) = span(found.document, found.unit), span(found.other, found.other_unit)
        row = {"id": found.document, "start": start, "end": end, "other_id": found.other}
        row |= {"other_start": other_start, "other_end": other_end}
        rows.append(row | {"tokens": len(documents[found.document][found.unit]), "count": found.occurrences})
    return rows


@settings(max_examples=100, deadline=None)
@given(UNIT_TEXTS, UNITS, st.integers(1, 3), st.integers(2, 4))
def test_repeated_units_are_those_of_the_reference(texts: list[str], unit: UnitName, size: int, count: int) -> None:
    found = mw.passages(texts, unit=unit, min_tokens=size, min_count=count, threads=1)
    assert found.to_pylist() == expected_units(texts, unit, size, min_count=count)


@settings(max_examples=30, deadline=None)
@given(UNIT_TEXTS, UNIT_TEXTS, UNITS)
def test_units_of_the_reference_corpus_count_and_are_not_listed(
    against: list[str], texts: list[str], unit: UnitName
) -> None:
    found = mw.passages(
        [{"id": len(against) + number, "text": text} for number, text in enumerate(texts)],
        against=[{"id": number, "text": text} for number, text in enumerate(against)],
        unit=unit,
        threads=1,
    )
    assert found.to_pylist() == expected_units([*against, *texts], unit, references=len(against))


def test_long_units_and_documents_are_cut_without_a_trace() -> None:
    """Pieces have 512 KiB; units of more than 65,535 tokens are divided."""
    generator = random.Random(4)
    lines = [
        " ".join(generator.choices(["wörter", "漢字", "e\u0301x"], k=generator.choice([1, 5, 20]))) for _ in range(40)
    ]
    long = "".join(f"{line}. \n" for line in generator.choices(lines, k=24_000))
    assert len(long.encode()) > 2 << 19
    texts = [long, "\n".join(lines), long[300_000:]]
    assert mw.passages(texts, unit="line", threads=1).to_pylist() == expected_units(texts, "line")
    size = _kernel.MAX_UNIT_TOKENS
    endless = "a b c " * size  # three units
    found = mw.passages([endless, "a b c " * (size // 3), endless + "\nb c"], unit="line", min_tokens=3, threads=1)
    assert [row["tokens"] for row in found.to_pylist()] == [size] * 6
    assert set(found["count"].to_pylist()) == {7}
    assert (found["start"].to_pylist()[:2], found["end"].to_pylist()[:2]) == (
        [2 * size, 4 * size],
        [4 * size - 1, 6 * size - 1],
    )


def test_threads_and_memory_do_not_change_units() -> None:
    generator = random.Random(5)
    texts = [". ".join(generator.choices(["a b c", "d e", "f", "g h i j"], k=20)) for _ in range(300)]
    expected = mw.passages(texts, unit="sentence", threads=1).to_pylist()
    assert len(expected) == 20 * 300 - 4
    small: dict[str, Any] = {"WAITING_SHARE": 10**9, "GROUPED_SHARE": 10**5, "COVER_SHARE": 10**6, "MERGED_COVERS": 500}
    with mock.patch.multiple(search, **small), mock.patch.object(first_pass, "PART_DOCUMENTS", 7):
        found = mw.passages(iter({"text": text} for text in texts), unit="sentence", threads=2)
    assert found.to_pylist() == expected
