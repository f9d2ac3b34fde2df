"""The audit: every figure against comparing all with all in plain Python, of all documents and of samples."""

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
from minwise.search import audit_sample as engine
from minwise.search.audit_sample import Seen

from .test_exact_join import shrink

# So few bands that some pairs are missed at every similarity.
LAYOUT: dict[str, Any] = {"bands": 6, "rows": 4, "shingle": SHINGLE, "threshold": 0.6}


def expected_of(given: tuple[str, ...], result: mw.Audit, seen: Seen, **options: Any) -> Expected:  # noqa: ANN401
    """What an audit of texts must say, if these documents are sampled."""
    sets = [frozenset(one.tolist()) for one in mw.Shingler(SHINGLE).shingle(list(given))]
    contents = [tuple(reference.tokens(text)) for text in given]
    proposed = candidates_of(rows(given), **options)
    return Expected(sets, contents, proposed, seen.sampled.tolist(), result.plan, result.floor)


@pytest.mark.parametrize("scheme", ["fast", "minhash"])
@pytest.mark.parametrize("sample", [1, 2, 20, 45, 20_000])
@pytest.mark.parametrize("seed", range(2))
def test_figures_are_those_of_comparing_all_with_all(seed: int, sample: int, scheme: str) -> None:
    """Recall in all and by similarity, precision, documents and spread, of all documents and of a few."""
    given = texts(seed)
    options = {**LAYOUT, "scheme": scheme, "seed": seed + 1}
    result, seen = audited(rows(given), sample=sample, **options)
    expected = expected_of(given, result, seen, **options)
    assert result.floor == 0.3
    assert len(expected.sampled) == min(sample, len(expected.distinct))
    assert set(expected.sampled) <= set(expected.distinct)
    assert_figures(result, seen, expected)
    if result.complete:
        assert 0 < result.recall.found < result.recall.of  # else the test would tell little
        assert 0 < result.precision.found < result.precision.of


@pytest.mark.parametrize(("threshold", "floor"), [(1.0, 0.5), (0.95, 0.45), (0.5, 0.25), (0.1, 0.05), (0.05, 0.05)])
def test_every_threshold(threshold: float, floor: float) -> None:
    """Half of it is the floor, but at least 0.05."""
    given, options = texts(2), {**LAYOUT, "threshold": threshold}
    result, seen = audited(rows(given), sample=30, **options)
    assert result.floor == floor
    assert_figures(result, seen, expected_of(given, result, seen, **options))


@effort(0.4)
@given(
    sets=st.lists(st.frozensets(st.integers(0, 12), max_size=8), max_size=25),
    sample=st.sampled_from((1, 3, 10, 100)),
    threshold=st.sampled_from((0.2, 0.5, 0.8, 1.0)),
)
def test_sets_as_input(sets: list[frozenset[int]], sample: int, threshold: float) -> None:
    """Random ones, empty and equal ones among them; also no set at all, and none that is like another."""
    options: dict[str, Any] = {"shingle": "set", "threshold": threshold, "bands": 2, "rows": 1}
    source = [list(one) for one in sets]
    result, seen = audited(source, sample=sample, **options)
    proposed = candidates_of(source, **options)
    assert_figures(result, seen, Expected(sets, [*sets], proposed, seen.sampled.tolist(), result.plan, result.floor))


@pytest.mark.parametrize(
    "given", [[], ["one two three"], ["", ""], ["one two three"] * 3, ["one two", "three four", ""]]
)
def test_nothing_to_measure(given: list[str]) -> None:
    """Shares of nothing have no value and may be anything."""
    source = [{"text": text} for text in given]
    written = mw.audit(source).to_dict()
    distinct = len({text for text in given if text})
    assert (written["documents"], written["distinct"], written["sampled"]) == (len(given), distinct, distinct)
    assert written["identical"] == sum(map(bool, given)) - distinct
    assert written["complete"]
    for name in ("recall", "documents_with_duplicates", "precision"):
        assert (written[name]["value"], written[name]["low"], written[name]["high"]) == (None, 0.0, 1.0)
    assert written["recall"]["promised"] is None
    assert {one["pairs"] for one in [*written["bins"], *written["histogram"]]} == {0}
    assert {one["high"] for one in written["histogram"]} == {0}
    assert written["suggestion"] is None


def sampled_texts(given: tuple[str, ...], **options: Any) -> tuple[mw.Audit, set[Any]]:  # noqa: ANN401 - settings
    """An audit, and the tokens of the documents it looked at."""
    result, seen = audited(rows(given), **{**LAYOUT, **options})
    return result, {tuple(reference.tokens(given[one])) for one in seen.sampled.tolist()}


def test_the_same_documents_are_sampled_in_any_order() -> None:
    """So every count is the same; with another seed others are sampled."""
    given = texts(3)
    shuffled = random.Random(1).sample(given, len(given))
    one, sampled = sampled_texts(given, sample=25)
    other, again = sampled_texts(tuple(shuffled), sample=25)
    assert len(sampled) == 25
    assert again == sampled
    for name in ("recall", "with_duplicates", "precision"):
        first, second = getattr(one, name), getattr(other, name)
        assert (first.found, first.of) == (second.found, second.of)
    assert [(part.seen, round(part.estimated, 9)) for part in one.spread] == [
        (part.seen, round(part.estimated, 9)) for part in other.spread
    ]
    assert [(part.share.found, part.share.of) for part in one.bins] == [
        (part.share.found, part.share.of) for part in other.bins
    ]
    assert sampled_texts(given, sample=25, seed=2)[1] != sampled


def test_smaller_samples_are_parts_of_larger_ones() -> None:
    """Documents are ranked once."""
    given = texts(3)
    sizes = [sampled_texts(given, sample=size)[1] for size in (3, 10, 30, 1000)]
    assert all(small < large for small, large in pairwise(sizes))


@pytest.mark.parametrize("sample", [20, 1000])
@pytest.mark.parametrize("memory", [3000, 10_000, 4 * 10**9])
@pytest.mark.parametrize("threads", [1, 2])
def test_neither_threads_nor_memory_nor_files_matter(
    sample: int, memory: int, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One index of sampled documents or many, and files named in any order: the same figures to the last bit."""
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
    """Whatever the batches: as if so few documents had been asked for from the beginning."""
    given, sample = rows(texts(4)), 48
    sizes = [sample]
    while len(audited(given, sample=sizes[-1], **LAYOUT)[1].pairs) > most and sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // 2))
    assert len(sizes) > 1
    expected = mw.audit(given, sample=sizes[-1], **LAYOUT)
    monkeypatch.setattr(engine, "MAX_PAIRS", most)
    monkeypatch.setattr(engine, "MATCHES", 1)
    shrink(monkeypatch, 4 * 10**9, batch_bytes)
    assert mw.audit(given, sample=sample, **LAYOUT) == expected


def test_candidates_may_come_in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which pairs are found does not depend on how many candidates are looked at together."""
    given = rows(texts(4))
    expected = mw.audit(given, sample=30, **LAYOUT)
    monkeypatch.setattr(engine, "CHUNK_PAIRS", 7)
    assert mw.audit(given, sample=30, **LAYOUT) == expected


def test_every_document_is_sampled_as_often_as_any_other() -> None:
    """A third of the seeds each: 18 documents, 200 seeds, 6 of 18.

    A document's count is binomial, 200 · 1/3, whose tails beyond 5.6 standard deviations hold less than 10⁻⁷ (Hoeffding
    would ask for 38: 2·exp(−2·38²/200) = 10⁻⁶); 18 documents make that 2·10⁻⁵ with Hoeffding.
    """
    source = [[one, one + 100] for one in range(18)]
    counts = Counter[int]()
    for seed in range(200):
        seen = audited(source, sample=6, shingle="set", bands=1, rows=1, threshold=0.9, seed=seed)[1]
        counts.update(seen.sampled.tolist())
    assert sum(counts.values()) == 200 * 6
    assert all(abs(counts[one] - 200 / 3) <= 38 for one in range(18))


def test_a_work_directory_is_gone_on_with(tmp_path: Path) -> None:
    """With another sample too, since candidates do not depend on it; what bands wrote is not written again."""
    source, work = tmp_path / "in.jsonl", tmp_path / "work"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts(6)), encoding="utf-8")
    mw.audit(source, work=work, sample=10, **LAYOUT)
    written = {path: path.stat().st_mtime_ns for path in work.glob("candidates-*")}
    assert written
    assert mw.audit(source, work=work, sample=30, **LAYOUT) == mw.audit(source, sample=30, **LAYOUT)
    assert {path: path.stat().st_mtime_ns for path in work.glob("candidates-*")} == written
