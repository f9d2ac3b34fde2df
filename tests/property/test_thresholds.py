"""Counts and examples of other thresholds equal those of `rethreshold` and of the pairs themselves."""

from typing import Any

import pyarrow as pa
import pytest
from support.random_corpora import LAYOUT, rows, texts

import minwise as mw
from minwise.options import GroupName, VerifyName
from minwise.results.removals import threshold_steps

SEEDS = range(3)


def corpus(seed: int) -> pa.Table:
    return pa.Table.from_pylist([{"id": row["id"], "text": row["text"]} for row in rows(texts(seed))])


@pytest.mark.parametrize("verify", ["exact", "signature"])
@pytest.mark.parametrize("group", ["star", "components"])
@pytest.mark.parametrize("seed", SEEDS)
def test_counts_equal_those_of_rethreshold(seed: int, group: GroupName, verify: VerifyName) -> None:
    result = mw.dedup(corpus(seed), group=group, verify=verify, **{**LAYOUT, "threshold": 0.5})
    for step in result.thresholds:
        raised = result.rethreshold(step.threshold)
        assert (step.removed, step.kept) == (raised.removed.num_rows, len(raised.kept))
    reported = [(step["threshold"], step["removed"]) for step in result.report["thresholds"]]
    assert reported == [(step.threshold, step.removed) for step in result.thresholds]
    assert len({step.removed for step in result.thresholds}) > 3


@pytest.mark.parametrize("seed", SEEDS)
def test_protected_documents_are_never_counted(seed: int) -> None:
    table = corpus(seed)
    for group in ("star", "components"):
        result = mw.dedup(table.slice(20), against=table.slice(0, 20), group=group, **{**LAYOUT, "threshold": 0.5})
        for step in result.thresholds:
            assert step.removed == result.rethreshold(step.threshold).removed.num_rows


@pytest.mark.parametrize("seed", SEEDS)
def test_examples_lie_in_their_step_and_are_pairs(seed: int) -> None:
    table = corpus(seed)
    options: dict[str, Any] = {**LAYOUT, "threshold": 0.5}
    found = mw.pairs(table, **options).to_pylist()
    similarity = {frozenset((pair["left"], pair["right"])): pair["similarity"] for pair in found}
    text = {row["id"]: row["text"].encode() for row in table.to_pylist()}
    steps = mw.dedup(table, **options).thresholds
    for step, end in zip(steps, [*(step.threshold for step in steps[1:]), 2.0], strict=True):
        inside = [value for value in similarity.values() if step.threshold <= value < end]
        assert (step.example is not None) == bool(inside)
        if step.example is not None:
            left, right = step.example.left.id, step.example.right.id
            middle = (step.threshold + min(end, 1.0)) / 2
            assert similarity[frozenset((left, right))] == step.example.similarity
            assert abs(step.example.similarity - middle) == min(abs(value - middle) for value in inside)
            assert step.example.texts == (text[left], text[right])


def test_steps_of_a_raised_result_begin_at_its_threshold() -> None:
    result = mw.dedup(corpus(0), **{**LAYOUT, "threshold": 0.5}).rethreshold(0.83)
    assert [step.threshold for step in result.thresholds] == [0.83, 0.85, 0.9, 0.95, 1.0]
    assert [step["threshold"] for step in result.report["thresholds"]] == [0.83, 0.85, 0.9, 0.95, 1.0]


def test_steps_are_round_numbers() -> None:
    assert threshold_steps(0.5, 0.1) == [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert len(threshold_steps(0.01, 0.01)) == 100


def test_sets_have_examples_without_texts() -> None:
    sets = mw.ShingleSets.from_sets([{1, 2, 3, 4}, {1, 2, 3, 4, 5}, {9}])
    (example,) = [step.example for step in mw.dedup(sets, threshold=0.8).thresholds if step.example is not None]
    assert (example.similarity, example.left.row, example.right.row, example.texts) == (0.8, 0, 1, None)


def test_unknown_similarities_and_wrong_steps_are_refused() -> None:
    with pytest.raises(mw.MinwiseError, match="verify must be exact or signature to know similarities, got none"):
        _ = mw.dedup(corpus(0), verify="none").thresholds
    assert mw.dedup(corpus(0), verify="none").report["thresholds"] is None
    for step in (0, 0.001, 2, "a", True, float("nan")):
        with pytest.raises(mw.MinwiseError, match=r"step must be a number from 0\.01 to 1, got"):
            mw.dedup(corpus(0)).threshold_steps(step)  # type: ignore[arg-type]
