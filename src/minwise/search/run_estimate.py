"""Run estimate: documents, memory, disk and time of a run, from metadata and a sample.

Serves ``dedup --dry-run`` and :func:`minwise.api.estimate_run`. Sources of up to 64 MiB are read; of larger ones, as
much in windows that are evenly spaced over all stored bytes. 8 MiB of the text are sketched; nothing is written.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from dataclasses import asdict, dataclass, field
from typing import Any, BinaryIO, cast

import numpy as np

from minwise._internal.formatting import format_bytes, plural
from minwise._internal.sorted_arrays import distinct
from minwise.errors import InputError
from minwise.inputs.arrow_ipc import ArrowFile
from minwise.inputs.baskets import BasketFile
from minwise.inputs.files import File, FileSource
from minwise.inputs.jsonl import JsonLinesFile
from minwise.inputs.parquet import ParquetFile
from minwise.inputs.source import Batch, RowMask, Source
from minwise.inputs.standard_input import StandardInput
from minwise.inputs.text_files import LinesFile, TextFiles
from minwise.search.bands import Bander, KeyBlock
from minwise.search.documents import Corpus
from minwise.search.first_pass import text_lengths
from minwise.settings import RunLimits, SearchSettings
from minwise.sketches.planning import Plan

__all__ = ["RunEstimate", "estimate_corpus"]

# Stored bytes up to which all sources are read; of more, as many bytes in windows that are evenly spaced over all
# sources, so that a source is sampled in proportion to its size.
READ_BYTES = 1 << 26
WINDOWS = 64
WINDOW_BYTES = READ_BYTES // WINDOWS
# Sources up to which all are read: opening a file takes about as long as reading 100 kB of it.
READ_SOURCES = 500
# Bytes of text that are sketched, to measure the speed.
SKETCHED_BYTES = 1 << 23
# Minimum bytes of text per stored byte at which the text, not the file, limits how much is read.
MAX_RATIO = 4
SHORT_READ = 1 << 14
# Bytes of a line that are read at most: a file may have no line feed for gigabytes.
LONGEST_LINE = 1 << 24
# Formats whose rows are lines, so that reading can start at any of them.
LINE_FORMATS = (JsonLinesFile, LinesFile, BasketFile)
# Memory that does not depend on the documents: the interpreter and its libraries.
BASE_MEMORY = 165 * 10**6
# Batches in flight at most, and memory per byte of their text: rows of typed tables are copied as row groups, lines are
# Python objects first. Peaks of runs on 50 to 200 MB of text are 0.85 to 1.1 of what follows from these.
BATCHES_IN_FLIGHT = 4
TEXT_MEMORY = ((TextFiles, 1.1), ((ParquetFile, ArrowFile), 3.8), (Source, 2.2))
# Memory of the largest document in multiples of its bytes, whatever the limit: its line, its text, and its shingles or
# a copy. `tests/reliability/test_memory_bombs.py` holds it for the longest records.
LARGEST_MEMORY = 3
# What the process may take besides the limit.
ALLOWED_MEMORY = 300 * 10**6
# Bytes per document that stay in memory: state, order, rank, witness, similarity.
MEMORY_PER_DOCUMENT = 33
# Approximate share of the first pass, which the sample measures, in the time of a run; less with an exact join.
FIRST_PASS_SHARE = 0.35
EXACT_SHARE = 0.2
# Assumed share of documents in a candidate pair, whose shingles are on disk until the run ends.
CANDIDATE_SHARE = 0.2


@dataclass(frozen=True, kw_only=True)
class RunEstimate:
    """Estimated size and cost of a run.

    Attributes:
        plan: Bands and rows; None if an exact join finds every pair.
        sources: Number of sources.
        source_bytes: Size of the sources as they are stored.
        documents: Number of rows: known, or estimated from the sample.
        documents_known: Whether the number of rows is known.
        text_bytes: Bytes of text, estimated.
        memory_bytes: Memory, estimated; never much more than the limit.
        disk_bytes: Disk for work files and output, estimated.
        seconds: Time, estimated from the speed of the sample.
        warning: What the user should change before the run; "" if nothing.
    """

    plan: Plan | None
    sources: int
    source_bytes: int
    documents: int
    documents_known: bool
    text_bytes: int
    memory_bytes: int
    disk_bytes: int
    seconds: float
    warning: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {**asdict(self), "plan": None if self.plan is None else self.plan.to_dict()}

    def __str__(self) -> str:
        about = "" if self.documents_known else "about "
        return "\n".join(
            [
                f"would read   {plural(self.sources, 'source')}, {format_bytes(self.source_bytes)}; "
                f"{about}{plural(self.documents, 'document')}, {format_bytes(self.text_bytes)} of text",
                f"plan         {self.plan or 'none: an exact join finds every pair'}",
                f"memory       about {format_bytes(self.memory_bytes)}",
                f"disk         about {format_bytes(self.disk_bytes)} while it runs, output included",
                f"time         about {_time(self.seconds)}",
                *([f"warning      {self.warning}"] if self.warning else []),
                "nothing was written",
            ]
        )


def estimate_corpus(corpus: Corpus, settings: SearchSettings, limits: RunLimits) -> RunEstimate:
    """Read metadata and a sample of the sources, and extrapolate.

    Raises:
        InputError: If nothing of the sample can be read.
    """
    known, sampler = corpus.known_rows(), _Sampler(corpus, settings, limits)
    rows, text = sampler.totals()
    documents = known if known is not None else round(rows)
    text_bytes, total_bytes = round(text), sum(sampler.sizes)
    keys = documents * (8 * settings.plan.bands + 32)
    every_set = settings.exact or settings.weighted
    share = 1.0 if every_set else CANDIDATE_SHARE
    shingles = round(text_bytes * sampler.shingle_bytes * share) if settings.verify == "exact" else 0
    return RunEstimate(
        plan=None if settings.exact else settings.plan,
        sources=len(corpus.sources),
        source_bytes=total_bytes,
        documents=documents,
        documents_known=known is not None,
        text_bytes=text_bytes,
        memory_bytes=_memory(sampler, limits, documents, text_bytes),
        disk_bytes=keys + shingles + total_bytes,
        seconds=sampler.seconds_per_byte * text_bytes / (EXACT_SHARE if every_set else FIRST_PASS_SHARE),
        warning=_memory_warning(sampler.largest, limits),
    )


def _memory_warning(largest: int, limits: RunLimits) -> str:
    """Return that the largest document needs more than the memory limit allows; "" if it does not."""
    needed = BASE_MEMORY + LARGEST_MEMORY * largest
    if needed <= limits.memory + ALLOWED_MEMORY:
        return ""
    document, limit = format_bytes(largest), format_bytes(limits.memory)
    return f"a document of {document} needs about {format_bytes(needed)}, more than the limit of {limit} and 300 MB"


def _memory(sampler: "_Sampler", limits: RunLimits, documents: int, text_bytes: int) -> int:
    """Return the expected peak memory: of the process, of documents, and of text in flight."""
    in_flight = min(text_bytes, BATCHES_IN_FLIGHT * limits.batch_bytes) * sampler.text_memory
    data = round(documents * (MEMORY_PER_DOCUMENT + 40) + in_flight)
    return BASE_MEMORY + min(limits.memory, data)


class _Sampler:
    """Reads a sample of a corpus, estimates the rows and the text of every source, and measures the speed of sketching.

    Attributes:
        sizes: Stored bytes of each source.
        largest: Bytes of the largest document.
    """

    def __init__(self, corpus: Corpus, settings: SearchSettings, limits: RunLimits) -> None:
        self._sources = [source.opened if isinstance(source, StandardInput) else source for source in corpus.sources]
        self._columns, self._settings, self._limits = corpus.columns, settings, limits
        self._seconds, self._sketched, self._shingles = 0.0, 0, 0
        self.sizes = [source.size_bytes() for source in self._sources]
        self.largest = 0

    @property
    def seconds_per_byte(self) -> float:
        """Seconds of sketching per byte of text."""
        return self._seconds / max(1, self._sketched)

    @property
    def shingle_bytes(self) -> float:
        """Bytes of shingles, or of elements of sets, per byte of text."""
        return 8 * self._shingles / max(1, self._sketched)

    @property
    def text_memory(self) -> float:
        """Memory per byte of text in flight, by the formats of the sources."""
        factors = [next(factor for kind, factor in TEXT_MEMORY if isinstance(one, kind)) for one in self._sources]
        return float(np.average(factors, weights=np.maximum(1, self.sizes))) if factors else 0.0

    def totals(self) -> tuple[float, float]:
        """Return the rows and the bytes of text of all sources."""
        if sum(self.sizes) <= READ_BYTES and len(self.sizes) <= READ_SOURCES:
            found = [self._source_totals(source, WINDOWS) for source in self._sources]
            return sum(rows for rows, _ in found), sum(text for _, text in found)
        ends = np.cumsum(self.sizes)
        places = (np.arange(WINDOWS) + 0.5) * ends[-1] / WINDOWS
        numbers, counts = np.unique(np.searchsorted(ends, places, side="right"), return_counts=True)
        rows = text = 0.0
        for number, windows in zip(numbers.tolist(), counts.tolist(), strict=True):
            found_rows, found_text = self._source_totals(self._sources[number], windows)
            # A source is chosen in proportion to its size, so it represents others by their size.
            weight = windows / WINDOWS * int(ends[-1]) / self.sizes[number]
            rows, text = rows + weight * found_rows, text + weight * found_text
        return rows, text

    def _source_totals(self, source: Source, windows: int) -> tuple[float, float]:
        """Return the estimated rows and bytes of text of a source, from as many windows of it."""
        whole = source.size_bytes() <= windows * WINDOW_BYTES
        if isinstance(source, TextFiles) and not whole:
            return self._from_files(source, windows)
        if source.known_rows() is not None or not isinstance(source, FileSource):
            return self._from_row_groups(source, windows, whole=whole)
        if isinstance(source, LINE_FORMATS) and not whole and source.file.compression is None and not source.reading():
            return self._from_lines(source, windows)
        return self._from_start(source, windows)

    def _from_files(self, source: TextFiles, windows: int) -> tuple[float, float]:
        """Read files that are evenly spaced over all bytes; text is as long as its file, unless it is compressed."""
        sizes = np.array([file.size_bytes() for file in source.files], dtype=np.float64)
        places = (np.arange(windows) + 0.5) * sizes.sum() / windows
        chosen = distinct(np.searchsorted(np.cumsum(sizes), places, side="right"))
        wanted = np.zeros(len(sizes), dtype=bool)
        wanted[chosen] = True
        _, text = self._read(source, wanted, None)
        return len(sizes), text / max(1.0, sizes[chosen].sum()) * float(sizes.sum())

    def _from_row_groups(self, source: Source, windows: int, *, whole: bool) -> tuple[float, float]:
        """Read the beginning of row groups that are evenly spaced; the number of rows is known."""
        known = source.known_rows()
        if whole or not known:
            return self._read(source, None, None)
        bounds = np.array([0, *source.split_points(1), known])
        groups = distinct(np.linspace(0, len(bounds) - 2, windows).round().astype(int))
        texts = []
        for group in groups.tolist():
            wanted = np.zeros(known, dtype=bool)
            wanted[bounds[group] : bounds[group + 1]] = True
            rows, text = self._read(source, wanted, windows * WINDOW_BYTES // len(groups))
            texts.append(text / max(1, rows))
        return known, known * float(np.average(texts, weights=np.diff(bounds)[groups]))

    def _from_lines(self, source: FileSource, windows: int) -> tuple[float, float]:
        """Read lines at evenly spaced offsets."""
        sampled, size = copy(source), source.size_bytes()
        sampled.file = file = SampledLines(source.file.path, windows=windows, window_bytes=WINDOW_BYTES)
        rows, text = self._read(sampled, None, None)
        factor = size / max(1, sum(file.read))
        return rows * factor, text * factor

    def _from_start(self, source: FileSource, windows: int) -> tuple[float, float]:
        """Read the beginning: a compressed file, or one with a header, has no other place to start."""
        sampled = copy(source)
        sampled.file = file = FileBeginning(source.file.path, most=windows * WINDOW_BYTES)
        rows, text = self._read(sampled, None, None)
        factor = source.size_bytes() / max(1, file.read[0])
        return rows * factor, text * factor

    def _read(self, source: Source, wanted: RowMask | None, most: int | None) -> tuple[int, int]:
        """Return rows and bytes of text of batches.

        Args:
            source: The source.
            wanted: The rows to read; all if None.
            most: Bytes of text after which to stop; None for no limit.
        """
        rows = text = 0
        for batch in source.batches(self._columns, wanted=wanted, batch_bytes=WINDOW_BYTES):
            if not rows:
                _refuse_unusable(batch)
            lengths = text_lengths(batch.values)
            used = slice(None) if wanted is None else wanted[batch.first : batch.first + len(batch)]
            rows, text = rows + len(lengths[used]), text + int(lengths[used].sum())
            self.largest = max(self.largest, int(lengths.max(initial=0)))
            self._sketch(batch, int(lengths.sum()))
            if most is not None and text >= most:
                break
        return rows, text

    def _sketch(self, batch: Batch, size: int) -> None:
        """Measure the speed, unless it is known."""
        if self._sketched >= SKETCHED_BYTES:
            return
        block = KeyBlock.allocate(self._settings, len(batch))
        started = time.monotonic()
        Bander(self._settings).band(batch.values, block, self._limits.threads)
        self._seconds += time.monotonic() - started
        self._sketched += size
        self._shingles += _count_elements(batch, self._settings, self._limits)


def _count_elements(batch: Batch, settings: SearchSettings, limits: RunLimits) -> int:
    """Return how many shingles or elements the rows have; 0 if a text is not valid."""
    if settings.shingler is None:
        return int(text_lengths(batch.values).sum())
    with suppress(InputError):
        return len(settings.shingler.shingle(batch.values.drop_null(), threads=limits.threads or None).hashes)
    return 0


class _CountedReads:
    """Open file that returns few bytes per read, so that decompression does not read far ahead, and counts them."""

    def __init__(self, raw: BinaryIO, read: list[int]) -> None:
        self._raw, self._read = raw, read

    def read(self, size: int = SHORT_READ) -> bytes:
        """Read at most 16 KiB."""
        data = self._raw.read(min(size, SHORT_READ) if size >= 0 else SHORT_READ)
        self._read[0] += len(data)
        return data

    @property
    def closed(self) -> bool:
        """Whether the file is closed."""
        return self._raw.closed

    def close(self) -> None:
        """Close the file."""
        self._raw.close()

    def __enter__(self) -> "_CountedReads":
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()


@dataclass(frozen=True)
class FileBeginning(File):
    """File of which only the beginning is read.

    Attributes:
        most: Stored bytes after which it ends; also after four times as many bytes when decompressed.
        read: Stored bytes that were read, from the last time the file was opened.
    """

    most: int = WINDOW_BYTES
    read: list[int] = field(default_factory=lambda: [0])

    @property
    def complete(self) -> bool:
        """Whether it is read to its end: a record that is cut is not damaged."""
        return False

    def open(self) -> BinaryIO:
        """Open the file for reading, without decompression."""
        self.read[0] = 0
        return cast("BinaryIO", _CountedReads(super().open(), self.read))

    def stored_chunks(self) -> Iterator[bytes]:
        """Yield the decompressed bytes of the beginning."""
        size = 0
        for chunk in super().stored_chunks():
            yield chunk
            size += len(chunk)
            if max(self.read[0], size // MAX_RATIO) >= self.most:
                return
        self.read[0] = self.size_bytes()


@dataclass(frozen=True)
class SampledLines(File):
    """File of which only the lines at evenly spaced offsets are read.

    Attributes:
        windows: Number of offsets.
        window_bytes: Bytes of lines at each of them.
        read: Bytes of each window, from the last time the file was read.
    """

    windows: int = 1
    window_bytes: int = WINDOW_BYTES
    read: list[int] = field(default_factory=list)

    def stored_chunks(self) -> Iterator[bytes]:
        """Yield the lines of each window."""
        self.read.clear()
        with self.open() as raw:
            for offset in np.linspace(0, self.size_bytes() - self.window_bytes, self.windows).astype(int).tolist():
                raw.seek(offset)
                rest = raw.readline(LONGEST_LINE) if offset else b"\n"  # of the line at the offset
                lines = self._whole_lines(raw) if rest.endswith(b"\n") else b""
                self.read.append(len(lines or rest))
                if lines:
                    yield lines

    def _whole_lines(self, raw: BinaryIO) -> bytes:
        """Return the lines of a window; of a last one that is too long, nothing."""
        lines = raw.read(self.window_bytes)
        end = raw.readline(LONGEST_LINE)
        return lines + end if len(end) < LONGEST_LINE or end.endswith(b"\n") else lines[: lines.rfind(b"\n") + 1]


def _refuse_unusable(batch: Batch) -> None:
    """Raise InputError if no row of a sample can be used, as with a missing column."""
    if batch.faults and len(batch.faults) >= len(batch):
        fault = batch.faults[0]
        raise InputError(f"nothing of the sample can be read; {fault.source}: {fault.reason}")


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
