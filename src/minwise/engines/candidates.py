"""Candidates: documents by number in; their copies and candidate pairs out, piece by piece; compared ones kept.

What documents are, and how two of them are compared, is left to whoever arranges a search: of texts in
:mod:`minwise.engines.search`, of vectors in :mod:`minwise.engines.vectors`.
"""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise.array_file import ArrayFile
from minwise.engines.documents import Documents
from minwise.engines.found import Engine, Found
from minwise.engines.job import Job
from minwise.engines.remembered import RememberedTexts
from minwise.stages.band import FILLED, NOBODY, BucketCounts, buckets_of, merge_runs, split
from minwise.stages.cluster import CopyGroups, PairBlock
from minwise.stages.keep import KeepOrder

__all__ = ["CHUNK_PAIRS", "PAIR_BYTES", "Candidates"]

# Candidate pairs that are verified together and, with their result, need not be verified again: at most, and fewer in
# little memory, of which each takes about 60 bytes.
CHUNK_PAIRS = 1 << 22
PAIR_BYTES = 60
# Bytes that a document costs while a band is sorted: key and number, the sieve, and what passes it twice.
SORTED_BYTES = 40


class StoredRun:
    """Ascending pairs in a file. A slice is a fresh view, so that pages are given back as soon as it is not needed."""

    def __init__(self, piece: ArrayFile) -> None:
        self._piece = piece

    def __len__(self) -> int:
        return self._piece.length("pairs")

    def __getitem__(self, key: Any) -> Any:  # noqa: ANN401 - a number or a slice, as an array takes them
        return self._piece.map("pairs")[key]


class Candidates(ABC):
    """The passes between reading documents and knowing their pairs, each of which leaves its pieces in the work.

    Attributes:
        remembered: Texts of candidates, if somebody is to see them.
    """

    def __init__(self, job: Job, documents: Documents, order: KeepOrder) -> None:
        self.documents, self.order = documents, order
        self.settings, self.limits, self.work, self.progress = job.settings, job.limits, job.work, job.progress
        self.remembered = RememberedTexts(0)

    @abstractmethod
    def compare(self, pairs: NDArray[np.uint64]) -> PairBlock:
        """The candidates that are to be kept, with how alike they are."""

    def write_compared(self, number: int, compared: PairBlock, facts: dict[str, int]) -> None:
        """Finishes a piece of compared candidates."""
        self.work.write(
            f"verified-{number:06}",
            {"low": compared.low, "high": compared.high, "similarity": compared.similarity},
            **facts,
        )

    @cached_property
    def members(self) -> NDArray[np.uint32]:
        """The number of each document that can be in a bucket, ``NOBODY`` for the others."""
        return np.where(self.documents.states == FILLED, self.order.number_of, np.uint32(NOBODY)).astype(np.uint32)

    def _parts(self) -> int:
        """Into how many ranges keys are cut so that one of them fits a quarter of the memory."""
        return max(1, -(-len(self.documents) * SORTED_BYTES // (self.limits.memory // 4)))

    def collapse_copies(self) -> CopyGroups:
        """Finds the documents with the same tokens; from here on only the first of them is looked at."""
        if not self.work.has("copies"):
            members, sizes = self._copy_groups()
            self.work.write("copies", {"members": members, "sizes": sizes})
        piece = self.work.open("copies")
        starts = np.concatenate([[0], np.cumsum(piece.read("sizes"))]).astype(np.uint64)
        copies = CopyGroups(piece.read("members"), starts)
        self.members[self.order.document_at[copies.followers()[0]]] = NOBODY
        return copies

    def _copy_groups(self) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
        found: list[CopyGroups] = []
        parts = self._parts()
        for part in range(parts):
            groups, first = _kernel.Copies(), 0
            for contents in self.documents.pieces("contents"):
                groups.push(contents, self.members[first : first + len(contents)], part, parts)
                first += len(contents)
            found.append(CopyGroups(*groups.groups(self.limits.threads)))
        return _in_order_of_leaders(found)

    def propose_candidates(self) -> None:
        """Finds the pairs that share a bucket, band by band."""
        bands, parts = self.settings.plan.bands, self._parts()
        todo = [(band, part) for band in range(bands) for part in range(parts)]
        self._forget_other_ranges(parts)
        with self.progress.stage("band", len(todo), "bands") as stage:
            for band, part in todo:
                if not self.work.has(f"candidates-{band:05}-{part:05}"):
                    self._propose(band, part, parts)
                stage.advance(1)

    def _propose(self, band: int, part: int, parts: int) -> None:
        """Writes the pairs of a band's buckets in runs of a bounded size; the piece that says so comes last."""
        name = f"{band:05}-{part:05}"
        self.work.forget(f"proposed-{name}-")  # of a run that was cut short
        buckets = buckets_of(self.documents.pieces(f"band{band}"), self.members, part, parts)
        number = 0
        while True:
            pairs = buckets.next_pairs(self.settings.max_bucket, self.limits.memory // 64, self.limits.threads)
            if pairs is None:
                break
            if self.documents.protected:  # two that are only compared against need not be compared
                pairs = pairs[split(pairs)[1] >= self.documents.protected]
            self.work.write(f"proposed-{name}-{number:05}", {"pairs": pairs})
            number += 1
        self.work.write(f"candidates-{name}", {}, counts=buckets.counts())

    def _forget_other_ranges(self, parts: int) -> None:
        """Drops what an earlier run with another memory limit proposed: its ranges of keys were others."""
        if self.work.has("ranges") and self.work.read_note("ranges")["parts"] != parts:
            self.work.forget("candidates-")
            self.work.forget("proposed-")
        self.work.note("ranges", {"parts": parts})

    def runs(self) -> list[StoredRun]:
        """The candidate pairs that the bands proposed, each run ascending."""
        return [StoredRun(self.work.open(name)) for name in self.work.names("proposed-")]

    def verify_candidates(self) -> None:
        """Compares every candidate pair and keeps those that are to be kept."""
        names = self.work.names("verified-")
        last = self.work.open(names[-1]).header if names else {}
        number, examined = len(names), int(last.get("examined", 0))
        runs, after = self.runs(), last.get("after")
        with self.progress.stage("verify", sum(map(len, runs)), "candidates") as stage:
            for pairs in merge_runs(runs, self.chunk, after, threads=self.limits.threads):
                examined += len(pairs)
                facts = {"after": int(pairs[-1]), "examined": examined}
                self.write_compared(number, self.compare(pairs), facts)
                number += 1
                stage.reach(sum(int(np.searchsorted(run[:], pairs[-1], side="right")) for run in runs))
        self.work.note("verified", {"caps": self.caps(), "candidates": examined})
        self.work.forget("candidates-")
        self.work.forget("proposed-")

    def caps(self) -> BucketCounts:
        """What the cap on buckets met in all bands."""
        counts = [self.work.open(name).header["counts"] for name in self.work.names("candidates-")]
        capped, members, left_out, largest = zip(*counts, strict=True) if counts else ((), (), (), (0,))
        return BucketCounts(sum(capped), sum(members), sum(left_out), max(largest))

    @property
    def chunk(self) -> int:
        """Candidates that are looked at together, those that several bands propose counted as often."""
        return min(CHUNK_PAIRS, self.limits.memory // 8 // PAIR_BYTES)

    def found(self, copies: CopyGroups, engine: Engine) -> Found:
        """What is left when every candidate has been compared."""
        facts = self.work.read_note("verified")
        return Found(
            documents=self.documents,
            settings=self.settings,
            order=self.order,
            copies=copies,
            caps=BucketCounts(*facts["caps"]),
            candidates=facts["candidates"],
            work=self.work,
            limits=self.limits,
            remembered=self.remembered,
            engine=engine,
        )


def _in_order_of_leaders(found: list[CopyGroups]) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """The groups of several ranges as one, in the order of their first members, however many ranges there were."""
    members = np.concatenate([groups.members for groups in found])
    sizes = np.concatenate([groups.sizes for groups in found])
    if len(found) == 1:
        return members, sizes.astype(np.uint64)
    leaders = np.concatenate([groups.leaders for groups in found])
    owner = np.repeat(leaders, sizes)
    return members[np.argsort(owner, kind="stable")], sizes[np.argsort(leaders)].astype(np.uint64)
