"""The Spark engine: executors read, sketch, band and compare; what is left of each document fits the driver.

Every stage is a directory of Parquet files: ``signatures`` of all documents, ``candidates``, the ``sets`` of those that
are in a candidate pair, and ``verified`` pairs. The driver holds a few numbers per document and no text. Everything
after the verified pairs is what the local engine does with them.
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
from minwise.search.bands import FILLED, NOBODY, BucketCounts
from minwise.search.documents import Documents
from minwise.search.engine import Found, Job, Staging
from minwise.search.verification import Search
from minwise.search.workdir import Work
from minwise.settings import FindSettings
from minwise.spark.candidates import CAP_COLUMNS, candidate_pairs
from minwise.spark.copying import copy_sources
from minwise.spark.errors import spark_errors
from minwise.spark.gathering import gather_documents, gather_pairs
from minwise.spark.reading import Batches, Task, plan_tasks, read_sets, read_signatures
from minwise.spark.stages import Stages
from minwise.spark.verify import CELL_BYTES, verified_pairs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkEngine"]

# Band entries and candidate pairs that a task sorts: 30 MB of them while they are on their way.
PART_ROWS = 1 << 20
LEAST_PARTS = 4
# Documents whose places are written at once.
TABLE_ROWS = 1 << 22


class SparkEngine:
    """All stages that touch texts or bands, by Spark."""

    def __init__(self, session: "SparkSession", place: str | None, manifest: dict[str, Any]) -> None:
        """An engine.

        Args:
            session: Who does the work.
            place: Where finished stages are; beside the other pieces if it is None.
            manifest: What tells one run from another.
        """
        self.session, self.place, self.manifest = session, place, manifest

    def find(self, job: Job, *, for_report: bool = False) -> Found:
        """Finds every pair of near-duplicates, as far as the plan goes."""
        corpus, settings, work = job.corpus, job.settings, job.work
        stages = self._stages(work)
        tasks = plan_tasks(corpus.sources)
        with job.progress.stage("read and sketch", None, "documents"):
            signatures = stages.run("signatures", lambda: read_signatures(self.session, corpus, settings, tasks))
            gather_documents(stages, corpus, work)
        documents = Documents(corpus, work)
        search = Search(job, documents, documents.keep_order(settings.keep), for_report=for_report)
        copies = search.collapse_copies()
        if not work.has("verified"):
            _Finding(stages, signatures, search, tasks).run(job.progress)
        return search.found(copies, self)

    def similarities(self, found: Found, low: NDArray[np.uint32], high: NDArray[np.uint32]) -> NDArray[np.float64]:
        """The exact similarity of documents that are in candidate pairs."""
        stages = self._stages(found.work)
        pairs, places = np.unique(low.astype(np.int64) << 32 | high, return_inverse=True)
        table = pa.table({"low": from_numpy(pairs >> 32), "high": from_numpy(pairs & (2**32 - 1))})
        name = f"chained-{sha256(pairs.tobytes()).hexdigest()[:8]}"
        asked = stages.put(name, [table])
        stages.run(f"{name}-compared", lambda: _compare(stages, asked, found.settings, 0.0, len(pairs)))
        answers = [to_numpy(batch.column("similarity")) for batch in stages.batches(f"{name}-compared", ["similarity"])]
        similarity: NDArray[np.float64] = np.concatenate(answers)[places]
        return similarity

    def _stages(self, work: Work) -> Stages:
        return Stages(self.session, self.place or str(work.folder / "spark"), self.manifest)

    def copy_kept(self, found: Found, keep: NDArray[np.bool_], staging: Staging, progress: Progress) -> int:
        """Copies the kept rows, several sources at a time, in executors."""
        with spark_errors("write"), progress.stage("write", len(keep), "documents") as stage:
            written = copy_sources(self.session, found.documents, keep, f"{staging.url or staging.folder}/kept")
            stage.advance(len(keep))
        return written


class _Finding:
    """From signatures to verified pairs, in places of the keep order."""

    def __init__(self, stages: Stages, signatures: "DataFrame", search: Search, tasks: list[Task]) -> None:
        self.stages, self.signatures, self.search, self.tasks = stages, signatures, search, tasks
        self.settings, self.documents, self.order = search.settings, search.documents, search.order

    def run(self, progress: Progress) -> None:
        """Leaves the verified pairs in the work directory."""
        with spark_errors("candidates"), progress.stage("band", None, "candidates"):
            candidates = self.stages.run("candidates", self._candidates)
            count, caps = _totals(candidates)
        pairs = candidates.filter("low is not null").select("low", "high")
        with spark_errors("sets"), progress.stage("shingle candidates", None, "documents"):
            self._spill_sets(pairs)
        with progress.stage("verify", count, "candidates") as stage:
            compare = lambda: _compare(self.stages, pairs, self.settings, self.search.floor, count)  # noqa: E731
            self.stages.run("verified", compare, rows_per_batch=_rows_per_batch(self.stages))
            gather_pairs(self.stages, self.search.work, self.settings.plan.threshold)
            stage.advance_to(count)
        self.search.work.note("verified", {"caps": caps, "candidates": count})

    def _candidates(self) -> "DataFrame":
        entries = self._by_place("keys").withColumnRenamed("value", "keys")
        partitions = _parts(len(self.documents) * self.settings.plan.bands)
        return candidate_pairs(entries, self.settings, partitions=partitions, protected=self.documents.protected)

    def _by_place(self, column: str) -> "DataFrame":
        """``place`` and, as ``value``, a column of the signatures of those documents that can be in a bucket."""
        numbered = self._numbered(column)
        if self.order.is_document_order:
            followers = np.flatnonzero((self.documents.states == FILLED) & (self.search.members == NOBODY))
            if len(followers):
                gone = self.stages.put("followers", _tables(document=followers))
                numbered = numbered.join(gone, "document", "left_anti")
            return numbered.withColumnRenamed("document", "place")
        return numbered.join(self._places(), "document").select("place", "value")

    def _places(self) -> "DataFrame":
        """``document`` and ``place`` of those that can be in a bucket."""
        documents = np.flatnonzero(self.search.members != NOBODY)
        return self.stages.put("places", _tables(document=documents, place=self.search.members[documents]))

    def _numbered(self, column: str) -> "DataFrame":
        """``document`` and, as ``value``, a column of the signatures; of sources that ended, only what came before."""
        starts, rows = self.documents.starts, np.array(self.documents.rows, dtype=np.int64)

        def number(batches: Batches) -> Batches:
            for batch in batches:
                source, row = (to_numpy(batch.column(name)) for name in ("source", "row"))
                numbered = {"document": from_numpy(starts[source] + row), "value": batch.column("value")}
                yield pa.record_batch(numbered).filter(from_bools(row < rows[source]))

        chosen = self.signatures.filter(f"{column} is not null")
        named = chosen.select("source", "row", chosen[column].alias("value"))
        return named.mapInArrow(number, "document long, value binary")

    def _spill_sets(self, pairs: "DataFrame") -> None:
        """Makes the stage of what candidates are compared by, if they are."""
        if self.settings.verify == "none" or self.stages.is_finished("sets"):
            return
        wanted = pairs.select(pairs["low"].alias("place")).union(pairs.select("high")).distinct()
        if self.settings.verify == "signature":
            packed = self._by_place("packed").join(wanted, "place").withColumnRenamed("value", "elements")
            self.stages.run("sets", lambda: packed)
            return
        if self.order.is_document_order:
            known = wanted.withColumn("document", wanted["place"])
        else:
            known = wanted.join(self._places(), "place")
        corpus, starts = self.documents.corpus, self.documents.starts
        self.stages.run("sets", lambda: read_sets(known, corpus, self.settings, self.tasks, starts))
        expected, read = wanted.count(), self.stages.rows("sets")
        if expected != read:
            raise InputError(
                f"the input changed while it was read: {expected} documents were to be read again, {read} were"
            )


def _totals(candidates: "DataFrame") -> tuple[int, BucketCounts]:
    """How many candidates there are, and what the cap met."""
    from pyspark.sql import functions

    row = candidates.agg(functions.count("low"), *(functions.max(name) for name in CAP_COLUMNS)).collect()[0]
    return row[0], BucketCounts(*(value or 0 for value in row[1:]))


def _compare(stages: Stages, pairs: "DataFrame", settings: FindSettings, floor: float, count: int) -> "DataFrame":
    """Pairs with their similarity, in order."""
    sets = pairs if settings.verify == "none" else stages.read("sets")  # which nobody looks at
    size = stages.bytes("sets")
    partitions = max(_parts(count), -(-size // CELL_BYTES))
    verified = verified_pairs(pairs, sets, settings, floor=floor, set_bytes=size, partitions=partitions)
    return verified.orderBy("low", "high")


def _rows_per_batch(stages: Stages) -> int | None:
    """How many sets Python takes at once, so that they are about as large as a cell."""
    rows = stages.rows("sets")
    return int(np.clip(CELL_BYTES * rows // max(1, stages.bytes("sets")), 16, 10_000)) if rows else None


def _parts(rows: int) -> int:
    return max(LEAST_PARTS, -(-rows // PART_ROWS))


def _tables(**columns: NDArray[Any]) -> Iterator[pa.Table]:
    """Columns of numbers as tables of a bounded size, one at least."""
    length = len(next(iter(columns.values())))
    for start in range(0, max(1, length), TABLE_ROWS):
        piece = slice(start, start + TABLE_ROWS)
        yield pa.table({name: from_numpy(values[piece].astype(np.int64)) for name, values in columns.items()})
