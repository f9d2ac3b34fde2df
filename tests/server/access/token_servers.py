"""Servers with tokens, and all requests with the rights they need."""

import http.client
import socket
from dataclasses import dataclass
from pathlib import Path

import minwise.server
from server.running import PATIENCE_SECONDS, Answer, Server

__all__ = ["DOCUMENT", "HOLDERS", "REQUESTS", "WRITING", "Request", "TokenServer", "named", "raw", "real"]

PAGE = Path(str(minwise.server.__file__)).parent / "page"
DOCUMENT = {"id": "new", "text": "a text that was never sent before"}


@dataclass(frozen=True)
class Request:
    """A request and the rights it needs."""

    method: str
    path: str
    body: object = None
    rights: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


READ, WRITE = frozenset({"read"}), frozenset({"write"})
BOTH = READ | WRITE
# Every route; a test checks that none is missing.
REQUESTS = [
    Request("GET", "/"),
    Request("GET", "/docs"),
    Request("GET", "/static/{name}"),
    Request("GET", "/openapi.json"),
    Request("GET", "/healthz"),
    Request("GET", "/readyz"),
    Request("GET", "/metrics", None, READ),
    Request("GET", "/v1/stats", None, READ),
    Request("GET", "/v1/plan", None, READ),
    Request("GET", "/v1/documents", None, READ),
    Request("GET", "/v1/documents/there", None, READ),
    Request("POST", "/v1/query", {"text": "a text"}, READ),
    Request("GET", "/v1/search?contains=text", None, READ),
    Request("POST", "/v1/compare", {"left": "a text", "right": "a text"}, READ),
    Request("POST", "/v1/documents", DOCUMENT, WRITE),
    Request("POST", "/v1/documents?unique=false", {"documents": [DOCUMENT]}, WRITE),
    Request("POST", "/v1/documents?unique=true", DOCUMENT, BOTH),
    Request("DELETE", "/v1/documents/there", None, WRITE),
    Request("DELETE", "/v1/documents", {"ids": ["there"]}, WRITE),
    Request("POST", "/v1/expire", {"older_than": "1d", "time_field": "created"}, WRITE),
    Request("POST", "/v1/expire?", {"older_than": "1d", "time_field": "created", "dry_run": True}, WRITE),
]
WRITING = [one for one in REQUESTS if "write" in one.rights]
HOLDERS = {"no token": None, "unknown token": frozenset(), "reader": READ, "writer": WRITE, "editor": BOTH}


@dataclass
class TokenServer:
    """A server with tokens.

    Attributes:
        server: The server, without a token.
        tokens: Tokens by holder.
    """

    server: Server
    tokens: dict[str, str | None]

    def ask(self, request: Request, holder: str = "no token") -> Answer:
        """Send a request with the token of a holder."""
        token = self.tokens[holder]
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return self.server.ask(request.method, real(request.path), request.body, headers=headers)


def real(path: str) -> str:
    """Return the path of a route with a value instead of its placeholder."""
    return path.replace("{name}", next(one.name for one in sorted(PAGE.iterdir()) if one.suffix == ".js"))


def named(token_server: TokenServer) -> set[str]:
    """Return the ids of the index."""
    answer = token_server.ask(Request("GET", "/v1/documents"), "editor")
    return {str(one["id"]) for one in answer.json["documents"]}


def raw(server: Server, *lines: str, body: bytes = b"") -> Answer:
    """Return the response to raw header lines."""
    with socket.create_connection((server.host, server.port), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1") + body)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
