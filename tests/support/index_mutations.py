"""Random changes of a closed index that keep every checksum right, and all operations on the result.

A change is drawn from a seed: bytes or fields of a row, a value of another SQLite type, a row number, a field of a JSON
object, a byte of a segment. Only the content is wrong afterwards, so nothing but a check of the content can notice it.
"""

import json
import random
import secrets
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import minwise as mw
from minwise.errors import FormatError, InputError, MismatchError
from minwise.index import OpenMode
from support.index_edits import edit_json, edit_row, reseal_segment, store_raw
from support.plain_index import BLOCK, PlainIndex, crc32c, seal

__all__ = ["Operations", "mutate"]

LONGEST_MESSAGE = 1000
# Operations that refuse an id of the caller: another one may be stored now.
MAY_REFUSE = ("get", "add", "replace", "add unique")

DEEP = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
VALUES: list[Any] = [
    None, True, -1, 0, 1, 3, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1, 2**64, 0.5, 1e308, "", "x", "5", "word:5", [],
    {}, [[]], {"a": 1}, "\ud800", "x" * 100_000, [1, 2], "../head", json.loads("[" * 900 + "]" * 900),
]  # fmt: skip
RAW_VALUES = [None, 5, -1, 2**62, 0.5, "text", "", b"", b"abc", b"\0" * 5000]
NUMBERS = [-1, 2**32, 2**32 - 1, 2**63 - 1, -(2**63), 77, 32768]
METADATA = [b"[1]", b"1", b"{", b'{"a":NaN}', b"\xff", DEEP, b"null", b'{"a":1}x', b'"x"', b" " * 9]
NAMES = [b"", b"\xff\xfe", b"abc", b"1" * 5000, b"1_0", b" 5", "٣".encode(), b"-0", b"\0"]
TABLES = ("manifest", "documents", "texts", "recent", "removed")


def mutate(path: Path, draw: random.Random) -> str:
    """Change an index, and return a description of the change."""
    plain = PlainIndex(path)
    kinds: list[Callable[[Path, PlainIndex, random.Random], str]] = [
        _row_bytes, _row_bytes, _document, _document, _raw_value, _number, _json_field, _json_field, _segment, _segment,
    ]  # fmt: skip
    return draw.choice(kinds)(path, plain, draw)


def _some_row(plain: PlainIndex, draw: random.Random, tables: tuple[str, ...] = TABLES) -> tuple[str, int]:
    table = draw.choice([table for table in tables if plain.records[table]])
    return table, draw.choice(list(plain.records[table]))


def _row_bytes(path: Path, plain: PlainIndex, draw: random.Random) -> str:
    table, number = _some_row(plain, draw)
    change = _changed_bytes(plain.contents(table)[number], draw)
    edit_row(path, table, number, lambda _: change)
    return f"{table} row {number} is {change[:60]!r}, {len(change)} bytes"


def _changed_bytes(content: bytes, draw: random.Random) -> bytes:
    """Return content with bytes replaced, inserted or cut off."""
    start = draw.randrange(len(content) + 1) if draw.random() < 0.5 else draw.randrange(min(16, len(content)) + 1)
    end = min(len(content), start + draw.choice((0, 1, 1, 4, 8, 1000)))
    some = draw.choice((b"", draw.randbytes(1), draw.randbytes(4), b"\xff" * 4, b"\0" * 8, draw.randbytes(end - start)))
    return content[:start] + some + content[draw.choice((end, len(content))) :]


def _document(path: Path, plain: PlainIndex, draw: random.Random) -> str:
    """Change one field of a document: flag, lengths, id, metadata or body."""
    _, number = _some_row(plain, draw, ("documents",))
    content = plain.contents("documents")[number]
    flag, id_bytes, metadata_bytes = struct.unpack_from("<BII", content)
    name, metadata = content[9 : 9 + id_bytes], content[9 + id_bytes : 9 + id_bytes + metadata_bytes]
    body = content[9 + id_bytes + metadata_bytes :]
    field = draw.choice(("flag", "lengths", "id", "integer id", "metadata", "body"))
    if field == "flag":
        flag = draw.randrange(256)
    elif field == "lengths":
        lengths = struct.pack("<BII", flag, *(draw.choice((0, 1, id_bytes, 2**31, 2**32 - 1, 40)) for _ in range(2)))
        edit_row(path, "documents", number, lambda _: lengths + content[9:])
        return f"documents row {number} has the lengths {lengths!r}"
    elif field in ("id", "integer id"):
        flag, name = int(field == "integer id"), draw.choice(NAMES)
    elif field == "metadata":
        metadata = draw.choice(METADATA)
    else:
        body = draw.choice((b"", body[::-1], body[:-1], body + body, b"\xff" * 8, body[8:], b"\0" * len(body)))
    changed = struct.pack("<BII", flag, len(name), len(metadata)) + name + metadata + body
    edit_row(path, "documents", number, lambda _: changed)
    return f"documents row {number} has another {field}: {changed[:60]!r}"


def _raw_value(path: Path, plain: PlainIndex, draw: random.Random) -> str:
    table, number = _some_row(plain, draw)
    value = draw.choice(RAW_VALUES)
    store_raw(path, table, number, value)
    return f"{table} row {number} is the value {str(value)[:20]!r}"


def _number(path: Path, plain: PlainIndex, draw: random.Random) -> str:
    """Store a row under another number, or delete it."""
    table, number = _some_row(plain, draw)
    content, new = plain.contents(table)[number], draw.choice(NUMBERS)
    with closing(sqlite3.connect(path / "index.db")) as connection, connection:
        connection.execute(f"DELETE FROM {table} WHERE number = ?", [number])
        if draw.random() < 0.8:
            connection.execute(f"INSERT INTO {table} VALUES(?, ?)", [new, seal(new % 2**32, content)])
    return f"{table} row {number} is row {new}"


def _json_field(path: Path, plain: PlainIndex, draw: random.Random) -> str:
    row, value = draw.choice((0, 1, 1)), draw.choice(VALUES)
    fields: dict[str, Any] = json.loads(plain.contents("manifest")[row])
    parts = [fields, *fields.get("segments", [])]
    part = draw.choice(parts)
    name, way = draw.choice(list(part)), draw.choice(("value", "value", "value", "near", "missing", "unknown"))
    if way == "missing":
        del part[name]
    elif way == "near" and type(part[name]) is int:
        part[name] += draw.choice((-1, 1, 2**32))
    else:
        part["other" if way == "unknown" else name] = value

    def change(stored: dict[str, Any]) -> None:
        stored.clear()
        stored.update(fields)

    edit_json(path, row, change)
    return f"manifest row {row}: {name} is {str(part.get(name))[:40]} ({way})"


def _segment(path: Path, plain: PlainIndex, draw: random.Random) -> str:
    """Change bytes of a segment and compute all checksums again, also those in the state."""
    which = draw.randrange(len(plain.state["segments"]))
    file = path / plain.state["segments"][which]["name"]
    data = bytearray(file.read_bytes())
    trailer, fences = len(data) - 72, len(data) - 72 - 8 * (len(data) - 72 - BLOCK) // (BLOCK + 8)
    parts = (BLOCK + 4, BLOCK + 40), (BLOCK, fences), (fences, trailer), (trailer, trailer + 56)
    offset = draw.randrange(*draw.choice(parts))
    data[offset] = draw.randrange(256)
    sealed = reseal_segment(bytes(data))
    file.write_bytes(sealed)
    postings = sum(struct.unpack_from("<2Q", sealed, trailer))
    low, high, size = struct.unpack_from("<3Q", sealed, trailer + 32)
    checksums = b"".join(sealed[at : at + 4] for at in range(BLOCK, fences - BLOCK + 1, BLOCK))
    identity = {"postings": postings, "low": low, "high": high, "bytes": len(sealed)}
    identity |= {"trailer": struct.unpack_from("<I", sealed, trailer + 60)[0], "blocks": crc32c(checksums)}
    edit_json(path, 1, lambda state: state["segments"][which].update(identity))
    return f"{file.name}: byte {offset} is {data[offset]} (blocks up to {fences}, trailer at {trailer}, size {size})"


class Operations:
    """All operations on one index; collects the errors that are not one line about a file of the index."""

    def __init__(self, path: Path, texts: list[str], ids: list[Any]) -> None:
        self.path, self.texts, self.ids = path, texts, ids
        self.scratch = path.parent / "scratch"
        self.problems: list[str] = []

    def run(self) -> list[str]:
        """Read, write, and read what a writer may have changed; return the problems."""
        self.scratch.mkdir(exist_ok=True)
        steps: tuple[tuple[OpenMode, Callable[[mw.Index], None]], ...] = (
            ("r", self._read), ("w", self._write), ("r", self._read),
        )  # fmt: skip
        for mode, calls in steps:
            self._attempt(f"open {mode}", partial(self._use, mode, calls))
        return self.problems

    def _use(self, mode: OpenMode, calls: Callable[[mw.Index], None]) -> None:
        with mw.Index.open(self.path, mode) as index:
            calls(index)

    def _attempt(self, name: str, call: Callable[[], object]) -> None:
        try:
            call()
        except (FormatError, MismatchError) as error:
            message = str(error)
            if not message.startswith(f"{self.path}/") or "\n" in message or len(message) > LONGEST_MESSAGE:
                self.problems.append(f"{name}: {type(error).__name__}: {message[:300]}")
        except Exception as error:
            if not (isinstance(error, InputError) and name in MAY_REFUSE):
                self.problems.append(f"{name} raised {type(error).__name__}: {str(error)[:300]}")

    def _read(self, index: mw.Index) -> None:
        self._attempt("len", lambda: len(index))
        self._attempt("stats", index.stats)
        for text in self.texts:
            self._attempt("query", partial(index.query, text, top=100, with_text=True))
        self._attempt("query where", lambda: index.query_many(self.texts, where={"lang": "de"}))
        for name in self.ids:
            self._attempt("get", partial(index.get, name))
        self._attempt("newest", lambda: index.newest(100))
        if index.store == "text":
            self._attempt("search", lambda: index.search_text("harbour"))
        self._attempt("verify", index.verify)
        self._attempt("export", lambda: index.export(self.scratch / "out.parquet"))
        self._attempt("backup", lambda: index.backup(self.scratch / secrets.token_hex(4)))

    def _write(self, index: mw.Index) -> None:
        texts, ids = self.texts, self.ids
        self._attempt("add", lambda: index.add(["new"], ["a new text about a harbour wall"]))
        self._attempt("replace", lambda: index.add(ids, texts[: len(ids)], on_duplicate_id="replace"))
        self._attempt("add unique", lambda: index.add_unique([f"u{i}" for i in range(len(texts))], texts))
        self._attempt("flush", index.flush)
        self._attempt("remove", lambda: index.remove(ids[:2]))
        self._attempt("compact", index.compact)
