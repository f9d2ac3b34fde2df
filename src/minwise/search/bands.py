"""Banding: the band keys of texts and sets, and the buckets that equal keys form.

The first pass calls :class:`Bander` for every batch; the kernel normalises, shingles, sketches and bands in one pass
over the text. :mod:`minwise.search.candidates` later sorts the keys of one band at a time into buckets. A document
costs 8 bytes per band plus 17 bytes for its content hash and state.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import to_numpy, valid_mask
from minwise.settings import SearchSettings
from minwise.text.chunks import text_chunk
from minwise.text.shingling import Shingler, kernel_shingler

__all__ = [
    "EMPTY",
    "FAULTY",
    "FILLED",
    "NO_DOCUMENT",
    "NO_KEY",
    "Bander",
    "BucketCounts",
    "KeyBlock",
    "band_buckets",
    "cut_runs",
    "element_arrays",
    "key_bytes",
    "pack_pairs",
    "unpack_pairs",
]

# State of a document: it has keys, it has no elements, it cannot be read.
FILLED, EMPTY, FAULTY = 0, 1, 2
# Marks a document that is in no bucket, and an absent document elsewhere.
NO_DOCUMENT = 2**32 - 1
NO_KEY = 2**64 - 1
# Below this size one thread finishes before a second one has started, as in corpora of tiny files.
SMALL_BYTES = 1 << 16


@dataclass(slots=True)
class KeyBlock:
    """Preallocated arrays for the keys of many documents, filled batch by batch.

    Attributes:
        keys: A row per band, a column per document.
        contents: The 128-bit hash of each document's tokens, as two words.
        states: ``FILLED``, ``EMPTY`` or ``FAULTY``.
        packed: The low 16 bits of each slot, if candidates are verified by signature.
        used: Number of documents filled.
    """

    keys: NDArray[np.uint64]
    contents: NDArray[np.uint64]
    states: NDArray[np.uint8]
    packed: NDArray[np.uint8] | None
    used: int = 0

    @classmethod
    def allocate(cls, settings: SearchSettings, documents: int) -> "KeyBlock":
        """Return an empty block for ``documents`` documents."""
        plan = settings.plan
        packed = np.zeros((documents, 2 * plan.slots), dtype=np.uint8) if settings.verify == "signature" else None
        return cls(
            np.empty((plan.bands, documents), dtype=np.uint64),
            np.empty((documents, 2), dtype=np.uint64),
            np.empty(documents, dtype=np.uint8),
            packed,
        )

    def mark_nulls(self, start: int, texts: pa.Array, faults: list[tuple[int, str]]) -> list[tuple[int, str]]:
        """Mark the nulls among the documents added at ``start`` as faulty; return the faults of the other documents."""
        if not texts.null_count:
            return faults
        nulls = np.flatnonzero(~valid_mask(texts))
        self.keys[:, start + nulls] = NO_KEY
        self.states[start + nulls] = FAULTY
        missing = set(nulls.tolist())
        return [fault for fault in faults if fault[0] not in missing]

    @property
    def free(self) -> int:
        """Number of documents that still fit."""
        return len(self.states) - self.used

    @property
    def nbytes(self) -> int:
        """Bytes of the keys, and of the packed slots if there are any."""
        return self.keys.nbytes + (0 if self.packed is None else self.packed.nbytes)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the filled part, an array per band so that one band can be read alone."""
        filled = {f"band{band}": row[: self.used] for band, row in enumerate(self.keys)}
        filled |= {"contents": self.contents[: self.used], "states": self.states[: self.used]}
        return filled if self.packed is None else {**filled, "packed": self.packed[: self.used]}


def key_bytes(settings: SearchSettings) -> int:
    """Return the bytes of the keys of a document, and of its packed slots if it has any."""
    return 8 * settings.plan.bands + (2 * settings.plan.slots if settings.verify == "signature" else 0)


class Bander:
    """Computes the band keys of texts and sets: normalise, shingle, sketch and band in one kernel pass."""

    def __init__(self, settings: SearchSettings, weights: "_kernel.Weights | None" = None) -> None:
        """Create the function from documents to keys; with ``weights`` signatures are weighted."""
        plan = settings.plan
        sketcher = _kernel.Sketcher(scheme=settings.scheme, slots=plan.slots, seed=settings.seed, weights=weights)
        self._bander = _kernel.Bander(sketcher, plan.bands, plan.rows, settings.seed)
        self._shingler = None if settings.shingler is None else kernel_shingler(settings.shingler)
        self._seed = settings.seed

    def band(self, texts: pa.Array, block: KeyBlock, threads: int) -> list[tuple[int, str]]:
        """Add the documents to the block; return the index in ``texts`` and the reason of each that is not text.

        A null is faulty too but not returned: the source that made it null has recorded the reason.
        """
        start, block.used = block.used, block.used + len(texts)
        if self._shingler is None:
            offsets, elements = set_arrays(texts)
            faults = self._bander.band_sets(offsets, elements, self._seed, block, start, threads)
        else:
            chunk = text_chunk(texts)
            if chunk.offsets[-1] - chunk.offsets[0] < SMALL_BYTES:
                threads = 1
            faults = self._bander.band_texts(self._shingler, chunk.offsets, chunk.data, block, start, threads)
        return block.mark_nulls(start, texts, faults)

    def band_arrays(
        self, offsets: NDArray[np.int64], elements: NDArray[np.uint64], block: KeyBlock, threads: int
    ) -> None:
        """Write the keys of sets to a block of as many documents."""
        self._bander.band_sets(offsets, elements, self._seed, block, 0, threads)


def element_arrays(
    texts: pa.Array, shingler: Shingler | None, threads: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return offsets and elements: the shingles of texts, or with no shingler the elements of sets."""
    if shingler is not None:
        sets = shingler.shingle(texts, threads=threads or None)
        return sets.offsets, sets.hashes
    offsets, elements = set_arrays(texts)
    return offsets - offsets[0], elements[offsets[0] : offsets[-1]]


def set_arrays(sets: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return offsets and elements of a list column of hashed elements."""
    return to_numpy(sets.offsets), to_numpy(sets.values)


class SortedRun(Protocol):
    """Ascending numbers that can be sliced: an array, or a view of a file."""

    def __len__(self) -> int: ...
    def __getitem__(self, key: Any, /) -> Any: ...  # noqa: ANN401 - a number or a slice


class BucketCounts(NamedTuple):
    """Counts of the bucket cap: buckets above it, their members, pairs left out, and the largest bucket."""

    capped: int = 0
    capped_members: int = 0
    left_out: int = 0
    largest: int = 0


def band_buckets(
    keys: Iterable[NDArray[np.uint64]], members: NDArray[np.uint32], part: int, parts: int
) -> "_kernel.Buckets":
    """Return the buckets of one band.

    Args:
        keys: The band's keys of all documents, in pieces.
        members: The rank of each document, or ``NO_DOCUMENT`` if it is in no bucket.
        part: Which of ``parts`` equal ranges of keys to use; the union over all parts does not depend on ``parts``.
        parts: Number of ranges.
    """
    buckets, first = _kernel.Buckets(), 0
    for piece in keys:
        buckets.push(piece, members[first : first + len(piece)], part, parts)
        first += len(piece)
    return buckets


def unpack_pairs(pairs: NDArray[np.uint64]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the low and the high sides of packed pairs."""
    return (pairs >> np.uint64(32)).astype(np.uint32), (pairs & np.uint64(0xFFFF_FFFF)).astype(np.uint32)


def pack_pairs(low: NDArray[np.uint32], high: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return each pair as one number, ``low << 32 | high``, which sorts as the pairs do."""
    return low.astype(np.uint64) << np.uint64(32) | high


def cut_runs(runs: Sequence[SortedRun], most: int, after: int | None = None) -> Iterator[list[slice]]:
    """Yield cuts of sorted runs at common values: every slice of a cut lies above those of the previous cut.

    Args:
        runs: Ascending arrays, or views of files.
        most: Maximum number of entries of all runs in one cut; at least one of each run.
        after: Skip entries up to and including this value.
    """
    starts = [0 if after is None else int(np.searchsorted(run[:], np.uint64(after), side="right")) for run in runs]
    while any(start < len(run) for start, run in zip(starts, runs, strict=True)):
        left = [(start, run) for start, run in zip(starts, runs, strict=True) if start < len(run)]
        limits = [] if sum(len(run) - start for start, run in left) <= most else _share_ends(left, most)
        if limits:
            ends = [int(np.searchsorted(run[:], min(limits), side="right")) for run in runs]
        else:
            ends = [len(run) for run in runs]
        yield [slice(start, end) for start, end in zip(starts, ends, strict=True)]
        starts = ends


def _share_ends(left: list[tuple[int, SortedRun]], most: int) -> list[Any]:
    """Return the last value of the share of each run that has more entries left than its share.

    Half of ``most`` is shared equally and half by the number of entries left. If all of it were shared equally, the
    longest run would end every cut: 249 files of repeated passages took 251 cuts, and take 148.
    """
    total = sum(len(run) - start for start, run in left)
    spare = max(0, most - len(left)) // 2
    shares = [1 + spare // len(left) + (len(run) - start) * spare // total for start, run in left]
    return [
        run[start + share - 1] for (start, run), share in zip(left, shares, strict=True) if start + share < len(run)
    ]
