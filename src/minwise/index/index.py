"""Persistent index: documents on disk, with durable additions and removals, and near-duplicate queries."""

import errno
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast, get_args

from minwise._internal.display import facts_html, middle
from minwise._internal.formatting import plural
from minwise.checks import check_choice, check_integer, check_path, check_raised_threshold, check_threads, show
from minwise.errors import ConfigError, FormatError, InputError, MismatchError
from minwise.index import ingest
from minwise.index.clusters import Clusters
from minwise.index.database import DATABASE, REMEDY
from minwise.index.dedup_on_add import AddBuilder, NewDocuments, decide_documents, removed_documents
from minwise.index.expiry import ExpiryRule, ExpiryScan
from minwise.index.ingest import FileFormat, IndexSource, ReadOptions
from minwise.index.lookup import Lookup
from minwise.index.maintenance import back_up, describe, find_damage, new_directory, write_signatures
from minwise.index.records import DocumentIds, encode_metadata
from minwise.index.result_types import (
    AddCounts,
    Added,
    Answer,
    Damage,
    Decision,
    DedupCounts,
    DocumentId,
    Expired,
    IndexStats,
    Listing,
    Metadata,
    OnDuplicateId,
    QueryRow,
    StoredDocument,
    TextMatches,
)
from minwise.index.settings import Documents, IndexSettings, IndexSketcher, OpenMode, SketchedTexts, encode_texts
from minwise.index.store import State, Store
from minwise.index.view import ATTEMPTS, FINGERPRINT_ROW, SETTINGS_ROW, View
from minwise.index.writer import MAX_DOCUMENTS, RemovedDocument, WriteBatch, Writer
from minwise.inputs.items import ItemSets
from minwise.inputs.records import RecordFields
from minwise.options import MAX_CANDIDATES, IndexOptions, MeasureName, OnError, StoreName, with_defaults
from minwise.progress import ProgressSetting
from minwise.settings import parse_bytes, progress_of
from minwise.sketches.planning import Plan
from minwise.sketches.schemes import FastSketch, MinHash
from minwise.sketches.signatures import Signatures
from minwise.text.chunks import Texts
from minwise.text.shingling import Shingler

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Index"]

AnyPath = str | PathLike[str]
MAX_HITS = 10_000
# Largest number of comparisons that a query may be allowed. At 2 to 6.4 µs each, they take 2 to 7 seconds.
LARGEST_BUDGET = 1_000_000
# End of the message about a threshold that is too low.
NEAREST_REMEDY = "; 0 is no threshold, only the most similar"
# A terabyte; a larger size is a mistake.
MAX_CACHE_BYTES = 10**12
# Documents whose records are in memory at a time during a removal.
REMOVAL_DOCUMENTS = 4096
# Columns of a path in the short form of an index, which fits a terminal.
PATH_WIDTH = 70


class Index:
    """A persistent directory of documents that answers near-duplicate queries.

    One process writes at a time, and any number of processes read; each query sees all earlier commits. When
    :meth:`add` or :meth:`remove` returns, its changes survive a crash and a power failure.

    Created by :meth:`create` or :meth:`open`; a context manager. Threads may share one object; their calls run one
    after the other.

    Attributes:
        path: The index directory.
        mode: ``"r"`` for reading, or ``"w"`` for reading and writing.

    >>> import minwise as mw, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "news.mw"
    >>> with mw.Index.create(path, threshold=0.7, shingle="word:2") as index:
    ...     _ = index.add(["a", "b"], ["the cat sat on the mat", "a dog barked all night long"])
    ...     [(hit.id, round(hit.similarity, 2)) for hit in index.query("the cat sat on the mat again").hits]
    [('a', 0.83)]
    """

    def __init__(self, path: Path, mode: OpenMode, threads: int | None = None, cache_bytes: int = 0) -> None:
        self.path = path
        self.mode = mode
        self._lock = threading.RLock()
        self._closed = False
        self._store = Store(path, writable=mode == "w")
        try:
            self._load(check_threads(threads), cache_bytes)
        except BaseException:
            self._store.close()
            raise

    def _load(self, threads: int, cache_bytes: int) -> None:
        """Read the settings and the current state, and prepare the writer."""
        self._settings = self._read_settings()
        self._store.sketch_bytes = self._settings.sketch_bytes
        self._sketcher = IndexSketcher(self._settings, threads)
        self._check_fingerprint()
        self._view = View(self._store, self._settings.plan.bands, cache_bytes)
        with self._view.snapshot():
            pass
        if self.mode == "w":
            self._store.recover_log()
        self._lookup = Lookup(self._settings, self._view, self._store, threads)
        upgrade = self._settings.encode() if self._settings.version < self._settings.current_version else None
        self._writer = Writer(self._store, self._view, upgrade) if self.mode == "w" else None

    def _read_settings(self) -> IndexSettings:
        try:
            return IndexSettings.decode(self._store.content("manifest", SETTINGS_ROW))
        except (ConfigError, FormatError, MismatchError) as error:
            if str(error).startswith(str(self.path)):
                raise
            kind = MismatchError if isinstance(error, MismatchError) else FormatError
            raise kind(f"{self.path / DATABASE}: {error}") from None

    def _check_fingerprint(self) -> None:
        """Raise ``MismatchError`` if this version shingles or sketches differently from the creator of the index."""
        stored, current = self._store.content("manifest", FINGERPRINT_ROW), self._sketcher.fingerprint()
        if stored != current:
            rule = "the settings must give the same sketches as at creation"
            values = f"fingerprint {stored.hex()} there, {current.hex()} here"
            raise MismatchError(f"{self.path / DATABASE}: {rule}: {values}")

    @classmethod
    def create(cls, path: AnyPath, **options: "Unpack[IndexOptions]") -> "Index":
        """Create an empty index and open it for writing. Its settings cannot be changed later.

        Args:
            path: A directory that does not exist, or is empty.
            **options: Settings; see Keyword Args.

        Keyword Args:
            threshold: Minimum Jaccard similarity of a near-duplicate pair, above 0 and at most 1. Default: 0.8.
            recall: Probability of finding a pair at the threshold, between 0 and 1; bands and rows are chosen to reach
                it. Default: 0.99.
            scheme: Sketch scheme: fast (FastSketch) or minhash (classical MinHash, slower). Default: fast.
            slots: Maximum number of slots of a signature that the plan may use. Default: 256.
            bands: Number of bands, given together with rows; replaces recall.
            rows: Slots per band, given together with bands.
            nfkc: Apply Unicode normalisation form KC: full-width letters, ligatures and composed accents become
                ordinary ones. Default: True.
            strip_accents: Remove accents: the combining diacritical marks U+0300–U+036F. Default: False.
            lowercase: Convert each character to lower case. Default: True.
            strip_punctuation: Remove punctuation and symbols. Default: False.
            mask_digits: Replace each decimal digit by 0, so that texts with other numbers are equal. Default: False.
            collapse_whitespace: Replace each run of white space by one space, and strip both ends. Default: True.
            shingle: Tokens of a shingle: word:N, char:N or byte:N; set for documents that are sets of items. Default:
                word:5.
            bag: Count repeated shingles, so that similarity is that of multisets. Default: False.
            fields: Fields that records are compared by, such as 'name:char:3 phone:digits born:whole'. A mapping is
                accepted, too.
            weights: Weights of fields, or of items of sets, from 0.001 to 1000, such as 'name=2 city=0.5'; every other
                one has weight 1. An index takes whole numbers, for fields only. A mapping is accepted, too.
            seed: Seed of every hash; if not given, a random one that is kept secret, against crafted documents.
            max_bucket: Members of a bucket that are searched, the first in order of addition. Default: 10000.
            store_text: Store the texts too, to show passages of them. Default: False.
            sketch_only: Store only sketches: smaller, and similarities are estimates. Excludes store_text. Default:
                False.
            assign: Assign every document to a cluster when it is added: that of the stored documents similar to it.
                Names of clusters never change; those that a new document connects are merged. Default: False.

        Raises:
            ConfigError: If a setting breaks its rule, or the directory is not empty.
        """
        settings = IndexSettings.from_options(**with_defaults(IndexOptions, options))
        folder = _absolute(path)
        with new_directory(folder) as unfinished:
            Store.create(unfinished, [settings.encode(), State().encode(), IndexSketcher(settings).fingerprint()])
        return cls(folder, "w")

    @classmethod
    def open(cls, path: AnyPath, mode: OpenMode = "r", *, threads: int | None = None, cache: int | str = 0) -> "Index":
        """Open an existing index.

        Args:
            path: The index directory.
            mode: ``"r"`` for reading, or ``"w"`` for reading and writing.
            threads: Number of threads that sketch texts and look them up, from 1 to 1024; default: all cores.
            cache: Memory for segment data that was read, in bytes or as a string such as ``256MB``. It makes thousands
                of queries faster: the postings of a million documents take 300 MB.

        Raises:
            FileNotFoundError: If the directory does not exist.
            FormatError: If it is not an index, or damaged.
            ConfigError: If another process has it open for writing, and ``mode`` is ``"w"``.
        """
        check_choice("mode", mode, ("r", "w"))
        cache_bytes = check_integer("cache", parse_bytes("cache", cache), 0, MAX_CACHE_BYTES)
        folder = _absolute(path)
        if not folder.exists():
            raise FileNotFoundError(errno.ENOENT, "No such index", str(path))
        if not folder.is_dir():
            raise FormatError(f"{path}: not an index; it must be a directory")
        return cls(folder, mode, threads, cache_bytes)

    def close(self) -> None:
        """Close all files; a second call does nothing."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._store.close()

    def __enter__(self) -> "Index":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{plural(len(self), 'document')}, mode {self.mode!r}"
        facts = f"{state}, threshold {self.plan.threshold:g}, stores {self.store}"
        return f"Index({middle(str(self.path), PATH_WIDTH)!r})\n  {facts}"

    def _repr_html_(self) -> str:
        """Return size and settings for a notebook."""
        size = "closed" if self._closed else plural(len(self), "document")
        facts = {
            "documents": size,
            "mode": self.mode,
            "plan": str(self.plan),
            "shingle": self._settings.element_settings["shingle"],
        }
        return facts_html(f"Index {self.path}", {**facts, "stored": self.store})

    @property
    def plan(self) -> Plan:
        """Threshold, bands and rows."""
        return self._settings.plan

    @property
    def assigns_clusters(self) -> bool:
        """Whether documents are assigned to clusters when they are added."""
        return self._settings.assign

    @property
    def shingler(self) -> Shingler:
        """The shingler of an index of texts; it holds the seed."""
        if self._settings.shingler is None:
            raise ConfigError(f"shingler is of an index of texts, got one of {self._settings.kind}s: {self.path}")
        return self._settings.shingler

    @property
    def elements(self) -> ItemSets | RecordFields | None:
        """The rule that makes sets from items or records; None for an index of texts."""
        return self._settings.elements

    @property
    def scheme(self) -> FastSketch | MinHash:
        """The sketching scheme of the index; it holds the seed."""
        return self._settings.scheme

    @property
    def store(self) -> StoreName:
        """The stored part of documents: ``shingles``, ``text`` or ``sketch``."""
        return self._settings.store

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Show the newest state for the duration of the block."""
        with self._lock:
            if self._closed:
                raise ConfigError(f"index {self.path} must be open, got a closed one; open it again")
            with self._view.snapshot():
                yield

    @contextmanager
    def _writing(self) -> Iterator[Writer]:
        """Yield the writer, on the newest state; an exception in the block resets the view."""
        with self._lock:
            if self._writer is None:
                raise ConfigError(f"index {self.path} is open for reading; open it with mode 'w' to change it")
            if not self._closed:
                self._store.check_sync_failure()
            with self._reading():
                try:
                    yield self._writer
                except BaseException:
                    self._view.invalidate()
                    raise

    def _check_ids(self, ids: Iterable[object]) -> DocumentIds:
        return DocumentIds.check(ids, self._settings.seed)

    # Reading

    def query(
        self,
        text: str | bytes | Mapping[str, Any] | Iterable[int | str],
        threshold: float | None = None,
        top: int = 10,
        *,
        max_candidates: int = MAX_CANDIDATES,
        where: Metadata | None = None,
        measure: MeasureName = "jaccard",
        with_text: bool = False,
    ) -> Answer:
        """Return the near-duplicates of one text.

        Args:
            text: The text; bytes must be valid UTF-8 unless the index uses byte shingles. In an index of records a
                mapping of fields, and in one of sets a collection of items.
            threshold: Minimum similarity of a hit, at least the threshold of the index, which is the default. 0 for
                none: the most similar documents, however similar. Bands find dissimilar ones rarely, so each hit states
                its recall, and the answer the similarity above which it is complete.
            top: Maximum number of hits, from 1 to 10000. Default: 10.
            max_candidates: Maximum number of candidates that are compared for a text, from 1 to 1000000, the most
                promising first; an answer that needs more is truncated. A candidate counts once for every started 4,096
                bytes of its stored row, so that it bounds the time for long documents, too. Default: 10000.
            where: Metadata values that a hit must have; default: no filter.
            measure: ``jaccard``, or ``containment``: hits hold the text or lie in it; ``threshold`` may then be any
                share above 0, since each hit states its own recall. The index must store shingles or texts.
            with_text: Whether hits include their texts, if the index stores them. Default: False.

        Returns:
            The hits, most similar first, and whether the search was cut short, by what, and what it left out.

        Raises:
            ConfigError: If ``threshold``, ``top`` or ``max_candidates`` is out of range.
            InputError: If the text is not a string or not valid UTF-8.
        """
        if self.elements is None and not isinstance(text, (str, bytes)):
            raise InputError(f"text must be one string or bytes, got {type(text).__name__}; use query_many for a list")
        (answer,) = self.query_many(
            cast(Documents, [text]),
            threshold,
            top,
            max_candidates=max_candidates,
            where=where,
            measure=measure,
            with_text=with_text,
        )
        return answer

    def query_many(
        self,
        texts: Documents,
        threshold: float | None = None,
        top: int = 10,
        *,
        max_candidates: int = MAX_CANDIDATES,
        where: Metadata | None = None,
        measure: MeasureName = "jaccard",
        with_text: bool = False,
    ) -> list[Answer]:
        """Return the near-duplicates of each of many texts, in their order. One call is faster than a call per text.

        Args:
            texts: A list of strings or bytes, or a column of a pyarrow, pandas or polars table; or a list of
                records or sets.
            threshold: Minimum similarity of a hit, at least the threshold of the index, which is the default. 0 for
                none: the most similar documents, however similar. Bands find dissimilar ones rarely, so each hit states
                its recall, and the answer the similarity above which it is complete.
            top: Maximum number of hits per text, from 1 to 10000.
            max_candidates: Maximum number of candidates that are compared for a text, from 1 to 1000000, the most
                promising first; an answer that needs more is truncated. A candidate counts once for every started 4,096
                bytes of its stored row, so that it bounds the time for long documents, too. Default: 10000.
            where: Metadata values that a hit must have; default: no filter.
            measure: ``jaccard``, or ``containment``: hits hold the text or lie in it; ``threshold`` may then be any
                share above 0, since each hit states its own recall. The index must store shingles or texts.
            with_text: Whether hits include their texts, if the index stores them.

        Raises:
            ConfigError: If ``threshold``, ``top`` or ``max_candidates`` is out of range.
            InputError: If a text is null, not a string or not valid UTF-8; the message names its position.
        """
        minimum = self._query_threshold(threshold, measure)
        maximum = check_integer("top", top, 1, MAX_HITS)
        budget = check_integer("max_candidates", max_candidates, 1, LARGEST_BUDGET)
        condition = None if where is None else json.loads(encode_metadata(where, "to query for"))
        sketches = self._sketcher.sketch(texts)
        with_text = with_text and self._settings.stores_text
        with self._reading():
            return self._lookup.query(
                sketches, minimum, maximum, budget, condition, measure=measure, with_text=with_text
            )

    def _query_threshold(self, threshold: float | None, measure: MeasureName) -> float:
        """Return the minimum similarity of a query."""
        check_choice("measure", measure, get_args(MeasureName))
        if measure == "containment" and not self._settings.exact:
            rule = "measure must be jaccard for an index of sketches, which do not tell how large a document is"
            raise ConfigError(f"{rule}; got containment, create the index without sketch_only")
        if threshold is None:
            return self.plan.threshold
        if measure == "jaccard":
            if threshold == 0 and not isinstance(threshold, bool):
                return 0.0
            return check_raised_threshold(
                threshold, self.plan.threshold, "which the index was planned for", NEAREST_REMEDY
            )
        if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not 0 < threshold <= 1:
            raise ConfigError(f"threshold must be above 0 and at most 1, got {show(threshold)}")
        return float(threshold)

    def get(self, id: DocumentId) -> StoredDocument:  # noqa: A002 - the public name of document ids
        """Return the document with an id.

        Args:
            id: A string or an integer; ``5`` and ``"5"`` are the same id.

        Raises:
            InputError: If there is no such document.
        """
        with self._reading():
            ids = self._check_ids([id])
            existing = self._lookup.find_ids(ids).get(ids.encoded[0])
            if existing is None:
                raise InputError(f"id {show(id)} is not in the index {self.path}")
            return self._lookup.document(existing)

    def newest(self, limit: int = 50, before: int | None = None) -> Listing:
        """Return a page of documents in reverse order of addition.

        Args:
            limit: Maximum number of documents, from 1 to 10000; a page ends earlier if it holds more than 8 MB.
            before: ``next`` of the previous page; documents that were added since do not shift the pages. Default: the
                first page.
        """
        maximum = check_integer("limit", limit, 1, MAX_HITS)
        bound = None if before is None else check_integer("before", before, 0, MAX_DOCUMENTS)
        with self._reading():
            return self._lookup.newest(maximum, bound)

    def search_text(self, phrase: str, limit: int = 50, before: int | None = None) -> TextMatches:
        """Return the documents whose texts contain a phrase, the newest first, a page at a time.

        Upper and lower case are the same, and so are all blanks and line breaks between two words. A page ends after
        5,000 documents or 8 MB of text, so that a call is short: repeat it with ``before`` until ``next`` is None.

        Args:
            phrase: One or several words, or a part of a word.
            limit: Maximum number of documents, from 1 to 10000.
            before: ``next`` of the previous page. Default: the first page.

        Raises:
            ConfigError: If the index does not store texts, or a number is out of range.
            InputError: If the phrase is empty or not a string.
        """
        if not isinstance(phrase, str) or not phrase:
            raise InputError(f"phrase must be a string with at least one character, got {show(phrase)}")
        if not self._settings.stores_text:
            refusal = f"a text search needs an index that stores texts, got one of {self.store}"
            raise ConfigError(f"{refusal}; create it with store_text=True")
        maximum = check_integer("limit", limit, 1, MAX_HITS)
        bound = None if before is None else check_integer("before", before, 0, MAX_DOCUMENTS)
        with self._reading():
            return self._lookup.search_text(phrase, maximum, bound)

    def __contains__(self, id: object) -> bool:  # noqa: A002
        try:
            ids = self._check_ids([id])
        except InputError:  # not an id, so no document has it
            return False
        with self._reading():
            return bool(self._lookup.find_ids(ids))

    def __len__(self) -> int:
        with self._reading():
            return self._view.state.documents

    # Writing

    def add(
        self,
        ids: Iterable[DocumentId],
        texts: Documents,
        metadata: Sequence[Metadata | None] | None = None,
        *,
        on_duplicate_id: OnDuplicateId = "error",
    ) -> Added:
        """Add documents in one durable transaction: all of them or none.

        A document that the index already holds with the same id, text and metadata is left unchanged, so a call may be
        repeated.

        Args:
            ids: One string or integer per document; ``5`` and ``"5"`` are the same id.
            texts: One text per document: a list of strings or bytes, or a column of a pyarrow, pandas or polars table.
                In an index of records one mapping, and in one of sets one collection of items, per document.
            metadata: One JSON object or None per document, returned with hits and usable as a filter; default: none.
            on_duplicate_id: Action if another document has the id: ``error`` raises, ``skip`` keeps the stored
                document, ``replace`` stores the new one.

        Raises:
            InputError: If an id, text or metadata is invalid, their numbers differ, or an id is taken.
        """
        return self._add(ids, *self._sketch(texts), metadata, on_duplicate_id)

    def add_signatures(
        self,
        ids: Iterable[DocumentId],
        signatures: Signatures,
        metadata: Sequence[Metadata | None] | None = None,
        *,
        on_duplicate_id: OnDuplicateId = "error",
    ) -> Added:
        """Add documents whose signatures were computed elsewhere, in one durable transaction: all of them or none.

        Args:
            ids: One string or integer per document; ``5`` and ``"5"`` are the same id.
            signatures: Signatures made with :attr:`scheme` and :attr:`shingler` of this index.
            metadata: One JSON object or None per document, returned with hits and usable as a filter; default: none.
            on_duplicate_id: Action if another document has the id: ``error`` raises, ``skip`` keeps the stored
                document, ``replace`` stores the new one.

        Raises:
            ConfigError: If the index does not store sketches, or the signatures have another seed or shingler.
            MismatchError: If the signatures have another scheme, number of slots or bits.
            InputError: If an id or metadata is invalid, their numbers differ, or an id is taken.
        """
        return self._add(ids, self._sketcher.from_signatures(signatures), [], metadata, on_duplicate_id)

    def _sketch(self, texts: Documents) -> tuple[SketchedTexts, list[bytes]]:
        """Return the sketches of texts and, if the index stores texts, the texts as bytes."""
        if isinstance(texts, Iterator):
            texts = list(texts)
        return self._sketcher.sketch(texts), encode_texts(cast(Texts, texts)) if self._settings.stores_text else []

    def _add(
        self,
        ids: Iterable[DocumentId],
        sketches: SketchedTexts,
        texts: list[bytes],
        metadata: Sequence[Metadata | None] | None,
        policy: OnDuplicateId,
    ) -> Added:
        documents = NewDocuments.check(self._check_ids(ids), sketches, texts, metadata)
        policies = [policy] * len(sketches)
        if self._settings.assign:
            fates: list[str] = [one.fate for one in self._decide(documents, [False] * len(sketches), policies)]
            return Added(*map(fates.count, Added._fields))
        with self._writing() as writer:
            builder = AddBuilder(documents, policies, self._lookup, self._view, self._store)
            added = builder.add_all()
            writer.commit(builder.batch())
        return added

    def _decide(
        self, documents: NewDocuments, unique: Sequence[bool], policies: Sequence[OnDuplicateId]
    ) -> list[Decision]:
        """Decide on each document, and commit what is added."""
        with self._writing() as writer:
            builder = AddBuilder(documents, policies, self._lookup, self._view, self._store)
            clusters = Clusters(self._store, self._view.state.next) if self._settings.assign else None
            decisions = decide_documents(documents, unique, builder, self._lookup, self._view, clusters)
            rows = [] if clusters is None else clusters.changed_rows()
            writer.commit(replace(builder.batch(), clusters=rows), pushed=True)
        return decisions

    def add_unique(
        self,
        ids: Iterable[DocumentId],
        texts: Documents,
        metadata: Sequence[Metadata | None] | None = None,
        *,
        on_duplicate_id: OnDuplicateId = "error",
    ) -> list[Decision]:
        """Add the documents that have no near-duplicate in the index or earlier in the call.

        The call is one durable transaction: all decisions are stored, or none.

        Args:
            ids: One string or integer per document; ``5`` and ``"5"`` are the same id.
            texts: One text per document: a list of strings or bytes, or a column of a pyarrow, pandas or polars table.
                In an index of records one mapping, and in one of sets one collection of items, per document.
            metadata: One JSON object or None per document, returned with hits and usable as a filter; default: none.
            on_duplicate_id: Action if another document has the id: ``error`` raises, ``skip`` keeps the stored
                document, ``replace`` stores the new one.

        Returns:
            The decision on each document, in order.

        Raises:
            InputError: If an id, text or metadata is invalid, their numbers differ, or an id is taken.
        """
        return self.add_each(ids, texts, metadata, unique=True, on_duplicate_id=on_duplicate_id)

    def add_each(
        self,
        ids: Iterable[DocumentId],
        texts: Documents,
        metadata: Sequence[Metadata | None] | None = None,
        *,
        unique: bool | Sequence[bool] = False,
        on_duplicate_id: OnDuplicateId | Sequence[OnDuplicateId] = "error",
    ) -> list[Decision]:
        """Add documents with options for each one, such as those of several clients that share one transaction.

        The call is one durable transaction: all decisions are stored, or none.

        Args:
            ids: One string or integer per document; ``5`` and ``"5"`` are the same id.
            texts: One text per document: a list of strings or bytes, or a column of a pyarrow, pandas or polars table.
                In an index of records one mapping, and in one of sets one collection of items, per document.
            metadata: One JSON object or None per document, returned with hits and usable as a filter; default: none.
            unique: Whether a document is left out if it has a near-duplicate in the index or earlier in the call; one
                value for all documents, or one per document.
            on_duplicate_id: Action if another document has the id: ``error`` raises, ``skip`` keeps the stored
                document, ``replace`` stores the new one; one value for all documents, or one per document.

        Returns:
            The decision on each document, in order.

        Raises:
            InputError: If an id, text or metadata is invalid, their numbers differ, or an id is taken.
        """
        sketches, encoded = self._sketch(texts)
        documents = NewDocuments.check(self._check_ids(ids), sketches, encoded, metadata)
        checks = [unique] * len(sketches) if isinstance(unique, bool) else list(unique)
        policies = _each_policy(on_duplicate_id, len(sketches))
        if not len(checks) == len(policies) == len(sketches):
            counts = f"{len(checks)}, {len(policies)} and {len(sketches)}"
            raise InputError(f"there must be as many of unique and on_duplicate_id as ids, got {counts}")
        return self._decide(documents, checks, policies)

    def clusters(self) -> list[tuple[DocumentId, int]]:
        """Return the id of every document and its cluster, in the order of addition.

        Raises:
            ConfigError: If the index does not assign clusters.
        """
        if not self._settings.assign:
            raise ConfigError("clusters need an index that assigns them, got another one; create it with assign=True")
        with self._reading():
            clusters = Clusters(self._store, self._view.state.next)
            return [
                (self._lookup.document_id(number, record), clusters.find(number))
                for number, record in self._store.checked_rows("documents")
            ]

    def remove(self, ids: Iterable[DocumentId]) -> int:
        """Remove documents in one durable transaction, and return how many of the ids were in the index.

        Args:
            ids: Strings or integers; ids that are not in the index are ignored.

        Raises:
            InputError: If an id is invalid.
        """
        checked, removed = self._check_ids(ids), dict[int, RemovedDocument]()
        with self._writing() as writer:
            for start in range(0, len(checked), REMOVAL_DOCUMENTS):
                existing = self._lookup.find_ids(checked.slice(start, start + REMOVAL_DOCUMENTS)).values()
                documents = removed_documents(list(existing), self._store, texts=self._settings.stores_text)
                removed.update((document.number, document) for document in documents)
            writer.commit(WriteBatch.removal(list(removed.values())))
        return len(removed)

    def expire(
        self,
        older_than: str | timedelta | None = None,
        *,
        before: str | date | None = None,
        time_field: str | None = None,
        dry_run: bool = False,
        progress: ProgressSetting = None,
    ) -> Expired:
        """Remove the documents whose time is too long ago.

        The time of a document is a field of its metadata: an ISO 8601 date or time, in UTC if it names no time zone, or
        Unix seconds. A document without it never expires.

        All documents are read, in durable transactions of at most 4,096 documents; repeat an interrupted call. Segments
        all of whose documents are removed are dropped without being read.

        Args:
            older_than: Remove documents whose time is longer ago: a whole number from 1 to 9999 and ``h``, ``d`` or
                ``w`` for hours, days or weeks, such as ``30d``; or a timedelta.
            before: Remove documents whose time is before this one, instead of ``older_than``: an ISO 8601 date or time
                such as ``2026-01-01``, or a date or datetime.
            time_field: Metadata field with the time of a document; required, because an index does not store when a
                document was added.
            dry_run: Whether to count only; the index may then be open for reading. Default: False.
            progress: True for progress bars, a function of (stage, done, total, unit), or a
                :class:`~minwise.progress.Progress`; default: none.

        Raises:
            ConfigError: If a setting breaks its rule.
        """
        steps = self.expire_steps(older_than, before=before, time_field=time_field, dry_run=dry_run)
        with progress_of(progress).stage("expire", len(self), "documents") as stage:
            for counts in steps:
                stage.advance_to(counts.read)
        return counts

    def expire_steps(
        self,
        older_than: str | timedelta | None = None,
        *,
        before: str | date | None = None,
        time_field: str | None = None,
        dry_run: bool = False,
    ) -> Iterator[Expired]:
        """Yield the counts of :meth:`expire` so far after each transaction, so that other calls can run in between.

        Args:
            older_than: As in :meth:`expire`.
            before: As in :meth:`expire`.
            time_field: As in :meth:`expire`.
            dry_run: As in :meth:`expire`.

        Raises:
            ConfigError: If a setting breaks its rule; raised before a document is read.
        """
        rule = ExpiryRule.check(older_than, before, time_field)
        with self._reading() if dry_run else self._writing():
            until, texts = self._view.state.next, self._settings.stores_text
        return self._expiring(ExpiryScan(rule, self._store, until, texts=texts, dry_run=dry_run))

    def _expiring(self, scan: ExpiryScan) -> Iterator[Expired]:
        while not scan.is_complete:
            if scan.dry_run:
                with self._reading():
                    scan.portion()
            else:
                with self._writing() as writer:
                    writer.commit(WriteBatch.removal(scan.portion()))
                    if scan.is_complete:
                        writer.drop_removed_segments()
            yield scan.counts

    # Bulk ingestion

    def add_from(
        self,
        source: IndexSource,
        *,
        on_duplicate_id: OnDuplicateId = "error",
        text_column: str | Sequence[str] = "text",
        id_column: str | None = None,
        metadata_columns: str | Sequence[str] = (),
        format: FileFormat | None = None,  # noqa: A002 - the public name
        delimiter: str | None = None,
        encoding: str | None = None,
        separator: str | None = None,
        on_error: OnError = "fail",
        memory: str | int = "4GB",
        progress: ProgressSetting = None,
        on_fault: Callable[[str], None] | None = None,
    ) -> AddCounts:
        """Add every document of files, a table or a stream, a batch of at most 16384 documents per transaction.

        Args:
            source: Paths or patterns, a list of texts, rows, an Arrow table or stream, or a data frame; ``-`` is
                standard input; an open binary file is read as JSON lines.
            on_duplicate_id: Action if another document has the id: ``error`` raises, ``skip`` keeps the stored
                document, ``replace`` stores the new one.
            text_column: Column of the text; several columns are joined by a line break. In an index of sets the column
                of the items; an index of records reads its fields.
            id_column: Column of the id; default: ``id`` if the source has it, otherwise ids of source and row number.
            metadata_columns: Columns to store with each document; default: none.
            format: ``parquet``, ``jsonl``, ``json``, ``csv``, ``tsv``, ``arrow``, ``text`` or ``lines`` for all files;
                default: by the ending of each file name.
            delimiter: Delimiter of CSV and TSV, one character or ``tab``; default: detected.
            encoding: Encoding of text files, such as ``cp1252``; default: detected.
            separator: Separator of items in a string, for an index of sets; white space on lines of items if not given.
            on_error: Action for unusable rows: ``fail`` raises, ``quarantine`` and ``skip`` leave them out and count
                them.
            memory: Memory limit, in bytes or as a string such as ``4GB``.
            progress: True for progress bars, a function of (stage, done, total, unit), or a
                :class:`~minwise.progress.Progress`; default: none.
            on_fault: Called with one line for each row or file that is left out; default: not called.

        Returns:
            The counts ``read``, ``added``, ``replaced``, ``skipped``, ``unchanged``, ``quarantined`` (rows) and
            ``unreadable`` (files), and the first 100 ``faults``.

        Raises:
            ConfigError: If an option breaks its rule, or the source is the index itself.
            InputError: If a row is unusable and ``on_error`` is ``fail``, no row is usable, or an id is taken.
        """
        options = ReadOptions(
            text_column=text_column, id_column=id_column, metadata_columns=metadata_columns, format=format,
            delimiter=delimiter, encoding=encoding, separator=separator, on_error=on_error, memory=memory,
            progress=progress, on_fault=on_fault,
        )  # fmt: skip
        return ingest.add_from(self, source, options, on_duplicate_id)

    def add_stream(
        self,
        source: IndexSource,
        kept: BinaryIO | None = None,
        decisions: BinaryIO | None = None,
        *,
        unique: bool = True,
        on_duplicate_id: OnDuplicateId = "error",
        text_column: str | Sequence[str] = "text",
        id_column: str | None = None,
        metadata_columns: str | Sequence[str] = (),
        format: FileFormat | None = None,  # noqa: A002 - the public name
        delimiter: str | None = None,
        encoding: str | None = None,
        separator: str | None = None,
        on_error: OnError = "fail",
        memory: str | int = "4GB",
        progress: ProgressSetting = None,
        on_fault: Callable[[str], None] | None = None,
    ) -> DedupCounts:
        """Add the documents of a source that have no near-duplicate in the index or earlier in the source, or all.

        Lines of a stream are decided on as soon as they arrive. A decision is written after it is durable.

        Args:
            source: Paths or patterns, a list of texts, rows, an Arrow table or stream, or a data frame; ``-`` is
                standard input; an open binary file is read as JSON lines.
            kept: Binary file for the rows that the index holds: lines of a stream unchanged, other rows as JSON lines
                with ``id``, ``text`` and ``metadata``; default: not written.
            decisions: Binary file for one JSON line per row, in their order; default: not written.
            unique: Whether documents are left out that have a near-duplicate. In an index that assigns clusters,
                decisions name the cluster of each document, with and without it.
            on_duplicate_id: Action if another document has the id: ``error`` raises, ``skip`` keeps the stored
                document, ``replace`` stores the new one.
            text_column: Column of the text; several columns are joined by a line break. In an index of sets the column
                of the items; an index of records reads its fields.
            id_column: Column of the id; default: ``id`` if the source has it, otherwise ids of source and row number.
            metadata_columns: Columns to store with each document; default: none.
            format: ``parquet``, ``jsonl``, ``json``, ``csv``, ``tsv``, ``arrow``, ``text`` or ``lines`` for all files;
                default: by the ending of each file name.
            delimiter: Delimiter of CSV and TSV, one character or ``tab``; default: detected.
            encoding: Encoding of text files, such as ``cp1252``; default: detected.
            separator: Separator of items in a string, for an index of sets; white space on lines of items if not given.
            on_error: Action for unusable rows: ``fail`` raises, ``quarantine`` and ``skip`` leave them out and count
                them.
            memory: Memory limit, in bytes or as a string such as ``4GB``.
            progress: True for progress bars, a function of (stage, done, total, unit), or a
                :class:`~minwise.progress.Progress`; default: none.
            on_fault: Called with one line for each row or file that is left out; default: not called.

        Returns:
            The counts of :meth:`add_from`, ``duplicates``, and the number of ``truncated`` searches.

        Raises:
            ConfigError: If an option breaks its rule, or the source is the index itself.
            InputError: If a row is unusable and ``on_error`` is ``fail``, no row is usable, or an id is taken.
        """
        options = ReadOptions(
            text_column=text_column, id_column=id_column, metadata_columns=metadata_columns, format=format,
            delimiter=delimiter, encoding=encoding, separator=separator, on_error=on_error, memory=memory,
            progress=progress, on_fault=on_fault,
        )  # fmt: skip
        return ingest.add_stream(self, source, kept, decisions, options, on_duplicate_id, unique=unique)

    def query_from(
        self,
        source: IndexSource,
        threshold: float | None = None,
        top: int = 10,
        *,
        max_candidates: int = MAX_CANDIDATES,
        where: Metadata | None = None,
        measure: MeasureName = "jaccard",
        passages: bool = False,
        text_column: str | Sequence[str] = "text",
        id_column: str | None = None,
        format: FileFormat | None = None,  # noqa: A002 - the public name
        delimiter: str | None = None,
        encoding: str | None = None,
        separator: str | None = None,
        on_error: OnError = "fail",
        memory: str | int = "4GB",
        progress: ProgressSetting = None,
        on_fault: Callable[[str], None] | None = None,
    ) -> Iterator[QueryRow]:
        """Yield the near-duplicates of every document of a source, in their order.

        Lines of a stream are looked up as soon as they arrive.

        Args:
            source: Paths or patterns, a list of texts, rows, an Arrow table or stream, or a data frame; ``-`` is
                standard input; an open binary file is read as JSON lines.
            threshold: Minimum similarity of a hit, at least the threshold of the index, which is the default. 0 for
                none: the most similar documents, however similar. Bands find dissimilar ones rarely, so each hit states
                its recall, and the answer the similarity above which it is complete.
            top: Maximum number of hits per document, from 1 to 10000.
            max_candidates: Maximum number of candidates that are compared for a document, from 1 to 1000000, the most
                promising first; an answer that needs more is truncated. A candidate counts once for every started 4,096
                bytes of its stored row, so that it bounds the time for long documents, too. Default: 10000.
            where: Metadata values that a hit must have; default: no filter.
            measure: ``jaccard``, or ``containment`` as in :meth:`query`.
            passages: Whether each hit includes the longest passage that it shares with the document; the index must
                store texts.
            text_column: Column of the text; several columns are joined by a line break. In an index of sets the column
                of the items; an index of records reads its fields.
            id_column: Column of the id; default: ``id`` if the source has it, otherwise ids of source and row number.
            format: ``parquet``, ``jsonl``, ``json``, ``csv``, ``tsv``, ``arrow``, ``text`` or ``lines`` for all files;
                default: by the ending of each file name.
            delimiter: Delimiter of CSV and TSV, one character or ``tab``; default: detected.
            encoding: Encoding of text files, such as ``cp1252``; default: detected.
            separator: Separator of items in a string, for an index of sets; white space on lines of items if not given.
            on_error: Action for unusable rows: ``fail`` raises, ``quarantine`` and ``skip`` leave them out and count
                them.
            memory: Memory limit, in bytes or as a string such as ``4GB``.
            progress: True for progress bars, a function of (stage, done, total, unit), or a
                :class:`~minwise.progress.Progress`; default: none.
            on_fault: Called with one line for each row or file that is left out; default: not called.

        Returns:
            An iterator of ``id``, ``hits`` and ``truncated`` of each document, and of a search that was cut short
            ``truncated_by``, ``left_out`` and ``capped_buckets``.

        Raises:
            ConfigError: If an option breaks its rule; raised before the source is read.
            InputError: If a row is unusable and ``on_error`` is ``fail``, or no row is usable.
        """
        options = ReadOptions(
            text_column=text_column, id_column=id_column, format=format, delimiter=delimiter, encoding=encoding,
            separator=separator, on_error=on_error, memory=memory, progress=progress, on_fault=on_fault,
        )  # fmt: skip
        return ingest.query_from(
            self, source, options, threshold=threshold, top=top, max_candidates=max_candidates, where=where,
            measure=measure, passages=passages,
        )  # fmt: skip

    # Maintenance

    def flush(self) -> None:
        """Move recent postings into a segment. Additions are durable without it."""
        with self._writing() as writer:
            writer.flush()

    def compact(self) -> None:
        """Merge all segments into one, and release the disk space of removed documents."""
        with self._writing() as writer:
            writer.compact()

    def backup(self, path: AnyPath) -> None:
        """Copy the current state to a new directory, also while another process writes.

        Args:
            path: A directory that does not exist, or is empty.
        """
        target = check_path("path", path)
        if not any(self._try_backup(target) for _ in range(ATTEMPTS)):
            raise FormatError(f"{self.path}: a segment is missing; {REMEDY}")

    def _try_backup(self, target: Path) -> bool:
        """Return whether the copy was made: false if the writer merged a segment before it was opened."""
        try:
            with self._reading():
                back_up(self._store, self._view.segment_paths(), target)
        except FileNotFoundError as error:
            if error.filename is None or Path(error.filename).parent != self.path:
                raise
            return False
        return True

    def export(self, path: AnyPath, *, overwrite: bool = True) -> int:
        """Write id, metadata and signature of every document to a Parquet file, and return the number of documents.

        Args:
            path: The file to write.
            overwrite: Whether to replace a file with content; if not, the export is kept next to it. Default: True.
        """
        with self._reading():
            return write_signatures(check_path("path", path), self._settings, self._store, overwrite=overwrite)

    def verify(self) -> list[Damage]:
        """Check every checksum and every count, and return the damage found. It reads the whole index."""
        with self._reading():
            return find_damage(self._settings, self._view, self._store)

    def stats(self) -> IndexStats:
        """Return counts, file sizes and settings; a secret seed is left out."""
        with self._reading():
            return describe(self._settings, self._view, self._store)


def _each_policy(given: OnDuplicateId | Sequence[OnDuplicateId], count: int) -> list[OnDuplicateId]:
    """Return one policy per document."""
    if isinstance(given, str):
        policy: OnDuplicateId = given
        return [policy] * count
    return list(given)


def _absolute(path: AnyPath) -> Path:
    """Return the absolute path, which stays valid when the working directory changes."""
    folder = check_path("path", path).absolute()
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise ConfigError(f"path must be UTF-8, got {show(str(path))}") from None
    return folder
