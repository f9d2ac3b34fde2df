"""minwise vectors near VECTORS QUERIES -o NEIGHBOURS."""

import json
import time
from collections.abc import Iterator
from typing import Any

import click

import minwise as mw
from minwise.cli.progress import watch
from minwise.cli.vectors.options import planned, running_of, vector_options

__all__ = ["near"]


@click.command()
@click.argument("vectors", type=click.Path())
@click.argument("queries", type=click.Path())
@click.option("--top", type=int, default=None, help="How many neighbours of each query.")
@click.option("--radius", type=float, default=None, help="Distance up to which they count.")
@click.option(
    "-o", "--output", required=True, type=click.Path(), help="A .parquet, .csv, .tsv or .jsonl file; - for JSON lines."
)
@vector_options
def near(
    vectors: str,
    queries: str,
    top: int | None,
    radius: float | None,
    output: str,
    **given: Any,  # noqa: ANN401
) -> None:
    """List the nearest of VECTORS for each of QUERIES: query, neighbour (row numbers), distance.

    The recall is that at --radius; without one, at a distance within which nine of ten queries have --top neighbours.

    Example: minwise vectors near images.npy new.npy --top 10 -o neighbours.parquet
    """
    if top is None and radius is None:
        raise mw.ConfigError("near takes --top, --radius or both, got neither")
    started = time.monotonic()
    wanted = {"radius": radius} if radius is not None else {"top": top}
    search = planned(given, vectors, queries=queries, **wanted)
    report = search.fit(vectors, column=given["column"]).query(
        queries,
        output,
        radius=radius,
        top=top,
        column=given["column"],
        progress=watch(quiet=given["quiet"] or given["as_json"]),
        **running_of(given),
    )
    seconds = time.monotonic() - started
    aside = output == "-"
    if given["as_json"]:
        run = {"output": output, "seconds": round(seconds, 3)}
        click.echo(json.dumps({**report, "run": run}, indent=2, ensure_ascii=False), err=aside)
    elif not given["quiet"]:
        for line in _lines(report, output, seconds):
            click.echo(line, err=aside)


def _lines(report: dict[str, Any], output: str, seconds: float) -> Iterator[str]:
    counts, queries = report["counts"], report["queries"]
    place = "" if output == "-" else f", in {output}"
    among = f"{queries['asked']:,} queries among {counts['documents']:,} vectors in {seconds:.1f} s{place}"
    yield f"{report['neighbours']:,} neighbours of {among}"
    left_out = counts["quarantined"] + queries["quarantined"]
    if left_out:
        yield f"{left_out:,} vectors could not be used and are left out"
    for fault in report["faults"]:
        row = "" if fault["row"] is None else f" row {fault['row']}:"
        yield f"  {fault['source']}:{row} {fault['reason']}"
