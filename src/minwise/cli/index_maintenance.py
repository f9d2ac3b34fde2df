"""minwise index backup, compact, export, stats and verify."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

import minwise as mw
from minwise._internal.formatting import plural
from minwise.cli.base import Command
from minwise.cli.options import NORMALISATION_NAMES, overwrite_option, refuse_existing, verbosity_options
from minwise.cli.output import console_output, print_result, progress_bars
from minwise.errors import ConfigError, FormatError
from minwise.index import Damage, IndexStats
from minwise.progress import Stage
from minwise.sketches import Plan

__all__ = ["backup", "compact", "export", "stats", "verify"]


@click.command(cls=Command)
@click.argument("index", type=click.Path())
@click.argument("directory", type=click.Path())
@verbosity_options
def backup(index: str, directory: str, as_json: bool, quiet: bool) -> None:
    """Copy INDEX in its current state to a new DIRECTORY.

    Another process may write at the same time. The copy is an ordinary index; it appears complete or not at all.

    Examples:
        minwise index backup news.mw saved/news.mw
        minwise index backup news.mw saved/news.mw --quiet
        minwise index backup news.mw saved/news.mw --json
    """
    with mw.Index.open(index) as opened, _stage("backup", quiet=quiet or as_json):
        opened.backup(directory)
    with mw.Index.open(directory) as copy:
        documents = len(copy)
    values = {"index": index, "backup": directory, "documents": documents}
    print_result(values, f"{plural(documents, 'document')} in {directory}", as_json=as_json, quiet=quiet)


@click.command(cls=Command)
@click.argument("index", type=click.Path())
@verbosity_options
def compact(index: str, as_json: bool, quiet: bool) -> None:
    """Free the space of removed documents in INDEX.

    Merges all postings into one segment. Answers do not need it; use it after many removals, or before the index is
    copied elsewhere.

    Examples:
        minwise index compact news.mw
        minwise index compact news.mw --quiet
        minwise index compact news.mw --json
    """
    before = _bytes_of(index)
    with mw.Index.open(index, "w") as opened, _stage("compact", quiet=quiet or as_json):
        opened.compact()
    after = _bytes_of(index)  # after the writer has removed its log
    values = {"index": index, "bytes_before": before, "bytes": after}
    print_result(values, f"{index}: {after:,} bytes, {before:,} before", as_json=as_json, quiet=quiet)


def _stage(name: str, *, quiet: bool) -> AbstractContextManager[Stage]:
    """Show an operation as the only stage of a command."""
    return progress_bars(quiet=quiet).stage(name, None, "documents")


def _bytes_of(index: str) -> int:
    with mw.Index.open(index) as opened:
        return int(opened.stats()["bytes"])


@click.command(cls=Command)
@click.argument("index", type=click.Path())
@click.argument("file", type=click.Path(), callback=refuse_existing)
@overwrite_option
@verbosity_options
def export(index: str, file: str, overwrite: bool, as_json: bool, quiet: bool) -> None:
    """Write the signatures of INDEX to FILE, a .parquet file.

    A row has the id, metadata and signature of a document.

    A secret seed is not exported: signatures of two indexes can be compared only if both were created with the same
    --seed.

    Examples:
        minwise index export news.mw signatures.parquet
        minwise index export news.mw signatures.parquet --quiet
        minwise index export news.mw signatures.parquet --json
    """
    if not file.lower().endswith((".parquet", ".pq")):
        raise ConfigError(f"file must end in .parquet, got {file}")
    with mw.Index.open(index) as opened, _stage("export", quiet=quiet or as_json):
        written = opened.export(file, overwrite=overwrite)
    values = {"index": index, "file": file, "documents": written}
    print_result(values, f"{plural(written, 'signature')} in {file}", as_json=as_json, quiet=quiet)


STORED = {
    "shingles": "shingles; similarities are exact",
    "text": "shingles and texts; similarities are exact",
    "sketch": "sketches; similarities are estimates",
}
UNITS = ("bytes", "kB", "MB", "GB", "TB")


@click.command(cls=Command)
@click.argument("index", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def stats(index: str, as_json: bool) -> None:
    """Show the size and settings of INDEX.

    Examples:
        minwise index stats news.mw
        minwise index stats news.mw --json
        minwise index stats news.mw --json > stats.json
    """
    with mw.Index.open(index) as opened:
        facts, plan = opened.stats(), opened.plan
    if as_json:
        click.echo(json.dumps({"index": index, **facts}, indent=2, ensure_ascii=False))
        return
    with console_output() as console:
        table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column(style="dim")
        table.add_column()
        for name, value in _rows(facts, plan):
            table.add_row(name, escape(value))
        console.print(table)


def _rows(facts: IndexStats, plan: Plan) -> Iterator[tuple[str, str]]:
    settings, segments = facts["settings"], facts["segments"]
    yield "documents", f"{facts['documents']:,}; {facts['removed']:,} more were removed"
    each = f", {facts['bytes'] / facts['documents']:,.0f} bytes a document" if facts["documents"] else ""
    yield "size", f"{_size(facts['bytes'])}{each}"
    yield "segments", f"{len(segments):,}; the postings of {plural(facts['recent'], 'document')} are not in one yet"
    yield "stored", STORED[settings["store"]]
    yield _elements(settings)
    found = "propose" if settings["store"] == "sketch" else "find"
    yield "plan", f"{plan.bands} bands × {plan.rows} rows {found} {plan.recall:.2%} of documents at {plan.threshold:g}"
    yield "cap", f"of a bucket, only the first {settings['max_bucket']:,} documents are searched"
    yield "seed", "secret" if settings["secret_seed"] else str(settings["seed"])


def _elements(settings: Mapping[str, Any]) -> tuple[str, str]:
    """Return what is compared: fields of records, items of sets, or shingles of texts."""
    repeated = ", repeated ones count" if settings["bag"] else ""
    if "fields" in settings:
        weights = {name: f" (weight {weight})" for name, weight in settings["weights"].items() if weight > 1}
        return "fields", ", ".join(f"{name}:{kind}{weights.get(name, '')}" for name, kind in settings["fields"].items())
    if settings["shingle"] == "set":
        return "items", f"of sets{repeated}"
    return "shingles", f"{settings['shingle']}{repeated}{_changed(settings)}"


def _changed(settings: Mapping[str, Any]) -> str:
    """Return the settings of normalisation that differ from their defaults, as options."""
    changed = [name for name in NORMALISATION_NAMES if settings[name] != getattr(mw.Shingler, name)]
    return "".join(f", {'' if settings[name] else 'no '}{name.replace('_', ' ')}" for name in changed)


def _size(count: int) -> str:
    """Return a number of bytes with a unit."""
    size, unit = float(count), UNITS[0]
    for unit in UNITS:
        if size < 1000 or unit == UNITS[-1]:
            break
        size /= 1000
    return f"{size:,.0f} {unit}" if unit == UNITS[0] else f"{size:,.1f} {unit}"


@click.command(cls=Command)
@click.argument("index", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option("--quiet", is_flag=True, help="Print nothing if the index is intact.")
def verify(index: str, as_json: bool, quiet: bool) -> None:
    """Read all of INDEX and check every checksum and count.

    Exits with 0 if everything is as it was written; otherwise with 1, and each damage has a line on standard error
    that names the file.

    Examples:
        minwise index verify news.mw
        minwise index verify news.mw --quiet && echo intact
        minwise index verify news.mw --json
    """
    damages, files = _find_damage(index)
    if as_json:
        found = [{"file": damage.file, "what": damage.what} for damage in damages]
        click.echo(json.dumps({"index": index, "files": files, "damages": found}, indent=2))
    for damage in () if as_json else damages:
        click.echo(f"minwise: {damage}", err=True)
    if damages:
        sys.exit(1)
    if not as_json and not quiet:
        click.echo(f"{files} {'file' if files == 1 else 'files'}, every checksum is right")


def _find_damage(index: str) -> tuple[list["Damage"], int | None]:
    """Return all damage, and the number of files if there is none; an index that cannot be opened is damaged, too."""
    try:
        with mw.Index.open(index) as opened:
            damages = opened.verify()
            return damages, None if damages else 1 + len(opened.stats()["segments"])
    except FormatError as error:
        file, _, what = str(error).partition(": ")
        return [Damage(file, what)], None
