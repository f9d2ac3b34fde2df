"""Samples: a report in, the texts of the documents that its page shows out."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from minwise.errors import MinwiseError
from minwise.formats.sets import SetsSource
from minwise.formats.source import Batch, Columns, Source
from minwise.formats.text_files import TextFiles
from minwise.report.limits import SHOWN_CLUSTERS, SHOWN_MEMBERS, SHOWN_PAIRS

__all__ = ["find_places", "read_texts", "shown_documents", "shown_text"]

# Characters of a text that are shown; in UTF-8 none takes more than four bytes.
SHOWN_CHARACTERS = 20_000
# Text that is read at once: little, since nearly all of it is passed over.
READ_BYTES = 1 << 21

# A document as a report names it: its file, and its row in there.
Shown = tuple[str, int]
# The same document as it is read: the number of its source, and its row in that.
Place = tuple[int, int]


def shown_documents(report: dict[str, Any]) -> list[Shown]:
    """Source and row of the documents whose texts the page of a report wants, each once, the most important first."""
    shown: list[dict[str, Any]] = []
    for cluster in report["largest_clusters"][:SHOWN_CLUSTERS]:
        shown += [cluster["kept"], *cluster["members"][:SHOWN_MEMBERS]]
    for pair in (report["just_below"] or {"closest": []})["closest"][:SHOWN_PAIRS]:
        shown += [pair["left"], pair["right"]]
    return list(dict.fromkeys((one["source"], one["row"]) for one in shown))


def find_places(sources: Sequence[Source], shown: Sequence[Shown]) -> dict[Shown, Place]:
    """Where documents of a report are read, in the same order; those that are in none of the sources are left out."""
    names = {name for name, _ in shown}
    tables: dict[str, int] = {}
    files: dict[Shown, Place] = {}
    for number, source in enumerate(sources):
        if isinstance(source, TextFiles):
            paths = enumerate(file.name for file in source.files)
            files |= {(name, 0): (number, row) for row, name in paths if name in names}
        else:
            tables[source.name] = number
    return {
        one: files[one] if one in files else (tables[one[0]], one[1])
        for one in shown
        if one in files or one[0] in tables
    }


def read_texts(sources: Sequence[Source], columns: Columns, wanted: Sequence[Place]) -> dict[Place, str]:
    """The first 20,000 characters of documents, as they are shown.

    Sets have no texts, and a source that can not be read, or not read on, gives none.

    Args:
        sources: Where to read.
        columns: The columns of the text.
        wanted: Number of the source and row in it.
    """
    found: dict[Place, str] = {}
    for number in dict.fromkeys(number for number, _ in wanted):
        rows = sorted({row for of, row in wanted if of == number})
        if isinstance(sources[number], SetsSource):
            continue
        with suppress(OSError, MinwiseError):
            for row, text in _read_rows(sources[number], columns, rows):
                found[number, row] = text
    return found


def _read_rows(source: Source, columns: Columns, rows: list[int]) -> Iterator[tuple[int, str]]:
    """Some rows of a source, ascending, with their texts."""
    flags = np.zeros(max(rows[-1] + 1, source.known_rows() or 0), dtype=bool)
    flags[np.array(rows)] = True
    ahead = iter(rows)
    row = next(ahead, None)
    for batch in source.batches(replace(columns, rank=None), wanted=flags, batch_bytes=READ_BYTES):
        while row is not None and row < batch.first + len(batch):
            text = _row_text(batch, row)
            if text is not None:
                yield row, text
            row = next(ahead, None)
        if row is None:
            return


def _row_text(batch: Batch, row: int) -> str | None:
    """The text of a row as far as it is shown; None if there is none."""
    if row < batch.first or pa.types.is_large_list(batch.texts.type):
        return None
    text = batch.texts[row - batch.first]
    return shown_text(memoryview(text.as_buffer())) if text.is_valid else None


def shown_text(text: bytes | memoryview) -> str:
    """A text as far as it is shown; bytes that are no UTF-8 are replaced."""
    return str(text[: 4 * SHOWN_CHARACTERS], encoding="utf-8", errors="replace")[:SHOWN_CHARACTERS]
