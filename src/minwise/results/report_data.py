"""Run facts: a run in; what differs from run to run out, which is therefore in run.json and not in report.json."""

import os
import resource
import sys
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise.errors import MinwiseError
from minwise.inputs.source import Source
from minwise.progress import Stopwatch
from minwise.report.cluster_section import MANY_DOCUMENTS
from minwise.results.columns import identity
from minwise.results.removals import Outcome
from minwise.search.bands import FAULTY
from minwise.search.engine import Found
from minwise.search.near_misses import BINS, count_by_bin, floor_bin

__all__ = ["DedupReport", "RunFacts", "SimilarityReport", "cap_report", "largest_clusters", "size_distribution"]


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is known of a run beside its result.

    Attributes:
        watch: When it began, and how long its stages took.
        directory: Where it ran: relative names of inputs begin there.
        inputs: What changes when an input does, for each that is not only compared against, as of its beginning.
        memory_before: The most memory that the process had held when the run began: not all that it holds is the run's.
    """

    watch: Stopwatch
    directory: str
    inputs: list[dict[str, object]]
    memory_before: int

    @classmethod
    def begin(cls, inputs: list[dict[str, object]], watch: Stopwatch) -> "RunFacts":
        """The facts of a run that has read nothing yet: an input that changes from now on is not the one it read."""
        return cls(watch, str(Path.cwd()), inputs, _peak_memory_bytes())

    def go_on(self) -> "RunFacts":
        """The same run, which now does something more."""
        return replace(self, watch=self.watch.go_on())

    def to_dict(self, found: Found) -> dict[str, Any]:
        """Plain values, as of now."""
        corpus, limits = found.documents.corpus, found.limits
        return {
            "minwise": _kernel.VERSION,
            "started": self.watch.started.isoformat(timespec="seconds"),
            "seconds": round(self.watch.seconds, 3),
            "resumed": found.work.resumed,
            "stages": [{"stage": name, "seconds": round(seconds, 3)} for name, seconds in self.watch.stages],
            "peak_memory_bytes": _peak_memory_bytes(),
            "peak_memory_before_bytes": self.memory_before,
            "memory_limit_bytes": limits.memory,
            "threads": limits.threads or os.cpu_count() or 1,
            "directory": self.directory,
            "root": corpus.root,
            "columns": {"text": list(corpus.columns.text), "id": corpus.columns.id},
            "format": corpus.format,
            "inputs": self.inputs,
        }


def _peak_memory_bytes() -> int:
    """The most memory that this process has ever held; Linux counts in KiB, macOS in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


# Clusters, members of each, and pairs just below the threshold that a report names.
NAMED_CLUSTERS = 10
NAMED_MEMBERS = 20
NAMED_PAIRS = 20


class SimilarityReport:
    """The similarities of pairs, and of those that are not quite pairs."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome, self._found = outcome, outcome.found
        self._known = self._found.settings.verify != "none"
        self._first = floor_bin(outcome.threshold)
        self.pairs = 0
        self._counts = np.zeros(BINS, dtype=np.int64)
        for block in outcome.blocks():
            self.pairs += len(block)
            if self._known:
                self._counts += count_by_bin(block.similarity)

    def counts(self) -> dict[str, Any] | None:
        """How many pairs there are in each hundredth of similarity; None if similarities are not known."""
        if not self._known:
            return None
        return {"from": self._first / BINS, "counts": (self._counts + self._outcome.near_misses.counts).tolist()}

    def just_below(self) -> dict[str, Any] | None:
        """How many candidates are just below the threshold, and the most similar of two kept documents.

        What no band proposed was never compared, so there may be more. Those that are named are among the 10,000 most
        similar of all.
        """
        if not self._known:
            return None
        pairs = int(self._outcome.near_misses.counts.sum())
        return {"from": self._first / BINS, "pairs": pairs, "closest": self._closest()}

    def _closest(self) -> list[dict[str, Any]]:
        near, removals = self._outcome.near_misses.closest, self._outcome.removals
        one, other = (self._found.order.document_at[side].astype(np.int64) for side in (near.low, near.high))
        kept = np.flatnonzero(~(removals.include(one) | removals.include(other)))
        left, right, similarity = np.minimum(one, other)[kept], np.maximum(one, other)[kept], near.similarity[kept]
        order = np.lexsort((right, left, -similarity))[:NAMED_PAIRS]
        sides = (named(self._found, side[order]) for side in (left, right))
        return [
            {"similarity": alike, "left": first, "right": second}
            for alike, first, second in zip(similarity[order].tolist(), *sides, strict=True)
        ]


def largest_clusters(outcome: Outcome) -> list[dict[str, Any]]:
    """The clusters of most documents, each with the kept one and those that are least similar to it."""
    removals, found = outcome.removals, []
    for head, removed in removals.largest(NAMED_CLUSTERS):
        places = removals.least_similar(head, NAMED_MEMBERS)
        kept, *members = named(outcome.found, np.append([head], removals.documents[places]))
        similarity = [None if np.isnan(one) else one for one in removals.similarity[places].tolist()]
        with_similarity = [{**member, "similarity": alike} for member, alike in zip(members, similarity, strict=True)]
        found.append({"kept": kept, "size": removed + 1, "members": with_similarity})
    return found


def named(found: Found, numbers: NDArray[Any]) -> list[dict[str, Any]]:
    """Id, source and row of documents."""
    rows: list[dict[str, Any]] = pa.table(identity(found, numbers)).to_pylist()
    return rows


def size_distribution(sizes: NDArray[np.int64]) -> list[dict[str, int]]:
    """How many clusters have 2, 3 to 4, 5 to 8 … documents, up to the largest.

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
    """The report of an outcome."""

    outcome: Outcome

    def to_dict(self) -> dict[str, Any]:
        """Plain values, the same for the same documents and settings."""
        found = self.outcome.found
        settings = {**found.settings.to_dict(), "threshold": self.outcome.threshold}
        similarities = SimilarityReport(self.outcome)
        return {
            "minwise": _kernel.VERSION,
            "settings": settings,
            "on_error": found.documents.corpus.on_error,
            "plan": found.settings.planned(),
            "counts": self._counts(),
            "text_bytes": self._text_bytes(),
            "clusters": self._clusters(),
            "largest_clusters": largest_clusters(self.outcome),
            "pairs": {"candidates": found.candidates, "verified": similarities.pairs},
            "similarities": similarities.counts(),
            "just_below": similarities.just_below(),
            "caps": cap_report(found),
            "sources": self._sources,
            "unreadable": found.documents.unreadable(),
            "duplicate_ids": found.documents.duplicate_ids(),
            "warnings": self._warnings(),
        }

    def _counts(self) -> dict[str, int]:
        found, removed = self.outcome.found, len(self.outcome.removals)
        counts = found.documents.counts
        kept = int(np.count_nonzero(self.outcome.keep))
        if counts["read"] != kept + removed + counts["quarantined"]:
            raise MinwiseError(f"a bug in minwise, please report it: {counts} but {kept} kept and {removed} removed")
        followers, leaders = (found.order.document_at[side] for side in found.copies.followers())
        for_leader = (followers >= found.documents.protected) & ~self.outcome.removals.include(leaders)
        return {**counts, "kept": kept, "removed": removed, "removed_identical": int(np.count_nonzero(for_leader))}

    def _text_bytes(self) -> dict[str, int] | None:
        """Bytes of the texts that were read, and what became of them; sets have none."""
        documents, keep = self.outcome.found.documents, self.outcome.keep
        if self.outcome.found.settings.shingler is None:
            return None
        read = kept = quarantined = 0
        end = -documents.protected  # of the input, which is what ``keep`` counts
        for lengths in documents.pieces("lengths"):
            start, end = end, end + len(lengths)
            mine, place = lengths[max(0, -start) :], max(0, start)
            faulty = documents.states[place + documents.protected :][: len(mine)] == FAULTY
            read += int(mine.sum())
            kept += int(mine[keep[place : place + len(mine)]].sum())
            quarantined += int(mine[faulty].sum())
        return {"read": read, "kept": kept, "removed": read - kept - quarantined, "quarantined": quarantined}

    def _clusters(self) -> dict[str, Any]:
        removals = self.outcome.removals
        return {
            "of_two_or_more": removals.clusters,
            "largest": self._largest[1],
            "sizes": size_distribution(removals.sizes),
        }

    @cached_property
    def _largest(self) -> tuple[int, int]:
        """The kept document of the largest cluster, and the cluster's size."""
        found = self.outcome.removals.largest(1)
        return (found[0][0], found[0][1] + 1) if found else (0, min(1, len(self.outcome.keep)))

    @cached_property
    def _sources(self) -> list[dict[str, Any]]:
        """Rows of each source, and what became of them."""
        documents, rows = self.outcome.found.documents, []
        for number, source in enumerate(documents.corpus.sources):
            start, end = documents.starts[number], documents.starts[number + 1]
            faulty = int(np.count_nonzero(documents.states[start:end] == FAULTY))
            row = {"source": _shown_name(source), "rows": int(end - start), "quarantined": faulty}
            if number < documents.corpus.against:
                rows.append({**row, "against": True})
            else:
                removed = self.outcome.removals.between(int(start), int(end))
                rows.append({**row, "kept": int(end - start) - removed - faulty, "removed": removed})
        return rows

    def _warnings(self) -> list[str]:
        warnings = []
        documents = self.outcome.found.documents
        chained = int(np.count_nonzero(self.outcome.removals.similarity < self.outcome.threshold))
        if chained:
            warnings.append(
                f"removed although less similar to the kept one than the threshold: {chained:,} documents; "
                "they were joined through others. --group star removes none of these"
            )
        total, (head, largest) = len(documents) - documents.protected, self._largest
        if total >= MANY_DOCUMENTS and largest > total / 100:
            head = documents.ids(np.array([head]))[0].as_py()
            warnings.append(f"one cluster holds {largest} of {total} documents, more than 1 %: that of {head}")
        warnings.extend(
            f"{row['source'] or 'the input'} loses {row['removed']} of its {row['rows']} documents, more than half"
            for row in self._sources
            if not row.get("against") and row["rows"] > 1 and row["removed"] > row["rows"] / 2
        )
        return warnings


def _shown_name(source: Source) -> str:
    """The name of a source, or the common parent of its files and how many they are."""
    paths = source.paths()
    if len(paths) < 2:
        return source.name
    absolute = {PurePath(path).is_absolute() for path in paths}
    parent = os.path.commonpath(paths) if len(absolute) == 1 else ""
    return f"{parent or '.'} ({len(paths)} files)"


def cap_report(found: Found) -> dict[str, Any]:
    """What the cap on buckets left out, and what that may have cost."""
    verified = found.verified
    share = verified / found.candidates if found.candidates else 0.0
    return {
        "max_bucket": found.settings.max_bucket,
        "buckets": found.caps.capped,
        "members": found.caps.capped_members,
        "candidates_left_out": found.caps.left_out,
        "estimated_pairs_missed_at_most": round(found.caps.left_out * share),
        "largest_bucket": found.caps.largest,
    }
