"""Entry point of ``python -m benchmarks.linkage.filters``: candidates of two tables against published filters.

A threshold on the similarity of character 3-grams of all attributes, plain and with common shingles counting little, is
the highest one that finds 90 % of the true pairs, as in the published comparison. All pairs are found exactly. The
nearest records of each one, without a threshold, are the fewest that find that share, at most ten.
"""

from __future__ import annotations

import csv
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import minwise as mw
from benchmarks.record_files import command_line, write_json
from benchmarks.targets import align_rows
from minwise.results import ResultTable

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "er"
# Share of the true pairs that every method must find.
RECALL = 0.9
# Lowest threshold that is searched.
FLOOR = 0.05
# Maximum number of nearest records of each one.
MOST_NEAREST = 10
DISCOUNTS = ("none", "common")
# What is compared: all attributes as fields, all as one text, or the attributes that name an entity.
FORMS = ("fields", "text", "key")
KEYS = {"D1": ("name", "phone_number"), "D2": ("name",), "D4": ("title", "authors"), "Cora": ("title", "author")}
Row = dict[str, str]
# Recall, precision and candidates of the published filters, from the VLDB J. study that the README of the data names.
PUBLISHED: dict[str, dict[str, tuple[float, float, int]]] = {
    "D1": {"MinHash-LSH": (0.930, 0.0003, 258_721), "ε-join": (0.921, 0.732, 112)},
    "D2": {"MinHash-LSH": (0.983, 0.001, 1_141_652), "ε-join": (0.903, 0.095, 10_194)},
    "D4": {
        "MinHash-LSH": (0.947, 0.003, 745_514),
        "ε-join": (0.901, 0.945, 2_120),
        "kNN-join": (0.996, 0.954, 2_323),
    },
    "Cora": {"MinHash-LSH": (0.926, 0.029, 553_594), "ε-join": (0.902, 0.621, 24_955)},
}


@dataclass(frozen=True)
class Tables:
    """One or two tables of records with known truth.

    Attributes:
        name: Name of the dataset.
        left: Records of the first table.
        right: Records of the second table; None to search for pairs inside the first.
        truth: Positions of the records of each true pair.
    """

    name: str
    left: list[Row]
    right: list[Row] | None
    truth: set[tuple[int, int]]


def main() -> None:
    """Run the benchmark."""
    parser = command_line("linkage.filters", __doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="directory of pyjedai_D1 and the others")
    settings = parser.parse_args()
    if not settings.folder.is_dir():
        sys.exit(f"{settings.folder}: the datasets are missing; set --folder DIR")
    runs = [run for tables in read_all(settings.folder) for run in measure(tables)]
    print(align_rows([["dataset", "method", "recall", "precision", "candidates"], *rows(runs)], text_columns=2))
    if settings.record:
        print(f"written to {write_json({'recall': RECALL, 'floor': FLOOR, 'runs': runs}, benchmark='filters')}")


def read_all(folder: Path) -> list[Tables]:
    """Return the four datasets."""
    names = {"D1": ("rest1", "rest2", "|"), "D2": ("abt", "buy", "|"), "D4": ("dblp", "acm", "%")}
    linked = [_linked(folder / f"pyjedai_{name}", name, *parts) for name, parts in names.items()]
    cora = folder / "pyjedai_cora"
    truth = {(min(pair), max(pair)) for pair in _pairs(cora / "cora_gt.csv", "|", header=False)}
    return [*linked, Tables("Cora", _records(cora / "cora.csv", "|"), None, truth)]


def _linked(folder: Path, name: str, left: str, right: str, separator: str) -> Tables:
    truth = set(_pairs(folder / "gt.csv", separator, header=True))
    first, second = (_records(folder / f"{table}.csv", separator) for table in (left, right))
    return Tables(name, first, second, truth)


def _records(path: Path, separator: str) -> list[Row]:
    """Return the attributes of each record, without its id; columns named by a URL are named by its last part."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file, delimiter=separator)
    names = [name.rpartition("#")[2] for name in header]
    return [{name: value for name, value in list(zip(names, line, strict=False))[1:] if name} for line in lines]


def _pairs(path: Path, separator: str, *, header: bool) -> list[tuple[int, int]]:
    lines = path.read_text(encoding="utf-8").split()[1 if header else 0 :]
    pairs = (line.split(separator) for line in lines)
    return [(int(left), int(right)) for left, right in pairs]


def measure(tables: Tables) -> list[dict[str, Any]]:
    """Return the figures of each form of the records: of each weighting of their shingles, and of the nearest."""
    thresholds = [_threshold_run(tables, form, discount) for form in FORMS for discount in DISCOUNTS]
    return [*thresholds, *(_nearest_run(tables, form) for form in FORMS)]


def _threshold_run(tables: Tables, form: str, discount: str) -> dict[str, Any]:
    left, right = _documents(tables.left, form), None if tables.right is None else _documents(tables.right, form)
    options: dict[str, Any] = {"discount": discount, "exact": True, "threshold": FLOOR}
    start = time.perf_counter()
    table = mw.pairs(left, among=right, max_bucket=10_000, **_shingles(tables, form), **options)
    seconds = round(time.perf_counter() - start, 2)
    found = best_threshold(table.column(2).to_numpy(), _hits(tables, _columns(table)), len(tables.truth))
    return {"dataset": tables.name, "form": form, "discount": discount, "seconds": seconds, **found}


def _shingles(tables: Tables, form: str) -> dict[str, Any]:
    names = KEYS[tables.name] if form == "key" else tuple(tables.left[0])
    return {"shingle": "char:3"} if form == "text" else {"fields": dict.fromkeys(names, "char:3")}


def _columns(table: ResultTable) -> list[tuple[int, int]]:
    sides = (table.column(side).to_pylist() for side in ("left", "right"))
    return list(zip(*sides, strict=True))


def _hits(tables: Tables, pairs: list[tuple[int, int]]) -> NDArray[np.bool_]:
    return np.array([pair in tables.truth for pair in pairs], dtype=bool)


def _nearest_run(tables: Tables, form: str) -> dict[str, Any]:
    """Return the figures of the nearest records of each record of one table, of the better direction."""
    left, right = _documents(tables.left, form), None if tables.right is None else _documents(tables.right, form)
    runs = [_nearest(tables, form, left, right, of="left")]
    if right is not None:
        runs.append(_nearest(tables, form, right, left, of="right"))
    return max(runs, key=lambda run: (run["recall"] >= RECALL, run["precision"]))


def _nearest(tables: Tables, form: str, source: list[Any], among: list[Any] | None, of: str) -> dict[str, Any]:
    """Return the figures of the smallest number of nearest records that finds enough true pairs."""
    start = time.perf_counter()
    table = mw.nearest(source, among=among, top=MOST_NEAREST, **_shingles(tables, form))
    seconds = round(time.perf_counter() - start, 2)
    ranks = table.column("rank").to_numpy()
    runs = []
    for top in range(1, MOST_NEAREST + 1):
        pairs = [pair for pair, rank in zip(_columns(table), ranks.tolist(), strict=True) if rank <= top]
        ordered = {pair if of == "left" else pair[::-1] for pair in pairs}
        if among is None:
            ordered = {(min(pair), max(pair)) for pair in ordered}
        found = int(_hits(tables, list(ordered)).sum())
        runs.append(
            {
                "top": top,
                "candidates": len(ordered),
                "recall": found / len(tables.truth),
                "precision": found / len(ordered),
            }
        )
    best = next((run for run in runs if run["recall"] >= RECALL), runs[-1])
    return {"dataset": tables.name, "form": form, "of": of, "seconds": seconds, **best}


def _documents(records: list[Row], form: str) -> list[Any]:
    return [" ".join(filter(None, record.values())) for record in records] if form == "text" else list(records)


def best_threshold(similarity: NDArray[np.float64], hits: NDArray[np.bool_], true: int) -> dict[str, Any]:
    """Return the figures of the highest threshold that finds enough true pairs; of the lowest if none does.

    >>> best_threshold(np.array([0.3, 0.9, 0.5, 0.5]), np.array([True, True, False, True]), 3)["threshold"]
    0.3
    """
    order = np.argsort(-similarity, kind="stable")
    levels, found = similarity[order], np.cumsum(hits[order])
    last = np.flatnonzero(np.diff(levels, append=-1))  # of equally similar pairs
    enough = last[found[last] >= RECALL * true]
    at = int(enough[0] if len(enough) else last[-1])
    return {
        "threshold": float(levels[at]),
        "candidates": at + 1,
        "recall": int(found[at]) / true,
        "precision": int(found[at]) / (at + 1),
    }


def rows(runs: list[dict[str, Any]]) -> list[list[str]]:
    """Return the rows of the table: measured thresholds and published filters, by dataset."""
    lines = []
    for name, published in PUBLISHED.items():
        for run in (run for run in runs if run["dataset"] == name):
            figures = f"{run['recall']:.3f}", f"{run['precision']:.4f}", f"{run['candidates']:,}"
            lines.append([name, method_name(run), *figures])
        lines += [
            [name, f"{method}, published", f"{recall:.3f}", f"{precision:.4f}", f"{candidates:,}"]
            for method, (recall, precision, candidates) in published.items()
        ]
    return lines


def method_name(run: dict[str, Any]) -> str:
    """Return what a run did, for the table."""
    forms = {"text": "all attributes as one text", "fields": "all attributes by fields"}
    form = forms.get(run["form"]) or f"{' and '.join(KEYS[run['dataset']])} by fields"
    if "top" in run:
        return (
            f"{run['top']} nearest of each record of the {'first' if run['of'] == 'left' else 'second'} table, {form}"
        )
    weights = "discount common" if run["discount"] == "common" else "plain"
    return f"threshold {run['threshold']:.2f}, {weights}, {form}"


if __name__ == "__main__":
    main()
