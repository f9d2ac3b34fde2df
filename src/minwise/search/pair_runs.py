"""Sorted runs of pairs in a work directory, and their merge."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from minwise.search.bands import cut_runs, unpack_pairs
from minwise.search.clustering import PairBlock
from minwise.search.workdir import WorkDirectory

__all__ = ["merged_runs", "write_run"]


def write_run(work: WorkDirectory, name: str, pairs: NDArray[np.uint64], similarity: NDArray[np.float64]) -> None:
    """Write packed pairs and their similarities in ascending order."""
    order = np.argsort(pairs)
    work.write(name, {"pairs": pairs[order], "similarity": similarity[order]})


def merged_runs(work: WorkDirectory, prefix: str, most: int) -> Iterator[PairBlock]:
    """Yield the pairs of all runs whose names begin with ``prefix`` in ascending order, about ``most`` at a time."""
    files = [work.open(name) for name in work.names(prefix)]
    runs = [file.map("pairs") for file in files]
    for cuts in cut_runs(runs, most):
        pairs = np.concatenate([run[cut] for run, cut in zip(runs, cuts, strict=True)])
        similarity = np.concatenate([file.map("similarity")[cut] for file, cut in zip(files, cuts, strict=True)])
        order = np.argsort(pairs)
        yield PairBlock(*unpack_pairs(pairs[order]), similarity[order])
