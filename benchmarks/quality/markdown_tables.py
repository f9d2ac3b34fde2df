"""Rows of the Markdown tables of a record of the quality benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Record = dict[str, Any]
# Other modes of minwise are only in the full table of the documentation.
COMPARED = (
    "minwise",
    "minwise, minhash",
    "datasketch",
    "datasketch, checked",
    "rensa",
    "gaoya",
    "text-dedup",
    "datatrove",
)
# Contents of the corpora, with their origin in parentheses.
CONTENTS = {
    "articles_100": "news with planted copies",
    "articles_1000": "news with planted copies",
    "articles_2500": "news with planted copies",
    "clough": "students' answers and their sources (Clough and Stevenson)",
    "spdx_licenses": "licence texts (SPDX)",
    "installguide_sample": "chapters of a manual (Debian installation guide)",
    "irplag": "students' Java programs (IR-Plag)",
    "groceries": "shopping baskets",
    "onlineretail": "invoices (UCI Online Retail)",
    "restaurants": "two lists of restaurants",
    "Abt–Buy": "products of two shops",
    "DBLP–ACM": "papers in two catalogues",
    "cora": "citations",
    "childcare": "addresses of childcare sites",
    "febrl1": "people with typos",
    "febrl2": "people with typos",
    "febrl3": "people with typos",
    "febrl4": "two lists of people with typos",
}
# The README shows all corpora where another tool is ahead, and one of each kind of the others.
ALSO_IN_README = {
    ("articles_2500", 0.5),
    ("spdx_licenses", 0.5),
    ("installguide_sample", 0.8),
    ("onlineretail", 0.5),
    ("febrl4", 0.3),
}


def readme_rows(record: Record) -> Iterator[list[str]]:
    """Yield a row for each corpus shown in the README: recall and precision of each tool in percent."""
    names = [name for name in COMPARED if name != "minwise, minhash"]
    for corpus in record["corpora"]:
        if is_another_ahead(corpus) or (corpus["name"], corpus["threshold"]) in ALSO_IN_README:
            yield [described_in_readme(corpus), described(corpus)[2], *cells(corpus, names)]


def described_in_readme(corpus: Record) -> str:
    """Return the contents of a corpus in a few words, and the threshold."""
    return f"{CONTENTS[corpus['name']].partition(' (')[0]}, {corpus['threshold']:g}"


def is_another_ahead(corpus: Record) -> bool:
    """Return whether another tool has a higher F1 than the pairs of minwise."""
    ours = next(run for run in corpus["runs"] if run["engine"] == "minwise")
    others = [run for run in corpus["runs"] if run["engine"] in COMPARED[2:]]
    return any(f1(run) > f1(ours) for run in others)


def short_rows(record: Record) -> Iterator[list[str]]:
    """Yield a row for each corpus: recall and precision of each engine in percent."""
    for corpus in record["corpora"]:
        yield [*described(corpus), *cells(corpus, COMPARED)]


def corpus_rows(record: Record) -> Iterator[list[str]]:
    """Yield a row for each kind of corpus: names, contents, numbers of documents and shingles."""
    kinds: dict[str, dict[str, Record]] = {}
    for corpus in record["corpora"]:
        kinds.setdefault(CONTENTS[corpus["name"]], {})[corpus["name"].replace("_", " ")] = corpus
    for contents, named in kinds.items():
        documents = ", ".join(f"{corpus['documents']:,}" for corpus in named.values())
        yield [", ".join(named), contents, documents, next(iter(named.values()))["shingle"]]


def cells(corpus: Record, names: Sequence[str]) -> list[str]:
    """Return recall and precision of some engines on a corpus, the best F1 in bold unless all are equal."""
    runs = {run["engine"]: run for run in corpus["runs"]}
    shown = [runs[name] for name in names]
    best, worst = max(map(f1, shown)), min(map(f1, shown))
    return [short_cell(run, bold=best > worst and f1(run) == best) for run in shown]


def f1(run: Record) -> float:
    """Return the F1 of a run rounded as shown, so that values that look equal are equal; 0 if it failed."""
    return round(float(run.get("f1", 0.0)), 4)


def short_cell(run: Record, *, bold: bool) -> str:
    """Return recall and precision of a run, or "failed"."""
    if run["error"]:
        return "failed"
    text = f"{percent(run['recall'])} / {percent(run['precision'])}"
    return f"**{text}**" if bold else text


def percent(share: float) -> str:
    """Return a share in percent; only exactly 1 is written as 100."""
    text = f"{100 * share:.1f}"
    return "99.9" if text == "100.0" and share < 1 else text.replace("100.0", "100")


def described(corpus: Record) -> list[str]:
    """Return name, threshold and truth of a corpus as cells."""
    truth = "labels" if corpus["truth"] == "labels" else "join"
    return [corpus["name"].replace("_", " "), f"{corpus['threshold']:g}", f"{corpus['true_pairs']:,} ({truth})"]


def full_rows(record: Record) -> Iterator[list[str]]:
    """Yield a row for each run, with F1 and ARI; the first row of a corpus has its name and threshold."""
    for corpus in record["corpora"]:
        first = [f"{corpus['name'].replace('_', ' ')}, {corpus['documents']:,}, {corpus['shingle']}"]
        first += described(corpus)[1:]
        best = max(map(f1, corpus["runs"]))
        for run in corpus["runs"]:
            figures = [f"{run[name]:.4f}" if name in run else "" for name in ("recall", "precision")]
            figures += [with_spread(run, name) if name in run else "" for name in ("f1", "ari")]
            if f1(run) == best:
                figures[2] = f"**{figures[2]}**"
            name = f"{run['engine']}: {run['error']}" if run["error"] else run["engine"]
            yield [*first, name, *figures]
            first = [""] * len(first)


def with_spread(run: Record, name: str) -> str:
    """Return the mean of a figure over seeds, with half of its range unless that is 0."""
    least, greatest = run["range"][name]
    half = f"{(greatest - least) / 2:.4f}"
    return f"{run[name]:.4f}" if float(half) == 0 else f"{run[name]:.4f} ± {half}"


def size_rows(record: Record) -> Iterator[list[str]]:
    """Yield a row for each size of sets: the error of each scheme, from a record of figures."""
    lines = record["figures"]["error-by-size"]
    names = ("FastSketch", "one permutation", "k functions")
    for points in zip(*(lines[name] for name in names), strict=True):
        yield [f"{points[0][0]:,}", *(f"{error:.4f}" for _, error in points)]


def special_rows(record: Record) -> Iterator[list[str]]:
    """Yield a row for each special pair: the result of every engine, in bold if it is not the expected one."""
    for case in record["special"]:
        right = "found" if case["same"] else "not found"
        cells = [special_cell(case["results"][name], right) for name in COMPARED]
        yield [case["name"], "copy" if case["same"] else "different", f"{case['similarity']:.2f}", *cells]


def special_cell(result: str, right: str) -> str:
    """Return the result of an engine, "crashed" for an error."""
    shown = result if result in ("found", "not found") else "crashed"
    return shown if shown == right else f"**{shown}**"
