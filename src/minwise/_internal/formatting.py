"""Wording: numbers in, how they are written on a page out. Nearly all is never called all, nor nearly none nothing."""

import math
from datetime import datetime, timezone

from minwise._internal.html import escape

__all__ = [
    "amount",
    "clipped",
    "cut",
    "duration",
    "moment",
    "number",
    "plural",
    "probability",
    "share",
    "size",
    "with_code",
]

MONTHS = "January February March April May June July August September October November December"
UNITS = ("B", "kB", "MB", "GB", "TB")


def amount(value: float) -> str:
    """A count with its thousands set apart: ``12,345``; a fraction keeps a digit below ten.

    >>> amount(12345), amount(3.25), amount(321.7)
    ('12,345', '3.2', '322')
    """
    return f"{value:.1f}" if value < 10 and value != round(value) else f"{value:,.0f}"


def number(value: int) -> str:
    """A count as an element that also carries its plain value."""
    return f'<data value="{value}">{amount(value)}</data>'


def plural(value: int, noun: str, many: str = "") -> str:
    """A count and what is counted.

    >>> plural(1, "document"), plural(2000, "document"), plural(2, "copy", "copies")
    ('1 document', '2,000 documents', '2 copies')
    """
    return f"{value:,} {noun if value == 1 else many or noun + 's'}"


def share(part: float, whole: float) -> str:
    """A part of a whole in per cent.

    >>> share(1, 3), share(1, 9999), share(9999, 10000), share(2, 2), share(0, 0)
    ('33.3%', '< 0.1%', '> 99.9%', '100%', '–')
    """
    if not whole:
        return "–"
    percent = 100 * part / whole
    if percent in (0, 100):
        return f"{percent:.0f}%"
    return "< 0.1%" if percent < 0.1 else "> 99.9%" if percent > 99.9 else f"{percent:.1f}%"


def cut(value: float, digits: int = 4) -> str:
    """A similarity or probability, rounded down: what does not reach a threshold does not look as if it did.

    >>> cut(0.79999), cut(0.8), cut(1.0), cut(0.29)
    ('0.7999', '0.8000', '1.0000', '0.2900')
    """
    scale = 10**digits
    # Nine digits take the 2899.9999999999995 out of 0.29 · 10,000.
    return f"{math.floor(round(value * scale, 9)) / scale:.{digits}f}"


def probability(value: float) -> str:
    """A probability or a recall, rounded; never a 1 that is none.

    >>> probability(0.99156), probability(0.999999), probability(1), probability(0.00012345)
    ('0.9916', '> 0.9999', '1.0000', '0.000123')
    """
    if 0 < value < 0.001:
        return f"{value:.3g}"
    return "> 0.9999" if 0.99995 <= value < 1 else f"{value:.4f}"


def size(count: float) -> str:
    """Bytes with three digits and a unit.

    >>> size(0), size(999), size(999_600), size(1_234_567)
    ('0 B', '999 B', '1 MB', '1.23 MB')
    """
    for unit in UNITS[:-1]:
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} {UNITS[-1]}" if count < 999.5 else f"{count:,.0f} {UNITS[-1]}"


def duration(seconds: float) -> str:
    """A stretch of time, to about three digits.

    >>> duration(0.0004), duration(0.0123), duration(3.456), duration(75), duration(7500)
    ('< 1 ms', '12 ms', '3.46 s', '1 min 15 s', '2 h 05 min')
    """
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms" if seconds >= 0.001 else "< 1 ms"
    if seconds < 59.95:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"


def moment(written: str) -> str:
    """A time of ISO 8601 as people write it, in UTC; as it is if it is none.

    >>> moment("2026-11-16T04:40:00+02:00")
    '16 November 2026, 02:40 UTC'
    """
    try:
        told = datetime.fromisoformat(written).astimezone(timezone.utc)
    except ValueError:
        return written
    month = MONTHS.split()[told.month - 1]
    return f"{told.day} {month} {told.year}, {told:%H:%M} UTC"


def with_code(text: str) -> str:
    """A sentence, escaped, with what stands between backticks as code.

    >>> with_code("`a<b` adds them")
    '<code>a&lt;b</code> adds them'
    """
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts))


def clipped(value: object, most: int = 160) -> str:
    """A name, escaped; of a very long one the beginning and the end, and all of it on pointing there."""
    text = str(value)
    if len(text) <= most:
        return escape(text)
    half = most // 2
    return f'<span title="{escape(text)}">{escape(text[:half])}…{escape(text[-half:])}</span>'
