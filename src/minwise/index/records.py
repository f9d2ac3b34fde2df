"""Records: what a row of the database holds. Each starts with a checksum that also covers the number of its row.

All numbers are little-endian. A checksum is the CRC-32C of the content, begun with the row's number in place of 0, so
that a record that turns up under another number is noticed.
"""

import json
import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise.errors import InputError
from minwise.index.answers import DocumentId, Metadata

__all__ = [
    "DocumentColumns",
    "DocumentRecord",
    "as_text",
    "body_of",
    "checksum_of",
    "encode_keys",
    "encode_metadata",
    "read_keys",
    "seal",
]

CHECKSUM = struct.Struct("<I")
# Whether the id is a whole number, bytes of the id, bytes of the metadata.
DOCUMENT = struct.Struct("<BII")
# Where the id starts in a record.
NAME = CHECKSUM.size + DOCUMENT.size
# Documents in the block, keys of each.
KEYS = struct.Struct("<II")


def seal(first: int, contents: Sequence[bytes]) -> tuple[list[bytes], int]:
    """The records of rows from a number on, and the sum of number·2³² + checksum over them."""
    return _kernel.seal_rows(first, list(contents))


def find_damaged(rows: Sequence[tuple[int, object]]) -> int | None:
    """The number of the first row whose record is not what was sealed under it."""
    strange = next((number for number, _ in rows if not 0 <= number < 2**32), None)
    if strange is not None:
        return strange
    place = _kernel.find_broken_seal([number for number, _ in rows], [record for _, record in rows])
    return None if place is None else rows[place][0]


def content_of(record: bytes) -> bytes:
    """What was sealed in a record."""
    return record[CHECKSUM.size :]


def checksum_of(record: bytes) -> int:
    """The checksum that a record carries."""
    return int(CHECKSUM.unpack_from(record)[0])


def has_name(record: bytes, name: bytes) -> bool:
    """Whether a document's row is that of this id."""
    return bool(DOCUMENT.unpack_from(record, CHECKSUM.size)[1] == len(name)) and record.startswith(name, NAME)


def body_of(record: bytes) -> bytes:
    """What is compared of a document, from its row."""
    _, id_bytes, metadata_bytes = DOCUMENT.unpack_from(record, CHECKSUM.size)
    return record[NAME + id_bytes + metadata_bytes :]


class DocumentRecord(NamedTuple):
    """A document as it is stored.

    Attributes:
        id: Its id; a whole number or a string.
        metadata: A JSON object, or nothing.
        body: Its elements, or its packed sketch; nothing if it has no elements.
    """

    id: DocumentId
    metadata: bytes
    body: bytes

    @property
    def name(self) -> bytes:
        """The id as the bytes that decide which ids are the same."""
        return str(self.id).encode()

    @classmethod
    def decode(cls, record: bytes) -> "DocumentRecord":
        """The document of a row, whose checksum was right."""
        whole_number, id_bytes, metadata_bytes = DOCUMENT.unpack_from(record, CHECKSUM.size)
        start = NAME + id_bytes
        name = record[NAME:start].decode()
        end = start + metadata_bytes
        return cls(int(name) if whole_number else name, record[start:end], record[end:])

    def described(self) -> Metadata | None:
        """The metadata as an object."""
        return json.loads(self.metadata) if self.metadata else None


class DocumentColumns(NamedTuple):
    """Documents that are to be stored, column by column.

    Attributes:
        names: The ids as bytes.
        whole: Whether each id is a whole number.
        metadata: JSON objects, or nothing.
        bodies: What is compared.
    """

    names: list[bytes]
    whole: list[bool]
    metadata: list[bytes]
    bodies: list[bytes]

    def of(self, places: Sequence[int]) -> "DocumentColumns":
        """Some of the documents."""
        if len(places) == len(self.names):
            return self
        names, whole, metadata, bodies = self
        return DocumentColumns(
            [names[place] for place in places],
            [whole[place] for place in places],
            [metadata[place] for place in places],
            [bodies[place] for place in places],
        )

    def seal(self, first: int) -> tuple[list[bytes], int]:
        """The records of their rows from a number on, and the sum of number·2³² + checksum over them."""
        return _kernel.seal_documents(first, *self)


def as_text(content: bytes) -> str | bytes:
    """A stored text; as bytes if it is not UTF-8, which only byte shingles take."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def encode_metadata(metadata: Metadata | None, place: int | str) -> bytes:
    """Metadata as JSON with sorted keys, so that equal objects are equal bytes."""
    if metadata is None:
        return b""
    if not isinstance(metadata, dict) or not all(isinstance(key, str) for key in metadata):
        raise InputError(f"metadata {place} must be a JSON object or None, got {type(metadata).__name__}")
    try:
        return json.dumps(metadata, sort_keys=True, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    except (RecursionError, TypeError, ValueError) as error:
        raise InputError(f"metadata {place} must be a JSON object: {error}") from None


def encode_keys(keys: NDArray[np.uint64]) -> bytes:
    """The keys of a block of documents, a row each."""
    return KEYS.pack(*keys.shape) + keys.astype("<u8", copy=False).tobytes()


def read_keys(content: bytes) -> NDArray[np.uint64]:
    """The keys of a block, whose checksum was right."""
    documents, width = KEYS.unpack_from(content)
    return np.frombuffer(content, dtype="<u8", offset=KEYS.size).reshape(documents, width)
