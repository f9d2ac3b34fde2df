"""Settings of the service: where it listens, who may come in, and how much it takes."""

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path

from minwise.checks import check_integer, check_path, show
from minwise.errors import ConfigError
from minwise.settings import parse_bytes

__all__ = ["ServerSettings"]

# A billion bytes, and a day: beyond these a limit is none.
MOST_BYTES, MOST_SECONDS = 10**9, 86_400
# The request first: the others come in one.
SIZES = ("max_request", "max_document", "max_metadata", "max_compare")
MOST_CACHED = 10**12
# The JSON decoder gives up before a thousand levels.
MOST = {"max_documents": 10**6, "max_depth": 500, "max_in_flight": 10**4, "max_connections": 10**5}
# Bodies that are held at a time, in requests of the largest size.
LARGEST_REQUESTS = 4
# What an address or a name is written with; a port, a path or a pattern is no part of it.
ADDRESS = re.compile(r"[A-Za-z0-9._:%-]+")
HOST_NAME = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """How a server behaves. Sizes are numbers or such as ``1MB``.

    Attributes:
        index: The directory of the index.
        host: The address to listen at. Anything but the loopback needs a token file.
        port: The port; 0 for any that is free.
        token_file: A file of hashed tokens, as ``minwise token`` writes it; without one everybody on this machine may
            do everything.
        read_only: Whether nothing can be changed; then another process may write.
        cache: Memory that may keep what was read of the index.
        allow_host: Names, beside the loopback's and ``host``, under which clients may address the server.
        max_document: Bytes of one text.
        max_metadata: Bytes of the metadata of one document, as JSON. A hundred hits come with theirs.
        max_compare: Bytes of each of two texts that are compared. Texts that repeat a few words take seconds.
        max_request: Bytes of one request, however they are sent.
        max_documents: Documents, or ids, of one request.
        max_depth: Levels of objects and lists in metadata.
        max_in_flight: Requests that read, and as many that write, that are worked on at a time; more are told to come
            again.
        max_connections: Connections that are open at a time; for more, those that have waited for a request longest
            have to go.
        receive_timeout: Seconds in which a request has to have arrived whole, and an answer to have been taken.
        drain_timeout: Seconds that requests have to end after the server was told to stop.
    """

    index: Path
    host: str = "127.0.0.1"
    port: int = 8765
    token_file: Path | None = None
    read_only: bool = False
    cache: int | str = 256 * 10**6
    allow_host: tuple[str, ...] = ()
    max_document: int | str = 10**6
    max_metadata: int | str = 64 * 10**3
    max_compare: int | str = 200 * 10**3
    max_request: int | str = 16 * 10**6
    max_documents: int = 1000
    max_depth: int = 32
    max_in_flight: int = 64
    max_connections: int = 1000
    receive_timeout: float = 10
    drain_timeout: float = 10

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", check_path("index", self.index))
        if self.token_file is not None:
            object.__setattr__(self, "token_file", check_path("token-file", self.token_file))
        self._check_names()
        self._check_limits()
        if not self.is_loopback and self.token_file is None:
            rule = "must be of the loopback, such as 127.0.0.1, unless there is a token file"
            raise ConfigError(f"host {rule}, got {show(self.host)}; make one with: minwise token FILE --read --write")

    def _check_names(self) -> None:
        if not isinstance(self.host, str) or not ADDRESS.fullmatch(self.host):
            raise ConfigError(f"host must be an address or a name, got {show(self.host)}")
        if isinstance(self.allow_host, str):
            raise ConfigError(f"allow-host must be a tuple of names, got {show(self.allow_host)}")
        for name in self.allow_host:
            check_host_name(name)
        object.__setattr__(self, "allow_host", tuple(self.allow_host))
        check_integer("port", self.port, 0, 65_535)

    def _check_limits(self) -> None:
        object.__setattr__(self, "cache", check_integer("cache", parse_bytes("cache", self.cache), 0, MOST_CACHED))
        for name in SIZES:
            object.__setattr__(self, name, check_size(name, getattr(self, name)))
            if getattr(self, name) > int(self.max_request):
                rule = f"must be at most max-request, {self.max_request}, in which it comes"
                raise ConfigError(f"{shown(name)} {rule}, got {getattr(self, name)}")
        for name, most in MOST.items():
            check_integer(shown(name), getattr(self, name), 1, most)
        for name in ("receive_timeout", "drain_timeout"):
            seconds = getattr(self, name)
            if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= MOST_SECONDS:
                rule = f"must be a number of seconds above 0 and at most {MOST_SECONDS}"
                raise ConfigError(f"{shown(name)} {rule}, got {show(seconds)}")

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def max_held(self) -> int:
        """Bytes of all bodies that are held at a time."""
        return LARGEST_REQUESTS * int(self.max_request)

    @property
    def limits(self) -> dict[str, int | float]:
        """The limits by name, as clients are told."""
        return {name: getattr(self, name) for name in (*SIZES, *MOST, "receive_timeout", "drain_timeout")}


def check_size(name: str, value: int | str) -> int:
    """A number of bytes of at least one."""
    return check_integer(shown(name), parse_bytes(shown(name), value), 1, MOST_BYTES)


def shown(name: str) -> str:
    """A setting as it is called on the command line."""
    return name.replace("_", "-")


def check_host_name(name: object) -> None:
    """Raises for what can not stand in a Host header, or would stand there with a port."""
    if isinstance(name, str) and HOST_NAME.fullmatch(name):
        return
    try:
        ipaddress.IPv6Address(name if isinstance(name, str) else "")
    except ValueError:
        rule = "must be a name such as news.example.org, or an address, without a port"
        raise ConfigError(f"allow-host {rule}, got {show(name)}") from None
