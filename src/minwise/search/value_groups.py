"""Groups of documents by the values of a column, which decide what is compared.

With ``within`` only documents of one group are compared. The number of the group is mixed into band keys and content
hashes where these are read for buckets, so documents of two groups share no bucket, and a bucket is capped per group.
The first pass and its files stay as they are.

With ``across`` only documents of different groups are compared. Content hashes have the group, because two rows of one
value are no pair even if they are identical: they stay one document, and a copy has the fate of the first of them. Band
keys do not have it; pairs of one group are left out where candidates are read (kernel ``candidates.rs``), or where a
join yields them.

The naive algorithm, :mod:`minwise.reference.values`, compares all pairs that the values allow.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from minwise.inputs.elements import mix_hashes
from minwise.search.bands import NO_KEY

__all__ = ["GROUPS", "PairRule", "grouped_contents", "grouped_keys", "key_pieces_of_groups"]

Groups = NDArray[np.uint32]
# Arrays that name groups to other processes: the group of each document in a file of keys, or of each rank.
GROUPS = "groups"


class PairRule(NamedTuple):
    """Which pairs are compared.

    Attributes:
        groups: The group of each rank.
        equal: Whether two documents of one group are compared; otherwise those of different groups.
    """

    groups: Groups
    equal: bool

    def allows(self, left: NDArray[np.uint32], right: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Return a flag for each pair of ranks that is compared."""
        allowed: NDArray[np.bool_] = (self.groups[left] == self.groups[right]) == self.equal
        return allowed


def _words(groups: Groups) -> NDArray[np.uint64]:
    """Return a word for each group; no two groups have the same one."""
    return mix_hashes(groups.astype(np.uint64) + np.uint64(1))


def grouped_keys(keys: NDArray[np.uint64], groups: Groups) -> NDArray[np.uint64]:
    """Return keys that are equal for two documents only if these are of one group.

    Args:
        keys: Keys of one band, or a row of keys per document.
        groups: The group of each document.
    """
    words = _words(groups).reshape(-1, *(1,) * (keys.ndim - 1))
    mixed: NDArray[np.uint64] = np.minimum(keys ^ words, np.uint64(NO_KEY - 1))
    return mixed


def key_pieces_of_groups(pieces: Iterable[NDArray[np.uint64]], groups: Groups) -> Iterator[NDArray[np.uint64]]:
    """Yield the keys of one band of consecutive documents, as :func:`grouped_keys` does."""
    first = 0
    for piece in pieces:
        yield grouped_keys(piece, groups[first : first + len(piece)])
        first += len(piece)


def grouped_contents(contents: NDArray[np.uint64], groups: Groups) -> NDArray[np.uint64]:
    """Return content hashes of two words that are equal for two documents only if these are of one group."""
    words = _words(groups)
    mixed: NDArray[Any] = contents ^ np.stack([words, mix_hashes(~words)], axis=1)
    return mixed
