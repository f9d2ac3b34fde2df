"""Grouping: rows of groups and items become one set per group, before the first pass.

With ``group_by`` a row names a group and an item of it; with ``transpose`` a row is a list of items, and every item
becomes a group of row numbers. Rows are hashed and sorted in runs that fit an eighth of the memory limit; then the
runs are merged. :class:`GroupedSource` offers the merged groups to the first pass as sets, ordered by name. A row costs
about 128 bytes of memory while its run is sorted and 24 bytes of disk.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise._internal.array_files import ArrayFile, Arrays
from minwise._internal.arrays import from_lists, from_numpy, index_ranges, to_numpy, valid_mask
from minwise._internal.sorted_arrays import distinct
from minwise.errors import ConfigError, InputError
from minwise.inputs.columns import split_by_bytes
from minwise.inputs.elements import MAX_ELEMENTS, build_sets, hash_column, too_many_elements
from minwise.inputs.files import File
from minwise.inputs.row_edits import RowEdits
from minwise.inputs.source import BATCH_ROWS, Batch, Columns, Fault, Source, fault_error
from minwise.inputs.weights import MAX_WEIGHT, MIN_WEIGHT, UNIT, build_weighted_sets
from minwise.search.bands import cut_runs
from minwise.search.documents import (
    SearchJob,
    describe_first_fault,
    fault_table,
    refuse_unusable_inputs,
    unify_types,
)
from minwise.search.first_pass import ResumableReader
from minwise.search.workdir import WorkDirectory

__all__ = ["GroupedSource", "group_rows"]

# Bytes that a row costs while a run is sorted: hash, element and count, three times each, and the sort order.
ROW_BYTES = 128
# Bytes that the name of a group costs in addition to its text.
NAME_BYTES = 32
# Source numbers are multiplied by this, more than any source has rows, to number the rows of all sources.
SOURCE_ROWS = 1 << 40

# Number of elements that stands for a weight that no element can hold.
UNFIT_WEIGHT = 2**63
UNFIT_RULE = (
    f"has an item whose weights add up to less than {MIN_WEIGHT} or more than {MAX_WEIGHT}; multiply all weights by the"
    " same number"
)

Words = NDArray[np.uint64]


class GroupedSource(Source):
    """Source of the groups in a work directory. A row is a group, its id the group's name."""

    def __init__(self, work: WorkDirectory, sources: Sequence[Source]) -> None:
        self.name = sources[0].name
        self._work, self._sources = work, sources
        self._pieces: list[ArrayFile] = [work.open(name) for name in work.names("groups-")]
        counts = [piece.length("too_many") for piece in self._pieces]
        self._firsts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self._order: NDArray[np.uint32] = work.open("group-order").read("order")

    def fingerprint(self) -> dict[str, object]:
        """Return name and size; the files that the groups were made from have fingerprints of their own."""
        return {"name": self.name, "bytes": self.size_bytes(), "modified": None}

    def size_bytes(self) -> int:
        """Return the bytes of all elements."""
        return 8 * sum(piece.length("elements") for piece in self._pieces)

    def known_rows(self) -> int:
        """Return the number of groups."""
        return len(self._order)

    def stored_files(self) -> Sequence[File]:
        """Return the files that the rows come from."""
        return [file for source in self._sources for file in source.stored_files()]

    def change(self, *, remote: bool = True) -> InputError | None:
        """Return an error if a file that the rows come from has changed since the run began."""
        return next(filter(None, (source.change(remote=remote) for source in self._sources)), None)

    def origins(self) -> Sequence[Source]:
        """Return the sources of the rows."""
        return self._sources

    def default_ids(self, rows: NDArray[np.int64]) -> pa.Array:
        """Return the names of groups."""
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
        """Number of elements of each group, in the order of names."""
        sizes = [np.diff(piece.read("offsets")).astype(np.uint32) for piece in self._pieces]
        return np.concatenate([np.empty(0, dtype=np.uint32), *sizes])[self._order]

    def _read(self, columns: Columns, wanted: NDArray[np.bool_] | None, batch_bytes: int) -> Iterator[Batch]:
        start, ends = 0, np.cumsum(self._sizes, dtype=np.int64)
        while start < len(self._order):
            before = int(ends[start - 1]) if start else 0
            stop = int(np.searchsorted(ends, before + batch_bytes // 8, side="right"))
            stop = min(max(stop, start + 1), start + BATCH_ROWS)
            if wanted is None or wanted[start:stop].any():
                yield self._batch(start, stop)
            start = stop

    def _batch(self, start: int, stop: int) -> Batch:
        positions = self._order[start:stop].astype(np.int64)
        sizes = self._sizes[start:stop].astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        elements = np.empty(int(offsets[-1]), dtype=np.uint64)
        too_many = np.zeros(len(positions), dtype=np.uint64)
        owners = np.searchsorted(self._firsts, positions, side="right") - 1
        for number in distinct(owners).tolist():
            rows = np.flatnonzero(owners == number)
            within = positions[rows] - self._firsts[number]
            piece = self._pieces[number]
            begins = piece.map("offsets")[within].astype(np.int64)
            into, taken = index_ranges(offsets[:-1][rows], sizes[rows]), index_ranges(begins, sizes[rows])
            elements[into] = piece.map("elements")[taken]
            too_many[rows] = piece.map("too_many")[within]
        sets = from_lists(offsets, from_numpy(elements), too_many == 0)
        faults = tuple(self._fault(start + int(row), int(too_many[row])) for row in np.flatnonzero(too_many))
        return Batch(start, sets, self._names.slice(start, stop - start), {}, faults)

    def _fault(self, row: int, elements: int) -> Fault:
        problem = UNFIT_RULE if elements == UNFIT_WEIGHT else too_many_elements(elements)
        return Fault(self.name, row, f"group {self._names[row]} {problem}")

    def copy_kept(self, keep: NDArray[np.bool_], folder: Path, root: str, edits: RowEdits | None = None) -> int:
        """Raise ConfigError: a group is not a row of its file."""
        raise ConfigError("group_by and transpose must be left out with dedup: a group consists of several rows")


def group_rows(job: SearchJob, *, bag: bool) -> SearchJob:
    """Group the rows of a job and return the same job on the groups; resume an interrupted run.

    Args:
        job: A job whose columns make ``Members`` of rows, or lists of items to transpose.
        bag: Whether counts add up; otherwise an item is in a group or not.

    Raises:
        InputError: If no row can be used.
    """
    corpus, work = job.corpus, job.work
    if not work.has("grouped"):
        _RowGrouper(job, bag=bag).run()
    source = GroupedSource(work, corpus.sources)
    grouped = replace(corpus, sources=[source], columns=Columns(text=corpus.columns.text, id=None), root="")
    settings = job.settings.with_held_weights() if work.read_json("grouped")["real"] else job.settings
    return replace(job, corpus=grouped, settings=settings)


@dataclass(slots=True)
class _RowRun:
    """Rows that are sorted and written together, collected batch by batch."""

    groups: list[Words] = field(default_factory=list)
    elements: list[Words] = field(default_factory=list)
    counts: list[NDArray[np.float64]] = field(default_factory=list)
    names: list[pa.Array] = field(default_factory=list)
    hashes: list[Words] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    size: int = 0

    def add(self, keys: pa.Array, elements: Words, counts: NDArray[np.float64]) -> None:
        """Add rows, and the name of each of their groups once."""
        groups = _group_hashes(keys)
        hashes, first = np.unique(groups, return_index=True)
        names = keys.take(from_numpy(first))
        self.groups.append(groups)
        self.elements.append(elements)
        self.counts.append(counts)
        self.hashes.append(hashes)
        self.names.append(names)
        self.size += ROW_BYTES * len(groups) + NAME_BYTES * len(names) + int(names.nbytes)

    def sorted_rows(self) -> tuple[Words, Words, NDArray[np.float64]]:
        """Return groups, elements and counts in order."""
        groups, elements = (
            np.concatenate([np.empty(0, np.uint64), *column]) for column in (self.groups, self.elements)
        )
        return _add_counts(groups, elements, np.concatenate([np.empty(0), *self.counts]))

    def sorted_names(self) -> tuple[Words, pa.Array]:
        """Return the hash and the name of each group once, in order of hashes."""
        hashes = np.concatenate([np.empty(0, dtype=np.uint64), *self.hashes])
        names = pa.concat_arrays(unify_types(self.names)) if self.names else pa.nulls(0, pa.int64())
        hashes, first = np.unique(hashes, return_index=True)
        return hashes, names.take(from_numpy(first))


class _RowGrouper(ResumableReader):
    """Writes rows as sorted runs, and merges the runs to groups."""

    unfinished = ("names-", "unusable-")

    def __init__(self, job: SearchJob, *, bag: bool) -> None:
        super().__init__(job)
        self.bag, self.settings = bag, job.settings
        self.run_rows = _RowRun()
        self.rows = self.unusable = 0
        # Whether the weight of any row is not a whole number, and whether any is above 0.
        self.real = self.weighs = False
        self.usable = [0] * len(job.corpus.sources)
        self.position = (0, 0)

    def run(self) -> None:
        self.read("read rows", "rows")
        self._flush()
        unusable = self.work.names("unusable-")
        if not self.rows - self.unusable and unusable:
            raise InputError(f"no row can be read; {describe_first_fault(self.work.read_table(unusable[0]))}")
        refuse_unusable_inputs(self.corpus, self.work, self.usable)
        if self.rows > self.unusable and not self.weighs:
            raise InputError(
                f"weight must be above 0 in at least one row, got 0 in all {self.rows - self.unusable} rows"
            )
        if self.real:
            self.settings.with_held_weights()  # refuses settings before the work
        groups = self._merge()
        counts = {"groups": groups, "rows": self.rows, "unusable": self.unusable, "real": self.real}
        self.work.write_json("grouped", counts)
        self.work.delete("rows-")
        self.work.delete("names-")

    def rows_read(self) -> int:
        return self.rows

    def resume(self) -> tuple[int, int]:
        runs = self.work.names("rows-")
        if runs:
            header = self.work.open(runs[-1]).header
            self.number, self.position = len(runs), (header["source"], header["row"])
            self.rows, self.unusable, self.usable = header["rows"], header["unusable"], header["usable"]
            self.real, self.weighs = header["real"], header["weighs"]
        return self.position

    def add(self, source: int, batch: Batch) -> None:
        if batch.faults and self.corpus.on_error == "fail":
            raise fault_error(batch.faults[0])
        self.run_rows.faults.extend(batch.faults)
        self.rows += len(batch)
        self.unusable += batch.values.null_count
        usable = np.flatnonzero(valid_mask(batch.values))
        self.usable[source] += len(usable)
        if len(usable):
            values = batch.values.take(from_numpy(usable)) if batch.values.null_count else batch.values
            if pa.types.is_struct(values.type):
                key, element, count = values.flatten()
                counts = to_numpy(count)
                self.real |= bool((counts != np.floor(counts)).any())
                self.weighs |= bool(counts.any())
                self.run_rows.add(key, to_numpy(element), counts)
            else:
                self.weighs = True
                self._add_lists(source, batch.first + usable, values)
        ended = any(fault.row is None for fault in batch.faults)  # a resumed run must not read up to the fault again
        self.position = (source + 1, 0) if ended else (source, batch.first + len(batch))
        if self.run_rows.size >= self.limits.memory // 8:
            self._flush()

    def _add_lists(self, source: int, rows: NDArray[np.int64], lists: pa.Array) -> None:
        """Transpose lists of items: every item is a group, of which the row is an element."""
        sizes = np.diff(to_numpy(lists.offsets))
        elements = hash_column(from_numpy(source * SOURCE_ROWS + rows), 1)
        self.run_rows.add(lists.flatten(), np.repeat(elements, sizes), np.ones(int(sizes.sum())))

    def _flush(self) -> None:
        """Write the collected rows as a sorted run; its ``rows-`` file comes last and marks it as finished."""
        run, self.run_rows = self.run_rows, _RowRun()
        if run.faults:
            self.work.write_table(f"unusable-{self.number:06}", fault_table(run.faults))
        if not run.groups and not run.faults:
            return
        groups, elements, counts = run.sorted_rows()
        hashes, names = run.sorted_names()
        self.work.write_table(f"names-{self.number:06}", pa.table({"name": names}))
        source, row = self.position
        header = {"source": source, "row": row, "rows": self.rows, "unusable": self.unusable, "usable": self.usable}
        arrays: Arrays = {"groups": groups, "elements": elements, "counts": counts, "hashes": hashes}
        self.work.write(f"rows-{self.number:06}", arrays, **header, real=self.real, weighs=self.weighs)
        self.number += 1

    def _merge(self) -> int:
        """Write the groups in the order of their hashes, and their order by name; return how many there are."""
        self.work.delete("groups-")
        runs = [self.work.open(name) for name in self.work.names("rows-")]
        groups = 0
        with self.progress.stage("group", sum(run.length("groups") for run in runs), "rows") as stage:
            for slices in cut_runs([run.map("groups") for run in runs], self._most):
                groups += self._write_groups(runs, slices)
                stage.advance(sum(piece.stop - piece.start for piece in slices))
        names = self._merged_names(runs)
        if len(names) != groups:
            raise InputError(f"the input changed while it was read: {groups} groups have {len(names)} names")
        order = to_numpy(pc.sort_indices(names)).astype(np.uint32)
        self.work.write_table("group-names", pa.table({"name": names.take(from_numpy(order))}))
        self.work.write("group-order", {"order": order})
        return groups

    @property
    def _most(self) -> int:
        """Maximum number of rows, or elements, in memory at once."""
        return max(1, self.limits.memory // 8 // ROW_BYTES)

    def _write_groups(self, runs: list[ArrayFile], slices: list[slice]) -> int:
        """Write the sets of some groups, a bounded number of elements at a time; return the number of groups."""
        rows = (
            np.concatenate([run.map(name)[piece] for run, piece in zip(runs, slices, strict=True)])
            for name in ("groups", "elements", "counts")
        )
        groups, elements, counts = _add_counts(*rows)
        times = counts if self.bag else (counts > 0).astype(np.float64)
        starts = np.append(np.flatnonzero(np.append(True, groups[1:] != groups[:-1])), len(groups))
        occurrences = (times > 0) if self.real else times
        sizes = np.add.reduceat(occurrences, starts[:-1], dtype=np.float64).astype(np.int64)
        for first, last in split_by_bytes(np.minimum(sizes, MAX_ELEMENTS), self._most):
            piece = slice(starts[first], starts[last])
            owners = np.repeat(np.arange(last - first), np.diff(starts[first : last + 1]))
            self._write_sets(owners, elements[piece], times[piece], sizes[first:last])
        return len(sizes)

    def _write_sets(
        self, owners: NDArray[np.int64], elements: Words, times: NDArray[np.float64], sizes: NDArray[np.int64]
    ) -> None:
        too_many = np.where(sizes > MAX_ELEMENTS, sizes, 0).astype(np.uint64)
        if self.real:
            sets, _ = build_weighted_sets(owners, elements, times, len(sizes))
            too_many[~valid_mask(sets) & (too_many == 0)] = UNFIT_WEIGHT
        else:
            sets, _ = build_sets(owners, elements, times.astype(np.int64), len(sizes))
        arrays = {
            "offsets": to_numpy(sets.offsets).astype(np.uint64),
            "elements": to_numpy(sets.values),
            "too_many": too_many,
        }
        self.work.write(f"groups-{len(self.work.names('groups-')):06}", arrays)

    def _merged_names(self, runs: list[ArrayFile]) -> pa.Array:
        """Return the name of every group, in the order of their hashes."""
        tables = [self.work.read_table(name).column("name") for name in self.work.names("names-")]
        names: list[pa.Array] = [pa.nulls(0, pa.int64())]
        hashes = [run.read("hashes") for run in runs]
        for slices in cut_runs(hashes, self._most):
            merged = np.concatenate([run[piece] for run, piece in zip(hashes, slices, strict=True)])
            _, first = np.unique(merged, return_index=True)
            parts = [table.slice(cut.start, cut.stop - cut.start) for table, cut in zip(tables, slices, strict=True)]
            chunks = [chunk for part in parts for chunk in part.chunks if len(chunk)]
            names.append(pa.concat_arrays(unify_types(chunks)).take(from_numpy(first)))
        return pa.concat_arrays(unify_types(names if len(names) == 1 else names[1:]))


def _group_hashes(keys: pa.Array) -> Words:
    """Return a hash of each name as text, so that 3 is one group in files with and without types."""
    return hash_column(keys.cast(pa.large_string()), 0)


def _add_counts(
    groups: Words, elements: Words, counts: NDArray[np.float64]
) -> tuple[Words, Words, NDArray[np.float64]]:
    """Return the rows in order, with the counts of equal group and element added.

    Counts are rounded to units of a weight, so that their sums do not depend on the order of rows.
    """
    counts = np.rint(counts / UNIT) * UNIT
    order = np.lexsort((elements, groups))
    groups, elements, counts = groups[order], elements[order], counts[order]
    if not len(groups):
        return groups, elements, counts
    first = np.ones(len(groups), dtype=bool)
    first[1:] = (groups[1:] != groups[:-1]) | (elements[1:] != elements[:-1])
    starts = np.flatnonzero(first)
    return groups[starts], elements[starts], np.add.reduceat(counts, starts)
