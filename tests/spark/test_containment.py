"""Containment on Spark: the bytes of the local engine, for one cell of all documents and for many."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from property.test_one_answer import SHARDS, corpus, write_shards
from support.spark.arrangement import SPARK, Arrangement, differing_files
from support.spark.corpora import TABLES, write_tables

import minwise as mw
from minwise.inputs import Files
from minwise.spark import cells, engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ONE = Arrangement(batch_rows=1, order=1)
MANY = Arrangement(batch_rows=7, order=2)


@pytest.mark.parametrize("values", [{}, {"within": "year"}, {"across": "year"}], ids=str)
def test_removed_documents_are_those_of_the_local_engine(
    values: dict[str, Any], spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In many cells, with a reference corpus, some of whose documents are in the input, and with copies."""
    write_tables(tmp_path / "in" / "t", 3, chains=10)
    (tmp_path / "in" / "known").mkdir()
    for name in TABLES[2:6]:  # some documents are in both corpora
        (tmp_path / "in" / "known" / name).write_bytes((tmp_path / "in" / "t" / name).read_bytes())
    monkeypatch.chdir(tmp_path / "in")
    options: dict[str, Any] = {
        "measure": "containment",
        "text_column": ("title", "body"),
        "id_column": "key",
        "on_error": "quarantine",
        "threshold": 0.6,
        "shingle": "char:7",
        "keep": "min:year",
        "against": "known",
        **values,
    }
    files = tuple(f"t/{name}" for name in TABLES[:4])
    local = mw.dedup(Files(files), tmp_path / "local", **options)
    assert local.removed.num_rows > 10
    plans: list[cells.CellPlan] = []

    def noted(*arguments: Any) -> cells.CellPlan:  # noqa: ANN401 - those of plan_grid
        plans.append(cells.plan_grid(*arguments))
        return plans[-1]

    monkeypatch.setattr(cells, "CELL_BYTES", 1 << 10)
    monkeypatch.setattr(engine, "plan_grid", noted)
    with MANY.on(spark):
        mw.dedup(MANY.arranged(files), tmp_path / "spark", **options, **SPARK)
    assert [plan.cells for plan in plans] == [10]
    assert differing_files(tmp_path / "local", tmp_path / "spark") == []


def test_pairs_are_those_of_the_local_engine(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_shards(tmp_path / "in", corpus())
    monkeypatch.chdir(tmp_path / "in")
    options: dict[str, Any] = {"measure": "containment", "threshold": 0.5, "shingle": "word:2", "on_error": "skip"}
    expected = mw.write_pairs(Files(SHARDS), tmp_path / "local.jsonl", **options)
    assert expected["pairs"] > 100
    with ONE.on(spark):
        assert mw.write_pairs(ONE.arranged(SHARDS), tmp_path / "spark.jsonl", **options, **SPARK) == expected
    assert (tmp_path / "spark.jsonl").read_bytes() == (tmp_path / "local.jsonl").read_bytes()
