"""Audit: recall and precision of a plan, with confidence intervals, and a better threshold if one is evident.

:func:`minwise.api.audit` passes the pairs of :func:`minwise.search.audit_sample.run_audit` to :func:`summarise_audit`.
Everything here is arithmetic on at most four million pairs and takes about a second.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.display import fact_list, notebook, text_facts
from minwise._internal.html import escape
from minwise._internal.temporary import output_writer
from minwise.errors import ConfigError
from minwise.results.notes import report_notes
from minwise.search.audit_sample import AuditSample
from minwise.search.bands import BucketCounts
from minwise.settings import SearchSettings
from minwise.sketches.estimates import normal_quantile, wilson_interval
from minwise.sketches.planning import Plan, plan
from minwise.sketches.s_curve import inline_curve

__all__ = [
    "Audit",
    "HistogramBin",
    "RecallBin",
    "Share",
    "ThresholdSuggestion",
    "audit_floor",
    "suggest_threshold",
    "summarise_audit",
]

CONFIDENCE = 0.95
# Width of the bins of recall, and of the finer bins of the histogram of similarities.
BIN, FINE_BIN = 0.05, 0.025
# Adjacent bins that are summed to look for a valley: a single bin is low by chance too often.
STRETCH = 3
# A stretch is a valley if its sum is at most this fraction of the lower of its two sides, and the difference is this
# many standard deviations of two counts: about twenty stretches are tested, so three would be exceeded by chance at
# times.
VALLEY_DEPTH, VALLEY_DEVIATIONS = 0.5, 4.0
# A threshold this close to the given one is not suggested.
WORTH_SUGGESTING = 0.04

Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class HistogramBin:
    """Number of pairs in a range of similarities, in the sample and estimated for the whole corpus.

    Attributes:
        start: Lower end of the range.
        end: Upper end of the range.
        seen: Number of pairs of sampled documents.
        documents: Number of sampled documents in these pairs.
        estimated: Estimated number of pairs of the corpus.
        low: Lower end of the confidence interval of the estimate.
        high: Upper end of the confidence interval of the estimate.
    """

    start: float
    end: float
    seen: int
    documents: int
    estimated: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ThresholdSuggestion:
    """Threshold at which few pairs lie, with its plan and the reason."""

    threshold: float
    bands: int
    rows: int
    recall: float
    why: str


def suggest_threshold(
    histogram: list[HistogramBin], threshold: float, recall: float, slots: int
) -> ThresholdSuggestion | None:
    """Return a threshold in the deepest valley of the similarities; None if there is no clear one, or it is the same.

    The histogram is taken over documents, not over pairs, of which one large cluster would give thousands.

    Args:
        histogram: The similarities of the sample.
        threshold: The threshold of the audit.
        recall: The recall that the suggested plan must reach.
        slots: Maximum number of slots of that plan.
    """
    valley = _valley(np.array([entry.documents for entry in histogram], dtype=np.int64))
    if valley is None:
        return None
    first, last = valley
    better = round((histogram[first].start + histogram[last].end) / 2, 2)
    if abs(better - threshold) < WORTH_SUGGESTING:
        return None
    try:
        suggested = plan(better, recall, slots=slots)
    except ConfigError:  # no plan reaches the recall
        return None
    low, high = min(better, threshold), max(better, threshold)
    pairs = sum(entry.estimated for entry in histogram if low <= entry.start < high)
    change = "would join" if better < threshold else "would leave out"
    why = (
        f"Few pairs are between {histogram[first].start:g} and {histogram[last].end:g}, many below and above; "
        f"it {change} about {pairs:,.0f} pairs."
    )
    return ThresholdSuggestion(better, suggested.bands, suggested.rows, suggested.recall, why)


def _valley(counts: NDArray[np.int64]) -> tuple[int, int] | None:
    """Return the first and last bin of the deepest gap between two peaks; None if no gap is clear."""
    if len(counts) < 3 * STRETCH:
        return None
    sums = np.convolve(counts, np.ones(STRETCH), "valid")
    best, lowest = VALLEY_DEPTH, None
    for start in range(STRETCH, len(sums) - STRETCH):
        side = min(sums[: start - STRETCH + 1].max(), sums[start + STRETCH :].max())
        clear = side - sums[start] >= VALLEY_DEVIATIONS * np.sqrt(side + sums[start])
        if side and clear and sums[start] / side < best:
            best, lowest = sums[start] / side, start
    if lowest is None:
        return None
    last = lowest
    while last + STRETCH < len(sums) and sums[last + 1] <= sums[lowest]:
        last += 1
    return lowest, last + STRETCH - 1


@dataclass(frozen=True, slots=True)
class Share:
    """Proportion with its confidence interval.

    Attributes:
        found: Number of hits.
        of: Number of trials.
        value: ``found / of``; None if there were no trials.
        low: Lower end of the interval.
        high: Upper end of the interval.
    """

    found: int
    of: int
    value: float | None
    low: float
    high: float


# The share of no trials: any value is possible.
UNKNOWN_SHARE = Share(0, 0, None, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class RecallBin:
    """Recall of the pairs in a range of similarities: measured, and promised by the S-curve."""

    start: float
    end: float
    share: Share
    promised: float | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Audit:
    """Measured recall and precision of a plan on a corpus.

    Attributes:
        settings: The settings that were audited.
        plan: Their bands and rows.
        documents: Documents that were read; ``identical`` of them are copies of an earlier one.
        distinct: Documents that pairs are made of: without copies and empty documents.
        sampled: How many of those were compared with all others; ``complete`` if all of them were.
        floor: Minimum similarity of the pairs that were counted.
        recall: Share of the pairs at or above the threshold that a band proposes; ``promised`` is the mean of the
            S-curve.
        with_duplicates: Share of the sampled documents with a near-duplicate for which at least one is found.
        precision: Share of the candidates of sampled documents that reach the threshold.
        bins: Recall by similarity.
        histogram: Number of pairs by similarity.
        suggestion: A better threshold, if the similarities have a clear valley elsewhere.
        text_bytes: Bytes of all texts.
        caps: Counts of the bucket cap, which may leave out candidates; the S-curve does not include it.
        notes: What to know about the inputs and how they were read, in sentences.
        inputs: How files were read, and what was skipped.
    """

    settings: dict[str, Any]
    plan: Plan
    documents: int
    identical: int
    distinct: int
    sampled: int
    floor: float
    recall: Share
    promised: float | None
    with_duplicates: Share
    precision: Share
    bins: list[RecallBin]
    histogram: list[HistogramBin]
    suggestion: ThresholdSuggestion | None
    text_bytes: int
    caps: BucketCounts
    confidence: float = CONFIDENCE
    notes: list[str] = field(default_factory=list)
    inputs: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return text_facts(self._head, self._facts())

    def _repr_html_(self) -> str:
        """Return the figures and the S-curve for a notebook."""
        facts = fact_list((name, escape(value)) for name, value in self._facts())
        head = f'<p class="head">{escape(self._head)}</p>'
        return notebook(head, facts, inline_curve(self.plan))

    @property
    def _head(self) -> str:
        if self.recall.value is None:
            return "Audit: no near-duplicates, so recall is unknown"
        return f"Audit: recall {_share_text(self.recall, 'pairs of near-duplicates')}"

    def _facts(self) -> Iterator[tuple[str, str]]:
        if self.promised is not None:
            yield "promised", f"{self.promised:.2%} by the S-curve"
        if self.with_duplicates.value is not None:
            yield "documents", f"one is found for {_share_text(self.with_duplicates, 'with a near-duplicate')}"
        if self.precision.value is not None:
            yield "precision", _share_text(self.precision, "candidates")
        compared = "all" if self.complete else f"{self.sampled:,} of {self.distinct:,}"
        yield "compared", f"{compared} with all others; {self.documents:,} read, {self.identical:,} identical"
        yield "plan", f"{self.plan.layout} at {self.plan.threshold:g}"
        if self.suggestion is not None:
            yield "suggestion", f"threshold {self.suggestion.threshold:g}: {self.suggestion.why}"

    @property
    def complete(self) -> bool:
        """Whether every document was compared with all others."""
        return self.sampled == self.distinct

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, ready for JSON."""
        precision, documents = _interval(self.precision), _interval(self.with_duplicates)
        recall = _interval(self.recall)
        return {
            "minwise": _kernel.__version__,
            "settings": self.settings,
            "plan": self.plan.to_dict(),
            "documents": self.documents,
            "identical": self.identical,
            "distinct": self.distinct,
            "sampled": self.sampled,
            "complete": self.complete,
            "threshold": self.plan.threshold,
            "floor": self.floor,
            "confidence": self.confidence,
            "recall": {**recall, "pairs": self.recall.of, "found": self.recall.found, "promised": self.promised},
            "documents_with_duplicates": {
                **documents,
                "documents": self.with_duplicates.of,
                "found": self.with_duplicates.found,
            },
            "precision": {**precision, "candidates": self.precision.of, "pairs": self.precision.found},
            "bins": [
                {
                    "from": entry.start,
                    "to": entry.end,
                    "pairs": entry.share.of,
                    "found": entry.share.found,
                    **_interval(entry.share),
                    "promised": entry.promised,
                }
                for entry in self.bins
            ],
            "histogram": [
                {
                    "from": entry.start,
                    "to": entry.end,
                    "pairs": entry.seen,
                    "estimated": entry.estimated,
                    "low": entry.low,
                    "high": entry.high,
                }
                for entry in self.histogram
            ],
            "text_bytes": self.text_bytes,
            "caps": {
                "max_bucket": self.settings["max_bucket"],
                "buckets": self.caps.capped,
                "candidates_left_out": self.caps.left_out,
            },
            "suggestion": None if self.suggestion is None else asdict(self.suggestion),
            "notes": self.notes,
            "inputs": self.inputs,
        }

    def write(self, path: str | PathLike[str], *, overwrite: bool = True) -> None:
        """Write the figures to a JSON file, which appears complete or not at all.

        Args:
            path: The file.
            overwrite: Whether to replace a file with content; if not, the result is kept next to it.
        """
        with output_writer(Path(path), overwrite=overwrite) as file:
            file.write(json.dumps(self.to_dict(), indent=2).encode() + b"\n")


def _share_text(share: Share, trials: str) -> str:
    """Return a share with its interval, and the counts behind it."""
    return f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%}) of {share.of:,} {trials}"


def _interval(share: Share) -> dict[str, Any]:
    return {"value": share.value, "low": share.low, "high": share.high}


def audit_floor(threshold: float) -> float:
    """Return the minimum similarity that an audit counts: half the threshold, rounded down to a bin border."""
    half = int(threshold / 2 / BIN + 1e-9) * BIN
    return min(threshold, max(BIN, round(half, 6)))


def summarise_audit(sample: AuditSample, settings: SearchSettings, floor: float, *, recall: float, slots: int) -> Audit:
    """Return the figures of an audit.

    Args:
        sample: The pairs of the sampled documents.
        settings: The audited settings.
        floor: Minimum similarity of the pairs.
        recall: The recall that a suggested plan must reach.
        slots: Maximum number of slots of a suggested plan.
    """
    figures = _Figures(sample, settings.plan, floor)
    histogram = figures.histogram()
    return Audit(
        settings=settings.to_dict(),
        plan=settings.plan,
        documents=sample.documents,
        identical=sample.identical,
        distinct=sample.distinct,
        sampled=len(sample.sampled),
        floor=floor,
        recall=figures.recall(figures.similar),
        promised=figures.promised(figures.similar),
        with_duplicates=figures.with_duplicates(),
        precision=figures.precision(),
        bins=figures.bins(),
        histogram=histogram,
        suggestion=suggest_threshold(histogram, settings.plan.threshold, recall, slots),
        text_bytes=sample.text_bytes,
        caps=sample.caps,
        **({} if sample.read is None else report_notes(*sample.read, settings)),
    )


@dataclass(frozen=True)
class _Figures:
    """Computes the figures of one audit from its pairs."""

    sample: AuditSample
    plan: Plan
    floor: float

    @cached_property
    def similar(self) -> Flags:
        """A flag for each pair that reaches the threshold."""
        return self.sample.pairs.similarity >= self.plan.threshold

    @cached_property
    def cluster_of(self) -> NDArray[np.uint32]:
        """The first document of each document's cluster of pairs that reach the threshold."""
        parents = np.arange(self.sample.documents, dtype=np.uint32)
        near = self.sample.pairs.where(self.similar)
        _connect(near.low, near.high, parents)
        return parents

    @cached_property
    def _owners(self) -> NDArray[np.uint32]:
        """The sampled document of each pair, the first if both are sampled."""
        pairs, sampled = self.sample.pairs, np.zeros(self.sample.documents, dtype=bool)
        sampled[self.sample.sampled] = True
        return np.where(sampled[pairs.low], pairs.low, pairs.high)

    def recall(self, selected: Flags, groups: NDArray[np.uint32] | None = None) -> Share:
        """Return the share of the selected pairs that are found.

        The pairs of a group, by default those of one sampled document, count as one trial.
        """
        groups = self._owners[selected] if groups is None else groups
        found, of = int(np.count_nonzero(self.sample.found[selected])), int(np.count_nonzero(selected))
        return _share(found, of, effective_trials(groups)) if of else UNKNOWN_SHARE

    def promised(self, selected: Flags) -> float | None:
        """Return the mean of the S-curve over the selected pairs."""
        similarities = self.sample.pairs.similarity[selected]
        return float(np.mean(self.plan.probability(similarities))) if len(similarities) else None

    def bins(self) -> list[RecallBin]:
        """Return recall by similarity, from the floor to 1.

        Below the threshold, families such as pages made from one template are found or missed as a whole: there a group
        is a connected component of pairs at least as similar.
        """
        edges = _edges(self.floor, BIN)
        bin_numbers = _bin_numbers(self.sample.pairs.similarity, edges)
        families = np.arange(self.sample.documents, dtype=np.uint32)
        bins = []
        for number in reversed(range(len(edges) - 1)):
            selected = bin_numbers == number
            low, high = self.sample.pairs.low[selected], self.sample.pairs.high[selected]
            _connect(low, high, families)
            start, end = edges[number : number + 2].tolist()
            groups = families[low] if end <= self.plan.threshold else None
            bins.append(RecallBin(start, end, self.recall(selected, groups), self.promised(selected)))
        return bins[::-1]

    def with_duplicates(self) -> Share:
        """Return the share of the sampled documents with a near-duplicate for which one is found."""
        low, high = self.sample.pairs.low[self.similar], self.sample.pairs.high[self.similar]
        found = self.sample.found[self.similar]
        either = [np.concatenate([low[mask], high[mask]]) for mask in (np.ones(len(low), dtype=bool), found)]
        with_any, with_found = (np.isin(self.sample.sampled, documents) for documents in either)
        if not with_any.any():
            return UNKNOWN_SHARE
        trials = effective_trials(self.cluster_of[self.sample.sampled[with_any]])
        return _share(int(np.count_nonzero(with_found)), int(np.count_nonzero(with_any)), trials)

    def precision(self) -> Share:
        """Return the share of the candidates of sampled documents that reach the threshold."""
        candidates = self.sample.candidates
        found, total = int(np.count_nonzero(self.similar & self.sample.found)), int(candidates.sum())
        if not total:
            return UNKNOWN_SHARE
        return _share(found, total, total**2 / float((candidates.astype(np.float64) ** 2).sum()))

    def histogram(self) -> list[HistogramBin]:
        """Return the number of pairs by similarity, and estimates for the corpus.

        A pair is seen if one of its two documents is sampled, so the count is divided by the probability of that
        (Horvitz, Thompson 1952). The error is that of the mean number of pairs per document.
        """
        edges = _edges(self.floor, FINE_BIN)
        bin_numbers = _bin_numbers(self.sample.pairs.similarity, edges)
        sampled, distinct = len(self.sample.sampled), self.sample.distinct
        degrees = self._degrees(bin_numbers, len(edges) - 1)
        error = distinct * _error_of_mean(degrees / 2, distinct)
        documents = np.count_nonzero(degrees, axis=0).tolist()
        unseen = (distinct - sampled) * (distinct - sampled - 1) / max(1, distinct * (distinct - 1))
        high_of_none = distinct / 2 * float(wilson_interval(0.0, max(sampled, 1), CONFIDENCE)[1])
        most = distinct * (distinct - 1) / 2
        bins = []
        for number, count in enumerate(np.bincount(bin_numbers, minlength=len(edges) - 1).tolist()):
            total = count / (1 - unseen) if count else 0.0
            high = high_of_none if not count and sampled < distinct else total + error[number]
            ends = float(edges[number]), float(edges[number + 1])
            low = max(float(count), float(total - error[number]))
            bins.append(HistogramBin(*ends, count, documents[number], float(total), low, float(min(high, most))))
        return bins

    def _degrees(self, bin_numbers: Numbers, bins: int) -> NDArray[np.int32]:
        """Return the number of pairs of each sampled document in each bin."""
        degrees = np.zeros((len(self.sample.sampled), bins), dtype=np.int32)
        for side in (self.sample.pairs.low, self.sample.pairs.high):
            rows = np.searchsorted(self.sample.sampled, side)
            rows = np.minimum(rows, max(0, len(self.sample.sampled) - 1))
            sampled = self.sample.sampled[rows] == side
            np.add.at(degrees, (rows[sampled], bin_numbers[sampled]), 1)
        return degrees


def _error_of_mean(values: NDArray[np.float64], population: int) -> NDArray[np.float64]:
    """Return half the width of the confidence interval of each column's mean, for sampling without replacement."""
    sampled = len(values)
    if sampled >= population:
        return np.zeros(values.shape[1])
    if sampled < 2:  # the variance is unknown
        return np.full(values.shape[1], np.inf)
    variance = values.var(axis=0, ddof=1) / sampled * (1 - sampled / population)
    error: NDArray[np.float64] = normal_quantile(CONFIDENCE) * np.sqrt(variance)
    return error


def _connect(low: NDArray[np.uint32], high: NDArray[np.uint32], first: NDArray[np.uint32]) -> None:
    """Join the components of pairs in place, each named after its first document."""
    _kernel.join_pairs(low, high, first)
    _kernel.flatten_components(first)


def effective_trials(groups: NDArray[Any]) -> float:
    """Return the number of independent trials that are equivalent to trials whose groups succeed or fail together."""
    ordered = np.sort(groups)
    sizes = np.diff(np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1], [True]]))).astype(np.float64)
    return len(groups) ** 2 / float((sizes**2).sum())


def _share(found: int, of: int, trials: float) -> Share:
    low, high = wilson_interval(found / of, trials, CONFIDENCE)
    return Share(found, of, found / of, float(low), float(high))


def _edges(floor: float, width: float) -> NDArray[np.float64]:
    """Return the borders of bins from the floor to 1; the first bin may be narrower than the others."""
    inner = np.arange(round(1 / width) + 1) * width
    inner = np.round(inner, 6)
    return np.concatenate([[floor], inner[inner > floor + 1e-9]])


def _bin_numbers(similarities: NDArray[np.float64], edges: NDArray[np.float64]) -> Numbers:
    """Return the bin of each similarity; 1 is in the last."""
    return np.clip(np.searchsorted(edges, similarities, side="right") - 1, 0, len(edges) - 2)
