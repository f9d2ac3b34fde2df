"""The Spark engine writes the same bytes as the local engine, for any arrangement of the cluster.

A run on a cluster takes seconds, so each case covers many features and has its own arrangement; with the environment
variable MINWISE_TORTURE set, each runs with all of them.
"""

import gzip
import json
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from property.test_one_answer import SCENARIOS, SEARCH, SHARDS, corpus, write_shards
from support.spark.arrangement import LOCAL, SPARK, Arrangement, differing_files, file_digests, write_tables_of
from support.spark.corpora import TABLES, write_dialects, write_tables, write_texts

import minwise as mw
from minwise.inputs import Files
from minwise.search import needed_pairs
from minwise.spark.cells import CellPlan, plan_cells

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# One partition; many tasks per file, partitions and batches; some of them; and odd numbers of them.
ONE = Arrangement(partitions=1, batch_rows=1, adaptive=True, order=1)
MANY = Arrangement(partitions=12, task_bytes=1 << 13, split_bytes=1 << 14, batch_rows=7, order=2, cell_bytes=10_000)
SOME = Arrangement(partitions=3, task_bytes=1 << 13, split_bytes=1 << 20, batch_rows=100, adaptive=True)
ODD = Arrangement(partitions=7, task_bytes=5000, split_bytes=1 << 14, batch_rows=64, order=1, cell_bytes=1 << 14)
ALL = tuple(
    Arrangement(partitions=partitions, task_bytes=task, split_bytes=split, batch_rows=rows, adaptive=adaptive)
    for partitions, task, (split, rows), adaptive in product(
        (1, 3, 50), (1 << 11, 1 << 27), ((1 << 12, 1), (1 << 27, 10_000)), (True, False)
    )
)
TORTURE = bool(os.environ.get("MINWISE_TORTURE"))


@dataclass(frozen=True)
class Case:
    """A corpus and settings.

    Attributes:
        make: Writes the files to a folder.
        files: Files of the folder to read.
        options: Settings of `mw.dedup`.
        arrangement: Division of the work by Spark, unless all are tested.
        complete: Number of proposals up to which all pairs are compared; None for that of the engine, which is more
            than any case has.
        cut: Whether the arrangement cuts a component into several intervals.
    """

    make: Callable[[Path], None]
    files: tuple[str, ...]
    options: dict[str, Any]
    arrangement: Arrangement = field(default_factory=Arrangement)
    complete: int | None = None
    cut: bool = False


def _shards(folder: Path) -> None:
    write_shards(folder, corpus())


def _tables(folder: Path) -> None:
    write_tables(folder / "t", 3)
    write_tables(folder / "known", 4, chains=4)
    for name in TABLES[:3]:  # some documents are in both corpora
        (folder / "known" / f"same-{name}").write_bytes((folder / "t" / name).read_bytes())


def _texts(folder: Path) -> None:
    write_texts(folder / "texts", 5)


def _weighted(folder: Path) -> None:
    """Write sets of items with weights of their own; one has too few weights."""
    rng = random.Random(6)
    families = [rng.sample(range(300), 20) for _ in range(10)]
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number in range(150):
        items = [str(item) for item in rng.choice(families) if rng.random() < 0.9]
        rows.append({"id": number, "items": items, "weights": [round(rng.uniform(0.5, 4), 2) for _ in items]})
    rows[7]["weights"] = [1.5]
    (folder / "sets.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def _lines(folder: Path) -> None:
    """Write documents on lines, an image, a link, and a file that is compressed and begins with an underscore."""
    (folder / "lines").mkdir(parents=True)
    lines = [f"the ferry of {hour % 12} leaves the old harbour for island {hour % 7}\n\n" for hour in range(200)]
    (folder / "lines" / "a.txt").write_text("".join(lines), encoding="utf-8")
    (folder / "lines" / "_b.txt.gz").write_bytes(gzip.compress("".join(lines[:50]).encode(), mtime=0))
    (folder / "lines" / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(10))
    (folder / "lines" / "link.txt").symlink_to("a.txt")


def _dialects(folder: Path) -> None:
    write_dialects(folder / "d", 7)


TABLE_SEARCH: dict[str, Any] = {
    "text_column": ("title", "body"),
    "id_column": "key",
    "on_error": "quarantine",
    "threshold": 0.6,
}
CASES = {
    "star": Case(_shards, SHARDS, {**SEARCH, **SCENARIOS["star"]}, MANY, complete=200),
    "capped": Case(_shards, SHARDS, {**SEARCH, **SCENARIOS["capped"]}, ODD),
    "components": Case(_shards, SHARDS, {**SEARCH, **SCENARIOS["components"]}, ONE),
    "estimates": Case(_shards, SHARDS, {**SEARCH, **SCENARIOS["estimates"]}, ODD),
    "ranked": Case(_shards, SHARDS, {**SEARCH, **SCENARIOS["ranked"]}, SOME, complete=200),
    "formats against": Case(
        _tables,
        tuple(f"t/{name}" for name in TABLES),
        {**TABLE_SEARCH, "against": "known", "keep": "min:year", "shingle": "char:7", "max_bucket": 16},
        MANY,
        cut=True,
    ),
    "rules": Case(
        _tables,
        tuple(f"t/{name}" for name in TABLES),
        {
            **TABLE_SEARCH,
            "against": "known",
            "keep": "min:year,longest,last",
            "prefer": {"year": [1991, 1970]},
            "protect": {"title": ["a title", "ünïcödé"], "year": 2020},
            "shingle": "char:7",
        },
        MANY,
        complete=200,
    ),
    "contained rules": Case(
        _tables,
        tuple(f"t/{name}" for name in TABLES),
        {**TABLE_SEARCH, "measure": "containment", "keep": "max:year,last", "protect": "title=a title"},
        SOME,
    ),
    "dialects": Case(_dialects, ("d",), {"on_error": "quarantine", "shingle": "word:3", "threshold": 0.6}, MANY),
    "lines": Case(_lines, ("lines",), {"format": "lines", "on_error": "quarantine", "shingle": "word:3"}, MANY),
    "weights": Case(
        _weighted,
        ("sets.jsonl",),
        {
            "shingle": "set",
            "text_column": "items",
            "weight": "weights",
            "threshold": 0.5,
            "discount": "common",
            "on_error": "quarantine",
        },
        SOME,
    ),
    "discount": Case(
        _tables,
        tuple(f"t/{name}" for name in TABLES),
        {**TABLE_SEARCH, "against": "known", "keep": "longest", "shingle": "word:2", "discount": "common"},
        MANY,
        complete=200,
    ),
    "within": Case(
        _tables,
        tuple(f"t/{name}" for name in TABLES),
        {**TABLE_SEARCH, "against": "known", "shingle": "word:2", "within": "year", "max_bucket": 16},
        MANY,
        complete=200,
    ),
    "across": Case(
        _tables,
        tuple(f"t/{name}" for name in TABLES),
        {**TABLE_SEARCH, "against": "known", "shingle": "word:2", "across": "year", "keep": "longest"},
        MANY,
        complete=200,
    ),
    "across estimates": Case(
        _tables,
        tuple(f"t/{name}" for name in TABLES),
        {**TABLE_SEARCH, "shingle": "word:2", "across": "year", "verify": "signature", "group": "components"},
        ODD,
    ),
    "across candidates": Case(
        _tables, tuple(f"t/{name}" for name in TABLES), {**TABLE_SEARCH, "across": "year", "verify": "none"}, SOME
    ),
    "within discount": Case(
        _tables,
        tuple(f"t/{name}" for name in TABLES),
        {**TABLE_SEARCH, "shingle": "word:2", "within": "year", "discount": "common"},
        MANY,
    ),
    "bytes": Case(_texts, ("texts",), {"shingle": "byte:6", "bag": True, "threshold": 0.7, "seed": 9}, SOME),
}


def deduplicated(case: Case, engine: dict[str, Any], files: Files, folder: Path) -> Path:
    """Write the output, the tables of the result, and those of a higher threshold; return the folder."""
    result = mw.dedup(files, folder / "out", **case.options, **engine)
    (folder / "memory").mkdir()
    write_tables_of(result, folder / "memory")
    if case.options.get("verify") != "none":
        higher = result.rethreshold(0.9)
        (folder / "higher").mkdir()
        write_tables_of(higher, folder / "higher")
    return folder


@pytest.mark.parametrize("name", CASES)
def test_dedup_gives_the_bytes_of_the_local_engine(
    name: str, spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kept files in their formats, removed, clusters, quarantine and report; and the tables of the result."""
    case = CASES[name]
    if case.complete is not None:
        monkeypatch.setattr(needed_pairs, "COMPLETE_PROPOSALS", case.complete)
    case.make(tmp_path / "in")
    monkeypatch.chdir(tmp_path / "in")
    (tmp_path / "local").mkdir()
    local = deduplicated(case, LOCAL, Files(case.files), tmp_path / "local")
    assert {"out/removed.parquet", "out/clusters.parquet", "out/report.json", "out/run.json"} <= file_digests(
        local
    ).keys()
    if case.complete is not None:
        pairs = json.loads((local / "out/report.json").read_text())["pairs"]
        assert pairs["sampled_one_in"] > 1
        assert pairs["compared"] != pairs["candidates"]
    plans = noted_plans(monkeypatch)
    for number, arrangement in enumerate(ALL if TORTURE else [case.arrangement]):
        folder = tmp_path / f"spark{number}"
        folder.mkdir()
        with arrangement.on(spark):
            other = deduplicated(case, SPARK, arrangement.arranged(case.files), folder)
        assert differing_files(local, other) == []
    if case.cut and not TORTURE:
        assert max(grid.intervals for plan in plans for grid in plan.grids) > 2


def noted_plans(monkeypatch: pytest.MonkeyPatch) -> list[CellPlan]:
    """Return a list to which every plan of cells is added."""
    plans: list[CellPlan] = []

    def noted(*arguments: Any, **options: Any) -> CellPlan:  # noqa: ANN401 - those of plan_cells
        plans.append(plan_cells(*arguments, **options))
        return plans[-1]

    monkeypatch.setattr("minwise.spark.engine.plan_cells", noted)
    return plans


def write_pairs_and_clusters(files: Files, folder: Path, options: dict[str, Any]) -> list[dict[str, Any]]:
    """Write pairs in several formats, with and without sources, and clusters, from one search; return the reports."""
    shared = {**options, "work": folder / "work"}
    out = folder / "out"
    out.mkdir(parents=True)
    reports = [
        mw.write_pairs(files, out / "pairs.jsonl", sources=True, **shared),
        mw.write_pairs(files, out / "pairs.parquet", **shared),
        mw.write_pairs(files, out / "pairs.csv", sources=True, **shared),
        mw.write_clusters(files, out / "clusters.tsv", group="star", **shared),
    ]
    assert mw.pairs(files, **shared).num_rows == reports[0]["pairs"] > 0
    return reports


@pytest.mark.parametrize(
    ("name", "arrangement"),
    [("capped", MANY), ("estimates", SOME), *product(("star", "ranked"), ALL if TORTURE else [])],
)
def test_pairs_and_clusters_give_the_bytes_of_the_local_engine(
    name: str, arrangement: Arrangement, spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every format, with hundreds of copies, from one search in a work directory."""
    _shards(tmp_path / "in")
    monkeypatch.chdir(tmp_path / "in")
    options = {**SEARCH, **SCENARIOS[name]}
    options.pop("keep", None)
    expected = write_pairs_and_clusters(Files(SHARDS), tmp_path / "local", options)
    with arrangement.on(spark):
        reports = write_pairs_and_clusters(arrangement.arranged(SHARDS), tmp_path / "spark", {**options, **SPARK})
    assert reports == expected
    assert differing_files(tmp_path / "local" / "out", tmp_path / "spark" / "out") == []


def test_clusters_of_every_format_are_those_of_the_local_engine(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connected components, with character shingles over several text columns."""
    _tables(tmp_path)
    monkeypatch.chdir(tmp_path)
    files = Files(["t"])
    options = {**TABLE_SEARCH, "shingle": "char:5", "bag": True}
    report = mw.write_clusters(files, "local.parquet", **options)
    with ODD.on(spark):
        assert mw.write_clusters(files, "spark.parquet", engine="spark", **options) == report
    assert report["clusters"] > 10
    assert Path("spark.parquet").read_bytes() == Path("local.parquet").read_bytes()


def test_the_comparison_detects_one_more_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept rows, clusters and report differ."""
    for name in ("first", "second"):
        _shards(tmp_path / name)
        monkeypatch.chdir(tmp_path / name)
        if name == "second":
            path = Path(SHARDS[2])
            path.write_text(path.read_text(encoding="utf-8") + "w,1\n", encoding="utf-8")
        mw.dedup(Files(SHARDS), tmp_path / f"out-{name}", **SEARCH)
    found = differing_files(tmp_path / "out-first", tmp_path / "out-second")
    assert {"kept/b.csv", "clusters.parquet", "report.json"} <= set(found)
