"""Model test of the server: requests in any order return what a dict in plain Python returns.

One server serves all examples. Each example has its own words and ids, so that it does not find documents of another;
the index still grows, is searched and has removed documents.
"""

import http.client
import itertools
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from server.running import Answer, Server, serving
from support.index_oracle import Id, Metadata, Oracle, RefusedError

import minwise as mw

# Cases that a run must cover.
SITUATIONS = (
    "added", "replaced", "unchanged", "skipped", "duplicate", "conflict", "id_taken", "hits", "a hit below 1",
    "a filtered hit", "a cut answer", "a page with a next one", "removed", "missing",
)  # fmt: skip
# Shrinking a failing run takes longer than a test may; only the search profile has the time.
PHASES = [phase for phase in Phase if phase is not Phase.shrink or not settings().derandomize]
MAX_BUCKET = 16

Entry = tuple[Id, list[str], Metadata]

words = st.sampled_from(["a", "b", "c", "d", "e", "f", "g"])
texts = st.lists(words, max_size=7) | st.sampled_from(
    ([], ["…"], ["A,", "b;", "C."], ["a", "b", "c"], ["c", "b", "a", "a"])
)
ids: st.SearchStrategy[Id] = st.sampled_from((*range(5), *"01234", "x", "y/z", "ü %", "."))
metadata: st.SearchStrategy[Metadata] = st.sampled_from(
    (None, None, {}, {"lang": "en"}, {"lang": "de"}, {"lang": "en", "n": 1}, {"n": 2, "deep": {"a": [1, None]}})
)
filters: st.SearchStrategy[dict[str, Any] | None] = st.sampled_from(
    (None, None, None, {}, {"lang": "en"}, {"n": 1, "lang": "en"}, {"deep": {"a": [1, None]}}, {"lang": None}, {"x": 0})
)
entries = st.tuples(ids, texts, metadata)
batches = st.lists(entries, min_size=1, max_size=9)
policies = st.sampled_from(("error", "skip", "replace"))
aboves = st.sampled_from((None, None, 0.0, 0.3, 1.0))
tops = st.sampled_from((1, 3, 10, 40))


class ServerMachine(RuleBasedStateMachine):
    """Requests to the server, and the oracle of the documents of this example."""

    server: ClassVar[Server]
    reader: ClassVar[mw.Index]
    connection: ClassVar[http.client.HTTPConnection]
    met: ClassVar[Counter[str]] = Counter()
    examples: ClassVar[Iterator[int]] = itertools.count()

    def __init__(self) -> None:
        super().__init__()
        self.number = next(self.examples)
        self.oracle = Oracle(self.reader, MAX_BUCKET)

    def text(self, given: list[str]) -> str:
        """Return a text of the words of this example."""
        return " ".join(f"{word[0]}x{self.number}{word[1:]}" if word.isascii() else word for word in given)

    def id(self, given: Id) -> Id:
        """Return an id of this example; numbers stay numbers."""
        return given + 1000 * (self.number + 1) if isinstance(given, int) else self.digits(given)

    def digits(self, given: str) -> str:
        """Return the id as a string of digits, which is the same id as its number."""
        return str(int(given) + 1000 * (self.number + 1)) if given.isdigit() else f"{self.number} {given}"

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        """Send a request on the shared connection."""
        return self.server.ask(method, path, body, connection=self.connection)

    def note(self, situation: str, happened: object = True) -> None:
        """Count the cases that the run has covered."""
        self.met[situation] += bool(happened)

    # Changes

    @rule(entry=entries, policy=policies, unique=st.booleans())
    def add_one(self, entry: Entry, policy: str, unique: bool) -> None:
        """Add a single document; a taken id has its own status."""
        body, (expected,) = self.expected([entry], policy, unique)
        answer = self.ask("POST", path_for(policy, unique), body["documents"][0])
        if expected["fate"] == "conflict":
            self.note("id_taken")
            assert (answer.status, answer.error) == (409, "id_taken")
        else:
            self.compare_results(answer, [expected])

    @rule(batch=batches, policy=policies, unique=st.booleans())
    def add_batch(self, batch: list[Entry], policy: str, unique: bool) -> None:
        """Add several documents, some of them with the same id."""
        body, expected = self.expected(batch, policy, unique)
        self.compare_results(self.ask("POST", path_for(policy, unique), body), expected)

    @rule(text=texts, about=metadata)
    def add_crowd(self, text: list[str], about: Metadata) -> None:
        """Add so many near-copies that a bucket exceeds its limit."""
        first = self.oracle.added
        batch: list[Entry] = [
            (f"near-copy {first + turn}", [*text, "abcdefg"[turn % 7]], about) for turn in range(MAX_BUCKET + 4)
        ]
        body, expected = self.expected(batch, "error", unique=False)
        self.compare_results(self.ask("POST", "/v1/documents", body), expected)

    def expected(self, batch: list[Entry], policy: str, unique: bool) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return a request and the expected result of each document."""
        documents = [(self.id(name), self.text(text), about) for name, text, about in batch]
        body = {"documents": [{"id": name, "text": text, "metadata": about} for name, text, about in documents]}
        return body, [self.decide(document, policy, unique) for document in documents]

    def decide(self, document: tuple[Id, str, Metadata], policy: str, unique: bool) -> dict[str, Any]:
        """Return the expected result of a document; a refusal of the oracle is a conflict here."""
        name, text, about = document
        decided: dict[str, Any] = {"id": name, "duplicate_of": None, "similarity": None}
        try:
            if unique:
                ((_, fate, witness, similarity, _),) = self.oracle.add_unique([name], [text], [about], policy)
                return {**decided, "fate": fate, "duplicate_of": witness, "similarity": similarity}
            counts = self.oracle.add([name], [text], [about], policy)
        except RefusedError:
            return {**decided, "fate": "conflict"}
        return {**decided, "fate": ("added", "replaced", "skipped", "unchanged")[counts.index(1)]}

    def compare_results(self, answer: Answer, expected: list[dict[str, Any]]) -> None:
        """Compare fates, near-duplicates and similarities exactly."""
        assert answer.status == 200, answer.body
        results = answer.json["results"]
        duplicates = [result.pop("duplicates") for result in results]
        assert results == expected
        for result, found in zip(results, duplicates, strict=True):
            self.note(result["fate"])
            assert [hit["id"] for hit in found[:1]] == (
                [result["duplicate_of"]] if result["fate"] == "duplicate" else []
            )
            shown = [hit["similarity"] for hit in found[1:]]
            assert shown == sorted(shown, reverse=True)
            assert all(hit["similarity"] >= self.reader.plan.threshold for hit in found)

    @rule(names=st.lists(ids, min_size=1, max_size=6))
    def remove(self, names: list[Id]) -> None:
        """Remove existing and missing documents, some twice."""
        given = [self.id(name) for name in names]
        missing = [name for name in given if str(name) not in self.oracle.documents]
        answer = self.ask("DELETE", "/v1/documents", {"ids": given})
        assert answer.json == {"removed": self.oracle.remove(given), "missing": missing}
        self.note("removed", answer.json["removed"])
        self.note("missing", missing)

    @rule(name=ids)
    def remove_one(self, name: Id) -> None:
        """Remove a document by its path."""
        given = self.id(name)
        answer = self.ask("DELETE", path_of(given))
        assert answer.status == (200 if self.oracle.remove([given]) else 404)

    # Queries

    @rule(text=texts, above=aboves, top=tops, where=filters, passages=st.booleans())
    def query(
        self, text: list[str], above: float | None, top: int, where: dict[str, Any] | None, passages: bool
    ) -> None:
        """Query any text."""
        self.compare_query(self.text(text), above, top, where, passages)

    @rule(which=st.integers(0, 10**6), above=aboves, top=tops, where=filters, more=st.lists(words, max_size=2))
    def query_alike(
        self, which: int, above: float | None, top: int, where: dict[str, Any] | None, more: list[str]
    ) -> None:
        """Query a stored text with additional words, often filtered by its metadata.

        Which documents are found depends on the hashes of the words of the example.
        """
        there = sorted(self.oracle.documents.values(), key=lambda stored: (stored.text, str(stored.metadata)))
        chosen = there[which % len(there)] if there else None
        text = f"{chosen.text if chosen else ''} {self.text(more)}"
        wanted = chosen.metadata if chosen and which % 2 else where
        self.compare_query(text, above, top, wanted, passages=True)

    def compare_query(
        self, text: str, above: float | None, top: int, where: dict[str, Any] | None, passages: bool
    ) -> None:
        """Compare hits and similarities exactly, and check the spans."""
        planned = self.reader.plan.threshold
        threshold = planned if above is None else planned + above * (1 - planned)
        wishes = {} if above is None else {"threshold": threshold}
        body = {"text": text, "top": top, "where": where, "passages": passages, **wishes}
        found = self.ask("POST", "/v1/query", body).json
        expected = self.oracle.query(text, threshold, top, where)
        assert [(hit["id"], hit["similarity"], hit["metadata"]) for hit in found["hits"]] == expected.hits
        assert (found["truncated"], found["threshold"]) == (expected.truncated, threshold)
        for hit in found["hits"]:
            self.compare_spans(text, hit, passages)
        self.note("hits", found["hits"])
        self.note("a hit below 1", any(hit["similarity"] < 1 for hit in found["hits"]))
        self.note("a filtered hit", where and found["hits"])
        self.note("a cut answer", found["truncated"])

    def compare_spans(self, text: str, hit: dict[str, Any], passages: bool) -> None:
        """Check that every shared span belongs to a shingle of both texts."""
        assert hit["exact"]
        if not passages:
            assert hit["spans"] is hit["snippet"] is None
            return
        stored = self.oracle.documents[str(hit["id"])].text
        compared = mw.compare(text, stored, shingler=mw.Shingler("word:1"))
        assert [tuple(span) for span in hit["spans"]["query"]] == compared.spans_left
        assert [tuple(span) for span in hit["spans"]["document"]] == compared.spans_right
        whole = {"text": stored, "start": 0, "spans": hit["spans"]["document"], "length": len(stored)}
        assert hit["snippet"] == whole

    @rule(name=ids)
    def get(self, name: Id) -> None:
        """Get a document by its id as a number or as a string."""
        given = self.id(name)
        answer, stored = self.ask("GET", path_of(given)), self.oracle.documents.get(str(given))
        if stored is None:
            assert (answer.status, answer.error) == (404, "not_found")
        else:
            shingles = len(stored.features.elements)
            expected = {"id": stored.id, "metadata": stored.metadata, "text": stored.text, "shingles": shingles}
            assert answer.json == expected

    @rule(limit=st.sampled_from((1, 3, 8, 100)))
    def browse(self, limit: int) -> None:
        """List the newest documents until those of other examples appear."""
        wanted = [stored.id for stored in reversed(self.oracle.documents.values())]
        found: list[Id] = []
        following = None
        while len(found) < len(wanted):
            query = f"?limit={limit}" + ("" if following is None else f"&before={following}")
            answer = self.ask("GET", f"/v1/documents{query}").json
            assert answer["documents"]
            found += [document["id"] for document in answer["documents"]]
            following = answer["next"]
            self.note("a page with a next one", following is not None)
            assert len(answer["documents"]) == limit or following is None
        assert found[: len(wanted)] == wanted

    @invariant()
    def all_readers_count_the_same(self) -> None:
        """The server and a reader in another process."""
        assert self.ask("GET", "/v1/stats").json["documents"] == len(self.reader)

    def teardown(self) -> None:
        """Check all documents and remove them for the next example."""
        for stored in self.oracle.documents.values():
            found = self.reader.get(stored.id)
            assert (found.id, found.text, found.metadata) == (stored.id, stored.text, stored.metadata)
        if self.oracle.documents:
            self.ask("DELETE", "/v1/documents", {"ids": list(self.oracle.documents)})
        assert len(self.reader) == 0


def path_for(policy: str, unique: bool) -> str:
    """Return the path for adding documents; default options are omitted."""
    options = {"error": [], "skip": ["on_duplicate_id=skip"], "replace": ["on_duplicate_id=replace"]}[policy]
    return "/v1/documents?" + "&".join([*options, *(["unique=true"] if unique else [])])


def path_of(name: Id) -> str:
    """Return the path of a document."""
    return f"/v1/documents/{quote(str(name), safe='')}"


@pytest.fixture
def machine() -> Iterator[type[ServerMachine]]:
    """Return the state machine with a server, on a fast disk if there is one, since no crash is simulated."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    path = folder / "news.mw"
    layout: dict[str, Any] = {"bands": 8, "rows": 2, "max_bucket": MAX_BUCKET}
    mw.Index.create(path, threshold=0.5, shingle="word:1", store_text=True, **layout).close()
    ServerMachine.met.clear()
    try:
        with serving(path) as ServerMachine.server, mw.Index.open(path) as ServerMachine.reader:
            ServerMachine.connection = ServerMachine.server.connect()
            yield ServerMachine
            ServerMachine.connection.close()
    finally:
        shutil.rmtree(folder)


def test_server_behaves_like_the_oracle(machine: type[ServerMachine]) -> None:
    """And the run has covered all cases."""
    effort = settings(max_examples=settings().max_examples // 2, stateful_step_count=30, phases=PHASES)
    run_state_machine_as_test(machine, settings=effort)
    assert [situation for situation in SITUATIONS if not machine.met[situation]] == []
