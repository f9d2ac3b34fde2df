"""Cut result: kept documents without their repeated passages, the cuts, and removed documents.

:func:`minwise.api.dedup` returns it with ``passages``. As with :class:`~minwise.results.DedupResult`, tables are
computed on first access, and :meth:`CutResult.write` needs memory for neither the tables nor the corpus.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO
from weakref import finalize

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.arrays import from_bools, from_numpy, from_strings, repeat_string
from minwise._internal.display import fact_list, notebook, text_facts, value_table
from minwise._internal.formatting import plural
from minwise._internal.html import escape
from minwise.errors import MinwiseError
from minwise.inputs.memory_sources import TableSource
from minwise.inputs.row_edits import RowEdits
from minwise.inputs.table_writer import TABLE_ROWS, write_tables
from minwise.results.cut_report import cut_report
from minwise.results.dedup import readable_documents
from minwise.results.display import ResultTable, one_table, plain_table
from minwise.results.kept_stream import write_kept_rows
from minwise.results.output import check_output, output_of, publish
from minwise.results.pairs import identity_columns, identity_schema, table_slices
from minwise.results.report_data import RunRecord
from minwise.results.report_writer import write_cut_files, write_json, write_quarantine
from minwise.search.cuts import PassageCuts
from minwise.search.engine import Engine
from minwise.search.passages import DOCUMENT_BITS

__all__ = ["CutResult", "cut_tables", "document_tables", "removed_tables"]

# Why a document is removed.
NOTHING_LEFT, TOO_LITTLE_LEFT = "nothing is left", "fewer than min_left tokens are left"
# Cuts that a notebook shows.
SHOWN_CUTS = 5


class CutResult:
    """Result of ``dedup`` with ``passages``: kept documents without repeated passages, cuts, removed documents, report.

    Attributes:
        published: Whether an earlier run on the same work directory had already written the output.
    """

    def __init__(self, found: PassageCuts, *, engine: Engine, run: RunRecord, published: bool = False) -> None:
        """Create a result; :func:`minwise.api.dedup` does so.

        Args:
            found: The cuts.
            engine: The engine of the search, which copies kept rows.
            run: When and where the search ran.
            published: Whether the output is already written.
        """
        self._found, self._engine, self._run, self.published = found, engine, run, published

    def own(self, resources: ExitStack) -> None:
        """Close ``resources``, such as temporary files, when the result is garbage collected."""
        finalize(self, resources.close)

    @property
    def keep(self) -> NDArray[np.bool_]:
        """A flag per row of the input, in document order: False for removed and for unreadable rows."""
        return self._found.keep

    @cached_property
    def cuts(self) -> ResultTable:
        """Every cut with its text and the first occurrence of the passage that it begins in."""
        return plain_table(cut_tables(self._found), cut_schema(self._found), "cut")

    @cached_property
    def removed(self) -> ResultTable:
        """Every removed document with its reason, its tokens, and what the cuts leave of it."""
        return plain_table(removed_tables(self._found), removed_schema(self._found), "removed document")

    @cached_property
    def kept(self) -> pa.Table:
        """The kept documents without what is cut.

        Data in memory gives an Arrow table of all its columns, files a table of id, source, row and text. The rows are
        in memory; :meth:`write` needs no such memory.

        >>> import minwise as mw
        >>> result = mw.dedup(["Terms apply. One more.", "Terms apply. Two."], passages=True, min_tokens=2)
        >>> result.kept.column("text").to_pylist()
        ['Terms apply. One more.', 'Two.']
        """
        corpus = self._found.documents.corpus
        last = corpus.sources[-1] if len(corpus.sources) > corpus.against else None
        if isinstance(last, TableSource):
            return last.kept_table(self.keep, self._found.edits_of(len(corpus.sources) - 1))
        schema = pa.schema({**identity_schema(self._found), "text": pa.large_string()})
        with corpus.unchanged():
            return one_table(self._kept_tables(), schema)

    def _kept_tables(self) -> Iterator[pa.Table]:
        documents, corpus = self._found.documents, self._found.documents.corpus
        for number in range(corpus.against, len(corpus.sources)):
            start, keep = int(documents.starts[number]), self.keep[documents.input_slice(number)]
            edits = self._found.edits_of(number)
            for batch in corpus.sources[number].batches(corpus.columns_of(number), wanted=keep):
                rows = np.flatnonzero(keep[batch.first : batch.first + len(batch)])
                texts = batch.values.take(from_numpy(rows)).cast(pa.large_string()).to_pylist()
                numbers = batch.first + rows
                columns = identity_columns(self._found, start + numbers)
                yield pa.table({**columns, "text": from_strings(_without_cuts(texts, numbers, edits))})

    @cached_property
    def report(self) -> dict[str, Any]:
        """Counts, the passages that are repeated most, cuts and warnings; the same for the same documents."""
        return cut_report(self._found)

    def write(self, output: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write kept rows, tables and reports to a directory that appears complete or not at all.

        Args:
            output: A new or empty directory, or the URL of one.
            overwrite: Whether a directory that is not empty may be replaced.

        Raises:
            ConfigError: If the output is not empty, or contains an input.
            MinwiseError: If the input changed since the search.
        """
        found, folder = self._found, output_of(output)
        corpus = found.documents.corpus
        check_output(folder, corpus.sources, overwrite=overwrite)
        run = self._run.resume()
        with run.watch.timed("report"):
            report = self.report
        with publish(folder, found.work, overwrite=overwrite) as staging:
            with corpus.unchanged():
                self._write_tables(staging.folder)
                copied = found.documents, found.limits, self.keep, staging, run.watch, found.edits()
                written = self._engine.copy_kept(*copied)
            _check_written(written, report["counts"]["kept"])
            write_json(staging.folder / "report.json", report)
            write_cut_files(staging.folder, report, found, run)
            corpus.refuse_changes()

    def _write_tables(self, folder: Path) -> None:
        for name, tables, schema in (
            ("cuts.parquet", cut_tables, cut_schema),
            ("removed.parquet", removed_tables, removed_schema),
            ("documents.parquet", document_tables, document_schema),
        ):
            write_tables(folder / name, tables(self._found), schema(self._found))
        write_quarantine(folder / "quarantine.jsonl", self._found.documents)

    def write_kept(self, output: BinaryIO) -> None:
        """Write only the kept rows to an open binary file, as :meth:`DedupResult.write_kept` does.

        Raises:
            MinwiseError: If the input changed since the search.
        """
        documents, corpus = self._found.documents, self._found.documents.corpus
        sources, rows = corpus.sources[corpus.against :], documents.rows[corpus.against :]
        edits = {number: self._found.edits_of(corpus.against + number) for number in range(len(sources))}
        corpus.refuse_changes()
        with self._run.watch.stage("write", None, "documents"), corpus.unchanged():
            write_kept_rows(sources, self.keep, rows, output, edits)

    def __repr__(self) -> str:
        facts = [*self._facts(), ("see", ".kept, .cuts, .removed, .report; .write('DIR') writes them")]
        return text_facts(f"CutResult: {self._head()}", facts)

    def _repr_html_(self) -> str:
        """Return counts and the passages that are repeated most, for a notebook."""
        facts = fact_list((name, escape(value)) for name, value in self._facts())
        rows = [[row["repeats"], row["tokens"], row["text"]] for row in self.report["most_repeated"][:SHOWN_CUTS]]
        table = value_table(["repeats", "tokens", "text"], rows, texts=1) if rows else ""
        return notebook(f'<p class="head">{escape(self._head())}</p>', facts, table)

    def _head(self) -> str:
        counts = self.report["counts"]
        return f"{counts['kept']:,} of {plural(counts['read'], 'document')} kept"

    def _facts(self) -> Iterator[tuple[str, str]]:
        counts, tokens = self.report["counts"], self.report["tokens"]
        yield "cut", f"{plural(counts['cuts'], 'passage')} out of {plural(counts['cut'], 'document')}"
        yield "tokens", f"{tokens['cut']:,} of {tokens['read']:,} cut"
        yield "removed", plural(counts["removed"], "document")
        if counts["quarantined"]:
            yield "quarantined", f"{plural(counts['quarantined'], 'row')} could not be read"


def _check_written(written: int, expected: int) -> None:
    if written != expected:
        raise MinwiseError(f"{expected} rows were to be kept, {written} were written: did the input change?")


def _without_cuts(texts: list[str], rows: NDArray[np.int64], edits: RowEdits) -> list[str]:
    """Return the texts of rows without what is cut."""
    edited = edits.of_rows(rows)
    texts = list(texts)
    cuts = zip(np.searchsorted(rows, edited.cut_rows), edited.cut_starts, edited.cut_ends, strict=True)
    for index, start, end in reversed(list(cuts)):
        texts[index] = texts[index][:start] + texts[index][end:]
    return texts


def cut_schema(found: PassageCuts) -> pa.Schema:
    """Return the columns of the table of cuts."""
    identity, number = identity_schema(found), pa.int64()
    own = {**identity, "start": number, "end": number, "tokens": number, "text": pa.large_string()}
    other = {f"other_{name}": kind for name, kind in identity.items()}
    return pa.schema({**own, **other, "other_start": number, "other_end": number})


def cut_tables(found: PassageCuts) -> Iterator[pa.Table]:
    """Yield every cut with its text and its first occurrence, by document and start."""
    firsts = found.first_occurrences()
    for block, texts in found.blocks():
        for start in range(0, len(texts), TABLE_ROWS):
            rows = slice(start, start + TABLE_ROWS)
            cuts = block.take(rows)
            passages = firsts.of(cuts)
            other = identity_columns(found, (passages.others >> DOCUMENT_BITS).astype(np.int64))
            numbers = (cuts.starts, cuts.ends, cuts.tokens, passages.spans[:, 2], passages.spans[:, 3])
            begin, end, tokens, other_begin, other_end = (from_numpy(column.astype(np.int64)) for column in numbers)
            own = [*identity_columns(found, cuts.documents).values(), begin, end, tokens, texts[rows]]
            yield pa.table([*own, *other.values(), other_begin, other_end], schema=cut_schema(found))


def removed_schema(found: PassageCuts) -> pa.Schema:
    """Return the columns of the table of removed documents."""
    counts = {"reason": pa.large_string(), "tokens": pa.int64(), "left": pa.int64(), "text": pa.large_string()}
    return pa.schema({**identity_schema(found), **counts})


def removed_tables(found: PassageCuts) -> Iterator[pa.Table]:
    """Yield every removed document with the reason and what the cuts leave of its text."""
    for numbers, texts in found.rests():
        left = found.tokens[numbers].astype(np.int64) - found.cut_tokens[numbers]
        reasons = pa.compute.if_else(from_bools(left == 0), *_reasons(len(left)))
        tokens = from_numpy(found.tokens[numbers].astype(np.int64))
        columns = [*identity_columns(found, numbers).values(), reasons, tokens, from_numpy(left), texts]
        yield pa.table(columns, schema=removed_schema(found))


def _reasons(count: int) -> tuple[pa.Array, pa.Array]:
    return repeat_string(NOTHING_LEFT, count), repeat_string(TOO_LITTLE_LEFT, count)


def document_schema(found: PassageCuts) -> pa.Schema:
    """Return the columns of the table of documents."""
    counts = {"tokens": pa.int64(), "cut_tokens": pa.int64(), "kept": pa.bool_()}
    return pa.schema({**identity_schema(found), **counts})


def document_tables(found: PassageCuts) -> Iterator[pa.Table]:
    """Yield every readable document with its tokens, those that are cut, and whether it is kept."""
    for numbers in table_slices(readable_documents(found)):
        counts = (from_numpy(counted[numbers].astype(np.int64)) for counted in (found.tokens, found.cut_tokens))
        kept = from_bools(~found.removed[numbers])
        columns = [*identity_columns(found, numbers).values(), *counts, kept]
        yield pa.table(columns, schema=document_schema(found))
