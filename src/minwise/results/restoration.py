"""Restoration of removed documents: a copy of the kept rows of an earlier run with removed rows added back.

The rows are copied from the inputs of the run, one pass over each. The output of the run is not changed.
"""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from operator import index
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from minwise._internal.arrays import from_bools
from minwise.checks import check_path, show
from minwise.errors import ConfigError, InputError, MinwiseError
from minwise.inputs.files import File, open_output, output_path
from minwise.inputs.table_writer import write_tables
from minwise.inputs.text_files import COPY_BYTES, TextFiles
from minwise.progress import Progress, ProgressSetting
from minwise.results.finished_run import FinishedRun, RowStatus
from minwise.results.output import check_output, publish
from minwise.results.stored_cuts import CUTS, StoredCuts, has_cuts
from minwise.search.workdir import temporary_workdir
from minwise.settings import RunLimits, progress_of

__all__ = ["check_destination", "restore"]


def restore(
    output: str | PathLike[str],
    destination: str | PathLike[str],
    *,
    ids: Iterable[str | int] | None = None,
    all_matches: bool = False,
    overwrite: bool = False,
    progress: ProgressSetting = None,
) -> dict[str, Any]:
    """Write a new directory with the kept rows of a run and removed documents restored among them.

    The rows come from the inputs of the run, which must not have changed. The new directory appears complete or not at
    all.

    Args:
        output: The directory that :func:`minwise.dedup` wrote.
        destination: A new or empty directory.
        ids: Restore the removed and the cut documents that have one of these ids. Without it every row of the input is
            restored, including unreadable rows: the input files are copied as they are.
        all_matches: Whether an id that several removed documents share restores all of them; otherwise it is refused.
        overwrite: Whether a directory that is not empty may be replaced.
        progress: True for progress bars, a function of (stage, done, total, unit), or a
            :class:`~minwise.progress.Progress`; default: none.

    Returns:
        How many documents were ``restored`` and are ``still_removed``, how many of the restored rows had been
        ``quarantined``, and how many ``rows`` the new directory has; of a run with ``passages``, of how many kept
        documents the cuts are undone (``uncut``).

    Raises:
        MismatchError: If an input has changed since the run.
        InputError: If an id is not among the removed documents, or is that of several of them.
        ConfigError: If ids are given of a run that marked its rows, which removed none.
    """
    folder, receiver = check_path("output", destination), progress_of(progress)
    wanted = None if ids is None else _check_ids(ids)
    from minwise.results.output_schema import KINDS  # here: msgspec takes 10 ms

    run = FinishedRun.open(output, kinds=KINDS)
    if wanted is not None and run.marked:
        raise ConfigError(f"{run.folder}: ids must be left out: the run marked its rows and removed none")
    run.refuse_changes()
    check_destination(folder, run, overwrite=overwrite)
    task = _RestoreAll(run) if wanted is None else _RestoreSome(run, wanted, all_matches=all_matches)
    with (
        temporary_workdir(folder.absolute().parent) as work,
        publish(folder, work, overwrite=overwrite) as staging,
    ):
        task.write(staging.folder, receiver)
        run.refuse_changes()  # during the copy
    return task.counts()


def _check_ids(ids: Iterable[str | int]) -> dict[str, None]:
    """Return the ids as text, without duplicates, in the given order."""
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise ConfigError(f"ids must be several ids, such as a list, got {show(ids)}")
    return dict.fromkeys(_id_text(value) for value in ids)


def _id_text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return str(index(value))  # type: ignore[arg-type]
    except TypeError:
        raise ConfigError(f"an id must be a string or a whole number, got {show(value)}") from None


def check_destination(folder: Path, run: FinishedRun, *, overwrite: bool) -> None:
    """Raise ConfigError if the copy would replace existing files, an input or the output of the run."""
    target, original = (Path(os.path.realpath(path)) for path in (folder, run.folder))
    if target == original or target in original.parents or original in target.parents:
        raise ConfigError(f"output must not be, hold or lie in {run.folder}, got {folder}; give another output")
    paths = run.input_paths()
    check_output(folder, [TextFiles([File(path) for path in paths], paths)], overwrite=overwrite)


class _RestoreAll:
    """Restores every document: copies each input file as it is."""

    def __init__(self, run: FinishedRun) -> None:
        self._run = run
        names = ["removed.parquet", *([CUTS] if has_cuts(run) else [])]
        self._tables = {name: run.schema(name) for name in names}

    def write(self, folder: Path, progress: Progress) -> None:
        """Write the kept rows, and the tables of removed documents and of cuts, which have no rows."""
        _copy_sources(self._run, self._copy, folder / "kept", progress)
        for name, schema in self._tables.items():
            write_tables(folder / name, [], schema)

    def _copy(self, number: int, folder: Path) -> int:
        for file in self._run.files[number]:
            with file.open() as original, open_output(output_path(file.path, folder, self._run.root)) as copy:
                shutil.copyfileobj(original, copy, COPY_BYTES)
        return self._run.rows[number]

    def counts(self) -> dict[str, int]:
        """Return the counts of :func:`restore`."""
        counts = self._run.report["counts"]
        removed = 0 if self._run.marked else counts["removed"]
        restored = {"restored": removed, "still_removed": 0, "quarantined": counts["quarantined"]}
        if "cut" in counts:
            restored["uncut"] = counts["cut"]
        return {**restored, "rows": counts["read"]}


class _RestoreSome:
    """Restores documents by id: copies the kept rows and these."""

    def __init__(self, run: FinishedRun, ids: dict[str, None], *, all_matches: bool) -> None:
        self._run = run
        self._status = RowStatus(run)
        self._cuts = StoredCuts(run, self._status, ids) if has_cuts(run) else None
        self._restored = self._status.restore(ids)
        self._ids = self._restored.ids + (Counter() if self._cuts is None else self._cuts.ids)
        self._refuse_unknown(ids)
        if not all_matches:
            self._refuse_ambiguous()

    def _refuse_unknown(self, ids: dict[str, None]) -> None:
        unknown = [text for text in ids if text not in self._ids]
        tables, documents = ("removed.parquet lists", "removed documents")
        if self._cuts is not None:
            tables, documents = ("removed.parquet and cuts.parquet list", "removed and cut documents")
        if unknown:
            many = f"{len(unknown):,} of {len(ids):,} ids are" if len(unknown) > 1 else "an id is"
            first = "the first is " if len(unknown) > 1 else ""
            raise InputError(
                f"{self._run.folder}: {many} not among its {documents}: {first}{show(unknown[0])}; {tables} all of them"
            )

    def _refuse_ambiguous(self) -> None:
        shared = [(text, count) for text, count in self._ids.items() if count > 1]
        if shared:
            text, count = shared[0]
            more = f" (and {len(shared) - 1:,} more such ids)" if len(shared) > 1 else ""
            raise InputError(
                f"{self._run.folder}: {count:,} removed documents have the id {show(text)}{more}; "
                "set all_matches=True to restore all of them"
            )

    def write(self, folder: Path, progress: Progress) -> None:
        """Write the kept rows and the table of removed documents."""
        written = _copy_sources(self._run, self._copy, folder / "kept", progress)
        expected = self.counts()["rows"]
        if written != expected:
            raise MinwiseError(f"{expected} rows were to be written, {written} were: did the input change?")
        write_tables(folder / "removed.parquet", self._still_removed(), self._run.schema("removed.parquet"))
        if self._cuts is not None:
            write_tables(folder / CUTS, self._cuts.left(), self._run.schema(CUTS))

    def _copy(self, number: int, folder: Path) -> int:
        keep, span = self._status.of_source(number), self._status.span(number)
        edits = None if self._cuts is None else self._cuts.edits(*span)
        return self._run.source(number).copy_kept(keep, folder, self._run.root, edits)

    def _still_removed(self) -> Iterator[pa.Table]:
        for batch in self._run.batches("removed.parquet"):
            removed = ~self._status.kept[self._status.numbers(batch)]
            yield pa.Table.from_batches([batch]).filter(from_bools(removed))

    def counts(self) -> dict[str, int]:
        """Return the counts of :func:`restore`."""
        counts, documents = self._run.report["counts"], self._restored.documents
        restored = {"restored": documents, "still_removed": counts["removed"] - documents, "quarantined": 0}
        if self._cuts is not None:
            restored["uncut"] = self._cuts.ids.total()
        return {**restored, "rows": counts["kept"] + documents}


def _copy_sources(run: FinishedRun, copy: Callable[[int, Path], int], folder: Path, progress: Progress) -> int:
    """Copy several inputs at a time; return the number of rows written."""
    folder.mkdir()
    written = 0
    pool = ThreadPoolExecutor(RunLimits().writers, thread_name_prefix="minwise-restore")
    try:
        with progress.stage("restore", sum(run.rows), "documents") as stage:
            numbers = range(len(run.files))
            for rows, number in zip(pool.map(lambda number: copy(number, folder), numbers), numbers, strict=True):
                written += rows
                stage.advance(run.rows[number])
    finally:
        pool.shutdown(cancel_futures=True)  # a writer that is still running would recreate deleted files
    return written
