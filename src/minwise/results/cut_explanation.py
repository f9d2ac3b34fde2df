"""Explanation of one document of a run that cut passages: its cuts, and why it was removed.

Only the tables of the run are read; they have the texts of all cuts.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from minwise._internal.display import TERMINAL_WIDTH, one_line
from minwise._internal.formatting import plural
from minwise.results.explanation import Explanation, find_document
from minwise.results.finished_run import FinishedRun
from minwise.results.thresholds import DocumentRef

__all__ = ["CutExplanation", "ExplainedCut", "StoredListing", "explain_cuts", "rows_of"]

LABEL_WIDTH = 13
# Cuts that a summary names; ``cuts`` has all.
NAMED_CUTS = 20


@dataclass(frozen=True, slots=True)
class ExplainedCut:
    """Cut of a document.

    Attributes:
        start: First code point, in the text of the input.
        end: One past the last.
        tokens: Number of tokens.
        text: What was cut.
        other: The document with the first occurrence of the passage that the cut begins in.
        other_start: First code point of the passage there.
        other_end: One past the last.
    """

    start: int
    end: int
    tokens: int
    text: str
    other: DocumentRef
    other_start: int
    other_end: int


@dataclass(frozen=True, kw_only=True, repr=False)
class CutExplanation(Explanation):
    """What a run cut out of a document, and why it kept, removed or left out the rest.

    Attributes:
        threshold: Always 1: passages are repeated exactly.
        tokens: Number of tokens.
        cut_tokens: How many of them were cut.
        cuts: The cuts.
    """

    threshold: float = 1.0
    tokens: int = 0
    cut_tokens: int = 0
    cuts: tuple[ExplainedCut, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        names = ("document", "status", "reason", "tokens", "cut_tokens", "cuts")
        values = asdict(self)
        return {name: values[name] for name in names}

    def _lines(self) -> Iterator[tuple[str, str]]:
        where = "" if str(self.document.id) == self.document.location else f" ({self.document.location})"
        yield "document", f"{self.document.id}{where}"
        yield "decision", f"{self.status}: {self.reason}" if self.reason else self.status
        if self.status != "quarantined":
            tokens = f"{self.cut_tokens:,} of {plural(self.tokens, 'token')}"
            yield "cut", f"{tokens}, in {plural(len(self.cuts), 'passage')}"
        for cut in self.cuts[:NAMED_CUTS]:
            yield f"{cut.start}-{cut.end}", f"first in {cut.other.id}, {cut.other_start}-{cut.other_end}"
            yield "", one_line(cut.text, TERMINAL_WIDTH - LABEL_WIDTH)
        if len(self.cuts) > NAMED_CUTS:
            yield "", f"… and {plural(len(self.cuts) - NAMED_CUTS, 'more cut')}"


@dataclass(frozen=True)
class StoredListing:
    """Documents of a run that edited rows, by which a document is found."""

    run: FinishedRun

    @property
    def name(self) -> str:
        """The directory."""
        return str(self.run.folder)

    @property
    def report(self) -> Mapping[str, Any]:
        """The report of the run, without what was only compared against: nothing was cut out of it."""
        sources = [source for source in self.run.report["sources"] if not source.get("against")]
        return {**self.run.report, "sources": sources}

    def batches(self, table: str) -> Iterable[pa.RecordBatch]:
        """Return the rows of a table in pieces; ``clusters`` is the one that has a row for each document."""
        return self.run.batches(self.run.rows_table if table == "clusters" else f"{table}.parquet")

    def faults(self) -> Iterable[Mapping[str, Any]]:
        """Return source, row and reason of everything that could not be read."""
        return chain(self.run.report["unreadable"], self.run.faults())


def explain_cuts(run: FinishedRun, given: str | int) -> CutExplanation:
    """Explain a document of a run, given by its id or by source and row.

    Raises:
        InputError: If no document has the id, or several have it.
    """
    listing = StoredListing(run)
    document = find_document(listing, given)
    if isinstance(document, tuple):
        return CutExplanation(document=document[0], status="quarantined", reason=document[1])
    (row,) = rows_of(listing.batches("clusters"), document)
    removed = rows_of(listing.batches("removed"), document)
    return CutExplanation(
        document=document,
        status="kept" if row["kept"] else "removed",
        reason=removed[0]["reason"] if removed else "",
        tokens=row["tokens"],
        cut_tokens=row["cut_tokens"],
        cuts=tuple(map(_cut, rows_of(listing.batches("cuts"), document))),
    )


def rows_of(batches: Iterable[pa.RecordBatch], document: DocumentRef) -> list[dict[str, Any]]:
    """Return the rows of a table that belong to a document."""
    found = []
    for batch in batches:
        same = pa.compute.and_(
            pa.compute.equal(batch.column("row"), document.row),
            pa.compute.equal(batch.column("source"), document.source),
        )
        found += batch.filter(same).to_pylist()
    return found


def _cut(row: dict[str, Any]) -> ExplainedCut:
    other = DocumentRef(row["other_id"], row["other_source"], row["other_row"])
    values = {name: row[name] for name in ("start", "end", "tokens", "text", "other_start", "other_end")}
    return ExplainedCut(other=other, **values)
