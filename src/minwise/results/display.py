"""Displays of results in a terminal or a notebook: tables with the start of the texts, and deduplications."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.display import fact_list, notebook, one_line, text_facts, text_table, value_table
from minwise._internal.formatting import format_similarity, plural
from minwise._internal.html import escape
from minwise.comparison.alignment import decode_passages
from minwise.comparison.comparison import compare
from minwise.comparison.page import LEGEND, SIDE_BY_SIDE_STYLE, side_by_side
from minwise.inputs.memory_sources import TableSource
from minwise.results.nearest import NearestTables
from minwise.results.pairs import Clustering, expanded_pairs, pair_schema, pair_tables
from minwise.results.removals import DedupDecision, Removals
from minwise.results.report_writer import SMALL_BYTES, SourceRow, excerpt, read_bytes, read_texts
from minwise.search.engine import SearchResult
from minwise.text.shingling import Shingler

__all__ = [
    "Preview",
    "ResultTable",
    "TextSample",
    "cluster_table",
    "clusters_result",
    "dedup_html",
    "dedup_text",
    "nearest_result",
    "one_table",
    "pairs_result",
    "plain_table",
    "removed_table",
]

# Rows that are shown: few, so that a result does not fill the screen.
SHOWN_ROWS = 6


class TextSample:
    """Texts of a few documents, by number.

    Texts in memory are looked up at once, so that a result does not keep its input alive. Files of up to 4 MB are read
    again when a result is first shown; the texts of larger ones are not shown.
    """

    def __init__(self, search: "SearchResult | NearestTables", documents: Sequence[int]) -> None:
        self._texts: dict[int, str] | None = None
        corpus, starts = search.documents.corpus, search.documents.starts
        numbers = np.searchsorted(starts, documents, side="right") - 1
        rows = {at: (int(number), int(at - starts[number])) for at, number in zip(documents, numbers, strict=True)}
        has_texts = search.settings.shingler is not None
        self._rows: dict[int, SourceRow] = rows if has_texts else {}
        self._sources, self._columns = list(corpus.sources), corpus.columns
        used = [corpus.sources[number] for number, _ in self._rows.values()]
        if any(isinstance(source, TableSource) for source in used):
            self.read()
            self._sources = []
        elif sum(read_bytes(source) for source in dict.fromkeys(used)) > SMALL_BYTES:
            self._rows = {}

    def read(self) -> dict[int, str]:
        """Return the texts that are known, by document number."""
        if self._texts is None:
            read = read_texts(self._sources, self._columns, list(self._rows.values()))
            self._texts = {document: read[row] for document, row in self._rows.items() if row in read}
        return self._texts


@dataclass(frozen=True)
class Preview:
    """Rows of a table to show, and the documents whose texts are shown with them.

    Attributes:
        title: What the table contains.
        rows: Numbers of the rows.
        text_names: Headings of the columns of texts.
        documents: The documents of each row, one for each column of texts.
        sample: Their texts; None if there are none.
        columns: Columns to show; all if not given.
    """

    title: str
    rows: Sequence[int] = range(SHOWN_ROWS)
    text_names: tuple[str, ...] = ()
    documents: Sequence[tuple[int, ...]] = ()
    sample: TextSample | None = None
    columns: Sequence[str] = ()

    def texts(self) -> list[tuple[str | None, ...]]:
        """Return the texts of each row; empty if none of them is known."""
        known = {} if self.sample is None else self.sample.read()
        return [tuple(map(known.get, documents)) for documents in self.documents] if known else []


class ResultTable:
    """Arrow table of a result, which shows itself.

    It has the columns, rows and methods of a :class:`pyarrow.Table`; ``pyarrow.table(result)``, polars and every other
    library that reads Arrow streams accept it. Functions of pyarrow that insist on their own class take ``.table``.

    Attributes:
        table: The table itself.

    >>> import minwise as mw
    >>> pairs = mw.pairs(["one two three four five six", "One, two, three, four, five, six!", "seven"])
    >>> pairs
    1 pair
    left  right  similarity  left text                  right text
       0      1      1.0000  one two three four five…   One, two, three, four, f…
    >>> pairs["right"].to_pylist(), pairs.num_rows
    ([1], 1)
    """

    __slots__ = ("_preview", "table")
    __hash__ = None  # type: ignore[assignment] # compared by value, as a table is

    def __init__(self, table: pa.Table, preview: Preview) -> None:
        self.table, self._preview = table, preview

    def to_arrow(self) -> pa.Table:
        """Return the table as a :class:`pyarrow.Table`."""
        return self.table

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self.table.num_rows)

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        return list(self.table.column_names)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self.table.schema

    def column(self, name: str | int) -> pa.ChunkedArray:
        """Return a column by name or position."""
        return self.table.column(name)

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries."""
        return list(self.table.to_pylist())

    def to_pydict(self) -> dict[str, list[Any]]:
        """Return the columns as lists."""
        return dict(self.table.to_pydict())

    def to_pandas(self, **options: Any) -> Any:  # noqa: ANN401 - a DataFrame; pandas is not a dependency
        """Return the table as a DataFrame of pandas; options are those of :meth:`pyarrow.Table.to_pandas`."""
        return self.table.to_pandas(**options)

    def equals(self, other: object) -> bool:
        """Return whether another table has the same columns and values."""
        theirs = other.table if isinstance(other, ResultTable) else other
        return isinstance(theirs, pa.Table) and bool(self.table.equals(theirs))

    def __eq__(self, other: object) -> bool:
        return self.equals(other) if isinstance(other, (ResultTable, pa.Table)) else NotImplemented

    def __len__(self) -> int:
        return self.num_rows

    def __getitem__(self, key: str | int) -> pa.ChunkedArray:
        return self.table[key]

    def __iter__(self) -> Iterator[pa.ChunkedArray]:
        return iter(self.table.itercolumns())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any other attribute of a table
        if name in ResultTable.__slots__ or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.table, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return ResultTable, (self.table, Preview(self._preview.title))

    def __repr__(self) -> str:
        headings, rows, texts = self._shown()
        more = self.num_rows - len(rows)
        lines = [self._preview.title, *([text_table(headings, rows, texts)] if rows else [])]
        return "\n".join([*lines, *([f"… and {more:,} more"] if more else [])])

    def _repr_html_(self) -> str:
        """Return the first rows as a table for a notebook."""
        headings, rows, texts = self._shown()
        more = self.num_rows - len(rows)
        note = f'<p class="note">… and {more:,} more</p>' if more else ""
        table = value_table(headings, rows, texts) if rows else ""
        return notebook(f'<p class="head">{escape(self._preview.title)}</p>', table, note)

    def _shown(self) -> tuple[list[str], list[list[object]], int]:
        """Return headings, rows and the number of columns of texts among them."""
        numbers = [number for number in self._preview.rows if number < self.num_rows]
        columns = [*self._preview.columns] or self.column_names
        shown = self.table.select(columns)
        slices = (shown.slice(number, 1).to_pylist()[0].values() for number in numbers)
        texts = self._preview.texts()
        names = self._preview.text_names if texts else ()
        rows = [[*values, *(texts[at] if texts else ())] for at, values in enumerate(slices)]
        return [*columns, *names], rows, len(names)


def pairs_result(search: SearchResult, *, sources: bool, field_similarities: bool = False) -> ResultTable:
    """Return the table of all pairs."""
    columns = {"sources": sources, "field_similarities": field_similarities}
    table = one_table(pair_tables(search, **columns), pair_schema(search, **columns))
    first = next(expanded_pairs(search), None)
    sides = () if first is None else (side[:SHOWN_ROWS].tolist() for side in (first.low, first.high))
    documents = list(zip(*sides, strict=True))
    sample = TextSample(search, sorted({document for pair in documents for document in pair}))
    names = ("left text", "right text")
    return ResultTable(table, Preview(plural(table.num_rows, "pair"), range(SHOWN_ROWS), names, documents, sample))


def nearest_result(found: NearestTables) -> ResultTable:
    """Return the table of all nearest documents."""
    table, first = one_table(found.tables(), found.schema), found.first(SHOWN_ROWS)
    documents = list(zip(first.left.tolist(), first.right.tolist(), strict=True))
    sample = TextSample(found, sorted({document for pair in documents for document in pair}))
    names = ("left text", "right text")
    return ResultTable(table, Preview(plural(table.num_rows, "pair"), range(SHOWN_ROWS), names, documents, sample))


def clusters_result(search: SearchResult) -> ResultTable:
    """Return the table of the cluster of every document; it shows members of the largest clusters."""
    clustering = Clustering(search)
    table = one_table(clustering.tables(), clustering.schema)
    return cluster_table(search, table, clustering.documents, clustering.firsts)


def cluster_table(
    search: SearchResult, table: pa.Table, documents: NDArray[np.int64], firsts: NDArray[np.int64]
) -> ResultTable:
    """Return a table of clusters that shows members of the largest ones.

    Args:
        search: The result of the search.
        table: A row for each document.
        documents: The documents of the rows.
        firsts: The document that each cluster is named after, by row.
    """
    names, sizes = np.unique(firsts, return_counts=True)
    several = np.flatnonzero(sizes > 1)
    largest = names[several[np.argsort(-sizes[several], kind="stable")[: SHOWN_ROWS // 2]]]
    rows = [row for first in largest for row in np.flatnonzero(firsts == first)[:2].tolist()]
    rows = rows or list(range(min(SHOWN_ROWS, len(documents))))
    found = plural(len(several), "cluster of two or more", "clusters of two or more")
    title, members = f"{plural(len(documents), 'document')}, {found}", documents[rows].tolist() if rows else []
    shown = [(document,) for document in members]
    sample = TextSample(search, members)
    return ResultTable(table, Preview(title, rows, ("text",), shown, sample, ("id", "cluster", "size")))


def removed_table(search: SearchResult, table: pa.Table, removals: Removals) -> ResultTable:
    """Return a table of removed documents that shows the first ones."""
    documents = list(zip(removals.documents[:SHOWN_ROWS].tolist(), removals.witness[:SHOWN_ROWS].tolist(), strict=True))
    sample = TextSample(search, sorted({document for pair in documents for document in pair}))
    columns = ("id", "kept_id", search.settings.similarity_name)
    title, names = plural(table.num_rows, "removed document"), ("text", "kept text")
    return ResultTable(table, Preview(title, range(SHOWN_ROWS), names, documents, sample, columns))


def plain_table(tables: Iterator[pa.Table], schema: pa.Schema, noun: str) -> ResultTable:
    """Return a table of rows without texts; ``noun`` says what a row is."""
    table = one_table(tables, schema)
    return ResultTable(table, Preview(plural(table.num_rows, noun)))


def one_table(tables: Iterator[pa.Table], schema: pa.Schema) -> pa.Table:
    """Return tables of a schema as one."""
    return pa.concat_tables([schema.empty_table(), *tables])


# Example pairs and clusters of a deduplication that are shown.
SHOWN_EXAMPLES, SHOWN_CLUSTERS = 3, 5
# Characters of each text of an example.
EXAMPLE_CHARACTERS = 600


def dedup_text(decision: DedupDecision, counts: dict[str, int]) -> str:
    """Return a deduplication in a few lines of text."""
    facts = [*_dedup_facts(decision, counts), ("see", ".kept, .removed, .clusters, .report; .write('DIR') writes them")]
    return text_facts(f"DedupResult: {_kept_line(counts)}", facts)


def dedup_html(decision: DedupDecision, counts: dict[str, int]) -> str:
    """Return a deduplication for a notebook: counts, plan, largest clusters, and examples beside the kept documents."""
    facts = ((name, escape(value)) for name, value in _dedup_facts(decision, counts))
    head = f'<p class="head">{escape(_kept_line(counts))}</p>'
    return notebook(
        head, fact_list(facts), _clusters_html(decision), _examples_html(decision), style=SIDE_BY_SIDE_STYLE
    )


def _kept_line(counts: dict[str, int]) -> str:
    return f"{counts['kept']:,} of {plural(counts['read'], 'document')} kept"


def _dedup_facts(decision: DedupDecision, counts: dict[str, int]) -> Iterator[tuple[str, str]]:
    clusters, settings, plan = decision.clusters, decision.search.settings, decision.search.settings.plan
    identical = counts["removed_identical"]
    yield "removed", f"{counts['removed']:,} ({identical:,} identical, {counts['removed'] - identical:,} similar)"
    if counts["quarantined"]:
        yield "quarantined", f"{plural(counts['quarantined'], 'row')} could not be read"
    found = f"{plan.layout} find {plan.recall:.2%} of pairs at {plan.threshold:g}"
    yield "plan", "none: an exact join finds every pair" if settings.exact else found
    if decision.threshold != plan.threshold:
        yield "threshold", f"raised to {decision.threshold:g}"
    largest = [f"{removed + 1:,}" for _, removed in clusters.largest(SHOWN_CLUSTERS)]
    sizes = f"; the largest: {', '.join(largest)}" if largest else ""
    yield "clusters", f"{clusters.clusters:,} of two or more documents{sizes}"


def _clusters_html(decision: DedupDecision) -> str:
    """Return the largest clusters, each with the text of the kept document."""
    every = decision.clusters
    largest = every.where(decision.removals.include(every.documents)).largest(SHOWN_CLUSTERS)
    if not largest:
        return ""
    kept = [first for first, _ in largest]
    ids, texts = decision.search.documents.ids(np.array(kept)).to_pylist(), _known_texts(decision, kept)
    rows = [[id_, removed, texts.get(first, "")] for id_, (first, removed) in zip(ids, largest, strict=True)]
    return f'<p class="name">Largest clusters</p>{value_table(["kept document", "removed", "text"], rows, texts=1)}'


def _examples_html(decision: DedupDecision) -> str:
    """Return the least similar removed documents of different clusters, each beside the kept one."""
    removals, shingler = decision.removals, decision.search.settings.shingler
    chosen = removals.least_similar_examples(SHOWN_EXAMPLES)
    texts = _known_texts(decision, [*removals.documents[chosen].tolist(), *removals.witness[chosen].tolist()])
    parts = []
    for at in chosen:
        kept, removed = int(removals.witness[at]), int(removals.documents[at])
        if kept in texts and removed in texts and shingler is not None:
            names = decision.search.documents.ids(np.array([kept, removed])).to_pylist()
            parts.append(_example_html(names, (texts[kept], texts[removed]), removals.similarity[at], shingler))
    head = '<p class="name">Removed documents that are least similar to the kept one</p>'
    return f"{head}{LEGEND}{''.join(parts)}" if parts else ""


def _example_html(names: list[object], texts: tuple[str, str], similarity: float, shingler: Shingler) -> str:
    compared = compare(*texts, shingler=shingler)
    sides = decode_passages(*texts, compared.passages, in_bytes=shingler.kind == "byte")
    known = "" if np.isnan(similarity) else f", similarity {format_similarity(similarity)}"
    titles = f"kept: {one_line(str(names[0]), 60)}", f"removed: {one_line(str(names[1]), 60)}{known}"
    return side_by_side(*sides, names=titles, max_chars=EXAMPLE_CHARACTERS)


def _known_texts(decision: DedupDecision, documents: list[int]) -> dict[int, str]:
    """Return texts that are cached, in memory or in small files."""
    search = decision.search
    cached = {number: text for number in documents if (text := search.text_cache.get(number)) is not None}
    rest = sorted(set(documents) - cached.keys())
    return {**TextSample(search, rest).read(), **{number: excerpt(text) for number, text in cached.items()}}
