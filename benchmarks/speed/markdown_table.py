"""Rows of the Markdown table of a record of the speed benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Record = dict[str, Any]


def rows(record: Record) -> Iterator[list[str]]:
    """Yield a row for minwise on each corpus, followed by rows for the peers and for reading the file."""
    for corpus in record["corpora"]:
        alone, both = (rate(record, "minwise", corpus, threads, sample=False) for threads in (1, 2))
        yield [f"**{corpus}**", "minwise", cell(alone), cell(both), "", ""]
        single, double = (rate(record, "minwise", corpus, threads, sample=True) for threads in (1, 2))
        for engine in ("rensa", "datasketch"):
            peer = rate(record, engine, corpus, 1, sample=True)
            if peer and single and double:
                yield ["", engine, cell(peer), "", speedup(single / peer), speedup(double / peer)]
        reading = rate(record, "parquet", corpus, 2, sample=False)
        if reading and both:
            yield ["", "pyarrow reading the file", "", cell(reading), "", speedup(both / reading)]


def rate(record: Record, engine: str, corpus: str, threads: int, *, sample: bool) -> float | None:
    """Return the best rate of an engine on a corpus with word:5 shingles and 256 slots, if it was measured."""
    wanted = {"engine": engine, "corpus": corpus, "threads": threads, "sample": sample}
    if engine == "minwise":
        wanted |= {"scheme": "fast", "shingles": "word:5"}
    if engine != "parquet":
        wanted |= {"slots": 256}
    found = [entry for entry in record["measurements"] if all(entry[key] == value for key, value in wanted.items())]
    return max((entry["megabytes_per_second"] for entry in found), default=None)


def cell(value: float | None) -> str:
    """Return a rate, with one decimal below 20."""
    return "" if value is None else f"{value:,.0f}" if value >= 20 else f"{value:.1f}"


def speedup(ratio: float) -> str:
    """Return a speedup."""
    return f"{ratio:.0f}×" if ratio >= 10 else f"{ratio:.1f}×"
