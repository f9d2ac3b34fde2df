"""Spark engine: executors read, sketch, band and compare; the driver holds a few numbers per document and no text.

Every stage is a directory of work files: the ``signatures`` of all documents, the ``buckets`` of equal keys, and the
compared pairs of documents that share one. Between them the driver ranks documents and plans which task compares
what. Everything after the compared pairs is done by the code of the local engine.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from minwise._internal.array_files import Arrays
from minwise.inputs.row_edits import RowEdits
from minwise.progress import NullProgress, Progress
from minwise.search.bands import NO_DOCUMENT, pack_pairs, unpack_pairs
from minwise.search.candidates import VERIFIED
from minwise.search.clustering import CopyGroups
from minwise.search.contamination import Contamination, EvalItems
from minwise.search.documents import Documents, SearchJob, check_columns
from minwise.search.engine import SearchResult, StagingDirectory
from minwise.search.exact_join import CONTAINED, write_contained
from minwise.search.needed_pairs import Needed, finished_stage, planned_stage
from minwise.search.pair_runs import write_run
from minwise.search.passages import Passages
from minwise.search.value_groups import GROUPS
from minwise.search.verification import CandidateVerifier
from minwise.search.weighting import without_bands
from minwise.search.workdir import WorkDirectory
from minwise.settings import ContaminationRule, PassageSettings, RunLimits
from minwise.spark.arrow_columns import bytes_per_text_byte
from minwise.spark.band_tasks import BucketGroups, buckets_of_pairs, part_count, write_buckets
from minwise.spark.cell_search import CellTask
from minwise.spark.cells import (
    CELL_BYTES,
    MOST_CELL_BYTES,
    NEEDED_SECONDS,
    PAIR_SECONDS,
    CellPlan,
    plan_cells,
    plan_grid,
)
from minwise.spark.collect import (
    collect_compared,
    collect_documents,
    merged_pairs,
    total_caps,
    total_counts,
    values_of_spans,
)
from minwise.spark.contamination import ContaminationStages
from minwise.spark.errors import spark_errors
from minwise.spark.passages import PassageStages
from minwise.spark.read_tasks import KEYS, ReadTask, plan_tasks, task_bounds, write_signatures
from minwise.spark.stage_store import StageFile, StageFiles, StageStore
from minwise.spark.verify_tasks import CellInputs, compare_cells
from minwise.spark.weighting import WEIGHTED_KEYS, TaskWeights, WeightStages
from minwise.spark.write_kept import write_kept

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkEngine"]


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
        """Find the pairs of near-duplicates that the plan covers."""
        corpus, settings, work = job.corpus, job.settings, job.work
        stages = self._stages(work)
        work.resumed = work.resumed or stages.resumed  # at a URL, the stages are all that is left of an earlier run
        if not work.has("documents"):
            check_columns(corpus)
        tasks = plan_tasks(corpus.sources)
        with job.progress.stage("read and sketch", None, "documents"):
            first = without_bands(job).settings if settings.weighted else settings
            make = lambda: write_signatures(self.session, stages.location, corpus, first, tasks)  # noqa: E731
            collect_documents(stages.run_tasks("signatures", make), corpus, work)
        documents = Documents(corpus, work)
        documents.check_values()
        search = CandidateVerifier(job, documents, documents.keep_order(settings.keep_rule), for_report=for_report)
        copies = search.collapse_copies()
        if settings.measure == "containment":
            copies = _PairStages(stages, search, tasks).contained(copies, job.progress)
            return SearchResult.of(search, copies, search.text_cache)
        finished = finished_stage(work, needed, settings.verify)
        if finished is None:
            pairs = _PairStages(stages, search, tasks)
            finished = pairs.run(needed, job.progress, sampled=for_report)
        search.stage = finished
        return SearchResult.of(search, copies, search.text_cache)

    def find_passages(self, job: SearchJob, wanted: PassageSettings, *, only_reference: bool) -> Passages:
        """Find every repeated passage, as :func:`minwise.search.passages.find_passages` does."""
        stages = self._stages(job.work)
        job.work.resumed = job.work.resumed or stages.resumed
        return PassageStages(stages, job, wanted).run(only_reference=only_reference)

    def find_contamination(self, job: SearchJob, items: EvalItems, rule: ContaminationRule) -> Contamination:
        """Find evaluation items, as :func:`minwise.search.contamination.find_contamination` does."""
        stages = self._stages(job.work)
        job.work.resumed = job.work.resumed or stages.resumed
        return ContaminationStages(stages, job, items, rule).run()

    def complete(self, search: SearchResult, progress: Progress) -> SearchResult:
        """Return the result of the same search with all its pairs."""
        if search.is_complete:
            return search
        verifier = CandidateVerifier(search.job(progress), search.documents, search.order, for_report=True)
        verifier.collapse_copies()
        with search.work.locked():
            if not search.work.has(verifier.stage):
                tasks = plan_tasks(search.documents.corpus.sources)
                _PairStages(self._stages(search.work), verifier, tasks).run("pairs", progress, sampled=False)
        return SearchResult.of(verifier, search.copies, search.text_cache)

    def similarities(
        self, found: SearchResult, low: NDArray[np.uint32], high: NDArray[np.uint32]
    ) -> NDArray[np.float64]:
        """Return the exact similarities of pairs of documents, given by rank."""
        pairs, positions = np.unique(pack_pairs(np.minimum(low, high), np.maximum(low, high)), return_inverse=True)
        stages, tasks = self._stages(found.work), plan_tasks(found.documents.corpus.sources)
        verifier = CandidateVerifier(found.job(NullProgress()), found.documents, found.order)
        # The same pairs are compared twice, with and without a discount.
        kind = "discounted" if found.settings.discount == "common" else "chained"
        name = f"{kind}-{sha256(pairs.tobytes()).hexdigest()[:8]}"
        stages.write_files(name, [("000000", buckets_of_pairs(*unpack_pairs(pairs))._asdict())])
        pairs_of = _PairStages(stages, verifier, tasks)
        task = CellTask(found.settings, floor=0.0, threshold=0.0, stage=VERIFIED, weights=pairs_of.task_weights)
        compared = pairs_of.compare(name, ["000000"], task)
        similarity = np.concatenate([block.similarity for block in merged_pairs(compared)])
        return similarity[positions]

    def _stages(self, work: WorkDirectory) -> StageStore:
        return StageStore(self.session, self.path or str(work.folder / "spark"), self.manifest)

    def copy_kept(
        self,
        documents: Documents,
        limits: RunLimits,
        keep: NDArray[np.bool_],
        staging: StagingDirectory,
        progress: Progress,
        edits: Mapping[int, RowEdits] | None = None,
    ) -> int:
        """Write the kept rows with their edits, several sources at a time, in executors; return their number."""
        with spark_errors("write"), progress.stage("write", len(keep), "documents") as stage:
            written = write_kept(self.session, documents, keep, f"{staging.url or staging.folder}/kept", edits or {})
            stage.advance(len(keep))
        return written


class _PairStages:
    """Stages from signatures to compared pairs. Documents are known by their ranks in the keep order."""

    def __init__(self, stages: StageStore, search: CandidateVerifier, tasks: list[ReadTask]) -> None:
        self.stages, self.search, self.tasks = stages, search, tasks
        self.settings, self.documents, self.order = search.settings, search.documents, search.order

    def run(self, needed: Needed, progress: Progress, *, sampled: bool) -> str:
        """Compare the pairs that are needed and write them to the work directory; return the name of their files."""
        if self.settings.weighted:
            with progress.stage("count and sketch", None, "documents"):
                self._weights.run()
                if sampled:
                    self.search.note_common_phrases(self._weights.common_sets())
        with progress.stage("band", None, "documents"):
            buckets = self._buckets()
        proposals = sum(file.facts["pairs"] for file in buckets)
        stage, classes = planned_stage(needed, proposals, self.settings.verify, sampled=sampled)
        limits = self.search.floor, self.settings.plan.threshold
        groups = self._shared_groups() if self.settings.across is not None else None
        task = CellTask(self.settings, *limits, stage, classes, weights=self.task_weights, groups=groups)
        with progress.stage("verify", proposals, "candidates") as verifying:
            compared = self.compare("buckets", [file.name for file in buckets], task)
            verifying.advance_to(proposals)
        collect_compared(compared, self.search.work, stage)
        counts = total_counts([file.facts for file in compared.files if file.facts], proposals, classes)
        self.search.work.write_json(stage, {**counts, "caps": total_caps([file.facts["counts"] for file in buckets])})
        return stage

    def contained(self, copies: CopyGroups, progress: Progress) -> CopyGroups:
        """Write the pairs of documents of which one lies in the other; return the copies by their new ranks.

        All documents meet in the cells of a grid. Their sizes, which decide the new ranks, come from these cells.
        """
        members = np.sort(self.search.members[self.search.members != NO_DOCUMENT]).astype(np.int64)
        plan = plan_grid(members, self._set_bytes())
        limits = self.search.floor, self.settings.plan.threshold
        protected = self.order.protected
        groups = self._shared_groups()
        task = CellTask(self.settings, *limits, "containment", grid=plan.grids[0], protected=protected, groups=groups)
        with progress.stage("join", len(members), "sets") as joining:
            compared = self.compare("sets", [], task, plan)
            joining.advance_to(len(members))
        sizes, before = np.zeros(len(self.documents), dtype=np.int64), self.order.document_at
        for file, files in compared.opened():
            cell = files.open(file.name)
            sizes[before[cell.read("ranks")]] = cell.read("sizes")
        copies = self.search.order_by_size(copies, sizes)
        if not self.search.work.has(VERIFIED):
            rank_of = self.search.order.rank_of[before]
            for number, (file, files) in enumerate(compared.opened()):
                low, high, similarity = (files.open(file.name).read(name) for name in ("low", "high", "similarity"))
                write_run(
                    self.search.work, f"{CONTAINED}{number:06}", pack_pairs(rank_of[low], rank_of[high]), similarity
                )
            write_contained(self.search)
        return copies

    def _shared_groups(self) -> str | None:
        """Send the group of each rank to the tasks; return where it is, None if there are no groups."""
        rule = self.search.pair_rule
        if rule is None:
            return None
        self.stages.write_files(GROUPS, [(GROUPS, {GROUPS: rule.groups})])
        return self.stages.location

    @cached_property
    def _weights(self) -> WeightStages:
        return WeightStages(self.stages, self.search, self.tasks)

    @property
    def task_weights(self) -> TaskWeights | None:
        """Where tasks read the weights of elements; None if all weigh the same."""
        return self._weights.weights if self.settings.weighted else None

    @cached_property
    def _key_files(self) -> list[StageFile]:
        return [file for file in self.stages.files(self._key_stage) if file.name.endswith(KEYS)]

    @property
    def _key_stage(self) -> str:
        return WEIGHTED_KEYS if self.settings.weighted else "signatures"

    def _ranks_of(self, file: StageFile) -> NDArray[np.uint32]:
        """Return the rank of each document in a file of keys; ``NO_DOCUMENT`` for those that are in no bucket."""
        return values_of_spans(file.facts["spans"], self.documents, self.search.members)

    def _rank_arrays(self, file: StageFile) -> Arrays:
        """Return the rank of each document in a file of keys, and its group if only those of one share buckets."""
        ranks = {"ranks": self._ranks_of(file)}
        if self.search.groups is None or self.settings.within is None:
            return ranks
        return {**ranks, GROUPS: values_of_spans(file.facts["spans"], self.documents, self.search.groups)}

    def _buckets(self) -> list[StageFile]:
        """Return the files of the buckets of all documents."""
        names = [file.name for file in self._key_files]
        entries = int(np.count_nonzero(self.search.members != NO_DOCUMENT)) * self.settings.plan.bands

        def make() -> "DataFrame":
            self.stages.write_files("ranks", ((file.name, self._rank_arrays(file)) for file in self._key_files))
            session, location, protected = self.stages.session, self.stages.location, self.order.protected
            parts, stage = part_count(entries), self._key_stage
            return write_buckets(session, location, names, self.settings, parts, protected, stage)

        return self.stages.run_tasks("buckets", make).files

    def compare(self, buckets: str, names: list[str], task: CellTask, given: CellPlan | None = None) -> StageFiles:
        """Return the files of the compared pairs of buckets, which are the files ``names`` of a stage."""

        def make() -> "DataFrame":
            plan = given or self._plan(buckets, names, task)
            inputs = CellInputs(
                location=self.stages.location,
                plan=f"plan-{task.stage}-{buckets}",
                buckets=buckets,
                bucket_files=names,
                set_files=self._set_files,
            )
            self.stages.write_files(inputs.plan, self._plan_files(plan, inputs))
            reading = (self.documents.corpus, self.tasks, self.documents.starts)
            return compare_cells(self.stages.session, inputs, plan, task, reading, f"{task.stage}-{buckets}")

        return self.stages.run_tasks(f"{task.stage}-{buckets}", make)

    def _plan(self, buckets: str, names: list[str], task: CellTask) -> CellPlan:
        all_pairs = task.stage == VERIFIED
        # Sets are on disk; packed signatures are in memory.
        most = MOST_CELL_BYTES if self.settings.verify == "exact" else 2 * CELL_BYTES
        return plan_cells(
            lambda: self._groups(buckets, names),
            self._set_bytes(),
            pair_seconds=PAIR_SECONDS if all_pairs else NEEDED_SECONDS,
            most_bytes=most if all_pairs else None,
        )

    def _groups(self, stage: str, names: list[str]) -> Iterator[BucketGroups]:
        for name in names:
            with self.stages.directory.reading(stage, name) as work:
                file = work.open(name)
                yield BucketGroups(file.read("buckets"), file.read("members"))

    def _set_bytes(self) -> NDArray[np.float64]:
        """Return the approximate bytes of the set of each rank."""
        if self.settings.verify != "exact":
            return np.full(len(self.documents), 2.0 * self.settings.plan.slots)
        lengths = self.documents.column("lengths")[self.order.document_at].astype(np.float64)
        return bytes_per_text_byte(self.settings) * lengths

    @property
    def _set_files(self) -> list[str]:
        """Names of the files of a plan that say which documents are in which cell."""
        if self.settings.verify == "signature":
            return [file.name for file in self._key_files]
        return [] if self.settings.verify == "none" else [f"sets-{number:06}" for number in range(len(self.tasks))]

    def _plan_files(self, plan: CellPlan, inputs: CellInputs) -> Iterator[tuple[str, Arrays]]:
        """Yield which documents, by task or file of keys, and which buckets are in which cell."""
        if self.settings.verify == "signature":
            for file in self._key_files:
                rows, cells = plan.cells_of(self._ranks_of(file))
                yield file.name, {"documents": rows, "ranks": self._ranks_of(file)[rows], "cells": cells}
        if self.settings.verify == "exact":
            yield from zip(inputs.set_files, self._documents_of_tasks(plan), strict=True)
        for name, groups in zip(inputs.bucket_files, self._groups(inputs.buckets, inputs.bucket_files), strict=True):
            yield name, {"cells": plan.cell_of[groups.first_members]}

    def _documents_of_tasks(self, plan: CellPlan) -> Iterator[Arrays]:
        """Yield the documents of each task with their ranks and cells, ascending by document."""
        for first, stop in task_bounds(self.tasks, self.documents.starts):
            ranks = self.order.rank_of[first:stop]
            rows, cells = plan.cells_of(ranks)
            yield {"documents": (first + rows).astype(np.uint32), "ranks": ranks[rows], "cells": cells}
