"""Application: dispatches requests to their handlers, and serves the files of the page."""

import asyncio
import mimetypes
from contextlib import nullcontext
from importlib.resources import files
from time import perf_counter
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec

import minwise as mw
from minwise._internal.html import colours, icon
from minwise.checks import show
from minwise.comparison.page import SIDE_BY_SIDE_STYLE
from minwise.server.access import AccessControl, Headers, MessageLimits
from minwise.server.errors import SECURITY_HEADERS, ApiError, ClientGoneError, as_api_error, busy
from minwise.server.openapi import openapi_document
from minwise.server.protocol import HttpRequest, HttpResponse
from minwise.server.routes import ROUTES, Call, Route, RouteTable
from minwise.server.service import Service
from minwise.server.tokens import Tokens

__all__ = ["App"]

# Routes that are not subject to the limit of requests in progress.
PROBES = ("/healthz", "/readyz", "/metrics")
# Decoding a body of this size takes a millisecond; larger ones are decoded in a thread.
LARGE_BODY_BYTES = 1 << 18
PAGE_PATHS = {"index.html": "/", "docs.html": "/docs"}
JSON_TYPE = (b"content-type", b"application/json")
NO_STORE = (b"cache-control", b"no-store")
# Methods with a label of their own in the metrics; clients can send any number of others.
METHODS = ("GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS")


class App:
    """Answers the requests to a service."""

    def __init__(self, service: Service, tokens: Tokens | None) -> None:
        self._service = service
        self._access = AccessControl(service.settings, tokens, service.metrics.in_flight)
        self._limits = MessageLimits(service.settings)
        self._table = RouteTable(ROUTES)
        self._decoders = {
            route.handler: msgspec.json.Decoder(route.decode_as or route.body[0]) for route in ROUTES if route.body
        }
        self._encode = msgspec.json.Encoder().encode
        openapi = openapi_document(
            ROUTES,
            mw.__version__,
            limits=service.settings.limits,
            threshold=service.plan.threshold,
            tokens=tokens is not None,
        )
        self._files = {**_page_files(), "/openapi.json": _file(msgspec.json.encode(openapi), "application/json")}

    async def __call__(self, request: HttpRequest) -> HttpResponse | None:
        """Return the response to a request; None if the client has disconnected."""
        started = perf_counter()
        routes, name = self._table.find(request.path)
        route = routes.get("GET" if request.method == "HEAD" else request.method)
        try:
            response = await self._respond(request, routes, route, name)
        except ClientGoneError:
            return None
        length = (b"content-length", b"%d" % len(response.body))
        label = route.path if route is not None else request.path if request.path in self._files else "none"
        method = request.method if request.method in METHODS else "other"
        self._service.metrics.count_request(method, label, response.status, perf_counter() - started)
        return response._replace(headers=[*response.headers, length, *SECURITY_HEADERS, NO_STORE])

    async def _respond(
        self, request: HttpRequest, routes: dict[str, Route], route: Route | None, name: str
    ) -> HttpResponse:
        """Return the response, also for an exception."""
        try:
            return await self._dispatch(request, routes, route, name)
        except ClientGoneError:
            raise
        except Exception as error:
            # The traceback refers to the body, and to the error itself in a cycle.
            api_error = as_api_error(error).with_traceback(None)
        except asyncio.CancelledError:
            if not self._service.draining:
                raise
            api_error = busy("the server stopped before this was done")
        return HttpResponse(api_error.status, api_error.body, [JSON_TYPE, *api_error.headers])

    async def _dispatch(
        self, request: HttpRequest, routes: dict[str, Route], route: Route | None, name: str
    ) -> HttpResponse:
        """Check a request, and return the response of its handler or a file."""
        headers = Headers.of(request.headers)
        self._access.check_host_and_origin(headers)
        if "\ufffd" in request.path:
            _check_utf8(request.raw_path)
        if route is None:
            return self._file_or_error(request, routes)
        rights = self._access.rights(headers) if route.right is not None else frozenset[str]()
        if route.right is not None:
            _check_right(rights, route.right)
        options = _parse_options(route, request.query)
        if getattr(options, "unique", False):  # the response contains stored documents
            _check_right(rights, "read")
        return await self._handle(route, Call(None, options, name, rights, request), headers)

    async def _handle(self, route: Route, call: Call, headers: Headers) -> HttpResponse:
        content = await self._access.read_body(headers, call.request) if route.body else bytearray()
        try:
            with nullcontext() if route.path in PROBES else self._access.in_flight(route.right or "read"):
                if route.body:
                    call = call._replace(body=await self._decode(route, content))
                answer = await route.handler(self._service, call)
        finally:
            self._access.release(content)
        if isinstance(answer, bytes):
            return HttpResponse(200, answer, [(b"content-type", route.media.encode())])
        return HttpResponse(200, self._encode(answer), [JSON_TYPE])

    async def _decode(self, route: Route, content: bytearray) -> Any:  # noqa: ANN401 - depends on the route
        """Return the checked message of a body; a large body is decoded in a thread."""

        def decode() -> Any:  # noqa: ANN401 - as above
            return self._limits.check(self._decoders[route.handler].decode(content))

        return decode() if len(content) <= LARGE_BODY_BYTES else await self._service.run_helper(decode)

    def _file_or_error(self, request: HttpRequest, routes: dict[str, Route]) -> HttpResponse:
        method, path = request.method, request.path
        allowed = sorted(routes) or (["GET"] if path in self._files else [])
        if not allowed:
            raise ApiError("not_found", f"no route for {show(path)}; see /docs")
        if "GET" in allowed:
            allowed.append("HEAD")
        if routes or method not in allowed:
            names = ", ".join(allowed)
            raise ApiError("method_not_allowed", f"{path} takes {names}, got {method}", (b"allow", names.encode()))
        return self._files[path]


def _check_right(rights: frozenset[str], right: str) -> None:
    if right not in rights:
        raise ApiError("forbidden", f"the token must have the right to {right}, got {', '.join(sorted(rights))}")


def _check_utf8(path: bytes) -> None:
    """Raise an error if a path is not UTF-8; U+FFFD may also be part of a valid one."""
    try:
        unquote_to_bytes(path).decode()
    except UnicodeDecodeError:
        raise ApiError("bad_value", "the path must be UTF-8") from None


def _parse_options(route: Route, query: bytes) -> Any:  # noqa: ANN401 - depends on the route
    """Return the query parameters as the options of a route."""
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
    """Return the files of the page by path."""
    folder = files("minwise.server") / "page"
    contents = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    contents["icon.svg"] = icon().encode()
    contents["style.css"] = b"".join([colours().encode(), contents["style.css"], SIDE_BY_SIDE_STYLE.encode()])
    return {
        PAGE_PATHS.get(name, f"/static/{name}"): _file(content, _media_type(name)) for name, content in contents.items()
    }


def _media_type(name: str) -> str:
    kind = "text/javascript" if name.endswith(".js") else mimetypes.guess_type(name)[0] or "application/octet-stream"
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind


def _file(content: bytes, kind: str) -> HttpResponse:
    return HttpResponse(200, content, [(b"content-type", kind.encode())])
