"""Page headers of Parquet column chunks: what a page takes in memory, which the footer does not tell.

A page is decompressed as a whole. Values of a dictionary, and values that share the beginning of the one before them,
may take far more when they are decoded: 10 kB of a file can hold 100 texts of 100 MB. The headers bound both before
anything is decoded. Reading those of 1 GB of texts takes 20 ms.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from struct import Struct, error
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

__all__ = ["DECODED_PIECES", "ColumnPages", "Page", "oversized_page", "parse_struct", "read_pages", "rows_within"]

DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 0, 2, 3
# Fields of a page header that hold the header of its type, and the fields of the number of values and the encoding.
TYPE_HEADERS = {DATA_PAGE: (5, 1, 2), DICTIONARY_PAGE: (7, 1, 2), DATA_PAGE_V2: (8, 1, 4)}
DICTIONARY_ENCODINGS = (2, 8)
DELTA_BYTE_ARRAY = 7
# Bytes that are read to find a header; one with long minimum and maximum is read again, up to the limit of Arrow.
HEADER_BYTES, MAX_HEADER_BYTES = 1 << 9, 1 << 24
# A header or a footer holds structs in structs, but not many.
MAX_DEPTH = 12
# Bits before the last byte of an integer.
MAX_SHIFT = 63
# Bytes of a dictionary up to which its longest text is looked for; it is no longer than a larger one itself, which is
# then read row by row. Arrow writes dictionaries of up to 16 MB if a row group has one batch of long texts.
SEARCHED_BYTES = 1 << 25
# How often a page, or a value as long as its page, is in memory while it is read, decoded, copied and compressed
# (6.4 times in the worst case: one value of 100 MB that a dictionary repeats); fewer values than this may be that long.
PAGE_COPIES, VALUE_COPIES, FEW_VALUES = 2, 7, 64
# Bytes of the 300 MB beyond ``memory`` that the interpreter and its libraries never take.
SPARE_BYTES = 16 * 10**6
# Pieces that the rows of one may decode to: a few long texts in a dictionary do not make all pieces small.
DECODED_PIECES = 4
# The length before a text.
LENGTH = Struct("<I")


class Page(NamedTuple):
    """One page.

    Attributes:
        kind: Data page, dictionary page or data page of version 2.
        values: Number of values, nulls included.
        size: Bytes in memory, decompressed.
        encoding: Number of the encoding of the values.
        start: Offset of its bytes in the file.
        stored: Bytes in the file.
    """

    kind: int
    values: int
    size: int
    encoding: int
    start: int
    stored: int


def read_pages(raw: Any, chunk: Any) -> Iterator[Page]:  # noqa: ANN401 - pyarrow has no types
    """Yield the pages of a column chunk from their headers; nothing after one that cannot be read."""
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < (chunk.dictionary_page_offset or 0) < start:
        start = chunk.dictionary_page_offset
    end = start + chunk.total_compressed_size
    while start < end:
        page = _read_page(raw, start)
        if page is None:
            return
        if page.kind in TYPE_HEADERS:
            yield page
        start = page.start + page.stored


def _read_page(raw: Any, start: int) -> Page | None:  # noqa: ANN401 - as above
    size = HEADER_BYTES
    while size <= MAX_HEADER_BYTES:
        raw.seek(start)
        try:
            return _parse_header(raw.read(size), start)
        except IndexError:
            size *= 32
        except (AttributeError, KeyError, TypeError, ValueError):
            return None
    return None


def _parse_header(data: bytes, start: int) -> Page:
    fields, end = parse_struct(data)
    kind, size, stored = fields[1], fields[2], fields[3]
    if size < 0 or stored < 0:
        raise ValueError("a page has no negative size")
    own, values, encoding = TYPE_HEADERS.get(kind, (0, 0, 0))
    header = fields[own] if own else {}
    return Page(kind, header.get(values, 0), size, header.get(encoding, 0), start + end, stored)


def parse_struct(data: bytes, at: int = 0, depth: int = 0) -> tuple[dict[int, Any], int]:
    """Return the fields of a struct of the compact protocol of Thrift by number, and its end.

    Bytes are None. This takes 15 µs per column chunk of a footer.
    """
    if depth > MAX_DEPTH:
        raise ValueError("too many structs in structs")
    fields: dict[int, Any] = {}
    number = 0
    while data[at]:
        kind, step = data[at] & 15, data[at] >> 4
        at += 1
        if step:
            number += step
        else:
            number, at = _parse_integer(data, at)
        fields[number], at = _parse_value(kind, data, at, depth)
    return fields, at + 1


def _parse_value(kind: int, data: bytes, at: int, depth: int) -> tuple[Any, int]:
    if kind in (1, 2):  # the booleans
        return kind == 1, at
    if kind in (4, 5, 6):
        return _parse_integer(data, at)
    if kind == 8:  # bytes, such as a minimum
        size, at = _parse_varint(data, at)
        if at + size >= len(data):
            raise IndexError("the header is longer")
        return None, at + size
    if kind in (9, 10):  # a list or a set
        return _parse_list(data, at, depth)
    if kind == 12:
        return parse_struct(data, at, depth + 1)
    if kind in (3, 7):  # a byte, a double
        return None, at + (1 if kind == 3 else 8)
    raise ValueError("neither a page header nor a footer has this type")


def _parse_list(data: bytes, at: int, depth: int) -> tuple[list[Any], int]:
    count, kind = data[at] >> 4, data[at] & 15
    at += 1
    if count == 15:
        count, at = _parse_varint(data, at)
    items = []
    for _ in range(count):
        item, at = _parse_value(3 if kind in (1, 2) else kind, data, at, depth)
        items.append(item)
    return items, at


def _parse_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] & 128:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if shift > MAX_SHIFT:
            raise ValueError("an integer has at most 64 bits")
    return value | data[at] << shift, at + 1


def _parse_integer(data: bytes, at: int) -> tuple[int, int]:
    value, at = _parse_varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def copy_struct(
    data: bytes,
    replace: Callable[[tuple[int, ...], Any], bytes | None],
    at: int = 0,
    path: tuple[int, ...] = (),
) -> tuple[bytes, int]:
    """Return the bytes of a struct of the compact protocol with other values, and its end in ``data``.

    Args:
        data: Bytes that hold the struct; they must be valid.
        replace: Returns the encoded value of a field, or None to leave it: called with the numbers of the fields from
            the outermost struct on, and a number, or a list as its bytes. Items of lists have no number.
        at: Start of the struct.
        path: Numbers of the fields that lead to it.
    """
    copied, number = bytearray(), 0
    while data[at]:
        kind, step, start = data[at] & 15, data[at] >> 4, at
        at += 1
        if step:
            number += step
        else:
            number, at = _parse_integer(data, at)
        copied += data[start:at]
        value, at = _copy_value(kind, data, replace, at, (*path, number))
        copied += value
    return bytes(copied) + b"\0", at + 1


def _copy_value(
    kind: int, data: bytes, replace: Callable[[tuple[int, ...], Any], bytes | None], at: int, path: tuple[int, ...]
) -> tuple[bytes, int]:
    if kind == 12:
        return copy_struct(data, replace, at, path)
    if kind in (9, 10):
        return _copy_list(data, replace, at, path)
    value, end = _parse_value(kind, data, at, 0)
    replaced = replace(path, value) if kind in (4, 5, 6) else None
    return data[at:end] if replaced is None else replaced, end


def _copy_list(
    data: bytes, replace: Callable[[tuple[int, ...], Any], bytes | None], at: int, path: tuple[int, ...]
) -> tuple[bytes, int]:
    count, kind, start = data[at] >> 4, data[at] & 15, at
    at += 1
    if count == 15:
        count, at = _parse_varint(data, at)
    copied = bytearray(data[start:at])
    for _ in range(count):
        item, at = _copy_value(3 if kind in (1, 2) else kind, data, replace, at, path)
        copied += item
    replaced = replace(path, bytes(copied))
    return bytes(copied) if replaced is None else replaced, at


def encode_varint(value: int) -> bytes:
    """Return an unsigned integer in groups of 7 bits.

    >>> encode_varint(300).hex()
    'ac02'
    """
    groups = bytearray()
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes(groups) + bytes([value])


def encode_integer(value: int) -> bytes:
    """Return a signed integer of the compact protocol, whose lowest bit is the sign.

    >>> encode_integer(-1).hex(), encode_integer(150).hex()
    ('01', 'ac02')
    """
    return encode_varint(value << 1 if value >= 0 else ~(value << 1))


class ColumnPages:
    """The pages of one column chunk.

    Attributes:
        chunk: The metadata of the chunk.
        name: Path of the column.
        pages: The pages; only the dictionary if the chunk takes little memory.
        value_bytes: Most bytes of a value of the dictionary, or of one that shares its beginning with another; 0 if
            values take as much as their page.
    """

    def __init__(self, raw: Any, chunk: Any, *, decoded: bool, whole: bool) -> None:  # noqa: ANN401 - as above
        """Read the headers.

        Args:
            raw: The file.
            chunk: The metadata of the chunk.
            decoded: Whether the values of a dictionary are decoded.
            whole: Whether to read the headers of all pages.
        """
        self.chunk = chunk
        self.name = chunk.path_in_schema
        delta = "DELTA_BYTE_ARRAY" in chunk.encodings
        pages = read_pages(raw, chunk) if whole or delta or chunk.has_dictionary_page else iter(())
        self.pages = list(pages) if whole or delta else [page for page, _ in zip(pages, range(1), strict=False)]
        self.value_bytes = 0
        if chunk.physical_type != "BYTE_ARRAY":
            return
        self.value_bytes = max((page.size for page in self.pages if page.encoding == DELTA_BYTE_ARRAY), default=0)
        for page in (page for page in self.pages[:1] if decoded and page.kind == DICTIONARY_PAGE):
            self.value_bytes = max(self.value_bytes, _longest_entry(raw, chunk, page))

    def data_pages(self) -> list[Page]:
        """Return the pages of values."""
        return [page for page in self.pages if page.kind != DICTIONARY_PAGE]


def _longest_entry(raw: Any, chunk: Any, page: Page) -> int:  # noqa: ANN401 - as above
    """Return the bytes of the longest text of a dictionary, or an upper limit of it."""
    upper = max(0, page.size - 4 * page.values)
    if upper <= HEADER_BYTES or page.size > SEARCHED_BYTES:
        return upper
    raw.seek(page.start)
    try:
        data = raw.read(page.stored)
        if chunk.compression != "UNCOMPRESSED":
            data = pa.Codec(chunk.compression.lower()).decompress(data, page.size, asbytes=True)
        return _longest_text(data, page.values)
    except (pa.ArrowException, OSError, ValueError, error):  # reading the values will raise it, or can do it
        return upper


def _longest_text(data: bytes, count: int) -> int:
    """Return the most bytes of the texts of a dictionary, each after its length: 9 ms for 100,000 texts."""
    longest = at = 0
    for _ in range(count):
        (size,) = LENGTH.unpack_from(data, at)
        at += LENGTH.size + size
        if size > longest:
            longest = size
    return longest


def rows_within(columns: Sequence[ColumnPages], rows: int, group_rows: int, max_bytes: int) -> int:
    """Return how many of ``rows`` rows may be decoded at a time, or 1.

    Values of dictionaries may decode to ``DECODED_PIECES`` times ``max_bytes``, if a row takes at most ``max_bytes``;
    others to as much, or to a page of each column.

    Args:
        columns: The columns to decode.
        rows: The most rows.
        group_rows: Rows of the row group.
        max_bytes: Approximate bytes of a piece.
    """
    per_row = sum(column.value_bytes * column.chunk.num_values / max(1, group_rows) for column in columns)
    if per_row > max_bytes:
        return 1
    rows = max(1, min(rows, int(DECODED_PIECES * max_bytes / max(1, per_row))))
    sizes = [_page_ends(column) for column in columns if _is_flat(column, group_rows) and column.data_pages()]
    limit = max(DECODED_PIECES * max_bytes, sum(_largest_window(*ends, 1) for ends in sizes))
    while rows > 1 and sum(_largest_window(*ends, rows) for ends in sizes) > limit:
        rows //= 2
    return rows


def _is_flat(column: ColumnPages, group_rows: int) -> bool:
    """Return whether each row has one value, so that the rows of a page are known."""
    return bool(column.chunk.num_values == group_rows)


def _page_ends(column: ColumnPages) -> tuple[Any, Any]:
    """Return rows and bytes up to each page, with a 0 before the first."""
    pages = column.data_pages()
    rows, sizes = (
        np.array([0, *accumulate(counts)]) for counts in zip(*((page.values, page.size) for page in pages), strict=True)
    )
    return rows, sizes


def _largest_window(rows: Any, sizes: Any, count: int) -> int:  # noqa: ANN401 - arrays of numbers
    """Return the most bytes of pages that ``count`` rows from the first of a page on have a part in."""
    last = np.minimum(np.searchsorted(rows, rows[:-1] + count), len(rows) - 1)
    return int((sizes[last] - sizes[:-1]).max())


def oversized_page(columns: Sequence[ColumnPages], group_rows: int, memory: int) -> tuple[int, str] | None:
    """Return the first row of the first page that requires more memory, and the reason; None if there is none.

    The rows of a page are only known if each row has one value; otherwise the row is that of the row group, 0.
    """
    found = []
    for column in columns:
        row = 0
        for page in column.pages:
            required = _required_memory(page)
            if required > memory:
                start = row if _is_flat(column, group_rows) else 0
                size = f"a page of column {column.name} takes {page.size} bytes"
                found.append((start, f"{size}, which requires a memory of at least {required}"))
                break
            row += page.values if page.kind != DICTIONARY_PAGE else 0
    return min(found, default=None)


def _required_memory(page: Page) -> int:
    """Return the memory of a run that reads and copies the values of a page."""
    if page.kind == DICTIONARY_PAGE or page.values < FEW_VALUES:
        return max(PAGE_COPIES * page.size, VALUE_COPIES * (page.size - SPARE_BYTES))
    return PAGE_COPIES * page.size
