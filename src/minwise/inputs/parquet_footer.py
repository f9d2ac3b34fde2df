"""Check of the parts of a Parquet footer that end the process if they are wrong.

Arrow checks the size statistics of a column chunk, and whether it is encrypted, when its metadata is requested. It
reports a fault by a C++ exception that pyarrow does not translate there, so the process aborts. Therefore these parts
are checked before.
"""

from io import BytesIO
from struct import unpack
from typing import Any

from minwise.inputs.parquet_pages import parse_struct
from minwise.inputs.source import UnreadableError

__all__ = ["check_column_chunks"]

# Fields of the structs FileMetaData, RowGroup, ColumnChunk, ColumnMetaData and SizeStatistics.
ROW_GROUPS, COLUMNS, META_DATA, CRYPTO_METADATA, SIZE_STATISTICS = 4, 1, 3, 8, 16
UNENCODED_BYTES, REPETITION_HISTOGRAM, DEFINITION_HISTOGRAM = 1, 2, 3
# Length of the footer and magic bytes at the end of a file.
END_BYTES = 8


def check_column_chunks(metadata: Any) -> None:  # noqa: ANN401 - pyarrow has no types
    """Raise UnreadableError if the metadata of a column chunk cannot be requested."""
    sink = BytesIO()
    metadata.write_metadata_file(sink)  # the footer as Arrow understands it, without another read of the file
    end = sink.getbuffer()[-END_BYTES:]
    (length,) = unpack("<I4x", end)
    end.release()
    footer, _ = parse_struct(sink.getvalue()[-END_BYTES - length : -END_BYTES])
    columns = [metadata.schema.column(number) for number in range(metadata.num_columns)]
    for group in footer[ROW_GROUPS]:
        if len(group[COLUMNS]) != len(columns):
            found = len(group[COLUMNS])
            raise UnreadableError(f"cannot be read: a row group has {found} columns instead of {len(columns)}")
        for chunk, column in zip(group[COLUMNS], columns, strict=True):
            _check(chunk, column)


def _check(chunk: dict[int, Any], column: Any) -> None:  # noqa: ANN401 - as above
    """Raise UnreadableError where Arrow would throw: a histogram has a count for each level, or none."""
    if CRYPTO_METADATA in chunk:
        raise UnreadableError(f"cannot be read: column {column.path!r} is encrypted")
    sizes = chunk.get(META_DATA, {}).get(SIZE_STATISTICS, {})
    good = (
        len(sizes.get(REPETITION_HISTOGRAM, ())) in (0, column.max_repetition_level + 1)
        and len(sizes.get(DEFINITION_HISTOGRAM, ())) in (0, column.max_definition_level + 1)
        and (UNENCODED_BYTES not in sizes or column.physical_type == "BYTE_ARRAY")
    )
    if not good:
        raise UnreadableError(f"cannot be read: the size statistics of column {column.path!r} are damaged")
