"""``Keyword Args`` sections of public calls, written from the definitions in :mod:`minwise.options`.

A call that takes ``**options: Unpack[XOptions]`` lists every setting of ``XOptions`` in its docstring, because that is
where ``help()`` and editors look.
"""

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from minwise import options
from minwise.options import definitions

__all__ = ["MODULES", "with_option_docstrings"]

SOURCES = Path(__file__).parents[2] / "src" / "minwise"
# Modules with calls that take settings.
MODULES = tuple(SOURCES / name for name in ("api.py", "index/index.py", "spark/dataframes.py"))
HEADING = "Keyword Args:"
WIDTH = 120


def with_option_docstrings(path: Path) -> str:
    """Return the source of a module with current ``Keyword Args`` sections."""
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    for call, option_class in reversed(list(_calls(ast.parse(text)))):
        start = next(number for number in range(call.lineno, len(lines)) if lines[number].strip() == HEADING)
        end = next(number for number in range(start + 1, len(lines)) if not lines[number].strip())
        lines[start + 1 : end] = _entries(option_class, len(lines[start]) - len(HEADING))
    return "\n".join(lines)


def _calls(module: ast.Module) -> Iterator[tuple[ast.FunctionDef, type]]:
    """Yield every call that takes settings with its option class, in the order of the source."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.args.kwarg is not None:
            found = re.search(r"Unpack\[(\w+)\]", ast.unparse(node.args.kwarg.annotation or ast.Constant("")))
            if found:
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
