"""minwise decontaminate."""

import json
from collections.abc import Iterator
from typing import Any

import click

import minwise as mw
from minwise._internal.formatting import plural
from minwise.cli.base import Command
from minwise.cli.options import (
    contamination_options,
    engine_options,
    overwrite_option,
    run_options,
    settings_of,
)
from minwise.cli.output import (
    closing_lines,
    seconds_by_stage,
    skipped_lines,
    stage_lines,
    watched_progress,
    write_kept,
)
from minwise.inputs import Files
from minwise.options import lists_faults
from minwise.progress import Stopwatch

__all__ = ["decontaminate"]

ACTIONS = {"remove": "removed", "cut": "cut", "mark": "marked"}


@click.command(cls=Command)
@click.argument("train", nargs=-1, required=True, type=click.Path())
@click.option(
    "--evals",
    multiple=True,
    required=True,
    type=click.Path(),
    help="Files, directories or patterns of the evaluation items; repeatable.",
)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(),
    help="New directory for the result, or its URL; - prints the kept rows.",
)
@overwrite_option
@click.option("--audit", is_flag=True, help="Also measure recall, on items planted in a sample of rows, and precision.")
@contamination_options
@engine_options
@run_options
def decontaminate(
    train: tuple[str, ...],
    evals: tuple[str, ...],
    output: str,
    overwrite: bool,
    audit: bool,
    **given: Any,  # noqa: ANN401 - click's values
) -> None:
    """Remove, cut or mark rows of TRAIN with evaluation items.

    Every token of TRAIN is looked up in an exact table of the n-grams of all items; n-grams that are common in TRAIN do
    not count. Kept rows go to OUT/kept in the format they came in. OUT/hits.parquet names for every hit the item, its
    share of matched n-grams and the spans on both sides; OUT/uncheckable.parquet lists the items that cannot be found.

    -o - writes only the kept rows, to standard output, and the summary to standard error.

    Examples:
        minwise decontaminate train.jsonl --evals evals.jsonl -o clean
        minwise decontaminate crawl/ --evals qa.csv --eval-columns q,a -o clean
        minwise decontaminate crawl/ --evals qa.csv -o marked --action mark
    """
    watch = watched_progress(quiet=given["quiet"] or given["as_json"])
    settings = settings_of(given)
    folder = None if output == "-" else output
    result = mw.decontaminate(
        Files(train), Files(evals), folder, overwrite=overwrite, audit=audit, progress=watch, **settings
    )
    if folder is None:
        write_kept(result)
    if given["as_json"]:
        times = {"seconds": round(watch.seconds, 3), "stages": seconds_by_stage(watch)}
        run = {"output": output, **times, "already_published": result.published}
        click.echo(json.dumps({**result.report, "run": run}, indent=2, ensure_ascii=False), err=folder is None)
    elif not given["quiet"]:
        if result.published:
            click.echo(f"{output} was already published from this work directory; nothing to do")
        for line in _lines(result.report, folder and output.rstrip("/"), watch):
            click.echo(line, err=folder is None)


def _lines(report: dict[str, Any], folder: str | None, watch: Stopwatch) -> Iterator[str]:
    """Yield the summary of a decontamination; the kept rows went to standard output if there is no folder."""
    counts, items, action = report["counts"], report["items"], report["settings"]["action"]
    rows = plural(counts["documents"], "row")
    done = f"{ACTIONS[action]} in {watch.seconds:.1f} s; kept {counts['kept']:,}"
    yield f"{counts['contaminated']:,} of {rows} contaminated, {done}"
    yield f"{items['found']:,} of {plural(items['checkable'], 'item')} found, {plural(items['hits'], 'hit')}"
    if items["uncheckable"]:
        listed = f"; see {folder}/uncheckable.parquet" if folder else ""
        yield f"{plural(items['uncheckable'], 'item')} cannot be checked{listed}"
    yield from _audit_lines(report.get("audit"))
    yield from (f"skipped: {line}" for line in skipped_lines(report))
    faults = f"{folder}/quarantine.jsonl" if folder and lists_faults(report["on_error"]) else None
    yield from closing_lines(report, faults)
    yield from (f"stages: {line}" for line in stage_lines(watch))
    if folder:
        yield f"kept rows in {folder}/kept; to inspect the run, open {folder}/report.html"


def _audit_lines(audit: dict[str, Any] | None) -> Iterator[str]:
    """Yield recall by kind of planted item, and precision."""
    if audit is None:
        return
    for kind in audit["recall"]:
        found = f"{kind['found']:,} of {kind['planted']:,}"
        yield f"audit: {kind['kind']}: {_share(kind)} found ({found})"
    precision = audit["precision"]
    yield f"audit: {precision['flagged']:,} of {precision['controls']:,} controls without items are hits"


def _share(value: dict[str, Any]) -> str:
    if value["value"] is None:
        return "none"
    return f"{value['value']:.1%} (95 % interval {value['low']:.1%} to {value['high']:.1%})"
