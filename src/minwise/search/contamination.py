"""Search for evaluation items in a training corpus.

The kernel (``crates/kernel/src/contamination.rs``) holds a table of the n-grams of all items. The first pass probes
every token of every training document and writes the distinct n-grams of each document to ``grams-`` files. They are
enough to count in how many documents each n-gram is, copies once; to tell which n-grams are rare; and to find the
documents with enough rare n-grams of an item. Only these are read again, for the spans (``hits-`` files).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.array_files import ArrayFile, Arrays
from minwise._internal.arrays import from_numpy, valid_mask
from minwise._internal.formatting import plural
from minwise._internal.prefetch import prefetch
from minwise._internal.sorted_arrays import distinct
from minwise.errors import ConfigError, InputError
from minwise.inputs.source import Batch, fault_error
from minwise.search.bands import FILLED
from minwise.search.documents import Corpus, Documents, SearchJob, batch_ids, check_columns, concat_ids
from minwise.search.first_pass import ScanReader, wanted_batches
from minwise.search.verification import TextCache
from minwise.search.workdir import WorkDirectory
from minwise.settings import ContaminationRule, RunLimits
from minwise.text.chunks import text_chunk
from minwise.text.shingling import Shingler, kernel_shingler

__all__ = [
    "MIN_TOKENS",
    "Contamination",
    "CutRows",
    "EvalItems",
    "HitRows",
    "HitWriter",
    "ItemCandidates",
    "ItemGrams",
    "Locator",
    "checked_table",
    "count_contamination",
    "find_contamination",
    "item_table",
    "ngram_frequencies",
    "no_cuts",
    "read_items",
    "scan_chunk",
    "shingler_of",
]

# Tokens of the shortest item that can be found.
MIN_TOKENS = _kernel.ITEM_TOKENS
# Share of the memory, as 1 of so many: for the table of the items; for n-grams and hits that wait to be written; for
# texts that the report shows.
TABLE_SHARE, WAITING_SHARE, CACHE_SHARE = 4, 16, 64
# Bytes of the table for each byte of text, where each word has two.
TABLE_GROWTH = 32
# Pairs of an n-gram of a document and an item that are counted at once.
COUNTED_PAIRS = 1 << 21
ITEM_BITS = np.uint64(32)
ITEM_MASK = np.uint64(2**32 - 1)
Numbers = NDArray[np.uint32]
Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EvalItems:
    """Evaluation items: each named column of a row of the evaluation files is one.

    Attributes:
        texts: Their texts; empty where a row cannot be read.
        ids: Ids of the rows.
        sources: Files of the rows.
        rows: Rows in them.
        columns: Columns.
        faults: Reason of each item that cannot be read.
    """

    texts: pa.Array
    ids: pa.Array
    sources: pa.Array
    rows: Int64s
    columns: pa.Array
    faults: dict[int, str]

    def __len__(self) -> int:
        return len(self.texts)

    def text(self, item: int) -> str:
        """Return the text of an item."""
        return str(self.texts[item].as_py(), encoding="utf-8", errors="replace")


class HitRows(NamedTuple):
    """Items in documents as columns, by document and item.

    Attributes:
        documents: Document of each hit.
        items: Item of each hit.
        matched: Number of its distinct rare n-grams that the document has.
        covered: Number of its tokens that are in one of them.
        counts: Number of spans.
        spans: Start and end in the document, then in the item, in code points, of each span of all hits.
    """

    documents: Numbers
    items: Numbers
    matched: Numbers
    covered: Numbers
    counts: Numbers
    spans: Numbers

    @classmethod
    def read(cls, file: ArrayFile) -> "HitRows":
        """Read the columns of a file."""
        return cls(*map(file.read, cls._fields))

    def where(self, flags: NDArray[np.bool_]) -> "HitRows":
        """Return the hits that are flagged."""
        spans = self.spans[np.repeat(flags, self.counts)]
        columns = (self.documents, self.items, self.matched, self.covered, self.counts)
        return HitRows._make([*(column[flags] for column in columns), spans])

    @classmethod
    def concat(cls, pieces: Sequence["HitRows"]) -> "HitRows":
        """Return the hits of all pieces."""
        return cls(*map(np.concatenate, zip(*pieces, strict=True)))


class CutRows(NamedTuple):
    """What is cut out of documents, as columns.

    Attributes:
        documents: Document of each cut, ascending.
        starts: First code point of each cut.
        ends: One past the last; the cuts of a document are ascending and disjoint.
        emptied: Documents of which no token is left.
    """

    documents: Numbers
    starts: Numbers
    ends: Numbers
    emptied: Numbers

    @classmethod
    def read(cls, file: ArrayFile, prefix: str = "") -> "CutRows":
        """Read the columns of a file, whose names begin with ``prefix``."""
        return cls(*(file.read(f"{prefix}{name}") for name in cls._fields))

    @classmethod
    def concat(cls, pieces: Iterable["CutRows"]) -> "CutRows":
        """Return the cuts of all pieces."""
        return cls(*map(np.concatenate, zip(*pieces, strict=True)))


def read_items(corpora: Sequence[Corpus], memory: int) -> EvalItems:
    """Read the evaluation items of all files; each corpus reads one column of them.

    Raises:
        InputError: If there are none, a column is in no row, or a row cannot be read and the run must not go on.
        ConfigError: If they have too much text for the memory.
    """
    try:
        pieces = _read_pieces(corpora, memory)
    except InputError as error:
        raise InputError(_in_terms_of_evals(str(error))) from None
    items = _joined_items(pieces, [corpus.columns.text[0] for corpus in corpora])
    if not len(items):
        raise InputError("evals must have items, got none; check the path and eval_columns")
    return items


def _read_pieces(corpora: Sequence[Corpus], memory: int) -> list[dict[str, Any]]:
    pieces: list[dict[str, Any]] = []
    held = 0
    for column, corpus in enumerate(corpora):
        check_columns(corpus)
        first = len(pieces)
        for number, source in enumerate(corpus.sources):
            for batch in source.batches(corpus.columns):
                held += int(batch.values.nbytes)
                if held > memory // TABLE_SHARE // TABLE_GROWTH:
                    raise _too_large("more text than the table of its n-grams has room for", memory)
                pieces.append(_item_piece(corpus, number, column, batch))
        _refuse_missing_column(corpus.columns.text[0], pieces[first:])
    return pieces


def _refuse_missing_column(name: str, pieces: list[dict[str, Any]]) -> None:
    """Raise if no row has a column: what it is to hold would be listed as not checkable, row by row."""
    reasons = [reason for piece in pieces for reason in piece["faults"]]
    if reasons and all(reason is not None and reason.startswith(f"has no column {name!r}") for reason in reasons):
        raise InputError(f"evals: no row {reasons[0].replace('has no', 'has the', 1)}")


def _in_terms_of_evals(message: str) -> str:
    """Return a message about columns with the settings of evaluation items."""
    return message.replace("text_column=", "eval_columns=").replace("id_column=", "eval_id_column=")


def _too_large(what: str, memory: int) -> ConfigError:
    rule = f"evals must fit into a quarter of the memory, {memory // TABLE_SHARE // 10**6} MB, got {what}"
    return ConfigError(f"{rule}; give a larger memory or fewer evals")


def _item_piece(corpus: Corpus, number: int, column: int, batch: Batch) -> dict[str, Any]:
    source = corpus.sources[number]
    for fault in batch.faults:
        if fault.row is None:
            raise InputError(f"{fault}; evals must be read to their end: repair the file or leave it out")
        if corpus.on_error == "fail":
            raise fault_error(fault)
    rows = np.arange(batch.first, batch.first + len(batch), dtype=np.int64)
    names, file_rows = source.locate(rows)
    reasons = iter(batch.faults)
    ids = batch_ids(source, batch)
    return {
        "texts": pc.fill_null(batch.values.cast(pa.large_binary()), b""),
        "ids": source.default_ids(rows) if ids is None else ids,
        "sources": names,
        "rows": file_rows,
        "faults": [None if valid else next(reasons).reason for valid in valid_mask(batch.values).tolist()],
        "order": np.stack([np.full(len(rows), number), rows, np.full(len(rows), column)], axis=1),
    }


def _joined_items(pieces: list[dict[str, Any]], columns: list[str]) -> EvalItems:
    """Return all items, by file, row and column."""
    if not pieces:
        none = pa.nulls(0, pa.large_string())
        return EvalItems(none, none, none, np.empty(0, dtype=np.int64), none, {})
    places = np.concatenate([piece["order"] for piece in pieces])
    order = np.lexsort((places[:, 2], places[:, 1], places[:, 0]))
    taken = from_numpy(order)
    reasons = [reason for piece in pieces for reason in piece["faults"]]
    return EvalItems(
        texts=pa.concat_arrays([piece["texts"] for piece in pieces]).take(taken),
        ids=concat_ids([piece["ids"] for piece in pieces]).take(taken),
        sources=pa.concat_arrays([piece["sources"] for piece in pieces]).take(taken),
        rows=np.concatenate([piece["rows"] for piece in pieces])[order],
        columns=pa.array(columns, pa.large_string()).take(from_numpy(places[order, 2])),
        faults={item: reasons[at] for item, at in enumerate(order.tolist()) if reasons[at] is not None},
    )


def item_table(shingler: Shingler, ngram: int, texts: pa.Array) -> "_kernel.ItemTable":
    """Return the table of the n-grams of items."""
    first = replace(shingler, spec=f"word:{ngram}")
    second = replace(first, seed=(shingler.seed + 1) % 2**64)
    whole, confirming, heads = map(kernel_shingler, (first, second, replace(shingler, spec=f"word:{MIN_TOKENS}")))
    chunk = text_chunk(texts)
    return _kernel.ItemTable(whole, confirming, heads, ngram, chunk.offsets, chunk.data)


class ItemGrams:
    """Which items have which n-grams."""

    def __init__(self, table: "_kernel.ItemTable", items: int) -> None:
        offsets, grams = table.item_grams()
        self.items = items
        owners = np.repeat(np.arange(items, dtype=np.uint64), np.diff(offsets))
        pairs = distinct(grams.astype(np.uint64) << ITEM_BITS | owners)
        self.grams, self.owners = (pairs >> ITEM_BITS).astype(np.int64), (pairs & ITEM_MASK).astype(np.int64)
        self.starts = np.searchsorted(self.grams, np.arange(table.grams + 1))
        self.sizes = np.diff(self.starts)

    def rare_counts(self, rare: NDArray[np.bool_]) -> Int64s:
        """Return the number of distinct rare n-grams of each item."""
        return np.bincount(self.owners[rare[self.grams]], minlength=self.items).astype(np.int64)

    def count(self, documents: Numbers, grams: Numbers) -> tuple[Int64s, Int64s, Int64s]:
        """Return the pairs of a document and an item with common n-grams, ascending, and how many they have."""
        sizes = self.sizes[grams]
        ends = np.cumsum(sizes)
        within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - sizes, sizes)
        owners = self.owners[np.repeat(self.starts[grams], sizes) + within].astype(np.uint64)
        keys, matched = np.unique(
            np.repeat(documents.astype(np.uint64), sizes) << ITEM_BITS | owners, return_counts=True
        )
        return (keys >> ITEM_BITS).astype(np.int64), (keys & ITEM_MASK).astype(np.int64), matched


@dataclass(frozen=True)
class Contamination:
    """Result of a search for evaluation items.

    Attributes:
        documents: The training documents by number.
        items: The evaluation items.
        rule: What makes a document contaminated.
        tokens: Number of tokens of each item.
        rare: Number of rare n-grams of each item.
        grams: Number of distinct n-grams of all items.
        common: Number of common ones.
        distinct: Number of distinct training documents with any token.
        table_bytes: Memory of the table.
        work: The work directory, which holds the hits.
        limits: Memory and threads.
        text_cache: Texts of contaminated documents, for the report; empty if an earlier run, or Spark, has read them.
    """

    documents: Documents
    items: EvalItems
    rule: ContaminationRule
    tokens: Numbers
    rare: Int64s
    grams: int
    common: int
    distinct: int
    table_bytes: int
    work: WorkDirectory
    limits: RunLimits
    text_cache: TextCache

    def hits(self) -> Iterator[HitRows]:
        """Yield all hits in blocks, by document and item; all hits of a document are in one block."""
        for name in self.work.names("hits-"):
            yield HitRows.read(self.work.open(name))

    @cached_property
    def cuts(self) -> CutRows:
        """What is cut out of documents; nothing unless the action is to cut."""
        files = [self.work.open(name) for name in self.work.names("cuts-")]
        return CutRows.concat([no_cuts(), *map(CutRows.read, files)])

    @cached_property
    def best(self) -> HitRows:
        """The hit of each contaminated document with the largest share; among equals most covered, then the first."""
        blocks = [self._best_of(block) for block in self.hits()]
        return HitRows.concat([_no_hits(), *blocks])

    def _best_of(self, block: HitRows) -> HitRows:
        order = np.lexsort((block.items, -self.scores(block), -self.shares(block), block.documents))
        flags = np.zeros(len(order), dtype=bool)
        flags[order[_starts(block.documents[order, np.newaxis])]] = True
        return block.where(flags)

    def shares(self, hits: HitRows) -> NDArray[np.float64]:
        """Return the share of the item's rare n-grams that the document has, for each hit."""
        shares: NDArray[np.float64] = hits.matched / self.rare[hits.items]
        return shares

    def scores(self, hits: HitRows) -> NDArray[np.float64]:
        """Return the share of the item's tokens that are in one of these n-grams, for each hit."""
        scores: NDArray[np.float64] = hits.covered / self.tokens[hits.items]
        return scores

    def uncheckable(self) -> Iterator[tuple[int, str]]:
        """Yield each item that cannot be found, with the reason."""
        for item in np.flatnonzero(self.rare == 0).tolist():
            if item in self.items.faults:
                yield item, self.items.faults[item]
            elif self.tokens[item] < MIN_TOKENS:
                yield item, f"fewer than {MIN_TOKENS} tokens"
            else:
                yield item, "no rare n-gram"


def no_cuts() -> CutRows:
    """Return the cuts of no document."""
    none = np.empty(0, dtype=np.uint32)
    return CutRows(none, none, none, none)


def _no_hits() -> HitRows:
    none = np.empty(0, dtype=np.uint32)
    return HitRows(none, none, none, none, none, none.reshape(0, 4))


@dataclass(frozen=True)
class Locator:
    """Finds the spans of items in texts.

    Attributes:
        table: The table of the items.
        rule: What makes a document contaminated.
        shingler: Cuts texts into words.
        rare: A flag for each rare n-gram.
        counts: Number of rare n-grams of each item.
        threads: Number of threads.
    """

    table: "_kernel.ItemTable"
    rule: ContaminationRule
    shingler: Shingler
    rare: NDArray[np.bool_]
    counts: Int64s
    threads: int

    def locate(self, values: pa.Array, keys: NDArray[np.uint64], first: int) -> tuple[HitRows, CutRows]:
        """Return the hits among pairs of a document and an item, and what is cut out of the documents.

        Args:
            values: The texts of consecutive documents.
            keys: The pairs.
            first: Number of the first document.
        """
        documents, items = (keys >> ITEM_BITS).astype(np.uint32), (keys & ITEM_MASK).astype(np.uint32)
        offsets = np.searchsorted(documents, np.arange(first, first + len(values) + 1)).astype(np.int64)
        chunk = text_chunk(values)
        found = self.table.locate(chunk.offsets, chunk.data, offsets, items, self.rare, self.threads)
        matched, covered, ends, spans = found
        hits = HitRows(documents, items, matched, covered, np.diff(ends).astype(np.uint32), spans)
        hits = hits.where(self.rule.holds(matched, self.counts[items]))
        return hits, self._cuts(hits, values, first) if self.rule.action == "cut" else no_cuts()

    def _cuts(self, hits: HitRows, values: pa.Array, first: int) -> CutRows:
        """Return what is cut out of the documents of hits, which are in the order of documents."""
        starts = np.flatnonzero(_starts(hits.documents[:, np.newaxis]))
        bounds = _offsets(hits.counts)[np.append(starts, len(hits.counts))].tolist()
        cuts: list[tuple[int, int, int]] = []
        emptied: list[int] = []
        for document, (low, high) in zip(hits.documents[starts].tolist(), pairwise(bounds), strict=True):
            text = str(values[document - first].as_buffer(), encoding="utf-8")
            ranges = _cut_ranges(text, hits.spans[low:high, :2].tolist(), self.shingler)
            cuts += [(document, start, end) for start, end in ranges]
            edges = [0, *(edge for one in ranges for edge in one), len(text)]
            left = "".join(text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True))
            emptied += [] if _count_tokens(left, self.shingler) else [document]
        columns = np.array(cuts, dtype=np.uint32).reshape(-1, 3)
        return CutRows(columns[:, 0], columns[:, 1], columns[:, 2], np.array(emptied, dtype=np.uint32))


def find_contamination(job: SearchJob, items: EvalItems, rule: ContaminationRule) -> Contamination:
    """Find every item of which a document has enough rare n-grams; resume an interrupted run."""
    table = checked_table(job, items, rule.ngram)
    if not job.work.has("documents"):
        _GramReader(job, table).run()
    result, rare = count_contamination(job, items, rule, table)
    if not job.work.has("hits"):
        locator = Locator(table, rule, shingler_of(job), rare, result.rare, job.limits.threads)
        _read_candidates(job, result, locator)
    return result


def checked_table(job: SearchJob, items: EvalItems, ngram: int) -> "_kernel.ItemTable":
    """Return the table of the items.

    Raises:
        ConfigError: If it does not fit into its share of the memory.
        InputError: If no item has enough tokens.
    """
    table = item_table(shingler_of(job), ngram, items.texts)
    items.faults.update(dict(table.faults))
    if table.nbytes > job.limits.memory // TABLE_SHARE:
        raise _too_large(f"a table of {table.nbytes // 10**6} MB", job.limits.memory)
    if not table.grams:
        first = next(iter(items.faults.values()), None)
        reason = f"fewer than {MIN_TOKENS} tokens" if first is None else _in_terms_of_evals(first)
        raise InputError(f"evals must have an item that can be checked, got {plural(len(items), 'item')}: {reason}")
    return table


def shingler_of(job: SearchJob) -> Shingler:
    """Return what cuts the texts of a job into words."""
    assert job.settings.shingler is not None  # the settings of a decontamination have one
    return job.settings.shingler


def scan_chunk(
    table: "_kernel.ItemTable", values: pa.Array, threads: int
) -> tuple[Arrays, list[tuple[int, str]], Arrays]:
    """Return tokens and content hashes of texts, their faults, and those with n-grams of items, with these n-grams."""
    chunk = text_chunk(values)
    counts, contents, offsets, grams, faulty = table.scan(chunk.offsets, chunk.data, threads)
    sizes = np.diff(offsets)
    valid = valid_mask(values)
    if not valid.all():  # the values of nulls are undefined
        grams = grams[np.repeat(valid, sizes)]
        sizes = np.where(valid, sizes, 0)
    own = np.flatnonzero(sizes).astype(np.uint32)
    found = {"rows": own, "sizes": sizes[own].astype(np.uint32), "grams": grams}
    return {"token_counts": counts, "contents": contents}, faulty, found


class _GramReader(ScanReader):
    """First pass: documents, and the n-grams of items that they have."""

    spilled = "grams-"

    def __init__(self, job: SearchJob, table: "_kernel.ItemTable") -> None:
        super().__init__(job)
        self.table = table
        self.waiting: list[Arrays] = []

    def scan(self, batch: Batch, first: int) -> tuple[Arrays, list[tuple[int, str]]]:
        arrays, faulty, found = scan_chunk(self.table, batch.values, self.limits.threads)
        self.waiting.append({**found, "rows": found["rows"] + np.uint32(first)})
        if sum(one["grams"].nbytes for one in self.waiting) > self.limits.memory // WAITING_SHARE:
            self.spill(self.drain())
        return arrays, faulty

    def drain(self) -> Arrays:
        joined = {name: np.concatenate([one[name] for one in self.waiting]) for name in self.waiting[0]}
        self.waiting = [{name: array[:0] for name, array in joined.items()}]
        return joined


def count_contamination(
    job: SearchJob, items: EvalItems, rule: ContaminationRule, table: "_kernel.ItemTable"
) -> tuple[Contamination, NDArray[np.bool_]]:
    """Return the result whose hits are still to be written, and which n-grams are rare; write the candidates."""
    documents = Documents(job.corpus, job.work)
    frequencies, distinct = ngram_frequencies(documents, job.work, table.grams)
    rare = rule.rare(frequencies, distinct)
    grams = ItemGrams(table, len(items))
    result = Contamination(
        documents=documents,
        items=items,
        rule=rule,
        tokens=table.token_counts(),
        rare=grams.rare_counts(rare),
        grams=table.grams,
        common=int(np.count_nonzero(~rare)),
        distinct=distinct,
        table_bytes=table.nbytes,
        work=job.work,
        limits=job.limits,
        text_cache=TextCache(job.limits.memory // CACHE_SHARE),
    )
    if not job.work.has("hits"):
        _write_candidates(job.work, grams, rare, result)
    return result, rare


def ngram_frequencies(documents: Documents, work: WorkDirectory, grams: int) -> tuple[Int64s, int]:
    """Return in how many distinct documents each n-gram is, and how many distinct documents have any token."""
    first = _first_copies(documents)
    frequencies = np.zeros(grams, dtype=np.int64)
    for name in work.names("grams-"):
        file = work.open(name)
        counted = np.repeat(first[file.read("rows")], file.read("sizes"))
        frequencies += np.bincount(file.read("grams")[counted], minlength=grams)
    return frequencies, int(np.count_nonzero(first))


def _first_copies(documents: Documents) -> NDArray[np.bool_]:
    """Return which documents are the first with their tokens, of those that have any."""
    contents = documents.column("contents").reshape(-1, 2)
    order = np.lexsort((contents[:, 1], contents[:, 0]))  # stable: the first copy stays the first
    starts = _starts(contents[order])
    first = np.zeros(len(order), dtype=bool)
    first[order[starts]] = True
    filled: NDArray[np.bool_] = first & (documents.states == FILLED)
    return filled


def _starts(rows: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which rows differ from the row before them."""
    differ = (rows[1:] != rows[:-1]).any(axis=1)
    starts: NDArray[np.bool_] = np.concatenate([np.ones(min(1, len(rows)), dtype=bool), differ])
    return starts


def _write_candidates(work: WorkDirectory, grams: ItemGrams, rare: NDArray[np.bool_], result: Contamination) -> None:
    """Write the pairs of a document and an item with enough rare n-grams, ascending."""
    work.delete("candidates-")  # of an interrupted run
    for number, name in enumerate(work.names("grams-")):
        file = work.open(name)
        sizes, found = file.read("sizes").astype(np.int64), file.read("grams")
        offsets, pieces = _offsets(sizes), [np.empty(0, dtype=np.uint64)]
        for rows in _row_ranges(sizes, np.where(rare, grams.sizes, 0)[found]):
            start, end = offsets[rows.start], offsets[rows.stop]
            owners, part = np.repeat(file.read("rows")[rows], sizes[rows]), found[start:end]
            counts = rare[part]
            documents, items, matched = grams.count(owners[counts], part[counts])
            enough = result.rule.holds(matched, result.rare[items])
            pieces.append(documents[enough].astype(np.uint64) << ITEM_BITS | items[enough].astype(np.uint64))
        work.write(f"candidates-{number:06}", {"keys": np.concatenate(pieces)})


def _row_ranges(sizes: Int64s, pairs: Int64s) -> Iterator[slice]:
    """Yield ranges of documents with at most ``COUNTED_PAIRS`` pairs together, or one document."""
    ends = _offsets(pairs)[_offsets(sizes)]
    start = 0
    while start < len(sizes):
        fitting = int(np.searchsorted(ends, ends[start] + COUNTED_PAIRS, side="right")) - 1
        stop = max(start + 1, fitting)
        yield slice(start, stop)
        start = stop


def _offsets(sizes: "Int64s | Numbers") -> Int64s:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes, dtype=np.int64)])


class ItemCandidates:
    """Pairs of a document and an item, which are taken in the order of documents."""

    def __init__(self, work: WorkDirectory) -> None:
        self._files = [work.open(name) for name in work.names("candidates-")]
        self._blocks = (file.read("keys") for file in self._files)
        self._keys = np.empty(0, dtype=np.uint64)

    def documents(self, number: int) -> NDArray[np.bool_]:
        """Return a flag for each of the documents, so many, that has any."""
        flags = np.zeros(number, dtype=bool)
        for file in self._files:
            flags[file.read("keys") >> ITEM_BITS] = True
        return flags

    def of(self, start: int, end: int) -> NDArray[np.uint64]:
        """Return the pairs of the documents from ``start`` up to ``end``; later calls have later documents."""
        bounds = np.array([start, end], dtype=np.uint64) << ITEM_BITS
        while not len(self._keys) or self._keys[-1] < bounds[1]:
            block = next(self._blocks, None)
            if block is None:
                break
            self._keys = np.append(self._keys, block)
        low, high = np.searchsorted(self._keys, bounds)
        found, self._keys = self._keys[low:high], self._keys[high:]
        return found


def _read_candidates(job: SearchJob, result: Contamination, locator: Locator) -> None:
    """Read the documents with enough n-grams again, and write the hits with their spans."""
    writer, candidates = HitWriter(job.work, job.limits.memory // WAITING_SHARE), ItemCandidates(job.work)
    documents = result.documents
    wanted = candidates.documents(len(documents))
    with job.progress.stage("read again", int(np.count_nonzero(wanted)), "documents") as stage:
        for first, batch in prefetch(wanted_batches(job, documents, wanted), depth=1):
            end = first + len(batch)
            hits, cuts = locator.locate(batch.values, candidates.of(first, end), first)
            writer.add(hits, cuts)
            _cache_texts(result.text_cache, hits, batch.values, first)
            stage.advance(int(np.count_nonzero(wanted[first:end])))
    writer.finish()


def _cache_texts(cache: TextCache, hits: HitRows, values: pa.Array, first: int) -> None:
    """Add the texts of the documents of hits, the first of which has the number ``first``, as far as there is room."""
    if cache.is_open:
        own = np.unique(hits.documents).astype(np.int64)
        cache.add(own, values.take(from_numpy(own - first)))


class HitWriter:
    """Writer of hits and cuts, which are added in the order of documents."""

    def __init__(self, work: WorkDirectory, waiting: int) -> None:
        """Create a writer that holds up to ``waiting`` bytes of spans."""
        self._work, self._waiting, self._numbers = work, waiting, count()
        self._hits, self._cuts = [_no_hits()], [no_cuts()]
        for prefix in ("hits-", "cuts-"):  # of an interrupted run
            work.delete(prefix)

    def add(self, hits: HitRows, cuts: CutRows) -> None:
        """Add the hits and the cuts of some documents."""
        self._hits.append(hits)
        self._cuts.append(cuts)
        if sum(one.spans.nbytes for one in self._hits) > self._waiting:
            self._write()

    def finish(self) -> None:
        """Write the rest, and that all are written."""
        self._write()
        self._work.write_json("hits", {})

    def _write(self) -> None:
        number = next(self._numbers)
        self._work.write(f"hits-{number:06}", HitRows.concat(self._hits)._asdict())
        self._work.write(f"cuts-{number:06}", CutRows.concat(self._cuts)._asdict())
        self._hits[1:], self._cuts[1:] = [], []


def _cut_ranges(text: str, spans: list[list[int]], shingler: Shingler) -> list[tuple[int, int]]:
    """Return the union of spans; a range whose removal would join two words keeps its first character.

    Words without a separator between them and the range are next to a character that is a word by itself, so a
    character that stays is one.
    """
    merged: list[tuple[int, int]] = []
    for start, end in sorted(map(tuple, spans)):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return [(start + _is_joined(text, start, end, shingler), end) for start, end in merged]


def _is_joined(text: str, start: int, end: int, shingler: Shingler) -> bool:
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    return _count_tokens(before + after, shingler) < _count_tokens(before, shingler) + _count_tokens(after, shingler)


def _count_tokens(text: str, shingler: Shingler) -> int:
    return len(shingler.spans(text).hashes)
