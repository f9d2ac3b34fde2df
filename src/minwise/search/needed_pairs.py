"""Verification by need: compare only those candidate pairs that decide clusters.

A star group depends on the pairs with a kept document, a fifth of all candidate pairs on one million passages; a
connected component on the pairs that connect something new. :mod:`minwise.results` reads their files as it reads those
of :mod:`minwise.search.verification`. A report also counts the pairs of two removed documents; of these a sample is
compared, which depends only on the documents and settings. Up to a million proposals every pair is compared, since that
takes less than 0.2 s, and all counts are exact.

Pairs for different needs are different stages of a work directory, so that a later run with another need neither
discards them nor reads others than a first run would.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from minwise import _kernel
from minwise.search.candidates import VERIFIED, ComparedChunk, complete_counts
from minwise.search.clustering import PairBlock
from minwise.search.verification import CandidateVerifier
from minwise.search.workdir import WorkDirectory

__all__ = [
    "STAGES",
    "Needed",
    "PairCounts",
    "finished_stage",
    "planned_stage",
    "sample_classes",
    "stage_of",
    "star_counts",
    "verify_needed",
    "verify_stage",
]

# Which verified pairs a caller needs: all, or those that decide stars or components.
Needed = Literal["pairs", "star", "components"]
# Names of the files of pairs that were compared.
STAGES: dict[Needed, str] = {"pairs": VERIFIED, "star": "star", "components": "components"}
# Number of proposals up to which every pair is compared; above it, the sample is of at most about as many.
COMPLETE_PROPOSALS = 1 << 20


def stage_of(needed: Needed, proposals: int, verify: str) -> str:
    """Return the stage that has the needed pairs: all are compared if they are few, or are verified by signature."""
    return VERIFIED if proposals <= COMPLETE_PROPOSALS or verify == "signature" else STAGES[needed]


def planned_stage(needed: Needed, proposals: int, verify: str, *, sampled: bool) -> tuple[str, int]:
    """Return the stage that has the needed pairs, and the number of classes of its sample, 0 for none."""
    stage = stage_of(needed, proposals, verify)
    return stage, sample_classes(proposals) if sampled and stage == STAGES["star"] else 0


def finished_stage(work: WorkDirectory, needed: Needed, verify: str) -> str | None:
    """Return the stage that has the needed pairs if it is finished."""
    for stage in {STAGES[needed], VERIFIED}:
        if work.has(stage) and stage_of(needed, work.read_json(stage)["proposals"], verify) == stage:
            return stage
    return None


def verify_needed(search: CandidateVerifier, needed: Needed, *, sampled: bool) -> None:
    """Compare the candidates that are needed and write those to keep.

    Args:
        search: The candidate search, whose candidates are proposed and whose sets are spilled.
        needed: Which pairs the caller needs.
        sampled: With ``star``, whether to compare a sample of the other pairs, for a report.
    """
    stage, classes = planned_stage(needed, search.proposal_count(), search.settings.verify, sampled=sampled)
    verify_stage(search, stage, classes)


def verify_stage(search: CandidateVerifier, stage: str, classes: int) -> None:
    """Compare the candidates of a stage and write those to keep.

    Args:
        search: As in :func:`verify_needed`.
        stage: Name of the stage, from :func:`stage_of`.
        classes: With stars, the number of classes of the sample; 0 for none.
    """
    search.stage = stage
    if stage == VERIFIED:
        search.verify_candidates()
    elif stage == STAGES["components"]:
        _ComponentPairs(search).verify()
    else:
        _StarPairs(search, classes).verify()


def sample_classes(proposals: int) -> int:
    """Return the number of classes into which documents are divided so that pairs of one class are the sample.

    >>> [sample_classes(count << 20) for count in (1, 2, 3, 122)]
    [1, 2, 4, 128]
    """
    return 1 << (-(-proposals // COMPLETE_PROPOSALS) - 1).bit_length()


def star_counts(proposals: int, compared: int, sampled: int, classes: int) -> dict[str, Any]:
    """Return what is noted of a search that compared the pairs of star groups, ``sampled`` of them as a sample.

    >>> star_counts(900, 120, 20, 8)
    {'proposals': 900, 'compared': 120, 'classes': 8, 'candidates': 260}
    """
    candidates = compared + sampled * (classes - 1) if classes else None
    return {"proposals": proposals, "compared": compared, "classes": classes, "candidates": candidates}


@dataclass(frozen=True, kw_only=True)
class PairCounts:
    """Numbers of pairs of a search, as a report has them.

    Attributes:
        candidates: Number of candidate pairs; an estimate if only a sample was compared, None without a sample.
        similar: Number of pairs that reach the threshold among them; without a sample, among those compared.
        compared: Number of candidate pairs that were compared.
        classes: Number of classes of the sample: a sampled pair stands for as many; 0 if there is no sample.
    """

    candidates: int | None
    similar: int | None
    compared: int
    classes: int

    def to_dict(self) -> dict[str, int | None]:
        """Return the section of a report.

        >>> PairCounts(candidates=260, similar=90, compared=120, classes=8).to_dict()
        {'candidates': 260, 'verified': 90, 'compared': 120, 'sampled_one_in': 8}
        """
        return {
            "candidates": self.candidates,
            "verified": self.similar,
            "compared": self.compared,
            "sampled_one_in": max(1, self.classes),
        }

    @property
    def similar_share(self) -> float | None:
        """Share of the candidates that reach the threshold; None if it is unknown."""
        if self.candidates is None or self.similar is None:
            return None
        return self.similar / max(1, self.candidates)


class _StarPairs:
    """Pairs that decide star groups: those with a kept document, and a sample of the others.

    The first pass compares the pairs of kept documents with later ones, and so finds which documents are removed. The
    second one compares removed documents with later ones that are kept or belong to the sample.
    """

    def __init__(self, search: CandidateVerifier, classes: int) -> None:
        """Resume after the pairs that are verified already.

        Args:
            search: The candidate search.
            classes: Number of classes of the sample; 0 for none.
        """
        self.search, self.classes = search, classes
        self.removed = np.zeros(len(search.documents), dtype=bool)
        self.header: dict[str, Any] = {"pass": 1, "after": None, "examined": 0, "sampled": 0}
        for name in search.work.names(f"{search.stage}-"):
            file = search.work.open(name)
            _kernel.remove_neighbours(file.read("low"), file.read("high"), self.removed)
            self.header = {key: file.header[key] for key in self.header}

    def verify(self) -> None:
        """Compare and write the pairs."""
        proposals = self.search.proposals(self.header["after"])
        self.search.write_chunks(self._chunks(proposals), self._before() + proposals.passed, passes=2)
        counts = self.header["examined"], self.header["sampled"], self.classes
        self.search.finish(star_counts(self.search.proposal_count(), *counts))

    def _before(self) -> int:
        """Return the number of proposals of the passes before this one."""
        return 0 if self.header["pass"] == 1 else self.search.proposal_count()

    def _chunks(self, proposals: "_kernel.Proposals") -> Iterator[ComparedChunk]:
        yield from self._pass(proposals)
        if self.header["pass"] == 1:
            self.header |= {"pass": 2, "after": None}
            yield from self._pass(self.search.proposals(None))

    def _pass(self, proposals: "_kernel.Proposals") -> Iterator[ComparedChunk]:
        first, before = self.header["pass"] == 1, self._before()
        while (compared := self._compare(proposals, first=first)) is not None:
            columns, examined, sampled, last = compared
            self.header["after"] = last
            self.header["examined"] += examined
            self.header["sampled"] += sampled
            block = PairBlock(*columns)
            rest = self.removed[block.low] & self.removed[block.high]  # none in the first pass
            yield ComparedChunk(block.where(~rest), dict(self.header), before + proposals.passed, block.where(rest))

    def _compare(self, proposals: "_kernel.Proposals", *, first: bool) -> tuple[Any, int, int, int] | None:
        search = self.search
        most, threads = search.chunk, search.limits.threads
        if first:
            return proposals.next_of_kept(most, search.comparison, self.removed, threads)
        return proposals.next_of_removed(
            most, search.comparison, self.removed, self.classes, threads, search.sample_numbers
        )


class _ComponentPairs:
    """Pairs that decide connected components: those of documents that earlier pairs do not connect."""

    def __init__(self, search: CandidateVerifier) -> None:
        """Resume after the pairs that are verified already."""
        self.search = search
        self.parents = np.arange(len(search.documents), dtype=np.uint32)
        self.header: dict[str, Any] = {"after": None, "examined": 0}
        for name in search.work.names(f"{search.stage}-"):
            file = search.work.open(name)
            _kernel.join_pairs(file.read("low"), file.read("high"), self.parents)
            self.header = {key: file.header[key] for key in self.header}

    def verify(self) -> None:
        """Compare and write the pairs."""
        proposals = self.search.proposals(self.header["after"])
        self.search.write_chunks(self._chunks(proposals), proposals.passed)
        counts = complete_counts(self.header["examined"], self.search.proposal_count())
        self.search.finish({**counts, "candidates": None})

    def _chunks(self, proposals: "_kernel.Proposals") -> Iterator[ComparedChunk]:
        search = self.search
        arguments = (search.chunk, search.comparison, self.parents, search.limits.threads)
        while (compared := proposals.next_unconnected(*arguments)) is not None:
            columns, examined, _, last = compared
            self.header["after"] = last
            self.header["examined"] += examined
            yield ComparedChunk(PairBlock(*columns), dict(self.header), proposals.passed)
