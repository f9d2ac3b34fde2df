"""Tokens: who may read and who may write. A file holds their hashes; a token itself is shown once, when it is drawn.

A line of the file is ``read,write sha256:HASH NAME``: rights, the SHA-256 of the token in hexadecimal, and a name for
people. What begins with ``#`` is a comment. A token has 256 random bits, so nobody finds it from its hash, and a slow
hash with salt, as passwords need one, would gain nothing.

Messages name the file and the line, and never repeat what stands there: it may be a token that was pasted by mistake.
"""

import fcntl
import hmac
import os
import re
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from os import PathLike
from pathlib import Path

from minwise._internal.atomic import sync_directory
from minwise.checks import check_path, show
from minwise.errors import ConfigError, FormatError

__all__ = ["RIGHTS", "Tokens", "make_token"]

RIGHTS = ("read", "write")
# Tells what a string is to people and to programs that look for secrets.
PREFIX = "mw_"
TOKEN_BYTES = 32
# Some ten thousand tokens; every request compares with all of them.
MOST_BYTES = 10**6
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH

LINE = re.compile(r"(?P<rights>\S+)\s+sha256:(?P<hash>[0-9a-fA-F]{64})\s+(?P<name>\S+)")
NAME = re.compile(r"[\w.@+-]{1,64}")
REMEDY = "make one with: minwise token FILE --read --write"


@dataclass(frozen=True, slots=True)
class Entry:
    """A token as the file has it."""

    name: str
    rights: frozenset[str]
    digest: bytes = field(repr=False)


class Tokens:
    """The tokens of a file, by their hashes.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "tokens"
    >>> token = make_token(path, ["read"], "reader")
    >>> sorted(Tokens.read(path).rights(token)), sorted(Tokens.read(path).rights("mw_guessed"))
    (['read'], [])
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = tuple(entries)

    def __repr__(self) -> str:
        return f"Tokens({len(self)} of them)"

    def __len__(self) -> int:
        return len(self._entries)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "Tokens":
        """The tokens of a file.

        Raises:
            OSError: If it can not be read.
            ConfigError: If it has no token, is far too long, or others than its owner may write it.
            FormatError: If a line is not as it should be.
        """
        with check_path("token-file", path).open("rb") as file:
            entries = _read(file.fileno(), path)
        if not entries:
            raise ConfigError(f"{path} must have a token, got none; {REMEDY}")
        return cls(entries)

    def rights(self, token: str) -> frozenset[str]:
        """What a token allows; nothing if it is not one of these.

        It is compared with every entry, each in constant time, so that the time tells neither which one it is nor how
        much of it is right.
        """
        digest = _digest(token)
        found: frozenset[str] = frozenset()
        for entry in self._entries:
            found = entry.rights if hmac.compare_digest(entry.digest, digest) else found
        return found


def make_token(path: str | PathLike[str], rights: Iterable[str], name: str | None = None) -> str:
    """Draws a token, and adds its hash to a file before it is returned.

    Args:
        path: The file; made if it is not there, for its owner alone.
        rights: ``read``, ``write`` or both.
        name: What people call it, once per file; a number is found if not given.
    """
    wanted = _check_rights(rights)
    if name is not None and not NAME.fullmatch(name):
        rule = "must be 1 to 64 letters, digits or any of . _ @ + -"
        raise ConfigError(f"name {rule}, got {show(name)}")
    token = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    target = check_path("token file", path)
    file = os.open(target, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)  # whoever else adds waits, so that no name is taken twice
        chosen = _free_name(_read(file, path), name, path)
        _append(file, f"{','.join(wanted)} sha256:{_digest(token).hex()} {chosen}\n".encode(), target)
    finally:
        os.close(file)
    return token


def _read(file: int, path: str | PathLike[str]) -> list[Entry]:
    """The entries of an open file that is as it should be."""
    mode = stat.S_IMODE(os.fstat(file).st_mode)
    if mode & OTHERS_MAY_WRITE:
        rule = "must not be writable by others than its owner"
        raise ConfigError(f"{path} {rule}, got mode {mode:04o}; use: chmod go-w {path}")
    content = b""
    while piece := os.read(file, MOST_BYTES + 1 - len(content)):
        content += piece
    if len(content) > MOST_BYTES:
        raise ConfigError(f"{path} must have at most {MOST_BYTES:,} bytes, got more; is it a file of tokens?")
    return _parse(content, path)


def _parse(content: bytes, path: str | PathLike[str]) -> list[Entry]:
    entries: list[Entry] = []
    first: dict[str | bytes, int] = {}
    for number, line in enumerate(content.split(b"\n"), 1):
        entry = _parse_line(line, f"{path}:{number}")
        if entry is None:
            continue
        for what, key in (("name", entry.name), ("token", entry.digest)):
            if first.setdefault(key, number) != number:
                rule = f"a {what} must stand there once"
                raise FormatError(f"{path}:{number}: {rule}, got that of line {first[key]} again")
        entries.append(entry)
    return entries


def _parse_line(line: bytes, place: str) -> Entry | None:
    """What a line says; nothing for a comment."""
    try:
        text = line.decode().strip()
    except UnicodeDecodeError:
        raise FormatError(f"{place}: must be UTF-8, got bytes that are not") from None
    if not text or text.startswith("#"):
        return None
    found = LINE.fullmatch(text)
    if found is None or not NAME.fullmatch(found["name"]):
        rule = "must be RIGHTS sha256:HASH NAME, as minwise token writes it"
        raise FormatError(f"{place}: {rule}, got something else, which is not repeated here")
    rights = found["rights"].split(",")
    if not set(rights) <= set(RIGHTS) or len(set(rights)) != len(rights):
        raise FormatError(f"{place}: rights must be read, write or read,write, got something else")
    return Entry(found["name"], frozenset(rights), bytes.fromhex(found["hash"]))


def _check_rights(rights: Iterable[str]) -> list[str]:
    """The rights in their order, each once."""
    given = list(rights)
    if not given or not set(given) <= set(RIGHTS):
        raise ConfigError(f"rights must be read, write or both, got {show(', '.join(map(str, given)))}")
    return [right for right in RIGHTS if right in given]


def _free_name(entries: list[Entry], name: str | None, path: str | PathLike[str]) -> str:
    taken = {entry.name for entry in entries}
    if name is None:
        return next(free for number in range(1, len(taken) + 2) if (free := f"token-{number}") not in taken)
    if name in taken:
        raise ConfigError(f"name must be new in {path}, got {show(name)}, which is there; delete its line first")
    return name


def _append(file: int, line: bytes, path: Path) -> None:
    """Adds a line, and has it on disk; the file is as it was if that fails."""
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        line = b"\n" + line
    try:
        view = memoryview(line)
        while view:
            view = view[os.write(file, view) :]
        os.fsync(file)
        if not size:
            sync_directory(path.absolute().parent)  # the name of a new file has to last too
    except OSError as error:
        with suppress(OSError):
            os.ftruncate(file, size)
        raise OSError(error.errno, error.strerror, str(path)) from None


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogatepass")).digest()
