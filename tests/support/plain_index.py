"""Index reader that uses only `struct`, `json` and `sqlite3`, as docs/index-format.md specifies it.

It uses nothing of minwise: if it reads an index, the page is right.
"""

import json
import sqlite3
import struct
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

POLYNOMIAL = 0x82F63B78
MAGIC = b"MWPOST\r\n"
BLOCK = 1024
TABLES = ("documents", "manifest", "recent", "removed", "texts")
# The key that means "no posting".
NO_KEY = 2**64 - 1

Posting = tuple[int, int]


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return table


CRC_TABLE = _crc_table()


def crc32c(data: bytes, start: int = 0) -> int:
    """Return the CRC-32C (Castagnoli) of the data, continued from the checksum of earlier data."""
    crc = start ^ 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def seal(number: int, content: bytes) -> bytes:
    """Return the record of a row: its checksum, started with the number of the row, and the content."""
    return struct.pack("<I", crc32c(content, number)) + content


def content_of(number: int, record: bytes) -> bytes:
    """Return the content of a record, after checking its checksum."""
    assert seal(number, record[4:]) == record, f"row {number} is damaged"
    return record[4:]


class Document(NamedTuple):
    """A row of ``documents``."""

    id: str | int
    metadata: Any
    body: bytes

    @classmethod
    def decode(cls, content: bytes) -> "Document":
        """Decode whether the id is a number, the lengths of id and metadata, then id, metadata and body."""
        is_number, id_bytes, metadata_bytes = struct.unpack_from("<BII", content)
        id_end = 9 + id_bytes
        name, metadata = content[9:id_end].decode(), content[id_end : id_end + metadata_bytes]
        body = content[id_end + metadata_bytes :]
        return cls(int(name) if is_number else name, json.loads(metadata) if metadata else None, body)


class Segment(NamedTuple):
    """A file of postings: those of band keys and of id hashes, the range of their documents, size and checksums."""

    bands: list[Posting]
    ids: list[Posting]
    low: int
    high: int
    bytes: int
    trailer: int
    blocks: int

    @classmethod
    def read(cls, path: Path) -> "Segment":
        """Read every block, and check header, fences and trailer."""
        data = path.read_bytes()
        header, trailer = data[:BLOCK], data[-72:]
        assert header == struct.pack("<8sII", MAGIC, 1, crc32c(header[:12])).ljust(BLOCK, b"\0")
        *counts, low, high, size, fences_crc, crc, magic = struct.unpack("<7QII8s", trailer)
        assert (crc, magic, size) == (crc32c(trailer[:60]), MAGIC, len(data))
        postings, blocks = counts[:2], counts[2:]
        end = BLOCK * (1 + sum(blocks))
        assert fences_crc == crc32c(data[end:-72])
        fences = list(struct.unpack(f"<{sum(blocks)}Q", data[end:-72]))
        read = [_read_block(data[offset : offset + BLOCK], offset // BLOCK) for offset in range(BLOCK, end, BLOCK)]
        assert [block[0][0] for block in read] == fences
        bands, ids = _concatenate(read[: blocks[0]]), _concatenate(read[blocks[0] :])
        assert [len(bands), len(ids)] == postings
        assert bands == sorted(set(bands))
        assert ids == sorted(set(ids))
        assert all(low <= document < high for _, document in (*bands, *ids))
        block_crcs = b"".join(data[offset : offset + 4] for offset in range(BLOCK, end, BLOCK))
        return cls(bands, ids, low, high, size, crc, crc32c(block_crcs))


def _read_block(block: bytes, number: int) -> list[Posting]:
    crc, count, width, zero, base = struct.unpack_from("<IHBBQ", block)
    assert crc == crc32c(block[4:], crc32c(struct.pack("<Q", number)))
    assert zero == 0
    postings = []
    for offset in range(16, 16 + count * (width + 4), width + 4):
        difference = int.from_bytes(block[offset : offset + width], "little")
        postings.append((base + difference, *struct.unpack_from("<I", block, offset + width)))
    assert not any(block[16 + count * (width + 4) :])
    return postings


def _concatenate(blocks: list[list[Posting]]) -> list[Posting]:
    return [posting for block in blocks for posting in block]


class PlainIndex:
    """The content of an index directory that is not open."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with closing(sqlite3.connect(f"file:{folder / 'index.db'}?mode=ro&immutable=1", uri=True)) as connection:
            assert tuple(name for (name,) in connection.execute("SELECT name FROM sqlite_schema ORDER BY 1")) == TABLES
            self.records: dict[str, dict[int, bytes]] = {
                table: dict(connection.execute(f"SELECT number, record FROM {table} ORDER BY number"))
                for table in TABLES
            }

    def contents(self, table: str) -> dict[int, bytes]:
        """Return the content of every row."""
        return {number: content_of(number, record) for number, record in self.records[table].items()}

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Row 0 of the manifest."""
        settings: dict[str, Any] = json.loads(self.contents("manifest")[0])
        return settings

    @cached_property
    def state(self) -> dict[str, Any]:
        """Row 1 of the manifest."""
        state: dict[str, Any] = json.loads(self.contents("manifest")[1])
        return state

    @cached_property
    def fingerprint(self) -> int:
        """Row 2 of the manifest."""
        return int.from_bytes(self.contents("manifest")[2], "little")

    @cached_property
    def documents(self) -> dict[int, Document]:
        """The documents by number."""
        return {number: Document.decode(content) for number, content in self.contents("documents").items()}

    @cached_property
    def texts(self) -> dict[int, str]:
        """The texts by number, if texts are stored."""
        return {number: content.decode() for number, content in self.contents("texts").items()}

    @cached_property
    def removed(self) -> set[int]:
        """The numbers whose bit is set."""
        return {
            first + 8 * offset + bit
            for first, bits in self.contents("removed").items()
            for offset, byte in enumerate(bits)
            for bit in range(8)
            if byte >> bit & 1
        }

    @cached_property
    def recent(self) -> dict[int, list[int]]:
        """The hash of the id and the band keys of each document that is in no segment."""
        keys = {}
        for first, content in self.contents("recent").items():
            documents, width = struct.unpack_from("<II", content)
            words = struct.unpack_from(f"<{documents * width}Q", content, 8)
            assert len(content) == 8 + 8 * documents * width
            for row in range(documents):
                keys[first + row] = list(words[row * width : (row + 1) * width])
        return keys

    @cached_property
    def segments(self) -> list[Segment]:
        """The segments of the state, in its order."""
        return [Segment.read(self.folder / segment["name"]) for segment in self.state["segments"]]

    def postings(self) -> tuple[set[Posting], set[Posting]]:
        """Return (key, document) of all band keys, and of all id hashes, without removed documents."""
        recent = [(key, number, column) for number, keys in self.recent.items() for column, key in enumerate(keys)]
        bands = {(key, number) for key, number, column in recent if column and key != NO_KEY}
        ids = {(key, number) for key, number, column in recent if not column}
        for segment in self.segments:
            bands |= set(segment.bands)
            ids |= set(segment.ids)
        return tuple({posting for posting in run if posting[1] not in self.removed} for run in (bands, ids))  # type: ignore[return-value]

    def digest(self) -> int:
        """Return the sum of number·2³² + checksum over all rows of documents and texts, modulo 2⁶⁴."""
        rows = [*self.records["documents"].items(), *self.records["texts"].items()]
        return sum((number << 32) + int.from_bytes(record[:4], "little") for number, record in rows) % 2**64

    def head(self) -> int:
        """Return the number of the last commit in the file ``head``."""
        commit, crc = struct.unpack("<QI", (self.folder / "head").read_bytes())
        assert crc == crc32c(struct.pack("<Q", commit))
        return int(commit)
