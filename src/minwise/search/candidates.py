"""Candidates: documents by number in; their copies and candidate pairs out, piece by piece; compared ones kept.

What documents are, and how two of them are compared, is left to whoever arranges a search: of texts in
:mod:`minwise.search.verification`, of vectors in :mod:`minwise.vectors.pairs`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.prefetch import prefetch
from minwise.search.bands import FILLED, NOBODY, BucketCounts, buckets_of
from minwise.search.clustering import CopyGroups, KeepOrder, PairBlock
from minwise.search.documents import Documents
from minwise.search.engine import Engine, Found, Job, RememberedTexts
from minwise.search.workdir import Work

__all__ = ["CHUNK_PAIRS", "MEMBER_BYTES", "PAIR_BYTES", "Candidates", "write_proposals"]

# Candidate pairs that are verified together and, with their result, need not be verified again: at most, and fewer in
# little memory, of which each takes about 60 bytes.
CHUNK_PAIRS = 1 << 22
PAIR_BYTES = 60
# Bytes that a document costs while a band is sorted: key and number, the sieve, and what passes it twice.
SORTED_BYTES = 40
# Bytes of a member of a bucket.
MEMBER_BYTES = 4


class Compared(NamedTuple):
    """Candidates that were compared together.

    Attributes:
        similar: Those that are to be kept.
        examined: How many there were.
        last: The last of their smaller sides.
        passed: How many pairs were proposed up to there, those that several bands propose counted as often.
    """

    similar: PairBlock
    examined: int
    last: int
    passed: int


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
        """Writes a band's buckets; the piece that says so comes last."""
        buckets = buckets_of(self.documents.pieces(f"band{band}"), self.members, part, parts)
        firsts, members = buckets.shared(self.settings.max_bucket, self.documents.protected, self.limits.threads)
        write_proposals(self.work, f"{band:05}-{part:05}", firsts, members)
        self.work.write(f"candidates-{band:05}-{part:05}", {}, counts=buckets.counts())

    def _forget_other_ranges(self, parts: int) -> None:
        """Drops what an earlier run with another memory limit proposed: its ranges of keys were others."""
        if self.work.has("ranges") and self.work.read_note("ranges")["parts"] != parts:
            self.work.forget("candidates-")
            self.work.forget("proposed-")
        self.work.note("ranges", {"parts": parts})

    def proposals(self, after: int | None = None) -> "_kernel.Proposals":
        """The candidate pairs that were proposed, those whose smaller side is behind a number."""
        found, room = _kernel.Proposals(after), self.limits.memory // 8
        for name in self.work.names("proposed-"):
            piece = self.work.open(name)
            room -= MEMBER_BYTES * piece.length("members")
            rows, members = ((piece.position(array), piece.length(array)) for array in ("firsts", "members"))
            found.add(str(piece.path), rows, members, room >= 0)
        return found

    def proposed(self) -> int:
        """How many pairs were proposed, those that several bands propose counted as often."""
        return sum(self.work.open(name).header["pairs"] for name in self.work.names("proposed-"))

    def verify_candidates(self) -> None:
        """Compares every candidate pair and keeps those that are to be kept; writes some while it compares the next."""
        names = self.work.names("verified-")
        last = self.work.open(names[-1]).header if names else {}
        proposals, examined = self.proposals(last.get("after")), int(last.get("examined", 0))
        with self.progress.stage("verify", self.proposed(), "candidates", done=proposals.passed) as stage:
            for number, piece in enumerate(prefetch(self._compared(proposals), depth=1), start=len(names)):
                examined += piece.examined
                self.write_compared(number, piece.similar, {"after": piece.last, "examined": examined})
                stage.reach(piece.passed)
        self.work.note("verified", {"caps": self.caps(), "candidates": examined})
        self.work.forget("candidates-")
        self.work.forget("proposed-")

    def _compared(self, proposals: "_kernel.Proposals") -> Iterator[Compared]:
        while (pairs := proposals.next_pairs(self.chunk, self.limits.threads)) is not None:
            last = int(pairs[-1] >> np.uint64(32))
            yield Compared(self.compare(pairs), len(pairs), last, proposals.passed)

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


def write_proposals(work: Work, name: str, firsts: NDArray[np.uint32], members: NDArray[np.uint32]) -> None:
    """Leaves candidate pairs as the kernel reads them: smaller sides, and where their partners stand among members."""
    pairs = int((firsts[:, 2] - firsts[:, 1]).sum(dtype=np.uint64))
    work.write(f"proposed-{name}", {"firsts": firsts, "members": members}, pairs=pairs)


def _in_order_of_leaders(found: list[CopyGroups]) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """The groups of several ranges as one, in the order of their first members, however many ranges there were."""
    members = np.concatenate([groups.members for groups in found])
    sizes = np.concatenate([groups.sizes for groups in found])
    if len(found) == 1:
        return members, sizes.astype(np.uint64)
    leaders = np.concatenate([groups.leaders for groups in found])
    owner = np.repeat(leaders, sizes)
    return members[np.argsort(owner, kind="stable")], sizes[np.argsort(leaders)].astype(np.uint64)
