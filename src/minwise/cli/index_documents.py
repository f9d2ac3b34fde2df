"""minwise index create, add, query, remove and expire."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO, cast

import click

import minwise as mw
from minwise._internal.formatting import CappedLines, plural
from minwise.cli.base import Command
from minwise.cli.files import LineWriter, open_lines, read_ids
from minwise.cli.options import (
    assign_option,
    expire_options,
    index_options,
    input_options,
    output_file,
    record_options,
    separator_option,
    settings_of,
    verbosity_options,
)
from minwise.cli.output import print_result, progress_bars
from minwise.cli.session import current_session
from minwise.errors import ConfigError
from minwise.index import Expired
from minwise.inputs import Files
from minwise.options import MAX_CANDIDATES, lists_faults

__all__ = ["add", "create", "describe", "expire", "query", "remove"]


@click.command(cls=Command)
@click.argument("index", type=click.Path())
@index_options
@record_options
@verbosity_options
def create(index: str, as_json: bool, quiet: bool, **given: Any) -> None:  # noqa: ANN401 - click's values
    """Create an empty INDEX.

    Its settings cannot be changed later. By default the shingles of documents are stored, so that similarities are
    exact.

    Examples:
        minwise index create news.mw
        minwise index create news.mw --shingle word:5 --threshold 0.7
        minwise index create news.mw --store-text --seed 1
        minwise index create people.mw --fields 'name:char:3 phone:digits'
        minwise index create baskets.mw --shingle set
        minwise index create people.mw --fields 'name:char:3 phone:digits' --assign
    """
    with mw.Index.create(index, **settings_of(given)) as made:
        settings, shown = made.stats()["settings"], describe(made)
    print_result({"index": index, "settings": settings}, f"{index}: {shown}", as_json=as_json, quiet=quiet)


def describe(made: "mw.Index") -> str:
    """Return one line about a new index: its plan and recall."""
    plan = made.plan
    found = (
        "find" if made.store != "sketch" else "propose"
    )  # estimated similarities decide which of the proposed ones are found
    layout = f"{plan.bands} bands × {plan.rows} rows {found} {plan.recall:.2%} of documents at {plan.threshold:g}"
    return f"an empty index; {layout}"


# Labels of the counts in a summary; counts of 0 are omitted, except the first.
COUNTS = {
    "added": "added",
    "duplicates": "near-duplicates left out",
    "replaced": "replaced",
    "skipped": "skipped",
    "unchanged": "already present",
    "quarantined": "quarantined",
    "truncated": "decided after a shortened search",
}


@click.command(cls=Command, continues=True)
@click.argument("index", type=click.Path())
@click.argument("inputs", nargs=-1, required=True, type=click.Path())
@click.option(
    "--unique", is_flag=True, help="Add only documents that are not near-duplicates; print a decision for every row."
)
@assign_option
@output_file("With --unique: file for the kept rows, JSON lines; - prints them.")
@click.option(
    "--on-duplicate-id",
    default="error",
    show_default=True,
    type=click.Choice(["error", "skip", "replace"]),
    help="What to do with a document whose id is taken.",
)
@click.option("--metadata-column", multiple=True, default=(), help="Column to store with each document; repeatable.")
@input_options
@separator_option
@verbosity_options
def add(
    index: str,
    inputs: tuple[str, ...],
    unique: bool,
    assign: bool,
    output: str | None,
    **given: Any,  # noqa: ANN401 - click's values
) -> None:
    """Add the documents of INPUTS to INDEX.

    With - for INPUTS, documents are JSON lines on standard input and must have ids; --format reads other formats, as a
    whole. A few thousand documents are committed at a time. After an interruption the same command continues: a
    document that is already present is left unchanged. With --unique every row is decided in order, and the decisions
    are printed as JSON lines, each once it is durable; from standard input, as soon as a line arrives. With --assign,
    for an index that was created with it, the same lines are printed without leaving documents out; they name the
    cluster of each document, and those that it merged.

    Examples:
        minwise index add news.mw 'day1/*.parquet'
        minwise index add news.mw day2.jsonl --unique -o fresh.jsonl
        minwise index add news.mw pages.csv --id-column url --metadata-column lang
        minwise index add people.mw people.csv
        minwise index add people.mw new.csv --assign > clusters.jsonl
        minwise index add baskets.mw orders.csv --text-column items --separator ';'
    """
    if output is not None and not unique:
        raise ConfigError(f"output needs --unique, which decides what is kept, got {output} without it")
    settings = settings_of(given)
    settings["metadata_columns"] = settings.pop("metadata_column")
    started = time.monotonic()
    with (
        mw.Index.open(index, "w", threads=settings.pop("threads")) as opened,
        _fault_printer(given["on_error"]) as report,
    ):
        if assign and not opened.assigns_clusters:
            raise ConfigError(f"assign needs an index that was created with --assign, got {index}")
        printed = unique or assign
        settings |= {"progress": progress_bars(quiet=given["quiet"] or given["as_json"]), "on_fault": report}
        if printed:
            settings["unique"] = unique
            counts = _add_decided(opened, (index, *inputs), output, settings, overwrite=given["overwrite"])
        else:
            counts = opened.add_from(Files(inputs), **settings)
        documents = len(opened)
    seconds = round(time.monotonic() - started, 3)
    if given["as_json"]:
        result = {"index": index, **counts, "documents": documents, "run": {"seconds": seconds}}
        click.echo(json.dumps(result, indent=2, ensure_ascii=False), err=printed)
    elif not given["quiet"]:
        click.echo(f"{'minwise: ' if printed else ''}{_add_summary(counts)}; {documents:,} in {index}", err=printed)


@contextmanager
def _fault_printer(on_error: str) -> Iterator[Callable[[str], None]]:
    """Yield a function that prints the first faults of each source; print the number of the others at the end."""
    session = current_session()
    lines = CappedLines(lambda line: session.log(f"{line}; left out", event="fault", message=line))

    def report(fault: str) -> None:
        if lists_faults(on_error):
            lines.add(fault.partition(": row ")[0], fault)

    try:
        yield report
    finally:
        lines.finish()


def _add_decided(
    index: "mw.Index", inputs: tuple[str, ...], output: str | None, settings: dict[str, Any], *, overwrite: bool
) -> Mapping[str, Any]:
    """Decide every row; kept rows go to the output, decisions to standard output unless it has the kept rows."""
    with ExitStack() as stack:
        kept = None if output is None else stack.enter_context(open_lines(output, inputs, overwrite=overwrite))
        decisions = None if output == "-" else stack.enter_context(open_lines("-"))
        files = [cast(BinaryIO | None, file) for file in (kept, decisions)]
        return index.add_stream(Files(inputs[1:]), *files, **settings)


def _add_summary(counts: Mapping[str, Any]) -> str:
    shown = [f"{counts[name]:,} {text}" for name, text in COUNTS.items() if counts.get(name) or name == "added"]
    files = [f"{counts['unreadable']:,} files not read to their end"] if counts["unreadable"] else []
    skipped = [
        f"{plural(count, 'entry', 'entries')} skipped ({reason})"
        for reason, count in counts.get("skipped_entries", {}).items()
    ]
    return f"{counts['read']:,} read: {', '.join([*shown, *files, *skipped])}"


@click.command(cls=Command)
@click.argument("index", type=click.Path())
@click.argument("inputs", nargs=-1, required=True, type=click.Path())
@output_file("File for the answers, JSON lines; - prints them.", default="-", show_default=True)
@click.option(
    "--threshold",
    type=float,
    default=None,
    help="Minimum similarity of a hit; the threshold of the index if not given; 0 for none.",
)
@click.option("--top", default=10, show_default=True, help="Maximum number of hits per document.")
@click.option(
    "--max-candidates",
    default=MAX_CANDIDATES,
    show_default=True,
    help="Maximum number of candidates compared per document, the most promising first; a long one counts once for "
    "every 4,096 bytes stored.",
)
@click.option(
    "--where", metavar="KEY=VALUE", multiple=True, default=(), help="Only hits with this metadata value; repeatable."
)
@click.option(
    "--measure",
    type=click.Choice(["jaccard", "containment"]),
    default="jaccard",
    show_default=True,
    help="Measure of the threshold; with containment hits hold a document or lie in it, and state their recall.",
)
@click.option("--passages", is_flag=True, help="Add the longest shared passage; needs stored texts.")
@input_options
@separator_option
@verbosity_options
def query(index: str, inputs: tuple[str, ...], output: str, where: tuple[str, ...], **given: Any) -> None:  # noqa: ANN401
    """Find the near-duplicates of INPUTS in INDEX; - is standard input.

    Prints a JSON line for every document: its id, its hits (id, similarity, whether it is exact, metadata), the most
    similar first, and whether the search was truncated, by what, and what it left out. Lines of standard input are
    answered as they arrive. With --threshold 0 the most similar documents are printed, however similar: each hit has
    the probability of finding such a document, and each line the similarity above which it is complete. A VALUE is
    parsed as JSON if possible, otherwise it is a string: year=2024 is a number, lang=en a string.

    Examples:
        minwise index query news.mw fresh.jsonl
        minwise index query news.mw new.jsonl --top 3 --where lang=en -o hits.jsonl
        minwise index query news.mw - --threshold 0.9 --passages < fresh.jsonl
        minwise index query news.mw quotes.jsonl --measure containment
        minwise index query news.mw new.jsonl --threshold 0 --top 5
    """
    settings = {**settings_of(given), "where": _conditions(where) or None}
    counts = Counter({"asked": 0, "with_hits": 0, "hits": 0, "truncated": 0, "left_out": 0})
    started = time.monotonic()
    settings["progress"] = progress_bars(quiet=given["quiet"] or given["as_json"])
    with (
        mw.Index.open(index, threads=settings.pop("threads")) as opened,
        open_lines(output, (index, *inputs), overwrite=given["overwrite"]) as lines,
        _fault_printer(given["on_error"]) as report,
    ):

        def on_fault(fault: str) -> None:
            counts["left_out"] += 1
            report(fault)

        _answer(opened.query_from(Files(inputs), on_fault=on_fault, **settings), lines, counts)
    seconds = round(time.monotonic() - started, 3)
    aside = output == "-"
    if given["as_json"]:
        run = {"output": output, "seconds": seconds}
        click.echo(json.dumps({"index": index, **counts, "run": run}, indent=2), err=aside)
    elif not given["quiet"]:
        what = "hits" if given["threshold"] == 0 else "near-duplicates"
        click.echo(f"{'minwise: ' if aside else ''}{_query_summary(counts, what)}", err=aside)


def _answer(answers: Iterator[Mapping[str, Any]], lines: LineWriter, counts: "Counter[str]") -> None:
    """Write each answer as soon as it is known."""
    for answer in answers:
        lines.write(json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        lines.flush()
        found = len(answer["hits"])
        counts.update(asked=1, with_hits=bool(found), hits=found, truncated=answer["truncated"])


def _conditions(given: tuple[str, ...]) -> dict[str, Any]:
    """Return the metadata values that hits must have."""
    conditions: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise ConfigError(f"where must be KEY=VALUE, got {text}")
        if key in conditions:
            raise ConfigError(f"where must name a key once, got {key} twice; a document has one value for it")
        conditions[key] = _value(value)
    return conditions


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _query_summary(counts: "Counter[str]", what: str) -> str:
    shown = f"{counts['asked']:,} asked: {counts['with_hits']:,} with {what}, {plural(counts['hits'], 'hit')}"
    cut = f"{plural(counts['truncated'], 'search', 'searches')} shortened" if counts["truncated"] else ""
    broken = f"{counts['left_out']:,} could not be read" if counts["left_out"] else ""
    return ", ".join(filter(None, [shown, cut, broken]))


# Documents that are removed in one transaction.
REMOVE_BATCH = 16_384


@click.command(cls=Command)
@click.argument("index", type=click.Path())
@click.argument("ids", nargs=-1)
@click.option(
    "--ids",
    "listed",
    metavar="FILE",
    type=click.Path(),
    default=None,
    help="File of ids to remove, one per line; - is standard input.",
)
@verbosity_options
def remove(index: str, ids: tuple[str, ...], listed: str | None, as_json: bool, quiet: bool) -> None:
    """Remove the documents with these IDS from INDEX.

    An unknown id is not an error, so that the command can be repeated. A line of the file that begins with a double
    quote is read as a JSON string, for ids with line breaks in them.

    Examples:
        minwise index remove news.mw doc-17 doc-18
        minwise index remove news.mw --ids gone.txt
        sort -u gone.txt | minwise index remove news.mw --ids - --json
    """
    if bool(ids) == (listed is not None):
        raise ConfigError(f"remove needs ids or --ids FILE, got {'both' if ids else 'neither'}")
    wanted = list(dict.fromkeys(ids if listed is None else read_ids(listed)))
    removed = 0
    with mw.Index.open(index, "w") as opened:
        with progress_bars(quiet=quiet or as_json).stage("remove", len(wanted), "ids") as stage:
            for start in range(0, len(wanted), REMOVE_BATCH):
                together = wanted[start : start + REMOVE_BATCH]
                removed += opened.remove(together)
                stage.advance(len(together))
        documents = len(opened)
    missing = len(wanted) - removed
    values = {"index": index, "removed": removed, "not_there": missing, "documents": documents}
    line = f"{removed:,} removed, {missing:,} not there; {documents:,} in {index}"
    print_result(values, line, as_json=as_json, quiet=quiet)


@click.command(cls=Command)
@click.argument("index", type=click.Path())
@expire_options
@verbosity_options
def expire(index: str, as_json: bool, quiet: bool, **given: Any) -> None:  # noqa: ANN401 - click's values
    """Remove the documents of INDEX that are older than a time.

    The time of a document is a field of its metadata, which add stores with --metadata-column. Documents without it, or
    with a value that is not a time, stay and are counted.

    A few thousand documents are committed at a time, so an interrupted command can be repeated. Files of postings that
    only removed documents have are deleted without being read; compact releases the remaining space.

    Examples:
        minwise index expire news.mw --older-than 30d --time-field date
        minwise index expire news.mw --before 2026-01-01 --time-field date --dry-run
        minwise index expire news.mw --older-than 2w --time-field date --json
    """
    dry_run = given["dry_run"]
    with mw.Index.open(index, "r" if dry_run else "w") as opened:
        found = opened.expire(**given, progress=progress_bars(quiet=quiet or as_json))
        documents = len(opened)
    values = {"index": index, "dry_run": dry_run, **found._asdict(), "documents": documents}
    line = f"{_expire_summary(found, given['time_field'], dry_run=dry_run)}; {documents:,} in {index}"
    print_result(values, line, as_json=as_json, quiet=quiet)


def _expire_summary(found: Expired, field: str, *, dry_run: bool) -> str:
    expired = f"{found.expired:,} {'would expire' if dry_run else 'expired'}, with {field} before {found.before}"
    undated = [f"{found.undated:,} without {field}"] if found.undated else []
    unreadable = [f"{found.unreadable:,} with a {field} that is not a time"] if found.unreadable else []
    return f"{found.read:,} read: {', '.join([expired, *undated, *unreadable])}"
