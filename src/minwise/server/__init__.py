"""HTTP service over an index; requires the extra ``server``.

A request passes through these modules::

    run → protocol → app → access → routes → service → index_tasks → minwise.Index
          HTTP/1.1   │     host, token,      worker    batched queries
                     │     size limits       threads   and changes
                     └ messages, openapi

``connection_tracker`` selects the connection to close when there are too many, ``tokens`` reads the token file,
``errors`` defines the error response, ``metrics`` the Prometheus metrics, ``settings`` the options; ``page/`` contains
the web page.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from minwise._internal.lazy import lazy_attributes as _lazy_attributes
from minwise.server.settings import ServerSettings

if _TYPE_CHECKING:
    from minwise.server.run import serve

__all__ = ["ServerSettings", "serve"]

# `serve` is imported on first use: tokens can be made without the packages of the extra.
__getattr__, __dir__ = _lazy_attributes(globals(), {"serve": "run"})
