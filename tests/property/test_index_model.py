"""Model-based test of an index: any sequence of calls gives the answers of plain Python.

Documents consist of few words, so that most of them share buckets and many are near-duplicates; postings are flushed
after a few documents, so that segments are written, merged and searched all the time.
"""

import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from support.commands import TORTURE
from support.index_oracle import Expected, Id, Metadata, Oracle, RefusedError, storing

import minwise as mw
from minwise.errors import InputError
from minwise.index import Answer, OnDuplicateId

# Situations that a run must contain at least once.
SITUATIONS = (
    "hits",
    "a hit below 1",
    "a filtered hit",
    "a bucket above the cap",
    "more candidates than are compared",
    "a text without shingles",
    "several segments",
    "a merge",
    "a removed document in a segment",
    "a refused batch",
    "a replaced document",
    "a duplicate",
    "an expired document",
    "a dropped segment",
)
FLUSH_AT = 5
STEP_AT = 3
# Runs of 60 steps; `make torture` makes it 60,000 steps.
TORTURE_RUNS = 1000
# Shrinking a failing run of forty steps takes longer than the time limit of a test, except in the searching profile.
PHASES = [phase for phase in Phase if phase is not Phase.shrink or not settings().derandomize]

Entry = tuple[Id, str, Metadata]

words = st.sampled_from(["a", "b", "c", "d", "e", "f", "g"])
texts = st.lists(words, max_size=7).map(" ".join) | st.sampled_from(("", " … ", "A, b; C.", "a b c", "c b a a"))
ids: st.SearchStrategy[Id] = st.sampled_from((*range(-1, 8), *"01234567", "x", "y", "ü", "-1", "007"))
metadata: st.SearchStrategy[Metadata] = st.sampled_from(
    (None, None, {}, {"lang": "en"}, {"lang": "de"}, {"lang": "en", "n": 1}, {"n": 2, "deep": {"a": [1, None]}})
)
filters: st.SearchStrategy[dict[str, Any] | None] = st.sampled_from(
    (None, None, None, {}, {"lang": "en"}, {"n": 1, "lang": "en"}, {"deep": {"a": [1, None]}}, {"lang": None}, {"x": 0})
)
policies: st.SearchStrategy[OnDuplicateId] = st.sampled_from(("error", "skip", "replace"))
aboves = st.sampled_from((None, None, 0.0, 0.3, 1.0))
tops = st.sampled_from((1, 3, 10, 10, 40))
budgets = st.sampled_from((1, 8, 10_000, 10_000))
entries = st.tuples(ids, texts, metadata)
batches = st.lists(entries, max_size=9)


class IndexMachine(RuleBasedStateMachine):
    """A writer, a reader that stays open, and the oracle of both."""

    seen: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=memory_folder()))
        self.copies = 0

    @initialize(
        stored=st.sampled_from(("shingles", "text", "sketch")),
        max_bucket=st.sampled_from((16, 2000)),
        shingle=st.sampled_from(("word:1", "word:1", "word:2", "char:3", "byte:2")),
        bag=st.booleans(),
        scheme=st.sampled_from(("fast", "minhash")),
        layout=st.sampled_from(((1, 1), (6, 1), (8, 2), (20, 2))),
        threshold=st.sampled_from((0.2, 0.5, 0.8)),
        seed=st.sampled_from((0, 1, 2**64 - 1)),
    )
    def create(self, stored: str, max_bucket: int, layout: tuple[int, int], **options: Any) -> None:  # noqa: ANN401 - settings
        """Create an empty index, and open the reader."""
        bands, rows = layout
        self.path = self.folder / "index.mw"
        options |= storing(stored)
        self.writer = mw.Index.create(self.path, max_bucket=max_bucket, bands=bands, rows=rows, **options)
        self.reader = mw.Index.open(self.path)
        self.oracle = Oracle(self.reader, max_bucket)

    def count(self, situation: str, happened: bool) -> None:
        """Count a situation that occurred."""
        self.seen[situation] += happened

    @rule(entry=entries, policy=policies)
    def add_one(self, entry: Entry, policy: OnDuplicateId) -> None:
        """Add one document, with or without metadata."""
        name, text, about = entry
        self._add([name], [text], None if about is None else [about], policy)

    @rule(batch=batches, policy=policies)
    def add_batch(self, batch: list[Entry], policy: OnDuplicateId) -> None:
        """Add several documents, of which some may have the same id."""
        self._add(*columns(batch), policy)

    @rule(
        text=texts,
        extra=st.lists(words, min_size=1, max_size=4),
        count=st.sampled_from((9, 30, 70, 100)),
        about=metadata,
    )
    def add_near_copies(self, text: str, extra: list[str], count: int, about: Metadata) -> None:
        """Add so many near-copies of a text that buckets and candidates exceed their limits."""
        first = self.oracle.added
        given = [text if turn % 3 else f"{text} {extra[turn % len(extra)]}" for turn in range(count)]
        self._add([f"copy {first + turn}" for turn in range(count)], given, [about] * count, "error")

    def _add(self, names: list[Any], given: list[str], about: Sequence[Metadata] | None, policy: OnDuplicateId) -> None:
        stored = [None] * len(names) if about is None else about
        segments = self._segments()
        try:
            expected = self.oracle.add(names, given, stored, policy)
        except RefusedError:
            self.count("a refused batch", happened=True)
            with pytest.raises(InputError):
                self.writer.add(names, given, about, on_duplicate_id=policy)
            return
        assert self.writer.add(names, given, about, on_duplicate_id=policy) == expected
        self.count("a replaced document", bool(expected[1]))
        self.count("a text without shingles", any(not self.oracle.features(text).keys for text in given))
        self.count("several segments", len(self._segments()) > 1)
        self.count("a merge", not set(segments) <= set(self._segments()))

    @rule(batch=batches, policy=policies)
    def add_unique(self, batch: list[Entry], policy: OnDuplicateId) -> None:
        """Add the documents that have no near-duplicate."""
        names, given, about = columns(batch)
        try:
            expected = self.oracle.add_unique(names, given, about, policy)
        except RefusedError:
            with pytest.raises(InputError):
                self.writer.add_unique(names, given, about, on_duplicate_id=policy)
            return
        found = self.writer.add_unique(names, given, about, on_duplicate_id=policy)
        assert [decision[:5] for decision in found] == expected
        self.count("a duplicate", any(decision.fate == "duplicate" for decision in found))

    @rule(names=st.lists(ids, max_size=6))
    def remove(self, names: list[Any]) -> None:
        """Remove some present and some missing ids."""
        self._remove(names)

    @precondition(lambda self: self.oracle.documents)
    @rule(data=st.data())
    def remove_some(self, data: st.DataObject) -> None:
        """Remove a share of the documents, including the oldest ones."""
        share = data.draw(st.sampled_from((1, 2, 3, 5, 5)))
        first = data.draw(st.integers(0, share - 1))
        self._remove(list(self.oracle.documents)[first::share])

    def _remove(self, names: list[Any]) -> None:
        self.count("a removed document in a segment", bool(names) and bool(self._segments()))
        assert self.writer.remove(names) == self.oracle.remove(names)

    @rule(name=st.sampled_from(("n", "n", "deep", "x")), seconds=st.integers(0, 3), dry_run=st.booleans())
    def expire(self, name: str, seconds: int, dry_run: bool) -> None:
        """Remove the documents before a time, sometimes after a dry run."""
        before = datetime.fromtimestamp(seconds, timezone.utc)
        empty = self._empty_segments()
        found = self.reader.expire(before=before, time_field=name, dry_run=True)[:4] if dry_run else None
        expected = self.oracle.expire(name, seconds)
        assert found in (None, expected)
        assert self.writer.expire(before=before, time_field=name)[:4] == expected
        self.count("an expired document", bool(expected[1]))
        self.count("a dropped segment", self._empty_segments() > empty)

    @rule(text=texts, above=aboves, top=tops, where=filters, most=budgets)
    def query(self, text: str, above: float | None, top: int, where: dict[str, Any] | None, most: int) -> None:
        """Query any text."""
        self._query(text, above, top, where, most)

    @precondition(lambda self: self.oracle.documents)
    @rule(data=st.data(), extra=st.lists(words, max_size=2), above=aboves, top=tops, most=budgets)
    def query_similar(self, data: st.DataObject, extra: list[str], above: float | None, top: int, most: int) -> None:
        """Query a stored text with some more words, often with the metadata of its document as a filter."""
        stored = data.draw(st.sampled_from(list(self.oracle.documents.values())))
        where = data.draw(st.just(stored.metadata) | filters)
        self._query(" ".join([stored.text, *extra]), above, top, where, most)

    def _query(self, text: str, above: float | None, top: int, where: dict[str, Any] | None, most: int) -> None:
        """Check that writer and reader return the same hits, bit-equal similarities and truncation."""
        planned = self.reader.plan.threshold
        threshold = planned if above is None else planned + above * (1 - planned)
        expected = self.oracle.query(text, threshold, top, where, most)
        for index in (self.writer, self.reader):
            answer = index.query(text, None if above is None else threshold, top, max_candidates=most, where=where)
            assert as_expected(answer) == expected
        self._count_situations(expected, where)

    def _count_situations(self, expected: Expected, where: dict[str, Any] | None) -> None:
        self.count("hits", bool(expected.hits))
        self.count("a hit below 1", any(similarity < 1 for _, similarity, _ in expected.hits))
        self.count("a filtered hit", bool(where and expected.hits))
        self.count("more candidates than are compared", bool(expected.left_out))
        self.count("a bucket above the cap", bool(expected.capped_buckets))

    @rule(several=st.lists(texts, max_size=5))
    def query_several(self, several: list[str]) -> None:
        """Check that several texts in one call are answered like single ones."""
        expected = [self.oracle.query(text, self.reader.plan.threshold, 10) for text in several]
        for index in (self.writer, self.reader):
            answers = index.query_many(several)
            for answer, wanted in zip(answers, expected, strict=True):
                assert as_expected(answer) == wanted

    @rule(name=ids)
    def get(self, name: Id) -> None:
        """Get a document by its id as a number or as a string."""
        for index in (self.writer, self.reader):
            assert (name in index) == (str(name) in self.oracle.documents)
            if name in index:
                self._compare(index, name)
            else:
                with pytest.raises(InputError):
                    index.get(name)

    def _compare(self, index: mw.Index, name: Id) -> None:
        stored, found = self.oracle.documents[str(name)], index.get(name)
        assert (found.id, type(found.id), found.metadata) == (stored.id, type(stored.id), stored.metadata)
        assert found.text == (stored.text if index.store == "text" else None)
        elements = None if found.elements is None else found.elements.tolist()
        assert elements == (None if index.store == "sketch" else sorted(stored.features.elements))

    @rule()
    def flush(self) -> None:
        """Flush; nothing visible changes."""
        self.writer.flush()

    @rule()
    def compact(self) -> None:
        """Compact to at most one segment."""
        self.writer.compact()
        assert len(self._segments()) <= 1

    @rule(reader_too=st.booleans())
    def reopen(self, reader_too: bool) -> None:
        """Close and reopen the writer, and sometimes the reader."""
        self.writer.close()
        if reader_too:
            self.reader.close()
            self.reader = mw.Index.open(self.path)
            self.oracle.index = self.reader
        self.writer = mw.Index.open(self.path, "w")

    @rule(by_writer=st.booleans())
    def backup(self, by_writer: bool) -> None:
        """Check that a copy holds the same documents, gives the same answers and is undamaged."""
        self.copies += 1
        path = self.folder / f"copy {self.copies}.mw"
        (self.writer if by_writer else self.reader).backup(path)
        with mw.Index.open(path) as copy:
            self._compare_all(copy)
        shutil.rmtree(path)

    def _compare_all(self, index: mw.Index) -> None:
        """Check every document, a query for each text, and every checksum."""
        assert len(index) == len(self.oracle.documents)
        for stored in self.oracle.documents.values():
            self._compare(index, stored.id)
        for text in {stored.text for stored in self.oracle.documents.values()}:
            assert as_expected(index.query(text)) == self.oracle.query(text, index.plan.threshold, 10)
        assert index.verify() == []

    def _empty_segments(self) -> int:
        return sum(segment["postings"] == 0 for segment in self.writer.stats()["segments"])

    def _segments(self) -> list[str]:
        return sorted(path.name for path in self.path.glob("segment-*.post"))

    @invariant()
    def writer_and_reader_see_all_documents(self) -> None:
        """Check the number of documents in writer and reader, and queries for the oldest and the newest."""
        if hasattr(self, "oracle"):
            assert (len(self.writer), len(self.reader)) == (len(self.oracle.documents),) * 2
            stored = list(self.oracle.documents.values())
            for document in {document.number: document for document in (*stored[:1], *stored[-1:])}.values():
                self._query(document.text, None, 10, None, 10_000)

    def teardown(self) -> None:
        """Compare everything, close and delete."""
        if hasattr(self, "oracle"):
            self._compare_all(self.reader)
            self.reader.close()
            self.writer.close()
        shutil.rmtree(self.folder)


def columns(batch: list[Entry]) -> tuple[list[Id], list[str], list[Metadata]]:
    """Return ids, texts and metadata of documents."""
    return [entry[0] for entry in batch], [entry[1] for entry in batch], [entry[2] for entry in batch]


def as_expected(answer: object) -> Expected:
    """Return an answer as the oracle represents it."""
    assert isinstance(answer, Answer)
    assert answer.hits == tuple(answer)
    assert answer.truncated == (answer.truncated_by is not None)
    hits = [(hit.id, hit.similarity, hit.metadata) for hit in answer]
    return Expected(hits, answer.truncated_by, answer.left_out, answer.capped_buckets)


def memory_folder() -> Path | None:
    """Return a directory in memory, where syncs are free, if there is one."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() else None


@pytest.mark.timeout(3000 if TORTURE else 300)
def test_index_agrees_with_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every listed situation occurs during the run."""
    from minwise.index import expiry, writer

    monkeypatch.setattr(writer, "FLUSH_DOCUMENTS", FLUSH_AT)
    monkeypatch.setattr(expiry, "STEP_DOCUMENTS", STEP_AT)
    IndexMachine.seen.clear()
    runs = max(settings().max_examples, TORTURE_RUNS) if TORTURE else settings().max_examples
    effort = settings(max_examples=runs, stateful_step_count=60, phases=PHASES)
    run_state_machine_as_test(IndexMachine, settings=effort)
    assert [situation for situation in SITUATIONS if not IndexMachine.seen[situation]] == []


@pytest.mark.parametrize("copies", [256, 257, 700])
def test_decision_compares_all_candidates(tmp_path: Path, copies: int) -> None:
    """However many: that decision is final."""
    layout: dict[str, Any] = {"shingle": "word:1", "threshold": 0.8, "bands": 20, "rows": 1}
    with mw.Index.create(tmp_path / "many.mw", seed=1, **layout) as index:
        index.add(range(copies - 1), [f"a b c d e {number}" for number in range(copies - 1)])
        index.add(["like"], ["a b c d e f g"])
        (decision,) = index.add_unique(["new"], ["a b c d e f g h"])
        assert decision[:5] == ("new", "duplicate", "like", 7 / 8, False)
