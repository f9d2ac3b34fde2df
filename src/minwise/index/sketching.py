"""Sketching: texts in; what an index stores of them and looks them up by out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import length_hint

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise.errors import ConfigError
from minwise.index.settings import IndexSettings
from minwise.search.bands import FILLED, NO_KEY, KeyBlock
from minwise.sketches import estimates as estimate
from minwise.sketches.signatures import Signatures, refuse_differences
from minwise.text.chunks import Texts, read_texts

__all__ = ["Sketched", "Sketching", "compare_sketches", "hash_ids", "texts_as_bytes"]

# Bits of each slot that are kept of a sketch, as the batch engine does.
BITS = 16
# What the fingerprint is taken of: letters with marks, digits, signs, another script, repeated words.
PROBE = "The café of 1891, the café again: ﬁne — ΑΒΓ, 你好; the end of the café, the end of 1891."
# Texts that one thread is done with before others have woken up.
FEW = 16


@dataclass(frozen=True, slots=True)
class Sketched:
    """Documents ready to be stored or looked up.

    Attributes:
        keys: The keys of their bands, a row each; ``NO_KEY`` for documents without elements.
        bodies: What is compared: the elements, or the packed sketch; nothing for documents without elements.
    """

    keys: NDArray[np.uint64]
    bodies: list[bytes]

    def __len__(self) -> int:
        return len(self.bodies)


class Sketching:
    """Turns texts into keys and bodies under the settings of an index."""

    def __init__(self, settings: IndexSettings, threads: int = 0) -> None:
        find, plan = settings.find, settings.plan
        self.settings = settings
        self._threads = threads
        sketcher = _kernel.Sketcher(scheme=find.scheme, slots=plan.slots, seed=find.seed)
        self._bander = _kernel.Bander(sketcher, plan.bands, plan.rows, find.seed)

    def sketch(self, texts: Texts) -> Sketched:
        """The documents of texts.

        Raises:
            InputError: If a text is null, not a string or not UTF-8; the message names its number.
        """
        threads = 1 if length_hint(texts, FEW) < FEW else self._threads
        sets = self.settings.shingler.shingle(texts, threads=threads or None)
        block = KeyBlock.of(self.settings.find, len(sets))
        self._bander.band_sets(sets.offsets, sets.hashes, self.settings.find.seed, block, 0, threads)
        keys = np.ascontiguousarray(block.keys.T)
        if block.packed is not None:
            return Sketched(keys, _rows(block.packed, block.states == FILLED))
        elements, bounds = sets.hashes.astype("<u8", copy=False).tobytes(), (8 * sets.offsets).tolist()
        return Sketched(keys, [elements[start:end] for start, end in pairwise(bounds)])

    def fingerprint(self) -> bytes:
        """A hash of the keys and elements of a fixed text: it changes when texts are cut or sketched in another way."""
        probe = self.sketch([PROBE])
        content = probe.keys.astype("<u8").tobytes() + probe.bodies[0]
        return _kernel.hash_item("b", content, 0).to_bytes(8, "little")

    def sketched(self, signatures: Signatures) -> Sketched:
        """The documents of signatures that somebody made before, with the scheme and shingler of the index."""
        if self.settings.store != "sketch":
            raise ConfigError(f"signatures can be added to an index with store sketch only, got {self.settings.store}")
        theirs, ours = signatures.settings, self.settings.scheme.settings
        names = ("scheme", "slots", "bits")
        refuse_differences(
            "signatures and index", *({name: getattr(one, name) for name in names} for one in (theirs, ours))
        )
        shingles = self.settings.shingler.settings
        if theirs.seed != ours.seed or (signatures.shingle_settings or shingles) != shingles:  # a seed may be secret
            raise ConfigError(
                "signatures must be made with index.scheme and index.shingler, got some of another seed or cut"
            )
        keys = np.empty((len(signatures), self.settings.plan.bands), dtype=np.uint64)
        self._bander.band_signatures(np.ascontiguousarray(signatures.slots), keys)
        keys[signatures.empty] = np.uint64(NO_KEY)
        return Sketched(keys, _rows(signatures.bbit(BITS).slots, ~signatures.empty))


def _rows(packed: NDArray[np.uint8], filled: NDArray[np.bool_]) -> list[bytes]:
    width, data = packed.shape[1], packed.tobytes()
    return [data[width * row : width * (row + 1)] if has else b"" for row, has in enumerate(filled.tolist())]


def compare_sketches(body: bytes, others: Sequence[bytes], slots: int) -> NDArray[np.float64]:
    """The estimated similarity of a packed sketch to each of others; all of documents with elements."""
    rows = np.frombuffer(b"".join([body, *others]), dtype=np.uint8).reshape(1 + len(others), -1)
    pairs = np.stack([np.zeros(len(others), dtype=np.int64), np.arange(1, 1 + len(others), dtype=np.int64)], axis=1)
    share = _kernel.count_packed_matches(rows, rows, np.ascontiguousarray(pairs), slots, BITS) / slots
    c1, c2 = estimate.bbit_constants(1, 1, None, BITS)
    return np.clip(estimate.bbit_estimate(share, c1, c2), 0.0, 1.0)


def hash_ids(names: Iterable[bytes], seed: int) -> NDArray[np.uint64]:
    """The keys under which ids are looked up."""
    listed = list(names)
    offsets = np.zeros(len(listed) + 1, dtype=np.int64)
    np.cumsum([len(name) for name in listed], out=offsets[1:])
    hashes = _kernel.hash_strings(offsets, np.frombuffer(b"".join(listed), dtype=np.uint8), seed)
    return np.minimum(hashes, np.uint64(NO_KEY - 1))


def texts_as_bytes(texts: Texts) -> list[bytes]:
    """The texts one by one."""
    found = []
    for chunk in read_texts(texts):
        data, bounds = chunk.data.tobytes(), chunk.offsets.tolist()
        found += [data[start:end] for start, end in pairwise(bounds)]
    return found
