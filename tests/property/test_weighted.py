"""Weighted similarity: counts, weights, sketches, pairs and removals are those of the reference."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.expect import error_message
from support.random_corpora import texts
from support.strategies import effort

import minwise as mw
from minwise import _kernel
from minwise._internal.array_files import write_array_file
from minwise.errors import ConfigError, FormatError, MismatchError
from minwise.reference.weighting import (
    ONE,
    rarity_weight,
    table_counts,
    table_slot,
    weighted_similarity,
    weighted_sketch,
)
from minwise.sketches.frequencies import KIND, FrequencyTable, table_bits

Sets = list[frozenset[int]]

# 200 bands of one slot miss a pair of similarity 0.3 with a probability of 0.7²⁰⁰ < 10⁻³⁰.
SURE: dict[str, Any] = {"bands": 200, "rows": 1}
WEIGHTED: dict[str, Any] = {"discount": "common", "shingle": "set", **SURE}

# Prefixes of the files of a work directory, the last written first.
LATER_FILES = ("star", "verified", "common", "proposed-", "candidates-", "keys-", "frequencies", "sets")

families = st.lists(st.frozensets(st.integers(0, 40), max_size=25), min_size=1, max_size=25)
elements = st.frozensets(st.integers(0, 2**64 - 1), max_size=60)


def hashes(sets: Sets) -> list[list[int]]:
    hashed = mw.ShingleSets.from_sets([list(members) for members in sets])
    return [hashed[row].tolist() for row in range(len(sets))]


def weights_of(sets: list[list[int]]) -> Callable[[int], int]:
    """Return the weights of elements by their frequency among distinct sets that are not empty."""
    distinct = {tuple(sorted(members)) for members in sets if members}
    bits = table_bits(sum(map(len, distinct)))
    counts = table_counts(distinct, bits)
    return lambda element: rarity_weight(int(counts[table_slot(element, bits)]), len(distinct))


def true_pairs(sets: Sets, threshold: float) -> dict[tuple[int, int], float]:
    hashed = hashes(sets)
    weight = weights_of(hashed)
    found = {}
    for right, second in enumerate(hashed):
        for left, first in enumerate(hashed[:right]):
            similarity = weighted_similarity(first, second, weight)
            if similarity >= threshold:
                found[left, right] = similarity
    return found


@effort(1)
@given(sets=st.lists(elements, max_size=8), bits=st.integers(1, 12))
def test_counts_and_weights_equal_the_reference(sets: list[frozenset[int]], bits: int) -> None:
    table = _kernel.Frequencies(bits)
    for members in sets:
        table.add(np.array(sorted(members), dtype=np.uint64), 2)
    counts = table_counts(sets, bits)
    assert (table.counts() == counts).all()
    asked = np.array([element for members in sets for element in members], dtype=np.uint64)
    expected = [rarity_weight(int(counts[table_slot(int(one), bits)]), len(sets)) / ONE for one in asked]
    assert _kernel.Weights(counts, len(sets), 2).of(asked).tolist() == expected


@effort(1)
@given(
    members=elements,
    slots=st.sampled_from([1, 2, 3, 16, 63, 64, 100, 256]),
    seed=st.integers(0, 9),
    low=st.integers(1, 300),
)
@example(members=frozenset(), slots=4, seed=1, low=1)
@example(members=frozenset([0]), slots=256, seed=1, low=300)
@example(members=frozenset(range(1000)), slots=100, seed=1, low=7)
def test_sketches_equal_the_reference(members: frozenset[int], slots: int, seed: int, low: int) -> None:
    counts = (np.arange(64, dtype=np.uint32) * 7 + low) % 300
    sketcher = _kernel.Sketcher(scheme="fast", slots=slots, seed=seed, weights=_kernel.Weights(counts, 300, 1))
    row = np.zeros((1, slots), dtype=np.uint64)
    offsets = np.array([0, len(members)], dtype=np.int64)
    sketcher.sketch_sets(offsets, np.array(sorted(members), dtype=np.uint64), row, None, 1)
    expected = weighted_sketch(members, lambda one: rarity_weight(int(counts[table_slot(one, 6)]), 300), slots, seed)
    assert row[0].tolist() == expected.tolist()


@effort(1)
@given(sets=families, threshold=st.sampled_from([0.3, 0.5, 0.8, 1.0]), exact=st.booleans())
@example(sets=[frozenset(range(10)), frozenset(range(1, 10)), frozenset(range(10))], threshold=0.3, exact=False)
@example(sets=[frozenset(), frozenset({1}), frozenset({1}), frozenset({1, 2})], threshold=0.1, exact=True)
def test_pairs_are_those_of_comparing_all_with_all(sets: Sets, threshold: float, exact: bool) -> None:
    found_by: dict[str, Any] = {"exact": True} if exact else SURE
    listed = [list(members) for members in sets]
    table = mw.pairs(listed, threshold=threshold, discount="common", shingle="set", **found_by)
    found = {(row["left"], row["right"]): row["weighted_similarity"] for row in table.to_pylist()}
    assert found == true_pairs(sets, threshold)


@effort(1)
@given(sets=families, top=st.integers(1, 4))
def test_the_nearest_are_those_of_comparing_all_with_all(sets: Sets, top: int) -> None:
    hashed = hashes(sets)
    weight = weights_of(hashed)
    table = mw.nearest([list(members) for members in sets], top=top, discount="common", shingle="set")
    expected = []
    for left, first in enumerate(hashed):
        others = [(-weighted_similarity(first, second, weight), right) for right, second in enumerate(hashed)]
        near = sorted(pair for pair in others if pair[1] != left and pair[0] < 0)[:top]
        expected += [(left, right, -similarity, rank) for rank, (similarity, right) in enumerate(near, 1)]
    assert [tuple(row.values()) for row in table.to_pylist()] == expected


@effort(1)
@given(sets=families, threshold=st.sampled_from([0.3, 0.6]))
def test_an_audit_counts_the_weighted_pairs(sets: Sets, threshold: float) -> None:
    distinct = [list(members) for members in dict.fromkeys(sets)]
    result = mw.audit(distinct, threshold=threshold, **WEIGHTED)
    expected = true_pairs([frozenset(members) for members in distinct], threshold)
    assert (result.recall.found, result.recall.of) == (len(expected), len(expected))
    assert result.settings["discount"] == "common"


@effort(1)
@given(sets=families, threshold=st.sampled_from([0.3, 0.6]), group=st.sampled_from(["star", "components"]))
def test_removed_documents_have_both_similarities(
    sets: Sets, threshold: float, group: Literal["star", "components"]
) -> None:
    result = mw.dedup([list(members) for members in sets], threshold=threshold, group=group, **WEIGHTED)
    hashed = hashes(sets)
    weight = weights_of(hashed)
    for row in result.removed.to_pylist():
        removed, kept = hashed[row["id"]], hashed[row["kept_id"]]
        plain = weighted_similarity(removed, kept, lambda _: 1)
        assert (row["similarity"], row["weighted_similarity"]) == (plain, weighted_similarity(removed, kept, weight))
        assert group == "components" or row["weighted_similarity"] >= threshold
    if group == "star":
        kept = [number for number, keep in enumerate(result.keep) if keep]
        assert not any(left in kept and right in kept for left, right in true_pairs(sets, threshold))


def test_an_audit_weighs_fields() -> None:
    rows = [{"name": name, "city": city} for name in ("anna", "anne", "hanna") for city in ("ulm", "koeln")]
    options: dict[str, Any] = {"fields": "name:char:2 city:char:2", "weights": "name=1.5", "threshold": 0.5, **SURE}
    pairs = mw.pairs(rows, **options).num_rows
    assert pairs > 2
    assert (mw.audit(rows, **options).recall.found, mw.audit(rows, **options).recall.of) == (pairs, pairs)


@pytest.mark.parametrize("exact", [True, False])
def test_field_weights_that_are_not_whole_act_as_whole_ones_of_equal_ratios(exact: bool) -> None:
    rng = random.Random(5)
    names = ["anna", "anne", "hanna", "johann", "joanna", "ann"]
    rows = [{"id": n, "name": rng.choice(names), "city": rng.choice(["ulm", "ulmen", "koeln"])} for n in range(60)]
    rows += [{"id": 60, "name": None, "city": None}, {"id": 61, "name": "", "city": "ulm"}]
    found_by: dict[str, Any] = {"exact": True} if exact else SURE

    def found(weights: dict[str, float]) -> list[Any]:
        fields = {"name": "char:2", "city": "char:2"}
        return mw.pairs(rows, fields=fields, weights=weights, threshold=0.4, **found_by).to_pylist()

    whole = found({"name": 3, "city": 2})
    assert whole
    assert found({"name": 1.5, "city": 1}) == whole
    assert found({"name": 0.75, "city": 0.5}) == whole
    assert found({"name": 0.5, "city": 2}) == found({"name": 1, "city": 4}) != whole


def some_texts() -> list[str]:
    """Return texts of one frame, among which some are nearly equal, and other ones."""
    found = [text for seed in range(5) for text in texts(seed)]
    frame = "home about contact imprint terms and privacy all rights reserved by the owner of this page "
    return [frame + text if number % 2 else text for number, text in enumerate(found)]


def tables(**options: Any) -> list[Any]:  # noqa: ANN401 - any settings
    result = mw.dedup(some_texts(), discount="common", threshold=0.5, shingle="word:2", **options)
    return [result.keep.tolist(), result.removed.to_pylist(), result.clusters.to_pylist(), result.report]


def test_the_result_does_not_depend_on_threads_memory_and_interruptions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = tables()
    assert expected[1]
    monkeypatch.setattr("minwise.settings.MIN_MEMORY", 1)
    assert tables(threads=1, memory="1MB") == expected
    work = tmp_path / "work"
    for stages in range(1, 6):
        assert tables(work=work) == expected
        for prefix in LATER_FILES[: 2 * stages]:
            for file in work.glob(f"{prefix}*"):
                file.unlink()
    assert tables(work=work, memory="1MB") == expected


def test_common_phrases_are_listed_with_their_frequency() -> None:
    phrases = tables()[3]["common_phrases"]
    assert phrases[0]["text"].startswith("home about contact imprint")
    assert phrases[0]["documents"] > len(some_texts()) / 4
    assert phrases[0]["weight"] < 0.2
    assert [one["documents"] for one in phrases] == sorted((one["documents"] for one in phrases), reverse=True)


@pytest.mark.parametrize("slots", [4, 512])
def test_a_phrase_ends_where_the_frequency_changes_and_is_whole(slots: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames of more shingles than the searched slots are listed as well as those of fewer."""
    monkeypatch.setattr("minwise.search.common_phrases.COMMON_SLOTS", slots)
    frame = " ".join(f"frame{number}" for number in range(20))
    pages = [f"{frame} {' '.join(f'page{number // 2}word{word}' for word in range(9))}" for number in range(20)]
    pages = [f"{page} {number}" for number, page in enumerate(pages)]
    phrases = mw.dedup(pages, discount="common", shingle="word:2").report["common_phrases"]
    assert phrases[0] == {"text": frame, "documents": 20, "weight": 0.015625}
    assert all(one["documents"] == 2 for one in phrases[1:])
    assert (len(phrases) == 1) == (slots == 4)


def test_a_saved_table_gives_the_same_weights(tmp_path: Path) -> None:
    file = tmp_path / "common.frequencies"
    expected = tables(save_frequencies=file)
    again = tables(frequencies=file)
    assert again[:3] == expected[:3]
    assert again[3]["settings"]["frequencies"] == FrequencyTable.load(file).identity
    some = some_texts()[:5]
    others = mw.pairs(some, discount="common", frequencies=file, shingle="word:2", threshold=0.01, **SURE)
    own = mw.pairs(some, discount="common", shingle="word:2", threshold=0.01, **SURE)
    assert others.num_rows == own.num_rows > 0
    assert others.column(2) != own.column(2)


def test_a_table_of_other_elements_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "common.frequencies"
    tables(save_frequencies=file)

    def use(shingle: str) -> object:
        return mw.pairs(["a"], discount="common", frequencies=file, shingle=shingle)

    message = error_message(MismatchError, lambda: use("word:3"))
    assert message == "frequencies must be of documents with shingle 'word:3', got 'word:2'; count them again"
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)
    assert str(file) in error_message(FormatError, lambda: use("word:2"))


@pytest.mark.parametrize(
    "changed",
    [
        {"counts": np.ones(1024, dtype=np.float64)},
        {"counts": np.ones(1000, dtype=np.uint32)},
        {"counts": np.ones((32, 32), dtype=np.uint32)},
        {"documents": -1},
        {"documents": 2**70},
        {"documents": True},
        {"elements": []},
    ],
)
def test_a_table_with_impossible_values_is_refused(changed: dict[str, Any], tmp_path: Path) -> None:
    content: dict[str, Any] = {"counts": np.ones(1024, dtype=np.uint32), "documents": 9, "elements": {}, **changed}
    arrays = {"counts": content.pop("counts")}
    write_array_file(tmp_path / "table", KIND, content, arrays)
    message = error_message(FormatError, lambda: FrequencyTable.load(tmp_path / "table"))
    assert message.endswith("table: must have counts, documents and elements; save it again with save_frequencies")


@pytest.mark.parametrize("place", [".", "missing/table", 3])
def test_a_table_that_cannot_be_written_is_refused_before_anything_is_read(place: Any, tmp_path: Path) -> None:  # noqa: ANN401
    path = place if place == 3 else tmp_path / place
    message = error_message(ConfigError, lambda: mw.pairs(iter([]), discount="common", save_frequencies=path))
    assert message.startswith("save_frequencies must be ")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"measure": "containment"}, "measure must be jaccard with discount common"),
        ({"scheme": "minhash"}, "scheme must be fast with discount common"),
        ({"verify": "signature"}, "verify must be exact with discount common"),
        ({"discount": "none", "frequencies": "x"}, "frequencies must be left out without discount common"),
        ({"discount": "rare"}, "discount must be"),
        (
            {"discount": "none", "fields": "a:char:2", "weights": "a=1.5", "verify": "none"},
            "verify must be exact with weights that are not whole numbers",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(options: dict[str, Any], words: str) -> None:
    assert words in error_message(ConfigError, lambda: mw.pairs(["a"], **{"discount": "common", **options}))
