"""Files are divided into tasks: every row is in exactly one, in order, and large files are in several."""

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
    """Return ten row groups of ten rows, a file of lines, and eight files of a kilobyte."""
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


def test_small_sources_are_one_task(sources: list[Source]) -> None:
    """Starting a task costs more than reading them."""
    assert plan_tasks(sources) == [(RowSpan(0), RowSpan(1), RowSpan(2))]


def test_large_sources_are_several_tasks(sources: list[Source], monkeypatch: pytest.MonkeyPatch) -> None:
    """Parquet is divided at row groups, directories between files, lines not at all; rows stay in order."""
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
    for divided in (parquet, texts):
        assert divided[0].first == 0
        assert [span.stop for span in divided] == [*(span.first for span in divided[1:]), None]


def test_no_sources_are_no_tasks() -> None:
    """The list is empty."""
    assert plan_tasks([]) == []
