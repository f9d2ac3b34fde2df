"""minwise index add INDEX INPUT…."""

import json
import time
from contextlib import ExitStack
from typing import Any, BinaryIO, cast

import click

import minwise as mw
from minwise.cli.index.lines_out import lines_to
from minwise.cli.options import reading_options, settings_of, shown_options
from minwise.cli.progress import watch

__all__ = ["add"]

# What a summary calls the counts; those that are 0 are left out, but for the first.
COUNTS = {
    "added": "added",
    "duplicates": "near-duplicates left out",
    "replaced": "replaced",
    "skipped": "skipped",
    "unchanged": "there already",
    "quarantined": "quarantined",
    "truncated": "decided after a shortened search",
}


@click.command()
@click.argument("index", type=click.Path())
@click.argument("inputs", nargs=-1, required=True, type=click.Path())
@click.option("--unique", is_flag=True, help="Add only what is no near-duplicate; print a decision for every row.")
@click.option(
    "-o", "--output", type=click.Path(), default=None, help="With --unique: JSON lines of what is kept; - prints them."
)
@click.option(
    "--on-duplicate-id",
    default="error",
    show_default=True,
    type=click.Choice(["error", "skip", "replace"]),
    help="What becomes of a document whose id another one has.",
)
@click.option("--metadata-column", multiple=True, default=(), help="Column to store with each document; repeatable.")
@reading_options
@shown_options
def add(index: str, inputs: tuple[str, ...], unique: bool, output: str | None, **given: Any) -> None:  # noqa: ANN401
    """Add the documents of INPUTS to INDEX.

    With - for INPUTS they are JSON lines on standard input, and have ids. Documents are durable a few thousand at a
    time. After an interruption the same command goes on: a document that is there already is left as it is. With
    --unique every row is decided on in its order, and the decisions are printed as JSON lines, each once it is durable;
    from standard input that is as soon as a line comes.

    Example: minwise index add news.mw day1/*.parquet
    """
    if output is not None and not unique:
        raise mw.ConfigError(f"output needs --unique, which decides what is kept, got {output} without it")
    settings = settings_of(given)
    settings["metadata_columns"] = settings.pop("metadata_column")

    def report(fault: str) -> None:
        if given["on_error"] == "quarantine":
            click.echo(f"minwise: {fault}; left out", err=True)

    started = time.monotonic()
    with mw.Index.open(index, "w", threads=settings.pop("threads")) as opened:
        settings |= {"progress": watch(quiet=given["quiet"] or given["as_json"]), "on_fault": report}
        if unique:
            counts = _add_unique(opened, (index, *inputs), output, settings)
        else:
            counts = opened.add_from(mw.Files(inputs), **settings)
        documents = len(opened)
    seconds = round(time.monotonic() - started, 3)
    if given["as_json"]:
        result = {"index": index, **counts, "documents": documents, "run": {"seconds": seconds}}
        click.echo(json.dumps(result, indent=2, ensure_ascii=False), err=unique)
    elif not given["quiet"]:
        click.echo(f"{'minwise: ' if unique else ''}{_summary(counts)}; {documents:,} in {index}", err=unique)


def _add_unique(
    index: "mw.Index", inputs: tuple[str, ...], output: str | None, settings: dict[str, Any]
) -> dict[str, Any]:
    """Decides on every row; kept rows go to the output, decisions to standard output unless kept rows go there."""
    with ExitStack() as stack:
        kept = None if output is None else stack.enter_context(lines_to(output, inputs))
        decisions = None if output == "-" else stack.enter_context(lines_to("-"))
        files = [cast(BinaryIO | None, one) for one in (kept, decisions)]
        return index.add_stream(mw.Files(inputs[1:]), *files, **settings)


def _summary(counts: dict[str, Any]) -> str:
    shown = [f"{counts[name]:,} {text}" for name, text in COUNTS.items() if counts.get(name) or name == "added"]
    files = [f"{counts['unreadable']:,} files not read to their end"] if counts["unreadable"] else []
    return f"{counts['read']:,} read: {', '.join([*shown, *files])}"
