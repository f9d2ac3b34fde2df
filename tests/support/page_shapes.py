"""Reports for page tests: that of a real run, and variants for unusual runs."""

import copy
import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import minwise as mw
from minwise.report.page import report_page
from minwise.sketches import Plan

NEWSROOM = Path(__file__).parents[2] / "examples" / "newsroom" / "docs.jsonl"
RUN: dict[str, Any] = {
    "minwise": "0.1.0",
    "started": "2026-11-16T02:40:00+00:00",
    "seconds": 1.234,
    "resumed": False,
    "stages": [{"stage": "read and sketch", "seconds": 0.512}, {"stage": "write", "seconds": 0.1234}],
    "peak_memory_bytes": 312_000_000,
    "peak_memory_before_bytes": 90_000_000,
    "memory_limit_bytes": 4_000_000_000,
    "threads": 2,
}
LONG = "averylongnamewithnoplacetobreakit" * 40


class Shape(NamedTuple):
    """The data of a report page."""

    report: dict[str, Any]
    run: dict[str, Any]
    texts: dict[tuple[str, int], str]
    audit: dict[str, Any] | None = None

    def page(self) -> str:
        """Return the HTML page."""
        return report_page(self.report, self.run, self.texts, self.audit)


@lru_cache(maxsize=1)
def _newsroom() -> Shape:
    report = mw.dedup(str(NEWSROOM), shingle="word:3", threshold=0.55).report
    lines = NEWSROOM.read_text(encoding="utf-8").splitlines()
    source = report["sources"][0]["source"]
    return Shape(report, RUN, {(source, row): json.loads(line)["text"] for row, line in enumerate(lines)})


def newsroom() -> Shape:
    """Return a copy of the report of the newsroom corpus, which may be changed."""
    return copy.deepcopy(_newsroom())


def documents(shape: Shape) -> list[dict[str, Any]]:
    """Return every document of the report, which may be changed in place."""
    found = []
    for cluster in shape.report["largest_clusters"]:
        found += [cluster["kept"], *cluster["members"]]
    for pair in shape.report["just_below"]["closest"]:
        found += [pair["left"], pair["right"]]
    return found


def renamed(shape: Shape, name: Callable[[int], object]) -> Shape:
    """Replace the ids by a function of the row number; return the shape."""
    for document in documents(shape):
        document["id"] = name(document["row"])
    return shape


def nothing_removed() -> Shape:
    """Return the report of unrelated documents."""
    return Shape(mw.dedup(["one two three", "four five six", "seven"]).report, RUN, {})


def empty_corpus() -> Shape:
    """Return the report of an empty corpus."""
    return Shape(mw.dedup([]).report, {**RUN, "stages": [], "seconds": 0.0}, {})


def many_sources(count: int = 3000) -> Shape:
    """Return a report with more sources and warnings than a page shows."""
    shape = newsroom()
    names = [f"data/part-{number:05}.jsonl" for number in range(count)]
    shape.report["sources"] = [
        {"source": name, "rows": 100, "quarantined": 1, "kept": 99 - number % 90, "removed": number % 90}
        for number, name in enumerate(names)
    ]
    shape.report["warnings"] = [f"{name} loses 60 of its 100 documents, more than half" for name in names]
    return shape


def without_similarities() -> Shape:
    """Return the report of a run without verification."""
    report = mw.dedup(str(NEWSROOM), verify="none").report
    return Shape(report, RUN, newsroom().texts)


def estimated() -> Shape:
    """Return the report of a run whose similarities are estimates."""
    return Shape(mw.dedup(str(NEWSROOM), verify="signature").report, RUN, newsroom().texts)


def exact() -> Shape:
    """Return the report of an exact join."""
    return Shape(mw.dedup(str(NEWSROOM), exact=True).report, RUN, newsroom().texts)


def sets() -> Shape:
    """Return the report of sets, which have no text."""
    given = mw.ShingleSets.from_sets([set(range(20)), set(range(21)), {1000}])
    return Shape(mw.dedup(given).report, RUN, {})


def chained() -> Shape:
    """Return the report of a run that groups by components."""
    return Shape(
        mw.dedup(str(NEWSROOM), shingle="word:3", threshold=0.5, group="components").report, RUN, newsroom().texts
    )


def against() -> Shape:
    """Return the report of a run against a reference corpus with the same documents."""
    return Shape(mw.dedup(str(NEWSROOM), against=str(NEWSROOM)).report, RUN, newsroom().texts)


def texts_missing() -> Shape:
    """Return a report without texts."""
    shape = newsroom()
    shape.texts.clear()
    return shape


def with_warnings() -> Shape:
    """Return a report with every kind of warning."""
    shape = newsroom()
    shape.report["counts"] |= {"read": 43, "quarantined": 3}
    shape.report["caps"] |= {"buckets": 1, "candidates_left_out": 1234, "estimated_pairs_missed_at_most": 5}
    shape.report["unreadable"] = [{"source": "broken.parquet", "row": None, "reason": "not a Parquet file"}]
    shape.report["duplicate_ids"] = 2
    shape.run.update(peak_memory_bytes=5_000_000_000, resumed=True)
    return shape


def audited() -> Shape:
    """Return a report with an audit, with a bin outside its interval and a bin without pairs."""
    shape = newsroom()
    plan = mw.plan(0.55, bands=shape.report["plan"]["bands"], rows=shape.report["plan"]["rows"])
    bins = [_bin(plan, tenth / 20) for tenth in range(8, 20)]
    bins[1] |= {"found": 100, "value": 0.5, "low": 0.43, "high": 0.57, "promised": 0.64}
    bins[3] |= {"pairs": 0, "found": 0, "value": None, "low": None, "high": None, "promised": None}
    histogram = [
        {
            "from": at / 50,
            "to": (at + 1) / 50,
            "pairs": 50 - at,
            "estimated": 500.0 - 10 * at,
            "low": 1.0,
            "high": 700.0,
        }
        for at in range(20, 50)
    ]
    audit = {
        "minwise": "0.1.0",
        "settings": shape.report["settings"],
        "plan": plan.to_dict(),
        "documents": 60_000,
        "identical": 3,
        "sampled": 20_000,
        "complete": False,
        "threshold": 0.55,
        "floor": 0.4,
        "confidence": 0.95,
        "recall": {"value": 0.9934, "low": 0.98, "high": 0.997, "pairs": 1200, "found": 1192, "promised": 0.9958},
        "documents_with_duplicates": {"documents": 900, "found": 898, "value": 0.9978, "low": 0.99, "high": 0.999},
        "precision": {"value": 0.61, "low": 0.59, "high": 0.63, "candidates": 2000, "pairs": 1220},
        "bins": bins,
        "histogram": histogram,
        "suggestion": {"threshold": 0.66, "bands": 30, "rows": 7, "recall": 0.99, "why": "Few pairs lie near 0.66."},
    }
    return shape._replace(audit=audit)


def audited_completely() -> Shape:
    """Return a report with an audit of all documents, with capped buckets."""
    shape = audited()
    assert shape.audit is not None
    caps = {"max_bucket": 2000, "buckets": 3, "candidates_left_out": 1}
    shape.audit.update(documents=40, distinct=37, sampled=37, complete=True, caps=caps)
    for entry in shape.audit["histogram"]:
        pairs = float(entry["pairs"])
        entry |= {"estimated": pairs, "low": pairs, "high": pairs}
    return shape


def _bin(plan: Plan, start: float) -> dict[str, Any]:
    middle = plan.probability(start + 0.025)
    found = {"value": middle, "low": max(0.0, middle - 0.05), "high": min(1.0, middle + 0.05), "promised": middle}
    return {"from": start, "to": start + 0.05, "pairs": 200, "found": round(200 * middle), **found}


SHAPES: dict[str, Callable[[], Shape]] = {
    "newsroom": newsroom,
    "nothing removed": nothing_removed,
    "empty corpus": empty_corpus,
    "many sources": many_sources,
    "without similarities": without_similarities,
    "estimated": estimated,
    "exact": exact,
    "sets": sets,
    "chained": chained,
    "against": against,
    "texts missing": texts_missing,
    "with warnings": with_warnings,
    "audited": audited,
    "audited completely": audited_completely,
    "ids that are numbers": lambda: renamed(newsroom(), lambda row: 2**63 - 1 - row),
    "long ids": lambda: renamed(newsroom(), lambda row: f"{LONG}{row}"),
    "a part of run.json": lambda: newsroom()._replace(run={}),
}
