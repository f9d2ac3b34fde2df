"""The HTTP service over an index. Needs more than the rest: the extra ``server``.

The way of a request through the rooms::

    run → protocol (crowd) → app → guard (tokens) → limits → handlers → service → desk → work → mw.Index
          the wire           │     who, how much     what     one per     open      threads and batches
                             └ routes, messages      is asked route       index
                               → openapi

Beside it: ``passages`` (what hits share), ``errors`` (the one shape), ``metrics``, ``settings``; ``page/`` for people.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from minwise._internal.lazy import lazy_attributes as _lazy_attributes
from minwise.server.settings import ServerSettings

if _TYPE_CHECKING:
    from minwise.server.run import serve

__all__ = ["ServerSettings", "serve"]

# What needs the extra comes when it is first asked for: tokens are made without it.
__getattr__, __dir__ = _lazy_attributes(globals(), {"serve": "run"})
