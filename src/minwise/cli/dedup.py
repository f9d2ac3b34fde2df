"""minwise dedup."""

import errno
import json
import sys
from typing import Any

import click

import minwise as mw
from minwise.api import dedup_stream, estimate_run
from minwise.cli.base import Command
from minwise.cli.options import (
    cut_options,
    discount_options,
    engine_options,
    measure_option,
    overwrite_option,
    run_options,
    search_options,
    selection_options,
    set_options,
    settings_of,
    value_options,
)
from minwise.cli.output import seconds_by_stage, show_cuts, show_dedup, watched_progress
from minwise.inputs import Files
from minwise.options import AnyDedupOptions, CutDedupOptions, DedupOptions, definitions
from minwise.results import CutResult, DedupResult

__all__ = ["dedup"]


@click.command(cls=Command)
@click.argument("inputs", nargs=-1, required=True, type=click.Path())
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(),
    help="New directory for the result, or its URL; - prints the kept rows.",
)
@overwrite_option
@selection_options
@click.option("--passages", is_flag=True, help="Cut repeated passages out of the documents instead.")
@cut_options
@click.option("--dry-run", is_flag=True, help="Only estimate what the run would do and cost.")
@search_options
@measure_option
@value_options
@discount_options
@set_options
@engine_options
@run_options
def dedup(
    inputs: tuple[str, ...],
    output: str,
    overwrite: bool,
    against: tuple[str, ...],
    dry_run: bool,
    passages: bool,
    **given: Any,  # noqa: ANN401
) -> None:
    """Remove near-duplicates from INPUTS, and say why each is removed.

    INPUTS are files, directories, patterns or URLs; - is standard input. Kept rows go to OUT/kept in the format they
    came in; OUT/removed.parquet names for every removed row the kept one it is a near-duplicate of, and their
    similarity.

    -o - writes only the kept rows, to standard output, and the summary to standard error: a single file of JSON, CSV,
    TSV, lines or baskets in its own format, anything else as JSON lines. - as the only input and -o - decide on JSON
    lines as they arrive.

    With --passages, repeated passages of at least --min-tokens tokens are cut out instead, and the first occurrence
    stays. OUT/cuts.parquet has every cut with its text. Settings of near-duplicates must be left out.

    Examples:
        minwise dedup news.csv --text-column body -o clean
        minwise dedup 'crawl/*.parquet' --keep longest -o clean --work state
        minwise dedup new/ --against archive/ -o clean --dry-run
        minwise dedup crawl.jsonl --passages --snap line --min-left 20 -o clean
        minwise dedup news.csv --text-column body -o - > clean.csv
        cat pages.jsonl | minwise dedup - -o - > unique.jsonl
    """
    sources = {"against": Files(against) or None, "protect": given["protect"] or None}
    settings = _of_task({**settings_of(given), **sources}, passages=passages)
    if passages and dry_run:
        raise click.UsageError("--dry-run estimates a search for near-duplicates: leave out --passages")
    if output == "-" and dry_run:
        raise click.UsageError("--dry-run looks at files: give them as inputs, and a directory as -o")
    if output == "-" and inputs == ("-",) and not passages and given["format"] in (None, "jsonl"):
        _stream(settings, quiet=given["quiet"], as_json=given["as_json"])
        return
    if dry_run:
        estimate = estimate_run(Files(inputs), **settings)
        click.echo(json.dumps(estimate.to_dict(), indent=2) if given["as_json"] else str(estimate))
        return
    watch = watched_progress(quiet=given["quiet"] or given["as_json"])
    folder = None if output == "-" else output
    call: Any = mw.dedup  # its type depends on the flag
    result = call(Files(inputs), folder, overwrite=overwrite, passages=passages, progress=watch, **settings)
    if folder is None:
        _write_kept(result)
    if given["as_json"]:
        times = {"seconds": round(watch.seconds, 3), "stages": seconds_by_stage(watch)}
        run = {"output": output, **times, "already_published": result.published}
        click.echo(json.dumps({**result.report, "run": run}, indent=2, ensure_ascii=False), err=folder is None)
    elif not given["quiet"]:
        (show_cuts if passages else show_dedup)(result, output, watch)


def _of_task(settings: dict[str, Any], *, passages: bool) -> dict[str, Any]:
    """Return the settings without those of the other task that have their defaults; the library refuses any other."""
    own = definitions(CutDedupOptions if passages else DedupOptions)
    others = {name: one for name, one in definitions(AnyDedupOptions).items() if name not in own}
    return {name: value for name, value in settings.items() if name not in others or value != others[name].default}


def _write_kept(result: DedupResult | CutResult) -> None:
    """Write the kept rows to standard output."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, "is closed", "standard output")
    result.write_kept(sys.stdout.buffer)
    sys.stdout.buffer.flush()


def _stream(settings: dict[str, Any], *, quiet: bool, as_json: bool) -> None:
    """Copy the kept lines of standard input as they are decided."""
    if sys.stdin is None or sys.stdout is None:
        raise OSError(errno.EBADF, "is closed", "standard input or output")
    counts = dedup_stream(sys.stdin.buffer, sys.stdout.buffer, **settings)
    if as_json:
        click.echo(json.dumps(counts), err=True)
    elif not quiet:
        shown = ", ".join(f"{value:,} {name}" for name, value in counts.items())
        click.echo(f"minwise: {shown}", err=True)
