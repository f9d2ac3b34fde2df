"""Keep: a policy in, the order in which documents are preferred out."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from minwise.arrays import from_numpy, to_numpy

__all__ = ["KeepOrder"]


class KeepOrder:
    """A numbering of documents by preference: number 0 is kept before all others.

    Attributes:
        number_of: The number of each document.
        document_at: The document of each number.
        is_document_order: Whether a document's number is its own.
    """

    def __init__(self, document_at: NDArray[np.uint32], *, is_document_order: bool = False) -> None:
        self.is_document_order = is_document_order
        self.document_at = self.number_of = document_at
        if not is_document_order:
            self.number_of = np.empty_like(document_at)
            self.number_of[document_at] = np.arange(len(document_at), dtype=np.uint32)

    @classmethod
    def of(
        cls,
        policy: str,
        documents: int,
        *,
        protected: int = 0,
        lengths: NDArray[np.uint64] | None = None,
        ranks: pa.Array | None = None,
    ) -> "KeepOrder":
        """The order of a policy; ties by document order.

        Args:
            policy: ``first``, ``last``, ``longest``, ``shortest``, ``max:COL`` or ``min:COL``.
            documents: How many there are.
            protected: The first so many come first whatever the policy says.
            lengths: Bytes of each text, for ``longest`` and ``shortest``.
            ranks: The column's values, for ``max`` and ``min``; documents without one come last.
        """
        name = policy.partition(":")[0]
        if name == "first":
            return cls(np.arange(documents, dtype=np.uint32), is_document_order=True)
        free = np.arange(protected, documents, dtype=np.uint32)
        if name == "last":
            free = free[::-1]
        elif name in ("longest", "shortest") and lengths is not None:
            keys = lengths[protected:].astype(np.int64)
            free = free[np.argsort(-keys if name == "longest" else keys, kind="stable")]
        elif name in ("max", "min") and ranks is not None:
            free = free[_sorted_places(ranks.slice(protected), descending=name == "max")]
        return cls(np.concatenate([np.arange(protected, dtype=np.uint32), free]))


def _sorted_places(ranks: pa.Array, *, descending: bool) -> NDArray[np.int64]:
    """Places in sorted order; equal values in their order, nulls and what is not a number last."""
    if pa.types.is_floating(ranks.type):
        ranks = pc.if_else(pc.is_nan(ranks), None, ranks)
    table = pa.table({"rank": ranks, "place": from_numpy(np.arange(len(ranks)))})
    keys = [("rank", "descending" if descending else "ascending"), ("place", "ascending")]
    return to_numpy(pc.sort_indices(table, sort_keys=keys)).astype(np.int64)
