"""Seeded mutations of files: bits, bytes and ranges of any file, values of JSON, quotes of tables."""

import json
import random
from collections.abc import Callable
from typing import Any

__all__ = ["damage", "mutate", "mutate_json", "mutate_json_lines", "mutate_table"]

# Bytes with a meaning in at least one format.
TOKENS = (
    b"\x00", b"\n", b"\r", b"\r\n", b'"', b'""', b"'", b",", b"\t", b";", b"\\", b"{", b"}", b"[", b"]", b"\xff",
    b"\xfe\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf0\x9f", b"\xe2\x80\xa8", b"\x1a", b"PAR1", b"ARROW1\x00\x00",
    b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"BZh9", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80",
    b"<!--", b"<p", b"</", b"&#x0;", b"&#1114112;", b"null", b"NaN", b"-1", b"1e999", b"9" * 40,
)  # fmt: skip
LONGEST_RANGE = 64
LARGEST_FILE = 1 << 20

# Values in place of others: wrong types, edges of numbers, text that UTF-8 or Arrow cannot hold, nesting.
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**32, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**40, 0.5, -0.0, 1e308,
    float("nan"), float("inf"), "", "x", "\ud800", "\x00", "a\nb", "\u202e", "../../x", "/dev/null", [], {}, [[]],
    {"": None}, [None], [0, ""], "x" * 5000,
)  # fmt: skip
DEEP_LEVELS = 2000


def mutate(data: bytes, draw: random.Random, donor: bytes = b"") -> bytes:
    """Return the data after one to three changes; splices take bytes of the donor."""
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        data = draw.choice(CHANGES)(data, draw, donor)
    return data[:LARGEST_FILE]


def damage(data: bytes, draw: random.Random) -> bytes:
    """Return the data after changes of its first two thirds that move no byte, so that footers stay intact."""
    end = len(data) * 2 // 3
    start = data[:end]
    for _ in range(draw.randrange(1, 4)):
        start = draw.choice((_flip_bit, _set_byte, _zero, _overwrite_number))(start, draw, b"")[:end]
    return start + data[end:]


def _span(data: bytes, draw: random.Random) -> tuple[int, int]:
    start = draw.randrange(len(data) + 1)
    return start, min(len(data), start + draw.randrange(1, LONGEST_RANGE))


def _flip_bit(data: bytes, draw: random.Random, donor: bytes) -> bytes:
    return _replace(data, draw, lambda byte: byte ^ 1 << draw.randrange(8))


def _set_byte(data: bytes, draw: random.Random, donor: bytes) -> bytes:
    return _replace(data, draw, lambda byte: draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256))))


def _replace(data: bytes, draw: random.Random, change: Callable[[int], int]) -> bytes:
    if not data:
        return bytes([change(0)])
    at = draw.randrange(len(data))
    return data[:at] + bytes([change(data[at])]) + data[at + 1 :]


def _truncate(data: bytes, draw: random.Random, donor: bytes) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _delete(data: bytes, draw: random.Random, donor: bytes) -> bytes:
    start, end = _span(data, draw)
    return data[:start] + data[end:]


def _insert(data: bytes, draw: random.Random, donor: bytes) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + draw.choice((draw.choice(TOKENS), draw.randbytes(draw.randrange(1, 9)))) + data[at:]


def _append(data: bytes, draw: random.Random, donor: bytes) -> bytes:
    return data + draw.choice((draw.choice(TOKENS), draw.randbytes(8), bytes(8), data[: draw.randrange(len(data) + 1)]))


def _duplicate(data: bytes, draw: random.Random, donor: bytes) -> bytes:
    start, end = _span(data, draw)
    return data[:end] + data[start:end] * draw.choice((1, 2, 50)) + data[end:]


def _zero(data: bytes, draw: random.Random, donor: bytes) -> bytes:
    start, end = _span(data, draw)
    return data[:start] + draw.choice((b"\x00", b"\xff")) * (end - start) + data[end:]


def _splice(data: bytes, draw: random.Random, donor: bytes) -> bytes:
    start, end = _span(donor or data, draw)
    at, until = _span(data, draw)
    return data[:at] + (donor or data)[start:end] + data[draw.choice((at, until)) :]


def _overwrite_number(data: bytes, draw: random.Random, donor: bytes) -> bytes:
    """Write a number of 2, 4 or 8 bytes at a multiple of its width, where binary formats have lengths and offsets."""
    width = draw.choice((2, 4, 8))
    at = draw.randrange(len(data) // width + 1) * width
    number = draw.choice(
        (0, 1, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1, draw.randrange(4096), len(data))
    )
    encoded: bytes = (number % 256**width).to_bytes(width, "little")
    return data[:at] + encoded + data[at + width :]


CHANGES = (
    _flip_bit, _flip_bit, _set_byte, _truncate, _delete, _insert, _append, _duplicate, _zero, _splice,
    _overwrite_number,
)  # fmt: skip


def mutate_json(value: Any, draw: random.Random) -> str:  # noqa: ANN401
    """Return the JSON of a value in which one value or key, at any depth, is another."""
    if draw.random() < 0.05:
        return "[" * DEEP_LEVELS + "]" * DEEP_LEVELS
    text = json.dumps(_changed(value, draw))
    return text.replace("Infinity", "1e999") if draw.random() < 0.5 else text


def _changed(value: Any, draw: random.Random) -> Any:  # noqa: ANN401
    if isinstance(value, dict) and value and draw.random() < 0.9:
        return _changed_object(value, draw)
    if isinstance(value, list) and value and draw.random() < 0.8:
        at = draw.randrange(len(value))
        middle = draw.choice(([_changed(value[at], draw)], [], [value[at], value[at]]))
        return [*value[:at], *middle, *value[at + 1 :]]
    return draw.choice(ODD_VALUES)


def _changed_object(value: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    key = draw.choice(list(value))
    kind = draw.random()
    if kind < 0.15:
        return {name: item for name, item in value.items() if name != key}
    if kind < 0.25:
        return {
            draw.choice(("", "x", "text", "id", "\ud800")) if name == key else name: item
            for name, item in value.items()
        }
    return {**value, key: _changed(value[key], draw)}


def mutate_json_lines(data: bytes, draw: random.Random) -> bytes:
    """Return JSON lines of which one to three are changed as JSON; those that are no JSON stay."""
    lines = data.splitlines()
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(lines))
        try:
            lines[at] = mutate_json(json.loads(lines[at]), draw).encode()
        except (RecursionError, ValueError):
            continue
    return b"\n".join(lines) + b"\n" * draw.randrange(2)


def mutate_table(data: bytes, draw: random.Random) -> bytes:
    """Return a delimited file with a field too many or too few, a quote that does not end, or other line ends."""
    lines = data.split(b"\n")
    at = draw.randrange(len(lines))
    line = lines[at]
    fields = line.split(b",")
    lines[at] = draw.choice(
        (
            line + b',"',
            b'"' + line,
            line + b",extra",
            b",".join(fields[:-1]),
            line.replace(b",", b'","'),
            line * 3,
            b"",
            b"\x00",
        )
    )
    return draw.choice((b"\n", b"\n", b"\r\n", b"\r")).join(lines)
