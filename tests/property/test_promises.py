"""The promises of finding: witnesses, exact similarities, nothing lost; against comparing all pairs in plain Python."""

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.expect import complaint
from support.random_corpora import (
    LAYOUT,
    SHINGLE,
    THRESHOLD,
    Pairs,
    Row,
    Truth,
    all_pairs,
    assert_nothing_missed_by_chance,
    number,
    rows,
    texts,
)

import minwise as mw
from minwise import reference
from minwise.reference.banding import band_keys, components, propose_pairs, star

SEEDS = range(4)
POLICIES = ("first", "last", "longest", "shortest", "max:score", "min:score", "max:name", "min:name")


def listed(table: pa.Table) -> Pairs:
    """A table of pairs by document number, if it is in document order."""
    found = {(number(row["left"]), number(row["right"])): row["similarity"] for row in table.to_pylist()}
    assert len(found) == table.num_rows
    assert list(found) == sorted(found)
    assert all(left < right for left, right in found)
    return found


def prefer(policy: str, documents: list[Row]) -> list[int]:
    """Document numbers in the order of a keep policy: a plain stable sort."""
    kind, _, column = policy.partition(":")
    everyone = range(len(documents))
    if kind in ("first", "last"):
        return sorted(everyone, reverse=kind == "last")
    if kind in ("longest", "shortest"):
        sizes = [len(one["text"].encode()) for one in documents]
        return sorted(everyone, key=lambda one: -sizes[one] if kind == "longest" else sizes[one])
    values = [one[column] for one in documents]
    present = [one for one in everyone if values[one] is not None and values[one] == values[one]]
    ranks = {value: rank for rank, value in enumerate(sorted({values[one] for one in present}))}
    best = sorted(present, key=lambda one: -ranks[values[one]] if kind == "max" else ranks[values[one]])
    return best + [one for one in everyone if one not in set(present)]


def stars(pairs: Pairs, order: list[int]) -> tuple[set[int], dict[int, tuple[int, float]]]:
    """Who is kept, and the witness of everyone else, if documents are preferred in this order."""
    place = {document: rank for rank, document in enumerate(order)}
    ranked = {tuple(sorted((place[left], place[right]))): value for (left, right), value in pairs.items()}
    kept, removed = star(ranked, len(order))  # type: ignore[arg-type] # sorted tuples of two
    witnesses = {order[one]: (order[witness], value) for one, (witness, value) in removed.items()}
    return {order[one] for one in kept}, witnesses


def witnesses(result: mw.DedupResult) -> dict[int, tuple[int, float]]:
    """Every removed document with its witness and similarity, by number."""
    return {number(row["id"]): (number(row["kept_id"]), row["similarity"]) for row in result.removed.to_pylist()}


@pytest.mark.parametrize("scheme", ["fast", "minhash"])
@pytest.mark.parametrize("seed", SEEDS)
def test_pairs_are_those_of_comparing_all_with_all(seed: int, scheme: str) -> None:
    """Each with its exact similarity, in document order, identical ones included, none below the threshold."""
    truth = Truth(texts(seed))
    assert_nothing_missed_by_chance(truth.pairs, mw.plan(THRESHOLD, bands=40, rows=2))
    found = listed(mw.pairs(rows(truth.texts), scheme=scheme, **LAYOUT))
    assert found == truth.pairs
    for (left, right), similarity in found.items():
        assert similarity == mw.jaccard(truth.sets[left], truth.sets[right]) >= THRESHOLD


@pytest.mark.parametrize("seed", SEEDS)
def test_the_corpora_have_chains(seed: int) -> None:
    """Else the tests of this file would prove little: ends of chains are below the threshold, and copies are there."""
    truth = Truth(texts(seed))
    partners: Counter[int] = Counter(side for pair in truth.pairs for side in pair)
    open_chains = [
        (one, other)
        for middle in partners
        for one, other in combinations([sum(pair) - middle for pair in truth.pairs if middle in pair], 2)
        if (min(one, other), max(one, other)) not in truth.pairs
    ]
    assert len(open_chains) >= 10
    assert sum(similarity == 1.0 for similarity in truth.pairs.values()) >= 10


@pytest.mark.parametrize("threshold", [0.5, 0.8, 1.0])
def test_pairs_of_the_default_plan_are_a_part_of_the_truth(threshold: float) -> None:
    """With the similarities of the truth; identical documents are always found."""
    truth = Truth(texts(11), threshold)
    found = listed(mw.pairs(rows(truth.texts), threshold=threshold, shingle=SHINGLE))
    assert found.items() <= truth.pairs.items()
    same = {pair for pair, similarity in truth.pairs.items() if similarity == 1.0}
    assert same
    assert same <= found.keys()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_every_removed_document_has_its_best_kept_witness(seed: int, policy: str) -> None:
    """Promise 1: it is in the output, its similarity is exact and reaches the threshold, none kept is more similar.

    Kept are those without a kept partner that the policy prefers; equally similar witnesses by the policy's order.
    """
    truth = Truth(texts(seed))
    documents = rows(truth.texts, seed)
    result = mw.dedup(documents, keep=policy, **LAYOUT)
    kept = [number(identity) for identity in result.kept.column("id").to_pylist()]
    removed = witnesses(result)
    for document, (witness, similarity) in removed.items():
        assert witness in kept
        assert similarity == mw.jaccard(truth.sets[document], truth.sets[witness]) >= THRESHOLD
    found = listed(mw.pairs(documents, **LAYOUT))
    expected, expected_witnesses = stars(found, prefer(policy, documents))
    assert kept == sorted(expected)
    assert removed == expected_witnesses
    assert result.keep.tolist() == [one in expected for one in range(len(documents))]


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost(seed: int) -> None:
    """Kept, removed and quarantined are all that was read; empty ones are kept, kept rows are as they came in."""
    documents = rows(texts(seed))
    broken = [3, 17, 40]
    for place in broken:
        documents[place]["text"] = None
    result = mw.dedup(documents, on_error="quarantine", **LAYOUT)
    kept = [number(identity) for identity in result.kept.column("id").to_pylist()]
    removed = [number(identity) for identity in result.removed.column("id").to_pylist()]
    assert sorted([*kept, *removed, *broken]) == list(range(len(documents)))
    assert removed == sorted(removed)
    texts_kept = result.kept.column("text").to_pylist()
    assert texts_kept == [documents[one]["text"] for one in kept]
    empty = [one for one, row in enumerate(documents) if row["text"] is not None and row["text"].strip() in ("", "...")]
    assert set(empty) <= set(kept)
    counts = result.report["counts"]
    assert counts["read"] == len(documents) == counts["kept"] + counts["removed"] + counts["quarantined"]
    assert (counts["kept"], counts["removed"], counts["quarantined"]) == (len(kept), len(removed), len(broken))
    assert (counts["empty"], counts["documents"]) == (len(empty), len(documents) - len(broken))
    assert [number(identity) for identity in result.clusters.column("id").to_pylist()] == sorted([*kept, *removed])


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_clusters_of_a_result_are_named_after_the_kept(seed: int) -> None:
    """Every document with its witness or itself, and how many share it."""
    documents = rows(texts(seed))
    result = mw.dedup(documents, keep="longest", **LAYOUT)
    removed = witnesses(result)
    heads = [removed[one][0] if one in removed else one for one in range(len(documents))]
    sizes = Counter(heads)
    assert [(number(row["id"]), number(row["cluster"]), row["size"]) for row in result.clusters.to_pylist()] == [
        (one, head, sizes[head]) for one, head in enumerate(heads)
    ]
    large = [size for size in sizes.values() if size > 1]
    clusters = result.report["clusters"]
    assert (clusters["of_two_or_more"], clusters["largest"]) == (len(large), max(large))


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_components_are_what_pairs_connect(seed: int) -> None:
    """By a union-find over the pairs that are reported; named after the first document."""
    documents = rows(texts(seed))
    found = listed(mw.pairs(documents, **LAYOUT))
    heads = components(found, len(documents))
    sizes = Counter(heads)
    table = mw.clusters(documents, group="components", **LAYOUT)
    assert table.column("id").to_pylist() == [row["id"] for row in documents]
    assert [number(identity) for identity in table.column("cluster").to_pylist()] == heads
    assert table.column("size").to_pylist() == [sizes[head] for head in heads]


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_star_clusters_are_those_of_dedup(seed: int) -> None:
    """`clusters` with stars names each document's witness, keeping the first."""
    documents = rows(texts(seed))
    expected = mw.dedup(documents, **LAYOUT).clusters.select(["id", "cluster", "size"])
    assert mw.clusters(documents, group="star", **LAYOUT).to_pylist() == expected.to_pylist()


@pytest.mark.parametrize("policy", ["first", "last", "longest", "max:score"])
def test_components_keep_one_each(policy: str) -> None:
    """The one that the policy prefers; others name it, with their exact similarity to it, however low."""
    truth = Truth(texts(5))
    documents = rows(truth.texts, seed=5)
    order = prefer(policy, documents)
    place = {document: rank for rank, document in enumerate(order)}
    ranked = [(place[left], place[right]) for left, right in truth.pairs]
    first = [order[head] for head in components(ranked, len(order))]
    expected = {order[rank]: head for rank, head in enumerate(first) if order[rank] != head}
    result = mw.dedup(documents, group="components", keep=policy, **LAYOUT)
    assert {one: witness for one, (witness, _) in witnesses(result).items()} == expected
    similarities = [similarity for _, similarity in witnesses(result).values()]
    for document, (witness, similarity) in witnesses(result).items():
        assert similarity == mw.jaccard(truth.sets[document], truth.sets[witness])
    chained = sum(similarity < THRESHOLD for similarity in similarities)
    assert chained > 0
    [warning] = [one for one in result.report["warnings"] if "--group star" in one]
    assert str(chained) in warning.split()


@pytest.mark.parametrize("threshold", [0.7, 0.75, 0.9, 1.0])
@pytest.mark.parametrize("group", ["star", "components"])
def test_a_higher_threshold_takes_the_pairs_that_reach_it(threshold: float, group: str) -> None:
    """As if only those had been found; the result it came from stays as it was."""
    truth = Truth(texts(6))
    documents = rows(truth.texts)
    result = mw.dedup(documents, group=group, **LAYOUT)
    before = witnesses(result)
    higher = result.rethreshold(threshold)
    pairs = {pair: similarity for pair, similarity in truth.pairs.items() if similarity >= threshold}
    if group == "star":
        assert witnesses(higher) == stars(pairs, list(range(len(documents))))[1]
    else:
        heads = components(pairs, len(documents))
        expected = {one: head for one, head in enumerate(heads) if one != head}
        assert {one: witness for one, (witness, _) in witnesses(higher).items()} == expected
    assert higher.threshold == higher.report["settings"]["threshold"] == threshold
    counts = higher.report["counts"]
    assert counts["kept"] + counts["removed"] == counts["read"] == len(documents)
    assert witnesses(result) == before


@pytest.mark.parametrize("threshold", [0.69, 0.0, -1, 1.01, float("nan"), "0.9", True, None])
def test_a_lower_threshold_needs_another_run(threshold: Any) -> None:  # noqa: ANN401 - also what is no number
    """The message shows that of the run and the one asked for."""
    result = mw.dedup([{"text": "one two three"}], **LAYOUT)
    message = complaint(mw.ConfigError, lambda: result.rethreshold(threshold))
    assert message.startswith("threshold must be from 0.7")
    assert repr(threshold) in message


def test_estimates_have_a_higher_threshold_too() -> None:
    """The same one changes nothing; of a higher one the estimates that reach it are left."""
    result = mw.dedup(rows(texts(2)), verify="signature", **LAYOUT)
    assert result.rethreshold(THRESHOLD).removed.equals(result.removed)
    higher = result.rethreshold(0.9).removed.column("similarity_estimate").to_pylist()
    assert 0 < len(higher) < result.removed.num_rows
    assert min(higher) >= 0.9


def test_unknown_similarities_have_no_higher_threshold() -> None:
    """Taking all of them for too low would bring back what was removed."""
    result = mw.dedup(rows(texts(2)), verify="none", **LAYOUT)
    assert "verify" in complaint(mw.ConfigError, lambda: result.rethreshold(0.9))


@pytest.mark.parametrize("seed", SEEDS[:2])
@pytest.mark.parametrize("policy", ["first", "last", "longest"])
def test_documents_that_are_compared_against_stay_outside(seed: int, policy: str) -> None:
    """They are neither kept nor removed; what is similar to one is removed, and so are duplicates among the others."""
    truth = Truth(texts(seed))
    documents = rows(truth.texts)
    border = 25
    against, given = documents[:border], documents[border:]
    result = mw.dedup(given, against=against, keep=policy, **LAYOUT)
    order = [*range(border), *(border + one for one in prefer(policy, given))]
    pairs = {pair: similarity for pair, similarity in truth.pairs.items() if pair[1] >= border}
    kept, expected = stars(pairs, order)
    removed = witnesses(result)
    assert removed == expected
    assert [number(identity) for identity in result.kept.column("id").to_pylist()] == sorted(kept - set(range(border)))
    near = {max(pair) for pair in pairs if min(pair) < border}
    assert near
    assert near <= removed.keys()
    inside = {one for one, (witness, _) in removed.items() if witness >= border}
    assert inside - near
    counts = result.report["counts"]
    assert counts["read"] == len(given) == counts["kept"] + counts["removed"]
    assert len(result.keep) == len(given)
    assert result.clusters.num_rows == len(given)


def test_what_is_compared_against_is_not_written(tmp_path: Path) -> None:
    """Only the input's rows are in the output, also if all of them are removed."""
    lines = [{"id": "x", "text": "one two three four"}, {"id": "y", "text": "five six seven eight"}]
    for name in ("given.jsonl", "other.jsonl"):
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    result = mw.dedup(tmp_path / "given.jsonl", tmp_path / "out", against=tmp_path / "other.jsonl", **LAYOUT)
    assert result.report["counts"]["removed"] == 2
    assert result.removed.column("kept_source").to_pylist() == [str(tmp_path / "other.jsonl")] * 2
    assert [path.name for path in (tmp_path / "out" / "kept").iterdir()] == ["given.jsonl"]
    assert (tmp_path / "out" / "kept" / "given.jsonl").read_bytes() == b""
    assert result.kept.num_rows == 0


@pytest.mark.parametrize("kind", ["string", "int"])
def test_ids_are_given_back_as_they_were(kind: str) -> None:
    """Numbers stay numbers; ids need not be in order."""
    truth = Truth(texts(7))
    ids: list[Any] = [7919 * one % 10_007 - 5000 for one in range(len(truth.texts))]
    if kind == "string":
        ids = [f"id {one}" for one in ids]
    documents = [{"text": text, "key": identity} for text, identity in zip(truth.texts, ids, strict=True)]
    table = mw.pairs(documents, id_column="key", **LAYOUT)
    expected = [(ids[left], ids[right]) for left, right in truth.pairs]
    assert list(zip(table.column("left").to_pylist(), table.column("right").to_pylist(), strict=True)) == expected
    result = mw.dedup(documents, id_column="key", **LAYOUT)
    assert {*result.kept.column("key").to_pylist(), *result.removed.column("id").to_pylist()} == set(ids)
    assert result.report["duplicate_ids"] == 0


def test_documents_with_the_same_id_are_still_different_documents() -> None:
    """They are counted in the report and told apart by their rows."""
    truth = Truth(texts(8))
    documents = [{"id": one % 10, "text": text} for one, text in enumerate(truth.texts)]
    table = mw.pairs(documents, sources=True, **LAYOUT)
    numbers = zip(table.column("left_row").to_pylist(), table.column("right_row").to_pylist(), strict=True)
    assert dict(zip(numbers, table.column("similarity").to_pylist(), strict=True)) == truth.pairs
    result = mw.dedup(documents, **LAYOUT)
    assert result.report["duplicate_ids"] == len(documents) - 10
    removed = {row["row"]: (row["kept_row"], row["similarity"]) for row in result.removed.to_pylist()}
    assert removed == stars(truth.pairs, list(range(len(documents))))[1]
    assert result.kept.num_rows + len(removed) == len(documents)


def capped(size: int, first: int) -> set[tuple[int, int]]:
    """The pairs of so many members of which each is paired with the first ones only."""
    return {(left, right) for left, right in combinations(range(size), 2) if left < first}


@pytest.mark.parametrize(("max_bucket", "first"), [(16, 16), (20, 16), (29, 16), (30, 30), (2000, 30)])
def test_identical_documents_above_the_cap_pair_with_the_first(max_bucket: int, first: int, tmp_path: Path) -> None:
    """Thirty copies and a near copy of them; the report says how many pairs are left out, and of whom."""
    base = [f"w{one}" for one in range(40)]
    near = " ".join([*base[:-1], "other"])  # 38 of 40 shingles
    documents = [{"id": f"d{one}", "text": " ".join(base)} for one in range(30)] + [{"id": "d30", "text": near}]
    report = mw.pairs(documents, tmp_path / "pairs.jsonl", max_bucket=max_bucket, **LAYOUT)
    lines = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text(encoding="utf-8").splitlines()]
    found = [(number(line["left"]), number(line["right"])) for line in lines]
    expected = capped(30, first) | {(one, 30) for one in range(first)}
    assert found == sorted(expected)
    assert {line["similarity"] for line in lines} == {1.0, 38 / 40}
    caps = report["caps"]
    assert report["pairs"] == len(expected)
    assert caps["identical_pairs_left_out"] == 30 * 29 // 2 + 30 - len(expected)
    groups = [{"first": "d0", "documents": 30}] if first == 16 else []
    assert (caps["identical_groups"], caps["largest_identical_groups"]) == (len(groups), groups)
    assert (caps["buckets"], caps["candidates_left_out"]) == (0, 0)  # in a bucket the copies count once


@pytest.mark.parametrize(("max_bucket", "first"), [(16, 16), (20, 16), (30, 30)])
def test_a_bucket_above_the_cap_pairs_with_the_first(max_bucket: int, first: int, tmp_path: Path) -> None:
    """Thirty orders of the same words: one set, thirty different texts, one bucket in every band."""
    base = [f"w{one}" for one in range(30)]
    documents = [{"id": f"d{turn}", "text": " ".join([*base[turn:], *base[:turn]])} for turn in range(30)]
    settings: dict[str, Any] = {**LAYOUT, "shingle": "word:1", "max_bucket": max_bucket}
    found = listed(mw.pairs(documents, **settings))
    assert found == dict.fromkeys(sorted(capped(30, first)), 1.0)
    caps = mw.pairs(documents, tmp_path / "pairs.csv", **settings)["caps"]
    left_out, bands = 30 * 29 // 2 - len(found), 40
    assert caps["candidates_left_out"] == left_out * bands
    assert (caps["buckets"], caps["members"]) == ((bands, 30 * bands) if left_out else (0, 0))
    assert caps["largest_bucket"] == 30
    assert caps["identical_groups"] == 0
    result = mw.dedup(documents, keep="last", **settings)
    assert witnesses(result) == dict.fromkeys(range(29), (29, 1.0))  # the first in keep order is the last document
    assert result.report["pairs"]["verified"] == len(found)


@pytest.mark.parametrize("scheme", ["fast", "minhash"])
def test_estimates_are_called_estimates_and_are_close(scheme: str) -> None:
    """Each within Hoeffding's bound for 600 slots of J, at 10⁻⁶ for all pairs together; what is far above is there.

    P[|share − J| ≥ e] ≤ 2·exp(−2·600·e²), and b-bit correction moves an estimate by at most 2⁻¹⁶.
    """
    truth = Truth(texts(9), threshold=0.05)
    documents = rows(truth.texts)
    slots = 600
    error = float(np.sqrt(np.log(2 * len(truth.pairs) / 1e-6) / (2 * slots))) + 2**-16
    options = {**LAYOUT, "bands": 200, "rows": 3}
    table = mw.pairs(documents, verify="signature", scheme=scheme, **options)
    assert table.column_names == ["left", "right", "similarity_estimate"]
    found = listed(table.rename_columns(["left", "right", "similarity"]))
    assert all(THRESHOLD <= estimate <= 1 for estimate in found.values())
    assert all(abs(estimate - truth.pairs[pair]) <= error for pair, estimate in found.items())
    assert {pair for pair, similarity in truth.pairs.items() if similarity >= THRESHOLD + error} <= found.keys()
    assert any(abs(estimate - truth.pairs[pair]) > 0 for pair, estimate in found.items())  # these are no exact ones
    result = mw.dedup(documents, verify="signature", scheme=scheme, **options)
    assert result.removed.column_names[-1] == "similarity_estimate"
    renamed = [row["similarity_estimate"] for row in result.removed.to_pylist()]
    assert all(THRESHOLD <= estimate <= 1 for estimate in renamed)


@pytest.mark.parametrize("scheme", ["fast", "minhash"])
def test_unverified_pairs_are_the_candidates_of_the_reference(scheme: str) -> None:
    """Every pair that shares a bucket, however unlike, with no similarity; identical documents are known to be so."""
    truth = Truth(texts(10))
    table = mw.pairs(rows(truth.texts), verify="none", scheme=scheme, **LAYOUT)
    assert table.column_names == ["left", "right", "similarity_estimate"]
    found = listed(table.rename_columns(["left", "right", "similarity"]))
    sketch = reference.fast_sketch if scheme == "fast" else reference.minhash_sketch
    keys = [band_keys(sketch(members, 80), bands=40, rows=2) for members in truth.sets]
    assert found.keys() == propose_pairs(keys)
    assert found.keys() > truth.pairs.keys()
    tokens = [reference.tokens(text) for text in truth.texts]
    assert found == {pair: 1.0 if tokens[pair[0]] == tokens[pair[1]] else None for pair in found}


def test_sets_are_compared_as_they_are() -> None:
    """Integers, strings and both; Python's own set operations are the oracle."""
    rng = np.random.default_rng(4)
    sets: list[frozenset[Any]] = []
    for kind in (int, str):
        for _ in range(12):
            base = [kind(one) for one in rng.integers(0, 10**6, size=30)]
            sets += [frozenset(base[: 30 - cut]) for cut in (0, 0, 2, 9)]
    sets += [frozenset(), frozenset(), frozenset({3}), frozenset({"3"}), frozenset({3, "3"}), frozenset({b"3", 3})]
    expected = all_pairs(sets, THRESHOLD)
    options = {**LAYOUT, "shingle": "set"}
    table = mw.pairs([list(one) for one in sets], **options)
    found = {(row["left"], row["right"]): row["similarity"] for row in table.to_pylist()}
    assert found == expected
    assert mw.pairs(mw.ShingleSets.from_sets(sets), **options).to_pylist() == table.to_pylist()
    column = pa.table({"text": pa.array([sorted(one) for one in sets[:48]], pa.list_(pa.int64()))})
    assert {(row["left"], row["right"]) for row in mw.pairs(column, **options).to_pylist()} == {
        pair for pair in expected if pair[1] < 48
    }
    result = mw.dedup([list(one) for one in sets], **options)
    kept, removed = stars(expected, list(range(len(sets))))
    assert result.kept.column("id").to_pylist() == sorted(kept)
    assert {row["id"]: (row["kept_id"], row["similarity"]) for row in result.removed.to_pylist()} == removed


def test_sets_may_be_arrays() -> None:
    """A list of NumPy arrays is a list of sets like any other, and a list of tuples too."""
    given = [np.arange(30), np.arange(1, 30), np.arange(100, 130)]
    options = {**LAYOUT, "shingle": "set"}
    expected = [{"left": 0, "right": 1, "similarity": 29 / 30}]
    assert mw.pairs([tuple(one.tolist()) for one in given], **options).to_pylist() == expected
    assert mw.pairs(given, **options).to_pylist() == expected


def test_bags_count_repetitions() -> None:
    """Multiset Jaccard: Σ min / Σ max of how often each shingle occurs, counted by hand."""
    rng = np.random.default_rng(5)
    given = []
    for _ in range(10):
        base = [f"w{one}" for one in rng.integers(0, 9, size=60)]
        given += [" ".join(base), " ".join(base[:55]), " ".join([*base, *base[:8]]), " ".join(sorted(set(base)))]
    counts = [Counter(reference.shingle_strings(text, "word:2")) for text in given]
    expected = {}
    for left, right in combinations(range(len(given)), 2):
        shared, union = (counts[left] & counts[right]).total(), (counts[left] | counts[right]).total()
        if shared / union >= THRESHOLD:
            expected[left, right] = shared / union
    assert_nothing_missed_by_chance(expected, mw.plan(THRESHOLD, bands=40, rows=2))
    table = mw.pairs([{"text": text} for text in given], bag=True, **LAYOUT)
    assert {(row["left"], row["right"]): row["similarity"] for row in table.to_pylist()} == expected
    plain = mw.pairs([{"text": text} for text in given], **LAYOUT)
    assert plain.to_pylist() != table.to_pylist()


@pytest.mark.parametrize("given", [[], ["seven"], ["one two three", "four five six", ""], ["", ""]])
def test_a_corpus_without_pairs_has_an_empty_table(given: list[str]) -> None:
    """With the usual columns; nobody is removed."""
    table = mw.pairs([{"text": text} for text in given] if given else [])
    assert table.column_names == ["left", "right", "similarity"]
    assert table.num_rows == 0
    result = mw.dedup([{"text": text} for text in given] if given else [])
    assert (result.kept.num_rows, result.removed.num_rows) == (len(given), 0)
    assert mw.clusters([{"text": text} for text in given] if given else []).num_rows == len(given)


def test_a_file_without_rows_gives_empty_tables(tmp_path: Path) -> None:
    """Kept ones too."""
    (tmp_path / "none.jsonl").write_bytes(b"")
    result = mw.dedup(tmp_path / "none.jsonl")
    assert (result.kept.num_rows, result.removed.num_rows, result.clusters.num_rows) == (0, 0, 0)
    assert mw.pairs(tmp_path / "none.jsonl").num_rows == 0


def test_lists_of_texts_longer_than_a_file_name_are_texts() -> None:
    """A list of strings might name files; a line of 255 bytes or more never does."""
    base = " ".join(f"word{one}" for one in range(100))
    assert mw.pairs([base, base.upper()]).to_pylist() == [{"left": 0, "right": 1, "similarity": 1.0}]


def test_kept_bytes_are_given_back_as_they_were(tmp_path: Path) -> None:
    """Byte shingles take any bytes, so the table of kept documents must too."""
    given = [b"\xff\xfe one two three", b"\xff\xfe one two three", b"something else altogether"]
    pq.write_table(pa.table({"text": pa.array(given)}), tmp_path / "x.parquet")
    kept = mw.dedup(tmp_path / "x.parquet", shingle="byte:4").kept
    assert kept.column("text").to_pylist() == [given[0], given[2]]
