"""minwise passages."""

from typing import Any

import click

import minwise as mw
from minwise.cli.base import Command
from minwise.cli.options import engine_options, passage_options, previewed_output, run_options, settings_of
from minwise.cli.output import passage_lines, report_printer, watched_progress
from minwise.inputs import Files

__all__ = ["passages"]


@click.command(cls=Command)
@click.argument("inputs", nargs=-1, required=True, type=click.Path())
@previewed_output
@click.option("--sources", is_flag=True, help="Add source and row of both documents.")
@passage_options
@engine_options
@run_options
def passages(
    inputs: tuple[str, ...],
    output: str | None,
    sources: bool,
    **given: Any,  # noqa: ANN401 - click's values
) -> None:
    """List every repeated passage of INPUTS, with its first occurrence.

    A passage has at least --min-tokens tokens (words, after normalisation) and stands at an earlier position too: in an
    earlier document, or earlier in the same one. Every repeat is found. Columns are id, start, end, other_id,
    other_start, other_end and tokens; offsets count code points. Without -o, the first passages are shown.

    With --unit, whole lines, sentences or paragraphs are listed that stand at an earlier position too, with the column
    count: how often the unit occurs.

    Examples:
        minwise passages articles/
        minwise passages crawl.parquet --min-tokens 100 -o passages.parquet
        minwise passages crawl.parquet --unit line --min-count 10 -o lines.parquet
        minwise passages essays/ --against books/ --min-tokens 20 -o copied.csv
    """
    watch = watched_progress(quiet=given["quiet"] or given["as_json"])
    quiet, as_json = given["quiet"], given["as_json"]
    show = report_printer("passages", output, watch, quiet=quiet, as_json=as_json, lines=passage_lines)
    settings = settings_of(given)
    settings["against"] = Files(settings["against"]) if settings["against"] else None
    overwrite = given["overwrite"]
    show(mw.write_passages(Files(inputs), output, sources=sources, overwrite=overwrite, progress=watch, **settings))
