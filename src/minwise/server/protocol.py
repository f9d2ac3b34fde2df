"""HTTP/1.1 connections: parsing, responses, deadlines and limits for slow, greedy or hostile clients.

Each connection is an :class:`asyncio.Protocol` on the parser of httptools. It bounds what a client can hold: the time
in which a request has to arrive and a response to be read, the size of the headers, the number of pipelined requests
and the number of connections. Time counts only while the server waits for the client: neither a blocked event loop nor
a pause in reading is charged to it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from email.utils import formatdate
from http import HTTPStatus
from time import time
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

import httptools

from minwise.server.connection_tracker import ConnectionTracker
from minwise.server.errors import LOG, SECURITY_HEADERS, ApiError, ClientGoneError, as_api_error, busy
from minwise.server.settings import ServerSettings

__all__ = [
    "HEADER_BYTES",
    "HEADER_FIELDS",
    "MAX_PIPELINED",
    "HttpProtocol",
    "HttpRequest",
    "HttpResponse",
    "HttpServer",
]

# Limit of request line and headers together. The parser has no limit of its own and appends byte by byte.
HEADER_BYTES = 32 * 1024
# A header field takes 200 bytes of memory even if it is empty.
HEADER_FIELDS = 100
# Bytes fed to the parser at a time, so that it buffers at most this much of one field beyond the limit.
FEED_BYTES = 64 * 1024
# Bytes of a body that are buffered before reading pauses until the application asks for them.
BODY_BUFFER_BYTES = 64 * 1024
# Requests that may wait behind the current one; a client that pipelines more has to send the rest again.
MAX_PIPELINED = 16
# Deadline checks per timeout. If a check runs later than the next one was due, the event loop was blocked.
TICKS = 10
# Shares of the timeout: the client gets the error at the first and is disconnected at the second, so that clocks and
# the network included, no connection is held for longer than the timeout.
REFUSE_SHARE, CLOSE_SHARE = 0.95, 0.98
# Share in which a refused client may still send; if the socket were closed at once, it might never read the error.
LINGER_SHARE = 0.2
# Share after a response in which a connection does not count as idle.
GRACE_SHARE = 0.1
# A shorter timer may fire before the time has passed, and has to be set again.
SHORTEST_TIMER_SECONDS = 0.001
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}

HeaderFields = list[tuple[bytes, bytes]]


class HttpResponse(NamedTuple):
    """A complete response. The connection adds ``Date``, and ``Connection: close`` where it applies."""

    status: int
    body: bytes
    headers: HeaderFields


class HttpRequest:
    """A request; its body may still be arriving.

    Attributes:
        method: Such as ``GET``.
        path: The percent-decoded path; undecodable bytes are U+FFFD.
        raw_path: The path as it was sent.
        query: The query string as it was sent.
        headers: Header fields, with names in lower case.
        keep_alive: Whether the connection stays open after the response.
        expects_continue: Whether the client waits for ``100 Continue`` before it sends the body.
        complete: Whether the whole body has arrived.
        answered: Whether the response was written.
        disconnected: Whether the connection is closed, so that no response can be written.
    """

    __slots__ = (
        "_body", "_changed", "_connection", "answered", "complete", "disconnected", "expects_continue", "headers",
        "keep_alive", "method", "path", "query", "raw_path",
    )  # fmt: skip

    def __init__(self, connection: "HttpProtocol", method: str, target: bytes, headers: HeaderFields) -> None:
        """Parse the target.

        Raises:
            HttpParserInvalidURLError: If the target is not a URL.
            UnicodeDecodeError: If the path is not ASCII.
        """
        url = httptools.parse_url(target)
        self.method, self.raw_path, self.query, self.headers = method, url.path, url.query or b"", headers
        path = url.path.decode("ascii")
        self.path = unquote(path) if "%" in path else path
        self.keep_alive = True
        self.expects_continue = self.complete = self.answered = self.disconnected = False
        self._connection = connection
        self._body = bytearray()
        self._changed = asyncio.Event()

    async def read_part(self) -> bytearray:
        """Return the next part of the body; an empty one after the last.

        Raises:
            ClientGoneError: If the client has disconnected.
        """
        if self.expects_continue:
            self.expects_continue = False
            self._connection.send_continue()
        if not self.disconnected:
            self._connection.resume_reading()
        while not (self._body or self.complete or self.disconnected):
            self._changed.clear()
            await self._changed.wait()
        self._changed.clear()
        if self.disconnected:
            raise ClientGoneError
        part, self._body = self._body, bytearray()
        return part

    async def wait_until_gone(self) -> None:
        """Wait until the client has disconnected or closed its sending side; to be called after the last part."""
        if not self.disconnected:
            self._connection.resume_reading()
            await self._changed.wait()
            self._changed.clear()

    def feed(self, part: bytes) -> bool:
        """Append to the body; return whether reading should pause. A body that is no longer needed is dropped."""
        if self.answered:
            return False
        self._body += part
        self._changed.set()
        return len(self._body) > BODY_BUFFER_BYTES

    def finish(self) -> None:
        """Mark the body as complete."""
        self.complete = True
        self._changed.set()

    def notify_end_of_input(self) -> None:
        """Wake :meth:`wait_until_gone`: the client sends nothing more."""
        self._changed.set()

    def disconnect(self) -> None:
        """Mark the client as gone, and wake the application if it waits for it."""
        self.disconnected = True
        self._changed.set()


Application = Callable[[HttpRequest], Awaitable[HttpResponse | None]]


class HttpServer:
    """State that all connections of a server share, and the factory of their protocols.

    Attributes:
        app: Answers a request; None if the client has disconnected meanwhile.
        settings: The limits.
        tracker: Connections by state.
        blocked: Connections whose client does not read its response, the oldest first, with their buffered bytes.
    """

    def __init__(self, app: Application, settings: ServerSettings, on_refusal: Callable[[str], None]) -> None:
        """Create a server without connections.

        Args:
            app: Answers a request.
            settings: The limits.
            on_refusal: Called with the error code when a client is refused before the application sees its request.
        """
        self.app, self.settings, self.on_refusal = app, settings, on_refusal
        self.tracker = ConnectionTracker[HttpProtocol](GRACE_SHARE * settings.receive_timeout)
        self.blocked: dict[HttpProtocol, int] = {}
        self._connections: set[HttpProtocol] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopping, self._stopped = False, asyncio.Event()
        self._date_second, self._date = 0, b""

    def connect(self) -> "HttpProtocol":
        """Return the protocol of a new connection."""
        return HttpProtocol(self)

    def add(self, connection: "HttpProtocol") -> None:
        """Register an open connection."""
        self._connections.add(connection)

    def remove(self, connection: "HttpProtocol") -> None:
        """Forget a closed connection."""
        self._connections.discard(connection)
        self.blocked.pop(connection, None)
        self.tracker.forget(connection)
        self._check_stopped()

    def start_task(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task that :meth:`drain` waits for."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)

    def _task_done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._check_stopped()

    def head(self, response: HttpResponse, *, keep_alive: bool) -> bytes:
        """Return the status line and the headers of a response, ``Date`` first."""
        second = int(time())
        if second != self._date_second:
            self._date_second, self._date = second, b"date: %b\r\n" % formatdate(second, usegmt=True).encode()
        fields = [b"%b: %b\r\n" % field for field in response.headers]
        end = b"\r\n" if keep_alive else b"connection: close\r\n\r\n"
        return b"".join([STATUS_LINES[response.status], self._date, *fields, end])

    def stop(self) -> None:
        """Close idle connections; others close after the response to their last request."""
        self._is_stopping = True
        for connection in list(self._connections):
            connection.stop()
        self._check_stopped()

    def stop_now(self) -> None:
        """Have :meth:`drain` return at once."""
        self._stopped.set()

    def _check_stopped(self) -> None:
        if self._is_stopping and not self._connections and not self._tasks:
            self._stopped.set()

    async def drain(self, seconds: float) -> None:
        """Wait until all connections are closed and all requests are answered; after the given time cancel these."""
        try:
            await asyncio.wait_for(self._stopped.wait(), seconds)
        except asyncio.TimeoutError:
            if self._tasks:
                LOG.error("%d unfinished requests were cancelled after drain_timeout", len(self._tasks))
        while self._tasks:  # the end of a task may start one for the next pipelined request
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


class HttpProtocol(asyncio.Protocol):
    """One connection, which is closed when it exceeds its limits.

    Attributes:
        discarding: Whether received data is dropped, because the request before it was refused.
        lingering: Whether nothing more is sent, and the connection stays open until the client has read the error.
    """

    def __init__(self, server: HttpServer) -> None:
        self.discarding = self.lingering = False
        self._server, self._settings = server, server.settings
        self._loop = asyncio.get_running_loop()
        self._parser: httptools.HttpRequestParser | None = new_parser(self)
        # The request that the application works on, or has answered last; those behind it; the last one received.
        self._current: HttpRequest | None = None
        self._pipeline: deque[HttpRequest] = deque()
        self._latest: HttpRequest | None = None
        # Of the request that is being parsed: target, headers, their bytes, and bytes not yet passed to a callback.
        self._target, self._headers, self._expects_continue = b"", HeaderFields(), False
        self._in_head, self._head_bytes, self._unparsed_bytes = True, 0, 0
        # Why a callback has stopped the parser, which raises an error of its own then.
        self._rejection: ApiError | None = None
        # Whether a request is expected or arriving; its seconds so far, those between requests, those of a response
        # that the client does not read; and when they were last counted.
        self._receiving, self._receive_seconds, self._idle_seconds, self._unread_seconds = True, 0.0, 0.0, 0.0
        self._ticked = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._read_paused = self._write_paused = False
        # Whether a response is written completely and not read yet.
        self._response_unread = False

    # Connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the clock, and evict a connection if there are too many."""
        self._transport = cast("asyncio.Transport", transport)
        self._server.add(self)
        self._ticked = self._loop.time()
        self._schedule_tick(self._settings.receive_timeout)
        most, tracker = self._settings.max_connections, self._server.tracker
        evicted = tracker.next_to_evict(self._ticked) if len(tracker) >= most else self
        if evicted is None:
            self.refuse(busy(f"all {most} connections (max_connections) are in use"))
        else:
            self._update_state()
            if evicted is not self:
                evicted.evict()
        if len(tracker.lingering) > most:
            oldest = next(iter(tracker.lingering))
            tracker.forget(oldest)
            oldest.abort()

    def evict(self) -> None:
        """Close the connection in favour of another one."""
        if self._receiving:
            most = self._settings.max_connections
            reason = f"more than {most} connections (max_connections) were opened"
            self.refuse(busy(f"{reason}, and this one had waited for a request longest"))
        else:
            self.lingering = True
            self._update_state()
            self._transport.close()

    def abort(self) -> None:
        """Close the connection without sending what is buffered."""
        self._transport.abort()

    def _update_state(self) -> None:
        """Tell the tracker what this connection waits for."""
        tracker, request = self._server.tracker, self._current
        working = request is not None and request.complete and not request.answered
        if self.lingering:
            state = tracker.lingering
        elif working or self._response_unread or self._transport.is_closing():
            state = tracker.responding
        else:
            state = tracker.receiving if self._receiving else tracker.idle
        tracker.move(self, state, self._loop.time())

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock, and wake the application if it still works for this client."""
        for request in self._unanswered():
            request.disconnect()
        if self._timer is not None:
            self._timer.cancel()
        self._server.remove(self)
        # Each of these refers to the protocol: memory would wait for the garbage collector.
        self._parser = self._current = self._latest = None
        self._pipeline.clear()

    def eof_received(self) -> bool:
        """Keep the connection open for responses to complete requests."""
        complete = [request for request in self._unanswered() if request.complete]
        if complete:
            complete[-1].keep_alive = False
        for request in complete:
            request.notify_end_of_input()  # most such clients have disconnected, and long work may be given up
        return bool(complete)

    def stop(self) -> None:
        """Close after the last response; a request that is incomplete after half of the drain timeout is refused."""
        if self._latest is None or self._latest.answered:
            self._transport.close()
        else:
            self._latest.keep_alive = False
        self._loop.call_later(self._settings.drain_timeout / 2, self._stop_receiving)

    def _stop_receiving(self) -> None:
        if self._receiving and not self._transport.is_closing():
            self.refuse(busy("the server is stopping, and the request is incomplete"))

    # Reading

    def data_received(self, data: bytes) -> None:
        """Parse received data in portions."""
        view = memoryview(data)
        for start in range(0, len(data), FEED_BYTES):
            if self.discarding:
                return
            self._start_receiving()
            self._feed(view[start : start + FEED_BYTES])
        self._update_state()

    def _start_receiving(self) -> None:
        if not self._receiving:
            self._receiving, self._receive_seconds = True, self._clock_offset()

    def _feed(self, data: memoryview) -> None:
        assert self._parser is not None
        self._unparsed_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._feed_without_upgrade(self._parser, bytes(data[upgrade.args[0] :]))
        except httptools.HttpParserCallbackError:
            self.refuse(self._rejection or bad_http("the target cannot be parsed"))
        except httptools.HttpParserError as error:
            self.refuse(bad_http(str(error)))
        else:
            if self._head_bytes + self._unparsed_bytes > HEADER_BYTES:
                self.refuse(headers_too_large())

    def _feed_without_upgrade(self, parser: httptools.HttpRequestParser, rest: bytes) -> None:
        """Parse a request again without its ``Upgrade`` field: the parser would not read its body."""
        line = b" ".join([parser.get_method(), self._target, b"HTTP/" + parser.get_http_version().encode()])
        fields = [name + b": " + value for name, value in self._headers if name != b"upgrade"]
        self._parser = new_parser(self)
        self._feed(memoryview(b"\r\n".join([line, *fields, b"", rest])))

    def pause_reading(self) -> None:
        """Receive nothing until :meth:`resume_reading`."""
        if not self._read_paused:
            self._read_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Receive again."""
        if self._read_paused:
            self._read_paused = False
            self._transport.resume_reading()

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        """Start a request."""
        self._start_receiving()
        self._target, self._headers, self._expects_continue, self._head_bytes = b"", [], False, 0

    def on_url(self, url: bytes) -> None:
        """Append to the target."""
        self._target += url
        self._head_bytes += len(url)
        self._unparsed_bytes = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header field. A trailer field is counted and dropped: the headers have been checked by then."""
        self._head_bytes += len(name) + len(value) + len(b": \r\n")
        self._unparsed_bytes = 0
        if self._in_head:
            name = name.lower()
            self._headers.append((name, value))
            if name == b"transfer-encoding" and value.lower() != b"chunked":
                raise self._reject(bad_http("the only supported transfer encoding is chunked"))
            self._expects_continue |= name == b"expect" and value.lower() == b"100-continue"

    def on_headers_complete(self) -> None:
        """Start to answer the request, or queue it behind the one before it."""
        self._unparsed_bytes = 0
        parser = cast("httptools.HttpRequestParser", self._parser)
        self._check_head(parser)
        if parser.should_upgrade():
            return
        if len(self._pipeline) >= MAX_PIPELINED:
            raise self._reject(busy(f"at most {MAX_PIPELINED} requests may be pipelined behind the current one"))
        before = self._latest
        request = self._latest = HttpRequest(self, parser.get_method().decode("ascii"), self._target, self._headers)
        request.keep_alive = parser.get_http_version() != "1.0" and parser.should_keep_alive()
        request.expects_continue = self._expects_continue
        if before is None or before.answered:
            self._start(request)
        else:
            self.pause_reading()
            self._pipeline.append(request)
        self._in_head = False

    def _check_head(self, parser: httptools.HttpRequestParser) -> None:
        if self._head_bytes > HEADER_BYTES or len(self._headers) > HEADER_FIELDS:
            raise self._reject(headers_too_large())
        if parser.get_http_version() not in ("1.0", "1.1"):
            raise self._reject(bad_http("the version must be 1.0 or 1.1"))
        if parser.get_method() == b"CONNECT" or not self._target.startswith(b"/"):
            raise self._reject(bad_http("the target must begin with a slash, since this is not a proxy"))

    def _reject(self, error: ApiError) -> ApiError:
        """Return the error to raise in a callback, and keep it for :meth:`_feed`."""
        self._rejection = error
        return error

    def on_body(self, body: bytes) -> None:
        """Append to the body."""
        self._unparsed_bytes = 0
        if self._latest is not None and self._latest.feed(body):
            self.pause_reading()

    def on_message_complete(self) -> None:
        """Finish the request."""
        self._unparsed_bytes = 0
        if self._latest is not None and not cast("httptools.HttpRequestParser", self._parser).should_upgrade():
            self._receiving, self._receive_seconds, self._in_head = False, 0.0, True
            self._latest.finish()

    # Responses

    def _start(self, request: HttpRequest) -> None:
        self._current = request
        self._server.start_task(self._answer(request))

    async def _answer(self, request: HttpRequest) -> None:
        """Run the application, and write its response."""
        try:
            response = await self._server.app(request)
        except Exception as error:
            response = error_response(as_api_error(error))
            request.keep_alive = False
        if response is not None and not request.disconnected:
            self._respond(request, response)

    def _respond(self, request: HttpRequest, response: HttpResponse) -> None:
        """Write a response. Nothing else is buffered then, since a request starts when the one before it was read."""
        request.answered, request.expects_continue = True, False
        head = self._server.head(response, keep_alive=request.keep_alive)
        self._transport.writelines([head] if request.method == "HEAD" else [head, response.body])
        if not request.keep_alive:
            self._transport.close()
        self._response_unread = self._write_paused and not self._transport.is_closing()
        if self._response_unread:
            self.pause_reading()  # one response at a time is buffered
        else:
            self._start_next()
        self._update_state()

    def _start_next(self) -> None:
        """Start the next pipelined request, or wait for one."""
        if self._transport.is_closing():
            return
        self.resume_reading()
        if self._pipeline:
            self._start(self._pipeline.popleft())
        else:
            self._idle_seconds = self._clock_offset()

    def send_continue(self) -> None:
        """Ask the client for the body."""
        if not self._transport.is_closing():
            self._transport.write(CONTINUE)

    def pause_writing(self) -> None:
        """Note that the client does not read; all such responses together may hold as much as all request bodies."""
        self._write_paused, self._unread_seconds = True, self._clock_offset()
        blocked = self._server.blocked
        blocked[self] = self._transport.get_write_buffer_size()
        while len(blocked) > 1 and sum(blocked.values()) > self._settings.max_held:
            oldest = next(iter(blocked))
            del blocked[oldest]
            oldest.abort()

    def resume_writing(self) -> None:
        """Continue after the client has read its response."""
        self._server.blocked.pop(self, None)
        self._write_paused, self._unread_seconds = False, 0.0
        if self._response_unread:
            self._response_unread = False
            self._start_next()
            self._update_state()

    # Deadlines

    def _clock_offset(self) -> float:
        """Return the start value of a count of seconds, such that the next tick adds only the time after now."""
        return self._ticked - self._loop.time()

    def _schedule_tick(self, left_seconds: float) -> None:
        """Check again when the time is over, or sooner."""
        seconds = min(self._settings.receive_timeout / TICKS, left_seconds)
        self._timer = self._loop.call_later(max(SHORTEST_TIMER_SECONDS, seconds), self._tick)

    def _tick(self) -> None:
        """Count the time since the last tick, and close the connection if its time is used up."""
        limit, now = self._settings.receive_timeout, self._loop.time()
        elapsed = min(now - self._ticked, 2 * limit / TICKS)
        self._ticked = now
        if self.lingering or self._write_paused or self._transport.is_closing():
            left = self._count_unread(elapsed)
        elif self._receiving:
            left = self._count_receiving(elapsed)
        else:
            left = self._count_idle(elapsed)
        self._schedule_tick(left)

    def _count_unread(self, elapsed: float) -> float:
        """Count time in which the client does not read; return the seconds left."""
        self._unread_seconds += elapsed
        share = LINGER_SHARE if self.lingering else REFUSE_SHARE
        left = share * self._settings.receive_timeout - self._unread_seconds
        if left <= 0:
            self.abort()
        return left

    def _count_receiving(self, elapsed: float) -> float:
        """Count time in which a request arrives, unless the client has to wait; return the seconds left."""
        limit = self._settings.receive_timeout
        if self.discarding or self._read_paused or (self._latest is not None and self._latest.expects_continue):
            return limit
        self._receive_seconds += elapsed
        left = REFUSE_SHARE * limit - self._receive_seconds
        if left <= 0:
            rule = f"a request must arrive completely within {limit:g} s (receive_timeout), and this one did not"
            self.refuse(ApiError("too_slow", f"{rule}; send it faster, or less at a time"))
        return left

    def _count_idle(self, elapsed: float) -> float:
        """Count time between requests; return the seconds left."""
        limit = self._settings.receive_timeout
        if self._current is None or not self._current.answered:
            return limit
        self._idle_seconds += elapsed
        left = limit - self._idle_seconds
        if left <= 0:
            self._transport.close()
        return left

    # Refusal

    def _unanswered(self) -> list[HttpRequest]:
        """Return the requests without a response in their order; the last one may be incomplete."""
        current = [] if self._current is None or self._current.answered else [self._current]
        return [*current, *self._pipeline]

    def refuse(self, error: ApiError) -> None:
        """Drop further input, and close: after the responses to complete requests, or else after this error."""
        if self.discarding:
            return
        self.discarding = True
        self._server.on_refusal(error.code)
        unanswered = self._unanswered()
        if unanswered and not unanswered[-1].complete:
            incomplete = unanswered.pop()
            incomplete.disconnect()
            if self._pipeline:
                self._pipeline.pop()
        if unanswered:
            unanswered[-1].keep_alive = False
        else:
            self._close_with(error)

    def _close_with(self, error: ApiError) -> None:
        """Write an error, unless a response was written already, and linger so that the client can read it."""
        if self._in_head or self._latest is None or not self._latest.answered:
            response = error_response(error)
            self._transport.writelines([self._server.head(response, keep_alive=False), response.body])
        self._transport.write_eof()
        self.lingering = True
        # The request may have used up its time already: then only little is left to linger.
        now, limit = self._clock_offset(), self._settings.receive_timeout
        self._unread_seconds = now + max(0.0, self._receive_seconds - now - (CLOSE_SHARE - LINGER_SHARE) * limit)
        self._update_state()


def new_parser(protocol: HttpProtocol) -> httptools.HttpRequestParser:
    """Return a parser that accepts data after a request with ``Connection: close``, which is never answered."""
    parser = httptools.HttpRequestParser(protocol)
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser


def error_response(error: ApiError) -> HttpResponse:
    """Return an error as a response of this module, where the application is not involved."""
    body = error.body
    fields = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    return HttpResponse(error.status, body, [*SECURITY_HEADERS, *fields, *error.headers])


def bad_http(detail: str) -> ApiError:
    """Return the error of a request that cannot be parsed."""
    return ApiError("bad_http", f"the request must be HTTP/1.1: {detail}")


def headers_too_large() -> ApiError:
    """Return the error of too many or too long headers."""
    rule = f"request line and headers must be at most {HEADER_BYTES} bytes and {HEADER_FIELDS} fields"
    return ApiError("headers_too_large", f"{rule}, got more; send fewer or shorter fields")
