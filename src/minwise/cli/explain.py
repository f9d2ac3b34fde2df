"""minwise explain, minwise thresholds and minwise rethreshold."""

import json
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import minwise as mw
from minwise._internal.formatting import format_percent, format_similarity, plural
from minwise.cli.base import Command
from minwise.cli.options import (
    LAYOUT_NAMES,
    MACHINE_OPTIONS,
    NORMALISATION_NAMES,
    OUTPUT_OPTIONS,
    WORK_OPTION,
    add_options,
    copy_options,
    discount_options,
    engine_options,
    measure_option,
    overwrite_option,
    run_options,
    selection_options,
    set_options,
    setting_option,
    settings_of,
    value_options,
    with_option_names,
)
from minwise.cli.output import (
    closing_lines,
    console_output,
    progress_bars,
    shorten,
    show_dedup,
    watched_progress,
)
from minwise.comparison.terminal import print_differences, print_texts
from minwise.inputs import Files
from minwise.results import Explanation, Thresholds

__all__ = ["explain", "rethreshold", "thresholds"]

# Characters of each text that are shown without --full: a few screens.
MOST_SHOWN = 6000
# Characters of a name above a column, and of a text in the example of a threshold: two lines.
MOST_NAME, SNIPPET = 36, 140


@click.command(cls=Command)
@click.argument("out", type=click.Path())
@click.argument("id")
@click.option(
    "--search",
    is_flag=True,
    help="Compare a kept document with all other kept ones to find the most similar; reads all inputs.",
)
@click.option("--full", is_flag=True, help="Show both texts whole, not only around their differences.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def explain(out: str, id: str, search: bool, full: bool, as_json: bool) -> None:  # noqa: A002 - the name of the argument
    """Show why the run that wrote OUT removed or kept a document.

    ID is the id of the document, or its source and row, such as crawl/a.jsonl:17. Of a removed document, the kept one
    that it is a near-duplicate of, their similarity and shared passages are shown; of a kept one, the documents removed
    for it and its near misses. Texts are read from inputs that have not changed since the run. Of a run with
    --passages, the cuts of the document are shown with their first occurrences; of minwise decontaminate, the
    evaluation items that the row contains, with their shares and spans.

    Examples:
        minwise explain clean article-17
        minwise explain clean crawl/a.jsonl:17 --full
        minwise explain clean article-17 --search --json
    """
    found = mw.explain(out, id, search=search)
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
        return
    with console_output() as console:
        _show(console, found, None if full else MOST_SHOWN)


def _show(console: Console, found: Explanation, max_chars: int | None) -> None:
    facts = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, text in found.facts():
        facts.add_row(name, escape(with_option_names(text)))
    console.print(facts)
    other = found.compared_with
    if found.comparison is not None and other is not None:
        names = (shorten(found.document.id, MOST_NAME), shorten(other.id, MOST_NAME))
        print_texts(console, names, found.comparison.rows(max_chars=max_chars))


@click.command(cls=Command)
@click.argument("inputs", nargs=-1, required=True, type=click.Path())
@click.option(
    "--from",
    "threshold",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.5,
    show_default=True,
    help="The lowest threshold.",
)
@click.option(
    "--step", type=click.FloatRange(0.01, 1), default=0.05, show_default=True, help="Difference of two thresholds."
)
@selection_options
@copy_options
@add_options(*(setting_option(name) for name in (*LAYOUT_NAMES, *NORMALISATION_NAMES, "exact") if name != "threshold"))
@setting_option(
    "verify",
    type=click.Choice(["exact", "signature"]),
    help="How candidate pairs are verified: exact compares their sets, signature estimates the similarity.",
)
@measure_option
@value_options
@discount_options
@set_options
@engine_options
@run_options
def thresholds(inputs: tuple[str, ...], step: float, against: tuple[str, ...], **given: Any) -> None:  # noqa: ANN401
    """Count how many documents of INPUTS each threshold would remove.

    One search at the lowest threshold finds all pairs; the counts of the higher ones follow from these pairs exactly. A
    pair for each step shows what texts of this similarity have in common. The search takes longer than minwise dedup
    with the lowest threshold, since it compares all candidates. Nothing is written.

    Examples:
        minwise thresholds news.csv --text-column body
        minwise thresholds crawl/ --from 0.3 --step 0.1 --shingle word:3
        minwise thresholds crawl/ --json
    """
    progress = progress_bars(quiet=given["quiet"] or given["as_json"])
    settings = {**settings_of(given), "against": Files(against) or None}
    result = mw.dedup(Files(inputs), progress=progress, **settings)
    steps = result.threshold_steps(step)
    if given["as_json"]:
        values = {"documents": result.report["counts"]["documents"], "steps": [one.to_dict() for one in steps]}
        click.echo(json.dumps(values, indent=2, ensure_ascii=False))
    elif not given["quiet"]:
        with console_output() as console:
            _show_steps(console, steps, result.report)


def _show_steps(console: Console, steps: Thresholds, report: dict[str, Any]) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("threshold", "removed", "of all", "kept", "pairs in this step"):
        table.add_column(name, justify="right")
    for step in steps:
        share = format_percent(step.removed, step.removed + step.kept)
        table.add_row(f"{step.threshold:g}", f"{step.removed:,}", share, f"{step.kept:,}", f"{step.pairs:,}")
    console.print(f"[dim]{plural(report['counts']['documents'], 'document')}[/]")
    console.print(table)
    for step, end in zip(steps, [*(step.threshold for step in steps[1:]), None], strict=True):
        if step.example is not None:
            _show_example(console, step.example, f"{step.threshold:g}" + (f" to {end:g}" if end else ""), report)
    for line in closing_lines(report):
        console.print(escape(line), style="yellow" if line.startswith("note:") else None)


def _show_example(console: Console, example: Any, span: str, report: dict[str, Any]) -> None:  # noqa: ANN401
    similarity = format_similarity(example.similarity)
    names = [escape(shorten(side.id, MOST_NAME)) for side in (example.left, example.right)]
    console.print()
    console.print(f"[bold]{span}[/], such as {similarity}: {names[0]} [dim]and[/] {names[1]}")
    if example.texts is not None:
        comparison = mw.compare(*example.texts, shingler=mw.Shingler.from_settings(report["settings"]))
        print_differences(console, comparison.rows(max_chars=10 * SNIPPET), max_chars=SNIPPET)


@click.command(cls=Command)
@click.argument("out", type=click.Path())
@setting_option("threshold", default=None, required=True, show_default=False, help="A threshold above that of OUT.")
@click.option("-o", "--output", required=True, type=click.Path(), help="New directory for the result, or its URL.")
@overwrite_option
@add_options(*MACHINE_OPTIONS, WORK_OPTION, *OUTPUT_OPTIONS)
def rethreshold(out: str, threshold: float, output: str, overwrite: bool, **given: Any) -> None:  # noqa: ANN401
    """Write the result of a finished run for a higher threshold.

    The result equals that of rethreshold in Python, byte for byte: the pairs are those of the plan of OUT, and a
    minwise dedup with the higher threshold could miss some of them. OUT has no pairs, so its inputs, which must be
    unchanged, are searched again with the recorded settings. If --work names the work directory of OUT, no input is
    searched again. OUT itself is not changed.

    Examples:
        minwise rethreshold clean --threshold 0.9 -o stricter
        minwise rethreshold clean --threshold 0.9 -o stricter --work state
        minwise rethreshold clean --threshold 0.95 -o stricter --overwrite --json
    """
    watch = watched_progress(quiet=given["quiet"] or given["as_json"])
    result = mw.rethreshold(out, output, threshold, overwrite=overwrite, progress=watch, **settings_of(given))
    if given["as_json"]:
        run = {"output": output, "seconds": round(watch.seconds, 3)}
        click.echo(json.dumps({**result.report, "run": run}, indent=2, ensure_ascii=False))
    elif not given["quiet"]:
        show_dedup(result, output, watch)
