"""Comparison of two texts: similarity, shared passages, page and terminal view."""

from minwise.comparison.comparison import Comparison, compare
from minwise.comparison.passages import Passage

__all__ = ["Comparison", "Passage", "compare"]
