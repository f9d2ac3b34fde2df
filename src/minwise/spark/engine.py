"""Spark engine: executors read, sketch, band and compare; the driver holds a few numbers per document and no text.

Every stage is a directory of Parquet files: ``signatures`` of all documents, ``candidates``, the ``sets`` of the
documents that are in a candidate pair, and ``verified`` pairs. Everything after the verified pairs is done by the code
of the local engine.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.arrays import from_bools, from_numpy, to_numpy
from minwise.errors import InputError
from minwise.progress import Progress
from minwise.search.bands import FILLED, NO_DOCUMENT, BucketCounts
from minwise.search.candidates import VERIFIED, complete_counts
from minwise.search.documents import Documents, SearchJob, check_columns
from minwise.search.engine import SearchResult, StagingDirectory
from minwise.search.needed_pairs import Needed, finished_stage, sample_classes, stage_of, star_counts
from minwise.search.verification import CandidateVerifier
from minwise.search.workdir import WorkDirectory
from minwise.settings import SearchSettings
from minwise.spark.arrow_columns import Batches
from minwise.spark.collect import collect_documents, collect_pairs, collect_star_pairs
from minwise.spark.errors import spark_errors
from minwise.spark.pair_tasks import (
    CAP_COLUMNS,
    CELL_BYTES,
    COUNT_COLUMNS,
    candidate_pairs,
    needed_counts,
    verified_pairs,
)
from minwise.spark.read_tasks import ReadTask, plan_tasks, read_sets, read_signatures
from minwise.spark.stage_store import StageStore
from minwise.spark.write_kept import write_kept

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkEngine"]

# Band entries and candidate pairs that a task sorts: 30 MB of them during the shuffle.
PARTITION_ROWS = 1 << 20
LEAST_PARTITIONS = 4
# Documents per Parquet file of a stage that the driver writes.
TABLE_ROWS = 1 << 22


class SparkEngine:
    """Engine that runs all stages that touch texts or bands on Spark."""

    def __init__(self, session: "SparkSession", path: str | None, manifest: dict[str, Any]) -> None:
        """Create an engine.

        Args:
            session: Session that runs the stages.
            path: Directory or URL of finished stages; in the work directory of the job if it is None.
            manifest: Settings and inputs that distinguish one run from another.
        """
        self.session, self.path, self.manifest = session, path, manifest

    def find(self, job: SearchJob, *, needed: Needed = "pairs", for_report: bool = False) -> SearchResult:
        """Find the pairs of near-duplicates that the plan covers.

        All candidates are compared. With ``star``, the result has those pairs that the local engine compares, so that
        the figures of both reports are equal.
        """
        corpus, settings, work = job.corpus, job.settings, job.work
        stages = self._stages(work)
        if not work.has("documents"):
            check_columns(corpus)
        tasks = plan_tasks(corpus.sources)
        with job.progress.stage("read and sketch", None, "documents"):
            signatures = stages.run("signatures", lambda: read_signatures(self.session, corpus, settings, tasks))
            collect_documents(stages, corpus, work)
        documents = Documents(corpus, work)
        search = CandidateVerifier(job, documents, documents.keep_order(settings.keep), for_report=for_report)
        copies = search.collapse_copies()
        needed = "pairs" if needed == "components" else needed  # all candidates are compared anyway
        finished = finished_stage(work, needed, settings.verify)
        if finished is None:
            _PairFinder(stages, signatures, search, tasks).run(job.progress)
            finished = _collect(stages, search, needed, sampled=for_report)
        search.stage = finished
        return SearchResult.of(search, copies, search.text_cache)

    def complete(self, search: SearchResult, progress: Progress) -> SearchResult:
        """Return the result of the same search with all its pairs; they are compared already."""
        if search.is_complete:
            return search
        verifier = CandidateVerifier(search.job(progress), search.documents, search.order, for_report=True)
        with search.work.locked():
            if not search.work.has(verifier.stage):
                _collect(self._stages(search.work), verifier, "pairs", sampled=False)
        return SearchResult.of(verifier, search.copies, search.text_cache)

    def similarities(
        self, found: SearchResult, low: NDArray[np.uint32], high: NDArray[np.uint32]
    ) -> NDArray[np.float64]:
        """Return the exact similarities of pairs of documents, each of which is in a candidate pair."""
        stages = self._stages(found.work)
        pairs, positions = np.unique(low.astype(np.int64) << 32 | high, return_inverse=True)
        table = pa.table({"low": from_numpy(pairs >> 32), "high": from_numpy(pairs & (2**32 - 1))})
        name = f"chained-{sha256(pairs.tobytes()).hexdigest()[:8]}"
        stage = stages.put(name, [table])
        stages.run(f"{name}-compared", lambda: _compare(stages, stage, found.settings, 0.0, len(pairs)))
        batches = stages.batches(f"{name}-compared", ["similarity"])
        similarity: NDArray[np.float64] = np.concatenate([to_numpy(batch.column("similarity")) for batch in batches])
        return similarity[positions]

    def _stages(self, work: WorkDirectory) -> StageStore:
        return StageStore(self.session, self.path or str(work.folder / "spark"), self.manifest)

    def copy_kept(
        self, found: SearchResult, keep: NDArray[np.bool_], staging: StagingDirectory, progress: Progress
    ) -> int:
        """Write the kept rows, several sources at a time, in executors; return their number."""
        with spark_errors("write"), progress.stage("write", len(keep), "documents") as stage:
            written = write_kept(self.session, found.documents, keep, f"{staging.url or staging.folder}/kept")
            stage.advance(len(keep))
        return written


class _PairFinder:
    """Stages from signatures to verified pairs. Documents are known by their places in the keep order."""

    def __init__(
        self, stages: StageStore, signatures: "DataFrame", search: CandidateVerifier, tasks: list[ReadTask]
    ) -> None:
        self.stages, self.signatures, self.search, self.tasks = stages, signatures, search, tasks
        self.settings, self.documents, self.order = search.settings, search.documents, search.order

    def run(self, progress: Progress) -> None:
        """Compare all candidates."""
        with spark_errors("candidates"), progress.stage("band", None, "candidates"):
            candidates = self.stages.run("candidates", self._candidates)
            count, *_ = _totals(candidates)
        pairs = _pairs(candidates)
        with spark_errors("sets"), progress.stage("shingle candidates", None, "documents"):
            self._make_sets(pairs)
        with progress.stage("verify", count, "candidates") as stage:
            compare = lambda: _compare(self.stages, pairs, self.settings, self.search.floor, count)  # noqa: E731
            self.stages.run("verified", compare, rows_per_batch=_rows_per_batch(self.stages))
            stage.advance_to(count)

    def _candidates(self) -> "DataFrame":
        entries = self._by_place("keys").withColumnRenamed("value", "keys")
        partitions = _partitions(len(self.documents) * self.settings.plan.bands)
        return candidate_pairs(entries, self.settings, partitions=partitions, protected=self.documents.protected)

    def _by_place(self, column: str) -> "DataFrame":
        """Return ``place`` and a column of the signatures, as ``value``, of the documents that can be in a bucket."""
        numbered = self._by_document(column)
        if self.order.is_document_order:
            followers = np.flatnonzero((self.documents.states == FILLED) & (self.search.members == NO_DOCUMENT))
            if len(followers):
                copies = self.stages.put("followers", _tables(document=followers))
                numbered = numbered.join(copies, "document", "left_anti")
            return numbered.withColumnRenamed("document", "place")
        return numbered.join(self._places(), "document").select("place", "value")

    def _places(self) -> "DataFrame":
        """Return ``document`` and ``place`` of the documents that can be in a bucket."""
        documents = np.flatnonzero(self.search.members != NO_DOCUMENT)
        return self.stages.put("places", _tables(document=documents, place=self.search.members[documents]))

    def _by_document(self, column: str) -> "DataFrame":
        """Return ``document`` and a column of the signatures, as ``value``, without rows after the end of a source."""
        starts, rows = self.documents.starts, np.array(self.documents.rows, dtype=np.int64)

        def number(batches: Batches) -> Batches:
            for batch in batches:
                source, row = (to_numpy(batch.column(name)) for name in ("source", "row"))
                numbered = {"document": from_numpy(starts[source] + row), "value": batch.column("value")}
                yield pa.record_batch(numbered).filter(from_bools(row < rows[source]))

        chosen = self.signatures.filter(f"{column} is not null")
        named = chosen.select("source", "row", chosen[column].alias("value"))
        return named.mapInArrow(number, "document long, value binary")

    def _make_sets(self, pairs: "DataFrame") -> None:
        """Make the stage of shingles or packed slots that candidates are compared by, unless nothing is verified."""
        if self.settings.verify == "none" or self.stages.is_finished("sets"):
            return
        wanted = pairs.select(pairs["low"].alias("place")).union(pairs.select("high")).distinct()
        if self.settings.verify == "signature":
            packed = self._by_place("packed").join(wanted, "place").withColumnRenamed("value", "elements")
            self.stages.run("sets", lambda: packed)
            return
        if self.order.is_document_order:
            documents = wanted.withColumn("document", wanted["place"])
        else:
            documents = wanted.join(self._places(), "place")
        corpus, starts = self.documents.corpus, self.documents.starts
        self.stages.run("sets", lambda: read_sets(documents, corpus, self.settings, self.tasks, starts))
        expected, read = wanted.count(), self.stages.rows("sets")
        if expected != read:
            raise InputError(
                f"the input changed while it was read: {expected} documents were to be read again, {read} were"
            )


def _collect(stages: StageStore, search: CandidateVerifier, needed: Needed, *, sampled: bool) -> str:
    """Write the verified pairs that are needed to the work directory; return the name of their files."""
    work, threshold, candidates = search.work, search.settings.plan.threshold, stages.read("candidates")
    count, proposals, caps = _totals(candidates)
    stage = stage_of(needed, proposals, search.settings.verify)
    if stage == VERIFIED:
        collect_pairs(stages, work, threshold)
        counts = complete_counts(count, proposals)
    else:
        classes = sample_classes(proposals) if sampled else 0
        removed = collect_star_pairs(stages, work, threshold, len(search.documents), classes)
        with_kept, in_sample = needed_counts(_pairs(candidates), removed, classes)
        counts = star_counts(proposals, with_kept + in_sample, in_sample, classes)
    work.write_json(stage, {**counts, "caps": caps})
    return stage


def _pairs(candidates: "DataFrame") -> "DataFrame":
    return candidates.filter("low is not null").select("low", "high")


def _totals(candidates: "DataFrame") -> tuple[int, int, BucketCounts]:
    """Return the number of candidates, of proposals, and the effects of the bucket cap."""
    from pyspark.sql import functions

    row = candidates.agg(functions.count("low"), *(functions.max(name) for name in COUNT_COLUMNS)).collect()[0]
    counts = {name: value or 0 for name, value in zip(COUNT_COLUMNS, row[1:], strict=True)}
    return row[0], counts["proposals"], BucketCounts(*(counts[name] for name in CAP_COLUMNS))


def _compare(stages: StageStore, pairs: "DataFrame", settings: SearchSettings, floor: float, count: int) -> "DataFrame":
    """Return pairs with their similarity, in order."""
    sets = pairs if settings.verify == "none" else stages.read("sets")  # without verification it is not used
    size = stages.bytes("sets")
    partitions = max(_partitions(count), -(-size // CELL_BYTES))
    verified = verified_pairs(pairs, sets, settings, floor=floor, set_bytes=size, partitions=partitions)
    return verified.orderBy("low", "high")


def _rows_per_batch(stages: StageStore) -> int | None:
    """Return the number of sets per Arrow batch that makes a batch about as large as a cell."""
    rows = stages.rows("sets")
    return int(np.clip(CELL_BYTES * rows // max(1, stages.bytes("sets")), 16, 10_000)) if rows else None


def _partitions(rows: int) -> int:
    return max(LEAST_PARTITIONS, -(-rows // PARTITION_ROWS))


def _tables(**columns: NDArray[Any]) -> Iterator[pa.Table]:
    """Yield columns of integers as tables of bounded size, at least one."""
    length = len(next(iter(columns.values())))
    for start in range(0, max(1, length), TABLE_ROWS):
        piece = slice(start, start + TABLE_ROWS)
        yield pa.table({name: from_numpy(values[piece].astype(np.int64)) for name, values in columns.items()})
