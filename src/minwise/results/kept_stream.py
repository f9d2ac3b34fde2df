"""Kept rows as one stream of bytes, for standard output.

A single input file of lines keeps its format. Anything else becomes JSON lines: rows of a table are objects of its
columns, text files objects of ``id`` and ``text``.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np
import orjson

from minwise._internal.temporary import TemporaryFolder
from minwise.errors import InputError, MinwiseError
from minwise.inputs.baskets import BasketFile
from minwise.inputs.delimited import DelimitedFile
from minwise.inputs.files import File
from minwise.inputs.json_array import JsonArrayFile
from minwise.inputs.jsonl import JsonLinesFile
from minwise.inputs.row_edits import RowEdits
from minwise.inputs.source import RowMask, Source, UnreadableError
from minwise.inputs.standard_input import StandardInput
from minwise.inputs.text_files import LinesFile

__all__ = ["write_kept_rows"]

# Formats that a stream can have.
STREAM_FORMATS = (JsonLinesFile, JsonArrayFile, DelimitedFile, BasketFile, LinesFile)


def write_kept_rows(
    sources: list[Source],
    keep: RowMask,
    rows: list[int],
    output: BinaryIO,
    edits: Mapping[int, RowEdits] = MappingProxyType({}),
) -> None:
    """Write the kept rows of all sources in order, without compression.

    Args:
        sources: The sources of the input.
        keep: A flag per row of all sources.
        rows: Number of rows of each source.
        output: Receives the bytes.
        edits: Edits of the kept rows, by index of the source.

    Raises:
        MinwiseError: If the input changed since the search.
    """
    opened = [source.opened if isinstance(source, StandardInput) else source for source in sources]
    write = _copy if len(opened) == 1 and isinstance(opened[0], STREAM_FORMATS) else _write_json
    for number, (source, flags) in enumerate(zip(opened, np.split(keep, np.cumsum(rows)[:-1]), strict=True)):
        written, expected = write(source, flags, edits.get(number), output), int(np.count_nonzero(flags))
        if written != expected:
            raise MinwiseError(f"{expected} rows were to be kept, {written} were written: did the input change?")


def _copy(source: Source, keep: RowMask, edits: RowEdits | None, output: BinaryIO) -> int:
    """Write the kept rows in the format of the source, which its copy in a temporary directory has."""
    with TemporaryFolder() as folder:
        written = source.copy_kept(keep, folder / "kept", "", edits)
        source.refuse_changes()  # before the first byte is written
        for path in (path for path in (folder / "kept").rglob("*") if path.is_file()):
            for chunk in File(str(path)).stored_chunks():
                output.write(chunk)
    return written


def _write_json(source: Source, keep: RowMask, edits: RowEdits | None, output: BinaryIO) -> int:
    written = 0
    try:
        for row in source.kept_objects(keep, edits):
            output.write(orjson.dumps(row, default=_plain_value, option=orjson.OPT_APPEND_NEWLINE))
            written += 1
    except (UnreadableError, orjson.JSONEncodeError) as error:
        where = f"{source.name}: " if source.name else ""
        raise InputError(f"{where}a kept row cannot be written as JSON: {error}; write to a directory") from None
    return written


def _plain_value(value: Any) -> Any:  # noqa: ANN401 - any value of a table
    """Return a value that JSON has no type for: bytes as text, anything else as Python shows it."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
