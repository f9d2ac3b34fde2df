"""minwise index backup INDEX DIRECTORY."""

import json
import sys
from collections.abc import Iterator

import click
from rich.markup import escape
from rich.table import Table

import minwise as mw
from minwise.cli.options import verbosity_options
from minwise.cli.output import printed, show_outcome
from minwise.errors import ConfigError, FormatError
from minwise.index import Damage, IndexStats
from minwise.sketches import Plan

__all__ = ["backup", "compact", "export", "stats", "verify"]


@click.command()
@click.argument("index", type=click.Path())
@click.argument("directory", type=click.Path())
@verbosity_options
def backup(index: str, directory: str, as_json: bool, quiet: bool) -> None:
    """Copy INDEX as it is now to a new DIRECTORY.

    Another process may write meanwhile. The copy is an index like any other, and appears whole or not at all.

    Example: minwise index backup news.mw saved/news.mw
    """
    with mw.Index.open(index) as opened:
        opened.backup(directory)
    with mw.Index.open(directory) as copy:
        documents = len(copy)
    values = {"index": index, "backup": directory, "documents": documents}
    show_outcome(values, f"{documents:,} documents in {directory}", as_json=as_json, quiet=quiet)


@click.command()
@click.argument("index", type=click.Path())
@verbosity_options
def compact(index: str, as_json: bool, quiet: bool) -> None:
    """Give back the room that removed documents of INDEX take.

    Makes one segment of all postings. Not needed for answers to be right; good after many removals, or before an index
    is copied elsewhere.

    Example: minwise index compact news.mw
    """
    before = _bytes_of(index)
    with mw.Index.open(index, "w") as opened:
        opened.compact()
    after = _bytes_of(index)  # once the log of the writer is gone
    values = {"index": index, "bytes_before": before, "bytes": after}
    show_outcome(values, f"{index}: {after:,} bytes, {before:,} before", as_json=as_json, quiet=quiet)


def _bytes_of(index: str) -> int:
    with mw.Index.open(index) as opened:
        return int(opened.stats()["bytes"])


@click.command()
@click.argument("index", type=click.Path())
@click.argument("file", type=click.Path())
@verbosity_options
def export(index: str, file: str, as_json: bool, quiet: bool) -> None:
    """Write the signatures of INDEX to FILE, a .parquet file.

    A row has the id, metadata and signature of a document.

    A secret seed is not part of it: signatures of two indexes can be compared only if both were made with one --seed.

    Example: minwise index export news.mw signatures.parquet
    """
    if not file.lower().endswith((".parquet", ".pq")):
        raise ConfigError(f"file must end in .parquet, got {file}")
    with mw.Index.open(index) as opened:
        written = opened.export(file)
    values = {"index": index, "file": file, "documents": written}
    show_outcome(values, f"{written:,} signatures in {file}", as_json=as_json, quiet=quiet)


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


def _rows(facts: IndexStats, plan: Plan) -> Iterator[tuple[str, str]]:
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


@click.command()
@click.argument("index", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
@click.option("--quiet", is_flag=True, help="Say nothing if all is well.")
def verify(index: str, as_json: bool, quiet: bool) -> None:
    """Read all of INDEX and check every checksum and count.

    Exit code 0 if everything is as it was written; otherwise 1, and a line on standard error for each damage that names
    the file.

    Example: minwise index verify news.mw
    """
    damages, files = _look(index)
    if as_json:
        found = [{"file": damage.file, "what": damage.what} for damage in damages]
        click.echo(json.dumps({"index": index, "files": files, "damages": found}, indent=2))
    for damage in () if as_json else damages:
        click.echo(f"minwise: {damage}", err=True)
    if damages:
        sys.exit(1)
    if not as_json and not quiet:
        click.echo(f"{files} {'file' if files == 1 else 'files'}, every checksum is right")


def _look(index: str) -> tuple[list["Damage"], int | None]:
    """What is damaged, and how many files are whole if nothing is; what keeps it from being opened is damage too."""
    try:
        with mw.Index.open(index) as opened:
            damages = opened.verify()
            return damages, None if damages else 1 + len(opened.stats()["segments"])
    except FormatError as error:
        file, _, what = str(error).partition(": ")
        return [Damage(file, what)], None
