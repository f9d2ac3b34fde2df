"""Lazily imported attributes of a package."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_attributes"]


def lazy_attributes(
    package: dict[str, Any], modules: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a package that imports some of its names on first use.

    ``__dir__`` lists the names of the package's ``__all__`` and those in ``modules``; private names do not appear.

    Args:
        package: The ``globals()`` of the package.
        modules: Module of each lazy name, relative to the package.
    """

    def get_attribute(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        package[name] = getattr(import_module(f"{package['__name__']}.{modules[name]}"), name)
        return package[name]

    def list_attributes() -> list[str]:
        return sorted({*package.get("__all__", ()), *modules})

    return get_attribute, list_attributes
