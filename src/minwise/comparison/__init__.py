"""Comparison of two texts: similarity, shared passages, page and terminal view."""
