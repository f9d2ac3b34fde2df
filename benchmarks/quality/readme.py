"""Rows of the tables that documents show, from a record of quality."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Record = dict[str, Any]
# The other ways of ours are there to be compared with, and stand on the page of the docs only.
IN_README = (
    "minwise",
    "minwise, minhash",
    "datasketch",
    "datasketch, checked",
    "rensa",
    "gaoya",
    "text-dedup",
    "datatrove",
)


def short_rows(record: Record) -> Iterator[list[str]]:
    """Yield a line for each corpus: recall and precision of each engine in percent, the best F1 in bold."""
    for corpus in record["corpora"]:
        runs = {run["engine"]: run for run in corpus["runs"]}
        shown = [runs[name] for name in IN_README]
        best = max(run.get("f1", 0.0) for run in shown)
        worst = min(run.get("f1", 0.0) for run in shown)
        cells = [short_cell(run, bold=best > worst and run.get("f1") == best) for run in shown]
        yield [*described(corpus), *cells]


def short_cell(run: Record, *, bold: bool) -> str:
    """Return recall and precision of a run, or that it failed."""
    if run["error"]:
        return "failed"
    words = f"{percent(run['recall'])} / {percent(run['precision'])}"
    return f"**{words}**" if bold else words


def percent(share: float) -> str:
    """Return a share in percent; only a whole is written as 100."""
    words = f"{100 * share:.1f}"
    return "99.9" if words == "100.0" and share < 1 else words.replace("100.0", "100")


def described(corpus: Record) -> list[str]:
    """Return name, threshold and truth of a corpus as cells."""
    truth = "labels" if corpus["truth"] == "labels" else "exact join"
    return [corpus["name"].replace("_", " "), f"{corpus['threshold']:g}", f"{corpus['true_pairs']:,} by {truth}"]


def full_rows(record: Record) -> Iterator[list[str]]:
    """Yield a line for each run, with F1 and ARI; corpus and threshold stand in the first line of each."""
    for corpus in record["corpora"]:
        first = [f"{corpus['name'].replace('_', ' ')}, {corpus['documents']:,}, {corpus['shingle']}"]
        first += described(corpus)[1:]
        best = max(run.get("f1", 0.0) for run in corpus["runs"])
        for run in corpus["runs"]:
            figures = [f"{run[name]:.4f}" if name in run else "" for name in ("recall", "precision", "f1", "ari")]
            if run.get("f1") == best:
                figures[2] = f"**{figures[2]}**"
            name = f"{run['engine']}: {run['error']}" if run["error"] else run["engine"]
            yield [*first, name, *figures]
            first = [""] * len(first)


def special_rows(record: Record) -> Iterator[list[str]]:
    """Yield a line for each special pair: what every engine does, in bold where a reader would say otherwise."""
    for case in record["special"]:
        right = "found" if case["same"] else "not found"
        cells = [special_cell(case["results"][name], right) for name in IN_README]
        yield [case["name"], "a copy" if case["same"] else "another", f"{case['similarity']:.2f}", *cells]


def special_cell(result: str, right: str) -> str:
    """Return what an engine did; an error is a crash."""
    told = result if result in ("found", "not found") else "crashed"
    return told if told == right else f"**{told}**"
