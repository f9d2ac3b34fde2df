"""Normalise: a text in, the text that is cut into tokens out (DESIGN, section 3, "Text → tokens").

Five of the six steps rewrite a piece of text without looking at its neighbours, as long as the piece is a whole
normalisation segment: a character that starts one, and all that composes with it. So the same code serves the whole
text (`normalise`) and the text segment by segment (`place`), which is how each character of the result knows where it
came from.

What a character *is* comes from the kernel's tables, for Python's own may be of another Unicode version; only NFKC,
NFD and NFC are Python's.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

__all__ = ["Normalisation", "Placed", "character_properties", "normalise", "place"]

# Bits of a character's properties, as the kernel exports them.
TOKEN_CLASS = 0x03
WHITE_SPACE = 0x04
PUNCTUATION_OR_SYMBOL = 0x08
DECIMAL_DIGIT = 0x10
STARTS_SEGMENT = 0x20


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalisation:
    """Which steps are taken, in this order.

    Attributes:
        nfkc: Write compatibility variants (ﬁ, Ａ, ①) alike and compose (NFKC).
        strip_accents: Drop U+0300–U+036F from the canonical decomposition, and recompose.
        lowercase: Lower-case each character by itself: a Greek sigma is σ at the end of a word too.
        strip_punctuation: Drop punctuation and symbols (P*, S*).
        mask_digits: Write every decimal digit (Nd) as 0.
        collapse_whitespace: Write a run of white space as one space, and none at the ends.
    """

    nfkc: bool = True
    strip_accents: bool = False
    lowercase: bool = True
    strip_punctuation: bool = False
    mask_digits: bool = False
    collapse_whitespace: bool = True


class Placed(NamedTuple):
    """A character of the normalised text, and the code points of the original text it stands for."""

    character: str
    start: int
    end: int


def normalise(text: str, **normalisation: bool) -> str:
    r"""The text after the steps of `Normalisation`, whose attributes are the keywords.

    >>> normalise("  Ｈello,\tWORLD 42 ", mask_digits=True)
    'hello, world 00'
    """
    steps = Normalisation(**normalisation)
    text = _rewrite(text, steps)
    return _collapse(text) if steps.collapse_whitespace else text


def place(text: str, **normalisation: bool) -> list[Placed]:
    r"""The characters of `normalise`, each with the piece of the original text it came from.

    That piece is a normalisation segment, or a single character when nothing composes (``nfkc`` and ``strip_accents``
    both off); a collapsed space stands for its whole run of white space.

    >>> [tuple(placed) for placed in place("e\u0301 \n!")]
    [('é', 0, 2), (' ', 2, 4), ('!', 4, 5)]
    """
    steps = Normalisation(**normalisation)
    placed = [
        Placed(character, start, end)
        for start, end in _segments(text, composing=steps.nfkc or steps.strip_accents)
        for character in _rewrite(text[start:end], steps)
    ]
    return list(_collapse_placed(placed)) if steps.collapse_whitespace else placed


@cache
def character_properties() -> bytes:
    """One byte of properties for each of the 0x110000 code points, from the kernel."""
    from minwise import _kernel

    return _kernel.character_properties()


@cache
def lowercase_table() -> dict[int, str]:
    """Code points that differ from their lower case, with that lower case, from the kernel."""
    from minwise import _kernel

    return _kernel.lowercase_table()


def _rewrite(text: str, steps: Normalisation) -> str:
    if steps.nfkc:
        text = unicodedata.normalize("NFKC", text)
    if steps.strip_accents:
        bare = "".join(character for character in unicodedata.normalize("NFD", text) if not _is_accent(character))
        text = unicodedata.normalize("NFC", bare)
    if steps.lowercase:
        text = text.translate(lowercase_table())
    if steps.strip_punctuation:
        text = "".join(character for character in text if not _has(character, PUNCTUATION_OR_SYMBOL))
    if steps.mask_digits:
        text = "".join("0" if _has(character, DECIMAL_DIGIT) else character for character in text)
    return text


def _collapse(text: str) -> str:
    spaced = "".join(" " if _has(character, WHITE_SPACE) else character for character in text)
    return " ".join(part for part in spaced.split(" ") if part)


def _collapse_placed(placed: list[Placed]) -> Iterator[Placed]:
    run: list[Placed] = []
    begun = False
    for item in placed:
        if _has(item.character, WHITE_SPACE):
            run.append(item)
            continue
        if run and begun:
            yield Placed(" ", run[0].start, run[-1].end)
        run, begun = [], True
        yield item


def _segments(text: str, *, composing: bool) -> list[tuple[int, int]]:
    starts = [i for i, character in enumerate(text) if i == 0 or not composing or _has(character, STARTS_SEGMENT)]
    return list(zip(starts, [*starts[1:], len(text)], strict=True)) if text else []


def _is_accent(character: str) -> bool:
    return "\u0300" <= character <= "\u036f"


def _has(character: str, flag: int) -> bool:
    return bool(character_properties()[ord(character)] & flag)
