"""Later: names of a package that are imported when they are first asked for."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["import_later"]


def import_later(
    package: dict[str, Any], rooms: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package some of whose names come later.

    Args:
        package: The ``globals()`` of the package.
        rooms: Where each of these names is to be found, below the package.
    """

    def get(name: str) -> object:
        if name not in rooms:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        package[name] = getattr(import_module(f"{package['__name__']}.{rooms[name]}"), name)
        return package[name]

    def names() -> list[str]:
        return sorted([*package, *rooms])

    return get, names
