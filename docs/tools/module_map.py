"""The module map: which room of ``src/minwise`` imports which, from the import statements themselves."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["Needs", "imports_between_rooms", "module_map"]

PACKAGE = Path(__file__).parents[2] / "src" / "minwise"
DOOR = "minwise"
KERNEL = "_kernel"
# Everybody may use these, and they would only fill the lines.
EVERYWHERE = ("config", "errors", KERNEL)


def module_map() -> str:
    """A line for each room, below those it needs.

    In parentheses stands what is imported inside functions alone, when it is asked for.
    """
    needs = imports_between_rooms()
    reached = {room: _reached(room, needs.at_once) for room in needs.at_once}
    return "\n".join(_line(room, needs) for room in sorted(reached, key=lambda room: (len(reached[room]), room)))


class Needs(NamedTuple):
    """What each room imports of others, when it is imported itself, and only later."""

    at_once: dict[str, set[str]]
    later: dict[str, set[str]]


def imports_between_rooms() -> Needs:
    """Who needs whom; what only a type checker reads does not count."""
    rooms = sorted({KERNEL, *(_room_of(path) for path in PACKAGE.rglob("*.py"))})
    needs = Needs({room: set() for room in rooms}, {room: set() for room in rooms})
    for path in sorted(PACKAGE.rglob("*.py")):
        room = _room_of(path)
        for node, is_inside in _running(ast.parse(path.read_text(encoding="utf-8"))):
            found = set(_imported(node, rooms)) - {room}
            (needs.later if is_inside else needs.at_once)[room].update(found)
    for room in rooms:
        needs.later[room] -= needs.at_once[room]
    return needs


def _line(room: str, needs: Needs) -> str:
    at_once = [other for other in sorted(needs.at_once[room]) if other not in EVERYWHERE]
    later = [f"({other})" for other in sorted(needs.later[room]) if other not in EVERYWHERE]
    basics = [other for other in EVERYWHERE if other in needs.at_once[room] | needs.later[room]]
    shown = ", ".join([*at_once, *later]) + (" + " if at_once or later else "") * bool(basics) + ", ".join(basics)
    return f"{room:<12} ← {shown}" if shown else room


def _room_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return DOOR if first == "__init__" else first


def _running(tree: ast.AST, *, is_inside: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Every node but those below ``if TYPE_CHECKING``, and whether it is inside a function."""
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield node, is_inside
            yield from _running(node, is_inside=is_inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _imported(node: ast.AST, rooms: list[str]) -> Iterator[str]:
    """The rooms that an import statement names."""
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        direct = [f"{DOOR}.{alias.name}" if alias.name in rooms else DOOR for alias in node.names]
        names = direct if node.module == DOOR else [str(node.module)]
    for name in names:
        package, _, rest = name.partition(".")
        if package == DOOR:
            yield rest.split(".")[0] or DOOR


def _reached(room: str, needs: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [room]
    while waiting:
        fresh = needs[waiting.pop()] - found
        found |= fresh
        waiting.extend(fresh)
    return found
