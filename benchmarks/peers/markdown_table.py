"""Table: a record in, the table of the README out."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.markdown import Record, table, where
from benchmarks.peers.engines import REMOVING

NAMES = {"parquet": "pyarrow", "copy": "reading and writing the file", "minwise": "**minwise**"}
PEERS = ("rensa", "gaoya", "datasketch", "text-dedup", "datatrove", "pyarrow")


def peers_table(record: Record) -> str:
    """Return both tasks of all engines: a row for each engine, one core and two cores side by side."""
    sizes = [corpus["documents"] for corpus in record["corpora"]]
    columns = ["", "engine", *(f"{size:,}" for size in sizes), "growth", "peak MB", "times minwise", "removed"]
    common = most_done_by_all(record)
    lines = []
    before = ""
    for (task, engine), rows in by_engine(record).items():
        times = [" / ".join(show_seconds(row, size) for row in rows) for size in sizes]
        figures = [show_growth(rows[-1]), show_peak(rows[-1]), show_ratios(rows), show_removed(rows[-1], common)]
        lines.append(["" if task == before else task, NAMES.get(engine, engine), *times, *figures])
        before = task
    return f"{table(columns, lines)}\n\n{footnote(record)}"


def by_engine(record: Record) -> dict[tuple[str, str], list[Record]]:
    """Return the rows of each task and engine, those of fewer cores first."""
    found: dict[tuple[str, str], list[Record]] = {}
    for row in record["rows"]:
        found.setdefault((row["task"], row["engine"]), []).append(row)
    return found


def show_seconds(row: Record, documents: int) -> str:
    """Return the best round; a dash where nobody asked."""
    size = next((size for size in row["sizes"] if size["documents"] == documents), None)
    if size is None:
        return "–"
    best = min(size["seconds"])
    return (f"{best:.2f}" if best < 10 else f"{best:.0f}") if size["finished"] else f">{best:.0f}"


def show_growth(row: Record) -> str:
    """Return the exponent, if two sizes were finished."""
    return "" if row["growth"] is None else f"{row['growth']:.2f}"


def show_peak(row: Record) -> str:
    """Return the most memory at the largest size that was finished."""
    done = [size for size in row["sizes"] if size["finished"]]
    return f"{max(done[-1]['peak_bytes']) / 1e6:,.0f}" if done else ""


def show_ratios(rows: list[Record]) -> str:
    """Return how many times our time an engine takes on one core, and on two."""
    ratios = [row["times_minwise"] for row in rows if row["times_minwise"] is not None]
    shown = [f"{'' if finished else '>'}{ratio:.1f}" for ratio, finished in ratios]
    return " / ".join(shown)


def show_removed(row: Record, documents: int) -> str:
    """Return which share of so many documents an engine removed."""
    if row["task"] != REMOVING or row["engine"] == "copy":
        return ""
    return next(f"{1 - size['kept'] / documents:.1%}" for size in row["sizes"] if size["documents"] == documents)


def most_done_by_all(record: Record) -> int:
    """Return the largest number of documents that every engine deduplicated."""
    done = [
        {size["documents"] for size in row["sizes"] if size["finished"]}
        for row in record["rows"]
        if row["task"] == REMOVING
    ]
    return int(max(set.intersection(*done)))


def quicker(record: Record) -> str:
    """Return who needed less time than minwise for the same, on as many cores; nothing if nobody did."""
    ours = {(row["task"], row["cores"], size): took for row, size, took in runs(record) if row["engine"] == "minwise"}
    found = [
        f"{row['engine']} with {size:,} on {('one core', 'two cores')[row['cores'] - 1]} ({row['task']})"
        for row, size, took in runs(record)
        if row["engine"] not in NAMES and took < ours[row["task"], row["cores"], size]
    ]
    return f"Faster than minwise: {', '.join(found)}." if found else "No other tool was faster at any size."


def runs(record: Record) -> Iterator[tuple[Record, int, float]]:
    """Yield each row with each size that was finished, and the best of its rounds."""
    for row in record["rows"]:
        for size in row["sizes"]:
            if size["finished"]:
                yield row, size["documents"], min(size["seconds"])


def footnote(record: Record) -> str:
    """Return what the numbers are."""
    settings, versions = record["settings"], record["versions"]
    peers = ", ".join(f"{name} {versions[name]}" for name in PEERS)
    said = [
        f"Seconds on one core / on two, {_rounds(settings['rounds'])}.",
        f"The largest corpus has {record['corpora'][-1]['text_bytes'] / 1e9:.2f} GB of text.",
        "*Growth* is the exponent between the two largest sizes, *peak* that of the largest, both on as many cores as",
        "the engine was given; *times minwise* at the largest that both did; *removed* is the share of",
        f"{most_done_by_all(record):,} documents, which all did.",
        f"A dash: not possible within {settings['bound_seconds']:.0f} s, by what a tenth took.",
        quicker(record),
        f"{settings['shingles']}, {settings['slots']} slots, threshold {settings['threshold']};",
        f"{where(record)}; {peers}.",
        record.get("note", ""),
    ]
    return " ".join(said).rstrip()


def _rounds(count: int) -> str:
    return "one round" if count == 1 else f"the best of up to {count} rounds"
