"""Damage of Parquet files that Arrow does not report: in footers it ends the process, in indices it is ignored."""

from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import minwise as mw
from minwise.errors import InputError
from minwise.inputs.parquet import _check_indices
from minwise.inputs.parquet_footer import check_column_chunks
from minwise.inputs.parquet_pages import parse_struct
from minwise.inputs.source import UnreadableError

# Type of a list in the low bits of the header of a field.
LIST = 9


def table() -> pa.Table:
    """Return columns of several types and depths of nesting."""
    return pa.table(
        {
            "text": ["the ferry leaves the old harbour at six", None, "x"],
            "number": [1, 2, None],
            "lists": [[1, 2], [], None],
            "deep": [{"a": [{"b": "c"}]}, None, {"a": None}],
        }
    )


def write(path: Path, **options: Any) -> bytes:  # noqa: ANN401
    pq.write_table(table(), path, row_group_size=1, **options)
    return path.read_bytes()


def footer_start(data: bytes) -> int:
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


@pytest.mark.parametrize("version", ["1.0", "2.6"])
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_intact_footer_passes(tmp_path: Path, version: str, compression: str) -> None:
    write(tmp_path / "x.parquet", version=version, compression=compression, write_page_index=True)
    check_column_chunks(pq.read_metadata(tmp_path / "x.parquet"))


def test_footer_is_parsed_completely(tmp_path: Path) -> None:
    data = write(tmp_path / "x.parquet")
    start = footer_start(data)
    footer, end = parse_struct(data[start:-8])
    assert end == len(data) - 8 - start
    assert footer[3] == 3
    assert [len(group[1]) for group in footer[4]] == [4, 4, 4]


def test_wrong_size_statistics_are_a_fault_of_the_file_and_not_a_signal(tmp_path: Path) -> None:
    """Without the check the process aborts."""
    path = tmp_path / "x.parquet"
    path.write_bytes(with_wrong_histogram(write(path)))
    with pytest.raises(InputError, match=r"the size statistics of column '[\w.]+' are damaged"):
        mw.pairs(path, on_error="fail")


def with_wrong_histogram(data: bytes) -> bytes:
    """Return the file with the first flipped bit of the footer that damages size statistics."""
    places = range(footer_start(data), len(data) - 8)
    flipped = (
        data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]
        for at in places if data[at] & 0xF == LIST for bit in range(4, 8)
    )  # fmt: skip
    return next(other for other in flipped if is_refused(other))


def is_refused(data: bytes) -> bool:
    """Return whether size statistics are found wrong; a file that Arrow cannot open is not refused here."""
    try:
        check_column_chunks(pq.ParquetFile(BytesIO(data)).metadata)
    except UnreadableError as error:
        return "size statistics" in str(error)
    except (OSError, ValueError):
        pass
    return False


@pytest.mark.parametrize("nested", [False, True])
def test_index_outside_its_dictionary_is_found(nested: bool) -> None:
    """Arrow restores dictionary columns, and does not check the indices that it reads."""
    for indices in ([0, 1, 1], [0, 2, 1]):
        codes = pa.array(indices, pa.int32())
        column = pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b"]), safe=False)
        values = pa.StructArray.from_arrays([column], ["x"]) if nested else column
        rows = pa.RecordBatch.from_arrays([values], ["text"])
        if indices == [0, 1, 1]:
            _check_indices(rows)
            continue
        with pytest.raises(pa.ArrowInvalid):
            _check_indices(rows)
