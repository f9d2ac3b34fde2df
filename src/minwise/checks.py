"""Validation of settings and arguments shared by several modules.

Every function returns the value converted to its plain Python type, or raises an error that names the setting.
"""

import codecs
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from operator import index
from os import PathLike
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minwise.errors import ConfigError, InputError

__all__ = [
    "MAX_LEVELS",
    "check_choice",
    "check_delimiter",
    "check_document_number",
    "check_encoding",
    "check_integer",
    "check_on_error",
    "check_pairs",
    "check_path",
    "check_raised_threshold",
    "check_seed",
    "check_setting_names",
    "check_threads",
    "check_type",
    "is_nested_too_deep",
    "show",
]

# Encodings of Python that are not those of a text file.
OTHER_CODECS = ("idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7")

# Levels of lists and objects that a value may have. orjson writes 254, and a value is written within others.
MAX_LEVELS = 200

# Characters of a value that an error message quotes.
MAX_SHOWN = 60

Choice = TypeVar("Choice")
Kind = TypeVar("Kind")


def show(value: object) -> str:
    """Return the ``repr`` of a value for an error message, on one line and cut after 60 characters."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # an integer with more digits than Python converts to text
        text = f"a {type(value).__name__} too long to print"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def is_nested_too_deep(value: object) -> bool:
    """Return whether a JSON value has more than ``MAX_LEVELS`` levels of lists and objects.

    >>> is_nested_too_deep([[1], {"a": []}])
    False
    """
    level = [value]
    for _ in range(MAX_LEVELS + 1):
        level = [item for value in level for item in _items_of(value)]
        if not level:
            return False
    return True


def _items_of(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def check_integer(name: str, value: object, minimum: int, maximum: int) -> int:
    """Return an integer from ``minimum`` to ``maximum``; NumPy integers become plain ones, ``bool`` is refused."""
    try:
        number = None if isinstance(value, bool) else index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or not minimum <= number <= maximum:
        raise ConfigError(f"{name} must be a whole number from {minimum} to {maximum}, got {show(value)}")
    return number


def check_seed(name: str, seed: object) -> int:
    """Return a seed: an unsigned 64-bit integer."""
    return check_integer(name, seed, 0, 2**64 - 1)


def check_threads(threads: int | None) -> int:
    """Return the thread count in the form the kernel takes: 0 for all cores."""
    return 0 if threads is None else check_integer("threads", threads, 1, 1024)


def check_choice(name: str, value: object, choices: tuple[Choice, ...]) -> Choice:
    """Return the choice that equals ``value`` and has its type; NumPy scalars become plain ones."""
    plain = value.item() if isinstance(value, np.generic) else value
    for choice in choices:
        if type(plain) is type(choice) and plain == choice:
            return choice
    raise ConfigError(f"{name} must be one of {', '.join(map(str, choices))}, got {show(value)}")


def check_on_error(value: object) -> str:
    """Return the policy for invalid rows."""
    return check_choice("on_error", value, ("fail", "quarantine-rows", "quarantine", "skip"))


def check_encoding(given: object) -> str | None:
    """Return the name of an encoding, or None if none was given."""
    if given is None:
        return None
    try:
        name = codecs.lookup(str(given)).name
        known = isinstance(given, str) and name not in OTHER_CODECS and bool("a".encode(name))
    except (LookupError, UnicodeError, ValueError):
        known = False
    if not known:
        raise ConfigError(f"encoding must be that of a text, such as utf-8, cp1252 or utf-16, got {show(given)}")
    return str(given)


def check_delimiter(given: object) -> str | None:
    r"""Return a delimiter as one character, or None if none was given; ``tab`` and ``\t`` are a tab.

    >>> check_delimiter("tab")
    '\t'
    """
    if given is None:
        return None
    delimiter = "\t" if given in ("tab", r"\t") else given
    if not isinstance(delimiter, str) or len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
        raise ConfigError(f"delimiter must be one ASCII character, such as ; or tab, got {show(given)}")
    return delimiter


def check_setting_names(given: Iterable[str], names: Sequence[str]) -> None:
    """Raise a ConfigError for the first name of ``given`` that is not in ``names``; propose the one that is meant.

    >>> check_setting_names(["treshold"], ["threshold", "recall"])
    Traceback (most recent call last):
    minwise.errors.ConfigError: unknown setting 'treshold'; did you mean 'threshold'?
    """
    for name in given:
        if name not in names:
            close = get_close_matches(name.replace("-", "_").lower(), names, n=1)
            known = f"did you mean {close[0]!r}?" if close else f"settings are: {', '.join(names)}"
            raise ConfigError(f"unknown setting {show(name)}; {known}")


def check_path(name: str, value: object) -> Path:
    """Return a non-empty path."""
    if not isinstance(value, (str, PathLike)) or not str(value):
        raise ConfigError(f"{name} must be a path, got {show(value)}")
    return Path(value)


def check_raised_threshold(threshold: object, minimum: float, origin: str, remedy: str = "") -> float:
    """Return a threshold of at least ``minimum``; the pairs found at that one include those of any higher one.

    Args:
        threshold: The threshold to check.
        minimum: The threshold of the earlier search.
        origin: A clause for the message that says where ``minimum`` comes from.
        remedy: The end of the message.
    """
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not minimum <= threshold <= 1:
        raise ConfigError(f"threshold must be from {minimum}, {origin}, to 1, got {show(threshold)}{remedy}")
    return float(threshold)


def check_type(name: str, value: object, kind: type[Kind], remedy: str = "") -> Kind:
    """Return ``value`` if it is an instance of ``kind``."""
    if not isinstance(value, kind):
        raise InputError(f"{name} must be {kind.__name__}, got {type(value).__name__}{remedy}")
    return value


def check_pairs(pairs: ArrayLike) -> NDArray[np.int64]:
    """Return pairs of document numbers as an int64 array of two columns."""
    try:
        numbers = np.asarray(pairs)
    except ValueError:
        raise InputError("pairs must be two columns of document numbers, got rows of unequal length") from None
    if numbers.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if numbers.ndim != 2 or numbers.shape[1] != 2 or numbers.dtype.kind not in "iu":
        raise InputError(f"pairs must be two columns of document numbers, got {numbers.dtype} of shape {numbers.shape}")
    return np.ascontiguousarray(numbers, dtype=np.int64)


def check_document_number(number: object) -> int:
    """Return a document number that fits into an int64."""
    try:
        document = index(number)  # type: ignore[arg-type]
    except TypeError:
        document = 2**63
    if not -(2**63) <= document < 2**63:
        raise InputError(f"pairs: no document {show(number)}; documents are numbers counted from 0")
    return document
