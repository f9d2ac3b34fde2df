"""``minwise vectors``: pairs of vectors within a distance, nearest neighbours, clusters and deduplication."""

import math
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
    overwrite_option,
    setting_option,
    table_output,
)
from minwise.cli.output import Lines, left_out_line, report_printer, vector_lines, watched_progress
from minwise.errors import ConfigError
from minwise.options import ClustersOptions, GroupName
from minwise.progress import Stopwatch

__all__ = ["vectors"]

LAYOUT_OPTIONS = (
    click.option(
        "--measure",
        default="euclidean",
        show_default=True,
        type=click.Choice(["euclidean", "cosine", "hamming"]),
        help="Distance: length of the difference, 1 minus the cosine of the angle, or bits of uint8 that differ.",
    ),
    setting_option("recall", help="Probability that a pair at the radius is found; width, hashes and tables follow."),
    click.option(
        "--width", type=float, default=None, help="Segment length of a projection; with --hashes and --tables."
    ),
    click.option("--hashes", type=int, default=None, help="Projections per key; with --tables, replaces --recall."),
    click.option(
        "--tables", type=int, default=None, help="Keys per vector; with --hashes. 0 compares all vectors, exactly."
    ),
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
) -> "mw.EuclideanLSH | mw.CosineLSH | mw.HammingSearch":  # a string, because importing them is slow
    """Return a search with the given layout, or one that is planned for the target."""
    names = ("width", "hashes", "tables")
    layout = {name: given[name] for name in names if given[name] is not None}
    if not 0.0 < given["recall"] < 1.0:
        raise ConfigError(f"recall must be above 0 and below 1, got {given['recall']}")
    if given["measure"] == "hamming":
        return _bit_search(layout, given["seed"])
    family = mw.CosineLSH if given["measure"] == "cosine" else mw.EuclideanLSH
    if not layout:
        return family.plan(vectors, recall=given["recall"], seed=given["seed"], column=given["column"], **target)
    if layout == {"tables": 0}:
        return family(tables=0, seed=given["seed"])
    needed = names[1:] if given["measure"] == "cosine" else names
    if given["measure"] == "cosine" and "width" in layout:
        raise ConfigError(f"width must be left out with measure cosine, got {given['width']}")
    for name in needed:
        if name not in layout:
            raise ConfigError(f"{' and '.join(needed)} must be given together, got no {name}")
    return family(seed=given["seed"], **layout)


def _bit_search(layout: dict[str, Any], seed: int) -> "mw.HammingSearch":
    for name, value in layout.items():
        if (name, value) != ("tables", 0):
            raise ConfigError(f"{name} must be left out with measure hamming, which compares all, got {value}")
    return mw.HammingSearch(seed=seed)


def _with_recall(lines: Lines, wanted: float) -> Lines:
    """Return a summary that also states the recall, unless nothing can be missed."""

    def all_lines(what: str, report: dict[str, Any], output: str | None, seconds: float) -> Iterator[str]:
        yield from lines(what, report, output, seconds)
        yield from _recall_lines(report["plan"]["recall"], wanted)

    return all_lines


def _recall_lines(recall: float, wanted: float) -> Iterator[str]:
    shown = math.floor(recall * 10_000) / 10_000
    if recall < wanted:
        yield f"warning: recall is {shown}, below {wanted}; give more --tables, or leave out the layout for --recall"
    elif recall < 1.0:
        yield f"recall {shown}; --tables 0 compares all vectors and misses none"


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

    Columns are query and neighbour, which are row numbers, and distance. Each of the --top nearest, or a neighbour at
    --radius, is found with the recall; where hash tables cannot reach it, or cost more, all vectors are compared.

    Examples:
        minwise vectors near images.npy new.npy --top 10 -o neighbours.parquet
        minwise vectors near images.npy new.npy --radius 0.5 -o neighbours.csv
        minwise vectors near old.parquet new.parquet --column embedding --top 5 -o -
    """
    if top is None and radius is None:
        raise ConfigError("near takes --top, --radius or both, got neither")
    watch = watched_progress(quiet=given["quiet"] or given["as_json"])
    lines = _with_recall(_summary, given["recall"])
    show = report_printer("neighbours", output, watch, quiet=given["quiet"], as_json=given["as_json"], lines=lines)
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
    """List pairs of VECTORS within a distance.

    Columns are left and right, which are row numbers, and distance. Pairs are in row order and include those of equal
    vectors. A pair at the radius is found with the recall; all pairs are if all vectors are compared. Of more than
    --max-bucket equal vectors, each is paired with the first 16.

    Examples:
        minwise vectors pairs images.npy --radius 0.5 -o pairs.parquet
        minwise vectors pairs images.npy --measure cosine --radius 0.1 -o pairs.csv
        minwise vectors pairs pages.parquet --column embedding --radius 0.5 -o -
    """
    watch = watched_progress(quiet=given["quiet"] or given["as_json"])
    lines = _with_recall(vector_lines, given["recall"])
    show = report_printer("pairs", output, watch, quiet=given["quiet"], as_json=given["as_json"], lines=lines)
    search = _make_search(given, vectors, radius=radius, max_bucket=max_bucket).fit(vectors, column=given["column"])
    show(search.write_pairs(radius, output, max_bucket=max_bucket, **_run_settings(given, watch)))


@click.command(cls=Command)
@click.argument("vectors", type=click.Path())
@click.option("--radius", required=True, type=float, help="Maximum distance of a pair.")
@table_output
@setting_option("group", of=ClustersOptions)
@setting_option("max_bucket", help="Members up to which all pairs of a bucket are compared.")
@vector_options
def clusters(vectors: str, radius: float, output: str, group: GroupName, max_bucket: int, **given: Any) -> None:  # noqa: ANN401
    """List the cluster of every vector in VECTORS: id, cluster, size.

    The id is the row number. A cluster has the id of its first vector; a vector without near ones is a cluster of its
    own.

    Examples:
        minwise vectors clusters images.npy --radius 0.5 -o clusters.parquet
        minwise vectors clusters images.npy --radius 0.5 --group star -o groups.csv
        minwise vectors clusters pages.parquet --column embedding --radius 0.5 -o -
    """
    watch = watched_progress(quiet=given["quiet"] or given["as_json"])
    lines = _with_recall(vector_lines, given["recall"])
    show = report_printer("clusters", output, watch, quiet=given["quiet"], as_json=given["as_json"], lines=lines)
    search = _make_search(given, vectors, radius=radius, max_bucket=max_bucket).fit(vectors, column=given["column"])
    show(search.write_clusters(radius, output, group=group, max_bucket=max_bucket, **_run_settings(given, watch)))


@click.command(cls=Command)
@click.argument("vectors", type=click.Path())
@click.option("--radius", required=True, type=float, help="Maximum distance of a removed vector from its kept one.")
@click.option("-o", "--output", required=True, type=click.Path(), help="New directory for the result, or its URL.")
@overwrite_option
@setting_option("max_bucket", help="Members up to which all pairs of a bucket are compared.")
@vector_options
def dedup(vectors: str, radius: float, output: str, max_bucket: int, **given: Any) -> None:  # noqa: ANN401
    """Remove vectors that are near an earlier kept one from VECTORS.

    Kept vectors go to OUT/kept in the format they came in, a Parquet file with all its columns. OUT/removed.parquet
    names for every removed vector the nearest kept one that was found, and their distance; OUT/clusters.parquet has the
    cluster of every vector, OUT/report.json the counts. Near vectors are found with the recall; all of them if all
    vectors are compared.

    Examples:
        minwise vectors dedup images.npy --radius 0.5 -o clean
        minwise vectors dedup pages.parquet --column embedding --radius 0.5 -o clean
        minwise vectors dedup images.npy --measure cosine --radius 0.05 -o clean
    """
    if output == "-":
        raise ConfigError("output must be a directory, which standard output is not, got -; give -o OUT")
    watch = watched_progress(quiet=given["quiet"] or given["as_json"])
    lines = _with_recall(_dedup_lines, given["recall"])
    show = report_printer("dedup", output, watch, quiet=given["quiet"], as_json=given["as_json"], lines=lines)
    search = _make_search(given, vectors, radius=radius, max_bucket=max_bucket).fit(vectors, column=given["column"])
    show(search.write_dedup(radius, output, max_bucket=max_bucket, **_run_settings(given, watch)))


def _dedup_lines(what: str, report: dict[str, Any], output: str | None, seconds: float) -> Iterator[str]:
    counts = report["counts"]
    removed = f"{counts['removed']:,} removed ({counts['removed_identical']:,} identical)"
    yield f"{counts['kept']:,} of {plural(counts['read'], 'vector')} kept, {removed} in {seconds:.1f} s, in {output}"
    if counts["quarantined"]:
        yield left_out_line(counts["quarantined"], 0, "vector")


@click.group(cls=Group)
def vectors() -> None:
    """Find vectors near each other, and remove all but one of a group.

    VECTORS is an .npy file or a Parquet file with a column of lists. All commands but near copy the vectors to the work
    directory. --threads does not limit matrix products, which use the threads of NumPy's BLAS; set
    OPENBLAS_NUM_THREADS or its like for those.

    Examples:
        minwise vectors pairs images.npy --radius 0.5 -o pairs.parquet
        minwise vectors near images.npy new.npy --top 10 -o neighbours.parquet
        minwise vectors dedup images.npy --radius 0.5 -o clean
        minwise vectors near --help
    """


vectors.add_tasks({"Search": (pairs, near), "Group": (clusters, dedup)})
