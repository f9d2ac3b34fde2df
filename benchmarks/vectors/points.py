"""Three kinds of synthetic 128-dimensional vectors, identical on every machine, and images of digits.

``python -m benchmarks.vectors.points KIND ROWS OUT.npy``
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

DIMS = 128
SYNTHETIC = ("clustered", "surface", "sift-like")
# Handwritten digits, one dimension per pixel; always all of them, regardless of the number of rows.
DATA = Path(__file__).parents[3] / "shared" / "data" / "vec"
IMAGES = {"digits": "digits.npy", "MNIST": "mnist_t10k_first3000.npy"}
KINDS = (*SYNTHETIC, *IMAGES)


def images(kind: str) -> NDArray[np.float32] | None:
    """Return the images of a kind; None if the file is missing."""
    path = DATA / IMAGES[kind]
    if not path.exists():
        return None
    pixels: NDArray[np.uint8] = np.load(path)
    return pixels.astype(np.float32)


def make_points(kind: str, rows: int, seed: int = 1) -> NDArray[np.float32]:
    """Return points of a kind.

    clustered: ten points on average around each of many centres, equal in all dimensions. surface: points of a
    four-dimensional surface that is bent through all dimensions, with a little noise. sift-like: non-negative, many
    zeros, equal norm, like histograms of gradients; sixteen hidden dimensions and noise in all dimensions, so that
    neighbours are not much nearer than other points.
    """
    rng = np.random.default_rng(seed)
    if kind == "clustered":
        centres = rng.normal(size=(max(1, rows // 10), DIMS))
        points = centres[rng.integers(0, len(centres), rows)] + 0.15 * rng.normal(size=(rows, DIMS))
    elif kind == "surface":
        hidden = rng.uniform(-1, 1, size=(rows, 4))
        points = np.sin(hidden @ rng.normal(size=(4, DIMS)) + rng.uniform(0, 6, DIMS))
        points += 0.01 * rng.normal(size=(rows, DIMS))
    else:
        hidden = rng.normal(size=(rows, 16)) * np.linspace(1.5, 0.5, 16)
        centres = 0.7 * rng.normal(size=(200, 16))
        points = np.maximum(0, (hidden + centres[rng.integers(0, 200, rows)]) @ rng.normal(size=(16, DIMS)) - 0.5)
        points += np.maximum(0, 0.8 * rng.normal(size=(rows, DIMS)))
        points *= 512 / np.linalg.norm(points, axis=1, keepdims=True)
        points = np.minimum(255, np.round(points))
    return points.astype(np.float32)


if __name__ == "__main__":
    np.save(sys.argv[3], make_points(sys.argv[1], int(sys.argv[2])))
