"""Cuts of repeated passages: kernel and search against a dictionary of all L-grams, and what every cut must keep."""

import random
from itertools import islice, pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minwise as mw
from minwise import _kernel
from minwise.reference.cuts import cut_text
from minwise.reference.passages import repeated_passages
from minwise.results import CutResult
from minwise.search import cuts as search
from minwise.search import repeats
from minwise.text.chunks import text_chunk
from minwise.text.shingling import kernel_shingler

SNAPS = st.sampled_from([None, "line", "sentence"])
# Words that meet without spaces, of one character that is several tokens, with marks, and everything between words.
LETTERS = st.sampled_from("aBc1e\u0301\u0323½⑴漢字ひﾊﾞ🙂각ที่ .,-!?。！()“”\n\r\t\u2028\x85\u00ad")
SEPARATORS = st.sampled_from([" ", ", ", ".\n", ".\n\n", "! ", "\r\n- ", " — ", "。", "\n\t# "])


def spans_of(text: str) -> tuple[list[str], list[tuple[int, int]]]:
    spans = mw.Shingler("word:1").spans(text)
    bounds = zip(spans.starts.tolist(), spans.ends.tolist(), strict=True)
    return [str(element) for element in spans.hashes], list(bounds)


@st.composite
def covered_texts(draw: st.DrawFn) -> tuple[str, list[bool]]:
    """A text, and a flag for each of its tokens."""
    words = st.lists(st.sampled_from(["a", "b", "ab", "漢", "é", "x½", "10"]), max_size=25)
    texts = st.one_of(st.text(LETTERS, max_size=60), words.map(lambda some: draw(SEPARATORS).join(some)))
    text = draw(texts)
    runs = draw(st.lists(st.integers(1, 12), min_size=1, max_size=12))
    flags = [bool(number % 2) for number, length in enumerate(runs) for _ in range(length)]
    count = len(spans_of(text)[1])
    return text, (flags * (count // len(flags) + 1))[:count]


def kernel_cuts(
    texts: list[str], covered: list[list[tuple[int, int]]], snap: str | None
) -> list[list[tuple[int, int]]]:
    chunk = text_chunk(pa.array(texts, pa.large_string()))
    flat = np.array([side for spans in covered for span in spans for side in span], dtype=np.uint32)
    counts = np.array(list(map(len, covered)), dtype=np.int64)
    shingler = kernel_shingler(mw.Shingler("word:1"))
    bounds, numbers, _ = _kernel.cut_passages(shingler, chunk.offsets, chunk.data, flat, counts, snap, 1)
    rows = iter(bounds.reshape(-1, 4).tolist())
    return [[(row[0], row[1]) for row in islice(rows, number)] for number in numbers.tolist()]


def merged(tokens: list[tuple[int, int]], flags: list[bool]) -> list[tuple[int, int]]:
    """Return the spans of covered tokens, merged where they touch or overlap."""
    spans: list[tuple[int, int]] = []
    for (start, end), flag in zip(tokens, flags, strict=True):
        if flag and spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], end))
        elif flag:
            spans.append((start, end))
    return spans


def without(text: str, cuts: list[tuple[int, int]]) -> str:
    for start, end in reversed(cuts):
        text = text[:start] + text[end:]
    return text


@settings(max_examples=300, deadline=None)
@given(covered_texts(), SNAPS)
def test_the_kernel_cuts_what_the_reference_cuts(case: tuple[str, list[bool]], snap: str | None) -> None:
    text, flags = case
    _, tokens = spans_of(text)
    spans = merged(tokens, flags)
    covered = [any(start <= first and last <= end for start, end in spans) for first, last in tokens]
    assert kernel_cuts([text], [spans], snap) == [cut_text(text, tokens, covered, snap)]


@settings(max_examples=300, deadline=None)
@given(covered_texts(), SNAPS)
def test_the_words_that_remain_are_those_that_are_not_cut(case: tuple[str, list[bool]], snap: str | None) -> None:
    """No word is glued to another, torn, or cut without being covered."""
    text, flags = case
    words, tokens = spans_of(text)
    spans = merged(tokens, flags)
    (cuts,) = kernel_cuts([text], [spans], snap)
    assert all(left[1] <= right[0] for left, right in pairwise(cuts))
    is_cut = [any(start <= first and last <= end for start, end in cuts) for first, last in tokens]
    assert spans_of(without(text, cuts))[0] == [word for word, cut in zip(words, is_cut, strict=True) if not cut]
    covered = [any(start <= first and last <= end for start, end in spans) for first, last in tokens]
    assert all(covered[number] for number, cut in enumerate(is_cut) if cut)


def test_a_long_text_is_cut_in_pieces_without_a_trace() -> None:
    generator = random.Random(1)
    words = generator.choices(["one", "zwö", "漢", "four.\n", "five!"], k=150_000)  # pieces have 512 KiB
    text = " ".join(words)
    _, tokens = spans_of(text)
    flags = [
        generator.random() < 0.9 or number % 1000 == 0 for number in range(len(tokens) // 50 + 1) for _ in range(50)
    ]
    spans = merged(tokens, flags[: len(tokens)])
    starts = np.array([start for start, _ in spans])
    ends = np.array([end for _, end in spans])
    at = np.searchsorted(starts, [start for start, _ in tokens], side="right") - 1
    covered = (at >= 0) & (ends[at] >= [end for _, end in tokens])
    for snap in (None, "sentence"):
        assert kernel_cuts(["x", text], [[], spans], snap)[1] == cut_text(text, tokens, covered.tolist(), snap)


@st.composite
def corpora(draw: st.DrawFn) -> list[str]:
    """Texts with few words: random, periodic, Thue-Morse, and edited copies of earlier ones."""
    alphabet = draw(st.sampled_from(["ab", "abcd", "漢字かな", "🙂éßа", "x½"]))
    separator, documents = draw(SEPARATORS), list[list[str]]()
    for _ in range(draw(st.integers(1, 4))):
        length, kind = draw(st.integers(0, 40)), draw(st.sampled_from(["random", "periodic", "morse", "copy"]))
        if kind == "copy" and documents:
            words = list(draw(st.sampled_from(documents)))
            for position in draw(st.lists(st.integers(0, 39), max_size=2)):
                words[position : position + 1] = [draw(st.sampled_from(alphabet))]
        elif kind == "morse":
            words = ["ab"[number.bit_count() % 2] for number in range(length)]
        elif kind == "periodic":
            words = (draw(st.lists(st.sampled_from(alphabet), min_size=1, max_size=4)) * length)[:length]
        else:
            words = draw(st.lists(st.sampled_from(alphabet), min_size=length, max_size=length))
        documents.append(words)
    return [separator.join(words) for words in documents]


def expected_cuts(texts: list[str], size: int, snap: str | None, **options: Any) -> list[list[tuple[int, int]]]:  # noqa: ANN401
    """Return the cuts of each text by a dictionary of all L-grams."""
    tokenised = [spans_of(text) for text in texts]
    covered = [[False] * len(tokens) for _, tokens in tokenised]
    for passage in repeated_passages([words for words, _ in tokenised], size, **options):
        flags = covered[passage.document]
        flags[passage.start : passage.start + passage.tokens] = [True] * passage.tokens
    return [
        cut_text(text, tokens, flags, snap) for text, (_, tokens), flags in zip(texts, tokenised, covered, strict=True)
    ]


def cut(texts: list[str], size: int, **options: Any) -> CutResult:  # noqa: ANN401
    rows = [{"id": number, "text": text} for number, text in enumerate(texts)]
    result: CutResult = mw.dedup(rows, passages=True, min_tokens=size, **{"threads": 1, **options})
    return result


@settings(max_examples=40, deadline=None)
@given(corpora(), st.integers(1, 6), SNAPS, st.integers(0, 8), st.booleans())
def test_cuts_are_those_of_all_repeats_and_can_be_put_back(
    texts: list[str], size: int, snap: str | None, min_left: int, last: bool
) -> None:
    keep, order = ("last", list(reversed(range(len(texts))))) if last else ("first", None)
    result = cut(texts, size, snap=snap, min_left=min_left, keep=keep)
    cuts: list[list[tuple[int, int]]] = [[] for _ in texts]
    rows = result.cuts.to_pylist()
    for row in rows:
        cuts[row["id"]].append((row["start"], row["end"]))
        assert row["text"] == texts[row["id"]][row["start"] : row["end"]]
        assert row["tokens"] == len(spans_of(row["text"])[0])
    assert cuts == expected_cuts(texts, size, snap, order=order)
    lefts = [without(text, own) for text, own in zip(texts, cuts, strict=True)]
    removed = [number for number, own in enumerate(cuts) if own and len(spans_of(lefts[number])[0]) < max(1, min_left)]
    assert {row["id"]: row["text"] for row in result.removed.to_pylist()} == {at: lefts[at] for at in removed}
    kept = {row["id"]: row["text"] for row in result.kept.to_pylist()}
    assert kept == {number: left for number, left in enumerate(lefts) if number not in removed}


@settings(max_examples=40, deadline=None)
@given(corpora(), st.integers(1, 4), SNAPS)
def test_the_witness_of_a_cut_is_the_first_occurrence_of_what_it_begins_with(
    texts: list[str], size: int, snap: str | None
) -> None:
    for row in cut(texts, size, snap=snap).cuts.to_pylist():
        own, other = texts[row["id"]], texts[row["other_id"]]
        words = spans_of(other[row["other_start"] : row["other_end"]])[0]
        assert len(words) >= size
        assert (row["other_id"], row["other_start"]) < (row["id"], row["end"])
        tail = [word for word, (_, end) in zip(*spans_of(own), strict=True) if end > row["start"]]
        assert tail[0] in words


@pytest.mark.parametrize("period", [1, 2, 7, 60])
def test_periodic_text_keeps_its_first_period(period: int) -> None:
    words = [f"w{number % period}" for number in range(400)]
    (left,) = cut([" ".join(words)], 50).kept.column("text").to_pylist()
    assert left.split() == words[:period]


def test_a_repeated_document_is_one_cut_and_is_removed() -> None:
    result = cut(["One two. Three four!", "\n one two; three four "], 4)
    assert [(row["id"], row["start"], row["end"]) for row in result.cuts.to_pylist()] == [(1, 0, 22)]
    assert [(row["reason"], row["left"]) for row in result.removed.to_pylist()] == [("nothing is left", 0)]


def test_nothing_is_cut_out_of_the_reference_corpus_or_for_the_sake_of_other_documents() -> None:
    texts = ["a b c d x", "a b c d y", "p q r s", "p q r s t"]
    result = cut(texts, 4, against=[{"id": 9, "text": "z p q r s"}])
    assert [row["text"] for row in result.kept.to_pylist()] == ["a b c d x", "a b c d y", "t"]
    assert {row["other_id"] for row in result.cuts.to_pylist()} == {9}


@pytest.mark.parametrize("change", ["threads", "memory", "batches"])
def test_threads_and_memory_do_not_change_the_output(change: str, tmp_path: Path) -> None:
    generator = random.Random(2)
    texts = [" ".join(generator.choices("abcdefgh", k=100)) for _ in range(200)]
    texts += [text[20:150] + "\n" + text[:50] for text in texts[:100]]

    def write(name: str, **options: Any) -> dict[str, bytes]:  # noqa: ANN401
        cut(texts, 5, min_left=20, **options).write(tmp_path / name)
        paths = (path for path in (tmp_path / name).rglob("*") if path.is_file())
        found = {path.relative_to(tmp_path / name).as_posix(): path.read_bytes() for path in paths}
        return {file: data for file, data in found.items() if file not in ("run.json", "report.html")}

    expected = write("one")
    assert {"cuts.parquet", "documents.parquet", "removed.parquet", "report.json"} < expected.keys()
    assert pq.read_table(tmp_path / "one" / "cuts.parquet").num_rows > 200
    if change == "threads":
        assert write("other", threads=3) == expected
    elif change == "memory":
        with (
            mock.patch.object(search, "WAITING_SHARE", 10**6),
            mock.patch("minwise.search.passages.MERGED_COVERS", 100),
        ):
            assert write("other") == expected
    else:
        with mock.patch("minwise.search.first_pass.PART_DOCUMENTS", 7):
            assert write("other") == expected


def test_counts_of_repeats_are_exact_up_to_the_number_that_is_held() -> None:
    texts = ["one two three four. x", "y one two three four five", "z! One two three, four: w", "five six seven five"]
    first = cut(texts * 2, 4).report["most_repeated"][0]
    assert (first["repeats"], first["sources"], first["tokens"]) == (5, 1, 4)
    assert (first["first"]["id"], first["document"]["id"], first["text"]) == (0, 1, "one two three four")
    with mock.patch.object(repeats, "COUNTED_AT_ONCE", 2):
        assert cut(texts * 2, 4).report["most_repeated"][0] == first


@given(st.lists(st.lists(st.sampled_from(["a b c", "d", "e f", "g h i j", "k l"]), max_size=8), min_size=1, max_size=8))
def test_of_units_the_first_occurrence_of_each_is_left(documents: list[list[str]]) -> None:
    all_lines = [(number, line) for number, lines in enumerate(documents) for line in lines]
    first = {line: number for number, line in reversed(all_lines)}
    expected = [
        [line for line in dict.fromkeys(lines) if first[line] == number] for number, lines in enumerate(documents)
    ]
    result = mw.dedup(["\n".join(lines) for lines in documents], passages=True, unit="line")
    kept = [text.splitlines() for text in result.kept.column("text").to_pylist()]
    left = [lines for lines, given_lines in zip(expected, documents, strict=True) if lines or not given_lines]
    assert kept == left


def test_of_rare_units_nothing_is_cut() -> None:
    texts = ["a b\nc d", "a b\ne f", "c d\na b"]
    result = mw.dedup(texts, passages=True, unit="line", min_count=3)
    assert result.kept.column("text").to_pylist() == ["a b\nc d", "e f", "c d"]
