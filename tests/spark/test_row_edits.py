"""Spark writes edited rows with the bytes of the local engine; a task gets the edits of its source alone."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import cloudpickle
from support import row_edits
from support.row_edits import MARKS, FixedEdits
from support.spark.arrangement import file_digests

import minwise as mw
from minwise.progress import NullProgress
from minwise.search.engine import LocalEngine, StagingDirectory
from minwise.spark.engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS = [f'line {number}: the ferry to café 🙂 leaves\nat {number}:00, "sharp"' for number in range(40)]


def test_edited_rows_have_the_bytes_of_the_local_engine(spark: "SparkSession", tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    rows = [{"id": f"n{number}", "text": text} for number, text in enumerate(TEXTS)]
    (source / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (source / "b.csv").write_text(
        "id,text\n" + "".join(f'{number},"{text.replace(chr(34), chr(34) * 2)}"\n' for number, text in enumerate(TEXTS))
    )
    pq.write_table(pa.Table.from_pylist(rows), source / "c.parquet", row_group_size=7)
    (source / "d.jsonl").write_text((source / "a.jsonl").read_text())
    search = mw.dedup([source], threshold=1.0)._search
    keep = np.arange(4 * len(TEXTS)) % 3 != 0
    cuts = {number: [(0, 5), (number, number + 3)] for number in range(5, len(TEXTS))}
    edits = {0: FixedEdits(cuts, added=MARKS), 1: FixedEdits(cuts, added=MARKS), 2: FixedEdits(cuts, added=MARKS)}
    digests = []
    # Executors do not have the modules of tests.
    cloudpickle.register_pickle_by_value(row_edits)  # type: ignore[no-untyped-call]
    for name, engine in (("local", LocalEngine()), ("spark", SparkEngine(spark, None, {}))):
        staging = StagingDirectory(tmp_path / name)
        staging.folder.mkdir()
        written = engine.copy_kept(search.documents, search.limits, keep, staging, NullProgress(), edits)
        assert written == keep.sum()
        digests.append(file_digests(staging.folder))
    assert len(digests[0]) == 4
    assert digests[0] == digests[1]
    assert "flag" not in (tmp_path / "spark" / "kept" / "d.jsonl").read_text()
