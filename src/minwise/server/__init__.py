"""The HTTP service over an index. Needs more than the rest: ``pip install 'minwise[server]'``."""

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
