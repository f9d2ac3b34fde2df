"""Settings in docstrings, written from their definitions (:mod:`minwise.options`).

A call that takes ``**options: Unpack[XOptions]`` lists every setting of ``XOptions`` in a section ``Keyword Args``.
A dataclass of settings lists them under ``Attributes``. That is where ``help()`` and editors look.
"""

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from minwise import options
from minwise.options import definitions
from minwise.server import ServerSettings

__all__ = ["MODULES", "with_option_docstrings"]

SOURCES = Path(__file__).parents[2] / "src" / "minwise"
# Modules with calls that take settings, or with a dataclass of them.
MODULES = tuple(SOURCES / name for name in ("api.py", "index/index.py", "server/settings.py", "spark/dataframes.py"))
SECTION = re.compile(r" +(Keyword Args|Attributes):")
WIDTH = 120


def with_option_docstrings(path: Path) -> str:
    """Return the source of a module with current settings in its docstrings."""
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    for node, option_class in reversed(list(_documented(ast.parse(text)))):
        heading = next(number for number in range(node.lineno, len(lines)) if SECTION.fullmatch(lines[number]))
        indent = len(lines[heading]) - len(lines[heading].lstrip())
        end = next(number for number in range(heading + 1, len(lines)) if len(lines[number].rstrip()) < indent + 4)
        names = tuple(f"{' ' * (indent + 4)}{name}: " for name in definitions(option_class))
        start = next((number for number in range(heading + 1, end) if lines[number].startswith(names)), heading + 1)
        lines[start:end] = _entries(option_class, indent)
    return "\n".join(lines)


def _documented(module: ast.Module) -> Iterator[tuple[ast.FunctionDef | ast.ClassDef, type]]:
    """Yield every call that takes settings, and every class of settings, with its option class."""
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef) and node.name == ServerSettings.__name__:
            yield node, ServerSettings
        if isinstance(node, ast.FunctionDef) and node.args.kwarg is not None:
            found = re.search(r"Unpack\[(\w+)\]", ast.unparse(node.args.kwarg.annotation or ast.Constant("")))
            if found and not any(ast.unparse(decorator) == "overload" for decorator in node.decorator_list):
                yield node, getattr(options, found[1])


def _entries(option_class: type, indent: int) -> list[str]:
    first, rest = " " * (indent + 4), " " * (indent + 8)
    return [
        line
        for definition in definitions(option_class).values()
        for line in textwrap.wrap(
            f"{definition.name}: {definition.documentation}", WIDTH, initial_indent=first, subsequent_indent=rest
        )
    ]
