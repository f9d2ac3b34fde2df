"""Real baskets and records: exact pairs equal a brute-force join, and records with typos are found.

The data is not part of this repository; without it the tests are skipped.
"""

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import minwise as mw
from benchmarks.linkage.data import FIELDS, THRESHOLD, WEIGHTS, read_people

DATA = Path(__file__).parents[3] / "shared" / "data"
SETS, FEBRL = DATA / "sets", DATA / "er" / "febrl"
has_sets = pytest.mark.skipif(not SETS.is_dir(), reason="the baskets of ../shared/data are not here")
has_febrl = pytest.mark.skipif(not FEBRL.is_dir(), reason="the records of ../shared/data are not here")
BASKETS: dict[str, dict[str, Any]] = {
    "groceries.csv": {"format": "baskets", "separator": ",", "threshold": 0.7},
    "onlineretail_invoices.txt": {"format": "named-baskets", "threshold": 0.5},
}
BLOCK_ROWS = 1000
# Groups of identical baskets are paired all with all.
UNCAPPED: dict[str, Any] = {"max_bucket": 10_000}


def brute_force(sets: dict[Any, frozenset[str]], threshold: float) -> dict[frozenset[Any], float]:
    """Return every similar pair, from the matrix of shared item counts, some rows of it at a time."""
    names, columns = list(sets), {item: number for number, item in enumerate(sorted(set().union(*sets.values())))}
    sizes = np.array([len(items) for items in sets.values()])
    indices = [columns[item] for items in sets.values() for item in items]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    matrix = csr_array((np.ones(len(indices), dtype=np.int32), indices, starts), shape=(len(names), len(columns)))
    pairs = {}
    for first in range(0, len(names), BLOCK_ROWS):
        shared = (matrix[first : first + BLOCK_ROWS] @ matrix.T).tocoo()
        left, right = shared.row + first, shared.col
        similarity = shared.data / (sizes[left] + sizes[right] - shared.data)
        for position in np.flatnonzero((similarity >= threshold) & (left < right)).tolist():
            pairs[frozenset((names[left[position]], names[right[position]]))] = float(similarity[position])
    return pairs


def read_baskets(name: str) -> dict[Any, frozenset[str]]:
    """Return the sets of a file by id."""
    lines = (SETS / name).read_text(encoding="utf-8").splitlines()
    if name == "groceries.csv":
        return {
            f"{SETS / name}:{row}": frozenset(item.strip() for item in line.split(",") if item.strip())
            for row, line in enumerate(lines)
        }
    return {line.split()[0]: frozenset(line.split()[1:]) for line in lines}


@has_sets
@pytest.mark.parametrize("name", BASKETS)
def test_exact_pairs_of_baskets_equal_a_brute_force_join(name: str) -> None:
    """The similarities are equal to the last bit."""
    options = BASKETS[name]
    truth = brute_force(read_baskets(name), options["threshold"])
    rows = mw.pairs(SETS / name, shingle="set", exact=True, **options, **UNCAPPED).to_pylist()
    found = {frozenset((row["left"], row["right"])): row["similarity"] for row in rows}
    assert len(rows) == len(found) > 10_000
    assert found == truth


@has_sets
def test_similar_items_equal_a_brute_force_join() -> None:
    """The sets are the invoices of each item."""
    items: dict[str, set[str]] = defaultdict(set)
    for invoice, bought in read_baskets("onlineretail_invoices.txt").items():
        for item in bought:
            items[item].add(invoice)
    truth = brute_force({item: frozenset(invoices) for item, invoices in items.items()}, 0.3)
    options: dict[str, Any] = {"shingle": "set", "format": "named-baskets", "transpose": True, "threshold": 0.3}
    rows = mw.pairs(SETS / "onlineretail_invoices.txt", exact=True, **options, **UNCAPPED).to_pylist()
    assert {frozenset((row["left"], row["right"])): row["similarity"] for row in rows} == truth
    assert len(rows) > 500


@has_febrl
@pytest.mark.parametrize(("number", "completeness"), [(1, 0.99), (2, 0.99), (3, 0.99)])
def test_people_with_typos_are_found(number: int, completeness: float, tmp_path: Path) -> None:
    """At least 99 % of the true pairs are candidates, and at least 99 % of all pairs are not."""
    report = mw.write_pairs(
        read_people(FEBRL, number),
        tmp_path / "pairs.csv",
        id_column="rec_id",
        fields=FIELDS,
        weights=WEIGHTS,
        threshold=THRESHOLD,
        truth="entity",
    )
    quality = report["blocking"]
    assert quality["pairs_completeness"] >= completeness
    assert quality["reduction_ratio"] >= 0.99
