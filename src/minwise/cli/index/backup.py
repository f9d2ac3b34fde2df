"""minwise index backup INDEX DIRECTORY."""

import click

import minwise as mw
from minwise.cli.options import shown_options
from minwise.cli.outcome import show_outcome

__all__ = ["backup"]


@click.command()
@click.argument("index", type=click.Path())
@click.argument("directory", type=click.Path())
@shown_options
def backup(index: str, directory: str, as_json: bool, quiet: bool) -> None:
    """Copy INDEX as it is now to a new DIRECTORY.

    Another process may write meanwhile. The copy is an index like any other, and appears whole or not at all.

    Example: minwise index backup news.mw saved/news.mw
    """
    with mw.Index.open(index) as opened:
        opened.backup(directory)
    with mw.Index.open(directory) as copy:
        documents = len(copy)
    values = {"index": index, "backup": directory, "documents": documents}
    show_outcome(values, f"{documents:,} documents in {directory}", as_json=as_json, quiet=quiet)
