"""Limits: how much a page shows, and from where on it warns. Whoever fills it keeps to the same numbers."""

__all__ = ["MANY_DOCUMENTS", "SHOWN_CLUSTERS", "SHOWN_MEMBERS", "SHOWN_PAIRS"]

# A corpus from which on one cluster of more than a hundredth of it is worth a warning.
MANY_DOCUMENTS = 1000
# Of how many clusters texts are shown, of how many members beside the kept one, and of how many pairs.
SHOWN_CLUSTERS = 10
SHOWN_MEMBERS = 3
SHOWN_PAIRS = 10
