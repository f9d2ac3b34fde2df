"""Protocol: HTTP/1.1 of clients that may be slow, greedy or hostile; each has its time and its room.

uvicorn parses and answers. What it leaves open is closed here: a request that never arrives whole, an answer that
nobody takes, headers without end, more connections than can be served, and what is no HTTP at all. Time is counted only
while it is the client who is waited for: neither a loop that stood still nor a pause in reading is held against it.
"""

from asyncio import TimerHandle, Transport
from collections.abc import Callable
from typing import Any, ClassVar

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from minwise.server.crowd import Crowd
from minwise.server.errors import SECURITY_HEADERS, ApiError, busy
from minwise.server.settings import ServerSettings

__all__ = ["HEADER_BYTES", "HEADER_FIELDS", "BoundedProtocol", "protocol_for"]

# Of request line and headers together. The parser has no bound of its own, and adds to what it has byte by byte.
HEADER_BYTES = 32 * 1024
# A field takes 200 bytes of memory even if it has none.
HEADER_FIELDS = 100
# What the parser gets at a time, so that it can not keep more of one field than this beyond the bound.
PIECE_BYTES = 64 * 1024
# Requests that wait behind one that is worked on; whoever sends more at once has to send the rest again.
PIPELINED = 16
# So often in its time a connection is looked at. If a look comes later than the next was due, the loop stood still.
TICKS = 10
# Shares of its time: a client is told that it is too slow at the first, and is gone at the second, so that even with
# what clocks and the network add nobody is held for longer.
TOLD, GONE = 0.95, 0.98
# The share in which it may go on to send after it was told why nobody listens; without it, it might never read that.
LINGERING = 0.2
# The share after an answer in which a connection is not idle.
GRACE = 0.1
# A timer that is wound for less may go off before the time has passed, and again.
SHORTEST_SECONDS = 0.001


class BoundedProtocol(HttpToolsProtocol):
    """One connection, which is cut when it takes more than its share.

    Attributes:
        settings: Of the server.
        crowd: All connections of the server.
        clogged: Those whose clients do not take their answers, the first one first, and the bytes of these.
        deaf: Whether what comes is dropped, because of what came before.
        leaving: Whether the last word was said.
    """

    settings: ClassVar[ServerSettings]
    crowd: ClassVar[Crowd["BoundedProtocol"]]
    clogged: ClassVar[dict["BoundedProtocol", int]]

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - those of uvicorn
        super().__init__(*arguments, **options)
        self.deaf = self.leaving = False
        self._answering: RequestResponseCycle | None = None
        self._ticker: TimerHandle | None = None
        # Whether a request is on its way, for how many seconds, and how long an answer has not been taken.
        self._receiving, self._waited, self._stuck = True, 0.0, 0.0
        # When these seconds were last counted.
        self._ticked = self.loop.time()
        # Whether an answer is complete and not taken yet.
        self._owing = False
        # Bytes of the headers so far, and bytes of which the parser has made nothing yet.
        self._head = self._unparsed = 0
        self._in_head = True

    @staticmethod
    def refused(code: str) -> None:
        """Told the code of the error whenever a client is refused here."""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override] # as in uvicorn
        """Starts the clock, and makes room if there are too many already."""
        super().connection_made(transport)
        self._ticked = self.loop.time()
        self._wind(self.settings.receive_timeout)
        most, crowd = self.settings.max_connections, self.crowd
        first = crowd.first_to_go(self._ticked) if len(crowd) >= most else self
        if first is None:
            self.refuse(busy(f"at most {most} connections may be open at a time, and all of these are answered"))
        else:
            self._take_place()
            if first is not self:
                first.give_way()
        if len(crowd.leaving) > most:
            longest = next(iter(crowd.leaving))
            crowd.forget(longest)
            longest.transport.abort()

    def give_way(self) -> None:
        """Hangs up, since others have more use for the place."""
        if self._receiving:
            most = self.settings.max_connections
            self.refuse(busy(f"{most} connections are open, the most at a time, and this waited for a request longest"))
        else:
            self.leaving = True
            self._take_place()
            self.transport.close()

    def _take_place(self) -> None:
        """Tells the crowd what this connection waits for."""
        crowd, cycle = self.crowd, self._answering
        working = cycle is not None and not cycle.response_complete and not cycle.more_body
        if self.leaving:
            place = crowd.leaving
        elif working or self._owing or self.transport.is_closing():
            place = crowd.answered
        else:
            place = crowd.unfinished if self._receiving else crowd.idle
        crowd.move(self, place, self.loop.time())

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the clock, and tells everybody who still works for this client."""
        for cycle in self._unanswered():
            cycle.disconnected = True
            cycle.message_event.set()
        if self._ticker is not None:
            self._ticker.cancel()
        self.clogged.pop(self, None)
        self.crowd.forget(self)
        self._unset_keepalive_if_required()  # which uvicorn does not if there was an error; it would hold all of this
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override] # which says None, and so hangs up
        """A client that has no more to say still gets its answers."""
        whole = [cycle for cycle in self._unanswered() if not cycle.more_body]
        if whole:
            whole[-1].keep_alive = False
        for cycle in whole:
            cycle.message_event.set()  # most have gone, though, and what takes long may be given up
        return bool(whole)

    def data_received(self, data: bytes) -> None:
        """Takes what comes, in pieces."""
        self._unset_keepalive_if_required()
        view = memoryview(data)
        for start in range(0, len(data), PIECE_BYTES):
            if self.deaf:
                return
            self._begin()
            self._parse(view[start : start + PIECE_BYTES])
        self._take_place()

    def _begin(self) -> None:
        """Something of a request has come: from now on the client is waited for."""
        if not self._receiving:
            self._receiving, self._waited = True, self._until_now()

    def _until_now(self) -> float:
        """Where to begin to count, so that the next tick adds only what comes after this moment."""
        return self._ticked - self.loop.time()

    def _parse(self, piece: memoryview) -> None:
        self._unparsed += len(piece)
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade as upgrade:
            self._parse_without_upgrade(bytes(piece[upgrade.args[0] :]))
        except httptools.HttpParserCallbackError as error:
            wrong = error.__context__
            self.refuse(wrong if isinstance(wrong, ApiError) else bad_http("the target can not be read"))
        except httptools.HttpParserError as error:
            self.refuse(bad_http(str(error)))
        else:
            if self._head + self._unparsed > HEADER_BYTES:
                self.refuse(headers_too_large())

    def _parse_without_upgrade(self, rest: bytes) -> None:
        """Takes a request as if it had not asked for another protocol; the parser would lose its body."""
        line = b" ".join([self.parser.get_method(), self.url, b"HTTP/" + self.parser.get_http_version().encode()])
        fields = [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self._parse(memoryview(b"\r\n".join([line, *fields, b"", rest])))

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._begin()
        self._head = 0

    def on_url(self, url: bytes) -> None:
        """A part of the request line."""
        self.url += url
        self._head += len(url)
        self._unparsed = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field; one that comes after the body is counted and dropped, since the headers were looked at already."""
        self._head += len(name) + len(value) + len(b": \r\n")
        self._unparsed = 0
        if self._in_head:
            super().on_header(name, value)
            if self.headers[-1][0] == b"transfer-encoding" and value.lower() != b"chunked":
                raise bad_http("no transfer encoding but chunked is understood")

    def on_headers_complete(self) -> None:
        """Starts to work on a request, or lets it wait for the one before it."""
        self._unparsed = 0
        if self._head > HEADER_BYTES or len(self.headers) > HEADER_FIELDS:
            raise headers_too_large()
        if self.parser.get_http_version() not in ("1.0", "1.1"):
            raise bad_http("another version is not understood")
        if self.parser.get_method() == b"CONNECT" or not self.url.startswith(b"/"):
            raise bad_http("this is no proxy, so a target begins with a slash")
        if self.parser.should_upgrade():
            return
        if len(self.pipeline) >= PIPELINED:
            raise busy(f"at most {PIPELINED} requests may wait for the one before them")
        super().on_headers_complete()
        self._in_head = False

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request has arrived whole."""
        self._unparsed = 0
        if not self.parser.should_upgrade():
            self._receiving, self._waited, self._in_head = False, 0.0, True
            super().on_message_complete()

    def pause_writing(self) -> None:
        """The client does not take its answer; of all such answers only so much is kept as of bodies."""
        super().pause_writing()
        self._stuck = self._until_now()
        self.clogged[self] = self.transport.get_write_buffer_size()
        while len(self.clogged) > 1 and sum(self.clogged.values()) > self.settings.max_held:
            first = next(iter(self.clogged))
            del self.clogged[first]
            first.transport.abort()

    def resume_writing(self) -> None:
        """The client has taken its answer."""
        self.clogged.pop(self, None)
        self._stuck = 0.0
        super().resume_writing()
        if self._owing:
            self._owing = False
            super().on_response_complete()
            self._take_place()

    def on_response_complete(self) -> None:
        """Goes on to the next request, but not before this answer has been taken: one at a time is kept."""
        self._owing = self.flow.write_paused and not self.transport.is_closing()
        if self._owing:
            self.flow.pause_reading()
        else:
            super().on_response_complete()
        self._take_place()

    def shutdown(self) -> None:
        """The server ends: what has not arrived after half of the time that is left does not arrive any more."""
        super().shutdown()
        self.loop.call_later(self.settings.drain_timeout / 2, self._stop_receiving)

    def _stop_receiving(self) -> None:
        if self._receiving and not self.transport.is_closing():
            self.refuse(busy("the server ends, and the request has not arrived whole"))

    def _wind(self, left_seconds: float) -> None:
        """Looks again when the time is over, or sooner."""
        tick = self.settings.receive_timeout / TICKS
        self._ticker = self.loop.call_later(max(SHORTEST_SECONDS, min(tick, left_seconds)), self._tick)

    def _tick(self) -> None:
        """Counts, and cuts whoever has used up its time."""
        most, now = self.settings.receive_timeout, self.loop.time()
        passed = min(now - self._ticked, 2 * most / TICKS)
        self._ticked, left = now, most
        if self.leaving or self.flow.write_paused or self.transport.is_closing():
            self._stuck += passed
            left = (LINGERING if self.leaving else TOLD) * most - self._stuck
            if left <= 0:
                self.transport.abort()
        elif self._receiving and not self.deaf and not self._has_to_wait():
            self._waited += passed
            left = TOLD * most - self._waited
            if left <= 0:
                rule = f"a request has to arrive whole within {most:g} s"
                self.refuse(ApiError("too_slow", f"{rule}, and this did not; send it faster, or less at a time"))
        self._wind(left)

    def _has_to_wait(self) -> bool:
        """Whether the client can not go on because it is not read from, or not told to."""
        return self.flow.read_paused or (self.cycle is not None and self.cycle.waiting_for_100_continue)

    def _unanswered(self) -> list[RequestResponseCycle]:
        """Requests without a whole answer, in the order in which they came; the last may not be whole itself."""
        cycles = [cycle for cycle, _ in reversed(self.pipeline)]
        return [cycle for cycle in (self._answering, *cycles) if cycle is not None and not cycle.response_complete]

    def refuse(self, error: ApiError) -> None:
        """Takes nothing more, and hangs up: after what arrived whole before is answered, or else after telling why."""
        if self.deaf:
            return
        self.deaf = True
        self.refused(error.code)
        unanswered = self._unanswered()
        broken = unanswered.pop() if unanswered and unanswered[-1].more_body else None
        if broken is not None:
            broken.disconnected = True
            broken.message_event.set()
        if unanswered:
            unanswered[-1].keep_alive = False
            if broken is not None:
                self.pipeline.popleft()
            return
        if self._in_head or not self.cycle.response_started:
            self.transport.write(self._as_bytes(error))
        self.transport.write_eof()
        self.leaving = True
        now = self._until_now()
        self._stuck = now + max(0.0, self._waited - now - (GONE - LINGERING) * self.settings.receive_timeout)
        self._take_place()

    def _as_bytes(self, error: ApiError) -> bytes:
        body = error.body
        fields = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        everything = [*self.server_state.default_headers, *SECURITY_HEADERS, *fields, *error.headers]
        return STATUS_LINE[error.status] + b"".join(b"%b: %b\r\n" % field for field in everything) + b"\r\n" + body


def protocol_for(settings: ServerSettings, refused: Callable[[str], None]) -> type[BoundedProtocol]:
    """The protocol of one server, for uvicorn's ``http``.

    Args:
        settings: The limits.
        refused: Told the code whenever a client is refused before the application sees its request.
    """
    crowd = Crowd[BoundedProtocol](GRACE * settings.receive_timeout)
    own = {"settings": settings, "crowd": crowd, "refused": staticmethod(refused), "clogged": {}}
    return type("Protocol", (BoundedProtocol,), own)


def bad_http(detail: str) -> ApiError:
    """What came can not be read."""
    return ApiError("bad_http", f"the request must be HTTP/1.1: {detail}")


def headers_too_large() -> ApiError:
    """There are too many headers, or they are too long."""
    rule = f"request line and headers must be at most {HEADER_BYTES} bytes and {HEADER_FIELDS} fields"
    return ApiError("headers_too_large", f"{rule}, and these are more; send less of them")
