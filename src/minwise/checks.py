"""Checks: the rules that more than one setting or argument shares. Each returns the value in its plain type."""

from collections.abc import Iterable, Sequence
from operator import index
from os import PathLike
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from minwise.errors import ConfigError, InputError

__all__ = [
    "check_choice",
    "check_document",
    "check_names",
    "check_on_error",
    "check_pairs",
    "check_path",
    "check_raised",
    "check_seed",
    "check_threads",
    "check_type",
    "check_whole",
    "show",
]

# Characters of a value that an error message repeats.
MAX_SHOWN = 60

Choice = TypeVar("Choice")
Kind = TypeVar("Kind")


def show(value: object) -> str:
    """A value as a message can carry it: on one line, and not longer than a glance."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # an integer of more digits than Python is willing to print
        text = f"a {type(value).__name__} too long to print"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def check_whole(name: str, value: object, least: int, most: int) -> int:
    """A whole number between ``least`` and ``most``; NumPy's integers become plain ones."""
    try:
        whole = None if isinstance(value, bool) else index(value)  # type: ignore[arg-type]
    except TypeError:
        whole = None
    if whole is None or not least <= whole <= most:
        raise ConfigError(f"{name} must be a whole number from {least} to {most}, got {show(value)}")
    return whole


def check_seed(name: str, seed: object) -> int:
    """An unsigned 64-bit number."""
    return check_whole(name, seed, 0, 2**64 - 1)


def check_threads(threads: int | None) -> int:
    """The number of threads as the kernel takes it: 0 stands for all cores."""
    return 0 if threads is None else check_whole("threads", threads, 1, 1024)


def check_choice(name: str, value: object, choices: tuple[Choice, ...]) -> Choice:
    """One of ``choices``, of the same type; NumPy's numbers become plain ones."""
    plain = value.item() if isinstance(value, np.generic) else value
    for choice in choices:
        if type(plain) is type(choice) and plain == choice:
            return choice
    raise ConfigError(f"{name} must be one of {', '.join(map(str, choices))}, got {show(value)}")


def check_on_error(value: object) -> str:
    """What becomes of rows that can not be used."""
    return check_choice("on_error", value, ("fail", "quarantine", "skip"))


def check_names(given: Iterable[str], names: Sequence[str]) -> None:
    """Raises for the first setting that is none of these."""
    for name in given:
        if name not in names:
            raise ConfigError(f"there is no setting {show(name)}; settings are: {', '.join(names)}")


def check_path(name: str, value: object) -> Path:
    """A path that is not empty."""
    if not isinstance(value, (str, PathLike)) or not str(value):
        raise ConfigError(f"{name} must be a path, got {show(value)}")
    return Path(value)


def check_raised(threshold: object, least: float, whose: str, remedy: str = "") -> float:
    """A threshold from ``least`` on, whose it is: what was found for that one holds what a higher one finds."""
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not least <= threshold <= 1:
        raise ConfigError(f"threshold must be from {least}, {whose}, to 1, got {show(threshold)}{remedy}")
    return float(threshold)


def check_type(name: str, value: object, kind: type[Kind], remedy: str = "") -> Kind:
    """An instance of ``kind``."""
    if not isinstance(value, kind):
        raise InputError(f"{name} must be {kind.__name__}, got {type(value).__name__}{remedy}")
    return value


def check_pairs(pairs: ArrayLike) -> NDArray[np.int64]:
    """Pairs of document numbers as two columns."""
    try:
        numbers = np.asarray(pairs)
    except ValueError:
        raise InputError("pairs must be two columns of document numbers, got rows of unequal length") from None
    if numbers.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if numbers.ndim != 2 or numbers.shape[1] != 2 or numbers.dtype.kind not in "iu":
        raise InputError(f"pairs must be two columns of document numbers, got {numbers.dtype} of shape {numbers.shape}")
    return np.ascontiguousarray(numbers, dtype=np.int64)


def check_document(number: object) -> int:
    """A document's number, if it is one that an array can hold."""
    try:
        whole = index(number)  # type: ignore[arg-type]
    except TypeError:
        whole = 2**63
    if not -(2**63) <= whole < 2**63:
        raise InputError(f"pairs: no document {show(number)}; documents are numbers counted from 0")
    return whole
