"""minwise nearest."""

from typing import Any

import click

from minwise.api import write_nearest
from minwise.cli.base import Command
from minwise.cli.options import (
    discount_options,
    measure_option,
    nearest_options,
    previewed_output,
    run_options,
    set_options,
    settings_of,
)
from minwise.cli.output import nearest_lines, report_printer, watched_progress
from minwise.inputs import Files

__all__ = ["nearest"]


@click.command(cls=Command)
@click.argument("inputs", nargs=-1, required=True, type=click.Path())
@previewed_output
@click.option("--sources", is_flag=True, help="Add source and row of both documents.")
@nearest_options
@measure_option
@discount_options
@set_options
@run_options
def nearest(
    inputs: tuple[str, ...],
    output: str | None,
    sources: bool,
    **given: Any,  # noqa: ANN401 - click's values
) -> None:
    """List the most similar documents of each document, exactly.

    Columns are left, right, similarity and rank. A document is listed with --top documents of INPUTS, without itself,
    or of the files of --among; fewer if fewer have any shingle, item or field value in common with it. Without -o, the
    first pairs are shown.
    Documents are texts, sets of items (--shingle set, or --group-by and --item) or records (--fields).

    Examples:
        minwise nearest likes.csv --group-by user --item film -o alike.csv
        minwise nearest new.jsonl --among known.jsonl --top 1 -o matches.csv
        minwise nearest a.csv --among b.csv --fields name:char:3 --one-to-one
    """
    quiet, as_json = given["quiet"], given["as_json"]
    watch = watched_progress(quiet=quiet or as_json)
    show = report_printer("pairs", output, watch, quiet=quiet, as_json=as_json, lines=nearest_lines)
    settings = settings_of(given)
    settings["among"] = Files(settings["among"]) if settings["among"] else None
    overwrite = given["overwrite"]
    show(write_nearest(Files(inputs), output, sources=sources, overwrite=overwrite, progress=watch, **settings))
