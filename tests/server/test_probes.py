"""Health checks, metrics, statistics and plans over HTTP."""

import json
import re
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import minwise as mw
from minwise.server.tokens import make_token
from server.faults import FaultSwitches
from server.running import Server, serving, start

# Statistics that differ between two processes with the same index.
OF_THE_PROCESS = ("resident_bytes",)

# Values by name and labels.
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture(scope="module")
def server(shared_server: Server) -> Server:
    """Return the shared server; every test uses its own ids."""
    return shared_server


@contextmanager
def failing(index: Path) -> Iterator[Server]:
    """Run a server that may exit in any way."""
    server = start(index)
    try:
        yield server
    finally:
        server.end()


def samples(server: Server) -> Samples:
    """Return all values of the metrics by name and labels."""
    answer = server.get("/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain")
    families = list(text_string_to_metric_families(answer.body.decode()))
    assert all(family.documentation for family in families)
    found = [(one.name, tuple(sorted(one.labels.items())), one.value) for family in families for one in family.samples]
    assert len({one[:2] for one in found}) == len(found)
    return {(name, labels): value for name, labels, value in found}


def since(server: Server, before: Samples) -> Samples:
    """Return the values that have grown, and by how much."""
    grown = {key: value - before.get(key, 0) for key, value in samples(server).items()}
    return {key: value for key, value in grown.items() if value}


def requests(found: Samples) -> dict[tuple[str, str, str], float]:
    """Return request counts by method, route and status."""
    counted = {labels: value for (name, labels), value in found.items() if name == "minwise_requests_total"}
    return {
        (one["method"], one["route"], one["status"]): value
        for one, value in zip(map(dict, counted), counted.values(), strict=True)
    }


# Health


def test_a_working_server_is_healthy_and_ready(server: Server) -> None:
    for _ in range(3):
        for path in ("/healthz", "/readyz"):
            answer = server.get(path)
            assert (answer.status, answer.json) == (200, {"status": "ok"})


def test_a_deleted_index_is_reported(folder: Path) -> None:
    """By /readyz and by every request that needs it, without its path."""
    with failing(folder) as server:
        assert server.add("a", "one two three").status == 200
        shutil.rmtree(folder)
        answers = [
            server.get("/readyz"),
            server.post("/v1/query", {"text": "one two three"}),
            server.get("/v1/documents"),
            server.get("/v1/documents/a"),
            server.get("/v1/stats"),
            server.add("b", "four five six"),
            server.ask("DELETE", "/v1/documents/a"),
        ]
        assert [(answer.status, answer.error) for answer in answers] == [(503, "index_failed")] * len(answers)
        assert all(str(folder).encode() not in answer.body for answer in answers)
        assert server.get("/healthz").status == 200
        assert server.post("/v1/compare", {"left": "a b", "right": "a b"}).status == 200
        assert requests(samples(server))["GET", "/readyz", "503"] == 1
        assert server.stop() == 0


def test_an_overwritten_database_is_reported(folder: Path) -> None:
    with failing(folder) as server:
        documents = [{"id": number, "text": f"text {number} of many words"} for number in range(1000)]
        assert server.post("/v1/documents", {"documents": documents}).status == 200
        database = folder / "index.db"
        for file in folder.glob("index.db*"):
            file.write_bytes(b"\x5a" * file.stat().st_size)
        assert database.stat().st_size > 0
        answers = [server.post("/v1/query", {"text": f"text {number} of many words"}) for number in range(0, 1000, 50)]
        assert {(answer.status, answer.error) for answer in answers} == {(503, "index_failed")}
        assert server.get("/readyz").status == 503
        assert server.get("/healthz").status == 200


def test_a_full_disk_refuses_changes_until_there_is_space(folder: Path) -> None:
    """Reads continue."""
    with serving(folder) as server:
        assert server.add("before", "one two three four").status == 200
        with files_of_at_most(server, 4096):
            for answer in (server.add("full", "words " * 2000), server.ask("DELETE", "/v1/documents/before")):
                assert (answer.status, answer.error) == (507, "disk_full")
            assert server.get("/readyz").status == 200
            assert server.post("/v1/query", {"text": "one two three four"}).json["hits"][0]["id"] == "before"
        assert server.add("full", "there is room").status == 200
        assert server.get("/readyz").status == 200
    with mw.Index.open(folder) as reader:
        assert ("before" in reader, "full" in reader, len(reader), reader.verify()) == (True, True, 2, [])


@contextmanager
def files_of_at_most(server: Server, size: int) -> Iterator[None]:
    """Limit the size of the files of a server, as if the disk were full."""
    _, most = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size, most))
    yield
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (most, most))


def test_a_failed_change_makes_the_server_unready_until_one_succeeds(folder: Path, tmp_path: Path) -> None:
    faults = FaultSwitches(tmp_path / "faults")
    with serving(folder, environment=faults.environment) as server:

        def ready() -> int:
            answer = server.get("/readyz")
            assert answer.status == 200 or answer.error == "index_failed"
            return answer.status

        assert server.add("a", "one two three").status == 200
        with faults.strike("fill", "add"):
            assert server.add("b", "four five six").error == "disk_full"
            assert ready() == 200
        with faults.strike("damage", "add"):
            answer = server.add("b", "four five six")
            assert (answer.status, answer.error) == (503, "index_failed")
            assert ready() == 503
            assert server.post("/v1/query", {"text": "one two three"}).json["hits"][0]["id"] == "a"
            assert ready() == 503
        with faults.strike("fill", "add"):
            assert server.add("b", "four five six").error == "disk_full"
        assert server.ask("DELETE", "/v1/documents/missing").status == 404
        assert server.ask("DELETE", "/v1/documents", {"ids": ["missing"]}).json["removed"] == 0
        assert server.post("/v1/documents", {"id": "b"}).status == 422
        assert server.get("/v1/stats").status == 200
        assert ready() == 503
        assert server.add("b", "four five six").status == 200
        assert ready() == 200


def test_the_log_has_each_failure_once_a_minute(folder: Path, tmp_path: Path) -> None:
    """Without tokens and request content."""
    faults, log, file = FaultSwitches(tmp_path / "faults"), tmp_path / "log", tmp_path / "tokens"
    token = make_token(file, ["read", "write"], "everybody")
    options = ("--token-file", str(file))
    with serving(folder, *options, environment=faults.environment, log=log) as server:
        server.token = token
        for kind in ("fill", "damage", "fill", "damage", "fill"):
            with faults.strike(kind, "add"):
                for number in range(5):
                    assert server.add(f"zebra{number}", "zebra", {"zebra": "zebra"}).status in (503, 507)
        with faults.strike("damage", "query"):
            assert server.post("/v1/query", {"text": "zebra", "where": {"zebra": 1}}).status == 503
        server.get("/v1/stats", headers={"Authorization": "Bearer guessed"})
        server.post("/v1/query", b'{"zebra')
        assert server.add("zebra", "zebra").status == 200
    greeting, *lines = log.read_text().splitlines()
    assert greeting == "minwise: stop it with Ctrl-C"
    matches = [re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} minwise: (the [a-z ]+): .+", line) for line in lines]
    assert [match and match[1] for match in matches] == ["the disk is full", "the index failed"], lines
    assert not re.search(f"zebra|guessed|{token}|{sha256(token.encode()).hexdigest()}", log.read_text())


def test_a_damaged_document_is_never_returned(folder: Path) -> None:
    """Undamaged ones are."""
    with mw.Index.open(folder, "w") as index:
        index.add(["good", "bad"], ["one two three four", "unmistakable words of the bad one"])
    data = (folder / "index.db").read_bytes()
    assert data.count(b"unmistakable") == 1
    (folder / "index.db").write_bytes(data.replace(b"unmistakable", b"unmIstakable"))
    with serving(folder) as server:
        answer = server.get("/v1/documents/bad")
        assert (answer.status, answer.error) == (503, "index_failed")
        assert server.get("/v1/documents/good").json["text"] == "one two three four"
        assert server.post("/v1/query", {"text": "one two three four"}).json["hits"][0]["id"] == "good"


# Metrics


def test_requests_are_counted_by_route_and_status(server: Server) -> None:
    before = samples(server)
    server.add("a", "one two three")
    server.add("a", "one two three")
    server.add("a", "another text")
    for name in ("a", "b", "c", "d%2Fe"):
        server.get(f"/v1/documents/{name}")
    server.post("/v1/query", {"text": "one two three"})
    server.post("/v1/query", {"text": 5})
    server.post("/v1/query", b"{")
    server.ask("DELETE", "/v1/documents/a")
    expected = {
        ("GET", "/metrics", "200"): 1,
        ("POST", "/v1/documents", "200"): 2, ("POST", "/v1/documents", "409"): 1,
        ("GET", "/v1/documents/{id}", "200"): 1, ("GET", "/v1/documents/{id}", "404"): 3,
        ("POST", "/v1/query", "200"): 1, ("POST", "/v1/query", "422"): 1, ("POST", "/v1/query", "400"): 1,
        ("DELETE", "/v1/documents/{id}", "200"): 1,
    }  # fmt: skip
    assert requests(since(server, before)) == expected


def test_unknown_paths_and_methods_share_labels(server: Server) -> None:
    """Clients cannot create labels by paths, ids, methods or query strings."""
    before = samples(server)
    for number in range(20):
        server.get(f"/v1/documents/zebra{number}")
        server.get(f"/zebra/{number}?zebra={number}")
        server.get(f"/static/zebra{number}.js")
        server.ask("PATCH" if number % 2 else "PROPFIND", f"/v1/stats/zebra{number}")
        server.get(f"/v1/stats?zebra{number}=1")
        server.add(f"zebra{number}", "zebra", {"zebra": number})
        server.get("/healthz", headers={"User-Agent": f"zebra{number}"})
    assert b"zebra" not in server.get("/metrics").body
    assert requests(since(server, before)) == {
        ("GET", "/v1/documents/{id}", "404"): 20, ("GET", "none", "404"): 40, ("PATCH", "none", "404"): 10,
        ("other", "none", "404"): 10, ("GET", "/v1/stats", "422"): 20, ("POST", "/v1/documents", "200"): 20,
        ("GET", "/healthz", "200"): 20, ("GET", "/metrics", "200"): 2,
    }  # fmt: skip


def test_durations_are_measured(server: Server) -> None:
    before = samples(server)
    for number in range(7):
        server.add(f"timed {number}", f"text {number} and more")
    found = since(server, before)
    labels = (("method", "POST"), ("route", "/v1/documents"))
    assert found["minwise_request_seconds_count", labels] == 7
    buckets = [
        (float(dict(one)["le"]), value)
        for (name, one), value in found.items()
        if name == "minwise_request_seconds_bucket" and dict(one).get("route") == "/v1/documents"
    ]
    assert [value for _, value in sorted(buckets)] == sorted(value for _, value in buckets)
    assert max(buckets) == (float("inf"), 7)
    assert found["minwise_request_seconds_sum", labels] > 0


def test_documents_and_fates_are_counted(server: Server) -> None:
    before = samples(server)
    listed = [{"id": f"fate{number}", "text": f"{number} text of {number} words"} for number in (1, 2, 2, 3)]
    server.post("/v1/documents", {"documents": [*listed, {"id": "fate1", "text": "another"}]})
    server.ask("DELETE", "/v1/documents/fate3")
    found = since(server, before)
    fates = {dict(labels)["fate"]: value for (name, labels), value in found.items() if name == "minwise_added_total"}
    assert fates == {"added": 3, "unchanged": 1, "conflict": 1}
    assert found["minwise_documents", ()] == 2
    assert samples(server)["minwise_requests_in_flight", ()] == 0


# Statistics


@pytest.mark.parametrize(("seed", "read_only"), [(None, True), (20_406_080_100, False)])
def test_statistics_are_those_of_the_index(tmp_path: Path, seed: int | None, read_only: bool) -> None:
    """Without the seed, even a given one; with the limits of the server."""
    path = tmp_path / "news.mw"
    with mw.Index.create(path, threshold=0.5, shingle="word:2", store_text=True, seed=seed) as index:
        index.add(range(30), [f"text {number} of {number * 3} words" for number in range(30)])
        index.flush()
        index.add(["more"], ["of this"])
        index.remove([3, 4])
    options = ["--read-only"] if read_only else []
    with (
        serving(path, *options, "--max-documents", "7", "--max-request", "1MB") as server,
        mw.Index.open(path) as reader,
    ):
        found = server.get("/v1/stats").json
        expected: dict[str, Any] = dict(reader.stats())
        expected["settings"].pop("seed", None)
        for facts in (found, expected):
            facts["settings"].pop("secret_seed", None)
            assert all(facts.pop(name) >= 0 for name in OF_THE_PROCESS)
        assert found.pop("read_only") is read_only
        assert found.pop("rights") == ["read", "write"]
        limits = found.pop("limits")
        assert (limits["max_documents"], limits["max_request"], limits["max_document"]) == (7, 10**6, 10**6)
        assert found == expected
        assert (found["documents"], found["removed"], len(found["segments"])) == (29, 2, 1)


def test_no_response_contains_the_seed_or_the_path(tmp_path: Path) -> None:
    path = tmp_path / "a place to hide" / "news.mw"
    path.parent.mkdir()
    with mw.Index.create(path, threshold=0.5, shingle="word:2", store_text=True) as index:
        index.add(["a"], ["one two three four"])
        seed = index.scheme.seed
    with serving(path) as server:
        answers = [
            server.get("/v1/stats"), server.get("/v1/plan"), server.get("/metrics"), server.get("/v1/documents/a"),
            server.get("/openapi.json"), server.get("/docs"), server.get("/"), server.get("/v1/documents/none"),
            server.post("/v1/query", {"text": "one two three four"}), server.post("/v1/query", {"text": 5}),
            server.post("/v1/compare", {"left": "one two three", "right": "one two three", "rows": True}),
            server.add("a", "another"), server.get("/nowhere"),
        ]  # fmt: skip
        for answer in answers:
            content = answer.body + json.dumps(dict(answer.headers)).encode()
            assert str(seed).encode() not in content
            assert hex(seed)[2:].encode() not in content
            assert b"a place to hide" not in content


# Plans


def test_the_plan_of_the_index(server: Server) -> None:
    """With all numbers of the library."""
    assert server.get("/v1/plan").json == json.loads(json.dumps(mw.plan(0.5).to_dict()))


@pytest.mark.parametrize(
    ("query", "wishes"),
    [
        ("threshold=0.7", {"threshold": 0.7}), ("recall=0.9", {"recall": 0.9}), ("slots=64", {"slots": 64}),
        ("threshold=0.9&recall=0.5&slots=32", {"threshold": 0.9, "recall": 0.5, "slots": 32}),
        ("bands=20&rows=5", {"bands": 20, "rows": 5}), ("threshold=1", {"threshold": 1}),
        ("slots=1&recall=0.1", {"slots": 1, "recall": 0.1}),
        ("bands=1&rows=1&threshold=0.3", {"bands": 1, "rows": 1, "threshold": 0.3}),
        ("threshold=1e-1", {"threshold": 0.1}),
    ],
)  # fmt: skip
def test_plans_for_other_parameters(server: Server, query: str, wishes: dict[str, Any]) -> None:
    answer = server.get(f"/v1/plan?{query}")
    assert (answer.status, answer.json) == (200, json.loads(json.dumps(mw.plan(**wishes).to_dict())))


@pytest.mark.parametrize(
    "query",
    [
        "threshold=0", "threshold=1.1", "threshold=-1", "threshold=x", "threshold=", "threshold=nan", "threshold=inf",
        "recall=0", "recall=1", "recall=2", "recall=nan", "slots=0", "slots=-1", "slots=1.5", "slots=1000000000",
        "slots=" + "9" * 40, "slots=x", "bands=5", "rows=5", "bands=0&rows=1", "bands=1&rows=0",
        "bands=99999&rows=99999", "bands=-1&rows=-1", "threshold=0.1&recall=0.999&slots=2", "shingle=word:5",
        "threshold=0.5&threshold=0.6", "threshold=0.5,0.6",
    ],
)  # fmt: skip
def test_impossible_plans_are_refused(server: Server, query: str) -> None:
    answer = server.get(f"/v1/plan?{query}")
    assert (answer.status, answer.error) == (422, "bad_value")
    assert any(one.partition("=")[0] in answer.json["error"]["message"] for one in query.split("&"))
