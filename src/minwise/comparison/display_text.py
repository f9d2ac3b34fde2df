"""Readable: texts as they were given in, texts that can be shown out, with their passages in code points."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from minwise._internal.html import INVISIBLE
from minwise.comparison.passages import Passage

__all__ = ["readable", "readable_passages", "visible"]

# What stands for a byte that is no text, as everywhere.
REPLACEMENT = "\ufffd"
# What would not be shown but obeyed: controls, and separators that end a line for some and not for others.
SHOWN_INSTEAD = INVISIBLE | {code: f"\u27e8U+{code:04X}\u27e9" for code in (0x200E, 0x200F, 0x2028, 0x2029)}
UNSEEN = re.compile(f"[{''.join(re.escape(chr(code)) for code in sorted(SHOWN_INSTEAD))}]")
SURROGATES = re.compile("[\ud800-\udfff]")


def readable(text: str | bytes) -> str:
    """The text itself; a byte that is no UTF-8 is one replacement character."""
    if isinstance(text, str):
        return SURROGATES.sub(REPLACEMENT, text)
    try:
        return text.decode()
    except UnicodeDecodeError:
        return SURROGATES.sub(REPLACEMENT, text.decode(errors="surrogateescape"))


def visible(text: str) -> str:
    """The text with a sign for each character that a terminal or a browser would obey; every line ends alike."""
    return text.replace("\r\n", "\n").translate(SHOWN_INSTEAD) if UNSEEN.search(text) else text


def readable_passages(
    left: str | bytes, right: str | bytes, passages: Sequence[Passage], *, in_bytes: bool
) -> tuple[str, str, list[Passage]]:
    """Both texts as they can be shown, and the passages in their code points.

    Args:
        left: The left text as it was compared.
        right: The right text.
        passages: What they share.
        in_bytes: Whether the passages count bytes, as those of ``byte`` shingles do.
    """
    shown = readable(left), readable(right)
    if not in_bytes or not passages:
        return *shown, list(passages)
    columns = np.array(passages, dtype=np.int64).T
    starts = [_bytes_before(text) for text in (left, right)]
    places = [
        np.searchsorted(starts[side], columns[2 * side + end], side="left" if end else "right") - (1 - end)
        for side in (0, 1)
        for end in (0, 1)
    ]
    return *shown, list(map(Passage, *(column.tolist() for column in (*places, columns[4] == 1))))


def _bytes_before(text: str | bytes) -> NDArray[np.int64]:
    """How many bytes stand before each code point of the readable text, and one more number: all of them."""
    decoded = text if isinstance(text, str) else text.decode(errors="surrogateescape")
    points = np.frombuffer(decoded.encode("utf-32-le", errors="surrogatepass"), dtype=np.uint32)
    widths = 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)
    widths[(points >= 0xD800) & (points < 0xE000)] = 1  # a byte that is no text
    return np.append(0, np.cumsum(widths))
