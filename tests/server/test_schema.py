"""The OpenAPI document is correct: every response conforms to it.

schemathesis generates valid and invalid requests from the document and checks every response: no 5xx, no undocumented
status, header, type or field, no valid request refused and no invalid one accepted.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from schemathesis.specs.openapi import definitions

import minwise as mw
from minwise.server.errors import CODES
from minwise.server.openapi import error_codes
from minwise.server.routes import ROUTES
from minwise.server.tokens import make_token
from server.running import Server, serving

TESTS = Path(__file__).parents[1]
# A run takes 15 s on an idle core.
PATIENCE_SECONDS = 250
LIMITS = ["--max-document", "4000", "--max-compare", "3000", "--max-documents", "5"]
# Operations whose generated requests succeed, unlike those with ids.
SURE = {f"{route.method} {route.path}" for route in ROUTES if "{id}" not in route.path}
CONFIG = """
[checks.negative_data_rejection]  # 413 is a rejection too
expected-statuses = [400, 401, 403, 404, 405, 413, 415, 422]

[[operations]]  # some plans are impossible, and bands require rows: a parameter schema cannot express that
include-path = "/v1/plan"
checks.positive_data_acceptance.expected-statuses = ["2xx", 401, 403, 422]
"""


def stored(folder: Path) -> Path:
    """Create an index with similar documents."""
    path = folder / "news.mw"
    with mw.Index.create(path, threshold=0.5, shingle="word:2", store_text=True) as index:
        index.add(["a", "b", 3], ["the cat sat on the mat", "the cat sat on a mat", "x"], [{"lang": "en"}, None, {}])
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve with low limits."""
    with serving(stored(tmp_path_factory.mktemp("schema")), *LIMITS) as running:
        yield running


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve the same with tokens."""
    folder = tmp_path_factory.mktemp("tokens")
    token = make_token(folder / "tokens", ["read", "write"], "everybody")
    with serving(stored(folder), *LIMITS, "--token-file", str(folder / "tokens")) as running:
        running.token = token
        yield running


@pytest.fixture(scope="module")
def document(server: Server) -> dict[str, Any]:
    """Return the OpenAPI document."""
    described: dict[str, Any] = server.get("/openapi.json").json
    return described


def run_schemathesis(server: Server, folder: Path, phases: list[str], *options: str) -> None:
    """Run all checks of schemathesis; none may fail, and most operations must accept some requests."""
    (folder / "schemathesis.toml").write_text(CONFIG)
    report = folder / "report.json"
    command = [
        str(Path(sys.executable).with_name("schemathesis")), "run", f"{server.url}openapi.json",
        "--checks", "all", "--generation-deterministic", "--seed", "1", "--no-color",
        "--phases", ",".join(phases), "--report", "json", "--report-json-path", str(report), *options,
    ]  # fmt: skip
    variables = {**os.environ, "SCHEMATHESIS_HOOKS": "server.schema_hooks", "PYTHONPATH": str(TESTS)}
    done = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, encoding="utf-8", check=False, timeout=PATIENCE_SECONDS
    )
    assert done.returncode == 0, re.sub(r"(.)\1{200,}", r"\1…", done.stdout[-20_000:] + done.stderr)
    results = json.loads(report.read_text())
    assert [results["phases"][phase]["status"] for phase in phases] == ["success"] * len(phases)
    assert results["operations"]["tested"] == len(ROUTES)
    assert not any(results["warnings"].values())
    assert {operation for operation in results["valid_rates"] if accepted(results, operation)} >= SURE


def accepted(report: dict[str, Any], operation: str) -> int:
    """Return how many requests of an operation succeeded."""
    return sum(int(phase["accepted"]) for phase in report["valid_rates"][operation].values())


def test_responses_conform_to_the_schema(server: Server, tmp_path: Path) -> None:
    """Without tokens, including links between operations."""
    run_schemathesis(server, tmp_path, ["examples", "coverage", "fuzzing", "stateful"], "--max-examples", "15")


def test_responses_conform_to_the_schema_with_tokens(guarded: Server, tmp_path: Path) -> None:
    options = ["--max-examples", "5", "--header", f"Authorization: Bearer {guarded.token}"]
    run_schemathesis(guarded, tmp_path, ["coverage", "fuzzing"], *options)


def test_the_document_is_valid_openapi(document: dict[str, Any]) -> None:
    """Of version 3.1, with all references resolved."""
    assert document["openapi"].startswith("3.1.")
    assert [error.message for error in definitions.OPENAPI_31_VALIDATOR.iter_errors(document)] == []
    referred = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert referred <= set(document["components"]["schemas"])
    for schema in document["components"]["schemas"].values():
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})


def test_the_document_describes_exactly_the_routes(document: dict[str, Any]) -> None:
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert described == {(route.method, route.path) for route in ROUTES}
    for route in ROUTES:
        answers = document["paths"][route.path][route.method.lower()]["responses"]
        needless = {"unauthorized", "forbidden"}  # without a token file no right is needed
        assert set(answers) == {"200", *(str(CODES[code]) for code in {*error_codes(route)} - needless)}


def test_the_document_contains_the_limits(document: dict[str, Any]) -> None:
    """And the threshold of the index."""
    schemas = document["components"]["schemas"]
    assert schemas["Document"]["properties"]["text"]["maxLength"] == 4000
    assert "At most 4,000 bytes" in schemas["QueryRequest"]["properties"]["text"]["description"]
    assert schemas["CompareRequest"]["properties"]["left"]["maxLength"] == 3000
    assert "bytes of JSON" in schemas["Document"]["properties"]["metadata"]["description"]
    assert schemas["Documents"]["properties"]["documents"]["maxItems"] == 5
    assert schemas["QueryRequest"]["properties"]["threshold"]["anyOf"][0]["minimum"] == 0.5
    assert {"const": 0} in schemas["QueryRequest"]["properties"]["threshold"]["anyOf"]


# Fields that depend on the request.
OPTIONAL = {"Found": {"complete_above"}}
ANSWERS = {
    "Found": ("POST", "/v1/query", {"text": "the cat sat on the mat"}),
    "Results": ("POST", "/v1/documents?unique=true", {"documents": [{"id": "c", "text": "the cat sat on the mat"}]}),
    "Comparison": ("POST", "/v1/compare", {"left": "the cat sat", "right": "the cat stood", "rows": True}),
    "DocumentList": ("GET", "/v1/documents", None),
    "StoredDocument": ("GET", "/v1/documents/a", None),
    "TextMatches": ("GET", "/v1/search?contains=cat", None),
    "PlanAnswer": ("GET", "/v1/plan", None),
    "IndexStats": ("GET", "/v1/stats", None),
    "Removed": ("DELETE", "/v1/documents", {"ids": ["b", "missing"]}),
    "RemovedOne": ("DELETE", "/v1/documents/a", None),
    "Status": ("GET", "/readyz", None),
    "Expired": ("POST", "/v1/expire", {"older_than": "1d", "time_field": "created"}),
    "ErrorAnswer": ("GET", "/v1/documents/missing", None),
}


def test_responses_have_exactly_the_described_fields(server: Server, document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    for name in ("a", "b"):
        server.post("/v1/documents?on_duplicate_id=replace", {"id": name, "text": "the cat sat on the mat"})
    answers = [route.answer.__name__ for route in ROUTES if route.answer is not None]
    assert set(ANSWERS) == {"ErrorAnswer", *(name.removesuffix("Message") for name in answers)}
    closed = {name: {**schema, "additionalProperties": False} for name, schema in schemas.items()}
    for name, (method, path, body) in ANSWERS.items():
        schema = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": closed}}
        jsonschema_rs.validate(schema, server.ask(method, path, body).json)
        assert set(schemas[name]["required"]) == set(schemas[name]["properties"]) - OPTIONAL.get(name, set())


def test_the_document_contains_the_required_rights(guarded: Server) -> None:
    """With tokens, including 401 and 403."""
    document = guarded.get("/openapi.json").json
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    for route in ROUTES:
        operation = document["paths"][route.path][route.method.lower()]
        assert operation.get("security") == (None if route.right is None else [{"token": [route.right]}])
        assert ("401" in operation["responses"]) == (route.right is not None)
