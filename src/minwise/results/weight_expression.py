"""Expressions of weights, such as ``min(size, 5)``: parsed with a whitelist, so that no other code can run.

Names are ``size``, ``rank`` and ``votes``; operations are ``+ - * /``, ``min``, ``max``, ``log`` (natural) and
``sqrt``. Arithmetic is in 64-bit floating point. A weight is rounded to ten significant digits, since logarithms differ
in their last bits between machines.
"""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from minwise.checks import show
from minwise.errors import ConfigError

__all__ = ["WeightColumn", "parse_weight"]

NAMES = ("size", "rank", "votes")
OPERATORS: Mapping[type, Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
SIGNS: Mapping[type, Callable[[float], float]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
FUNCTIONS: Mapping[str, Callable[[list[float]], float]] = {
    "min": min,
    "max": max,
    "log": lambda operands: math.log(operands[0]),
    "sqrt": lambda operands: math.sqrt(operands[0]),
}
# Functions of any number of arguments; the others have one.
VARIADIC = ("min", "max")
# Characters of an expression: more than anyone needs, and few enough to be parsed without deep recursion.
MOST_CHARACTERS = 200
DIGITS = 10
RULE = (
    "add_weight must be NAME=EXPRESSION with numbers, size, rank, votes, + - * / ( ), min, max, log and sqrt, such as"
    " 'weight=min(size, 5)'"
)


@dataclass(frozen=True)
class WeightColumn:
    """Column of weights.

    Attributes:
        name: Its name.
        expression: The expression of each weight.
    """

    name: str
    expression: str

    @cached_property
    def _tree(self) -> ast.expr:
        return ast.parse(self.expression, mode="eval").body

    @property
    def uses_votes(self) -> bool:
        """Whether a weight depends on the number of votes."""
        return self._uses("votes")

    def _uses(self, name: str) -> bool:
        return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(self._tree))

    def of(self, size: int, rank: int, votes: int = 0) -> float:
        """Return the weight of a document.

        Raises:
            ConfigError: If it is not finite, or negative.
        """
        values = {"size": float(size), "rank": float(rank), "votes": float(votes)}
        try:
            value = _evaluate(self._tree, values)
        except (ZeroDivisionError, ValueError, OverflowError):  # also logarithms and roots of what has none
            value = math.nan
        if not math.isfinite(value) or value < 0:
            shown = "negative" if value < 0 else "not a number"
            where = f"size {size}, rank {rank}" + (f", votes {votes}" if self.uses_votes else "")
            raise ConfigError(f"add_weight must be finite and at least 0, got {self.expression}, {shown} at {where}")
        return float(f"{value:.{DIGITS - 1}e}") + 0.0  # without a negative zero

    def of_all(
        self, sizes: NDArray[np.int64], ranks: NDArray[np.int64], votes: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the weights of documents; each distinct combination is computed once."""
        rows = np.stack([sizes, ranks, votes], axis=1)
        _, firsts, indices = np.unique(self._codes(rows), return_index=True, return_inverse=True)
        weights = np.array([self.of(*row) for row in rows[firsts].tolist()], dtype=np.float64)
        return weights[indices]

    def _codes(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a number for each row, equal for rows with equal values of the names in the expression.

        Numbers stay below that of the rows, so that no product overflows; rows as a whole are ten times slower to sort.
        """
        codes = np.zeros(len(rows), dtype=np.int64)
        for name, column in zip(NAMES, rows.T, strict=True):
            if self._uses(name) and len(rows):
                _, codes = np.unique(codes * (int(column.max()) + 1) + column, return_inverse=True)
        return codes


def parse_weight(given: object, *, votes: bool) -> WeightColumn:
    """Return the column of weights that a setting such as ``"weight=min(size, 5)"`` describes.

    >>> parse_weight("w=min(size, 5) / 2", votes=False).of(size=3, rank=1)
    1.5

    Args:
        given: The setting.
        votes: Whether votes are counted.

    Raises:
        ConfigError: If it has another form, or uses what is not known or not allowed.
    """
    name, equals, expression = (part.strip() for part in given.partition("=")) if isinstance(given, str) else ("",) * 3
    if not name or not equals or not expression or len(expression) > MOST_CHARACTERS:
        raise ConfigError(f"{RULE}; got {show(given)}")
    try:
        tree = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ConfigError(f"{RULE}; got {show(given)}") from None
    _check(tree, expression)
    weight = WeightColumn(name, expression)
    if weight.uses_votes and not votes:
        raise ConfigError(f"votes must name a column if add_weight uses votes, got {show(given)}")
    weight.of(1, 1, 1)  # a document without duplicates, which nearly every corpus has
    return weight


def _check(node: ast.expr, expression: str) -> None:
    """Raise if an expression contains anything but what the rule allows."""
    children = _children(node)
    if children is None:
        part = ast.get_source_segment(expression, node) or expression
        raise ConfigError(f"{RULE}; got {show(part)}")
    for child in children:
        _check(child, expression)


def _children(node: ast.expr) -> list[ast.expr] | None:
    """Return the operands of an allowed operation; None for anything else."""
    if isinstance(node, ast.Constant):
        return [] if type(node.value) in (int, float) else None
    if isinstance(node, ast.Name):
        return [] if node.id in NAMES else None
    if isinstance(node, ast.BinOp):
        return [node.left, node.right] if type(node.op) in OPERATORS else None
    if isinstance(node, ast.UnaryOp):
        return [node.operand] if type(node.op) in SIGNS else None
    return node.args if isinstance(node, ast.Call) and _is_allowed_call(node) else None


def _is_allowed_call(node: ast.Call) -> bool:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    plain = not node.keywords and not any(isinstance(argument, ast.Starred) for argument in node.args)
    count = len(node.args)
    return name in FUNCTIONS and plain and (count >= 1 if name in VARIADIC else count == 1)


def _evaluate(node: ast.expr, values: Mapping[str, float]) -> float:
    """Return the value of a checked expression."""
    operands = [_evaluate(child, values) for child in _children(node) or []]
    match node:
        case ast.Constant(value=number):
            return float(number)  # type: ignore[arg-type] # checked
        case ast.Name(id=name):
            return values[name]
        case ast.BinOp(op=sign):
            return OPERATORS[type(sign)](*operands)
        case ast.UnaryOp(op=sign):
            return SIGNS[type(sign)](*operands)
        case ast.Call(func=ast.Name(id=name)):
            return FUNCTIONS[name](operands)
    raise AssertionError(node)
