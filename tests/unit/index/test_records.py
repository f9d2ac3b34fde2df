"""Rows of an index: what is sealed comes back, and nothing else does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minwise import InputError, _kernel
from minwise.index.records import (
    DocumentColumns,
    DocumentRecord,
    body_of,
    checksum_of,
    content_of,
    encode_metadata,
    find_damaged,
    has_name,
    seal,
)

numbers = st.integers(0, 2**32 - 64)
blobs = st.binary(max_size=40)
ids = st.integers() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
about = st.none() | st.dictionaries(
    st.text(max_size=3), st.integers(-5, 5) | st.booleans() | st.text(max_size=3), max_size=3
)


@given(first=numbers, contents=st.lists(blobs, max_size=5))
def test_a_seal_covers_content_and_number(first: int, contents: list[bytes]) -> None:
    """The checksum is the CRC-32C of the content begun with the number; the digest sums them up."""
    records, digest = seal(first, contents)
    rows = list(enumerate(records, first))
    assert [content_of(record) for record in records] == contents
    assert find_damaged(rows) is None
    assert digest == sum((number << 32) + checksum_of(record) for number, record in rows) % 2**64
    if rows:
        number, record = rows[-1]
        assert find_damaged([(number + 1, record)]) == number + 1


@given(number=numbers, content=blobs, data=st.data())
def test_every_flipped_bit_is_noticed(number: int, content: bytes, data: st.DataObject) -> None:
    """Of the checksum as well as of the content; and a record that is cut, or no bytes at all."""
    (record,), _ = seal(number, [content])
    bit = data.draw(st.integers(0, 8 * len(record) - 1))
    flipped = bytearray(record)
    flipped[bit // 8] ^= 1 << bit % 8
    for broken in (bytes(flipped), record[:3], None, 7, "text"):
        assert find_damaged([(number, broken)]) == number


@pytest.mark.parametrize("number", [-1, 2**32, 2**63 - 1])
def test_numbers_that_no_row_has(number: int) -> None:
    """A row under such a number is a damaged one."""
    assert find_damaged([(number, seal(1, [b"x"])[0][0])]) == number


@given(first=numbers, documents=st.lists(st.tuples(ids, about, blobs), max_size=4))
def test_documents_come_back(first: int, documents: list[tuple[int | str, dict[str, object] | None, bytes]]) -> None:
    """Ids with their type, metadata as equal objects, bodies byte for byte; also each part alone."""
    columns = DocumentColumns(
        [str(one).encode() for one, _, _ in documents],
        [isinstance(one, int) for one, _, _ in documents],
        [encode_metadata(metadata, 0) for _, metadata, _ in documents],
        [body for _, _, body in documents],
    )
    records, digest = columns.seal(first)
    assert (records, digest) == seal(first, [content_of(record) for record in records])
    for record, (one, metadata, body) in zip(records, documents, strict=True):
        document = DocumentRecord.decode(record)
        assert (document.id, type(document.id), document.described()) == (one, type(one), metadata)
        assert document.body == body_of(record) == body
        assert has_name(record, str(one).encode())
        assert not has_name(record, str(one).encode() + b"x")
        assert not has_name(record, str(one).encode()[:-1])


def test_numbers_beyond_32_bits_are_not_sealed() -> None:
    """The kernel refuses instead of wrapping around."""
    with pytest.raises(ValueError, match="32 bits"):
        _kernel.seal_rows(2**32 - 1, [b"", b""])


def test_equal_metadata_is_equal_bytes() -> None:
    """Whatever the order of its keys."""
    assert encode_metadata({"b": 1, "a": [1, "ä"]}, 0) == encode_metadata({"a": [1, "ä"], "b": 1}, 0)
    assert encode_metadata(None, 0) == b""


@pytest.mark.parametrize("wrong", [{1: 2}, [], "x", {"a": float("nan")}, {"a": object()}, {"a": "\ud800"}])
def test_metadata_that_is_no_json_object(wrong: dict[str, object]) -> None:
    """One line that names its place."""
    with pytest.raises(InputError, match="metadata 3 must be a JSON object"):
        encode_metadata(wrong, 3)
