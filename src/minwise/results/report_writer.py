"""Samples: a report in, the texts of the documents that its page shows out."""

import json
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from minwise._internal.atomic import atomic_writer
from minwise.checks import check_path
from minwise.errors import FormatError, MinwiseError, MismatchError
from minwise.inputs.jsonl import StandardInput
from minwise.inputs.sets import SetsSource
from minwise.inputs.source import Batch, Columns, Source
from minwise.inputs.tables import TableSource
from minwise.inputs.text_files import TextFiles
from minwise.report.cluster_section import SHOWN_CLUSTERS, SHOWN_MEMBERS, SHOWN_PAIRS
from minwise.results.published import Published
from minwise.results.report_data import RunFacts
from minwise.search.engine import Found

__all__ = ["find_places", "read_texts", "shown_documents", "shown_text", "write_json", "write_report", "write_run"]

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


# Settings that choose among pairs that were found. An audit measures how many are found, so it has none of them.
NOT_AUDITED = ("verify", "group", "keep")
# What tells an audit from any other JSON file.
OF_AUDIT = {"minwise": str, "settings": dict, "recall": dict, "precision": dict, "bins": list, "histogram": list}
# Where a page with texts goes that a new one would lose.
WITH_TEXTS = "report-with-texts.html"
# What the page shows of a report.
SHOWN = ("plan", "caps", "clusters", "largest_clusters", "just_below", "unreadable", "warnings")

NANOSECONDS = 10**9

TextsByRow = dict[tuple[str, int], str]


def write_report(
    output: str | PathLike[str],
    *,
    audit: str | PathLike[str] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Path:
    """Writes the page of a run anew, with the texts that its inputs still have, and returns its path.

    Args:
        output: The directory that :func:`dedup` wrote.
        audit: A file that an audit with the settings of the run wrote. It is copied to ``audit.json`` in the directory,
            from where later calls take it.
        on_note: Who is told, in one sentence, if texts are missing on the page.

    Raises:
        MismatchError: If the audit was made with other settings.
        FormatError: If the directory is not the output of a run, or the file is no audit.
    """
    from minwise.report.page import report_page

    published = _open(output)
    given = None if audit is None else check_path("audit", audit)
    stored = published.folder / "audit.json"
    source = given or (stored if stored.is_file() else None)
    measured = None if source is None else _read_audit(source, published)
    texts, note = _read_again(published)
    page = report_page(published.report, published.run, texts, measured, texts_note=note)
    if given is not None:
        _replace(stored, given.read_bytes())
    if note:
        _keep_texts(published.folder, page)
    _replace(published.folder / "report.html", page.encode())
    if note and on_note is not None:
        on_note(note)
    return published.folder / "report.html"


def _open(output: str | PathLike[str]) -> Published:
    """The run, whose report has all that the page shows."""
    published = Published.open(output)
    missing = [name for name in SHOWN if name not in published.report]
    if missing:
        path = published.folder / "report.json"
        raise FormatError(f"{path}: must be written by this minwise, got one without {missing[0]}; run dedup again")
    return published


def _keep_texts(folder: Path, page: str) -> None:
    """Leaves a page that shows more texts than the new one beside it: they may not be had again."""
    old = folder / "report.html"
    if old.is_file() and old.read_text(encoding="utf-8", errors="replace").count("<mark") > page.count("<mark"):
        _replace(folder / WITH_TEXTS, old.read_bytes())


def _replace(path: Path, data: bytes) -> None:
    with atomic_writer(path) as file:
        file.write(data)


def _read_audit(path: Path, published: Published) -> dict[str, Any]:
    """What an audit measured, which must have been of a run like this one."""
    try:
        audit = json.loads(path.read_bytes())
    except ValueError as error:
        raise FormatError(f"{path}: must be an audit of minwise, which is JSON: {error}") from None
    for name, kind in OF_AUDIT.items():
        if not isinstance(audit, dict) or not isinstance(audit.get(name), kind):
            raise FormatError(f"{path}: must be an audit of minwise, got a file without {name}")
    if published.report["plan"] is None:
        raise MismatchError(
            f"{path}: {published.folder} is of an exact run, which misses nothing that could be measured"
        )
    for name, ours in published.report["settings"].items():
        theirs = audit["settings"].get(name)
        if theirs != ours and name not in NOT_AUDITED:
            raise MismatchError(
                f"{path}: must be an audit with the settings of {published.folder}: {name} is {theirs!r} in the audit, "
                f"{ours!r} in the run; audit again"
            )
    _refuse_other_corpus(path, audit, published)
    return dict(audit)


def _refuse_other_corpus(path: Path, audit: dict[str, Any], published: Published) -> None:
    """Raises if the audit was of other documents, as far as their number and size tell."""
    size = published.report["text_bytes"]
    ours = (published.report["counts"]["read"], None if size is None else size["read"])
    theirs = (audit.get("documents"), audit.get("text_bytes") if size is not None else None)
    if ours != theirs:
        raise MismatchError(
            f"{path}: must be an audit of the documents of {published.folder}, got one of {theirs[0]} documents with "
            f"{theirs[1]} bytes, not of {ours[0]} with {ours[1]}"
        )


def _read_again(published: Published) -> tuple[TextsByRow, str]:
    """The texts that the page shows, and why some are not there, if so."""
    shown = shown_documents(published.report)
    if published.report["settings"]["shingle"] == "set":
        return {}, ""
    try:
        sources, changes = _unchanged(published, {name for name, _ in shown})
    except (MinwiseError, OSError) as error:
        return {}, f"No texts are shown: {_reason(error)}."
    places = find_places(sources, shown)
    read = read_texts(sources, published.columns, list(places.values()))
    texts = {one: read[place] for one, place in places.items() if place in read}
    return texts, _change_note(changes) if changes or len(texts) == len(
        shown
    ) else "Some texts could not be read again."


def _unchanged(published: Published, names: set[str]) -> tuple[list[Source], list[str]]:
    """The sources among those that have one of the names which are as they were, and what is different about others."""
    sources, changes = [], []
    for number, files in enumerate(published.files):
        if any(file.name in names for file in files):
            change = published.change(number)
            if change is None:
                sources.append(published.source(number))
            else:
                changes.append(change)
    for source, change in _only_compared(published, names):
        sources.extend([] if source is None else [source])
        changes.extend([] if change is None else [change])
    return sources, changes


def _only_compared(published: Published, names: set[str]) -> Iterator[tuple[Source | None, str | None]]:
    """The files with one of the names that are no inputs, since they were only compared against.

    The run noted no fingerprints of them, but when it began: what was modified later is not what it read.
    """
    listed = {row["source"] for row in published.report["sources"]}
    began = datetime.fromisoformat(published.run["started"]).timestamp() + 1  # noted in whole seconds
    for name in sorted(names - {file.name for files in published.files for file in files}):
        file = published.file(name)
        try:
            modified = file.fingerprint()["modified"]
        except FileNotFoundError:
            yield None, f"{name} is gone since the run"
            continue
        if isinstance(modified, int) and modified < began * NANOSECONDS:
            yield published.open_files([file], as_texts=name not in listed), None
        else:
            yield None, f"{name} may have changed since the run"


def _change_note(changes: list[str]) -> str:
    if not changes:
        return ""
    more = f", and {len(changes) - 1:,} more inputs are not what they were" if len(changes) > 1 else ""
    return f"Some texts are not shown: {changes[0]}{more}."


def _reason(error: Exception) -> str:
    return f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
