"""``minwise vectors``: pairs of vectors within a distance, and nearest neighbours."""

from collections.abc import Iterator
from typing import Any

import click

import minwise as mw
from minwise._internal.formatting import plural
from minwise.cli.base import Command, Group
from minwise.cli.options import (
    MACHINE_OPTIONS,
    OUTPUT_OPTIONS,
    WORK_OPTION,
    add_options,
    on_error_option,
    setting_option,
    table_output,
)
from minwise.cli.output import left_out_line, report_printer, vector_lines, watched_progress
from minwise.errors import ConfigError
from minwise.progress import Stopwatch

__all__ = ["vectors"]

LAYOUT_OPTIONS = (
    click.option(
        "--measure",
        default="euclidean",
        show_default=True,
        type=click.Choice(["euclidean", "cosine"]),
        help="Distance: the length of the difference, or 1 minus the cosine of the angle.",
    ),
    setting_option("recall", help="Probability that a pair at the radius is found; width, hashes and tables follow."),
    click.option(
        "--width", type=float, default=None, help="Segment length of a projection; with --hashes and --tables."
    ),
    click.option("--hashes", type=int, default=None, help="Projections per key; with --tables, replaces --recall."),
    click.option("--tables", type=int, default=None, help="Keys per vector; with --hashes."),
    setting_option("seed", help="Seed of the random projections."),
    click.option("--column", default=None, help="Column of a Parquet file; needed if several hold lists of numbers."),
)
vector_options = add_options(
    *LAYOUT_OPTIONS, on_error_option("vectors that cannot be used"), *MACHINE_OPTIONS, WORK_OPTION, *OUTPUT_OPTIONS
)


def _run_settings(given: dict[str, Any], watch: Stopwatch) -> dict[str, Any]:
    return {"progress": watch, **{name: given[name] for name in ("on_error", "memory", "threads", "work", "overwrite")}}


def _make_search(
    given: dict[str, Any],
    vectors: str,
    **target: Any,  # noqa: ANN401 - settings of the plan
) -> "mw.EuclideanLSH | mw.CosineLSH":
    """Return a search with the given layout, or one that is planned for the target."""
    names = ("width", "hashes", "tables")
    layout = {name: given[name] for name in names if given[name] is not None}
    family = mw.CosineLSH if given["measure"] == "cosine" else mw.EuclideanLSH
    if not layout:
        return family.plan(vectors, recall=given["recall"], seed=given["seed"], column=given["column"], **target)
    needed = names[1:] if given["measure"] == "cosine" else names
    if given["measure"] == "cosine" and "width" in layout:
        raise ConfigError(f"width must be left out with measure cosine, got {given['width']}")
    for name in needed:
        if name not in layout:
            raise ConfigError(f"{' and '.join(needed)} must be given together, got no {name}")
    return family(seed=given["seed"], **layout)


@click.command(cls=Command)
@click.argument("vectors", type=click.Path())
@click.argument("queries", type=click.Path())
@click.option("--top", type=int, default=None, help="Maximum number of neighbours of a query.")
@click.option("--radius", type=float, default=None, help="Maximum distance of a neighbour.")
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

    Columns are query and neighbour, which are row numbers, and distance. The recall holds at --radius; without it, at a
    distance that contains the --top neighbours of nine in ten queries.

    Examples:
        minwise vectors near images.npy new.npy --top 10 -o neighbours.parquet
        minwise vectors near images.npy new.npy --radius 0.5 -o neighbours.csv
        minwise vectors near old.parquet new.parquet --column embedding --top 5 -o -
    """
    if top is None and radius is None:
        raise ConfigError("near takes --top, --radius or both, got neither")
    watch = watched_progress(quiet=given["quiet"] or given["as_json"])
    show = report_printer("neighbours", output, watch, quiet=given["quiet"], as_json=given["as_json"], lines=_summary)
    target = {"radius": radius} if radius is not None else {"top": top}
    search = _make_search(given, vectors, queries=queries, **target).fit(vectors, column=given["column"])
    run = _run_settings(given, watch)
    show(search.write_query(queries, output, radius=radius, top=top, column=given["column"], **run))


def _summary(what: str, report: dict[str, Any], output: str | None, seconds: float) -> Iterator[str]:
    counts, queries = report["counts"], report["queries"]
    location = "" if output == "-" else f", in {output}"
    asked, vectors = plural(queries["asked"], "query", "queries"), plural(counts["documents"], "vector")
    yield f"{plural(report[what], 'neighbour')} of {asked} among {vectors} in {seconds:.1f} s{location}"
    left_out = counts["quarantined"] + queries["quarantined"]
    if left_out:
        yield left_out_line(left_out, 0, "vector")


@click.command(cls=Command)
@click.argument("vectors", type=click.Path())
@click.option("--radius", required=True, type=float, help="Maximum distance of a pair.")
@table_output
@setting_option("max_bucket", help="Members up to which all pairs of a bucket are compared.")
@vector_options
def pairs(vectors: str, radius: float, output: str, max_bucket: int, **given: Any) -> None:  # noqa: ANN401
    """List every pair of VECTORS within a distance.

    Columns are left and right, which are row numbers, and distance. Pairs are in row order and include those of equal
    vectors.

    Examples:
        minwise vectors pairs images.npy --radius 0.5 -o pairs.parquet
        minwise vectors pairs images.npy --measure cosine --radius 0.1 -o pairs.csv
        minwise vectors pairs pages.parquet --column embedding --radius 0.5 -o -
    """
    watch = watched_progress(quiet=given["quiet"] or given["as_json"])
    show = report_printer("pairs", output, watch, quiet=given["quiet"], as_json=given["as_json"], lines=vector_lines)
    search = _make_search(given, vectors, radius=radius, max_bucket=max_bucket).fit(vectors, column=given["column"])
    show(search.write_pairs(radius, output, max_bucket=max_bucket, **_run_settings(given, watch)))


@click.group(cls=Group)
def vectors() -> None:
    """Find vectors near each other: all pairs, or nearest neighbours.

    VECTORS is an .npy file, which is not copied, or a Parquet file with a column of lists.

    Examples:
        minwise vectors pairs images.npy --radius 0.5 -o pairs.parquet
        minwise vectors near images.npy new.npy --top 10 -o neighbours.parquet
        minwise vectors near --help
    """


vectors.add_tasks({"Search": (pairs, near)})
