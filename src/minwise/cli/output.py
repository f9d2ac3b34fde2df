"""Output of commands: summaries, JSON objects and progress bars."""

import errno
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import click
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from minwise._internal.formatting import format_percent, format_similarity, plural
from minwise.cli.options import with_option_names
from minwise.cli.session import current_session
from minwise.options import lists_faults
from minwise.progress import Progress, Stopwatch
from minwise.report.ending_section import ending_sentences
from minwise.results import CutResult, DecontaminationResult, DedupResult

__all__ = [
    "closing_lines",
    "console_output",
    "left_out_line",
    "nearest_lines",
    "passage_lines",
    "print_result",
    "progress_bars",
    "report_printer",
    "seconds_by_stage",
    "shorten",
    "show_cuts",
    "show_dedup",
    "skipped_lines",
    "stage_lines",
    "vector_lines",
    "watched_progress",
    "write_kept",
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
SHOWN_FAULTS = 5
# Columns of a preview: a number, an id and a text.
Cells = tuple[str, str, str]
# Width of a preview that does not go to a terminal; minimum characters of an id and of a text.
PIPE_WIDTH = 100
MIN_ID_WIDTH = 12
MIN_TEXT_WIDTH = 10


def show_dedup(result: "DedupResult", output: str, watch: Stopwatch) -> None:
    """Print the counts of a deduplication, its largest clusters and what to know about its inputs.

    It prints to standard error if the kept rows went to standard output.
    """
    with console_output(err=output == "-") as console:
        _print_dedup(console, result, output, watch)


def _print_dedup(console: Console, result: "DedupResult", output: str, watch: Stopwatch) -> None:
    report = result.report
    if result.published:
        console.print(_published(output))
    facts = _table()
    for name, value in _dedup_facts(report, output, watch):
        facts.add_row(name, value)
    console.print(facts)
    _show_clusters(console, result)
    _print_closing(console, report, output)


def _published(output: str) -> str:
    return f"[bold]{escape(output)}[/bold] was already published from this work directory; nothing to do"


def write_kept(result: DedupResult | CutResult | DecontaminationResult) -> None:
    """Write the kept rows to standard output."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, "is closed", "standard output")
    result.write_kept(sys.stdout.buffer)
    sys.stdout.buffer.flush()


def _print_closing(console: Console, report: dict[str, Any], output: str) -> None:
    """Print notes and faults, and where the kept rows and the page are."""
    listed = f"{output.rstrip('/')}/quarantine.jsonl" if output != "-" and lists_faults(report["on_error"]) else None
    for line in closing_lines(report, listed):
        console.print(escape(line), style="yellow" if line.startswith("note:") else None)
    if output != "-":
        kept, page = (escape(f"{output.rstrip('/')}/{name}") for name in ("kept", "report.html"))
        console.print(f"[dim]kept rows in[/] {kept}[dim]; to inspect the run, open[/] {page}")


def show_cuts(result: "CutResult", output: str, watch: Stopwatch) -> None:
    """Print the counts of cut passages, those that are repeated most, and what to know about the inputs."""
    with console_output(err=output == "-") as console:
        if result.published:
            console.print(_published(output))
        facts = _table()
        for name, value in _cut_facts(result.report, watch):
            facts.add_row(name, value)
        console.print(facts)
        _show_repeats(console, result.report["most_repeated"][:SHOWN_CLUSTERS])
        _print_closing(console, result.report, output)


def _cut_facts(report: dict[str, Any], watch: Stopwatch) -> Iterator[tuple[str, str]]:
    """Yield the rows of the summary of cuts."""
    counts, tokens = report["counts"], report["tokens"]
    yield "read", _read_line(counts, watch)
    yield "kept", _kept_line(counts)
    cut = f"[bold]{plural(counts['cuts'], 'passage')}[/], {tokens['cut']:,} of {plural(tokens['read'], 'token')}"
    yield "cut", f"{cut} ({tokens['cut'] / max(1, tokens['read']):.1%})"
    yield "removed", f"{counts['removed']:,}" + (", of which too little was left" if counts["removed"] else "")
    yield from _left_out_facts(report)
    yield from (("stages", line) for line in stage_lines(watch))


def _show_repeats(console: Console, repeats: list[dict[str, Any]]) -> None:
    """Print the passages that are repeated most."""
    if not repeats:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("repeats", justify="right")
    table.add_column("first in")
    table.add_column("text")
    for row in repeats:
        text = shorten(" ".join(row["text"].split()))
        table.add_row(f"{row['repeats']:,}", escape(shorten(row["first"]["id"], 30)), escape(text))
    console.print()
    console.print("[dim]most repeated passages[/]")
    console.print(table)


def _dedup_facts(report: dict[str, Any], output: str, watch: Stopwatch) -> Iterator[tuple[str, str]]:
    """Yield the rows of the summary."""
    counts = report["counts"]
    yield "read", _read_line(counts, watch)
    yield "kept", _kept_line(counts)
    near = counts["removed"] - counts["removed_identical"]
    removed = f"[bold]{counts['removed']:,}[/] ({counts['removed_identical']:,} identical, {near:,} similar)"
    witness = "" if output == "-" else ", each with its witness in removed.parquet"
    yield "removed", f"{removed}{witness}" if counts["removed"] else "0"
    yield from (("clusters", escape(sentence)) for sentence in ending_sentences(report))
    yield from _left_out_facts(report)
    yield "plan", _plan_line(report["plan"])
    yield from (("stages", line) for line in stage_lines(watch))


def _read_line(counts: dict[str, int], watch: Stopwatch) -> str:
    seconds = watch.seconds
    rate = counts["read"] / seconds if seconds else 0.0
    return f"{plural(counts['read'], 'document')} in {seconds:.1f} s ({rate:,.0f} a second)"


def _kept_line(counts: dict[str, int]) -> str:
    share = f" ({format_percent(counts['kept'], counts['read'])})" if counts["read"] else ""
    return f"[bold green]{counts['kept']:,}[/]{share}"


def _left_out_facts(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what could not be read, had no tokens or was skipped."""
    counts = report["counts"]
    if counts["quarantined"] or report["unreadable"]:
        yield "quarantined", f"[yellow]{_unusable(counts['quarantined'], len(report['unreadable']))}[/]"
    if counts["empty"]:
        yield "empty", f"{counts['empty']:,} without any token; kept"
    yield from (("skipped", line) for line in skipped_lines(report))


def _unusable(rows: int, files: int, noun: str = "row") -> str:
    """Return how many rows, and rests of files, could not be used."""
    counted = [*([plural(rows, noun)] if rows or not files else []), *([plural(files, "file")] if files else [])]
    return f"{' and '.join(counted)} could not be {'read' if noun == 'row' else 'used'}"


def left_out_line(rows: int, files: int, noun: str = "row") -> str:
    """Return how many rows or vectors, and rests of files, are left out.

    >>> left_out_line(1, 0, "vector"), left_out_line(2, 1)
    ('1 vector could not be used and is left out', '2 rows and 1 file could not be read and are left out')
    """
    return f"{_unusable(rows, files, noun)} and {'is' if rows + files == 1 else 'are'} left out"


def _labelled(name: str, lines: Iterator[str]) -> Iterator[str]:
    return (f"{name}: {line}" for line in lines)


def stage_lines(watch: Stopwatch) -> Iterator[str]:
    """Yield one line with the seconds of each stage, by the first word of its name, if there was any.

    >>> from minwise.progress import NullProgress
    >>> watch = Stopwatch(NullProgress())
    >>> watch.stages += [("read and sketch", 5.42), ("band", 0.7), ("band", 0.1)]
    >>> list(stage_lines(watch))
    ['read 5.4 s · band 0.8 s']
    """
    seconds = seconds_by_stage(watch)
    if seconds:
        yield " · ".join(f"{name.split()[0]} {spent:,.1f} s" for name, spent in seconds.items())


def seconds_by_stage(watch: Stopwatch) -> dict[str, float]:
    """Return the seconds of each stage, in order."""
    seconds: dict[str, float] = {}
    for name, spent in watch.stages:
        seconds[name] = round(seconds.get(name, 0.0) + spent, 3)
    return seconds


def skipped_lines(report: dict[str, Any]) -> Iterator[str]:
    """Yield one line with the number of entries that were not read, by reason, if there were any.

    >>> list(skipped_lines({"inputs": {"skipped": {"names that begin with a dot": 3, "marker files": 1}}}))
    ['4 entries: names that begin with a dot (3), marker files (1)']
    """
    skipped = report.get("inputs", {}).get("skipped") or {}
    if skipped:
        reasons = ", ".join(f"{reason} ({count:,})" for reason, count in skipped.items())
        total = sum(skipped.values())
        yield f"{plural(total, 'entry', 'entries')}: {reasons}"


def closing_lines(report: dict[str, Any], quarantine: str | None = None) -> Iterator[str]:
    """Yield the notes of a report, and the rows and inputs that could not be used.

    Args:
        report: The report of a run, or the figures of an audit.
        quarantine: The file that lists all such rows.
    """
    for note in (*report.get("warnings", ()), *report.get("notes", ())):
        yield f"note: {with_option_names(note)}"
    faults = list(_fault_lines(report))
    yield from faults
    if faults and quarantine is not None:
        yield f"  all of them are in {quarantine}"


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
    what: str,
    output: str | None,
    watch: Stopwatch,
    *,
    quiet: bool,
    as_json: bool,
    lines: Lines | None = None,
) -> Callable[[dict[str, Any]], None]:
    """Return a function that prints a report, the seconds of the run and those of its stages.

    It prints to standard error if the result goes to standard output.

    Args:
        what: The count of the report to show first.
        output: The file of the result; None to show the first rows of the report.
        watch: The stopwatch that received the progress of the run.
        quiet: Print nothing.
        as_json: Print the report itself.
        lines: Returns the summary of a report that is not one of pairs of documents.
    """
    aside = output == "-"

    def show(report: dict[str, Any]) -> None:
        if as_json:
            run = {"output": output, "seconds": round(watch.seconds, 3), "stages": seconds_by_stage(watch)}
            click.echo(json.dumps({**report, "run": run}, indent=2, ensure_ascii=False), err=aside)
            return
        if output is None:
            show_preview(report["first"])
        if not quiet:
            closing = chain(
                _labelled("stages", stage_lines(watch)),
                _labelled("skipped", skipped_lines(report)),
                closing_lines(report),
            )
            for line in chain((lines or _report_lines)(what, report, output, watch.seconds), closing):
                click.echo(line, err=aside)

    return show


def vector_lines(what: str, report: dict[str, Any], output: str | None, seconds: float) -> Iterator[str]:
    """Yield the summary of pairs of vectors."""
    return _report_lines(what, report, output, seconds, noun="vector")


def _report_lines(
    what: str, report: dict[str, Any], output: str | None, seconds: float, noun: str = "document"
) -> Iterator[str]:
    counts = report["counts"]
    location = "" if output in ("-", None) else f", in {output}"
    documents = plural(counts["documents"], noun)
    if "tables" in report:
        documents += " ({} and {})".format(*(f"{table['documents']:,}" for table in report["tables"].values()))
    yield f"{plural(report[what], what.removesuffix('s'))} among {documents} in {seconds:.1f} s{location}"
    if output is None and report[what]:
        yield f"to get all {what}: -o FILE, a .parquet, .csv, .tsv or .jsonl file, or -o - for JSON lines"
    rows = report.get("rows", {"quarantined": 0})
    if "rows" in report:
        yield f"grouped from {plural(rows['read'], 'row')}"
    if "blocking" in report:
        yield from _blocking_lines(report["blocking"])
    if counts["quarantined"] + rows["quarantined"] or report["unreadable"]:
        broken = counts["quarantined"] + rows["quarantined"]
        yield left_out_line(broken, len(report["unreadable"]), "row" if noun == "document" else noun)
    yield from _cap_lines(report["caps"], noun)


def _cap_lines(caps: dict[str, Any], noun: str) -> Iterator[str]:
    """Yield what the caps on buckets and on identical documents left out."""
    size = f"of more than {plural(caps['max_bucket'], noun)}"
    if caps["buckets"]:
        left_out = plural(caps["candidates_left_out"], "candidate")
        missed = caps["estimated_pairs_missed_at_most"]
        estimate = "" if missed is None else f", at most about {plural(missed, 'pair')} missed"
        yield f"capped: {plural(caps['buckets'], 'bucket')} {size}; {left_out} left out{estimate}"
    if caps["identical_groups"] and caps["identical_pairs_left_out"] is not None:
        groups, left_out = plural(caps["identical_groups"], "group"), plural(caps["identical_pairs_left_out"], "pair")
        yield f"capped: {groups} {size} that are identical; {left_out} left out"


def show_preview(rows: list[dict[str, Any]]) -> None:
    """Print the first rows of a result with the texts of their documents, none of them wider than the terminal."""
    if not rows:
        return
    cells = _pair_cells if "left" in rows[0] else _cluster_cells if "cluster" in rows[0] else _passage_cells
    head, lines = cells(rows)
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
    measure = next(name for name in rows[0] if name.startswith(("similarity", "containment", "weighted")))
    lines: list[Cells] = []
    for row in rows:
        similarity = "" if row[measure] is None else format_similarity(row[measure])
        lines.append((similarity, str(row["left"]), row["left_text"] or ""))
        lines.append(("", str(row["right"]), row["right_text"] or ""))
    return (measure.replace("_", " "), "left, right", "text" if rows[0]["left_text"] else ""), lines


def _cluster_cells(rows: list[dict[str, Any]]) -> tuple[Cells, list[Cells]]:
    """Return a line for each document; the first one of a cluster shows its size."""
    names = [(row.get("cluster_table"), row["cluster"]) for row in rows]
    lines = [
        (f"{row['size']:,}" if name != before else "", str(row["id"]), row["text"] or "")
        for before, name, row in zip([None, *names], names, rows, strict=False)
    ]
    return ("size", "cluster", "text" if rows[0]["text"] else ""), lines


def _passage_cells(rows: list[dict[str, Any]]) -> tuple[Cells, list[Cells]]:
    """Return a line for each passage, and one for its first occurrence."""
    number = "count" if "count" in rows[0] else "tokens"
    lines: list[Cells] = []
    for row in rows:
        lines.append((f"{row[number]:,}", f"{row['id']} {row['start']}-{row['end']}", row["text"]))
        lines.append(("", f"{row['other_id']} {row['other_start']}-{row['other_end']}", ""))
    return (number, "passage, first occurrence", "text"), lines


def passage_lines(what: str, report: dict[str, Any], output: str | None, seconds: float) -> Iterator[str]:
    """Yield the summary of repeated passages."""
    counts, tokens, covered = report["counts"], report["tokens"], report["covered_tokens"]
    location = "" if output in ("-", None) else f", in {output}"
    documents = plural(counts["documents"], "document")
    repeated = f"repeated {report['unit']}" if "unit" in report else "passage"
    yield f"{plural(report[what], repeated)} in {documents} in {seconds:.1f} s{location}"
    yield f"{covered:,} of {plural(tokens, 'token')} repeat earlier text ({covered / max(1, tokens):.1%})"
    if output is None and report[what]:
        yield f"to get all {what}: -o FILE, a .parquet, .csv, .tsv or .jsonl file, or -o - for JSON lines"
    if counts["quarantined"] or report["unreadable"]:
        yield left_out_line(counts["quarantined"], len(report["unreadable"]), "row")


def nearest_lines(what: str, report: dict[str, Any], output: str | None, seconds: float) -> Iterator[str]:
    """Yield the summary of nearest documents."""
    counts, rows = report["counts"], report.get("rows", {"quarantined": 0})
    location = "" if output in ("-", None) else f", in {output}"
    among = f" among {report['among']:,}" if report["among"] else ""
    documents = f"{plural(counts['documents'], 'document')}{among}"
    yield f"{plural(report[what], 'pair')} of {documents} in {seconds:.1f} s{location}"
    if report["without"]:
        yield f"{plural(report['without'], 'document')} without any pair"
    if output is None and report[what]:
        yield f"to get all {what}: -o FILE, a .parquet, .csv, .tsv or .jsonl file, or -o - for JSON lines"
    if "rows" in report:
        yield f"grouped from {plural(rows['read'], 'row')}"
    broken = counts["quarantined"] + rows["quarantined"]
    if broken or report["unreadable"]:
        yield left_out_line(broken, len(report["unreadable"]), "row")


def _fault_lines(report: dict[str, Any]) -> Iterator[str]:
    """Yield the first five faults of each file and the number of the others; one line if it has one for all rows."""
    for entry in _faults_by_file(report):
        if entry.get("whole") and entry["faults"] > 1:
            reason = with_option_names(entry["first"][0]["reason"])
            yield f"  {entry['source']}: all {entry['faults']:,} rows: {reason}"
            continue
        for fault in entry["first"]:
            row = "" if fault["row"] is None else f" row {fault['row']}:"
            yield f"  {entry['source']}:{row} {with_option_names(fault['reason'])}"
        if entry["faults"] > len(entry["first"]):
            yield f"  … and {entry['faults'] - len(entry['first']):,} more in {entry['source']}"


def _faults_by_file(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the faults of each file: its name, their number and the first of them."""
    if "inputs" in report:
        return list(report["inputs"].get("faults", []))
    files: dict[str, dict[str, Any]] = {}
    for fault in report["faults"]:
        entry = files.setdefault(fault["source"], {"source": fault["source"], "faults": 0, "first": []})
        entry["faults"] += 1
        entry["first"] += [fault] if entry["faults"] <= SHOWN_FAULTS else []
    return list(files.values())


def _blocking_lines(quality: dict[str, Any]) -> Iterator[str]:
    """Yield the quality of pairs against the ground-truth column."""
    for name, what in (
        ("pairs_completeness", f"{quality['true_pairs_found']:,} of {quality['true_pairs']:,} true pairs"),
        ("reduction_ratio", f"of {quality['all_pairs']:,} possible pairs"),
        ("pairs_quality", "of the pairs listed are true"),
    ):
        value = quality[name]
        yield f"{name.replace('_', ' ')} {'none' if value is None else f'{value:.4f}'}: {what}"


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
def console_output(*, err: bool = False) -> Iterator[Console]:
    """Yield a console whose lines go to standard output, or to standard error, without trailing spaces."""
    console = Console(highlight=False, stderr=err)
    if not console.is_terminal:
        console.width = 10_000  # nothing is wrapped or cut in a pipe
    with console.capture() as capture:
        yield console
    click.echo("\n".join(line.rstrip() for line in capture.get().splitlines()), err=err)


def progress_bars(*, quiet: bool) -> Progress:
    """Return bars if standard error is a terminal, otherwise log lines; nothing if quiet, unless ``-v`` is given."""
    return current_session().receiver(quiet=quiet)


def watched_progress(*, quiet: bool) -> Stopwatch:
    """Return a stopwatch of a run that also shows its progress."""
    return Stopwatch(progress_bars(quiet=quiet))
