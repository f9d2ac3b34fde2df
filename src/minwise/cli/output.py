"""Output of commands: summaries, JSON objects and progress bars."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from minwise._internal.formatting import plural
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
Lines = Callable[[str, dict[str, Any], str, float], Iterator[str]]

SHOWN_CLUSTERS = 5


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
    what: str, output: str, *, quiet: bool, as_json: bool, lines: Lines | None = None
) -> Callable[[dict[str, Any]], None]:
    """Return a function that prints a report and the seconds from now on.

    It prints to standard error if the result goes to standard output.

    Args:
        what: The count of the report to show first.
        output: The file of the result.
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
        elif not quiet:
            for line in (lines or _report_lines)(what, report, output, seconds):
                click.echo(line, err=aside)

    return show


def _report_lines(what: str, report: dict[str, Any], output: str, seconds: float) -> Iterator[str]:
    counts, caps = report["counts"], report["caps"]
    location = "" if output == "-" else f", in {output}"
    yield f"{report[what]:,} {what} among {counts['documents']:,} documents in {seconds:.1f} s{location}"
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
    """Return a name that fits on a line: the end of a long one, which distinguishes it."""
    text = str(value)
    return text if len(text) <= most else f"…{text[-most + 1 :]}"


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
