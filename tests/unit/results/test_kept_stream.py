"""Kept rows with edits as one stream: in the format of a single file of lines, else as JSON lines."""

import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
from support.row_edits import MARKS, FixedEdits

from minwise.inputs.files import File
from minwise.inputs.jsonl import JsonLinesFile
from minwise.inputs.memory_sources import TableSource
from minwise.results.kept_stream import write_kept_rows


def test_edits_belong_to_one_of_several_sources(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"text": "one"}\n{"text":"two"}\n')
    sources = [JsonLinesFile(File(str(tmp_path / "x.jsonl"))), TableSource(pa.table({"text": ["three", "four"]}))]
    output = io.BytesIO()
    edits = {1: FixedEdits({1: [(0, 2)]}, added=MARKS)}
    write_kept_rows(list(sources), np.array([True, False, False, True]), [2, 2], output, edits)
    rows = [json.loads(line) for line in output.getvalue().splitlines()]
    assert rows == [{"text": "one"}, {"text": "ur", "flag": False, "note": 'row "1", marked'}]


def test_a_single_file_keeps_its_format(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"text": "one"}\n{ "text":"two" }\n')
    source, output = JsonLinesFile(File(str(tmp_path / "x.jsonl"))), io.BytesIO()
    write_kept_rows([source], np.array([False, True]), [2], output, {0: FixedEdits({1: [(1, 3)]})})
    assert output.getvalue() == b'{ "text":"t" }\n'
