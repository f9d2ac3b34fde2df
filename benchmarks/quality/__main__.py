"""Entry point of ``python -m benchmarks.quality``: run every tool on every corpus and write the record."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.quality.corpora import DATA, Corpus, load_corpora
from benchmarks.quality.engines import ENGINES, EXCLUDED, SEEDS, SLOTS, Engine, corpus_job, make_job, run_engine
from benchmarks.quality.exact_join import join, similarities
from benchmarks.quality.scoring import score, summarize
from benchmarks.quality.special_documents import THRESHOLD, WORDS, Case, make_cases
from benchmarks.record_files import command_line, write_json
from benchmarks.speed.runners.shingling import word_shingles
from benchmarks.targets import align_rows

Figures = dict[str, Any]


def main() -> None:
    """Run the benchmark."""
    settings = parse_settings()
    if not settings.data.is_dir():
        sys.exit(f"{settings.data}: the corpora are missing; set --data DIR")
    engines = [engine for engine in ENGINES if not settings.engines or engine.name in settings.engines]
    corpora = [
        corpus for corpus in load_corpora(settings.data) if not settings.corpora or corpus.name in settings.corpora
    ]
    versions: dict[str, str] = {}
    measured = [measure(corpus, engines, versions) for corpus in corpora]
    cases = special_cases(engines, versions)
    if settings.record:
        content = {
            "settings": {"slots": SLOTS, "seeds": SEEDS, "special": {"threshold": THRESHOLD, "words": WORDS}},
            "versions": versions,
            "engines": [{"name": engine.name, "candidates": engine.candidates} for engine in engines],
            "left_out": EXCLUDED,
            "corpora": measured,
            "special": cases,
        }
        print(f"written to {write_json(content, benchmark='quality')}")


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = command_line("quality", __doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="directory of text, code, sets and er")
    parser.add_argument("--engines", nargs="*", choices=[engine.name for engine in ENGINES], help="only these")
    parser.add_argument("--corpora", nargs="*", help="only these")
    return parser.parse_args()


def measure(corpus: Corpus, engines: list[Engine], versions: dict[str, str]) -> Figures:
    """Return a corpus with the scores of the exact join and of each engine."""
    job, runs = corpus_job(corpus), []
    if corpus.kind == "labels":
        exact = score(corpus, pairs=join(corpus.sets, corpus.threshold), clusters=None)
        runs.append({"engine": "exact join", "seconds": 0.0, "error": "", **summarize([exact])})
    for engine in engines:
        seeds = SEEDS if engine.takes_seed else SEEDS[:1]
        answers, found, seconds = run_engine(engine, [replace(job, seed=seed) for seed in seeds])
        versions.update(found)
        run: Figures = {"engine": engine.name, "seconds": round(seconds, 1), "seeds": len(seeds)}
        run["error"] = next((answer.error for answer in answers if answer.error), "")
        if not run["error"]:
            run |= summarize([score(corpus, pairs=answer.pairs, clusters=answer.clusters) for answer in answers])
        runs.append(run)
    description = {
        "name": corpus.name,
        "documents": len(corpus.sets),
        "shingle": corpus.shingle,
        "threshold": corpus.threshold,
        "truth": corpus.kind,
        "true_pairs": len(corpus.truth),
        "sha256": corpus.sha256,
    }
    print(f"\n{corpus.name}, {corpus.threshold}: {len(corpus.sets):,} documents, {len(corpus.truth):,} true pairs")
    print(
        align_rows([["engine", "recall", "precision", "F1", "ARI", "seconds", ""], *map(cells, runs)], text_columns=1)
    )
    return {**description, "runs": runs}


def cells(run: Figures) -> list[str]:
    """Return the cells of a run."""
    figures = [f"{run[name]:.4f}" if name in run else "" for name in ("recall", "precision", "f1", "ari")]
    return [run["engine"], *figures, f"{run['seconds']:.1f}", run["error"]]


def special_cases(engines: list[Engine], versions: dict[str, str]) -> list[Figures]:
    """Return each special pair with the result of every engine: found, not found, or the error."""
    cases = make_cases()
    jobs = [make_job([case.left, case.right], words=WORDS, threshold=THRESHOLD) for case in cases]
    described: list[Figures] = [describe(case) for case in cases]
    for engine in engines:
        answers, found, _ = run_engine(engine, jobs)
        versions.update(found)
        for case, answer in zip(described, answers, strict=True):
            together = bool(answer.pairs) or (answer.clusters is not None and len(set(answer.clusters)) == 1)
            case["results"][engine.name] = answer.error or ("found" if together else "not found")
    for case in described:
        print(case)
    return described


def describe(case: Case) -> Figures:
    """Return the name, the similarity by words and the expected result of a special pair."""
    sets = [sorted(word_shingles(text, WORDS)) for text in (case.left, case.right)]
    similarity = next((value for _, value in similarities(sets)), 0.0)
    return {"name": case.name, "same": case.same, "similarity": similarity, "results": {}}


if __name__ == "__main__":
    main()
