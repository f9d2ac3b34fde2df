"""minwise clusters INPUT… -o CLUSTERS."""

from typing import Any

import click

import minwise as mw
from minwise.cli.options import engine_options, find_options, running_options, settings_of, shape_options, table_output
from minwise.cli.progress import watch
from minwise.cli.summary import show_found

__all__ = ["clusters"]


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
