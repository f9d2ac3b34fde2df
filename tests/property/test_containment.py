"""Containment: pairs, removed documents and witnesses are those of comparing all sets with all."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.expect import error_message
from support.random_corpora import Truth, rows, texts
from support.strategies import effort

import minwise as mw
from minwise import _kernel, reference
from minwise.errors import ConfigError
from minwise.search import exact_join

from .test_exact_join import Sets, families, shrink, thresholds
from .test_promises import POLICIES, prefer

CONTAINMENT: dict[str, Any] = {"measure": "containment", "shingle": "set"}
# A chain of inclusions, equal sets, a set that lies in two equally large ones, and one that is nearly in a chain.
CHAIN: Sets = [
    frozenset(range(3)),
    frozenset(range(12)),
    frozenset(range(6)),
    frozenset(range(6)),
    frozenset({0, 1, 2, 3, 4, 99}),
    frozenset({7}),
    frozenset(),
]


# The second set lies in no kept one. The last one lies in it, and is removed with the first one, which it equals.
COPIES: Sets = [
    frozenset(range(10)),
    frozenset([*range(9), 10]),
    frozenset([*range(6), 8, 9, 20, 21, 22]),
    frozenset(range(10)),
]


def listed(sets: Sets) -> list[list[int]]:
    return [list(members) for members in sets]


def found_pairs(source: Any, **options: Any) -> dict[tuple[Any, Any], float]:  # noqa: ANN401 - any source and settings
    """Return the pairs by document number; each pair once, in document order."""
    table = mw.pairs(source, **CONTAINMENT | options)
    found = {(row["left"], row["right"]): row["containment"] for row in table.to_pylist()}
    assert len(found) == table.num_rows
    assert list(found) == sorted(found)
    return found


def removals(result: Any) -> dict[Any, tuple[Any, float]]:  # noqa: ANN401 - a result
    return {row["id"]: (row["kept_id"], row["containment"]) for row in result.removed.to_pylist()}


@effort(1)
@given(sets=families(), threshold=thresholds)
@example(sets=CHAIN, threshold=0.8)
@example(sets=[frozenset({1})] * 9 + [frozenset({1, 2})], threshold=1.0)
@example(sets=[frozenset(range(10)), frozenset([*range(9), 50])], threshold=0.9)
def test_pairs_are_those_of_comparing_all_with_all(sets: Sets, threshold: float) -> None:
    assert found_pairs(listed(sets), threshold=threshold) == reference.contained_pairs(sets, threshold)


@effort(1)
@given(sets=families(), threshold=thresholds)
@example(sets=CHAIN, threshold=0.8)
@example(sets=[frozenset(range(4)), frozenset(range(8)), frozenset([*range(3), 9])], threshold=0.7)
@example(sets=COPIES, threshold=0.8)
def test_every_removed_document_lies_in_its_kept_witness(sets: Sets, threshold: float) -> None:
    """With the exact share; nothing else is removed, also where a removed document contains a kept one."""
    found = removals(mw.dedup(listed(sets), threshold=threshold, **CONTAINMENT))
    assert found == reference.containment_star(sets, threshold)
    for document, (witness, share) in found.items():
        assert witness not in found
        assert len(sets[witness]) >= len(sets[document])
        assert share == reference.containment(sets[document], sets[witness]) >= threshold


@effort(1)
@given(sets=families(), threshold=thresholds, border=st.integers(0, 6))
@example(sets=[frozenset({1, 2}), frozenset({1, 2, 3}), frozenset({1})], threshold=1.0, border=1)
def test_reference_documents_only_contain(sets: Sets, threshold: float, border: int) -> None:
    """A document lies in an equally large or larger one; a reference document is never removed."""
    result = mw.dedup(listed(sets[border:]), against=listed(sets[:border]), threshold=threshold, **CONTAINMENT)
    free = sorted(range(border, len(sets)), key=lambda number: -len(sets[number]))
    kept, expected = list(range(min(border, len(sets)))), {}
    for document in free:
        size = len(sets[document])
        shares = [(reference.containment(sets[document], sets[one]), one) for one in kept if len(sets[one]) >= size]
        share = max((value for value, _ in shares), default=0.0)
        if share and share >= threshold:
            expected[document - border] = share
        else:
            kept.append(document)
    assert {row["row"]: row["containment"] for row in result.removed.to_pylist()} == expected
    for row in result.removed.to_pylist():
        outer = row["kept_row"] + (0 if row["kept_source"] == "against" else border)
        assert reference.containment(sets[row["row"] + border], sets[outer]) == row["containment"]


@pytest.mark.parametrize("policy", POLICIES)
def test_keep_decides_among_equally_large_documents(policy: str) -> None:
    """Texts of equal sets in another order, which are not identical, and identical ones."""
    given = (*texts(1), *(f"{text} {text}" for text in texts(1)[:8]))
    truth = Truth(given, 0.7)
    documents = rows(given, 1)
    result = mw.dedup(documents, keep=policy, measure="containment", shingle=truth.shingle, threshold=0.7)
    order = prefer(policy, documents)
    expected = reference.containment_star([set(one) for one in truth.sets], 0.7, order)
    assert {row["row"]: (row["kept_row"], row["containment"]) for row in result.removed.to_pylist()} == expected
    assert len(expected) >= 10


@effort(1)
@given(sets=families(), threshold=thresholds, data=st.data())
def test_candidates_include_every_pair_once(sets: Sets, threshold: float, data: st.DataObject) -> None:
    """For any split of the sets into indexes, and any room for counts."""
    offsets, elements = arrays(sets)
    room = data.draw(st.sampled_from((2, 16, 1 << 20)))
    rarity = _kernel.Rarity(len(elements), room)
    rarity.add(elements, 1)
    numbers = np.arange(len(sets), dtype=np.uint32)
    cuts = sorted({0, len(sets), *data.draw(st.lists(st.integers(0, len(sets)), max_size=3))})
    found: list[tuple[int, int]] = []
    for first, end in pairwise(cuts):
        batch = (offsets[first : end + 1], elements)
        index = _kernel.PrefixIndex(threshold, rarity, [batch], numbers[first:end], 1)
        done = 0
        while done < len(sets):
            pairs, more = index.candidates(offsets[done:], elements, numbers[done:], 3, 2)
            found += [(int(pair) & 0xFFFFFFFF, int(pair) >> 32) for pair in pairs]
            done += more
    assert len(set(found)) == len(found)
    assert all((len(sets[inner]), inner) < (len(sets[outer]), outer) for inner, outer in found)
    last_first = [*range(len(sets))][::-1]
    assert reference.contained_pairs(sets, threshold, last_first).keys() <= set(found)


def arrays(sets: Sets) -> tuple[Any, Any]:
    """Return offsets and elements, as the kernel takes them."""
    sizes = [0, *map(len, sets)]
    flat = [element for members in sets for element in sorted(members)]
    return np.cumsum(sizes).astype(np.int64), np.array(flat, dtype=np.uint64)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("memory", [4 * 10**9, 20_000, 3000])
def test_memory_and_threads_do_not_change_the_bytes(
    memory: int, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same pairs and the same report with one index or dozens, one file of sets or many."""
    truth = Truth(texts(3), 0.5)
    options: dict[str, Any] = {"shingle": truth.shingle, "threshold": 0.5, "measure": "containment"}
    source = tmp_path / "in.jsonl"
    source.write_text("\n".join(json.dumps({"text": text}) for text in truth.texts), encoding="utf-8")
    expected = mw.write_pairs(source, tmp_path / "usual.jsonl", **options)
    usual = mw.dedup(source, **options)
    shrink(monkeypatch, memory)
    report = mw.write_pairs(source, tmp_path / "other.jsonl", threads=threads, **options)
    assert report == expected
    assert (tmp_path / "other.jsonl").read_bytes() == (tmp_path / "usual.jsonl").read_bytes()
    other = mw.dedup(source, threads=threads, **options)
    assert other.removed.to_pylist() == usual.removed.to_pylist()
    assert other.report == usual.report
    assert report["pairs"] == len(reference.contained_pairs([set(one) for one in truth.sets], 0.5))


LOST = {
    "a part of the pairs": ["verified", "verified-*"],
    "an index that was not finished": ["verified", "verified-*", "candidates-00001-*"],
    "the join": ["verified", "verified-*", "candidates-*", "contained-*", "ranges"],
    "sets": [
        "verified",
        "verified-*",
        "candidates-*",
        "contained-*",
        "ranges",
        "sets",
        "sets-00000[3-9]",
        "sets-0000[1-9]?",
    ],
}


@pytest.mark.parametrize("memory", [6000, 4 * 10**9])
@pytest.mark.parametrize("lost", LOST)
def test_a_resumed_run_gives_the_same_pairs(
    lost: str, memory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For any files that an earlier run left, with the same or another memory limit, which decides the indexes."""
    source, work = tmp_path / "in.jsonl", tmp_path / "work"
    source.write_text("\n".join(json.dumps({"text": text}) for text in texts(7)), encoding="utf-8")
    options: dict[str, Any] = {"measure": "containment", "shingle": "word:2", "threshold": 0.5}
    expected = mw.pairs(source, **options).to_pylist()
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch, 6000)
        patch.setattr("minwise.search.workdir.WorkDirectory.delete", lambda *_: None)
        mw.pairs(source, work=work, **options)
    assert len(list(work.glob("contained-*"))) > 3
    for pattern in LOST[lost]:
        gone = list(work.glob(pattern))
        assert gone
        for path in gone:
            path.unlink()
    shrink(monkeypatch, memory)
    assert mw.pairs(source, work=work, **options).to_pylist() == expected
    assert len(expected) > 10


@pytest.mark.parametrize("files", [1, 3])
@effort(0.3)
@given(sets=families(), threshold=thresholds)
def test_any_split_into_indexes(files: int, sets: Sets, threshold: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch, 4 * 10**9, batch_bytes=1)
        patch.setattr("minwise.search.verification.SPILL_ELEMENTS", 1)
        patch.setattr(
            exact_join._Join, "_cuts", lambda join: sorted({*range(0, len(join.files), files), len(join.files)})
        )
        found = found_pairs(listed(sets), threshold=threshold)
    assert found == reference.contained_pairs(sets, threshold)


def test_rethreshold_equals_a_run_with_the_higher_threshold() -> None:
    sets = listed([frozenset(range(start, start + size)) for start in range(0, 40, 3) for size in (4, 9, 20)])
    options = {**CONTAINMENT, "threshold": 0.5}
    for threshold in (0.5, 0.75, 1.0):
        higher = mw.dedup(sets, **options).rethreshold(threshold)
        assert removals(higher) == removals(mw.dedup(sets, **{**options, "threshold": threshold}))
    steps = {step.threshold: step.removed for step in mw.dedup(sets, **options).thresholds}
    assert steps[0.75] == len(removals(mw.dedup(sets, **{**options, "threshold": 0.75})))


def test_near_misses_are_those_just_below_the_threshold() -> None:
    sets: Sets = [frozenset(range(100)), frozenset([*range(78), *range(200, 222)]), frozenset([*range(60), 300])]
    below = mw.dedup(listed(sets), threshold=0.8, **CONTAINMENT).report["just_below"]
    assert [(pair["similarity"], pair["left"]["id"], pair["right"]["id"]) for pair in below["closest"]] == [
        (0.78, 0, 1)
    ]


def test_copies_above_the_cap_are_paired_with_the_first_ones() -> None:
    copies = [[1, 2, 3]] * 40
    found = found_pairs([[1, 2, 3, 4], *copies], threshold=1.0, max_bucket=16)
    expected = {(1 + later, 1 + earlier) for later in range(40) for earlier in range(min(later, 16))}
    expected |= {(1 + copy, 0) for copy in range(16)}
    assert found.keys() == expected
    assert len(mw.dedup([[1, 2, 3, 4], *copies], threshold=1.0, max_bucket=16, **CONTAINMENT).kept) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("recall", 0.9), ("scheme", "minhash"), ("slots", 128), ("bands", 20), ("rows", 5), ("verify", "signature")],
)
@pytest.mark.parametrize("call", [mw.pairs, mw.dedup], ids=lambda call: call.__name__)
def test_settings_of_bands_are_refused(call: Any, name: str, value: Any) -> None:  # noqa: ANN401 - calls and values
    message = error_message(ConfigError, lambda: call(["/no/file.jsonl"], measure="containment", **{name: value}))
    assert message.startswith(f"{name} must be left out with measure containment")
    assert str(value) in message


def test_clusters_of_components_are_refused() -> None:
    refused: dict[str, Any] = {"measure": "containment", "group": "components"}
    message = error_message(ConfigError, lambda: mw.dedup(["/no/file.jsonl"], **refused))
    assert message.startswith("group must be star with measure containment")
    with pytest.raises(ConfigError, match="measure"):
        mw.clusters(["one two"], measure="containment")  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="measure must be one of jaccard, containment"):
        mw.pairs(["one two"], measure="cosine")  # type: ignore[arg-type]


def test_exact_is_implied() -> None:
    assert found_pairs(listed(CHAIN), exact=True) == found_pairs(listed(CHAIN))
