"""Report: a result in, what happened in numbers out."""

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from minwise import _kernel
from minwise.engines.local import Found
from minwise.errors import MinwiseError
from minwise.stages.band import FAULTY

if TYPE_CHECKING:
    from minwise.results.dedup import DedupResult

__all__ = ["DedupReport", "cap_report"]

# A corpus from which on one cluster of more than a hundredth of it is worth a warning.
MANY_DOCUMENTS = 1000


@dataclass(frozen=True)
class DedupReport:
    """The report of a result."""

    result: "DedupResult"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, the same for the same documents and settings."""
        found = self.result._found
        settings = {**found.settings.to_dict(), "threshold": self.result.threshold}
        counts = self._counts()
        return {
            "minwise": _kernel.VERSION,
            "settings": settings,
            "on_error": found.documents.corpus.on_error,
            "plan": found.settings.plan.to_dict(),
            "counts": counts,
            "clusters": self._clusters(),
            "pairs": {"candidates": found.candidates, "verified": sum(len(block) for block in self.result._blocks())},
            "caps": cap_report(found),
            "sources": self._sources(),
            "unreadable": found.documents.unreadable(),
            "duplicate_ids": found.documents.duplicate_ids(),
            "warnings": self._warnings(),
        }

    def _counts(self) -> dict[str, int]:
        found, removed = self.result._found, len(self.result._removals)
        counts = found.documents.counts
        kept = int(np.count_nonzero(self.result.keep))
        if counts["read"] != kept + removed + counts["quarantined"]:
            raise MinwiseError(f"a bug in minwise, please report it: {counts} but {kept} kept and {removed} removed")
        followers, leaders = (found.order.document_at[side] for side in found.copies.followers())
        for_leader = (followers >= found.documents.protected) & ~np.isin(leaders, self.result._removals.documents)
        return {**counts, "kept": kept, "removed": removed, "removed_identical": int(np.count_nonzero(for_leader))}

    def _clusters(self) -> dict[str, int]:
        return {"of_two_or_more": self.result._removals.clusters, "largest": self._largest[1]}

    @cached_property
    def _largest(self) -> tuple[int, int]:
        """The kept document of the largest cluster, and the cluster's size."""
        found = self.result._removals.largest(1)
        return (found[0][0], found[0][1] + 1) if found else (0, min(1, len(self.result.keep)))

    def _sources(self) -> list[dict[str, Any]]:
        documents, rows = self.result._found.documents, []
        for number, source in enumerate(documents.corpus.sources):
            start, end = documents.starts[number], documents.starts[number + 1]
            faulty = int(np.count_nonzero(documents.states[start:end] == FAULTY))
            paths = source.paths()
            name = source.name if len(paths) == 1 else f"{os.path.commonpath(paths) or '.'} ({len(paths)} files)"
            row = {"source": name, "rows": int(end - start), "quarantined": faulty}
            if number < documents.corpus.against:
                rows.append({**row, "against": True})
            else:
                removed = self.result._removals.between(int(start), int(end))
                rows.append({**row, "kept": int(end - start) - removed - faulty, "removed": removed})
        return rows

    def _warnings(self) -> list[str]:
        warnings = []
        documents = self.result._found.documents
        chained = int(np.count_nonzero(self.result._removals.similarity < self.result.threshold))
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
            f"{row['source']} loses {row['removed']} of its {row['rows']} documents, more than half"
            for row in self._sources()
            if not row.get("against") and row["rows"] > 1 and row["removed"] > row["rows"] / 2
        )
        return warnings


def cap_report(found: Found) -> dict[str, Any]:
    """What the cap on buckets left out, and what that may have cost."""
    verified = sum(len(block) for block in found.blocks())
    share = verified / found.candidates if found.candidates else 0.0
    return {
        "max_bucket": found.settings.max_bucket,
        "buckets": found.caps.capped,
        "members": found.caps.capped_members,
        "candidates_left_out": found.caps.left_out,
        "estimated_pairs_missed_at_most": round(found.caps.left_out * share),
        "largest_bucket": found.caps.largest,
    }
