"""Limits: how much of the machine a run may use."""

import os
import re
from dataclasses import dataclass

from minwise.config import check_threads, show
from minwise.errors import ConfigError

__all__ = ["Limits", "parse_bytes"]

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
# What a file that is being written takes: a row group of text, what it is made from, and what it is compressed to.
WRITER_BYTES = 512 * 10**6
# Below this there is no room for the batches of text that are always in flight.
LEAST_MEMORY = 256 * 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of the machine a run may use. None of it changes the result.

    Attributes:
        memory: Bytes.
        threads: Threads; 0 stands for all cores.
        batch_bytes: Text that is read at once.
    """

    memory: int = 4 * 10**9
    threads: int = 0
    batch_bytes: int = 1 << 25

    @classmethod
    def of(cls, memory: str | int, threads: int | None) -> "Limits":
        """The limits as a user gives them."""
        allowed = parse_bytes("memory", memory)
        if allowed < LEAST_MEMORY:
            raise ConfigError(f"memory must be at least 256MB, got {show(memory)}")
        return cls(memory=allowed, threads=check_threads(threads), batch_bytes=min(1 << 25, allowed // 64))

    @property
    def writers(self) -> int:
        """How many files are written at a time: as many as threads, and as there is memory for."""
        return min(self.threads or os.cpu_count() or 1, max(1, self.memory // WRITER_BYTES))


def parse_bytes(name: str, value: str | int) -> int:
    """A size such as ``4GB``, ``512MiB`` or a number of bytes.

    >>> parse_bytes("memory", "1.5GB")
    1500000000
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = (
        re.fullmatch(r"\s*(\d{1,18}(?:\.\d+)?)\s*([KMGT]?I?)B?\s*", value, re.IGNORECASE)
        if isinstance(value, str)
        else None
    )
    if found is None or found[2].upper() not in UNITS:
        raise ConfigError(f"{name} must be a size such as 4GB or 512MiB, got {show(value)}")
    return int(float(found[1]) * UNITS[found[2].upper()])
