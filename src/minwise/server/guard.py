"""Guard: who may come in, under which name, and how much of a request is taken."""

import ipaddress
import re
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import Gauge

from minwise.server.errors import ApiError, busy
from minwise.server.protocol import HttpRequest
from minwise.server.settings import ServerSettings
from minwise.server.tokens import RIGHTS, Tokens

__all__ = ["Guard", "Headers"]

# A name or an address, and perhaps a port.
HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:]+)(?::[0-9]{1,5})?")
# Bytes of a body that are taken however many others hold, so that a few who send much do not keep out all.
SMALL = 1 << 16
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


class Headers(dict[bytes, bytes]):
    """Header fields by name, in lower case; what must not come twice does not."""

    # Two of these, and two programs that read them may each believe another.
    ONCE = (b"host", b"content-length", b"content-type", b"authorization", b"origin")

    @classmethod
    def of(cls, fields: list[tuple[bytes, bytes]]) -> "Headers":
        """The fields of a request."""
        headers = cls(fields)
        if len(headers) != len(fields):
            for name in cls.ONCE:
                if sum(one == name for one, _ in fields) > 1:
                    raise ApiError("bad_http", f"there must be one header {name.decode()}, got several")
        return headers

    def text(self, name: bytes) -> str:
        """A field as text; empty if it is not there."""
        return self.get(name, b"").decode("latin-1").strip()


class Guard:
    """Lets requests in or not."""

    def __init__(self, settings: ServerSettings, tokens: Tokens | None, gauge: Gauge) -> None:
        self._settings, self._tokens = settings, tokens
        self._hosts = {*LOOPBACK, _as_host(settings.host), *map(_as_host, settings.allow_host)}
        self._most_bytes = int(settings.max_request)
        self._held = 0
        self._in_flight = dict.fromkeys(RIGHTS, 0)
        gauge.set_function(lambda: sum(self._in_flight.values()))

    def check_names(self, headers: Headers) -> None:
        """Raises if the server is addressed under a name that is not its own, or from a page that is not."""
        host = headers.text(b"host").lower()
        named = HOST.fullmatch(host)
        if named is None or named[1] not in self._hosts:
            rule = "the server goes by other names; --allow-host adds one"
            raise ApiError("wrong_host", f"Host {host!r}: {rule}")
        if b"origin" in headers:
            origin = headers.text(b"origin").lower()
            if origin not in (f"http://{host}", f"https://{host}"):
                raise ApiError("wrong_origin", f"Origin {origin!r} must be that of the server, {host!r}")

    def rights(self, headers: Headers) -> frozenset[str]:
        """What the token of a request allows; everything where there are none.

        Raises:
            ApiError: If it is missing or not known.
        """
        if self._tokens is None:
            return frozenset(RIGHTS)
        kind, _, token = headers.text(b"authorization").partition(" ")
        found = self._tokens.rights(token.strip()) if kind.lower() == "bearer" else frozenset[str]()
        if not found:
            wrong = "the token is not known" if token else "a token is needed"
            remedy = "send Authorization: Bearer TOKEN, with one that minwise token has made"
            raise ApiError("unauthorized", f"{wrong}; {remedy}", (b"www-authenticate", b"Bearer"))
        return found

    @contextmanager
    def working(self, right: str) -> Iterator[None]:
        """Counts a request that has arrived whole, unless there are too many of those that read, or that write."""
        working = self._in_flight[right]
        if working >= self._settings.max_in_flight:
            raise busy(f"{working} requests that {right} are worked on, which is the most at a time (max-in-flight)")
        self._in_flight[right] += 1
        try:
            yield
        finally:
            self._in_flight[right] -= 1

    async def read(self, headers: Headers, request: HttpRequest) -> bytearray:
        """The whole body, however it is sent; whoever gets it has to say when to :meth:`forget` it."""
        if headers.text(b"content-type").partition(";")[0].strip().lower() != "application/json":
            got = headers.text(b"content-type") or "none"
            raise ApiError("unsupported_media_type", f"Content-Type must be application/json, got {got}")
        if headers.text(b"content-encoding") not in ("", "identity"):
            raise ApiError("unsupported_media_type", "the body must be sent as it is, without Content-Encoding")
        announced = headers.text(b"content-length")
        if announced.isdecimal() and int(announced) > self._most_bytes:
            raise self._too_large(int(announced))
        body = bytearray()
        try:
            while part := await request.read_part():
                body += part
                self._held += len(part)
                if len(body) > self._most_bytes:
                    raise self._too_large(len(body))
                if self._held > self._settings.max_held and len(body) > SMALL:
                    raise busy(f"requests of {self._held} bytes are held, which is more than at a time")
        except BaseException:
            self._held -= len(body)
            raise
        return body

    def forget(self, body: bytearray) -> None:
        """A body is not held any more."""
        self._held -= len(body)

    def _too_large(self, size: int) -> ApiError:
        rule = f"a request must have at most {self._most_bytes} bytes"
        return ApiError("request_too_large", f"{rule}, got {size}; send less at a time")


def _as_host(address: str) -> str:
    """An address as it stands in a Host header."""
    try:
        return f"[{address.lower()}]" if ipaddress.ip_address(address).version == 6 else address
    except ValueError:
        return address.lower()
