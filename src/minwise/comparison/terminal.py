"""Two texts in a terminal: rows of pieces in, two columns out, or one below the other where there is no room."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from typing import NamedTuple, Protocol

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style

__all__ = ["print_texts"]

# Below this a column is too narrow for text.
LEAST_WIDTH = 70
BETWEEN = " │ "
# Colour is never the only sign: what is in one text only is bold, and what has moved is underlined.
STYLES = {
    "shared": Style.parse("green"),
    "moved": Style.parse("magenta underline"),
    "only": Style.parse("bold"),
    "gap": Style.parse("dim italic"),
}
# Where nothing can be styled.
MARKS = {"shared": ("⟦", "⟧"), "moved": ("⟪", "⟫"), "only": ("", ""), "gap": ("", "")}
QUIET, BOLD = Style.parse("dim"), Style.parse("bold")
WORDS = re.compile(r"\t| +|[^ \t]+")
TAB = 4
# A width that no line reaches.
NEVER = 2**62

Line = list[Segment]


class Piece(Protocol):
    """A stretch of text of one kind."""

    @property
    def text(self) -> str: ...
    @property
    def kind(self) -> str: ...


class Row(Protocol):
    """What stands beside each other."""

    @property
    def left(self) -> Sequence[Piece]: ...
    @property
    def right(self) -> Sequence[Piece]: ...


class _Words(NamedTuple):
    """A piece of our own words."""

    text: str
    kind: str


def print_texts(console: Console, names: tuple[str, str], rows: Iterable[Row]) -> None:
    """Prints both texts, below a line that says what the marks mean."""
    styled = console.is_terminal and console.color_system is not None
    width = console.width if console.is_terminal else None  # into a pipe nothing is wrapped
    if width is not None and width >= LEAST_WIDTH:
        lines = _in_columns(rows, names, width, styled)
    else:
        lines = _one_below_the_other(rows, names, width, styled)
    shown = chain([[]], _wrapped(_legend(styled), width), [[]], lines)
    ended = chain.from_iterable([*line, Segment.line()] for line in shown)
    console.print(Segments(list(ended)), end="", crop=False)


def _legend(styled: bool) -> Line:
    words = {"shared": "in both texts", "moved": "in both, at another place", "only": "in one text only"}
    marked = [_pieces([_Words(text, kind)], styled) for kind, text in words.items()]
    return [segment for pieces in marked for segment in (*pieces, Segment("   "))][:-1]


def _in_columns(rows: Iterable[Row], names: tuple[str, str], width: int, styled: bool) -> Iterator[Line]:
    """Two columns with a line between them; what is shorter is filled up."""
    column = (width - len(BETWEEN)) // 2
    between = Segment(BETWEEN, QUIET if styled else None)
    head = [[Segment(name, BOLD if styled else None)] for name in names]
    cells = ([_pieces(row.left, styled), _pieces(row.right, styled)] for row in rows)
    for pair in chain([head], cells):
        wrapped = (_wrapped(cell, column) for cell in pair)
        for left, right in zip_longest(*wrapped, fillvalue=()):
            missing = column - sum(segment.cell_length for segment in left)
            yield [*left, Segment(" " * missing), between, *right]


def _one_below_the_other(
    rows: Iterable[Row], names: tuple[str, str], width: int | None, styled: bool
) -> Iterator[Line]:
    """A line of the left text has a < before it, one of the right a >; what is the same in both is shown once."""
    yield [Segment("< "), Segment(names[0], BOLD if styled else None)]
    yield [Segment("> "), Segment(names[1], BOLD if styled else None)]
    for row in rows:
        sides = (("  ", row.left),) if row.left == row.right else (("< ", row.left), ("> ", row.right))
        for sign, pieces in sides:
            for line in _wrapped(_pieces(pieces, styled), width and width - len(sign)) if pieces else ():
                yield [Segment(sign), *line]


def _pieces(pieces: Sequence[Piece], styled: bool) -> Line:
    """Pieces with their style, or with marks around them on every line."""
    if styled:
        return [Segment(piece.text, STYLES[piece.kind]) for piece in pieces]
    return [Segment(_marked(piece)) for piece in pieces]


def _marked(piece: Piece) -> str:
    before, after = MARKS[piece.kind]
    lines = piece.text.split("\n")
    return "\n".join(f"{before}{line}{after}" if line.strip() else line for line in lines)


def _wrapped(segments: Line, width: int | None) -> list[Line]:
    """The lines of a text, none wider than ``width`` cells; an end of line at the very end adds none."""
    wrapping = _Wrapping(width)
    for segment in segments:
        wrapping.add(segment.text, segment.style)
    if len(wrapping.lines) > 1 and not wrapping.lines[-1]:
        wrapping.lines.pop()
    return wrapping.lines


class _Wrapping:
    """Lines as they fill up."""

    def __init__(self, width: int | None) -> None:
        self.lines: list[Line] = [[]]
        self._width = NEVER if width is None else width
        self._column = 0

    def add(self, text: str, style: Style | None) -> None:
        """Adds what may have several lines."""
        for number, line in enumerate(text.split("\n")):
            if number:
                self._break()
            if "\t" not in line and (line.isascii() or self._width == NEVER):
                self._fill(line, style)
            else:
                for word in WORDS.findall(line):
                    self._add_word(word, style)

    def _fill(self, text: str, style: Style | None) -> None:
        """Adds letters of one cell each, line by line: a text of megabytes has too many words for one at a time."""
        while len(text) > (room := self._width - self._column):
            cut = text.rfind(" ", 0, room + 1)
            if cut < 0 and self._column and text.find(" ", 0, self._width + 1) < 0 < len(text) - self._width:
                cut = room  # a word too long for any line
            elif cut < 0:
                cut = 0 if self._column else self._width
            self._put(text[:cut], cut, style)
            self._break()
            text = text[cut:].lstrip(" ")
        self._put(text, len(text), style)

    def _add_word(self, word: str, style: Style | None) -> None:
        """Adds a word, or blanks, of letters of any width."""
        if word == "\t":
            word = " " * (TAB - self._column % TAB)
        cells = cell_len(word)
        if self._column + cells <= self._width:
            self._put(word, cells, style)
        elif word.isspace():  # blanks at the end of a line are not carried over
            self._break()
        elif cells <= self._width and cells <= len(word):
            self._break()
            self._put(word, cells, style)
        else:
            self._cut(word, style)

    def _cut(self, word: str, style: Style | None) -> None:
        """Adds a word that is too long for any line, or of wide letters, which need no blanks between them."""
        if self._width - self._column < 2:
            self._break()
        first = chop_cells(word, self._width - self._column)[0]
        self._put(first, cell_len(first), style)
        for part in chop_cells(word[len(first) :], self._width) if len(first) < len(word) else ():
            self._break()
            self._put(part, cell_len(part), style)

    def _break(self) -> None:
        self.lines.append([])
        self._column = 0

    def _put(self, text: str, cells: int, style: Style | None) -> None:
        """Adds to the line; neighbours of one style are one segment."""
        line = self.lines[-1]
        if line and line[-1].style is style:
            line[-1] = Segment(line[-1].text + text, style)
        elif text:
            line.append(Segment(text, style))
        self._column += cells
