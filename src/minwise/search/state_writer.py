"""Writer of the state of a run: keys, ids and shingle sets of its kept rows, for :mod:`minwise.search.stored_state`.

Keys and content hashes come from the work directory. The kept rows are read once more for their ids and shingles, since
a search keeps only the sets of candidates.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.array_files import Arrays
from minwise._internal.arrays import from_bools
from minwise._internal.prefetch import prefetch
from minwise.errors import ConfigError, MinwiseError
from minwise.inputs.files import FileSource, output_path
from minwise.inputs.source import Source
from minwise.inputs.text_files import TextFiles
from minwise.search.documents import Documents, SearchJob, concat_ids
from minwise.search.stored_state import (
    PART_DOCUMENTS,
    STATE_KIND,
    KeptFile,
    write_files,
    write_header,
    write_keys,
    write_sets,
)
from minwise.search.verification import SetSpillWriter
from minwise.search.workdir import WorkDirectory

__all__ = ["StateFiles", "refuse_loose_files", "write_state"]

Flags = NDArray[np.bool_]


def refuse_loose_files(sources: list[Source]) -> None:
    """Raise ConfigError if a document is a file of its own, whose kept copy a state does not describe."""
    for source in sources:
        if isinstance(source, TextFiles):
            rule = "save_state must be left out with text files, each of which is a document"
            raise ConfigError(f"{rule}, got {source.files[0].name}; give tables or lines")


def write_state(folder: Path, kept: Path, job: SearchJob, documents: Documents, keep: Flags) -> None:
    """Write the state of the kept rows.

    Args:
        folder: The new directory of the state.
        kept: The directory of the kept rows, which are written already.
        job: The search.
        documents: Its documents.
        keep: A flag per row of the input: whether it is kept.
    """
    folder.mkdir()
    work = WorkDirectory(folder, durable=False, kind=STATE_KIND)
    writer = _StateWriter(work, job, documents, keep)
    writer.write_files(kept)
    writer.write_parts()
    writer.write_texts()


class StateFiles:
    """Writer of a state whose documents are in memory, part by part."""

    def __init__(self, work: WorkDirectory, bands: int) -> None:
        self._work, self._bands = work, bands
        self._parts: list[int] = []
        self._are_whole = True

    def write_part(
        self,
        arrays: Arrays,
        keys: Iterable[NDArray[np.uint64]],
        ids: pa.Array,
        sets: tuple[NDArray[np.int64], NDArray[np.uint64]],
    ) -> None:
        """Write documents.

        Args:
            arrays: Their ``contents`` and ``states``.
            keys: The keys of each band.
            ids: Their ids.
            sets: Sizes and elements of their sets.
        """
        part = len(self._parts)
        self._parts.append(len(ids))
        self._are_whole = self._are_whole and ids.type == pa.int64()
        self._work.write(f"part-{part:05}", arrays)
        self._work.write_table(f"ids-{part:05}", pa.table({"id": ids}))
        for band, values in enumerate(keys):
            write_keys(self._work, part, band, values)
        write_sets(self._work, f"sets-{part:06}", *sets)

    def finish(self, files: Sequence[KeptFile]) -> None:
        """Write the list of files, and the header, which comes last."""
        write_files(self._work, files)
        header = {"parts": self._parts, "sets": self._parts, "whole_ids": self._are_whole}
        write_header(self._work, documents=sum(self._parts), bands=self._bands, **header)


class _SetWriter(SetSpillWriter):
    """Writer of sets with a checksum each.

    Attributes:
        lengths: Number of sets of each file.
    """

    def __init__(self, work: WorkDirectory, job: SearchJob) -> None:
        super().__init__(work, job.settings.shingler, job.limits)
        self.lengths: list[int] = []

    def _write(self, number: int, sizes: list[NDArray[np.int64]], elements: list[NDArray[np.uint64]]) -> None:
        lengths = np.concatenate(sizes)
        write_sets(self.work, f"{self.prefix}{number:06}", lengths, np.concatenate(elements))
        self.lengths.append(len(lengths))


class _StateWriter:
    """Writes the files of a state one after the other."""

    def __init__(self, work: WorkDirectory, job: SearchJob, documents: Documents, keep: Flags) -> None:
        self.work, self.job, self.documents, self.keep = work, job, documents, keep
        self.corpus = documents.corpus
        self.sources = sorted(range(self.corpus.against, len(self.corpus.sources)), key=self._sort_key)

    def _sort_key(self, number: int) -> bytes:
        return os.fsencode(self._kept_path(number))

    def _kept_path(self, number: int) -> str:
        """Return the path of the kept rows of a source below ``kept``; "" if it is the only file there."""
        source = self.corpus.sources[number]
        if not isinstance(source, FileSource):
            return ""
        return output_path(source.file.path, Path(), self.corpus.root).as_posix()

    def _keep_of(self, number: int) -> Flags:
        return self.keep[self.documents.input_slice(number)]

    def write_files(self, kept: Path) -> None:
        """Write the list of kept files."""
        files = []
        for number in self.sources:
            path = kept / self._kept_path(number) if self._kept_path(number) else next(kept.iterdir())
            status, rows = path.stat(), int(np.count_nonzero(self._keep_of(number)))
            files.append(KeptFile(path.relative_to(kept).as_posix(), rows, status.st_size, status.st_mtime_ns))
        write_files(self.work, files)

    def _numbers(self) -> NDArray[np.int64]:
        """Return the kept documents in the order of the state."""
        starts = self.documents.starts
        return np.concatenate([starts[number] + np.flatnonzero(self._keep_of(number)) for number in self.sources])

    def write_parts(self) -> None:
        """Write content hashes, states and keys."""
        numbers, bands = self._numbers(), self.job.settings.plan.bands
        starts = range(0, len(numbers), PART_DOCUMENTS)
        with self.job.progress.stage("save keys", len(starts) * bands, "bands") as stage:
            for part, start in enumerate(starts):
                chosen = numbers[start : start + PART_DOCUMENTS]
                arrays = {name: self.documents.take(name, chosen) for name in ("contents", "states")}
                self.work.write(f"part-{part:05}", arrays)
                for band in range(bands):
                    write_keys(self.work, part, band, self.documents.take(f"band{band}", chosen))
                    stage.advance(1)

    def write_texts(self) -> None:
        """Write shingle sets and ids, and the header, which comes last."""
        total, ids, writer = int(np.count_nonzero(self.keep)), _Ids(self.work), _SetWriter(self.work, self.job)
        with writer, self.job.progress.stage("save shingles", total, "documents") as stage:
            ahead = self.job.limits.ahead_bytes
            for values, names in prefetch(self._kept_values(), size=_value_bytes, max_bytes=ahead):
                writer.add(values)
                ids.add(names)
                stage.advance(len(values))
                del values
            writer.finish()
        ids.finish()
        if sum(writer.lengths) != total:
            raise MinwiseError(f"{total} rows were kept, {sum(writer.lengths)} were read again: did the input change?")
        bands = self.job.settings.plan.bands
        write_header(
            self.work, documents=total, bands=bands, parts=ids.parts, sets=writer.lengths, whole_ids=ids.are_whole
        )

    def _kept_values(self) -> Iterator[tuple[pa.Array, pa.Array]]:
        """Yield values and ids of the kept rows, in batches; an id is null where its file has none."""
        columns = replace(self.corpus.columns, values=())
        for number in self.sources:
            keep = self._keep_of(number)
            source = self.corpus.sources[number]
            for batch in source.batches(columns, wanted=keep, batch_bytes=self.job.limits.batch_bytes):
                mask = from_bools(keep[batch.first : batch.first + len(batch)])
                ids = pa.nulls(len(batch), pa.large_string()) if batch.ids is None else batch.ids
                chosen = [(batch.values.filter(mask), ids.filter(mask))]
                del batch
                if len(chosen[0][0]):
                    yield chosen.pop()


class _Ids:
    """Collects ids and writes them in parts.

    Attributes:
        parts: Number of ids of each part.
        are_whole: Whether every document has an id that is a whole number.
    """

    def __init__(self, work: WorkDirectory) -> None:
        self.parts: list[int] = []
        self.are_whole = True
        self._work, self._held = work, list[pa.Array]()
        self._count = 0

    def add(self, ids: pa.Array) -> None:
        """Add the ids of further documents."""
        self.are_whole = self.are_whole and ids.type == pa.int64() and not ids.null_count
        while len(ids):
            free = PART_DOCUMENTS - self._count
            self._held.append(ids.slice(0, free))
            self._count += len(self._held[-1])
            ids = ids.slice(free)
            if self._count == PART_DOCUMENTS:
                self.finish()

    def finish(self) -> None:
        """Write the collected ids, if there are any."""
        if self._count:
            self._work.write_table(f"ids-{len(self.parts):05}", pa.table({"id": concat_ids(self._held)}))
            self.parts.append(self._count)
            self._held, self._count = [], 0


def _value_bytes(item: tuple[pa.Array, pa.Array]) -> int:
    return int(item[0].nbytes)
