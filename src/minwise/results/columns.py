"""Columns of result tables that identify documents."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise._internal.arrays import from_numpy
from minwise.inputs.table_writer import TABLE_ROWS
from minwise.search.engine import Found

__all__ = ["identity", "identity_schema", "similarity_column", "slices"]


def slices(numbers: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """The numbers, as many at a time as a table has rows; one empty slice if there are none."""
    return (numbers[start : start + TABLE_ROWS] for start in range(0, max(1, len(numbers)), TABLE_ROWS))


def identity(found: Found, numbers: NDArray[Any]) -> dict[str, pa.Array]:
    """The columns id, source and row of documents."""
    names, rows = found.documents.locate(numbers)
    return {"id": found.documents.ids(numbers), "source": names, "row": from_numpy(rows)}


def identity_schema(found: Found) -> dict[str, pa.DataType]:
    """The types of these columns."""
    return {"id": found.documents.id_type, "source": pa.large_string(), "row": pa.int64()}


def similarity_column(values: NDArray[np.float64]) -> pa.Array:
    """Similarities, null where they are unknown."""
    return from_numpy(values, ~np.isnan(values))
