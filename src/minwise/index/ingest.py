"""Bulk: whatever holds documents in; all of it added to an index, looked up in it, or decided on one by one.

Every portion is durable before the next is read. A run that was interrupted is therefore resumed by running it again:
what it has added by then is there unchanged.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import orjson

from minwise.comparison.comparison import compare
from minwise.errors import ConfigError, InputError
from minwise.index.answers import Decision, Hit
from minwise.index.readers import Faults, Portion, Portions, ReadOptions
from minwise.inputs.source import Fault

if TYPE_CHECKING:
    from minwise.index import Index

__all__ = ["add_from", "add_stream", "query_from"]

AnySource = Any
AnySetting = Any
# Documents that are looked up together: answers come soon, and what a call costs by itself does not matter.
QUERIED_TOGETHER = 256
# What becomes of documents, and the count that it goes into.
FATES = {name: name for name in ("added", "replaced", "unchanged", "skipped")} | {"duplicate": "duplicates"}


def add_from(
    index: "Index", source: AnySource, *, on_duplicate_id: str = "error", **options: AnySetting
) -> dict[str, Any]:
    """Adds every document of a source.

    Args:
        index: Open for writing.
        source: As in :func:`minwise.dedup`; ``-`` is standard input, an open binary file is read as JSON lines.
        on_duplicate_id: ``error``, ``skip`` or ``replace``.
        options: How the source is read; see :class:`minwise.index.readers.ReadOptions`.

    Returns:
        The counts ``read``, ``added``, ``replaced``, ``skipped``, ``unchanged``, ``quarantined`` (rows) and
        ``unreadable`` (files), and the first ``faults``.
    """
    chosen = ReadOptions.of(options)
    _refuse_own_files(index, source)
    portions, faults = Portions(source, chosen, any_bytes=_takes_bytes(index)), Faults(chosen)
    counts = Counter(dict.fromkeys(("read", "added", "replaced", "skipped", "unchanged"), 0))
    with chosen.watcher.stage("add", portions.known_rows, "documents") as stage:
        for portion in portions:
            faults.note(portion)
            if portion.ids:
                with _telling(counts):
                    added = index.add(portion.ids, portion.texts, portion.metadata, on_duplicate_id=on_duplicate_id)
                counts.update(added._asdict())
            counts["read"] += portion.rows
            stage.advance(portion.rows)
    return _result(counts, faults)


def add_stream(
    index: "Index",
    source: AnySource,
    kept: BinaryIO | None = None,
    decisions: BinaryIO | None = None,
    *,
    on_duplicate_id: str = "error",
    **options: AnySetting,
) -> dict[str, Any]:
    """Adds what is no near-duplicate of anything that is there before it, and says of every row what became of it.

    Args:
        index: Open for writing.
        source: As in :func:`add_from`. The lines of a stream are decided on before more of them are waited for.
        kept: Where the rows go that the index holds now: lines of a stream as they came, others as JSON lines with
            ``id``, ``text`` and ``metadata``.
        decisions: Where a JSON line goes for every row, in their order, once the decision is durable.
        on_duplicate_id: ``error``, ``skip`` or ``replace``.
        options: How the source is read; see :class:`minwise.index.readers.ReadOptions`.

    Returns:
        The counts of :func:`add_from`, ``duplicates``, and how many decisions were ``truncated``.
    """
    chosen = ReadOptions.of(options)
    _refuse_own_files(index, source)
    portions, faults = Portions(source, chosen, any_bytes=_takes_bytes(index)), Faults(chosen)
    counts = Counter(dict.fromkeys(("read", *FATES.values(), "truncated"), 0))
    shown: set[int] = set()
    with chosen.watcher.stage("add", portions.known_rows, "documents") as stage:
        for portion in portions:
            faults.note(portion)
            with _telling(counts):
                decided = _decide(index, portion, on_duplicate_id)
            _write(kept, _kept_lines(portion, decided, shown))
            _write(decisions, _decision_lines(portion, decided))
            counts.update(FATES[decision.fate] for decision in decided)
            counts.update(truncated=sum(decision.truncated for decision in decided), read=portion.rows)
            stage.advance(portion.rows)
    return _result(counts, faults)


def _decide(index: "Index", portion: Portion, on_duplicate_id: str) -> list[Decision]:
    if not portion.ids:
        return []
    return index.add_unique(portion.ids, portion.texts, portion.metadata, on_duplicate_id=on_duplicate_id)


def query_from(
    index: "Index",
    source: AnySource,
    *,
    threshold: float | None = None,
    top: int = 10,
    where: dict[str, Any] | None = None,
    passages: bool = False,
    **options: AnySetting,
) -> Iterator[dict[str, Any]]:
    """The near-duplicates of every document of a source.

    Args:
        index: Open in any mode.
        source: As in :func:`add_from`. The lines of a stream are looked up before more of them are waited for.
        threshold: As in ``Index.query``.
        top: As in ``Index.query``.
        where: As in ``Index.query``.
        passages: Whether to add to every hit the longest passage that both texts have; needs stored texts.
        options: How the source is read; see :class:`minwise.index.readers.ReadOptions`.

    Returns:
        For each document, as they are asked for: ``id``, ``hits`` and whether the search was ``truncated``.
    """
    chosen = ReadOptions.of(options, without=("metadata_columns",))
    if passages and index.store != "text":
        raise ConfigError(f"passages need an index that stores texts, got one with store {index.store!r}")
    index.query([], threshold, top, where=where)  # so that what is wrong with these is said before anything is read
    portions = Portions(source, chosen, any_bytes=_takes_bytes(index), need_ids=False, most=QUERIED_TOGETHER)
    faults = Faults(chosen)

    def answers() -> Iterator[dict[str, Any]]:
        read = 0
        with chosen.watcher.stage("query", portions.known_rows, "documents") as stage:
            for portion in portions:
                faults.note(portion)
                found = index.query(portion.texts, threshold, top, where=where)
                texts = portion.texts.to_pylist() if passages else [None] * len(found)
                for one, text, answer in zip(portion.ids, texts, found, strict=True):
                    hits = [_hit(index, hit, text) for hit in answer]
                    yield {"id": one, "hits": hits, "truncated": answer.truncated}
                read += portion.rows
                stage.advance(portion.rows)
        faults.refuse_nothing_readable(read)

    return answers()


@contextmanager
def _telling(counts: "Counter[str]") -> Iterator[None]:
    """Adds to what is wrong with a portion that those before it are in the index."""
    try:
        yield
    except InputError as error:
        before = counts["added"] + counts["replaced"]
        raise InputError(f"{error}; {before:,} added before stay" if before else str(error)) from None


def _refuse_own_files(index: "Index", source: AnySource) -> None:
    """Raises if the index itself is to be read as documents."""
    folder = index.path.resolve()
    for one in source if isinstance(source, (list, tuple)) else [source]:
        path = Path(one).resolve() if isinstance(one, (str, PathLike)) and one else None
        if path is not None and folder in (path, *path.parents):
            raise ConfigError(f"source must not be the index itself, got {one}")


def _takes_bytes(index: "Index") -> bool:
    """Whether a text may be any bytes."""
    return index.shingler.kind == "byte"


def _result(counts: "Counter[str]", faults: Faults) -> dict[str, Any]:
    faults.refuse_nothing_readable(counts["read"])
    return {**counts, "quarantined": faults.rows, "unreadable": faults.files, "faults": faults.to_list()}


def _hit(index: "Index", hit: Hit, text: str | bytes | None) -> dict[str, Any]:
    """A hit in plain values; with the passage that it shares with the text, if there is one."""
    about = {} if hit.metadata is None else {"metadata": hit.metadata}
    passage = {} if text is None else {"passage": _longest_passage(index, hit, text)}
    return {"id": hit.id, "similarity": hit.similarity, "exact": hit.exact, **about, **passage}


def _longest_passage(index: "Index", hit: Hit, text: str | bytes) -> dict[str, Any] | None:
    """The longest passage that both texts have, and where it starts and ends in either."""
    try:
        stored = index.get(hit.id).text
    except InputError:  # another process has removed it since
        return None
    if stored is None:
        return None
    shared = compare(text, stored, shingler=index.shingler).passages
    longest = max(shared, key=lambda one: one.left_end - one.left_start, default=None)
    if longest is None:
        return None
    words = _shown(text[longest.left_start : longest.left_end])
    places = {"query": [longest.left_start, longest.left_end], "document": [longest.right_start, longest.right_end]}
    return {"text": words, **places}


def _kept_lines(portion: Portion, decided: list[Decision], shown: set[int]) -> Iterator[bytes]:
    """The rows of what is in the index now: lines of a stream as they came, others as JSON.

    A row that comes again is kept once: ``shown`` are the hashes of ids that were kept before.
    """
    for number, decision in enumerate(decided):
        name = hash(str(decision.id))
        if not decision.kept or (decision.fate == "unchanged" and name in shown):
            continue
        shown.add(name)
        if portion.lines:
            line = portion.lines[portion.places[number]]
            yield line if line.endswith(b"\n") else line + b"\n"
        else:
            metadata = None if portion.metadata is None else portion.metadata[number]
            yield _json_line({"id": decision.id, "text": _shown(portion.texts[number].as_py()), "metadata": metadata})


def _decision_lines(portion: Portion, decided: list[Decision]) -> Iterator[bytes]:
    """A line for every row, in the order of the rows."""
    lines = {place: _decision(decision) for place, decision in zip(portion.places, decided, strict=True)}
    lines |= {place: _quarantined(fault) for place, fault in portion.faults.items()}
    return (_json_line(lines[place]) for place in sorted(lines))


def _decision(decision: Decision) -> dict[str, Any]:
    return {
        "id": decision.id,
        "fate": decision.fate,
        "kept": decision.kept,
        "duplicate_of": decision.duplicate_of,
        "similarity": decision.similarity,
        "truncated": decision.truncated,
    }


def _quarantined(fault: Fault) -> dict[str, Any]:
    nothing = _decision(Decision("", "quarantined"))
    return {**nothing, "id": None, **fault.to_dict()}


def _json_line(value: dict[str, Any]) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)


def _shown(text: str | bytes) -> str:
    """A text as JSON can hold it."""
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text


def _write(file: BinaryIO | None, lines: Iterator[bytes]) -> None:
    """Writes all lines, and lets them go before anything else is waited for."""
    if file is not None:
        file.write(b"".join(lines))
        file.flush()
