"""Performance targets of measured figures, and plain-text tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A bound that a figure should keep.

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
    """Return a line per figure, with its target and whether it is met."""
    rows = [[name, f"{value:,.2f}", targets[name].verdict(value)] for name, value in figures.items()]
    return align_rows([["figure", "measured", "target"], *rows], text_columns=1)


def align_rows(rows: Sequence[Sequence[str]], *, text_columns: int) -> str:
    """Return rows as lines: the first ``text_columns`` aligned left, the others right, the last one not padded."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return "\n".join(align(cells, widths, text_columns) for cells in rows)


def align(cells: Sequence[str], widths: Sequence[int], text_columns: int) -> str:
    """Return one line."""
    columns = zip(cells, widths, strict=True)
    padded = [
        cell.ljust(width) if number < text_columns else cell.rjust(width)
        for number, (cell, width) in enumerate(columns)
    ]
    return "  ".join([*padded[:-1], cells[-1]]).rstrip()
