"""Public functions on Spark DataFrames: dedup, pairs and clusters, and the steps of a search one by one.

The result is that of the functions of :mod:`minwise` on the same rows, sorted by id. It depends neither on the
partitions of the DataFrame nor on the order of its rows.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from minwise.checks import check_integer, check_on_error, show
from minwise.errors import ConfigError, MinwiseError
from minwise.options import FrameClustersOptions, FrameDedupOptions, FrameOptions
from minwise.search.bands import FAULTY
from minwise.settings import SearchSettings, resolve_options, search_settings
from minwise.spark import frame_tasks
from minwise.spark.clustering import DRIVER_EDGES, connected_components, star_groups
from minwise.spark.dataframe_results import dedup_report, named_pairs, removed_documents
from minwise.spark.dataframe_search import DataFrameSearch
from minwise.spark.document_tables import DocumentTable, DocumentTables
from minwise.spark.stage_store import StageStore

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "DedupFrames",
    "candidate_pairs",
    "clusters",
    "connected_components",
    "dedup",
    "pairs",
    "shingles",
    "sketch",
    "star_groups",
    "verified_pairs",
]

AnyPath = str | PathLike[str]


class DedupFrames:
    """Result of deduplication as DataFrames: the kept rows, the removed documents and the reasons.

    Without a ``work`` directory Spark holds the removed documents and the ids of all documents until neither this
    object nor a DataFrame derived from it is referenced.

    Attributes:
        report: Counts of the run. Equal documents and settings give an equal report.
    """

    def __init__(self, search: DataFrameSearch, documents: DataFrame, removals: DataFrame, on_error: str) -> None:
        self._own, self._settings, self._protected = search.tables.own, search.settings, search.protected
        self._found: tuple[DataFrame, DataFrame] | None = (documents, removals)
        self.report: dict[str, Any] = dedup_report(search, removals, on_error)

    @property
    def kept(self) -> DataFrame:
        """Rows that are kept, with all their columns."""
        _, removals = self._frames
        return self._own.without(removals.select("id").union(self.quarantined.select("id")))

    @property
    def removed(self) -> DataFrame:
        """Removed documents: ``id``, ``kept_id`` of the near-duplicate that is kept, and their ``similarity``.

        The last column is called ``similarity_estimate`` unless it is exact.
        """
        _, removals = self._frames
        return removals.select("id", "kept_id", f.col("similarity").alias(self._settings.similarity_name))

    @property
    def clusters(self) -> DataFrame:
        """Every document with its cluster, named after the kept one: ``id``, ``cluster`` and ``size``."""
        return _clusters(*self._frames, self._protected)

    @property
    def quarantined(self) -> DataFrame:
        """Rows that could not be used: ``id`` and ``reason``."""
        documents, _ = self._frames
        return documents.filter(f.col("state") == FAULTY).select("id", f.col("fault").alias("reason"))

    @property
    def _frames(self) -> tuple[DataFrame, DataFrame]:
        """All documents, and those that are removed."""
        if self._found is None:
            raise MinwiseError("the result is closed; take its DataFrames before closing it")
        return self._found

    def close(self) -> None:
        """Release what Spark holds. DataFrames derived from this object remain usable, and keep it."""
        self._found = None

    def __enter__(self) -> "DedupFrames":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def dedup(
    df: DataFrame,
    *,
    text: str | Sequence[str] = "text",
    id: str = "id",  # noqa: A002 - the name of the column in results
    against: DataFrame | None = None,
    on_error: str = "fail",
    work: AnyPath | None = None,
    partitions: int | None = None,
    driver_edges: int = DRIVER_EDGES,
    **options: "Unpack[FrameDedupOptions]",
) -> DedupFrames:
    """Remove near-duplicates: for every removed document, a kept one is at least as similar as the threshold.

    Args:
        df: Documents. It is read twice, and once more for ``kept``, so it must yield the same rows each time.
        text: Text column, strings or bytes; several are joined by a line break. With ``shingle="set"``, an array
            column.
        id: Id column: numbers, strings, dates or a struct of these, different in every row. Documents are ordered by
            their ids.
        against: Documents, with the same columns, that precede all others and are never removed.
        on_error: ``fail``, ``quarantine`` or ``skip``: treatment of rows whose text is null or not UTF-8.
        work: Directory or URL, shared by driver and executors, that keeps finished stages.
        partitions: Number of partitions of shuffles. Default: ``spark.sql.shuffle.partitions``.
        driver_edges: Maximum number of bucket members that the driver holds, to plan which task compares what.
        **options: Settings; see Keyword Args.

    Keyword Args:
        threshold: Minimum Jaccard similarity of a near-duplicate pair, above 0 and at most 1. Default: 0.8.
        recall: Probability of finding a pair at the threshold, between 0 and 1; bands and rows are chosen to reach it.
            Default: 0.99.
        scheme: Sketch scheme: fast (FastSketch) or minhash (classical MinHash, slower). Default: fast.
        slots: Maximum number of slots of a signature that the plan may use. Default: 256.
        bands: Number of bands, given together with rows; replaces recall.
        rows: Slots per band, given together with bands.
        seed: Seed of every hash, an unsigned 64-bit number. Default: 1.
        max_bucket: Members up to which all pairs of a bucket, or of a group of identical documents, are compared; above
            it each member is paired with the first 16. Default: 2000.
        nfkc: Apply Unicode normalisation form KC: full-width letters, ligatures and composed accents become ordinary
            ones. Default: True.
        strip_accents: Remove accents: the combining diacritical marks U+0300–U+036F. Default: False.
        lowercase: Convert each character to lower case. Default: True.
        strip_punctuation: Remove punctuation and symbols. Default: False.
        mask_digits: Replace each decimal digit by 0, so that texts with other numbers are equal. Default: False.
        collapse_whitespace: Replace each run of white space by one space, and strip both ends. Default: True.
        shingle: Tokens of a shingle: word:N, char:N or byte:N; set for documents that are sets of items. A Shingler has
            settings of normalisation of its own. Default: word:5.
        bag: Count repeated shingles, so that similarity is that of multisets. Default: False.
        verify: How candidate pairs are verified: exact compares their sets, signature estimates the similarity, none
            accepts every candidate. Default: exact.
        group: How pairs form clusters: star removes only documents similar to the kept one, components all documents
            that pairs connect. Default: star.
        keep: Document of a cluster to keep: first, last, longest, shortest, max:COL or min:COL. Several, such as
            max:quality,longest,first, decide one after the other where those before are equal. Default: first.

    Raises:
        ConfigError: If a setting breaks its rule.
        InputError: If a column is missing or of another type, or if an id is null or occurs twice.
        MismatchError: If ``work`` belongs to a run with other settings.
    """
    search = _search("dedup", df, text, id, against, on_error, work, partitions, FrameDedupOptions, options)
    with _quiet():
        documents, removals = _removals(search, check_integer("driver_edges", driver_edges, 0, 2**31))
        return DedupFrames(search, documents, removals, on_error)


def pairs(
    df: DataFrame,
    *,
    text: str | Sequence[str] = "text",
    id: str = "id",  # noqa: A002 - the name of the column in results
    on_error: str = "fail",
    work: AnyPath | None = None,
    partitions: int | None = None,
    **options: "Unpack[FrameOptions]",
) -> DataFrame:
    """Find every pair of near-duplicates.

    Identical documents are pairs too. A bucket, or a group of identical documents, of more than ``max_bucket`` members
    pairs each member with its first 16 only. Without ``work`` Spark holds the DataFrame as long as one derived from it
    is referenced.

    Args:
        df: Documents. It is read twice, so it must yield the same rows each time.
        text: Text column, strings or bytes; several are joined by a line break. With ``shingle="set"``, an array
            column.
        id: Id column: numbers, strings, dates or a struct of these, different in every row.
        on_error: ``fail``, ``quarantine`` or ``skip``: treatment of rows whose text is null or not UTF-8.
        work: Directory or URL, shared by driver and executors, that keeps finished stages.
        partitions: Number of partitions of shuffles. Default: ``spark.sql.shuffle.partitions``.
        **options: Settings; see Keyword Args.

    Keyword Args:
        threshold: Minimum Jaccard similarity of a near-duplicate pair, above 0 and at most 1. Default: 0.8.
        recall: Probability of finding a pair at the threshold, between 0 and 1; bands and rows are chosen to reach it.
            Default: 0.99.
        scheme: Sketch scheme: fast (FastSketch) or minhash (classical MinHash, slower). Default: fast.
        slots: Maximum number of slots of a signature that the plan may use. Default: 256.
        bands: Number of bands, given together with rows; replaces recall.
        rows: Slots per band, given together with bands.
        seed: Seed of every hash, an unsigned 64-bit number. Default: 1.
        max_bucket: Members up to which all pairs of a bucket, or of a group of identical documents, are compared; above
            it each member is paired with the first 16. Default: 2000.
        nfkc: Apply Unicode normalisation form KC: full-width letters, ligatures and composed accents become ordinary
            ones. Default: True.
        strip_accents: Remove accents: the combining diacritical marks U+0300–U+036F. Default: False.
        lowercase: Convert each character to lower case. Default: True.
        strip_punctuation: Remove punctuation and symbols. Default: False.
        mask_digits: Replace each decimal digit by 0, so that texts with other numbers are equal. Default: False.
        collapse_whitespace: Replace each run of white space by one space, and strip both ends. Default: True.
        shingle: Tokens of a shingle: word:N, char:N or byte:N; set for documents that are sets of items. A Shingler has
            settings of normalisation of its own. Default: word:5.
        bag: Count repeated shingles, so that similarity is that of multisets. Default: False.
        verify: How candidate pairs are verified: exact compares their sets, signature estimates the similarity, none
            accepts every candidate. Default: exact.

    Returns:
        ``left`` and ``right``, of which left is the smaller id, and ``similarity``, called ``similarity_estimate``
        unless it is exact.

    Raises:
        ConfigError: If a setting breaks its rule.
        InputError: If a column is missing or of another type, or if an id is null or occurs twice.
        MismatchError: If ``work`` belongs to a run with other settings.
    """
    search = _search("pairs", df, text, id, None, on_error, work, partitions, FrameOptions, options)
    with _quiet():
        return _result(search, "pairs", lambda: named_pairs(search))


def clusters(
    df: DataFrame,
    *,
    text: str | Sequence[str] = "text",
    id: str = "id",  # noqa: A002 - the name of the column in results
    on_error: str = "fail",
    work: AnyPath | None = None,
    partitions: int | None = None,
    driver_edges: int = DRIVER_EDGES,
    **options: "Unpack[FrameClustersOptions]",
) -> DataFrame:
    """Find the cluster of every document.

    Without ``work`` Spark holds the DataFrame as long as one derived from it is referenced.

    Args:
        df: Documents. It is read twice, so it must yield the same rows each time.
        text: Text column, strings or bytes; several are joined by a line break. With ``shingle="set"``, an array
            column.
        id: Id column: numbers, strings, dates or a struct of these, different in every row.
        on_error: ``fail``, ``quarantine`` or ``skip``: treatment of rows whose text is null or not UTF-8.
        work: Directory or URL, shared by driver and executors, that keeps finished stages.
        partitions: Number of partitions of shuffles. Default: ``spark.sql.shuffle.partitions``.
        driver_edges: Maximum number of bucket members that the driver holds, to plan which task compares what.
        **options: Settings; see Keyword Args.

    Keyword Args:
        threshold: Minimum Jaccard similarity of a near-duplicate pair, above 0 and at most 1. Default: 0.8.
        recall: Probability of finding a pair at the threshold, between 0 and 1; bands and rows are chosen to reach it.
            Default: 0.99.
        scheme: Sketch scheme: fast (FastSketch) or minhash (classical MinHash, slower). Default: fast.
        slots: Maximum number of slots of a signature that the plan may use. Default: 256.
        bands: Number of bands, given together with rows; replaces recall.
        rows: Slots per band, given together with bands.
        seed: Seed of every hash, an unsigned 64-bit number. Default: 1.
        max_bucket: Members up to which all pairs of a bucket, or of a group of identical documents, are compared; above
            it each member is paired with the first 16. Default: 2000.
        nfkc: Apply Unicode normalisation form KC: full-width letters, ligatures and composed accents become ordinary
            ones. Default: True.
        strip_accents: Remove accents: the combining diacritical marks U+0300–U+036F. Default: False.
        lowercase: Convert each character to lower case. Default: True.
        strip_punctuation: Remove punctuation and symbols. Default: False.
        mask_digits: Replace each decimal digit by 0, so that texts with other numbers are equal. Default: False.
        collapse_whitespace: Replace each run of white space by one space, and strip both ends. Default: True.
        shingle: Tokens of a shingle: word:N, char:N or byte:N; set for documents that are sets of items. A Shingler has
            settings of normalisation of its own. Default: word:5.
        bag: Count repeated shingles, so that similarity is that of multisets. Default: False.
        verify: How candidate pairs are verified: exact compares their sets, signature estimates the similarity, none
            accepts every candidate. Default: exact.
        group: How pairs form clusters: components joins all documents that pairs connect, star only those similar to
            the first. Default: components.

    Returns:
        ``id``, ``cluster`` (the id of its first document) and ``size``.

    Raises:
        ConfigError: If a setting breaks its rule.
        InputError: If a column is missing or of another type, or if an id is null or occurs twice.
        MismatchError: If ``work`` belongs to a run with other settings.
    """
    search = _search("clusters", df, text, id, None, on_error, work, partitions, FrameClustersOptions, options)
    edges = check_integer("driver_edges", driver_edges, 0, 2**31)
    with _quiet():
        return _result(search, "clusters", lambda: _clusters(*_removals(search, edges), 0))


def _search(
    task: str,
    df: object,
    text: str | Sequence[str],
    ident: str,
    against: object,
    on_error: str,
    work: AnyPath | None,
    partitions: int | None,
    call: type,
    options: Mapping[str, object],
) -> DataFrameSearch:
    """Return the search of a call, whose arguments are checked; ``call`` is its option class."""
    settings = _search_settings(call, options)
    check_on_error(on_error)
    own = DocumentTable.of(df, name="df", text=text, id=ident, settings=settings).with_keep_columns(settings.keep_rule)
    others = None
    if against is not None:
        others = DocumentTable.of(against, name="against", text=text, id=ident, settings=settings)
    tables = DocumentTables.of(own, others)
    columns = {"text": list(own.text), "id": own.id, "id_type": tables.own.id_type.simpleString()}
    inputs = {"columns": columns, "on_error": on_error, "tables": [table.name for table in tables.all]}
    manifest = {"engine": "spark", "task": task, "settings": settings.to_dict(), **inputs}
    stages, count = (
        StageStore(own.frame.sparkSession, _work_path(work), manifest),
        _partition_count(own.frame, partitions),
    )
    sampled = task == "dedup"  # only it has a report
    return DataFrameSearch(tables, settings, stages, count, on_error, sampled=sampled)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the warning about pandas that pyspark gives whenever Arrow is used; pandas is not used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield


def _result(search: DataFrameSearch, name: str, make: Callable[[], DataFrame]) -> DataFrame:
    """Return the last stage, after a check that one finished earlier is of these documents."""
    search.signatures  # noqa: B018 - raises if work was begun with other documents
    return search.stages.run(name, make)


def _removals(search: DataFrameSearch, driver_edges: int) -> tuple[DataFrame, DataFrame]:
    """Return all rows of the table and the removed documents, both evaluated."""
    rows = search.signatures.filter("own").select("id", "state", "fault")
    removals = search.stages.run("removed", lambda: removed_documents(search, driver_edges=driver_edges))
    return search.stages.run("documents", lambda: rows), removals


def _search_settings(call: type, options: Mapping[str, object]) -> SearchSettings:
    """Return the settings of a call; ``call`` is its option class.

    Raises:
        ConfigError: If a setting is unknown, or breaks its rule.
    """
    return search_settings(resolve_options(call, None, options), of_frame=True)


def _partition_count(frame: DataFrame, partitions: int | None) -> int:
    """Return the number of partitions of shuffles."""
    if partitions is None:
        return int(str(frame.sparkSession.conf.get("spark.sql.shuffle.partitions")))
    return check_integer("partitions", partitions, 1, 1_000_000)


def _work_path(work: AnyPath | None) -> str | None:
    if work is None:
        return None
    if not isinstance(work, (str, PathLike)) or not str(work):
        raise ConfigError(f"work must be a path or a URL, got {show(work)}")
    return fspath(work)


def _clusters(documents: DataFrame, removals: DataFrame, protected: int) -> DataFrame:
    """Return the cluster of every document that could be read."""
    sizes = removals.groupBy("witness").agg((f.count("*") + 1).alias("size"), f.min("kept_id").alias("id"))
    gone = removals.join(sizes.drop("id"), "witness").select("id", f.col("kept_id").alias("cluster"), "size")
    kept = documents.filter(f.col("state") != FAULTY).select("id").join(removals.select("id"), "id", "left_anti")
    kept_sizes = sizes.filter(f.col("witness") >= protected).select("id", "size")
    size = f.coalesce("size", f.lit(1)).alias("size")
    return gone.union(kept.join(kept_sizes, "id", "left").select("id", f.col("id").alias("cluster"), size))


def sketch(
    df: DataFrame,
    *,
    text: str | Sequence[str] = "text",
    id: str = "id",  # noqa: A002 - the name of the column in results
    **options: "Unpack[FrameOptions]",
) -> DataFrame:
    """Compute the signature of every text, without a shuffle.

    Args:
        df: Documents.
        text: Text column; several are joined by a line break.
        id: Id column.
        **options: Settings; see Keyword Args.

    Keyword Args:
        threshold: Minimum Jaccard similarity of a near-duplicate pair, above 0 and at most 1. Default: 0.8.
        recall: Probability of finding a pair at the threshold, between 0 and 1; bands and rows are chosen to reach it.
            Default: 0.99.
        scheme: Sketch scheme: fast (FastSketch) or minhash (classical MinHash, slower). Default: fast.
        slots: Maximum number of slots of a signature that the plan may use. Default: 256.
        bands: Number of bands, given together with rows; replaces recall.
        rows: Slots per band, given together with bands.
        seed: Seed of every hash, an unsigned 64-bit number. Default: 1.
        max_bucket: Members up to which all pairs of a bucket, or of a group of identical documents, are compared; above
            it each member is paired with the first 16. Default: 2000.
        nfkc: Apply Unicode normalisation form KC: full-width letters, ligatures and composed accents become ordinary
            ones. Default: True.
        strip_accents: Remove accents: the combining diacritical marks U+0300–U+036F. Default: False.
        lowercase: Convert each character to lower case. Default: True.
        strip_punctuation: Remove punctuation and symbols. Default: False.
        mask_digits: Replace each decimal digit by 0, so that texts with other numbers are equal. Default: False.
        collapse_whitespace: Replace each run of white space by one space, and strip both ends. Default: True.
        shingle: Tokens of a shingle: word:N, char:N or byte:N; set for documents that are sets of items. A Shingler has
            settings of normalisation of its own. Default: word:5.
        bag: Count repeated shingles, so that similarity is that of multisets. Default: False.
        verify: How candidate pairs are verified: exact compares their sets, signature estimates the similarity, none
            accepts every candidate. Default: exact.

    Returns:
        ``id``; ``state``: 0 for a document with keys, 1 for an empty one, 2 for one that cannot be used; ``fault``, the
        reason for state 2; ``text_bytes``; ``content_high`` and ``content_low``, which are equal for equal tokens;
        ``keys``, eight bytes for each band; with ``verify="signature"`` ``packed``, two bytes for each slot.
    """
    chosen = _search_settings(FrameOptions, options)
    return DocumentTable.of(df, name="df", text=text, id=id, settings=chosen).sketched(chosen)


def shingles(
    df: DataFrame,
    *,
    text: str | Sequence[str] = "text",
    place: str = "place",
    **options: "Unpack[FrameOptions]",
) -> DataFrame:
    """Compute the distinct shingles of every text, as :func:`verified_pairs` compares them.

    Args:
        df: Documents. No text may be null.
        text: Text column; several are joined by a line break.
        place: Column of the document's number, a whole number from 0 that you assign: the smaller of two is preferred.
        **options: Settings; see Keyword Args.

    Keyword Args:
        threshold: Minimum Jaccard similarity of a near-duplicate pair, above 0 and at most 1. Default: 0.8.
        recall: Probability of finding a pair at the threshold, between 0 and 1; bands and rows are chosen to reach it.
            Default: 0.99.
        scheme: Sketch scheme: fast (FastSketch) or minhash (classical MinHash, slower). Default: fast.
        slots: Maximum number of slots of a signature that the plan may use. Default: 256.
        bands: Number of bands, given together with rows; replaces recall.
        rows: Slots per band, given together with bands.
        seed: Seed of every hash, an unsigned 64-bit number. Default: 1.
        max_bucket: Members up to which all pairs of a bucket, or of a group of identical documents, are compared; above
            it each member is paired with the first 16. Default: 2000.
        nfkc: Apply Unicode normalisation form KC: full-width letters, ligatures and composed accents become ordinary
            ones. Default: True.
        strip_accents: Remove accents: the combining diacritical marks U+0300–U+036F. Default: False.
        lowercase: Convert each character to lower case. Default: True.
        strip_punctuation: Remove punctuation and symbols. Default: False.
        mask_digits: Replace each decimal digit by 0, so that texts with other numbers are equal. Default: False.
        collapse_whitespace: Replace each run of white space by one space, and strip both ends. Default: True.
        shingle: Tokens of a shingle: word:N, char:N or byte:N; set for documents that are sets of items. A Shingler has
            settings of normalisation of its own. Default: word:5.
        bag: Count repeated shingles, so that similarity is that of multisets. Default: False.
        verify: How candidate pairs are verified: exact compares their sets, signature estimates the similarity, none
            accepts every candidate. Default: exact.

    Returns:
        ``place`` and ``elements``, ascending and of eight bytes each.
    """
    chosen = _search_settings(FrameOptions, options)
    table = DocumentTable.of(df, name="df", text=text, id=place, settings=chosen)
    return table.elements(chosen)


def candidate_pairs(
    entries: DataFrame, *, partitions: int | None = None, **options: "Unpack[FrameOptions]"
) -> DataFrame:
    """Find every pair of documents that share a bucket, once.

    Args:
        entries: ``place``, a whole number from 0 that you assign to each document, and ``keys``, as :func:`sketch`
            returns them. Only one of several identical documents should be included.
        partitions: Number of partitions of the keys. Default: ``spark.sql.shuffle.partitions``.
        **options: Settings; see Keyword Args.

    Keyword Args:
        threshold: Minimum Jaccard similarity of a near-duplicate pair, above 0 and at most 1. Default: 0.8.
        recall: Probability of finding a pair at the threshold, between 0 and 1; bands and rows are chosen to reach it.
            Default: 0.99.
        scheme: Sketch scheme: fast (FastSketch) or minhash (classical MinHash, slower). Default: fast.
        slots: Maximum number of slots of a signature that the plan may use. Default: 256.
        bands: Number of bands, given together with rows; replaces recall.
        rows: Slots per band, given together with bands.
        seed: Seed of every hash, an unsigned 64-bit number. Default: 1.
        max_bucket: Members up to which all pairs of a bucket, or of a group of identical documents, are compared; above
            it each member is paired with the first 16. Default: 2000.
        nfkc: Apply Unicode normalisation form KC: full-width letters, ligatures and composed accents become ordinary
            ones. Default: True.
        strip_accents: Remove accents: the combining diacritical marks U+0300–U+036F. Default: False.
        lowercase: Convert each character to lower case. Default: True.
        strip_punctuation: Remove punctuation and symbols. Default: False.
        mask_digits: Replace each decimal digit by 0, so that texts with other numbers are equal. Default: False.
        collapse_whitespace: Replace each run of white space by one space, and strip both ends. Default: True.
        shingle: Tokens of a shingle: word:N, char:N or byte:N; set for documents that are sets of items. A Shingler has
            settings of normalisation of its own. Default: word:5.
        bag: Count repeated shingles, so that similarity is that of multisets. Default: False.
        verify: How candidate pairs are verified: exact compares their sets, signature estimates the similarity, none
            accepts every candidate. Default: exact.

    Returns:
        ``low`` and ``high``, places of which low is the smaller.
    """
    chosen = _search_settings(FrameOptions, options)
    count = _partition_count(entries, partitions)
    placed = entries.select(f.col("place").cast("long"), "keys")
    buckets = frame_tasks.frame_buckets(placed, chosen, parts=count, wide=True)
    return frame_tasks.bucket_pairs(buckets, chosen, count).distinct()


def verified_pairs(
    pairs: DataFrame, sets: DataFrame, *, partitions: int | None = None, **options: "Unpack[FrameOptions]"
) -> DataFrame:
    """Find the pairs that are at least as similar as the threshold.

    Args:
        pairs: ``low`` and ``high``, which are places.
        sets: ``place`` and ``elements`` of every document that is in a pair, as :func:`shingles` returns them; with
            ``verify="signature"``, the column ``packed`` of :func:`sketch` under that name.
        partitions: Number of partitions of the pairs. Default: ``spark.sql.shuffle.partitions``.
        **options: Settings; see Keyword Args.

    Keyword Args:
        threshold: Minimum Jaccard similarity of a near-duplicate pair, above 0 and at most 1. Default: 0.8.
        recall: Probability of finding a pair at the threshold, between 0 and 1; bands and rows are chosen to reach it.
            Default: 0.99.
        scheme: Sketch scheme: fast (FastSketch) or minhash (classical MinHash, slower). Default: fast.
        slots: Maximum number of slots of a signature that the plan may use. Default: 256.
        bands: Number of bands, given together with rows; replaces recall.
        rows: Slots per band, given together with bands.
        seed: Seed of every hash, an unsigned 64-bit number. Default: 1.
        max_bucket: Members up to which all pairs of a bucket, or of a group of identical documents, are compared; above
            it each member is paired with the first 16. Default: 2000.
        nfkc: Apply Unicode normalisation form KC: full-width letters, ligatures and composed accents become ordinary
            ones. Default: True.
        strip_accents: Remove accents: the combining diacritical marks U+0300–U+036F. Default: False.
        lowercase: Convert each character to lower case. Default: True.
        strip_punctuation: Remove punctuation and symbols. Default: False.
        mask_digits: Replace each decimal digit by 0, so that texts with other numbers are equal. Default: False.
        collapse_whitespace: Replace each run of white space by one space, and strip both ends. Default: True.
        shingle: Tokens of a shingle: word:N, char:N or byte:N; set for documents that are sets of items. A Shingler has
            settings of normalisation of its own. Default: word:5.
        bag: Count repeated shingles, so that similarity is that of multisets. Default: False.
        verify: How candidate pairs are verified: exact compares their sets, signature estimates the similarity, none
            accepts every candidate. Default: exact.

    Returns:
        ``low``, ``high`` and ``similarity``.
    """
    chosen = _search_settings(FrameOptions, options)
    low, high = (f.col(side).cast("long").alias(side) for side in ("low", "high"))
    if chosen.verify == "none":
        return pairs.select(low, high, f.lit(float("nan")).alias("similarity"))
    count = _partition_count(pairs, partitions)
    cell = _grid_cell(count).alias("cell")
    cells = pairs.select(low, high).select(cell, "low", "high")
    places = cells.select("cell", f.col("low").alias("place")).union(cells.select("cell", "high")).distinct()
    in_cells = sets.select(f.col("place").cast("long").alias("place"), "elements").join(places, "place")
    blocks = frame_tasks.pair_blocks(cells).union(frame_tasks.element_blocks(in_cells, chosen.verify))
    return frame_tasks.similar_pairs(blocks, count, chosen)


def _grid_cell(cells: int) -> Column:
    """Return the cell of a pair: documents fall into groups, and the pairs of two groups are in one cell.

    A join on the document would send the set of a frequent document once for every pair that it is in.
    """
    groups = max(1, math.isqrt(cells))
    low, high = (f.pmod(f.xxhash64(side), f.lit(groups)) for side in ("low", "high"))
    return (low * groups + high).cast("int")
