"""Cuts of a text of which some tokens are covered by repeated passages, written to be read.

The kernel reads a long text in pieces and never holds all tokens; it must find exactly these cuts.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from minwise.reference.text import TOKEN_CLASS, WHITE_SPACE, character_properties

__all__ = ["cut_text"]

MARK, STANDALONE = 2, 3
BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
TERMINATORS, WIDE_TERMINATORS = ".!?…‼⁇⁈⁉؟۔।॥．", "。！？｡"
CLOSERS = ")]}\"'’”»›“‘«‹」』】》〉〕）］｝｣＂＇"
# Units at the end of a run of which some may stay.
TAIL = 8

Span = tuple[int, int]


def cut_text(text: str, tokens: Sequence[Span], covered: Sequence[bool], snap: str | None = None) -> list[Span]:
    """Return the code points that are cut out of a text, ascending.

    Args:
        text: The text.
        tokens: Start and end of each token.
        covered: Whether each token is covered.
        snap: ``line`` or ``sentence`` to cut only whole ones.

    >>> cut_text("One. Two two. Three", [(0, 3), (5, 8), (9, 12), (14, 19)], [False, True, True, False])
    [(5, 14)]
    """
    units = _units(text, tokens, snap)
    flags = [all(covered[token] for token in unit) for unit in units]
    spans = [(tokens[unit[0]][0], max(tokens[token][1] for token in unit)) for unit in units]
    cuts: list[Span] = []
    for is_covered, group in groupby(range(len(units)), key=flags.__getitem__):
        if is_covered:
            run = list(group)
            before = spans[run[0] - 1][1] if run[0] else None
            after = spans[run[-1] + 1][0] if run[-1] + 1 < len(spans) else None
            cuts += _cut([spans[unit] for unit in run], text, before, after)
    return cuts


def _units(text: str, tokens: Sequence[Span], snap: str | None) -> list[list[int]]:
    """Return the tokens of each unit; tokens that share a character are in one."""
    units: list[list[int]] = []
    for number, (start, _) in enumerate(tokens):
        end = tokens[number - 1][1] if number else 0
        if not number or (start >= end and _starts_unit(text[end:start], snap)):
            units.append([])
        units[-1].append(number)
    return units


def _starts_unit(gap: str, snap: str | None) -> bool:
    breaks = len(BREAK.findall(gap))
    return snap is None or breaks > (snap == "sentence") or (snap == "sentence" and _ends_sentence(gap))


def _ends_sentence(gap: str) -> bool:
    after = False
    for letter in gap:
        if letter in WIDE_TERMINATORS or (after and _is_space(letter)):
            return True
        after = letter in TERMINATORS or (after and letter in CLOSERS)
    return False


def _cut(run: list[Span], text: str, before: int | None, after: int | None) -> Iterator[Span]:
    """Yield the cut of a run of units, the last of which stay if the words around it would become one."""
    for last in reversed(range(max(0, len(run) - TAIL), len(run))):
        found = _bounds(text, (run[0][0], run[last][1]), before, after)
        if found is not None:
            yield found
            return
        after = run[last][0]


def _bounds(text: str, run: Span, before: int | None, after: int | None) -> Span | None:
    """Return the cut of a run between the end of the token before it and the start of the token after it."""
    start, end = run
    if before is None and after is None:
        return 0, len(text)
    if before is None:
        leading = next((at for at in range(start) if not _is_space(text[at])), start)
        return leading, _middle(text, end, after or 0)[1]
    if after is None:
        trailing = next((at for at in range(len(text), end, -1) if not _is_space(text[at - 1])), end)
        return _middle(text, before, start)[0], trailing
    left, right = _middle(text, before, start), _middle(text, end, after)
    if left[0] == left[1] and right[0] == right[1]:
        return _without_space(text, run, before, after)
    fewer_breaks = len(BREAK.findall(text[before:start])) < len(BREAK.findall(text[end:after]))
    keeps_right = left[0] == left[1] or (right[0] < right[1] and fewer_breaks)
    return (left[0], right[0]) if keeps_right else (left[1], right[1])


def _without_space(text: str, run: Span, before: int, after: int) -> Span | None:
    """Return the cut of a run without white space around it; None if the words around it would become one."""
    if before < run[0]:
        return run[0], after
    letter = next(letter for letter in reversed(text[:before]) if _kind(letter) != MARK)
    is_joined = run[1] == after and STANDALONE not in (_kind(letter), _kind(text[after]))
    return None if is_joined else run


def _middle(text: str, start: int, end: int) -> Span:
    """Return the middle of a gap: from its first white space to the last line break, or to the last white space."""
    spaces = [at for at in range(start, end) if _is_space(text[at])]
    if not spaces:
        return end, end
    breaks = [start + found.end() for found in BREAK.finditer(text[start:end])]
    return spaces[0], breaks[-1] if breaks else spaces[-1] + 1


def _kind(letter: str) -> int:
    return character_properties()[ord(letter)] & TOKEN_CLASS


def _is_space(letter: str) -> bool:
    return bool(character_properties()[ord(letter)] & WHITE_SPACE)
