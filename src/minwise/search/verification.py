"""Verification: the similarity of candidate pairs of texts and sets, and the near misses just below the threshold.

Candidates come from :mod:`minwise.search.candidates` or :mod:`minwise.search.exact_join`. Documents in a candidate
pair are read a second time; their shingle sets are spilled to files of the work directory (8 bytes per shingle) and
compared from there. The files of verified pairs are what :mod:`minwise.results` reads.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.array_files import ArrayFile, Arrays
from minwise._internal.arrays import from_bools
from minwise._internal.prefetch import prefetch
from minwise.errors import InputError
from minwise.inputs.source import Batch
from minwise.search.bands import NO_DOCUMENT, element_arrays, unpack_pairs
from minwise.search.candidates import CandidateSearch, ComparedChunk
from minwise.search.clustering import CopyGroups, KeepOrder, PairBlock
from minwise.search.common_phrases import COMMON, DocumentSets, write_common_phrases
from minwise.search.documents import Documents, SearchJob
from minwise.search.weighting import key_pieces, search_weights
from minwise.search.workdir import WorkDirectory
from minwise.settings import RunLimits, SearchSettings
from minwise.sketches.similarity import estimate_packed_similarities
from minwise.text.chunks import text_chunk
from minwise.text.shingling import Shingler

__all__ = [
    "BINS",
    "CLOSEST",
    "MARGIN",
    "CandidateVerifier",
    "NearMisses",
    "SetSpillWriter",
    "SpilledSets",
    "TextCache",
    "bin_of",
    "count_by_bin",
    "floor_bin",
    "smallest_indices",
    "write_verified",
]

# Bins of the histogram of similarities, each 0.01 wide, and their borders.
BINS = 100
BORDERS = np.arange(BINS + 1) / BINS
# How far below the threshold a candidate may be to count as a near miss.
MARGIN = 0.05
# Near misses that are stored. The report shows a few of them, those between two kept documents.
CLOSEST = 10_000
# Multiple of these that is held while near misses are merged: sorting for each of 60 files took 0.2 s.
MERGED = 8
# Elements of sets that are collected before they are written.
SPILL_ELEMENTS = 1 << 23
# Bytes of the outline of a set in the kernel, which rules out most dissimilar pairs without reading the set.
OUTLINE_BYTES = 64


class CandidateVerifier(CandidateSearch):
    """Candidate search on texts and sets.

    Attributes:
        floor: The similarity down to which candidates are kept: the threshold, or with ``for_report`` a little less.
        text_cache: Texts of candidates, for the report.
        sample_numbers: The number of each rank that decides which pairs a sample has, where it is not the rank.
    """

    sample_numbers: NDArray[np.uint64] | None = None

    def __init__(self, job: SearchJob, documents: Documents, order: KeepOrder, *, for_report: bool = False) -> None:
        super().__init__(job, documents, order)
        self.floor = threshold = job.settings.plan.threshold
        self.text_cache = TextCache(0)
        if for_report:
            self.floor = floor_bin(threshold) / BINS
            self.text_cache = TextCache(job.limits.memory // 64)

    @cached_property
    def compared(self) -> NDArray[np.bool_]:
        """Flag of each document whose set is needed: those in a candidate pair; if there are no bands yet, all."""
        if self.settings.exact or self.settings.weighted:
            return np.not_equal(self.members, NO_DOCUMENT)
        in_pair = np.zeros(len(self.documents), dtype=bool)
        for name in self.work.names("proposed-"):
            in_pair[self.work.open(name).read("members")] = True
        return in_pair[self.order.rank_of]

    def spill_sets(self) -> None:
        """Read the documents that are compared a second time and write their shingles.

        Raises:
            InputError: If the input changed since the first pass.
        """
        if self.settings.verify != "exact" or self.work.has("sets"):
            return
        documents = np.flatnonzero(self.compared)
        done = sum(self.work.open(name).length("offsets") - 1 for name in self.work.names("sets-"))
        name = "shingle candidates" if self.work.names("proposed-") else "shingle"
        with (
            SetSpillWriter(self.work, self.settings.shingler, self.limits) as writer,
            self.progress.stage(name, len(documents), "documents", done=done) as stage,
        ):
            for texts in self.read_ahead(documents[done:]):
                writer.add(texts)
                self.text_cache.add(documents[done : done + len(texts)], texts)
                done += len(texts)
                stage.advance(len(texts))
                del texts  # before the next ones are read
            writer.finish()
        pa.default_memory_pool().release_unused()
        if done != len(documents):
            raise InputError(
                f"the input changed while it was read: {len(documents)} documents were to be read again, {done} were"
            )
        self.work.write("sets", {"documents": documents.astype(np.uint32)})

    def read_ahead(self, documents: NDArray[np.int64]) -> Iterator[pa.Array]:
        """Yield the same as :meth:`texts_of`, read by another thread; large texts are read one by one."""
        return prefetch(self.texts_of(documents), size=_text_bytes, max_bytes=self.limits.ahead_bytes)

    def texts_of(self, documents: NDArray[np.int64]) -> Iterator[pa.Array]:
        """Yield the texts of ascending documents, in batches."""
        corpus, starts = self.documents.corpus, self.documents.starts
        columns = replace(corpus.columns, values=())
        bounds = np.searchsorted(documents, starts)
        for number, source in enumerate(corpus.sources):
            rows = documents[bounds[number] : bounds[number + 1]] - starts[number]
            if len(rows):
                wanted = np.zeros(self.documents.rows[number], dtype=bool)
                wanted[rows] = True
                for batch in source.batches(columns, wanted=wanted, batch_bytes=self.limits.batch_bytes):
                    chosen = [_select(batch, wanted)]
                    del batch
                    if len(chosen[0]):
                        yield chosen.pop()

    def note_common_phrases(self, sets: Iterable[DocumentSets]) -> None:
        """Write the phrases that count least to the work directory, for a report; nothing for sets."""
        if self.settings.discount == "common" and self.settings.shingler is not None and not self.work.has(COMMON):
            write_common_phrases(self.work, self.settings.shingler, sets, self._text_of)

    def _text_of(self, document: int) -> str | None:
        for texts in self.texts_of(np.array([document])):
            value = texts[0].as_py()
            return value if isinstance(value, str) else value.decode(errors="replace")
        return None

    def write_compared(self, name: str, chunk: ComparedChunk) -> None:
        """Write the pairs of a chunk that reach the threshold, and its near misses."""
        write_verified(self.work, name, chunk, self.settings.plan.threshold)

    @property
    def chunk(self) -> int:
        """Number of proposals that are compared together: fewer where both signatures of a pair are in memory."""
        most = super().chunk
        return most if self.settings.verify == "exact" else most // 16

    def compare(self, pairs: NDArray[np.uint64]) -> PairBlock:
        """Return the candidates whose similarity reaches the floor; with ``verify="none"`` all of them."""
        if self.settings.verify == "exact":
            return self.spilled.similar(pairs, self.floor, self.limits.threads)
        low, high = unpack_pairs(pairs)
        if self.settings.verify == "none":
            return PairBlock(low, high, np.full(len(pairs), np.nan))
        similarity = self._estimated(self.order.document_at[low], self.order.document_at[high])
        return PairBlock(low, high, similarity).where(similarity >= self.floor)

    @cached_property
    def comparison(self) -> "_kernel.PairComparison":
        """The comparison of candidate pairs in the kernel; not for ``verify="signature"``."""
        threshold = self.settings.plan.threshold
        if self.settings.verify == "none":
            return _kernel.PairComparison(None, np.empty(0, dtype=np.uint32), threshold, threshold)
        return self.spilled.comparison(self.floor, threshold)

    def spilled_sizes(self) -> NDArray[np.int64]:
        """Return the number of elements of each document whose set is spilled, 0 for the others."""
        sizes = np.zeros(len(self.documents), dtype=np.int64)
        lengths = [np.diff(self.work.open(name).read("offsets").astype(np.int64)) for name in self.work.names("sets-")]
        sizes[self.work.open("sets").read("documents")] = np.concatenate([np.empty(0, np.int64), *lengths])
        return sizes

    def order_by_size(self, copies: CopyGroups, sizes: NDArray[np.int64]) -> CopyGroups:
        """Make documents of more elements come first in the keep order; return the copies by their new ranks.

        The order of equally large documents stays, and protected ones stay first. So of two documents the first is the
        one in which the other may lie.

        Args:
            copies: The groups of identical documents.
            sizes: The number of elements of each document; those of copies are needed for their leader only.
        """
        before, protected = self.order.document_at, self.order.protected
        followers, leaders = copies.followers()
        sizes[before[followers]] = sizes[before[leaders]]
        free = before[protected:]
        ordered = free[np.argsort(-sizes[free], kind="stable")]
        self.order = KeepOrder(np.concatenate([before[:protected], ordered]), protected=protected)
        return copies.renumbered(self.order.rank_of[before])

    @cached_property
    def spilled(self) -> "SpilledSets":
        """The spilled sets."""
        containment = self.settings.measure == "containment"
        budget = self.limits.memory // 4
        return SpilledSets(self.work, self.order, budget, containment=containment, weights=self.weights)

    @cached_property
    def weights(self) -> "_kernel.Weights | None":
        """The weights of elements; None if all weigh the same."""
        return search_weights(self.work, self.settings, self.limits)

    def band_keys(self, band: int) -> tuple[Iterable[NDArray[np.uint64]], NDArray[np.uint32]]:
        """Return the keys of a band in pieces, and the rank of the document of each key."""
        if not self.settings.weighted:
            return super().band_keys(band)
        documents = self.work.open("sets").read("documents")
        return self.keys_of_groups(key_pieces(self.work, band), documents), self.order.rank_of[documents]

    def _estimated(self, left: NDArray[np.uint32], right: NDArray[np.uint32]) -> NDArray[np.float64]:
        documents, indices = np.unique(np.concatenate([left, right]), return_inverse=True)
        pairs = np.ascontiguousarray(indices.reshape(2, -1).T).astype(np.int64)
        return estimate_packed_similarities(self._packed(documents.astype(np.int64)), pairs, self.settings.plan.slots)

    def _packed(self, documents: NDArray[np.int64]) -> NDArray[np.uint8]:
        firsts = [part.header["first"] for part in self.documents.parts]
        bounds = np.searchsorted(documents, [*firsts, len(self.documents)])
        pieces = [
            part.map("packed")[documents[start:end] - first]
            for part, first, start, end in zip(self.documents.parts, firsts, bounds[:-1], bounds[1:], strict=True)
        ]
        return np.ascontiguousarray(np.concatenate(pieces))


def write_verified(work: WorkDirectory, name: str, chunk: ComparedChunk, threshold: float) -> None:
    """Write compared candidates: pairs that reach the threshold or have no known similarity, and near misses."""
    compared, sampled = chunk.similar, chunk.sampled.similarity
    below = compared.similarity < threshold
    block, near = compared.where(~below), NearMisses.of(compared.where(below))
    arrays: Arrays = {"low": block.low, "high": block.high, "similarity": block.similarity}
    for array, values in (
        ("sampled_pairs", sampled[sampled >= threshold]),
        ("sampled_near", sampled[sampled < threshold]),
    ):
        arrays[array] = count_by_bin(values).astype(np.uint64)
    work.write(name, {**arrays, **near.arrays()}, **chunk.header)


def _text_bytes(texts: pa.Array) -> int:
    return int(texts.nbytes)


def _select(batch: Batch, wanted: NDArray[np.bool_]) -> pa.Array:
    """Return the wanted texts of a batch."""
    mask = wanted[batch.first : batch.first + len(batch)]
    return batch.values if mask.all() else batch.values.filter(from_bools(mask))


class TextCache:
    """Texts of candidates up to a number of bytes, so that the report can show them without reading them again."""

    def __init__(self, budget: int) -> None:
        """Create an empty cache for ``budget`` bytes."""
        self._budget = budget
        self._documents: list[NDArray[np.int64]] = []
        self._batches: list[tuple[NDArray[np.int64], NDArray[np.uint8]]] = []

    def add(self, documents: NDArray[np.int64], texts: pa.Array) -> None:
        """Copy the first texts of a batch that fit; the numbers of their documents are ascending. Sets are ignored."""
        if pa.types.is_large_list(texts.type) or self._budget <= 0:
            return
        chunk = text_chunk(texts)
        offsets = chunk.offsets.astype(np.int64) - int(chunk.offsets[0])
        fitting = int(np.searchsorted(offsets, self._budget, side="right")) - 1
        first = int(chunk.offsets[0])
        self._documents.append(documents[:fitting])
        self._batches.append((offsets[: fitting + 1], chunk.data[first : first + int(offsets[fitting])].copy()))
        # The first text that does not fit closes the cache: skipping it would leave out all large texts.
        self._budget = self._budget - int(offsets[fitting]) if fitting == len(texts) else 0

    def get(self, document: int) -> bytes | None:
        """Return the text of a document; None if it is not in the cache."""
        for documents, (offsets, data) in zip(self._documents, self._batches, strict=True):
            index = int(np.searchsorted(documents, document))
            if index < len(documents) and documents[index] == document:
                return data[offsets[index] : offsets[index + 1]].tobytes()
        return None


class SpilledSets:
    """Shingle sets of every document in a candidate pair, read from files by rank."""

    def __init__(
        self,
        work: WorkDirectory,
        order: KeepOrder,
        budget: int,
        *,
        containment: bool = False,
        weights: "_kernel.Weights | None" = None,
    ) -> None:
        """Open the sets and hold the first files in memory, up to ``budget`` bytes."""
        documents = work.open("sets").read("documents")
        self._indices = np.full(len(order.rank_of), NO_DOCUMENT, dtype=np.uint32)
        self._indices[order.rank_of[documents]] = np.arange(len(documents), dtype=np.uint32)
        self._store = _kernel.SetStore(containment, weights)
        outlined = budget >= OUTLINE_BYTES * len(documents)
        budget -= OUTLINE_BYTES * len(documents) if outlined else 0
        for name in work.names("sets-"):
            file = work.open(name)
            budget -= 8 * file.length("elements")
            self._store.add(str(file.path), file.position("elements"), file.read("offsets"), outlined, budget >= 0)

    @classmethod
    def of(
        cls, work: WorkDirectory, order: KeepOrder, settings: SearchSettings, limits: RunLimits, budget: int
    ) -> "SpilledSets":
        """Open the sets of a search, compared by its measure."""
        weights = search_weights(work, settings, limits)
        return cls(work, order, budget, containment=settings.measure == "containment", weights=weights)

    def comparison(self, floor: float, threshold: float) -> "_kernel.PairComparison":
        """Return the comparison of pairs: those that reach the floor are returned, similar ones reach the threshold."""
        return _kernel.PairComparison(self._store, self._indices, floor, threshold)

    def similar(self, pairs: NDArray[np.uint64], floor: float, threads: int) -> PairBlock:
        """Return the pairs whose similarity reaches the floor, in their order."""
        return PairBlock(*self._store.similar(pairs, self._indices, floor, threads))


class SetSpillWriter:
    """Collects shingle sets and writes them to files of bounded size, each while the next is collected.

    Attributes:
        prefix: Beginning of the names of the files.
    """

    def __init__(
        self, work: WorkDirectory, shingler: Shingler | None, limits: RunLimits, prefix: str = "sets-"
    ) -> None:
        self.work, self.shingler, self.limits, self.prefix = work, shingler, limits, prefix
        self.sizes: list[NDArray[np.int64]] = []
        self.elements: list[NDArray[np.uint64]] = []
        self.collected = 0
        self.number = len(work.names(prefix))
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="minwise-spill")
        self._writing: Future[None] | None = None

    def __enter__(self) -> "SetSpillWriter":
        """Return the writer."""
        return self

    def __exit__(self, *error: object) -> None:
        """Wait for the file that is being written."""
        self._pool.shutdown()

    def add(self, texts: pa.Array) -> None:
        """Shingle texts; write a file when enough elements are collected. A large text has a file of its own."""
        if texts.nbytes > self.limits.ahead_bytes:
            self.finish()
        offsets, elements = element_arrays(texts, self.shingler, self.limits.threads)
        self.sizes.append(np.diff(offsets))
        self.elements.append(elements)
        self.collected += len(elements)
        if self.collected >= min(SPILL_ELEMENTS, self.limits.memory // 64):
            self.flush()

    def flush(self) -> None:
        """Begin to write the collected sets to a file, when the file before it is written."""
        self._wait()
        if self.sizes:
            self._writing = self._pool.submit(self._write, self.number, self.sizes, self.elements)
            self.number += 1
            self.sizes, self.elements, self.collected = [], [], 0

    def finish(self) -> None:
        """Write the collected sets to a file; return when all files are written."""
        self.flush()
        self._wait()

    def _wait(self) -> None:
        if self._writing is not None:
            writing, self._writing = self._writing, None
            writing.result()

    def _write(self, number: int, sizes: list[NDArray[np.int64]], elements: list[NDArray[np.uint64]]) -> None:
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.uint64)
        joined = elements[0] if len(elements) == 1 else np.concatenate(elements)
        self.work.write(f"{self.prefix}{number:06}", {"offsets": offsets, "elements": joined})


@dataclass(frozen=True, slots=True)
class NearMisses:
    """Candidates just below a threshold. Pairs that no band proposed were not compared and are not included.

    Attributes:
        counts: How many there are in each bin of similarity.
        closest: The 10,000 most similar ones, descending; of equally similar ones the first.
    """

    counts: NDArray[np.int64]
    closest: PairBlock

    @classmethod
    def of(cls, block: PairBlock) -> "NearMisses":
        """Return the near misses of an ascending block in which every pair is one."""
        return cls(count_by_bin(block.similarity), block.take(smallest_indices(-block.similarity, CLOSEST)))

    @classmethod
    def read(cls, file: ArrayFile) -> "NearMisses":
        """Return the near misses of a file of verified pairs."""
        columns = (file.read(f"near_{name}") for name in ("low", "high", "similarity"))
        return cls(file.read("near_counts").astype(np.int64), PairBlock(*columns))

    def arrays(self) -> Arrays:
        """Return the arrays that :meth:`read` reads."""
        columns = {f"near_{name}": getattr(self.closest, name) for name in ("low", "high", "similarity")}
        return {"near_counts": self.counts.astype(np.uint64), **columns}

    @classmethod
    def merge(cls, parts: Iterable["NearMisses"]) -> "NearMisses":
        """Return the near misses of all parts; their order does not change the result."""
        counts, closest = np.zeros(BINS, dtype=np.int64), PairBlock.concat([])
        for part in parts:
            counts = counts + part.counts
            closest = PairBlock.concat([closest, part.closest])
            if len(closest) > MERGED * CLOSEST:
                closest = _closest(closest)
        return cls(counts, _closest(closest))

    def with_more(self, counts: NDArray[np.int64]) -> "NearMisses":
        """Return the same near misses with further ones that are only counted."""
        return NearMisses(self.counts + counts, self.closest)

    def from_bin(self, first: int) -> "NearMisses":
        """Return those in bin ``first`` or above."""
        counts = np.where(np.arange(BINS) >= first, self.counts, 0)
        return NearMisses(counts, self.closest.where(self.closest.similarity >= BORDERS[first]))


def _closest(block: PairBlock) -> PairBlock:
    """Return the most similar pairs, descending; of equally similar ones the first."""
    return block.take(np.lexsort((block.high, block.low, -block.similarity))[:CLOSEST])


def bin_of(similarity: float) -> int:
    """Return the bin that a similarity is in."""
    return int(np.searchsorted(BORDERS[1:-1], similarity, side="right"))


def floor_bin(threshold: float) -> int:
    """Return the bin in which near misses of a threshold begin.

    >>> [floor_bin(threshold) for threshold in (0.8, 0.7, 0.805, 0.03)]
    [75, 65, 75, 0]
    """
    return bin_of(round(threshold - MARGIN, 9))  # 0.7 - 0.05 is a little less than 0.65


def count_by_bin(similarity: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return how many similarities are in each bin."""
    bins = np.minimum((similarity * BINS).astype(np.uint8), BINS - 1)  # off by one where the product is rounded
    bins -= similarity < BORDERS[bins]
    bins += (similarity >= BORDERS[bins + 1]) & (bins < BINS - 1)
    return np.bincount(bins, minlength=BINS)


def smallest_indices(values: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Return the indices of the ``count`` smallest values, ascending by value; of equal ones the first."""
    if len(values) <= count:
        return np.argsort(values, kind="stable")
    indices = np.flatnonzero(values <= np.partition(values, count - 1)[count - 1])
    return indices[np.argsort(values[indices], kind="stable")][:count]
