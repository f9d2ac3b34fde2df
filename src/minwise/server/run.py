"""Run: a server that listens, answers, and ends in good order."""

import gc
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from minwise.errors import ConfigError
from minwise.server.app import App
from minwise.server.protocol import protocol_for
from minwise.server.service import Service
from minwise.server.settings import ServerSettings
from minwise.server.tokens import Tokens

__all__ = ["serve"]

# Connections that wait to be accepted.
BACKLOG = 1024
# After the signal: uvicorn looks for it every 0.1 s, and then gives connections 0.1 s to close. What a request may take
# of the time to drain is less by that, and by the share in which whatever a thread works on, and the process, can end.
LOOKING_SECONDS, ENDING = 0.2, 0.2
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
    with _listening(settings) as listener:
        service = Service(settings)
        try:
            app = App(service, tokens)
            protocol = protocol_for(settings, service.metrics.note_refusal)
            service.metrics.connections.set_function(lambda: len(protocol.crowd))
            config = uvicorn.Config(
                app,
                http=protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,  # nobody is believed about who sent him
                timeout_keep_alive=settings.receive_timeout,  # type: ignore[arg-type] # seconds, whole or not
                timeout_graceful_shutdown=_draining_seconds(settings),  # type: ignore[arg-type]
            )
            server = _Server(config, service, _address(settings, listener))
            server.run(sockets=[listener])
        finally:
            service.close()
    if signal.SIGINT in server.signals:
        raise KeyboardInterrupt


def _draining_seconds(settings: ServerSettings) -> float:
    """How long requests may go on so that the process has ended within ``drain_timeout``."""
    return max(0.0, (1 - ENDING) * settings.drain_timeout - LOOKING_SECONDS)


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


class _Server(uvicorn.Server):
    """Uvicorn's server, which tells when it listens and leaves signals to us."""

    def __init__(self, config: uvicorn.Config, service: Service, address: str) -> None:
        super().__init__(config)
        self.signals: list[int] = []
        self._service, self._address = service, address

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.start()
        await super().startup(sockets)
        print(f"minwise: serving {self._service.settings.index} at {self._address}", flush=True)  # noqa: T201
        print("minwise: stop it with Ctrl-C", file=sys.stderr, flush=True)  # noqa: T201
        if not self._service.settings.is_loopback:
            warning = "tokens and texts travel in the clear; put a proxy with TLS before it"
            print(f"minwise: {warning}", file=sys.stderr, flush=True)  # noqa: T201

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: object) -> None:
        """Stops when all that has begun is answered; at once when told so again by Ctrl-C."""
        self.force_exit |= self.should_exit and number == signal.SIGINT
        self.should_exit = self._service.draining = True
        self.signals.append(number)


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
