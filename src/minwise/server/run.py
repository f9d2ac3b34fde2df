"""Run: a server that listens, answers, and ends in good order."""

import asyncio
import gc
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import uvloop

from minwise.errors import ConfigError
from minwise.server.app import App
from minwise.server.protocol import HttpServer
from minwise.server.service import Service
from minwise.server.settings import ServerSettings
from minwise.server.tokens import Tokens

__all__ = ["serve"]

# Connections that wait to be accepted.
BACKLOG = 1024
# Share of the drain timeout that is kept for the work of threads that cannot be cancelled and for the process to end.
ENDING_SHARE = 0.2
STOPPING = (signal.SIGTERM, signal.SIGINT)
# How rarely Python looks for garbage: two million lists are decoded in 0.5 s with its own numbers, in 0.2 s with these.
COLLECTED = (50_000, 20, 20)
# Open files beside connections: those of the index, three times, and what Python needs.
OTHER_FILES = 256


def serve(settings: ServerSettings) -> None:
    """Serves an index until the process is told to stop.

    Prints a line when it listens. SIGTERM and Ctrl-C end what has begun, within ``drain_timeout``, and no more.

    Raises:
        KeyboardInterrupt: After Ctrl-C, when all is ended.
    """
    tokens = None if settings.token_file is None else Tokens.read(settings.token_file)
    _allow_files(settings)
    logging.basicConfig(format="%(asctime)s minwise: %(message)s")
    gc.set_threshold(*COLLECTED)
    with _listening(settings) as listener, _restored_signals():
        service = Service(settings)
        try:
            signals = uvloop.run(_serve(service, App(service, tokens), listener))
        finally:
            service.close()
    if signal.SIGINT in signals:
        raise KeyboardInterrupt


async def _serve(service: Service, app: App, listener: socket.socket) -> list[int]:
    """Serve until a signal arrives and all requests are answered; return the signals."""
    settings, loop = service.settings, asyncio.get_running_loop()
    server = HttpServer(app, settings, service.metrics.note_refusal)
    service.metrics.connections.set_function(lambda: len(server.tracker))
    signals: list[int] = []
    stopping = asyncio.Event()

    def stop(number: int) -> None:
        if signals and number == signal.SIGINT:  # Ctrl-C after another signal
            server.stop_now()
        signals.append(number)
        service.draining = True
        stopping.set()

    for number in STOPPING:
        loop.add_signal_handler(number, stop, number)
    service.start()
    listening = await loop.create_server(server.connect, sock=listener, backlog=BACKLOG)
    _announce(settings, listener)
    await stopping.wait()
    listening.close()
    listener.close()
    server.stop()
    await server.drain((1 - ENDING_SHARE) * settings.drain_timeout)
    return signals


def _announce(settings: ServerSettings, listener: socket.socket) -> None:
    """Print the address."""
    print(f"minwise: serving {settings.index} at {_address(settings, listener)}", flush=True)  # noqa: T201
    print("minwise: stop it with Ctrl-C", file=sys.stderr, flush=True)  # noqa: T201
    if not settings.is_loopback:
        warning = "tokens and texts travel in the clear; put a proxy with TLS before it"
        print(f"minwise: {warning}", file=sys.stderr, flush=True)  # noqa: T201


@contextmanager
def _restored_signals() -> Iterator[None]:
    """Restore the signal handlers of the caller, which the event loop replaces by default ones when it closes."""
    before = {number: signal.getsignal(number) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _allow_files(settings: ServerSettings) -> None:
    """Makes room for as many open files as connections need, and the index beside them.

    Raises:
        ConfigError: If the system does not allow so many.
    """
    wanted = 2 * settings.max_connections + OTHER_FILES  # those that are refused stay for a moment
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < wanted:
        rule = f"must be at most {(most - OTHER_FILES) // 2}, for a process here may open {most} files"
        raise ConfigError(f"max-connections {rule}, got {settings.max_connections}")
    if allowed != resource.RLIM_INFINITY and allowed < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


@contextmanager
def _listening(settings: ServerSettings) -> Iterator[socket.socket]:
    """A socket that listens at the address of the settings."""
    place = f"{settings.host}:{settings.port}"
    try:
        family, *_, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:
        unknown = isinstance(error, socket.gaierror)  # such have numbers and words of their own
        raise OSError(error.errno, error.strerror if unknown else os.strerror(error.errno or 0), place) from None
    with listener:
        yield listener


def _address(settings: ServerSettings, listener: socket.socket) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{listener.getsockname()[1]}/"
