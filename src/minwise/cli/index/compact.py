"""minwise index compact INDEX."""

import json

import click

import minwise as mw
from minwise.cli.options import shown_options

__all__ = ["compact"]


@click.command()
@click.argument("index", type=click.Path())
@shown_options
def compact(index: str, as_json: bool, quiet: bool) -> None:
    """Make one segment of all postings of INDEX, and give back the room of removed documents.

    Not needed for answers to be right; good after many removals, or before an index is copied elsewhere.

    Example: minwise index compact news.mw
    """
    before = _bytes_of(index)
    with mw.Index.open(index, "w") as opened:
        opened.compact()
    after = _bytes_of(index)  # once the log of the writer is gone
    if as_json:
        click.echo(json.dumps({"index": index, "bytes_before": before, "bytes": after}, indent=2))
    elif not quiet:
        click.echo(f"{index}: {after:,} bytes, {before:,} before")


def _bytes_of(index: str) -> int:
    with mw.Index.open(index) as opened:
        return int(opened.stats()["bytes"])
