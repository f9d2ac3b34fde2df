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
    with mw.Index.open(index) as opened:
        damages = opened.verify()
        files = None if damages else 1 + len(opened.stats()["segments"])
    if as_json:
        found = [{"file": damage.file, "what": damage.what} for damage in damages]
        click.echo(json.dumps({"index": index, "files": files, "damages": found}, indent=2))
    for damage in () if as_json else damages:
        click.echo(f"minwise: {damage}", err=True)
    if damages:
        sys.exit(1)
    if not as_json and not quiet:
        click.echo(f"{files} {'file' if files == 1 else 'files'}, every checksum is right")
