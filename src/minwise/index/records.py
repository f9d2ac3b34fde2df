"""Database records. Each record starts with a checksum that also covers the number of its row.

All numbers are little-endian. The checksum is the CRC-32C of the content, started with the row number in place of 0, so
that a record stored under the number of another row is detected.
"""

import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import index
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from minwise import _kernel
from minwise.checks import MAX_LEVELS, is_nested_too_deep, show
from minwise.errors import InputError
from minwise.index.result_types import DocumentId, Metadata
from minwise.search.bands import NO_KEY

__all__ = [
    "DocumentColumns",
    "DocumentIds",
    "DocumentRecord",
    "body_of",
    "checksum_of",
    "content_of",
    "decode_keys",
    "decode_text",
    "encode_keys",
    "encode_metadata",
    "find_damaged",
    "has_id",
    "seal",
]

CHECKSUM = struct.Struct("<I")
# Whether the id is an integer, bytes of the id, bytes of the metadata.
DOCUMENT = struct.Struct("<BII")
# Offset of the id in a record.
ID_OFFSET = CHECKSUM.size + DOCUMENT.size
# Number of documents in the block, keys per document.
KEYS = struct.Struct("<II")


def seal(first: int, contents: Sequence[bytes]) -> tuple[list[bytes], int]:
    """Return the records of rows numbered from ``first``, and the sum of number·2³² + checksum over them."""
    return _kernel.seal_rows(first, list(contents))


def find_damaged(
    rows: Sequence[tuple[int, object]], *, documents: bool = False, sketch_bytes: int | None = None
) -> int | None:
    """Return the number of the first row whose record does not match its checksum and number, or None.

    Args:
        rows: Number and record of each row.
        documents: Whether the records are those of documents, whose layout is checked, too.
        sketch_bytes: The size of a body that is a sketch; None if bodies are elements.
    """
    invalid = next((number for number, _ in rows if not 0 <= number < 2**32), None)
    if invalid is not None:
        return invalid
    columns = [number for number, _ in rows], [record for _, record in rows]
    broken = _kernel.find_broken_document(*columns, sketch_bytes) if documents else _kernel.find_broken_seal(*columns)
    return None if broken is None else rows[broken][0]


def content_of(record: bytes) -> bytes:
    """Return the content of a record, without its checksum."""
    return record[CHECKSUM.size :]


def checksum_of(record: bytes) -> int:
    """Return the checksum stored in a record."""
    return int(CHECKSUM.unpack_from(record)[0])


def has_id(record: bytes, encoded_id: bytes) -> bool:
    """Return whether a document record has this id."""
    length = DOCUMENT.unpack_from(record, CHECKSUM.size)[1]
    return bool(length == len(encoded_id)) and record.startswith(encoded_id, ID_OFFSET)


def body_of(record: bytes) -> bytes:
    """Return the body of a document record: its elements or its packed sketch."""
    _, id_bytes, metadata_bytes = DOCUMENT.unpack_from(record, CHECKSUM.size)
    return record[ID_OFFSET + id_bytes + metadata_bytes :]


class DocumentRecord(NamedTuple):
    """A decoded document record.

    Attributes:
        id: The id; an integer or a string.
        metadata: A JSON object; empty if there is none.
        body: The elements or the packed sketch; empty if the document has no elements.
    """

    id: DocumentId
    metadata: bytes
    body: bytes

    @property
    def encoded_id(self) -> bytes:
        """The id as UTF-8; ids with equal bytes are the same id."""
        return str(self.id).encode()

    @classmethod
    def decode(cls, record: bytes) -> "DocumentRecord":
        """Decode a record whose checksum and layout were verified.

        Raises:
            ValueError: If an integer id is not one.
        """
        is_integer, id_bytes, metadata_bytes = DOCUMENT.unpack_from(record, CHECKSUM.size)
        start = ID_OFFSET + id_bytes
        text = record[ID_OFFSET:start].decode()
        end = start + metadata_bytes
        return cls(_integer_id(text) if is_integer else text, record[start:end], record[end:])

    def decode_metadata(self) -> Metadata | None:
        """Return the metadata as an object.

        Raises:
            ValueError: If it is not a JSON object.
            RecursionError: If it is nested too deeply.
        """
        if not self.metadata:
            return None
        metadata = METADATA_DECODER.decode(str(self.metadata, "utf-8"))
        if not isinstance(metadata, dict):
            raise ValueError(f"metadata must be a JSON object, got {type(metadata).__name__}")
        return metadata


def _integer_id(text: str) -> int:
    value = int(text)
    if str(value) != text:
        raise ValueError(f"an integer id must be written as one, got {show(text)}")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"metadata must be a JSON object, got {name} in it")


METADATA_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


class DocumentColumns(NamedTuple):
    """Columns of documents to be stored.

    Attributes:
        ids: The ids as UTF-8.
        integer_ids: For each document, whether its id is an integer.
        metadata: JSON objects; empty where there is none.
        bodies: Elements or packed sketches.
    """

    ids: list[bytes]
    integer_ids: list[bool]
    metadata: list[bytes]
    bodies: list[bytes]

    def take(self, positions: Sequence[int]) -> "DocumentColumns":
        """Return the documents at ascending positions."""
        if len(positions) == len(self.ids):
            return self
        ids, integer_ids, metadata, bodies = self
        return DocumentColumns(
            [ids[position] for position in positions],
            [integer_ids[position] for position in positions],
            [metadata[position] for position in positions],
            [bodies[position] for position in positions],
        )

    def seal(self, first: int) -> tuple[list[bytes], int]:
        """Return the records of rows numbered from ``first``, and the sum of number·2³² + checksum over them."""
        return _kernel.seal_documents(first, *self)


@dataclass(frozen=True, slots=True)
class DocumentIds:
    """Checked document ids.

    Attributes:
        values: The ids as strings and integers.
        encoded: The ids as UTF-8; ids with equal bytes are the same id.
        hashes: The keys under which the postings hold the ids.
    """

    values: list[DocumentId]
    encoded: list[bytes]
    hashes: NDArray[np.uint64]

    @classmethod
    def check(cls, ids: Iterable[object], seed: int) -> "DocumentIds":
        """Check and hash the ids of a call.

        Raises:
            InputError: If an id is neither an integer nor a non-empty string.
        """
        if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
            raise InputError(f"ids must be a list of ids, got one {type(ids).__name__}; write [id]")
        listed = ids.to_pylist() if hasattr(ids, "to_pylist") else list(ids)
        values = [value if type(value) is str else _plain_id(value, row) for row, value in enumerate(listed)]
        encoded = [_encode_id(value, row) for row, value in enumerate(values)]
        return cls(values, encoded, _hash_ids(encoded, seed))

    def __len__(self) -> int:
        return len(self.values)

    def slice(self, start: int, end: int) -> "DocumentIds":
        """Return the ids from ``start`` up to ``end``."""
        return DocumentIds(self.values[start:end], self.encoded[start:end], self.hashes[start:end])


def _plain_id(value: object, row: int) -> DocumentId:
    """Convert NumPy strings and integers to the built-in types."""
    if isinstance(value, str):
        return str(value)
    try:
        if not isinstance(value, (bool, np.bool_)):
            return index(value)  # type: ignore[arg-type]
    except TypeError:
        pass
    raise _invalid_id(value, row)


def _encode_id(value: DocumentId, row: int) -> bytes:
    try:
        if value != "":
            return str(value).encode()
    except ValueError:  # a lone surrogate, or more digits than Python converts to a string
        pass
    raise _invalid_id(value, row)


def _invalid_id(value: object, row: int) -> InputError:
    return InputError(f"id {row} must be a whole number or a string that is not empty, got {show(value)}")


def _hash_ids(encoded: list[bytes], seed: int) -> NDArray[np.uint64]:
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(value) for value in encoded], out=offsets[1:])
    hashes = _kernel.hash_strings(offsets, np.frombuffer(b"".join(encoded), dtype=np.uint8), seed)
    return np.minimum(hashes, np.uint64(NO_KEY - 1))


def decode_text(content: bytes) -> str | bytes:
    """Return a stored text; bytes if it is not valid UTF-8, which only byte shingles accept."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def encode_metadata(metadata: Metadata | None, label: int | str) -> bytes:
    """Return metadata as JSON with sorted keys, so that equal objects have equal bytes.

    Args:
        metadata: A JSON object or None.
        label: The word after "metadata" in an error message.

    Raises:
        InputError: If it is not a JSON object.
    """
    if metadata is None:
        return b""
    if not isinstance(metadata, dict) or not all(isinstance(key, str) for key in metadata):
        raise InputError(f"metadata {label} must be a JSON object or None, got {type(metadata).__name__}")
    if is_nested_too_deep(metadata):
        raise InputError(f"metadata {label} must have at most {MAX_LEVELS} levels of lists and objects")
    try:
        return json.dumps(metadata, sort_keys=True, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    except (RecursionError, TypeError, ValueError) as error:
        raise InputError(f"metadata {label} must be a JSON object: {error}") from None


def encode_keys(keys: NDArray[np.uint64]) -> bytes:
    """Return the content of a ``recent`` row: the keys of a block of documents, one row per document."""
    return KEYS.pack(*keys.shape) + keys.astype("<u8", copy=False).tobytes()


def decode_keys(content: bytes) -> NDArray[np.uint64]:
    """Return the keys of a block of documents whose checksum was verified.

    Raises:
        ValueError: If there are not as many keys as it says.
    """
    if len(content) < KEYS.size:
        raise ValueError(f"it must have at least {KEYS.size} bytes, got {len(content)}")
    documents, width = KEYS.unpack_from(content)
    if len(content) != KEYS.size + 8 * documents * width:
        raise ValueError(f"it must have {documents} × {width} keys, got {len(content) - KEYS.size} bytes")
    return np.frombuffer(content, dtype="<u8", offset=KEYS.size).reshape(documents, width)
