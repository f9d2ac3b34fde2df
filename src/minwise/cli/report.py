"""minwise report and minwise restore."""

from pathlib import Path
from typing import Any

import click

import minwise as mw
from minwise._internal.formatting import plural
from minwise.cli.base import Command
from minwise.cli.files import read_ids
from minwise.cli.options import overwrite_option, verbosity_options
from minwise.cli.output import print_result, progress_bars
from minwise.errors import InputError
from minwise.results import write_report

__all__ = ["report", "restore"]


@click.command(cls=Command)
@click.argument("out", type=click.Path())
@click.option(
    "--audit",
    metavar="FILE",
    type=click.Path(),
    default=None,
    help="Also show the figures of this file of minwise audit.",
)
@verbosity_options
def report(out: str, audit: str | None, as_json: bool, quiet: bool) -> None:
    """Write the report page of a run again: OUT/report.html.

    OUT is the output of minwise dedup or minwise decontaminate. The page shows the texts of inputs that have not
    changed since the run.

    With --audit, the file that an audit with the same settings wrote is copied to OUT/audit.json, and this and every
    later page shows its figures.

    Examples:
        minwise report clean
        minwise report clean --audit audit.json
        minwise report clean --json
    """
    notes: list[str] = []
    with progress_bars(quiet=quiet or as_json).stage("report", None, "documents"):
        page = write_report(out, audit=audit, on_note=notes.append)
    for note in () if as_json else notes:
        click.echo(f"note: {note}", err=True)
    values = {"page": str(page), "notes": notes}
    print_result(values, f"{page}: open it in a browser", as_json=as_json, quiet=quiet)


@click.command(cls=Command)
@click.argument("out", type=click.Path())
@click.option(
    "--ids",
    metavar="FILE",
    type=click.Path(),
    default=None,
    help="File of ids to restore, one per line; - is standard input.",
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Restore every row of the input, also those in quarantine; with --ids, all documents that share an id.",
)
@click.option("-o", "--output", metavar="DIR", required=True, type=click.Path(), help="New directory for the result.")
@overwrite_option
@verbosity_options
def restore(out: str, ids: str | None, every: bool, output: str, overwrite: bool, as_json: bool, quiet: bool) -> None:
    """Restore documents that the run which wrote OUT removed.

    They are read from the inputs of that run. DIR/kept holds the rows of OUT/kept and the restored ones, in the order
    and format of the input; DIR/removed.parquet lists those that stay removed. OUT itself is not changed. An input
    that has changed since the run is refused. Of a run with --passages, the cuts of these documents are undone, too.

    A line of the file that begins with a double quote is read as a JSON string, for ids with line breaks in them. An id
    that several removed documents share is refused, unless --all is given with --ids.

    Examples:
        minwise restore clean --ids wanted.txt -o restored
        grep news removed.txt | minwise restore clean --ids - -o restored
        minwise restore clean --all -o everything --json
    """
    if not every and ids is None:
        raise click.UsageError("give --ids FILE or --all, to say which documents are restored")
    wanted = None if ids is None else list(read_ids(ids))
    if wanted == []:
        raise InputError(
            f"{'standard input' if ids == '-' else ids}: must list the ids to restore, one per line, got none"
        )
    progress = progress_bars(quiet=quiet or as_json)
    try:
        counts = mw.restore(out, output, ids=wanted, all_matches=every, overwrite=overwrite, progress=progress)
    except InputError as error:
        raise InputError(str(error).replace("set all_matches=True", "add --all")) from None
    print_result({"output": output, **counts}, _summary(counts, output), as_json=as_json, quiet=quiet)


def _summary(counts: dict[str, Any], output: str) -> str:
    removed = counts["restored"] + counts["still_removed"]
    broken = f", {counts['quarantined']:,} of which cannot be read," if counts["quarantined"] else ""
    folder = Path(output) / "kept"
    restored = f"restored {counts['restored']:,} of {plural(removed, 'removed document')}"
    restored += f", undid the cuts of {counts['uncut']:,}" if "uncut" in counts else ""
    return f"{restored}; {plural(counts['rows'], 'row')}{broken} in {folder}"
