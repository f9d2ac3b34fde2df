"""Concurrent clients: acknowledged changes hold, and no client waits for the disk of another."""

import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, TypeVar

import pytest

import minwise as mw
from server.running import Answer, Server, serving

Outcome = TypeVar("Outcome")
CLIENTS = 12


@pytest.fixture
def server(emptied_server: Server) -> Server:
    """Return the shared server with an empty index."""
    return emptied_server


def at_once(clients: int, work: Callable[[int], Outcome]) -> list[Outcome]:
    """Return the results of work that many threads do at the same time."""
    barrier = threading.Barrier(clients)

    def one(number: int) -> Outcome:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(one, range(clients)))


@contextmanager
def connected(server: Server) -> Iterator[HTTPConnection]:
    """Provide a connection for many requests, which must stay open."""
    connection = server.connect()
    connection.connect()
    socket = connection.sock
    try:
        yield connection
        assert connection.sock is socket
    finally:
        connection.close()


def text_of(*topic: object, words: int = 30) -> str:
    """Return a text whose words all belong to the topic."""
    name = "x".join(map(str, topic))
    return " ".join(f"t{name}w{number}" for number in range(words))


def fate(answer: Answer) -> str:
    """Add a document; return its fate."""
    if answer.status == 409:
        return answer.error
    assert answer.status == 200, answer.body
    (result,) = answer.json["results"]
    return str(result["fate"])


# Acknowledged changes


class Client:
    """Adds, replaces, removes and queries its own documents, and checks the results."""

    def __init__(self, server: Server, connection: HTTPConnection, number: int) -> None:
        self.server, self.connection, self.number = server, connection, number
        self.draw = random.Random(number)
        self.there: dict[str, str] = {}

    def act(self, turn: int) -> None:
        """Make a change and check its effect."""
        name = f"client {self.number} {self.draw.randrange(8)}"
        if self.draw.random() < 0.3:
            answer = self.server.ask("DELETE", f"/v1/documents/{name.replace(' ', '%20')}", connection=self.connection)
            assert answer.status == (200 if name in self.there else 404)
            if name in self.there:
                assert name not in self.found(self.there.pop(name))
        else:
            text = text_of(self.number, turn)
            body = {"id": name, "text": text, "metadata": {"turn": turn}}
            path = "/v1/documents?on_duplicate_id=replace&unique=true"
            became = fate(self.server.post(path, body, connection=self.connection))
            assert became == ("replaced" if name in self.there else "added")
            self.there[name] = text
            assert self.found(text) == [name]

    def found(self, text: str) -> list[str]:
        """Return the documents that a query finds."""
        answer = self.server.post("/v1/query", {"text": text}, connection=self.connection)
        return [hit["id"] for hit in answer.json["hits"]]


def test_every_acknowledged_change_is_visible(server: Server, shared_folder: Path) -> None:
    """To its client at once, and at the end."""

    def work(number: int) -> dict[str, str]:
        with connected(server) as connection:
            client = Client(server, connection, number)
            for turn in range(25):
                client.act(turn)
            return client.there

    facts = {name: text for there in at_once(CLIENTS, work) for name, text in there.items()}
    with mw.Index.open(shared_folder) as reader:
        assert len(reader) == len(facts) > CLIENTS
        assert {name: reader.get(name).text for name in facts} == facts
        assert reader.verify() == []


def test_one_of_many_concurrent_near_duplicates_is_kept(server: Server) -> None:
    """The others name it."""
    for turn in range(8):
        text = text_of("same", turn)

        def work(number: int, turn: int = turn, text: str = text) -> dict[str, Any]:
            body = {"id": f"{turn} {number}", "text": f"{text} {number}"}
            result: dict[str, Any] = server.post("/v1/documents?unique=true", body).json["results"][0]
            return result

        results = at_once(CLIENTS, work)
        kept = [one["id"] for one in results if one["fate"] == "added"]
        assert len(kept) == 1
        assert {one["duplicate_of"] for one in results if one["fate"] == "duplicate"} == set(kept)
        assert len({one["fate"] for one in results}) == 2
        found = server.post("/v1/query", {"text": text}).json["hits"]
        assert [hit["id"] for hit in found] == kept


def test_one_of_many_concurrent_documents_with_one_id_is_kept(server: Server) -> None:
    for turn in range(8):

        def work(number: int, turn: int = turn) -> str:
            return fate(server.add(turn, text_of("id", turn, number)))

        fates = at_once(CLIENTS, work)
        assert Counter(fates) == {"added": 1, "id_taken": CLIENTS - 1}
        stored = server.get(f"/v1/documents/{turn}").json["text"]
        assert stored == text_of("id", turn, fates.index("added"))


def test_concurrent_equal_documents_are_added_once(server: Server) -> None:
    """And are unchanged for all others, single or in batches."""
    before = server.get("/v1/stats").json
    for turn in range(4):

        def work(number: int, turn: int = turn) -> str:
            query = ("", "?unique=true", "?on_duplicate_id=replace", "?on_duplicate_id=skip")[number % 4]
            return fate(server.post(f"/v1/documents{query}", {"id": turn, "text": text_of("again", turn)}))

        assert Counter(at_once(CLIENTS, work)) == {"added": 1, "unchanged": CLIENTS - 1}
    after = server.get("/v1/stats").json
    assert (after["documents"] - before["documents"], after["removed"] - before["removed"]) == (4, 0)


def test_one_of_many_concurrent_removals_succeeds(server: Server) -> None:
    """Single ones and overlapping batches."""
    for turn in range(6):
        ids = [f"{turn} {number}" for number in range(10)]
        server.post("/v1/documents", {"documents": [{"id": name, "text": text_of(name)} for name in ids]})

        def work(number: int, ids: list[str] = ids) -> int:
            if number % 2:
                answer = server.ask("DELETE", f"/v1/documents/{ids[number % 10].replace(' ', '%20')}")
                assert answer.status in (200, 404)
                return int(answer.status == 200)
            chosen = ids[number % 5 : number % 5 + 6]
            answer = server.ask("DELETE", "/v1/documents", {"ids": chosen})
            assert answer.json["removed"] + len(answer.json["missing"]) == len(chosen)
            removed: int = answer.json["removed"]
            return removed

        removed = sum(at_once(CLIENTS, work))
        left = server.get("/v1/documents?limit=100").json["documents"]
        assert removed + len(left) == 10
        server.ask("DELETE", "/v1/documents", {"ids": ids})


def test_a_document_is_never_partly_visible(server: Server) -> None:
    """While it is added, replaced and removed."""
    versions = {text_of("version", number): {"version": number} for number in range(40)}
    ended = threading.Event()

    def change() -> int:
        with connected(server) as connection:
            for number, (text, about) in enumerate(versions.items()):
                body = {"id": "a", "text": text, "metadata": about}
                server.post("/v1/documents?on_duplicate_id=replace", body, connection=connection)
                if number % 3 == 0:
                    server.ask("DELETE", "/v1/documents/a", connection=connection)
        ended.set()
        return 0

    def look() -> int:
        looks = 0
        with connected(server) as connection:
            while not ended.is_set():
                answer = server.get("/v1/documents/a", connection=connection)
                assert answer.status in (200, 404), answer.body
                if answer.status == 200:
                    assert versions[answer.json["text"]] == answer.json["metadata"]
                listed = server.get("/v1/documents", connection=connection)
                assert len(listed.json["documents"]) <= 1
                looks += 1
        return looks

    assert min(at_once(4, lambda number: look() if number else change())[1:]) > 0


def test_concurrent_queries_keep_their_own_parameters(server: Server, shared_folder: Path) -> None:
    texts = [text_of("alike", words=20 + number) for number in range(20)]
    listed = [{"id": n, "text": text, "metadata": {"even": n % 2 == 0, "n": n}} for n, text in enumerate(texts)]
    server.post("/v1/documents", {"documents": listed})
    wishes: list[dict[str, Any]] = [
        {"threshold": threshold, "top": top, "where": where}
        for threshold in (None, 0.8, 1.0)
        for top in (1, 4, 20)
        for where in (None, {"even": True}, {"even": False, "n": 3})
    ]
    with mw.Index.open(shared_folder) as reader:
        expected = [[reader.query(text, **wish) for wish in wishes] for text in texts]

    def work(number: int) -> None:
        draw = random.Random(number)
        with connected(server) as connection:
            for _ in range(30):
                asked, wish, passages = draw.randrange(20), draw.randrange(len(wishes)), draw.random() < 0.5
                body = {"text": texts[asked], "passages": passages, **wishes[wish]}
                found = server.post("/v1/query", body, connection=connection).json["hits"]
                hits = expected[asked][wish]
                assert [(hit["id"], hit["similarity"]) for hit in found] == [(hit.id, hit.similarity) for hit in hits]
                assert all((hit["spans"] is not None) == passages for hit in found)

    at_once(CLIENTS, work)


# Delays


def batch_of(name: str, documents: int, words: int) -> dict[str, Any]:
    """Return a request that takes a while."""
    return {"documents": [{"id": f"{name} {n}", "text": text_of(name, n, words=words)} for n in range(documents)]}


def test_a_long_write_does_not_delay_queries(server: Server) -> None:
    server.add("asked", text_of("asked"))
    body = json.dumps(batch_of("long", 1000, 500)).encode()
    with connected(server) as connection, ThreadPoolExecutor(1) as pool:
        writing = pool.submit(timed, lambda: server.post("/v1/documents", body))
        waits = []
        while not writing.done():
            answer, seconds = timed(lambda: server.post("/v1/query", {"text": text_of("asked")}, connection=connection))
            assert [hit["id"] for hit in answer.json["hits"]] == ["asked"]
            waits.append(seconds)
        answer, written = writing.result()
    assert {one["fate"] for one in answer.json["results"]} == {"added"}
    assert len(waits) > 20
    assert sorted(waits)[len(waits) // 2] < written / 20
    assert max(waits) < written / 2


def timed(work: Callable[[], Answer]) -> tuple[Answer, float]:
    """Return the result of some work and its duration."""
    start = time.perf_counter()
    answer = work()
    return answer, time.perf_counter() - start


def test_concurrent_changes_share_commits(server: Server) -> None:
    clients, each = 16, 15
    before = server.get("/v1/stats").json["commits"]

    def work(number: int) -> list[str]:
        with connected(server) as connection:
            texts = [text_of(number, turn) for turn in range(each)]
            return [fate(server.add(f"{number} {turn}", texts[turn], connection=connection)) for turn in range(each)]

    assert {one for fates in at_once(clients, work) for one in fates} == {"added"}
    stats = server.get("/v1/stats").json
    assert stats["documents"] == clients * each
    assert 1 <= stats["commits"] - before <= clients * each / 2


# Other processes

WATCHER = """
import json, sys
import minwise as mw
with mw.Index.open(sys.argv[1]) as index:
    print("ready", flush=True)
    looks, most = 0, 0
    while not select():
        count = len(index)
        assert count >= most and count % 7 == 0, (most, count)
        most = count
        hits = [hit for hit in index.query("t0w0 t0w1 t0w2 t0w3", top=1000)]
        assert len({hit.id for hit in hits}) == len(hits)
        looks += 1
    print(json.dumps([looks, most, [str(one) for one in index.verify()]]))
"""


def test_another_process_sees_complete_requests_only(server: Server, shared_folder: Path) -> None:
    """A reader always counts a multiple of the batch size."""
    script = WATCHER.replace("select()", "__import__('select').select([sys.stdin], [], [], 0)[0]")
    command = [sys.executable, "-c", script, str(shared_folder)]
    watcher = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert watcher.stdout is not None
        assert watcher.stdout.readline() == "ready\n"

        def work(number: int) -> None:
            with connected(server) as connection:
                for turn in range(10):
                    body = batch_of(f"{number}y{turn}", 7, 10)
                    answer = server.post("/v1/documents", body, connection=connection)
                    assert {one["fate"] for one in answer.json["results"]} == {"added"}

        at_once(6, work)
        said, _ = watcher.communicate("", timeout=60)
        looks, most, damage = json.loads(said)
        assert (most <= 420, damage, looks > 0) == (True, [], True)
    finally:
        watcher.kill()
        watcher.wait()


def test_a_read_only_server_sees_acknowledged_changes(server: Server, shared_folder: Path) -> None:
    with serving(shared_folder, "--read-only") as reader:

        def work(number: int) -> None:
            with connected(server) as there, connected(reader) as here:
                for turn in range(10):
                    name, text = f"{number} {turn}", text_of(number, turn)
                    server.add(name, text, connection=there)
                    hits = reader.post("/v1/query", {"text": text}, connection=here).json["hits"]
                    assert [hit["id"] for hit in hits] == [name]

        at_once(4, work)
