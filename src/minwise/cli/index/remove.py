"""minwise index remove INDEX (ID… | --ids FILE)."""

import click

import minwise as mw
from minwise.cli.options import shown_options
from minwise.cli.outcome import show_outcome
from minwise.cli.progress import watch
from minwise.cli.reading import read_ids

__all__ = ["remove"]

# Documents that are removed in one transaction.
REMOVED_TOGETHER = 16_384


@click.command()
@click.argument("index", type=click.Path())
@click.argument("ids", nargs=-1)
@click.option(
    "--ids",
    "listed",
    metavar="FILE",
    type=click.Path(),
    default=None,
    help="File of ids to remove, one per line; - is standard input.",
)
@shown_options
def remove(index: str, ids: tuple[str, ...], listed: str | None, as_json: bool, quiet: bool) -> None:
    """Remove the documents with these IDS from INDEX.

    An id that is not there is no error, so that the command can be repeated. A line of the file that begins with a
    double quote is read as a JSON string, for ids with line breaks in them.

    Example: minwise index remove news.mw --ids gone.txt
    """
    if bool(ids) == (listed is not None):
        raise mw.ConfigError(f"remove needs ids or --ids FILE, got {'both' if ids else 'neither'}")
    wanted = list(dict.fromkeys(ids if listed is None else read_ids(listed)))
    removed = 0
    with mw.Index.open(index, "w") as opened:
        with watch(quiet=quiet or as_json).stage("remove", len(wanted), "ids") as stage:
            for start in range(0, len(wanted), REMOVED_TOGETHER):
                together = wanted[start : start + REMOVED_TOGETHER]
                removed += opened.remove(together)
                stage.advance(len(together))
        documents = len(opened)
    missing = len(wanted) - removed
    values = {"index": index, "removed": removed, "not_there": missing, "documents": documents}
    line = f"{removed:,} removed, {missing:,} not there; {documents:,} in {index}"
    show_outcome(values, line, as_json=as_json, quiet=quiet)
