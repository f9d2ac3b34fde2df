"""Result of a decontamination: kept and removed rows, all hits, and items that cannot be checked.

:func:`minwise.api.decontaminate` returns it. Tables are computed on first access; :meth:`DecontaminationResult.write`
writes them in bounded pieces and copies kept rows from the sources.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO
from weakref import finalize

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import from_bools, from_numpy
from minwise._internal.formatting import plural
from minwise.errors import MinwiseError
from minwise.inputs.memory_sources import TableSource
from minwise.inputs.row_edits import EditedRows, RowEdits
from minwise.inputs.source import RowMask
from minwise.inputs.table_writer import TABLE_ROWS, write_tables
from minwise.results.kept_stream import write_kept_rows
from minwise.results.notes import reading_notes
from minwise.results.output import check_output, output_of, publish
from minwise.results.report_data import RunRecord, source_counts
from minwise.results.report_writer import SourceRow, read_rows, write_json, write_quarantine
from minwise.results.stored_hits import SHOWN_HITS, SPAN, item_spans, row_spans, shown_hit
from minwise.search.bands import FAULTY
from minwise.search.contamination import Contamination, HitRows
from minwise.search.engine import Engine

__all__ = ["MARKS", "ContaminationEdits", "DecontaminationResult"]

# Items that a report names, those in most rows first.
NAMED_ITEMS = 20


def _marks(id_type: pa.DataType) -> pa.Schema:
    return pa.schema({"contaminated": pa.bool_(), "eval_id": id_type, "share": pa.float64()})


# Columns that marked rows get; the type of eval_id is that of the ids of the items.
MARKS = _marks(pa.large_string())


@dataclass(frozen=True)
class ContaminationEdits:
    """Cuts in the rows of a source, or their marks.

    Attributes:
        text: The text columns.
        added: The columns of marks; empty if rows are cut.
        cut_rows: Row of each cut, ascending.
        cut_starts: First code point of each cut.
        cut_ends: One past the last.
        marked: Contaminated rows, ascending.
        eval_ids: Id of the item of each.
        shares: Share of its rare n-grams in each.
    """

    text: tuple[str, ...]
    added: pa.Schema
    cut_rows: NDArray[np.int64]
    cut_starts: NDArray[np.int64]
    cut_ends: NDArray[np.int64]
    marked: NDArray[np.int64]
    eval_ids: pa.Array
    shares: NDArray[np.float64]

    def of_rows(self, rows: NDArray[np.int64]) -> EditedRows:
        """Return the cuts or marks of kept rows."""
        cut = np.isin(self.cut_rows, rows)
        cuts = (self.cut_rows[cut], self.cut_starts[cut], self.cut_ends[cut])
        return EditedRows(*cuts, values=self._marks_of(rows) if self.added.names else [])

    def _marks_of(self, rows: NDArray[np.int64]) -> list[pa.Array]:
        flags = np.isin(rows, self.marked)
        indices = pa.array(np.searchsorted(self.marked, rows), mask=~flags)
        return [pa.array(flags), self.eval_ids.take(indices), from_numpy(self.shares).take(indices)]


class DecontaminationResult:
    """Result of a decontamination: kept and removed rows, all hits, and items that cannot be checked.

    Attributes:
        published: Whether an earlier run on the same work directory had already written the output.
        audit: Recall of planted items and precision, where they were measured; None otherwise.
    """

    def __init__(
        self,
        found: Contamination,
        *,
        settings: dict[str, Any],
        engine: Engine,
        run: RunRecord,
        published: bool = False,
        select: Callable[[RowMask], Any] | None = None,
        audit: dict[str, Any] | None = None,
    ) -> None:
        """Create a result; :func:`minwise.api.decontaminate` does so.

        Args:
            found: The hits.
            settings: The settings that decide the result.
            engine: The engine of the search, which copies kept rows.
            run: When and where the search ran.
            published: Whether the output is already written.
            select: Selects rows of the input in its own type; None for files and Arrow data.
            audit: Recall of planted items, and precision.
        """
        self._found, self._settings, self._engine, self._run = found, settings, engine, run
        self.published, self._select, self.audit = published, select, audit

    def own(self, resources: ExitStack) -> None:
        """Close ``resources``, such as temporary files, when the result is garbage collected."""
        finalize(self, resources.close)

    @cached_property
    def keep(self) -> NDArray[np.bool_]:
        """A flag per row of the input: False for removed and for unreadable rows."""
        keep: NDArray[np.bool_] = self._found.documents.states != FAULTY
        action = self._found.rule.action
        keep[self._found.best.documents if action == "remove" else self._found.cuts.emptied] = False
        return keep

    @property
    def kept(self) -> Any:  # noqa: ANN401 - the type of the input
        """The kept rows of an input in memory: in its type, or an Arrow table if rows are cut or marked.

        Raises:
            MinwiseError: If the input is in files; write an output and read its directory ``kept``.
        """
        source = self._found.documents.corpus.sources[-1]
        if not isinstance(source, TableSource):
            raise MinwiseError("kept must be read from the output for an input in files; give an output")
        edits = self._edits
        if edits or self._select is None:
            return source.kept_table(self.keep, edits.get(0))
        return self._select(self.keep)

    @cached_property
    def _edits(self) -> dict[int, RowEdits]:
        """The edits of the kept rows, by number of the source."""
        documents, action = self._found.documents, self._found.rule.action
        if action == "remove":
            return {}
        return {number: self._edits_of(documents.input_slice(number)) for number in range(len(documents.rows))}

    def _edits_of(self, rows: slice) -> RowEdits:
        cuts, best, text = self._found.cuts, self._found.best, self._found.documents.corpus.columns.text
        own = slice(*np.searchsorted(cuts.documents, [rows.start, rows.stop]).tolist())
        is_mark = self._found.rule.action == "mark"
        marked = slice(*np.searchsorted(best.documents, [rows.start, rows.stop]).tolist()) if is_mark else slice(0)
        return ContaminationEdits(
            text=text,
            added=_marks(self._found.items.ids.type) if is_mark else pa.schema([]),
            cut_rows=cuts.documents[own].astype(np.int64) - rows.start,
            cut_starts=cuts.starts[own].astype(np.int64),
            cut_ends=cuts.ends[own].astype(np.int64),
            marked=best.documents[marked].astype(np.int64) - rows.start,
            eval_ids=self._found.items.ids.take(from_numpy(best.items[marked].astype(np.int64))),
            shares=self._found.shares(best)[marked],
        )

    @cached_property
    def hits(self) -> pa.Table:
        """Every item in a row, by row and item, with the spans on both sides in code points."""
        return pa.concat_tables([self._hit_schema.empty_table(), *self._hit_tables(self._found.hits())])

    @cached_property
    def removed(self) -> pa.Table:
        """Every removed row with its hit of the largest share."""
        return pa.concat_tables([self._hit_schema.empty_table(), *self._hit_tables(self._removed_hits())])

    @cached_property
    def uncheckable(self) -> pa.Table:
        """Every item that cannot be found, with the reason."""
        listed = list(self._found.uncheckable())
        items = np.array([item for item, _ in listed], dtype=np.int64)
        reasons = pa.array([reason for _, reason in listed], pa.large_string())
        tokens = from_numpy(self._found.tokens[items].astype(np.int64))
        return pa.table({**self._item_columns(items), "tokens": tokens, "reason": reasons})

    def _removed_hits(self) -> Iterator[HitRows]:
        best = self._found.best
        yield best.where(~self.keep[best.documents])

    @property
    def _hit_schema(self) -> pa.Schema:
        text, number, share = pa.large_string(), pa.int64(), pa.float64()
        own = {"id": self._found.documents.id_type, "source": text, "row": number}
        item = {"eval_id": self._found.items.ids.type, "eval_source": text, "eval_row": number, "eval_column": text}
        measured = {"ngrams": number, "share": share, "score": share, "spans": pa.list_(SPAN)}
        return pa.schema({**own, **item, **measured})

    def _hit_tables(self, blocks: Iterator[HitRows]) -> Iterator[pa.Table]:
        for block in blocks:
            for start in range(0, len(block.documents), TABLE_ROWS):
                flags = np.zeros(len(block.documents), dtype=bool)
                flags[start : start + TABLE_ROWS] = True
                yield self._hit_table(block.where(flags))

    def _hit_table(self, hits: HitRows) -> pa.Table:
        found = self._found
        names, rows = found.documents.locate(hits.documents)
        spans = [from_numpy(column.astype(np.int64)) for column in np.ascontiguousarray(hits.spans.T)]
        columns = {
            "id": found.documents.ids(hits.documents),
            "source": names,
            "row": from_numpy(rows),
            **self._item_columns(hits.items.astype(np.int64)),
            "ngrams": from_numpy(hits.matched.astype(np.int64)),
            "share": from_numpy(found.shares(hits)),
            "score": from_numpy(found.scores(hits)),
            "spans": pa.ListArray.from_arrays(
                from_numpy(_offsets(hits)), pa.StructArray.from_arrays(spans, fields=list(SPAN))
            ),
        }
        return pa.table(columns, schema=self._hit_schema)

    def _item_columns(self, items: NDArray[np.int64]) -> dict[str, Any]:
        all_items, taken = self._found.items, from_numpy(items)
        return {
            "eval_id": all_items.ids.take(taken),
            "eval_source": all_items.sources.take(taken),
            "eval_row": from_numpy(all_items.rows[items]),
            "eval_column": all_items.columns.take(taken),
        }

    def _document_tables(self) -> Iterator[pa.Table]:
        """Yield every readable row, whether it is kept, and whether it is contaminated."""
        documents = self._found.documents
        contaminated = np.zeros(len(documents), dtype=bool)
        contaminated[self._found.best.documents] = True
        readable = np.flatnonzero(documents.states != FAULTY)
        for start in range(0, max(1, len(readable)), TABLE_ROWS):
            numbers = readable[start : start + TABLE_ROWS]
            names, rows = documents.locate(numbers)
            flags = {"kept": from_bools(self.keep[numbers]), "contaminated": from_bools(contaminated[numbers])}
            yield pa.table({"id": documents.ids(numbers), "source": names, "row": from_numpy(rows), **flags})

    def _cut_tables(self) -> Iterator[pa.Table]:
        """Yield every cut of a row."""
        documents, cuts = self._found.documents, self._found.cuts
        for start in range(0, max(1, len(cuts.documents)), TABLE_ROWS):
            rows = slice(start, start + TABLE_ROWS)
            names, numbers = documents.locate(cuts.documents[rows])
            ends = {name: from_numpy(getattr(cuts, f"{name}s")[rows].astype(np.int64)) for name in ("start", "end")}
            ids = documents.ids(cuts.documents[rows])
            yield pa.table({"id": ids, "source": names, "row": from_numpy(numbers), **ends})

    @cached_property
    def report(self) -> dict[str, Any]:
        """Counts, items, settings and sources; the same for the same rows, items and settings."""
        found, documents = self._found, self._found.documents
        counts, kept = documents.counts, int(np.count_nonzero(self.keep))
        removed = int(np.count_nonzero(documents.states != FAULTY)) - kept
        rows = {**counts, "kept": kept, "removed": removed, "contaminated": len(found.best.documents)}
        rows |= {"cut": rows["contaminated"] - removed} if found.rule.action == "cut" else {}
        audit = {} if self.audit is None else {"audit": self.audit}
        return {
            "minwise": _kernel.__version__,
            "kind": "decontamination",
            "settings": self._settings,
            "on_error": documents.corpus.on_error,
            "counts": rows,
            "items": self._item_counts(),
            "most_found": self._most_found(),
            **audit,
            "sources": source_counts(documents, self.keep),
            "unreadable": documents.unreadable(),
            "warnings": [],
            **reading_notes(documents),
        }

    @cached_property
    def _rows_by_item(self) -> NDArray[np.int64]:
        """Number of contaminated rows by item."""
        counts = np.zeros(len(self._found.items), dtype=np.int64)
        for block in self._found.hits():
            counts += np.bincount(block.items, minlength=len(counts))
        return counts

    def _item_counts(self) -> dict[str, int]:
        found = self._found
        uncheckable = int(np.count_nonzero(found.rare == 0))
        return {
            "items": len(found.items),
            "checkable": len(found.items) - uncheckable,
            "uncheckable": uncheckable,
            "found": int(np.count_nonzero(self._rows_by_item)),
            "hits": int(self._rows_by_item.sum()),
            "ngrams": found.grams,
            "common_ngrams": found.common,
            "distinct_rows": found.distinct,
            "table_bytes": found.table_bytes,
        }

    def _most_found(self) -> list[dict[str, Any]]:
        rows = self._rows_by_item
        order = np.argsort(-rows, kind="stable")[:NAMED_ITEMS]
        order = order[rows[order] > 0]
        listed: list[dict[str, Any]] = pa.table(self._item_columns(order)).to_pylist()
        return [{**item, "rows": count} for item, count in zip(listed, rows[order].tolist(), strict=True)]

    def __repr__(self) -> str:
        counts, items = self.report["counts"], self.report["items"]
        rows = f"{counts['contaminated']:,} of {plural(counts['documents'], 'row')} contaminated"
        return f"{rows} by {items['found']:,} of {plural(items['checkable'], 'item')} that can be checked"

    def write(self, output: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write kept rows, tables and reports to a directory that appears complete or not at all.

        Args:
            output: A new or empty directory, or the URL of one.
            overwrite: Whether a directory that is not empty may be replaced.

        Raises:
            ConfigError: If the output is not empty, or contains an input.
            MinwiseError: If the input changed since the search.
        """
        folder, corpus = output_of(output), self._found.documents.corpus
        check_output(folder, corpus.sources, overwrite=overwrite)
        run, report = self._run.resume(), self.report
        with publish(folder, self._found.work, overwrite=overwrite) as staging:
            with corpus.unchanged():
                written = self._engine.copy_kept(
                    self._found.documents, self._found.limits, self.keep, staging, run.watch, self._edits
                )
            if written != report["counts"]["kept"]:
                expected = report["counts"]["kept"]
                raise MinwiseError(f"{expected} rows were to be kept, {written} were written: did the input change?")
            self._write_tables(staging.folder)
            write_json(staging.folder / "report.json", report)
            with run.watch.timed("report"):
                (staging.folder / "report.html").write_text(self._page(run), encoding="utf-8")
            write_json(staging.folder / "run.json", run.to_dict(self._found))
            corpus.refuse_changes()

    def write_kept(self, output: BinaryIO) -> None:
        """Write only the kept rows to an open binary file, as :meth:`DedupResult.write_kept` does.

        Raises:
            MinwiseError: If the input changed since the search.
        """
        documents, corpus = self._found.documents, self._found.documents.corpus
        corpus.refuse_changes()
        with self._run.watch.stage("write", None, "documents"), corpus.unchanged():
            write_kept_rows(corpus.sources, self.keep, documents.rows, output, self._edits)

    def _page(self, run: RunRecord) -> str:
        """Return the page with the first hits side by side."""
        from minwise.report.contamination_page import contamination_page, marked_text  # here, because few calls write

        found, shown = self._found, self._first_hits()
        rows, texts = self._hit_table(shown).to_pylist(), found.items.texts
        items = [
            marked_text(texts[item].as_py(), item_spans(row))
            for item, row in zip(shown.items.tolist(), rows, strict=True)
        ]
        sides = zip(self._marked_rows(shown, rows), items, strict=True)
        hits = [shown_hit(row, both) for row, both in zip(rows, sides, strict=True)]
        return contamination_page(self.report, run.to_dict(found), hits)

    def _marked_rows(self, shown: HitRows, hits: list[dict[str, Any]]) -> Iterator[str]:
        """Yield the row of each hit as markup: of the cache, or of its source, of which only its batch is read."""
        from minwise.report.contamination_page import marked_text

        corpus = self._found.documents.corpus
        spans = dict(zip(shown.documents.tolist(), map(row_spans, hits), strict=True))
        cached = {document: self._found.text_cache.get(document) for document in spans}
        rows = {self._place(document): document for document, text in cached.items() if text is None}
        read = read_rows(corpus.sources, corpus.columns, [*rows], lambda row, text: marked_text(text, spans[rows[row]]))
        markup = {rows[row]: side for row, side in read}
        for document, text in cached.items():
            yield markup[document] if document in markup else marked_text(text, spans[document])

    def _place(self, document: int) -> SourceRow:
        """Return the number of the source of a document, and its row in it."""
        starts = self._found.documents.starts
        source = int(np.searchsorted(starts, document, side="right")) - 1
        return source, document - int(starts[source])

    def _first_hits(self) -> HitRows:
        """Return the best hit of some contaminated rows: if possible of the cache, and those of the largest share."""
        best = self._found.best
        flags = np.zeros(len(best.documents), dtype=bool)
        is_cached = np.isin(best.documents, self._found.text_cache.documents)
        flags[np.lexsort((-self._found.shares(best), ~is_cached))[:SHOWN_HITS]] = True
        return best.where(flags)

    def _write_tables(self, folder: Path) -> None:
        write_tables(folder / "hits.parquet", self._hit_tables(self._found.hits()), self._hit_schema)
        write_tables(folder / "removed.parquet", self._hit_tables(self._removed_hits()), self._hit_schema)
        write_tables(folder / "uncheckable.parquet", [self.uncheckable], self.uncheckable.schema)
        if self._found.rule.action == "cut":
            cuts = self._cut_tables()
            first = next(cuts)
            write_tables(folder / "cuts.parquet", chain([first], cuts), first.schema)
        documents = self._document_tables()
        first = next(documents)
        write_tables(folder / "documents.parquet", chain([first], documents), first.schema)
        write_quarantine(folder / "quarantine.jsonl", self._found.documents)


def _offsets(hits: HitRows) -> NDArray[np.int32]:
    """Return the index of the first span of each hit, and the number of all spans."""
    return np.append(0, np.cumsum(hits.counts)).astype(np.int32)
