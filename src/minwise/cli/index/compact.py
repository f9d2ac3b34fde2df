"""minwise index compact INDEX."""

import click

import minwise as mw
from minwise.cli.options import shown_options
from minwise.cli.outcome import show_outcome

__all__ = ["compact"]


@click.command()
@click.argument("index", type=click.Path())
@shown_options
def compact(index: str, as_json: bool, quiet: bool) -> None:
    """Give back the room that removed documents of INDEX take.

    Makes one segment of all postings. Not needed for answers to be right; good after many removals, or before an index
    is copied elsewhere.

    Example: minwise index compact news.mw
    """
    before = _bytes_of(index)
    with mw.Index.open(index, "w") as opened:
        opened.compact()
    after = _bytes_of(index)  # once the log of the writer is gone
    values = {"index": index, "bytes_before": before, "bytes": after}
    show_outcome(values, f"{index}: {after:,} bytes, {before:,} before", as_json=as_json, quiet=quiet)


def _bytes_of(index: str) -> int:
    with mw.Index.open(index) as opened:
        return int(opened.stats()["bytes"])
