"""minwise index verify INDEX."""

import json
import sys

import click

import minwise as mw

__all__ = ["verify"]


@click.command()
@click.argument("index", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
@click.option("--quiet", is_flag=True, help="Say nothing if all is well.")
def verify(index: str, as_json: bool, quiet: bool) -> None:
    """Read all of INDEX and check every checksum and count.

    Exit code 0 if everything is as it was written; otherwise 1, and a line on standard error for each damage that names
    the file.

    Example: minwise index verify news.mw
    """
    damages, files = _look(index)
    if as_json:
        found = [{"file": damage.file, "what": damage.what} for damage in damages]
        click.echo(json.dumps({"index": index, "files": files, "damages": found}, indent=2))
    for damage in () if as_json else damages:
        click.echo(f"minwise: {damage}", err=True)
    if damages:
        sys.exit(1)
    if not as_json and not quiet:
        click.echo(f"{files} {'file' if files == 1 else 'files'}, every checksum is right")


def _look(index: str) -> tuple[list["mw.Damage"], int | None]:
    """What is damaged, and how many files are whole if nothing is; what keeps it from being opened is damage too."""
    try:
        with mw.Index.open(index) as opened:
            damages = opened.verify()
            return damages, None if damages else 1 + len(opened.stats()["segments"])
    except mw.FormatError as error:
        file, _, what = str(error).partition(": ")
        return [mw.Damage(file, what)], None
