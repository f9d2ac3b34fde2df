"""Locality-sensitive hashing of vectors: pairs within a distance, and nearest neighbours of queries.

Candidates share a hash key and are verified exactly, so every distance that is returned is exact. A pair at the radius
of the plan is found with the planned probability, a nearer one with a higher probability. Where tables would cost more
than a comparison of all vectors, such as for few vectors or in hundreds of dimensions without structure, the plan has
no tables and the result is complete.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
import pyarrow as pa

from minwise import _kernel
from minwise.checks import check_integer, check_on_error, check_seed, show
from minwise.errors import ConfigError, InputError, MismatchError
from minwise.inputs.source import Columns, FaultLog
from minwise.inputs.table_writer import local_table_path, write_tables
from minwise.options import GroupName, OnError, PathOrUrl
from minwise.progress import Progress, ProgressSetting
from minwise.results.display import ResultTable, plain_table
from minwise.results.output import check_output, is_published, output_of, refuse_inputs
from minwise.results.pairs import Clustering, pair_report, pair_schema, pair_tables
from minwise.search.documents import Corpus, SearchJob
from minwise.search.engine import SearchResult
from minwise.search.workdir import WorkDirectory, choose_workdir
from minwise.settings import RunLimits, progress_of
from minwise.sketches.planning import Plan
from minwise.vectors.grouping import NearnessResult, VectorDedup, VectorDedupResult
from minwise.vectors.nearest import NEIGHBOUR_SCHEMA, NearestSearch
from minwise.vectors.pairs import find_pairs
from minwise.vectors.planning import (
    BEYOND,
    DistanceSample,
    cheapest_layout,
    is_scan_cheap,
    neighbour_radius,
    scan_cost,
)
from minwise.vectors.projection import Measure, VectorSettings
from minwise.vectors.sources import VectorsLike, VectorSource, open_vectors

__all__ = ["CosineLSH", "EuclideanLSH", "HammingSearch"]

LSH = TypeVar("LSH", bound="_VectorLSH")
# Radius 0 is planned as this: a width, a multiple of the radius, must be above 0.
MIN_RADIUS = math.ulp(1.0)


@dataclass(frozen=True, slots=True)
class _RunSettings:
    """Settings of a run that do not decide which pairs are found."""

    on_error: OnError
    limits: RunLimits
    work: PathOrUrl | None
    progress: Progress

    @classmethod
    def of(
        cls,
        on_error: OnError,
        memory: str | int,
        threads: int | None,
        work: PathOrUrl | None,
        progress: ProgressSetting,
    ) -> "_RunSettings":
        limits = RunLimits.of(memory, threads)
        check_on_error(on_error)
        return cls(on_error, limits, work, progress_of(progress))

    @contextmanager
    def work_directory(
        self, sources: list[VectorSource], output: Path | None, manifest: dict[str, Any]
    ) -> Iterator[WorkDirectory]:
        """Open the work directory; raise if a local output would replace one of the sources."""
        if output is not None:
            refuse_inputs(output, list(sources))
        with choose_workdir(self.work, manifest, output) as work:
            yield work


@dataclass(frozen=True, slots=True)
class _NeighbourQuery:
    """A search for nearest neighbours."""

    queries: VectorSource
    radius: float | None
    top: int | None


@dataclass(frozen=True, slots=True)
class _Neighbours:
    """Neighbours as tables that are made on demand; counts are complete after the last of them."""

    tables: Iterator[pa.Table]
    settings: dict[str, Any]
    search: NearestSearch
    query: _NeighbourQuery
    faults: FaultLog
    work: WorkDirectory

    def report(self, written: int) -> dict[str, Any]:
        """Return settings, counts and faults."""
        unusable, rejected, query = self.search.faults, self.faults, self.query
        return {
            "minwise": _kernel.__version__,
            "settings": self.settings,
            "plan": {
                "radius": query.radius,
                "top": query.top,
                "recall": self.search.recall_of(query.radius, query.top),
            },
            "counts": {"documents": self.search.source.rows - unusable.count, "quarantined": unusable.count},
            "queries": {"asked": query.queries.rows - rejected.count, "quarantined": rejected.count},
            "compared": self.search.compared(self.work),
            "faults": [fault.to_dict() for fault in (*unusable.shown, *rejected.shown)],
            "neighbours": written,
        }


class _VectorLSH:
    """Search for near vectors by random projections; subclasses choose the distance and its hash function."""

    measure: ClassVar[Measure]
    width: float | None = None

    def __init__(self, *, hashes: int | None = None, tables: int, seed: int = 1) -> None:
        self.tables = check_integer("tables", tables, 0, 4096)
        if self.tables == 0 and hashes is not None:
            raise ConfigError(f"hashes must be left out with tables=0, which compares all vectors, got {show(hashes)}")
        self.hashes = check_integer("hashes", hashes, 1, 1024) if self.tables else None
        self.seed = check_seed("seed", seed)
        self._layout()  # raises if there are too many projections
        self.planned_radius: float | None = None
        self.recall = 0.99
        self._source: VectorSource | None = None
        self._search: tuple[RunLimits, NearestSearch] | None = None

    def __repr__(self) -> str:
        names = ("width", "hashes", "tables", "seed")
        settings = (f"{name}={value!r}" for name in names if (value := getattr(self, name)) is not None)
        return f"{type(self).__name__}({', '.join(settings)})"

    @classmethod
    def plan(
        cls: type[LSH],
        vectors: VectorsLike,
        *,
        radius: float | None = None,
        top: int | None = None,
        queries: VectorsLike | None = None,
        recall: float = 0.99,
        seed: int = 1,
        max_bucket: int = 2000,
        column: str | None = None,
    ) -> LSH:
        """Return a search that finds a pair at ``radius`` with probability ``recall`` at the lowest cost.

        It has hash tables, or compares all vectors (``tables=0``) if that costs less or no tables reach the recall;
        then it misses no pair, except among more than ``max_bucket`` equal vectors. A comparison of all is also chosen
        if tables would exceed ``max_bucket`` and are not ten times as fast. Exactly one of ``radius`` and ``top`` must
        be given.

        Args:
            vectors: The vectors to search, as for :meth:`fit`. Distances in a sample of 1,024 rows decide the layout.
            radius: Maximum distance of a pair or a neighbour.
            top: Number of neighbours per query. The tables are then for a distance that contains as many neighbours of
                nine in ten vectors, estimated from a sample; the other queries are compared with all vectors.
            queries: The queries, if the plan is for :meth:`query`; if not given, the plan is for :meth:`pairs`.
            recall: Probability that a pair at the radius, or one of the ``top`` nearest, is found, between 0 and 1.
                Default: 0.99.
            seed: Seed of the random projections, an unsigned 64-bit number. Default: 1.
            max_bucket: The cap of :meth:`pairs`; layouts with smaller buckets are preferred. Default: 2000.
            column: Column of a Parquet file; needed if more than one holds lists of numbers.

        Raises:
            ConfigError: If a setting has a wrong value.
            InputError: If the vectors cannot be read.
            MismatchError: If queries and vectors differ in length.
        """
        source = open_vectors(vectors, column)
        asking = None if queries is None else open_vectors(_as_rows(queries), column)
        wanted = _number("recall", recall)
        if not 0.0 < wanted < 1.0:
            raise ConfigError(f"recall must be above 0 and below 1, got {show(recall)}")
        _check_target(radius, top, cls.measure)
        _check_bits(source, cls.measure)
        if asking is not None:
            _check_dims(asking, source)
            _check_bits(asking, cls.measure)
        count = None if asking is None else asking.rows
        scan = cls(tables=0, seed=seed)
        if cls.measure == "hamming" or is_scan_cheap(source.rows, source.dims, count, nearest=top is not None):
            planned, scan.planned_radius = scan, None if radius is None else float(radius)
        else:
            within = _radius(radius, cls.measure) if top is None else neighbour_radius(source, asking, top, cls.measure)
            planned = cls._plan_tables(source, within or MIN_RADIUS, wanted, seed, max_bucket, count, top) or scan
            planned.planned_radius = within
        planned.recall = wanted
        return planned

    @classmethod
    def _plan_tables(
        cls: type[LSH],
        source: VectorSource,
        radius: float,
        recall: float,
        seed: int,
        max_bucket: int,
        queries: int | None,
        top: int | None,
    ) -> LSH | None:
        """Return the search with the cheapest tables; None if a scan costs less, or no tables reach the recall."""
        sample = DistanceSample.of(source, cls.measure, radius, copies=queries is not None)
        cheapest = cheapest_layout(sample, cls.measure, radius, recall, max_bucket, queries)
        scanned = scan_cost(sample.rows, source.dims, queries)
        if cheapest is None or cheapest[1] + (0.0 if top is None else BEYOND * scanned) > scanned:
            return None
        return cls(**cheapest[0].settings, seed=seed)

    def probability(self, distance: float) -> float:
        """Return the probability that two vectors at a distance are compared, and are found if it is in the radius.

        It is 1 for a search without tables.

        Args:
            distance: Their distance.
        """
        return self._settings(0.0).probability(_radius(distance, self.measure))

    def fit(self: LSH, vectors: VectorsLike, *, column: str | None = None) -> LSH:
        """Set the vectors to search.

        A file is read again by each call. All calls but :meth:`query` copy its vectors to the work directory.

        Args:
            vectors: A matrix with a row per vector, a list of rows, an Arrow column of lists, or the path of an .npy or
                .parquet file. float32 and uint8 are used as they are; float64, float16, int8 and int16 are converted
                to float32.
            column: Column of a Parquet file; needed if more than one holds lists of numbers.

        Returns:
            The search itself.

        Raises:
            ConfigError: If a path has another suffix.
            InputError: If the vectors are no matrix of numbers.
        """
        self._source = open_vectors(vectors, column)
        _check_bits(self._source, self.measure)
        self._source.note_files()
        self._search = None
        return self

    @property
    def _fitted(self) -> VectorSource:
        if self._source is None:
            raise InputError("no vectors to search; call fit first")
        return self._source

    def _layout(self) -> Plan:
        return Plan(threshold=1.0, bands=self.tables or 1, rows=self.hashes or 1)

    def _settings(self, radius: float, max_bucket: int = 2000, group: GroupName = "star") -> VectorSettings:
        return VectorSettings(
            plan=self._layout(),
            shingler=None,
            seed=self.seed,
            max_bucket=max_bucket,
            measure=self.measure,
            width=1.0 if self.width is None and self.measure != "cosine" else self.width,
            radius=radius,
            group=group,
            scan=self.tables == 0,
        )

    def pairs(
        self,
        radius: float,
        *,
        max_bucket: int = 2000,
        on_error: OnError = "fail",
        memory: str | int = "4GB",
        threads: int | None = None,
        work: PathOrUrl | None = None,
        progress: ProgressSetting = None,
    ) -> ResultTable:
        """Return all pairs of vectors within a distance that are compared.

        :meth:`write_pairs` writes a file instead, of any size, and reports what the cap left out.

        Args:
            radius: Maximum distance of a pair.
            max_bucket: Members up to which all pairs of a bucket, or of a group of equal vectors, are compared; above
                it each member is paired with the first 16. Default: 2000.
            on_error: What to do with vectors that cannot be used: fail, list them in the report (quarantine), or skip
                them. Default: fail.
            memory: Memory for data, in bytes or such as 4GB. Default: 4GB.
            threads: Number of threads; all cores if not given. Matrix products use those of NumPy's BLAS.
            work: Directory that keeps finished stages, so that an interrupted run resumes where it stopped.
            progress: True for progress bars, a function of (stage, done, total, unit), or a
                :class:`~minwise.progress.Progress`; default: none.

        Returns:
            A table with the columns left and right, which are row numbers, and distance, in row order.

        Raises:
            ConfigError: If a setting has a wrong value.
            InputError: If no vectors are fitted, or a vector cannot be used and ``on_error`` is ``fail``.
            MismatchError: If the work directory belongs to a run with other settings.
        """
        source, settings = self._fitted, self._settings(_radius(radius, self.measure), max_bucket)
        run = _RunSettings.of(on_error, memory, threads, work, progress)
        with _found_pairs("pairs", source, settings, run, None) as found:
            schema = pair_schema(found, sources=False)
            return plain_table(pair_tables(found), schema, "pair")

    def write_pairs(
        self,
        radius: float,
        output: PathOrUrl,
        *,
        max_bucket: int = 2000,
        on_error: OnError = "fail",
        memory: str | int = "4GB",
        threads: int | None = None,
        work: PathOrUrl | None = None,
        progress: ProgressSetting = None,
        overwrite: bool = True,
    ) -> dict[str, Any]:
        """Write all pairs of vectors within a distance that are compared, and return the report.

        Args:
            radius: Maximum distance of a pair.
            output: A .parquet, .csv, .tsv or .jsonl file, or its URL.
            max_bucket: Members up to which all pairs of a bucket, or of a group of equal vectors, are compared; above
                it each member is paired with the first 16, and the report counts the pairs left out. Default: 2000.
            on_error: What to do with vectors that cannot be used: fail, list them in the report (quarantine), or skip
                them. Default: fail.
            memory: Memory for data, in bytes or such as 4GB. Default: 4GB.
            threads: Number of threads; all cores if not given. Matrix products use those of NumPy's BLAS.
            work: Directory that keeps finished stages, so that an interrupted run resumes where it stopped.
            progress: True for progress bars, a function of (stage, done, total, unit), or a
                :class:`~minwise.progress.Progress`; default: none.
            overwrite: Whether to replace a file with content; if not, the result is kept next to it. Default: True.

        Returns:
            The counts, settings and faults of the run.

        Raises:
            ConfigError: If a setting has a wrong value, or the output is a file of the vectors.
            InputError: If no vectors are fitted, or a vector cannot be used and ``on_error`` is ``fail``.
            MismatchError: If the work directory belongs to a run with other settings.
        """
        source, settings = self._fitted, self._settings(_radius(radius, self.measure), max_bucket)
        run = _RunSettings.of(on_error, memory, threads, work, progress)
        with _found_pairs("pairs", source, settings, run, local_table_path(output)) as found:
            report = pair_report(found)  # may fail: before there is a file
            written = write_tables(output, pair_tables(found), pair_schema(found, sources=False), overwrite=overwrite)
            return {**report, "pairs": written}

    def clusters(
        self,
        radius: float,
        *,
        group: GroupName = "components",
        max_bucket: int = 2000,
        on_error: OnError = "fail",
        memory: str | int = "4GB",
        threads: int | None = None,
        work: PathOrUrl | None = None,
        progress: ProgressSetting = None,
    ) -> ResultTable:
        """Return the cluster of every vector.

        Args:
            radius: Maximum distance of a pair.
            group: How pairs form clusters: components joins all vectors that pairs connect, star only those near the
                first. Default: components.
            max_bucket: Members up to which all pairs of a bucket, or of a group of equal vectors, are compared; above
                it each member is paired with the first 16. Default: 2000.
            on_error: What to do with vectors that cannot be used: fail, list them in the report (quarantine), or skip
                them. Default: fail.
            memory: Memory for data, in bytes or such as 4GB. Default: 4GB.
            threads: Number of threads; all cores if not given. Matrix products use those of NumPy's BLAS.
            work: Directory that keeps finished stages, so that an interrupted run resumes where it stopped.
            progress: True for progress bars, a function of (stage, done, total, unit), or a
                :class:`~minwise.progress.Progress`; default: none.

        Returns:
            A table with the columns id and cluster, which are row numbers, the second of the cluster's first vector,
            and size.

        Raises:
            ConfigError: If a setting has a wrong value.
            InputError: If no vectors are fitted, or a vector cannot be used and ``on_error`` is ``fail``.
            MismatchError: If the work directory belongs to a run with other settings.
        """
        source, settings = self._fitted, self._settings(_radius(radius, self.measure), max_bucket, group)
        run = _RunSettings.of(on_error, memory, threads, work, progress)
        with _found_pairs("clusters", source, settings, run, None) as found:
            clustering = Clustering(NearnessResult.of_distances(found))
            return plain_table(clustering.tables(), clustering.schema, "vector")

    def write_clusters(
        self,
        radius: float,
        output: PathOrUrl,
        *,
        group: GroupName = "components",
        max_bucket: int = 2000,
        on_error: OnError = "fail",
        memory: str | int = "4GB",
        threads: int | None = None,
        work: PathOrUrl | None = None,
        progress: ProgressSetting = None,
        overwrite: bool = True,
    ) -> dict[str, Any]:
        """Write the cluster of every vector, and return the report.

        Args:
            radius: Maximum distance of a pair.
            output: A .parquet, .csv, .tsv or .jsonl file, or its URL.
            group: How pairs form clusters: components joins all vectors that pairs connect, star only those near the
                first. Default: components.
            max_bucket: Members up to which all pairs of a bucket, or of a group of equal vectors, are compared; above
                it each member is paired with the first 16. Default: 2000.
            on_error: What to do with vectors that cannot be used: fail, list them in the report (quarantine), or skip
                them. Default: fail.
            memory: Memory for data, in bytes or such as 4GB. Default: 4GB.
            threads: Number of threads; all cores if not given. Matrix products use those of NumPy's BLAS.
            work: Directory that keeps finished stages, so that an interrupted run resumes where it stopped.
            progress: True for progress bars, a function of (stage, done, total, unit), or a
                :class:`~minwise.progress.Progress`; default: none.
            overwrite: Whether to replace a file with content; if not, the result is kept next to it. Default: True.

        Returns:
            The counts, settings and faults of the run.

        Raises:
            ConfigError: If a setting has a wrong value, or the output is a file of the vectors.
            InputError: If no vectors are fitted, or a vector cannot be used and ``on_error`` is ``fail``.
            MismatchError: If the work directory belongs to a run with other settings.
        """
        source, settings = self._fitted, self._settings(_radius(radius, self.measure), max_bucket, group)
        run = _RunSettings.of(on_error, memory, threads, work, progress)
        with _found_pairs("clusters", source, settings, run, local_table_path(output)) as found:
            clustering, report = Clustering(NearnessResult.of_distances(found)), pair_report(found)
            write_tables(output, clustering.tables(), clustering.schema, overwrite=overwrite)
            return {**report, "group": group, "clusters": clustering.cluster_count}

    def dedup(
        self,
        radius: float,
        *,
        max_bucket: int = 2000,
        on_error: OnError = "fail",
        memory: str | int = "4GB",
        threads: int | None = None,
        work: PathOrUrl | None = None,
        progress: ProgressSetting = None,
    ) -> VectorDedupResult:
        """Return which vectors to keep, and the nearest kept one of each removed one.

        Vectors are processed in order; one is removed if it is within the radius of a kept one. If all vectors are
        compared (``tables=0``), no two kept ones are a pair. Tables find a pair with :meth:`probability`: both vectors
        of a missed one may be kept, or the nearest kept one not be named. :meth:`write_dedup` writes the kept vectors
        instead.

        Args:
            radius: Maximum distance of a removed vector from its kept one.
            max_bucket: Members up to which all pairs of a bucket, or of a group of equal vectors, are compared; above
                it each member is paired with the first 16. Default: 2000.
            on_error: What to do with vectors that cannot be used: fail, list them in the report (quarantine), or skip
                them. Default: fail.
            memory: Memory for data, in bytes or such as 4GB. Default: 4GB.
            threads: Number of threads; all cores if not given. Matrix products use those of NumPy's BLAS.
            work: Directory that keeps finished stages, so that an interrupted run resumes where it stopped.
            progress: True for progress bars, a function of (stage, done, total, unit), or a
                :class:`~minwise.progress.Progress`; default: none.

        Returns:
            The result: ``keep`` (a flag per row), ``removed``, ``clusters`` and ``report``.

        Raises:
            ConfigError: If a setting has a wrong value.
            InputError: If no vectors are fitted, or a vector cannot be used and ``on_error`` is ``fail``.
            MismatchError: If the work directory belongs to a run with other settings.
        """
        source, settings = self._fitted, self._settings(_radius(radius, self.measure), max_bucket)
        run = _RunSettings.of(on_error, memory, threads, work, progress)
        with _found_pairs("dedup", source, settings, run, None) as found:
            return VectorDedup(found).result()

    def write_dedup(
        self,
        radius: float,
        output: PathOrUrl,
        *,
        max_bucket: int = 2000,
        on_error: OnError = "fail",
        memory: str | int = "4GB",
        threads: int | None = None,
        work: PathOrUrl | None = None,
        progress: ProgressSetting = None,
        overwrite: bool = False,
    ) -> dict[str, Any]:
        """Write the kept vectors of :meth:`dedup` to a directory that appears complete or not at all.

        ``kept/`` has the vectors in the format of the input, ``removed.parquet`` each removed one with the nearest kept
        one that was found and their distance, ``clusters.parquet`` the cluster of each vector, ``report.json`` the
        report.

        Args:
            radius: Maximum distance of a removed vector from its kept one.
            output: A new or empty directory, or the URL of one.
            max_bucket: Members up to which all pairs of a bucket, or of a group of equal vectors, are compared; above
                it each member is paired with the first 16. Default: 2000.
            on_error: What to do with vectors that cannot be used: fail, list them in the report (quarantine), or skip
                them. Default: fail.
            memory: Memory for data, in bytes or such as 4GB. Default: 4GB.
            threads: Number of threads; all cores if not given. Matrix products use those of NumPy's BLAS.
            work: Directory that keeps finished stages, so that an interrupted run resumes where it stopped.
            progress: True for progress bars, a function of (stage, done, total, unit), or a
                :class:`~minwise.progress.Progress`; default: none.
            overwrite: Whether a directory that is not empty may be replaced. Default: False.

        Returns:
            The report.

        Raises:
            ConfigError: If a setting has a wrong value, or the output is not empty or contains an input.
            InputError: If no vectors are fitted, or a vector cannot be used and ``on_error`` is ``fail``.
            MismatchError: If the work directory belongs to a run with other settings.
        """
        source, settings = self._fitted, self._settings(_radius(radius, self.measure), max_bucket)
        run, folder = _RunSettings.of(on_error, memory, threads, work, progress), output_of(output)

        def check(work: WorkDirectory) -> None:
            if not is_published(work, folder):
                check_output(folder, [source], overwrite=overwrite)

        local = folder if isinstance(folder, Path) else None
        with _found_pairs("dedup", source, settings, run, local, check) as found:
            dedup = VectorDedup(found)
            if is_published(found.work, folder):
                return dedup.report()
            return dedup.write(folder, run.progress, overwrite=overwrite)

    def query(
        self,
        vectors: VectorsLike,
        *,
        radius: float | None = None,
        top: int | None = None,
        column: str | None = None,
        on_error: OnError = "fail",
        memory: str | int = "4GB",
        threads: int | None = None,
        work: PathOrUrl | None = None,
        progress: ProgressSetting = None,
    ) -> ResultTable:
        """Return the nearest fitted vectors of each query.

        Each of the ``top`` nearest is found with the recall of the search: a query whose neighbours are too far away
        for the tables is compared with all vectors. Without ``top``, neighbours are those that share a bucket, and
        :meth:`probability` returns the recall. :meth:`write_query` writes a file instead, of any size. At least one of
        ``radius`` and ``top`` must be given.

        Args:
            vectors: The queries, as for :meth:`fit`; a single vector may be given as a row.
            radius: Maximum distance of a neighbour.
            top: Maximum number of neighbours of a query.
            column: Column of a Parquet file; needed if more than one holds lists of numbers.
            on_error: What to do with vectors and queries that cannot be used: fail, list them in the report
                (quarantine), or skip them; such a query has no neighbours. Default: fail.
            memory: Memory for data, in bytes or such as 4GB. Default: 4GB.
            threads: Number of threads; all cores if not given. Matrix products use those of NumPy's BLAS.
            work: Directory that keeps finished blocks, so that an interrupted run resumes where it stopped.
            progress: True for progress bars, a function of (stage, done, total, unit), or a
                :class:`~minwise.progress.Progress`; default: none.

        Returns:
            A table with the columns query and neighbour, which are row numbers, and distance; nearest first.

        Raises:
            ConfigError: If a setting has a wrong value.
            InputError: If no vectors are fitted, or a vector cannot be used and ``on_error`` is ``fail``.
            MismatchError: If queries and vectors differ in length, or the work directory belongs to another run.
        """
        query = self._query(vectors, radius, top, column)
        with self._answered(query, _RunSettings.of(on_error, memory, threads, work, progress), None) as answer:
            return plain_table(answer.tables, NEIGHBOUR_SCHEMA, "neighbour")

    def write_query(
        self,
        vectors: VectorsLike,
        output: PathOrUrl,
        *,
        radius: float | None = None,
        top: int | None = None,
        column: str | None = None,
        on_error: OnError = "fail",
        memory: str | int = "4GB",
        threads: int | None = None,
        work: PathOrUrl | None = None,
        progress: ProgressSetting = None,
        overwrite: bool = True,
    ) -> dict[str, Any]:
        """Write the nearest fitted vectors of each query, and return the report, which states the recall.

        The neighbours are those of :meth:`query`. At least one of ``radius`` and ``top`` must be given.

        Args:
            vectors: The queries, as for :meth:`fit`; a single vector may be given as a row.
            output: A .parquet, .csv, .tsv or .jsonl file, or its URL.
            radius: Maximum distance of a neighbour.
            top: Maximum number of neighbours of a query.
            column: Column of a Parquet file; needed if more than one holds lists of numbers.
            on_error: What to do with vectors and queries that cannot be used: fail, list them in the report
                (quarantine), or skip them; such a query has no neighbours. Default: fail.
            memory: Memory for data, in bytes or such as 4GB. Default: 4GB.
            threads: Number of threads; all cores if not given. Matrix products use those of NumPy's BLAS.
            work: Directory that keeps finished blocks, so that an interrupted run resumes where it stopped.
            progress: True for progress bars, a function of (stage, done, total, unit), or a
                :class:`~minwise.progress.Progress`; default: none.
            overwrite: Whether to replace a file with content; if not, the result is kept next to it. Default: True.

        Returns:
            The counts, settings and faults of the run.

        Raises:
            ConfigError: If a setting has a wrong value, or the output is a file of the vectors or queries.
            InputError: If no vectors are fitted, or a vector cannot be used and ``on_error`` is ``fail``.
            MismatchError: If queries and vectors differ in length, or the work directory belongs to another run.
        """
        query = self._query(vectors, radius, top, column)
        with self._answered(query, _RunSettings.of(on_error, memory, threads, work, progress), output) as answer:
            return answer.report(write_tables(output, answer.tables, NEIGHBOUR_SCHEMA, overwrite=overwrite))

    def _query(
        self, vectors: VectorsLike, radius: float | None, top: int | None, column: str | None
    ) -> _NeighbourQuery:
        source, queries = self._fitted, open_vectors(_as_rows(vectors), column)
        if radius is None and top is None:
            raise ConfigError("a query takes radius, top or both, got neither")
        most = None if top is None else check_integer("top", top, 1, 2**31)
        if radius is not None:
            _radius(radius, self.measure)
        _check_dims(queries, source)
        _check_bits(queries, self.measure)
        return _NeighbourQuery(queries, radius, most)

    @contextmanager
    def _answered(self, query: _NeighbourQuery, run: _RunSettings, output: PathOrUrl | None) -> Iterator[_Neighbours]:
        """Search the neighbours; the work directory exists until the block ends."""
        source, queries = self._fitted, query.queries
        search, faults = self._nearest_search(run), FaultLog(run.on_error)
        settings = {**self._settings(0.0).to_dict(), "radius": query.radius, "top": query.top, "recall": self.recall}
        queries.note_files()
        inputs = {"inputs": [source.fingerprint()], "queries": [queries.fingerprint()]}
        manifest = {"task": "vector neighbours", "settings": settings, "on_error": run.on_error, **inputs}
        within = math.inf if query.radius is None else float(query.radius)
        with run.work_directory([source, queries], local_table_path(output), manifest) as work:
            tables = search.answer(queries, within, query.top, work, run.progress, faults)
            yield _Neighbours(_unchanged(tables, [source, queries]), settings, search, query, faults, work)

    def _nearest_search(self, run: _RunSettings) -> NearestSearch:
        """Return the hash tables, which are kept from one query to the next."""
        if self._search is None or self._search[0] != run.limits or self._search[1].faults.on_error != run.on_error:
            search = NearestSearch(self._fitted, self._settings(0.0), self.recall, run.limits, FaultLog(run.on_error))
            self._search = run.limits, search
        return self._search[1]


class EuclideanLSH(_VectorLSH):
    """Search for vectors that are near each other in Euclidean distance.

    Each vector has ``tables`` keys of ``hashes`` random projections each. A projection is h(x) = ⌊(w·x + u)/width⌋ with
    normally distributed w and uniform u (Datar, Immorlica, Indyk & Mirrokni, 2004).

    Args:
        width: Segment length of a projection, above 0. A larger one finds more pairs and compares more candidates.
        hashes: Projections per key, from 1 to 1024. More of them make buckets smaller.
        tables: Keys per vector, up to 4096. More of them find more pairs. 0 compares all vectors, exactly, and needs no
            other setting.
        seed: Seed of the projections, an unsigned 64-bit number. Default: 1.

    Attributes:
        planned_radius: The radius that :meth:`plan` chose the layout for; None if the layout was given, or if all
            vectors are compared for ``top``.
        recall: Probability that one of the ``top`` nearest of a query is found: that of :meth:`plan`, otherwise 0.99.

    >>> import minwise as mw
    >>> points = [[0.0, 0.0], [3.0, 4.0], [90.0, 90.0]]
    >>> mw.EuclideanLSH.plan(points, radius=6.0).fit(points).pairs(6.0).to_pylist()
    [{'left': 0, 'right': 1, 'distance': 5.0}]
    """

    measure = "euclidean"

    def __init__(self, *, width: float | None = None, hashes: int | None = None, tables: int, seed: int = 1) -> None:
        super().__init__(hashes=hashes, tables=tables, seed=seed)
        if not self.tables:
            if width is not None:
                raise ConfigError(
                    f"width must be left out with tables=0, which compares all vectors, got {show(width)}"
                )
            return
        self.width = _number("width", width)
        if not (self.width > 0.0 and math.isfinite(self.width)):
            raise ConfigError(f"width must be above 0 and finite, got {show(width)}")


class CosineLSH(_VectorLSH):
    """Search for vectors of similar direction; the distance is 1 − cos θ, from 0 to 2.

    Each vector has ``tables`` keys of ``hashes`` random hyperplanes each; the side of a hyperplane is a bit (Charikar,
    2002).

    Args:
        hashes: Hyperplanes per key, from 1 to 1024. More of them make buckets smaller.
        tables: Keys per vector, up to 4096. More of them find more pairs. 0 compares all vectors, exactly, and needs no
            other setting.
        seed: Seed of the hyperplanes, an unsigned 64-bit number. Default: 1.

    Attributes:
        planned_radius: The radius that :meth:`plan` chose the layout for; None if the layout was given, or if all
            vectors are compared for ``top``.
        recall: Probability that one of the ``top`` nearest of a query is found: that of :meth:`plan`, otherwise 0.99.

    >>> import minwise as mw
    >>> arrows = [[1.0, 0.0], [3.0, 0.0], [0.0, 1.0]]
    >>> mw.CosineLSH.plan(arrows, radius=0.1).fit(arrows).pairs(0.1).to_pylist()
    [{'left': 0, 'right': 1, 'distance': 0.0}]
    """

    measure = "cosine"


class HammingSearch(_VectorLSH):
    """Search for bit vectors, such as perceptual hashes, that differ in few bits.

    A vector is a row of uint8, eight bits each, as :func:`numpy.packbits` returns; a radius is a number of bits. All
    vectors are compared, so the true neighbours are found, and every pair except among more than ``max_bucket`` equal
    vectors.

    >>> import minwise as mw
    >>> import numpy as np
    >>> hashes = np.array([[0b1010, 255], [0b1011, 255], [0, 0]], dtype=np.uint8)
    >>> mw.HammingSearch().fit(hashes).pairs(3).to_pylist()
    [{'left': 0, 'right': 1, 'distance': 1.0}]
    """

    measure = "hamming"

    def __init__(self, *, tables: Literal[0] = 0, seed: int = 1) -> None:
        if tables != 0:
            raise ConfigError(f"tables must be 0 for bit vectors, all of which are compared, got {show(tables)}")
        super().__init__(tables=tables, seed=seed)


@contextmanager
def _found_pairs(
    task: Literal["pairs", "clusters", "dedup"],
    source: VectorSource,
    settings: VectorSettings,
    run: _RunSettings,
    output: Path | None,
    check: Callable[[WorkDirectory], None] = lambda work: None,
) -> Iterator[SearchResult]:
    """Search the pairs after ``check``; the work directory exists until the block ends."""
    corpus = Corpus(sources=[source], columns=Columns(), on_error=run.on_error).note_files()
    manifest = {"task": f"vector {task}", "settings": settings.to_dict(), "on_error": run.on_error}
    if task == "clusters":
        manifest["group"] = settings.group
    with run.work_directory([source], output, {**manifest, "inputs": corpus.fingerprint()}) as work:
        check(work)
        job = SearchJob(corpus=corpus, settings=settings, limits=run.limits, work=work, progress=run.progress)
        with corpus.unchanged():
            found = find_pairs(source, settings, job)
        yield found


def _unchanged(tables: Iterator[pa.Table], sources: list[VectorSource]) -> Iterator[pa.Table]:
    """Yield the tables; after the last, raise InputError if vectors or queries changed meanwhile."""
    yield from tables
    for source in sources:
        source.refuse_changes()


def _check_bits(vectors: VectorSource, measure: Measure) -> None:
    """Raise if the measure counts bits and the vectors are not of bytes."""
    if measure == "hamming" and vectors.rows and vectors.matrix_type != np.uint8:
        name = f"{vectors.name}: " if vectors.name else ""
        remedy = "np.packbits(bits, axis=1) makes such a matrix"
        raise InputError(f"{name}bit vectors must be uint8, eight bits each, got {vectors.given_type}; {remedy}")


def _check_dims(queries: VectorSource, vectors: VectorSource) -> None:
    """Raise if queries and vectors differ in length."""
    if queries.rows and vectors.rows and queries.dims != vectors.dims:
        both = f"{queries.dims} in queries, {vectors.dims} in vectors"
        raise MismatchError(f"queries must have as many values as vectors, got {both}")


def _number(name: str, value: object) -> float:
    """Return a number; raise for NaN, and for a string or bool although ``float`` accepts them."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, (str, bool)) or math.isnan(number):
        raise ConfigError(f"{name} must be a number, got {show(value)}")
    return number


def _check_target(radius: object, top: object, measure: Measure) -> None:
    """Raise unless exactly one of ``radius`` and ``top`` is given, with a correct value."""
    if (radius is None) == (top is None):
        raise ConfigError(f"a plan takes either radius or top, got {show(radius)} and {show(top)}")
    if top is None:
        _radius(radius, measure)
    else:
        check_integer("top", top, 1, 2**31)


def _radius(value: object, measure: Measure) -> float:
    """Return a distance; raise if it is negative or above the maximum of the measure."""
    radius = _number("radius", value)
    if radius < 0.0 or math.isinf(radius):
        raise ConfigError(f"radius must be 0 or more and finite, got {show(value)}")
    if measure == "cosine" and radius > 2.0:
        raise ConfigError(f"radius must be at most 2, since it is 1 minus a cosine, got {show(value)}")
    return radius


def _as_rows(vectors: Any) -> Any:  # noqa: ANN401 - anything that open_vectors accepts
    """Return a single vector as a matrix of one row."""
    if getattr(vectors, "ndim", None) == 1:
        return vectors.reshape(1, -1)
    if isinstance(vectors, (list, tuple)) and vectors and all(isinstance(value, (int, float)) for value in vectors):
        return [vectors]
    return vectors
