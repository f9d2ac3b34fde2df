"""minwise index query INDEX INPUT…."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import click

import minwise as mw
from minwise.cli.index.lines_out import LinesOut, lines_to
from minwise.cli.options import reading_options, settings_of, shown_options
from minwise.cli.progress import watch

__all__ = ["query"]


@click.command()
@click.argument("index", type=click.Path())
@click.argument("inputs", nargs=-1, required=True, type=click.Path())
@click.option(
    "-o",
    "--output",
    default="-",
    show_default=True,
    type=click.Path(),
    help="File for the answers, JSON lines; - prints them.",
)
@click.option("--threshold", type=float, default=None, help="Least similarity; that of the index if not given.")
@click.option("--top", default=10, show_default=True, help="Most hits for a document.")
@click.option(
    "--where", metavar="KEY=VALUE", multiple=True, default=(), help="Only hits whose metadata has this; repeatable."
)
@click.option("--passages", is_flag=True, help="Add the longest passage that both texts have; needs stored texts.")
@reading_options
@shown_options
def query(index: str, inputs: tuple[str, ...], output: str, where: tuple[str, ...], **given: Any) -> None:  # noqa: ANN401
    """Find the near-duplicates of INPUTS in INDEX; - is standard input.

    Prints a JSON line for every document: its id, its hits (id, similarity, whether that is exact, metadata), the most
    similar first, and whether the search was truncated. Lines of standard input are answered as they come. A VALUE is
    JSON if it can be, otherwise a string: year=2024 is a number, lang=en a string.

    Example: minwise index query news.mw fresh.jsonl --top 3 --where lang=en
    """
    settings = {**settings_of(given), "where": _conditions(where) or None}
    counts = Counter({"asked": 0, "with_hits": 0, "hits": 0, "truncated": 0, "left_out": 0})

    def report(fault: str) -> None:
        counts["left_out"] += 1
        if given["on_error"] == "quarantine":
            click.echo(f"minwise: {fault}; left out", err=True)

    started = time.monotonic()
    settings |= {"progress": watch(quiet=given["quiet"] or given["as_json"]), "on_fault": report}
    with mw.Index.open(index, threads=settings.pop("threads")) as opened, lines_to(output, (index, *inputs)) as lines:
        _answer(opened.query_from(mw.Files(inputs), **settings), lines, counts)
    seconds = round(time.monotonic() - started, 3)
    aside = output == "-"
    if given["as_json"]:
        run = {"output": output, "seconds": seconds}
        click.echo(json.dumps({"index": index, **counts, "run": run}, indent=2), err=aside)
    elif not given["quiet"]:
        click.echo(f"{'minwise: ' if aside else ''}{_summary(counts)}", err=aside)


def _answer(answers: Iterator[dict[str, Any]], lines: LinesOut, counts: "Counter[str]") -> None:
    """Writes each answer as soon as there is one."""
    for answer in answers:
        lines.write(json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        lines.flush()
        found = len(answer["hits"])
        counts.update(asked=1, with_hits=bool(found), hits=found, truncated=answer["truncated"])


def _conditions(given: tuple[str, ...]) -> dict[str, Any]:
    """What the metadata must have."""
    conditions: dict[str, Any] = {}
    for one in given:
        key, equals, value = one.partition("=")
        if not key or not equals:
            raise mw.ConfigError(f"where must be KEY=VALUE, got {one}")
        if key in conditions:
            raise mw.ConfigError(f"where must name a key once, got {key} twice; a document has one value for it")
        conditions[key] = _value(value)
    return conditions


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _summary(counts: "Counter[str]") -> str:
    shown = f"{counts['asked']:,} asked: {counts['with_hits']:,} with near-duplicates, {counts['hits']:,} hits"
    cut = f"{counts['truncated']:,} searches shortened" if counts["truncated"] else ""
    broken = f"{counts['left_out']:,} could not be read" if counts["left_out"] else ""
    return ", ".join(filter(None, [shown, cut, broken]))
