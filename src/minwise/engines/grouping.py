"""Grouping: rows of a long table, in any order and more than fit into memory, in; one source of sets, by group, out.

Every row becomes a group's hash, an element and a count. They are sorted in memory a portion at a time, each portion is
an ascending run on disk, and the runs are merged: all rows of a group come together. Groups are then ordered by their
names (numbers by value, strings bytewise), so neither the order of rows nor how they were cut shows in the result.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise.array_file import ArrayFile
from minwise.arrays import from_numpy, present, to_numpy
from minwise.engines.documents import Corpus, same_type
from minwise.engines.grouped_source import GroupedSource
from minwise.engines.job import Job
from minwise.engines.parts import fault_table
from minwise.engines.work import Work
from minwise.errors import InputError
from minwise.formats.columns import cuts
from minwise.formats.source import Batch, Columns, Fault
from minwise.limits import Limits
from minwise.prefetch import prefetch
from minwise.progress import Progress
from minwise.stages.band import cut_runs
from minwise.stages.elements import MAX_ELEMENTS, gather_sets, hash_column

__all__ = ["group_rows"]

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
