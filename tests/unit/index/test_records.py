"""Database records of an index: encoding, decoding and detection of damage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minwise import _kernel
from minwise.errors import FormatError, InputError
from minwise.index.records import (
    DocumentColumns,
    DocumentRecord,
    body_of,
    checksum_of,
    content_of,
    encode_metadata,
    find_damaged,
    has_id,
    seal,
)
from minwise.index.store import State

numbers = st.integers(0, 2**32 - 64)
blobs = st.binary(max_size=40)
ids = st.integers() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
metadata_objects = st.none() | st.dictionaries(
    st.text(max_size=3), st.integers(-5, 5) | st.booleans() | st.text(max_size=3), max_size=3
)


@given(first=numbers, contents=st.lists(blobs, max_size=5))
def test_checksum_covers_content_and_row_number(first: int, contents: list[bytes]) -> None:
    records, digest = seal(first, contents)
    rows = list(enumerate(records, first))
    assert [content_of(record) for record in records] == contents
    assert find_damaged(rows) is None
    assert digest == sum((number << 32) + checksum_of(record) for number, record in rows) % 2**64
    if rows:
        number, record = rows[-1]
        assert find_damaged([(number + 1, record)]) == number + 1


@given(number=numbers, content=blobs, data=st.data())
def test_flipped_bits_and_truncated_records_are_detected(number: int, content: bytes, data: st.DataObject) -> None:
    (record,), _ = seal(number, [content])
    bit = data.draw(st.integers(0, 8 * len(record) - 1))
    flipped = bytearray(record)
    flipped[bit // 8] ^= 1 << bit % 8
    for broken in (bytes(flipped), record[:3], None, 7, "text"):
        assert find_damaged([(number, broken)]) == number


@pytest.mark.parametrize("number", [-1, 2**32, 2**63 - 1])
def test_row_number_out_of_range_is_damage(number: int) -> None:
    assert find_damaged([(number, seal(1, [b"x"])[0][0])]) == number


@given(first=numbers, documents=st.lists(st.tuples(ids, metadata_objects, blobs), max_size=4))
def test_documents_decode_to_what_was_encoded(
    first: int, documents: list[tuple[int | str, dict[str, object] | None, bytes]]
) -> None:
    columns = DocumentColumns(
        [str(value).encode() for value, _, _ in documents],
        [isinstance(value, int) for value, _, _ in documents],
        [encode_metadata(metadata, 0) for _, metadata, _ in documents],
        [body for _, _, body in documents],
    )
    records, digest = columns.seal(first)
    assert (records, digest) == seal(first, [content_of(record) for record in records])
    for record, (value, metadata, body) in zip(records, documents, strict=True):
        document = DocumentRecord.decode(record)
        assert (document.id, type(document.id), document.decode_metadata()) == (value, type(value), metadata)
        assert document.body == body_of(record) == body
        assert has_id(record, str(value).encode())
        assert not has_id(record, str(value).encode() + b"x")
        assert not has_id(record, str(value).encode()[:-1])


def test_kernel_refuses_row_numbers_beyond_32_bits() -> None:
    with pytest.raises(ValueError, match="32 bits"):
        _kernel.seal_rows(2**32 - 1, [b"", b""])


def test_equal_metadata_has_equal_bytes_in_any_key_order() -> None:
    assert encode_metadata({"b": 1, "a": [1, "ä"]}, 0) == encode_metadata({"a": [1, "ä"], "b": 1}, 0)
    assert encode_metadata(None, 0) == b""


@pytest.mark.parametrize("invalid", [{1: 2}, [], "x", {"a": float("nan")}, {"a": object()}, {"a": "\ud800"}])
def test_metadata_must_be_a_json_object(invalid: dict[str, object]) -> None:
    with pytest.raises(InputError, match="metadata 3 must be a JSON object"):
        encode_metadata(invalid, 3)


def test_a_state_whose_next_commit_has_no_number_is_damaged() -> None:
    assert State.decode(State(commit=2**63 - 1).encode()).commit == 2**63 - 1
    with pytest.raises(FormatError, match="commit must be a whole number"):
        State.decode(State(commit=2**64 - 1).encode())
