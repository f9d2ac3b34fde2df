"""Thresholds: how many documents each threshold would remove, counted exactly from the pairs of one search.

:attr:`minwise.results.DedupResult.thresholds` and ``minwise thresholds`` show the counts with a pair for each step,
``report.json`` the counts alone. A count takes one pass over the pairs, without reading a document; the examples read
at most two documents for each step.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.display import notebook, value_table
from minwise._internal.formatting import format_percent
from minwise._internal.sorted_arrays import distinct
from minwise.results.pairs import identity_columns
from minwise.results.removals import STEP, DedupDecision, check_similarities, removed_at, threshold_steps
from minwise.results.report_writer import read_whole_texts
from minwise.search.clustering import PairBlock
from minwise.search.engine import SearchResult

__all__ = [
    "DocumentRef",
    "PairExample",
    "ThresholdStep",
    "Thresholds",
    "document_refs",
    "threshold_curve",
]

COLUMNS = ("threshold", "removed", "share", "kept", "pairs")


@dataclass(frozen=True, slots=True)
class DocumentRef:
    """Identity of a document.

    Attributes:
        id: Its id.
        source: Name of its file; empty for a table in memory.
        row: Its row in that file, counted from 0.
    """

    id: str | int
    source: str
    row: int

    @property
    def location(self) -> str:
        """Source and row, which name one document even if ids are not unique."""
        return f"{self.source}:{self.row}" if self.source else f"row {self.row}"


def document_refs(search: SearchResult, documents: NDArray[Any]) -> list[DocumentRef]:
    """Return the identities of documents, given by number."""
    return [DocumentRef(**row) for row in pa.table(identity_columns(search, documents)).to_pylist()]


@dataclass(frozen=True, slots=True)
class PairExample:
    """A pair of documents, the first of which is kept before the second.

    Attributes:
        similarity: Their similarity; an estimate with ``verify="signature"``.
        left: The document that comes first in keep order.
        right: The other document.
        texts: Both texts as bytes in UTF-8; None for sets, or if they can no longer be read.
    """

    similarity: float
    left: DocumentRef
    right: DocumentRef
    texts: tuple[bytes, bytes] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        texts = None if self.texts is None else [str(text, "utf-8", "replace") for text in self.texts]
        return {**asdict(replace(self, texts=None)), "texts": texts}


@dataclass(frozen=True, slots=True)
class ThresholdStep:
    """Effect of one threshold.

    Attributes:
        threshold: Minimum similarity of near-duplicates.
        removed: Number of documents that would be removed.
        kept: Number of documents that would be kept.
        pairs: Number of pairs with a similarity from this threshold up to the next one, identical documents counted
            once.
        example: One of these pairs: the one whose similarity is nearest to the middle of the step.
    """

    threshold: float
    removed: int
    kept: int
    pairs: int
    example: PairExample | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        example = None if self.example is None else self.example.to_dict()
        return {**asdict(replace(self, example=None)), "example": example}


class Thresholds(tuple[ThresholdStep, ...]):
    """Steps in ascending order of their thresholds; printed as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        rows = [COLUMNS, *map(_cells, self)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        return notebook(value_table(COLUMNS, map(_cells, self)))


def _cells(step: ThresholdStep) -> tuple[str, ...]:
    share = format_percent(step.removed, step.removed + step.kept)
    return f"{step.threshold:g}", f"{step.removed:,}", share, f"{step.kept:,}", f"{step.pairs:,}"


def threshold_curve(decision: DedupDecision, step: float = STEP) -> Thresholds:
    """Return the effect of each threshold from the one of the decision on, with an example for each.

    Raises:
        ConfigError: If similarities are unknown, or the step is too small.
    """
    thresholds, search = threshold_steps(decision.threshold, step), decision.search
    check_similarities(search.settings)
    documents = search.documents.counts["documents"]
    examples = _Examples(decision, thresholds)
    return Thresholds(
        ThresholdStep(threshold, removed, documents - removed, pairs, example)
        for (threshold, removed), pairs, example in zip(
            removed_at(decision, thresholds), examples.pairs.tolist(), examples.with_texts(), strict=True
        )
    )


class _Examples:
    """Number of pairs of each step, and the pair that is nearest to the middle of it.

    Attributes:
        pairs: Number of pairs of each step.
    """

    def __init__(self, decision: DedupDecision, thresholds: list[float]) -> None:
        self._search = decision.search
        self._thresholds = np.array(thresholds)
        self._middles = (self._thresholds + np.append(self._thresholds[1:], 1.0)) / 2
        self.pairs = np.zeros(len(thresholds), dtype=np.int64)
        # Distance of the similarity to the middle, the similarity, and both ranks. The least tuple is chosen.
        self._best: dict[int, tuple[float, float, int, int]] = {}
        for block in decision.blocks():
            steps = np.searchsorted(self._thresholds, block.similarity, side="right") - 1
            self.pairs += np.bincount(steps, minlength=len(thresholds))
            for number in distinct(steps).tolist():
                self._choose(number, block.take(np.flatnonzero(steps == number)))
        self._add_copies()

    def _choose(self, step: int, block: PairBlock) -> None:
        distance = np.abs(block.similarity - self._middles[step])
        index = int(np.argmin(distance))  # the first of equals, which is the first in keep order
        chosen = (
            float(distance[index]),
            float(block.similarity[index]),
            int(block.low[index]),
            int(block.high[index]),
        )
        self._best[step] = min(chosen, self._best.get(step, chosen))

    def _add_copies(self) -> None:
        """Use identical documents as the example of 1 if no pair of different documents has this similarity."""
        if self._search.settings.across is not None:  # these are no pairs
            return
        followers, leaders = self._search.copies.followers()
        last = len(self._thresholds) - 1
        if len(followers) and last not in self._best:
            first = int(np.argmin(followers))
            self._best[last] = (
                0.0,
                self._search.settings.identical_similarity,
                int(leaders[first]),
                int(followers[first]),
            )

    def with_texts(self) -> list[PairExample | None]:
        """Return the example of each step, with its texts."""
        ranks = np.array([[best[2], best[3]] for best in self._best.values()], dtype=np.int64).reshape(-1, 2)
        documents = self._search.order.document_at[ranks].astype(np.int64)
        texts = read_whole_texts(self._search, distinct(documents.ravel()).tolist())
        left, right = (document_refs(self._search, side) for side in (documents[:, 0], documents[:, 1]))
        examples: list[PairExample | None] = [None] * len(self._thresholds)
        for number, (step, best) in enumerate(self._best.items()):
            pair = [texts.get(document) for document in documents[number].tolist()]
            both = None if pair[0] is None or pair[1] is None else (pair[0], pair[1])
            examples[step] = PairExample(best[1], left[number], right[number], both)
        return examples
