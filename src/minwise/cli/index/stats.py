"""minwise index stats INDEX."""

import json
from collections.abc import Iterator
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

import minwise as mw
from minwise.cli.summary import printed

__all__ = ["stats"]

STORED = {
    "shingles": "shingles; similarities are exact",
    "text": "shingles and texts; similarities are exact",
    "sketch": "sketches; similarities are estimates",
}
UNITS = ("bytes", "kB", "MB", "GB", "TB")


@click.command()
@click.argument("index", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
def stats(index: str, as_json: bool) -> None:
    """Show how much is in INDEX, and under which settings.

    Example: minwise index stats news.mw
    """
    with mw.Index.open(index) as opened:
        facts, plan = opened.stats(), opened.plan
    if as_json:
        click.echo(json.dumps({"index": index, **facts}, indent=2, ensure_ascii=False))
        return
    with printed() as console:
        table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column(style="dim")
        table.add_column()
        for name, value in _rows(facts, plan):
            table.add_row(name, escape(value))
        console.print(table)


def _rows(facts: dict[str, Any], plan: mw.Plan) -> Iterator[tuple[str, str]]:
    settings, segments = facts["settings"], facts["segments"]
    yield "documents", f"{facts['documents']:,}; {facts['removed']:,} more were removed"
    each = f", {facts['bytes'] / facts['documents']:,.0f} bytes a document" if facts["documents"] else ""
    yield "size", f"{_size(facts['bytes'])}{each}"
    yield "segments", f"{len(segments):,}; the postings of {facts['recent']:,} documents are not in one yet"
    yield "stored", STORED[settings["store"]]
    yield "shingles", f"{settings['shingle']}{', repeated ones count' if settings['bag'] else ''}"
    found = "propose" if settings["store"] == "sketch" else "find"
    yield "plan", f"{plan.bands} bands × {plan.rows} rows {found} {plan.recall:.2%} of documents at {plan.threshold:g}"
    yield "cap", f"of a bucket of more than {settings['max_bucket']:,} documents the first few are looked at"
    yield "seed", "secret" if settings["secret_seed"] else str(settings["seed"])


def _size(count: int) -> str:
    """A number of bytes as one says it."""
    size, unit = float(count), UNITS[0]
    for unit in UNITS:
        if size < 1000 or unit == UNITS[-1]:
            break
        size /= 1000
    return f"{size:,.0f} {unit}" if unit == UNITS[0] else f"{size:,.1f} {unit}"
