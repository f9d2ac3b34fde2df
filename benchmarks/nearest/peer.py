"""Process that searches the nearest rows of sparse vectors with scikit-learn or sparse_dot_topn.

``python -m benchmarks.nearest.peer scikit-learn|sparse_dot_topn VECTORS.npz TOP``. The vectors have a one for each
element of a record; reading records and making vectors is not timed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib.metadata import version
from typing import Any

import numpy as np


def main() -> None:
    """Search and print the time."""
    name, path, top = sys.argv[1], sys.argv[2], int(sys.argv[3])
    left, right = read_vectors(path)
    start, cpu_start = time.perf_counter(), time.process_time()
    found = search(name, left, right, top)
    spent = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu_start}
    print(json.dumps({**spent, "rows": int(found), "version": version(name)}))


def read_vectors(path: str) -> tuple[Any, Any]:
    """Return the vectors of both sides, of length 1."""
    from scipy.sparse import csr_matrix  # type: ignore[import-untyped, import-not-found, unused-ignore]

    stored = np.load(path)
    columns, sides = int(stored["columns"]), []
    for side in ("left", "right"):
        offsets, elements = stored[f"{side}_offsets"], stored[f"{side}_elements"]
        sizes = np.diff(offsets)
        values = np.repeat(1 / np.sqrt(np.maximum(sizes, 1)), sizes).astype(np.float32)
        sides.append(csr_matrix((values, elements, offsets), shape=(len(sizes), columns)))
    return sides[0], sides[1]


def search(name: str, left: Any, right: Any, top: int) -> int:  # noqa: ANN401 - sparse matrices
    """Return the number of neighbours that are found, on all cores."""
    if name == "scikit-learn":
        from sklearn.neighbors import NearestNeighbors  # type: ignore[import-untyped, import-not-found, unused-ignore]

        searcher = NearestNeighbors(n_neighbors=top, algorithm="brute", metric="cosine", n_jobs=-1)
        return int(searcher.fit(right).kneighbors(left, return_distance=False).size)
    from sparse_dot_topn import sp_matmul_topn  # type: ignore[import-untyped, import-not-found, unused-ignore]

    return int(sp_matmul_topn(left, right.T.tocsr(), top_n=top, sort=True, n_threads=os.cpu_count()).nnz)


if __name__ == "__main__":
    main()
