"""Guarantees of a search: witnesses, exact similarities, no lost documents; compared with all pairs in plain Python."""

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.expect import error_message
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
from minwise.errors import ConfigError
from minwise.options import GroupName, SchemeName
from minwise.reference.banding import band_keys, components, propose_pairs, star
from minwise.results import DedupResult

SEEDS = range(4)
POLICIES = ("first", "last", "longest", "shortest", "max:score", "min:score", "max:name", "min:name")


def listed(table: pa.Table) -> Pairs:
    """Return a table of pairs by document number; assert that it is in document order."""
    found = {(number(row["left"]), number(row["right"])): row["similarity"] for row in table.to_pylist()}
    assert len(found) == table.num_rows
    assert list(found) == sorted(found)
    assert all(left < right for left, right in found)
    return found


def prefer(policy: str, documents: list[Row]) -> list[int]:
    """Return document numbers in the order of a keep policy, by a plain stable sort."""
    kind, _, column = policy.partition(":")
    numbers = range(len(documents))
    if kind in ("first", "last"):
        return sorted(numbers, reverse=kind == "last")
    if kind in ("longest", "shortest"):
        sizes = [len(row["text"].encode()) for row in documents]
        return sorted(numbers, key=lambda number: -sizes[number] if kind == "longest" else sizes[number])
    values = [row[column] for row in documents]
    present = [number for number in numbers if values[number] is not None and values[number] == values[number]]
    ranks = {value: rank for rank, value in enumerate(sorted({values[number] for number in present}))}
    best = sorted(present, key=lambda number: -ranks[values[number]] if kind == "max" else ranks[values[number]])
    return best + [number for number in numbers if number not in set(present)]


def stars(pairs: Pairs, order: list[int]) -> tuple[set[int], dict[int, tuple[int, float]]]:
    """Return the kept documents, and the witness of each removed one, for a keep order."""
    rank_of = {document: rank for rank, document in enumerate(order)}
    ranked = {tuple(sorted((rank_of[left], rank_of[right]))): value for (left, right), value in pairs.items()}
    kept, removed = star(ranked, len(order))  # type: ignore[arg-type] # sorted tuples of two
    witnesses = {order[rank]: (order[witness], value) for rank, (witness, value) in removed.items()}
    return {order[rank] for rank in kept}, witnesses


def witnesses(result: DedupResult) -> dict[int, tuple[int, float]]:
    """Return every removed document with its witness and similarity, by number."""
    return {number(row["id"]): (number(row["kept_id"]), row["similarity"]) for row in result.removed.to_pylist()}


@pytest.mark.parametrize("scheme", ["fast", "minhash"])
@pytest.mark.parametrize("seed", SEEDS)
def test_pairs_are_those_of_comparing_all_with_all(seed: int, scheme: SchemeName) -> None:
    """With exact similarities, in document order, including identical documents, none below the threshold."""
    truth = Truth(texts(seed))
    assert_nothing_missed_by_chance(truth.pairs, mw.plan(THRESHOLD, bands=40, rows=2))
    found = listed(mw.pairs(rows(truth.texts), scheme=scheme, **LAYOUT))
    assert found == truth.pairs
    for (left, right), similarity in found.items():
        assert similarity == mw.jaccard(truth.sets[left], truth.sets[right]) >= THRESHOLD


@pytest.mark.parametrize("seed", SEEDS)
def test_the_corpora_have_chains(seed: int) -> None:
    """Otherwise the tests of this file would prove little: ends of chains are below the threshold, and copies exist."""
    truth = Truth(texts(seed))
    partners: Counter[int] = Counter(side for pair in truth.pairs for side in pair)
    open_chains = [
        (left, right)
        for middle in partners
        for left, right in combinations([sum(pair) - middle for pair in truth.pairs if middle in pair], 2)
        if (min(left, right), max(left, right)) not in truth.pairs
    ]
    assert len(open_chains) >= 10
    assert sum(similarity == 1.0 for similarity in truth.pairs.values()) >= 10


@pytest.mark.parametrize("threshold", [0.5, 0.8, 1.0])
def test_pairs_of_the_default_plan_are_a_subset_of_all_pairs(threshold: float) -> None:
    """With the same similarities; identical documents are always found."""
    truth = Truth(texts(11), threshold)
    found = listed(mw.pairs(rows(truth.texts), threshold=threshold, shingle=SHINGLE))
    assert found.items() <= truth.pairs.items()
    same = {pair for pair, similarity in truth.pairs.items() if similarity == 1.0}
    assert same
    assert same <= found.keys()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_every_removed_document_has_its_best_kept_witness(seed: int, policy: str) -> None:
    """The witness is kept, its similarity is exact and reaches the threshold, and no kept document is more similar.

    A document is kept if no kept partner precedes it in keep order; equally similar witnesses by that order.
    """
    truth = Truth(texts(seed))
    documents = rows(truth.texts, seed)
    result = mw.dedup(documents, keep=policy, **LAYOUT)
    kept = [number(row["id"]) for row in result.kept]
    removed = witnesses(result)
    for document, (witness, similarity) in removed.items():
        assert witness in kept
        assert similarity == mw.jaccard(truth.sets[document], truth.sets[witness]) >= THRESHOLD
    found = listed(mw.pairs(documents, **LAYOUT))
    expected, expected_witnesses = stars(found, prefer(policy, documents))
    assert kept == sorted(expected)
    assert removed == expected_witnesses
    assert result.keep.tolist() == [document in expected for document in range(len(documents))]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_row_is_kept_removed_or_quarantined(seed: int) -> None:
    """Empty documents are kept; kept rows are unchanged."""
    documents = rows(texts(seed))
    broken = [3, 17, 40]
    for row in broken:
        documents[row]["text"] = None
    result = mw.dedup(documents, on_error="quarantine", **LAYOUT)
    kept = [number(row["id"]) for row in result.kept]
    removed = [number(identity) for identity in result.removed.column("id").to_pylist()]
    assert sorted([*kept, *removed, *broken]) == list(range(len(documents)))
    assert removed == sorted(removed)
    texts_kept = [row["text"] for row in result.kept]
    assert texts_kept == [documents[document]["text"] for document in kept]
    readable = [(document, row["text"]) for document, row in enumerate(documents) if row["text"] is not None]
    empty = [document for document, text in readable if text.strip() in ("", "...")]
    assert set(empty) <= set(kept)
    counts = result.report["counts"]
    assert counts["read"] == len(documents) == counts["kept"] + counts["removed"] + counts["quarantined"]
    assert (counts["kept"], counts["removed"], counts["quarantined"]) == (len(kept), len(removed), len(broken))
    assert (counts["empty"], counts["documents"]) == (len(empty), len(documents) - len(broken))
    assert [number(identity) for identity in result.clusters.column("id").to_pylist()] == sorted([*kept, *removed])


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_clusters_of_a_result_are_named_after_the_kept_document(seed: int) -> None:
    """Every document has its witness or itself, and the number of documents that share it."""
    documents = rows(texts(seed))
    result = mw.dedup(documents, keep="longest", **LAYOUT)
    removed = witnesses(result)
    heads = [removed[document][0] if document in removed else document for document in range(len(documents))]
    sizes = Counter(heads)
    assert [(number(row["id"]), number(row["cluster"]), row["size"]) for row in result.clusters.to_pylist()] == [
        (document, head, sizes[head]) for document, head in enumerate(heads)
    ]
    large = [size for size in sizes.values() if size > 1]
    clusters = result.report["clusters"]
    assert (clusters["of_two_or_more"], clusters["largest"]) == (len(large), max(large))


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_components_are_what_pairs_connect(seed: int) -> None:
    """Equal to a union-find over the reported pairs; named after the first document."""
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
def test_components_keep_one_document_each(policy: str) -> None:
    """The one that the policy prefers; the others have their exact similarity to it, however low."""
    truth = Truth(texts(5))
    documents = rows(truth.texts, seed=5)
    order = prefer(policy, documents)
    rank_of = {document: rank for rank, document in enumerate(order)}
    ranked = [(rank_of[left], rank_of[right]) for left, right in truth.pairs]
    first = [order[head] for head in components(ranked, len(order))]
    expected = {order[rank]: head for rank, head in enumerate(first) if order[rank] != head}
    result = mw.dedup(documents, group="components", keep=policy, **LAYOUT)
    assert {document: witness for document, (witness, _) in witnesses(result).items()} == expected
    similarities = [similarity for _, similarity in witnesses(result).values()]
    for document, (witness, similarity) in witnesses(result).items():
        assert similarity == mw.jaccard(truth.sets[document], truth.sets[witness])
    chained = sum(similarity < THRESHOLD for similarity in similarities)
    assert chained > 0
    [warning] = [text for text in result.report["warnings"] if "group='star'" in text]
    assert str(chained) in warning.split()


@pytest.mark.parametrize("threshold", [0.7, 0.75, 0.9, 1.0])
@pytest.mark.parametrize("group", ["star", "components"])
def test_rethreshold_uses_the_pairs_that_reach_it(threshold: float, group: GroupName) -> None:
    """As if only those had been found; the original result is unchanged."""
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
        expected = {document: head for document, head in enumerate(heads) if document != head}
        assert {document: witness for document, (witness, _) in witnesses(higher).items()} == expected
    assert higher.threshold == higher.report["settings"]["threshold"] == threshold
    counts = higher.report["counts"]
    assert counts["kept"] + counts["removed"] == counts["read"] == len(documents)
    assert witnesses(result) == before


@pytest.mark.parametrize("threshold", [0.69, 0.0, -1, 1.01, float("nan"), "0.9", True, None])
def test_rethreshold_refuses_a_lower_threshold(threshold: Any) -> None:  # noqa: ANN401 - also wrong types
    """The message has the threshold of the run and the given one."""
    result = mw.dedup([{"text": "one two three"}], **LAYOUT)
    message = error_message(ConfigError, lambda: result.rethreshold(threshold))
    assert message.startswith("threshold must be from 0.7")
    assert repr(threshold) in message


def test_rethreshold_of_estimates() -> None:
    """The same threshold changes nothing; a higher one leaves the estimates that reach it."""
    result = mw.dedup(rows(texts(2)), verify="signature", **LAYOUT)
    assert result.rethreshold(THRESHOLD).removed.equals(result.removed)
    higher = result.rethreshold(0.9).removed.column("similarity_estimate").to_pylist()
    assert 0 < len(higher) < result.removed.num_rows
    assert min(higher) >= 0.9


def test_rethreshold_of_unknown_similarities_is_refused() -> None:
    """Treating them all as too low would restore the removed documents."""
    result = mw.dedup(rows(texts(2)), verify="none", **LAYOUT)
    assert "verify" in error_message(ConfigError, lambda: result.rethreshold(0.9))


@pytest.mark.parametrize("seed", SEEDS[:2])
@pytest.mark.parametrize("policy", ["first", "last", "longest"])
def test_documents_compared_against_are_neither_kept_nor_removed(seed: int, policy: str) -> None:
    """Documents similar to one of them are removed, and so are duplicates among the input."""
    truth = Truth(texts(seed))
    documents = rows(truth.texts)
    border = 25
    against, given = documents[:border], documents[border:]
    result = mw.dedup(given, against=against, keep=policy, **LAYOUT)
    order = [*range(border), *(border + document for document in prefer(policy, given))]
    pairs = {pair: similarity for pair, similarity in truth.pairs.items() if pair[1] >= border}
    kept, expected = stars(pairs, order)
    removed = witnesses(result)
    assert removed == expected
    assert [number(row["id"]) for row in result.kept] == sorted(kept - set(range(border)))
    near = {max(pair) for pair in pairs if min(pair) < border}
    assert near
    assert near <= removed.keys()
    inside = {document for document, (witness, _) in removed.items() if witness >= border}
    assert inside - near
    counts = result.report["counts"]
    assert counts["read"] == len(given) == counts["kept"] + counts["removed"]
    assert len(result.keep) == len(given)
    assert result.clusters.num_rows == len(given)


def test_documents_compared_against_are_not_written(tmp_path: Path) -> None:
    """Only rows of the input are in the output, also if all of them are removed."""
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
def test_ids_are_returned_unchanged(kind: str) -> None:
    """Numbers stay numbers; ids need not be ordered."""
    truth = Truth(texts(7))
    ids: list[Any] = [7919 * document % 10_007 - 5000 for document in range(len(truth.texts))]
    if kind == "string":
        ids = [f"id {identity}" for identity in ids]
    documents = [{"text": text, "key": identity} for text, identity in zip(truth.texts, ids, strict=True)]
    table = mw.pairs(documents, id_column="key", **LAYOUT)
    expected = [(ids[left], ids[right]) for left, right in truth.pairs]
    assert list(zip(table.column("left").to_pylist(), table.column("right").to_pylist(), strict=True)) == expected
    result = mw.dedup(documents, id_column="key", **LAYOUT)
    assert {*(row["key"] for row in result.kept), *result.removed.column("id").to_pylist()} == set(ids)
    assert result.report["duplicate_ids"] == 0


def test_documents_with_the_same_id_are_different_documents() -> None:
    """They are counted in the report and distinguished by their rows."""
    truth = Truth(texts(8))
    documents = [{"id": document % 10, "text": text} for document, text in enumerate(truth.texts)]
    table = mw.pairs(documents, sources=True, **LAYOUT)
    numbers = zip(table.column("left_row").to_pylist(), table.column("right_row").to_pylist(), strict=True)
    assert dict(zip(numbers, table.column("similarity").to_pylist(), strict=True)) == truth.pairs
    result = mw.dedup(documents, **LAYOUT)
    assert result.report["duplicate_ids"] == len(documents) - 10
    removed = {row["row"]: (row["kept_row"], row["similarity"]) for row in result.removed.to_pylist()}
    assert removed == stars(truth.pairs, list(range(len(documents))))[1]
    assert len(result.kept) + len(removed) == len(documents)


def capped(size: int, first: int) -> set[tuple[int, int]]:
    """Return the pairs of ``size`` members of which each is paired with the first ones only."""
    return {(left, right) for left, right in combinations(range(size), 2) if left < first}


@pytest.mark.parametrize(("max_bucket", "first"), [(16, 16), (20, 16), (29, 16), (30, 30), (2000, 30)])
def test_identical_documents_above_the_cap_are_paired_with_the_first(
    max_bucket: int, first: int, tmp_path: Path
) -> None:
    """Thirty copies and a near copy; the report has the number of pairs left out, and the group."""
    base = [f"w{number}" for number in range(40)]
    near = " ".join([*base[:-1], "other"])  # 38 of 40 shingles
    documents = [{"id": f"d{document}", "text": " ".join(base)} for document in range(30)] + [
        {"id": "d30", "text": near}
    ]
    report = mw.write_pairs(documents, tmp_path / "pairs.jsonl", max_bucket=max_bucket, **LAYOUT)
    lines = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text(encoding="utf-8").splitlines()]
    found = [(number(line["left"]), number(line["right"])) for line in lines]
    expected = capped(30, first) | {(document, 30) for document in range(first)}
    assert found == sorted(expected)
    assert {line["similarity"] for line in lines} == {1.0, 38 / 40}
    caps = report["caps"]
    assert report["pairs"] == len(expected)
    assert caps["identical_pairs_left_out"] == 30 * 29 // 2 + 30 - len(expected)
    groups = [{"first": "d0", "documents": 30}] if first == 16 else []
    assert (caps["identical_groups"], caps["largest_identical_groups"]) == (len(groups), groups)
    assert (caps["buckets"], caps["candidates_left_out"]) == (0, 0)  # in a bucket, copies count once


@pytest.mark.parametrize(("max_bucket", "first"), [(16, 16), (20, 16), (30, 30)])
def test_members_of_a_bucket_above_the_cap_are_paired_with_the_first(
    max_bucket: int, first: int, tmp_path: Path
) -> None:
    """Thirty orders of the same words: one set, thirty different texts, one bucket in every band."""
    base = [f"w{number}" for number in range(30)]
    documents = [{"id": f"d{turn}", "text": " ".join([*base[turn:], *base[:turn]])} for turn in range(30)]
    settings: dict[str, Any] = {**LAYOUT, "shingle": "word:1", "max_bucket": max_bucket}
    found = listed(mw.pairs(documents, **settings))
    assert found == dict.fromkeys(sorted(capped(30, first)), 1.0)
    caps = mw.write_pairs(documents, tmp_path / "pairs.csv", **settings)["caps"]
    left_out, bands = 30 * 29 // 2 - len(found), 40
    assert caps["candidates_left_out"] == left_out * bands
    assert (caps["buckets"], caps["members"]) == ((bands, 30 * bands) if left_out else (0, 0))
    assert caps["largest_bucket"] == 30
    assert caps["identical_groups"] == 0
    result = mw.dedup(documents, keep="last", **settings)
    assert witnesses(result) == dict.fromkeys(range(29), (29, 1.0))  # the first in keep order is the last document
    assert result.report["pairs"]["verified"] == len(found)


@pytest.mark.parametrize("scheme", ["fast", "minhash"])
def test_estimates_are_called_estimates_and_are_close(scheme: SchemeName) -> None:
    """Each within Hoeffding's bound for 600 slots, at 10⁻⁶ for all pairs together; pairs far above are found.

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
    assert any(abs(estimate - truth.pairs[pair]) > 0 for pair, estimate in found.items())  # they are not exact values
    result = mw.dedup(documents, verify="signature", scheme=scheme, **options)
    assert result.removed.column_names[-1] == "similarity_estimate"
    renamed = [row["similarity_estimate"] for row in result.removed.to_pylist()]
    assert all(THRESHOLD <= estimate <= 1 for estimate in renamed)


@pytest.mark.parametrize("scheme", ["fast", "minhash"])
def test_unverified_pairs_are_the_candidates_of_the_reference(scheme: SchemeName) -> None:
    """Every pair that shares a bucket, with no similarity; only identical documents have 1.0."""
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


def test_pairs_of_sets_are_those_of_python_sets() -> None:
    """With integers, strings and both; Python's own set operations are the oracle."""
    rng = np.random.default_rng(4)
    sets: list[frozenset[Any]] = []
    for kind in (int, str):
        for _ in range(12):
            base = [kind(element) for element in rng.integers(0, 10**6, size=30)]
            sets += [frozenset(base[: 30 - cut]) for cut in (0, 0, 2, 9)]
    sets += [frozenset(), frozenset(), frozenset({3}), frozenset({"3"}), frozenset({3, "3"}), frozenset({b"3", 3})]
    expected = all_pairs(sets, THRESHOLD)
    options = {**LAYOUT, "shingle": "set"}
    table = mw.pairs([list(members) for members in sets], **options)
    found = {(row["left"], row["right"]): row["similarity"] for row in table.to_pylist()}
    assert found == expected
    assert mw.pairs(mw.ShingleSets.from_sets(sets), **options).to_pylist() == table.to_pylist()
    column = pa.table({"text": pa.array([sorted(members) for members in sets[:48]], pa.list_(pa.int64()))})
    assert {(row["left"], row["right"]) for row in mw.pairs(column, **options).to_pylist()} == {
        pair for pair in expected if pair[1] < 48
    }
    result = mw.dedup([list(members) for members in sets], **options)
    kept, removed = stars(expected, list(range(len(sets))))
    assert result.keep.nonzero()[0].tolist() == sorted(kept)
    assert {row["id"]: (row["kept_id"], row["similarity"]) for row in result.removed.to_pylist()} == removed


def test_sets_may_be_arrays() -> None:
    """A list of NumPy arrays is a list of sets, and so is a list of tuples."""
    given = [np.arange(30), np.arange(1, 30), np.arange(100, 130)]
    options = {**LAYOUT, "shingle": "set"}
    expected = [{"left": 0, "right": 1, "similarity": 29 / 30}]
    assert mw.pairs([tuple(members.tolist()) for members in given], **options).to_pylist() == expected
    assert mw.pairs(given, **options).to_pylist() == expected


def test_bags_count_repetitions() -> None:
    """Multiset Jaccard: Σ min / Σ max of the counts of each shingle."""
    rng = np.random.default_rng(5)
    given = []
    for _ in range(10):
        base = [f"w{number}" for number in rng.integers(0, 9, size=60)]
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
    """With the usual columns; no document is removed."""
    table = mw.pairs([{"text": text} for text in given] if given else [])
    assert table.column_names == ["left", "right", "similarity"]
    assert table.num_rows == 0
    result = mw.dedup([{"text": text} for text in given] if given else [])
    assert (len(result.kept), result.removed.num_rows) == (len(given), 0)
    assert mw.clusters([{"text": text} for text in given] if given else []).num_rows == len(given)


def test_a_file_without_rows_gives_empty_tables(tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_bytes(b"\n")
    result = mw.dedup(tmp_path / "none.jsonl")
    assert (result.kept.num_rows, result.removed.num_rows, result.clusters.num_rows) == (0, 0, 0)
    assert mw.pairs(tmp_path / "none.jsonl").num_rows == 0


def test_lists_of_texts_longer_than_a_file_name_are_texts() -> None:
    """A list of strings might name files; a line of 255 bytes or more never does."""
    base = " ".join(f"word{number}" for number in range(100))
    assert mw.pairs([base, base.upper()]).to_pylist() == [{"left": 0, "right": 1, "similarity": 1.0}]


def test_kept_bytes_are_returned_unchanged(tmp_path: Path) -> None:
    """Byte shingles accept any bytes, so the table of kept documents must hold them."""
    given = [b"\xff\xfe one two three", b"\xff\xfe one two three", b"something else altogether"]
    pq.write_table(pa.table({"text": pa.array(given)}), tmp_path / "x.parquet")
    kept = mw.dedup(tmp_path / "x.parquet", shingle="byte:4").kept
    assert kept.column("text").to_pylist() == [given[0], given[2]]
