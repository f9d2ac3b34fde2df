"""minwise vectors near VECTORS QUERIES -o NEIGHBOURS."""

from collections.abc import Iterator
from typing import Any

import click

import minwise as mw
from minwise.cli.options import table_output
from minwise.cli.progress import watch
from minwise.cli.summary import fault_lines, show_found
from minwise.cli.vectors.options import planned, running_of, vector_options

__all__ = ["near"]


@click.command()
@click.argument("vectors", type=click.Path())
@click.argument("queries", type=click.Path())
@click.option("--top", type=int, default=None, help="How many neighbours of each query.")
@click.option("--radius", type=float, default=None, help="Distance up to which they count.")
@table_output
@vector_options
def near(
    vectors: str,
    queries: str,
    top: int | None,
    radius: float | None,
    output: str,
    **given: Any,  # noqa: ANN401
) -> None:
    """List the nearest of VECTORS for each of QUERIES.

    Columns are query and neighbour, which are row numbers, and distance. The recall is that at --radius; without one,
    at a distance within which nine of ten queries have --top neighbours.

    Example: minwise vectors near images.npy new.npy --top 10 -o neighbours.parquet
    """
    if top is None and radius is None:
        raise mw.ConfigError("near takes --top, --radius or both, got neither")
    show = show_found("neighbours", output, quiet=given["quiet"], as_json=given["as_json"], lines=_lines)
    wanted = {"radius": radius} if radius is not None else {"top": top}
    search = planned(given, vectors, queries=queries, **wanted)
    found = search.fit(vectors, column=given["column"]).query(
        queries,
        output,
        radius=radius,
        top=top,
        column=given["column"],
        progress=watch(quiet=given["quiet"] or given["as_json"]),
        **running_of(given),
    )
    show(found)


def _lines(what: str, report: dict[str, Any], output: str, seconds: float) -> Iterator[str]:
    counts, queries = report["counts"], report["queries"]
    place = "" if output == "-" else f", in {output}"
    among = f"{queries['asked']:,} queries among {counts['documents']:,} vectors in {seconds:.1f} s{place}"
    yield f"{report[what]:,} {what} of {among}"
    left_out = counts["quarantined"] + queries["quarantined"]
    if left_out:
        yield f"{left_out:,} vectors could not be used and are left out"
    yield from fault_lines(report)
