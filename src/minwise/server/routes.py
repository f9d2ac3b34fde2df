"""Routes: what can be asked for, as the service finds it and as the OpenAPI page tells it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from minwise.server.protocol import HttpRequest

if TYPE_CHECKING:
    from minwise.server.service import Service

__all__ = ["Call", "Handler", "Route", "Table"]


class Call(NamedTuple):
    """A request that has passed every check.

    Attributes:
        body: What was sent, as the handler wants it.
        options: What the query string says, as the route wants it.
        id: The id in the path, if the route has one.
        rights: What who asks may do.
        request: The request itself, for what happens after its body has arrived.
    """

    body: Any
    options: Any
    id: str
    rights: frozenset[str]
    request: HttpRequest


Handler = Callable[["Service", Call], Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Something that can be asked for.

    Attributes:
        method: ``GET``, ``POST`` or ``DELETE``.
        path: Either as it is, or ending in ``{id}``, which stands for all the rest of a path.
        handler: Answers it.
        right: ``read`` or ``write``, what a token has to allow; None if it is open to everybody.
        summary: What it does, in a line.
        body: The messages that may be sent; none if nothing is.
        read_as: The one message as which they are read, if there are several.
        options: The parameters that the query string may have.
        answer: The message that comes back; None if it is no message.
        media: The type of what comes back.
        errors: Codes of what can go wrong here and not everywhere.
    """

    method: str
    path: str
    handler: Handler
    right: str | None
    summary: str
    body: tuple[type[Struct], ...] = ()
    read_as: type[Struct] | None = None
    options: type[Struct] | None = None
    answer: type[Struct] | None = None
    media: str = "application/json"
    errors: tuple[str, ...] = ()


class Table:
    """Routes by path and method."""

    def __init__(self, routes: tuple[Route, ...]) -> None:
        self._whole: dict[str, dict[str, Route]] = {}
        self._with_id: dict[str, dict[str, Route]] = {}
        for route in routes:
            table = self._with_id if route.path.endswith("{id}") else self._whole
            table.setdefault(route.path.removesuffix("{id}"), {})[route.method] = route

    def find(self, path: str) -> tuple[dict[str, Route], str]:
        """The routes of a path by method, none if there is no such path, and the id in it."""
        if path in self._whole:
            return self._whole[path], ""
        for start, routes in self._with_id.items():
            if path.startswith(start) and len(path) > len(start):
                return routes, path[len(start) :]
        return {}, ""
