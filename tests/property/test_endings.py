"""Copies, marks, votes and weights equal the readable reference, for random clusters and for whole runs."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.random_corpora import LAYOUT, rows, texts

import minwise as mw
from minwise.errors import ConfigError
from minwise.reference import endings
from minwise.reference.endings import Mark, Removed
from minwise.results.marks import cluster_votes
from minwise.results.removals import Removals, cluster_ranks, drop_clusters, keep_copies
from minwise.results.weight_expression import parse_weight

OPTIONS: dict[str, Any] = {**LAYOUT, "threshold": 0.6}
SETTINGS: list[dict[str, Any]] = [
    {},
    {"keep": "last", "group": "components"},
    {"keep": "longest", "max_bucket": 16},
    {"measure": "containment", "bands": None, "rows": None},
    {"keep": "max:score", "verify": "signature"},
    {"keep": "longest", "prefer": "name=a", "protect": "name=b"},
]


@st.composite
def clusters(draw: st.DrawFn) -> tuple[dict[int, Removed], list[int]]:
    """Return clusters of a few documents, and the rank of each document."""
    count = draw(st.integers(1, 14))
    ranks = draw(st.permutations(range(count)))
    owners = draw(st.lists(st.integers(0, count - 1), min_size=count, max_size=count))
    similarity = st.sampled_from([None, 0.5, 0.75, 1.0])
    kept = {owner for owner in owners if owners[owner] == owner}
    return {
        document: Removed(owner, draw(similarity))
        for document, owner in enumerate(owners)
        if owner in kept and document not in kept
    }, list(ranks)


def packed(found: dict[int, Removed]) -> Removals:
    """Return removed documents as columns."""
    documents = np.array(sorted(found), dtype=np.uint32)
    witness = np.array([found[one].witness for one in sorted(found)], dtype=np.uint32)
    similarity = [math.nan if found[one].similarity is None else found[one].similarity for one in sorted(found)]
    return Removals(documents, witness, np.array(similarity, dtype=np.float64))


def unpacked(removals: Removals) -> dict[int, Removed]:
    columns = (removals.documents.tolist(), removals.witness.tolist(), removals.similarity.tolist())
    return {one: Removed(kept, None if math.isnan(value) else value) for one, kept, value in zip(*columns, strict=True)}


@given(clusters(), st.integers(1, 5))
def test_the_first_copies_of_each_cluster_are_kept(found: Any, copies: int) -> None:  # noqa: ANN401 - drawn
    removed, ranks = found
    rank_of = np.array(ranks, dtype=np.uint32)
    expected = endings.keep_copies(removed, ranks, copies)
    assert unpacked(keep_copies(packed(removed), copies, rank_of)) == expected
    marks = endings.mark_documents(removed, ranks)
    assert cluster_ranks(packed(removed), rank_of).tolist() == [marks[one].rank for one in sorted(removed)]


@given(clusters(), st.integers(0, 14))
def test_no_document_of_a_cluster_is_kept_unless_it_is_protected(found: Any, protected: int) -> None:  # noqa: ANN401
    removed, ranks = found
    dropped = drop_clusters(packed(removed), np.array(ranks, dtype=np.uint32), protected)
    assert unpacked(dropped) == endings.drop_clusters(removed, ranks, protected)
    assert (np.diff(dropped.documents.astype(np.int64)) > 0).all()


@given(clusters(), st.lists(st.sampled_from(["a", "b", "c", None]), min_size=14, max_size=14), st.booleans())
def test_votes_are_the_distinct_values_of_a_cluster(found: Any, values: list[Any], nulls: bool) -> None:  # noqa: ANN401
    removed, ranks = found
    values = [value if nulls else value or "a" for value in values[: len(ranks)]]
    encoded = pa.array(values).dictionary_encode(null_encoding="encode")
    codes = np.array(encoded.indices).astype(np.uint32)
    missing = [number for number, value in enumerate(encoded.dictionary.to_pylist()) if value is None]
    votes = cluster_votes(packed(removed), codes, missing[0] if missing else None)
    kept = packed(removed).kept_of(np.arange(len(ranks)))
    assert votes(kept).tolist() == endings.count_votes(endings.mark_documents(removed, ranks), values)


NUMBERS = st.sampled_from(["0.5", "1", "2", "7", "size", "rank", "votes"])


def combined(part: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return expressions of one operation."""
    signs, smaller = st.sampled_from("+-*/"), st.sampled_from(["min", "max"])
    return st.one_of(
        st.tuples(part, signs, part).map(lambda parts: f"({' '.join(parts)})"),
        st.tuples(smaller, part, part).map(lambda parts: f"{parts[0]}({parts[1]}, {parts[2]})"),
        st.tuples(st.sampled_from(["log", "sqrt", "-"]), part).map(lambda parts: f"{parts[0]}({parts[1]})"),
    )


SMALL = NUMBERS | combined(NUMBERS)
EXPRESSIONS = SMALL | combined(SMALL)
FUNCTIONS = {"__builtins__": {}, "min": min, "max": max, "log": math.log, "sqrt": math.sqrt}


def value_of(expression: str, size: int, rank: int, votes: int) -> float:
    try:
        names = {"size": float(size), "rank": float(rank), "votes": float(votes)}
        return float(eval(expression, FUNCTIONS, names))
    except (ZeroDivisionError, ValueError, OverflowError):
        return math.nan


@given(EXPRESSIONS, st.integers(1, 50), st.integers(1, 50), st.integers(0, 9))
def test_weights_are_those_of_python_or_refused(expression: str, size: int, rank: int, votes: int) -> None:
    """Python evaluates generated expressions only."""
    expected = [value_of(expression, 1, 1, 1), value_of(expression, size, rank, votes)]
    if all(value >= 0 and math.isfinite(value) for value in expected):
        weight = parse_weight(f"w={expression}", votes=True).of(size, rank, votes)
        assert weight == pytest.approx(expected[1], rel=1e-9, abs=0)
        return
    with pytest.raises(ConfigError, match="add_weight must be finite"):
        parse_weight(f"w={expression}", votes=True).of(size, rank, votes)


def corpus(seed: int) -> pa.Table:
    made = rows(texts(seed))
    return pa.Table.from_pylist([{**row, "id": number} for number, row in enumerate(made)])


def removed_of(result: Any) -> dict[int, Removed]:  # noqa: ANN401 - a result
    names = ("row", "kept_row", result.removed.column_names[-1])
    columns = (result.removed[name].to_pylist() for name in names)
    return {row: Removed(kept, similarity) for row, kept, similarity in zip(*columns, strict=True)}


@pytest.mark.parametrize("number", range(len(SETTINGS)))
def test_runs_equal_the_reference_applied_to_the_clusters(number: int) -> None:
    table, given = corpus(number), {**OPTIONS, **SETTINGS[number]}
    plain = mw.dedup(table, **given)
    removed = removed_of(plain)
    ranks = plain._search.order.rank_of.tolist()  # the keep order has no public name
    for copies in (2, 3):
        result = mw.dedup(table, **given, copies=copies)
        assert removed_of(result) == endings.keep_copies(removed, ranks, copies)
        assert result.clusters == plain.clusters
        assert result.report["clusters"] == plain.report["clusters"]
        assert result.report["counts"]["kept"] == result.kept.num_rows
    dropped = endings.drop_clusters(removed, ranks, plain._search.order.protected)
    assert removed_of(mw.dedup(table, **given, drop_all=True)) == dropped
    marked = mw.dedup(table, **given, mark=True, add_weight="w=sqrt(size) / rank")
    assert marked.removed == plain.removed
    name = plain.removed.column_names[-1]
    columns = (marked.kept[one].to_pylist() for one in ("cluster", "cluster_size", "cluster_rank", name))
    marks = [Mark(*mark) for mark in zip(*columns, strict=True)]
    assert marks == endings.mark_documents(removed, ranks)
    assert marked.kept["kept"].to_pylist() == [row not in removed for row in range(table.num_rows)]
    untouched = ["id", "text", "name"]  # a score may be NaN, which equals nothing
    assert marked.kept.select(untouched).equals(table.select(untouched))
    weights = [float(f"{math.sqrt(mark.size) / mark.rank:.9e}") for mark in marks]
    assert marked.kept["w"].to_pylist() == weights
    total = sum(weight for row, weight in enumerate(weights) if row not in removed)
    assert marked.report["weights"]["total"] == pytest.approx(total)
    assert marked.report["weights"]["rows"] == plain.report["counts"]["kept"]


@pytest.mark.parametrize("ending", [{}, {"copies": 2}, {"drop_all": True}, {"group": "components", "copies": 2}])
@pytest.mark.parametrize("target", [0.3, 0.8, 60, 1e6, 1])
def test_the_target_has_the_threshold_of_the_reference(ending: dict[str, Any], target: float) -> None:
    table = corpus(5)
    plain = mw.dedup(table, **OPTIONS, **ending)
    kept = {step.threshold: step.kept for step in plain.threshold_steps(0.01)}
    for threshold in (0.6, 0.75, 1.0):
        assert plain.rethreshold(threshold).report["counts"]["kept"] == kept[threshold]
    result = mw.dedup(table, **OPTIONS, **ending, target=target)
    wanted = round(target * table.num_rows) if target < 1 else round(target)
    assert result.threshold == endings.choose_threshold(kept, wanted)
    found = {"wanted": target, "documents": wanted, "threshold": result.threshold, "kept": kept[result.threshold]}
    assert result.report["target"] == found
    assert any("target:" in line for line in result.report["warnings"]) == (kept[0.6] > wanted)


def test_files_in_memory_have_the_added_columns(tmp_path: Path) -> None:
    """Their table is that of the rows that are written."""
    table = corpus(3)
    pq.write_table(table, tmp_path / "in.parquet")
    result = mw.dedup(
        tmp_path / "in.parquet", tmp_path / "out", **OPTIONS, mark=True, votes="name", add_weight="w=votes"
    )
    written = pq.read_table(tmp_path / "out" / "kept" / "in.parquet")
    added = written.column_names[len(table.column_names) :]
    assert added == ["cluster", "cluster_size", "cluster_rank", "similarity", "kept", "votes", "w"]
    assert result.kept.select(added).equals(written.select(added))
    marks = [Mark(cluster, 0, 0, None) for cluster in written["cluster"].to_pylist()]
    assert written["votes"].to_pylist() == endings.count_votes(marks, table["name"].to_pylist())
    assert written["w"].to_pylist() == [float(votes) for votes in written["votes"].to_pylist()]
