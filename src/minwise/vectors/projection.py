"""Project: vectors in, the keys of their tables out; how probable it is that two of them share one.

A vector is projected onto random lines. Where it falls on a line is a slot, as in a signature: the number of the piece
of a width a, h(x) = ⌊(w·x + u)/a⌋ (Datar, Immorlica, Indyk & Mirrokni, 2004, section 3.2), or the side of the origin
(Charikar, 2002). The slots of a table's lines make its key, and from there on all is as with the bands of texts.
"""

import math
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import matrix_of
from minwise.search.bands import KeyBlock
from minwise.settings import FindSettings

__all__ = ["VectorBander", "VectorSettings", "chance_to_share", "slot_chance"]


def slot_chance(measure: str, distance: float, width: float | None) -> float:
    """The probability that two vectors at a distance have the same slot on a line.

    Euclidean, with t = width/distance: 1 − 2Φ(−t) − 2/(√(2π)·t)·(1 − exp(−t²/2)). Cosine: 1 − θ/π, where the distance
    is 1 − cos θ.

    >>> round(slot_chance("euclidean", 1.0, 4.0), 4), round(slot_chance("cosine", 1.0, None), 4)
    (0.8005, 0.5)
    """
    if measure == "cosine":
        return 1.0 - math.acos(min(1.0, max(-1.0, 1.0 - distance))) / math.pi
    if distance <= 0.0 or width is None:
        return 1.0
    t = width / distance
    return math.erf(t / math.sqrt(2)) - math.sqrt(2 / math.pi) / t * -math.expm1(-t * t / 2)


def chance_to_share(chance: float, hashes: int, tables: int) -> float:
    """The probability that two vectors share a bucket of some table: 1 − (1 − p^hashes)^tables."""
    same = chance**hashes
    return 1.0 if same >= 1.0 else -math.expm1(tables * math.log1p(-same))


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorSettings(FindSettings):
    """Everything that decides which vectors are near each other: a band is a table, a slot a line.

    Attributes:
        measure: ``euclidean`` or ``cosine``.
        width: Of the pieces that lines are cut into; None for cosine.
        radius: The distance up to which two are a pair.
    """

    measure: str
    width: float | None
    radius: float

    @property
    def measured(self) -> str:
        """What the column of distances is called."""
        return "distance"

    @property
    def of_identical(self) -> float:
        """Equal vectors are not apart."""
        return 0.0

    def planned(self) -> dict[str, Any]:
        """The chance to find a pair at the radius."""
        chance = slot_chance(self.measure, self.radius, self.width)
        return {"radius": self.radius, "recall": chance_to_share(chance, self.plan.rows, self.plan.bands)}

    def to_dict(self) -> dict[str, Any]:
        """Plain values under their public names."""
        shown = {"measure": self.measure, "radius": self.radius}
        if self.width is not None:
            shown["width"] = self.width
        layout = {"hashes": self.plan.rows, "tables": self.plan.bands}
        return {**shown, **layout, "seed": self.seed, "max_bucket": self.max_bucket}


class VectorBander:
    """Writes the keys of vectors into a block."""

    def __init__(self, settings: VectorSettings, dims: int) -> None:
        plan = settings.plan
        self._kernel = _kernel.VectorBander(
            dims=dims, hashes=plan.rows, tables=plan.bands, width=settings.width, seed=settings.seed
        )

    def band(self, texts: pa.Array, block: KeyBlock, threads: int) -> list[tuple[int, str]]:
        """Adds vectors; returns those that can not be used, by their place, with what is wrong.

        A null is faulty too, but not returned: whoever made it null knows why.
        """
        if not pa.types.is_fixed_size_list(texts.type):  # what a source that can not be read on ends with
            return []
        start, block.used = block.used, block.used + len(texts)
        faults = self._kernel.band_vectors(matrix_of(texts), block, start, threads)
        return block.leave_out_nulls(start, texts, faults)

    def keys(self, vectors: NDArray[Any], settings: FindSettings, threads: int) -> KeyBlock:
        """The keys of a matrix as a block of their own."""
        block = KeyBlock.of(settings, len(vectors))
        block.used = len(vectors)
        self._kernel.band_vectors(vectors, block, 0, threads)
        return block
