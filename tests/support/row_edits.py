"""Edits of kept rows that a test decides, and an oracle that applies them to Python strings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise.inputs.row_edits import EditedRows

# First code point of a cut, and one past the last.
Cut = tuple[int, int]
MARKS = pa.schema([("flag", pa.bool_()), ("note", pa.string())])


@dataclass(frozen=True)
class FixedEdits:
    """Edits with given cuts, and values that follow from the row number.

    Attributes:
        cuts: The cuts of each row that has any.
        text: The text columns.
        added: The added columns.
        asked: The rows of each call so far.
    """

    cuts: Mapping[int, Sequence[Cut]] = field(default_factory=dict)
    text: tuple[str, ...] = ("text",)
    added: pa.Schema = field(default_factory=lambda: pa.schema([]))
    asked: list[list[int]] = field(default_factory=list)

    def of_rows(self, rows: NDArray[np.int64]) -> EditedRows:
        """Return the edits of rows."""
        self.asked.append(rows.tolist())
        cuts = [(row, *cut) for row in rows.tolist() for cut in self.cuts.get(row, ())]
        columns = np.array(cuts, dtype=np.int64).reshape(-1, 3)
        values = [
            pa.array([mark(row)[name] for row in rows.tolist()], self.added.field(name).type) for name in self.names
        ]
        numbers, starts, ends = np.ascontiguousarray(columns.T)
        return EditedRows(numbers, starts, ends, values)

    @property
    def names(self) -> list[str]:
        """The names of the added columns."""
        return list(self.added.names)


def mark(row: int) -> dict[str, Any]:
    """Return the values of the columns ``MARKS`` for a row; some are null, and some need quotation marks."""
    notes = (None, f'row "{row}", marked', "é\n", "plain")
    return {"flag": row % 2 == 0, "note": notes[row % 4]}


def cut_parts(parts: Sequence[str], cuts: Sequence[Cut]) -> list[str]:
    """Return the parts of a text, joined by line breaks, without the cuts; each break stays."""
    removed = {point for start, end in cuts for point in range(start, end)}
    left, point = [], 0
    for part in parts:
        left.append("".join(letter for at, letter in enumerate(part, point) if at not in removed))
        point += len(part) + 1
    return left
