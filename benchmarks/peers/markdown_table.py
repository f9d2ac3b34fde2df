"""Markdown table of a record of the peers benchmark."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.markdown import Record, machine_and_date, table
from benchmarks.peers.engines import REMOVING

NAMES = {"parquet": "pyarrow", "copy": "reading and writing the file", "minwise": "**minwise**"}
PEERS = ("rensa", "gaoya", "datasketch", "text-dedup", "datatrove", "pyarrow")


def peers_table(record: Record) -> str:
    """Return the table with a row for each task and engine; cells show one core and two cores."""
    sizes = [corpus["documents"] for corpus in record["corpora"]]
    columns = ["task", "engine", *(f"{size:,}" for size in sizes), "growth", "peak MB", "time / minwise", "removed"]
    common = largest_common_size(record)
    lines = []
    before = ""
    for (task, engine), rows in by_engine(record).items():
        times = [" / ".join(show_seconds(row, size) for row in rows) for size in sizes]
        figures = [show_growth(rows[-1]), show_peak(rows[-1]), show_ratios(rows), show_removed(rows[-1], common)]
        lines.append(["" if task == before else task, NAMES.get(engine, engine), *times, *figures])
        before = task
    return f"{table(columns, lines)}\n\n{footnote(record)}"


def by_engine(record: Record) -> dict[tuple[str, str], list[Record]]:
    """Return the rows of each task and engine, fewer cores first."""
    found: dict[tuple[str, str], list[Record]] = {}
    for row in record["rows"]:
        found.setdefault((row["task"], row["engine"]), []).append(row)
    return found


def show_seconds(row: Record, documents: int) -> str:
    """Return the seconds of the best round; a dash if the job was not run."""
    size = next((size for size in row["sizes"] if size["documents"] == documents), None)
    if size is None:
        return "–"
    best = min(size["seconds"])
    return (f"{best:.2f}" if best < 10 else f"{best:.0f}") if size["finished"] else f">{best:.0f}"


def show_growth(row: Record) -> str:
    """Return the exponent if two sizes were finished."""
    return "" if row["growth"] is None else f"{row['growth']:.2f}"


def show_peak(row: Record) -> str:
    """Return the peak memory at the largest finished size."""
    done = [size for size in row["sizes"] if size["finished"]]
    return f"{max(done[-1]['peak_bytes']) / 1e6:,.0f}" if done else ""


def show_ratios(rows: list[Record]) -> str:
    """Return the time of an engine relative to minwise on one core and on two."""
    ratios = [row["times_minwise"] for row in rows if row["times_minwise"] is not None]
    shown = [f"{'' if finished else '>'}{ratio:.1f}" for ratio, finished in ratios]
    return " / ".join(shown)


def show_removed(row: Record, documents: int) -> str:
    """Return the share of ``documents`` documents that an engine removed."""
    if row["task"] != REMOVING or row["engine"] == "copy":
        return ""
    return next(f"{1 - size['kept'] / documents:.1%}" for size in row["sizes"] if size["documents"] == documents)


def largest_common_size(record: Record) -> int:
    """Return the largest number of documents that every engine deduplicated."""
    done = [
        {size["documents"] for size in row["sizes"] if size["finished"]}
        for row in record["rows"]
        if row["task"] == REMOVING
    ]
    return int(max(set.intersection(*done)))


def faster_tools(record: Record) -> str:
    """Return which tools were faster than minwise with as many cores, as a sentence."""
    ours = {(row["task"], row["cores"], size): took for row, size, took in runs(record) if row["engine"] == "minwise"}
    found = [
        f"{row['engine']} with {size:,} on {('one core', 'two cores')[row['cores'] - 1]} ({row['task']})"
        for row, size, took in runs(record)
        if row["engine"] not in NAMES and took < ours[row["task"], row["cores"], size]
    ]
    return f"Faster than minwise: {', '.join(found)}." if found else "No other tool was faster at any size."


def runs(record: Record) -> Iterator[tuple[Record, int, float]]:
    """Yield each row with each finished size and the seconds of its best round."""
    for row in record["rows"]:
        for size in row["sizes"]:
            if size["finished"]:
                yield row, size["documents"], min(size["seconds"])


def footnote(record: Record) -> str:
    """Return the caption of the table."""
    settings, versions = record["settings"], record["versions"]
    peers = ", ".join(f"{name} {versions[name]}" for name in PEERS)
    sentences = [
        f"Seconds on one core / on two, {_rounds(settings['rounds'])}.",
        f"The largest corpus has {record['corpora'][-1]['text_bytes'] / 1e9:.2f} GB of text.",
        "*Growth* is the exponent of the time between the two largest sizes, *peak* the peak memory at the largest",
        "size, both with the most cores that the engine was run with; *time / minwise* is the ratio at the largest",
        f"size of both; *removed* is the share of {largest_common_size(record):,} documents, the largest size that all",
        f"tools finished. A dash: not run, because it cannot finish within {settings['bound_seconds']:.0f} s, judging",
        "by a tenth of the documents.",
        faster_tools(record),
        f"{settings['shingles']}, {settings['slots']} slots, threshold {settings['threshold']};",
        f"{machine_and_date(record)}; {peers}.",
        record.get("note", ""),
    ]
    return " ".join(sentences).rstrip()


def _rounds(count: int) -> str:
    return "one round" if count == 1 else f"best of up to {count} rounds"
