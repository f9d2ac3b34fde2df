"""Vectors: keys, contents and distances of the kernel equal the reference bit for bit on any processor."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from support.strategies import seeds

from minwise import _kernel, reference
from minwise.search.bands import FAULTY, FILLED, NO_KEY, KeyBlock
from minwise.sketches.planning import Plan
from minwise.vectors.projection import VectorSettings

FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
SHAPES = st.tuples(st.integers(1, 5), st.integers(1, 37))
FLOATS = SHAPES.flatmap(lambda shape: arrays(np.float32, shape, elements=FINITE))
BYTES = SHAPES.flatmap(lambda shape: arrays(np.uint8, shape))
WIDTHS = st.none() | st.floats(1e-3, 1e6)
LAYOUTS = st.tuples(st.integers(1, 5), st.integers(1, 5))
HUGE = np.array([[3e38, -3e38], [1e-45, -0.0]], dtype=np.float32)


def banded(
    vectors: NDArray[Any], layout: tuple[int, int], width: float | None, seed: int, *, simd: bool, threads: int = 1
) -> tuple[KeyBlock, list[tuple[int, str]]]:
    """Return the keys, contents and faults that the kernel computes for vectors."""
    hashes, tables = layout
    plan = Plan(threshold=1.0, bands=tables, rows=hashes)
    settings = VectorSettings(plan=plan, shingler=None, measure="euclidean", width=width, radius=0.0, seed=seed)
    block = KeyBlock.allocate(settings, len(vectors))
    kernel = _kernel.VectorBander(
        dims=vectors.shape[1], hashes=hashes, tables=tables, width=width, seed=seed, simd=simd
    )
    return block, kernel.band_vectors(vectors, block, 0, threads)


@given(vectors=FLOATS | BYTES, layout=LAYOUTS, width=WIDTHS, seed=seeds)
@example(vectors=HUGE, layout=(2, 2), width=1e-3, seed=1)
@example(vectors=np.array([[1.2e20]], dtype=np.float32), layout=(1, 1), width=1.0, seed=1)  # the slot is 2⁶⁴ − 1
@pytest.mark.parametrize("simd", [True, False])
def test_keys_and_contents(
    simd: bool, vectors: NDArray[Any], layout: tuple[int, int], width: float | None, seed: int
) -> None:
    """For every vector; a zero vector has no key for cosine distance."""
    block, faults = banded(vectors, layout, width, seed, simd=simd)
    directionless = [row for row in range(len(vectors)) if width is None and not vectors[row].any()]
    assert [row for row, _ in faults] == directionless
    for row, vector in enumerate(vectors):
        if row in directionless:
            assert (block.states[row], set(block.keys[:, row].tolist())) == (FAULTY, {NO_KEY})
            continue
        assert block.states[row] == FILLED
        assert block.keys[:, row].tolist() == reference.vector_keys(vector, *layout, width, seed)
        assert tuple(block.contents[row].tolist()) == reference.vector_content(vector, seed)


@given(vectors=FLOATS | BYTES)
@example(vectors=HUGE)
def test_distances(vectors: NDArray[Any]) -> None:
    """For every pair; the cosine only for vectors that are not zero."""
    left, right = (side.astype(np.uint32) for side in np.triu_indices(len(vectors)))
    for measure, twin in (("euclidean", reference.euclidean_distance), ("cosine", reference.cosine_distance)):
        found = _kernel.vector_distances(vectors, vectors, left, right, measure, math.inf, 1)
        for one, other, distance in zip(left.tolist(), right.tolist(), found.tolist(), strict=True):
            if measure == "cosine" and not (vectors[one].any() and vectors[other].any()):
                continue
            assert distance == twin(vectors[one], vectors[other])


@given(vectors=FLOATS, share=st.floats(0, 1))
def test_a_bound_replaces_exactly_the_larger_distances(vectors: NDArray[Any], share: float) -> None:
    """NaN represents a larger distance, whether or not it was computed completely."""
    left, right = (side.astype(np.uint32) for side in np.triu_indices(len(vectors)))
    every = _kernel.vector_distances(vectors, vectors, left, right, "euclidean", math.inf, 1)
    bound = np.sort(every)[int(share * (len(every) - 1))]
    within = _kernel.vector_distances(vectors, vectors, left, right, "euclidean", bound, 1)
    np.testing.assert_array_equal(within, np.where(every <= bound, every, np.nan))


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
@pytest.mark.parametrize("width", [None, 40.0])
def test_the_result_does_not_depend_on_threads_and_batches(dtype: type, width: float | None) -> None:
    """1,001 vectors, whole, over three threads, and in two calls."""
    vectors: NDArray[Any] = np.random.default_rng(3).integers(0, 256, (1001, 33)).astype(dtype)
    whole, _ = banded(vectors, (3, 17), width, 1, simd=True)
    spread, _ = banded(vectors, (3, 17), width, 1, simd=True, threads=3)
    first, _ = banded(vectors[:500], (3, 17), width, 1, simd=False)
    second, _ = banded(vectors[500:], (3, 17), width, 1, simd=True)
    np.testing.assert_array_equal(whole.keys, spread.keys)
    np.testing.assert_array_equal(whole.keys, np.concatenate([first.keys, second.keys], axis=1))
    np.testing.assert_array_equal(whole.contents, np.concatenate([first.contents, second.contents]))


def test_bytes_have_the_keys_of_the_same_numbers() -> None:
    """So that an image can be searched without conversion to floats."""
    vectors = np.random.default_rng(4).integers(0, 256, (50, 19)).astype(np.uint8)
    both = (vectors, vectors.astype(np.float32))
    small, large = (banded(values, (2, 9), 30.0, 1, simd=True)[0] for values in both)
    np.testing.assert_array_equal(small.keys, large.keys)
    np.testing.assert_array_equal(small.contents, large.contents)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_reported(value: float) -> None:
    """With its column; other vectors have their keys."""
    vectors = np.ones((3, 4), dtype=np.float32)
    vectors[1, 2] = value
    block, faults = banded(vectors, (2, 2), 1.0, 1, simd=True)
    shown = "NaN" if math.isnan(value) else str(value)
    assert faults == [(1, f"values must be finite, got {shown} at column 2")]
    assert block.states.tolist() == [FILLED, FAULTY, FILLED]
    assert set(block.keys[:, 1].tolist()) == {NO_KEY}
