"""Weights of items and fields: how they are given, and sets in which an element holds its weight.

The weight of an item can be real, and differ between sets; similarity is the sum of the smaller weights divided by that
of the larger ones. An element then has the hash of its item in its upper 40 bits, and the weight in the lower 24: four
bits by which the other twenty are shifted, in units of 2⁻²². ``crates/kernel/src/weights.rs`` reads them.
"""

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import from_lists, from_numpy
from minwise.checks import show
from minwise.errors import ConfigError
from minwise.inputs.elements import (
    INT64_RANGE,
    MAX_ELEMENTS,
    Extracted,
    Hashes,
    hash_values,
    too_many_elements,
    valid_except,
)

__all__ = [
    "MAX_WEIGHT",
    "MIN_WEIGHT",
    "UNIT",
    "WEIGHTS_RULE",
    "ItemWeights",
    "build_weighted_sets",
    "own_keys",
    "parse_item_weights",
    "parse_pairs",
    "parse_weight",
    "weight_reason",
]

MIN_WEIGHT, MAX_WEIGHT = 0.001, 1000
# Unit of a weight that an element holds, and bits of such a weight.
UNIT = 2.0**-22
OWN_BITS, DIGITS = np.uint64(24), np.uint64(20)
# Weights of items that a report lists; of more it has a checksum.
LISTED_WEIGHTS = 100
WEIGHTS_RULE = "weights must be NAME=N, separated by spaces"


def parse_pairs(setting: str, given: object, delimiter: str, rule: str) -> list[tuple[Any, Any]]:
    """Return name and value pairs of a mapping, or of one string, in which quotation marks enclose a name."""
    if isinstance(given, Mapping):
        return list(given.items())
    if not isinstance(given, str):
        raise ConfigError(f"{setting} must be a string or a mapping, got {show(given)}")
    try:
        pairs: list[Any] = [tuple(word.split(delimiter, 1)) for word in shlex.split(given)]
    except ValueError as error:
        raise ConfigError(f"{rule}, got {show(given)}: {error}") from None
    for pair in pairs:
        if len(pair) != 2 or not pair[0]:
            raise ConfigError(f"{rule}, got {show(delimiter.join(map(str, pair)))}")
    return pairs


def parse_weight(name: object, weight: object) -> float:
    """Return a weight of the setting ``weights`` as a whole number where it is one.

    Raises:
        ConfigError: If it is not a number from 0.001 to 1,000.
    """
    try:
        number = float(weight) if isinstance(weight, (str, int, float)) and not isinstance(weight, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not MIN_WEIGHT <= number <= MAX_WEIGHT:
        rule = f"weights of {name} must be numbers from {MIN_WEIGHT} to {MAX_WEIGHT}"
        raise ConfigError(f"{rule}, got {show(weight)}")
    return int(number) if number == int(number) else number


@dataclass(frozen=True, eq=False)
class ItemWeights:
    """Weights of items by the hash of the item; the weight of every other one is 1.

    Attributes:
        hashes: The hashes, ascending.
        weights: Their weights.
        setting: The weights as the command line takes them; of many a checksum.
    """

    hashes: Hashes
    weights: NDArray[np.float64]
    setting: str

    def of(self, hashes: Hashes) -> NDArray[np.float64]:
        """Return the weight of each item."""
        if not len(self.hashes):
            return np.ones(len(hashes))
        at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where(self.hashes[at] == hashes, self.weights[at], 1.0)


def parse_item_weights(given: object, seed: int) -> ItemWeights:
    """Parse weights of items such as ``"tea=2 milk=0.5"``, or a mapping. A number in a string is a name and a number.

    Raises:
        ConfigError: If a weight breaks its rule, or an item is neither a whole number nor a string.
    """
    if not isinstance(given, (str, Mapping)):
        remedy = "give the weights of each set in a column that weight names"
        raise ConfigError(f"weights must be a string or a mapping, got {show(given)}; {remedy}")
    weights: dict[int | str, float] = {}
    for name, weight in parse_pairs("weights", given, "=", WEIGHTS_RULE):
        if isinstance(name, bool) or not isinstance(name, (int, str)):
            raise ConfigError(f"weights must be of items, whole numbers or strings, got {show(name)}")
        weights[name] = parse_weight(name, weight)
        if isinstance(given, str) and str(name).isdecimal() and int(name) in INT64_RANGE:
            weights[int(name)] = weights[name]
    hashes = np.concatenate([np.empty(0, dtype=np.uint64), *(hash_values([name], seed) for name in weights)])
    order = np.argsort(hashes)
    values = np.array(list(weights.values()), dtype=np.float64)[order]
    return ItemWeights(hashes[order], values, _weights_setting(weights, hashes[order], values))


def _weights_setting(weights: Mapping[int | str, float], hashes: Hashes, values: NDArray[np.float64]) -> str:
    if len(weights) <= LISTED_WEIGHTS:
        return " ".join(sorted({shlex.quote(f"{name}={weight}") for name, weight in weights.items()}))
    crc = _kernel.crc32c(values.view(np.uint8), _kernel.crc32c(hashes.view(np.uint8), 0))
    return f"{len(weights)} items, CRC-32C {crc:08x}"


def weight_reason(name: str, weight: object) -> str:
    """Return the reason why a row with a weight cannot be used."""
    return f"{name} must be 0 or a number from {MIN_WEIGHT} to {MAX_WEIGHT}, got {weight}"


def own_keys(elements: Hashes) -> Hashes:
    """Return what identifies elements that hold their weights: their upper bits, repeated where the weight was."""
    upper: Hashes = elements >> OWN_BITS
    return upper << OWN_BITS | elements >> (np.uint64(64) - OWN_BITS)


def _hold_weights(elements: Hashes, units: NDArray[np.float64]) -> Hashes:
    """Return elements that hold weights in units; weights of more than 20 bits are rounded to them."""
    shifts = np.maximum(np.frexp(units)[1].astype(np.int64) - int(DIGITS), 0)
    digits = np.rint(np.ldexp(units, -shifts))
    carried = digits >= 2.0 ** int(DIGITS)  # such as 1,048,575.7
    digits, shifts = np.where(carried, digits / 2, digits), shifts + carried
    held = shifts.astype(np.uint64) << DIGITS | digits.astype(np.uint64)
    return elements >> OWN_BITS << OWN_BITS | held


def build_weighted_sets(
    owners: NDArray[np.int64], elements: Hashes, weights: NDArray[np.float64], rows: int
) -> Extracted:
    """Return the sets of ``rows`` owners as a list column of ascending elements that hold their weights.

    Weights of an element of one owner are added; elements of weight 0 are left out. A set is null if an element weighs
    less than 0.001 or more than 1,000, or if it has too many of them.

    Args:
        owners: The row that each element belongs to.
        elements: The hashes of items, in any order.
        weights: Their weights, at least 0.
        rows: The number of owners.
    """
    units = np.rint(weights / UNIT)  # whole numbers, of which sums do not depend on their order
    keys = elements >> OWN_BITS
    order = np.lexsort((keys, owners))
    owners, keys, elements, units = owners[order], keys[order], elements[order], units[order]
    first = np.ones(len(keys), dtype=bool)
    first[1:] = (owners[1:] != owners[:-1]) | (keys[1:] != keys[:-1])
    starts = np.flatnonzero(first)
    owners, elements = owners[starts], elements[starts]
    units = np.add.reduceat(units, starts) if len(starts) else units
    wrong = (units > 0) & ((units < np.rint(MIN_WEIGHT / UNIT)) | (units > MAX_WEIGHT / UNIT))
    reasons = {
        int(owners[at]): weight_reason("the weight of an item", round(float(units[at] * UNIT), 6))
        for at in np.flatnonzero(wrong).tolist()
    }
    sizes = np.bincount(owners[units > 0], minlength=rows)
    reasons |= {row: too_many_elements(int(sizes[row])) for row in np.flatnonzero(sizes > MAX_ELEMENTS).tolist()}
    valid = valid_except(reasons, rows)
    used = (units > 0) & valid[owners]
    offsets = np.concatenate([[0], np.cumsum(np.where(valid, sizes, 0))]).astype(np.int64)
    return from_lists(offsets, from_numpy(_hold_weights(elements[used], units[used])), valid), reasons
