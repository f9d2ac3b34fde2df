"""Audit of a decontamination: how many planted items are found, and how many controls are hits.

Items that can be checked are planted in a sample of the rows that are not contaminated: alone, whole in the row, and in
it with one to five words replaced. A control is a row with the words of an item in random order, which is not the item.
The planted texts are probed as rows are, with the n-grams that are rare in the corpus.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.formatting import plural
from minwise.search.bands import FILLED
from minwise.search.contamination import (
    Contamination,
    ItemGrams,
    checked_table,
    ngram_frequencies,
    scan_chunk,
    shingler_of,
)
from minwise.search.documents import SearchJob
from minwise.search.first_pass import wanted_batches
from minwise.settings import ContaminationRule
from minwise.sketches.estimates import wilson_interval
from minwise.text.shingling import Shingler

__all__ = ["audit_contamination"]

# Texts of each kind, and characters of a row that an item is planted in.
PLANTED = 400
ROW_CHARACTERS = 20_000
MOST_EDITS = 5
SEED = 1

# Makes a text from that of a row and that of an item.
Plant = Callable[[str, str], str]


@dataclass(frozen=True)
class _Prober:
    """Finds items in texts as the search does."""

    table: "_kernel.ItemTable"
    rule: ContaminationRule
    grams: ItemGrams
    rare: NDArray[np.bool_]
    counts: NDArray[np.int64]

    def items_of(self, texts: Sequence[str]) -> list[set[int]]:
        """Return the items that are hits in each text."""
        _, _, found = scan_chunk(self.table, pa.array(texts, pa.large_string()), 1)
        owners, grams = np.repeat(found["rows"], found["sizes"]), found["grams"]
        counts = self.rare[grams]
        documents, items, matched = self.grams.count(owners[counts], grams[counts])
        hits: list[set[int]] = [set() for _ in texts]
        enough = self.rule.holds(matched, self.counts[items])
        for document, item in zip(documents[enough].tolist(), items[enough].tolist(), strict=True):
            hits[document].add(item)
        return hits


def audit_contamination(job: SearchJob, result: Contamination) -> dict[str, Any]:
    """Return recall by kind of planted item, and precision, with intervals of 95 %."""
    table = checked_table(job, result.items, result.rule.ngram)
    frequencies, distinct = ngram_frequencies(result.documents, job.work, table.grams)
    rare = result.rule.rare(frequencies, distinct)
    prober = _Prober(table, result.rule, ItemGrams(table, len(result.items)), rare, result.rare)
    generator = random.Random(SEED)
    items = np.flatnonzero(result.rare).tolist()
    if not items:
        return {"recall": [], "precision": {"controls": 0, "flagged": 0, "value": None, "low": 0.0, "high": 1.0}}
    rows = generator.choices(_sample_rows(job, result, generator), k=PLANTED)
    pairs = list(zip(rows, generator.choices(items, k=PLANTED), strict=True))
    planter = _Planter(generator, shingler_of(job), rows)
    recall = []
    for kind, plant in planter.kinds():
        hits = prober.items_of([plant(row, result.items.text(item)) for row, item in pairs])
        found = sum(item in own for (_, item), own in zip(pairs, hits, strict=True))
        recall.append({"kind": kind, "planted": PLANTED, "found": found, **_interval(found, PLANTED)})
    controls = prober.items_of([planter.control(row, result.items.text(item)) for row, item in pairs])
    flagged, right = sum(map(bool, controls)), sum(kind["found"] for kind in recall) // len(recall)
    precision = {"controls": PLANTED, "flagged": flagged, **_interval(right, right + flagged)}
    return {"recall": recall, "precision": precision}


def _interval(found: int, of: int) -> dict[str, Any]:
    if not of:
        return {"value": None, "low": 0.0, "high": 1.0}
    low, high = wilson_interval(found / of, of)
    return {"value": found / of, "low": round(float(low), 6), "high": round(float(high), 6)}


def _sample_rows(job: SearchJob, result: Contamination, generator: random.Random) -> list[str]:
    """Return the texts of rows that are not contaminated; an empty one if there are none."""
    clean = result.documents.states == FILLED
    clean[result.best.documents] = False
    numbers = np.flatnonzero(clean).tolist()
    chosen = np.array(sorted(generator.sample(numbers, min(PLANTED, len(numbers)))), dtype=np.int64)
    wanted = np.zeros(len(clean), dtype=bool)
    wanted[chosen] = True
    texts = []
    for first, batch in wanted_batches(job, result.documents, wanted):
        own = np.flatnonzero(wanted[first : first + len(batch)]).tolist()
        texts += [str(batch.values[row].as_buffer(), encoding="utf-8")[:ROW_CHARACTERS] for row in own]
    return texts or [""]


class _Planter:
    """Makes texts from rows and items; its random choices follow from one generator."""

    def __init__(self, generator: random.Random, shingler: Shingler, rows: Sequence[str]) -> None:
        self._generator, self._shingler = generator, shingler
        self._words = sorted({word for row in rows for word in row[:ROW_CHARACTERS].split()[:50]}) or ["word"]

    def kinds(self) -> list[tuple[str, Plant]]:
        """Return the kinds of planted items."""
        kinds: list[tuple[str, Plant]] = [("alone", lambda _, item: item), ("in a row", self._inserted)]
        counts = range(1, MOST_EDITS + 1)
        return kinds + [(f"in a row, {plural(count, 'word')} replaced", self._edited(count)) for count in counts]

    def control(self, row: str, item: str) -> str:
        """Return a row with the words of an item in random order."""
        words = self._item_words(item)
        self._generator.shuffle(words)
        return self._inserted(row, " ".join(words))

    def _inserted(self, row: str, item: str) -> str:
        at = row.find(" ", self._generator.randrange(len(row) + 1))
        at = len(row) if at < 0 else at
        return f"{row[:at]} {item} {row[at:]}"

    def _edited(self, edits: int) -> Plant:
        def plant(row: str, item: str) -> str:
            spans = self._spans(item)
            chosen = sorted(self._generator.sample(spans, min(edits, len(spans))), reverse=True)
            for start, end in chosen:
                item = f"{item[:start]}{self._other_word(item[start:end])}{item[end:]}"
            return self._inserted(row, item)

        return plant

    def _other_word(self, word: str) -> str:
        other = self._generator.choice(self._words)
        return other if other.casefold() != word.casefold() else f"{other}x"

    def _item_words(self, item: str) -> list[str]:
        return [item[start:end] for start, end in self._spans(item)]

    def _spans(self, item: str) -> list[tuple[int, int]]:
        spans = self._shingler.spans(item)
        return list(zip(spans.starts.tolist(), spans.ends.tolist(), strict=True))
