"""Dedup: verified pairs in; who is kept, who is removed and for whom out, as tables and as files."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any
from weakref import finalize

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.arrays import from_numpy
from minwise.checks import check_raised
from minwise.errors import ConfigError, MinwiseError
from minwise.inputs.sets import SetsSource
from minwise.inputs.table_writer import write_tables
from minwise.inputs.tables import TableSource
from minwise.results.columns import identity, identity_schema, similarity_column, slices
from minwise.results.output import check_output, output_of, publish
from minwise.results.removals import Outcome
from minwise.results.report_data import DedupReport, RunFacts
from minwise.results.report_writer import write_json, write_run
from minwise.search.bands import FAULTY
from minwise.search.engine import Found

__all__ = ["DedupResult"]


class DedupResult:
    """What deduplication found: who is kept, who is removed, and why.

    Attributes:
        threshold: The similarity from which on two documents are near-duplicates.
        report: What happened, in numbers; ready for JSON.
        published: Whether an earlier run on the same work directory had written the output already.
    """

    def __init__(
        self,
        found: Found,
        *,
        threshold: float | None = None,
        run: RunFacts,
        published: bool = False,
        owner: "DedupResult | None" = None,
    ) -> None:
        self._found = found
        self._outcome = Outcome(found, threshold)
        self._run = run
        self._owner = owner
        self.published = published
        self.threshold = self._outcome.threshold

    def rethreshold(self, threshold: float) -> "DedupResult":
        """The result of a higher threshold, from the pairs that are known already; nothing is read again.

        The pairs were found with the plan of the lower threshold, so a run with the higher one may miss some of them.
        """
        if self._found.settings.verify == "none":
            raise ConfigError("verify must be exact or signature to know similarities, got none; run again")
        lowest = self._found.settings.plan.threshold
        raised = check_raised(threshold, lowest, "that of the run", "; run again")
        return DedupResult(self._found, threshold=raised, run=self._run, owner=self)

    def owns(self, work: ExitStack) -> None:
        """Takes over temporary files: they go when the result does."""
        finalize(self, work.close)

    @property
    def keep(self) -> NDArray[np.bool_]:
        """A flag per row of the input, in document order: False for what is removed or could not be read."""
        return self._outcome.keep

    @cached_property
    def removed(self) -> pa.Table:
        """Every removed document with the kept one it is a near-duplicate of, and their similarity."""
        return pa.concat_tables(self._removed_tables())

    @cached_property
    def clusters(self) -> pa.Table:
        """Every document with its cluster, named after the kept document, and the cluster's size."""
        return pa.concat_tables(self._cluster_tables())

    @cached_property
    def kept(self) -> pa.Table:
        """The kept documents: the rows of a table with all its columns; id, source, row and text of those in files.

        Sets and records in files have no text. This holds them in memory; :meth:`write` does not.
        """
        corpus = self._found.documents.corpus
        last = corpus.sources[-1] if len(corpus.sources) > corpus.against else None
        if isinstance(last, (TableSource, SetsSource)):
            return last.kept_table(self.keep)
        text = {"text": pa.large_string()} if corpus.columns.elements is None else {}
        schema = pa.schema({**identity_schema(self._found), **text})
        return pa.concat_tables([schema.empty_table(), *self._kept_tables()], promote_options="permissive")

    def _kept_tables(self) -> Iterator[pa.Table]:
        documents, corpus = self._found.documents, self._found.documents.corpus
        for number in range(corpus.against, len(corpus.sources)):
            start, keep = documents.starts[number], self.keep[documents.within_input(number)]
            for batch in corpus.sources[number].batches(replace(corpus.columns, rank=None), wanted=keep):
                rows = np.flatnonzero(keep[batch.first : batch.first + len(batch)])
                columns = identity(self._found, start + batch.first + rows)
                if corpus.columns.elements is None:
                    columns["text"] = _readable(batch.texts.take(from_numpy(rows)))
                yield pa.table(columns)

    def _removed_tables(self) -> Iterator[pa.Table]:
        removals, found = self._outcome.removals, self._found
        for places in slices(np.arange(len(removals))):
            removed, kept = identity(found, removals.documents[places]), identity(found, removals.witness[places])
            similarity = similarity_column(removals.similarity[places])
            yield pa.table({**removed, **_of_kept(kept), found.settings.measured: similarity})

    def _cluster_tables(self) -> Iterator[pa.Table]:
        documents = self._found.documents
        readable = np.flatnonzero(documents.states != FAULTY)
        for numbers in slices(readable[readable >= documents.protected]):
            heads = self._outcome.removals.heads_of(numbers)
            size = from_numpy(self._outcome.removals.sizes_of(heads))
            yield pa.table({**identity(self._found, numbers), "cluster": documents.ids(heads), "size": size})

    def largest_clusters(self, count: int = 5) -> list[dict[str, Any]]:
        """The kept documents for which most are removed: kept_id, removed (how many), and the id of one of them."""
        removals, ids = self._outcome.removals, self._found.documents.ids
        found = []
        for head, removed in removals.largest(count):
            example = removals.documents[removals.witness == head][:1]
            found.append(
                {"kept_id": ids(np.array([head]))[0].as_py(), "removed": removed, "id": ids(example)[0].as_py()}
            )
        return found

    @cached_property
    def report(self) -> dict[str, Any]:
        """What happened, in numbers. The same for the same documents and settings."""
        return DedupReport(self._outcome).to_dict()

    def write(self, output: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Writes kept rows, tables and reports to a directory that appears whole or not at all.

        Args:
            output: A new or empty directory, or the URL of one. Nothing can be renamed at a URL: a file
                ``_unfinished`` stands there as long as the rest is not whole.
            overwrite: Whether a directory that is not empty may be replaced.
        """
        folder = output_of(output)
        corpus = self._found.documents.corpus
        check_output(folder, corpus.sources, overwrite=overwrite)
        run = self._run.go_on()
        with run.watch.unseen("group"):
            report = self.report
        with publish(folder, self._found.work) as staging:
            written = self._found.engine.copy_kept(self._found, self.keep, staging, run.watch)
            if written != report["counts"]["kept"]:
                expected = report["counts"]["kept"]
                raise MinwiseError(f"{expected} rows were to be kept, {written} were written: did the input change?")
            write_tables(staging.folder / "removed.parquet", self._removed_tables(), _removed_schema(self._found))
            write_tables(staging.folder / "clusters.parquet", self._cluster_tables(), _cluster_schema(self._found))
            _write_quarantine(staging.folder / "quarantine.jsonl", self._found)
            write_json(staging.folder / "report.json", report)
            write_run(staging.folder, report, self._found, run)


def _readable(texts: pa.Array) -> pa.Array:
    """Texts as strings, as bytes if they are not that: byte shingles take anything."""
    try:
        return texts.cast(pa.large_string())
    except pa.ArrowInvalid:
        return texts.cast(pa.large_binary())


def _of_kept(columns: dict[str, Any]) -> dict[str, Any]:
    """Columns under the names that they have for the kept document."""
    return {f"kept_{name}": column for name, column in columns.items()}


def _removed_schema(found: Found) -> pa.Schema:
    one = identity_schema(found)
    return pa.schema({**one, **_of_kept(one), found.settings.measured: pa.float64()})


def _cluster_schema(found: Found) -> pa.Schema:
    return pa.schema({**identity_schema(found), "cluster": found.documents.id_type, "size": pa.int64()})


def _write_quarantine(path: Path, found: Found) -> None:
    if found.documents.corpus.on_error != "quarantine":
        return
    faults = found.documents.faults()
    first = next(faults, None)
    if first is not None:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(fault, ensure_ascii=False) + "\n" for fault in chain([first], faults))
