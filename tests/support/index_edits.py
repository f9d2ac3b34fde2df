"""Edits of a closed index that no checksum reveals: rows and segments of another content, sealed again."""

import json
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from support.plain_index import BLOCK, content_of, crc32c, seal

__all__ = ["edit_json", "edit_row", "reseal_segment", "store_raw"]


def edit_row(path: Path, table: str, number: int, change: Callable[[bytes], bytes]) -> None:
    """Replace the content of a row, with a correct checksum."""
    with closing(sqlite3.connect(path / "index.db")) as connection, connection:
        (record,) = connection.execute(f"SELECT record FROM {table} WHERE number = ?", [number]).fetchone()
        sealed = seal(number, change(content_of(number, record)))
        connection.execute(f"UPDATE {table} SET record = ? WHERE number = ?", [sealed, number])


def edit_json(path: Path, number: int, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a JSON object in the manifest, with a correct checksum: row 0 is the settings, row 1 the state."""

    def changed(content: bytes) -> bytes:
        fields = json.loads(content)
        change(fields)
        return json.dumps(fields).encode()

    edit_row(path, "manifest", number, changed)


def store_raw(path: Path, table: str, number: int, value: object, *, new_number: int | None = None) -> None:
    """Store any SQLite value as the record of a row, although the table accepts only blobs."""
    strict, relaxed = " BLOB NOT NULL) STRICT", ")"
    _replace_in_schema(path, table, strict, relaxed)
    with closing(sqlite3.connect(path / "index.db")) as connection, connection:
        row = [value, number if new_number is None else new_number, number]
        connection.execute(f"UPDATE {table} SET record = ?, number = ? WHERE number = ?", row)
    _replace_in_schema(path, table, f"record{relaxed}", f"record{strict}")


def _replace_in_schema(path: Path, table: str, old: str, new: str) -> None:
    with closing(sqlite3.connect(path / "index.db")) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE name = ?", [old, new, table])


def reseal_segment(data: bytes) -> bytes:
    """Return a segment of changed bytes with the checksums of its blocks, fences and trailer computed again."""
    sealed = bytearray(data)
    end = len(data) - 72
    *_, bands, ids = struct.unpack_from("<4Q", data, end)
    blocks = min(bands + ids, (end - BLOCK) // (BLOCK + 8))
    for number in range(1, blocks + 1):
        block = sealed[number * BLOCK : (number + 1) * BLOCK]
        struct.pack_into("<I", sealed, number * BLOCK, crc32c(bytes(block[4:]), crc32c(struct.pack("<Q", number))))
    struct.pack_into("<I", sealed, end + 56, crc32c(bytes(sealed[(blocks + 1) * BLOCK : end])))
    struct.pack_into("<I", sealed, end + 60, crc32c(bytes(sealed[end : end + 60])))
    return bytes(sealed)
