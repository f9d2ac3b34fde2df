"""Samples: a report in, the texts of the documents that its page shows out."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from minwise.errors import MinwiseError
from minwise.formats.sets import SetsSource
from minwise.formats.source import Batch, Columns, Source
from minwise.formats.text_files import TextFiles
from minwise.report.limits import SHOWN_CLUSTERS, SHOWN_MEMBERS, SHOWN_PAIRS

__all__ = ["find_places", "read_texts", "reading_texts", "shown_documents"]

# Characters of a text that are shown; in UTF-8 none takes more than four bytes.
SHOWN_CHARACTERS = 20_000
# Text that is read at once: little, so that a deadline is seen in time.
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


def read_texts(
    sources: Sequence[Source], columns: Columns, wanted: Sequence[Place], deadline: float | None = None
) -> dict[Place, str]:
    """The first 20,000 characters of documents, as they are shown: bytes that are no UTF-8 are replaced.

    Sets have no texts, and a source that can not be read, or not read on, gives none. With a deadline, files behind a
    URL are left out as well: one answer of a server may take longer than all there is time for.

    Args:
        sources: Where to read.
        columns: The columns of the text.
        wanted: Number of the source and row in it; sources are read in the order in which they appear here.
        deadline: When to stop, by ``time.monotonic``; what was not read until then is left out.
    """
    return _read_texts(sources, columns, wanted, _Clock(deadline))


@contextmanager
def reading_texts(
    sources: Sequence[Source], columns: Columns, wanted: Sequence[Place], deadline: float
) -> Iterator[Callable[[float], dict[Place, str]]]:
    """Reads texts in another thread while the caller does something else.

    What is yielded waits for them, and takes the deadline of somebody who waits, if that is earlier.
    """
    clock = _Clock(deadline)
    with ThreadPoolExecutor(1, thread_name_prefix="minwise-samples") as pool:
        texts = pool.submit(_read_texts, sources, columns, wanted, clock)

        def wait(until: float) -> dict[Place, str]:
            clock.deadline = min(deadline, until)
            return texts.result()

        try:
            yield wait
        finally:
            clock.deadline = 0.0  # if the caller failed, nobody waits


class _TooLate(Exception):  # noqa: N818 - it never leaves this module
    """The deadline is over."""


@dataclass(slots=True)
class _Clock:
    """When to stop reading, by ``time.monotonic``; it can be changed while somebody reads."""

    deadline: float | None

    def check(self) -> None:
        """Raises if it is too late to read on."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise _TooLate


def _read_texts(
    sources: Sequence[Source], columns: Columns, wanted: Sequence[Place], clock: _Clock
) -> dict[Place, str]:
    found: dict[Place, str] = {}
    for number in dict.fromkeys(number for number, _ in wanted):
        source = sources[number]
        if isinstance(source, SetsSource) or (clock.deadline is not None and _is_remote(source)):
            continue
        rows = sorted({row for of, row in wanted if of == number})
        with suppress(OSError, MinwiseError, _TooLate):
            for row, text in _read_rows(source, columns, rows, clock):
                found[number, row] = text
    return found


def _is_remote(source: Source) -> bool:
    return any("://" in path for path in source.paths())


def _read_rows(source: Source, columns: Columns, rows: list[int], clock: _Clock) -> Iterator[tuple[int, str]]:
    """Some rows of a source, ascending, with their texts."""
    flags = _Flags(max(rows[-1] + 1, source.known_rows() or 0), dtype=bool)
    flags[:] = False
    flags[np.array(rows)] = True
    flags.clock = clock
    ahead = iter(rows)
    row = next(ahead, None)
    for batch in source.batches(replace(columns, rank=None), wanted=flags, batch_bytes=READ_BYTES):
        while row is not None and row < batch.first + len(batch):
            text = _shown_text(batch, row)
            if text is not None:
                yield row, text
            row = next(ahead, None)
        if row is None:
            return
        clock.check()


class _Flags(np.ndarray[Any, np.dtype[np.bool_]]):
    """Flags that end the reading of whoever looks at them after the deadline.

    A source looks at the flags of the rows before it reads or skips them, but gives no batch of rows that it skips: a
    clock beside the batches would not be looked at until the first wanted row of a large file.
    """

    clock: _Clock | None = None

    def __getitem__(self, key: Any) -> Any:  # noqa: ANN401 - whatever an array takes
        if self.clock is not None:
            self.clock.check()
        return super().__getitem__(key)


def _shown_text(batch: Batch, row: int) -> str | None:
    """The text of a row as far as it is shown; None if there is none."""
    if row < batch.first or pa.types.is_large_list(batch.texts.type):
        return None
    text = batch.texts[row - batch.first]
    if not text.is_valid:
        return None
    start = memoryview(text.as_buffer())[: 4 * SHOWN_CHARACTERS]
    return str(start, encoding="utf-8", errors="replace")[:SHOWN_CHARACTERS]
