"""Pipeline: whatever a user has in; pairs, clusters or a clean corpus out.

Each call is the same four steps: gather the sources, settle the settings, let the engine find the pairs, make something
of them.
"""

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import fields, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, overload

import pyarrow as pa

from minwise.checks import check_on_error, check_path, check_whole, show
from minwise.errors import ConfigError
from minwise.inputs.files import is_url
from minwise.inputs.open_sources import Files, gather
from minwise.inputs.source import Source
from minwise.inputs.table_writer import table_file, write_tables
from minwise.progress import Stopwatch
from minwise.results import Clustering, DedupResult, pair_report, pair_schema, pair_tables
from minwise.results.output import Output, check_output, is_published, output_of, refuse_inputs
from minwise.results.pairs import blocking_quality
from minwise.results.report_data import RunFacts
from minwise.search.documents import Corpus
from minwise.search.engine import Engine, Found, Job
from minwise.search.grouping import group_rows
from minwise.search.line_stream import LineStream
from minwise.search.local_engine import LocalEngine
from minwise.search.run_estimate import RunEstimate, estimate_corpus
from minwise.search.workdir import Work, choose_work, temporary_work
from minwise.settings import FindSettings, Limits, Options

if TYPE_CHECKING:
    from minwise.results.audit import Audit

__all__ = ["audit", "clusters", "dedup", "dedup_stream", "estimate_run", "pairs"]

AnySource = Any
AnySetting = Any
AnyPath = str | PathLike[str]
# Settings that choose among near-duplicates, which only deduplication does.
OF_DEDUP = ("group", "keep", "against")
# Settings that choose who does the work.
OF_ENGINES = ("engine", "master", "spark_conf")
# Settings that decide how candidates are checked or that leave nothing to measure.
NOT_OF_AUDIT = (*OF_DEDUP, *OF_ENGINES, "exact", "verify")
# What can be done with lines that are decided one by one.
STREAMED = (("keep", "first"), ("group", "star"), ("exact", False), ("verify", "exact"), ("html", False))
Call = TypeVar("Call", bound=Callable[..., Any])


def _with_options(*without: str) -> Callable[[Call], Call]:
    """Shows every setting, but those that mean nothing to a call, in the signature that help and editors read."""

    def show_all(call: Call) -> Call:
        shown = inspect.signature(call)
        own = [one for one in shown.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        shared = _parameters({one.name for one in own} | set(without))
        call.__signature__ = shown.replace(parameters=[*own, *shared])  # type: ignore[attr-defined]
        return call

    return show_all


def _parameters(taken: set[str]) -> list[inspect.Parameter]:
    return [
        inspect.Parameter(
            one.name, inspect.Parameter.KEYWORD_ONLY, default=getattr(Options, one.name, None), annotation=one.type
        )
        for one in fields(Options)
        if one.name not in taken
    ]


@overload
def pairs(source: AnySource, output: None = None, *, sources: bool = False, **options: AnySetting) -> pa.Table: ...
@overload
def pairs(
    source: AnySource, output: AnyPath, *, sources: bool = False, truth: str | None = None, **options: AnySetting
) -> dict[str, Any]: ...
@_with_options(*OF_DEDUP)
def pairs(
    source: AnySource,
    output: AnyPath | None = None,
    *,
    sources: bool = False,
    truth: str | None = None,
    **options: AnySetting,
) -> pa.Table | dict[str, Any]:
    """Every pair of near-duplicates: left, right (their ids) and similarity, in document order.

    Identical documents are pairs too. A bucket, or a group of identical documents, of more than ``max_bucket`` members
    pairs each member with its first 16 only.

    Args:
        source: Paths or globs, a list of texts, rows, an Arrow table or stream, a data frame, or sets.
        output: A .parquet, .csv, .tsv or .jsonl file to write instead; then the report is what is returned.
        sources: Whether to add source and row of both documents.
        truth: With ``output``: a column in which rows of one entity have one value; the report then says how many of
            the true pairs were found and how many pairs nobody has to look at.
        options: The settings; see :class:`Options`.

    >>> import minwise as mw
    >>> mw.pairs(["one two three four five six", "One, two, three, four, five, six.", "seven"]).to_pylist()
    [{'left': 0, 'right': 1, 'similarity': 1.0}]
    """
    chosen = Options.of(source, options, without=OF_DEDUP)
    _check_truth(truth, chosen, output)
    with ExitStack() as stack:
        found = _search(source, chosen, stack, output)
        tables = pair_tables(found, sources=sources)
        if output is None:
            return _one_table(tables, pair_schema(found, sources=sources))
        quality = {} if truth is None else {"blocking": blocking_quality(found, truth)}
        written = write_tables(output, tables, pair_schema(found, sources=sources))
        return {**pair_report(found), "pairs": written, **quality}


def _check_truth(truth: str | None, options: Options, output: AnyPath | None) -> None:
    """Raises if a column of truth is given where nothing can be said of it."""
    if truth is None:
        return
    if not isinstance(truth, str) or not truth:
        raise ConfigError(f"truth must be a name, got {show(truth)}")
    if output is None:
        raise ConfigError("truth must be left out without an output: it goes into the report, which is returned then")
    if options.groups or options.on_spark:
        other = "engine spark" if options.on_spark else "group_by and transpose"
        raise ConfigError(f"truth must be left out with {other}, got {show(truth)}")


@overload
def clusters(source: AnySource, output: None = None, *, group: str = ..., **options: AnySetting) -> pa.Table: ...
@overload
def clusters(source: AnySource, output: AnyPath, *, group: str = ..., **options: AnySetting) -> dict[str, Any]: ...
@_with_options(*OF_DEDUP)
def clusters(
    source: AnySource, output: AnyPath | None = None, *, group: str = "components", **options: AnySetting
) -> pa.Table | dict[str, Any]:
    """Every document with the cluster it is in: id, cluster (the id of its first document), size.

    Args:
        source: As in :func:`pairs`.
        output: As in :func:`pairs`.
        group: ``components`` joins whatever is connected by pairs; ``star`` only what is similar to the first document.
        options: The settings; see :class:`Options`.

    >>> import minwise as mw
    >>> mw.clusters(["one two three four five six", "One, two, three, four, five, six.", "seven"]).to_pydict()
    {'id': [0, 1, 2], 'cluster': [0, 0, 2], 'size': [2, 2, 1]}
    """
    chosen = replace(Options.of(source, options, without=OF_DEDUP), group=group)
    with ExitStack() as stack:
        found = _search(source, chosen, stack, output)
        clustering = Clustering(found)
        if output is None:
            return _one_table(clustering.tables(), clustering.schema)
        write_tables(output, clustering.tables(), clustering.schema)
        return {**pair_report(found), "clusters": clustering.of_two_or_more}


@_with_options()
def dedup(
    source: AnySource, output: AnyPath | None = None, *, overwrite: bool = False, **options: AnySetting
) -> DedupResult:
    """Removes near-duplicates: every removed document names a kept one that is at least as similar as the threshold.

    Args:
        source: As in :func:`pairs`.
        output: A new or empty directory to write to, or its URL, as :meth:`DedupResult.write` does.
        overwrite: Whether a directory that is not empty may be replaced.
        options: The settings; see :class:`Options`.

    >>> import minwise as mw
    >>> result = mw.dedup(["one two three four five six", "One, two, three, four, five, six.", "seven"])
    >>> result.kept.column("text").to_pylist()
    ['one two three four five six', 'seven']
    """
    chosen = Options.of(source, options)
    watch = Stopwatch(chosen.watcher)
    folder = None if output is None else output_of(output)
    _refuse_groups(chosen)
    with ExitStack() as session, ExitStack() as stack:
        settings, limits = chosen.settings(), chosen.limits()
        _refuse_nesting(folder, chosen.work)
        corpus = _corpus(chosen, source, settings)
        manifest = _manifest(chosen, corpus, settings, "dedup")
        work = _work(chosen, manifest, folder if isinstance(folder, Path) else None, stack)
        published = folder is not None and is_published(work, folder)
        if folder is not None and not published:
            check_output(folder, corpus.sources, overwrite=overwrite)
        run = RunFacts.begin(manifest["inputs"], watch)
        engine = _engine(chosen, limits, manifest, session)
        job = Job(corpus=corpus, settings=settings, limits=limits, work=work, progress=watch)
        found = engine.find(job, for_report=True)
        result = DedupResult(found, run=run, published=published)
        if output is not None and not published:
            result.write(output, overwrite=overwrite)
        watch.stop()
        result.owns(session.pop_all())
        if not work.durable:
            result.owns(stack.pop_all())
    return result


@_with_options()
def dedup_stream(source: BinaryIO, output: BinaryIO, **options: AnySetting) -> dict[str, int]:
    """Copies the JSON lines that are no near-duplicate of an earlier one, as soon as they are decided.

    The lines are those that :func:`dedup` with ``keep="first"`` keeps, as long as no bucket exceeds ``max_bucket``.
    Only the band keys of kept lines stay in memory; their shingles go to a temporary file.

    Args:
        source: An open binary file of JSON lines, such as ``sys.stdin.buffer``.
        output: Where kept lines go; flushed whenever the source has nothing more to give at once.
        options: The settings; see :class:`Options`. Settings of files are refused.

    Returns:
        How many lines were read, kept, removed and left out because they can not be read.
    """
    chosen = Options.of(source, options)
    _refuse_groups(chosen)
    for name, value in (*STREAMED, ("work", None), ("against", None)):
        if getattr(chosen, name) != value:
            raise ConfigError(f"{name} must be {value} for a stream, got {show(getattr(chosen, name))}; give files")
    settings = chosen.settings()
    with temporary_work(None) as work:
        stream = LineStream(settings, chosen.columns(settings), work, chosen.on_error, chosen.limits())
        return stream.run(source, output)


@_with_options(*NOT_OF_AUDIT)
def audit(source: AnySource, output: AnyPath | None = None, *, sample: int = 20_000, **options: AnySetting) -> "Audit":
    """What the settings really find in ``source``, measured against an exact join.

    A sample of the documents is compared with all of them: which pairs there are, and which of them the bands propose.
    Always the same documents are sampled from the same corpus.

    Args:
        source: As in :func:`pairs`.
        output: A .json file to write the figures to as well.
        sample: How many documents to sample; all of them if there are no more. Fewer are taken if they have more than
            four million pairs.
        options: The settings; see :class:`Options`.

    >>> import minwise as mw
    >>> texts = ["one two three four five six", "seven eight nine", "One two three four five six seven"]
    >>> result = mw.audit(texts, threshold=0.5)
    >>> result.recall.found, result.recall.of, result.complete
    (1, 1, True)
    """
    from minwise.results.audit import floor_below, summarise
    from minwise.search.audit_sample import look  # here, because few who find also audit

    chosen = Options.of(source, options, without=NOT_OF_AUDIT)
    size = check_whole("sample", sample, 1, 2**31)
    file = None if output is None else check_path("output", output)
    if file is not None and file.suffix != ".json":
        raise ConfigError(f"output must be a file that ends in .json, got {show(str(output))}")
    with ExitStack() as stack:
        settings, limits = chosen.settings(), chosen.limits()
        corpus = _corpus(chosen, source, settings)
        if file is not None:
            refuse_inputs(file, corpus.sources)
        work = _work(chosen, _manifest(chosen, corpus, settings, "audit"), None, stack)
        job = Job(corpus=corpus, settings=settings, limits=limits, work=work, progress=chosen.watcher)
        floor = floor_below(settings.plan.threshold)
        seen = look(_grouped(chosen, job), sample=size, floor=floor)
        result = summarise(seen, settings, floor, recall=chosen.recall, slots=chosen.slots)
    if file is not None:
        result.write(file)
    return result


@_with_options()
def estimate_run(source: AnySource, **options: AnySetting) -> RunEstimate:
    """What deduplicating ``source`` would do and take; reads only metadata and a sample.

    Args:
        source: As in :func:`pairs`.
        options: The settings; see :class:`Options`.
    """
    chosen = Options.of(source, options)
    _refuse_groups(chosen)
    settings = chosen.settings()
    return estimate_corpus(_corpus(chosen, source, settings), settings, chosen.limits())


def _one_table(tables: Iterator[pa.Table], schema: pa.Schema) -> pa.Table:
    return pa.concat_tables([schema.empty_table(), *tables])


def _search(source: AnySource, options: Options, stack: ExitStack, output: AnyPath | None) -> Found:
    file = table_file(output)
    settings, limits = options.settings(), options.limits()
    corpus = _corpus(options, source, settings)
    if file is not None:
        refuse_inputs(file, corpus.sources)
    manifest = _manifest(options, corpus, settings, "pairs")
    work = _work(options, manifest, file, stack)
    job = Job(corpus=corpus, settings=settings, limits=limits, work=work, progress=options.watcher)
    return _engine(options, limits, manifest, stack).find(_grouped(options, job))


def _corpus(options: Options, source: AnySource, settings: FindSettings) -> Corpus:
    """Everything there is to read under the settings that were made of these options, in document order."""
    check_on_error(options.on_error)
    columns = options.columns(settings)
    given = [one for one in (source, options.against) if isinstance(one, (str, Files))]
    piped = any(one == "-" or (isinstance(one, Files) and "-" in one) for one in given)
    if options.on_spark and piped:
        raise ConfigError("engine must be local with - as input: Spark can not read it; save it to a file")
    if options.work is not None and piped:
        raise ConfigError("work must be left out with - as input: standard input can not be read again")
    _refuse_work_inside(options.work, source)
    sources, root = gather(source, columns, options.format)
    against: list[Source] = []
    if options.against is not None:
        against, _ = gather(options.against, columns, options.format)
        for one in against:
            one.name = one.name or "against"
    return Corpus(
        sources=[*against, *sources],
        columns=columns,
        against=len(against),
        on_error=options.on_error,
        root=root,
        format=options.format,
    )


def _refuse_work_inside(work_option: AnyPath | None, source: AnySource) -> None:
    """Raises if the work directory lies in an input directory, whose files it would become."""
    if work_option is None:
        return
    work = Path(os.path.realpath(check_path("work", work_option)))
    for given in source if isinstance(source, Files) else [source]:
        folder = Path(os.path.realpath(given)) if isinstance(given, (str, os.PathLike)) and given else None
        if folder is not None and folder.is_dir() and folder in work.parents:
            raise ConfigError(f"work must not lie in an input directory, got {work_option} in {given}")


def _grouped(options: Options, job: Job) -> Job:
    """The job itself, or that on the groups of its rows."""
    return group_rows(job, bag=bool(options.bag) or options.weight is not None) if options.groups else job


def _refuse_groups(options: Options) -> None:
    """Raises if whole documents are to be kept or removed that are many rows of their file."""
    if not options.groups:
        return
    options.settings()  # a value that is wrong in itself is told first
    name = "group_by" if options.group_by is not None else "transpose"
    rule = f"{name} must be left out with dedup: a group is many rows of its file"
    raise ConfigError(f"{rule}, got {show(getattr(options, name))}; use pairs or clusters")


def _refuse_nesting(output: Output | None, work: AnyPath | None) -> None:
    """Raises if the output would replace the work directory, or the work directory change the output."""
    if output is None or work is None:
        return
    check_path("work", work)
    one, other = (f"{place if is_url(place) else os.path.realpath(place)}/" for place in (str(output), str(work)))
    if one.startswith(other) or other.startswith(one):
        raise ConfigError(f"work must not be, hold or lie in the output, got {work} and {output}; give another --work")


def _manifest(options: Options, corpus: Corpus, settings: FindSettings, task: str) -> dict[str, Any]:
    """What tells one run from another, whose finished pieces are of no use to it."""
    prints = corpus.fingerprint()
    return {
        "task": task,
        "engine": options.engine,
        "settings": settings.to_dict(),
        "columns": {"text": list(corpus.columns.text), "id": corpus.columns.id},
        "on_error": corpus.on_error,
        "against": prints[: corpus.against],
        "inputs": prints[corpus.against :],
    }


def _work(options: Options, manifest: dict[str, Any], output: Path | None, stack: ExitStack) -> Work:
    """The directory for the pieces; at a URL only the executors of Spark have theirs, and not the driver."""
    given = None if is_url(options.work) else options.work
    return stack.enter_context(choose_work(given, manifest, output))


def _engine(options: Options, limits: Limits, manifest: dict[str, Any], stack: ExitStack) -> Engine:
    """Who finds; a session of Spark that is made for it lasts as long as the stack."""
    if not options.on_spark:
        return LocalEngine()
    from minwise.spark.engine import SparkEngine  # here, because few have Spark
    from minwise.spark.session import spark_session

    session = stack.enter_context(spark_session(options.master, options.spark_conf, memory=limits.memory))
    return SparkEngine(session, str(options.work) if is_url(options.work) else None, manifest)
