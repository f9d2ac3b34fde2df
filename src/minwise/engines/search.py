"""Search: documents by number in; their copies, candidate pairs and verified pairs out, piece by piece."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise.engines.documents import Documents
from minwise.engines.near_misses import BINS, NearMisses, floor_bin
from minwise.engines.remembered import RememberedTexts
from minwise.engines.spilled_sets import SetSpill, SpilledSets
from minwise.engines.work import Work
from minwise.errors import InputError
from minwise.formats.array_file import ArrayFile, Arrays
from minwise.formats.arrays import flags
from minwise.formats.source import Batch
from minwise.prefetch import prefetch
from minwise.progress import Progress
from minwise.settings import FindSettings, Limits
from minwise.stages.band import FILLED, NOBODY, BucketCounts, buckets_of, merge_runs, split
from minwise.stages.cluster import CopyGroups, PairBlock
from minwise.stages.keep import KeepOrder
from minwise.stages.verify import packed_similarities

__all__ = ["CHUNK_PAIRS", "Search", "write_verified"]

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


class Search:
    """The passes after the first, each of which leaves its pieces in the work directory.

    Attributes:
        floor: The similarity from which on candidates are compared to the end: the threshold, or a little below it.
        remembered: Texts of candidates, if somebody is to see them.
    """

    def __init__(
        self,
        documents: Documents,
        settings: FindSettings,
        limits: Limits,
        work: Work,
        progress: Progress,
        order: KeepOrder,
        *,
        for_report: bool = False,
    ) -> None:
        self.documents, self.settings, self.limits = documents, settings, limits
        self.work, self.progress, self.order = work, progress, order
        threshold = settings.plan.threshold
        self.floor = floor_bin(threshold) / BINS if for_report else threshold
        self.remembered = RememberedTexts(limits.memory // 64 if for_report else 0)

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

    @cached_property
    def wanted(self) -> NDArray[np.bool_]:
        """Which documents are in a candidate pair; if every pair is to be found, all that can be."""
        if self.settings.exact:
            return np.not_equal(self.members, NOBODY)
        wanted = np.zeros(len(self.documents), dtype=bool)
        for run in self.runs():
            for start in range(0, len(run), CHUNK_PAIRS):
                for side in split(run[start : start + CHUNK_PAIRS]):
                    wanted[self.order.document_at[side]] = True
        return wanted

    def spill_sets(self) -> None:
        """Reads the documents that are in a candidate pair once more and keeps their shingles."""
        if self.settings.verify != "exact" or self.work.has("sets"):
            return
        documents = np.flatnonzero(self.wanted)
        done = sum(self.work.open(name).length("offsets") - 1 for name in self.work.names("sets-"))
        spill = SetSpill(self.work, self.settings.shingler, self.limits)
        name = "shingle" if self.settings.exact else "shingle candidates"
        with self.progress.stage(name, len(documents), "documents", done=done) as stage:
            for texts in prefetch(self.texts_of(documents[done:])):
                spill.add(texts)
                self.remembered.add(documents[done : done + len(texts)], texts)
                done += len(texts)
                stage.advance(len(texts))
        spill.flush()
        pa.default_memory_pool().release_unused()
        if done != len(documents):
            raise InputError(
                f"the input changed while it was read: {len(documents)} documents were to be read again, {done} were"
            )
        self.work.write("sets", {"documents": documents.astype(np.uint32)})

    def texts_of(self, documents: NDArray[np.int64]) -> Iterator[pa.Array]:
        """The texts of some documents, in document order."""
        corpus, starts = self.documents.corpus, self.documents.starts
        bounds = np.searchsorted(documents, starts)
        for number, source in enumerate(corpus.sources):
            rows = documents[bounds[number] : bounds[number + 1]] - starts[number]
            if len(rows):
                wanted = np.zeros(self.documents.rows[number], dtype=bool)
                wanted[rows] = True
                for batch in source.batches(
                    replace(corpus.columns, rank=None), wanted=wanted, batch_bytes=self.limits.batch_bytes
                ):
                    chosen = _chosen(batch, wanted)
                    if len(chosen):
                        yield chosen

    def verify_candidates(self) -> None:
        """Compares every candidate pair, keeps those that reach the threshold and counts those that nearly do."""
        names = self.work.names("verified-")
        last = self.work.open(names[-1]).header if names else {}
        number, examined = len(names), int(last.get("examined", 0))
        runs, after = self.runs(), last.get("after")
        with self.progress.stage("verify", sum(map(len, runs)), "candidates") as stage:
            for pairs in merge_runs(runs, self._chunk, after):
                examined += len(pairs)
                facts = {"after": int(pairs[-1]), "examined": examined}
                write_verified(self.work, number, self._compare(pairs), self.settings.plan.threshold, facts)
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
    def _chunk(self) -> int:
        """Candidates that are looked at together, those that several bands propose counted as often."""
        most = min(CHUNK_PAIRS, self.limits.memory // 8 // PAIR_BYTES)
        return most if self.settings.verify == "exact" else most // 16

    def counts(self) -> tuple[BucketCounts, int]:
        """What the caps met, and how many candidate pairs there were."""
        facts = self.work.read_note("verified")
        return BucketCounts(*facts["caps"]), facts["candidates"]

    def _compare(self, pairs: NDArray[np.uint64]) -> PairBlock:
        """The candidates that are similar enough to be looked at."""
        low, high = split(pairs)
        if self.settings.verify == "none":
            return PairBlock(low, high, np.full(len(pairs), np.nan))
        left, right = self.order.document_at[low], self.order.document_at[high]
        similarity = self._exact(left, right) if self.settings.verify == "exact" else self._estimated(left, right)
        return PairBlock(low, high, similarity).where(similarity >= self.floor)

    @cached_property
    def _sets(self) -> SpilledSets:
        return SpilledSets(self.work, room=self.limits.memory // 4)

    def _exact(self, left: NDArray[np.uint32], right: NDArray[np.uint32]) -> NDArray[np.float64]:
        return self._sets.similarities(left, right, self.floor, self.limits.threads)

    def _estimated(self, left: NDArray[np.uint32], right: NDArray[np.uint32]) -> NDArray[np.float64]:
        documents, places = np.unique(np.concatenate([left, right]), return_inverse=True)
        pairs = np.ascontiguousarray(places.reshape(2, -1).T).astype(np.int64)
        return packed_similarities(self._packed(documents.astype(np.int64)), pairs, self.settings.plan.slots)

    def _packed(self, documents: NDArray[np.int64]) -> NDArray[np.uint8]:
        firsts = [part.header["first"] for part in self.documents.parts]
        bounds = np.searchsorted(documents, [*firsts, len(self.documents)])
        pieces = [
            part.map("packed")[documents[start:end] - first]
            for part, first, start, end in zip(self.documents.parts, firsts, bounds[:-1], bounds[1:], strict=True)
        ]
        return np.ascontiguousarray(np.concatenate(pieces))


def write_verified(work: Work, number: int, compared: PairBlock, threshold: float, facts: dict[str, int]) -> None:
    """Finishes a piece of compared candidates: those that reach the threshold or are unknown, and near misses."""
    below = compared.similarity < threshold
    block, near = compared.where(~below), NearMisses.of(compared.where(below))
    arrays: Arrays = {"low": block.low, "high": block.high, "similarity": block.similarity}
    work.write(f"verified-{number:06}", {**arrays, **near.arrays()}, **facts)


def _in_order_of_leaders(found: list[CopyGroups]) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """The groups of several ranges as one, in the order of their first members, however many ranges there were."""
    members = np.concatenate([groups.members for groups in found])
    sizes = np.concatenate([groups.sizes for groups in found])
    if len(found) == 1:
        return members, sizes.astype(np.uint64)
    leaders = np.concatenate([groups.leaders for groups in found])
    owner = np.repeat(leaders, sizes)
    return members[np.argsort(owner, kind="stable")], sizes[np.argsort(leaders)].astype(np.uint64)


def _chosen(batch: Batch, wanted: NDArray[np.bool_]) -> pa.Array:
    """The wanted texts of a batch."""
    mask = wanted[batch.first : batch.first + len(batch)]
    return batch.texts if mask.all() else batch.texts.filter(flags(mask))
