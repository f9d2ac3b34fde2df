"""Report page: the output directory of an earlier run in, its report.html written anew out."""

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any

from minwise.config import check_path
from minwise.durable import atomic_writer
from minwise.errors import FormatError, MinwiseError, MismatchError
from minwise.formats.source import Source
from minwise.results.published import Published
from minwise.results.samples import find_places, read_texts, shown_documents

__all__ = ["write_report"]

# Settings that choose among pairs that were found. An audit measures how many are found, so it has none of them.
NOT_AUDITED = ("verify", "group", "keep")
# What tells an audit from any other JSON file.
OF_AUDIT = {"minwise": str, "settings": dict, "recall": dict, "precision": dict, "bins": list, "histogram": list}
# Where a page with texts goes that a new one would lose.
WITH_TEXTS = "report-with-texts.html"
# What the page shows of a report.
SHOWN = ("plan", "caps", "clusters", "largest_clusters", "just_below", "unreadable", "warnings")

NANOSECONDS = 10**9

Texts = dict[tuple[str, int], str]


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
    texts, note = _texts(published)
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


def _texts(published: Published) -> tuple[Texts, str]:
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
    return texts, _note(changes) if changes or len(texts) == len(shown) else "Some texts could not be read again."


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


def _note(changes: list[str]) -> str:
    if not changes:
        return ""
    more = f", and {len(changes) - 1:,} more inputs are not what they were" if len(changes) > 1 else ""
    return f"Some texts are not shown: {changes[0]}{more}."


def _reason(error: Exception) -> str:
    return f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
