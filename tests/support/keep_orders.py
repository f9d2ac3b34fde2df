"""Keep orders of documents given as arrays."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise.keep_rules import KeepRule
from minwise.search.clustering import KeepOrder, SortKey, by_number, by_value

__all__ = ["order_of"]


def order_of(
    keep: str,
    documents: int,
    *,
    references: int = 0,
    lengths: NDArray[Any] | None = None,
    values: Mapping[str, pa.Array] | None = None,
) -> KeepOrder:
    """Return the order of the setting ``keep`` over documents with these lengths and values of columns."""
    rule, keys = KeepRule.of(keep), list[SortKey]()
    for policy, column in rule.sort_keys:
        if column:
            keys.append(by_value((values or {})[column], descending=policy == "max"))
        elif lengths is not None:
            sizes = lengths.astype(np.int64)
            keys.append(by_number(-sizes if policy == "longest" else sizes))
    return KeepOrder.of(documents, keys, references=references, last_first=rule.last_first)
