"""minwise plan."""

import json
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import minwise as mw
from minwise.cli.base import Command
from minwise.cli.options import add_options, setting_option
from minwise.sketches import Plan

__all__ = ["plan"]

BAR_WIDTH = 40


@click.command(cls=Command)
@add_options(*(setting_option(name) for name in ("threshold", "recall", "slots", "bands", "rows")))
@click.option("--plot", type=click.Path(), default=None, help="Draw the curve into this .svg file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def plan(
    threshold: float, recall: float, slots: int, bands: int | None, rows: int | None, plot: str | None, as_json: bool
) -> None:
    """Choose bands and rows for a threshold; show the S-curve.

    Examples:
        minwise plan --threshold 0.7 --recall 0.95
        minwise plan --bands 20 --rows 5
        minwise plan --threshold 0.8 --slots 128 --plot curve.svg
    """
    chosen = mw.plan(threshold, recall, slots=slots, bands=bands, rows=rows)
    if plot is not None:
        chosen.plot(plot)
    if as_json:
        click.echo(json.dumps(_as_dict(chosen, plot), indent=2))
    else:
        _show(chosen, slots, plot)


def _as_dict(chosen: Plan, plot: str | None) -> dict[str, Any]:
    table = [point._asdict() for point in chosen.table()]
    return {**chosen.to_dict(), "table": table, **({} if plot is None else {"plot": plot})}


def _show(chosen: Plan, slots: int, plot: str | None) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 10_000  # nothing is wrapped or cut in a pipe
    block = "█" if console.is_terminal and console.encoding.startswith("utf") else "#"
    with console.capture() as capture:
        console.print(_facts(chosen, slots, plot))
        console.print()
        console.print(_curve(chosen, block))
    click.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))


def _facts(chosen: Plan, slots: int, plot: str | None) -> Table:
    table = _table(show_header=False)
    table.add_column(style="dim")
    table.add_column()
    was_planned = chosen.wanted_recall is not None
    wanted = f"; at least {chosen.wanted_recall:g} was wanted" if was_planned else ""
    table.add_row("bands", f"[bold]{chosen.bands}[/bold]")
    table.add_row("rows", f"[bold]{chosen.rows}[/bold]")
    table.add_row("slots used", f"{chosen.slots} of {slots}" if was_planned else f"{chosen.slots}")
    table.add_row("recall", f"{chosen.recall:.4f}  at the threshold {chosen.threshold:g}{wanted}")
    rate = f"{chosen.false_candidate_rate:.4f}"
    table.add_row("false candidates", f"{rate}  of pairs spread evenly below the threshold, expected")
    table.add_row("steepest", f"{chosen.steepest:.4f}  about where the curve climbs fastest")
    if plot is not None:
        table.add_row("plot", escape(plot))
    return table


def _curve(chosen: Plan, block: str) -> Table:
    """Return the S-curve, a line per similarity, including the threshold."""
    table = _table(show_header=True)
    table.add_column("similarity", justify="right")
    table.add_column("probability", justify="right")
    table.add_column()
    points = dict(chosen.table())
    points[chosen.threshold] = chosen.recall
    for similarity, probability in sorted(points.items()):
        is_threshold = similarity == chosen.threshold
        bar = block * round(BAR_WIDTH * probability)
        note = f"{bar} threshold".lstrip() if is_threshold else bar
        shown = f"{similarity:.2f}" if round(similarity, 2) == similarity else f"{similarity:g}"
        table.add_row(shown, f"{probability:.4f}", note, style="bold" if is_threshold else None)
    return table


def _table(*, show_header: bool) -> Table:
    return Table(show_header=show_header, header_style="dim", box=None, pad_edge=False, padding=(0, 2, 0, 0))
