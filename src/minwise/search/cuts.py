"""Cuts of repeated passages: which pieces of each document are removed, and which documents are removed with them.

The passages of a document are merged to covered spans (``covered-``), which the kernel
(``crates/kernel/src/passages/cut.rs``) turns into cuts while the documents that have any are read once more. The work
directory holds the cuts (``cuts-``), their texts (``cut-texts-``), and what is left of removed documents (``rests-``).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.array_files import ArrayFile
from minwise._internal.arrays import from_bytes, from_numpy
from minwise._internal.prefetch import prefetch
from minwise.inputs.row_edits import EditedRows
from minwise.inputs.source import Batch
from minwise.search.bands import FAULTY
from minwise.search.documents import Documents, SearchJob
from minwise.search.first_pass import wanted_batches
from minwise.search.passages import (
    DOCUMENT_BITS,
    PassageRows,
    Passages,
    empty_rows,
    join_rows,
)
from minwise.search.repeats import RepeatCounter
from minwise.search.workdir import WorkDirectory
from minwise.settings import RunLimits, SearchSettings
from minwise.text.chunks import TextChunk, text_chunk
from minwise.text.shingling import kernel_shingler

__all__ = ["CutBlock", "CutEdits", "CutRules", "PassageCuts", "find_cuts"]

# Share of the memory, as 1 of so many, for cuts that wait to be written.
WAITING_SHARE = 32
POINT_BITS = np.uint64(0xFFFF_FFFF)
# Cuts that a report shows in their context, each of another document, and code points of the context.
SHOWN_CUTS, CONTEXT = 10, 120
# Code points of a text that a report shows.
SHOWN_TEXT = 600

Keys = NDArray[np.uint64]


class CutRules(NamedTuple):
    """What is cut.

    Attributes:
        snap: ``line`` or ``sentence`` to cut only whole ones; None for any tokens.
        min_left: Minimum number of tokens that a document keeps; it is removed if fewer are left.
    """

    snap: str | None
    min_left: int


class CutBlock(NamedTuple):
    """Cuts as columns, by document and start.

    Attributes:
        keys: Document in the high half, first code point in the low half.
        ends: One past the last code point.
        tokens: Number of tokens.
    """

    keys: Keys
    ends: NDArray[np.uint32]
    tokens: NDArray[np.uint32]

    def take(self, rows: slice) -> "CutBlock":
        """Return some of the cuts."""
        return CutBlock(self.keys[rows], self.ends[rows], self.tokens[rows])

    @property
    def documents(self) -> NDArray[np.int64]:
        """The document of each cut."""
        return (self.keys >> DOCUMENT_BITS).astype(np.int64)

    @property
    def starts(self) -> NDArray[np.int64]:
        """The first code point of each cut."""
        return (self.keys & POINT_BITS).astype(np.int64)


@dataclass(frozen=True)
class PassageCuts:
    """Result of cutting repeated passages.

    Attributes:
        passages: The passages.
        rules: What was cut.
        settings: Settings of the search.
        limits: Memory and threads.
    """

    passages: Passages
    rules: CutRules
    settings: SearchSettings
    limits: RunLimits

    @property
    def documents(self) -> Documents:
        """The documents by number."""
        return self.passages.documents

    @property
    def work(self) -> WorkDirectory:
        """The work directory, which holds the cuts."""
        return self.passages.work

    @cached_property
    def cut_tokens(self) -> NDArray[np.uint32]:
        """Number of tokens in cuts, by document."""
        tokens = np.zeros(len(self.documents), dtype=np.uint32)
        for file in self._files:
            np.add.at(tokens, file.read("keys") >> DOCUMENT_BITS, file.read("tokens"))
        return tokens

    @cached_property
    def tokens(self) -> NDArray[np.uint32]:
        """Number of tokens, by document."""
        return self.documents.column("token_counts")

    @cached_property
    def removed(self) -> NDArray[np.bool_]:
        """A flag for each document that is removed."""
        return is_removed(self.tokens, self.cut_tokens, self.rules)

    @cached_property
    def keep(self) -> NDArray[np.bool_]:
        """A flag per row of the input, in document order: False for removed and for unreadable rows."""
        keep: NDArray[np.bool_] = (self.documents.states != FAULTY) & ~self.removed
        return keep[self.documents.protected :]

    @property
    def count(self) -> int:
        """Number of cuts."""
        return sum(file.length("keys") for file in self._files)

    @property
    def _files(self) -> list[ArrayFile]:
        return [self.work.open(name) for name in self.work.names("cuts-")]

    def blocks(self) -> Iterator[tuple[CutBlock, pa.Array]]:
        """Yield the cuts with their texts, by document and start."""
        for name, file in zip(self.work.names("cut-texts-"), self._files, strict=True):
            yield CutBlock(*map(file.read, CutBlock._fields)), _one_column(self.work, name, "text")

    def rests(self) -> Iterator[tuple[NDArray[np.int64], pa.Array]]:
        """Yield the removed documents with what is left of their texts, by document."""
        for name in self.work.names("rests-"):
            table = self.work.read_table(name)
            yield table.column("document").to_numpy(), _one_column(self.work, name, "text")

    def first_occurrences(self) -> "FirstOccurrences":
        """Return a function from cuts to the passages that they begin in."""
        return FirstOccurrences(self.passages)

    def edits(self) -> "Mapping[int, CutEdits]":
        """Return the cuts of each source, which are read when they are needed."""
        return _SourceEdits(self)

    def edits_of(self, source: int) -> "CutEdits":
        """Return the cuts of a source."""
        bounds = self.documents.starts[source : source + 2].astype(np.uint64) << DOCUMENT_BITS
        keys, ends = [np.empty(0, dtype=np.uint64)], [np.empty(0, dtype=np.uint32)]
        for file in self._files:
            own = slice(*np.searchsorted(file.map("keys"), bounds).tolist())
            keys.append(np.array(file.map("keys")[own]))
            ends.append(np.array(file.map("ends")[own]))
        columns = self.documents.corpus.columns.text
        return CutEdits(columns, np.concatenate(keys) - bounds[0], np.concatenate(ends))

    def shown(self) -> dict[str, Any]:
        """Return the passages that are repeated most, and cuts in their contexts."""
        return {name: self.work.read_json("cuts")[name] for name in ("most_repeated", "examples")}


@dataclass(frozen=True)
class _SourceEdits(Mapping[int, "CutEdits"]):
    """Cuts by number of the source."""

    found: PassageCuts

    def __getitem__(self, source: int) -> "CutEdits":
        return self.found.edits_of(source)

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __len__(self) -> int:
        return len(self.found.documents.rows)


def is_removed(tokens: NDArray[Any], cut_tokens: NDArray[Any], rules: CutRules) -> NDArray[np.bool_]:
    """Return a flag for each document of which too little is left."""
    left = tokens.astype(np.int64) - cut_tokens
    flags: NDArray[np.bool_] = (cut_tokens > 0) & (left < max(rules.min_left, 1))
    return flags


class FirstOccurrences:
    """Function from cuts, by document and start, to the passages that they begin in; later calls have later cuts."""

    def __init__(self, passages: Passages) -> None:
        self._blocks = passages.rows()
        self._rows = empty_rows()

    def of(self, cuts: CutBlock) -> PassageRows:
        """Return the first passage of each cut."""
        keys, pieces = cuts.keys, [empty_rows()]
        while len(keys):
            ends = _span_keys(self._rows, 1)
            inside = int(np.searchsorted(keys, ends[-1])) if len(ends) else 0
            pieces.append(self._rows.take(np.searchsorted(ends, keys[:inside], side="right")))
            keys = keys[inside:]
            if len(keys):
                self._rows = next(self._blocks)
        return join_rows(pieces)


@dataclass(frozen=True)
class CutEdits:
    """Edits of the kept rows of one source: its cuts.

    Attributes:
        text: The text columns.
        keys: Row in the high half, first code point in the low half, of each cut.
        ends: One past the last code point.
    """

    text: tuple[str, ...]
    keys: Keys
    ends: NDArray[np.uint32]

    @property
    def added(self) -> pa.Schema:
        """No columns are added."""
        return pa.schema([])

    def of_rows(self, rows: NDArray[np.int64]) -> EditedRows:
        """Return the cuts of rows."""
        bounds = np.array([rows[0], rows[-1] + 1] if len(rows) else [0, 0], dtype=np.uint64) << DOCUMENT_BITS
        inside = slice(*np.searchsorted(self.keys, bounds).tolist())
        cut_rows = (self.keys[inside] >> DOCUMENT_BITS).astype(np.int64)
        starts, ends = (self.keys[inside] & POINT_BITS).astype(np.int64), self.ends[inside].astype(np.int64)
        wanted = np.isin(cut_rows, rows)
        return EditedRows(cut_rows[wanted], starts[wanted], ends[wanted], [])


def find_cuts(job: SearchJob, passages: Passages, rules: CutRules) -> PassageCuts:
    """Find what to cut; resume an interrupted run.

    Args:
        job: The corpus and its settings.
        passages: The passages.
        rules: What to cut.
    """
    if not job.work.has("cuts"):
        _CutReader(job, passages, rules).run()
    return PassageCuts(passages, rules, job.settings, job.limits)


class _CutReader:
    """Reads the documents that repeat something, and writes their cuts."""

    def __init__(self, job: SearchJob, passages: Passages, rules: CutRules) -> None:
        assert job.settings.shingler is not None  # the settings of passages have one
        self.job, self.rules, self.work = job, rules, job.work
        self.passages, self.documents = passages, passages.documents
        self.shingler = kernel_shingler(job.settings.shingler)
        self.waiting = _Waiting(job.work, job.limits.memory // WAITING_SHARE)
        self.examples: list[dict[str, Any]] = []
        self.repeats: list[dict[str, Any]] = []

    def run(self) -> None:
        for prefix in ("covered-", "cuts-", "cut-texts-", "rests-"):
            self.work.delete(prefix)  # of an interrupted run
        with self.job.progress.stage("merge passages", None, "documents"):
            wanted = self._merge_passages()
        spans = _CoveredSpans(self.work)
        with self.job.progress.stage("cut", int(np.count_nonzero(wanted)), "documents") as stage:
            for first, batch in prefetch(wanted_batches(self.job, self.documents, wanted), depth=1):
                self._cut(first, batch, spans)
                stage.advance(int(np.count_nonzero(wanted[first : first + len(batch)])))
        self.waiting.write()
        self.work.write_json("cuts", {"most_repeated": self.repeats, "examples": self.examples})
        self.work.delete("covered-")

    def _merge_passages(self) -> NDArray[np.bool_]:
        """Write the spans that passages cover; return a flag for each document that has any."""
        wanted, counter = np.zeros(len(self.documents), dtype=np.bool_), RepeatCounter(self.passages)
        for number, (starts, ends) in enumerate(_covered(map(counter.add, self.passages.rows()))):
            wanted[starts >> DOCUMENT_BITS] = True
            self.work.write(f"covered-{number:06}", {"starts": starts, "ends": ends})
        self.repeats = counter.most_repeated()
        return wanted

    def _cut(self, first: int, batch: Batch, spans: "_CoveredSpans") -> None:
        chunk = text_chunk(batch.values)
        starts, ends = spans.of(first, first + len(batch))
        numbers = (starts >> DOCUMENT_BITS).astype(np.int64) - first
        covered = np.stack([starts & POINT_BITS, ends & POINT_BITS], axis=1).astype(np.uint32).reshape(-1)
        bounds, counts, tokens = _kernel.cut_passages(
            self.shingler,
            chunk.offsets,
            chunk.data,
            covered,
            np.bincount(numbers, minlength=len(batch)),
            self.rules.snap,
            self.job.limits.threads,
        )
        found = _Found(chunk, first, np.repeat(np.arange(len(batch)), counts), bounds.reshape(-1, 4), tokens)
        self.waiting.add_cuts(found)
        self._add_rests(found, counts)
        self._add_examples(found)
        self._add_repeats(chunk, first)

    def _add_rests(self, found: "_Found", counts: NDArray[np.int64]) -> None:
        """Note what is left of the removed documents of a batch."""
        cut_tokens = np.bincount(found.texts, found.tokens, len(counts)).astype(np.int64)
        tokens = self._token_counts[found.first : found.first + len(counts)]
        for text in np.flatnonzero(is_removed(tokens, cut_tokens, self.rules)).tolist():
            self.waiting.add_rest(found.first + text, found.rest(text))

    @cached_property
    def _token_counts(self) -> NDArray[np.uint32]:
        return self.documents.column("token_counts")

    def _add_examples(self, found: "_Found") -> None:
        """Note the first cuts of documents with what stands around them."""
        _, firsts = np.unique(found.texts, return_index=True)
        for at in firsts[: SHOWN_CUTS - len(self.examples)].tolist():
            self.examples.append(found.example(at))

    def _add_repeats(self, chunk: TextChunk, first: int) -> None:
        """Note the texts of the passages that are repeated most, from the first document that repeats each."""
        for repeat in self.repeats:
            if first <= repeat["document"] < first + len(chunk) and "text" not in repeat:
                text = _text_of(chunk, repeat["document"] - first)
                repeat["text"] = text[repeat["start"] : repeat["end"]][:SHOWN_TEXT]


@dataclass
class _Found:
    """Cuts of a batch: the index of the text of each, start and end in code points and in bytes, and tokens."""

    chunk: TextChunk
    first: int
    texts: NDArray[np.int64]
    bounds: NDArray[np.int64]
    tokens: NDArray[np.uint32]

    def pieces(self) -> pa.Array:
        """Return the text of each cut: every second of the pieces into which the cuts divide all texts."""
        ends = self.chunk.offsets[self.texts].astype(np.int64)[:, None] + self.bounds[:, 2:]
        buffers = [None, pa.py_buffer(np.ascontiguousarray(ends)), pa.py_buffer(self.chunk.data)]
        divided = pa.Array.from_buffers(pa.large_string(), max(0, 2 * len(ends) - 1), buffers)
        return divided.take(from_numpy(np.arange(0, len(divided), 2)))

    def rest(self, text: int) -> bytes:
        """Return a text without its cuts."""
        start, end = self.chunk.offsets[text : text + 2].tolist()
        cuts = start + self.bounds[self.texts == text, 2:].reshape(-1)
        ends = [start, *cuts.tolist(), end]
        data = self.chunk.data.data
        return b"".join(data[left:right] for left, right in zip(ends[::2], ends[1::2], strict=True))

    def example(self, at: int) -> dict[str, Any]:
        """Return a cut with what stands around it."""
        start, end = self.bounds[at, :2].tolist()
        text = _text_of(self.chunk, int(self.texts[at]))
        return {
            "document": self.first + int(self.texts[at]),
            "start": start,
            "end": end,
            "tokens": int(self.tokens[at]),
            "before": text[max(0, start - CONTEXT) : start],
            "text": text[start : min(end, start + SHOWN_TEXT)],
            "after": text[end : end + CONTEXT],
        }


class _Waiting:
    """Cuts and rests that wait to be written."""

    def __init__(self, work: WorkDirectory, most: int) -> None:
        self.work, self.most, self.files, self.held = work, most, 0, 0
        self.blocks: list[CutBlock] = []
        self.pieces: list[pa.Array] = []
        self.rests: list[tuple[int, bytes]] = []

    def add_cuts(self, found: _Found) -> None:
        keys = (found.first + found.texts).astype(np.uint64) << DOCUMENT_BITS | found.bounds[:, 0].astype(np.uint64)
        self.blocks.append(CutBlock(keys, found.bounds[:, 1].astype(np.uint32), found.tokens))
        self.pieces.append(found.pieces())
        self._hold(self.pieces[-1].nbytes + 16 * len(found.texts))

    def add_rest(self, document: int, text: bytes) -> None:
        self.rests.append((document, text))
        self._hold(len(text) + 100)

    def _hold(self, size: int) -> None:
        self.held += size
        if self.held > self.most:
            self.write()

    def write(self) -> None:
        """Write what waits."""
        if self.blocks:
            columns = map(np.concatenate, zip(*self.blocks, strict=True))
            self.work.write(f"cuts-{self.files:06}", dict(zip(CutBlock._fields, columns, strict=True)))
            self.work.write_table(f"cut-texts-{self.files:06}", pa.table({"text": pa.concat_arrays(self.pieces)}))
        if self.rests:
            documents = from_numpy(np.array([document for document, _ in self.rests], dtype=np.int64))
            texts = _texts([text for _, text in self.rests])
            self.work.write_table(f"rests-{self.files:06}", pa.table({"document": documents, "text": texts}))
        self.files, self.held = self.files + 1, 0
        self.blocks, self.pieces, self.rests = [], [], []


class _CoveredSpans:
    """Covered spans of all documents, which are taken in the order of documents."""

    def __init__(self, work: WorkDirectory) -> None:
        self.files = (work.open(name) for name in work.names("covered-"))
        self.starts = self.ends = np.empty(0, dtype=np.uint64)

    def of(self, start: int, end: int) -> tuple[Keys, Keys]:
        """Return starts and ends of the documents from ``start`` up to ``end``; later calls have later documents."""
        limit = np.uint64(end) << DOCUMENT_BITS
        while not len(self.starts) or self.starts[-1] < limit:
            file = next(self.files, None)
            if file is None:
                break
            self.starts = np.append(self.starts, file.read("starts"))
            self.ends = np.append(self.ends, file.read("ends"))
        inside = int(np.searchsorted(self.starts, limit))
        found = self.starts[:inside], self.ends[:inside]
        self.starts, self.ends = self.starts[inside:], self.ends[inside:]
        return found


def _covered(blocks: Iterator[PassageRows]) -> Iterator[tuple[Keys, Keys]]:
    """Yield the spans that passages cover, ascending and disjoint: document in the high half, code point in the low."""
    starts = ends = np.empty(0, dtype=np.uint64)
    for block in blocks:
        starts, ends = np.append(starts, _span_keys(block, 0)), np.append(ends, _span_keys(block, 1))
        reach = np.maximum.accumulate(ends)
        first = np.flatnonzero(np.concatenate([[True], starts[1:] > reach[:-1]])[: len(starts)])
        starts, ends = starts[first], reach[np.append(first[1:], len(starts))[: len(first)] - 1]
        yield starts[:-1], ends[:-1]
        starts, ends = starts[-1:], ends[-1:]
    yield starts, ends


def _span_keys(rows: PassageRows, side: int) -> Keys:
    """Return the document of each passage in the high half, and its start or end in the low half."""
    keys: Keys = rows.keys >> DOCUMENT_BITS << DOCUMENT_BITS | rows.spans[:, side].astype(np.uint64)
    return keys


def _texts(pieces: list[bytes]) -> pa.Array:
    return from_bytes(pieces, pa.large_string())


def _text_of(chunk: TextChunk, text: int) -> str:
    start, end = chunk.offsets[text : text + 2].tolist()
    return str(chunk.data.data[start:end], "utf-8")


def _one_column(work: WorkDirectory, name: str, column: str) -> pa.Array:
    return work.read_table(name).column(column).combine_chunks()
