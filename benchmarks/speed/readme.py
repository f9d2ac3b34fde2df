"""README: the newest record in, the README's speed table out. ``python -m benchmarks.speed.readme`` writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.recording import FOLDER

README = Path(__file__).parents[2] / "README.md"
START = "<!-- speed: written by python -m benchmarks.speed.readme -->\n"
END = "<!-- end of speed -->"
COLUMNS = ("texts", "engine", "MB/s, one core", "MB/s, two cores", "minwise on one core is", "and on two")

Record = dict[str, Any]


def main() -> None:
    """Put the table of the newest record into the README."""
    before, _, rest = README.read_text(encoding="utf-8").partition(START)
    _, _, after = rest.partition(END)
    README.write_text(before + section(newest_record()) + after, encoding="utf-8")


def newest_record() -> Record:
    """Return the record with the latest date; those of other benchmarks begin with a name."""
    newest: Record = json.loads(max(FOLDER.glob("[0-9]*.json")).read_text(encoding="utf-8"))
    return newest


def section(record: Record) -> str:
    """Return everything between the two marks, with them."""
    machine, versions = record["machine"], record["versions"]
    where = f"{machine['processor']}, {machine['cores']} cores, {record['finished'][:10]}"
    peers = ", ".join(f"{name} {versions[name]}" for name in ("datasketch", "rensa"))
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS), *rows(record)]
    return START + "\n".join(lines) + f"\n\n256 slots; {where}; {peers}, pyarrow {versions['pyarrow']}.\n" + END


def rows(record: Record) -> Iterator[str]:
    """Yield a row for ours on each corpus, and one for each peer and for reading the file beside it."""
    for corpus in record["corpora"]:
        alone, both = (rate(record, "minwise", corpus, threads, sample=False) for threads in (1, 2))
        yield row([f"**{corpus}**", "minwise", cell(alone), cell(both), "", ""])
        single, double = (rate(record, "minwise", corpus, threads, sample=True) for threads in (1, 2))
        for engine in ("rensa", "datasketch"):
            peer = rate(record, engine, corpus, 1, sample=True)
            if peer and single and double:
                yield row(["", engine, cell(peer), "", times(single / peer), times(double / peer)])
        reading = rate(record, "parquet", corpus, 2, sample=False)
        if reading and both:
            yield row(["", "pyarrow reading the file", "", cell(reading), "", times(both / reading)])


def rate(record: Record, engine: str, corpus: str, threads: int, *, sample: bool) -> float | None:
    """Return the best rate of an engine on a corpus with word:5 shingles and 256 slots, if it was measured."""
    wanted = {"engine": engine, "corpus": corpus, "threads": threads, "sample": sample}
    if engine == "minwise":
        wanted |= {"scheme": "fast", "shingles": "word:5"}
    if engine != "parquet":
        wanted |= {"slots": 256}
    found = [one for one in record["measurements"] if all(one[key] == value for key, value in wanted.items())]
    return max((one["megabytes_per_second"] for one in found), default=None)


def row(cells: list[str]) -> str:
    """Return a row of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def cell(value: float | None) -> str:
    """Return a rate, with a decimal only where it says something."""
    return "" if value is None else f"{value:,.0f}" if value >= 20 else f"{value:.1f}"


def times(ratio: float) -> str:
    """Return how many times faster."""
    return f"{ratio:.0f}× as fast" if ratio >= 10 else f"{ratio:.1f}× as fast"


if __name__ == "__main__":
    main()
