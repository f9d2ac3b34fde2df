"""The options that both commands of vectors share, and the search that they describe."""

from typing import Any

import click

import minwise as mw
from minwise.cli.options import MACHINE, SHOWN, WORK, add_options, on_error_option

__all__ = ["planned", "running_of", "vector_options"]

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
vector_options = add_options(*LAYOUT, on_error_option("vectors that can not be used"), *MACHINE, WORK, *SHOWN)


def running_of(given: dict[str, Any]) -> dict[str, Any]:
    """The settings of a run among the options."""
    return {name: given[name] for name in ("on_error", "memory", "threads", "work")}


def planned(given: dict[str, Any], vectors: str, **wanted: Any) -> "mw.EuclideanLSH | mw.CosineLSH":  # noqa: ANN401
    """The layout that was given, or the one that is planned for what is wanted."""
    layout = {name: given[name] for name in ("hashes", "tables") if given[name] is not None}
    if given["measure"] == "cosine" and given["width"] is not None:
        raise mw.ConfigError(f"width must be left out with measure cosine, got {given['width']}")
    if not layout and given["width"] is None:
        family = mw.CosineLSH if given["measure"] == "cosine" else mw.EuclideanLSH
        return family.plan(vectors, recall=given["recall"], seed=given["seed"], column=given["column"], **wanted)
    if given["measure"] == "euclidean" and given["width"] is not None:
        layout["width"] = given["width"]
    needed = ("width", "hashes", "tables") if given["measure"] == "euclidean" else ("hashes", "tables")
    for name in needed:
        if name not in layout:
            raise mw.ConfigError(f"{' and '.join(needed)} must be given together, got no {name}")
    if given["measure"] == "cosine":
        return mw.CosineLSH(seed=given["seed"], **layout)
    return mw.EuclideanLSH(seed=given["seed"], **layout)
