"""Checks of a request before its handler runs: host, origin, token, concurrency, and the size of body and message."""

import ipaddress
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET, Raw, UnsetType
from prometheus_client import Gauge

from minwise.server.errors import ApiError, busy
from minwise.server.index_tasks import HitDetail, QueryTask, SubmittedDocument
from minwise.server.messages import (
    AddRequest,
    CompareRequest,
    DocumentIdsMessage,
    DocumentMessage,
    QueryRequest,
)
from minwise.server.protocol import HeaderFields, HttpRequest
from minwise.server.settings import ServerSettings
from minwise.server.tokens import RIGHTS, Tokens

__all__ = ["AccessControl", "Headers", "MessageLimits", "SubmittedBatch"]

# A host name or an address, with an optional port.
HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:]+)(?::[0-9]{1,5})?")
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
# A body of up to this size is accepted however many bytes are buffered, so that a few large requests that never end do
# not keep out all others.
SMALL_BODY_BYTES = 1 << 16
# All metadata of a request may have this many times the size of the largest metadata of one document.
METADATA_FACTOR = 16
JSON_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
OTHER_THAN_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
OPENING_BRACKETS = np.frombuffer(b"[{", dtype=np.uint8)
OBJECT_DECODER = msgspec.json.Decoder(dict[str, Any] | None)


class Headers(dict[bytes, bytes]):
    """Header fields by lower-case name."""

    # With two of one of these, this server and a proxy in front of it might each use another.
    SINGLE = (b"host", b"content-length", b"content-type", b"authorization", b"origin")

    @classmethod
    def of(cls, fields: HeaderFields) -> "Headers":
        """Return the fields of a request.

        Raises:
            ApiError: If a field of which there must be one occurs twice.
        """
        headers = cls(fields)
        if len(headers) != len(fields):
            for name in cls.SINGLE:
                if sum(field == name for field, _ in fields) > 1:
                    raise ApiError("bad_http", f"there must be one header {name.decode()}, got several")
        return headers

    def text(self, name: bytes) -> str:
        """Return a field as text; empty if it is missing."""
        return self.get(name, b"").decode("latin-1").strip()


class AccessControl:
    """Host, origin and token checks, and the limits of what is processed and buffered at a time."""

    def __init__(self, settings: ServerSettings, tokens: Tokens | None, gauge: Gauge) -> None:
        """Create the checks of a server.

        Args:
            settings: The limits and the names of the server.
            tokens: The known tokens; None if all clients have all rights.
            gauge: Set to the number of requests in progress.
        """
        self._settings, self._tokens = settings, tokens
        self._hosts = {*LOOPBACK_HOSTS, _as_host(settings.host), *map(_as_host, settings.allow_host)}
        self._max_bytes = int(settings.max_request)
        self._buffered_bytes = 0
        self._in_flight = dict.fromkeys(RIGHTS, 0)
        gauge.set_function(lambda: sum(self._in_flight.values()))

    def check_host_and_origin(self, headers: Headers) -> None:
        """Raise an error if ``Host`` is not a name of the server, or if the client is a page of another site."""
        host = headers.text(b"host").lower()
        match = HOST.fullmatch(host)
        if match is None or match[1] not in self._hosts:
            raise ApiError(
                "wrong_host", f"Host must be a name of the server, got {host!r}; the setting allow_host adds a name"
            )
        if b"origin" in headers:
            origin = headers.text(b"origin").lower()
            if origin not in (f"http://{host}", f"https://{host}"):
                raise ApiError("wrong_origin", f"Origin must be that of the server, {host!r}, got {origin!r}")

    def rights(self, headers: Headers) -> frozenset[str]:
        """Return the rights of the token of a request; all rights if the server has no tokens.

        Raises:
            ApiError: If the token is missing or unknown.
        """
        if self._tokens is None:
            return frozenset(RIGHTS)
        kind, _, token = headers.text(b"authorization").partition(" ")
        found = self._tokens.rights(token.strip()) if kind.lower() == "bearer" else frozenset[str]()
        if not found:
            wrong = "the token is unknown" if token else "a token is required"
            remedy = "send Authorization: Bearer TOKEN, with a token made by minwise token"
            raise ApiError("unauthorized", f"{wrong}; {remedy}", (b"www-authenticate", b"Bearer"))
        return found

    @contextmanager
    def in_flight(self, right: str) -> Iterator[None]:
        """Count a complete request while it is processed; reads and writes have a limit each.

        Raises:
            ApiError: If the limit is reached.
        """
        count = self._in_flight[right]
        if count >= self._settings.max_in_flight:
            raise busy(f"{count} {right} requests are in progress, the maximum (max_in_flight)")
        self._in_flight[right] += 1
        try:
            yield
        finally:
            self._in_flight[right] -= 1

    async def read_body(self, headers: Headers, request: HttpRequest) -> bytearray:
        """Return the whole body; it counts as buffered until :meth:`release`.

        Raises:
            ApiError: If it is not JSON or too large, or if too many bytes are buffered.
            ClientGoneError: If the client disconnects meanwhile.
        """
        self._check_body_headers(headers)
        body = bytearray()
        try:
            while part := await request.read_part():
                body += part
                self._buffered_bytes += len(part)
                if len(body) > self._max_bytes:
                    raise self._too_large(len(body))
                if self._buffered_bytes > self._settings.max_held and len(body) > SMALL_BODY_BYTES:
                    raise busy(f"request bodies of {self._buffered_bytes} bytes are buffered, more than the maximum")
        except BaseException:
            self._buffered_bytes -= len(body)
            raise
        return body

    def _check_body_headers(self, headers: Headers) -> None:
        if headers.text(b"content-type").partition(";")[0].strip().lower() != "application/json":
            got = headers.text(b"content-type") or "none"
            raise ApiError("unsupported_media_type", f"Content-Type must be application/json, got {got}")
        if headers.text(b"content-encoding") not in ("", "identity"):
            raise ApiError("unsupported_media_type", "the body must be sent without Content-Encoding")
        announced = headers.text(b"content-length")
        if announced.isdecimal() and int(announced) > self._max_bytes:
            raise self._too_large(int(announced))

    def release(self, body: bytearray) -> None:
        """Stop counting a body as buffered."""
        self._buffered_bytes -= len(body)

    def _too_large(self, size: int) -> ApiError:
        rule = f"a request must have at most {self._max_bytes} bytes"
        return ApiError("request_too_large", f"{rule}, got {size}; send less at a time")


def _as_host(address: str) -> str:
    """Return an address in the form of a Host header."""
    try:
        return f"[{address.lower()}]" if ipaddress.ip_address(address).version == 6 else address
    except ValueError:
        return address.lower()


class SubmittedBatch(NamedTuple):
    """The documents of one request, and whether it was a single document instead of a list."""

    documents: list[SubmittedDocument]
    is_single: bool


class MessageLimits:
    """Size and nesting limits of decoded messages.

    Metadata and filters stay bytes until their size and nesting are checked: a few megabytes of empty JSON lists take
    hundreds of megabytes as Python objects.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings

    def check(self, message: object) -> Any:  # noqa: ANN401 - what the handler takes
        """Return the argument of the handler, with the JSON objects decoded.

        Raises:
            ApiError: If the message exceeds a limit, or if an object is not a JSON object.
        """
        match message:
            case AddRequest():
                return SubmittedBatch(self._check_documents(message.listed()), message.is_single)
            case DocumentIdsMessage():
                self._check_count(len(message.ids))
            case QueryRequest():
                self._check_text("text", message.text)
                where, _ = self._decode_object("where", message.where)
                detail: HitDetail = "passages" if message.passages else "metadata"
                return QueryTask(
                    message.text, message.threshold, message.top, where, detail, message.max_candidates, message.measure
                )
            case CompareRequest():
                self._check_text("left", message.left, "max_compare")
                self._check_text("right", message.right, "max_compare")
        return message

    def _check_documents(self, documents: list[DocumentMessage]) -> list[SubmittedDocument]:
        self._check_count(len(documents))
        maximum, total = METADATA_FACTOR * int(self._settings.max_metadata), 0
        submitted = []
        for document in documents:
            self._check_text(f"the text of {document.id!r}", document.text)
            metadata, size = self._decode_object(f"the metadata of {document.id!r}", document.metadata)
            total += size
            if total > maximum:
                rule = f"all metadata of a request must have at most {maximum} bytes"
                remedy = f"send less at a time ({METADATA_FACTOR} times max_metadata)"
                raise ApiError("request_too_large", f"{rule}, got more; {remedy}")
            submitted.append(SubmittedDocument(document.id, document.text, metadata))
        return submitted

    def _check_count(self, count: int) -> None:
        maximum = self._settings.max_documents
        if count > maximum:
            raise ApiError("too_many_documents", f"a request must have at most {maximum} documents, got {count}")

    def _check_text(self, name: str, text: str, limit: str = "max_document") -> None:
        maximum: int = getattr(self._settings, limit)
        if 4 * len(text) > maximum and len(text.encode()) > maximum:
            size = len(text.encode())
            raise ApiError("document_too_large", f"{name} must have at most {maximum} bytes ({limit}), got {size}")

    def _decode_object(self, name: str, raw: Raw | UnsetType) -> tuple[dict[str, Any] | None, int]:
        """Return a JSON object, or None if it is null or missing, and its size."""
        content, maximum = b"null" if raw is UNSET else bytes(raw), int(self._settings.max_metadata)
        if content == b"null":
            return None, 0
        if len(content) > maximum:
            size = len(content)
            raise ApiError("document_too_large", f"{name} must have at most {maximum} bytes (max_metadata), got {size}")
        if json_depth(content) > self._settings.max_depth:
            raise ApiError("too_deep", f"{name} must nest at most {self._settings.max_depth} levels (max_depth)")
        try:
            return OBJECT_DECODER.decode(content), len(content)
        except msgspec.ValidationError as error:
            raise ApiError("bad_value", f"{name}: {error}") from None


def json_depth(content: bytes) -> int:
    """Return how many lists and objects are nested in JSON.

    >>> json_depth(b'{"a": [[], "[[["], "b": {}}')
    3
    """
    brackets = np.frombuffer(JSON_STRING.sub(b"", content).translate(None, OTHER_THAN_BRACKETS), dtype=np.uint8)
    steps = np.where(np.isin(brackets, OPENING_BRACKETS), 1, -1)
    return int(np.cumsum(steps).max(initial=0))
