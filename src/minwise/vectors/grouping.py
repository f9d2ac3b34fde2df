"""Groups of near vectors: clusters, and deduplication that keeps one vector of each.

Clustering, tables and output directories are those of texts. A distance is smaller for nearer vectors, so pairs are
passed on with the negative distance as their similarity.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise.errors import MinwiseError
from minwise.inputs.source import LISTED_FAULTS
from minwise.inputs.table_writer import write_tables
from minwise.progress import Progress
from minwise.results.dedup import cluster_schema, cluster_tables, removed_schema, removed_tables
from minwise.results.display import ResultTable, plain_table
from minwise.results.marks import ClusterFacts
from minwise.results.output import Output, publish
from minwise.results.pairs import cap_report, identity_columns
from minwise.results.removals import DedupDecision, Removals
from minwise.results.report_data import DedupReport, size_distribution
from minwise.results.report_writer import write_json, write_quarantine
from minwise.search.clustering import PairBlock
from minwise.search.engine import LocalEngine, SearchResult

__all__ = ["NearnessResult", "VectorDedup", "VectorDedupResult"]

# Clusters that a report names.
NAMED_CLUSTERS = 10


class NearnessResult(SearchResult):
    """Pairs of vectors whose similarity is the negative distance, so that the nearest are the most similar."""

    @classmethod
    def of_distances(cls, found: SearchResult) -> "NearnessResult":
        """Return the result of a search whose pairs have distances."""
        return cls(**{field.name: getattr(found, field.name) for field in fields(found)})

    def blocks(self, threshold: float | None = None) -> Iterator[PairBlock]:
        """Yield the pairs in ascending order."""
        for block in SearchResult.blocks(self, threshold):
            yield PairBlock(block.low, block.high, -block.similarity)


@dataclass(frozen=True)
class VectorDedupResult:
    """Result of the deduplication of vectors.

    Attributes:
        keep: A flag per row: False for removed vectors and for those that cannot be used.
        removed: Every removed vector with the nearest kept one that was found, and their distance.
        clusters: Every vector with its cluster, named after the kept vector, and the cluster's size.
        report: Counts, settings and clusters.
    """

    keep: NDArray[np.bool_]
    removed: ResultTable
    clusters: ResultTable
    report: dict[str, Any]

    def __repr__(self) -> str:
        counts = self.report["counts"]
        return f"VectorDedupResult({counts['kept']:,} of {counts['read']:,} vectors kept)"


class VectorDedup:
    """Kept and removed vectors: each removed one is within the radius of its kept one, the nearest that was found.

    Args:
        found: The pairs of a search, with distances.
    """

    def __init__(self, found: SearchResult) -> None:
        self.search = found
        self.decision = DedupDecision(NearnessResult.of_distances(found), LocalEngine().similarities)
        nearness = self.decision.removals
        # A copy of a kept vector has similarity 1; all others have a negative distance.
        distance = np.where(nearness.similarity == 1.0, 0.0, -nearness.similarity)
        self.removals = Removals(nearness.documents, nearness.witness, distance)

    def report(self) -> dict[str, Any]:
        """Return plain values, the same for the same vectors and settings."""
        search, removals = self.search, self.removals
        return {
            "minwise": _kernel.__version__,
            "settings": search.settings.to_dict(),
            "on_error": search.documents.corpus.on_error,
            "plan": search.settings.plan_dict(),
            "counts": DedupReport(self.decision, ClusterFacts(self.decision)).counts(),
            "clusters": {
                "of_two_or_more": removals.clusters,
                "largest": max(removals.sizes.tolist(), default=min(1, len(self.decision.keep))),
                "sizes": size_distribution(removals.sizes),
            },
            "largest_clusters": self._largest_clusters(),
            "pairs": {"candidates": search.candidates, "verified": search.verified},
            "caps": cap_report(search),
            "unreadable": search.documents.unreadable(),
            "faults": list(islice(search.documents.faults(), LISTED_FAULTS)),
        }

    def _largest_clusters(self) -> list[dict[str, Any]]:
        """Return the largest clusters: the kept vector, the number of vectors, and the largest distance from it."""
        clusters = []
        for kept, removed in self.removals.largest(NAMED_CLUSTERS):
            columns = identity_columns(self.search, np.array([kept]))
            farthest = float(self.removals.similarity[self.removals.witness == kept].max())
            identity = {name: column[0].as_py() for name, column in columns.items()}
            clusters.append({"kept": identity, "size": removed + 1, "farthest": farthest})
        return clusters

    def result(self) -> VectorDedupResult:
        """Return the result in memory."""
        search, removals = self.search, self.removals
        return VectorDedupResult(
            self.decision.keep,
            plain_table(removed_tables(search, removals), removed_schema(search), "removed vector"),
            plain_table(cluster_tables(search, removals), cluster_schema(search), "vector"),
            self.report(),
        )

    def write(self, output: Output, progress: Progress, *, overwrite: bool) -> dict[str, Any]:
        """Write kept vectors, tables and report to a directory that appears complete or not at all."""
        search, removals, report = self.search, self.removals, self.report()
        with publish(output, search.work, overwrite=overwrite) as staging:
            with search.documents.corpus.unchanged():
                written = LocalEngine().copy_kept(
                    search.documents, search.limits, self.decision.keep, staging, progress
                )
            if written != report["counts"]["kept"]:
                expected = report["counts"]["kept"]
                raise MinwiseError(f"{expected} rows were to be kept, {written} were written: did the input change?")
            folder = staging.folder
            write_tables(folder / "removed.parquet", removed_tables(search, removals), removed_schema(search))
            write_tables(folder / "clusters.parquet", cluster_tables(search, removals), cluster_schema(search))
            write_quarantine(folder / "quarantine.jsonl", search.documents)
            write_json(folder / "report.json", report)
            search.documents.corpus.refuse_changes()
        return report
