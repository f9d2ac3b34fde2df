"""Targets: bounds that measured figures should keep, and the tables that show both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a measurement should reach.

    Attributes:
        figure: Name of the figure.
        wanted: The bound.
        at_most: Whether the figure should stay below the bound, not above it.
    """

    figure: str
    wanted: float
    at_most: bool = False

    def verdict(self, value: float) -> str:
        """Return the bound and whether ``value`` keeps it."""
        met = value <= self.wanted if self.at_most else value >= self.wanted
        sign = "<=" if self.at_most else ">="
        return f"{self.figure} {sign} {self.wanted:g} {'met' if met else 'MISSED'}"


def figure_table(figures: Mapping[str, float], targets: Mapping[str, Target]) -> str:
    """Return a line per figure, with its target and whether that is met."""
    rows = [[name, f"{value:,.2f}", targets[name].verdict(value)] for name, value in figures.items()]
    return align_rows([["figure", "measured", "target"], *rows], words=1)


def align_rows(rows: Sequence[Sequence[str]], *, words: int) -> str:
    """Return rows as lines: the first ``words`` columns to the left, numbers to the right, the last as it is."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return "\n".join(align(cells, widths, words) for cells in rows)


def align(cells: Sequence[str], widths: Sequence[int], words: int) -> str:
    """Return one line."""
    columns = zip(cells, widths, strict=True)
    padded = [cell.ljust(width) if place < words else cell.rjust(width) for place, (cell, width) in enumerate(columns)]
    return "  ".join([*padded[:-1], cells[-1]]).rstrip()
