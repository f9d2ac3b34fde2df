"""Document values in the work directory: read part by part, and as one column over all documents."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.expect import error_message

from minwise.errors import ConfigError
from minwise.inputs.document_values import ValueColumn
from minwise.inputs.memory_sources import TableSource
from minwise.inputs.source import Columns
from minwise.search.bands import FILLED
from minwise.search.documents import Corpus, DocumentPart, Documents
from minwise.search.workdir import WorkDirectory

LABEL, VALUE = ValueColumn("site", is_label=True), ValueColumn("score")


def documents(folder: Path, parts: Sequence[Sequence[dict[str, pa.Array]]], rows: int = 2) -> Documents:
    """Return documents whose parts have batches of ``rows`` rows with these values."""
    total = rows * sum(map(len, parts))
    source = TableSource(pa.table({"text": ["x"] * total}))
    corpus, work = (
        Corpus(sources=[source], columns=Columns(values=(VALUE, LABEL))),
        WorkDirectory(folder, durable=False),
    )
    first = 0
    for number, batches in enumerate(parts):
        part = DocumentPart(first)
        for values in batches:
            part.add(0, first, np.ones(rows, dtype=np.uint64), None, values)
            first += rows
        states = np.full(rows * len(batches), FILLED, dtype=np.uint8)
        part.write(work, number, corpus, {"states": states})
    work.write_json("documents", {"rows": [total], "parts": len(parts)})
    return Documents(corpus, work)


def labels(*values: str | None) -> dict[str, pa.Array]:
    return {LABEL.key: pa.array(values, pa.large_string())}


@pytest.mark.parametrize(
    ("parts", "codes", "names"),
    [
        ([[labels("b", "a"), labels("b", None)]], [0, 1, 0, 2], ["b", "a", None]),
        ([[labels("b", "a")], [labels("c", "a"), labels("b", "d")]], [0, 1, 2, 1, 0, 3], ["b", "a", "c", "d"]),
        ([[{}], [labels(None, "a"), {}]], [0, 0, 0, 1, 0, 0], [None, "a"]),
    ],
)
def test_labels_are_numbered_by_their_first_document(
    parts: list[list[dict[str, pa.Array]]], codes: list[int], names: list[str | None], tmp_path: Path
) -> None:
    numbers, found = documents(tmp_path, parts).value_codes("site")
    assert (numbers.dtype, numbers.tolist(), found.to_pylist()) == (np.dtype(np.uint32), codes, names)


@pytest.mark.parametrize(
    ("parts", "kind", "values"),
    [
        ([[[1, 2], [3, None]], [[4.5, 6.0]]], pa.float64(), [1, 2, 3, None, 4.5, 6]),
        ([[None, [True, False]], [[1, 2]]], pa.int64(), [None, None, 1, 0, 1, 2]),
    ],
)
def test_values_of_all_parts_have_one_type(
    parts: list[list[Any]], kind: pa.DataType, values: list[Any], tmp_path: Path
) -> None:
    batches = [[{} if given is None else {VALUE.key: pa.array(given)} for given in part] for part in parts]
    found = documents(tmp_path, batches).value_column("score")
    assert (found.type, found.to_pylist()) == (kind, values)


def test_a_column_that_no_document_has_is_refused(tmp_path: Path) -> None:
    empty = documents(tmp_path, [[labels(None, None)], [{}]])
    message = "column 'site' is in no file, or has no values"
    assert error_message(ConfigError, lambda: empty.value_codes("site")) == message


def test_values_that_do_not_compare_are_refused(tmp_path: Path) -> None:
    mixed = documents(tmp_path, [[{VALUE.key: pa.array(["a", "b"])}], [{VALUE.key: pa.array([1, 2])}]])
    message = error_message(ConfigError, lambda: mixed.value_column("score"))
    assert message.startswith("column score must have one kind of values in all files, got int64, large_string")
