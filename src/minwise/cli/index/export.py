"""minwise index export INDEX FILE."""

import click

import minwise as mw
from minwise.cli.options import shown_options
from minwise.cli.outcome import show_outcome

__all__ = ["export"]


@click.command()
@click.argument("index", type=click.Path())
@click.argument("file", type=click.Path())
@shown_options
def export(index: str, file: str, as_json: bool, quiet: bool) -> None:
    """Write the signatures of INDEX to FILE, a .parquet file.

    A row has the id, metadata and signature of a document.

    A secret seed is not part of it: signatures of two indexes can be compared only if both were made with one --seed.

    Example: minwise index export news.mw signatures.parquet
    """
    if not file.lower().endswith((".parquet", ".pq")):
        raise mw.ConfigError(f"file must end in .parquet, got {file}")
    with mw.Index.open(index) as opened:
        written = opened.export(file)
    values = {"index": index, "file": file, "documents": written}
    show_outcome(values, f"{written:,} signatures in {file}", as_json=as_json, quiet=quiet)
