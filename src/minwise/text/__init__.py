"""Text processing: reading texts, normalising them and cutting them into shingles."""

from minwise._kernel import UNICODE_VERSION
from minwise.text.shingling import Shingler, ShingleSets, ShingleSpans

# UNICODE_VERSION is the version of the Unicode tables in the kernel; every file that minwise writes records it.
__all__ = ["UNICODE_VERSION", "ShingleSets", "ShingleSpans", "Shingler"]
