"""Formatting of numbers, times, names and lists of faults for people.

Rounding never turns a value into a limit it does not reach: 99.99 % is shown as ``> 99.9%``, not as ``100%``.
"""

import math
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timezone

from minwise._internal.html import code, escape

__all__ = [
    "CappedLines",
    "count_element",
    "format_bytes",
    "format_count",
    "format_duration",
    "format_percent",
    "format_probability",
    "format_similarity",
    "format_time",
    "plural",
    "render_code_spans",
    "shorten_middle",
]

MONTHS = "January February March April May June July August September October November December"
# Lines about one source; more than a summary has, where no quarantine file lists all faults.
MOST_LINES = 20
UNITS = ("B", "kB", "MB", "GB", "TB")


def format_count(value: float) -> str:
    """Format a count with thousands separators; a fraction below ten keeps one decimal.

    >>> format_count(12345), format_count(3.25), format_count(321.7)
    ('12,345', '3.2', '322')
    """
    return f"{value:.1f}" if value < 10 and value != round(value) else f"{value:,.0f}"


def count_element(value: int) -> str:
    """Return a ``data`` element that shows a formatted count and carries its plain value."""
    return f'<data value="{value}">{format_count(value)}</data>'


def plural(value: int, noun: str, plural_noun: str = "") -> str:
    """Format a count with its noun.

    >>> plural(1, "document"), plural(2000, "document"), plural(2, "copy", "copies")
    ('1 document', '2,000 documents', '2 copies')
    """
    return f"{value:,} {noun if value == 1 else plural_noun or noun + 's'}"


def format_percent(part: float, whole: float) -> str:
    """Format ``part / whole`` in per cent.

    >>> [format_percent(*share) for share in ((1, 3), (1, 9999), (9999, 10000), (2, 2), (0, 0))]
    ['33.3%', '< 0.1%', '> 99.9%', '100%', '–']
    """
    if not whole:
        return "–"
    percent = 100 * part / whole
    if percent in (0, 100):
        return f"{percent:.0f}%"
    return "< 0.1%" if percent < 0.1 else "> 99.9%" if percent > 99.9 else f"{percent:.1f}%"


def format_similarity(value: float, digits: int = 4) -> str:
    """Format a similarity, rounded down, so that a value below a threshold never looks as if it reached it.

    >>> [format_similarity(value) for value in (0.79999, 0.8, 1.0, 0.29)]
    ['0.7999', '0.8000', '1.0000', '0.2900']
    """
    scale = 10**digits
    # Rounding to nine digits first turns 0.29 · 10,000 = 2899.9999999999995 into 2900.
    return f"{math.floor(round(value * scale, 9)) / scale:.{digits}f}"


def format_probability(value: float) -> str:
    """Format a probability or recall, rounded; a value below 1 is never shown as 1.

    >>> [format_probability(value) for value in (0.99156, 0.999999, 1, 0.00012345)]
    ['0.9916', '> 0.9999', '1.0000', '0.000123']
    """
    if 0 < value < 0.001:
        return f"{value:.3g}"
    return "> 0.9999" if 0.99995 <= value < 1 else f"{value:.4f}"


def format_bytes(count: float) -> str:
    """Format a number of bytes with three digits and a decimal unit.

    >>> format_bytes(0), format_bytes(999), format_bytes(999_600), format_bytes(1_234_567)
    ('0 B', '999 B', '1 MB', '1.23 MB')
    """
    for unit in UNITS[:-1]:
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} {UNITS[-1]}" if count < 999.5 else f"{count:,.0f} {UNITS[-1]}"


def format_duration(seconds: float) -> str:
    """Format a duration with about three digits.

    >>> [format_duration(seconds) for seconds in (0.0004, 0.0123, 3.456, 75, 7500)]
    ['< 1 ms', '12 ms', '3.46 s', '1 min 15 s', '2 h 05 min']
    """
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms" if seconds >= 0.001 else "< 1 ms"
    if seconds < 59.95:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"


def format_time(timestamp: str) -> str:
    """Format an ISO 8601 timestamp in UTC; return any other text unchanged.

    >>> format_time("2026-11-16T04:40:00+02:00")
    '16 November 2026, 02:40 UTC'
    """
    try:
        time = datetime.fromisoformat(timestamp).astimezone(timezone.utc)
    except ValueError:
        return timestamp
    month = MONTHS.split()[time.month - 1]
    return f"{time.day} {month} {time.year}, {time:%H:%M} UTC"


def render_code_spans(text: str) -> str:
    """Escape a text and render its parts between backticks as ``code`` elements.

    >>> render_code_spans("`a<b` adds them")
    '<code>a&lt;b</code> adds them'
    """
    parts = text.split("`")
    return "".join(code(part) if number % 2 else escape(part) for number, part in enumerate(parts))


def shorten_middle(value: object, max_length: int = 160) -> str:
    """Escape a name; replace the middle of a longer one by an ellipsis and show the whole of it as a tooltip."""
    text = str(value)
    if len(text) <= max_length:
        return escape(text)
    half = max_length // 2
    return f'<span title="{escape(text)}">{escape(text[:half])}…{escape(text[-half:])}</span>'


class CappedLines:
    """Passes on the first lines about each source, and counts the others.

    >>> lines = CappedLines(print, most=1)
    >>> for row in range(3):
    ...     lines.add("a.jsonl", f"a.jsonl: row {row}: text is null")
    a.jsonl: row 0: text is null
    >>> lines.finish()
    … and 2 more in a.jsonl

    Args:
        write: Receives a line.
        most: Lines to pass on for each source.
    """

    def __init__(self, write: Callable[[str], None], most: int = MOST_LINES) -> None:
        self._write, self._most = write, most
        self._counts: Counter[str] = Counter()

    def add(self, source: str, line: str) -> None:
        """Pass on the line, or count it."""
        self._counts[source] += 1
        if self._counts[source] <= self._most:
            self._write(line)

    def finish(self) -> None:
        """Pass on how many lines were only counted, for each source."""
        for source, count in self._counts.items():
            if count > self._most:
                self._write(f"… and {count - self._most:,} more in {source}")
        self._counts.clear()
