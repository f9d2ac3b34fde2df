"""Schemes of every kind, for tests that hold for all of them."""

import numpy as np
import pytest

import minwise as mw
from minwise.sketches import OnePermutation, Signatures
from minwise.sketches.schemes import Scheme
from minwise.sketches.signatures import Bits, Densify

__all__ = ["PACKED", "WHOLE", "assert_same_slots", "every_scheme", "name_of", "scheme"]

WHOLE: list[Scheme] = [
    mw.MinHash(slots=64, seed=7),
    mw.FastSketch(slots=64, seed=7),
    OnePermutation(bins=64, seed=7),
    OnePermutation(bins=64, seed=7, densify="rotation"),
    OnePermutation(bins=64, seed=7, densify="optimal"),
]
DENSIFIED: dict[str, Densify] = {"oph+rotation": "rotation", "oph+optimal": "optimal"}
PACKED = [scheme.bbit(bits) for scheme in WHOLE if not scheme.settings.has_empty_bins for bits in (1, 2, 4, 8, 16, 32)]


def name_of(scheme: Scheme) -> str:
    """Return a short name for a test."""
    settings = scheme.settings
    return "-".join(str(part) for part in (settings.scheme, settings.densify, settings.bits) if part is not None)


every_scheme = pytest.mark.parametrize("scheme", WHOLE + PACKED, ids=name_of)


def assert_same_slots(left: Signatures, right: Signatures) -> None:
    """Assert equality bit for bit, including types and settings."""
    assert left.settings == right.settings
    assert left.shingle_settings == right.shingle_settings
    assert left.slots.dtype == right.slots.dtype
    np.testing.assert_array_equal(left.slots, right.slots)
    np.testing.assert_array_equal(left.empty, right.empty)


def scheme(name: str, slots: int, seed: int = 1, bits: Bits | None = None) -> Scheme:
    """Return a scheme by name: ``minhash``, ``fast``, ``oph``, or ``oph+`` and the method that densifies it."""
    if name == "minhash":
        return mw.MinHash(slots=slots, seed=seed, bits=bits)
    if name == "fast":
        return mw.FastSketch(slots=slots, seed=seed, bits=bits)
    return OnePermutation(bins=slots, seed=seed, bits=bits, densify=DENSIFIED.get(name))
