"""Band: texts or sets in, the keys of their bands out; keys in, candidate pairs out."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import present, to_numpy
from minwise.settings import FindSettings
from minwise.text.chunks import text_chunk
from minwise.text.shingling import Shingler, kernel_shingler

__all__ = [
    "EMPTY",
    "FAULTY",
    "FILLED",
    "NOBODY",
    "NO_KEY",
    "Bander",
    "BucketCounts",
    "KeyBlock",
    "buckets_of",
    "cut_runs",
    "element_arrays",
    "pack",
    "split",
]

# What became of a document: it has keys, it has no elements, it could not be read.
FILLED, EMPTY, FAULTY = 0, 1, 2
# The number of a document that takes part in no bucket.
NOBODY = 2**32 - 1
NO_KEY = 2**64 - 1
# Texts that a thread is done with before another has woken up, as in corpora of tiny files.
SMALL_BYTES = 1 << 16


@dataclass(slots=True)
class KeyBlock:
    """Room for the keys of many documents, a column each, filled batch by batch.

    Attributes:
        keys: A row per band.
        contents: The 128-bit hash of each document's tokens, as two words.
        states: ``FILLED``, ``EMPTY`` or ``FAULTY``.
        packed: The low 16 bits of each slot, if signatures are wanted later.
    """

    keys: NDArray[np.uint64]
    contents: NDArray[np.uint64]
    states: NDArray[np.uint8]
    packed: NDArray[np.uint8] | None
    used: int = 0

    @classmethod
    def of(cls, settings: FindSettings, documents: int) -> "KeyBlock":
        """Room for ``documents``."""
        plan = settings.plan
        packed = np.zeros((documents, 2 * plan.slots), dtype=np.uint8) if settings.verify == "signature" else None
        return cls(
            np.empty((plan.bands, documents), dtype=np.uint64),
            np.empty((documents, 2), dtype=np.uint64),
            np.empty(documents, dtype=np.uint8),
            packed,
        )

    def leave_out_nulls(self, start: int, texts: pa.Array, faults: list[tuple[int, str]]) -> list[tuple[int, str]]:
        """Marks the nulls among documents that were added from ``start`` on; the faults of the others."""
        if not texts.null_count:
            return faults
        nulls = np.flatnonzero(~present(texts))
        self.keys[:, start + nulls] = NO_KEY
        self.states[start + nulls] = FAULTY
        missing = set(nulls.tolist())
        return [fault for fault in faults if fault[0] not in missing]

    @property
    def room(self) -> int:
        """How many more documents it takes."""
        return len(self.states) - self.used

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What has been filled, an array per band, so that a band can be read alone."""
        filled = {f"band{band}": row[: self.used] for band, row in enumerate(self.keys)}
        filled |= {"contents": self.contents[: self.used], "states": self.states[: self.used]}
        return filled if self.packed is None else {**filled, "packed": self.packed[: self.used]}


class Bander:
    """Writes the keys of documents into a block: normalise, shingle, sketch and band in one pass of the kernel."""

    def __init__(self, settings: FindSettings) -> None:
        plan = settings.plan
        sketcher = _kernel.Sketcher(scheme=settings.scheme, slots=plan.slots, seed=settings.seed)
        self._bander = _kernel.Bander(sketcher, plan.bands, plan.rows, settings.seed)
        self._shingler = None if settings.shingler is None else kernel_shingler(settings.shingler)
        self._seed = settings.seed

    def band(self, texts: pa.Array, block: KeyBlock, threads: int) -> list[tuple[int, str]]:
        """Adds the documents; returns those that are not text, by their place in ``texts``, with what is wrong.

        A null is faulty too, but not returned: whoever made it null knows why.
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
        return block.leave_out_nulls(start, texts, faults)


def element_arrays(
    texts: pa.Array, shingler: Shingler | None, threads: int
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Offsets and elements of documents: the shingles of texts; without a shingler they are sets already."""
    if shingler is not None:
        sets = shingler.shingle(texts, threads=threads or None)
        return sets.offsets, sets.hashes
    offsets, elements = set_arrays(texts)
    return offsets - offsets[0], elements[offsets[0] : offsets[-1]]


def set_arrays(sets: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Offsets and elements of a list column of hashed elements."""
    return to_numpy(sets.offsets), to_numpy(sets.values)


class Run(Protocol):
    """Ascending numbers that can be sliced: an array, or one in a file."""

    def __len__(self) -> int: ...
    def __getitem__(self, key: Any, /) -> Any: ...  # noqa: ANN401 - a number or a slice


class BucketCounts(NamedTuple):
    """What the cap met in a band: buckets above it, their members, pairs left out; and the largest bucket."""

    capped: int = 0
    capped_members: int = 0
    left_out: int = 0
    largest: int = 0


def buckets_of(
    keys: Iterable[NDArray[np.uint64]], members: NDArray[np.uint32], part: int, parts: int
) -> "_kernel.Buckets":
    """The buckets of one band.

    Args:
        keys: The band's keys of all documents, in pieces.
        members: The number under which each document takes part, or ``NOBODY``.
        part: Which of ``parts`` equal ranges of keys to look at; together they give what one range gives.
        parts: Into how many ranges the keys are cut.
    """
    buckets, first = _kernel.Buckets(), 0
    for piece in keys:
        buckets.push(piece, members[first : first + len(piece)], part, parts)
        first += len(piece)
    return buckets


def split(pairs: NDArray[np.uint64]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """The low and the high numbers of packed pairs."""
    return (pairs >> np.uint64(32)).astype(np.uint32), (pairs & np.uint64(0xFFFF_FFFF)).astype(np.uint32)


def pack(low: NDArray[np.uint32], high: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Pairs as one number each, which ascends as they do."""
    return low.astype(np.uint64) << np.uint64(32) | high


def cut_runs(runs: Sequence[Run], most: int, after: int | None = None) -> Iterator[list[slice]]:
    """Cuts ascending runs at common values: every slice of a cut lies above those of the cut before.

    Args:
        runs: Ascending arrays, or what gives views of a file.
        most: Entries of all runs in one cut, at most; but at least one of each.
        after: Leave out what is not above it.
    """
    places = [0 if after is None else int(np.searchsorted(run[:], np.uint64(after), side="right")) for run in runs]
    share = max(1, most // max(1, len(runs)))
    while any(place < len(run) for place, run in zip(places, runs, strict=True)):
        left = [(place, run) for place, run in zip(places, runs, strict=True) if place < len(run)]
        if sum(len(run) - place for place, run in left) <= most:
            ends = [len(run) for run in runs]
        else:  # no run gives more than its share up to the least of what the shares end with
            limit = min(run[min(place + share, len(run)) - 1] for place, run in left)
            ends = [int(np.searchsorted(run[:], limit, side="right")) for run in runs]
        yield [slice(place, end) for place, end in zip(places, ends, strict=True)]
        places = ends
