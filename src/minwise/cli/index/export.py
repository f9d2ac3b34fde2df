"""minwise index export INDEX FILE."""

import json

import click

import minwise as mw
from minwise.cli.options import shown_options

__all__ = ["export"]


@click.command()
@click.argument("index", type=click.Path())
@click.argument("file", type=click.Path())
@shown_options
def export(index: str, file: str, as_json: bool, quiet: bool) -> None:
    """Write id, metadata and signature of every document of INDEX to FILE, a .parquet file.

    A secret seed is not part of it: signatures of two indexes can be compared only if both were made with one --seed.

    Example: minwise index export news.mw signatures.parquet
    """
    if not file.lower().endswith((".parquet", ".pq")):
        raise mw.ConfigError(f"file must end in .parquet, got {file}")
    with mw.Index.open(index) as opened:
        written = opened.export(file)
    if as_json:
        click.echo(json.dumps({"index": index, "file": file, "documents": written}, indent=2))
    elif not quiet:
        click.echo(f"{written:,} signatures in {file}")
