"""Counter of repeated passages: which are repeated most."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from minwise.search.passages import DOCUMENT_BITS, PassageRows, Passages, empty_rows, join_rows

__all__ = ["RepeatCounter"]

# Passages that are counted at once, always as many, so that the result does not depend on the memory; and first
# occurrences whose counts are held. Beyond these the rarest are forgotten, and may be counted too low if they return.
COUNTED_AT_ONCE, HELD = 1 << 18, 1 << 20
# Passages that a report names.
NAMED = 10
FIELDS = ("keys", "counts", "sources", "last_source", "tokens", "repeats", "starts", "ends")


class RepeatCounter:
    """Counts how often passages with the same first occurrence repeat it, and in how many sources.

    A passage is its first occurrence from its first token on; of its repeats, which may be of different lengths, the
    shortest counts.
    """

    def __init__(self, passages: Passages) -> None:
        self._starts = passages.documents.starts
        # The count of a passage is that of its L-grams, that of a unit its tokens.
        self._more_tokens = passages.min_tokens - 1 if passages.wanted.unit is None else 0
        self._waiting = empty_rows()
        self._held = {name: np.empty(0, dtype=np.int64) for name in FIELDS}

    def add(self, block: PassageRows) -> PassageRows:
        """Count the passages of a block; return it."""
        waiting = join_rows([self._waiting, block])
        while len(waiting.keys) >= COUNTED_AT_ONCE:
            self._count(waiting.take(slice(COUNTED_AT_ONCE)))
            waiting = waiting.take(slice(COUNTED_AT_ONCE, None))
        self._waiting = waiting
        return block

    def _count(self, rows: PassageRows) -> None:
        """Add rows to the counts."""
        new = self._columns(rows)
        both = {name: np.concatenate([self._held[name], new[name]]) for name in FIELDS}
        order = np.argsort(both["keys"], kind="stable")  # held counts come first, then rows in their order
        both = {name: values[order] for name, values in both.items()}
        keys, sources = both["keys"], both["last_source"]
        first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        same_source = np.concatenate([[False], (keys[1:] == keys[:-1]) & (sources[1:] == sources[:-1])])
        last = np.append(first[1:], len(keys)) - 1
        shortest = self._shortest(both, first)
        self._held = {
            "keys": keys[first],
            "counts": np.add.reduceat(both["counts"], first),
            "sources": np.add.reduceat(np.where(same_source, 0, both["sources"]), first),
            "last_source": sources[last],
            **{name: both[name][shortest] for name in ("tokens", "repeats", "starts", "ends")},
        }
        if len(first) > HELD:
            most = np.sort(np.argsort(-self._held["counts"], kind="stable")[: HELD // 2])
            self._held = {name: values[most] for name, values in self._held.items()}

    def _columns(self, rows: PassageRows) -> dict[str, NDArray[np.int64]]:
        documents = (rows.keys >> DOCUMENT_BITS).astype(np.int64)
        one = np.ones(len(documents), dtype=np.int64)
        return {
            "keys": rows.others.view(np.int64),
            "counts": one,
            "sources": one,
            "last_source": np.searchsorted(self._starts, documents, side="right") - 1,
            "tokens": rows.counts.astype(np.int64) + self._more_tokens,
            "repeats": documents,
            "starts": rows.spans[:, 0].astype(np.int64),
            "ends": rows.spans[:, 1].astype(np.int64),
        }

    @staticmethod
    def _shortest(columns: dict[str, NDArray[np.int64]], first: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the index of the shortest passage of each group; of several, the first."""
        group = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(columns["keys"]))))
        order = np.lexsort((np.arange(len(group)), columns["tokens"], group))
        return order[first]

    def most_repeated(self) -> list[dict[str, Any]]:
        """Return the passages that are repeated most, the longer first of two that are repeated as often."""
        if len(self._waiting.keys):
            self._count(self._waiting)
        held = self._held
        order = np.lexsort((held["keys"], -held["tokens"], -held["counts"]))[:NAMED]
        named = ("counts", "sources", "tokens", "repeats", "starts", "ends")
        rows = zip(*(held[name][order].tolist() for name in named), held["keys"][order].tolist(), strict=True)
        return [
            {
                "first": key >> int(DOCUMENT_BITS) & 0xFFFF_FFFF,
                "repeats": count,
                "sources": sources,
                "tokens": tokens,
                "document": document,
                "start": start,
                "end": end,
            }
            for count, sources, tokens, document, start, end, key in rows
        ]
