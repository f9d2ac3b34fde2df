"""Dedup result: kept and removed documents and clusters, as tables in memory and as files of an output directory.

:func:`minwise.api.dedup` returns it. Tables and the report are computed on first access; :meth:`DedupResult.write`
writes tables in bounded pieces and copies kept rows from the sources, so neither needs the corpus in memory.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import takewhile
from os import PathLike
from pathlib import Path
from threading import Event
from typing import Any, BinaryIO
from weakref import finalize

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.arrays import from_numpy
from minwise.checks import check_raised_threshold
from minwise.errors import MinwiseError
from minwise.inputs.memory_sources import SetsSource, TableSource
from minwise.inputs.source import RowMask
from minwise.inputs.table_writer import write_tables
from minwise.results.display import ResultTable, cluster_table, dedup_html, dedup_text, removed_table
from minwise.results.explanation import Explanation, ResultEvidence, explain_document
from minwise.results.kept_stream import write_kept_rows
from minwise.results.output import check_output, output_of, publish
from minwise.results.pairs import identity_columns, identity_schema, similarity_column, table_slices
from minwise.results.removals import STEP, DedupDecision, Removals, check_similarities
from minwise.results.report_data import DedupReport, RunRecord
from minwise.results.report_writer import write_json, write_quarantine, write_run_files
from minwise.results.thresholds import Thresholds, threshold_curve
from minwise.search.bands import FAULTY
from minwise.search.engine import Engine, FinishedSearch, SearchResult
from minwise.settings import WEIGHTED

__all__ = [
    "VALUE",
    "DedupResult",
    "cluster_schema",
    "cluster_tables",
    "readable_documents",
    "removed_schema",
    "removed_tables",
]


# Name of the similarity without weights beside a weighted one.
PLAIN = "similarity"
# Name of the column of clusters for the values that decide what is compared.
VALUE = "value"


class DedupResult:
    """Result of deduplication: kept documents, removed documents with their near-duplicates, clusters and report.

    Attributes:
        threshold: Minimum similarity of near-duplicates.
        published: Whether an earlier run on the same work directory had already written the output.
    """

    def __init__(
        self,
        search: SearchResult,
        *,
        engine: Engine,
        run: RunRecord,
        threshold: float | None = None,
        published: bool = False,
        select: Callable[[RowMask], Any] | None = None,
        owner: "DedupResult | None" = None,
    ) -> None:
        """Create a result; :func:`minwise.api.dedup` does so.

        Args:
            search: The verified pairs.
            engine: The engine of the search, which compares further pairs and copies kept rows.
            run: When and where the search ran.
            threshold: A threshold above that of the search.
            published: Whether the output is already written.
            select: Selects rows of the input in its own type; None for files and Arrow data.
            owner: The result whose temporary files this one uses; it is kept alive.
        """
        self._search, self._engine, self._run, self._owner = search, engine, run, owner
        self._decision = DedupDecision(search, engine.similarities, threshold)
        self.published, self._select = published, select
        self.threshold = self._decision.threshold

    def rethreshold(self, threshold: float) -> "DedupResult":
        """Return the result for a higher threshold; nothing is read again.

        The first call compares the candidates that were not needed before, those of two removed documents. The pairs
        were found with the plan of the lower threshold, so a run with the higher one may miss some of them.

        Raises:
            ConfigError: If the threshold is lower than that of the run, or similarities are unknown.
        """
        check_similarities(self._search.settings)
        lowest = self._search.settings.plan.threshold
        raised = check_raised_threshold(threshold, lowest, "that of the run", "; run again")
        return DedupResult(
            self._complete(),
            engine=self._engine,
            run=self._run,
            threshold=raised,
            select=self._select,
            owner=self,
        )

    @cached_property
    def thresholds(self) -> Thresholds:
        """How many documents each threshold from the one of this result on would remove, with a pair for each step.

        The counts equal those of :meth:`rethreshold`. Each takes one pass over all pairs, of which the first call
        compares those that were not needed before; the examples read at most two documents for each step again.

        >>> import minwise as mw
        >>> mw.dedup(["one two three four", "one two three", "six"], shingle="word:1", threshold=0.6).thresholds
        threshold  removed  share  kept  pairs
              0.6        1  33.3%     2      0
             0.65        1  33.3%     2      0
              0.7        1  33.3%     2      0
             0.75        1  33.3%     2      1
              0.8        0     0%     3      0
             0.85        0     0%     3      0
              0.9        0     0%     3      0
             0.95        0     0%     3      0
                1        0     0%     3      0
        """
        return self.threshold_steps()

    def threshold_steps(self, step: float = STEP) -> Thresholds:
        """Return :attr:`thresholds` in other steps.

        Args:
            step: Difference of two thresholds, at least 0.01. The first is that of this result, the others are
                multiples of the step.

        Raises:
            ConfigError: If similarities are unknown, or the step is out of range.
        """
        check_similarities(self._search.settings)
        return threshold_curve(replace(self._decision, search=self._complete()), step)

    def _complete(self) -> SearchResult:
        """Return the search with all its pairs; the first call compares the candidates that were not needed before."""
        return self._engine.complete(self._search, self._run.watch)

    def explain(self, id: str | int, *, search: bool = False) -> Explanation:  # noqa: A002 - what it is
        """Explain why a document was removed, kept or left out; see :func:`minwise.explain`.

        Args:
            id: The id of the document, or its source and row, such as ``crawl/a.jsonl:17``.
            search: Whether to compare a kept document with all other kept ones, exactly. Reads all inputs once.

        Raises:
            InputError: If no document has the id, or several have it.

        >>> import minwise as mw
        >>> result = mw.dedup(["one two three four five six", "One, two, three, four, five, six.", "seven"])
        >>> result.explain(1)
        document     1 (row 1)
        decision     removed: a near-duplicate of 0, which is kept
        similarity   1.0000, exact; the threshold is 0.8
        cluster      1 document removed for 0
                     1.0000  1
        """
        tables = {"removed": self._removed_tables, "clusters": self._cluster_tables}
        return explain_document(ResultEvidence(self._decision, self.report, tables), id, search=search)

    def own(self, resources: ExitStack) -> None:
        """Close ``resources``, such as temporary files, when the result is garbage collected."""
        finalize(self, resources.close)

    @property
    def keep(self) -> NDArray[np.bool_]:
        """A flag per row of the input, in document order: False for removed and for unreadable rows.

        ``df[result.keep]`` are the kept rows of a DataFrame of pandas, with its index.
        """
        return self._decision.keep

    @cached_property
    def removed(self) -> ResultTable:
        """Every removed document with the kept one it is a near-duplicate of, and their similarity."""
        return removed_table(self._search, pa.concat_tables(self._removed_tables()), self._decision.removals)

    @cached_property
    def clusters(self) -> ResultTable:
        """Every document with its cluster, named after the kept document, and the cluster's size."""
        documents = readable_documents(self._search)
        table = pa.concat_tables(self._cluster_tables())
        return cluster_table(self._search, table, documents, self._decision.removals.kept_of(documents))

    @cached_property
    def kept(self) -> Any:  # noqa: ANN401 - the type of the input
        """The kept documents, in the type of the input.

        A DataFrame or Series of pandas keeps its index, as ``df[result.keep]`` does. A DataFrame of polars, a Hugging
        Face dataset and a NumPy array give the same type; a list or any other iterable gives a list of the objects that
        were given. Arrow data, and anything else that only has an Arrow stream, gives a :class:`pyarrow.Table` with all
        columns. Files give a table of id, source, row and text; sets and records in files have no text. The rows are in
        memory; :meth:`write` needs no such memory.

        >>> import minwise as mw
        >>> mw.dedup(["one two three four five six", "One, two, three, four, five, six.", "seven"]).kept
        ['one two three four five six', 'seven']
        """
        corpus = self._search.documents.corpus
        last = corpus.sources[-1] if len(corpus.sources) > corpus.against else None
        if isinstance(last, (TableSource, SetsSource)):
            return last.kept_table(self.keep) if self._select is None else self._select(self.keep)
        text = {"text": pa.large_string()} if corpus.columns.elements is None else {}
        schema = pa.schema({**identity_schema(self._search), **text})
        with corpus.unchanged():
            return pa.concat_tables([schema.empty_table(), *self._kept_tables()], promote_options="permissive")

    def _kept_tables(self) -> Iterator[pa.Table]:
        documents, corpus = self._search.documents, self._search.documents.corpus
        for number in range(corpus.against, len(corpus.sources)):
            start, keep = documents.starts[number], self.keep[documents.input_slice(number)]
            for batch in corpus.sources[number].batches(replace(corpus.columns, values=()), wanted=keep):
                rows = np.flatnonzero(keep[batch.first : batch.first + len(batch)])
                columns = identity_columns(self._search, start + batch.first + rows)
                if corpus.columns.elements is None:
                    columns["text"] = _as_strings(batch.values.take(from_numpy(rows)))
                yield pa.table(columns)

    def _removed_tables(self) -> Iterator[pa.Table]:
        discounted = self._search.settings.discount == "common"
        plain = self._decision.plain_similarities if discounted else None
        return removed_tables(self._search, self._decision.removals, plain)

    def _cluster_tables(self) -> Iterator[pa.Table]:
        return cluster_tables(self._search, self._decision.removals)

    def largest_clusters(self, count: int = 5) -> list[dict[str, Any]]:
        """Return the clusters with most removed documents: kept_id, removed (how many), and the id of one of them."""
        removals, ids = self._decision.removals, self._search.documents.ids
        clusters = []
        for kept, removed in removals.largest(count):
            example = removals.documents[removals.witness == kept][:1]
            clusters.append(
                {"kept_id": ids(np.array([kept]))[0].as_py(), "removed": removed, "id": ids(example)[0].as_py()}
            )
        return clusters

    def __repr__(self) -> str:
        return dedup_text(self._decision, self._counts)

    def _repr_html_(self) -> str:
        """Return counts, plan, largest clusters and three removed documents beside the kept ones, for a notebook."""
        return dedup_html(self._decision, self._counts)

    @cached_property
    def _counts(self) -> dict[str, int]:
        return DedupReport(self._decision).counts()

    @cached_property
    def report(self) -> dict[str, Any]:
        """Counts, clusters, similarities and warnings; the same for the same documents and settings."""
        return DedupReport(self._decision).to_dict()

    def write(self, output: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write kept rows, tables and reports to a directory that appears complete or not at all.

        Args:
            output: A new or empty directory, or the URL of one. Nothing can be renamed at a URL: a file
                ``_unfinished`` is there until all other files are complete.
            overwrite: Whether a directory that is not empty may be replaced.

        Raises:
            ConfigError: If the output is not empty, or contains an input.
            MinwiseError: If the input changed since the search.
        """
        folder = output_of(output)
        check_output(folder, self._search.documents.corpus.sources, overwrite=overwrite)
        run = self._run.resume()
        with run.watch.timed("group"):
            report = self.report
        noted = self._decision.raised is None
        with publish(folder, self._search.work, overwrite=overwrite, noted=noted) as staging:
            with self._writing_tables(staging.folder), self._search.documents.corpus.unchanged():
                written = self._engine.copy_kept(
                    self._search.documents, self._search.limits, self.keep, staging, run.watch
                )
            if written != report["counts"]["kept"]:
                expected = report["counts"]["kept"]
                raise MinwiseError(f"{expected} rows were to be kept, {written} were written: did the input change?")
            write_json(staging.folder / "report.json", report)
            write_run_files(staging.folder, report, self._search, run)
            self._search.documents.corpus.refuse_changes()

    @contextmanager
    def _writing_tables(self, folder: Path) -> Iterator[None]:
        """Write the tables while the block runs, or after it if only one thread is allowed.

        Tables of a million documents take a fifth as long as their kept rows. If the block raises, the rest of the
        tables is not written.
        """
        stopped = Event()
        if self._search.limits.threads == 1:
            yield
            self._write_tables(folder, stopped)
            return
        with ThreadPoolExecutor(1, thread_name_prefix="minwise-tables") as pool:
            tables = pool.submit(self._write_tables, folder, stopped)
            try:
                yield
            except BaseException:
                stopped.set()
                raise
            tables.result()

    def write_kept(self, output: BinaryIO) -> None:
        """Write only the kept rows to an open binary file, such as ``sys.stdout.buffer``.

        A single input file of JSON, CSV, TSV or baskets keeps its format, without compression. Anything else becomes
        JSON lines: rows of tables are objects of all columns, text files objects of ``id`` and ``text``.

        Raises:
            MinwiseError: If the input changed since the search.
        """
        documents, against = self._search.documents, self._search.documents.corpus.against
        sources, rows = documents.corpus.sources[against:], documents.rows[against:]
        documents.corpus.refuse_changes()
        with self._run.watch.stage("write", None, "documents"), documents.corpus.unchanged():
            write_kept_rows(sources, self.keep, rows, output)

    def _write_tables(self, folder: Path, stopped: Event) -> None:
        def write(name: str, tables: Iterator[pa.Table], schema: pa.Schema) -> None:
            write_tables(folder / name, takewhile(lambda _: not stopped.is_set(), tables), schema)

        write("removed.parquet", self._removed_tables(), removed_schema(self._search))
        write("clusters.parquet", self._cluster_tables(), cluster_schema(self._search))
        write_quarantine(folder / "quarantine.jsonl", self._search.documents)


def removed_tables(
    search: SearchResult, removals: Removals, plain: Callable[[NDArray[np.int64]], NDArray[np.float64]] | None = None
) -> Iterator[pa.Table]:
    """Yield every removed document with the kept one it is a near-duplicate of, and their similarity.

    Args:
        search: The result of a search.
        removals: The removed documents.
        plain: Returns the similarities without weights of some of them; needed for weighted similarities.
    """
    for rows in table_slices(np.arange(len(removals))):
        removed = identity_columns(search, removals.documents[rows])
        kept = identity_columns(search, removals.witness[rows])
        columns = {} if plain is None else {PLAIN: similarity_column(plain(rows))}
        similarity = similarity_column(removals.similarity[rows])
        yield pa.table({**removed, **_kept_names(kept), **columns, search.settings.similarity_name: similarity})


def cluster_tables(search: SearchResult, removals: Removals) -> Iterator[pa.Table]:
    """Yield every document with its cluster, named after the kept document, and the cluster's size."""
    for numbers in table_slices(readable_documents(search)):
        kept = removals.kept_of(numbers)
        size = from_numpy(removals.sizes_of(kept))
        columns = {**identity_columns(search, numbers), "cluster": search.documents.ids(kept), "size": size}
        yield pa.table(columns | _value_column(search, numbers))


def _value_column(search: SearchResult, documents: NDArray[np.int64]) -> dict[str, pa.Array]:
    """Return the column of the values that decide what is compared; nothing if none do."""
    if search.labels is None:
        return {}
    codes, labels = search.labels
    return {VALUE: labels.take(from_numpy(codes[documents]))}


def readable_documents(search: FinishedSearch) -> NDArray[np.int64]:
    """Return the readable documents of the input."""
    readable = np.flatnonzero(search.documents.states != FAULTY)
    return readable[readable >= search.documents.protected]


def _as_strings(texts: pa.Array) -> pa.Array:
    """Return texts as strings, or as bytes if they are not UTF-8, which byte shingles accept."""
    try:
        return texts.cast(pa.large_string())
    except pa.ArrowInvalid:
        return texts.cast(pa.large_binary())


def _kept_names(columns: dict[str, Any]) -> dict[str, Any]:
    """Return the columns under their names for the kept document."""
    return {f"kept_{name}": column for name, column in columns.items()}


def removed_schema(search: SearchResult) -> pa.Schema:
    """Return the columns of the table of removed documents."""
    identity = identity_schema(search)
    plain = {PLAIN: pa.float64()} if search.settings.similarity_name == WEIGHTED else {}
    return pa.schema({**identity, **_kept_names(identity), **plain, search.settings.similarity_name: pa.float64()})


def cluster_schema(search: SearchResult) -> pa.Schema:
    """Return the columns of the table of clusters."""
    value = {} if search.labels is None else {VALUE: pa.large_string()}
    return pa.schema({**identity_schema(search), "cluster": search.documents.id_type, "size": pa.int64(), **value})
