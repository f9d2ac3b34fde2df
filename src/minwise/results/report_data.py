"""Report data: the content of ``report.json`` and ``run.json``.

``report.json`` depends only on the documents and the settings (:class:`DedupReport`). Everything that differs from run
to run, such as times and memory, is in ``run.json`` (:class:`RunRecord`). :mod:`minwise.results.report_writer` writes
both files and the page.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.formatting import plural
from minwise._internal.system import peak_memory_bytes
from minwise.errors import MinwiseError
from minwise.inputs.files import File
from minwise.inputs.source import Source
from minwise.inputs.text_files import TextFiles
from minwise.progress import Stopwatch
from minwise.report.cluster_section import MANY_DOCUMENTS
from minwise.results.marks import ClusterFacts
from minwise.results.notes import report_notes
from minwise.results.pairs import cap_report, identities
from minwise.results.removals import DedupDecision, count_by_threshold
from minwise.results.rule_report import rule_counts, rule_notes, rule_warnings
from minwise.results.value_counts import value_counts
from minwise.search.bands import FAULTY
from minwise.search.common_phrases import COMMON
from minwise.search.documents import Corpus, Documents
from minwise.search.engine import FinishedSearch
from minwise.search.stored_state import StateSource
from minwise.search.verification import BINS, count_by_bin, floor_bin

__all__ = [
    "NAMED_PAIRS",
    "DedupReport",
    "RunRecord",
    "SimilarityStats",
    "kept_near_misses",
    "largest_clusters",
    "loss_warnings",
    "removal_counts",
    "report_warnings",
    "size_distribution",
    "source_counts",
    "source_losses",
]

# Clusters, members of each, and pairs just below the threshold that a report names.
NAMED_CLUSTERS = 10
NAMED_MEMBERS = 20
NAMED_PAIRS = 20


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Facts of a run that are not part of its result.

    Attributes:
        watch: Start time, and the duration of each stage.
        directory: The working directory, which relative names of inputs refer to.
        inputs: Fingerprints at the start, of the inputs that are not only compared against.
        against: Fingerprints of the others; of text files with the path and the id of each.
        options: The settings of the call that decide the result, as plain values.
        evals: Fingerprints of evaluation items, in the form of ``against``; None of runs without them.
        memory_before: Peak memory of the process at the start, which is not memory of the run; None if not measured.
        against_run: Path and digest of the earlier runs that it is compared with.
    """

    watch: Stopwatch
    directory: str
    inputs: list[dict[str, object]]
    against: list[dict[str, object]]
    options: dict[str, Any]
    memory_before: int | None
    against_run: list[dict[str, str]] = field(default_factory=list)
    evals: list[dict[str, object]] | None = None

    @classmethod
    def begin(
        cls,
        corpus: Corpus,
        manifest: dict[str, Any],
        options: dict[str, Any],
        watch: Stopwatch,
        directory: str | None = None,
        against_run: list[dict[str, str]] | None = None,
    ) -> "RunRecord":
        """Return the record of a run that has read nothing yet.

        Fingerprints are taken this early so that an input that changes during the run is detected.

        Args:
            corpus: The sources.
            manifest: What identifies the run, with the fingerprints of the sources.
            options: The settings of the call that decide the result, as plain values.
            watch: Start time.
            directory: The directory that relative names refer to; the working directory if not given.
            against_run: Path and digest of the earlier runs that it is compared with.
        """
        against = _with_texts(corpus.sources, manifest["against"])
        folder, inputs, before = directory or str(Path.cwd()), manifest["inputs"], peak_memory_bytes()
        return cls(watch, folder, inputs, against, options, before, against_run or [])

    def with_evals(self, sources: Sequence[Source], fingerprints: list[dict[str, object]]) -> "RunRecord":
        """Return the record of a run that looks for evaluation items."""
        return replace(self, evals=_with_texts(sources, fingerprints))

    def resume(self) -> "RunRecord":
        """Return the record of the same run for a further step; its stages are added to a copy of the stopwatch."""
        return replace(self, watch=self.watch.resume())

    def to_dict(self, search: FinishedSearch) -> dict[str, Any]:
        """Return plain values as of now."""
        corpus, limits = search.documents.corpus, search.limits
        return {
            "minwise": _kernel.__version__,
            "started": self.watch.started.isoformat(timespec="seconds"),
            "seconds": round(self.watch.seconds, 3),
            "resumed": search.work.resumed,
            "stages": [{"stage": name, "seconds": round(seconds, 3)} for name, seconds in self.watch.stages],
            "peak_memory_bytes": peak_memory_bytes(),
            "peak_memory_before_bytes": self.memory_before,
            "memory_limit_bytes": limits.memory,
            "threads": limits.threads or os.cpu_count() or 1,
            "directory": File(self.directory).name,
            "root": File(corpus.root).name,
            "columns": {"text": list(corpus.columns.text), "id": corpus.columns.id},
            "format": corpus.format,
            **asdict(corpus.text_settings),
            "options": self.options,
            "inputs": self.inputs,
            "against": self.against,
            **({"against_run": self.against_run} if self.against_run else {}),
            **({} if self.evals is None else {"evals": self.evals}),
        }


def _with_texts(sources: Sequence[Source], fingerprints: list[dict[str, object]]) -> list[dict[str, object]]:
    """Return the fingerprints of the first sources; of text files with the path and the id of each."""
    return [
        {**entry, "texts": [[file.name, identity] for file, identity in zip(source.files, source.ids, strict=True)]}
        if isinstance(source, TextFiles)
        else entry
        for source, entry in zip(sources, fingerprints, strict=False)
    ]


class SimilarityStats:
    """Histogram of the similarities of pairs and near misses, and the closest near misses.

    Attributes:
        pairs: Number of pairs that reach the threshold.
    """

    def __init__(self, decision: DedupDecision) -> None:
        self._decision, self._search = decision, decision.search
        self._known = self._search.settings.verify != "none"
        self._first = floor_bin(decision.threshold)
        self._counts = self._search.sampled_pairs
        if not self._known:
            self.pairs = self._search.verified
            return
        for block in decision.blocks():
            self._counts = self._counts + count_by_bin(block.similarity)
        self.pairs = int(self._counts.sum())

    def counts(self) -> dict[str, Any] | None:
        """Return the number of pairs in each hundredth of similarity; None if similarities are unknown."""
        if not self._known:
            return None
        return {"from": self._first / BINS, "counts": (self._counts + self._decision.near_misses.counts).tolist()}

    def just_below(self) -> dict[str, Any] | None:
        """Return the number of candidates just below the threshold, and the closest pairs of kept documents.

        Pairs that no band proposed were not compared, so there may be more. The named pairs are among the 10,000 most
        similar near misses.
        """
        if not self._known:
            return None
        pairs = int(self._decision.near_misses.counts.sum())
        return {"from": self._first / BINS, "pairs": pairs, "closest": self._closest()}

    def _closest(self) -> list[dict[str, Any]]:
        left, right, similarity = (values[:NAMED_PAIRS] for values in kept_near_misses(self._decision))
        sides = (identities(self._search, side) for side in (left, right))
        return [
            {"similarity": value, "left": first, "right": second}
            for value, first, second in zip(similarity.tolist(), *sides, strict=True)
        ]


def kept_near_misses(decision: DedupDecision) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the known near misses of kept documents, the most similar first: both documents and their similarity."""
    near, removals, document_at = decision.near_misses.closest, decision.removals, decision.search.order.document_at
    low, high = (document_at[side].astype(np.int64) for side in (near.low, near.high))
    kept = np.flatnonzero(~(removals.include(low) | removals.include(high)))
    left, right, similarity = np.minimum(low, high)[kept], np.maximum(low, high)[kept], near.similarity[kept]
    order = np.lexsort((right, left, -similarity))
    return left[order], right[order], similarity[order]


def largest_clusters(decision: DedupDecision) -> list[dict[str, Any]]:
    """Return the largest clusters of which documents are removed.

    Each has the document that it is named after, its size, and the removed members least similar to that document; the
    number of these, if others are kept.
    """
    every, clusters = decision.clusters, []
    removals = every.where(decision.removals.include(every.documents))
    for first, removed in removals.largest(NAMED_CLUSTERS):
        indices = removals.least_similar(first, NAMED_MEMBERS)
        kept, *members = identities(decision.search, np.append([first], removals.documents[indices]))
        similarity = [None if np.isnan(value) else value for value in removals.similarity[indices].tolist()]
        with_similarity = [{**member, "similarity": value} for member, value in zip(members, similarity, strict=True)]
        size = int(every.sizes_of(np.array([first]))[0])
        copies = {} if removed == size - 1 else {"removed": removed}
        clusters.append({"kept": kept, "size": size, **copies, "members": with_similarity})
    return clusters


def size_distribution(sizes: NDArray[np.int64]) -> list[dict[str, int]]:
    """Return how many clusters have 2, 3 to 4, 5 to 8 … documents, up to the largest.

    >>> size_distribution(np.array([2, 2, 6]))[1:]
    [{'from': 3, 'to': 4, 'clusters': 0}, {'from': 5, 'to': 8, 'clusters': 1}]
    """
    powers = 2 ** np.arange(1, 33)
    counts = np.bincount(np.searchsorted(powers, sizes))
    return [
        {"from": power // 2 + 1, "to": power, "clusters": count}
        for power, count in zip(powers.tolist(), counts.tolist(), strict=False)
    ]


@dataclass(frozen=True)
class DedupReport:
    """Content of ``report.json``.

    Attributes:
        decision: The kept and removed documents.
        facts: What their clusters say of each document.
    """

    decision: DedupDecision
    facts: ClusterFacts

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, the same for the same documents and settings."""
        search = self.decision.search
        ending = self.decision.ending
        settings = {**search.settings.to_dict(), "threshold": self.decision.threshold, **ending.to_dict()}
        similarities = SimilarityStats(self.decision)
        notes = report_notes(search.documents, search.copies, search.settings)
        notes["notes"] += rule_notes(self._rules)
        return {
            "minwise": _kernel.__version__,
            "settings": settings,
            "on_error": search.documents.corpus.on_error,
            "plan": search.settings.plan_dict(),
            "counts": self.counts(),
            "text_bytes": self._text_bytes(),
            "clusters": self._clusters(),
            "largest_clusters": largest_clusters(self.decision),
            "pairs": replace(search.pair_counts, similar=similarities.pairs).to_dict(),
            "similarities": similarities.counts(),
            "just_below": similarities.just_below(),
            "thresholds": count_by_threshold(self.decision),
            "caps": cap_report(search),
            "sources": self._sources,
            "unreadable": search.documents.unreadable(),
            "duplicate_ids": 0 if (repeated := search.documents.repeated_ids()) is None else repeated.rows,
            "warnings": [*self._warnings(), *rule_warnings(self._rules)],
            **notes,
            **self._rules,
            **value_counts(self.decision),
            **self._common_phrases(),
            **self._target(),
            **self._weights(),
        }

    @cached_property
    def _rules(self) -> dict[str, Any]:
        """The values that rules name; empty if there are no rules."""
        return rule_counts(self.decision)

    def _common_phrases(self) -> dict[str, Any]:
        """Return the phrases that count least; nothing if all count alike, or documents are not texts."""
        work = self.decision.search.work
        return {"common_phrases": work.read_json(COMMON)["phrases"]} if work.has(COMMON) else {}

    def _weights(self) -> dict[str, Any]:
        """Return the sum of the weights of the kept rows; nothing if they have none."""
        weights = self.facts.total_weight
        return {} if weights is None else {"weights": weights}

    def _target(self) -> dict[str, Any]:
        """Return the wanted number of documents with the threshold that was chosen for it; nothing if there is none."""
        if self.decision.ending.target is None:
            return {}
        counts = self._counts
        wanted = {"wanted": self.decision.ending.target, "documents": self.decision.ending.wanted(counts["read"])}
        return {"target": {**wanted, "threshold": self.decision.threshold, "kept": counts["kept"]}}

    def counts(self) -> dict[str, int]:
        """Return how many documents were read, kept, removed and quarantined.

        If one document of each cluster is kept, every copy of an earlier document is removed, for that one or for the
        document that this one is removed for.
        """
        return dict(self._counts)

    @cached_property
    def _counts(self) -> dict[str, int]:
        search, removals = self.decision.search, self.decision.removals
        kept = int(np.count_nonzero(self.decision.keep))
        identical = removals.include(search.order.document_at[search.copies.followers()[0]])
        return removal_counts(search.documents.counts, kept, len(removals), int(np.count_nonzero(identical)))

    def _text_bytes(self) -> dict[str, int] | None:
        """Return bytes of the texts that were read, kept, removed and quarantined; None for sets."""
        documents, keep = self.decision.search.documents, self.decision.keep
        if self.decision.search.settings.shingler is None:
            return None
        read = kept = quarantined = 0
        end = -documents.protected  # ``keep`` starts at the first document of the input
        for part_lengths in documents.column_parts("lengths"):
            start, end = end, end + len(part_lengths)
            lengths, first = part_lengths[max(0, -start) :], max(0, start)
            faulty = documents.states[first + documents.protected :][: len(lengths)] == FAULTY
            read += int(lengths.sum())
            kept += int(lengths[keep[first : first + len(lengths)]].sum())
            quarantined += int(lengths[faulty].sum())
        return {"read": read, "kept": kept, "removed": read - kept - quarantined, "quarantined": quarantined}

    def _clusters(self) -> dict[str, Any]:
        removals = self.decision.clusters
        return {
            "of_two_or_more": removals.clusters,
            "largest": self._largest[1],
            "sizes": size_distribution(removals.sizes),
        }

    @cached_property
    def _largest(self) -> tuple[int, int]:
        """The kept document of the largest cluster, and the cluster's size."""
        largest = self.decision.clusters.largest(1)
        return (largest[0][0], largest[0][1] + 1) if largest else (0, min(1, len(self.decision.keep)))

    @cached_property
    def _sources(self) -> list[dict[str, Any]]:
        return source_counts(self.decision.search.documents, self.decision.keep)

    def _warnings(self) -> list[str]:
        documents, (kept, largest) = self.decision.search.documents, self._largest
        found = report_warnings(
            chained=int(np.count_nonzero(self.decision.removals.similarity < self.decision.threshold)),
            documents=len(documents) - documents.protected,
            largest=largest,
            largest_id=lambda: documents.ids(np.array([kept]))[0].as_py(),
            losses=source_losses(self._sources),
        )
        return [*found, *self._target_warnings()]

    def _target_warnings(self) -> Iterator[str]:
        """Yield a warning if even the lowest threshold leaves more documents than wanted."""
        lowest, target = self.decision.search.settings.plan.threshold, self._target().get("target")
        if target is not None and target["threshold"] == lowest and target["kept"] > target["documents"]:
            yield (
                f"target: {plural(target['documents'], 'document')} wanted, and the lowest threshold {lowest:g} leaves "
                f"{target['kept']:,}; set a lower threshold"
            )


def removal_counts(counts: dict[str, int], kept: int, removed: int, identical: int) -> dict[str, int]:
    """Return the counts of a report.

    Args:
        counts: Documents that were read, those that could not be used, and others.
        kept: Number of documents that are kept.
        removed: Number of documents that are removed.
        identical: How many of these have the same tokens as an earlier document.
    """
    if kept < 0 or counts["read"] != kept + removed + counts["quarantined"]:
        raise MinwiseError(f"a bug in minwise, please report it: {counts} but {kept} kept and {removed} removed")
    return {**counts, "kept": kept, "removed": removed, "removed_identical": identical}


def report_warnings(
    *,
    chained: int,
    documents: int,
    largest: int,
    largest_id: Callable[[], object],
    losses: Iterable[tuple[str, int, int]],
) -> list[str]:
    """Return the warnings of a report.

    Args:
        chained: Number of removed documents that are less similar to the kept one than the threshold.
        documents: Number of documents of the input.
        largest: Size of the largest cluster.
        largest_id: Returns the id of its kept document.
        losses: For each source its name, how many of its documents are removed, and how many it has.
    """
    warnings = []
    if chained:
        warnings.append(
            f"removed although less similar to the kept one than the threshold: {chained:,} documents; "
            "they were joined through others. group='star' removes none of these"
        )
    if documents >= MANY_DOCUMENTS and largest > documents / 100:
        warnings.append(f"one cluster holds {largest} of {documents} documents, more than 1 %: that of {largest_id()}")
    return [*warnings, *loss_warnings(losses)]


def source_counts(documents: Documents, keep: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """Return the number of rows of each source that were read, kept, removed and quarantined.

    Args:
        documents: The documents of the run.
        keep: A flag per row of the input: whether it is kept.
    """
    rows = []
    for number, source in enumerate(documents.corpus.sources):
        states = documents.states[documents.starts[number] : documents.starts[number + 1]]
        faulty = int(np.count_nonzero(states == FAULTY))
        rows_read = source.corpus_rows if isinstance(source, StateSource) else len(states)
        row = {"source": _source_name(source), "rows": rows_read, "quarantined": faulty}
        if number < documents.corpus.against:
            rows.append({**row, "against": True})
        else:
            kept = int(np.count_nonzero(keep[documents.input_slice(number)]))
            rows.append({**row, "kept": kept, "removed": len(states) - kept - faulty})
    return rows


def source_losses(sources: list[dict[str, Any]]) -> Iterator[tuple[str, int, int]]:
    """Yield the name of each source, how many of its documents are removed, and how many it has."""
    for row in sources:
        if not row.get("against"):
            yield row["source"] or "the input", row["removed"], row["rows"]


def loss_warnings(losses: Iterable[tuple[str, int, int]]) -> list[str]:
    """Return a warning for each source that loses more than half of its documents."""
    return [
        f"{source} loses {removed} of its {rows} documents, more than half"
        for source, removed, rows in losses
        if rows > 1 and removed > rows / 2
    ]


def _source_name(source: Source) -> str:
    """Return the name of a source, or the common parent and the number of its files."""
    paths = source.paths()
    if len(paths) < 2:
        return source.name
    parent = ""
    with suppress(ValueError):  # absolute and relative paths, or several drives
        parent = os.path.commonpath(paths)
    return f"{File(parent or '.').name} ({len(paths)} files)"
