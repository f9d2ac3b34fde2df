"""Markdown table of a record of the peers benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from benchmarks.markdown import Record, machine_and_date, table
from benchmarks.peers.engines import BASELINES, REMOVING

NAMES = {"parquet": "pyarrow", "copy": "reading and writing the file", "minwise": "**minwise**"}
PEERS = ("FastSketchLSH", "rensa", "gaoya", "datasketch", "text-dedup", "text-dedup checked", "datatrove", "pyarrow")
CORES = (1, 2)


class Time(NamedTuple):
    """Seconds of the best round of an engine; a lower bound if it did not finish."""

    engine: str
    seconds: float
    finished: bool

    def relative_to(self, other: Time | None) -> str:
        """Return the ratio of two times; an empty string if the other did not finish."""
        if other is None or not other.finished:
            return ""
        return f"{'' if self.finished else '>'}{self.seconds / other.seconds:.1f}"


def peers_table(record: Record) -> str:
    """Return the table with a row for each task and engine; cells show one core and two cores."""
    sizes = [corpus["documents"] for corpus in record["corpora"]]
    columns = ["task", "engine", *(f"{size:,}" for size in sizes), "growth", "peak MB", "time / minwise", "removed, %"]
    lines = []
    before = ""
    for (task, engine), rows in by_engine(record).items():
        times = [" / ".join(show_seconds(row, size) for row in rows) for size in sizes]
        figures = [show_growth(rows[-1]), show_peak(rows[-1]), show_ratios(record, rows), show_removed(rows[-1], sizes)]
        lines.append(["" if task == before else task, NAMES.get(engine, engine), *times, *figures])
        before = task
    lines += [["", f"*{name}*", *cells, "", "", "", ""] for name, cells in ratio_rows(record).items()]
    return f"{table(columns, lines)}\n\n{footnote(record)}"


def by_engine(record: Record) -> dict[tuple[str, str], list[Record]]:
    """Return the rows of each task and engine, fewer cores first."""
    found: dict[tuple[str, str], list[Record]] = {}
    for row in record["rows"]:
        found.setdefault((row["task"], row["engine"]), []).append(row)
    return {key: sorted(rows, key=lambda row: int(row["cores"])) for key, rows in found.items()}


def time_of(record: Record, task: str, engine: str, cores: int, documents: int) -> Time | None:
    """Return the time of an engine in this run with up to ``cores`` cores; one that uses one core is as fast on two."""
    found = None
    for row in by_engine(record).get((task, engine), []):
        if row["cores"] <= cores and "measured" not in row:
            sizes = [size for size in row["sizes"] if size["documents"] == documents]
            found = Time(engine, min(sizes[0]["seconds"]), sizes[0]["finished"]) if sizes else found
    return found


def fastest_peer(record: Record, cores: int, documents: int) -> Time | None:
    """Return the time of the fastest tool other than minwise, from file to file."""
    engines = [engine for task, engine in by_engine(record) if task == REMOVING and engine not in BASELINES]
    times = [time_of(record, REMOVING, engine, cores, documents) for engine in engines]
    return min((time for time in times if time and time.finished), key=lambda time: time.seconds, default=None)


def ratio_rows(record: Record) -> dict[str, list[str]]:
    """Return minwise relative to the copy and the fastest peer relative to minwise, with a cell for each size."""
    sizes = [corpus["documents"] for corpus in record["corpora"]]
    return {
        "minwise / reading and writing the file": [copy_cell(record, size) for size in sizes],
        "fastest other tool / minwise": [peer_cell(record, size) for size in sizes],
    }


def copy_cell(record: Record, documents: int) -> str:
    """Return the time of minwise relative to reading and writing the file, on one core and on two."""
    times = [[time_of(record, REMOVING, name, cores, documents) for name in ("minwise", "copy")] for cores in CORES]
    return " / ".join(ours.relative_to(copy) for ours, copy in times if ours)


def peer_cell(record: Record, documents: int) -> str:
    """Return the time of the fastest peer relative to minwise, on one core and on two, with its name."""
    cells: list[list[str]] = []
    for cores in CORES:
        peer = fastest_peer(record, cores, documents)
        if peer:
            ratio = peer.relative_to(time_of(record, REMOVING, "minwise", cores, documents))
            cells.append([ratio, f"({peer.engine})"])
    if len({name for _, name in cells}) == 1:
        cells[:-1] = [[ratio] for ratio, _ in cells[:-1]]
    return " / ".join(" ".join(words) for words in cells)


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


def show_ratios(record: Record, rows: Sequence[Record]) -> str:
    """Return the time of an engine relative to minwise on one core and on two, at the largest size of both."""
    task, engine = rows[0]["task"], rows[0]["engine"]
    shown = []
    for cores in CORES if engine != "minwise" else ():
        for size in sorted((size["documents"] for size in rows[-1]["sizes"]), reverse=True):
            ours, theirs = (time_of(record, task, name, cores, size) for name in ("minwise", engine))
            if ours and theirs and ours.finished:
                shown.append(theirs.relative_to(ours))
                break
    return " / ".join(shown)


def show_removed(row: Record, sizes: Sequence[int]) -> str:
    """Return the percentage of the documents of each size that an engine removed; a dash where it did not finish."""
    if row["task"] != REMOVING or row["engine"] == "copy":
        return ""
    kept = {size["documents"]: size["kept"] for size in row["sizes"] if size["finished"]}
    return " / ".join(f"{100 * (1 - kept[size] / size):.1f}" if size in kept else "–" for size in sizes)


def faster_tools(record: Record) -> str:
    """Return which tools were faster than minwise with as many cores, as a sentence."""
    found = []
    for task, engine in by_engine(record):
        for cores, size in product(CORES, (corpus["documents"] for corpus in record["corpora"])):
            ours, theirs = (time_of(record, task, name, cores, size) for name in ("minwise", engine))
            if engine not in BASELINES and ours and theirs and theirs.finished and theirs.seconds < ours.seconds:
                found.append(f"{engine} with {size:,} on {('one core', 'two cores')[cores - 1]} ({task})")
    return f"Faster than minwise: {', '.join(found)}." if found else "No other tool was faster at any size."


def footnote(record: Record) -> str:
    """Return the caption of the table."""
    settings, versions = record["settings"], record["versions"]
    peers = ", ".join(f"{name} {versions[name]}" for name in PEERS if name in versions)
    sentences = [
        f"Seconds on one core / on two, {_rounds(settings['rounds'])}.",
        "A tool with one figure uses one core; on two it takes as long.",
        f"The largest corpus has {record['corpora'][-1]['text_bytes'] / 1e9:.2f} GB of text.",
        "*Growth* is the exponent of the time between the two largest sizes that the engine finished, *peak* the peak",
        "memory at the largest, both with the most cores that it was run with; *time / minwise* is the ratio at the",
        "largest size of both, on one core / on two; *removed* is the share of the documents of each size.",
        f"A run is ended after {settings['bound_seconds']:.0f} s (>). A dash: not run, because it cannot finish within",
        "that time, judging by a tenth of the documents or by two cores.",
        faster_tools(record),
        reused_rows(record),
        f"{settings['shingles']}, {settings['slots']} slots, threshold {settings['threshold']};",
        f"{machine_and_date(record)}; {peers}.",
        record.get("note", ""),
    ]
    return " ".join(filter(None, sentences))


def reused_rows(record: Record) -> str:
    """Return which rows come from an earlier run, as a sentence; their ratios are left out."""
    found = dict.fromkeys(f"{row['engine']} ({row['measured']})" for row in record["rows"] if "measured" in row)
    return f"From an earlier run, and not compared: {', '.join(found)}." if found else ""


def _rounds(count: int) -> str:
    if count == 1:
        return "one round"
    return f"best of {count} rounds for minwise, the copy and the two fastest other tools, one round for the rest"
