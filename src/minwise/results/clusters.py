"""Clusters: verified pairs in, the cluster of every document out."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from minwise.arrays import from_numpy
from minwise.engines.found import Found
from minwise.results.columns import slices
from minwise.stages.band import FAULTY
from minwise.stages.cluster import group_by_components, group_by_star

__all__ = ["Clustering"]


class Clustering:
    """The clusters of a search, each called after its first document."""

    def __init__(self, found: Found) -> None:
        documents = found.documents
        if found.settings.group == "components":
            heads = group_by_components(found.blocks, found.copies, len(documents))
        else:
            grouping = group_by_star(found.blocks, found.copies, len(documents))
            heads = np.where(grouping.removed, grouping.witness, np.arange(len(documents)))
        self._documents = documents
        self._heads = heads.astype(np.int64)
        self._readable = np.flatnonzero(documents.states != FAULTY)
        self._sizes = np.bincount(self._heads[self._readable], minlength=len(documents))

    @property
    def of_two_or_more(self) -> int:
        """How many clusters have more than one document."""
        return int(np.count_nonzero(self._sizes > 1))

    def tables(self) -> Iterator[pa.Table]:
        """Every document with the id of its cluster's first document and the cluster's size."""
        for numbers in slices(self._readable):
            heads = self._heads[numbers]
            ids, owners = self._documents.ids(numbers), self._documents.ids(heads)
            yield pa.table({"id": ids, "cluster": owners, "size": from_numpy(self._sizes[heads])})

    @property
    def schema(self) -> pa.Schema:
        """The columns of the tables."""
        kind = self._documents.id_type
        return pa.schema([("id", kind), ("cluster", kind), ("size", pa.int64())])
