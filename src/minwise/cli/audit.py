"""minwise audit."""

import json
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import minwise as mw
from minwise._internal.formatting import plural
from minwise.cli.base import Command
from minwise.cli.options import discount_options, layout_options, output_file, run_options, set_options, settings_of
from minwise.cli.output import closing_lines, console_output, skipped_lines, stage_lines, watched_progress
from minwise.inputs import Files
from minwise.progress import Stopwatch
from minwise.results import Audit

__all__ = ["audit"]


@click.command(cls=Command)
@click.argument("inputs", nargs=-1, required=True, type=click.Path())
@click.option("--sample", default=20_000, show_default=True, help="Documents to compare with all others, exactly.")
@output_file("Also write the figures to this .json file.")
@layout_options
@discount_options
@set_options
@run_options
def audit(inputs: tuple[str, ...], sample: int, output: str | None, **given: Any) -> None:  # noqa: ANN401
    """Measure the recall and precision of the settings on INPUTS.

    A sample of the documents is compared with all of them, exactly. Shows recall by similarity next to the prediction
    of the S-curve, precision before verification, the distribution of similarities, and a better threshold if the
    distribution has a clear gap elsewhere. `minwise report OUT --audit FILE` adds the file of -o to a report.

    Examples:
        minwise audit crawl/
        minwise audit crawl/ --threshold 0.7 -o audit.json
        minwise audit news.jsonl --shingle word:3 --sample 5000 --json
    """
    watch = watched_progress(quiet=given["quiet"] or given["as_json"])
    result = mw.audit(
        Files(inputs), output, sample=sample, overwrite=given["overwrite"], progress=watch, **settings_of(given)
    )
    if given["as_json"]:
        click.echo(json.dumps(result.to_dict(), indent=2))
    elif not given["quiet"]:
        with console_output() as console:
            _show(console, result, watch)


def _show(console: Console, result: "Audit", watch: Stopwatch) -> None:
    facts = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    facts.add_column(style="dim")
    facts.add_column()
    whole = f"all {result.distinct:,}" if result.complete else f"{result.sampled:,} of {result.distinct:,}"
    copies = f"; {result.identical:,} more are identical to one of them" if result.identical else ""
    facts.add_row("compared", f"{whole} distinct documents with every other{copies}")
    facts.add_row("plan", str(result.plan))
    promised = "" if result.promised is None else f"; the S-curve predicts {result.promised:.2%}"
    facts.add_row("recall", f"[bold]{_share(result.recall)}[/] of {plural(result.recall.of, 'pair')}{promised}")
    facts.add_row(
        "documents", f"{_share(result.with_duplicates)} of {result.with_duplicates.of:,} with a near-duplicate"
    )
    facts.add_row(
        "precision", f"{_share(result.precision)} of {plural(result.precision.of, 'candidate')}, before verification"
    )
    if result.caps.capped:
        capped = f"{plural(result.caps.capped, 'bucket')} of more than {result.settings['max_bucket']:,} documents"
        left_out = plural(result.caps.left_out, "candidate")
        facts.add_row(
            "caps",
            f"[yellow]{capped}: {left_out} left out[/]; the S-curve does not include the cap",
        )
    report = result.to_dict()
    for name, lines in (("skipped", skipped_lines(report)), ("stages", stage_lines(watch))):
        for line in lines:
            facts.add_row(name, line)
    console.print(facts)
    console.print()
    console.print(_bins(result))
    if result.suggestion is not None:
        console.print(_suggestion(result.suggestion))
    for line in closing_lines(report):
        console.print(escape(line), style="yellow" if line.startswith("note:") else None)


def _bins(result: "Audit") -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    whole = [] if result.complete else ["in the corpus"]
    for name in ("similarity", "pairs", *whole, "found", "interval", "expected"):
        table.add_column(name, justify="left" if name == "similarity" else "right")
    for one in result.bins:
        inside = [part for part in result.histogram if one.start <= part.start < one.end]
        about = [f"about {sum(part.estimated for part in inside):,.0f}"] if whole else []
        shown = (f"{one.start:.2f} to {one.end:.2f}", f"{one.share.of:,}", *about)
        if one.share.value is None or one.promised is None:
            table.add_row(*shown, "", "", "")
            continue
        interval = f"{one.share.low:.1%} to {one.share.high:.1%}"
        odd = not one.share.low <= one.promised <= one.share.high
        style = "yellow" if odd else "dim" if one.end <= result.plan.threshold else None
        table.add_row(*shown, f"{one.share.value:.2%}", interval, f"{one.promised:.2%}", style=style)
    return table


def _suggestion(suggestion: Any) -> str:  # noqa: ANN401 - a part of the audit
    layout = f"{suggestion.bands} bands × {suggestion.rows} rows"
    return f"[yellow]note:[/] a threshold of {suggestion.threshold:g} ({layout}) fits this corpus. {suggestion.why}"


def _share(share: Any) -> str:  # noqa: ANN401 - a part of the audit
    if share.value is None:
        return "none"
    return f"{share.value:.2%} ({share.low:.2%} to {share.high:.2%})"
