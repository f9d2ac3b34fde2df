"""Charts: numbers in, inline SVG out that follows the width of the page and its colours.

The picture is the plot itself, as wide as there is room. Marks stand at percentages of it, so they move with the
width while words keep their size; the numbers of the axes hang over its edges, where the style leaves a margin.
Every chart has a title and a description for those who do not see it. All words that come in are escaped here.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from minwise._internal.html import escape

__all__ = ["Bar", "Tick", "bars", "chart", "even_ticks", "line_at", "log_height", "log_ticks", "share_bar", "with_bar"]

# The least height of a bar, of the whole: one pair among millions is still to be seen.
LEAST_HEIGHT = 0.012
# How far below one the logarithmic axis begins, in powers of ten: a bar of one has a height, too.
BELOW_ONE = 0.35


class Tick(NamedTuple):
    """A number on an axis: where from 0 to 1, and what is written there."""

    place: float
    words: str


class Bar(NamedTuple):
    """A bar: where it begins and ends and how high it is, from 0 to 1; its look, and its words when pointed at."""

    start: float
    end: float
    height: float
    style: str
    words: str


def chart(
    name: str,
    title: str,
    description: str,
    marks: Iterable[str],
    *,
    across: Sequence[Tick],
    up: Sequence[Tick],
    across_label: str,
    up_label: str,
) -> str:
    """A chart with its axes. ``name`` is ours and the only one on the page; ``marks`` are markup from here."""
    lines = [f'<line class="grid" x1="0" x2="100%" y1="{_down(tick.place)}" y2="{_down(tick.place)}"/>' for tick in up]
    numbers = [
        f'<text x="0" dx="-8" y="{_down(tick.place)}" dy="4" class="up">{escape(tick.words)}</text>' for tick in up
    ]
    numbers += [
        f'<text x="{_percent(tick.place)}" y="100%" dy="20" class="across">{escape(tick.words)}</text>'
        for tick in across
    ]
    return (
        f'<div class="chart" id="{name}"><p class="axis-name" aria-hidden="true">{escape(up_label)}</p>'
        f'<svg class="plot" role="img" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(description)}</desc>'
        f"{''.join(lines)}{''.join(marks)}"
        f'<line class="axis" x1="0" x2="100%" y1="100%" y2="100%"/>{"".join(numbers)}</svg>'
        f'<p class="axis-name across" aria-hidden="true">{escape(across_label)}</p></div>'
    )


def bars(given: Iterable[Bar]) -> list[str]:
    """The bars that are higher than nothing."""
    return [_bar(bar) for bar in given if bar.height > 0]


def line_at(place: float, words: str, style: str = "threshold") -> list[str]:
    """A line from top to bottom, with words above it that stay inside the plot."""
    x, side = _percent(place), "end" if place > 0.6 else "start" if place < 0.4 else "middle"
    return [
        f'<line class="{style}" x1="{x}" x2="{x}" y1="-6" y2="100%"/>',
        f'<text class="{style}-words {side}" x="{x}" y="-12">{escape(words)}</text>',
    ]


def even_ticks(most: float) -> list[Tick]:
    """Three to six round whole numbers from 0 up to ``most``, at their share of it.

    >>> [tick.words for tick in even_ticks(7)], [tick.words for tick in even_ticks(1234)]
    (['0', '2', '4', '6'], ['0', '500', '1,000'])
    """
    power = 10.0 ** math.floor(math.log10(max(most, 1)))
    step = next(one for part in (0.2, 0.5, 1, 2, 5) if (one := max(1.0, part * power)) * 5 >= most)
    return [
        Tick(number * step / max(most, 1), f"{number * step:,.0f}") for number in range(int(most / step + 1e-9) + 1)
    ]


def log_height(count: float, most: float) -> float:
    """How high a count stands on a logarithmic axis up to ``most``, from 0 to 1; nothing stands at 0.

    >>> log_height(0, 100), log_height(100, 100), 0 < log_height(1, 100) < 0.2
    (0.0, 1.0, True)
    """
    if count <= 0:
        return 0.0
    return max(0.0, (math.log10(count) + BELOW_ONE) / (math.log10(max(most, 1)) + BELOW_ONE))


def log_ticks(most: float) -> list[Tick]:
    """1, 10, 100 … up to ``most``, at most six of them; 2 and 5 as well where there are few.

    >>> [tick.words for tick in log_ticks(7)], [tick.words for tick in log_ticks(12_345)]
    (['1', '2', '5'], ['1', '10', '100', '1,000', '10,000'])
    """
    powers = range(math.floor(math.log10(max(most, 1)) + 1e-9) + 1)
    every = math.ceil(len(powers) / 6)
    places = [part * 10**power for power in powers[::every] for part in ((1, 2, 5) if len(powers) < 3 else (1,))]
    return [Tick(log_height(place, most), f"{place:,}") for place in places if place <= max(most, 1)]


def share_bar(*parts: tuple[float, str], style: str = "share-bar") -> str:
    """A lying bar of one or more parts, each a share of the whole and a look. The numbers are told beside it."""
    drawn, start = [], 0.0
    for part, look in parts:
        if part > 0:
            drawn.append(f'<rect class="{look}" x="{_percent(start)}" width="{_percent(part)}" height="100%"/>')
        start += part
    return f'<svg class="{style}" aria-hidden="true">{"".join(drawn)}</svg>'


def with_bar(part: float, look: str, words: str) -> str:
    """A small bar with its number beside it, for a cell of a table."""
    return f'<span class="with-bar">{share_bar((part, look))}<span>{escape(words)}</span></span>'


def _bar(bar: Bar) -> str:
    height = max(bar.height, LEAST_HEIGHT)
    return (
        f'<rect class="{bar.style}" x="{_percent(bar.start)}" width="{_percent(bar.end - bar.start)}" '
        f'y="{_down(height)}" height="{_percent(height)}"><title>{escape(bar.words)}</title></rect>'
    )


def _percent(place: float) -> str:
    return f"{100 * place:.3f}%"


def _down(height: float) -> str:
    """Where a height is, counted from the top as SVG does."""
    return _percent(1 - height)
