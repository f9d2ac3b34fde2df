"""Terminal view of a comparison: two columns, or one text below the other in a narrow terminal or a pipe."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style

from minwise.comparison.alignment import AlignedRow, Piece

__all__ = ["print_differences", "print_texts"]

# Minimum width of a terminal for two columns.
LEAST_WIDTH = 70
COLUMN_SEPARATOR = " │ "
# Colour is never the only difference: text in one document only is bold, and moved text is underlined.
STYLES = {
    "shared": Style.parse("green"),
    "moved": Style.parse("magenta underline"),
    "only": Style.parse("bold"),
    "common": Style.null(),
    "gap": Style.parse("dim italic"),
}
# Marks for output without styles.
MARKS = {"shared": ("⟦", "⟧"), "moved": ("⟪", "⟫"), "only": ("", ""), "common": ("", ""), "gap": ("", "")}
QUIET, BOLD = Style.parse("dim"), Style.parse("bold")
WORDS = re.compile(r"\t| +|[^ \t]+")
TAB = 4
BLANKS = re.compile(r"\s+")
# Characters of a shared passage that are shown before and after a difference.
CONTEXT = 24
# Width of lines that are not wrapped.
UNLIMITED = 2**62

Line = list[Segment]


def print_texts(console: Console, names: tuple[str, str], rows: Iterable[AlignedRow]) -> None:
    """Print a legend of the marks and both texts.

    Args:
        console: Where to print. Styles and width follow from it; lines in a pipe are not wrapped.
        names: Names of the texts.
        rows: The aligned rows of the texts.
    """
    styled = console.is_terminal and console.color_system is not None
    width = console.width if console.is_terminal else None  # lines in a pipe are not wrapped
    if width is not None and width >= LEAST_WIDTH:
        lines = _in_columns(rows, names, width, styled)
    else:
        lines = _interleaved(rows, names, width, styled)
    shown = chain([[]], _wrap(_legend(styled), width), [[]], lines)
    ended = chain.from_iterable([*line, Segment.line()] for line in shown)
    console.print(Segments(list(ended)), end="", crop=False)


def print_differences(console: Console, rows: Iterable[AlignedRow], *, max_chars: int) -> None:
    """Print the part of both texts around their first differences, in a few lines without a legend.

    Lines start with < for the left text, > for the right one, or = if both texts are the same after normalisation.

    Args:
        console: Where to print. Styles and width follow from it; lines in a pipe are not wrapped.
        rows: The aligned rows of the texts.
        max_chars: Approximate number of characters to print of each text.
    """
    styled = console.is_terminal and console.color_system is not None
    width = console.width if console.is_terminal else None
    for sign, pieces in _first_difference(list(rows), max_chars):
        for number, line in enumerate(_wrap(_segments(pieces, styled), width and width - len(sign))):
            console.print(Segments([Segment("    " if number else sign), *line, Segment.line()]), end="", crop=False)


def _first_difference(rows: list[AlignedRow], max_chars: int) -> Iterator[tuple[str, list[Piece]]]:
    """Yield the sides of the first row whose texts differ; the start of the text if none do."""
    for row in rows:
        if row.left != row.right and any(piece.kind in ("only", "moved") for piece in (*row.left, *row.right)):
            yield "  < ", [*_abbreviate(row.left, max_chars)]
            yield "  > ", [*_abbreviate(row.right, max_chars)]
            return
    text = BLANKS.sub(" ", "".join(piece.text for row in rows[:1] for piece in row.left))
    yield "  = ", [Piece(text if len(text) <= max_chars else f"{text[:max_chars]}…", "shared")]


def _abbreviate(pieces: Sequence[Piece], max_chars: int) -> Iterator[Piece]:
    """Yield pieces on one line, with the middle of long shared passages left out, up to a number of characters."""
    for number, piece in enumerate(pieces):
        text = BLANKS.sub(" ", piece.text)
        if piece.kind == "shared" and len(text) > 2 * CONTEXT:
            before = text[:CONTEXT] if number or len(pieces) == 1 else ""
            after = text[-CONTEXT:] if number < len(pieces) - 1 or len(pieces) == 1 else ""
            text = f"{before}…{after}"
        cut = text if len(text) <= max_chars else f"{text[:max_chars]}…"
        yield Piece("…" if piece.kind == "gap" else cut, piece.kind)
        max_chars -= len(text)
        if max_chars <= 0:
            return


def _legend(styled: bool) -> Line:
    labels = {"shared": "in both texts", "moved": "in both, at another position", "only": "in one text only"}
    marked = [_segments([Piece(text, kind)], styled) for kind, text in labels.items()]
    return [segment for pieces in marked for segment in (*pieces, Segment("   "))][:-1]


def _in_columns(rows: Iterable[AlignedRow], names: tuple[str, str], width: int, styled: bool) -> Iterator[Line]:
    """Yield two columns with a line between them; the shorter side is padded."""
    column = (width - len(COLUMN_SEPARATOR)) // 2
    between = Segment(COLUMN_SEPARATOR, QUIET if styled else None)
    head = [[Segment(name, BOLD if styled else None)] for name in names]
    cells = ([_segments(row.left, styled), _segments(row.right, styled)] for row in rows)
    for pair in chain([head], cells):
        wrapped = (_wrap(cell, column) for cell in pair)
        for left, right in zip_longest(*wrapped, fillvalue=()):
            missing = column - sum(segment.cell_length for segment in left)
            yield [*left, Segment(" " * missing), between, *right]


def _interleaved(rows: Iterable[AlignedRow], names: tuple[str, str], width: int | None, styled: bool) -> Iterator[Line]:
    """Yield lines that start with < for the left text and > for the right one; equal rows are shown once."""
    yield [Segment("< "), Segment(names[0], BOLD if styled else None)]
    yield [Segment("> "), Segment(names[1], BOLD if styled else None)]
    for row in rows:
        sides = (("  ", row.left),) if row.left == row.right else (("< ", row.left), ("> ", row.right))
        for sign, pieces in sides:
            for line in _wrap(_segments(pieces, styled), width and width - len(sign)) if pieces else ():
                yield [Segment(sign), *line]


def _segments(pieces: Sequence[Piece], styled: bool) -> Line:
    """Return pieces with their style, or with marks around each of their lines."""
    if styled:
        return [Segment(piece.text, STYLES[piece.kind]) for piece in pieces]
    return [Segment(_marked(piece)) for piece in pieces]


def _marked(piece: Piece) -> str:
    before, after = MARKS[piece.kind]
    lines = piece.text.split("\n")
    return "\n".join(f"{before}{line}{after}" if line.strip() else line for line in lines)


def _wrap(segments: Line, width: int | None) -> list[Line]:
    """Return the lines of a text, none wider than ``width`` cells; a line feed at the end adds no line."""
    wrapping = _LineWrapper(width)
    for segment in segments:
        wrapping.add(segment.text, segment.style)
    if len(wrapping.lines) > 1 and not wrapping.lines[-1]:
        wrapping.lines.pop()
    return wrapping.lines


class _LineWrapper:
    """Breaks text into lines of a width in cells.

    Args:
        width: Maximum width; None for no limit.
    """

    def __init__(self, width: int | None) -> None:
        self.lines: list[Line] = [[]]
        self._width = UNLIMITED if width is None else width
        self._column = 0

    def add(self, text: str, style: Style | None) -> None:
        """Add a text, which may have several lines."""
        for number, line in enumerate(text.split("\n")):
            if number:
                self._break()
            if "\t" not in line and (line.isascii() or self._width == UNLIMITED):
                self._fill(line, style)
            else:
                for word in WORDS.findall(line):
                    self._add_word(word, style)

    def _fill(self, text: str, style: Style | None) -> None:
        """Add characters of one cell each, line by line; a text of megabytes has too many words to add them singly."""
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
        """Add a word, or blanks, with characters of any width."""
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
        """Split and add a word that is longer than a line, or of wide characters, which have no blanks between them."""
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
        """Append to the line; adjacent text of the same style is one segment."""
        line = self.lines[-1]
        if line and line[-1].style is style:
            line[-1] = Segment(line[-1].text + text, style)
        elif text:
            line.append(Segment(text, style))
        self._column += cells
