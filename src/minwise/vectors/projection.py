"""Random projections: band keys of vectors, and the probability that two vectors share a bucket.

Each hash is a random projection of a vector. Its value is a slot, as in a signature: the number of a segment of length
``width``, h(x) = ⌊(w·x + u)/width⌋ (Datar, Immorlica, Indyk & Mirrokni, 2004, section 3.2), or the sign of w·x
(Charikar, 2002). The slots of a table form its key, and a table is used like a band of texts.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import to_matrix
from minwise.search.bands import KeyBlock
from minwise.settings import SearchSettings

__all__ = ["Measure", "VectorBander", "VectorSettings", "bucket_probability", "slot_probability"]

Measure = Literal["euclidean", "cosine", "hamming"]


def slot_probability(measure: Measure, distance: float, width: float | None) -> float:
    """Return the probability that one projection gives two vectors at a distance the same slot.

    Euclidean, with t = width/distance: 1 − 2Φ(−t) − 2/(√(2π)·t)·(1 − exp(−t²/2)). Cosine: 1 − θ/π, where the distance
    is 1 − cos θ.

    >>> round(slot_probability("euclidean", 1.0, 4.0), 4), round(slot_probability("cosine", 1.0, None), 4)
    (0.8005, 0.5)
    """
    if measure == "cosine":
        return 1.0 - math.acos(min(1.0, max(-1.0, 1.0 - distance))) / math.pi
    if distance <= 0.0 or width is None:
        return 1.0
    if math.isinf(distance):
        return 0.0
    t = width / distance
    return math.erf(t / math.sqrt(2)) - math.sqrt(2 / math.pi) / t * -math.expm1(-t * t / 2)


def bucket_probability(slot: float, hashes: int, tables: int) -> float:
    """Return the probability that two vectors share a bucket of at least one table: 1 − (1 − slot^hashes)^tables.

    Args:
        slot: Probability that one projection gives them the same slot.
        hashes: Projections per key.
        tables: Number of keys.
    """
    same_key = slot**hashes
    return 1.0 if same_key >= 1.0 else -math.expm1(tables * math.log1p(-same_key))


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorSettings(SearchSettings):
    """Everything that decides which pairs of vectors are found. A table is a band, a projection is a slot.

    Attributes:
        measure: ``euclidean``, ``cosine`` or ``hamming``.
        width: Segment length of a projection; None for cosine.
        radius: Maximum distance of a pair.
        scan: Whether all vectors are compared, without tables; the plan then has one table that is not used.
    """

    measure: Measure
    width: float | None
    radius: float
    scan: bool = False

    @property
    def similarity_name(self) -> str:
        """Name of the distance column."""
        return "distance"

    @property
    def identical_similarity(self) -> float:
        """Distance of identical vectors."""
        return 0.0

    def plan_dict(self) -> dict[str, Any]:
        """Return the radius and the probability that a pair at the radius is found."""
        return {"radius": self.radius, "recall": self.probability(self.radius)}

    def probability(self, distance: float) -> float:
        """Return the probability that two vectors at a distance are compared."""
        if self.scan:
            return 1.0
        return bucket_probability(slot_probability(self.measure, distance, self.width), self.plan.rows, self.plan.bands)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values under their public names."""
        shown: dict[str, Any] = {"measure": self.measure, "radius": self.radius}
        if self.scan:
            return {**shown, "tables": 0, "max_bucket": self.max_bucket}
        if self.width is not None:
            shown["width"] = self.width
        layout = {"hashes": self.plan.rows, "tables": self.plan.bands}
        return {**shown, **layout, "seed": self.seed, "max_bucket": self.max_bucket}


class VectorBander:
    """Computes the keys of vectors.

    Args:
        settings: Number of hashes and tables, width and seed.
        dims: Values per vector.
    """

    def __init__(self, settings: VectorSettings, dims: int) -> None:
        plan, self.settings = settings.plan, settings
        self._kernel = _kernel.VectorBander(
            dims=dims, hashes=plan.rows, tables=plan.bands, width=settings.width, seed=settings.seed
        )

    def band(self, texts: pa.Array, block: KeyBlock, threads: int) -> list[tuple[int, str]]:
        """Add vectors to the block; return the index and the reason of each that cannot be used.

        Nulls are marked as faulty but not returned, because their source reports them.
        """
        if not pa.types.is_fixed_size_list(texts.type):  # the empty last batch of a source with a read error
            return []
        start, block.used = block.used, block.used + len(texts)
        faults = self._kernel.band_vectors(to_matrix(texts), block, start, threads)
        return block.mark_nulls(start, texts, faults)

    def keys(self, vectors: NDArray[Any], settings: SearchSettings, threads: int) -> KeyBlock:
        """Return a new block with the keys of a matrix."""
        block = KeyBlock.allocate(settings, len(vectors))
        block.used = len(vectors)
        self._kernel.band_vectors(vectors, block, 0, threads)
        return block
