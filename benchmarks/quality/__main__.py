"""Entry: ``python -m benchmarks.quality`` asks every tool for the pairs of every corpus, and writes the record."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.quality.corpora import DATA, Corpus, load_corpora
from benchmarks.quality.engines import ENGINES, LEFT_OUT, SEEDS, SLOTS, Engine, ask, job_of, make_job
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
        sys.exit(f"{settings.data}: the corpora are not here; say --data DIR")
    engines = [engine for engine in ENGINES if not settings.engines or engine.name in settings.engines]
    corpora = [one for one in load_corpora(settings.data) if not settings.corpora or one.name in settings.corpora]
    versions: dict[str, str] = {}
    measured = [measure(corpus, engines, versions) for corpus in corpora]
    cases = special_cases(engines, versions)
    if settings.record:
        content = {
            "settings": {"slots": SLOTS, "seeds": SEEDS, "special": {"threshold": THRESHOLD, "words": WORDS}},
            "versions": versions,
            "engines": [{"name": engine.name, "candidates": engine.candidates} for engine in engines],
            "left_out": LEFT_OUT,
            "corpora": measured,
            "special": cases,
        }
        print(f"written to {write_json(content, benchmark='quality')}")


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = command_line("quality", __doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="where text, code, sets and er are")
    parser.add_argument("--engines", nargs="*", choices=[engine.name for engine in ENGINES], help="only these")
    parser.add_argument("--corpora", nargs="*", help="only these")
    return parser.parse_args()


def measure(corpus: Corpus, engines: list[Engine], versions: dict[str, str]) -> Figures:
    """Return a corpus with what the exact join and each engine score on it."""
    job, runs = job_of(corpus), []
    if corpus.kind == "labels":
        exact = score(corpus, pairs=join(corpus.sets, corpus.threshold), clusters=None)
        runs.append({"engine": "exact join", "seconds": 0.0, "error": "", **summarize([exact])})
    for engine in engines:
        seeds = SEEDS if engine.takes_seed else SEEDS[:1]
        answers, found, seconds = ask(engine, [replace(job, seed=seed) for seed in seeds])
        versions.update(found)
        run: Figures = {"engine": engine.name, "seconds": round(seconds, 1), "seeds": len(seeds)}
        run["error"] = next((one.error for one in answers if one.error), "")
        if not run["error"]:
            run |= summarize([score(corpus, pairs=one.pairs, clusters=one.clusters) for one in answers])
        runs.append(run)
    described = {
        "name": corpus.name,
        "documents": len(corpus.sets),
        "shingle": corpus.shingle,
        "threshold": corpus.threshold,
        "truth": corpus.kind,
        "true_pairs": len(corpus.truth),
        "sha256": corpus.sha256,
    }
    print(f"\n{corpus.name}, {corpus.threshold}: {len(corpus.sets):,} documents, {len(corpus.truth):,} true pairs")
    print(align_rows([["engine", "recall", "precision", "F1", "ARI", "seconds", ""], *map(line, runs)], words=1))
    return {**described, "runs": runs}


def line(run: Figures) -> list[str]:
    """Return a run as cells."""
    figures = [f"{run[name]:.4f}" if name in run else "" for name in ("recall", "precision", "f1", "ari")]
    return [run["engine"], *figures, f"{run['seconds']:.1f}", run["error"]]


def special_cases(engines: list[Engine], versions: dict[str, str]) -> list[Figures]:
    """Return each special pair with what every engine does: found, not found, or why it failed."""
    cases = make_cases()
    jobs = [make_job([case.left, case.right], words=WORDS, threshold=THRESHOLD) for case in cases]
    told: list[Figures] = [describe(case) for case in cases]
    for engine in engines:
        answers, found, _ = ask(engine, jobs)
        versions.update(found)
        for case, answer in zip(told, answers, strict=True):
            together = bool(answer.pairs) or (answer.clusters is not None and len(set(answer.clusters)) == 1)
            case["results"][engine.name] = answer.error or ("found" if together else "not found")
    for case in told:
        print(case)
    return told


def describe(case: Case) -> Figures:
    """Return a special pair without its texts: its name, its similarity by words, what a reader would say."""
    sets = [sorted(word_shingles(text, WORDS)) for text in (case.left, case.right)]
    similarity = next((value for _, value in similarities(sets)), 0.0)
    return {"name": case.name, "same": case.same, "similarity": similarity, "results": {}}


if __name__ == "__main__":
    main()
