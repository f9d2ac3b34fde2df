"""OpenAPI document of the service, generated from its routes and messages."""

import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from msgspec import Struct, json

from minwise.server.errors import CODES
from minwise.server.messages import ErrorAnswer
from minwise.server.routes import Route

__all__ = ["MEANINGS", "error_codes", "openapi_document"]

Schema = dict[str, Any]

REFERENCE = "#/components/schemas/{name}"
JSON = "application/json"
ID = {"type": "string", "minLength": 1}
# Name of the security scheme.
TOKEN = "token"
# Suffix of message classes that is not part of the name of their schema.
SUFFIX = "Message"

# Meaning of each error code for the client.
MEANINGS = {
    "bad_json": "The body is not JSON in UTF-8.",
    "bad_http": "The request is not valid HTTP.",
    "unauthorized": "The token is missing or unknown.",
    "forbidden": "The token lacks the right.",
    "wrong_origin": "The request comes from a page of another site.",
    "read_only": "The server is read_only.",
    "not_found": "The id or the path does not exist.",
    "method_not_allowed": "The path does not support the method; Allow lists those it supports.",
    "too_slow": "The request did not arrive in time; the connection is closed.",
    "id_taken": "The id has another document; on_duplicate_id defines what to do then.",
    "request_too_large": "The request exceeds the size limit.",
    "document_too_large": "A text or its metadata exceeds the size limit.",
    "too_many_documents": "The request has too many documents or ids.",
    "unsupported_media_type": "The body must be sent as application/json.",
    "wrong_host": "The Host header is not a name of the server.",
    "bad_value": "A value breaks its rule; the message names it.",
    "too_deep": "Objects and lists are nested too deep.",
    "headers_too_large": "The header fields exceed the size limit.",
    "internal": "The server failed. Either nothing or everything was stored; the request can be repeated.",
    "busy": "The server is overloaded or stopping; Retry-After says when to repeat the request.",
    "index_failed": "The index is unavailable; the log of the server contains the reason.",
    "disk_full": "The disk is full, and nothing was stored.",
}

# Error codes of every route, of routes that need a right, and of routes with a body.
ALWAYS = ("bad_http", "too_slow", "wrong_host", "wrong_origin", "headers_too_large", "bad_value", "internal", "busy")
BY_RIGHT = {None: (), "read": ("unauthorized", "forbidden"), "write": ("unauthorized", "forbidden", "read_only")}
WITH_BODY = ("bad_json", "unsupported_media_type", "request_too_large", "too_deep")

# Headers of errors by code: name, whether every response of that status has it, and description.
HEADERS = {
    "unauthorized": ("WWW-Authenticate", True, "The authentication scheme: Bearer."),
    "method_not_allowed": ("Allow", True, "The methods of the path."),
    "busy": ("Retry-After", False, "Seconds after which to repeat the request."),
}

# Fields with a limit of the server: schema, field, keyword if there is one, limit, and unit.
BOUNDED = (
    ("Document", "text", "maxLength", "max_document", "bytes of UTF-8"),
    ("Document", "metadata", None, "max_metadata", "bytes of JSON"),
    ("QueryRequest", "text", "maxLength", "max_document", "bytes of UTF-8"),
    ("QueryRequest", "where", None, "max_metadata", "bytes of JSON"),
    ("CompareRequest", "left", "maxLength", "max_compare", "bytes of UTF-8"),
    ("CompareRequest", "right", "maxLength", "max_compare", "bytes of UTF-8"),
    ("Documents", "documents", "maxItems", "max_documents", "items"),
    ("DocumentIds", "ids", "maxItems", "max_documents", "items"),
)

# Tags by the beginning of the path.
TAGS = (
    ("/v1/documents", "documents", "Add, get, list and remove documents."),
    ("/v1/expire", "documents", ""),
    ("/v1/query", "questions", "Find near-duplicates, search and compare texts."),
    ("/v1/search", "questions", ""),
    ("/v1/compare", "questions", ""),
    ("/v1/", "index", "Plan, size and settings of the index."),
    ("/", "server", "Health checks and metrics."),
)

ABOUT = (
    "Finds near-duplicates of a text among stored documents. All errors have one shape, with a code for programs and a "
    "message for people. A change is durable when its response arrives, and adding the same document again changes "
    "nothing, so a request can be repeated. Offsets are counted in code points."
)


def openapi_document(
    routes: Iterable[Route],
    version: str,
    *,
    limits: Mapping[str, float] | None = None,
    threshold: float | None = None,
    tokens: bool = True,
) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of a service.

    Args:
        routes: The routes.
        version: Version of the software.
        limits: Limits of the server by name.
        threshold: Minimum similarity of a query.
        tokens: Whether the server requires tokens.
    """
    listed = list(routes)
    components = _components(listed)
    _bound(components, limits or {}, threshold)
    paths: dict[str, dict[str, Any]] = {}
    for route in listed:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, tokens=tokens)
    scheme = {
        "type": "http",
        "scheme": "bearer",
        "description": "Made by `minwise token`, with the right to read, to write or both.",
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "minwise", "version": version, "description": ABOUT},
        "tags": [{"name": name, "description": about} for _, name, about in TAGS if about],
        "paths": paths,
        "components": {"schemas": components, **({"securitySchemes": {TOKEN: scheme}} if tokens else {})},
    }


def error_codes(route: Route) -> tuple[str, ...]:
    """Return all error codes of a route in the order of their statuses."""
    body = WITH_BODY if route.body else ()
    codes = {*ALWAYS, *BY_RIGHT[route.right], *body, *route.errors}
    return tuple(sorted(codes, key=lambda code: (CODES[code], code)))


def _components(routes: Sequence[Route]) -> dict[str, Schema]:
    """Return the schemas of all messages. Fields of a response are required, unless they are left out where unset."""
    sent = [message for route in routes for message in route.body]
    answered = [route.answer for route in routes if route.answer is not None]
    requests, answers = _schemas(sent), _schemas([ErrorAnswer, *answered])
    whole = {name: {**schema, "required": _always_present(schema)} for name, schema in answers.items()}
    return {name: _readable(schema) for name, schema in sorted({**whole, **requests}.items())}


def _always_present(schema: Schema) -> list[str]:
    """Return the names of all fields but those that are left out where they are unset, which have no default."""
    required = schema.get("required", [])
    return [name for name, field in schema.get("properties", {}).items() if name in required or "default" in field]


def _schemas(messages: Iterable[type[Struct]]) -> dict[str, Schema]:
    """Return the schemas of messages and of all messages in them, by name."""
    components = json.schema_components(dict.fromkeys(messages), ref_template=REFERENCE)[1]
    return {_schema_name(name): _renamed(schema) for name, schema in components.items()}


def _schema_name(class_name: str) -> str:
    return class_name.removesuffix(SUFFIX)


def _renamed(part: Any) -> Any:  # noqa: ANN401 - any part of a schema
    """Return a part of a schema with the names of schemas instead of those of classes."""
    if isinstance(part, list):
        return [_renamed(item) for item in part]
    if not isinstance(part, dict):
        return part
    return {
        key: _schema_name(value) if key in ("$ref", "title") and isinstance(value, str) else _renamed(value)
        for key, value in part.items()
    }


def _readable(schema: Schema) -> Schema:
    """Return a schema whose description has single backquotes, as Markdown does, instead of double ones."""
    return {**schema, "description": schema.get("description", "").replace("``", "`")}


def _bound(components: dict[str, Schema], limits: Mapping[str, float], threshold: float | None) -> None:
    """Add the limits of the server to the fields they apply to."""
    for schema, name, keyword, limit, unit in BOUNDED:
        if limit in limits and schema in components:
            field = components[schema]["properties"][name]
            if keyword is not None:
                field[keyword] = limits[limit]
            field["description"] = f"{field.get('description', '')} At most {limits[limit]:,} {unit}.".lstrip()
    if threshold is not None and "QueryRequest" in components:
        choices = components["QueryRequest"]["properties"]["threshold"]["anyOf"]
        for choice in choices:
            if "minimum" in choice:
                choice["minimum"] = threshold
        choices.append({"const": 0})


def _operation(route: Route, *, tokens: bool) -> dict[str, Any]:
    words = re.findall(r"\w+", route.path)
    operation: dict[str, Any] = {
        "operationId": "_".join([route.method.lower(), *words]),
        "summary": route.summary,
        "tags": [next(tag for start, tag, _ in TAGS if route.path.startswith(start))],
    }
    if tokens and route.right is not None:
        operation["security"] = [{TOKEN: [route.right]}]
    parameters = [*_path_parameters(route), *_query_parameters(route)]
    if parameters:
        operation["parameters"] = parameters
    if route.body:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": _one_of(route.body)}}}
    operation["responses"] = {"200": _success(route), **_errors(error_codes(route), tokens=tokens)}
    return operation


def _path_parameters(route: Route) -> list[Schema]:
    if "{id}" not in route.path:
        return []
    about = "The id of a document; it may contain slashes."
    return [{"name": "id", "in": "path", "required": True, "description": about, "schema": ID}]


def _query_parameters(route: Route) -> list[Schema]:
    """Return the fields of the options as parameters; those with a default are optional."""
    if route.options is None:
        return []
    options = json.schema_components([route.options])[1][route.options.__name__]
    needed = options.get("required", [])
    return [_query_parameter(name, schema, name in needed) for name, schema in options["properties"].items()]


def _query_parameter(name: str, schema: Schema, required: bool) -> Schema:
    plain = {key: value for key, value in schema.items() if key != "description"}
    about = str(schema.get("description", "")).replace("``", "`")
    return {"name": name, "in": "query", "required": required, "description": about, "schema": plain}


def _one_of(messages: Sequence[type]) -> Schema:
    choices = [{"$ref": REFERENCE.format(name=_schema_name(message.__name__))} for message in messages]
    return choices[0] if len(choices) == 1 else {"oneOf": choices}


def _success(route: Route) -> dict[str, Any]:
    if route.answer is not None:
        described = str(route.answer.__doc__).partition("\n")[0].replace("``", "`")
        return {"description": described, "content": {JSON: {"schema": _one_of([route.answer])}}}
    schema = {"type": "object"} if route.media == JSON else {}
    return {"description": route.summary, "content": {route.media: {"schema": schema}}}


def _errors(codes: Iterable[str], *, tokens: bool) -> dict[str, Any]:
    """Return a response for each status, with its error codes and their meanings."""
    by_status: dict[int, list[str]] = {}
    for code in codes:
        if tokens or code not in BY_RIGHT["read"]:
            by_status.setdefault(CODES[code], []).append(code)
    return {str(status): _error(status, found) for status, found in by_status.items()}


def _error(status: int, codes: list[str]) -> dict[str, Any]:
    known = {"properties": {"error": {"properties": {"code": {"enum": codes}}}}}
    schema = {"allOf": [{"$ref": REFERENCE.format(name=_schema_name(ErrorAnswer.__name__))}, known]}
    meanings = "\n".join(f"- `{code}`: {MEANINGS[code]}" for code in codes)
    headers = {
        name: {"description": about, "required": required, "schema": {"type": "string"}}
        for name, required, about in (HEADERS[code] for code in codes if code in HEADERS)
    }
    answer = {"description": f"{HTTPStatus(status).phrase}\n\n{meanings}", "content": {JSON: {"schema": schema}}}
    return {**answer, **({"headers": headers} if headers else {})}
