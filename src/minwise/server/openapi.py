"""OpenAPI: routes and messages in, the description of the service out. Nothing of it is written by hand twice."""

import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from msgspec import Struct, json

from minwise.server.errors import CODES
from minwise.server.messages import ErrorAnswer
from minwise.server.routes import Route

__all__ = ["MEANINGS", "codes_of", "openapi_of"]

Schema = dict[str, Any]

REFERENCE = "#/components/schemas/{name}"
JSON = "application/json"
ID = {"type": "string", "minLength": 1}
# The name of the way in which a client says who it is.
TOKEN = "token"

# What each code of an error means to who made the request.
MEANINGS = {
    "bad_json": "The body is not JSON in UTF-8.",
    "bad_http": "The request is not HTTP.",
    "unauthorized": "No token, or one that is not known.",
    "forbidden": "The token lacks the right.",
    "wrong_origin": "The request comes from a page of another site.",
    "read_only": "The server was started to change nothing.",
    "not_found": "There is nothing of this name.",
    "method_not_allowed": "The path takes other methods; Allow names them.",
    "too_slow": "The request did not arrive in time; the connection is closed.",
    "id_taken": "The id has another document; on_duplicate_id says what to do then.",
    "request_too_large": "The request has more bytes than the server takes.",
    "document_too_large": "A text, or its metadata, has more bytes than the server takes.",
    "too_many_documents": "The request has more documents than the server takes at a time.",
    "unsupported_media_type": "A body has to be sent as application/json.",
    "wrong_host": "The server does not go by the name in the Host header.",
    "bad_value": "Something has a value that breaks its rule; the message says which.",
    "too_deep": "Objects and lists are nested deeper than the server takes.",
    "headers_too_large": "The header fields have more bytes than the server takes.",
    "internal": "A fault of the server. Nothing was stored, or all of it; asking again is safe.",
    "busy": "More requests than the server works on at a time, or it is stopping; Retry-After says when to come again.",
    "index_failed": "The index can not be used; the log of the server says why.",
    "disk_full": "There is no room to store it.",
}

# Codes that come with every request, with a right that is asked for, and with a body.
ALWAYS = ("bad_http", "too_slow", "wrong_host", "wrong_origin", "headers_too_large", "bad_value", "internal", "busy")
BY_RIGHT = {None: (), "read": ("unauthorized", "forbidden"), "write": ("unauthorized", "forbidden", "read_only")}
WITH_BODY = ("bad_json", "unsupported_media_type", "request_too_large", "too_deep")

# Headers of errors, by code: name, whether each answer of that status has it, and what it says.
HEADERS = {
    "unauthorized": ("WWW-Authenticate", True, "The way to say who one is: Bearer."),
    "method_not_allowed": ("Allow", True, "The methods that the path takes."),
    "busy": ("Retry-After", False, "Seconds after which to come again."),
}

# Fields that a limit of the server bounds: message, field, keyword if there is one, limit, and what it counts.
BOUNDED = (
    ("Document", "text", "maxLength", "max_document", "bytes of UTF-8"),
    ("Document", "metadata", None, "max_metadata", "bytes of JSON"),
    ("QueryRequest", "text", "maxLength", "max_document", "bytes of UTF-8"),
    ("QueryRequest", "where", None, "max_metadata", "bytes of JSON"),
    ("CompareRequest", "left", "maxLength", "max_compare", "bytes of UTF-8"),
    ("CompareRequest", "right", "maxLength", "max_compare", "bytes of UTF-8"),
    ("Documents", "documents", "maxItems", "max_documents", "of them"),
    ("DocumentIds", "ids", "maxItems", "max_documents", "of them"),
)

# What requests are about, by the beginning of their path.
TAGS = (
    ("/v1/documents", "documents", "What is stored: add, look at, browse, remove."),
    ("/v1/query", "questions", "What a text is like, and how two texts differ."),
    ("/v1/compare", "questions", ""),
    ("/v1/", "index", "How the index was planned, and how much is in it."),
    ("/", "server", "Whether it is well, what it has done, and what describes it."),
)

ABOUT = (
    "Finds near-duplicates of a text among stored documents. Every error has one shape, with a code for programs and a "
    "line for people. What an answer has acknowledged is stored for good, and adding the same document again changes "
    "nothing, so a request may be repeated. Offsets count code points."
)


def openapi_of(
    routes: Iterable[Route],
    version: str,
    *,
    limits: Mapping[str, float] | None = None,
    threshold: float | None = None,
    tokens: bool = True,
) -> dict[str, Any]:
    """The OpenAPI 3.1 document of a service.

    Args:
        routes: What it answers.
        version: Of the software.
        limits: How much the server takes, by the names of its settings.
        threshold: The least similarity that can be asked for.
        tokens: Whether the server asks for tokens.
    """
    listed = list(routes)
    components = _components(listed)
    _bound(components, limits or {}, threshold)
    paths: dict[str, dict[str, Any]] = {}
    for route in listed:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, tokens=tokens)
    scheme = {"type": "http", "scheme": "bearer", "description": "Drawn by `minwise token`; with its rights."}
    return {
        "openapi": "3.1.0",
        "info": {"title": "minwise", "version": version, "description": ABOUT},
        "tags": [{"name": name, "description": about} for _, name, about in TAGS if about],
        "paths": paths,
        "components": {"schemas": components, **({"securitySchemes": {TOKEN: scheme}} if tokens else {})},
    }


def codes_of(route: Route) -> tuple[str, ...]:
    """The codes of all errors that a request may end with, in the order of their statuses."""
    body = WITH_BODY if route.body else ()
    codes = {*ALWAYS, *BY_RIGHT[route.right], *body, *route.errors}
    return tuple(sorted(codes, key=lambda code: (CODES[code], code)))


def _components(routes: Sequence[Route]) -> dict[str, Schema]:
    """The schemas of all messages. An answer always has all of its fields, also those that have a default."""
    sent = [message for route in routes for message in route.body]
    answered = [route.answer for route in routes if route.answer is not None]
    requests, answers = _schemas(sent), _schemas([ErrorAnswer, *answered])
    whole = {name: {**schema, "required": list(schema.get("properties", {}))} for name, schema in answers.items()}
    return {name: _readable(schema) for name, schema in sorted({**whole, **requests}.items())}


def _schemas(messages: Iterable[type[Struct]]) -> dict[str, Schema]:
    """The schemas of messages and of all that they are made of, by name."""
    return json.schema_components(dict.fromkeys(messages), ref_template=REFERENCE)[1]


def _readable(schema: Schema) -> Schema:
    """The schema of a message with the double backquotes of docstrings made single ones, as Markdown has them."""
    return {**schema, "description": schema.get("description", "").replace("``", "`")}


def _bound(components: dict[str, Schema], limits: Mapping[str, float], threshold: float | None) -> None:
    """Writes the limits of this server into the fields that they bound."""
    for message, name, keyword, limit, unit in BOUNDED:
        if limit in limits and message in components:
            field = components[message]["properties"][name]
            if keyword is not None:
                field[keyword] = limits[limit]
            field["description"] = f"{field.get('description', '')} At most {limits[limit]:,} {unit}.".lstrip()
    if threshold is not None and "QueryRequest" in components:
        for choice in components["QueryRequest"]["properties"]["threshold"]["anyOf"]:
            if choice.pop("exclusiveMinimum", None) is not None:
                choice["minimum"] = threshold


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
    operation["responses"] = {"200": _success(route), **_errors(codes_of(route), tokens=tokens)}
    return operation


def _path_parameters(route: Route) -> list[Schema]:
    if "{id}" not in route.path:
        return []
    about = "The id of a document; slashes are part of it."
    return [{"name": "id", "in": "path", "required": True, "description": about, "schema": ID}]


def _query_parameters(route: Route) -> list[Schema]:
    """The fields of the options, none of which is required."""
    if route.options is None:
        return []
    fields = json.schema_components([route.options])[1][route.options.__name__]["properties"]
    return [_query_parameter(name, schema) for name, schema in fields.items()]


def _query_parameter(name: str, schema: Schema) -> Schema:
    plain = {key: value for key, value in schema.items() if key != "description"}
    about = str(schema.get("description", "")).replace("``", "`")
    return {"name": name, "in": "query", "required": False, "description": about, "schema": plain}


def _one_of(messages: Sequence[type]) -> Schema:
    choices = [{"$ref": REFERENCE.format(name=message.__name__)} for message in messages]
    return choices[0] if len(choices) == 1 else {"oneOf": choices}


def _success(route: Route) -> dict[str, Any]:
    if route.answer is not None:
        described = str(route.answer.__doc__).partition("\n")[0].replace("``", "`")
        return {"description": described, "content": {JSON: {"schema": _one_of([route.answer])}}}
    schema = {"type": "object"} if route.media == JSON else {}
    return {"description": route.summary, "content": {route.media: {"schema": schema}}}


def _errors(codes: Iterable[str], *, tokens: bool) -> dict[str, Any]:
    """An answer for each status, with the codes that it may have and what they mean."""
    by_status: dict[int, list[str]] = {}
    for code in codes:
        if tokens or code not in BY_RIGHT["read"]:
            by_status.setdefault(CODES[code], []).append(code)
    return {str(status): _error(status, found) for status, found in by_status.items()}


def _error(status: int, codes: list[str]) -> dict[str, Any]:
    known = {"properties": {"error": {"properties": {"code": {"enum": codes}}}}}
    schema = {"allOf": [{"$ref": REFERENCE.format(name=ErrorAnswer.__name__)}, known]}
    meanings = "\n".join(f"- `{code}`: {MEANINGS[code]}" for code in codes)
    headers = {
        name: {"description": about, "required": required, "schema": {"type": "string"}}
        for name, required, about in (HEADERS[code] for code in codes if code in HEADERS)
    }
    answer = {"description": f"{HTTPStatus(status).phrase}\n\n{meanings}", "content": {JSON: {"schema": schema}}}
    return {**answer, **({"headers": headers} if headers else {})}
