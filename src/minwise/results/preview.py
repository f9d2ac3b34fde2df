"""Preview of pairs and clusters: their first rows, with the beginning of each document's text.

A command without an output file shows it. Texts come from the text cache of the search; others are read again.
"""

from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise.results.field_similarities import FieldSimilarities
from minwise.results.pairs import Clustering, expanded_pairs, similarity_column
from minwise.results.report_writer import excerpt, read_texts
from minwise.search.engine import SearchResult

__all__ = ["document_texts", "one_line", "preview_clusters", "preview_pairs"]

# Pairs, and documents of clusters, in a preview.
FIRST_PAIRS = 10
FIRST_DOCUMENTS = 20
# Characters of a text in a preview: more than the width of a terminal.
SNIPPET = 400


def preview_pairs(search: SearchResult, *, field_similarities: bool = False) -> dict[str, Any]:
    """Return the number of pairs, and the first of them with ids, similarity and the beginnings of both texts."""
    blocks = expanded_pairs(search)
    first, total = next(blocks, None), 0
    if first is None:
        return {"pairs": 0, "first": []}
    total = len(first.low) + sum(len(block.low) for block in blocks)
    sides = [side[:FIRST_PAIRS].astype(np.int64) for side in (first.low, first.high)]
    left, right = (search.documents.ids(side).to_pylist() for side in sides)
    left_texts, right_texts = (_snippets(search, side) for side in sides)
    similarity = [None if np.isnan(value) else float(value) for value in first.similarity[:FIRST_PAIRS]]
    names = ("left", "right", search.settings.similarity_name, "left_text", "right_text")
    rows = zip(left, right, similarity, left_texts, right_texts, strict=True)
    shown = [dict(zip(names, row, strict=True)) for row in rows]
    if field_similarities:
        fields = pa.table(
            {name: similarity_column(values) for name, values in FieldSimilarities(search).columns(*sides).items()}
        )
        shown = [{**pair, **more} for pair, more in zip(shown, fields.to_pylist(), strict=True)]
    return {"pairs": total, "first": shown}


def preview_clusters(search: SearchResult, clustering: Clustering) -> dict[str, Any]:
    """Return the number of clusters, and the documents of the first ones with the beginnings of their texts."""
    members = clustering.members(FIRST_DOCUMENTS)
    table = clustering.table(members).to_pylist()
    texts = _snippets(search, members)
    return {
        "clusters": clustering.cluster_count,
        "first": [{**row, "text": text} for row, text in zip(table, texts, strict=True)],
    }


def document_texts(search: SearchResult, documents: NDArray[np.int64]) -> list[str | None]:
    """Return the text of each document, up to 20,000 characters; None for documents that are not texts."""
    if search.settings.shingler is None:
        return [None] * len(documents)
    cached = {number: search.text_cache.get(number) for number in documents.tolist()}
    texts = {number: excerpt(text) for number, text in cached.items() if text is not None}
    missing = np.array([number for number in cached if number not in texts], dtype=np.int64)
    starts, corpus = search.documents.starts, search.documents.corpus
    sources = np.searchsorted(starts, missing, side="right") - 1
    rows = list(zip(sources.tolist(), (missing - starts[sources]).tolist(), strict=True))
    read = read_texts(corpus.sources, corpus.columns, rows)
    texts |= {number: read[row] for number, row in zip(missing.tolist(), rows, strict=True) if row in read}
    return [texts.get(number) for number in documents.tolist()]


def _snippets(search: SearchResult, documents: NDArray[np.int64]) -> list[str | None]:
    """Return the beginning of each text on one line."""
    texts = document_texts(search, documents)
    return [None if text is None else one_line(text) for text in texts]


def one_line(text: str) -> str:
    """Return the beginning of a text with runs of white space and control characters as one blank."""
    printable = "".join(character if character.isprintable() else " " for character in islice(text, 4 * SNIPPET))
    return " ".join(printable.split())[:SNIPPET]
