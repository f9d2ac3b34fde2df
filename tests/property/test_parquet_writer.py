"""Row groups that several threads encode give the bytes of one writer."""

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minwise.inputs.parquet_writer import write_row_groups

ROWS = 400
COLUMNS = ("text", "number", "flag", "list", "struct", "word", "time", "bytes")


def table(seed: int) -> pa.Table:
    """Return columns of many types, with nulls, long and repeated values, and metadata."""
    rng = np.random.default_rng(seed)
    words = [None if rng.random() < 0.1 else "w" * int(rng.integers(0, 60)) for _ in range(ROWS)]
    numbers = [None if rng.random() < 0.1 else int(rng.integers(-(2**62), 2**62)) for _ in range(ROWS)]
    arrays = [
        pa.array(words),
        pa.array(numbers),
        pa.array([bool(number and number % 2) for number in numbers]),
        pa.array([words[: len(word or "") % 4] if word else None for word in words], pa.list_(pa.string())),
        pa.array([{"a": word, "b": [number]} for word, number in zip(words, numbers, strict=True)]),
        pa.array([(word or "")[:2] for word in words]).dictionary_encode(),
        pa.array([number and number % 10**12 for number in numbers], pa.timestamp("us", "UTC")),
        pa.array([word and word.encode() for word in words], pa.large_binary()),
    ]
    return pa.table(dict(zip(COLUMNS, arrays, strict=True))).replace_schema_metadata({"key": "value" * seed})


def written(tables: list[pa.Table], schema: pa.Schema, threads: int, options: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    assert write_row_groups(file, iter(tables), schema, options, threads) == sum(map(len, tables))
    return file.getvalue()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 7),
    columns=st.lists(st.sampled_from(COLUMNS), min_size=1, unique=True),
    cuts=st.lists(st.integers(1, 90), max_size=25),
    threads=st.integers(2, 5),
    options=st.fixed_dictionaries(
        {
            "compression": st.sampled_from(["zstd", "snappy", "none", "gzip"]),
            "use_dictionary": st.booleans(),
            "write_statistics": st.booleans(),
        }
    ),
)
def test_bytes_are_those_of_one_writer(
    seed: int, columns: list[str], cuts: list[int], threads: int, options: dict[str, Any]
) -> None:
    rows = table(seed).select(columns)
    ends = np.cumsum([0, *cuts]).tolist()
    tables = [rows.slice(start % 300, cut) for start, cut in zip(ends[:-1], cuts, strict=True)]
    expected = io.BytesIO()
    with pq.ParquetWriter(expected, rows.schema, **options) as writer:
        for each in tables:
            writer.write_table(each, row_group_size=len(each))
    assert written(tables, rows.schema, threads, options) == expected.getvalue()
    assert written(tables, rows.schema, 1, options) == expected.getvalue()
    assert pq.read_table(io.BytesIO(expected.getvalue())).num_rows == sum(cuts)


def test_offsets_of_large_files_are_moved() -> None:
    """A file of several megabytes, whose offsets take several bytes in the footer, and more than 15 row groups."""
    rng = np.random.default_rng(3)
    rows = pa.table({"noise": [rng.bytes(4096) for _ in range(2000)], "row": list(range(2000))})
    tables = [rows.slice(start, 100) for start in range(0, 2000, 100)]
    joined = written(tables, rows.schema, 3, {"compression": "none"})
    assert len(joined) > 8_000_000
    assert joined == written(tables, rows.schema, 1, {"compression": "none"})


def test_an_error_of_the_rows_is_raised() -> None:
    rows = table(1)

    def failing() -> Any:  # noqa: ANN401
        yield rows
        yield rows
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        write_row_groups(io.BytesIO(), failing(), rows.schema, {}, 2)


def test_an_error_of_the_output_is_raised() -> None:
    class Full(io.BytesIO):
        def write(self, data: Any) -> int:  # noqa: ANN401
            if self.tell() > 10_000:
                raise OSError(28, "No space left on device")
            return super().write(data)

    rows = table(2)
    with pytest.raises(OSError, match="No space"):
        write_row_groups(Full(), [rows] * 50, rows.schema, {"compression": "none"}, 2)
