"""Search for the nearest documents: for each document the most similar ones, with their exact similarity.

The kernel (``crates/kernel/src/nearest.rs``) describes how the sets of one index are searched. Copies are collapsed
first, so that every distinct set is in an index once and is looked up once. As many sets as fit a quarter of the memory
limit become an index, in which all queries are looked up; what was found in earlier indexes is passed on. The sets that
were found for each query are in ``near-`` files, and are expanded to documents when rows are read.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.array_files import ArrayFile, Arrays
from minwise._internal.arrays import index_ranges
from minwise.errors import InputError
from minwise.keep_rules import KeepRule
from minwise.search.bands import FILLED, NO_DOCUMENT, cut_runs, pack_pairs
from minwise.search.clustering import CopyGroups
from minwise.search.documents import Documents, SearchJob
from minwise.search.first_pass import read_documents
from minwise.search.pair_runs import merged_runs, write_run
from minwise.search.verification import CandidateVerifier
from minwise.search.weighting import count_frequencies
from minwise.search.workdir import WorkDirectory
from minwise.settings import NearestSettings

__all__ = ["Nearest", "NearestRows", "find_nearest"]

# Bytes of an element and of a set while an index is built, and of the counter of a set in each thread.
ELEMENT_BYTES, SET_BYTES, COUNTER_BYTES = 60, 64, 4
# Bytes of a row while it is found or expanded, and share of the memory, as 1 of so many, for rows in flight.
ROW_BYTES, ROW_SHARE = 64, 32
# Elements that an index has at most.
MOST_ELEMENTS = 2**31 - 1
SetArrays = tuple[NDArray[np.int64], NDArray[np.uint64]]


class NearestRows(NamedTuple):
    """Nearest documents as columns, by left document and rank.

    Attributes:
        left: The document.
        right: A document near it.
        similarity: Their similarity.
        rank: Position among the nearest documents of ``left``, from 1.
    """

    left: NDArray[np.uint32]
    right: NDArray[np.uint32]
    similarity: NDArray[np.float64]
    rank: NDArray[np.uint32]

    def take(self, rows: "slice | NDArray[np.bool_]") -> "NearestRows":
        """Return some of the rows."""
        return NearestRows(self.left[rows], self.right[rows], self.similarity[rows], self.rank[rows])


@dataclass(frozen=True)
class Nearest:
    """Result of a search for the nearest documents.

    Attributes:
        job: The corpus and its settings.
        documents: The documents by number.
        wanted: What was searched for.
        copies: Groups of identical documents.
        weights: Weights of elements; None if all are equal.
    """

    job: SearchJob
    documents: Documents
    wanted: NearestSettings
    copies: CopyGroups
    weights: "_kernel.Weights | None" = None

    @property
    def work(self) -> WorkDirectory:
        """The work directory."""
        return self.job.work

    def rows(self) -> Iterator[NearestRows]:
        """Yield all rows in blocks, by left document and rank."""
        blocks = _Direction(self, reverse=False).rows()
        if self.wanted.mutual:
            blocks = _mutual(blocks, self._chosen())
        if not self.wanted.one_to_one:
            return blocks
        return self._matched(blocks)

    def _chosen(self) -> Iterator[NDArray[np.uint64]]:
        """Yield the pairs of which the right document chose the left one, packed as left and right, in order."""
        if not self.work.has("chosen"):
            self.work.delete("chosen-")  # of an interrupted run
            reverse = _Direction(self, reverse=self.documents.protected > 0)
            for number, block in enumerate(reverse.rows()):
                write_run(self.work, f"chosen-{number:06}", pack_pairs(block.right, block.left), block.similarity)
            self.work.write_json("chosen", {})
        most = self.job.limits.memory // ROW_SHARE // ROW_BYTES
        return (pack_pairs(block.low, block.high) for block in merged_runs(self.work, "chosen-", most))

    def _matched(self, blocks: Iterator[NearestRows]) -> Iterator[NearestRows]:
        """Yield the rows of a matching of which every document is in at most one row."""
        partners = self._partners()
        for block in blocks:
            yield block.take(partners[block.left] == block.right)

    def _partners(self) -> NDArray[np.uint32]:
        """Return the right document of each left one, its own number if it has none."""
        if not self.work.has("partners"):
            blocks = _Direction(self, reverse=False).rows()
            chosen = _mutual(blocks, self._chosen()) if self.wanted.mutual else blocks
            self.work.write("partners", {"right": _match_best_first(self, chosen)})
        right: NDArray[np.uint32] = self.work.open("partners").read("right")
        return right


def find_nearest(job: SearchJob, wanted: NearestSettings) -> Nearest:
    """Find the nearest documents of every document of the input; resume an interrupted run.

    Args:
        job: The corpus and its settings, those of an exact join. With a reference corpus, its documents are searched;
            otherwise those of the input.
        wanted: What to search for.

    Raises:
        InputError: If a side has no documents.
    """
    read_documents(job)
    documents = Documents(job.corpus, job.work)
    _refuse_empty_side(job, documents)
    verifier = CandidateVerifier(job, documents, documents.keep_order(KeepRule()))
    copies = verifier.collapse_copies()
    verifier.spill_sets()
    count_frequencies(job)
    found = Nearest(job, documents, wanted, copies, verifier.weights)
    _Direction(found, reverse=False).search()
    if wanted.mutual and documents.protected:
        _Direction(found, reverse=True).search()
    return found


def _refuse_empty_side(job: SearchJob, documents: Documents) -> None:
    """Raise if there is no document to search, or none to search for."""
    if job.corpus.against and not documents.protected:
        raise InputError("among must have at least one document, got none; leave it out to search the input itself")
    if len(documents) == documents.protected:
        raise InputError("the input must have at least one document, got none")


class _Direction:
    """Search of one side of a corpus for the nearest documents of the other one, or of a corpus in itself.

    Attributes:
        found: The result that the rows belong to.
        reverse: Whether documents of the reference corpus are the queries.
        prefix: Beginning of the names of the files.
        per_call: Number of documents whose rows are in memory at once.
    """

    def __init__(self, found: Nearest, *, reverse: bool) -> None:
        self.found, self.reverse = found, reverse
        self.work, self.limits, self.top = found.work, found.job.limits, found.wanted.top
        self.prefix = "near-back-" if reverse else "near-to-"
        self.files = [found.work.open(name) for name in found.work.names("sets-")]
        self.leaders: NDArray[np.uint32] = found.work.open("sets").read("documents")
        counts = [file.length("offsets") - 1 for file in self.files]
        self.firsts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)
        self.per_call = max(1, self.limits.memory // ROW_SHARE // ROW_BYTES // self.top)

    def _on_side(self, documents: NDArray[np.uint32], *, queries: bool) -> NDArray[np.bool_]:
        """Return a flag for each document that is a query, or that can be found."""
        protected = self.found.documents.protected
        own = queries != self.reverse or not protected
        return documents >= protected if own else documents < protected

    def _sides(self, *, queries: bool) -> NDArray[np.bool_]:
        """Return a flag for each leader that has a copy, or is one itself, on a side."""
        flags = self._on_side(self.leaders, queries=queries)
        followers, leaders = self.found.copies.followers()
        others = leaders[self._on_side(followers, queries=queries)]
        flags[np.searchsorted(self.leaders, others)] = True
        return flags

    @cached_property
    def _asked(self) -> NDArray[np.bool_]:
        """A flag for each leader that is looked up."""
        return self._sides(queries=True)

    @cached_property
    def _listed(self) -> NDArray[np.bool_]:
        """A flag for each leader that can be found."""
        return self._sides(queries=False)

    def _sets(self, first: int, end: int, wanted: NDArray[np.bool_]) -> SetArrays:
        """Return the flagged sets among some leaders of one file."""
        number = int(np.searchsorted(self.firsts, first, side="right")) - 1
        file, before = self.files[number], int(self.firsts[number])
        offsets = file.map("offsets")[first - before : end - before + 1].astype(np.int64)
        elements = file.map("elements")[int(offsets[0]) : int(offsets[-1])]
        flags, sizes = wanted[first:end], np.diff(offsets)
        if not flags.all():
            elements, sizes = elements[np.repeat(flags, sizes)], sizes[flags]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), elements

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """Ranges of leaders that are looked up in one call, each within one file."""
        files, step = pairwise(self.firsts.tolist()), self.per_call
        return [(first, min(first + step, end)) for start, end in files for first in range(start, end, step)]

    def search(self) -> None:
        """Find the nearest leaders of every leader that is a query, index by index."""
        cuts = self._cuts()
        done = self._resume(cuts)
        queries = [self._queries(span) for span in self.spans]
        total, name = sum(queries) * (len(cuts) - 1), "find back" if self.reverse else "find"
        with self.found.job.progress.stage(name, total, "lookups", done=sum(queries) * done) as stage:
            for number, (first, end) in list(enumerate(pairwise(cuts)))[done:]:
                index = self._index(first, end)
                for at in range(len(self.spans)):
                    self._look_up(number, at, index)
                    stage.advance(queries[at])
                self._note(cuts, number + 1)
                self.work.delete(f"{self.prefix}{number - 1:05}-")

    def _queries(self, span: tuple[int, int]) -> int:
        return int(np.count_nonzero(self._asked[slice(*span)]))

    def _resume(self, cuts: list[int]) -> int:
        """Return the number of finished indexes; delete those of a run with another memory limit."""
        name = f"{self.prefix}state"
        state = self.work.read_json(name) if self.work.has(name) else None
        if state is not None and state["done"] == len(state["cuts"]) - 1:
            return len(cuts) - 1
        if state is None or (state["cuts"], state["per_call"]) != (cuts, self.per_call):
            self.work.delete(f"{self.prefix}0")
            self._note(cuts, 0)
            return 0
        return int(state["done"])

    def _note(self, cuts: list[int], done: int) -> None:
        self.work.write_json(f"{self.prefix}state", {"cuts": cuts, "per_call": self.per_call, "done": done})

    def _cuts(self) -> list[int]:
        """Return the first leader of each index, followed by the number of leaders."""
        sizes = [np.diff(file.read("offsets").astype(np.int64)) for file in self.files]
        per_set = SET_BYTES + COUNTER_BYTES * (self.limits.threads or os.cpu_count() or 1)
        costs = (ELEMENT_BYTES * np.concatenate([np.empty(0, np.int64), *sizes]) + per_set) * self._listed
        used = np.concatenate([[0], np.cumsum(costs)])
        room, cuts = min(self.limits.memory // 4, ELEMENT_BYTES * MOST_ELEMENTS), [0]
        while cuts[-1] < len(self.leaders):
            fitting = int(np.searchsorted(used, used[cuts[-1]] + room, side="right")) - 1
            cuts.append(max(fitting, cuts[-1] + 1))
        return cuts

    def _index(self, first: int, end: int) -> "_kernel.NearestIndex":
        """Return an index of the leaders in a range that can be found."""
        batches = []
        for start, stop in pairwise(self.firsts.tolist()):
            low, high = max(start, first), min(stop, end)
            if low < high:
                batches.append(self._sets(low, high, self._listed))
        numbers = self.leaders[first:end][self._listed[first:end]]
        return _kernel.NearestIndex(self.found.weights, batches, numbers, self.limits.threads)

    def _look_up(self, number: int, at: int, index: "_kernel.NearestIndex") -> None:
        """Look up the queries of a span in an index and write what is nearest so far, unless an earlier run has."""
        name = f"{self.prefix}{number:05}-{at:06}"
        if self.work.has(name):
            return
        asked = self._asked[slice(*self.spans[at])]
        queries = self.leaders[slice(*self.spans[at])][asked]
        # A document of one side may be a copy of one of the other side, which it finds.
        own = np.full_like(queries, NO_DOCUMENT) if self.found.documents.protected else queries
        earlier = self.work.open(f"{self.prefix}{number - 1:05}-{at:06}") if number else None
        wanted, threads = self.found.wanted, self.limits.threads
        found, right, similarity, _ = index.nearest(
            *self._sets(*self.spans[at], self._asked),
            own,
            _stored(earlier),
            wanted.top,
            wanted.at_least,
            threads,
            self.found.job.settings.measure == "containment",
        )
        starts = np.concatenate([[0], np.cumsum(np.bincount(found, minlength=len(queries)))]).astype(np.uint64)
        self.work.write(name, {"queries": queries, "starts": starts, "right": right, "similarity": similarity})

    def rows(self) -> Iterator[NearestRows]:
        """Yield the rows of all documents that are queries, in blocks, by document and rank."""
        done = self.work.read_json(f"{self.prefix}state")["done"]
        lists = _Lists([self.work.open(name) for name in self.work.names(f"{self.prefix}{done - 1:05}-")])
        queries = self._query_documents()
        for start in range(0, len(queries), self.per_call):
            yield from self._expanded(queries[start : start + self.per_call], lists)

    def _query_documents(self) -> NDArray[np.int64]:
        documents = np.flatnonzero(self.found.documents.states == FILLED)
        return documents[self._on_side(documents.astype(np.uint32), queries=True)]

    @cached_property
    def _leader_of(self) -> NDArray[np.uint32]:
        """The leader of each document: the first of its copies."""
        leaders = np.arange(len(self.found.documents), dtype=np.uint32)
        followers, firsts = self.found.copies.followers()
        leaders[followers] = firsts
        return leaders

    @cached_property
    def _groups(self) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64]]:
        """The leaders of copies, and start and number of the copies of each that can be found."""
        copies, bounds = self.found.copies, self.found.copies.starts.astype(np.int64)
        listed = self._on_side(copies.members, queries=False)
        before = np.concatenate([[0], np.cumsum(listed)])
        sizes = before[bounds[1:]] - before[bounds[:-1]]
        # Members ascend, so those of a side come first or last.
        starts = np.where(listed[bounds[:-1]], bounds[:-1], bounds[1:] - sizes)
        return copies.leaders, starts, sizes

    def _expanded(self, documents: NDArray[np.int64], lists: "_Lists") -> Iterator[NearestRows]:
        """Yield the rows of some documents, in several blocks if their lists have many copies."""
        leaders = self._leader_of[documents]
        owners, right, similarity = lists.of(leaders)
        if not len(self.found.copies):
            yield _ranked(documents[owners], right, similarity)
            return
        owners, right, similarity = self._with_own_copies(documents, leaders, owners, right, similarity)
        starts, sizes = self._copies_of(right)
        if int(sizes.sum()) * ROW_BYTES > self.limits.memory // ROW_SHARE and len(documents) > 1:
            half = len(documents) // 2
            yield from self._expanded(documents[:half], lists)
            yield from self._expanded(documents[half:], lists)
            return
        members = np.repeat(right, sizes)
        in_group = np.repeat(starts >= 0, sizes)
        members[in_group] = self.found.copies.members[index_ranges(starts, sizes)[in_group]]
        yield self._nearest(documents, np.repeat(owners, sizes), members, np.repeat(similarity, sizes))

    def _with_own_copies(
        self,
        documents: NDArray[np.int64],
        leaders: NDArray[np.uint32],
        owners: NDArray[np.int64],
        right: NDArray[np.uint32],
        similarity: NDArray[np.float64],
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float64]]:
        """Return the lists with the copies of each document, which its leader does not find when it is left out."""
        if self.found.documents.protected:
            return owners, right, similarity
        copied = np.flatnonzero(np.isin(leaders, self._groups[0]))
        owners, right = np.concatenate([owners, copied]), np.concatenate([right, leaders[copied]])
        return owners, right, np.concatenate([similarity, np.ones(len(copied))])

    def _copies_of(self, leaders: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return start and number of the copies of each leader that are wanted; the start is -1 without copies."""
        firsts, starts, sizes = self._groups
        at = np.searchsorted(firsts, leaders)
        at[at == len(firsts)] = 0
        has_copies = firsts[at] == leaders
        enough = np.minimum(sizes[at], self.top + 1)  # one of them may be the document itself
        return np.where(has_copies, starts[at], -1), np.where(has_copies, enough, 1)

    def _nearest(
        self,
        documents: NDArray[np.int64],
        owners: NDArray[np.int64],
        right: NDArray[np.uint32],
        similarity: NDArray[np.float64],
    ) -> NearestRows:
        """Return the nearest ones of each document, without itself."""
        other = right != documents[owners]
        owners, right, similarity = owners[other], right[other], similarity[other]
        order = np.lexsort((right, -similarity, owners))
        rows = _ranked(documents[owners[order]], right[order], similarity[order])
        return rows.take(rows.rank <= self.top)


class _Lists:
    """Nearest leaders of each query, in files."""

    def __init__(self, files: list[ArrayFile]) -> None:
        self.files = files
        queries = [file.read("queries") for file in files]
        self.queries = np.concatenate([np.empty(0, dtype=np.uint32), *queries])
        self.firsts = np.concatenate([[0], np.cumsum([len(part) for part in queries])]).astype(np.int64)

    def of(self, leaders: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float64]]:
        """Return the lists of some queries as columns: index of the query, leader near it, similarity."""
        at = np.searchsorted(self.queries, leaders)
        numbers = np.searchsorted(self.firsts, at, side="right") - 1
        pieces = [
            self._of_file(number, np.flatnonzero(numbers == number), at)
            for number in np.flatnonzero(np.bincount(numbers, minlength=1)).tolist()
        ]
        owners = np.concatenate([np.empty(0, dtype=np.int64), *(piece[0] for piece in pieces)])
        order = np.argsort(owners, kind="stable")
        right = np.concatenate([np.empty(0, dtype=np.uint32), *(piece[1] for piece in pieces)])
        similarity = np.concatenate([np.empty(0), *(piece[2] for piece in pieces)])
        return owners[order], right[order], similarity[order]

    def _of_file(
        self, number: int, indices: NDArray[np.int64], at: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float64]]:
        file, within = self.files[number], at[indices] - self.firsts[number]
        starts = file.map("starts").astype(np.int64)
        sizes = starts[within + 1] - starts[within]
        places = index_ranges(starts[within], sizes)
        return np.repeat(indices, sizes), file.map("right")[places], file.map("similarity")[places]


def _stored(
    file: ArrayFile | None,
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float64]]:
    """Return the lists in a file; empty ones without a file."""
    if file is None:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint32), np.empty(0)
    return file.read("starts").astype(np.int64), file.read("right"), file.read("similarity")


def _ranked(left: NDArray[np.int64], right: NDArray[np.uint32], similarity: NDArray[np.float64]) -> NearestRows:
    """Return rows that are in order, with their rank."""
    starts = np.flatnonzero(np.diff(left, prepend=-1))
    sizes = np.diff(np.append(starts, len(left)))
    rank = np.arange(len(left)) - np.repeat(starts, sizes) + 1
    return NearestRows(left.astype(np.uint32), right, similarity, rank.astype(np.uint32))


def _mutual(blocks: Iterator[NearestRows], chosen: Iterator[NDArray[np.uint64]]) -> Iterator[NearestRows]:
    """Yield the rows that are among the chosen pairs; both are in order of left documents."""
    waiting, ended = np.empty(0, dtype=np.uint64), False
    for block in blocks:
        pairs = pack_pairs(block.left, block.right)
        last = (int(block.left[-1]) + 1) << 32 if len(pairs) else 0
        while not ended and (not len(waiting) or int(waiting[-1]) < last):
            more = next(chosen, None)
            ended = more is None
            waiting = waiting if more is None else np.concatenate([waiting, more])
        yield block.take(np.isin(pairs, waiting))
        waiting = waiting[np.searchsorted(waiting, np.uint64(last)) :]


def _match_best_first(found: Nearest, blocks: Iterator[NearestRows]) -> NDArray[np.uint32]:
    """Return the right document with which each left one is matched, its own number if with none.

    Rows are accepted by descending similarity, equal ones by left document and then by right one, unless one of both
    documents is in an accepted row.
    """
    work = found.work
    work.delete("by-similarity-")  # of an interrupted run
    for number, block in enumerate(blocks):
        keys = ~block.similarity.view(np.uint64)  # positive numbers are ordered as their bits are
        order = np.argsort(keys, kind="stable")
        arrays: Arrays = {"keys": keys[order], "left": block.left[order], "right": block.right[order]}
        work.write(f"by-similarity-{number:06}", arrays)
    partners = np.arange(len(found.documents), dtype=np.uint32)
    taken = np.zeros(len(partners), dtype=bool)
    files = [work.open(name) for name in work.names("by-similarity-")]
    runs = [file.map("keys") for file in files]
    for cuts in cut_runs(runs, found.job.limits.memory // ROW_SHARE // ROW_BYTES):
        order = np.argsort(np.concatenate([run[cut] for run, cut in zip(runs, cuts, strict=True)]), kind="stable")
        left, right = (
            np.concatenate([file.map(name)[cut] for file, cut in zip(files, cuts, strict=True)])[order]
            for name in ("left", "right")
        )
        accepted = _kernel.match_pairs(left, right, taken)
        partners[left[accepted]] = right[accepted]
    work.delete("by-similarity-")
    return partners
