"""Module map: which packages of ``src/minwise`` import which, read from the import statements."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["Imports", "module_map", "package_imports"]

ROOT = Path(__file__).parents[2] / "src" / "minwise"
FACADE = "minwise"
KERNEL = "_kernel"
# Imported by most packages, so they are listed separately at the end of a line.
COMMON = ("checks", "errors", "_internal", KERNEL)


class Imports(NamedTuple):
    """Imports between packages.

    Attributes:
        eager: Packages that a package imports when it is imported itself.
        lazy: Packages that a package imports only inside functions.
    """

    eager: dict[str, set[str]]
    lazy: dict[str, set[str]]


def module_map() -> str:
    """Return a line for each package, after the packages that it imports; lazy imports are in parentheses."""
    imports = package_imports()
    reached = {package: _reachable(package, imports.eager) for package in imports.eager}
    order = sorted(reached, key=lambda package: (len(reached[package]), package))
    return "\n".join(_line(package, imports) for package in order)


def package_imports() -> Imports:
    """Return the imports between packages, without those for type checkers."""
    packages = sorted({KERNEL, *(_package_of(path) for path in ROOT.rglob("*.py"))})
    imports = Imports({package: set() for package in packages}, {package: set() for package in packages})
    for path in sorted(ROOT.rglob("*.py")):
        package = _package_of(path)
        for node, in_function in _runtime_nodes(ast.parse(path.read_text(encoding="utf-8"))):
            found = set(_imported(node, packages)) - {package}
            (imports.lazy if in_function else imports.eager)[package].update(found)
    for package in packages:
        imports.lazy[package] -= imports.eager[package]
    return imports


def _line(package: str, imports: Imports) -> str:
    eager = [other for other in sorted(imports.eager[package]) if other not in COMMON]
    lazy = [f"({other})" for other in sorted(imports.lazy[package]) if other not in COMMON]
    common = [other for other in COMMON if other in imports.eager[package] | imports.lazy[package]]
    shown = " + ".join(", ".join(names) for names in ([*eager, *lazy], common) if names)
    return f"{package:<12} ← {shown}" if shown else package


def _package_of(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return FACADE if first == "__init__" else first


def _runtime_nodes(tree: ast.AST, *, in_function: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Yield every node except those below ``if TYPE_CHECKING``, and whether it is inside a function."""
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield node, in_function
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from _runtime_nodes(node, in_function=in_function or is_function)


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
