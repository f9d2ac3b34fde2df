"""Common phrases of a weighted search: the texts of the shingles that count least, for its report."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minwise.search.weighting import read_frequencies
from minwise.search.workdir import WorkDirectory
from minwise.sketches.frequencies import FrequencyTable, element_slots
from minwise.text.shingling import Shingler, ShingleSpans

__all__ = ["COMMON", "DocumentSets", "common_slots", "spilled_sets", "write_common_phrases"]

# Name of the list in the work directory.
COMMON = "common"
# Slots of the table of frequencies that are searched, documents that are read for them, and phrases that are listed.
COMMON_SLOTS, READ_DOCUMENTS, LISTED_PHRASES = 512, 20, 20
# Ratio of the frequencies of two neighbouring shingles above which a phrase ends: its number holds for all of it.
CHANGED_FREQUENCY = 2
# Code points of a phrase that are shown.
PHRASE_LENGTH = 200

# Documents, ascending; offsets and elements of their sets.
DocumentSets = tuple[NDArray[Any], NDArray[np.int64], NDArray[np.uint64]]


def write_common_phrases(
    work: WorkDirectory, shingler: Shingler, sets: Iterable[DocumentSets], read: Callable[[int], str | None]
) -> None:
    """Write the phrases that count least to the work directory, those of most documents first.

    Phrases are taken from the first documents that have the most frequent shingles, so that they depend only on the
    documents and the settings.

    Args:
        work: The work directory, which has the frequencies.
        shingler: Cuts the texts into shingles.
        sets: The sets of documents in order, at least those with the first occurrence of a frequent shingle.
        read: Returns the text of a document; None if it cannot be read.
    """
    finder = _PhraseFinder(read_frequencies(work), shingler)
    for document in islice(finder.documents(sets), READ_DOCUMENTS):
        text = read(document)
        finder.add("" if text is None else text)
    found = sorted(finder.phrases, key=lambda phrase: -phrase["documents"])[:LISTED_PHRASES]
    work.write_json(COMMON, {"phrases": found})


def spilled_sets(work: WorkDirectory) -> Iterator[DocumentSets]:
    """Yield the sets of the work directory with their documents."""
    documents, first = work.open("sets").read("documents"), 0
    for file in map(work.open, work.names("sets-")):
        offsets = file.read("offsets").astype(np.int64)
        yield documents[first : first + len(offsets) - 1], offsets, file.map("elements")
        first += len(offsets) - 1


def common_slots(table: FrequencyTable) -> NDArray[np.int64]:
    """Return the slots of the most frequent elements; those of one document are not frequent."""
    most = min(COMMON_SLOTS, len(table.counts))
    least = max(2, int(np.partition(table.counts, -most)[-most]))  # a sort takes three times as long
    frequent = np.flatnonzero(table.counts >= least)
    return frequent[np.argsort(-table.counts[frequent].astype(np.int64), kind="stable")[:most]]


class _PhraseFinder:
    """Collects the phrases of the most frequent shingles.

    Attributes:
        phrases: Text, number of documents and weight of each.
    """

    def __init__(self, table: FrequencyTable, shingler: Shingler) -> None:
        self.table, self.shingler, self.weights = table, shingler, table.weights(1)
        self.bits = len(table.counts).bit_length() - 1
        self.is_common = np.zeros(len(table.counts), dtype=bool)
        slots = common_slots(table)
        self.is_common[slots] = True
        # A frame may have more shingles than the slots that are searched: those of similar frequency complete it.
        self.least = max(2, int(table.counts[slots].min(initial=2)) // CHANGED_FREQUENCY)
        self.seen = np.empty(0, dtype=np.uint64)
        self.phrases = list[dict[str, Any]]()

    def documents(self, sets: Iterable[DocumentSets]) -> Iterator[int]:
        """Yield the documents in order that have a common shingle that was in no text so far."""
        for documents, offsets, elements in sets:
            places = np.flatnonzero(self.is_common[self._slots(elements)])
            while len(places := places[~np.isin(elements[places], self.seen)]):
                row = int(np.searchsorted(offsets, places[0], side="right")) - 1
                yield int(documents[row])
                places = places[places >= offsets[row + 1]]

    def add(self, text: str) -> None:
        """Add the phrases of a text: runs of common shingles that were in no text so far."""
        spans = self.shingler.spans(text)
        slots = self._slots(spans.hashes)
        counts = self.table.counts[slots].astype(np.int64)
        places = np.flatnonzero((counts >= self.least) & ~np.isin(spans.hashes, self.seen))
        self.seen = np.union1d(self.seen, spans.hashes[places])
        for run in _most_frequent_runs(spans, counts, places, self.is_common[slots]):
            rarest = run[np.argmin(counts[run])]
            self.phrases.append(
                {
                    "text": self._shown(text, int(spans.starts[run[0]]), int(spans.ends[run[-1]])),
                    "documents": int(counts[rarest]),
                    "weight": round(float(self.weights.of(spans.hashes[rarest : rarest + 1])[0]), 6),
                }
            )

    def _shown(self, text: str, start: int, end: int) -> str:
        if self.shingler.kind == "byte":
            return text.encode()[start : min(end, start + PHRASE_LENGTH)].decode(errors="replace")
        return text[start : min(end, start + PHRASE_LENGTH)]

    def _slots(self, elements: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return element_slots(elements, self.bits)


def _most_frequent_runs(
    spans: ShingleSpans, counts: NDArray[np.int64], places: NDArray[np.int64], needed: NDArray[np.bool_]
) -> list[NDArray[np.int64]]:
    """Return the runs of shingles without a gap and of similar frequency, as many as are listed.

    Args:
        spans: Shingles of a text.
        counts: Frequency of each.
        places: Shingles of which runs consist.
        needed: Shingles of which a run must have at least one.
    """
    if not len(places):
        return []
    before, after = places[:-1], places[1:]
    gap = spans.starts[after] > spans.ends[before]
    low, high = np.minimum(counts[before], counts[after]), np.maximum(counts[before], counts[after])
    firsts = np.flatnonzero(np.concatenate([[True], gap | (high > CHANGED_FREQUENCY * low)]))
    least = np.minimum.reduceat(counts[places], firsts)
    # A single frequent shingle among rare ones is mostly a rare one in the slot of a frequent one.
    longer = np.diff(np.append(firsts, len(places))) > 1
    runs = np.flatnonzero(np.logical_or.reduceat(needed[places], firsts) & longer)
    most = runs[np.argsort(-least[runs], kind="stable")[:LISTED_PHRASES]]
    ends = np.append(firsts[1:], len(places))
    return [places[firsts[run] : ends[run]] for run in np.sort(most)]
