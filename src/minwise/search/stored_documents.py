"""Stored documents of a search: those of saved states that share a key with a document of the input.

Documents of a state are never removed, and pairs of two of them are not needed. So only those take part that share a
bucket with a new document, and only by the keys that they share: every other key has no candidate pair. Buckets,
candidates and their order are those of a search that reads all kept rows.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise.search.bands import FILLED, NO_KEY
from minwise.search.documents import MOST_TOKENS, Corpus, SearchJob, unify_types
from minwise.search.stored_state import SharedKeys, StateSource, StoredState
from minwise.search.workdir import WorkDirectory

__all__ = ["select_stored", "stored_sets", "without_stored"]

# Stored documents that are written together.
CHUNK_DOCUMENTS = 1 << 16

Numbers = NDArray[np.int64]
Sets = tuple[Numbers, NDArray[np.uint64]]


def select_stored(job: SearchJob) -> None:
    """Choose the stored documents that take part, and write what the search needs of them; resume an earlier choice.

    Args:
        job: The search, of which the first pass is finished.
    """
    sources = _stored_sources(job.corpus)
    if not sources:
        return
    for state in _states(sources):
        state.prepare(job)
    if not job.work.has("stored"):
        _Selection(job, _states(sources)).write()
    _choose_rows(sources, job.work)


def without_stored(corpus: Corpus) -> Corpus:
    """Return the corpus without the sources of saved states, which are not read."""
    stored = len(_stored_sources(corpus))
    return replace(corpus, sources=corpus.sources[stored:], against=corpus.against - stored)


def _stored_sources(corpus: Corpus) -> list[StateSource]:
    return [source for source in corpus.sources if isinstance(source, StateSource)]


def _states(sources: Sequence[StateSource]) -> list[StoredState]:
    """Return the states of the sources, in their order."""
    return list({id(source.state): source.state for source in sources}.values())


def _starts(states: Sequence[StoredState]) -> Numbers:
    """Return the number of the first document of each state among those of all, and the total."""
    return np.cumsum([0, *(state.documents for state in states)]).astype(np.int64)


def _choose_rows(sources: Sequence[StateSource], work: WorkDirectory) -> None:
    """Tell the sources which of their rows take part."""
    names = work.names("kept-")
    numbers = np.concatenate([work.open(name).read("numbers").astype(np.int64) for name in names])
    offsets = dict(zip(map(id, _states(sources)), _starts(_states(sources)).tolist(), strict=False))
    for source in sources:
        first = offsets[id(source.state)] + source.first
        start, end = np.searchsorted(numbers, [first, first + source.total])
        source.rows = numbers[start:end] - first


class _Selection:
    """Finds the stored documents that share keys, and writes them as parts of the search."""

    def __init__(self, job: SearchJob, states: list[StoredState]) -> None:
        self.job, self.work, self.states = job, job.work, states
        self.starts = _starts(states)
        self.bands = job.settings.plan.bands

    def write(self) -> None:
        """Write the files; ``stored`` comes last and marks them as finished."""
        self.work.delete("kept")
        chosen = np.zeros(self.starts[-1], dtype=bool)
        with self.job.progress.stage("look up keys", self.bands, "bands") as stage:
            for shared, band in self._lookups():
                chosen[shared.documents] = True
                arrays = {"documents": shared.documents.astype(np.uint64), "keys": shared.keys}
                self.work.write(f"shared-{band:05}", arrays)
                stage.advance(1)
        numbers = np.flatnonzero(chosen)
        for part, start in enumerate(range(0, max(1, len(numbers)), CHUNK_DOCUMENTS)):
            self._write_part(part, start, numbers[start : start + CHUNK_DOCUMENTS])
        sources = _stored_sources(self.job.corpus)
        ends = np.cumsum([source.total for source in sources])
        counts = np.diff(np.searchsorted(numbers, np.concatenate([[0], ends])))
        self.work.write_json("stored", {"rows": counts.tolist()})
        self.work.delete("shared-")

    def _lookups(self) -> Iterator[tuple[SharedKeys, int]]:
        """Yield the documents that share a key in each band; as many bands at a time as memory allows."""
        workers = self._workers()
        with ThreadPoolExecutor(workers) as pool:
            for first in range(0, self.bands, workers):
                bands = range(first, min(first + workers, self.bands))
                yield from zip(pool.map(self._shared, bands), bands, strict=True)

    def _workers(self) -> int:
        rows = sum(self.work.open(name).length("states") for name in self.work.names("part-"))
        each = 24 * rows + (1 << 26)
        return max(1, min(self.job.limits.threads or 2, self.job.limits.memory // 4 // each))

    def _shared(self, band: int) -> SharedKeys:
        keys = self._new_keys(band)
        found = [state.shared(band, keys) for state in self.states]
        documents = [one.documents + start for one, start in zip(found, self.starts.tolist(), strict=False)]
        return SharedKeys(np.concatenate(documents), np.concatenate([one.keys for one in found]))

    def _new_keys(self, band: int) -> NDArray[np.uint64]:
        """Return the keys of a band that documents of this run have, ascending."""
        pieces = [np.empty(0, dtype=np.uint64)]
        for name in self.work.names("part-"):
            file = self.work.open(name)
            pieces.append(file.read(f"band{band}")[file.read("states") == FILLED])
        keys = np.unique(np.concatenate(pieces))
        return keys[: np.searchsorted(keys, np.uint64(NO_KEY))]

    def _write_part(self, part: int, first: int, numbers: Numbers) -> None:
        """Write chosen documents in the layout of the first pass, with the keys that they share."""
        pieces = list(self._by_state(numbers))
        ids = [state.ids(documents) for state, documents in pieces]
        self.work.write_table(f"kept_ids-{part:06}", pa.table({"id": self._with_defaults(numbers, ids)}))
        arrays = {
            name: np.concatenate([state.take(name, documents) for state, documents in pieces])
            if pieces
            else np.empty((0, *shape), dtype=kind)
            for name, kind, shape in (("contents", np.uint64, (2,)), ("states", np.uint8, ()))
        }
        arrays |= {f"band{band}": self._keys(band, numbers) for band in range(self.bands)}
        arrays |= {"lengths": np.zeros(len(numbers), dtype=np.uint64), "numbers": numbers.astype(np.uint64)}
        tokens = [0] * (MOST_TOKENS + 1)
        self.work.write(f"kept-{part:06}", arrays, first=first, spans=[], ended=[], tokens=tokens)

    def _by_state(self, numbers: Numbers) -> Iterator[tuple[StoredState, Numbers]]:
        bounds = np.searchsorted(numbers, self.starts)
        for state, start, low, high in zip(self.states, self.starts, bounds[:-1], bounds[1:], strict=False):
            if low < high:
                yield state, numbers[low:high] - start

    def _keys(self, band: int, numbers: Numbers) -> NDArray[np.uint64]:
        keys = np.full(len(numbers), NO_KEY, dtype=np.uint64)
        file = self.work.open(f"shared-{band:05}")
        documents = file.map("documents")
        low, high = np.searchsorted(documents, [numbers[0], numbers[-1] + 1]) if len(numbers) else (0, 0)
        indices = np.searchsorted(numbers, documents[low:high].astype(np.int64))
        keys[indices] = file.map("keys")[low:high]
        return keys

    def _with_defaults(self, numbers: Numbers, ids: list[pa.Array]) -> pa.Array:
        """Return the ids, with ``name:row`` for documents that have none."""
        whole = all(state.has_whole_ids for state in self.states)
        if whole:
            return pa.concat_arrays([pa.nulls(0, pa.int64()), *ids])
        given = pa.concat_arrays([pa.nulls(0, pa.large_string()), *unify_types([*ids, pa.nulls(0, pa.large_string())])])
        return pc.coalesce(given, self._default_ids(numbers))

    def _default_ids(self, numbers: Numbers) -> pa.Array:
        pieces, first = [pa.nulls(0, pa.large_string())], 0
        for source in _stored_sources(self.job.corpus):
            start, end = np.searchsorted(numbers, [first, first + source.total])
            source.rows = numbers[start:end] - first
            pieces.append(source.default_ids(np.arange(end - start)))
            first += source.total
        return pa.concat_arrays(pieces)


def stored_sets(
    corpus: Corpus, work: WorkDirectory, documents: Numbers
) -> Iterator[tuple[Numbers, NDArray[np.uint64]]]:
    """Yield sizes and elements of the sets of ascending stored documents of a search."""
    states = _states(_stored_sources(corpus))
    numbers = np.concatenate([work.open(name).read("numbers").astype(np.int64) for name in work.names("kept-")])
    chosen, starts = numbers[documents], _starts(states)
    bounds = np.searchsorted(chosen, starts)
    for state, start, low, high in zip(states, starts, bounds[:-1], bounds[1:], strict=False):
        if low < high:
            yield from state.sets(chosen[low:high] - start)
