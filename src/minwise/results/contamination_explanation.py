"""Explanation of one row of a decontamination: the evaluation items that it contains, and what was done about them."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from minwise._internal.display import TERMINAL_WIDTH, one_line
from minwise._internal.formatting import format_percent, plural
from minwise.results.cut_explanation import LABEL_WIDTH, StoredListing, rows_of
from minwise.results.explanation import Explanation, find_document
from minwise.results.finished_run import FinishedRun
from minwise.results.report_writer import read_run_texts
from minwise.results.stored_hits import item_name, item_texts
from minwise.results.thresholds import DocumentRef

__all__ = ["ContaminationExplanation", "ExplainedHit", "HitSpan", "explain_contamination"]

# Hits that a summary names, and spans of each; ``hits`` has all.
NAMED_HITS, NAMED_SPANS = 10, 5


@dataclass(frozen=True, slots=True)
class HitSpan:
    """Text that a row and an item have in common.

    Attributes:
        start: First code point in the row.
        end: One past the last.
        eval_start: First code point in the item.
        eval_end: One past the last.
        text: The text in the row; None if it could not be read again.
        eval_text: The text in the item; None if it could not be read again.
    """

    start: int
    end: int
    eval_start: int
    eval_end: int
    text: str | None
    eval_text: str | None


@dataclass(frozen=True, slots=True)
class ExplainedHit:
    """Evaluation item that a row contains.

    Attributes:
        item: Id, source and row of the item.
        column: Its column.
        ngrams: How many of its distinct rare n-grams the row has.
        share: Their share of its rare n-grams.
        score: Share of its tokens that are in one of these n-grams.
        spans: What the two have in common.
    """

    item: DocumentRef
    column: str
    ngrams: int
    share: float
    score: float
    spans: tuple[HitSpan, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class ContaminationExplanation(Explanation):
    """Why a decontamination removed, cut, marked or kept a row.

    Attributes:
        threshold: Minimum share of the rare n-grams of an item.
        hits: The evaluation items that the row contains, those of the largest share first.
        cuts: Start and end of each cut, in code points of the row.
    """

    hits: tuple[ExplainedHit, ...] = ()
    cuts: tuple[tuple[int, int], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        names = ("document", "status", "reason", "threshold", "hits", "cuts", "notes")
        values = asdict(self)
        return {name: values[name] for name in names}

    def _lines(self) -> Iterator[tuple[str, str]]:
        where = "" if str(self.document.id) == self.document.location else f" ({self.document.location})"
        yield "document", f"{self.document.id}{where}"
        yield "decision", f"{self.status}: {self.reason}"
        for hit in self.hits[:NAMED_HITS]:
            yield from _hit_lines(hit)
        if len(self.hits) > NAMED_HITS:
            yield "", f"… and {plural(len(self.hits) - NAMED_HITS, 'more item')}"
        yield from (("note", note) for note in self.notes)


def _hit_lines(hit: ExplainedHit) -> Iterator[tuple[str, str]]:
    yield "item", f"{hit.item.id} · {hit.column} ({hit.item.location})"
    yield "share", f"{_percent(hit.share)} of its rare n-grams ({hit.ngrams:,}); score {_percent(hit.score)}"
    for span in hit.spans[:NAMED_SPANS]:
        yield f"{span.start}-{span.end}", f"{span.eval_start}-{span.eval_end} of the item"
        text = span.eval_text if span.text is None else span.text
        if text is not None:
            yield "", one_line(text, TERMINAL_WIDTH - LABEL_WIDTH)
    if len(hit.spans) > NAMED_SPANS:
        yield "", f"… and {plural(len(hit.spans) - NAMED_SPANS, 'more span')}"


def _percent(share: float) -> str:
    return format_percent(share, 1)


def explain_contamination(run: FinishedRun, given: str | int) -> ContaminationExplanation:
    """Explain a row of a run, given by its id or by source and row.

    Raises:
        InputError: If no row has the id, or several have it.
    """
    listing, settings = StoredListing(run), run.report["settings"]
    document, threshold = find_document(listing, given), settings["min_share"]
    if isinstance(document, tuple):
        return ContaminationExplanation(
            document=document[0], status="quarantined", threshold=threshold, reason=document[1]
        )
    (row,) = rows_of(listing.batches("clusters"), document)
    cuts = rows_of(listing.batches("cuts"), document) if settings["action"] == "cut" else []
    hits, notes = _hits(run, document) if row["contaminated"] else ((), ())
    return ContaminationExplanation(
        document=document,
        status="kept" if row["kept"] else "removed",
        threshold=threshold,
        reason=_reason(row, settings, len(hits)),
        hits=hits,
        cuts=tuple((cut["start"], cut["end"]) for cut in cuts),
        notes=notes,
        settings=settings,
    )


def _reason(row: dict[str, Any], settings: dict[str, Any], hits: int) -> str:
    if not row["contaminated"]:
        more = "" if settings["min_ngrams"] is None else f", and fewer than {settings['min_ngrams']} of them"
        return f"it has less than {settings['min_share']:g} of the rare n-grams of every item{more}"
    found = f"it contains {plural(hits, 'evaluation item')}"
    if settings["action"] == "cut":
        cut = f", which {'was' if hits == 1 else 'were'} cut out"
        return found + (cut if row["kept"] else ", without which no text is left")
    return f"{found}, and is marked" if settings["action"] == "mark" else found


def _hits(run: FinishedRun, document: DocumentRef) -> tuple[tuple[ExplainedHit, ...], tuple[str, ...]]:
    """Return the hits of a row, the best first, and notes on missing texts."""
    hits = sorted(rows_of(run.batches("hits.parquet"), document), key=lambda hit: (-hit["share"], -hit["score"]))
    texts, note = read_run_texts(run, [(document.source, document.row)])
    items, item_note = item_texts(run, [item_name(hit) for hit in hits], _decoded)
    text = next(map(_decoded, texts.values()), None)
    explained = tuple(_explained(hit, text, items.get(item_name(hit))) for hit in hits)
    return explained, tuple(dict.fromkeys(one for one in (note, item_note) if one))


def _decoded(text: "bytes | memoryview") -> str:
    return str(text, encoding="utf-8", errors="replace")


def _explained(hit: dict[str, Any], text: str | None, eval_text: str | None) -> ExplainedHit:
    spans = (
        HitSpan(
            **span,
            text=None if text is None else text[span["start"] : span["end"]],
            eval_text=None if eval_text is None else eval_text[span["eval_start"] : span["eval_end"]],
        )
        for span in hit["spans"]
    )
    item = DocumentRef(hit["eval_id"], hit["eval_source"], hit["eval_row"])
    return ExplainedHit(item, hit["eval_column"], hit["ngrams"], hit["share"], hit["score"], tuple(spans))
