"""Model: the records that travel between the rooms."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minwise import _kernel
from minwise.config import check_choice, check_seed, check_whole
from minwise.errors import MismatchError

__all__ = ["BITS", "SignatureSettings", "refuse_differences"]

# Bits per slot that a packed signature may keep.
BITS = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureSettings:
    """What a signature was made with; two signatures are comparable only if all of it is equal.

    Attributes:
        scheme: ``minhash``, ``oph`` or ``fast``.
        slots: Slots per signature.
        seed: Seed of the scheme.
        bits: Bits kept of each slot, or None for all.
        densify: How empty bins were filled, or None.
    """

    scheme: str
    slots: int
    seed: int = field(repr=False)
    bits: int | None = None
    densify: str | None = None

    def __post_init__(self) -> None:
        check_choice("scheme", self.scheme, ("minhash", "oph", "fast"))
        check_whole("slots", self.slots, 1, _kernel.MAX_SLOTS)
        check_seed("seed", self.seed)
        check_choice("bits", self.bits, (*BITS, None))
        check_choice("densify", self.densify, ("rotation", "optimal", None))

    @property
    def row_length(self) -> int:
        """Entries of a row: slots, or bytes of packed slots."""
        return self.slots if self.bits is None else -(-self.slots * self.bits // 8)

    @property
    def dtype(self) -> np.dtype[Any]:
        """What a row is made of."""
        whole = "uint32" if self.scheme == "minhash" else "uint64"
        return np.dtype(whole if self.bits is None else "uint8")

    @property
    def has_empty_bins(self) -> bool:
        """Whether a signature of a set with elements may still have empty slots."""
        return self.scheme == "oph" and self.densify is None

    @property
    def merges(self) -> bool:
        """Whether the slotwise minimum of two signatures is the signature of the union."""
        return self.bits is None and self.densify is None


def refuse_differences(what: str, left: dict[str, object], right: dict[str, object]) -> None:
    """Raises if two groups of settings differ, with both values of the first setting that does."""
    for name in [*left, *(name for name in right if name not in left)]:
        mine, other = left.get(name), right.get(name)
        if mine != other:
            raise MismatchError(
                f"{what} must have equal settings: {name} is {mine!r} on one side, {other!r} on the other"
            )
