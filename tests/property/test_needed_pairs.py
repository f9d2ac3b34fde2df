"""Verification by need: a search that compares only pairs that decide clusters gives the answer of all pairs.

The corpus has so many proposals that not all pairs are compared. ``mw.pairs`` compares all of them; from its table,
plain Python derives what ``mw.dedup`` and ``mw.clusters`` must find.
"""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import minwise as mw
from minwise.errors import ConfigError
from minwise.inputs import Files
from minwise.reference.banding import components, star
from minwise.reference.hashing import mix
from minwise.results import DedupResult
from minwise.search import candidates, needed_pairs
from minwise.search.verification import count_by_bin
from minwise.search.workdir import WorkDirectory

DOCUMENTS, FAMILIES, WORDS, CHANGES = 2400, 3, 60, 7
THRESHOLD = 0.7
SETTINGS: Any = {"shingle": "word:2", "threshold": THRESHOLD}
RESULTS = ("removed.parquet", "clusters.parquet", "report.json", "kept/in.jsonl")
Pairs = dict[tuple[int, int], float]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Distinct texts of a few templates, each with a few words replaced."""
    rng = random.Random(5)
    vocabulary = [f"w{number}" for number in range(5000)]
    templates = [rng.choices(vocabulary, k=WORDS) for _ in range(FAMILIES)]

    def text() -> str:
        words = list(rng.choice(templates))
        for _ in range(rng.randrange(CHANGES)):
            words[rng.randrange(WORDS)] = rng.choice(vocabulary)
        return " ".join(words)

    return list(dict.fromkeys(text() for _ in range(DOCUMENTS)))


@pytest.fixture(scope="module")
def pairs(texts: list[str]) -> Pairs:
    """All similar pairs that the bands propose, with their similarity."""
    table = mw.pairs(texts, **SETTINGS).to_pydict()
    return dict(zip(zip(table["left"], table["right"], strict=True), table["similarity"], strict=True))


@pytest.fixture(scope="module")
def result(texts: list[str]) -> DedupResult:
    """The result of a run that compares only what it needs."""
    found: DedupResult = mw.dedup(texts, **SETTINGS)
    return found


def removed_by(result: DedupResult) -> dict[int, tuple[int, float]]:
    """Return the removed documents with their witness and similarity."""
    return {row["id"]: (row["kept_id"], row["similarity"]) for row in result.removed.to_pylist()}


def histogram(similarities: list[float]) -> NDArray[np.int64]:
    return count_by_bin(np.array(similarities))


def test_removed_documents_and_witnesses_are_those_of_all_pairs(
    texts: list[str], pairs: Pairs, result: DedupResult
) -> None:
    counts = result.report["pairs"]
    assert counts["sampled_one_in"] > 1
    assert counts["compared"] < 0.7 * counts["candidates"]
    assert removed_by(result) == star(pairs, len(texts))[1]


@pytest.mark.parametrize("group", ["star", "components"])
def test_clusters_are_those_of_all_pairs(texts: list[str], pairs: Pairs, group: Any) -> None:  # noqa: ANN401
    found = mw.clusters(texts, group=group, **SETTINGS).column("cluster").to_pylist()
    witness = {removed: kept for removed, (kept, _) in star(pairs, len(texts))[1].items()}
    stars = [witness.get(number, number) for number in range(len(texts))]
    assert found == (stars if group == "star" else components(pairs, len(texts)))


def test_a_higher_threshold_takes_pairs_of_removed_documents_into_account(
    texts: list[str], pairs: Pairs, result: DedupResult
) -> None:
    removed_before, report = removed_by(result), dict(result.report)
    for threshold in (0.75, 0.8, 0.9):
        higher = {pair: value for pair, value in pairs.items() if value >= threshold}
        expected = star(higher, len(texts))[1]
        assert removed_by(result.rethreshold(threshold)) == expected
        (step,) = (step for step in result.thresholds if step.threshold == threshold)
        assert step.removed == len(expected)
    assert (removed_by(result), result.report) == (removed_before, report)


def test_counts_are_those_of_needed_pairs_and_of_the_sample(pairs: Pairs, result: DedupResult) -> None:
    """Pairs of two removed documents of one class are sampled; the class is the low bits of the mixed rank."""
    removed, one_in = removed_by(result), result.report["pairs"]["sampled_one_in"]
    needed = [value for (left, right), value in pairs.items() if left not in removed or right not in removed]
    rest = [(mix(left) ^ mix(right), value) for (left, right), value in pairs.items() if {left, right} <= set(removed)]
    sampled = [value for bits, value in rest if bits % one_in == 0]
    expected = histogram(needed) + one_in * histogram(sampled)
    first = round(THRESHOLD * 100)
    assert result.report["similarities"]["counts"][first:] == expected[first:].tolist()
    assert result.report["pairs"]["verified"] == len(needed) + one_in * len(sampled)
    assert result.report["thresholds"] is None


def written(folder: Path, name: str, **options: Any) -> list[bytes]:  # noqa: ANN401
    mw.dedup(Files([str(folder / "in.jsonl")]), folder / name, **SETTINGS, **options)
    return [(folder / name / file).read_bytes() for file in RESULTS]


@pytest.fixture
def folder(texts: list[str], tmp_path: Path) -> Path:
    lines = (json.dumps({"id": f"d{number}", "text": text}) for number, text in enumerate(texts))
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    return tmp_path


@pytest.mark.parametrize("options", [{"keep": "longest"}, {"verify": "none"}, {"exact": True, "keep": "last"}])
def test_one_answer_for_threads_memory_and_interruption(
    folder: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needed_pairs, "COMPLETE_PROPOSALS", 1 << 14)  # an exact join proposes a pair only once
    expected = written(folder, "two", threads=2, **options)
    assert written(folder, "one", threads=1, memory="256MB", **options) == expected
    monkeypatch.setattr(candidates, "CHUNK_PAIRS", 40_000)
    for stop in (1, 3, 7):
        work = folder / f"work-{stop}"
        with monkeypatch.context() as patch:
            interrupt_after(patch, stop)
            with pytest.raises(KeyboardInterrupt):
                written(folder, f"stopped-{stop}", work=work, **options)
        assert written(folder, f"resumed-{stop}", work=work, threads=1, **options) == expected


def interrupt_after(patch: pytest.MonkeyPatch, files: int) -> None:
    """Interrupt the verification when it has written some files."""
    write, left = candidates.CandidateSearch.write_chunks, [files]

    def stop(self: Any, chunks: Any, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        def limited() -> Any:  # noqa: ANN401
            for chunk in chunks:
                yield chunk
                left[0] -= 1
                if not left[0]:
                    raise KeyboardInterrupt

        return write(self, limited(), *arguments, **named)

    patch.setattr(candidates.CandidateSearch, "write_chunks", stop)


@pytest.mark.parametrize(
    "options", [{}, {"keep": "shortest"}, {"verify": "none"}, {"exact": True}, {"max_bucket": 20}, {"against": True}]
)
def test_tables_equal_those_of_a_run_that_compares_all_pairs(
    folder: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if "against" in options:
        lines = (folder / "in.jsonl").read_text().splitlines()[::7]
        (folder / "known.jsonl").write_text("\n".join(lines))
        options = {"against": str(folder / "known.jsonl")}
    monkeypatch.setattr(needed_pairs, "COMPLETE_PROPOSALS", 1 << 14)
    by_need = written(folder, "needed", **options)
    monkeypatch.setattr(needed_pairs, "COMPLETE_PROPOSALS", 1 << 40)
    everything = written(folder, "all", **options)
    reports = [json.loads(files[2]) for files in (by_need, everything)]
    assert reports[0]["pairs"]["compared"] < reports[1]["pairs"]["compared"]
    for name in ("counts", "clusters", "largest_clusters", "text_bytes"):
        assert reports[0][name] == reports[1][name]
    del by_need[2], everything[2]
    assert by_need == everything


def test_pairs_are_complete_in_a_work_directory_of_clusters(texts: list[str], pairs: Pairs, tmp_path: Path) -> None:
    work = tmp_path / "work"
    mw.clusters(texts, group="star", work=work, **SETTINGS)
    found = mw.pairs(texts, work=work, **SETTINGS).to_pydict()
    assert dict(zip(zip(found["left"], found["right"], strict=True), found["similarity"], strict=True)) == pairs


def test_a_work_directory_holds_the_pairs_of_every_need(folder: Path, pairs: Pairs) -> None:
    """Neither the result nor the report of a run depends on what other runs with its work directory have compared."""
    out, work, shared = folder / "out", folder / "work", {"work": folder / "work", **SETTINGS}
    result = mw.dedup(Files([str(folder / "in.jsonl")]), out, **shared)
    report = (out / "report.json").read_bytes()
    names = [f"d{number}" for number in range(result.report["counts"]["read"])]
    expected = {names[low] for low in star({p: s for p, s in pairs.items() if s >= 0.85}, len(names))[1]}
    higher = mw.rethreshold(out, folder / "higher", 0.85, work=work)
    assert set(higher.removed["id"].to_pylist()) == expected
    assert set(result.rethreshold(0.85).removed["id"].to_pylist()) == expected
    mw.dedup(Files([str(folder / "in.jsonl")]), folder / "again", **shared)
    assert (folder / "again" / "report.json").read_bytes() == report
    first = folder / "first"
    mw.rethreshold(out, folder / "higher-too", 0.85, work=first)
    mw.dedup(Files([str(folder / "in.jsonl")]), folder / "later", work=first, **SETTINGS)
    assert (folder / "later" / "report.json").read_bytes() == report


def test_an_interrupted_comparison_of_all_pairs_continues(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "CHUNK_PAIRS", 40_000)
    events: list[tuple[str, int]] = []
    source = Files([str(folder / "in.jsonl")])
    progress = lambda stage, done, total, unit: events.append((stage, done))  # noqa: E731
    result = mw.dedup(source, work=folder / "work", progress=progress, **SETTINGS)
    expected = mw.dedup(source, **SETTINGS).rethreshold(0.9).removed.to_pylist()
    with monkeypatch.context() as patch:
        interrupt_after(patch, 2)
        with pytest.raises(KeyboardInterrupt):
            result.rethreshold(0.9)
    events.clear()
    assert result.rethreshold(0.9).removed.to_pylist() == expected
    assert next(done for stage, done in events if stage == "verify") > 0


def test_another_process_may_not_use_the_work_directory_meanwhile(folder: Path) -> None:
    source = Files([str(folder / "in.jsonl")])
    result = mw.dedup(source, work=folder / "work", **SETTINGS)
    in_use = pytest.raises(ConfigError, match="in use by another process")
    with WorkDirectory(folder / "work", durable=True).locked(), in_use:
        result.rethreshold(0.9)
    assert result.rethreshold(0.9).report["counts"]["removed"] > 0


@pytest.mark.parametrize("group", ["star", "components"])
def test_reports_of_clusters_state_only_what_is_known(
    texts: list[str],
    group: Any,  # noqa: ANN401
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(needed_pairs, "COMPLETE_PROPOSALS", 1 << 14)
    report = mw.write_clusters(texts, tmp_path / "clusters.parquet", group=group, **SETTINGS, max_bucket=20)
    every = mw.write_pairs(texts, tmp_path / "pairs.parquet", **SETTINGS, max_bucket=20)
    assert report["candidates"] is report["caps"]["estimated_pairs_missed_at_most"] is None
    assert 0 < report["compared"] < every["compared"] == every["candidates"]
    assert report["caps"]["candidates_left_out"] == every["caps"]["candidates_left_out"] > 0


def test_the_page_says_what_was_sampled(folder: Path) -> None:
    for name, options in (("exact", {}), ("unverified", {"verify": "none"})):
        written(folder, name, **options)
        page = (folder / name / "report.html").read_text()
        assert ("minwise thresholds" in page) == (name == "exact")
        assert "Every candidate" not in page
    one_in = json.loads((folder / "exact" / "report.json").read_text())["pairs"]["sampled_one_in"]
    exact = (folder / "exact" / "report.html").read_text()
    assert f"one in {one_in:,} of them was compared" in exact
    assert "<p>About " in exact
