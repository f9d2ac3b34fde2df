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
from minwise.options import DedupOptions
from minwise.search.documents import Corpus
from minwise.search.workdir import WorkDirectory
from minwise.settings import columns_to_read, resolve_options, search_settings
from minwise.spark import read_tasks
from minwise.spark.read_tasks import RowSpan, plan_tasks
from minwise.spark.stage_store import StageFolder


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


def test_signatures_in_several_files_are_in_the_order_of_rows(
    sources: list[Source], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are sorted by name, and the driver numbers documents by the rows in them."""
    monkeypatch.setattr(read_tasks, "BLOCK_BYTES", 1)
    monkeypatch.setattr(read_tasks, "BATCH_BYTES", 4000)
    options = resolve_options(DedupOptions, None, {})
    settings = search_settings(options)
    corpus = Corpus(sources=sources, columns=columns_to_read(options, settings))
    folder = StageFolder(str(tmp_path / "stages"))
    written = [
        file
        for number, task in enumerate(plan_tasks(sources))
        for file in read_tasks._signature_files(folder, corpus, settings, number, task)
    ]
    names = sorted(file.name for file in written)
    tables = [folder_of(folder).read_table(name) for name in names if not name.endswith(read_tasks.KEYS)]
    found = pa.concat_tables(tables).select(["source", "row"]).to_pydict()
    rows = list(zip(found["source"], found["row"], strict=True))
    assert rows == [(0, row) for row in range(100)] + [(1, row) for row in range(300)] + [(2, row) for row in range(8)]
    spans = [span for file in sorted(written) for span in file.facts.get("spans", [])]
    assert len(spans) > 20
    assert [(source, row) for source, first, count in spans for row in range(first, first + count)] == rows
    keys = [name for name in names if name.endswith(read_tasks.KEYS)]
    assert sum(folder_of(folder).open(name).length("keys") for name in keys) == len(rows)


def folder_of(folder: StageFolder) -> WorkDirectory:
    """Return the directory of the signatures."""
    with folder.reading("signatures") as work:
        return work
