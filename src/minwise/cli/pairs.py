"""minwise pairs INPUT… -o PAIRS."""

from typing import Any

import click

import minwise as mw
from minwise.cli.options import engine_options, find_options, running_options, settings_of, shape_options, table_output
from minwise.cli.output import show_found, watch

__all__ = ["clusters", "pairs"]

ALONE = "alone"


@click.command()
@click.argument("inputs", nargs=-1, type=click.Path())
@table_output
@click.option("--sources", is_flag=True, help="Add source and row of both documents; --rows without a number does too.")
@click.option("--rows", is_flag=False, flag_value=ALONE, default=None, help="Slots per band, with --bands.")
@click.option("--truth", default=None, metavar="COL", help="Column that tells who is who: say how good the pairs are.")
@find_options
@shape_options
@engine_options
@running_options
def pairs(
    inputs: tuple[str, ...],
    output: str,
    sources: bool,
    rows: str | None,
    truth: str | None,
    **given: Any,  # noqa: ANN401
) -> None:
    """List every pair of near-duplicates in INPUTS, with similarities.

    Columns are left, right and similarity. Pairs are in document order, those of identical documents among them.
    Documents are texts, sets of items (--shingle set, or --group-by and --item) or records (--fields).
    """
    number = int(rows) if rows is not None and rows.isascii() and rows.isdigit() else None
    if rows is not None and number is None:
        sources = True
        inputs = (
            inputs if rows == ALONE else (*inputs, rows)
        )  # what followed --rows is an input, and their order is free
    if not inputs:
        raise click.UsageError("Missing argument 'INPUTS...'.")
    settings = {**settings_of(given), "rows": number}
    progress = watch(quiet=given["quiet"] or given["as_json"])
    show = show_found("pairs", output, quiet=given["quiet"], as_json=given["as_json"])
    show(mw.pairs(mw.Files(inputs), output, sources=sources, progress=progress, truth=truth, **settings))


@click.command()
@click.argument("inputs", nargs=-1, required=True, type=click.Path())
@table_output
@click.option(
    "--group",
    default="components",
    show_default=True,
    type=click.Choice(["components", "star"]),
    help="How pairs make clusters.",
)
@click.option("--rows", type=int, default=None, help="Slots per band; with --bands.")
@find_options
@shape_options
@engine_options
@running_options
def clusters(inputs: tuple[str, ...], output: str, **given: Any) -> None:  # noqa: ANN401
    """List every document of INPUTS with its cluster: id, cluster, size.

    A cluster is called after its first document; a document without near-duplicates is a cluster of its own.
    """
    progress = watch(quiet=given["quiet"] or given["as_json"])
    show = show_found("clusters", output, quiet=given["quiet"], as_json=given["as_json"])
    show(mw.clusters(mw.Files(inputs), output, progress=progress, **settings_of(given)))
