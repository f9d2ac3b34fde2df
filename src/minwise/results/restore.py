"""Restore: the output directory of an earlier run in, a copy of its kept rows with removed ones back among them out."""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from operator import index
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from minwise._internal.arrays import flags
from minwise.checks import check_path, show
from minwise.errors import ConfigError, InputError, MinwiseError
from minwise.inputs.files import File, output_path, writing
from minwise.inputs.table_writer import write_tables
from minwise.inputs.text_files import COPY_BYTES, TextFiles
from minwise.progress import Progress, Silence
from minwise.results.output import check_output, publish
from minwise.results.published import Fates, Published
from minwise.search.workdir import temporary_work
from minwise.settings import Limits

__all__ = ["restore"]


def restore(
    output: str | PathLike[str],
    destination: str | PathLike[str],
    *,
    ids: Iterable[str | int] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Puts removed documents back: a new directory with the kept rows and the restored ones, as the input has them.

    The rows come from the inputs of the run, which must not have changed. What :func:`dedup` wrote stays as it is, and
    the new directory appears whole or not at all.

    Args:
        output: The directory that :func:`dedup` wrote.
        destination: A new or empty directory.
        ids: Which removed documents are restored: all that have one of these ids. Without it every row of the input is
            back, also what could not be read: the input files are copied as they are.
        overwrite: Whether a directory that is not empty may be replaced.
        progress: Who is told how far the work is.

    Returns:
        How many documents were ``restored`` and are ``still_removed``, how many of the restored rows had been
        ``quarantined``, and how many ``rows`` there are now.

    Raises:
        MismatchError: If an input is not what it was.
        InputError: If an id is not among the removed documents.
    """
    folder = check_path("output", destination)
    wanted = None if ids is None else _checked_ids(ids)
    published = Published.open(output)
    published.refuse_changes()
    _check_destination(folder, published, overwrite=overwrite)
    task = _RestoreAll(published) if wanted is None else _RestoreSome(published, wanted)
    with temporary_work(folder.absolute().parent) as work, publish(folder, work) as staging:
        task.write(staging.folder, progress or Silence())
        published.refuse_changes()  # while it was copied
    return task.counts()


def _checked_ids(ids: Iterable[str | int]) -> dict[str, None]:
    """The ids as text, each once, in the order in which they were given."""
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise ConfigError(f"ids must be several ids, such as a list, got {show(ids)}")
    return dict.fromkeys(_id_text(one) for one in ids)


def _id_text(one: object) -> str:
    if isinstance(one, str):
        return one
    try:
        return str(index(one))  # type: ignore[arg-type]
    except TypeError:
        raise ConfigError(f"an id must be a string or a whole number, got {show(one)}") from None


def _check_destination(folder: Path, published: Published, *, overwrite: bool) -> None:
    """Raises if the copy would replace something, an input or the output of the run above all."""
    one, other = (Path(os.path.realpath(place)) for place in (folder, published.folder))
    if one == other or one in other.parents or other in one.parents:
        raise ConfigError(f"output must not be, hold or lie in {published.folder}, got {folder}; give another -o")
    places = published.places()
    check_output(folder, [TextFiles([File(place) for place in places], places)], overwrite=overwrite)


class _RestoreAll:
    """Every input file, copied as it is."""

    def __init__(self, published: Published) -> None:
        self._published = published
        self._removed = published.schema("removed.parquet")

    def write(self, folder: Path, progress: Progress) -> None:
        """Fills a directory."""
        _copy_each(self._published, self._copy, folder / "kept", progress)
        write_tables(folder / "removed.parquet", [], self._removed)

    def _copy(self, number: int, folder: Path) -> int:
        for file in self._published.files[number]:
            with file.open() as original, writing(output_path(file.path, folder, self._published.root)) as copy:
                shutil.copyfileobj(original, copy, COPY_BYTES)
        return self._published.rows[number]

    def counts(self) -> dict[str, int]:
        """What came of it."""
        counts = self._published.report["counts"]
        facts = {"restored": counts["removed"], "still_removed": 0, "quarantined": counts["quarantined"]}
        return {**facts, "rows": counts["read"]}


class _RestoreSome:
    """The rows that were kept, and removed ones by their ids."""

    def __init__(self, published: Published, ids: dict[str, None]) -> None:
        self._published = published
        self._fates = Fates(published)
        self._restored = self._fates.restore(ids)
        unknown = [one for one in ids if one not in self._restored.ids]
        if unknown:
            many = f"{len(unknown):,} of {len(ids):,} ids are" if len(unknown) > 1 else "an id is"
            first = "the first is " if len(unknown) > 1 else ""
            raise InputError(
                f"{published.folder}: {many} not among its removed documents: {first}{show(unknown[0])}; "
                "removed.parquet has them all"
            )

    def write(self, folder: Path, progress: Progress) -> None:
        """Fills a directory."""
        written = _copy_each(self._published, self._copy, folder / "kept", progress)
        expected = self.counts()["rows"]
        if written != expected:
            raise MinwiseError(f"{expected} rows were to be written, {written} were: did the input change?")
        write_tables(folder / "removed.parquet", self._still_removed(), self._published.schema("removed.parquet"))

    def _copy(self, number: int, folder: Path) -> int:
        keep = self._fates.of_source(number)
        return self._published.source(number).copy_kept(keep, folder, self._published.root)

    def _still_removed(self) -> Iterator[pa.Table]:
        for batch in self._published.batches("removed.parquet"):
            gone = ~self._fates.kept[self._fates.numbers(batch)]
            yield pa.Table.from_batches([batch]).filter(flags(gone))

    def counts(self) -> dict[str, int]:
        """What came of it."""
        counts, restored = self._published.report["counts"], self._restored.documents
        facts = {"restored": restored, "still_removed": counts["removed"] - restored, "quarantined": 0}
        return {**facts, "rows": counts["kept"] + restored}


def _copy_each(published: Published, copy: Callable[[int, Path], int], folder: Path, progress: Progress) -> int:
    """Copies several inputs at a time; returns how many rows were written."""
    folder.mkdir()
    written = 0
    pool = ThreadPoolExecutor(Limits().writers, thread_name_prefix="minwise-restore")
    try:
        with progress.stage("restore", sum(published.rows), "documents") as stage:
            numbers = range(len(published.files))
            for rows, number in zip(pool.map(lambda one: copy(one, folder), numbers), numbers, strict=True):
                written += rows
                stage.advance(published.rows[number])
    finally:
        pool.shutdown(cancel_futures=True)  # a writer that went on would bring back what is cleared away
    return written
