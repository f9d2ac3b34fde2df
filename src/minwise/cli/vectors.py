"""The options that both commands of vectors share, and the search that they describe."""

from collections.abc import Iterator
from typing import Any

import click

import minwise as mw
from minwise.cli.options import MACHINE_OPTIONS, OUTPUT_OPTIONS, WORK_OPTION, add_options, on_error_option, table_output
from minwise.cli.output import fault_lines, progress_bars, report_printer
from minwise.errors import ConfigError

__all__ = ["near", "pairs", "planned", "running_of", "vector_options"]

LAYOUT = (
    click.option(
        "--measure",
        default="euclidean",
        show_default=True,
        type=click.Choice(["euclidean", "cosine"]),
        help="Distance: the length of the difference, or 1 minus the cosine of the angle.",
    ),
    click.option("--recall", default=0.99, show_default=True, help="Wanted chance to find what is at the radius."),
    click.option("--width", type=float, default=None, help="Width of a line's pieces; with --hashes and --tables."),
    click.option("--hashes", type=int, default=None, help="Lines in a key; with --tables, in place of --recall."),
    click.option("--tables", type=int, default=None, help="Keys of a vector; with --hashes."),
    click.option("--seed", default=1, show_default=True, help="Seed of every line."),
    click.option("--column", default=None, help="Column of a Parquet file; needed if several have lists of numbers."),
)
# How vectors are hashed, how a run goes, and how to say what was done.
vector_options = add_options(
    *LAYOUT, on_error_option("vectors that cannot be used"), *MACHINE_OPTIONS, WORK_OPTION, *OUTPUT_OPTIONS
)


def running_of(given: dict[str, Any]) -> dict[str, Any]:
    """The settings of a run among the options."""
    return {name: given[name] for name in ("on_error", "memory", "threads", "work")}


def planned(given: dict[str, Any], vectors: str, **wanted: Any) -> "mw.EuclideanLSH | mw.CosineLSH":  # noqa: ANN401
    """The layout that was given, or the one that is planned for what is wanted."""
    layout = {name: given[name] for name in ("hashes", "tables") if given[name] is not None}
    if given["measure"] == "cosine" and given["width"] is not None:
        raise ConfigError(f"width must be left out with measure cosine, got {given['width']}")
    if not layout and given["width"] is None:
        family = mw.CosineLSH if given["measure"] == "cosine" else mw.EuclideanLSH
        return family.plan(vectors, recall=given["recall"], seed=given["seed"], column=given["column"], **wanted)
    if given["measure"] == "euclidean" and given["width"] is not None:
        layout["width"] = given["width"]
    needed = ("width", "hashes", "tables") if given["measure"] == "euclidean" else ("hashes", "tables")
    for name in needed:
        if name not in layout:
            raise ConfigError(f"{' and '.join(needed)} must be given together, got no {name}")
    if given["measure"] == "cosine":
        return mw.CosineLSH(seed=given["seed"], **layout)
    return mw.EuclideanLSH(seed=given["seed"], **layout)


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
        raise ConfigError("near takes --top, --radius or both, got neither")
    show = report_printer("neighbours", output, quiet=given["quiet"], as_json=given["as_json"], lines=_lines)
    wanted = {"radius": radius} if radius is not None else {"top": top}
    search = planned(given, vectors, queries=queries, **wanted)
    found = search.fit(vectors, column=given["column"]).query(
        queries,
        output,
        radius=radius,
        top=top,
        column=given["column"],
        progress=progress_bars(quiet=given["quiet"] or given["as_json"]),
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
    progress = progress_bars(quiet=given["quiet"] or given["as_json"])
    show = report_printer("pairs", output, quiet=given["quiet"], as_json=given["as_json"])
    search = planned(given, vectors, radius=radius, max_bucket=max_bucket).fit(vectors, column=given["column"])
    show(search.pairs(radius, output, max_bucket=max_bucket, progress=progress, **running_of(given)))


@click.group()
def vectors() -> None:
    """Find vectors near each other: all pairs, or nearest neighbours.

    VECTORS is an .npy file, which stays where it is, or a Parquet file with a column of lists.
    """


for subcommand in (pairs, near):
    vectors.add_command(subcommand)
