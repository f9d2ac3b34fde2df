"""Banding: keys, content hashes and candidate pairs of the kernel equal the reference bit for bit."""

from collections.abc import Iterable
from itertools import combinations, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.strategies import (
    ORACLES,
    SWITCHES,
    WORD,
    comparable,
    effort,
    elements,
    seeds,
    shingle_sets,
    shinglers,
    texts,
)

import minwise as mw
from minwise import _kernel, reference
from minwise.reference.banding import band_keys, content_hash, propose_pairs
from minwise.reference.text import _token_bytes
from minwise.search.bands import (
    EMPTY,
    FAULTY,
    FILLED,
    NO_DOCUMENT,
    Bander,
    BucketCounts,
    KeyBlock,
    band_buckets,
    cut_runs,
    unpack_pairs,
)
from minwise.search.candidates import write_proposals
from minwise.search.workdir import WorkDirectory
from minwise.settings import SearchSettings
from minwise.sketches.planning import Plan

LAYOUTS = ((1, 1), (1, 5), (4, 3), (5, 2), (13, 8), (7, 1))
SCHEMES = ("fast", "minhash")
FIRST = 16

Run = NDArray[np.uint64]


def pairs_of(
    keys: Iterable[NDArray[np.uint64]],
    members: NDArray[np.uint32],
    part: int,
    parts: int,
    max_bucket: int,
    threads: int,
    protected: int = 0,
) -> tuple[NDArray[np.uint64], BucketCounts]:
    """Return the candidate pairs of one band, ``low << 32 | high``, in row order, and the capped buckets."""
    buckets = band_buckets(keys, members, part, parts)
    rows, shared = buckets.shared(max_bucket, protected, threads)
    pairs = [low << 32 | int(high) for low, start, end in rows.tolist() for high in shared[start:end]]
    return np.array(pairs, dtype=np.uint64), BucketCounts(*buckets.counts())


def find_settings(
    layout: tuple[int, int], scheme: str, seed: int, shingler: mw.Shingler | None, verify: str = "exact"
) -> SearchSettings:
    """Return settings with this layout of bands and rows."""
    plan = Plan(threshold=0.8, bands=layout[0], rows=layout[1])
    return SearchSettings(plan=plan, shingler=shingler, scheme=scheme, seed=seed, verify=verify)


def banded(settings: SearchSettings, documents: pa.Array, threads: int = 1, batch: int = 1000) -> KeyBlock:
    """Return the keys of the documents, computed in batches of ``batch`` documents."""
    block, bander = KeyBlock.allocate(settings, len(documents)), Bander(settings)
    for start in range(0, len(documents), batch):
        assert bander.band(documents.slice(start, batch), block, threads) == []
    assert block.free == 0
    return block


def expected_keys(settings: SearchSettings, sets: list[NDArray[np.uint64]]) -> list[list[int]]:
    """Return the keys of each set by the reference, a row per document."""
    plan, oracle = settings.plan, ORACLES[settings.scheme]
    signatures = [oracle(members, plan.slots, settings.seed) for members in sets]
    return [band_keys(signature, plan.bands, plan.rows, settings.seed) for signature in signatures]


def token_hashes(text: str, shingler: mw.Shingler) -> list[int]:
    """Return the hash of every token in order, the input of the content hash."""
    normalisation = {} if shingler.kind == "byte" else {name: getattr(shingler, name) for name in SWITCHES}
    data = _token_bytes(text, shingler.kind, normalisation)
    return [reference.hash_bytes(token, reference.Domain.TOKEN, shingler.seed) for token in data]


def reference_sets(given: list[str], shingler: mw.Shingler) -> list[NDArray[np.uint64]]:
    """Return the shingle set of each text by the reference."""
    chosen = {
        name: value for name, value in shingler.settings.items() if shingler.kind != "byte" or name not in SWITCHES
    }
    return [reference.shingle_hashes(text, **chosen) for text in given]


@pytest.mark.parametrize("scheme", SCHEMES)
@effort(0.5)
@given(
    shingler=shinglers(),
    documents=st.lists(texts | st.sampled_from(("", " ", "...", "one")), min_size=1, max_size=4),
    layout=st.sampled_from(LAYOUTS),
    seed=seeds,
)
@example(shingler=mw.Shingler("word:2", bag=True), documents=["a b a b a b", "a b", ""], layout=(4, 3), seed=1)
def test_keys_and_contents_of_texts_equal_the_reference(
    scheme: str, shingler: mw.Shingler, documents: list[str], layout: tuple[int, int], seed: int
) -> None:
    """Words, characters and bytes, sets and bags, odd and even rows; empty documents are in no bucket."""
    documents = [comparable(text, shingler) for text in documents]
    settings = find_settings(layout, scheme, seed, shingler)
    block = banded(settings, pa.array(documents))
    sets = reference_sets(documents, shingler)
    assert block.keys.T.tolist() == expected_keys(settings, sets)
    assert [tuple(row) for row in block.contents.tolist()] == [
        content_hash(token_hashes(text, shingler), shingler.seed) for text in documents
    ]
    assert block.states.tolist() == [FILLED if len(members) else EMPTY for members in sets]


@pytest.mark.parametrize("scheme", SCHEMES)
@given(sets=st.lists(elements, min_size=1, max_size=5), layout=st.sampled_from(LAYOUTS), seed=seeds)
@example(sets=[set(), {0}, {WORD}, set()], layout=(4, 3), seed=1)
def test_keys_and_contents_of_sets_equal_the_reference(
    scheme: str, sets: list[set[int]], layout: tuple[int, int], seed: int
) -> None:
    """The content of a set is its elements in ascending order."""
    members = shingle_sets(*map(sorted, sets))
    settings = find_settings(layout, scheme, seed, None)
    block = banded(settings, members.to_arrow(), batch=2)
    assert block.keys.T.tolist() == expected_keys(settings, list(members))
    assert [tuple(row) for row in block.contents.tolist()] == [content_hash(sorted(items), seed) for items in sets]
    assert block.states.tolist() == [FILLED if items else EMPTY for items in sets]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("shingle", ["word:3", "char:4", "byte:5"])
def test_empty_documents_have_no_key(scheme: str, shingle: str) -> None:
    """2⁶⁴−1 in every band and no content, between documents that have both."""
    settings = find_settings((5, 3), scheme, 1, mw.Shingler(shingle))
    block = banded(settings, pa.array(["a text with words", "", "another one of them"]))
    assert block.states.tolist() == [FILLED, EMPTY, FILLED]
    assert block.keys[:, 1].tolist() == [WORD] * 5
    assert WORD not in block.keys[:, [0, 2]]
    assert block.contents[1].tolist() == [0, 0]
    assert block.contents[0].tolist() != block.contents[2].tolist()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_null_and_invalid_texts_are_in_no_bucket(scheme: str) -> None:
    """A reason is reported only for the one that is not UTF-8."""
    settings = find_settings((5, 3), scheme, 1, mw.Shingler("word:2"))
    documents = pa.array([b"one two three", None, b"one \xff two", b""])
    block = KeyBlock.allocate(settings, 4)
    [(row, reason)] = Bander(settings).band(documents, block, 1)
    assert row == 2
    assert "UTF-8" in reason
    assert block.states.tolist() == [FILLED, FAULTY, FAULTY, EMPTY]
    assert (block.keys[:, 1:] == WORD).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_packed_slots_are_the_low_sixteen_bits(scheme: str) -> None:
    documents = [" ".join(f"w{number % 37}" for number in range(start, start + 20)) for start in range(30)]
    settings = find_settings((5, 3), scheme, 7, mw.Shingler("word:2"), verify="signature")
    block = banded(settings, pa.array(documents))
    sets = reference_sets(documents, mw.Shingler("word:2"))
    slots = np.array([ORACLES[scheme](members, 15, 7) for members in sets])
    assert block.packed is not None
    np.testing.assert_array_equal(block.packed, reference.pack_bits(slots, 16))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kind", ["text", "set"])
def test_the_result_does_not_depend_on_threads_and_batches(scheme: str, kind: str) -> None:
    """On documents of very different lengths."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(0, 40, size=300)
    sizes[::50] = 5000
    shingler = mw.Shingler("word:2")
    documents = pa.array([" ".join(f"w{word}" for word in rng.integers(0, 99, size=size)) for size in sizes])
    if kind == "set":
        documents = shingler.shingle(documents).to_arrow()
    settings = find_settings((13, 3), scheme, 1, shingler if kind == "text" else None, verify="signature")
    alone, together = banded(settings, documents), banded(settings, documents, threads=4, batch=7)
    for name in ("keys", "contents", "states"):
        np.testing.assert_array_equal(getattr(alone, name), getattr(together, name), err_msg=name)
    assert alone.packed is not None
    assert together.packed is not None
    filled = alone.states == FILLED  # the slots of other documents are undefined
    np.testing.assert_array_equal(alone.packed[filled], together.packed[filled])


def pair_tuples(pairs: Run) -> list[tuple[int, int]]:
    """Return packed pairs as tuples."""
    low, high = unpack_pairs(pairs)
    return list(zip(low.tolist(), high.tolist(), strict=True))


# Few keys, so that buckets are large, distributed over the whole range so that parts end between them.
band_columns = st.lists(
    st.sampled_from((0, 1, 2**62, 2**63 - 1, 2**63, 2**63 + 1, WORD - 2, WORD - 1, WORD)) | st.integers(0, WORD),
    max_size=90,
)


@effort(1)
@given(
    keys=band_columns,
    parts=st.integers(1, 9),
    pieces=st.integers(1, 40),
    max_bucket=st.sampled_from((FIRST, FIRST + 1, 20, 2000)),
    threads=st.sampled_from((1, 4)),
)
@example(keys=[5] * 60, parts=3, pieces=7, max_bucket=20, threads=1)
@example(keys=[WORD] * 60, parts=3, pieces=7, max_bucket=20, threads=1)
@example(keys=[], parts=2, pieces=1, max_bucket=20, threads=1)
def test_pairs_of_all_parts_are_those_of_the_reference(
    keys: list[int], parts: int, pieces: int, max_bucket: int, threads: int
) -> None:
    """For any number of key ranges and pieces; each part ascends, and no pair is in two of them."""
    column, members = np.array(keys, dtype=np.uint64), np.arange(len(keys), dtype=np.uint32)
    cut = [column[start : start + pieces] for start in range(0, len(keys), pieces)]
    found: list[tuple[int, int]] = []
    for part in range(parts):
        proposed, _ = pairs_of(iter(cut), members, part, parts, max_bucket, threads)
        assert (np.diff(proposed.astype(object)) > 0).all()
        found.extend(pair_tuples(proposed))
    assert len(found) == len(set(found))
    assert set(found) == propose_pairs([[key] for key in keys], max_bucket, FIRST)


@given(keys=band_columns, data=st.data(), max_bucket=st.sampled_from((FIRST, 20)))
def test_pairs_use_the_ranks_of_members(keys: list[int], data: st.DataObject, max_bucket: int) -> None:
    """Renumbered by a keep order, without excluded members: the first sixteen are the first by rank."""
    order = data.draw(st.permutations(range(len(keys))))
    absent = data.draw(st.sets(st.sampled_from(range(len(keys))))) if keys else set()
    members = np.array([NO_DOCUMENT if i in absent else number for i, number in enumerate(order)], dtype=np.uint32)
    proposed, _ = pairs_of([np.array(keys, dtype=np.uint64)], members, 0, 1, max_bucket, 1)
    by_number = {order[i]: key for i, key in enumerate(keys) if i not in absent}
    renumbered = [[by_number.get(number, WORD)] for number in range(len(keys))]
    assert set(pair_tuples(proposed)) == propose_pairs(renumbered, max_bucket, FIRST)


@given(keys=band_columns, split=st.integers(0, 40), max_bucket=st.sampled_from((FIRST, 20)))
@example(keys=[1] * 40, split=18, max_bucket=20)
def test_pairs_of_two_tables_are_those_of_the_reference(keys: list[int], split: int, max_bucket: int) -> None:
    buckets = band_buckets([np.array(keys, dtype=np.uint64)], np.arange(len(keys), dtype=np.uint32), 0, 1)
    rows, shared = buckets.shared_across(max_bucket, split, 2)
    found = [(low, int(high)) for low, start, end in rows.tolist() for high in shared[start:end]]
    assert found == sorted(propose_pairs([[key] for key in keys], max_bucket, FIRST, split))
    everything = propose_pairs([[key] for key in keys], 2000, FIRST, split)
    assert buckets.counts()[2] == len(everything) - len(found)


@given(keys=band_columns, parts=st.integers(1, 9), max_bucket=st.sampled_from((FIRST, 20)))
@example(keys=[1, 2], parts=1, max_bucket=20)
@example(keys=[1, 2**63], parts=2, max_bucket=20)
def test_bucket_counts_do_not_depend_on_the_parts(keys: list[int], parts: int, max_bucket: int) -> None:
    """Buckets above the cap, their members and the omitted pairs, by definition; a bucket has at least two members."""
    column, members = np.array(keys, dtype=np.uint64), np.arange(len(keys), dtype=np.uint32)
    counts = [pairs_of([column], members, part, parts, max_bucket, 1)[1] for part in range(parts)]
    sizes = [keys.count(key) for key in set(keys) - {WORD}]
    large = [size for size in sizes if size > max_bucket]
    kept = [FIRST * (FIRST - 1) // 2 + (size - FIRST) * FIRST for size in large]
    left_out = sum(size * (size - 1) // 2 for size in large) - sum(kept)
    assert tuple(map(sum, zip(*(count[:3] for count in counts), strict=True))) == (len(large), sum(large), left_out)
    largest = max(count.largest for count in counts)
    assert largest == max(sizes, default=0) or max(sizes) == 1


runs_of_words = st.lists(
    st.lists(st.integers(0, 60) | st.sampled_from((2**32, WORD)), max_size=30).map(sorted), max_size=6
).map(lambda lists: [np.array(words, dtype=np.uint64) for words in lists])
limits = st.integers(1, 50)


@effort(1.5)
@given(runs=runs_of_words, most=limits, after=st.none() | st.integers(0, 61))
def test_cuts_go_through_every_run_and_never_split_a_value(runs: list[Run], most: int, after: int | None) -> None:
    """The slices of a run are consecutive to its end; all values of a later cut are larger than those before."""
    cuts = list(cut_runs(runs, most, after))
    for number, run in enumerate(runs):
        passed = int(np.count_nonzero(run <= np.uint64(after))) if after is not None else 0
        slices = [cut[number] for cut in cuts]
        starts, ends = [piece.start for piece in slices], [piece.stop for piece in slices]
        assert [*starts, len(run)] == [passed, *ends] if cuts else passed == len(run)
    values = [np.concatenate([run[piece] for run, piece in zip(runs, cut, strict=True)]) for cut in cuts]
    assert all(earlier.max() < later.min() for earlier, later in pairwise(values))


@given(
    runs=st.lists(st.sets(st.integers(0, 200), max_size=60).map(sorted), min_size=1, max_size=5),
    most=st.integers(5, 40),
)
def test_a_cut_of_distinct_runs_respects_its_limit(runs: list[list[int]], most: int) -> None:
    """At least one entry per run is allowed."""
    arrays = [np.array(run, dtype=np.uint64) for run in runs]
    sizes = [sum(piece.stop - piece.start for piece in cut) for cut in cut_runs(arrays, most)]
    assert all(size <= max(most, len(runs)) for size in sizes)


def test_a_long_run_among_short_ones_does_not_make_cuts_small() -> None:
    """With equal shares the long run would give 10 entries to each of 1,000 cuts."""
    short = [np.arange(number, 20_000, 2_000, dtype=np.uint64) for number in range(99)]
    cuts = list(cut_runs([np.arange(10_000, dtype=np.uint64) * np.uint64(2), *short], 1000))
    assert len(cuts) < 30


@effort(1)
@given(
    columns=st.lists(st.lists(st.integers(0, 12), min_size=40, max_size=40), max_size=5),
    most=st.integers(1, 300),
    after=st.none() | st.integers(0, 41),
    loaded=st.sets(st.integers(0, 4)),
    threads=st.sampled_from((1, 4)),
)
@example(columns=[], most=1, after=None, loaded=set(), threads=1)
@example(columns=[[0] * 40] * 3, most=1, after=None, loaded={1}, threads=4)
def test_proposals_are_the_union_of_all_bands(
    columns: list[list[int]], most: int, after: int | None, loaded: set[int], threads: int
) -> None:
    """Ascending across pieces, each pair once, only smaller sides after ``after``, for any amount held in memory."""
    members, expected = np.arange(40, dtype=np.uint32), set()
    with TemporaryDirectory() as folder:
        proposals, work = _kernel.Proposals(after), WorkDirectory(Path(folder), durable=False)
        for number, column in enumerate(columns):
            keys = [np.array(column, dtype=np.uint64)]
            write_proposals(work, f"{number}", *band_buckets(keys, members, 0, 1).shared(FIRST, 0, 1))
            expected.update(pairs_of(keys, members, 0, 1, FIRST, 1)[0].tolist())
            piece = work.open(f"proposed-{number}")
            rows, shared = ((piece.position(name), piece.length(name)) for name in ("firsts", "members"))
            proposals.add(str(piece.path), rows, shared, number in loaded)
        pieces = []
        while (piece_of_pairs := proposals.next_pairs(most, threads)) is not None:
            pieces.append(piece_of_pairs.tolist())
        proposed = sum(work.open(name).header["pairs"] for name in work.names("proposed-"))
    assert [pair for piece in pieces for pair in piece] == sorted(
        pair for pair in expected if after is None or pair >> 32 > after
    )
    assert all(pieces)
    assert proposals.passed == proposed


@given(keys=band_columns, protected=st.integers(0, 90), max_bucket=st.sampled_from((FIRST, 20)))
def test_protected_members_are_not_paired_with_each_other(keys: list[int], protected: int, max_bucket: int) -> None:
    """The pairs of the reference whose larger side is not protected; the capped buckets are the same."""
    column, members = [np.array(keys, dtype=np.uint64)], np.arange(len(keys), dtype=np.uint32)
    every, counts = pairs_of(column, members, 0, 1, max_bucket, 1)
    some, same_counts = pairs_of(column, members, 0, 1, max_bucket, 1, protected)
    assert pair_tuples(some) == [pair for pair in pair_tuples(every) if pair[1] >= protected]
    assert counts == same_counts


def test_split_undoes_packing() -> None:
    """For numbers up to the largest document number."""
    pairs = list(combinations((0, 1, 2**31, 2**32 - 2), 2))
    assert pair_tuples(np.array([low << 32 | high for low, high in pairs], dtype=np.uint64)) == pairs
