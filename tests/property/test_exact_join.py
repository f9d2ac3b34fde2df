"""Exact join: exactly the pairs that comparing all sets finds, with the same similarities to the bit."""

import json
from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.random_corpora import Pairs, Truth, all_pairs, rows, texts
from support.strategies import effort

import minwise as mw
from minwise import reference
from minwise.search import exact_join
from minwise.settings import RunLimits

from .test_promises import listed

Sets = list[frozenset[int]]

# Tenths, and fractions of small numbers: sets reach these exactly, so the rounding of a division decides.
TENTHS = tuple(tenth / 10 for tenth in range(1, 11))
FRACTIONS = sorted({part / whole for whole in range(2, 14) for part in range(1, whole + 1)})
thresholds = (
    st.sampled_from(TENTHS)
    | st.sampled_from(FRACTIONS)
    | st.sampled_from(FRACTIONS[:-1]).map(lambda value: float(np.nextafter(value, 1)))
    | st.sampled_from(FRACTIONS).map(lambda value: float(np.nextafter(value, 0)))
    | st.floats(0.01, 1)
)


@st.composite
def families(draw: st.DrawFn) -> Sets:
    """Draw small sets, and variants of one set: copies, subsets, supersets, and sets that differ a little."""
    many = draw(st.sampled_from((2, 6, 25)))
    sets: list[frozenset[int]] = draw(st.lists(st.frozensets(st.integers(0, many), max_size=many), max_size=12))
    size = draw(st.sampled_from((0, 1, 10, 300)))
    rng = draw(st.randoms(use_true_random=False))
    base = rng.sample(range(10**6), size)
    for _ in range(draw(st.integers(0, 12)) if size else 0):
        cut, new = rng.randrange(size + 1), rng.choice((0, 0, 1, size // 20, size))
        kind = rng.choice((base, base[:cut], base[cut:], rng.sample(base, cut)))
        sets.append(frozenset(kind) | {10**6 + rng.randrange(2 * size) for _ in range(new)})
    rng.shuffle(sets)
    return sets


def found_pairs(source: Any, **options: Any) -> Pairs:  # noqa: ANN401 - any source and settings
    """Return the pairs of the exact join, by document number; each pair once, in document order."""
    table = mw.pairs(source, exact=True, **options)
    found = {(row["left"], row["right"]): row["similarity"] for row in table.to_pylist()}
    assert len(found) == table.num_rows
    assert list(found) == sorted(found)
    return found


@effort(2)
@given(sets=families(), threshold=thresholds, kind=st.sampled_from((int, str, None)))
@example(sets=[frozenset(), frozenset()], threshold=0.1, kind=int)
@example(sets=[frozenset({1})] * 9, threshold=1.0, kind=str)
@example(sets=[frozenset({1}), frozenset({1, 2}), frozenset({2}), frozenset()], threshold=0.5, kind=int)
@example(sets=[frozenset(range(9)), frozenset(range(10))], threshold=0.9, kind=int)
def test_pairs_of_sets_are_those_of_comparing_all_with_all(sets: Sets, threshold: float, kind: type | None) -> None:
    """Sets of integers, of strings, and `ShingleSets`; with equal, empty, tiny and nested ones."""
    source = (
        mw.ShingleSets.from_sets(sets) if kind is None else [[kind(element) for element in members] for members in sets]
    )
    assert found_pairs(source, shingle="set", threshold=threshold) == all_pairs(list(sets), threshold)


@effort(2)
@given(
    sentences=st.lists(st.lists(st.sampled_from("abc"), max_size=14), max_size=12),
    threshold=thresholds,
    bag=st.booleans(),
)
@example(sentences=[["a"] * 5, ["a"] * 4, ["a"] * 4], threshold=0.75, bag=True)
@example(sentences=[["a"], ["a", "b"], [], ["b", "a", "b"]], threshold=0.1, bag=False)
def test_pairs_of_texts_are_those_of_comparing_all_with_all(
    sentences: list[list[str]], threshold: float, bag: bool
) -> None:
    """With few different words, so that shingles repeat; bags: Σ min / Σ max of the counts of each shingle."""
    given = [" ".join(words) for words in sentences]
    counts = [Counter(reference.shingle_strings(text, "word:2")) for text in given]
    if not bag:
        counts = [Counter(set(count)) for count in counts]
    expected = {}
    for left, right in combinations(range(len(given)), 2):
        shared, union = (counts[left] & counts[right]).total(), (counts[left] | counts[right]).total()
        if shared and shared / union >= threshold:
            expected[left, right] = shared / union
    source = [{"text": text} for text in given]
    assert found_pairs(source, shingle="word:2", bag=bag, threshold=threshold) == expected


@pytest.mark.parametrize("threshold", [0.01, *TENTHS])
def test_sets_of_hundreds(threshold: float) -> None:
    """Hundreds of sets of up to hundreds of elements, most of them common and some in one set only."""
    rng = np.random.default_rng(round(100 * threshold))
    sets: Sets = []
    for _ in range(60):
        base = rng.choice(1000, size=rng.integers(1, 400), replace=False)
        sets += [frozenset(base[cut:].tolist()) for cut in rng.integers(0, 1 + len(base) // 3, size=3)]
        sets.append(frozenset([*base.tolist(), *rng.integers(10**6, 10**9, size=len(base) // 8).tolist()]))
    expected = all_pairs(sets, threshold)
    assert len(expected) >= 2
    assert found_pairs(mw.ShingleSets.from_sets(sets), threshold=threshold) == expected


@pytest.mark.parametrize("threshold", TENTHS)
@pytest.mark.parametrize("seed", range(2))
def test_bands_find_a_subset_of_the_exact_join(seed: int, threshold: float) -> None:
    """With the same similarities; the exact join finds every pair."""
    truth = Truth(texts(seed), threshold)
    options: dict[str, Any] = {"shingle": truth.shingle, "threshold": threshold}
    whole = listed(mw.pairs(rows(truth.texts), exact=True, **options))
    assert whole == truth.pairs
    assert listed(mw.pairs(rows(truth.texts), bands=20, rows=4, **options)).items() <= whole.items()


@effort(1)
@given(sets=families(), threshold=thresholds, data=st.data())
def test_the_order_of_documents_does_not_change_the_pairs(sets: Sets, threshold: float, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(sets))))
    found = found_pairs([list(sets[document]) for document in order], shingle="set", threshold=threshold)
    renamed = {tuple(sorted((order[left], order[right]))): value for (left, right), value in found.items()}
    assert renamed == all_pairs(list(sets), threshold)


def shrink(patch: pytest.MonkeyPatch, memory: int, batch_bytes: int = 400) -> None:
    """Set the memory limit of every run, also below the minimum of the setting."""
    given = RunLimits.of
    patch.setattr(RunLimits, "of", lambda *limits: replace(given(*limits), memory=memory, batch_bytes=batch_bytes))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("memory", ["256MB", "4GB", 20_000, 3000])
def test_memory_and_threads_do_not_change_the_bytes(
    memory: str | int, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes and the same report with one index or dozens, one file of sets or many."""
    truth = Truth(texts(3), 0.5)
    options: dict[str, Any] = {"shingle": truth.shingle, "threshold": 0.5, "exact": True}
    expected = mw.write_pairs(rows(truth.texts), tmp_path / "usual.jsonl", **options)
    if isinstance(memory, int):
        shrink(monkeypatch, memory)
        memory = "4GB"
    report = mw.write_pairs(rows(truth.texts), tmp_path / "other.jsonl", memory=memory, threads=threads, **options)
    assert report == expected
    assert (tmp_path / "other.jsonl").read_bytes() == (tmp_path / "usual.jsonl").read_bytes()
    found = map(json.loads, (tmp_path / "other.jsonl").read_text(encoding="utf-8").splitlines())
    assert {(int(row["left"][1:]), int(row["right"][1:])): row["similarity"] for row in found} == truth.pairs


def test_little_memory_makes_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the test above would compare a run with itself: files of sets, indexes, several files of pairs."""
    sets: Sets = [frozenset(members) for size in (1, 2) for members in combinations(range(9), size)]
    expected = all_pairs(sets, 1 / 3)
    shrink(monkeypatch, 1500, batch_bytes=1)
    monkeypatch.setattr("minwise.search.workdir.WorkDirectory.delete", lambda *_: None)
    assert found_pairs([list(members) for members in sets], shingle="set", threshold=1 / 3, work=tmp_path) == expected
    names = [path.name for path in tmp_path.iterdir()]
    files = {kind: sum(name.startswith(kind) for name in names) for kind in ("sets-", "candidates-", "proposed-")}
    assert files["sets-"] >= 4
    assert 2 <= files["candidates-"] < files["proposed-"], files


@pytest.mark.parametrize("files", [1, 2, 3])
@effort(0.3)
@given(sets=families(), threshold=thresholds)
def test_any_split_into_indexes(files: int, sets: Sets, threshold: float) -> None:
    """Pairs within an index, and between an index and every later one, are found once."""
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch, 4 * 10**9, batch_bytes=1)
        patch.setattr("minwise.search.verification.SPILL_ELEMENTS", 1)
        patch.setattr(
            exact_join._Join, "_cuts", lambda join: sorted({*range(0, len(join.files), files), len(join.files)})
        )
        found = found_pairs([list(members) for members in sets], shingle="set", threshold=threshold)
    assert found == all_pairs(list(sets), threshold)


@pytest.mark.parametrize("files", [1, 2])
def test_more_pairs_than_one_block_holds(files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of more than 4,096 sets, whose pairs an index returns in blocks: each set has a partner."""
    sets: Sets = [frozenset(range(10 * number, 10 * number + 5)) for number in range(12_000)]
    families: dict[int, list[int]] = {number: [number] for number in range(1, 12_000, 2)}
    for number in range(0, 12_000, 2):  # a near copy of the previous one, or of one in the other half
        source = number - 1 if number % 3 else (number + 6001) % 12_000
        sets[number] = frozenset([*sorted(sets[source])[1:], 10**6 + number])
        families[source].append(number)
    expected = {pair: 4 / 6 for family in families.values() for pair in combinations(sorted(family), 2)}
    shrink(monkeypatch, 256_000, batch_bytes=2**18 if files == 2 else 2**25)
    found = found_pairs([list(members) for members in sets], shingle="set", threshold=0.6, work=tmp_path)
    assert found == expected
    assert len(list(tmp_path.glob("sets-*"))) == files
