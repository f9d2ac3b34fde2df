"""Bit vectors: pairs and neighbours equal those of counted bits."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from support.vectors import processor_seconds

import minwise as mw
from minwise.cli.command import command
from minwise.errors import InputError
from minwise.vectors import HammingSearch
from minwise.vectors import scan as scan_module

HASHES = st.tuples(st.integers(1, 25), st.sampled_from([1, 3, 8, 9, 17, 40])).flatmap(
    lambda shape: arrays(np.uint8, shape)
)


def differing_bits(vectors: NDArray[np.uint8], others: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the Hamming distance of every two rows."""
    return np.array(
        [
            [sum((a ^ b).bit_count() for a, b in zip(x, y, strict=True)) for y in others.tolist()]
            for x in vectors.tolist()
        ]
    )


def rows_of(table: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401 - a table
    """Return the rows of a table as tuples."""
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.fixture(params=[True, False] if scan_module.COUNTS_BITS else [False], autouse=True, scope="module")
def bits_are_counted(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Compare words of bits, and zeros and ones as with NumPy 1."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan_module, "COUNTS_BITS", request.param)
        yield request.param


@given(vectors=HASHES, radius=st.integers(0, 40))
def test_pairs_are_those_with_few_differing_bits(vectors: NDArray[np.uint8], radius: int) -> None:
    apart = differing_bits(vectors, vectors)
    expected = [(i, j, float(apart[i, j])) for i, j in np.argwhere(np.triu(apart <= radius, 1)).tolist()]
    assert rows_of(HammingSearch().fit(vectors).pairs(radius)) == expected


@given(vectors=HASHES, top=st.integers(1, 8))
def test_neighbours_are_those_with_the_fewest_differing_bits(vectors: NDArray[np.uint8], top: int) -> None:
    apart = differing_bits(vectors, vectors)
    expected = [
        (query, row, float(apart[query, row]))
        for query in range(len(vectors))
        for row in np.argsort(apart[query], kind="stable")[:top].tolist()
    ]
    assert rows_of(HammingSearch.plan(vectors, top=top).fit(vectors).query(vectors, top=top)) == expected


def test_files_of_hashes_are_searched_by_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hashes = np.random.default_rng(1).integers(0, 256, (40, 8)).astype(np.uint8)
    hashes[20:] = hashes[:20] ^ np.uint8(1)
    np.save("x.npy", hashes)
    pq.write_table(pa.table({"hash": pa.array(hashes.tolist(), pa.list_(pa.uint8()))}), "x.parquet")
    for name in ("x.npy", "x.parquet"):
        words = [
            "vectors",
            "pairs",
            name,
            "--measure",
            "hamming",
            "--radius",
            "8",
            "-o",
            "pairs.parquet",
            "--overwrite",
        ]
        done = CliRunner().invoke(command, words)
        assert done.exit_code == 0, done.output
        assert rows_of(pq.read_table("pairs.parquet")) == [(row, row + 20, 8.0) for row in range(20)]
    assert HammingSearch().fit(hashes).dedup(8).keep.tolist() == [True] * 20 + [False] * 20


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.zeros((2, 3)), r"bit vectors must be uint8, eight bits each, got float64; np\.packbits\(bits, axis=1\)"),
        (np.zeros((2, 3), dtype=np.int16), "got int16; np.packbits"),
        (np.zeros((2, 3), dtype=bool), r"got bool; np\.packbits\(bits, axis=1\)"),
    ],
)
def test_vectors_that_are_not_bytes_are_refused(vectors: NDArray[Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        mw.HammingSearch().fit(vectors)
    with pytest.raises(InputError, match=message):
        mw.HammingSearch.plan(np.zeros((2, 3), dtype=np.uint8), top=1, queries=vectors)


def test_tables_of_bits_are_refused() -> None:
    with pytest.raises(InputError, match="bit vectors must be uint8, eight bits each"):
        HammingSearch().fit(np.zeros((2, 3), dtype=np.uint8)).query([[1, 2, 3]], top=1)
    with pytest.raises(mw.MinwiseError, match="tables must be 0 for bit vectors"):
        HammingSearch(tables=3)  # type: ignore[arg-type]


def test_pairs_take_no_longer_than_brute_force(bits_are_counted: bool) -> None:
    """Zeros and ones took 1.8 to 3.1 times as long as counted bits in blocks; words take 0.4 to 0.8 times."""
    if not bits_are_counted:
        pytest.skip("NumPy 1 has no brute force that counts bits")
    hashes = np.random.default_rng(2).integers(0, 256, (10_000, 8)).astype(np.uint8)
    words = hashes.view(np.uint64).ravel()

    def brute_force() -> None:
        for start in range(0, len(words), 256):
            np.nonzero(np.bitwise_count(words[start : start + 256, None] ^ words[None, start:]) <= 10)

    ours, theirs = processor_seconds(lambda: HammingSearch().fit(hashes).pairs(10, threads=1), brute_force)
    assert ours < theirs
