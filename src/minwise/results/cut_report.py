"""Report of cut passages: the content of ``report.json``."""

from typing import Any

import numpy as np

from minwise import _kernel
from minwise.errors import MinwiseError
from minwise.results.notes import reading_notes
from minwise.results.pairs import identities
from minwise.results.report_data import loss_warnings, source_counts, source_losses
from minwise.search.cuts import PassageCuts

__all__ = ["cut_report", "cut_settings"]

# Settings of a search that decide which passages are cut; those of shingles are added.
NAMES = ("seed", "keep")


def cut_report(found: PassageCuts) -> dict[str, Any]:
    """Return plain values, the same for the same documents and settings."""
    documents, shown = found.documents, found.shown()
    sources = source_counts(documents, found.keep)
    return {
        "minwise": _kernel.__version__,
        "kind": "passages",
        "settings": cut_settings(found),
        "on_error": documents.corpus.on_error,
        "counts": _counts(found),
        "tokens": _tokens(found),
        "most_repeated": [_with_identities(found, row, "first", "document") for row in shown["most_repeated"]],
        "examples": [_with_identities(found, row, "document") for row in shown["examples"]],
        "sources": sources,
        "unreadable": documents.unreadable(),
        "duplicate_ids": 0 if (repeated := documents.repeated_ids()) is None else repeated.rows,
        "warnings": loss_warnings(source_losses(sources)),
        **reading_notes(documents),
    }


def cut_settings(found: PassageCuts) -> dict[str, Any]:
    """Return the settings that decide the result."""
    assert found.settings.shingler is not None  # the settings of passages have one
    shingler = {name: value for name, value in found.settings.shingler.settings.items() if name not in ("bag", "seed")}
    return {
        **found.passages.wanted._asdict(),
        **found.rules._asdict(),
        **{name: getattr(found.settings, name) for name in NAMES},
        **shingler,
    }


def _counts(found: PassageCuts) -> dict[str, int]:
    counts, removed = found.documents.counts, int(np.count_nonzero(found.removed))
    kept = int(np.count_nonzero(found.keep))
    if counts["read"] != kept + removed + counts["quarantined"]:
        raise MinwiseError(f"a bug in minwise, please report it: {counts} but {kept} kept and {removed} removed")
    cut = int(np.count_nonzero(found.cut_tokens)) - removed
    return {**counts, "kept": kept, "removed": removed, "cut": cut, "cuts": found.count}


def _tokens(found: PassageCuts) -> dict[str, int]:
    """Return the tokens of the input that were read, cut, left of removed documents, and kept."""
    own = slice(found.documents.protected, None)
    read, cut = (int(counts[own].sum(dtype=np.int64)) for counts in (found.tokens, found.cut_tokens))
    removed = found.removed
    rest = int(found.tokens[removed].sum(dtype=np.int64)) - int(found.cut_tokens[removed].sum(dtype=np.int64))
    return {"read": read, "cut": cut, "removed": rest, "kept": read - cut - rest}


def _with_identities(found: PassageCuts, row: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return a row with id, source and row of its documents."""
    refs = identities(found, np.array([row[name] for name in names], dtype=np.int64))
    return {**row, **dict(zip(names, refs, strict=True))}
