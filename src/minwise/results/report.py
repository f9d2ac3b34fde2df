"""Report: an outcome in, what happened in numbers out."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import Any

import numpy as np

from minwise import _kernel
from minwise.engines.found import Found
from minwise.errors import MinwiseError
from minwise.formats.source import Source
from minwise.report.limits import MANY_DOCUMENTS
from minwise.results.outcome import Outcome
from minwise.results.similar import SimilarityReport, largest_clusters, size_distribution
from minwise.stages.band import FAULTY

__all__ = ["DedupReport", "cap_report"]


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
