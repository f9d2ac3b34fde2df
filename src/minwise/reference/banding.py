"""Banding: signatures in, candidate pairs and groups out. The readable twin of the kernel's band and cluster stages.

A band's slots, and a document's tokens, are folded two by two with the same step as `hash_bytes` takes. Documents are
numbers counted from 0, and their order is the order of these numbers.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from minwise.errors import ConfigError
from minwise.reference.hashing import WORD, Domain, fold, key, mix
from minwise.reference.sketch import EMPTY, EMPTY_32
from minwise.sketches.planning import band_slices

__all__ = ["band_keys", "components", "content_hash", "propose_pairs", "star"]

Pair = tuple[int, int]
Signature = Sequence[int] | NDArray[np.uint32] | NDArray[np.uint64]


def band_keys(signature: Signature, bands: int, rows: int, seed: int = 1) -> list[int]:
    """The key of each band: two signatures share one where they agree in all of the band's slots.

    Bands of equal slots but different number have different keys, since each starts from a key of its own. 2⁶⁴−1 is
    left to documents without elements, which have it in every band.

    Args:
        signature: Slots of 64 bits, or of 32 in an array of that type; those beyond bands·rows are not used.
        bands: Number of bands.
        rows: Slots per band.
        seed: Seed of the scheme that made the signature.
    """
    if bands * rows > len(signature):
        raise ConfigError(f"bands·rows must be at most the {len(signature)} slots, got {bands}·{rows}")
    slots = [int(slot) for slot in signature]
    empty = EMPTY_32 if getattr(signature, "dtype", None) == np.uint32 else EMPTY
    if all(slot == empty for slot in slots):
        return [WORD] * bands
    return [_band_key(slots[band], number, seed) for number, band in enumerate(band_slices(bands, rows))]


def content_hash(tokens: Sequence[int], seed: int = 1) -> tuple[int, int]:
    """128 bits of a sequence of token hashes: equal for equal sequences, and in practice only for them.

    Two lanes of 64 bits with keys of their own. (0, 0) stands for no token at all.
    """
    if not tokens:
        return 0, 0
    return _content_lane(tokens, 0, seed), _content_lane(tokens, 1, seed)


def propose_pairs(keys: Sequence[Sequence[int]], max_bucket: int = 2000, first: int = 16) -> set[Pair]:
    """The candidates: pairs (smaller, larger number) of documents that share a bucket of some band.

    Args:
        keys: The band keys of each document.
        max_bucket: Buckets of at most so many members make all of their pairs.
        first: In larger buckets each member is paired with so many of the first ones only.

    >>> sorted(propose_pairs([[7, 1], [7, 2], [8, 2]]))
    [(0, 1), (1, 2)]
    """
    buckets: defaultdict[Pair, list[int]] = defaultdict(list)
    for document, row in enumerate(keys):
        for band, band_key in enumerate(row):
            if band_key != WORD:
                buckets[band, band_key].append(document)
    return {pair for members in buckets.values() for pair in _bucket_pairs(members, max_bucket, first)}


def star(pairs: Mapping[Pair, float], documents: int) -> tuple[list[int], dict[int, tuple[int, float]]]:
    """The documents to keep, and for each removed one its witness and their similarity.

    In order, a document is removed if it is paired with a kept one before it. Its witness is the kept document most
    similar to it, before or after it; of equally similar ones the first.

    >>> star({(0, 1): 0.8, (1, 2): 0.9}, documents=3)
    ([0, 2], {1: (2, 0.9)})
    """
    partners = _partners(pairs, documents)
    kept: list[int] = []
    for document in range(documents):
        if not any(other in partners[document] for other in kept):
            kept.append(document)
    return kept, {
        document: min(
            ((other, partners[document][other]) for other in kept if other in partners[document]),
            key=lambda witness: (-witness[1], witness[0]),
        )
        for document in sorted(set(range(documents)) - set(kept))
    }


def components(pairs: Iterable[Pair], documents: int) -> list[int]:
    """For each document the first one that a chain of pairs leads to.

    >>> components([(1, 2), (2, 4)], documents=5)
    [0, 1, 1, 3, 1]
    """
    label = list(range(documents))
    for left, right in pairs:
        first, other = sorted((label[left], label[right]))
        label = [first if one == other else one for one in label]
    return label


def _band_key(slots: Sequence[int], number: int, seed: int) -> int:
    state = key(seed, Domain.BAND, 2 + number)
    folded = mix(_fold_two_by_two(slots, key(seed, Domain.BAND, 0), key(seed, Domain.BAND, 1), state))
    return min(folded, WORD - 1)


def _content_lane(tokens: Sequence[int], lane: int, seed: int) -> int:
    lo_key, hi_key, length_key = (key(seed, Domain.CONTENT, 3 * lane + index) for index in range(3))
    return mix(_fold_two_by_two(tokens, lo_key, hi_key, 0) + len(tokens) * length_key)


def _fold_two_by_two(words: Sequence[int], lo_key: int, hi_key: int, state: int) -> int:
    """fold(lo ^ K0 ^ state, hi ^ K1) over the words taken two by two; a missing last one is 0."""
    padded = [*words, 0] if len(words) % 2 else words
    for lo, hi in zip(padded[::2], padded[1::2], strict=True):
        state = fold(lo ^ lo_key ^ state, hi ^ hi_key)
    return state


def _bucket_pairs(members: list[int], max_bucket: int, first: int) -> set[Pair]:
    """All pairs of a bucket, or those with one of its first members if it is too large; members are ascending."""
    if len(members) <= max_bucket:
        return set(combinations(members, 2))
    return {(early, late) for early in members[:first] for late in members if early < late}


def _partners(pairs: Mapping[Pair, float], documents: int) -> list[dict[int, float]]:
    partners: list[dict[int, float]] = [{} for _ in range(documents)]
    for (left, right), similarity in pairs.items():
        partners[left][right] = partners[right][left] = similarity
    return partners
