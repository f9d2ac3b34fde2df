"""Access tokens and the file that contains their hashes.

A line of the file is ``read,write sha256:HASH NAME``: the rights, the SHA-256 of the token in hexadecimal, and a name
for people. Lines that begin with ``#`` are comments. A token has 256 random bits and cannot be found from its hash, so
that a slow salted hash, as passwords need one, would add nothing.

Error messages name the file and the line and never quote its content: it may be a token that was pasted by mistake.
"""

import hmac
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from minwise._internal.atomic import sync_directory, sync_file
from minwise._internal.locks import lock_file
from minwise.checks import check_path, show
from minwise.errors import ConfigError, FormatError

__all__ = ["RIGHTS", "Tokens", "make_token"]

RIGHTS = ("read", "write")
# Identifies a token for people and for programs that scan for secrets.
PREFIX = "mw_"
TOKEN_BYTES = 32
# About ten thousand tokens; every request is compared with all of them.
MAX_FILE_BYTES = 10**6
# Windows has no such modes: every file that is not read-only has these bits.
WRITABLE_BY_OTHERS = 0 if sys.platform == "win32" else stat.S_IWGRP | stat.S_IWOTH

LINE = re.compile(r"(?P<rights>\S+)\s+sha256:(?P<hash>[0-9a-fA-F]{64})\s+(?P<name>\S+)")
NAME = re.compile(r"[\w.@+-]{1,64}")
REMEDY = "make one with: minwise token FILE --read --write"


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """A line of the token file."""

    name: str
    rights: frozenset[str]
    digest: bytes = field(repr=False)


class Tokens:
    """The tokens of a file.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "tokens"
    >>> token = make_token(path, ["read"], "reader")
    >>> sorted(Tokens.read(path).rights(token)), sorted(Tokens.read(path).rights("mw_guessed"))
    (['read'], [])
    """

    def __init__(self, entries: Iterable[TokenEntry]) -> None:
        self._entries = tuple(entries)

    def __repr__(self) -> str:
        return f"Tokens({len(self)} tokens)"

    def __len__(self) -> int:
        return len(self._entries)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "Tokens":
        """Read a token file.

        Raises:
            OSError: If it cannot be read.
            ConfigError: If it has no token, is too long, or is writable by others than its owner.
            FormatError: If a line is invalid.
        """
        with check_path("token_file", path).open("rb") as file:
            entries = _read(file, path)
        if not entries:
            raise ConfigError(f"{path} must have a token, got none; {REMEDY}")
        return cls(entries)

    def rights(self, token: str) -> frozenset[str]:
        """Return the rights of a token; none if it is unknown.

        It is compared with every entry in constant time, so that the time reveals neither which entry matches nor how
        much of a wrong token is right.
        """
        digest = _digest(token)
        found: frozenset[str] = frozenset()
        for entry in self._entries:
            found = entry.rights if hmac.compare_digest(entry.digest, digest) else found
        return found


def make_token(path: str | PathLike[str], rights: Iterable[str], name: str | None = None) -> str:
    """Return a new random token, after its hash was appended to a file.

    Args:
        path: The token file; created, readable by its owner only, if it does not exist.
        rights: ``read``, ``write`` or both.
        name: A name that is unique in the file; ``token-1`` and so on by default.
    """
    wanted = _check_rights(rights)
    if name is not None and not NAME.fullmatch(name):
        rule = "must be 1 to 64 letters, digits or any of . _ @ + -"
        raise ConfigError(f"name {rule}, got {show(name)}")
    token = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    target = check_path("token file", path)
    with open(target, "a+b", buffering=0, opener=_open_private) as file:
        lock_file(file, wait=True)  # so that two processes cannot use the same name
        chosen = _free_name(_read(file, path), name, path)
        _append(file, f"{','.join(wanted)} sha256:{_digest(token).hex()} {chosen}\n".encode(), target)
    return token


def _open_private(path: str, flags: int) -> int:
    """Open a file, which only its owner can read if it is new."""
    return os.open(path, flags, 0o600)


def _read(file: BinaryIO, path: str | PathLike[str]) -> list[TokenEntry]:
    """Read the entries of an open file, and check its mode and size."""
    mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    if mode & WRITABLE_BY_OTHERS:
        rule = "must be writable by its owner only"
        raise ConfigError(f"{path} {rule}, got mode {mode:04o}; use: chmod go-w {path}")
    content = b""
    file.seek(0)
    while piece := file.read(MAX_FILE_BYTES + 1 - len(content)):
        content += piece
    if len(content) > MAX_FILE_BYTES:
        raise ConfigError(f"{path} must have at most {MAX_FILE_BYTES:,} bytes, got more; is it a token file?")
    return _parse(content, path)


def _parse(content: bytes, path: str | PathLike[str]) -> list[TokenEntry]:
    entries: list[TokenEntry] = []
    first: dict[str | bytes, int] = {}
    for number, line in enumerate(content.split(b"\n"), 1):
        entry = _parse_line(line, f"{path}:{number}")
        if entry is None:
            continue
        for what, key in (("name", entry.name), ("token", entry.digest)):
            if first.setdefault(key, number) != number:
                rule = f"a {what} must occur once"
                raise FormatError(f"{path}:{number}: {rule}, got that of line {first[key]} again")
        entries.append(entry)
    return entries


def _parse_line(line: bytes, location: str) -> TokenEntry | None:
    """Return the entry of a line; None for a comment."""
    try:
        text = line.decode().strip()
    except UnicodeDecodeError:
        raise FormatError(f"{location}: must be UTF-8, got invalid bytes") from None
    if not text or text.startswith("#"):
        return None
    found = LINE.fullmatch(text)
    if found is None or not NAME.fullmatch(found["name"]):
        rule = "must be RIGHTS sha256:HASH NAME, as minwise token writes it"
        raise FormatError(f"{location}: {rule}, got something else, not quoted here")
    rights = found["rights"].split(",")
    if not set(rights) <= set(RIGHTS) or len(set(rights)) != len(rights):
        raise FormatError(f"{location}: rights must be read, write or read,write, got something else")
    return TokenEntry(found["name"], frozenset(rights), bytes.fromhex(found["hash"]))


def _check_rights(rights: Iterable[str]) -> list[str]:
    """Return the rights in their usual order, each once."""
    given = list(rights)
    if not given or not set(given) <= set(RIGHTS):
        raise ConfigError(f"rights must be read, write or both, got {show(', '.join(map(str, given)))}")
    return [right for right in RIGHTS if right in given]


def _free_name(entries: list[TokenEntry], name: str | None, path: str | PathLike[str]) -> str:
    taken = {entry.name for entry in entries}
    if name is None:
        return next(free for number in range(1, len(taken) + 2) if (free := f"token-{number}") not in taken)
    if name in taken:
        raise ConfigError(f"name must be unique in {path}, got {show(name)}, which is taken; delete its line first")
    return name


def _append(file: BinaryIO, line: bytes, path: Path) -> None:
    """Append a line durably; after an error the file is unchanged."""
    size = file.seek(0, os.SEEK_END)
    if size and not _ends_in_newline(file, size):
        line = b"\n" + line
    try:
        view = memoryview(line)
        while view:
            view = view[file.write(view) :]
        sync_file(file.fileno())
        if not size:
            sync_directory(path.absolute().parent)  # so that the name of a new file is durable too
    except OSError as error:
        with suppress(OSError):
            file.truncate(size)
        raise OSError(error.errno, error.strerror, str(path)) from None


def _ends_in_newline(file: BinaryIO, size: int) -> bool:
    file.seek(size - 1)
    return file.read(1) == b"\n"


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogatepass")).digest()
