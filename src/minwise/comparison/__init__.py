"""Comparison of two texts: similarity, shared passages, page and terminal view."""

from minwise.comparison.comparison import Comparison, compare

__all__ = ["Comparison", "compare"]
