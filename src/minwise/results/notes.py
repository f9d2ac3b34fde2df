"""Notes of a report: how the inputs were read, and documents that the settings do not fit.

Every note follows from the numbers that both engines keep of each document, and from the sampled token counts of the
first pass (:func:`minwise.search.first_pass.token_counts`), so it is the same on every engine. Nothing is read again.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np

from minwise._internal.formatting import plural
from minwise.checks import show
from minwise.search.bands import FILLED
from minwise.search.clustering import CopyGroups
from minwise.search.documents import MOST_TOKENS, Documents
from minwise.settings import SearchSettings
from minwise.text.shingling import Shingler

__all__ = ["reading_notes", "report_notes"]

# Files with faults that a report names, and faults of each.
NAMED_FILES, NAMED_FAULTS = 20, 5
# Minimum number of documents for a note about most of them: with fewer, a user sees it at a glance.
SHORT_MINIMUM, UNIFORM_MINIMUM = 10, 20
# Share of documents that are empty or identical above which the column is probably not that of the text.
UNIFORM_SHARE = 0.9
TOKEN_NAMES = {"word": "words", "char": "characters", "byte": "bytes"}


def report_notes(documents: Documents, copies: CopyGroups, settings: SearchSettings) -> dict[str, Any]:
    """Return the keys ``notes`` and ``inputs`` of a report: sentences, and the numbers of the inputs behind them."""
    inputs = _input_facts(documents)
    notes = [
        *_reading_notes(inputs),
        *_id_notes(documents),
        *_short_notes(documents, settings.shingler),
        *_uniform_notes(documents, copies, of_texts=settings.shingler is not None),
    ]
    return {"notes": notes, "inputs": inputs}


def reading_notes(documents: Documents) -> dict[str, Any]:
    """Return the keys ``notes`` and ``inputs`` of a report that has no near-duplicates."""
    inputs = _input_facts(documents)
    return {"notes": [*_reading_notes(inputs), *_id_notes(documents)], "inputs": inputs}


def _reading_notes(inputs: dict[str, Any]) -> Iterator[str]:
    for entry in inputs["read_as"]:
        yield f"{plural(entry['files'], 'file')} read as {entry['how']}"


def _id_notes(documents: Documents) -> Iterator[str]:
    repeated = documents.repeated_ids()
    if repeated is not None:
        ids = f"{plural(repeated.ids, 'id')} {'occurs' if repeated.ids == 1 else 'occur'} more than once"
        share = f"{plural(repeated.example_rows, 'row')} share the id {show(repeated.example)}"
        yield f"{share} ({ids}); rows are told apart by source and row"


def _short_notes(documents: Documents, shingler: Shingler | None) -> Iterator[str]:
    """Yield a note if more than half of the documents that are not empty have fewer tokens than a shingle."""
    counts = documents.sampled_tokens()[1:]
    total, filled = int(counts.sum()), documents.count(FILLED)
    if shingler is None or shingler.size > MOST_TOKENS or filled < SHORT_MINIMUM:
        return
    short = int(counts[: shingler.size - 1].sum())
    if 2 * short <= total:
        return
    median = 1 + int(np.searchsorted(np.cumsum(counts), total / 2))
    about = "" if documents.sampled_whole else "about "
    yield (
        f"{about}{round(short * filled / total):,} of {filled:,} documents have fewer than the {shingler.size} "
        f"{TOKEN_NAMES[shingler.kind]} of a shingle, so they match only if they are the same in full; "
        f"{_fitting_shingles(shingler.kind, median)} fits such texts"
    )


def _fitting_shingles(kind: str, median: int) -> str:
    """Return shingles of which a document with ``median`` tokens has several."""
    smaller = f"shingle='{kind}:{max(1, median // 2)}'"
    if kind != "word":
        return smaller
    return f"shingle='char:5' or {smaller}" if median >= 4 else "shingle='char:5'"


def _uniform_notes(documents: Documents, copies: CopyGroups, *, of_texts: bool) -> Iterator[str]:
    """Yield a note if almost all documents are empty, or identical to one of them."""
    counts, total = documents.counts, documents.counts["documents"]
    columns = ", ".join(documents.corpus.columns.text)
    remedy = f"; check that {show(columns)} is the column of the text" if of_texts else ""
    identical = _largest_group(copies, documents.first_counted)
    for number, what in ((counts["empty"], "empty"), (identical, "identical")):
        if total >= UNIFORM_MINIMUM and number >= UNIFORM_SHARE * total:
            yield f"{number:,} of {total:,} documents are {what}{remedy}"


def _largest_group(copies: CopyGroups, first: int) -> int:
    """Return how many ranks from ``first`` on, which are of the input, the largest group of identical documents has."""
    if not len(copies):
        return 0
    own = (copies.members >= first).astype(np.int64)
    return int(np.add.reduceat(own, copies.starts[:-1].astype(np.int64)).max())


def _input_facts(documents: Documents) -> dict[str, Any]:
    """Return how many files were read in which way, what was skipped, and the first faults of each file.

    ``faults`` has at most 20 files, each with the number of its faults, whether one reason holds for the whole file,
    and the first five of them.
    """
    read_as = [{"how": how, "files": files} for how, files in sorted(_ways_of_reading(documents).items())]
    return {"read_as": read_as, "skipped": dict(documents.corpus.skipped), "faults": _faults_by_file(documents)}


def _ways_of_reading(documents: Documents) -> "Counter[str]":
    ways: Counter[str] = Counter()
    for source in chain.from_iterable(source.origins() for source in documents.corpus.sources):
        how = source.reading()
        if how is not None:
            ways[how] += max(1, len(source.paths()))
    return ways


def _faults_by_file(documents: Documents) -> list[dict[str, Any]]:
    files: dict[str, dict[str, Any]] = {}
    for fault in documents.faults():
        if fault["source"] not in files and len(files) == NAMED_FILES:
            continue
        entry = files.setdefault(fault["source"], {"source": fault["source"], "faults": 0, "whole": False, "first": []})
        if fault["row"] is None and fault["reason"] in {one["reason"] for one in entry["first"]}:
            entry["whole"] = True  # the reason why no row can be used, which each row has
            continue
        entry["faults"] += 1
        if len(entry["first"]) < NAMED_FAULTS:
            entry["first"].append({"row": fault["row"], "reason": fault["reason"]})
    return list(files.values())
