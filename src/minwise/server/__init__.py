"""The HTTP service over an index. Needs more than the rest: ``pip install 'minwise[server]'``.

The way of a request through the rooms::

    run → protocol (crowd) → app → guard (tokens) → limits → handlers → service → desk → work → mw.Index
          the wire           │     who, how much     what     one per     open      threads and batches
                             └ routes, messages      is asked route       index
                               → openapi

Beside it: ``passages`` (what hits share), ``errors`` (the one shape), ``metrics``, ``settings``; ``page/`` for people.
"""

from typing import TYPE_CHECKING

from minwise.server.settings import ServerSettings

if TYPE_CHECKING:
    from minwise.server.run import serve

__all__ = ["ServerSettings", "serve"]


def __getattr__(name: str) -> object:
    """Brings in what needs the extra when it is asked for: tokens are made without it."""
    if name == "serve":
        from minwise.server.run import serve

        return serve
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
