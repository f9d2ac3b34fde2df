"""Output of commands: summaries, JSON objects and progress bars."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from minwise._internal.formatting import format_similarity, plural
from minwise._internal.progress_bars import ProgressBars
from minwise.inputs.source import lists_faults
from minwise.progress import NullProgress, Progress
from minwise.results import DedupResult

__all__ = [
    "console_output",
    "fault_lines",
    "print_result",
    "progress_bars",
    "report_printer",
    "shorten",
    "show_dedup",
]


def print_result(values: dict[str, Any], line: str, *, as_json: bool, quiet: bool) -> None:
    """Print the values with ``--json``; otherwise the line, unless ``--quiet``."""
    if as_json:
        click.echo(json.dumps(values, indent=2))
    elif not quiet:
        click.echo(line)


# Returns the lines of a summary for a count of the report, the report, the output and the seconds.
Lines = Callable[[str, dict[str, Any], str | None, float], Iterator[str]]

SHOWN_CLUSTERS = 5
# Columns of a preview: a number, an id and a text.
Cells = tuple[str, str, str]
# Width of a preview that does not go to a terminal; minimum characters of an id and of a text.
PIPE_WIDTH = 100
MIN_ID_WIDTH = 12
MIN_TEXT_WIDTH = 10


def show_dedup(result: "DedupResult", output: str, seconds: float) -> None:
    """Print the counts of a deduplication, its largest clusters and its warnings."""
    with console_output() as console:
        _print_dedup(console, result, output, seconds)


def _print_dedup(console: Console, result: "DedupResult", output: str, seconds: float) -> None:
    report = result.report
    counts = report["counts"]
    if result.published:
        console.print(f"[bold]{escape(output)}[/bold] was already published from this work directory; nothing to do")
    facts = _table()
    rate = counts["read"] / seconds if seconds else 0.0
    facts.add_row("read", f"{plural(counts['read'], 'document')} in {seconds:.1f} s ({rate:,.0f} a second)")
    facts.add_row("kept", f"[bold green]{counts['kept']:,}[/] ({_share(counts['kept'], counts['read'])})")
    near = counts["removed"] - counts["removed_identical"]
    removed = f"[bold]{counts['removed']:,}[/] ({counts['removed_identical']:,} identical, {near:,} similar)"
    facts.add_row("removed", f"{removed}, each with its witness in removed.parquet" if counts["removed"] else "0")
    if counts["quarantined"] or report["unreadable"]:
        broken = f"{counts['quarantined']:,} rows and {len(report['unreadable']):,} files could not be read"
        where = "quarantine.jsonl says why" if lists_faults(report["on_error"]) else "they were skipped"
        facts.add_row("quarantined", f"[yellow]{broken}[/]; {where}")
    if counts["empty"]:
        facts.add_row("empty", f"{counts['empty']:,} without any token; kept")
    plan = report["plan"]
    facts.add_row("plan", _plan_line(plan))
    console.print(facts)
    _show_clusters(console, result)
    for warning in report["warnings"]:
        console.print(f"[yellow]note:[/] {escape(warning)}")
    kept, page = (escape(f"{output.rstrip('/')}/{name}") for name in ("kept", "report.html"))
    console.print(f"[dim]kept rows in[/] {kept}[dim]; to inspect the run, open[/] {page}")


def _plan_line(plan: dict[str, Any] | None) -> str:
    if plan is None:
        return "none: an exact join finds every pair"
    return f"{plan['bands']} bands × {plan['rows']} rows find {plan['recall']:.2%} of pairs at {plan['threshold']}"


def _show_clusters(console: Console, result: "DedupResult") -> None:
    """Print the largest clusters, each with one of its removed documents."""
    largest = result.largest_clusters(SHOWN_CLUSTERS)
    if not largest:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("removed", justify="right")
    table.add_column("kept")
    table.add_column("for example")
    for row in largest:
        table.add_row(f"{row['removed']:,}", escape(shorten(row["kept_id"])), escape(shorten(row["id"])))
    console.print()
    console.print("[dim]largest clusters[/]")
    console.print(table)


def report_printer(
    what: str, output: str | None, *, quiet: bool, as_json: bool, lines: Lines | None = None
) -> Callable[[dict[str, Any]], None]:
    """Return a function that prints a report and the seconds from now on.

    It prints to standard error if the result goes to standard output.

    Args:
        what: The count of the report to show first.
        output: The file of the result; None to show the first rows of the report.
        quiet: Print nothing.
        as_json: Print the report itself.
        lines: Returns the summary of a report that is not one of pairs of documents.
    """
    started = time.monotonic()
    aside = output == "-"

    def show(report: dict[str, Any]) -> None:
        seconds = time.monotonic() - started
        if as_json:
            run = {"output": output, "seconds": round(seconds, 3)}
            click.echo(json.dumps({**report, "run": run}, indent=2, ensure_ascii=False), err=aside)
            return
        if output is None:
            show_preview(report["first"])
        if not quiet:
            for line in (lines or _report_lines)(what, report, output, seconds):
                click.echo(line, err=aside)

    return show


def _report_lines(what: str, report: dict[str, Any], output: str | None, seconds: float) -> Iterator[str]:
    counts, caps = report["counts"], report["caps"]
    location = "" if output in ("-", None) else f", in {output}"
    documents = plural(counts["documents"], "document")
    yield f"{plural(report[what], what.removesuffix('s'))} among {documents} in {seconds:.1f} s{location}"
    if output is None and report[what]:
        yield f"to get all {what}: -o FILE, a .parquet, .csv, .tsv or .jsonl file, or -o - for JSON lines"
    rows = report.get("rows", {"quarantined": 0})
    if "rows" in report:
        yield f"grouped from {rows['read']:,} rows"
    if "blocking" in report:
        yield from _blocking_lines(report["blocking"])
    if counts["quarantined"] + rows["quarantined"] or report["unreadable"]:
        files = len(report["unreadable"])
        counts = {"quarantined": counts["quarantined"] + rows["quarantined"]}
        yield f"{counts['quarantined']:,} rows and {files:,} files could not be read and are left out"
    yield from fault_lines(report)
    if caps["buckets"]:
        yield (
            f"{caps['buckets']:,} buckets of more than {caps['max_bucket']:,} documents were capped: "
            f"{caps['candidates_left_out']:,} candidates left out, at most about "
            f"{caps['estimated_pairs_missed_at_most']:,} pairs missed"
        )
    if caps["identical_groups"]:
        yield (
            f"{caps['identical_groups']:,} groups of more than {caps['max_bucket']:,} identical documents were capped: "
            f"{caps['identical_pairs_left_out']:,} pairs left out"
        )


def show_preview(rows: list[dict[str, Any]]) -> None:
    """Print the first rows of a result with the texts of their documents, none of them wider than the terminal."""
    if not rows:
        return
    head, lines = _pair_cells(rows) if "left" in rows[0] else _cluster_cells(rows)
    width = _console_width()
    ids = min(max(len(head[1]), *(len(line[1]) for line in lines)), max(MIN_ID_WIDTH, width // 3))
    with console_output() as console:
        console.print(_preview_table(head, lines, ids, width))


def _console_width() -> int:
    console = Console()
    return console.width if console.is_terminal else PIPE_WIDTH


def _preview_table(head: Cells, lines: list[Cells], ids: int, width: int) -> Table:
    """Return a table of three columns: a number, an id of at most ``ids`` characters, and a text in the rest."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for position, name in enumerate(head):
        table.add_column(name, justify="left" if position else "right", no_wrap=True)
    room = max(MIN_TEXT_WIDTH, width - ids - len(head[0]) - 5)
    for number, name, text in lines:
        table.add_row(
            number,
            Text(shorten(name, ids)),
            Text(set_cell_size(text, room - 1).rstrip() + "…" if cell_len(text) > room else text),
        )
    return table


def _pair_cells(rows: list[dict[str, Any]]) -> tuple[Cells, list[Cells]]:
    """Return two lines for each pair, one for each document."""
    measure = next(name for name in rows[0] if name.startswith("similarity"))
    lines: list[Cells] = []
    for row in rows:
        similarity = "" if row[measure] is None else format_similarity(row[measure])
        lines.append((similarity, str(row["left"]), row["left_text"] or ""))
        lines.append(("", str(row["right"]), row["right_text"] or ""))
    return (measure.replace("_", " "), "left, right", "text" if rows[0]["left_text"] else ""), lines


def _cluster_cells(rows: list[dict[str, Any]]) -> tuple[Cells, list[Cells]]:
    """Return a line for each document; the first one of a cluster shows its size."""
    clusters = [None, *(row["cluster"] for row in rows)]
    lines = [
        (f"{row['size']:,}" if row["cluster"] != before else "", str(row["id"]), row["text"] or "")
        for before, row in zip(clusters, rows, strict=False)
    ]
    return ("size", "cluster", "text" if rows[0]["text"] else ""), lines


def fault_lines(report: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each row that could not be used, with the reason."""
    for fault in report["faults"]:
        row = "" if fault["row"] is None else f" row {fault['row']}:"
        yield f"  {fault['source']}:{row} {fault['reason']}"


def _blocking_lines(quality: dict[str, Any]) -> Iterator[str]:
    """Yield the quality of pairs against the ground-truth column."""
    for name, what in (
        ("pairs_completeness", f"{quality['true_pairs_found']:,} of {quality['true_pairs']:,} true pairs"),
        ("reduction_ratio", f"of {quality['all_pairs']:,} possible pairs"),
        ("pairs_quality", "of the pairs listed are true"),
    ):
        value = quality[name]
        yield f"{name.replace('_', ' ')} {'none' if value is None else f'{value:.4f}'}: {what}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "0 %"


def shorten(value: object, most: int = 60) -> str:
    """Return a name of at most ``most`` characters: the middle of a long one is left out, its file name is not.

    >>> shorten("crawl/2026/november/part-00012.jsonl:7", 28)
    'crawl/…/part-00012.jsonl:7'
    >>> shorten("a-name-without-any-directory", 11)
    'a-nam…ctory'
    """
    text = "".join(character if character.isprintable() else "\ufffd" for character in str(value))
    if len(text) <= most:
        return text
    folder, slash, name = text.rpartition("/")
    room = most - len(name) - len("…/")
    if slash and room >= 0:
        head = folder[:room]
        return f"{head[: head.rfind('/') + 1] or head}…/{name}"
    half = (most - 1) // 2
    return f"{text[: most - 1 - half]}…{text[-half:]}"


def _table() -> Table:
    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column()
    return table


@contextmanager
def console_output() -> Iterator[Console]:
    """Yield a console whose lines go to standard output, without trailing spaces."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 10_000  # nothing is wrapped or cut in a pipe
    with console.capture() as capture:
        yield console
    click.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))


def progress_bars(*, quiet: bool) -> Progress:
    """Return progress bars if standard error is a terminal and output is not quiet; otherwise a null receiver."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        return NullProgress()
    return ProgressBars(Console(file=sys.stderr, stderr=True))
