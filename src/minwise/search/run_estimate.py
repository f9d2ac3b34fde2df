"""Run estimate: documents, memory, disk and time of a run, from metadata and a sample.

Serves ``dedup --dry-run`` and :func:`minwise.api.estimate_run`. At most three batches of 8 MiB are read and sketched;
nothing is written.
"""

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from minwise.errors import InputError
from minwise.inputs.files import COMPRESSIONS
from minwise.inputs.source import BATCH_ROWS, Batch, Source
from minwise.search.bands import Bander, KeyBlock
from minwise.search.documents import Corpus
from minwise.search.first_pass import text_lengths
from minwise.settings import RunLimits, SearchSettings
from minwise.sketches.planning import Plan

__all__ = ["RunEstimate", "estimate_corpus"]

# Sources of which the first batch is read, and its size.
SAMPLED_SOURCES = 3
SAMPLE_BYTES = 1 << 23
# Approximate ratio of the text to the compressed file.
COMPRESSION_RATIO = 4
# Memory that does not depend on the documents: the interpreter, Arrow, batches of text in flight.
BASE_MEMORY = 300 * 10**6
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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {**asdict(self), "plan": None if self.plan is None else self.plan.to_dict()}

    def __str__(self) -> str:
        about = "" if self.documents_known else "about "
        return "\n".join(
            [
                f"would read   {self.sources:,} sources, {_size(self.source_bytes)}; "
                f"{about}{self.documents:,} documents, {_size(self.text_bytes)} of text",
                f"plan         {self.plan or 'none: an exact join finds every pair'}",
                f"memory       about {_size(self.memory_bytes)}",
                f"disk         about {_size(self.disk_bytes)} while it runs, output included",
                f"time         about {_time(self.seconds)}",
                "nothing was written",
            ]
        )


def estimate_corpus(corpus: Corpus, settings: SearchSettings, limits: RunLimits) -> RunEstimate:
    """Read metadata and a sample of a few sources, and extrapolate.

    Raises:
        InputError: If nothing of the sample can be read.
    """
    rows = text = sampled = 0
    seconds = 0.0
    for source in _sample_sources(corpus):
        batch = next(source.batches(corpus.columns, batch_bytes=SAMPLE_BYTES), None)
        if batch is None:
            continue
        _refuse_unusable(batch)
        seconds += _sketch_seconds(batch, settings, limits)
        rows += len(batch)
        size = int(text_lengths(batch.values).sum())
        text += size
        compressed = source.name.endswith(tuple(COMPRESSIONS))
        complete = size < SAMPLE_BYTES // 2 and len(batch) < BATCH_ROWS  # only the last batch of a source is that small
        sampled += source.size_bytes() if complete else size // (COMPRESSION_RATIO if compressed else 1)
    known, total_bytes = corpus.known_rows(), sum(source.size_bytes() for source in corpus.sources)
    row_text = text / max(1, rows)
    documents = known if known is not None else round(total_bytes * rows / max(1, sampled))
    text_bytes = round(documents * row_text)
    keys = documents * (8 * settings.plan.bands + 32)
    share = 1.0 if settings.exact else CANDIDATE_SHARE
    shingles = round(text_bytes * 8 / 6 * share) if settings.verify == "exact" else 0
    return RunEstimate(
        plan=None if settings.exact else settings.plan,
        sources=len(corpus.sources),
        source_bytes=total_bytes,
        documents=documents,
        documents_known=known is not None,
        text_bytes=text_bytes,
        memory_bytes=min(limits.memory, BASE_MEMORY + documents * (MEMORY_PER_DOCUMENT + 40)),
        disk_bytes=keys + shingles + total_bytes,
        seconds=seconds / max(1, text) * text_bytes / (EXACT_SHARE if settings.exact else FIRST_PASS_SHARE),
    )


def _refuse_unusable(batch: Batch) -> None:
    """Raise InputError if no row of a sample can be used, as with a missing column."""
    if batch.faults and len(batch.faults) >= len(batch):
        fault = batch.faults[0]
        raise InputError(f"nothing of the sample can be read; {fault.source}: {fault.reason}")


def _sample_sources(corpus: Corpus) -> Iterator[Source]:
    """Return a few sources, evenly spaced over the corpus."""
    step = max(1, len(corpus.sources) // SAMPLED_SOURCES)
    return islice(corpus.sources[::step], SAMPLED_SOURCES)


def _sketch_seconds(batch: Batch, settings: SearchSettings, limits: RunLimits) -> float:
    block = KeyBlock.allocate(settings, len(batch))
    started = time.monotonic()
    Bander(settings).band(batch.values, block, limits.threads)
    return time.monotonic() - started


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
