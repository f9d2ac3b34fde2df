"""Tables of frequencies: how many documents have an element, from which its weight follows.

The table has a count per slot of a hash table instead of one per element. Elements that share a slot are counted
together, so a frequency is never too low, and the memory is bounded: 16 slots for each counted element, at most 2²² of
four bytes. A saved table makes another run use the same weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.array_files import FileKind, read_array_file, write_array_file
from minwise.checks import check_path, show
from minwise.errors import ConfigError, FormatError, MismatchError

__all__ = ["MOST_BITS", "FrequencyTable", "check_new_table", "element_slots", "table_bits"]

KIND = FileKind(b"MINWFRQ\n", 1, "table of frequencies", "save it again with save_frequencies")
SLOTS_PER_ELEMENT = 16
LEAST_BITS, MOST_BITS = 10, 22
# Largest count, as in the kernel.
MOST_COUNT = 2**32 - 1 - 1024
# 2⁶⁴ divided by the golden ratio: the multiplier of the hash of the table.
GOLDEN_RATIO = np.uint64(0x9E3779B97F4A7C15)


def table_bits(elements: int) -> int:
    """Return the binary logarithm of the number of slots for so many counted elements.

    >>> [table_bits(count) for count in (0, 1000, 10**9)]
    [10, 14, 22]
    """
    return min(MOST_BITS, max(LEAST_BITS, (SLOTS_PER_ELEMENT * elements - 1).bit_length()))


def element_slots(elements: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    """Return the slot of each element in a table of 2 to the power of ``bits`` slots."""
    slots: NDArray[np.uint64] = np.asarray(elements) * GOLDEN_RATIO >> np.uint64(64 - bits)
    return slots


@dataclass(frozen=True, eq=False)
class FrequencyTable:
    """Frequencies of elements among documents, copies counted once.

    Attributes:
        counts: The count of each slot.
        documents: Number of documents.
        elements: Settings that decide what an element is.
    """

    counts: NDArray[np.uint32]
    documents: int
    elements: dict[str, Any]

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "FrequencyTable":
        """Read a saved table.

        Raises:
            FormatError: If the file is damaged, or not a table of frequencies.
            OSError: If it cannot be read.
        """
        header, arrays = read_array_file(check_path("frequencies", path), KIND)
        documents, elements, counts = header.get("documents"), header.get("elements"), arrays.get("counts")
        if not _is_count(documents) or not isinstance(elements, dict) or not _is_table(counts):
            raise FormatError(f"{path}: must have counts, documents and elements; {KIND.remedy}")
        return cls(counts, documents, elements)

    @classmethod
    def reduced(cls, counts: NDArray[np.uint64], documents: int, elements: dict[str, Any]) -> "FrequencyTable":
        """Return the table from counts in as many slots as a table may have."""
        bits = table_bits(int(counts.sum()))
        fewer = counts.reshape(1 << bits, -1).sum(axis=1)
        return cls(np.minimum(fewer, MOST_COUNT).astype(np.uint32), documents, elements)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the table to a file, which is replaced if it exists."""
        header = {"documents": self.documents, "elements": self.elements}
        write_array_file(check_path("save_frequencies", path), KIND, header, {"counts": self.counts})

    def check_elements(self, elements: dict[str, Any]) -> None:
        """Raise :class:`MismatchError` if elements of other settings were counted."""
        for name in {**self.elements, **elements}:
            ours, theirs = elements.get(name), self.elements.get(name)
            if ours != theirs:
                rule = f"frequencies must be of documents with {name} {show(ours)}"
                raise MismatchError(f"{rule}, got {show(theirs)}; count them again")

    def weights(self, threads: int, factors: Sequence[float] | None = None, *, held: bool = False) -> "_kernel.Weights":
        """Return the weights of elements, times the factor of each class of elements, or the weight that each holds."""
        listed = None if factors is None else list(factors)
        return _kernel.Weights(self.counts, self.documents, threads, listed, held)

    @property
    def identity(self) -> str:
        """Checksum that tells tables apart."""
        crc = _kernel.crc32c(self.counts.view(np.uint8), 0)
        return f"{self.documents} documents, {len(self.counts)} slots, CRC-32C {crc:08x}"


def check_new_table(path: str | PathLike[str]) -> None:
    """Raise :class:`ConfigError` if a table of frequencies cannot be saved to a path, before a run counts them."""
    file = check_path("save_frequencies", path)
    if Path(file).is_dir() or not Path(file).absolute().parent.is_dir():
        raise ConfigError(f"save_frequencies must be a file in an existing directory, got {file}")


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _is_table(counts: NDArray[Any] | None) -> TypeGuard[NDArray[np.uint32]]:
    if counts is None or counts.dtype != np.uint32 or counts.ndim != 1:
        return False
    return len(counts) in {1 << bits for bits in range(1, 33)}
