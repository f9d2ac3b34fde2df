"""Valley: pairs by similarity in; a threshold that parts them where few are, if there is such a place, out."""

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.atomic import atomic_writer
from minwise.errors import ConfigError
from minwise.search.audit_sample import Seen
from minwise.search.bands import BucketCounts
from minwise.settings import FindSettings
from minwise.sketches.estimates import two_sided_quantile, wilson_interval
from minwise.sketches.planning import Plan, plan

__all__ = ["Audit", "Bin", "Share", "Spread", "Suggestion", "floor_below", "suggest", "summarise"]

# Bins that are looked at together: one alone is low by chance too often.
STRETCH = 3
# A valley is one if it is at most so deep against the lower of its two sides, and the difference is this many standard
# deviations of two counts: about twenty stretches are looked at, so three would be passed by chance now and then.
VALLEY_DEPTH, VALLEY_DEVIATIONS = 0.5, 4.0
# A suggestion that is nearer to the threshold than this is none.
WORTH_SAYING = 0.04


@dataclass(frozen=True, slots=True)
class Spread:
    """How many pairs of a range of similarities were seen, and how many the whole corpus has, with the interval.

    ``documents`` are the sampled documents that are in these pairs.
    """

    start: float
    end: float
    seen: int
    documents: int
    estimated: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A threshold at which the similarities themselves have a gap, and the plan for it."""

    threshold: float
    bands: int
    rows: int
    recall: float
    why: str


def suggest(spread: list[Spread], threshold: float, recall: float, slots: int) -> Suggestion | None:
    """A threshold in the deepest valley of the similarities, if it is clear and not where the threshold stands.

    What is counted are documents, not pairs, of which one large cluster would give thousands.
    """
    valley = _valley(np.array([one.documents for one in spread], dtype=np.int64))
    if valley is None:
        return None
    first, last = valley
    better = round((spread[first].start + spread[last].end) / 2, 2)
    if abs(better - threshold) < WORTH_SAYING:
        return None
    try:
        found = plan(better, recall, slots=slots)
    except ConfigError:  # no plan reaches it
        return None
    pairs = sum(one.estimated for one in spread if min(better, threshold) <= one.start < max(better, threshold))
    change = "would join" if better < threshold else "would leave out"
    why = (
        f"Few pairs are between {spread[first].start:g} and {spread[last].end:g}, many below and above; "
        f"it {change} about {pairs:,.0f} pairs."
    )
    return Suggestion(better, found.bands, found.rows, found.recall, why)


def _valley(counts: NDArray[np.int64]) -> tuple[int, int] | None:
    """The first and last bin of the lowest stretch between two higher ones, if it is clearly lower than both."""
    if len(counts) < 3 * STRETCH:
        return None
    sums = np.convolve(counts, np.ones(STRETCH), "valid")
    best, found = VALLEY_DEPTH, None
    for place in range(STRETCH, len(sums) - STRETCH):
        side = min(sums[: place - STRETCH + 1].max(), sums[place + STRETCH :].max())
        clear = side - sums[place] >= VALLEY_DEVIATIONS * np.sqrt(side + sums[place])
        if side and clear and sums[place] / side < best:
            best, found = sums[place] / side, place
    if found is None:
        return None
    last = found
    while last + STRETCH < len(sums) and sums[last + 1] <= sums[found]:
        last += 1
    return found, last + STRETCH - 1


CONFIDENCE = 0.95
# Width of the bins of recall, and of the finer ones in which similarities are counted.
BIN, FINE_BIN = 0.05, 0.025

Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Share:
    """A share of something that was counted, and the interval in which it lies; None where there was nothing."""

    found: int
    of: int
    value: float | None
    low: float
    high: float


# The share of nothing: it may be any.
NOTHING = Share(0, 0, None, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Bin:
    """The pairs of a range of similarities: what share of them the bands propose, and what the S-curve promises."""

    start: float
    end: float
    share: Share
    promised: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What a plan really finds in a corpus.

    Attributes:
        settings: The settings that were audited.
        plan: Their bands and rows.
        documents: Documents that were read; ``identical`` of them stand behind one with the same tokens.
        distinct: Documents that pairs are made of: no copies, none that is empty.
        sampled: How many of those were compared with all; ``complete`` if it was every one.
        floor: The similarity from which on pairs were looked at.
        recall: Of the pairs that reach the threshold, those that a band proposes; ``promised`` is the S-curve's mean.
        with_duplicates: Of the sampled documents that have a near-duplicate, those for which at least one is found.
        precision: Of the candidates of sampled documents, those that reach the threshold.
        bins: Recall by similarity.
        spread: Pairs by similarity.
        suggestion: A better threshold, if the similarities have a clear valley elsewhere.
        text_bytes: Of all documents.
        caps: What the cap on buckets met: it may leave out candidates, of which the S-curve knows nothing.
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
    bins: list[Bin]
    spread: list[Spread]
    suggestion: Suggestion | None
    text_bytes: int
    caps: BucketCounts
    confidence: float = CONFIDENCE

    @property
    def complete(self) -> bool:
        """Whether every document was compared with all."""
        return self.sampled == self.distinct

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON."""
        precision, documents = _plain(self.precision), _plain(self.with_duplicates)
        recall = _plain(self.recall)
        return {
            "minwise": _kernel.VERSION,
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
                    "from": one.start,
                    "to": one.end,
                    "pairs": one.share.of,
                    "found": one.share.found,
                    **_plain(one.share),
                    "promised": one.promised,
                }
                for one in self.bins
            ],
            "histogram": [
                {
                    "from": one.start,
                    "to": one.end,
                    "pairs": one.seen,
                    "estimated": one.estimated,
                    "low": one.low,
                    "high": one.high,
                }
                for one in self.spread
            ],
            "text_bytes": self.text_bytes,
            "caps": {
                "max_bucket": self.settings["max_bucket"],
                "buckets": self.caps.capped,
                "candidates_left_out": self.caps.left_out,
            },
            "suggestion": None if self.suggestion is None else asdict(self.suggestion),
        }

    def write(self, path: str | PathLike[str]) -> None:
        """Writes the figures to a JSON file, which appears whole or not at all."""
        with atomic_writer(Path(path)) as file:
            file.write(json.dumps(self.to_dict(), indent=2).encode() + b"\n")


def _plain(share: Share) -> dict[str, Any]:
    return {"value": share.value, "low": share.low, "high": share.high}


def floor_below(threshold: float) -> float:
    """The similarity down to which an audit looks: half the threshold, down to the next border of a bin."""
    half = int(threshold / 2 / BIN + 1e-9) * BIN
    return min(threshold, max(BIN, round(half, 6)))


def summarise(seen: Seen, settings: FindSettings, floor: float, *, recall: float, slots: int) -> Audit:
    """The figures of an audit. ``recall`` is what a suggested plan is to reach with ``slots``."""
    figures = _Figures(seen, settings.plan, floor)
    spread = figures.spread()
    return Audit(
        settings=settings.to_dict(),
        plan=settings.plan,
        documents=seen.documents,
        identical=seen.identical,
        distinct=seen.distinct,
        sampled=len(seen.sampled),
        floor=floor,
        recall=figures.recall(figures.similar),
        promised=figures.promised(figures.similar),
        with_duplicates=figures.with_duplicates(),
        precision=figures.precision(),
        bins=figures.bins(),
        spread=spread,
        suggestion=suggest(spread, settings.plan.threshold, recall, slots),
        text_bytes=seen.text_bytes,
        caps=seen.caps,
    )


@dataclass(frozen=True)
class _Figures:
    """The figures of one audit, worked out from the pairs that were seen."""

    seen: Seen
    plan: Plan
    floor: float

    @cached_property
    def similar(self) -> Flags:
        """Which pairs reach the threshold."""
        return self.seen.pairs.similarity >= self.plan.threshold

    @cached_property
    def cluster_of(self) -> NDArray[np.uint32]:
        """The first document of each document's cluster: what is connected by pairs that reach the threshold."""
        parents = np.arange(self.seen.documents, dtype=np.uint32)
        near = self.seen.pairs.where(self.similar)
        _connect(near.low, near.high, parents)
        return parents

    @cached_property
    def _owners(self) -> NDArray[np.uint32]:
        """The sampled document of each pair, the first if both are."""
        pairs, sampled = self.seen.pairs, np.zeros(self.seen.documents, dtype=bool)
        sampled[self.seen.sampled] = True
        return np.where(sampled[pairs.low], pairs.low, pairs.high)

    def recall(self, wanted: Flags, groups: NDArray[np.uint32] | None = None) -> Share:
        """Of some pairs, those that are found; pairs of a group count as one throw, by default those of a document."""
        groups = self._owners[wanted] if groups is None else groups
        found, of = int(np.count_nonzero(self.seen.found[wanted])), int(np.count_nonzero(wanted))
        return _share(found, of, effective_trials(groups)) if of else NOTHING

    def promised(self, wanted: Flags) -> float | None:
        """The share that the S-curve promises for pairs as similar as these."""
        similarities = self.seen.pairs.similarity[wanted]
        return float(np.mean(self.plan.probability(similarities))) if len(similarities) else None

    def bins(self) -> list[Bin]:
        """Recall by similarity, from the floor to 1.

        Below the threshold whole families, such as pages made from one template, are found or missed at once: there a
        group is what is connected by pairs as similar as these.
        """
        edges = _edges(self.floor, BIN)
        places = _places(self.seen.pairs.similarity, edges)
        families = np.arange(self.seen.documents, dtype=np.uint32)
        found = []
        for number in reversed(range(len(edges) - 1)):
            here = places == number
            low, high = self.seen.pairs.low[here], self.seen.pairs.high[here]
            _connect(low, high, families)
            start, end = edges[number : number + 2].tolist()
            groups = families[low] if end <= self.plan.threshold else None
            found.append(Bin(start, end, self.recall(here, groups), self.promised(here)))
        return found[::-1]

    def with_duplicates(self) -> Share:
        """Of the sampled documents with a near-duplicate, those for which one is found."""
        low, high = self.seen.pairs.low[self.similar], self.seen.pairs.high[self.similar]
        found = self.seen.found[self.similar]
        either = [np.concatenate([low[mask], high[mask]]) for mask in (np.ones(len(low), dtype=bool), found)]
        with_any, with_found = (np.isin(self.seen.sampled, documents) for documents in either)
        if not with_any.any():
            return NOTHING
        trials = effective_trials(self.cluster_of[self.seen.sampled[with_any]])
        return _share(int(np.count_nonzero(with_found)), int(np.count_nonzero(with_any)), trials)

    def precision(self) -> Share:
        """Of the candidates of sampled documents, those that reach the threshold."""
        candidates = self.seen.candidates
        found, total = int(np.count_nonzero(self.similar & self.seen.found)), int(candidates.sum())
        if not total:
            return NOTHING
        return _share(found, total, total**2 / float((candidates.astype(np.float64) ** 2).sum()))

    def spread(self) -> list[Spread]:
        """Pairs by similarity, and how many the corpus has.

        A pair is seen if one of its two documents is sampled, so what is seen is divided by the chance of that
        (Horvitz, Thompson 1952). Its error is that of the mean number of pairs that a document is in.
        """
        edges = _edges(self.floor, FINE_BIN)
        places = _places(self.seen.pairs.similarity, edges)
        sampled, distinct = len(self.seen.sampled), self.seen.distinct
        degrees = self._degrees(places, len(edges) - 1)
        error = distinct * _error_of_mean(degrees / 2, distinct)
        documents = np.count_nonzero(degrees, axis=0).tolist()
        unseen = (distinct - sampled) * (distinct - sampled - 1) / max(1, distinct * (distinct - 1))
        nothing = distinct / 2 * float(wilson_interval(0.0, max(sampled, 1), CONFIDENCE)[1])
        most = distinct * (distinct - 1) / 2
        found = []
        for number, count in enumerate(np.bincount(places, minlength=len(edges) - 1).tolist()):
            total = count / (1 - unseen) if count else 0.0
            high = nothing if not count and sampled < distinct else total + error[number]
            ends = float(edges[number]), float(edges[number + 1])
            low = max(float(count), float(total - error[number]))
            found.append(Spread(*ends, count, documents[number], float(total), low, float(min(high, most))))
        return found

    def _degrees(self, places: Numbers, bins: int) -> NDArray[np.int32]:
        """How many pairs of each bin each sampled document is in."""
        degrees = np.zeros((len(self.seen.sampled), bins), dtype=np.int32)
        for side in (self.seen.pairs.low, self.seen.pairs.high):
            rows = np.searchsorted(self.seen.sampled, side)
            rows = np.minimum(rows, max(0, len(self.seen.sampled) - 1))
            mine = self.seen.sampled[rows] == side
            np.add.at(degrees, (rows[mine], places[mine]), 1)
        return degrees


def _error_of_mean(values: NDArray[np.float64], population: int) -> NDArray[np.float64]:
    """Half the width of the interval of each column's mean, of a sample without replacement."""
    sampled = len(values)
    if sampled >= population:
        return np.zeros(values.shape[1])
    if sampled < 2:  # which tells nothing about how documents differ
        return np.full(values.shape[1], np.inf)
    variance = values.var(axis=0, ddof=1) / sampled * (1 - sampled / population)
    error: NDArray[np.float64] = two_sided_quantile(CONFIDENCE) * np.sqrt(variance)
    return error


def _connect(low: NDArray[np.uint32], high: NDArray[np.uint32], first: NDArray[np.uint32]) -> None:
    """Joins the components of pairs, each named after its first document."""
    _kernel.join_pairs(low, high, first)
    _kernel.flatten_components(first)


def effective_trials(groups: NDArray[Any]) -> float:
    """How many independent trials things are worth that are found or missed together in groups."""
    ordered = np.sort(groups)
    sizes = np.diff(np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1], [True]]))).astype(np.float64)
    return len(groups) ** 2 / float((sizes**2).sum())


def _share(found: int, of: int, trials: float) -> Share:
    low, high = wilson_interval(found / of, trials, CONFIDENCE)
    return Share(found, of, found / of, float(low), float(high))


def _edges(floor: float, width: float) -> NDArray[np.float64]:
    """The borders of bins from the floor to 1; the first may be narrower than the others."""
    inner = np.arange(round(1 / width) + 1) * width
    inner = np.round(inner, 6)
    return np.concatenate([[floor], inner[inner > floor + 1e-9]])


def _places(similarities: NDArray[np.float64], edges: NDArray[np.float64]) -> Numbers:
    """The bin of each similarity; 1 is in the last."""
    return np.clip(np.searchsorted(edges, similarities, side="right") - 1, 0, len(edges) - 2)
