"""Equal results of fused and separate steps, of whole texts and chunks, and of any number of threads."""

from collections.abc import Iterator
from io import BytesIO, StringIO
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.schemes import scheme
from support.strategies import (
    ASCII,
    MERGING,
    SCHEMES,
    SCRAPS,
    SWITCHES,
    WORD,
    effort,
    long_texts,
    pieces,
    portable_shingler,
    seeds,
    shingle_sets,
    shinglers,
    texts,
)

import minwise as mw
from minwise import _kernel
from minwise.sketches.signatures import Bits
from minwise.text.chunks import read_texts
from minwise.text.shingling import kernel_shingler

cut_positions = st.lists(st.floats(0, 1), max_size=6)


def cut(whole: bytes, positions: list[float]) -> Iterator[bytes]:
    """Return the bytes in chunks, divided at these shares of their length, also inside a character."""
    marks = sorted({0, len(whole), *(round(share * len(whole)) for share in positions)})
    return (whole[start:end] for start, end in pairwise(marks))


@pytest.mark.parametrize("name", SCHEMES)
@effort(0.67)
@given(documents=st.lists(texts, max_size=5), shingler=shinglers(), slots=st.sampled_from((1, 7, 64, 100)), seed=seeds)
def test_fused_sketch_equals_sketch_of_shingles(
    name: str, documents: list[str], shingler: mw.Shingler, slots: int, seed: int
) -> None:
    """sketch_texts(texts) == sketch(shingle(texts)), with and without sizes, which are those of the sets."""
    sets, chosen = shingler.shingle(documents), scheme(name, slots, seed)
    expected = chosen.sketch(sets)
    fused, counted = chosen.sketch_texts(documents, shingler), chosen.sketch_texts(documents, shingler, sizes=True)
    np.testing.assert_array_equal(fused.slots, expected.slots)
    np.testing.assert_array_equal(counted.slots, expected.slots)
    np.testing.assert_array_equal(counted.sizes, sets.sizes)
    np.testing.assert_array_equal(expected.sizes, sets.sizes)


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("unit", ["to be or not to be ", "x ", "漢字"])
def test_fused_sketch_of_huge_repetition_equals_sketch_of_shingles(name: str, unit: str) -> None:
    """Few distinct shingles, each ten thousand times, as a set and as a bag."""
    for bag in (False, True):
        shingler, chosen = mw.Shingler("word:3", bag=bag), scheme(name, 256)
        expected = chosen.sketch(shingler.shingle([unit * 10_000]))
        np.testing.assert_array_equal(chosen.sketch_texts([unit * 10_000], shingler).slots, expected.slots)


@pytest.mark.parametrize("name", SCHEMES)
@given(text=texts, shingler=shinglers())
def test_fused_sketch_is_equal_without_simd(name: str, text: str, shingler: mw.Shingler) -> None:
    (chunk,) = read_texts([text])
    kind, _, densify = name.partition("+")
    rows = np.empty((1, 64), dtype=np.uint32 if name == "minhash" else np.uint64)
    sketcher = _kernel.Sketcher(scheme=kind, slots=64, seed=1, densify=densify or None, simd=False)
    sketcher.sketch_texts(portable_shingler(shingler), chunk.offsets, chunk.data, rows, None, 1)
    np.testing.assert_array_equal(rows, scheme(name, 64).sketch_texts([text], shingler).slots)


@pytest.mark.parametrize("threads", [1, 2, 5, None])
@pytest.mark.parametrize("name", SCHEMES)
def test_the_result_does_not_depend_on_threads(name: str, threads: int | None) -> None:
    """On a batch that is divided into about ten tasks of 256 KB."""
    lengths = np.random.default_rng(1).geometric(1 / 600, size=2000)
    documents = [
        f"{ASCII[i % 90 :]}{SCRAPS[i % len(SCRAPS)]}{i} " * (length // 100) for i, length in enumerate(lengths)
    ]
    shingler, chosen = mw.Shingler("word:3"), scheme(name, 64)
    sets, expected = shingler.shingle(documents, threads=1), chosen.sketch_texts(documents, shingler, threads=1)
    again = shingler.shingle(documents, threads=threads)
    np.testing.assert_array_equal(again.offsets, sets.offsets)
    np.testing.assert_array_equal(again.hashes, sets.hashes)
    np.testing.assert_array_equal(chosen.sketch(sets, threads=threads).slots, expected.slots)
    np.testing.assert_array_equal(chosen.sketch_texts(documents, shingler, threads=threads).slots, expected.slots)


@pytest.mark.parametrize("name", SCHEMES)
def test_the_result_of_sets_does_not_depend_on_threads(name: str) -> None:
    """Sets of very different sizes, divided into tasks of 32,768 elements."""
    rng = np.random.default_rng(2)
    sizes = [0, 1, 70_000, 3, 0, *rng.integers(0, 3000, size=60), 40_000]
    sets = shingle_sets(*(np.unique(rng.integers(0, WORD, size=size, dtype=np.uint64)) for size in sizes))
    one, two, five = (scheme(name, 100).sketch(sets, threads=threads).slots for threads in (1, 2, 5))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, five)


@pytest.mark.parametrize("name", MERGING)
@pytest.mark.parametrize("kind", ["word", "char", "byte"])
@effort(2.5)
@given(data=st.data(), text=texts, positions=cut_positions)
def test_stream_of_bytes_equals_the_whole(
    name: str, kind: str, data: st.DataObject, text: str, positions: list[float]
) -> None:
    """Chunks that end anywhere, also inside a character, under any settings."""
    shingler = data.draw(shinglers((kind,), bag=False))
    chosen = scheme(name, 64)
    streamed = chosen.sketch_stream(cut(text.encode(), positions), shingler)
    np.testing.assert_array_equal(streamed.slots, chosen.sketch_texts([text], shingler).slots)


@pytest.mark.parametrize("shingle", ["word:1", "char:2"])
def test_stream_may_be_divided_after_every_scrap(shingle: str) -> None:
    """Each scrap inside a word, then the end of a chunk, under each of the 64 combinations of options."""
    different = []
    for switches in product((False, True), repeat=len(SWITCHES)):
        chosen: dict[str, Any] = dict(zip(SWITCHES, switches, strict=True))
        shingler = mw.Shingler(shingle, **chosen)
        whole = shingler.shingle([f"ab{scrap}cd ef" for scrap in SCRAPS])
        for number, scrap in enumerate(SCRAPS):
            stream = _kernel.ShingleStream(kernel_shingler(shingler))
            parts = stream.push(f"ab{scrap}cd".encode()), stream.push(b" ef"), stream.finish()
            if not np.array_equal(np.unique(np.concatenate(parts)), whole[number]):
                different.append((scrap, switches))
    assert different == []


@effort(2.5)
@given(chunks=st.lists(pieces, max_size=8), shingler=shinglers(("word", "char"), bag=False))
def test_stream_of_strings_equals_the_whole(chunks: list[str], shingler: mw.Shingler) -> None:
    """Strings divided between any two characters, such as a letter and its accent."""
    streamed = mw.FastSketch(slots=64).sketch_stream(chunks, shingler)
    whole = mw.FastSketch(slots=64).sketch_texts(["".join(chunks)], shingler)
    np.testing.assert_array_equal(streamed.slots, whole.slots)


@given(text=texts, shingler=shinglers(bag=False))
def test_stream_of_single_bytes_equals_the_whole(text: str, shingler: mw.Shingler) -> None:
    """A chunk per byte, with empty chunks between them."""
    data = text[:200].encode()
    chunks = (chunk for i in range(len(data)) for chunk in (data[i : i + 1], b""))
    streamed = mw.MinHash(slots=16).sketch_stream(chunks, shingler)
    np.testing.assert_array_equal(streamed.slots, mw.MinHash(slots=16).sketch_texts([data], shingler).slots)


@effort(0.33)
@given(text=long_texts, positions=cut_positions, shingler=shinglers(bag=False))
def test_stream_of_a_long_text_equals_the_whole(text: str, positions: list[float], shingler: mw.Shingler) -> None:
    """With very long words and scratch buffers that end at different positions."""
    streamed = mw.FastSketch(slots=64).sketch_stream(cut(text.encode(), positions), shingler)
    whole = mw.FastSketch(slots=64).sketch_texts([text], shingler)
    np.testing.assert_array_equal(streamed.slots, whole.slots)


@given(text=texts, bits=st.sampled_from((1, 8, 32)))
def test_open_files_equal_the_whole(text: str, bits: Bits) -> None:
    """An open text or binary file is a stream; slots are packed at the end."""
    chosen = mw.FastSketch(slots=64, bits=bits)
    whole = chosen.sketch_texts([text]).slots
    np.testing.assert_array_equal(chosen.sketch_stream(StringIO(text, newline="")).slots, whole)
    np.testing.assert_array_equal(chosen.sketch_stream(BytesIO(text.encode())).slots, whole)
