"""App: the table of routes, and the way of a request through it."""

import asyncio
import mimetypes
from contextlib import nullcontext
from importlib.resources import files
from time import perf_counter
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec

import minwise as mw
from minwise.checks import show
from minwise.server import handlers, messages
from minwise.server.errors import SECURITY_HEADERS, ApiError, ClientGoneError, as_api_error, busy
from minwise.server.guard import Guard, Headers
from minwise.server.limits import Limits
from minwise.server.openapi import openapi_of
from minwise.server.protocol import HttpRequest, HttpResponse
from minwise.server.routes import Call, Route, Table
from minwise.server.service import Service
from minwise.server.tokens import Tokens

__all__ = ["ROUTES", "App"]

FAILING = ("index_failed",)
CHANGING = ("index_failed", "disk_full")

ROUTES = (
    Route(
        method="POST", path="/v1/documents", handler=handlers.add, right="write",
        summary="Store documents, or learn what keeps them out",
        body=(messages.Document, messages.Documents), read_as=messages.OneOrMore, options=messages.AddOptions,
        answer=messages.Results, errors=("id_taken", "document_too_large", "too_many_documents", *CHANGING),
    ),
    Route(
        method="GET", path="/v1/documents", handler=handlers.browse, right="read",
        summary="List documents, the newest first",
        options=messages.ListOptions, answer=messages.DocumentList, errors=FAILING,
    ),
    Route(
        method="DELETE", path="/v1/documents", handler=handlers.remove, right="write",
        summary="Remove documents",
        body=(messages.DocumentIds,), answer=messages.Removed, errors=("too_many_documents", *CHANGING),
    ),
    Route(
        method="GET", path="/v1/documents/{id}", handler=handlers.get, right="read",
        summary="Look at a document", answer=messages.StoredDocument, errors=("not_found", *FAILING),
    ),
    Route(
        method="DELETE", path="/v1/documents/{id}", handler=handlers.remove_one, right="write",
        summary="Remove a document", answer=messages.RemovedOne, errors=("not_found", *CHANGING),
    ),
    Route(
        method="POST", path="/v1/query", handler=handlers.query, right="read",
        summary="Find the near-duplicates of a text",
        body=(messages.QueryRequest,), answer=messages.Found, errors=("document_too_large", *FAILING),
    ),
    Route(
        method="POST", path="/v1/compare", handler=handlers.compare, right="read",
        summary="Compare two texts",
        body=(messages.CompareRequest,), answer=messages.Comparison, errors=("document_too_large",),
    ),
    Route(
        method="GET", path="/v1/plan", handler=handlers.planned, right="read",
        summary="Look at the plan of the index, or at another",
        options=messages.PlanOptions, answer=messages.PlanAnswer,
    ),
    Route(
        method="GET", path="/v1/stats", handler=handlers.statistics, right="read",
        summary="Learn how much there is", answer=messages.IndexStats, errors=FAILING,
    ),
    Route(
        method="GET", path="/healthz", handler=handlers.healthy, right=None,
        summary="Whether the server lives", answer=messages.Status,
    ),
    Route(
        method="GET", path="/readyz", handler=handlers.ready, right=None,
        summary="Whether the server can work", answer=messages.Status, errors=FAILING,
    ),
    Route(
        method="GET", path="/metrics", handler=handlers.measured, right="read",
        summary="What the server has done, for Prometheus",
        media="text/plain; version=0.0.4; charset=utf-8", errors=FAILING,
    ),
)  # fmt: skip
# HttpResponseed however many others are.
PROBES = ("/healthz", "/readyz", "/metrics")
# Bytes that take a millisecond to decode.
LONG_BODY = 1 << 18
PAGES = {"index.html": "/", "docs.html": "/docs"}
JSON = (b"content-type", b"application/json")
NOT_KEPT = (b"cache-control", b"no-store")
# Methods that are counted by name; there is no end to the others.
METHODS = ("GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS")


class App:
    """Application that answers the requests of a service."""

    def __init__(self, service: Service, tokens: Tokens | None) -> None:
        self._service = service
        self._guard = Guard(service.settings, tokens, service.metrics.in_flight)
        self._limits = Limits(service.settings)
        self._table = Table(ROUTES)
        self._decoders = {
            route.handler: msgspec.json.Decoder(route.read_as or route.body[0]) for route in ROUTES if route.body
        }
        self._encode = msgspec.json.Encoder().encode
        described = openapi_of(
            ROUTES,
            mw.__version__,
            limits=service.settings.limits,
            threshold=service.plan.threshold,
            tokens=tokens is not None,
        )
        self._files = {**_page_files(), "/openapi.json": _file(msgspec.json.encode(described), "application/json")}

    async def __call__(self, request: HttpRequest) -> HttpResponse | None:
        """Return the response to a request; None if the client has disconnected."""
        started = perf_counter()
        routes, name = self._table.find(request.path)
        route = routes.get("GET" if request.method == "HEAD" else request.method)
        try:
            answer = await self._answer(request, routes, route, name)
        except ClientGoneError:
            return None
        length = (b"content-length", b"%d" % len(answer.body))
        label = route.path if route is not None else request.path if request.path in self._files else "none"
        method = request.method if request.method in METHODS else "other"
        self._service.metrics.note(method, label, answer.status, perf_counter() - started)
        return answer._replace(headers=[*answer.headers, length, *SECURITY_HEADERS, NOT_KEPT])

    async def _answer(
        self, request: HttpRequest, routes: dict[str, Route], route: Route | None, name: str
    ) -> HttpResponse:
        """What is told, whatever happens."""
        try:
            headers = Headers.of(request.headers)
            self._guard.check_names(headers)
            if "\ufffd" in request.path:
                _refuse_other_than_utf8(request.raw_path)
            if route is None:
                return self._file_or_error(request, routes)
            rights = self._guard.rights(headers) if route.right is not None else frozenset[str]()
            if route.right is not None:
                _check_right(rights, route.right)
            options = _options(route, request.query)
            if getattr(options, "unique", False):  # the answer tells what is there
                _check_right(rights, "read")
            return await self._handle(route, Call(None, options, name, rights, request), headers)
        except ClientGoneError:
            raise
        except Exception as error:
            told = as_api_error(error).with_traceback(None)  # which holds the body, and in a circle itself
        except asyncio.CancelledError:
            if not self._service.draining:
                raise
            told = busy("the server had to stop before this was done")
        return HttpResponse(told.status, told.body, [JSON, *told.headers])

    async def _handle(self, route: Route, call: Call, headers: Headers) -> HttpResponse:
        """What a route answers to a request that may ask."""
        content = await self._guard.read(headers, call.request) if route.body else bytearray()
        try:
            with nullcontext() if route.path in PROBES else self._guard.working(route.right or "read"):
                if route.body:
                    call = call._replace(body=await self._decoded(route, content))
                answer = await route.handler(self._service, call)
        finally:
            self._guard.forget(content)
        if isinstance(answer, bytes):
            return HttpResponse(200, answer, [(b"content-type", route.media.encode())])
        return HttpResponse(200, self._encode(answer), [JSON])

    async def _decoded(self, route: Route, content: bytearray) -> Any:  # noqa: ANN401 - what the route takes
        """What a body asks for; a long one is decoded while others go on."""

        def decoded() -> Any:  # noqa: ANN401 - as above
            return self._limits.checked(self._decoders[route.handler].decode(content))

        return decoded() if len(content) <= LONG_BODY else await self._service.aside(decoded)

    def _file_or_error(self, request: HttpRequest, routes: dict[str, Route]) -> HttpResponse:
        method, path = request.method, request.path
        allowed = sorted(routes) or (["GET"] if path in self._files else [])
        if not allowed:
            raise ApiError("not_found", f"there is nothing at {show(path)}; /docs tells what there is")
        if "GET" in allowed:
            allowed.append("HEAD")
        if routes or method not in allowed:
            names = ", ".join(allowed)
            raise ApiError("method_not_allowed", f"{path} takes {names}, got {method}", (b"allow", names.encode()))
        return self._files[path]


def _check_right(rights: frozenset[str], right: str) -> None:
    """Raises unless a right is there."""
    if right not in rights:
        raise ApiError("forbidden", f"the token must have the right to {right}, got {', '.join(sorted(rights))}")


def _refuse_other_than_utf8(path: bytes) -> None:
    """Raises if the path was not UTF-8, and only looks as if something were meant by it."""
    try:
        unquote_to_bytes(path).decode()
    except UnicodeDecodeError:
        raise ApiError("bad_value", "the path must be UTF-8") from None


def _options(route: Route, query: bytes) -> Any:  # noqa: ANN401 - what the route takes
    """The parameters of a request, as the route wants them."""
    given: dict[str, str] = {}
    for name, value in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        if name in given:
            raise ApiError("bad_value", f"parameter {show(name)} must be given once, got it several times")
        given[name] = value
    if route.options is not None:
        return msgspec.convert(given, route.options, strict=False)
    if given:
        raise ApiError("bad_value", f"{route.path} takes no parameters, got {next(iter(given))!r}")
    return None


def _page_files() -> dict[str, HttpResponse]:
    """The files of the page by their paths."""
    folder = files("minwise.server") / "page"
    return {
        PAGES.get(one.name, f"/static/{one.name}"): _file(one.read_bytes(), _type_of(one.name))
        for one in folder.iterdir()
        if one.is_file()
    }


def _type_of(name: str) -> str:
    kind = "text/javascript" if name.endswith(".js") else mimetypes.guess_type(name)[0] or "application/octet-stream"
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind


def _file(content: bytes, kind: str) -> HttpResponse:
    return HttpResponse(200, content, [(b"content-type", kind.encode())])
