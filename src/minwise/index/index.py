"""Index: documents remembered on disk. Add, remove and ask one by one; what a call has acknowledged survives."""

import errno
import json
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, overload

from minwise.checks import check_choice, check_path, check_raised, check_whole, show
from minwise.errors import ConfigError, FormatError, InputError
from minwise.index import ingest as bulk
from minwise.index.admission import Admission, Incoming, Names, decide_each, find_holders, gone_of
from minwise.index.answers import Added, Answer, Damage, Decision, DocumentId, Listing, Metadata, StoredDocument
from minwise.index.handle import Opened
from minwise.index.lookup import list_newest, stored_document
from minwise.index.maintenance import describe, find_damage, new_directory, write_signatures
from minwise.index.records import encode_metadata
from minwise.index.settings import IndexSettings
from minwise.index.sketching import Sketched, Sketching, texts_as_bytes
from minwise.index.store import State, Store
from minwise.index.writer import MAX_DOCUMENTS, Change, Gone
from minwise.settings import parse_bytes
from minwise.sketches.planning import Plan
from minwise.sketches.schemes import FastSketch, MinHash
from minwise.sketches.signatures import Signatures
from minwise.text.chunks import Texts
from minwise.text.shingling import Shingler

__all__ = ["Index"]

AnyPath = str | PathLike[str]
AnySource = Any
AnySetting = Any
MOST_HITS = 10_000
# A terabyte, beyond which a size is a mistake.
MOST_CACHED = 10**12
# Documents whose records are held at a time when they are removed.
REMOVED_AT_ONCE = 4096


class Index:
    """A directory of documents that can be asked for near-duplicates of a text.

    One process writes at a time, any number read; each sees everything that was acknowledged before it asked. When
    :meth:`add` or :meth:`remove` returns, what it did survives a crash and a power cut.

    Made by :meth:`create` or :meth:`open`; a context manager. Threads may share one, but take turns.

    Attributes:
        path: The directory.
        mode: ``"r"`` or ``"w"``.

    >>> import minwise as mw, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "news.mw"
    >>> with mw.Index.create(path, threshold=0.7, shingle="word:2") as index:
    ...     _ = index.add(["a", "b"], ["the cat sat on the mat", "a dog barked all night long"])
    ...     [(hit.id, round(hit.similarity, 2)) for hit in index.query("the cat sat on the mat again")]
    [('a', 0.83)]
    """

    def __init__(self, path: Path, mode: str, threads: int | None = None, cache_bytes: int = 0) -> None:
        self.path = path
        self.mode = mode
        self._opened = Opened(path, mode, threads, cache_bytes)

    @classmethod
    def create(
        cls,
        path: AnyPath,
        *,
        threshold: float = 0.8,
        recall: float = 0.99,
        shingle: str = "word:5",
        bag: bool = False,
        scheme: str = "fast",
        slots: int = 256,
        bands: int | None = None,
        rows: int | None = None,
        seed: int | None = None,
        max_bucket: int = 64,
        store: str = "shingles",
    ) -> "Index":
        """A new, empty index, open for writing. None of the settings can be changed later.

        Args:
            path: A directory that does not exist, or is empty.
            threshold: Jaccard similarity from which on documents are near-duplicates; a query may ask for more.
            recall: With what probability one at the threshold is found.
            shingle: ``word:5``, ``char:9``, ``byte:8``: how texts are cut.
            bag: Whether repeated shingles count.
            scheme: ``fast`` or ``minhash``.
            slots: Slots that the plan may use.
            bands: With ``rows``: a layout that wins over ``recall``.
            rows: Slots per band.
            seed: Seed of every hash; drawn at random and kept secret if not given, so that nobody can prepare documents
                that crowd a bucket.
            max_bucket: Members up to which a whole bucket is looked at.
            store: ``shingles`` for exact similarities, ``text`` to keep the texts too, ``sketch`` for estimates in
                little space.
        """
        settings = IndexSettings.chosen(
            threshold=threshold, recall=recall, shingle=shingle, bag=bag, scheme=scheme, slots=slots, bands=bands,
            rows=rows, seed=seed, max_bucket=max_bucket, store=store,
        )  # fmt: skip
        folder = _folder(path)
        with new_directory(folder) as unfinished:
            Store.create(unfinished, [settings.encode(), State().encode(), Sketching(settings).fingerprint()])
        return cls(folder, "w")

    @classmethod
    def open(cls, path: AnyPath, mode: str = "r", *, threads: int | None = None, cache: int | str = 0) -> "Index":
        """An index that is there, for reading (``"r"``) or reading and writing (``"w"``).

        Args:
            path: The directory.
            mode: ``"r"`` or ``"w"``.
            threads: How many threads sketch texts and look them up; all cores if not given.
            cache: Memory that may keep what was read of segments, such as ``256MB``. Whoever asks thousands of times
                gains: the postings of a million documents take 300 MB.
        """
        check_choice("mode", mode, ("r", "w"))
        cache_bytes = check_whole("cache", parse_bytes("cache", cache), 0, MOST_CACHED)
        folder = _folder(path)
        if not folder.exists():
            raise FileNotFoundError(errno.ENOENT, "No such index", str(path))
        if not folder.is_dir():
            raise FormatError(f"{path}: not an index; it must be a directory")
        return cls(folder, mode, threads, cache_bytes)

    def close(self) -> None:
        """Lets go of the files; a second call does nothing."""
        self._opened.close()

    def __enter__(self) -> "Index":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Index({str(self.path)!r}, mode={self.mode!r}, threshold={self.plan.threshold}, store={self.store!r})"

    @property
    def plan(self) -> Plan:
        """Threshold, bands and rows."""
        return self._opened.settings.plan

    @property
    def shingler(self) -> Shingler:
        """How texts are cut; it knows the seed."""
        return self._opened.settings.shingler

    @property
    def scheme(self) -> FastSketch | MinHash:
        """How sketches are made; it knows the seed."""
        return self._opened.settings.scheme

    @property
    def store(self) -> str:
        """What is kept of documents: ``shingles``, ``text`` or ``sketch``."""
        return self._opened.settings.store

    def _names(self, ids: Iterable[object]) -> Names:
        return Names.of(ids, self._opened.settings.find.seed)

    # Asking

    @overload
    def query(
        self,
        texts: str,
        threshold: float | None = None,
        top: int = 10,
        *,
        where: Metadata | None = None,
        with_text: bool = False,
    ) -> Answer: ...
    @overload
    def query(
        self,
        texts: Texts,
        threshold: float | None = None,
        top: int = 10,
        *,
        where: Metadata | None = None,
        with_text: bool = False,
    ) -> list[Answer]: ...
    def query(
        self,
        texts: Texts,
        threshold: float | None = None,
        top: int = 10,
        *,
        where: Metadata | None = None,
        with_text: bool = False,
    ) -> Answer | list[Answer]:
        """The near-duplicates of a text, or of each of several.

        Args:
            texts: A string, or whatever :meth:`Shingler.shingle` takes.
            threshold: The least similarity: that of the index, or any above it.
            top: The most hits for a text.
            where: Only documents whose metadata has these values.
            with_text: Whether hits carry their texts, if the index stores them.
        """
        planned = self.plan.threshold
        least = planned if threshold is None else check_raised(threshold, planned, "which the index was planned for")
        most = check_whole("top", top, 1, MOST_HITS)
        wanted = None if where is None else json.loads(encode_metadata(where, "to ask for"))
        asked = self._opened.sketching.sketch([texts] if isinstance(texts, str) else texts)
        with self._opened.reading():
            shown = with_text and self.store == "text"
            answers = self._opened.lookup.answers(asked, least, most, wanted, with_text=shown)
        return answers[0] if isinstance(texts, str) else answers

    def get(self, id: DocumentId) -> StoredDocument:  # noqa: A002 - the name that documents go by
        """What is stored under an id.

        Raises:
            InputError: If there is no such document.
        """
        with self._opened.reading():
            names = self._names([id])
            held = find_holders(names, self._opened.view, self._opened.store).get(names.names[0])
            if held is None:
                raise InputError(f"id {show(id)} is not in the index {self.path}")
            return stored_document(held.number, held.record, self._opened.settings, self._opened.store)

    def newest(self, limit: int = 50, before: int | None = None) -> Listing:
        """Documents in the order in which they were added, the newest first.

        Args:
            limit: How many; fewer if their texts are long.
            before: ``next`` of the list before, to go on after it; whatever has been added since is not in the way.
        """
        most = check_whole("limit", limit, 1, MOST_HITS)
        below = None if before is None else check_whole("before", before, 0, MAX_DOCUMENTS)
        with self._opened.reading():
            return list_newest(most, below, self._opened.settings, self._opened.store)

    def __contains__(self, id: object) -> bool:  # noqa: A002
        try:
            names = self._names([id])
        except InputError:  # nothing of this kind is in any index
            return False
        with self._opened.reading():
            return bool(find_holders(names, self._opened.view, self._opened.store))

    def __len__(self) -> int:
        with self._opened.reading():
            return self._opened.view.state.documents

    # Changing

    def add(
        self,
        ids: Iterable[DocumentId],
        texts: Texts,
        metadata: Sequence[Metadata | None] | None = None,
        *,
        on_duplicate_id: str = "error",
    ) -> Added:
        """Adds documents, all or none; when it returns they survive whatever happens.

        A document that is there already, the same under the same id, is left as it is, so a call may be repeated.

        Args:
            ids: A string or whole number each; ``5`` and ``"5"`` are the same id.
            texts: As many texts, as :meth:`Shingler.shingle` takes them.
            metadata: As many JSON objects or None, to be returned with hits and to be asked for.
            on_duplicate_id: ``error``, ``skip`` or ``replace``: what becomes of a document whose id has another one.
        """
        return self._add(ids, *self._sketch(texts), metadata, on_duplicate_id)

    def add_signatures(
        self,
        ids: Iterable[DocumentId],
        signatures: Signatures,
        metadata: Sequence[Metadata | None] | None = None,
        *,
        on_duplicate_id: str = "error",
    ) -> Added:
        """Adds documents that were sketched elsewhere with :attr:`scheme` and :attr:`shingler`; as :meth:`add` does.

        Only for an index that stores sketches.
        """
        return self._add(ids, self._opened.sketching.sketched(signatures), [], metadata, on_duplicate_id)

    def _sketch(self, texts: Texts) -> tuple[Sketched, list[bytes]]:
        """The texts sketched and, if they are stored, as bytes."""
        if isinstance(texts, Iterator):
            texts = list(texts)
        return self._opened.sketching.sketch(texts), texts_as_bytes(texts) if self.store == "text" else []

    def _add(
        self,
        ids: Iterable[DocumentId],
        sketched: Sketched,
        texts: list[bytes],
        metadata: Sequence[Metadata | None] | None,
        policy: str,
    ) -> Added:
        incoming = Incoming.of(self._names(ids), sketched, texts, metadata)
        with self._opened.writing() as writer:
            admission = Admission(incoming, [policy] * len(incoming.names), self._opened.view, self._opened.store)
            added = admission.admit_all()
            writer.commit(admission.change())
        return added

    def add_unique(
        self,
        ids: Iterable[DocumentId],
        texts: Texts,
        metadata: Sequence[Metadata | None] | None = None,
        *,
        on_duplicate_id: str = "error",
    ) -> list[Decision]:
        """Adds those documents that are no near-duplicate of one that is there or came before; says so for each.

        What is decided survives when it returns, all of it or nothing. The arguments are those of :meth:`add`.
        """
        return self.add_each(ids, texts, metadata, unique=True, on_duplicate_id=on_duplicate_id)

    def add_each(
        self,
        ids: Iterable[DocumentId],
        texts: Texts,
        metadata: Sequence[Metadata | None] | None = None,
        *,
        unique: bool | Sequence[bool] = False,
        on_duplicate_id: str | Sequence[str] = "error",
    ) -> list[Decision]:
        """Adds documents that may each come with a wish of its own; says what became of each.

        What is decided survives when it returns, all of it or nothing. So those who add at the same time can share the
        wait for the disk.

        Args:
            ids: As in :meth:`add`.
            texts: As in :meth:`add`.
            metadata: As in :meth:`add`.
            unique: Whether it is left out if it is a near-duplicate of one that is there or came before.
            on_duplicate_id: As in :meth:`add`.
        """
        sketched, stored = self._sketch(texts)
        incoming = Incoming.of(self._names(ids), sketched, stored, metadata)
        checked = [unique] * len(sketched) if isinstance(unique, bool) else list(unique)
        policies = [on_duplicate_id] * len(sketched) if isinstance(on_duplicate_id, str) else list(on_duplicate_id)
        if not len(checked) == len(policies) == len(sketched):
            counts = f"{len(checked)}, {len(policies)} and {len(sketched)}"
            raise InputError(f"there must be as many of unique and on_duplicate_id as ids, got {counts}")
        with self._opened.writing() as writer:
            admission = Admission(incoming, policies, self._opened.view, self._opened.store)
            decisions = decide_each(incoming, checked, admission, self._opened.lookup, self._opened.view)
            writer.commit(admission.change(), pushed=True)
        return decisions

    def remove(self, ids: Iterable[DocumentId]) -> int:
        """Removes documents; returns how many were there. When it returns they are gone for good."""
        names, gone = self._names(ids), dict[int, Gone]()
        with self._opened.writing() as writer:
            for start in range(0, len(names), REMOVED_AT_ONCE):
                held = find_holders(names.part(start, start + REMOVED_AT_ONCE), self._opened.view, self._opened.store)
                documents = gone_of(list(held.values()), self._opened.store, texts=self.store == "text")
                gone.update((one.number, one) for one in documents)
            writer.commit(Change.removal(list(gone.values())))
        return len(gone)

    def add_from(self, source: AnySource, *, on_duplicate_id: str = "error", **options: AnySetting) -> dict[str, Any]:
        """Adds every document of files, tables or a stream; see :func:`minwise.index.ingest.add_from`."""
        return bulk.add_from(self, source, on_duplicate_id=on_duplicate_id, **options)

    def add_stream(
        self,
        source: AnySource,
        kept: BinaryIO | None = None,
        decisions: BinaryIO | None = None,
        *,
        on_duplicate_id: str = "error",
        **options: AnySetting,
    ) -> dict[str, Any]:
        """Adds what is no near-duplicate, and says so of every row; see :func:`minwise.index.ingest.add_stream`."""
        return bulk.add_stream(self, source, kept, decisions, on_duplicate_id=on_duplicate_id, **options)

    def query_from(
        self, source: AnySource, threshold: float | None = None, top: int = 10, **options: AnySetting
    ) -> Iterator[dict[str, Any]]:
        """The near-duplicates of every document of a source; see :func:`minwise.index.ingest.query_from`."""
        return bulk.query_from(self, source, threshold=threshold, top=top, **options)

    # Upkeep

    def flush(self) -> None:
        """Moves recent postings into a segment now. What was added is durable without it."""
        with self._opened.writing() as writer:
            writer.flush()

    def compact(self) -> None:
        """Makes one segment of all, and gives back the room of removed documents."""
        with self._opened.writing() as writer:
            writer.compact()

    def backup(self, path: AnyPath) -> None:
        """Copies one state of the index to a new directory, also while another process writes."""
        self._opened.back_up(check_path("path", path))

    def export(self, path: AnyPath) -> int:
        """Writes id, metadata and signature of every document to a Parquet file; returns how many."""
        with self._opened.reading():
            return write_signatures(check_path("path", path), self._opened.settings, self._opened.store)

    def verify(self) -> list[Damage]:
        """Checks every checksum and every count; what is not as it was written."""
        with self._opened.reading():
            return find_damage(self._opened.settings, self._opened.view, self._opened.store)

    def stats(self) -> dict[str, Any]:
        """How much there is, in how many files, and under which settings; a secret seed is left out."""
        with self._opened.reading():
            return describe(self._opened.settings, self._opened.view, self._opened.store)


def _folder(path: AnyPath) -> Path:
    """The directory, wherever the working directory will be."""
    folder = check_path("path", path).absolute()
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise ConfigError(f"path must be UTF-8, got {show(str(path))}") from None
    return folder
