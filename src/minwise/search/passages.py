"""Search for repeated passages: every run of tokens that stands at an earlier position of the corpus.

The kernel (``crates/kernel/src/passages``) describes the method. The first pass reads every document and writes an
entry for each of its segments to ``entries-`` files, by partition. Partitions are resolved one after the other
(``resolved-segments-``). Documents with unresolved segments are read again, and the entries of their L-grams are
resolved in the same way (``resolved-grams-``). Every stage is bounded by the memory limit.

Lines, sentences and paragraphs need one pass: an entry for each, which is resolved as an L-gram is
(``resolved-units-``).
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.array_files import ArrayFile, Arrays
from minwise._internal.prefetch import prefetch
from minwise.inputs.source import Batch
from minwise.search.bands import cut_runs
from minwise.search.clustering import KeepOrder
from minwise.search.documents import (
    Documents,
    SearchJob,
)
from minwise.search.first_pass import ScanReader, wanted_batches
from minwise.search.workdir import WorkDirectory
from minwise.settings import PassageSettings, SearchSettings
from minwise.text.chunks import text_chunk
from minwise.text.shingling import kernel_shingler

__all__ = [
    "PARTITIONS",
    "EntryRange",
    "PassageRows",
    "Passages",
    "Regions",
    "ResolvedWriter",
    "empty_rows",
    "entry_arrays",
    "find_passages",
    "join_rows",
    "pack_ranges",
    "partition_name",
    "passage_groups",
    "passage_scanner",
]

# Covers that are merged into rows at once.
MERGED_COVERS = 1 << 18
# Share of the memory, as 1 of so many: for entries that wait to be written; for those that all threads group at once,
# which take up to six times their encoded size; for covers that wait to be written.
WAITING_SHARE, GROUPED_SHARE, COVER_SHARE = 8, 24, 16
PARTITIONS = 256
# Bytes of entries that are grouped at once.
BLOCK_BYTES = _kernel.PASSAGE_ENTRY_BYTES << 16
DOCUMENT_BITS = np.uint64(32)
# Covers and regions, none of them.
_EMPTY = tuple(np.empty(0, dtype=kind) for kind in ("u8", "u4", "u8", "u4", "u4", "u8", "u4"))


class PassageRows(NamedTuple):
    """Repeated passages as columns, by document and start.

    Attributes:
        keys: Document in the high half, first token in the low half.
        counts: Number of consecutive L-grams.
        others: Document and first token of the first occurrence.
        spans: Start and end, then start and end of the first occurrence, in code points.
        occurrences: With a unit, how often it occurs in the corpus.
    """

    keys: NDArray[np.uint64]
    counts: NDArray[np.uint32]
    others: NDArray[np.uint64]
    spans: NDArray[np.uint32]
    occurrences: NDArray[np.uint32]

    def take(self, rows: "slice | NDArray[np.int64]") -> "PassageRows":
        """Return some of the rows."""
        keys, counts, others, spans, occurrences = self
        return PassageRows(keys[rows], counts[rows], others[rows], spans[rows], occurrences[rows])


@dataclass(frozen=True)
class Passages:
    """Result of a search for repeated passages.

    Attributes:
        documents: The documents by number.
        wanted: What counts as a repeated passage.
        work: The work directory, which holds the covers.
    """

    documents: Documents
    wanted: PassageSettings
    work: WorkDirectory

    @property
    def min_tokens(self) -> int:
        """Tokens of the shortest passage."""
        return self.wanted.min_tokens

    @cached_property
    def tokens(self) -> int:
        """Number of tokens of the input, without those of reference documents."""
        counts = self.documents.column("token_counts")[self.documents.protected :]
        return int(counts.sum(dtype=np.uint64))

    def rows(self) -> Iterator[PassageRows]:
        """Yield all passages in blocks, by document and start."""
        files = [self.work.open(name) for name in self.work.names("resolved-")]
        open_row = empty_rows()
        for cuts in cut_runs([_Keys(file, "keys") for file in files], MERGED_COVERS):
            pieces = [_read_rows(file, cut) for file, cut in zip(files, cuts, strict=True)]
            joined = join_rows([open_row, *pieces])
            ordered = joined.take(np.argsort(joined.keys))
            merged = _merge(ordered) if self.wanted.unit is None else ordered
            yield merged.take(slice(-1))
            open_row = merged.take(slice(-1, None))
        yield open_row


@dataclass
class _Keys:
    """Keys in a file, mapped only while they are used: mapped pages count as memory of the process."""

    file: ArrayFile
    name: str

    def __len__(self) -> int:
        return self.file.length(self.name)

    def __getitem__(self, key: Any) -> Any:  # noqa: ANN401 - a number or a slice
        return self.file.map(self.name)[key]


def _read_rows(file: ArrayFile, rows: slice) -> PassageRows:
    return PassageRows(*(file.read_rows(name, rows) for name in PassageRows._fields))


def empty_rows() -> PassageRows:
    """Return no passages."""
    keys, counts = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint32)
    return PassageRows(keys, counts, keys, np.empty((0, 4), dtype=np.uint32), counts)


def join_rows(pieces: Iterable[PassageRows]) -> PassageRows:
    """Return pieces as one, in the same order."""
    return PassageRows(*map(np.concatenate, zip(*pieces, strict=True)))


def _merge(covers: PassageRows) -> PassageRows:
    """Merge covers that are consecutive on both sides."""
    keys, counts, others, spans, occurrences = covers
    continues = (keys[1:] == keys[:-1] + counts[:-1]) & (others[1:] == others[:-1] + counts[:-1])
    first = np.flatnonzero(np.concatenate([[True], ~continues])) if len(keys) else np.empty(0, dtype=np.int64)
    last = np.append(first[1:], len(keys))[: len(first)] - 1
    total = np.add.reduceat(counts, first) if len(first) else counts
    ends = spans[last][:, [1, 3]]
    merged = np.stack([spans[first, 0], ends[:, 0], spans[first, 2], ends[:, 1]], axis=1)
    return PassageRows(keys[first], total.astype(np.uint32), others[first], merged, occurrences[first])


def find_passages(job: SearchJob, wanted: PassageSettings, *, only_reference: bool) -> Passages:
    """Find every repeated passage; resume an interrupted run.

    Args:
        job: The corpus and its settings.
        wanted: What counts as a repeated passage.
        only_reference: Whether only documents of the reference corpus count as first occurrence.
    """
    if not job.work.has("documents"):
        _SegmentReader(job, wanted).run()
    documents = Documents(job.corpus, job.work)
    order = documents.keep_order(job.settings.keep_rule)
    references = documents.protected if only_reference else None
    resolver = _Resolver(job, wanted, order, references)
    if wanted.unit is not None:
        resolver.run("units", "entries-")
        return Passages(documents, wanted, job.work)
    resolver.run("segments", "entries-")
    if not job.work.has("grams"):
        _read_regions(job, documents, wanted)
    resolver.run("grams", "grams-")
    return Passages(documents, wanted, job.work)


def passage_groups(
    stage: str, wanted: PassageSettings, references: int | None, part: int = 0, parts: int = 1
) -> "_kernel.PassageGroups":
    """Return empty groups of the entries of a stage: segments, grams or units."""
    return _kernel.PassageGroups(references, stage, part, parts, wanted.min_count)


def passage_scanner(
    settings: SearchSettings,
    wanted: PassageSettings,
    waiting: int,
    spill: Callable[[list[NDArray[np.uint8]]], None],
) -> "_kernel.PassageScanner":
    """Return a scanner that calls ``spill`` with the entries of each partition when they take ``waiting`` bytes."""
    assert settings.shingler is not None  # the settings of passages have one
    shingler = kernel_shingler(settings.shingler)
    return _kernel.PassageScanner(shingler, wanted.min_tokens, settings.seed, waiting, spill, wanted.unit)


def entry_arrays(partitions: list[NDArray[np.uint8]]) -> Arrays:
    """Return the entries of all partitions by name, as files have them."""
    return {partition_name(number): entries for number, entries in enumerate(partitions)}


def partition_name(number: int) -> str:
    """Return the name of the array of a partition."""
    return f"p{number:03}"


class _SegmentReader(ScanReader):
    """First pass: documents, and the entries of their segments or units."""

    spilled = "entries-"

    def __init__(self, job: SearchJob, wanted: PassageSettings) -> None:
        super().__init__(job)
        waiting = job.limits.memory // WAITING_SHARE
        write = lambda partitions: self.spill(entry_arrays(partitions))  # noqa: E731
        self.scanner = passage_scanner(job.settings, wanted, waiting, write)

    def scan(self, batch: Batch, first: int) -> tuple[Arrays, list[tuple[int, str]]]:
        chunk, numbers = text_chunk(batch.values), np.arange(first, first + len(batch), dtype=np.uint32)
        counts, faulty = self.scanner.scan(chunk.offsets, chunk.data, numbers, self.limits.threads)
        return {"token_counts": counts}, faulty

    def drain(self) -> Arrays:
        return entry_arrays(self.scanner.drain())


def _read_regions(job: SearchJob, documents: Documents, wanted: PassageSettings) -> None:
    """Read the documents with unresolved segments again and write the entries of their L-grams."""
    work = job.work
    work.delete("grams-")  # of an interrupted run
    files = count()

    def write(partitions: list[NDArray[np.uint8]]) -> None:
        work.write(f"grams-{next(files):06}", entry_arrays(partitions))

    scanner = passage_scanner(job.settings, wanted, job.limits.memory // WAITING_SHARE, write)
    regions = Regions(work)
    flags = regions.documents(len(documents))
    with job.progress.stage("read again", int(np.count_nonzero(flags)), "documents") as stage:
        for first, batch in prefetch(wanted_batches(job, documents, flags), depth=1):
            chunk, numbers = text_chunk(batch.values), np.arange(first, first + len(batch), dtype=np.uint32)
            keys, counts = regions.of(first, first + len(batch))
            scanner.scan_regions(chunk.offsets, chunk.data, numbers, keys, counts, job.limits.threads)
            stage.advance(int(np.count_nonzero(flags[first : first + len(batch)])))
    write(scanner.drain())
    work.write_json("grams", {})


class Regions:
    """Unresolved L-grams of all partitions, which are taken in the order of documents."""

    def __init__(self, work: WorkDirectory) -> None:
        self.files = [work.open(name) for name in work.names("resolved-segments-")]
        self.blocks = self._read()
        self.keys, self.counts = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint32)

    @property
    def grams(self) -> int:
        """Number of unresolved L-grams."""
        return sum(int(file.read("region_counts").sum(dtype=np.uint64)) for file in self.files)

    def documents(self, count: int) -> NDArray[np.bool_]:
        """Return a flag for each document that has any."""
        flags = np.zeros(count, dtype=np.bool_)
        for file in self.files:
            flags[file.map("region_keys") >> DOCUMENT_BITS] = True
        return flags

    def of(self, start: int, end: int) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """Return keys and counts of the documents from ``start`` up to ``end``; later calls have later documents."""
        bounds = np.array([start, end], dtype=np.uint64) << DOCUMENT_BITS
        while not len(self.keys) or self.keys[-1] < bounds[1]:
            block = next(self.blocks, None)
            if block is None:
                break
            self.keys, self.counts = np.append(self.keys, block[0]), np.append(self.counts, block[1])
        low, high = np.searchsorted(self.keys, bounds)
        found = self.keys[low:high], self.counts[low:high]
        self.keys, self.counts = self.keys[high:], self.counts[high:]
        return found

    def _read(self) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint32]]]:
        """Yield blocks of keys and counts, ascending."""
        for cuts in cut_runs([_Keys(file, "region_keys") for file in self.files], MERGED_COVERS):
            pieces = list(zip(self.files, cuts, strict=True))
            keys = np.concatenate([file.map("region_keys")[cut] for file, cut in pieces])
            counts = np.concatenate([file.map("region_counts")[cut] for file, cut in pieces])
            order = np.argsort(keys)
            yield keys[order], counts[order]


class EntryRange(NamedTuple):
    """Entries that are grouped at once: partitions, and one of several ranges of their fingerprints."""

    first: int
    end: int
    part: int
    parts: int


@dataclass
class _Resolver:
    """Groups the entries of partitions, as many at a time as memory allows."""

    job: SearchJob
    wanted: PassageSettings
    order: KeepOrder
    references: int | None

    @property
    def _threads(self) -> int:
        return self.job.limits.threads or os.cpu_count() or 1

    def run(self, stage: str, prefix: str) -> None:
        """Resolve all entries in the files of ``prefix``, unless an earlier run has."""
        work = self.job.work
        if work.has(f"finished-{stage}"):
            return
        files = [work.open(name) for name in work.names(prefix)]
        ranges = self._ranges(stage, files)
        resolve = partial(self._resolve, stage, files)
        with (
            self.job.progress.stage(f"group {stage}", len(ranges), "ranges") as watch,
            ThreadPoolExecutor(self._threads) as pool,
        ):
            for _ in pool.map(resolve, range(len(ranges)), ranges):
                watch.advance(1)
        work.write_json(f"finished-{stage}", {})
        work.delete(prefix)

    def _ranges(self, stage: str, files: list[ArrayFile]) -> list[EntryRange]:
        """Return what is resolved at once; as an earlier run did, maybe with another memory limit."""
        work = self.job.work
        if not work.has(f"ranges-{stage}"):
            sizes = [sum(file.length(partition_name(number)) for file in files) for number in range(PARTITIONS)]
            ranges = pack_ranges(sizes, self.job.limits.memory // GROUPED_SHARE // self._threads)
            work.write_json(f"ranges-{stage}", {"ranges": ranges})
        return [EntryRange(*bounds) for bounds in work.read_json(f"ranges-{stage}")["ranges"]]

    def _resolve(self, stage: str, files: list[ArrayFile], number: int, bounds: EntryRange) -> None:
        """Write the repeats and unresolved L-grams of a range, unless an earlier run has."""
        name = f"resolved-{stage}-{number:05}"
        if self.job.work.has(name):
            return
        self.job.work.delete(f"{name}-")  # of an interrupted run
        found = ResolvedWriter(self.job.work, name, self.job.limits.memory // COVER_SHARE // self._threads)
        for partition in range(bounds.first, bounds.end):
            groups = passage_groups(stage, self.wanted, self.references, bounds.part, bounds.parts)
            for block in _blocks(files, partition):
                groups.add(block, self.order.rank_of)
            for block in _blocks(files, partition):
                found.add(*groups.resolve(block, self.order.rank_of))
        found.finish()


def _blocks(files: list[ArrayFile], partition: int) -> Iterator[NDArray[np.uint8]]:
    """Yield the entries of a partition, few at a time: what is found in them takes up to five times as much."""
    name = partition_name(partition)
    for file in files:
        entries = file.read(name) if file.length(name) else np.empty(0, dtype=np.uint8)
        for start in range(0, len(entries), BLOCK_BYTES):
            yield entries[start : start + BLOCK_BYTES]


def pack_ranges(sizes: list[int], most: int) -> list[EntryRange]:
    """Return ranges of partitions of at most ``most`` bytes; larger partitions are split by fingerprint."""
    ranges: list[EntryRange] = []
    held = most + 1
    for number, size in enumerate(sizes):
        parts = -(-size // most)
        if parts > 1:
            ranges += [EntryRange(number, number + 1, part, parts) for part in range(parts)]
            held = most + 1
        elif held + size > most:
            ranges.append(EntryRange(number, number + 1, 0, 1))
            held = size
        else:
            ranges[-1] = ranges[-1]._replace(end=number + 1)
            held += size
    return ranges


class ResolvedWriter:
    """Collects covers and regions, and writes them to files in order of their keys.

    The file that has only the name of the range is written last.
    """

    def __init__(self, work: WorkDirectory, name: str, most: int) -> None:
        self.work, self.name, self.most = work, name, most
        self.files, self.held = 0, 0
        self.pieces: list[tuple[NDArray[Any], ...]] = [_EMPTY]

    def add(self, covers: tuple[NDArray[Any], ...], regions: tuple[NDArray[Any], ...]) -> None:
        """Add covers and regions, and write a file when there are many."""
        piece = (*covers, *regions)
        self.pieces.append(piece)
        self.held += sum(values.nbytes for values in piece)
        if self.held > self.most:
            self._write(f"{self.name}-{self.files:05}")
            self.files += 1

    def finish(self) -> list[str]:
        """Write the rest; return the names of all files."""
        self._write(self.name)
        return [self.name, *(f"{self.name}-{number:05}" for number in range(self.files))]

    def _write(self, name: str) -> None:
        columns = map(np.concatenate, zip(*self.pieces, strict=True))
        keys, counts, others, spans, occurrences, region_keys, region_counts = columns
        order, region_order = np.argsort(keys), np.argsort(region_keys)
        arrays = {"keys": keys[order], "counts": counts[order], "others": others[order]}
        arrays |= {"spans": spans.reshape(-1, 4)[order], "occurrences": occurrences[order]}
        arrays |= {"region_keys": region_keys[region_order], "region_counts": region_counts[region_order]}
        self.work.write(name, arrays)
        self.pieces, self.held = [_EMPTY], 0
