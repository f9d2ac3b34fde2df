"""Automatic report: a result that is being written in; report.html and run.json beside its other files out.

Nobody asked for the page, so it may cost little: texts that can not be read in time are left to ``minwise report``.
"""

import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from minwise.engines.local import Found
from minwise.formats.sets import SetsSource
from minwise.formats.source import Source
from minwise.formats.standard_input import StandardInput
from minwise.formats.table import TableSource
from minwise.results.run_facts import RunFacts
from minwise.results.samples import Shown, find_places, reading_texts, shown_documents

__all__ = ["reading_samples", "write_json", "write_run"]

# What the page may add to a run: so many seconds, or this share of it.
LEAST_SECONDS = 0.15
SHARE = 0.05
# About what making the page takes once texts are read: a third of it whatever they are, the rest for their differences.
RENDER_SECONDS = 0.1

Texts = dict[Shown, str]


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Writes values for people and programs to read."""
    path.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


@contextmanager
def reading_samples(report: dict[str, Any], found: Found, run: RunFacts) -> Iterator[Callable[[], Texts]]:
    """Reads the texts that the page shows while the caller writes; what is yielded waits for those read in time.

    Beside other work, reading costs at most half of the time it takes, so it may take twice the time it may cost.
    """
    corpus = found.documents.corpus
    allowed = max(LEAST_SECONDS, SHARE * run.watch.seconds) - RENDER_SECONDS
    beside = 1 if 1 in (found.limits.threads, os.cpu_count()) else 2
    began = time.monotonic()
    places = find_places(corpus.sources, shown_documents(report))
    wanted, deadline = list(places.values()), began + beside * allowed
    with reading_texts(corpus.sources, corpus.columns, wanted, deadline) as wait:

        def texts() -> Texts:
            read = wait(began + allowed)
            return {shown: read[place] for shown, place in places.items() if place in read}

        yield texts


def write_run(folder: Path, report: dict[str, Any], found: Found, run: RunFacts, texts: Callable[[], Texts]) -> None:
    """Writes what differs from run to run: ``report.html``, which shows how long the run took, and ``run.json``."""
    with run.watch.unseen("report"):
        page = _page(report, found, run, texts)
        if page is not None:
            (folder / "report.html").write_text(page, encoding="utf-8")
    write_json(folder / "run.json", run.to_dict(found))


def _page(report: dict[str, Any], found: Found, run: RunFacts, texts: Callable[[], Texts]) -> str | None:
    """The page; None, and a warning, if a bug is in the way: the rest of the output is worth more."""
    try:
        from minwise.report.page import report_page  # takes its time, and only those who write need it

        read = texts()
        missing = len(shown_documents(report)) - len(read)
        note = _note(missing, found.documents.corpus.sources) if missing else ""
        return report_page(report, run.to_dict(found), read, texts_note=note)
    except Exception as error:
        warnings.warn(f"report.html could not be made, a bug in minwise, please report it: {error!r}", stacklevel=2)
        return None


def _note(missing: int, sources: Sequence[Source]) -> str:
    """Why texts are not there, and what adds them."""
    if any(isinstance(source, SetsSource) for source in sources):
        return ""
    what = f"The texts of {missing:,} documents were not read, to keep the run short"
    if any(isinstance(source, (TableSource, StandardInput)) for source in sources):
        return f"{what}."
    return f"{what}; minwise report, with this directory, adds them."
