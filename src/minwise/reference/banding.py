"""Band keys, candidate pairs and groups of documents; specifies the band and cluster stages of the kernel.

The slots of a band, and the tokens of a document, are folded in pairs with the step of `hash_bytes`. Documents are
numbers counted from 0, and their order is that of these numbers. Comparing all pairs is the alternative to banding;
`pair_count` and `comparison_days` give its cost.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from minwise.errors import ConfigError
from minwise.reference.hashing import WORD, Domain, fold, key, mix
from minwise.reference.sketch import EMPTY, EMPTY_32
from minwise.sketches.planning import band_slices

__all__ = [
    "band_keys",
    "comparison_days",
    "components",
    "content_hash",
    "false_candidates",
    "pair_count",
    "propose_pairs",
    "slot_keys",
    "star",
]

Pair = tuple[int, int]
Signature = Sequence[int] | NDArray[np.uint32] | NDArray[np.uint64]


def band_keys(signature: Signature, bands: int, rows: int, seed: int = 1) -> list[int]:
    """Return the key of each band; signatures that agree in all slots of a band have the same key for it.

    Bands of equal slots but different number have different keys, since each starts from a key of its own. 2⁶⁴−1 is
    reserved for documents without elements, which have it in every band.

    Args:
        signature: Slots of 64 bits, or of 32 in an array of that type; those beyond bands·rows are ignored.
        bands: Number of bands.
        rows: Slots per band.
        seed: Seed of the scheme that made the signature.
    """
    if bands * rows > len(signature):
        raise ConfigError(f"bands·rows must be at most the {len(signature)} slots, got {bands}·{rows}")
    slots = [int(slot) for slot in signature]
    empty = EMPTY_32 if getattr(signature, "dtype", None) == np.uint32 else EMPTY
    return [WORD] * bands if all(slot == empty for slot in slots) else slot_keys(slots, bands, rows, seed)


def slot_keys(slots: Sequence[int], bands: int, rows: int, seed: int = 1) -> list[int]:
    """Return the key of each band of slots, none of which stands for nothing."""
    return [_band_key(slots[band], number, seed) for number, band in enumerate(band_slices(bands, rows))]


def content_hash(tokens: Sequence[int], seed: int = 1) -> tuple[int, int]:
    """Return a 128-bit hash of a sequence of token hashes, as two lanes of 64 bits with different keys.

    An empty sequence has the hash (0, 0).
    """
    if not tokens:
        return 0, 0
    return _content_lane(tokens, 0, seed), _content_lane(tokens, 1, seed)


def propose_pairs(
    keys: Sequence[Sequence[int]], max_bucket: int = 2000, first: int = 16, split: int | None = None
) -> set[Pair]:
    """Return the candidate pairs, (smaller, larger number), of documents that share a bucket of a band.

    Args:
        keys: Band keys of each document.
        max_bucket: Maximum size of a bucket all of whose pairs become candidates.
        first: Number of first members that every member of a larger bucket is paired with.
        split: Number of documents of the first of two tables; if given, only pairs of both are returned, and a member
            of a larger bucket is paired with the first members of the other table.

    >>> sorted(propose_pairs([[7, 1], [7, 2], [8, 2]]))
    [(0, 1), (1, 2)]
    >>> sorted(propose_pairs([[7, 1], [7, 2], [8, 2]], split=2))
    [(1, 2)]
    """
    buckets: defaultdict[Pair, list[int]] = defaultdict(list)
    for document, row in enumerate(keys):
        for band, band_key in enumerate(row):
            if band_key != WORD:
                buckets[band, band_key].append(document)
    if split is not None:
        return {pair for members in buckets.values() for pair in _pairs_across(members, split, max_bucket, first)}
    return {pair for members in buckets.values() for pair in _bucket_pairs(members, max_bucket, first)}


def star(pairs: Mapping[Pair, float], documents: int) -> tuple[list[int], dict[int, tuple[int, float]]]:
    """Return the documents to keep, and the witness and similarity of each removed one.

    In order, a document is removed if it is paired with a kept document before it. Its witness is the most similar kept
    document, before or after it; of equally similar ones the first.

    Args:
        pairs: Similarity of each pair of near-duplicates.
        documents: Number of documents.

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
    """Return the first document of the connected component of each document.

    >>> components([(1, 2), (2, 4)], documents=5)
    [0, 1, 1, 3, 1]
    """
    label = list(range(documents))
    for left, right in pairs:
        first, other = sorted((label[left], label[right]))
        label = [first if current == other else current for current in label]
    return label


def pair_count(documents: int) -> int:
    """Return n(n−1)/2, the number of pairs of documents.

    >>> pair_count(10**6)
    499999500000
    """
    return documents * (documents - 1) // 2


def comparison_days(documents: int, comparisons_per_second: float, seconds_per_day: float = 86_400) -> float:
    """Return the days it takes to compare all pairs of documents."""
    return pair_count(documents) / comparisons_per_second / seconds_per_day


def false_candidates(pairs: float, probability: float) -> float:
    """Return the expected number of candidates among ``pairs`` pairs below the threshold."""
    return pairs * probability


def _band_key(slots: Sequence[int], number: int, seed: int) -> int:
    state = key(seed, Domain.BAND, 2 + number)
    folded = mix(_fold_pairs(slots, key(seed, Domain.BAND, 0), key(seed, Domain.BAND, 1), state))
    return min(folded, WORD - 1)


def _content_lane(tokens: Sequence[int], lane: int, seed: int) -> int:
    lo_key, hi_key, length_key = (key(seed, Domain.CONTENT, 3 * lane + index) for index in range(3))
    return mix(_fold_pairs(tokens, lo_key, hi_key, 0) + len(tokens) * length_key)


def _fold_pairs(words: Sequence[int], lo_key: int, hi_key: int, state: int) -> int:
    """Fold pairs of words into the state by fold(lo ^ K0 ^ state, hi ^ K1); a missing last word is 0."""
    padded = [*words, 0] if len(words) % 2 else words
    for lo, hi in zip(padded[::2], padded[1::2], strict=True):
        state = fold(lo ^ lo_key ^ state, hi ^ hi_key)
    return state


def _bucket_pairs(members: list[int], max_bucket: int, first: int) -> set[Pair]:
    """Return all pairs of a bucket, or those with one of its first members if it is too large."""
    if len(members) <= max_bucket:
        return set(combinations(members, 2))
    return {(early, late) for early in members[:first] for late in members if early < late}


def _pairs_across(members: list[int], split: int, max_bucket: int, first: int) -> set[Pair]:
    """Return all pairs of a member below ``split`` and another one, or those with one of the first of its side."""
    left, right = ([member for member in members if (member < split) is below] for below in (True, False))
    if len(members) <= max_bucket:
        return set(product(left, right))
    return {*product(left[:first], right), *product(left, right[:first])}


def _partners(pairs: Mapping[Pair, float], documents: int) -> list[dict[int, float]]:
    partners: list[dict[int, float]] = [{} for _ in range(documents)]
    for (left, right), similarity in pairs.items():
        partners[left][right] = partners[right][left] = similarity
    return partners
