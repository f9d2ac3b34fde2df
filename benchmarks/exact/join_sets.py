"""Process that joins the sets in a file and prints the time it took.

``python -m benchmarks.exact.join_sets minwise|SetSimilaritySearch SETS.npz THRESHOLD THREADS``
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version

import numpy as np


def join_by_minwise(offsets: np.ndarray, elements: np.ndarray, threshold: float, threads: int) -> Callable[[], int]:
    """Return the public call, which spills, joins, verifies and returns the table of pairs."""
    import minwise as mw

    sets, find = mw.ShingleSets(offsets, elements), mw.pairs  # accessing the name triggers its lazy imports
    return lambda: find(sets, exact=True, threshold=threshold, threads=threads).num_rows


def join_by_peer(offsets: np.ndarray, elements: np.ndarray, threshold: float, threads: int) -> Callable[[], int]:
    """Return the join of SetSimilaritySearch, which uses one thread."""
    from SetSimilaritySearch import all_pairs  # type: ignore[import-untyped, import-not-found, unused-ignore]

    sets = [set(part.tolist()) for part in np.split(elements, offsets[1:-1])]
    return lambda: sum(1 for _ in all_pairs(sets, similarity_func_name="jaccard", similarity_threshold=threshold))


def main() -> None:
    """Join once and print the result."""
    package, path, threshold, threads = sys.argv[1:]
    with np.load(path) as sets:
        prepare = join_by_minwise if package == "minwise" else join_by_peer
        join = prepare(sets["offsets"], sets["elements"], float(threshold), int(threads))
    start = time.perf_counter()
    pairs = join()
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "pairs": pairs, "version": version(package)}))


if __name__ == "__main__":
    main()
