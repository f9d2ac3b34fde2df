"""Audit: every figure equals that of comparing all documents in plain Python, for complete and partial samples."""

import json
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.audit_oracle import Expected, assert_figures, audited, candidates_of
from support.random_corpora import SHINGLE, rows, texts
from support.strategies import effort

import minwise as mw
from minwise import reference
from minwise.options import SchemeName
from minwise.results import Audit
from minwise.search import audit_sample
from minwise.search.audit_sample import AuditSample

from .test_exact_join import shrink

# So few bands that some pairs are missed at every similarity.
LAYOUT: dict[str, Any] = {"bands": 6, "rows": 4, "shingle": SHINGLE, "threshold": 0.6}


def expected_of(given: tuple[str, ...], result: Audit, sample: AuditSample, **options: Any) -> Expected:  # noqa: ANN401
    """Return the expected figures of an audit of texts with this sample."""
    sets = [frozenset(members.tolist()) for members in mw.Shingler(SHINGLE).shingle(list(given))]
    contents = [tuple(reference.tokens(text)) for text in given]
    proposed = candidates_of(rows(given), **options)
    return Expected(sets, contents, proposed, sample.sampled.tolist(), result.plan, result.floor)


@pytest.mark.parametrize("scheme", ["fast", "minhash"])
@pytest.mark.parametrize("sample", [1, 2, 20, 45, 20_000])
@pytest.mark.parametrize("seed", range(2))
def test_figures_are_those_of_comparing_all_with_all(seed: int, sample: int, scheme: SchemeName) -> None:
    """Recall in total and by similarity, precision, documents and histogram, for all documents and for a few."""
    given = texts(seed)
    options = {**LAYOUT, "scheme": scheme, "seed": seed + 1}
    result, sampled = audited(rows(given), sample=sample, **options)
    expected = expected_of(given, result, sampled, **options)
    assert result.floor == 0.3
    assert len(expected.sampled) == min(sample, len(expected.distinct))
    assert set(expected.sampled) <= set(expected.distinct)
    assert_figures(result, sampled, expected)
    if result.complete:
        assert 0 < result.recall.found < result.recall.of  # otherwise the test would prove little
        assert 0 < result.precision.found < result.precision.of


@pytest.mark.parametrize(("threshold", "floor"), [(1.0, 0.5), (0.95, 0.45), (0.5, 0.25), (0.1, 0.05), (0.05, 0.05)])
def test_every_threshold(threshold: float, floor: float) -> None:
    """The floor is half the threshold, but at least 0.05."""
    given, options = texts(2), {**LAYOUT, "threshold": threshold}
    result, sampled = audited(rows(given), sample=30, **options)
    assert result.floor == floor
    assert_figures(result, sampled, expected_of(given, result, sampled, **options))


@effort(0.4)
@given(
    sets=st.lists(st.frozensets(st.integers(0, 12), max_size=8), max_size=25),
    sample=st.sampled_from((1, 3, 10, 100)),
    threshold=st.sampled_from((0.2, 0.5, 0.8, 1.0)),
)
def test_sets_as_input(sets: list[frozenset[int]], sample: int, threshold: float) -> None:
    """Random sets, with empty and equal ones; also no sets, and no similar ones."""
    options: dict[str, Any] = {"shingle": "set", "threshold": threshold, "bands": 2, "rows": 1}
    source = [list(members) for members in sets]
    result, sampled = audited(source, sample=sample, **options)
    proposed = candidates_of(source, **options)
    assert_figures(
        result, sampled, Expected(sets, [*sets], proposed, sampled.sampled.tolist(), result.plan, result.floor)
    )


@pytest.mark.parametrize(
    "given", [[], ["one two three"], ["", ""], ["one two three"] * 3, ["one two", "three four", ""]]
)
def test_shares_without_trials_have_no_value(given: list[str]) -> None:
    """Their interval is from 0 to 1."""
    source = [{"text": text} for text in given]
    written = mw.audit(source).to_dict()
    distinct = len({text for text in given if text})
    assert (written["documents"], written["distinct"], written["sampled"]) == (len(given), distinct, distinct)
    assert written["identical"] == sum(map(bool, given)) - distinct
    assert written["complete"]
    for name in ("recall", "documents_with_duplicates", "precision"):
        assert (written[name]["value"], written[name]["low"], written[name]["high"]) == (None, 0.0, 1.0)
    assert written["recall"]["promised"] is None
    assert {entry["pairs"] for entry in [*written["bins"], *written["histogram"]]} == {0}
    assert {entry["high"] for entry in written["histogram"]} == {0}
    assert written["suggestion"] is None


def sampled_texts(given: tuple[str, ...], **options: Any) -> tuple[Audit, set[Any]]:  # noqa: ANN401 - settings
    """Return an audit and the tokens of its sampled documents."""
    result, sample = audited(rows(given), **{**LAYOUT, **options})
    return result, {tuple(reference.tokens(given[document])) for document in sample.sampled.tolist()}


def test_the_same_documents_are_sampled_in_any_order() -> None:
    """So every count is the same; another seed samples other documents."""
    given = texts(3)
    shuffled = random.Random(1).sample(given, len(given))
    ordered, sampled = sampled_texts(given, sample=25)
    reordered, again = sampled_texts(tuple(shuffled), sample=25)
    assert len(sampled) == 25
    assert again == sampled
    for name in ("recall", "with_duplicates", "precision"):
        first, second = getattr(ordered, name), getattr(reordered, name)
        assert (first.found, first.of) == (second.found, second.of)
    assert [(part.seen, round(part.estimated, 9)) for part in ordered.histogram] == [
        (part.seen, round(part.estimated, 9)) for part in reordered.histogram
    ]
    assert [(part.share.found, part.share.of) for part in ordered.bins] == [
        (part.share.found, part.share.of) for part in reordered.bins
    ]
    assert sampled_texts(given, sample=25, seed=2)[1] != sampled


def test_smaller_samples_are_subsets_of_larger_ones() -> None:
    given = texts(3)
    sizes = [sampled_texts(given, sample=size)[1] for size in (3, 10, 30, 1000)]
    assert all(small < large for small, large in pairwise(sizes))


@pytest.mark.parametrize("sample", [20, 1000])
@pytest.mark.parametrize("memory", [3000, 10_000, 4 * 10**9])
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_memory_and_order_of_files_do_not_change_the_figures(
    sample: int, memory: int, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one index of sampled documents or many, to the last bit."""
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"id": row["id"], "text": row["text"]}) + "\n" for row in rows(texts(5))]
    for name, part in (("a.jsonl", lines[:20]), ("b.jsonl", lines[20:])):
        Path(name).write_text("".join(part), encoding="utf-8")
    expected = mw.audit(["a.jsonl", "b.jsonl"], sample=sample, **LAYOUT)
    shrink(monkeypatch, memory)
    assert mw.audit(["b.jsonl", "a.jsonl"], sample=sample, threads=threads, **LAYOUT) == expected


@pytest.mark.parametrize("batch_bytes", [1, 400, 1 << 20])
@pytest.mark.parametrize("most", [1, 12, 40])
def test_a_sample_of_too_many_pairs_is_halved(most: int, batch_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures are those of an audit with the smaller sample, for any batch size."""
    given, sample = rows(texts(4)), 48
    sizes = [sample]
    while len(audited(given, sample=sizes[-1], **LAYOUT)[1].pairs) > most and sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // 2))
    assert len(sizes) > 1
    expected = mw.audit(given, sample=sizes[-1], **LAYOUT)
    monkeypatch.setattr(audit_sample, "MAX_PAIRS", most)
    monkeypatch.setattr(audit_sample, "MATCHES", 1)
    shrink(monkeypatch, 4 * 10**9, batch_bytes)
    assert mw.audit(given, sample=sample, **LAYOUT) == expected


def test_the_chunk_size_of_candidates_does_not_change_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    given = rows(texts(4))
    expected = mw.audit(given, sample=30, **LAYOUT)
    monkeypatch.setattr(audit_sample, "CHUNK_PAIRS", 7)
    assert mw.audit(given, sample=30, **LAYOUT) == expected


def test_every_document_is_sampled_equally_often() -> None:
    """For a third of the seeds each: 18 documents, 200 seeds, 6 of 18.

    The count of a document is binomial, 200 · 1/3; the probability beyond 5.6 standard deviations is less than 10⁻⁷
    (Hoeffding's bound needs 38: 2·exp(−2·38²/200) = 10⁻⁶); for 18 documents it is 2·10⁻⁵ with Hoeffding.
    """
    source = [[number, number + 100] for number in range(18)]
    counts = Counter[int]()
    for seed in range(200):
        sample = audited(source, sample=6, shingle="set", bands=1, rows=1, threshold=0.9, seed=seed)[1]
        counts.update(sample.sampled.tolist())
    assert sum(counts.values()) == 200 * 6
    assert all(abs(counts[document] - 200 / 3) <= 38 for document in range(18))


def test_a_work_directory_is_reused_for_another_sample(tmp_path: Path) -> None:
    """Candidates do not depend on the sample, so they are not written again."""
    source, work = tmp_path / "in.jsonl", tmp_path / "work"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts(6)), encoding="utf-8")
    mw.audit(source, work=work, sample=10, **LAYOUT)
    written = {path: path.stat().st_mtime_ns for path in work.glob("candidates-*")}
    assert written
    assert mw.audit(source, work=work, sample=30, **LAYOUT) == mw.audit(source, sample=30, **LAYOUT)
    assert {path: path.stat().st_mtime_ns for path in work.glob("candidates-*")} == written
