"""Counts of a report by value, where the values of a column decide which documents are compared."""

from typing import Any

import numpy as np

from minwise.results.removals import DedupDecision
from minwise.search.bands import FAULTY

__all__ = ["value_counts"]

# Values that a report lists.
LISTED_VALUES = 1000
COUNTS = ("read", "kept", "removed", "quarantined")


def value_counts(decision: DedupDecision) -> dict[str, Any]:
    """Return the key ``values`` of a report: rows read, kept, removed and quarantined of each value, most rows first.

    The first of two values with equally many rows is the one that occurs first. Values above the limit are one entry,
    ``rest``, with their number. Without such a column there is no key.
    """
    search = decision.search
    if search.labels is None:
        return {}
    (setting, column), (codes, labels) = next(iter(search.settings.value_settings.items())), search.labels
    own = slice(search.documents.protected, None)
    codes, faulty = codes[own], search.documents.states[own] == FAULTY
    read, kept, quarantined = (
        np.bincount(rows, minlength=len(labels)) for rows in (codes, codes[decision.keep], codes[faulty])
    )
    counts = np.stack([read, kept, read - kept - quarantined, quarantined], axis=1)
    order = np.argsort(-read, kind="stable")[: np.count_nonzero(read)]
    listed, others = order[:LISTED_VALUES].tolist(), counts[order[LISTED_VALUES:]]
    rows = [{"value": labels[code].as_py(), **_named(counts[code])} for code in listed]
    rest = {"rest": {"values": len(others), **_named(others.sum(axis=0))}} if len(others) else {}
    return {"values": {"column": column, "setting": setting, "values": rows, **rest}}


def _named(counts: Any) -> dict[str, int]:  # noqa: ANN401 - a row of counts
    return dict(zip(COUNTS, counts.tolist(), strict=True))
