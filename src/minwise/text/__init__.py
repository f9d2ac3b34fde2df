"""Text processing: reading texts, normalising them and cutting them into shingles."""

from minwise.text.shingling import Shingler, ShingleSets, ShingleSpans

__all__ = ["ShingleSets", "ShingleSpans", "Shingler"]
