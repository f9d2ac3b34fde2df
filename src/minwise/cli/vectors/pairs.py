"""minwise vectors pairs VECTORS -o PAIRS."""

from typing import Any

import click

from minwise.cli.options import table_output
from minwise.cli.progress import watch
from minwise.cli.summary import show_found
from minwise.cli.vectors.options import planned, running_of, vector_options

__all__ = ["pairs"]


@click.command()
@click.argument("vectors", type=click.Path())
@click.option("--radius", required=True, type=float, help="Distance up to which two are a pair.")
@table_output
@click.option("--max-bucket", default=2000, show_default=True, help="Members up to which all are compared with all.")
@vector_options
def pairs(vectors: str, radius: float, output: str, max_bucket: int, **given: Any) -> None:  # noqa: ANN401
    """List every pair of VECTORS within a distance.

    Columns are left and right, which are row numbers, and distance. Pairs are in row order, those of equal vectors
    among them.

    Example: minwise vectors pairs images.npy --radius 0.5 -o pairs.parquet
    """
    progress = watch(quiet=given["quiet"] or given["as_json"])
    show = show_found("pairs", output, quiet=given["quiet"], as_json=given["as_json"])
    search = planned(given, vectors, radius=radius, max_bucket=max_bucket).fit(vectors, column=given["column"])
    show(search.pairs(radius, output, max_bucket=max_bucket, progress=progress, **running_of(given)))
