"""How files are cut into tasks: every row is in one of them, in order, and large files are in several."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from minwise.inputs.files import File
from minwise.inputs.jsonl import JsonLinesFile
from minwise.inputs.parquet import ParquetFile
from minwise.inputs.source import Source
from minwise.inputs.text_files import TextFiles
from minwise.spark import read_tasks
from minwise.spark.read_tasks import RowSpan, plan_tasks


@pytest.fixture
def sources(tmp_path: Path) -> list[Source]:
    """Ten row groups of ten rows, a file of lines, and eight files of a kilobyte."""
    texts = pa.table({"text": [f"{number:01000}" for number in range(100)]})
    pq.write_table(texts, tmp_path / "a.parquet", row_group_size=10, compression="none", use_dictionary=False)
    (tmp_path / "b.jsonl").write_text('{"text": "one"}\n' * 300)
    paths = [tmp_path / f"{number}.txt" for number in range(8)]
    for path in paths:
        path.write_text("x" * 1000)
    files = [File(str(path)) for path in paths]
    return [
        ParquetFile(File(str(tmp_path / "a.parquet"))),
        JsonLinesFile(File(str(tmp_path / "b.jsonl"))),
        TextFiles(files, [path.name for path in paths]),
    ]


def test_what_is_small_is_one_task(sources: list[Source]) -> None:
    """Starting one costs more than reading so little."""
    assert plan_tasks(sources) == [(RowSpan(0), RowSpan(1), RowSpan(2))]


def test_what_is_large_is_cut(sources: list[Source], monkeypatch: pytest.MonkeyPatch) -> None:
    """Parquet at row groups, directories between files, lines not at all; rows stay in order."""
    monkeypatch.setattr(read_tasks, "TASK_BYTES", 4096)
    tasks = plan_tasks(sources)
    assert all(len(task) == 1 for task in tasks)
    spans = [task[0] for task in tasks]
    assert [span.source for span in spans] == sorted(span.source for span in spans)
    parquet, lines, texts = ([span for span in spans if span.source == number] for number in range(3))
    assert len(parquet) == 10
    assert [span.first for span in parquet] == list(range(0, 100, 10))
    assert lines == [RowSpan(1)]
    assert len(texts) == 2
    for cut in (parquet, texts):
        assert cut[0].first == 0
        assert [one.stop for one in cut] == [*(other.first for other in cut[1:]), None]


def test_nothing_is_no_task() -> None:
    """A corpus without a source."""
    assert plan_tasks([]) == []
