"""Lines, sentences and paragraphs of a text by regular expressions, and which of them repeat.

The kernel decides at each character by the ones before it; it must find exactly these units.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from minwise.reference.text import WHITE_SPACE, character_properties

__all__ = ["RepeatedUnit", "repeated_units", "unit_starts"]

_BREAK = "(?:\r\n|[\n\r\x85\u2028\u2029])"
# Terminators that end a sentence before white space, and those that end it anyway.
_NARROW, _WIDE = "[.!?…‼⁇⁈⁉؟۔।॥．]", "[。！？｡]"
_CLOSING = "[)\\]}\"'’”»›」』】》〉〕）］｝｣＂＇]"
_CLOSING_BEFORE_SPACE = "[“‘«‹]"  # they close in some languages and open in others


class RepeatedUnit(NamedTuple):
    """Unit with the tokens of an earlier one.

    Attributes:
        document: Number of the document.
        unit: Index of the unit in it.
        other: Number of the document of the first occurrence.
        other_unit: Index of the unit there.
        occurrences: How often the unit occurs in the corpus.
    """

    document: int
    unit: int
    other: int
    other_unit: int
    occurrences: int


def unit_starts(text: str, unit: str) -> list[int]:
    r"""Return the position at which each line, sentence or paragraph starts; the first is 0.

    >>> unit_starts("One. Two?\nThree", "sentence")
    [0, 5, 10]
    """
    ends = {"line": _line_ends, "sentence": _sentence_ends, "paragraph": _paragraph_ends}[unit](text)
    return sorted({start for start in (0, *ends) if start < len(text)})


def repeated_units(
    documents: Sequence[Sequence[Sequence[str]]],
    size: int = 1,
    *,
    min_count: int = 2,
    order: Sequence[int] | None = None,
    references: int | None = None,
) -> list[RepeatedUnit]:
    """Return every unit that stands at an earlier position, by document and position.

    Args:
        documents: The units of each document, each as its tokens.
        size: Tokens of the shortest unit.
        min_count: How often a unit occurs at least.
        order: The documents in keep order; as given if None.
        references: Number of documents, the first in keep order, that alone can be the other side.

    >>> repeated_units([[["a", "b"], ["c"]], [["x"], ["c"]]])
    [RepeatedUnit(document=1, unit=1, other=0, other_unit=1, occurrences=2)]
    """
    ranked = list(range(len(documents)) if order is None else order)
    counts = Counter(tuple(tokens) for units in documents for tokens in units)
    first: dict[tuple[str, ...], tuple[int, int]] = {}
    repeats: list[RepeatedUnit] = []
    for rank, number in enumerate(ranked):
        for index, unit in enumerate(documents[number]):
            tokens = tuple(unit)
            if len(tokens) < size or counts[tokens] < min_count:
                continue
            if tokens in first and (references is None or rank >= references):
                repeats.append(RepeatedUnit(number, index, *first[tokens], counts[tokens]))
            elif tokens not in first and (references is None or rank < references):
                first[tokens] = (number, index)
    return sorted(repeats)


@cache
def _space() -> str:
    white = "".join(chr(code) for code, packed in enumerate(character_properties()) if packed & WHITE_SPACE)
    return f"[{re.escape(white)}]"


def _line_ends(text: str) -> Iterator[int]:
    return (found.end() for found in re.finditer(_BREAK, text))


def _paragraph_ends(text: str) -> Iterator[int]:
    spaces = re.finditer(f"{_space()}+", text)
    return (found.end() for found in spaces if len(re.findall(_BREAK, found[0])) >= 2)


def _sentence_ends(text: str) -> Iterator[int]:
    narrow = f"{_NARROW}(?:{_NARROW}|{_CLOSING}|{_CLOSING_BEFORE_SPACE})*"
    wide = f"{_WIDE}(?:{_WIDE}|{_NARROW}|{_CLOSING})*"
    ends = re.finditer(f"(?:{narrow})?{wide}{_space()}*|{narrow}{_space()}+", text)
    yield from (found.end() for found in ends)
    yield from _paragraph_ends(text)
