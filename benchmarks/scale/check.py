"""Comparison of the documents that a run kept with the planted truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from numpy.typing import NDArray

TRUTH = ["id", "cluster", "changed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Quality of the result of a run.

    Attributes:
        read: Number of input documents.
        kept: Number of kept documents.
        removed: Number of removed documents.
        surplus_copies: Kept identical copies beyond one of each cluster. Should be 0.
        unrelated_removed: Documents of no cluster that were removed. Should be 0.
        removed_share_by_changes: Share of the documents in clusters that were removed, by number of replaced words.
            Two or more usually leave a similarity below 0.8, so only the first indicates recall.
    """

    read: int
    kept: int
    removed: int
    surplus_copies: int
    unrelated_removed: int
    removed_share_by_changes: dict[int, float]


def check_answer(inputs: Sequence[Path], output: Path) -> Answer:
    """Compare the kept documents of a run with the truth columns of its input."""
    ids, cluster, changed = read_truth(inputs)
    kept_ids = ds.dataset(output / "kept", format="parquet").to_table(columns=["id"])["id"].to_numpy()
    is_kept = np.zeros(len(ids), dtype=bool)
    is_kept[kept_ids] = True  # ids are row numbers
    return Answer(
        read=len(ids),
        kept=len(kept_ids),
        removed=pq.read_metadata(output / "removed.parquet").num_rows,
        surplus_copies=surplus(cluster[is_kept & (changed == 0) & (cluster >= 0)]),
        unrelated_removed=int(np.count_nonzero(~is_kept & (cluster < 0))),
        removed_share_by_changes=removed_shares(is_kept[cluster >= 0], changed[cluster >= 0]),
    )


def read_truth(inputs: Sequence[Path]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int8]]:
    """Return ids, clusters and numbers of replaced words, in the order of ids."""
    table = ds.dataset([str(path) for path in inputs], format="parquet").to_table(columns=TRUTH)
    ids, cluster, changed = (table[name].to_numpy() for name in TRUTH)
    order = np.argsort(ids, kind="stable")
    return ids[order], cluster[order], changed[order]


def surplus(clusters: NDArray[np.int64]) -> int:
    """Return the number of documents beyond one of each cluster."""
    return len(clusters) - len(np.unique(clusters))


def removed_shares(is_kept: NDArray[np.bool_], changed: NDArray[np.int8]) -> dict[int, float]:
    """Return the removed share for each number of replaced words."""
    return {int(count): float(1 - is_kept[changed == count].mean()) for count in np.unique(changed)}
