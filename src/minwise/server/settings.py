"""Settings of the server: address, access and limits."""

import ipaddress
import re
from dataclasses import dataclass, fields
from pathlib import Path

from minwise.checks import MAX_LEVELS, check_integer, check_path, check_setting_names, show
from minwise.errors import ConfigError
from minwise.options import setting_field
from minwise.settings import parse_bytes

__all__ = ["ServerSettings"]

# Largest values: a billion bytes, and a day.
MAX_BYTES, MAX_SECONDS = 10**9, 86_400
# The size of a request first: the others must not exceed it.
SIZES = ("max_request", "max_document", "max_metadata", "max_compare")
MAX_CACHE_BYTES = 10**12
# The JSON decoder fails before a thousand levels.
MAX_COUNTS = {"max_documents": 10**6, "max_depth": MAX_LEVELS, "max_in_flight": 10**4, "max_connections": 10**5}
# Request bodies that are buffered at a time, in requests of the largest size.
BUFFERED_REQUESTS = 4
# Characters of an address or a host name; a port, a path or a pattern is not part of it.
ADDRESS = re.compile(r"[A-Za-z0-9._:%-]+")
HOST_NAME = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Settings of a server. Sizes are numbers of bytes or strings such as ``1MB``.

    Attributes:
        index: Directory of the index.
        host: Address to listen on. An address other than the loopback requires a token file. Default: 127.0.0.1.
        port: Port to listen on; 0 for any free one. Default: 8765.
        token_file: File with the hashes of tokens, written by minwise token. Without one, every process of this machine
            may read and write.
        read_only: Refuse all changes; another process may then write to the index. Default: False.
        cache: Memory for blocks of the index that were read. Default: 256MB.
        allow_host: Further host names that clients may use, besides those of the loopback and of host.
        max_document: Maximum size of one text. Default: 1MB.
        max_metadata: Maximum size of the metadata of one document as JSON. A query returns the metadata of up to a
            hundred hits. Default: 64KB.
        max_compare: Maximum size of each of two texts to compare. Texts that repeat a few words take seconds. Default:
            200KB.
        max_request: Maximum size of one request. Default: 16MB.
        max_documents: Maximum number of documents, or ids, of one request. Default: 1000.
        max_depth: Maximum nesting of objects and lists in metadata. Default: 32.
        max_in_flight: Maximum number of read requests, and of write requests, in progress; more are refused with 503.
            Default: 64.
        max_connections: Maximum number of open connections; a new one evicts the connection that has waited for a
            request longest. Default: 1000.
        receive_timeout: Seconds in which a request must arrive completely, and a response must be read. Default: 10.0.
        drain_timeout: Seconds in which requests may finish after a signal to stop. Default: 10.0.
    """

    index: Path
    host: str = setting_field(
        "127.0.0.1", "Address to listen on. An address other than the loopback requires a token file."
    )
    port: int = setting_field(8765, "Port to listen on; 0 for any free one.")
    token_file: Path | None = setting_field(
        None,
        "File with the hashes of tokens, written by minwise token. Without one, every process of this machine may read"
        " and write.",
    )
    read_only: bool = setting_field(False, "Refuse all changes; another process may then write to the index.")
    cache: int | str = setting_field("256MB", "Memory for blocks of the index that were read.")
    allow_host: tuple[str, ...] = setting_field(
        (), "Further host names that clients may use, besides those of the loopback and of host."
    )
    max_document: int | str = setting_field("1MB", "Maximum size of one text.")
    max_metadata: int | str = setting_field(
        "64KB",
        "Maximum size of the metadata of one document as JSON. A query returns the metadata of up to a hundred hits.",
    )
    max_compare: int | str = setting_field(
        "200KB", "Maximum size of each of two texts to compare. Texts that repeat a few words take seconds."
    )
    max_request: int | str = setting_field("16MB", "Maximum size of one request.")
    max_documents: int = setting_field(1000, "Maximum number of documents, or ids, of one request.")
    max_depth: int = setting_field(32, "Maximum nesting of objects and lists in metadata.")
    max_in_flight: int = setting_field(
        64, "Maximum number of read requests, and of write requests, in progress; more are refused with 503."
    )
    max_connections: int = setting_field(
        1000,
        "Maximum number of open connections; a new one evicts the connection that has waited for a request longest.",
    )
    receive_timeout: float = setting_field(
        10.0, "Seconds in which a request must arrive completely, and a response must be read."
    )
    drain_timeout: float = setting_field(10.0, "Seconds in which requests may finish after a signal to stop.")

    def __new__(cls, *values: object, **given: object) -> "ServerSettings":
        """Check the names, for a message that proposes the setting that is meant."""
        check_setting_names(given, [field.name for field in fields(cls)])
        return object.__new__(cls)  # super() is not that of a class with slots

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", check_path("index", self.index))
        if self.token_file is not None:
            object.__setattr__(self, "token_file", check_path("token_file", self.token_file))
        self._check_names()
        self._check_limits()
        if not self.is_loopback and self.token_file is None:
            rule = "must be a loopback address such as 127.0.0.1 unless there is a token file"
            raise ConfigError(f"host {rule}, got {show(self.host)}; make one with: minwise token FILE --read --write")

    def _check_names(self) -> None:
        if not isinstance(self.host, str) or not ADDRESS.fullmatch(self.host):
            raise ConfigError(f"host must be an address or a name, got {show(self.host)}")
        if isinstance(self.allow_host, str):
            raise ConfigError(f"allow_host must be a tuple of names, got {show(self.allow_host)}")
        for name in self.allow_host:
            check_host_name(name)
        object.__setattr__(self, "allow_host", tuple(self.allow_host))
        check_integer("port", self.port, 0, 65_535)

    def _check_limits(self) -> None:
        object.__setattr__(self, "cache", check_integer("cache", parse_bytes("cache", self.cache), 0, MAX_CACHE_BYTES))
        for name in SIZES:
            object.__setattr__(self, name, check_size(name, getattr(self, name)))
            if getattr(self, name) > int(self.max_request):
                rule = f"must be at most max_request, {self.max_request}, since it is part of a request"
                raise ConfigError(f"{name} {rule}, got {getattr(self, name)}")
        for name, maximum in MAX_COUNTS.items():
            check_integer(name, getattr(self, name), 1, maximum)
        for name in ("receive_timeout", "drain_timeout"):
            seconds = getattr(self, name)
            if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= MAX_SECONDS:
                rule = f"must be a number of seconds above 0 and at most {MAX_SECONDS}"
                raise ConfigError(f"{name} {rule}, got {show(seconds)}")

    @property
    def is_loopback(self) -> bool:
        """Whether only processes of this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def max_held(self) -> int:
        """Maximum number of bytes of all request bodies that are buffered at a time."""
        return BUFFERED_REQUESTS * int(self.max_request)

    @property
    def limits(self) -> dict[str, int | float]:
        """The limits by name, as ``/v1/stats`` returns them."""
        return {name: getattr(self, name) for name in (*SIZES, *MAX_COUNTS, "receive_timeout", "drain_timeout")}


def check_size(name: str, value: int | str) -> int:
    """Return a size of at least one byte as a number."""
    return check_integer(name, parse_bytes(name, value), 1, MAX_BYTES)


def check_host_name(name: object) -> None:
    """Raise an error for a name that cannot occur in a Host header, or that has a port."""
    if isinstance(name, str) and HOST_NAME.fullmatch(name):
        return
    try:
        ipaddress.IPv6Address(name if isinstance(name, str) else "")
    except ValueError:
        rule = "must be a name such as news.example.org, or an address, without a port"
        raise ConfigError(f"allow_host {rule}, got {show(name)}") from None
