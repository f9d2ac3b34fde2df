"""Candidate search: groups of identical documents, candidate pairs that share a bucket, and their verification loop.

This stage follows the first pass. How two documents are compared is left to subclasses: texts and sets in
:mod:`minwise.search.verification`, vectors in :mod:`minwise.vectors.pairs`. Identical documents cost O(n), not O(n²):
only the first of them is in a bucket. A band is sorted in ranges of keys that fit a quarter of the memory limit.

If two tables are linked, the ranks of the second one come first, and only pairs of both are proposed. Identical
documents then form a group in each table, and the pair of two such groups is a candidate, whatever the cap on buckets.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.array_files import Arrays
from minwise._internal.prefetch import prefetch
from minwise.search.bands import FILLED, NO_DOCUMENT, BucketCounts, band_buckets
from minwise.search.clustering import CopyGroups, KeepOrder, PairBlock
from minwise.search.documents import Documents, SearchJob
from minwise.search.value_groups import PairRule, grouped_contents, key_pieces_of_groups
from minwise.search.workdir import WorkDirectory

__all__ = [
    "CHUNK_PAIRS",
    "MEMBER_BYTES",
    "NO_PAIRS",
    "PAIR_BYTES",
    "VERIFIED",
    "CandidateSearch",
    "ComparedChunk",
    "complete_counts",
    "write_proposals",
]

# Maximum number of candidate pairs that are verified and written together, and need not be verified again after an
# interruption. With little memory there are fewer: each takes about 60 bytes.
CHUNK_PAIRS = 1 << 22
PAIR_BYTES = 60
# Bytes per document while a band is sorted: key and rank, the sieve, and twice what passes it.
SORTED_BYTES = 40
# Bytes of a member of a bucket.
MEMBER_BYTES = 4
NO_PAIRS = PairBlock.concat([])
# Name of the files of a search that compared all candidates.
VERIFIED = "verified"


class ComparedChunk(NamedTuple):
    """Candidates that were compared together.

    Attributes:
        similar: The pairs to keep.
        header: What a resumed run needs: ``after`` is the smaller rank of the last candidate, ``examined`` the number
            of candidates up to there.
        passed: Number of proposals up to there; a pair that several bands propose counts once per band.
        sampled: Pairs that are only counted.
    """

    similar: PairBlock
    header: dict[str, Any]
    passed: int
    sampled: PairBlock = NO_PAIRS


def complete_counts(candidates: int, proposals: int) -> dict[str, Any]:
    """Return what is noted of a search that compared all candidates."""
    return {"proposals": proposals, "compared": candidates, "classes": 0, "candidates": candidates}


class CandidateSearch(ABC):
    """Stages between the first pass and the verified pairs, each of which writes files to the work directory.

    Attributes:
        documents: The documents of the first pass.
        order: Their keep order; pairs are pairs of ranks.
        stage: Name of the files of compared pairs; others have only some of the candidates.
    """

    def __init__(self, job: SearchJob, documents: Documents, order: KeepOrder) -> None:
        self.documents, self.order, self.stage = documents, order, VERIFIED
        self.settings, self.limits, self.work, self.progress = job.settings, job.limits, job.work, job.progress

    @abstractmethod
    def compare(self, pairs: NDArray[np.uint64]) -> PairBlock:
        """Return the candidates to keep, with their similarity or distance."""

    def write_compared(self, name: str, chunk: ComparedChunk) -> None:
        """Write a chunk of compared candidates."""
        pairs = chunk.similar
        arrays: Arrays = {"low": pairs.low, "high": pairs.high, "similarity": pairs.similarity}
        self.work.write(name, arrays, **chunk.header)

    @cached_property
    def members(self) -> NDArray[np.uint32]:
        """The rank of each document that can be in a bucket, ``NO_DOCUMENT`` for the others."""
        return np.where(self.documents.states == FILLED, self.order.rank_of, np.uint32(NO_DOCUMENT)).astype(np.uint32)

    @cached_property
    def groups(self) -> NDArray[np.uint32] | None:
        """The group of each document, if values decide which documents are compared."""
        column = self.settings.label_column
        return None if column is None else self.documents.value_codes(column)[0]

    @property
    def pair_rule(self) -> PairRule | None:
        """Which pairs of ranks are compared; None if all are."""
        if self.groups is None:
            return None
        return PairRule(self.groups[self.order.document_at], self.settings.within is not None)

    @property
    def separated(self) -> NDArray[np.uint32] | None:
        """The group of each rank, if two of one group are no candidates although they share a bucket."""
        rule = self.pair_rule
        return None if rule is None or rule.equal else rule.groups

    def _key_ranges(self) -> int:
        """Return into how many ranges keys are split so that one range fits a quarter of the memory limit."""
        return max(1, -(-len(self.documents) * SORTED_BYTES // (self.limits.memory // 4)))

    def collapse_copies(self) -> CopyGroups:
        """Return the groups of documents with the same tokens, and remove all but their leaders from the buckets."""
        if not self.work.has("copies"):
            members, sizes = self._copy_groups()
            self.work.write("copies", {"members": members, "sizes": sizes})
        file = self.work.open("copies")
        starts = np.concatenate([[0], np.cumsum(file.read("sizes"))]).astype(np.uint64)
        copies = CopyGroups(file.read("members"), starts)
        self.members[self.order.document_at[copies.followers()[0]]] = NO_DOCUMENT
        return copies

    def _copy_groups(self) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
        parts = self._key_ranges()
        by_range = [self._identical(part, parts) for part in range(parts)]
        # With ``across`` no document that is never removed removes its copies, but others may.
        if self.documents.corpus.linked or self.settings.across is not None:
            by_range = [groups.divided(self.order.protected) for groups in by_range]
        return _sort_by_leader(by_range)

    def _identical(self, part: int, parts: int) -> CopyGroups:
        """Return the groups of identical documents whose content hash is in a range."""
        groups, first = _kernel.Copies(), 0
        for contents in self.documents.column_parts("contents"):
            own = slice(first, first + len(contents))
            hashes = contents if self.groups is None else grouped_contents(contents, self.groups[own])
            groups.push(hashes, self.members[own], part, parts)
            first += len(contents)
        return CopyGroups(*groups.groups(self.limits.threads))

    def propose_candidates(self) -> None:
        """Write the pairs that share a bucket, band by band."""
        bands, parts = self.settings.plan.bands, self._key_ranges()
        todo = [(band, part) for band in range(bands) for part in range(parts)]
        self._delete_other_ranges(parts)
        if self.documents.corpus.linked:
            self._propose_identical(parts)
        with self.progress.stage("band", len(todo), "bands") as stage:
            for band, part in todo:
                if not self.work.has(f"candidates-{band:05}-{part:05}"):
                    self._propose(band, part, parts)
                stage.advance(1)

    def _propose(self, band: int, part: int, parts: int) -> None:
        """Write the buckets of a band; the ``candidates-`` file comes last and marks them as finished."""
        buckets = band_buckets(*self.band_keys(band), part, parts)
        pair = buckets.shared_across if self.documents.corpus.linked else buckets.shared
        firsts, members = pair(self.settings.max_bucket, self.order.protected, self.limits.threads)
        write_proposals(self.work, f"{band:05}-{part:05}", firsts, members)
        self.work.write(f"candidates-{band:05}-{part:05}", {}, counts=buckets.counts())

    def _propose_identical(self, parts: int) -> None:
        """Write the pairs of identical documents of two tables, of which each has one in the buckets."""
        for part in range(parts):
            name = f"identical-{part:05}"
            if not self.work.has(f"proposed-{name}"):
                pairs = self._identical(part, parts)
                ends = pairs.starts[1:].astype(np.uint32)
                write_proposals(self.work, name, np.stack([pairs.leaders, ends - 1, ends], axis=1), pairs.members)

    def band_keys(self, band: int) -> tuple[Iterable[NDArray[np.uint64]], NDArray[np.uint32]]:
        """Return the keys of a band in pieces, and the rank of the document of each key."""
        return self.keys_of_groups(self.documents.column_parts(f"band{band}")), self.members

    def keys_of_groups(
        self, pieces: Iterable[NDArray[np.uint64]], documents: NDArray[np.uint32] | slice = slice(None)
    ) -> Iterable[NDArray[np.uint64]]:
        """Return the keys of a band, which differ for different groups if only documents of one are compared."""
        if self.groups is None or self.settings.within is None:
            return pieces
        return key_pieces_of_groups(pieces, self.groups[documents])

    def _delete_other_ranges(self, parts: int) -> None:
        """Delete the proposals of an earlier run with another memory limit, which split the keys differently."""
        if self.work.has("ranges") and self.work.read_json("ranges")["parts"] != parts:
            self.work.delete("candidates-")
            self.work.delete("proposed-")
        self.work.write_json("ranges", {"parts": parts})

    def proposals(self, after: int | None = None) -> "_kernel.Proposals":
        """Return the proposed candidate pairs; with ``after``, those whose smaller rank is above it."""
        proposals, budget = _kernel.Proposals(after, self.separated), self.limits.memory // 8
        for name in self.work.names("proposed-"):
            file = self.work.open(name)
            budget -= MEMBER_BYTES * file.length("members")
            rows, members = ((file.position(array), file.length(array)) for array in ("firsts", "members"))
            proposals.add(str(file.path), rows, members, budget >= 0)
        return proposals

    def proposal_count(self) -> int:
        """Return the number of proposals; a pair that several bands propose counts once per band."""
        return sum(self.work.open(name).header["pairs"] for name in self.work.names("proposed-"))

    def verify_candidates(self) -> None:
        """Compare every candidate pair and write those to keep."""
        names = self.work.names(f"{self.stage}-")
        last = self.work.open(names[-1]).header if names else {}
        proposals = self.proposals(last.get("after"))
        done = proposals.passed
        header = self.write_chunks(self._compared(proposals, int(last.get("examined", 0))), done)
        self.finish(complete_counts(header.get("examined", 0), self.proposal_count()))
        self.work.delete("candidates-")
        self.work.delete("proposed-")

    def _compared(self, proposals: "_kernel.Proposals", examined: int) -> Iterator[ComparedChunk]:
        while (pairs := proposals.next_pairs(self.chunk, self.limits.threads)) is not None:
            examined += len(pairs)
            header = {"after": int(pairs[-1] >> np.uint64(32)), "examined": examined}
            yield ComparedChunk(self.compare(pairs), header, proposals.passed)

    def write_chunks(self, chunks: Iterator[ComparedChunk], done: int, passes: int = 1) -> dict[str, Any]:
        """Write compared candidates, each chunk while the next is compared; return the header of the last file.

        Args:
            chunks: The candidates; those of existing files are left out.
            done: Number of proposals that an interrupted run has passed.
            passes: How often the proposals are passed.
        """
        names = self.work.names(f"{self.stage}-")
        header: dict[str, Any] = self.work.open(names[-1]).header if names else {}
        with self.progress.stage("verify", passes * self.proposal_count(), "candidates", done=done) as stage:
            for number, chunk in enumerate(prefetch(chunks, depth=1), start=len(names)):
                self.write_compared(f"{self.stage}-{number:06}", chunk)
                header = chunk.header
                stage.advance_to(chunk.passed)
        return header

    def finish(self, counts: dict[str, Any]) -> None:
        """Mark the stage as finished."""
        self.work.write_json(self.stage, {**counts, "caps": self.caps()})

    def caps(self) -> BucketCounts:
        """Return the counts of the bucket cap over all bands."""
        counts = [self.work.open(name).header["counts"] for name in self.work.names("candidates-")]
        capped, members, left_out, largest = zip(*counts, strict=True) if counts else ((), (), (), (0,))
        return BucketCounts(sum(capped), sum(members), sum(left_out), max(largest))

    @property
    def chunk(self) -> int:
        """Number of proposals that are compared together."""
        return min(CHUNK_PAIRS, self.limits.memory // 8 // PAIR_BYTES)


def write_proposals(work: WorkDirectory, name: str, firsts: NDArray[np.uint32], members: NDArray[np.uint32]) -> None:
    """Write candidate pairs in the layout of the kernel.

    Args:
        work: The work directory.
        name: Suffix of the file name.
        firsts: For each smaller rank: the rank, and start and end of its partners in ``members``.
        members: The partners.
    """
    pairs = int((firsts[:, 2] - firsts[:, 1]).sum(dtype=np.uint64))
    work.write(f"proposed-{name}", {"firsts": firsts, "members": members}, pairs=pairs)


def _sort_by_leader(by_range: list[CopyGroups]) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """Return members and sizes of the groups of all ranges, ordered by leader whatever the number of ranges is."""
    members = np.concatenate([groups.members for groups in by_range])
    sizes = np.concatenate([groups.sizes for groups in by_range])
    leaders = np.concatenate([groups.leaders for groups in by_range])
    if (leaders[1:] > leaders[:-1]).all():  # one range, of groups that are not divided
        return members, sizes.astype(np.uint64)
    owner = np.repeat(leaders, sizes)
    return members[np.argsort(owner, kind="stable")], sizes[np.argsort(leaders)].astype(np.uint64)
