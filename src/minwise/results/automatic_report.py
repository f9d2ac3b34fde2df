"""Automatic report: a result that is being written in; report.html and run.json beside its other files out.

Nobody asked for the page, so it may cost no more than 0.15 s or 5 % of the run. Reading texts again would cost more,
0.3 s of 1.7 s on 100 MB. So it shows what was read of candidates anyway, and leaves the rest to ``minwise report``.
"""

import json
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from minwise.engines.found import Found
from minwise.formats.sets import SetsSource
from minwise.formats.source import Source
from minwise.formats.standard_input import StandardInput
from minwise.formats.table import TableSource
from minwise.results.run_facts import RunFacts
from minwise.results.samples import Place, Shown, find_places, read_texts, shown_documents, shown_text

__all__ = ["write_json", "write_run"]

# Sources of so many bytes together are read once more for texts that are not remembered: a few hundredths of a second.
SMALL_BYTES = 4 * 10**6

Texts = dict[Shown, str]


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Writes values for people and programs to read."""
    path.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_run(folder: Path, report: dict[str, Any], found: Found, run: RunFacts) -> None:
    """Writes what differs from run to run: ``report.html``, which shows how long the run took, and ``run.json``."""
    with run.watch.unseen("report"):
        page = _page(report, found, run)
        if page is not None:
            (folder / "report.html").write_text(page, encoding="utf-8")
    write_json(folder / "run.json", run.to_dict(found))


def _page(report: dict[str, Any], found: Found, run: RunFacts) -> str | None:
    """The page; None, and a warning, if a bug is in the way: the rest of the output is worth more."""
    try:
        from minwise.report.page import report_page  # takes its time, and only those who write need it

        shown = shown_documents(report)
        texts = _texts(found, find_places(found.documents.corpus.sources, shown))
        missing = 0 if found.settings.shingler is None else len(shown) - len(texts)
        note = _note(missing, found.documents.corpus.sources) if missing else ""
        return report_page(report, run.to_dict(found), texts, texts_note=note)
    except Exception as error:
        warnings.warn(f"report.html could not be made, a bug in minwise, please report it: {error!r}", stacklevel=2)
        return None


def _texts(found: Found, places: dict[Shown, Place]) -> Texts:
    """The texts that were read as candidates' and are remembered, and those of small sources."""
    texts: Texts = {}
    documents = found.documents
    if found.settings.shingler is None:
        return texts
    for shown, (source, row) in places.items():
        text = found.remembered.get(int(documents.starts[source]) + row)
        if text is not None:
            texts[shown] = shown_text(text)
    corpus = documents.corpus
    missing = {shown: place for shown, place in places.items() if shown not in texts}
    if (
        sum(map(_bytes, (corpus.sources[number] for number in {source for source, _ in missing.values()})))
        <= SMALL_BYTES
    ):
        read = read_texts(corpus.sources, corpus.columns, list(missing.values()))
        texts |= {shown: read[place] for shown, place in missing.items() if place in read}
    return texts


def _bytes(source: Source) -> float:
    """The size of a source; more than any if a server would have to be asked."""
    return math.inf if any("://" in path for path in source.paths()) else source.size_bytes()


def _note(missing: int, sources: Sequence[Source]) -> str:
    """Why texts are not there, and what adds them."""
    if any(isinstance(source, SetsSource) for source in sources):
        return ""
    what = f"The texts of {missing:,} documents were not read, to keep the run short"
    if any(isinstance(source, (TableSource, StandardInput)) for source in sources):
        return f"{what}."
    return f"{what}; minwise report, with this directory, adds them."
