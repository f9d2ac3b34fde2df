"""Grouped source: the groups that were written to a work directory, as a source of sets in the order of their names."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise._internal.array_files import ArrayFile
from minwise._internal.arrays import from_lists, from_numpy, present, to_numpy
from minwise._internal.prefetch import prefetch
from minwise.errors import ConfigError, InputError
from minwise.inputs.columns import cuts
from minwise.inputs.elements import MAX_ELEMENTS, gather_sets, hash_column, too_many_reason
from minwise.inputs.source import BATCH_ROWS, Batch, Columns, Fault, Source
from minwise.progress import Progress
from minwise.search.bands import cut_runs
from minwise.search.documents import Corpus, fault_table, same_type
from minwise.search.engine import Job
from minwise.search.workdir import Work
from minwise.settings import Limits

__all__ = ["GroupedSource", "group_rows"]


class GroupedSource(Source):
    """Groups as sets. A row is a group, its id the group's name."""

    def __init__(self, work: Work, sources: Sequence[Source]) -> None:
        self.name = sources[0].name
        self._work, self._sources = work, sources
        self._pieces: list[ArrayFile] = [work.open(name) for name in work.names("groups-")]
        counts = [piece.length("too_many") for piece in self._pieces]
        self._firsts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self._order: NDArray[np.uint32] = work.open("group-order").read("order")

    def fingerprint(self) -> dict[str, object]:
        """Its size alone: the files that it was made from have fingerprints of their own."""
        return {"name": self.name, "bytes": self.size_bytes(), "modified": None}

    def size_bytes(self) -> int:
        """Bytes of all elements."""
        return 8 * sum(piece.length("elements") for piece in self._pieces)

    def known_rows(self) -> int:
        """How many groups there are."""
        return len(self._order)

    def paths(self) -> list[str]:
        """The files that the rows are from."""
        return [path for source in self._sources for path in source.paths()]

    def default_ids(self, rows: NDArray[np.int64]) -> pa.Array:
        """The names."""
        return self._names.take(from_numpy(rows))

    @cached_property
    def _names(self) -> pa.Array:
        """All names, in order, as a view of their file."""
        column = self._work.read_table("group-names").column("name")
        return (
            column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays([*column.chunks, pa.nulls(0, column.type)])
        )

    @cached_property
    def _sizes(self) -> NDArray[np.uint32]:
        """How many elements each group has, in the order of names."""
        sizes = [np.diff(piece.read("offsets")).astype(np.uint32) for piece in self._pieces]
        return np.concatenate([np.empty(0, dtype=np.uint32), *sizes])[self._order]

    def _read(self, columns: Columns, wanted: NDArray[np.bool_] | None, batch_bytes: int) -> Iterator[Batch]:
        for piece in self._pieces:
            piece.read("elements")  # checks it; from here on it is mapped
        start, ends = 0, np.cumsum(self._sizes, dtype=np.int64)
        while start < len(self._order):
            before = int(ends[start - 1]) if start else 0
            stop = int(np.searchsorted(ends, before + batch_bytes // 8, side="right"))
            stop = min(max(stop, start + 1), start + BATCH_ROWS)
            if wanted is None or wanted[start:stop].any():
                yield self._batch(start, stop)
            start = stop

    def _batch(self, start: int, stop: int) -> Batch:
        places = self._order[start:stop].astype(np.int64)
        sizes = self._sizes[start:stop].astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        elements = np.empty(int(offsets[-1]), dtype=np.uint64)
        too_many = np.zeros(len(places), dtype=np.uint64)
        owners = np.searchsorted(self._firsts, places, side="right") - 1
        for number in np.unique(owners).tolist():
            rows = np.flatnonzero(owners == number)
            within = places[rows] - self._firsts[number]
            piece = self._pieces[number]
            begins = piece.map("offsets")[within].astype(np.int64)
            elements[_spread(offsets[:-1][rows], sizes[rows])] = piece.map("elements")[_spread(begins, sizes[rows])]
            too_many[rows] = piece.map("too_many")[within]
        faults = [
            Fault(
                self.name,
                start + int(row),
                f"group {self._names[start + int(row)]} {too_many_reason(int(too_many[row]))}",
            )
            for row in np.flatnonzero(too_many)
        ]
        sets = from_lists(offsets, from_numpy(elements), too_many == 0)
        return Batch(start, sets, self._names.slice(start, stop - start), None, tuple(faults))

    def copy_kept(self, keep: NDArray[np.bool_], folder: Path, root: str) -> int:
        """Refused: a group is not a row of its file."""
        raise ConfigError("group_by and transpose must be left out with dedup: a group is many rows of its file")


def _spread(begins: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places of stretches that begin somewhere and have a size, one after the other."""
    ends = np.cumsum(sizes)
    return np.repeat(begins - (ends - sizes), sizes) + np.arange(int(ends[-1]) if len(ends) else 0)


# Bytes that a row costs while a portion is sorted: hash, element and count, three times, and where they go.
ROW_BYTES = 128
# What a name of a group costs beside its bytes.
NAME_BYTES = 32
# Sources are numbered above the rows of any of them, so that a row has a number of its own among all.
SOURCE_ROWS = 1 << 40

Words = NDArray[np.uint64]


def group_rows(job: Job, *, bag: bool) -> Job:
    """The same job on groups in place of rows; reads every row once, and goes on where an earlier run stopped.

    Args:
        job: Of a corpus whose columns make ``Members`` of rows, or lists of items that are to be turned round.
        bag: Whether counts add up; else an item is in a group or not.
    """
    corpus, work = job.corpus, job.work
    if not work.has("grouped"):
        _Grouping(corpus, job.limits, work, bag=bag).run(job.progress)
    source = GroupedSource(work, corpus.sources)
    grouped = replace(corpus, sources=[source], columns=Columns(text=corpus.columns.text, id=None), root="")
    return replace(job, corpus=grouped)


@dataclass(slots=True)
class _Portion:
    """Rows that are sorted together."""

    groups: list[Words] = field(default_factory=list)
    elements: list[Words] = field(default_factory=list)
    counts: list[NDArray[np.int64]] = field(default_factory=list)
    names: list[pa.Array] = field(default_factory=list)
    hashes: list[Words] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    size: int = 0

    def add(self, keys: pa.Array, elements: Words, counts: NDArray[np.int64]) -> None:
        """Adds rows; of each group its name once."""
        groups = _group_hashes(keys)
        hashes, first = np.unique(groups, return_index=True)
        names = keys.take(from_numpy(first))
        self.groups.append(groups)
        self.elements.append(elements)
        self.counts.append(counts)
        self.hashes.append(hashes)
        self.names.append(names)
        self.size += ROW_BYTES * len(groups) + NAME_BYTES * len(names) + int(names.nbytes)


class _Grouping:
    def __init__(self, corpus: Corpus, limits: Limits, work: Work, *, bag: bool) -> None:
        self.corpus, self.limits, self.work, self.bag = corpus, limits, work, bag
        self.portion = _Portion()
        self.number = self.rows = self.unusable = 0
        self.position = (0, 0)

    def run(self, progress: Progress) -> None:
        self._resume()
        known = self.corpus.known_rows()
        with progress.stage("read rows", known, "rows", done=self.rows) as stage:
            for number, batch in prefetch(self._batches()):
                stage.advance(len(batch))
                self._take(number, batch)
        self._flush()
        if not self.rows - self.unusable and (self.unusable or self.work.names("unusable-")):
            self._refuse_nothing_readable()
        groups = self._merge(progress)
        self.work.note("grouped", {"groups": groups, "rows": self.rows, "unusable": self.unusable})
        self.work.forget("rows-")
        self.work.forget("names-")

    def _resume(self) -> None:
        """Goes on behind the rows of the last finished run."""
        runs = self.work.names("rows-")
        if runs:
            header = self.work.open(runs[-1]).header
            self.number, self.position = len(runs), (header["source"], header["row"])
            self.rows, self.unusable = header["rows"], header["unusable"]
        for name in [*self.work.names("names-"), *self.work.names("unusable-")]:
            if int(name.rpartition("-")[2]) >= self.number:  # of a run that was not finished
                self.work.forget(name)

    def _batches(self) -> Iterator[tuple[int, Batch]]:
        source, row = self.position
        for number in range(source, len(self.corpus.sources)):
            skip = row if number == source else 0
            batch_bytes = self.limits.batch_bytes
            for batch in self.corpus.sources[number].batches(self.corpus.columns, batch_bytes=batch_bytes):
                if batch.first + len(batch) > skip or len(batch) == 0:
                    yield number, batch.part(max(0, skip - batch.first), len(batch))

    def _take(self, source: int, batch: Batch) -> None:
        if batch.faults and self.corpus.on_error == "fail":
            raise InputError(f"{batch.faults[0]}; on-error quarantine goes on without it")
        self.portion.faults.extend(batch.faults)
        self.rows += len(batch)
        self.unusable += batch.texts.null_count
        usable = np.flatnonzero(present(batch.texts))
        if len(usable):
            texts = batch.texts.take(from_numpy(usable)) if batch.texts.null_count else batch.texts
            if pa.types.is_struct(texts.type):
                key, element, count = texts.flatten()
                self.portion.add(key, to_numpy(element), to_numpy(count))
            else:
                self._add_lists(source, batch.first + usable, texts)
        ended = any(fault.row is None for fault in batch.faults)  # and that need not be found again
        self.position = (source + 1, 0) if ended else (source, batch.first + len(batch))
        if self.portion.size >= self.limits.memory // 8:
            self._flush()

    def _add_lists(self, source: int, rows: NDArray[np.int64], lists: pa.Array) -> None:
        """Lists of items turned round: every item is a group, of which the row is an element."""
        sizes = np.diff(to_numpy(lists.offsets))
        elements = hash_column(from_numpy(source * SOURCE_ROWS + rows), 1)
        self.portion.add(lists.flatten(), np.repeat(elements, sizes), np.ones(int(sizes.sum()), dtype=np.int64))

    def _flush(self) -> None:
        """Writes what has gathered as an ascending run; the file that says it is finished last."""
        portion, self.portion = self.portion, _Portion()
        if portion.faults:
            self.work.write_table(f"unusable-{self.number:06}", fault_table(portion.faults))
        if not portion.groups and not portion.faults:
            return
        groups, elements, counts = (
            np.concatenate([np.empty(0, dtype=kind), *pieces])
            for kind, pieces in (
                (np.uint64, portion.groups),
                (np.uint64, portion.elements),
                (np.int64, portion.counts),
            )
        )
        groups, elements, counts = _added_up(groups, elements, counts)
        hashes = np.concatenate([np.empty(0, dtype=np.uint64), *portion.hashes])
        names = pa.concat_arrays(same_type(portion.names)) if portion.names else pa.nulls(0, pa.int64())
        hashes, first = np.unique(hashes, return_index=True)
        self.work.write_table(f"names-{self.number:06}", pa.table({"name": names.take(from_numpy(first))}))
        source, row = self.position
        facts = {"source": source, "row": row, "rows": self.rows, "unusable": self.unusable}
        arrays = {"groups": groups, "elements": elements, "counts": counts.astype(np.uint64), "hashes": hashes}
        self.work.write(f"rows-{self.number:06}", arrays, **facts)
        self.number += 1

    def _refuse_nothing_readable(self) -> None:
        fault = self.work.read_table(self.work.names("unusable-")[0]).slice(0, 1).to_pylist()[0]
        where = [fault["source"], "" if fault["row"] is None else f"row {fault['row']}", fault["reason"]]
        raise InputError(f"no row can be read; {': '.join(filter(None, where))}")

    def _merge(self, progress: Progress) -> int:
        """Writes the groups in the order of their hashes, then which comes when by name; returns how many."""
        self.work.forget("groups-")
        runs = [self.work.open(name) for name in self.work.names("rows-")]
        for run in runs:
            for name in ("groups", "elements", "counts"):
                run.read(name)  # checks it; from here on it is mapped
        done = 0
        with progress.stage("group", sum(run.length("groups") for run in runs), "rows") as stage:
            for slices in cut_runs([run.map("groups") for run in runs], self._most):
                done += self._write_groups(runs, slices)
                stage.advance(sum(piece.stop - piece.start for piece in slices))
        names = self._merged_names(runs)
        if len(names) != done:
            raise InputError(f"the input changed while it was read: {done} groups have {len(names)} names")
        order = to_numpy(pc.sort_indices(names)).astype(np.uint32)
        self.work.write_table("group-names", pa.table({"name": names.take(from_numpy(order))}))
        self.work.write("group-order", {"order": order})
        return done

    @property
    def _most(self) -> int:
        """Rows, or elements, that are in memory together."""
        return max(1, self.limits.memory // 8 // ROW_BYTES)

    def _write_groups(self, runs: list[ArrayFile], slices: list[slice]) -> int:
        """Writes the sets of some groups, a bounded number of elements at a time; returns how many groups."""
        rows = (
            np.concatenate([run.map(name)[piece] for run, piece in zip(runs, slices, strict=True)])
            for name in ("groups", "elements", "counts")
        )
        groups, elements, counts = _added_up(*rows)
        times = counts.astype(np.int64) if self.bag else (counts > 0).astype(np.int64)
        starts = np.append(np.flatnonzero(np.append(True, groups[1:] != groups[:-1])), len(groups))
        sizes = np.add.reduceat(times, starts[:-1])
        for first, last in cuts(np.minimum(sizes, MAX_ELEMENTS), self._most):
            piece = slice(starts[first], starts[last])
            owners = np.repeat(np.arange(last - first), np.diff(starts[first : last + 1]))
            self._write_sets(owners, elements[piece], times[piece], sizes[first:last])
        return len(sizes)

    def _write_sets(
        self, owners: NDArray[np.int64], elements: Words, times: NDArray[np.int64], sizes: NDArray[np.int64]
    ) -> None:
        sets, _ = gather_sets(owners, elements, times, len(sizes))
        arrays = {
            "offsets": to_numpy(sets.offsets).astype(np.uint64),
            "elements": to_numpy(sets.values),
            "too_many": np.where(sizes > MAX_ELEMENTS, sizes, 0).astype(np.uint64),
        }
        self.work.write(f"groups-{len(self.work.names('groups-')):06}", arrays)

    def _merged_names(self, runs: list[ArrayFile]) -> pa.Array:
        """The name of every group, in the order of their hashes."""
        tables = [self.work.read_table(name).column("name") for name in self.work.names("names-")]
        names: list[pa.Array] = [pa.nulls(0, pa.int64())]
        hashes = [run.read("hashes") for run in runs]
        for slices in cut_runs(hashes, self._most):
            together = np.concatenate([run[piece] for run, piece in zip(hashes, slices, strict=True)])
            _, first = np.unique(together, return_index=True)
            parts = [table.slice(cut.start, cut.stop - cut.start) for table, cut in zip(tables, slices, strict=True)]
            chunks = [chunk for part in parts for chunk in part.chunks if len(chunk)]
            names.append(pa.concat_arrays(same_type(chunks)).take(from_numpy(first)))
        return pa.concat_arrays(same_type(names if len(names) == 1 else names[1:]))


def _group_hashes(keys: pa.Array) -> Words:
    """A hash of each name: of its text, so that 3 is 3 whether a file has types or not."""
    return hash_column(keys.cast(pa.large_string()), 0)


def _added_up(groups: Words, elements: Words, counts: NDArray[np.int64]) -> tuple[Words, Words, NDArray[np.int64]]:
    """Rows in order, those of one group and element as one."""
    order = np.lexsort((elements, groups))
    groups, elements, counts = groups[order], elements[order], counts[order]
    if not len(groups):
        return groups, elements, counts
    first = np.ones(len(groups), dtype=bool)
    first[1:] = (groups[1:] != groups[:-1]) | (elements[1:] != elements[:-1])
    starts = np.flatnonzero(first)
    return groups[starts], elements[starts], np.add.reduceat(counts, starts)
