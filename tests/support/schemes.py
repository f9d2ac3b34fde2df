"""Schemes: every kind of signature, for tests that hold of all of them."""

import numpy as np
import pytest

import minwise as mw
from minwise.sketches.schemes import Scheme

__all__ = ["PACKED", "WHOLE", "assert_same_slots", "every_scheme", "name_of", "scheme"]

WHOLE: list[Scheme] = [
    mw.MinHash(slots=64, seed=7),
    mw.FastSketch(slots=64, seed=7),
    mw.OnePermutation(bins=64, seed=7),
    mw.OnePermutation(bins=64, seed=7, densify="rotation"),
    mw.OnePermutation(bins=64, seed=7, densify="optimal"),
]
PACKED = [scheme.bbit(bits) for scheme in WHOLE if not scheme.settings.has_empty_bins for bits in (1, 2, 4, 8, 16, 32)]


def name_of(scheme: Scheme) -> str:
    """A short name for a test."""
    settings = scheme.settings
    return "-".join(str(part) for part in (settings.scheme, settings.densify, settings.bits) if part is not None)


every_scheme = pytest.mark.parametrize("scheme", WHOLE + PACKED, ids=name_of)


def assert_same_slots(left: mw.Signatures, right: mw.Signatures) -> None:
    """Bit for bit, types and settings included."""
    assert left.settings == right.settings
    assert left.shingle_settings == right.shingle_settings
    assert left.slots.dtype == right.slots.dtype
    np.testing.assert_array_equal(left.slots, right.slots)
    np.testing.assert_array_equal(left.empty, right.empty)


def scheme(name: str, slots: int, seed: int = 1, bits: int | None = None) -> Scheme:
    """The scheme of a name: ``minhash``, ``fast``, ``oph``, or ``oph+`` and how it is densified."""
    if name == "minhash":
        return mw.MinHash(slots=slots, seed=seed, bits=bits)
    if name == "fast":
        return mw.FastSketch(slots=slots, seed=seed, bits=bits)
    return mw.OnePermutation(bins=slots, seed=seed, bits=bits, densify=name.partition("+")[2] or None)
