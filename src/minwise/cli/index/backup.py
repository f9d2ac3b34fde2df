"""minwise index backup INDEX DIRECTORY."""

import json

import click

import minwise as mw
from minwise.cli.options import shown_options

__all__ = ["backup"]


@click.command()
@click.argument("index", type=click.Path())
@click.argument("directory", type=click.Path())
@shown_options
def backup(index: str, directory: str, as_json: bool, quiet: bool) -> None:
    """Copy INDEX as it is now to a new DIRECTORY, also while another process writes.

    The copy is an index like any other, and appears whole or not at all.

    Example: minwise index backup news.mw saved/news.mw
    """
    with mw.Index.open(index) as opened:
        opened.backup(directory)
    with mw.Index.open(directory) as copy:
        documents = len(copy)
    if as_json:
        click.echo(json.dumps({"index": index, "backup": directory, "documents": documents}, indent=2))
    elif not quiet:
        click.echo(f"{documents:,} documents in {directory}")
