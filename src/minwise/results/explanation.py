"""Explanation of one document: why a run removed, kept or left it out, with the evidence.

:func:`explain` reads the tables of a finished run in pieces, and from its inputs only the texts that are compared;
:meth:`minwise.results.DedupResult.explain` does the same in memory.
"""

import difflib
import heapq
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from operator import itemgetter
from os import PathLike
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from minwise._internal.arrays import from_numpy, valid_mask
from minwise._internal.display import TERMINAL_WIDTH, fact_list, middle, notebook
from minwise._internal.formatting import format_similarity, plural
from minwise._internal.html import escape
from minwise.checks import show
from minwise.comparison.comparison import Comparison, compare
from minwise.comparison.page import SIDE_BY_SIDE_STYLE, notebook_texts
from minwise.errors import ConfigError, InputError, MinwiseError
from minwise.inputs.source import Columns, RowMask, Source
from minwise.results.finished_run import FinishedRun, RowStatus
from minwise.results.removals import DedupDecision
from minwise.results.report_data import NAMED_PAIRS, kept_near_misses
from minwise.results.report_writer import locate_documents, read_labels, read_run_texts, read_whole_texts
from minwise.results.rule_report import rule_columns, rule_reason
from minwise.results.thresholds import DocumentRef, document_refs
from minwise.search.verification import CLOSEST, MARGIN
from minwise.sketches.planning import Plan
from minwise.sketches.schemes import FastSketch, MinHash
from minwise.text.shingling import Shingler

__all__ = ["ComparedDocument", "Explanation", "ResultEvidence", "explain", "explain_document", "find_document"]

# Members of a cluster, near misses, and documents of an ambiguous or unknown id that are named.
NAMED_MEMBERS, NAMED_NEAR_MISSES, NAMED_IDS = 10, 10, 5
# Ids that are compared letter by letter with an unknown id: about 0.1 s. All others are filtered by Arrow.
COMPARED_IDS = 2_000
# Ids that are proposed.
PROPOSED_IDS = 3
# Minimum similarity of a near miss among searched documents, as a share of the threshold.
SEARCHED_SHARE = 0.5
# Columns of the names in a summary, and of an id in a notebook.
LABEL_WIDTH, NAME_WIDTH = 13, 60
# With which documents one was compared, by the setting that decided it.
COMPARED = {"within": "only with documents of {}", "across": "not with documents of {}"}
UNREADABLE = "No texts are shown: they could not be read again."

Status = Literal["removed", "kept", "quarantined", "reference"]


@dataclass(frozen=True, slots=True)
class ComparedDocument(DocumentRef):
    """Document with its similarity to another one.

    Attributes:
        similarity: The similarity; None if it is unknown.
    """

    similarity: float | None = None

    @classmethod
    def of(cls, document: DocumentRef, similarity: float | None) -> "ComparedDocument":
        """Return a document with its similarity."""
        return cls(document.id, document.source, document.row, similarity)


@dataclass(frozen=True, kw_only=True, repr=False)
class Explanation:
    """Why a run removed, kept or left out a document.

    Attributes:
        document: The document.
        status: ``removed``, ``kept``, ``quarantined`` (it could not be read) or ``reference`` (it was only compared
            against).
        threshold: Minimum similarity of near-duplicates.
        witness: The kept document that a removed one is a near-duplicate of, with their similarity.
        cluster: Id of the document that its cluster is named after.
        size: Number of documents in its cluster: that document and all that are near-duplicates of it.
        votes: Number of distinct values in its cluster, of the column ``votes``; None if they were not counted.
        members: The first documents that were removed for that document, with their similarities to it.
        near_misses: Kept documents at most 0.05 below the threshold, the most similar first; with ``search`` those of
            at least half the threshold.
        searched: Whether near misses were searched among all kept documents.
        comparison: Comparison of the document with its witness, or of a kept one with its nearest miss; None if there
            is none, or if their texts cannot be read.
        rule: Which rule by labels speaks for the kept document of its cluster; empty if none does.
        reason: Why it could not be read; empty otherwise.
        compared: With which documents it was compared, and the value that decided it; empty if with all.
        notes: What is missing in this explanation, and why.
        settings: The settings of the run.
    """

    document: DocumentRef
    status: Status
    threshold: float
    witness: ComparedDocument | None = None
    cluster: str | int | None = None
    size: int = 1
    votes: int | None = None
    members: tuple[ComparedDocument, ...] = ()
    near_misses: tuple[ComparedDocument, ...] = ()
    searched: bool = False
    comparison: Comparison | None = None
    rule: str = ""
    reason: str = ""
    compared: str = ""
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def compared_with(self) -> ComparedDocument | None:
        """The document that it is compared with: its witness, or the nearest miss of a kept one."""
        return self.witness or next(iter(self.near_misses), None)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without texts."""
        names = ["document", "status", "threshold", "reason", "witness", "size", "members", "near_misses", "searched"]
        names += [] if self.votes is None else ["votes"]
        comparison = None if self.comparison is None else self.comparison.to_dict()
        return {
            **{name: _plain(getattr(self, name)) for name in names},
            **({"rule": self.rule} if self.rule else {}),
            **({"compared": self.compared} if self.compared else {}),
            "notes": [*self.notes],
            "comparison": comparison,
        }

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the text of each line of a summary, without the passages and control characters."""
        for name, text in self._lines():
            yield name, "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)

    def _lines(self) -> Iterator[tuple[str, str]]:
        where = "" if str(self.document.id) == self.document.location else f" ({self.document.location})"
        yield "document", f"{self.document.id}{where}"
        yield "decision", self._decision()
        if self.witness is not None:
            yield self._measure_name, self._similarity(self.witness)
        if self.rule:
            yield "rule", self.rule if self.witness is None else f"{self.witness.id} is {self.rule}"
        if self.compared:
            yield "compared", self.compared
        if self.status != "quarantined":
            yield from self._cluster()
        if self.votes is not None:
            yield "votes", f"{plural(self.votes, 'distinct value')} of {self.settings['votes']} in the cluster"
        if self.status == "kept":
            yield from self._near_misses()
        yield from (("note", note) for note in self.notes)

    def __repr__(self) -> str:
        width = TERMINAL_WIDTH - LABEL_WIDTH
        lines = (
            (name, textwrap.wrap(text, width) if name == "note" else [_fit(text, width)]) for name, text in self.facts()
        )
        parts = (("" if number else name, part) for name, line in lines for number, part in enumerate(line))
        return "\n".join(f"{name:<{LABEL_WIDTH}}{part}" for name, part in parts)

    def _repr_html_(self) -> str:
        """Return the summary, and both texts side by side, for a notebook."""
        facts, other = fact_list((name, escape(text)) for name, text in self.facts()), self.compared_with
        if self.comparison is None or other is None:
            return notebook(facts)
        names = (middle(str(self.document.id), NAME_WIDTH), middle(str(other.id), NAME_WIDTH))
        return notebook(facts, notebook_texts(self.comparison, names), style=SIDE_BY_SIDE_STYLE)

    @property
    def _measure_name(self) -> str:
        if self.settings.get("discount") == "common":
            return "weighted"
        return "containment" if self._of_containment else "similarity"

    @property
    def _of_containment(self) -> bool:
        return self.settings.get("measure") == "containment"

    def _decision(self) -> str:
        if self.status == "quarantined":
            return f"quarantined: {self.reason}"
        if self.status == "reference":
            return "only compared against; never removed and never written"
        if self.witness is None and self._is_copy:
            return f"kept: one of the first {self.settings['copies']} documents of the cluster of {self.cluster}"
        if self.witness is None:
            smaller = "it lies in no other kept document"
            return f"kept: {smaller if self._of_containment else 'no kept document before it reaches the threshold'}"
        if self.settings.get("drop_all"):
            return f"removed: a near-duplicate of {self.witness.id}; no document of their cluster is kept"
        if self._of_containment:
            return f"removed: it lies in {self.witness.id}, which is kept"
        return f"removed: a near-duplicate of {self.witness.id}, which is kept"

    @property
    def _is_copy(self) -> bool:
        """Whether a kept document is not the one that its cluster is named after."""
        return "copies" in self.settings and self.cluster != self.document.id

    def _similarity(self, witness: ComparedDocument) -> str:
        if self.settings.get("verify") == "none":
            return "unknown: the run did not verify its candidates"
        if witness.similarity is None:
            return "unknown: joined through other documents"
        value = format_similarity(witness.similarity)
        if witness.similarity < self.threshold:
            return f"{value}, below the threshold {self.threshold:g}: joined through other documents"
        kind = "exact" if self.settings.get("verify") == "exact" else "estimated from signatures"
        return f"{value}, {kind}; the threshold is {self.threshold:g}"

    def _cluster(self) -> Iterator[tuple[str, str]]:
        if self.size == 1:
            yield "cluster", "no other document"
            return
        every = "copies" not in self.settings
        what = f"{plural(self.size - 1, 'document')} removed for" if every else f"{self.size:,} documents, that of"
        yield "cluster", f"{what} {self.cluster}"
        for member in self.members:
            yield "", f"{_value(member)}  {member.id}"
        if every and self.size - 1 > len(self.members):
            yield "", f"… and {self.size - 1 - len(self.members):,} more"

    def _near_misses(self) -> Iterator[tuple[str, str]]:
        if not self.near_misses:
            floor = self.threshold * SEARCHED_SHARE if self.searched else self.threshold - MARGIN
            unknown = self.notes or self.settings.get("verify") == "none"
            known = "none known" if unknown else f"no kept document from {floor:g} to the threshold"
            yield "near misses", known
        for number, near in enumerate(self.near_misses):
            missed = "  (the plan missed this pair)" if (near.similarity or 0) >= self.threshold else ""
            yield "" if number else "near misses", f"{_value(near)}  {near.id}{missed}"


def _plain(value: object) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return asdict(value) if isinstance(value, DocumentRef) else value


def _fit(text: str, width: int) -> str:
    """Return a line; without its middle if it is too long, so that the end of an id stays."""
    return text if len(text) <= width and text.isascii() else middle(text, width)


def _value(document: ComparedDocument) -> str:
    return "unknown" if document.similarity is None else format_similarity(document.similarity)


class Listing(Protocol):
    """Documents of a run, in memory or in an output directory."""

    @property
    def name(self) -> str:
        """The directory, or a name for messages."""

    @property
    def report(self) -> Mapping[str, Any]:
        """The report of the run."""

    def batches(self, table: str) -> Iterable[pa.RecordBatch]:
        """Return the rows of ``removed`` or ``clusters`` in pieces."""

    def faults(self) -> Iterable[Mapping[str, Any]]:
        """Return source, row and reason of everything that could not be read."""


class Evidence(Listing, Protocol):
    """Result of a run that removed near-duplicates."""

    def near_misses(self, document: DocumentRef) -> tuple[list[ComparedDocument], int]:
        """Return the known near misses of a kept document, the most similar first.

        Also return among how many near misses of all documents they were looked for; 0 if these are all.
        """

    def kept_rows(self) -> Iterable[tuple[Source, Columns, RowMask]]:
        """Return each unchanged input with the columns of its texts and a flag for each kept row."""

    def texts(self, documents: Sequence[DocumentRef]) -> tuple[dict[DocumentRef, bytes], str]:
        """Return the texts of documents, and why some are missing."""

    def labels(self, document: DocumentRef, columns: Sequence[str]) -> dict[str, str | None]:
        """Return the labels of a document of the input in columns, as far as they are known."""


def explain(
    output: str | PathLike[str],
    id: str | int,  # noqa: A002 - what it is
    *,
    search: bool = False,
) -> Explanation:
    """Explain why a run removed, kept or left out a document.

    Reads the tables of the run in pieces, and only the texts that are compared. The texts of an input that has changed
    since the run are left out, with a note.

    Args:
        output: The directory that :func:`minwise.dedup` or :func:`minwise.decontaminate` wrote.
        id: The id of the document, or its source and row, such as ``crawl/a.jsonl:17``.
        search: Whether to compare a kept document with all other kept ones, exactly, to find those most similar to it.
            Reads and shingles all inputs once.

    Returns:
        The kept near-duplicate of a removed document, their similarity and shared passages; the cluster; the near
        misses of a kept document; the reason of a row in quarantine. Of a run with ``passages``, the cuts of the
        document with their first occurrences. Of a decontamination, the evaluation items that a row contains.

    Raises:
        InputError: If no document has the id, or several have it.
        FormatError: If the directory is not the output of a run.
    """
    run = FinishedRun.open(output, kinds=("dedup", "passages", "decontamination"))
    if run.kind == "dedup":
        return explain_document(_StoredEvidence(run), id, search=search)
    from minwise.results.contamination_explanation import explain_contamination  # here: these import this module
    from minwise.results.cut_explanation import explain_cuts

    if search:
        raise ConfigError(f"{run.folder}: search must be left out, got True: its run compared no documents")
    return explain_cuts(run, id) if run.kind == "passages" else explain_contamination(run, id)


def explain_document(evidence: Evidence, given: str | int, *, search: bool = False) -> Explanation:
    """Explain a document, given by its id or by source and row; see :func:`explain`.

    Raises:
        InputError: If no document has the id, or several have it.
    """
    found = find_document(evidence, given)
    threshold, settings = float(evidence.report["settings"]["threshold"]), evidence.report["settings"]
    if isinstance(found, tuple):
        document, reason = found
        return Explanation(
            document=document, status="quarantined", threshold=threshold, reason=reason, settings=settings
        )
    return _Explainer(evidence, found, search=search).explain(threshold, settings)


def find_document(listing: Listing, given: object) -> DocumentRef | tuple[DocumentRef, str]:
    """Return the document of an id or of source and row; with the reason if it could not be read."""
    if isinstance(given, bool) or not isinstance(given, (str, int)):
        raise ConfigError(f"id must be a string or a whole number, got {show(given)}")
    return _DocumentFinder(listing, str(given)).find()


class _Explainer:
    """Collects the evidence on one document."""

    def __init__(self, evidence: Evidence, document: DocumentRef, *, search: bool) -> None:
        self._evidence, self._document, self._search = evidence, document, search
        self._notes: list[str] = []

    def explain(self, threshold: float, settings: Mapping[str, Any]) -> Explanation:
        """Return the explanation."""
        witness = self._witness()
        entry = self._cluster_entry()
        status: Status = "removed" if witness else "kept" if entry else "reference"
        first = self._first_of_cluster(witness, entry)
        size, members = self._members(first)
        near = self._near_misses(settings) if status == "kept" else []
        if settings.get("mark"):
            self._notes.append("the run marked its rows: all of them are in the directory kept")
        partner = witness or next(iter(near), None)
        comparison = None if partner is None else self._compare(partner, settings)
        return Explanation(
            document=self._document,
            status=status,
            threshold=threshold,
            witness=witness,
            cluster=first.id,
            size=max(size, entry.get("size", 1)),
            votes=entry.get("votes"),
            members=tuple(members),
            near_misses=tuple(near[:NAMED_NEAR_MISSES]),
            searched=self._search and status == "kept" and settings.get("discount") != "common",
            comparison=comparison,
            rule="" if status == "reference" else self._rule(settings, self._document if witness is None else witness),
            compared=self._compared(settings),
            notes=tuple(self._notes),
            settings=settings,
        )

    def _rule(self, settings: Mapping[str, Any], kept: DocumentRef) -> str:
        """Return which rule by labels speaks for a kept document."""
        columns = rule_columns(settings)
        return rule_reason(settings, self._evidence.labels(kept, columns)) if columns else ""

    def _compared(self, settings: Mapping[str, Any]) -> str:
        """Return with which documents this one was compared, if values decided it."""
        for rule, column in ((rule, settings[rule]) for rule in COMPARED if settings.get(rule)):
            for batch in _matching(self._evidence.batches("clusters"), "", self._document):
                value = batch.column("value")[0].as_py() if "value" in batch.schema.names else None
                return COMPARED[rule].format(f"{column}={value}" if value is not None else f"no {column}")
        return ""

    def _near_misses(self, settings: Mapping[str, Any]) -> list[ComparedDocument]:
        """Return the known near misses, or with ``search`` the most similar kept documents."""
        weighted = settings.get("discount") == "common"
        restricted = next((name for name in COMPARED if settings.get(name)), None)
        if self._search and restricted is not None:
            raise ConfigError(f"search must be left out for a run with {restricted}, got True: see its near misses")
        if self._search and weighted:
            self._notes.append("weighted similarities are known of near misses only; search=True finds no others")
        if self._search and not weighted and settings["shingle"] != "set":
            near = self._most_similar(Shingler.from_settings(settings), settings.get("measure", "jaccard"))
            return [one for one in near if (one.similarity or 0) >= settings["threshold"] * SEARCHED_SHARE]
        near, among = self._evidence.near_misses(self._document)
        if among:
            self._notes.append(
                f"only the {among:,} closest near misses of all documents are known; search=True compares this one "
                "with every kept document"
            )
        return near

    def _most_similar(self, shingler: Shingler, measure: str) -> list[ComparedDocument]:
        texts, missing = self._evidence.texts([self._document])
        if self._document not in texts:
            self._notes.append(missing or UNREADABLE)
            return []
        best: list[tuple[float, str, int]] = []
        for source, columns, keep in self._evidence.kept_rows():
            for found in similar_rows(source, columns, keep, shingler, texts[self._document], measure):
                best = heapq.nlargest(NAMED_NEAR_MISSES + 1, [*best, *found], key=itemgetter(0))  # stable
        rows = {(name, row): value for value, name, row in best}
        refs = {(document.source, document.row): document for document in self._named(set(rows))}
        others = (
            ComparedDocument.of(refs[name], value) for name, value in rows.items() if refs[name] != self._document
        )
        return list(others)[:NAMED_NEAR_MISSES]

    def _named(self, rows: set[tuple[str, int]]) -> Iterator[DocumentRef]:
        """Yield the documents in these rows."""
        numbers = pa.array([row for _, row in rows], pa.int64())
        for batch in self._evidence.batches("clusters"):
            few = batch.filter(pc.is_in(batch.column("row"), numbers))
            yield from (document for document in _refs(few) if (document.source, document.row) in rows)

    def _cluster_entry(self) -> dict[str, Any]:
        """Return the row of the document in the table of clusters; empty if it is not one of the input."""
        for batch in _matching(self._evidence.batches("clusters"), "", self._document):
            return dict(batch.to_pylist()[0])
        return {}

    def _first_of_cluster(self, witness: ComparedDocument | None, entry: Mapping[str, Any]) -> DocumentRef:
        """Return the document that the cluster is named after.

        It is the witness, or the document itself: of a copy that is kept only its id is known.
        """
        own = entry.get("cluster", self._document.id) == self._document.id
        if witness is not None and not (own and self._evidence.report["settings"].get("drop_all")):
            return witness
        return self._document if own else replace(self._document, id=entry["cluster"])

    def _witness(self) -> ComparedDocument | None:
        """Return the kept document that this one was removed for."""
        for batch in _matching(self._evidence.batches("removed"), "", self._document):
            return next(_similar(batch, "kept_"))
        return None

    def _members(self, kept: DocumentRef) -> tuple[int, list[ComparedDocument]]:
        """Return the size of a cluster, and the first documents that were removed for the kept one."""
        size, members = 1, list[ComparedDocument]()
        for batch in _matching(self._evidence.batches("removed"), "kept_", kept):
            size += batch.num_rows
            members += islice(_similar(batch, ""), NAMED_MEMBERS - len(members))
        return size, members

    def _compare(self, other: DocumentRef, settings: Mapping[str, Any]) -> Comparison | None:
        """Return the comparison of the document with another; without texts, note why there is none."""
        if settings["shingle"] == "set":
            self._notes.append("documents are sets of items, so there are no passages")
            return None
        other = DocumentRef(other.id, other.source, other.row)
        texts, missing = self._evidence.texts([self._document, other])
        if self._document not in texts or other not in texts:
            self._notes.append(missing or UNREADABLE)
            return None
        scheme = {"minhash": MinHash}.get(settings.get("scheme", "fast"), FastSketch)
        plan = self._evidence.report.get("plan") or {"threshold": settings["threshold"], "bands": 1, "rows": 1}
        layout = Plan(threshold=plan["threshold"], bands=plan["bands"], rows=plan["rows"])
        shingler = Shingler.from_settings(settings)
        sketch = scheme(slots=layout.slots, seed=settings["seed"])
        return compare(texts[self._document], texts[other], shingler=shingler, scheme=sketch, plan=layout)


def similar_rows(
    source: Source, columns: Columns, keep: RowMask, shingler: Shingler, text: bytes, measure: str = "jaccard"
) -> Iterator[list[tuple[float, str, int]]]:
    """Yield the kept rows of each batch that are most similar to a text: similarity, file and row."""
    shingles = shingler.shingle([text])[0]
    source.refuse_changes()
    for batch in source.batches(replace(columns, values=()), wanted=keep):
        rows = np.flatnonzero(keep[batch.first : batch.first + len(batch)] & valid_mask(batch.values))
        sets = shingler.shingle(batch.values.take(from_numpy(rows)))
        inside = np.concatenate([[0], np.cumsum(np.isin(sets.hashes, shingles, kind="sort"))])
        shared = np.diff(inside[sets.offsets])
        sizes = np.diff(sets.offsets)
        union = len(shingles) + sizes - shared
        similarity = shared / np.maximum(np.minimum(sizes, len(shingles)) if measure == "containment" else union, 1)
        most = np.argsort(-similarity, kind="stable")[: NAMED_NEAR_MISSES + 1]
        most = most[similarity[most] > 0]
        names, within = source.locate(batch.first + rows[most])
        yield list(zip(similarity[most].tolist(), names.to_pylist(), within.tolist(), strict=True))


def _matching(batches: Iterable[pa.RecordBatch], prefix: str, document: DocumentRef) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table that name a document, or with ``kept_`` those whose kept document it is."""
    for batch in batches:
        same = pc.and_(
            pc.equal(batch.column(f"{prefix}row"), document.row),
            pc.equal(batch.column(f"{prefix}source"), document.source),
        )
        found = batch.filter(same)
        if found.num_rows:
            yield found


def _refs(batch: pa.RecordBatch, prefix: str = "") -> Iterator[DocumentRef]:
    columns = (batch.column(f"{prefix}{name}").to_pylist() for name in ("id", "source", "row"))
    return (DocumentRef(*values) for values in zip(*columns, strict=True))


def _similar(batch: pa.RecordBatch, prefix: str) -> Iterator[ComparedDocument]:
    """Yield the documents of ``removed``, or with ``kept_`` their kept ones, with their similarities."""
    similarity = batch.column(batch.num_columns - 1).to_pylist()  # its name says whether it is exact
    for document, value in zip(_refs(batch, prefix), similarity, strict=True):
        yield ComparedDocument.of(document, value)


class _DocumentFinder:
    """Finds the document of an id, or of source and row."""

    def __init__(self, evidence: Listing, given: str) -> None:
        self._evidence, self._given = evidence, given
        source, _, row = given.rpartition(":")
        self._location = (source, int(row)) if row.isdecimal() and row.isascii() and len(row) < 19 else None

    def find(self) -> DocumentRef | tuple[DocumentRef, str]:
        """Return the document; with the reason if it could not be read.

        Raises:
            InputError: If there is no such document, or several.
        """
        found = list(islice(self._by_id(), NAMED_IDS + 1)) or list(self._by_location())
        if len(found) == 1:
            return found[0]
        if found:
            raise self._ambiguous(found)
        return self._unreadable()

    def _tables(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the pieces in which a document can be: those of the input, then kept ones of a reference corpus."""
        yield from (("", batch) for batch in self._evidence.batches("clusters"))
        if any(source.get("against") for source in self._evidence.report["sources"]):
            yield from (("kept_", batch) for batch in self._evidence.batches("removed"))

    def _by_id(self) -> Iterator[DocumentRef]:
        seen = set[DocumentRef]()
        for prefix, batch in self._tables():
            ids = batch.column(f"{prefix}id")
            wanted = self._as_id(ids.type)
            if wanted is not None:
                new = dict.fromkeys(_refs(batch.filter(pc.equal(ids, wanted)), prefix))
                yield from (document for document in new if document not in seen)
                seen.update(new)

    def _as_id(self, kind: pa.DataType) -> pa.Scalar | None:
        """Return the given id in the type of the ids; None if it cannot be one of them."""
        if not pa.types.is_integer(kind):
            return pa.scalar(self._given, kind)
        try:
            number = int(self._given)
            return pa.scalar(number, kind) if str(number) == self._given else None
        except (ValueError, OverflowError, pa.ArrowInvalid):
            return None

    def _by_location(self) -> Iterator[DocumentRef]:
        if self._location is None:
            return
        wanted = DocumentRef("", *self._location)
        for prefix, batch in self._tables():
            for found in _matching([batch], prefix, wanted):
                yield next(_refs(found, prefix))
                return

    def _ambiguous(self, found: list[DocumentRef]) -> InputError:
        named = ", ".join(document.location for document in found[:NAMED_IDS])
        more = " and more" if len(found) > NAMED_IDS else ""
        return InputError(
            f"{self._evidence.name}: several documents have the id {show(self._given)}: {named}{more}; "
            "give one of these instead of the id"
        )

    def _unreadable(self) -> tuple[DocumentRef, str]:
        """Return a row in quarantine, or a source that cannot be read, with the reason."""
        source, row = self._location or ("", -1)
        for fault in self._evidence.faults():
            if (fault["source"], fault["row"]) == (source, row):
                return DocumentRef(self._given, source, row), str(fault["reason"])
            if fault["row"] is None and fault["source"] in (self._given, source):
                return DocumentRef(self._given, fault["source"], max(row, 0)), str(fault["reason"])
        for entry in self._evidence.report["sources"]:
            if entry["source"] == source and 0 <= row < entry["rows"]:
                reason = "it could not be read; the run skipped such rows and recorded no reason"
                return DocumentRef(self._given, source, row), reason
        raise self._unknown()

    def _unknown(self) -> InputError:
        closest = ", ".join(show(identity) for identity in self._closest())
        table = "clusters.parquet" if "plan" in self._evidence.report else "documents.parquet"
        hint = f"; the closest ids are {closest}" if closest else f"; {table} lists all ids"
        return InputError(f"{self._evidence.name}: no document has the id {show(self._given)}{hint}")

    def _closest(self) -> list[str]:
        """Return the most similar ids among those that share the first or the last half of the letters."""
        candidates: list[str] = []
        for batch in self._evidence.batches("clusters"):
            ids = batch.column("id").cast(pa.large_string())
            alike = self._alike(ids)
            candidates += islice(dict.fromkeys(ids.filter(alike).to_pylist()), COMPARED_IDS - len(candidates))
            if len(candidates) >= COMPARED_IDS:
                break
        lowered = self._given.lower()
        ratio: Callable[[str], float] = lambda text: difflib.SequenceMatcher(None, lowered, text.lower()).ratio()  # noqa: E731
        return heapq.nlargest(PROPOSED_IDS, dict.fromkeys(candidates), key=ratio)

    def _alike(self, ids: pa.Array) -> pa.Array:
        """Return a flag for ids that differ in one half only, as after one typing error, or that contain the given."""
        half = (len(self._given) + 1) // 2
        first, last = self._given[:half], self._given[half:] or self._given
        tests = (
            pc.starts_with(ids, first, ignore_case=True),
            pc.ends_with(ids, last, ignore_case=True),
            pc.match_substring(ids, self._given, ignore_case=True),
        )
        return pc.or_(pc.or_(tests[0], tests[1]), tests[2])


@dataclass(frozen=True)
class _StoredEvidence:
    """Output directory of a run."""

    run: FinishedRun

    @property
    def name(self) -> str:
        return str(self.run.folder)

    @property
    def report(self) -> Mapping[str, Any]:
        return self.run.report

    def batches(self, table: str) -> Iterable[pa.RecordBatch]:
        return self.run.batches(f"{table}.parquet")

    def faults(self) -> Iterable[Mapping[str, Any]]:
        return chain(self.report["unreadable"], self.run.faults())

    def near_misses(self, document: DocumentRef) -> tuple[list[ComparedDocument], int]:
        closest = (self.report["just_below"] or {"closest": []})["closest"]
        near: list[ComparedDocument] = []
        for pair in closest:
            sides = [DocumentRef(**pair[side]) for side in ("left", "right")]
            if document in sides:
                near.append(ComparedDocument.of(sides[1 - sides.index(document)], pair["similarity"]))
        return near, NAMED_PAIRS if len(closest) == NAMED_PAIRS else 0

    def kept_rows(self) -> Iterator[tuple[Source, Columns, RowMask]]:
        self.run.refuse_changes("can only be searched with its unchanged input")
        status = RowStatus(self.run)
        for number in range(len(self.run.files)):
            yield self.run.source(number), self.run.columns, status.of_source(number)

    def texts(self, documents: Sequence[DocumentRef]) -> tuple[dict[DocumentRef, bytes], str]:
        names = {(document.source, document.row): document for document in documents}
        texts, note = read_run_texts(self.run, list(names))
        return {names[name]: text for name, text in texts.items()}, note

    def labels(self, document: DocumentRef, columns: Sequence[str]) -> dict[str, str | None]:
        with suppress(MinwiseError, OSError):
            for number, files in enumerate(self.run.files):
                if document.source in {file.name for file in files} and self.run.change(number) is None:
                    return read_labels(self.run.source(number), self.run.columns, document.row, columns)
        return {}


@dataclass(frozen=True)
class ResultEvidence:
    """Result in memory.

    Attributes:
        decision: The removed documents.
        report: The report.
        tables: Return the tables ``removed`` and ``clusters`` in pieces.
    """

    decision: DedupDecision
    report: Mapping[str, Any]
    tables: Mapping[str, Callable[[], Iterator[pa.Table]]]
    name: str = "the result"

    def batches(self, table: str) -> Iterator[pa.RecordBatch]:
        """Return the rows of a table in pieces."""
        for piece in self.tables[table]():
            yield from piece.to_batches()

    def faults(self) -> Iterable[Mapping[str, Any]]:
        """Return source, row and reason of everything that could not be read."""
        return self.decision.search.documents.faults()

    def near_misses(self, document: DocumentRef) -> tuple[list[ComparedDocument], int]:
        """Return the near misses of a kept document among the 10,000 closest of all documents."""
        if self.decision.search.settings.verify == "none":
            return [], 0
        number = self._numbers([document])[0]
        left, right, similarity = kept_near_misses(self.decision)
        chosen = np.flatnonzero((left == number) | (right == number))
        others = document_refs(self.decision.search, np.where(left == number, right, left)[chosen])
        near = [
            ComparedDocument.of(other, value) for other, value in zip(others, similarity[chosen].tolist(), strict=True)
        ]
        return near, CLOSEST if int(self.decision.near_misses.counts.sum()) > CLOSEST else 0

    def kept_rows(self) -> Iterator[tuple[Source, Columns, RowMask]]:
        """Return each input with a flag for each kept row."""
        documents, corpus = self.decision.search.documents, self.decision.search.documents.corpus
        for number in range(corpus.against, len(corpus.sources)):
            yield corpus.sources[number], corpus.columns, self.decision.keep[documents.input_slice(number)]

    def texts(self, documents: Sequence[DocumentRef]) -> tuple[dict[DocumentRef, bytes], str]:
        """Return the texts of documents."""
        numbers = self._numbers(documents)
        texts = read_whole_texts(self.decision.search, numbers)
        return {
            document: texts[number] for document, number in zip(documents, numbers, strict=True) if number in texts
        }, ""

    def labels(self, document: DocumentRef, columns: Sequence[str]) -> dict[str, str | None]:
        """Return the labels of a document of the input in columns."""
        number, found = self._numbers([document])[0], self.decision.search.documents
        codes = {} if number < found.protected else {name: found.value_codes(name) for name in columns}
        return {name: labels[int(numbers[number])].as_py() for name, (numbers, labels) in codes.items()}

    def _numbers(self, documents: Sequence[DocumentRef]) -> list[int]:
        found = self.decision.search.documents
        names = [(document.source, document.row) for document in documents]
        located = locate_documents(found.corpus.sources, names)
        return [int(found.starts[located[name][0]]) + located[name][1] for name in names]
