"""Runs a server until it is stopped by a signal."""

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

if sys.platform == "win32":
    from asyncio import run as run_event_loop
else:
    from uvloop import run as run_event_loop

from minwise._internal.system import raise_file_limit
from minwise.errors import ConfigError
from minwise.server.app import App
from minwise.server.protocol import HttpServer
from minwise.server.service import Service
from minwise.server.settings import ServerSettings
from minwise.server.tokens import Tokens

__all__ = ["run_event_loop", "serve"]

# Connections that may wait to be accepted.
BACKLOG = 1024
# Part of the drain timeout that is reserved for work of threads, which cannot be cancelled, and for the process to end.
RESERVED_SHARE, RESERVED_SECONDS = 0.2, 0.2
if sys.platform == "win32":
    STOP_SIGNALS: tuple[signal.Signals, ...] = (signal.SIGTERM, signal.SIGINT)
else:
    STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# Thresholds of the garbage collector: two million lists are decoded in 0.5 s with its defaults, in 0.2 s with these.
GC_THRESHOLDS = (50_000, 20, 20)
# Open files besides connections: those of the index, which is open four times, and of Python.
OTHER_FILES = 256


def serve(settings: ServerSettings) -> None:
    """Serve an index until SIGTERM or Ctrl-C; print the address once the server listens.

    After the signal no connection is accepted, and requests may finish within ``drain_timeout``. A second Ctrl-C
    cancels them.

    Raises:
        KeyboardInterrupt: After Ctrl-C, when the server has stopped.
        ConfigError: If the token file is unusable or the system allows too few open files.
        FormatError: If the index or the token file is damaged.
        OSError: If the address cannot be used or the index cannot be opened.
    """
    tokens = None if settings.token_file is None else Tokens.read(settings.token_file)
    _raise_file_limit(settings)
    logging.basicConfig(format="%(asctime)s minwise: %(message)s")
    gc.set_threshold(*GC_THRESHOLDS)
    with _open_listener(settings) as listener, _restored_signals():
        service = Service(settings)
        try:
            signals = run_event_loop(_serve(service, App(service, tokens), listener))
        finally:
            service.close()
    if signal.SIGINT in signals:
        raise KeyboardInterrupt


async def _serve(service: Service, app: App, listener: socket.socket) -> list[int]:
    """Serve until a signal arrives and all requests are answered; return the signals."""
    settings, loop = service.settings, asyncio.get_running_loop()
    server = HttpServer(app, settings, service.metrics.count_refusal)
    service.metrics.connections.set_function(lambda: len(server.tracker))
    signals: list[int] = []
    stopping = asyncio.Event()

    def stop(number: int) -> None:
        if signals and number == signal.SIGINT:  # Ctrl-C after another signal
            server.stop_now()
        signals.append(number)
        service.draining = True
        stopping.set()

    for number in STOP_SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup sets it
            _call_on_signal(loop, number, stop)
    service.start()
    listening = await loop.create_server(server.connect, sock=listener, backlog=BACKLOG)
    _announce(settings, listener)
    await stopping.wait()
    listening.close()
    listener.close()
    server.stop()
    await server.drain(max(0.0, (1 - RESERVED_SHARE) * settings.drain_timeout - RESERVED_SECONDS))
    return signals


def _call_on_signal(loop: asyncio.AbstractEventLoop, number: int, action: Callable[[int], None]) -> None:
    """Call ``action`` in the event loop when a signal arrives."""
    if sys.platform == "win32":  # whose event loops have no signal handlers
        signal.signal(number, lambda number, _: loop.call_soon_threadsafe(action, number))
    else:
        loop.add_signal_handler(number, action, number)


def _announce(settings: ServerSettings, listener: socket.socket) -> None:
    """Print the address."""
    print(f"minwise: serving {settings.index} at {_address(settings, listener)}", flush=True)  # noqa: T201
    print("minwise: stop it with Ctrl-C", file=sys.stderr, flush=True)  # noqa: T201
    if not settings.is_loopback:
        warning = "tokens and texts are sent unencrypted; put a proxy with TLS in front of it"
        print(f"minwise: {warning}", file=sys.stderr, flush=True)  # noqa: T201


@contextmanager
def _restored_signals() -> Iterator[None]:
    """Restore the signal handlers of the caller, which the event loop replaces by default ones when it closes."""
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _raise_file_limit(settings: ServerSettings) -> None:
    """Raise the limit of open files to what the connections and the index need.

    Raises:
        ConfigError: If the system does not allow so many.
    """
    wanted = 2 * settings.max_connections + OTHER_FILES  # refused connections stay open for a moment
    most = raise_file_limit(wanted)
    if most is not None:
        rule = f"must be at most {(most - OTHER_FILES) // 2}, since a process may open {most} files on this system"
        raise ConfigError(f"max_connections {rule}, got {settings.max_connections}")


@contextmanager
def _open_listener(settings: ServerSettings) -> Iterator[socket.socket]:
    """Open a socket that listens on the address of the settings."""
    address_text = f"{settings.host}:{settings.port}"
    try:
        family, *_, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:
        # Errors of name resolution have their own numbers and messages.
        message = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        raise OSError(error.errno, message, address_text) from None
    with listener:
        yield listener


def _address(settings: ServerSettings, listener: socket.socket) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{listener.getsockname()[1]}/"
