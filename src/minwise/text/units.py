"""Units of a text: lines, sentences and paragraphs.

The kernel (``crates/kernel/src/units.rs``) defines them; every character is in one unit.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel

__all__ = ["UnitName", "unit_starts"]

UnitName = Literal["line", "sentence", "paragraph"]


def unit_starts(text: str, unit: UnitName) -> NDArray[np.int64]:
    """Return the code point at which each unit of a text starts; the first is 0."""
    return _kernel.unit_starts(text, unit).astype(np.int64)
