"""Frames: a Spark DataFrame in; pairs, clusters or a clean corpus out, as DataFrames.

The answer is that of :mod:`minwise.api` on the same rows, sorted by id. It depends on nothing else: not on how the
DataFrame is cut into partitions, nor in which order its rows come.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from types import TracebackType
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from minwise.checks import check_integer, check_on_error, check_setting_names, show
from minwise.errors import ConfigError, MinwiseError
from minwise.search.bands import FAULTY
from minwise.settings import FindSettings, Options
from minwise.spark.expand import expanded_pairs
from minwise.spark.removals import Removals
from minwise.spark.search import Search
from minwise.spark.stages import Stages
from minwise.spark.summary import summary
from minwise.spark.tables import Table, Tables

__all__ = ["DedupFrames", "clusters", "dedup", "pairs", "parts_of", "settings_of"]

AnySetting = Any
AnyPath = str | PathLike[str]
# Settings that decide what is found, and so mean something to a DataFrame; group and keep only to deduplication.
SHARED = ("threshold", "recall", "shingle", "bag", "scheme", "slots", "bands", "rows", "seed", "verify", "max_bucket")
OF_DEDUP = ("group", "keep")
# Edges up to which components are found on the driver, which takes some 20 bytes for each.
DRIVER_EDGES = 20_000_000


class DedupFrames:
    """What deduplication found, as DataFrames: who is kept, who is removed, and why.

    Without a ``work`` directory Spark holds the removed documents and the ids of all, as long as there is this or a
    DataFrame that came from it.

    Attributes:
        report: What happened, in numbers. The same for the same documents and settings.
    """

    def __init__(self, search: Search, documents: DataFrame, removals: DataFrame, on_error: str) -> None:
        self._own, self._settings, self._protected = search.tables.own, search.settings, search.protected
        self._found: tuple[DataFrame, DataFrame] | None = (documents, removals)
        self.report: dict[str, Any] = summary(search, removals, on_error)

    @property
    def kept(self) -> DataFrame:
        """The rows that are kept, with all their columns."""
        _, removals = self._frames
        return self._own.without(removals.select("id").union(self.quarantined.select("id")))

    @property
    def removed(self) -> DataFrame:
        """Every removed document: ``id``, ``kept_id`` of the one it is a near-duplicate of, and their similarity.

        It is called ``similarity_estimate`` unless it is exact.
        """
        _, removals = self._frames
        return removals.select("id", "kept_id", _similarity(self._settings))

    @property
    def clusters(self) -> DataFrame:
        """Every document with its cluster, named after the kept one: ``id``, ``cluster`` and ``size``."""
        return _clusters(*self._frames, self._protected)

    @property
    def quarantined(self) -> DataFrame:
        """What could not be used: ``id`` and ``reason``."""
        documents, _ = self._frames
        return documents.filter(f.col("state") == FAULTY).select("id", f.col("fault").alias("reason"))

    @property
    def _frames(self) -> tuple[DataFrame, DataFrame]:
        """The documents, and those that are removed."""
        if self._found is None:
            raise MinwiseError("the result is closed; its DataFrames have to be asked for before")
        return self._found

    def close(self) -> None:
        """Lets go of what Spark holds; DataFrames that came from here can still be used, and hold it."""
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
    id: str = "id",  # noqa: A002 - what users call it
    against: DataFrame | None = None,
    on_error: str = "fail",
    work: AnyPath | None = None,
    partitions: int | None = None,
    driver_edges: int = DRIVER_EDGES,
    **settings: AnySetting,
) -> DedupFrames:
    """Removes near-duplicates: every removed document names a kept one that is at least as similar as the threshold.

    Args:
        df: The documents. It is read twice, and once more for ``kept``, so it has to give the same rows again.
        text: The column of the text, strings or bytes; several are joined by a line break. With ``shingle="set"``, of
            arrays.
        id: The column of the id: numbers, strings, dates or a struct of these, different in every row. Documents are in
            the order of their ids.
        against: Documents, with the same columns, that come before all others and are never removed.
        on_error: ``fail``, ``quarantine`` or ``skip``: what becomes of rows whose text is null or not UTF-8.
        work: A directory or URL, seen by driver and executors alike, that keeps finished stages.
        partitions: Into how many parts data is cut; ``spark.sql.shuffle.partitions`` if it is not given.
        driver_edges: Pairs up to which connected components are found on the driver.
        settings: ``threshold``, ``recall``, ``shingle``, ``bag``, ``scheme``, ``slots``, ``bands``, ``rows``, ``seed``,
            ``verify``, ``max_bucket``, ``group`` and ``keep``, as :func:`minwise.dedup` has them.

    Raises:
        ConfigError: If a setting breaks its rule.
        InputError: If a column is missing or of another type, or if an id is null or there twice.
        MismatchError: If ``work`` belongs to a run with other settings.
    """
    run = _Run("dedup", df, text, id, against, on_error, work, partitions, settings, (*SHARED, *OF_DEDUP))
    with run.quiet():
        documents, removals = run.removals(check_integer("driver_edges", driver_edges, 0, 2**31))
        return DedupFrames(run.search, documents, removals, on_error)


def pairs(
    df: DataFrame,
    *,
    text: str | Sequence[str] = "text",
    id: str = "id",  # noqa: A002 - what users call it
    on_error: str = "fail",
    work: AnyPath | None = None,
    partitions: int | None = None,
    **settings: AnySetting,
) -> DataFrame:
    """Every pair of near-duplicates: ``left`` and ``right``, of which left has the smaller id, and ``similarity``.

    Identical documents are pairs too. A bucket, or a group of identical documents, of more than ``max_bucket`` members
    pairs each member with its first 16 only. Without ``work`` Spark holds the DataFrame as long as there is
    one that came from it.

    Args:
        df: As in :func:`dedup`.
        text: As in :func:`dedup`.
        id: As in :func:`dedup`.
        on_error: As in :func:`dedup`.
        work: As in :func:`dedup`.
        partitions: As in :func:`dedup`.
        settings: As in :func:`dedup`, but for ``group`` and ``keep``.
    """
    run = _Run("pairs", df, text, id, None, on_error, work, partitions, settings, SHARED)
    with run.quiet():
        return run.result("pairs", run.pairs)


def clusters(
    df: DataFrame,
    *,
    text: str | Sequence[str] = "text",
    id: str = "id",  # noqa: A002 - what users call it
    group: str = "components",
    on_error: str = "fail",
    work: AnyPath | None = None,
    partitions: int | None = None,
    driver_edges: int = DRIVER_EDGES,
    **settings: AnySetting,
) -> DataFrame:
    """Every document with the cluster it is in: ``id``, ``cluster`` (the id of its first document) and ``size``.

    Without ``work`` Spark holds the DataFrame as long as there is one that came from it.

    Args:
        df: As in :func:`dedup`.
        text: As in :func:`dedup`.
        id: As in :func:`dedup`.
        group: ``components`` joins whatever is connected by pairs; ``star`` only what is similar to the first document.
        on_error: As in :func:`dedup`.
        work: As in :func:`dedup`.
        partitions: As in :func:`dedup`.
        driver_edges: As in :func:`dedup`.
        settings: As in :func:`dedup`, but for ``keep``.
    """
    shared = {**settings, "group": group}
    run = _Run("clusters", df, text, id, None, on_error, work, partitions, shared, (*SHARED, "group"))
    edges = check_integer("driver_edges", driver_edges, 0, 2**31)
    with run.quiet():
        return run.result("clusters", lambda: _clusters(*run.removals(edges), 0))


class _Run:
    """One call: what it was given, checked, and the stages that it makes."""

    def __init__(
        self,
        task: str,
        df: object,
        text: str | Sequence[str],
        ident: str,
        against: object,
        on_error: str,
        work: AnyPath | None,
        partitions: int | None,
        given: dict[str, Any],
        known: tuple[str, ...],
    ) -> None:
        settings = settings_of(given, known)
        check_on_error(on_error)
        own = Table.of(df, name="df", text=text, id=ident, settings=settings).ranked(settings.rank_column)
        others = None
        if against is not None:
            others = Table.of(against, name="against", text=text, id=ident, settings=settings)
        self.tables = Tables.of(own, others)
        self.settings = settings
        session, place = own.frame.sparkSession, _place(work)
        manifest = {"engine": "spark", "task": task, "settings": settings.to_dict(), **self._inputs(on_error)}
        self.stages = Stages(session, place, manifest)
        self.search = Search(self.tables, settings, self.stages, parts_of(own.frame, partitions), on_error)

    def _inputs(self, on_error: str) -> dict[str, Any]:
        names = [table.name for table in self.tables.all]
        own = self.tables.own
        columns = {"text": list(own.text), "id": own.id, "id_type": own.id_type.simpleString()}
        return {"columns": columns, "on_error": on_error, "tables": names}

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Without what Spark says of pandas whenever Arrow is used, as nothing here uses it."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
            yield

    def result(self, name: str, make: Callable[[], DataFrame]) -> DataFrame:
        """The last stage, which may be finished, but then of these documents."""
        self.search.signatures  # noqa: B018 - raises if work was begun with others
        return self.stages.run(name, make)

    def removals(self, driver_edges: int) -> tuple[DataFrame, DataFrame]:
        """The rows of the table, and those that are removed, both held."""
        rows = self.search.signatures.filter("own").select("id", "state", "fault")
        removals = self.stages.run("removed", Removals(self.search, driver_edges=driver_edges).named)
        return self.stages.run("documents", lambda: rows), removals

    def pairs(self) -> DataFrame:
        """Every pair by id."""
        wide = expanded_pairs(self.search.verified, self.search.documents, self.settings.max_bucket)
        for side, name in (("low", "left"), ("high", "right")):
            named = self.search.names.select(f.col("place").alias(side), f.col("id").alias(name))
            wide = wide.join(named, side)
        known = f.when(~f.isnan("similarity"), f.col("similarity")).alias("similarity")
        return wide.select("left", "right", known).select("left", "right", _similarity(self.settings))


def settings_of(given: dict[str, Any], known: tuple[str, ...]) -> FindSettings:
    """The settings as they were given by name.

    Raises:
        ConfigError: If one is not known, or breaks its rule.
    """
    check_setting_names(given, known)
    return Options(**given).settings(of_frame=True)


def parts_of(frame: DataFrame, partitions: int | None) -> int:
    """Into how many parts data is cut."""
    if partitions is None:
        return int(str(frame.sparkSession.conf.get("spark.sql.shuffle.partitions")))
    return check_integer("partitions", partitions, 1, 1_000_000)


def _place(work: AnyPath | None) -> str | None:
    if work is None:
        return None
    if not isinstance(work, (str, PathLike)) or not str(work):
        raise ConfigError(f"work must be a path or a URL, got {show(work)}")
    return fspath(work)


def _similarity(settings: FindSettings) -> Any:  # noqa: ANN401 - a column
    return f.col("similarity").alias("similarity" if settings.verify == "exact" else "similarity_estimate")


def _clusters(documents: DataFrame, removals: DataFrame, protected: int) -> DataFrame:
    """The cluster of every document that could be read."""
    sizes = removals.groupBy("witness").agg((f.count("*") + 1).alias("size"), f.min("kept_id").alias("id"))
    gone = removals.join(sizes.drop("id"), "witness").select("id", f.col("kept_id").alias("cluster"), "size")
    kept = documents.filter(f.col("state") != FAULTY).select("id").join(removals.select("id"), "id", "left_anti")
    heads = sizes.filter(f.col("witness") >= protected).select("id", "size")
    size = f.coalesce("size", f.lit(1)).alias("size")
    return gone.union(kept.join(heads, "id", "left").select("id", f.col("id").alias("cluster"), size))
