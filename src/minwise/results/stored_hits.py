"""Hits of a finished decontamination: the rows of ``hits.parquet``, and the texts of both sides.

A row of the table is a dictionary here. Texts come from the inputs and evaluation files of the run, as far as these are
unchanged.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from minwise.errors import MinwiseError
from minwise.inputs.source import Columns, Source
from minwise.results.finished_run import FinishedRun
from minwise.results.report_writer import (
    change_note,
    convert_run_texts,
    failure_reason,
    locate_documents,
    read_rows,
)

if TYPE_CHECKING:
    from minwise.report.contamination_page import ShownHit

__all__ = ["SHOWN_HITS", "SPAN", "item_name", "item_spans", "item_texts", "row_spans", "shown_hit", "shown_hits"]

SPAN = pa.struct({name: pa.int64() for name in ("start", "end", "eval_start", "eval_end")})
# Rows of which the page shows the best hit.
SHOWN_HITS = 30
UNRECORDED = "run.json does not name their files"

Hit = dict[str, Any]
# Source, row and column of an item.
ItemName = tuple[str, int, str]
Shown = TypeVar("Shown")


def row_spans(hit: Hit) -> list[tuple[int, int]]:
    """Return the spans of a hit in the row."""
    return [(span["start"], span["end"]) for span in hit["spans"]]


def item_spans(hit: Hit) -> list[tuple[int, int]]:
    """Return the spans of a hit in the item."""
    return [(span["eval_start"], span["eval_end"]) for span in hit["spans"]]


def shown_hit(hit: Hit, sides: tuple[str, str]) -> "ShownHit":
    """Return a hit as the page shows it."""
    from minwise.report.contamination_page import ShownHit  # here, because few calls write

    return ShownHit(f"{hit['id']}", f"{hit['eval_id']} · {hit['eval_column']}", hit["share"], sides)


def item_name(hit: Hit) -> ItemName:
    """Return the item of a hit."""
    return hit["eval_source"], hit["eval_row"], hit["eval_column"]


def shown_hits(run: FinishedRun) -> tuple[list["ShownHit"], str]:
    """Return the hits that the page shows, and a note if texts are missing."""
    from minwise.report.contamination_page import marked_text

    hits = _first_hits(run)
    by_row = {(hit["source"], hit["row"]): hit for hit in hits}
    rows, row_note = convert_run_texts(run, [*by_row], lambda name, text: marked_text(text, row_spans(by_row[name])))
    items, item_note = item_texts(run, [item_name(hit) for hit in hits], bytes)
    shown = []
    for name, hit in by_row.items():
        item = marked_text(items.get(item_name(hit)), item_spans(hit))
        shown.append(shown_hit(hit, (rows.get(name) or marked_text(None, []), item)))
    return shown, row_note or item_note


def _first_hits(run: FinishedRun) -> list[Hit]:
    """Return the best hit of some contaminated rows, those of the largest share, by row."""
    first = run.schema("hits.parquet").empty_table()
    for batch in run.batches("hits.parquet"):
        first = _best(pa.concat_tables([first, pa.Table.from_batches([batch])]))
    hits: list[Hit] = first.to_pylist()
    return hits


def _best(hits: pa.Table) -> pa.Table:
    """Return the best hit of each row: of the largest share, then score, then the first; of at most 30 rows."""
    shares, scores = (hits.column(name).to_numpy() for name in ("share", "score"))
    rows, sources = (hits.column(name).combine_chunks() for name in ("row", "source"))
    names = np.stack([rows.to_numpy(), sources.dictionary_encode().indices.to_numpy()])
    begins = np.append(True, (names[:, 1:] != names[:, :-1]).any(axis=0))[: len(shares)]
    order = np.lexsort((-scores, -shares, np.cumsum(begins)))  # stable: hits of a row are by item
    best = order[begins]
    chosen = np.sort(best[np.argsort(-shares[best], kind="stable")[:SHOWN_HITS]])
    return hits.take(pa.array(chosen))


def item_texts(
    run: FinishedRun, items: Sequence[ItemName], convert: Callable[[memoryview], Shown]
) -> tuple[dict[ItemName, Shown], str]:
    """Return what ``convert`` makes of the texts of items, and a note if some are missing."""
    try:
        sources, changes = _eval_sources(run, {source for source, _, _ in items})
        texts: dict[ItemName, Shown] = {}
        for column in dict.fromkeys(column for _, _, column in items):
            texts |= _column_texts(sources, column, [item for item in items if item[2] == column], convert)
    except (MinwiseError, OSError) as error:
        return {}, f"No texts of items are shown: {failure_reason(error)}."
    if all(item in texts for item in items) or changes:
        return texts, change_note(changes)
    return texts, "Some texts of items could not be read again."


def _eval_sources(run: FinishedRun, names: set[str]) -> tuple[list[Source], dict[str, str]]:
    """Return the unchanged sources of items that have one of the names, and the change of each other name."""
    sources: list[Source] = []
    changes = dict.fromkeys(sorted(names), UNRECORDED)
    for own, source, change in run.eval_sources():
        found = names & set(own)
        sources += [source] if found and source is not None else []
        for name in found:
            del changes[name]
        changes |= dict.fromkeys(sorted(found), change) if change else {}
    return sources, changes


def _column_texts(
    sources: Sequence[Source], column: str, items: Sequence[ItemName], convert: Callable[[memoryview], Shown]
) -> dict[ItemName, Shown]:
    rows = locate_documents(sources, [(source, row) for source, row, _ in items])
    names = {place: (*name, column) for name, place in rows.items()}
    read = read_rows(sources, Columns(text=(column,)), [*names], lambda _, text: convert(text))
    return {names[place]: text for place, text in read}
