"""Module map: which packages of ``src/minwise`` import which, read from the import statements.

A module directly in ``src/minwise`` counts as a package. The facade is ``minwise/__init__.py``: it imports its public
names on first use, and lists them for type checkers, from which they are read.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["Imports", "module_map", "package_imports"]

ROOT = Path(__file__).parents[2] / "src" / "minwise"
FACADE = "minwise"
KERNEL = "_kernel"
# Imported by nearly every package, and importing none but each other: the map leaves them out.
COMMON = ("errors", "checks", "progress", "_internal", KERNEL)


class Imports(NamedTuple):
    """Imports between packages.

    Attributes:
        eager: Packages that a package imports when it is imported itself.
        lazy: Packages that a package imports only inside functions.
    """

    eager: dict[str, set[str]]
    lazy: dict[str, set[str]]


def module_map() -> str:
    """Return a line for each package, below the packages that it imports; lazy imports are in parentheses."""
    imports = package_imports()
    every = {package: imports.eager[package] | imports.lazy[package] for package in imports.eager}
    reached = {package: _reachable(package, every) for package in every if package not in COMMON}
    order = sorted(reached, key=lambda package: (len(reached[package]), package))
    return "\n".join(_line(package, imports) for package in order)


def package_imports() -> Imports:
    """Return the imports between packages, without those for type checkers except in the facade."""
    packages = sorted({KERNEL, *(_package_of(path) for path in ROOT.rglob("*.py"))})
    imports = Imports({package: set() for package in packages}, {package: set() for package in packages})
    for path in sorted(ROOT.rglob("*.py")):
        package = _package_of(path)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node, is_lazy in _import_nodes(tree, is_facade=package == FACADE):
            found = set(_imported(node, packages)) - {package}
            (imports.lazy if is_lazy else imports.eager)[package].update(found)
    for package in packages:
        imports.lazy[package] -= imports.eager[package]
    return imports


def _line(package: str, imports: Imports) -> str:
    eager = [other for other in sorted(imports.eager[package]) if other not in COMMON]
    lazy = [f"({other})" for other in sorted(imports.lazy[package]) if other not in COMMON]
    return f"{package:<12} ← {', '.join([*eager, *lazy])}" if eager or lazy else package


def _package_of(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return FACADE if first == "__init__" else first


def _import_nodes(tree: ast.AST, *, is_facade: bool, is_lazy: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Yield every node that is run, and whether only on use: inside a function, or by the facade's lazy attributes."""
    for node in ast.iter_child_nodes(tree):
        for_checkers = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if is_facade or not for_checkers:
            yield node, is_lazy
            is_deferred = for_checkers or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from _import_nodes(node, is_facade=is_facade, is_lazy=is_lazy or is_deferred)


def _imported(node: ast.AST, packages: list[str]) -> Iterator[str]:
    """Yield the packages that an import statement names."""
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        direct = [f"{FACADE}.{alias.name}" if alias.name in packages else FACADE for alias in node.names]
        names = direct if node.module == FACADE else [str(node.module)]
    for name in names:
        root, _, rest = name.partition(".")
        if root == FACADE:
            yield rest.split(".")[0] or FACADE


def _reachable(package: str, imports: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [package]
    while waiting:
        new = imports[waiting.pop()] - found
        found |= new
        waiting.extend(new)
    return found
