"""Report writer: ``report.html`` with the texts of the documents that it shows, and ``run.json``.

At the end of a run, texts come from the text cache of the search, and from sources of up to 4 MB, which are read once
more. :func:`write_report` writes the page of an earlier run again, with texts read from its inputs as far as these are
unchanged, and with the figures of an audit.
"""

import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from minwise._internal.temporary import output_writer
from minwise.checks import check_path
from minwise.errors import ConfigError, FormatError, MinwiseError, MismatchError
from minwise.inputs.document_values import ValueColumn
from minwise.inputs.memory_sources import SetsSource, TableSource
from minwise.inputs.source import Batch, Columns, Source
from minwise.inputs.standard_input import StandardInput
from minwise.inputs.text_files import TextFiles
from minwise.options import EndingOptions, definitions, lists_faults
from minwise.report.cluster_section import SHOWN_CLUSTERS, SHOWN_MEMBERS, SHOWN_PAIRS
from minwise.results.finished_run import NANOSECONDS, FinishedRun
from minwise.results.report_data import RunRecord
from minwise.search.documents import Documents
from minwise.search.engine import FinishedSearch, SearchResult
from minwise.search.stored_state import StateSource

__all__ = [
    "change_note",
    "convert_run_texts",
    "excerpt",
    "failure_reason",
    "locate_documents",
    "read_bytes",
    "read_labels",
    "read_rows",
    "read_run_texts",
    "read_texts",
    "read_whole_texts",
    "shown_documents",
    "write_cut_files",
    "write_json",
    "write_quarantine",
    "write_report",
    "write_run_files",
]

# Characters of a text that are shown; in UTF-8 a character takes at most four bytes.
SHOWN_CHARACTERS = 20_000
# Bytes of text per batch: little, because most of it is skipped.
READ_BYTES = 1 << 21
# Sources of up to this size together are read once more for texts that are not cached; this takes about 0.02 s.
SMALL_BYTES = 4 * 10**6
# Settings that choose among the pairs that were found. An audit measures how many are found, so it has none of them.
NOT_AUDITED = ("verify", "group", "keep", *definitions(EndingOptions))
# Name of an earlier page that shows texts which the new page cannot show.
WITH_TEXTS = "report-with-texts.html"
# Element that the page has once for each two texts it shows.
TEXTS_SHOWN = '<div class="sides'
# Keys of a report that the page shows.
PAGE_KEYS = ("plan", "caps", "clusters", "largest_clusters", "just_below", "unreadable", "warnings")

# Those of other kinds of outputs.
OTHER_PAGE_KEYS = {
    "passages": ("tokens", "most_repeated", "examples", "unreadable", "warnings"),
    "decontamination": ("items", "most_found"),
}

# A document as a report names it: its file, and its row in that file.
DocumentName = tuple[str, int]
# The same document as it is read: the number of its source, and its row in that source.
SourceRow = tuple[int, int]
Texts = dict[DocumentName, str]
# What is shown of a text.
Shown = TypeVar("Shown")
# Why the texts of documents are missing, as a part of a sentence.
Reasons = dict[DocumentName, str]


def shown_documents(report: dict[str, Any]) -> list[DocumentName]:
    """Return the documents whose texts the page of a report shows, each once, the most important first."""
    shown: list[dict[str, Any]] = []
    for cluster in report["largest_clusters"][:SHOWN_CLUSTERS]:
        shown += [cluster["kept"], *cluster["members"][:SHOWN_MEMBERS]]
    for pair in (report["just_below"] or {"closest": []})["closest"][:SHOWN_PAIRS]:
        shown += [pair["left"], pair["right"]]
    return list(dict.fromkeys((document["source"], document["row"]) for document in shown))


def locate_documents(sources: Sequence[Source], names: Sequence[DocumentName]) -> dict[DocumentName, SourceRow]:
    """Return where documents are read, in the same order; documents of other sources are left out."""
    file_names = {name for name, _ in names}
    tables: dict[str, int] = {}
    files: dict[DocumentName, SourceRow] = {}
    for number, source in enumerate(sources):
        if isinstance(source, TextFiles):
            paths = enumerate(file.name for file in source.files)
            files |= {(name, 0): (number, row) for row, name in paths if name in file_names}
        else:
            tables[source.name] = number
    located: dict[DocumentName, SourceRow] = {}
    for name in names:
        index = sources[tables[name[0]]].index_of(name[1]) if name[0] in tables else None
        if name in files:
            located[name] = files[name]
        elif index is not None:
            located[name] = (tables[name[0]], index)
    return located


def read_texts(sources: Sequence[Source], columns: Columns, rows: Sequence[SourceRow]) -> dict[SourceRow, str]:
    """Return the first 20,000 characters of documents.

    Sets have no texts. A source that cannot be read gives the texts before the error, or none.

    Args:
        sources: The sources to read.
        columns: The columns of the text.
        rows: Number of the source, and row in it.
    """
    return dict(_read(sources, columns, rows, excerpt))


def _read(
    sources: Sequence[Source], columns: Columns, rows: Sequence[SourceRow], convert: Callable[[memoryview], Shown]
) -> Iterator[tuple[SourceRow, Shown]]:
    """Yield documents with what ``convert`` makes of their texts."""
    return read_rows(sources, columns, rows, lambda _, text: convert(text))


def read_rows(
    sources: Sequence[Source],
    columns: Columns,
    rows: Sequence[SourceRow],
    convert: Callable[[SourceRow, memoryview], Shown],
) -> Iterator[tuple[SourceRow, Shown]]:
    """Yield documents with what ``convert`` makes of them and their texts; see :func:`read_texts`.

    Only the batches with one of the rows are read, and one text is held at a time.
    """
    for number in dict.fromkeys(number for number, _ in rows):
        ascending = sorted({row for source, row in rows if source == number})
        if isinstance(sources[number], SetsSource):
            continue
        with suppress(OSError, MinwiseError):
            sources[number].refuse_changes()
            for row, text in _read_rows(sources[number], columns, ascending):
                yield (number, row), convert((number, row), text)


def _read_rows(source: Source, columns: Columns, rows: list[int]) -> Iterator[tuple[int, memoryview]]:
    """Yield ascending rows of a source with their texts."""
    wanted = np.zeros(max(rows[-1] + 1, source.known_rows() or 0), dtype=bool)
    wanted[np.array(rows)] = True
    remaining = iter(rows)
    row = next(remaining, None)
    for batch in source.batches(replace(columns, values=()), wanted=wanted, batch_bytes=READ_BYTES):
        while row is not None and row < batch.first + len(batch):
            text = _row_text(batch, row)
            if text is not None:
                yield row, text
            row = next(remaining, None)
        if row is None:
            return
        del batch  # before the next one is read


def read_labels(source: Source, columns: Columns, row: int, names: Sequence[str]) -> dict[str, str | None]:
    """Return the labels of a row in columns; nothing if it cannot be read."""
    values = {name: ValueColumn(name, is_label=True) for name in names}
    wanted = np.zeros(max(row + 1, source.known_rows() or 0), dtype=bool)
    wanted[row] = True
    for batch in source.batches(replace(columns, values=tuple(values.values())), wanted=wanted):
        if batch.first <= row < batch.first + len(batch):
            found = {name: batch.document_values.get(column.key) for name, column in values.items()}
            return {name: None if one is None else one[row - batch.first].as_py() for name, one in found.items()}
    return {}


def _row_text(batch: Batch, row: int) -> memoryview | None:
    """Return the text of a row; None if it has none."""
    if row < batch.first or pa.types.is_large_list(batch.values.type):
        return None
    text = batch.values[row - batch.first]
    return memoryview(text.as_buffer()) if text.is_valid else None


def read_whole_texts(search: SearchResult, documents: Sequence[int]) -> dict[int, bytes]:
    """Return the texts of documents by number: from the text cache, and otherwise from their sources; none of sets."""
    if search.settings.shingler is None:
        return {}
    corpus, starts = search.documents.corpus, search.documents.starts
    texts = {document: text for document in documents if (text := search.text_cache.get(document)) is not None}
    rows: dict[SourceRow, int] = {}
    for document in (document for document in documents if document not in texts):
        source = int(np.searchsorted(starts, document, side="right")) - 1
        rows[source, document - int(starts[source])] = document
    read = _read(corpus.sources, corpus.columns, list(rows), bytes)
    return texts | {rows[row]: text for row, text in read}


def excerpt(text: bytes | memoryview) -> str:
    """Return the part of a text that the page shows; bytes that are not UTF-8 are replaced."""
    return str(text[: 4 * SHOWN_CHARACTERS], encoding="utf-8", errors="replace")[:SHOWN_CHARACTERS]


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write values as indented JSON."""
    path.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_cut_files(folder: Path, report: dict[str, Any], search: FinishedSearch, run: RunRecord) -> None:
    """Write ``report.html`` and ``run.json`` of a run that cut passages."""
    from minwise.report.cut_page import cut_page  # here, because importing it is slow and few calls write

    with run.watch.timed("report"):
        (folder / "report.html").write_text(cut_page(report, run.to_dict(search)), encoding="utf-8")
    write_json(folder / "run.json", run.to_dict(search))


def write_quarantine(path: Path, documents: Documents) -> None:
    """Write the faults of the input as JSON lines, if there are any and they are to be listed."""
    if not lists_faults(documents.corpus.on_error):
        return
    faults = documents.faults()
    first = next(faults, None)
    if first is not None:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(fault, ensure_ascii=False) + "\n" for fault in chain([first], faults))


def write_run_files(folder: Path, report: dict[str, Any], search: SearchResult, run: RunRecord) -> None:
    """Write the files that differ from run to run: ``report.html``, which shows durations, and ``run.json``."""
    with run.watch.timed("report"):
        page = _page(report, search, run)
        if page is not None:
            (folder / "report.html").write_text(page, encoding="utf-8")
    write_json(folder / "run.json", run.to_dict(search))


def _page(report: dict[str, Any], search: SearchResult, run: RunRecord) -> str | None:
    """Return the page; on a bug, warn and return None, because the rest of the output must not be lost."""
    try:
        from minwise.report.page import report_page  # here, because importing it is slow and few calls write

        sources = search.documents.corpus.sources
        shown = shown_documents(report)
        texts = _texts(search, locate_documents(sources, shown))
        missing = [] if search.settings.shingler is None else [name for name in shown if name not in texts]
        reasons = _missing_reasons(missing, sources)
        note = _missing_note(len(missing), sources) if missing else ""
        return report_page(report, run.to_dict(search), texts, texts_note=note, reasons=reasons)
    except Exception as error:
        warnings.warn(f"report.html could not be made, a bug in minwise, please report it: {error!r}", stacklevel=2)
        return None


def _texts(search: SearchResult, rows: dict[DocumentName, SourceRow]) -> Texts:
    """Return the cached texts, and those of small sources."""
    texts: Texts = {}
    documents = search.documents
    if search.settings.shingler is None:
        return texts
    for name, (source, row) in rows.items():
        text = search.text_cache.get(int(documents.starts[source]) + row)
        if text is not None:
            texts[name] = excerpt(text)
    corpus = documents.corpus
    missing = {name: row for name, row in rows.items() if name not in texts}
    if sum(read_bytes(corpus.sources[number]) for number in {source for source, _ in missing.values()}) <= SMALL_BYTES:
        read = read_texts(corpus.sources, corpus.columns, list(missing.values()))
        texts |= {name: read[row] for name, row in missing.items() if row in read}
    return texts


def read_bytes(source: Source) -> float:
    """Return the size of a source; infinite if it is remote."""
    return math.inf if any("://" in path for path in source.paths()) else source.size_bytes()


def _missing_reasons(missing: Sequence[DocumentName], sources: Sequence[Source]) -> Reasons:
    """Return why each of the missing texts is not shown."""
    located = locate_documents(sources, missing)
    return {name: _missing_reason(sources[located[name][0]] if name in located else None) for name in missing}


def _missing_reason(source: Source | None) -> str:
    if isinstance(source, StateSource):
        return "its run saved a state, which has no texts"
    if isinstance(source, StandardInput):
        return "standard input cannot be read a second time"
    if source is None or isinstance(source, TableSource):
        return "its input was in memory"
    if read_bytes(source) == math.inf:
        return "its input is remote, and a run does not read it a second time"
    if read_bytes(source) > SMALL_BYTES:
        return "its input is too large for a run to read it a second time"
    return "it could not be read a second time"


def _missing_note(missing: int, sources: Sequence[Source]) -> str:
    """Return why texts are missing, and the command that adds them."""
    if any(isinstance(source, SetsSource) for source in sources):
        return ""
    reason = f"The texts of {missing:,} documents were not read, to keep the run short"
    if any(isinstance(source, (TableSource, StandardInput)) for source in sources):
        return f"{reason}."
    return f"{reason}; minwise report, with this directory, adds them."


def write_report(
    output: str | PathLike[str],
    *,
    audit: str | PathLike[str] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Path:
    """Write the page of an earlier run again, with the texts that its inputs still have, and return its path.

    Args:
        output: The directory that :func:`minwise.dedup` or :func:`minwise.decontaminate` wrote.
        audit: A file that an audit with the settings of the run wrote; none of other runs than deduplications. It is
            copied to ``audit.json`` in the directory, where later calls read it.
        on_note: Called with one sentence if texts are missing on the page.

    Raises:
        MismatchError: If the audit was made with other settings.
        FormatError: If the directory is not the output of a run, or the file is not an audit.
    """
    from minwise.report.page import report_page

    run = _open_run(output)
    if run.kind != "dedup":
        return _write_other_report(run, audit, on_note)
    given = None if audit is None else check_path("audit", audit)
    stored = run.folder / "audit.json"
    source = given or (stored if stored.is_file() else None)
    figures = None if source is None else _read_audit(source, run)
    texts, reasons, note = _read_again(run)
    page = report_page(run.report, run.record, texts, figures, texts_note=note, reasons=reasons)
    if given is not None:
        _replace_file(stored, given.read_bytes())
    if note:
        _preserve_texts(run.folder, page)
    _replace_file(run.folder / "report.html", page.encode())
    if note and on_note is not None:
        on_note(note)
    return run.folder / "report.html"


def _write_other_report(
    run: FinishedRun, audit: str | PathLike[str] | None, on_note: Callable[[str], None] | None
) -> Path:
    """Write the page of a run that cut passages or found evaluation items again."""
    if audit is not None:
        reason = "the run found every passage" if run.kind == "passages" else "its report has figures of its own"
        raise ConfigError(f"{run.folder}: audit must be left out, got {audit}: {reason}")
    page, note = _cut_page(run) if run.kind == "passages" else _contamination_page(run)
    if note:
        _preserve_texts(run.folder, page, "<mark>")
    _replace_file(run.folder / "report.html", page.encode())
    if note and on_note is not None:
        on_note(note)
    return run.folder / "report.html"


def _cut_page(run: FinishedRun) -> tuple[str, str]:
    """Return the page of a run that cut passages; its report has all texts that the page shows."""
    from minwise.report.cut_page import cut_page

    return cut_page(run.report, run.record), ""


def _contamination_page(run: FinishedRun) -> tuple[str, str]:
    """Return the page of a decontamination, and a note if texts are missing."""
    from minwise.report.contamination_page import contamination_page
    from minwise.results.stored_hits import shown_hits  # here, because it imports this module

    hits, note = shown_hits(run)
    return contamination_page(run.report, run.record, hits), note


def _open_run(output: str | PathLike[str]) -> FinishedRun:
    """Open a run whose report has everything that the page shows."""
    run = FinishedRun.open(output, kinds=("dedup", *OTHER_PAGE_KEYS))
    missing = [name for name in OTHER_PAGE_KEYS.get(run.kind, PAGE_KEYS) if name not in run.report]
    if missing:
        path = run.folder / "report.json"
        raise FormatError(f"{path}: must be written by this minwise, got one without {missing[0]}; run it again")
    return run


def _preserve_texts(folder: Path, page: str, shown: str = TEXTS_SHOWN) -> None:
    """Copy the old page under another name if it shows more texts than the new one: they may be lost otherwise."""
    old = folder / "report.html"
    if old.is_file() and old.read_text(encoding="utf-8", errors="replace").count(shown) > page.count(shown):
        _replace_file(folder / WITH_TEXTS, old.read_bytes())


def _replace_file(path: Path, data: bytes) -> None:
    with output_writer(path) as file:
        file.write(data)


def _read_audit(path: Path, run: FinishedRun) -> dict[str, Any]:
    """Return the figures of an audit, which must match the run."""
    from minwise.results.output_schema import StoredAudit, decode  # here: msgspec takes 10 ms

    audit = decode(path, path.read_bytes(), StoredAudit, "must be an audit of minwise")
    if run.report["plan"] is None:
        raise MismatchError(f"{path}: {run.folder} is of an exact run, which misses nothing that could be measured")
    for name, ours in run.report["settings"].items():
        theirs = audit["settings"].get(name)
        if theirs != ours and name not in NOT_AUDITED:
            raise MismatchError(
                f"{path}: must be an audit with the settings of {run.folder}: {name} is {theirs!r} in the audit, "
                f"{ours!r} in the run; audit again"
            )
    _refuse_other_corpus(path, audit, run)
    return audit


def _refuse_other_corpus(path: Path, audit: dict[str, Any], run: FinishedRun) -> None:
    """Raise MismatchError if number or size of the audited documents differ from those of the run."""
    size = run.report["text_bytes"]
    ours = (run.report["counts"]["read"], None if size is None else size["read"])
    theirs = (audit.get("documents"), audit.get("text_bytes") if size is not None else None)
    if ours != theirs:
        raise MismatchError(
            f"{path}: must be an audit of the documents of {run.folder}, got one of {theirs[0]} documents with "
            f"{theirs[1]} bytes, not of {ours[0]} with {ours[1]}"
        )


def _read_again(run: FinishedRun) -> tuple[Texts, Reasons, str]:
    """Return the texts that the page shows, why each other text is missing, and a note if some are."""
    return _read_run(run, shown_documents(run.report), lambda _, text: excerpt(text))


def read_run_texts(run: FinishedRun, names: Sequence[DocumentName]) -> tuple[dict[DocumentName, bytes], str]:
    """Return the whole texts of documents from the unchanged inputs of a run, and a note if some are missing."""
    return convert_run_texts(run, names, lambda _, text: bytes(text))


def convert_run_texts(
    run: FinishedRun, names: Sequence[DocumentName], convert: Callable[[DocumentName, memoryview], Shown]
) -> tuple[dict[DocumentName, Shown], str]:
    """Return what ``convert`` makes of documents and their texts, and a note if some are missing."""
    texts, _, note = _read_run(run, names, convert)
    return texts, note


def _read_run(
    run: FinishedRun, names: Sequence[DocumentName], convert: Callable[[DocumentName, memoryview], Shown]
) -> tuple[dict[DocumentName, Shown], Reasons, str]:
    if run.report["settings"]["shingle"] == "set":
        return {}, {}, ""
    try:
        sources, changes = _unchanged_sources(run, {name for name, _ in names})
    except (MinwiseError, OSError) as error:
        reason = failure_reason(error)
        return {}, dict.fromkeys(names, reason), f"No texts are shown: {reason}."
    rows = locate_documents(sources, names)
    names_of = {row: name for name, row in rows.items()}
    read = dict(read_rows(sources, run.columns, [*names_of], lambda row, text: convert(names_of[row], text)))
    texts = {name: read[row] for name, row in rows.items() if row in read}
    reasons = {name: changes.get(name[0], "it could not be read again") for name in names if name not in texts}
    complete = changes or not reasons
    return texts, reasons, change_note(changes) if complete else "Some texts could not be read again."


def _unchanged_sources(run: FinishedRun, names: set[str]) -> tuple[list[Source], dict[str, str]]:
    """Return the unchanged sources that have one of the names, and a description of the change of each other name."""
    sources: list[Source] = []
    changes: dict[str, str] = {}
    for number, files in enumerate(run.files):
        named = [file.name for file in files if file.name in names]
        if named:
            change = run.change(number)
            sources.extend([run.source(number)] if change is None else [])
            changes |= {} if change is None else dict.fromkeys(named, change)
    for name, source, change in _against_sources(run, names):
        sources.extend([] if source is None else [source])
        changes |= {} if change is None else {name: change}
    return sources, changes


def _against_sources(run: FinishedRun, names: set[str]) -> Iterator[tuple[str, Source | None, str | None]]:
    """Yield the named files that were only compared against: name, and a source or a description of its change.

    ``run.json`` has no fingerprints of them, only the start of the run: a file that was modified later has changed.
    """
    listed = {row["source"] for row in run.report["sources"]}
    began = datetime.fromisoformat(run.record["started"]).timestamp() + 1  # stored in whole seconds
    for name in sorted(names - {file.name for files in run.files for file in files}):
        file = run.file(name)
        try:
            modified = file.fingerprint()["modified"]
        except FileNotFoundError:
            yield name, None, f"{name} has been deleted since the run"
            continue
        if isinstance(modified, int) and modified < began * NANOSECONDS:
            yield name, run.open_source([file], as_texts=name not in listed), None
        else:
            yield name, None, f"{name} may have changed since the run"


def change_note(changes: Mapping[str, str]) -> str:
    """Return a sentence on texts that are missing because of the changes of files; empty without any."""
    if not changes:
        return ""
    first, *others = dict.fromkeys(changes.values())
    have = "input has" if len(others) == 1 else "inputs have"
    more = f", and {len(others):,} more {have} changed" if others else ""
    return f"Some texts are not shown: {first}{more}."


def failure_reason(error: Exception) -> str:
    """Return why inputs cannot be read, as a part of a sentence."""
    return f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
