"""Tokens: content of the file, rights, and that neither a token nor its hash is revealed."""

import hmac
import logging
import os
import re
import stat
import threading
from collections.abc import Callable
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pytest
from support.expect import error_message

from minwise.errors import ConfigError, FormatError
from minwise.server import tokens as module
from minwise.server.tokens import RIGHTS, Tokens, make_token

HASH = sha256(b"mw_one").hexdigest()
OTHER = sha256(b"mw_two").hexdigest()
BOTH = frozenset(RIGHTS)


def write(path: Path, text: str | bytes) -> Path:
    """Write a token file that only its owner may write."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(0o600)
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the path of a token file."""
    return tmp_path / "tokens.txt"


@pytest.mark.parametrize("rights", [["read"], ["write"], ["read", "write"], ["write", "read", "read"]])
def test_a_token_has_exactly_its_rights(file: Path, rights: list[str]) -> None:
    token = make_token(file, rights, "one")
    assert Tokens.read(file).rights(token) == frozenset(rights)


def test_several_tokens_have_their_own_rights(file: Path) -> None:
    drawn = {
        name: make_token(file, rights, name) for name, rights in (("r", ["read"]), ("w", ["write"]), ("b", RIGHTS))
    }
    read = Tokens.read(file)
    assert {name: read.rights(token) for name, token in drawn.items()} == {"r": {"read"}, "w": {"write"}, "b": BOTH}
    assert len(read) == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda token: "",
        lambda token: token[:-1],
        lambda token: token + "A",
        lambda token: token + " ",
        lambda token: token.upper(),
        lambda token: token.removeprefix("mw_"),
        lambda token: sha256(token.encode()).hexdigest(),
        lambda token: f"sha256:{sha256(token.encode()).hexdigest()}",
        lambda token: f"{token}\x00",
        lambda token: "\ud800" + token,
        lambda token: "ÿ" * 8000,
    ],
)  # fmt: skip
def test_an_unknown_token_has_no_rights(file: Path, change: Callable[[str], str]) -> None:
    """Not even one that differs in a letter, nor the hash."""
    token = make_token(file, RIGHTS)
    assert Tokens.read(file).rights(change(token)) == frozenset()


def test_a_token_is_256_random_bits_with_a_prefix(file: Path) -> None:
    drawn = [make_token(file, ["read"]) for _ in range(20)]
    assert len(set(drawn)) == len(drawn)
    # 32 bytes are 43 digits of base 64.
    assert all(re.fullmatch(r"mw_[A-Za-z0-9_-]{43}", token) for token in drawn)


def test_the_file_contains_only_hashes(file: Path) -> None:
    token = make_token(file, RIGHTS, "press@desk")
    assert file.read_text() == f"read,write sha256:{sha256(token.encode()).hexdigest()} press@desk\n"


@pytest.mark.posix
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_new_file_is_accessible_by_its_owner_only(file: Path, umask: int) -> None:
    """With any umask."""
    before = os.umask(umask)
    try:
        make_token(file, ["read"])
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.posix
def test_a_token_is_durable_when_it_is_returned(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line, and the name of a new file."""
    synced: list[tuple[bool, int]] = []

    def watch(descriptor: int) -> None:
        about = os.fstat(descriptor)
        synced.append((stat.S_ISDIR(about.st_mode), file.stat().st_size))

    monkeypatch.setattr(os, "fsync", watch)
    make_token(file, ["read"])
    size = file.stat().st_size
    assert synced == [(False, size), (True, size)]
    make_token(file, ["read"])
    assert synced[2:] == [(False, file.stat().st_size)]


def test_a_disk_error_leaves_the_file_unchanged(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_token(file, ["read"], "first")
    before = file.read_bytes()

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left") as caught:
        make_token(file, ["read"], "second")
    assert caught.value.filename == str(file)
    assert file.read_bytes() == before


def test_a_missing_newline_is_added_first(file: Path) -> None:
    write(file, f"read sha256:{HASH} mine")
    token = make_token(file, ["write"], "other")
    read = Tokens.read(file)
    assert read.rights("mw_one") == {"read"}
    assert read.rights(token) == {"write"}


def test_a_taken_name_is_refused(file: Path) -> None:
    make_token(file, ["read"], "press")
    before = file.read_bytes()
    line = error_message(ConfigError, lambda: make_token(file, ["write"], "press"))
    assert line == f"name must be unique in {file}, got 'press', which is taken; delete its line first"
    assert file.read_bytes() == before


def test_default_names_are_the_first_free_ones(file: Path) -> None:
    for name in (None, "token-2", None, None):
        make_token(file, ["read"], name)
    assert [line.split()[-1] for line in file.read_text().splitlines()] == ["token-1", "token-2", "token-3", "token-4"]


def test_concurrent_tokens_are_all_stored(file: Path) -> None:
    """With distinct names."""
    drawn: list[str] = []
    threads = [threading.Thread(target=lambda: drawn.append(make_token(file, ["read"]))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    read = Tokens.read(file)
    assert len(read) == len(drawn) == 8
    assert all(read.rights(token) == {"read"} for token in drawn)


@pytest.mark.parametrize("name", ["", "two words", "a\nb", "#", "x" * 65, "a,b", "tab\t", "\x00"])
def test_invalid_names_are_refused(file: Path, name: str) -> None:
    """And no file is created."""
    assert "name must be" in error_message(ConfigError, lambda: make_token(file, ["read"], name))
    assert not file.exists()


@pytest.mark.parametrize("rights", [[], ["admin"], ["read", "admin"], ["READ"], [""]])
def test_invalid_rights_are_refused(file: Path, rights: list[str]) -> None:
    """And no file is created."""
    assert "rights must be read, write or both" in error_message(ConfigError, lambda: make_token(file, rights))
    assert not file.exists()


def test_comments_blank_lines_and_capitals_are_accepted(file: Path) -> None:
    write(
        file, f"# who\r\n\r\n   read   sha256:{HASH.upper()}\tone  \r\n  # more\nwrite,read sha256:{OTHER} zwei-é\n\n"
    )
    read = Tokens.read(file)
    assert read.rights("mw_one") == {"read"}
    assert (read.rights("mw_two"), len(read)) == (BOTH, 2)


WRONG_LINES = [
    f"read sha256:{HASH}",
    f"read {HASH} one",
    f"read sha256:{HASH[:-1]} one",
    f"read sha256:{HASH}0 one",
    f"read sha256:{HASH[:-1]}g one",
    f"read md5:{HASH[:32]} one",
    f"read sha256:{HASH} one two",
    f"sha256:{HASH} one",
    f"admin sha256:{HASH} one",
    f"read,read sha256:{HASH} one",
    f"read, write sha256:{HASH} one",
    f"read,write, sha256:{HASH} one",
    f"READ sha256:{HASH} one",
    f"read sha256:{HASH} one #two",
    f"read sha256:{HASH} {'x' * 65}",
    "mw_" + "A" * 43,
    "read mw_" + "A" * 43 + " one",
    "\x00",
]


@pytest.mark.parametrize("line", WRONG_LINES)
def test_an_invalid_line_is_reported_by_number(file: Path, line: str) -> None:
    """And never quoted: it may be a token."""
    write(file, f"# tokens\nwrite sha256:{OTHER} two\n{line}\n")
    message = error_message(FormatError, lambda: Tokens.read(file))
    place, said = message[: len(f"{file}:3: ")], message[len(f"{file}:3: ") :]
    assert place == f"{file}:3: "
    assert "must be " in said
    assert not any(secret in said for secret in (HASH[:20], OTHER[:20], "AAAA", "mw_"))


def test_invalid_utf8_is_reported_by_line(file: Path) -> None:
    write(file, f"read sha256:{HASH} one\n".encode() + b"\xff\xfe\n")
    assert error_message(FormatError, lambda: Tokens.read(file)).startswith(f"{file}:2: must be UTF-8")


@pytest.mark.parametrize(
    ("second", "what"), [(f"write sha256:{OTHER} one", "a name"), (f"write sha256:{HASH.upper()} two", "a token")]
)
def test_repeated_names_and_tokens_are_refused(file: Path, second: str, what: str) -> None:
    write(file, f"read sha256:{HASH} one\n\n{second}\n")
    message = error_message(FormatError, lambda: Tokens.read(file))
    assert message == f"{file}:3: {what} must occur once, got that of line 1 again"


@pytest.mark.parametrize("content", ["", "\n\n", "# nothing yet\n"])
def test_a_file_without_tokens_is_refused(file: Path, content: str) -> None:
    """With a remedy; a token can be added to it."""
    write(file, content)
    message = error_message(ConfigError, lambda: Tokens.read(file))
    assert message == f"{file} must have a token, got none; make one with: minwise token FILE --read --write"
    token = make_token(file, ["read"])
    assert Tokens.read(file).rights(token) == {"read"}


@pytest.mark.posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o664])
def test_a_file_writable_by_others_is_refused(file: Path, mode: int) -> None:
    """When it is read and when a token is added."""
    write(file, f"read sha256:{HASH} one\n").chmod(mode)
    for call in (lambda: Tokens.read(file), lambda: make_token(file, ["read"])):
        message = error_message(ConfigError, call)
        assert f"got mode {mode:04o}; use: chmod go-w {file}" in message
    assert file.read_text().count("\n") == 1


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o640, 0o644, 0o755])
def test_a_file_readable_by_others_is_accepted(file: Path, mode: int) -> None:
    """Hashes of 256 random bits reveal nothing."""
    write(file, f"read sha256:{HASH} one\n").chmod(mode)
    assert Tokens.read(file).rights("mw_one") == {"read"}


def test_a_huge_file_is_refused_early(file: Path) -> None:
    write(file, b"#" * (module.MAX_FILE_BYTES + 1))
    assert "must have at most 1,000,000 bytes" in error_message(ConfigError, lambda: Tokens.read(file))
    write(file, f"read sha256:{HASH} one\n".encode().ljust(module.MAX_FILE_BYTES, b"#"))
    assert Tokens.read(file).rights("mw_one") == {"read"}


@pytest.mark.posix
def test_an_endless_device_is_refused_early() -> None:
    message = error_message(ConfigError, lambda: Tokens.read("/dev/zero"))
    assert "/dev/zero" in message


def test_a_missing_file_is_a_system_error(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.txt", tmp_path):
        with pytest.raises(OSError, match=r"Is a directory|No such file") as caught:
            Tokens.read(path)
        assert caught.value.filename == str(path) or caught.value.filename == path


@pytest.mark.parametrize("token", ["mw_first", "mw_middle", "mw_last", "mw_none", ""])
def test_every_entry_is_compared_in_constant_time(file: Path, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them with hmac.compare_digest, whichever matches."""
    names = ("first", "middle", "last")
    write(file, "".join(f"read sha256:{sha256(f'mw_{name}'.encode()).hexdigest()} {name}\n" for name in names))
    read = Tokens.read(file)
    compared: list[tuple[bytes, bytes]] = []
    genuine = hmac.compare_digest

    def watch(left: bytes, right: bytes) -> bool:
        compared.append((left, right))
        return genuine(left, right)

    monkeypatch.setattr("minwise.server.tokens.hmac.compare_digest", watch)
    expected = {"read"} if token.removeprefix("mw_") in names else set()
    assert read.rights(token) == expected
    assert [left for left, _ in compared] == [sha256(f"mw_{name}".encode()).digest() for name in names]
    assert {right for _, right in compared} == {sha256(token.encode()).digest()}


def test_no_representation_or_error_contains_a_token(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        token = make_token(file, RIGHTS, "press")
        read = Tokens.read(file)
        read.rights(token)
        said = [error_message(ConfigError, lambda: make_token(file, ["read"], "press"))]
    entry = read._entries[0]
    shown = "".join([repr(read), str(read), repr(entry), str(entry), *said, caplog.text])
    digest = sha256(token.encode())
    assert "press" in shown
    assert all(secret not in shown for secret in (token, digest.hexdigest(), repr(digest.digest())))


def test_new_lines_are_appended(file: Path) -> None:
    states = [b""]
    for _ in range(3):
        make_token(file, ["read"])
        states.append(file.read_bytes())
    assert all(
        after.startswith(before) and after.count(b"\n") == before.count(b"\n") + 1 for before, after in pairwise(states)
    )
