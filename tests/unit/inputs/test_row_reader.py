"""Lines do not depend on chunks; oversized lines are replaced, not held."""

import gzip
import tracemalloc
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minwise.inputs import row_reader
from minwise.inputs.files import File
from minwise.inputs.row_reader import Line, OversizedLine, lines_by_chunk, quoted_lines


def read_lines(chunks: Iterable[bytes]) -> list[Line]:
    """Return all lines, whatever the chunks they end in."""
    return list(chain.from_iterable(lines_by_chunk(chunks)))


@given(data=st.binary(max_size=60).map(lambda raw: raw.replace(b"\x01", b"\n")), size=st.integers(1, 9))
def test_lines_do_not_depend_on_chunks(data: bytes, size: int) -> None:
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    expected = [line + b"\n" for line in data.split(b"\n")[:-1]] + ([last] if (last := data.split(b"\n")[-1]) else [])
    assert read_lines(chunks) == expected


def test_the_lines_of_a_chunk_are_yielded_before_the_next_chunk_is_read() -> None:
    read: list[bytes] = []

    def chunks() -> Iterator[bytes]:
        for chunk in (b"a\nb\nc", b"d", b"\ne"):
            read.append(chunk)
            yield chunk

    found = lines_by_chunk(chunks())
    assert (next(found), read) == ([b"a\n", b"b\n"], [b"a\nb\nc"])
    assert list(found) == [[], [b"cd\n"], [b"e"]]


@given(data=st.text(st.sampled_from('a",\n'), max_size=60), size=st.integers(1, 30))
def test_lines_within_quotes_are_yielded_together(data: str, size: int) -> None:
    """No byte is lost, each piece ends with a line, and a record within one chunk is not split."""
    encoded = data.encode()
    chunks = [encoded[start : start + size] for start in range(0, len(encoded), size)]
    pieces = [piece for piece in quoted_lines(chunks) if isinstance(piece, bytes)]
    assert b"".join(pieces) == encoded
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])
    assert list(quoted_lines([b'a,"b\n\nc"\n"d"\n\n'])) == [b'a,"b\n\nc"\n', b'"d"\n', b"\n"]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_an_oversized_line_is_replaced_and_its_quotes_are_counted(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of exactly the limit, without its line feed, is allowed."""
    monkeypatch.setattr(row_reader, "MAX_RECORD_BYTES", 8)
    data = b'a\n12345678\n12"4"67"9 and "more"\nb\n123456789'
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    assert read_lines(chunks) == [b"a\n", b"12345678\n", OversizedLine(5), b"b\n", OversizedLine(0)]


def test_a_line_of_a_gigabyte_takes_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 gzip members of 16 MiB of zeros are one line, of which at most the limit is held."""
    monkeypatch.setattr(row_reader, "MAX_RECORD_BYTES", 1 << 22)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(1 << 24), 9) * 64 + gzip.compress(b"\nshort\n"))
    tracemalloc.start()
    try:
        found = read_lines(File(str(path)).chunks())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == [OversizedLine(0), b"short\n"]
    assert peak < 1 << 24
