"""The OpenAPI document is true: what it describes is there, and whatever is sent, what comes back is what it says.

schemathesis, which nobody here wrote, makes up requests from the document, good and bad ones, and holds every answer
against it: no 5xx, no status, header, type or field that is not described, nothing refused that is allowed, nothing
accepted that is not.
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
# Where whatever is made up is there, unlike ids.
SURE = {f"{route.method} {route.path}" for route in ROUTES if "{id}" not in route.path}
CONFIG = """
[checks.negative_data_rejection]  # too large is a reason too
expected-statuses = [400, 401, 403, 404, 405, 413, 415, 422]

[[operations]]  # not every plan can be made, and bands go with rows: no schema of a parameter can say that
include-path = "/v1/plan"
checks.positive_data_acceptance.expected-statuses = ["2xx", 401, 403, 422]
"""


def stored(folder: Path) -> Path:
    """A new index with documents that are like each other."""
    path = folder / "news.mw"
    with mw.Index.create(path, threshold=0.5, shingle="word:2", store="text") as index:
        index.add(["a", "b", 3], ["the cat sat on the mat", "the cat sat on a mat", "x"], [{"lang": "en"}, None, {}])
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with limits that are soon reached."""
    with serving(stored(tmp_path_factory.mktemp("schema")), *LIMITS) as running:
        yield running


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The same, which asks for tokens."""
    folder = tmp_path_factory.mktemp("tokens")
    token = make_token(folder / "tokens", ["read", "write"], "everybody")
    with serving(stored(folder), *LIMITS, "--token-file", str(folder / "tokens")) as running:
        running.token = token
        yield running


@pytest.fixture(scope="module")
def document(server: Server) -> dict[str, Any]:
    """The OpenAPI document."""
    described: dict[str, Any] = server.get("/openapi.json").json
    return described


def run_schemathesis(server: Server, folder: Path, phases: list[str], *options: str) -> None:
    """Has schemathesis try every operation with every check; none may fail, and of most some requests are accepted."""
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
    told = json.loads(report.read_text())
    assert [told["phases"][phase]["status"] for phase in phases] == ["success"] * len(phases)
    assert told["operations"]["tested"] == len(ROUTES)
    assert not any(told["warnings"].values())
    assert {operation for operation in told["valid_rates"] if accepted(told, operation)} >= SURE


def accepted(report: dict[str, Any], operation: str) -> int:
    """How many requests of an operation were good ones."""
    return sum(int(phase["accepted"]) for phase in report["valid_rates"][operation].values())


def test_answers_keep_to_the_schema(server: Server, tmp_path: Path) -> None:
    """When everybody may do everything: also the ways from one operation to another."""
    run_schemathesis(server, tmp_path, ["examples", "coverage", "fuzzing", "stateful"], "--max-examples", "15")


def test_answers_keep_to_the_schema_when_tokens_are_asked_for(guarded: Server, tmp_path: Path) -> None:
    """With a token that may do everything; without one, nothing that needs one is answered."""
    options = ["--max-examples", "5", "--header", f"Authorization: Bearer {guarded.token}"]
    run_schemathesis(guarded, tmp_path, ["coverage", "fuzzing"], *options)


def test_the_document_is_openapi(document: dict[str, Any]) -> None:
    """Of version 3.1, and all that it refers to is in it."""
    assert document["openapi"].startswith("3.1.")
    assert [error.message for error in definitions.OPENAPI_31_VALIDATOR.iter_errors(document)] == []
    referred = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert referred <= set(document["components"]["schemas"])
    for schema in document["components"]["schemas"].values():
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})


def test_the_document_names_every_route_and_no_other(document: dict[str, Any]) -> None:
    """With its method, right and errors."""
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert described == {(route.method, route.path) for route in ROUTES}
    for route in ROUTES:
        answers = document["paths"][route.path][route.method.lower()]["responses"]
        needless = {"unauthorized", "forbidden"}  # without a token file nobody needs a right
        assert set(answers) == {"200", *(str(CODES[code]) for code in {*error_codes(route)} - needless)}


def test_the_document_tells_the_limits(document: dict[str, Any]) -> None:
    """Those of this server, and the threshold of its index."""
    schemas = document["components"]["schemas"]
    assert schemas["Document"]["properties"]["text"]["maxLength"] == 4000
    assert "At most 4,000 bytes" in schemas["QueryRequest"]["properties"]["text"]["description"]
    assert schemas["CompareRequest"]["properties"]["left"]["maxLength"] == 3000
    assert "bytes of JSON" in schemas["Document"]["properties"]["metadata"]["description"]
    assert schemas["Documents"]["properties"]["documents"]["maxItems"] == 5
    assert schemas["QueryRequest"]["properties"]["threshold"]["anyOf"][0]["minimum"] == 0.5


ANSWERS = {
    "Found": ("POST", "/v1/query", {"text": "the cat sat on the mat"}),
    "Results": ("POST", "/v1/documents?unique=true", {"documents": [{"id": "c", "text": "the cat sat on the mat"}]}),
    "Comparison": ("POST", "/v1/compare", {"left": "the cat sat", "right": "the cat stood", "rows": True}),
    "DocumentList": ("GET", "/v1/documents", None),
    "StoredDocument": ("GET", "/v1/documents/a", None),
    "PlanAnswer": ("GET", "/v1/plan", None),
    "IndexStats": ("GET", "/v1/stats", None),
    "Removed": ("DELETE", "/v1/documents", {"ids": ["b", "nobody"]}),
    "RemovedOne": ("DELETE", "/v1/documents/a", None),
    "Status": ("GET", "/readyz", None),
    "ErrorAnswer": ("GET", "/v1/documents/nobody", None),
}


def test_answers_have_no_field_that_is_not_described(server: Server, document: dict[str, Any]) -> None:
    """And every field that is: so the document is all there is to know."""
    schemas = document["components"]["schemas"]
    for name in ("a", "b"):
        server.post("/v1/documents?on_duplicate_id=replace", {"id": name, "text": "the cat sat on the mat"})
    answers = [route.answer.__name__ for route in ROUTES if route.answer is not None]
    assert set(ANSWERS) == {"ErrorAnswer", *(name.removesuffix("Message") for name in answers)}
    closed = {name: {**schema, "additionalProperties": False} for name, schema in schemas.items()}
    for name, (method, path, body) in ANSWERS.items():
        schema = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": closed}}
        jsonschema_rs.validate(schema, server.ask(method, path, body).json)
        assert set(schemas[name]["required"]) == set(schemas[name]["properties"])


def test_the_right_that_an_operation_needs_is_told(guarded: Server) -> None:
    """If there are tokens; and then 401 and 403 are answers."""
    document = guarded.get("/openapi.json").json
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    for route in ROUTES:
        operation = document["paths"][route.path][route.method.lower()]
        assert operation.get("security") == (None if route.right is None else [{"token": [route.right]}])
        assert ("401" in operation["responses"]) == (route.right is not None)
