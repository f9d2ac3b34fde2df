"""`minwise token`: prints a token once, and stores its hash in a file."""

import re
import stat
from hashlib import sha256
from pathlib import Path

import pytest
from support.commands import FAILURE, INPUT_OUTPUT, OK, USAGE, Job, one_line, run

from minwise.server.tokens import Tokens

TOKEN = re.compile(r"mw_[A-Za-z0-9_-]{43}\n")


@pytest.mark.parametrize(
    ("options", "rights"),
    [(["--read"], {"read"}), (["--write"], {"write"}), (["--write", "--read"], {"read", "write"})],
)
def test_token_has_the_given_rights(tmp_path: Path, options: list[str], rights: set[str]) -> None:
    """Standard output has only the token, for scripts; standard error describes it."""
    done = run(tmp_path, "token", "tokens.txt", *options, "--name", "press")
    assert done.status == OK
    assert TOKEN.fullmatch(done.out)
    may = " and ".join(sorted(rights))
    assert done.err == f"minwise: may {may}; shown only once; tokens.txt has its hash\n"
    assert Tokens.read(tmp_path / "tokens.txt").rights(done.out.strip()) == rights
    assert stat.S_IMODE((tmp_path / "tokens.txt").stat().st_mode) == 0o600


def test_file_has_only_the_hash(tmp_path: Path) -> None:
    """Default names are numbered."""
    drawn = [run(tmp_path, "token", "tokens.txt", "--read", "--quiet") for _ in range(2)]
    assert [done.err for done in drawn] == ["", ""]
    hashes = [sha256(done.out.strip().encode()).hexdigest() for done in drawn]
    expected = [f"read sha256:{digest} token-{number}" for number, digest in enumerate(hashes, 1)]
    assert (tmp_path / "tokens.txt").read_text().splitlines() == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tokens.txt"], "token needs --read, --write or both, got neither"),
        (["tokens.txt", "--read", "--name", "two words"], "name must be 1 to 64 letters"),
        (["", "--read"], "token file must be a path"),
    ],
)
def test_wrong_arguments_are_a_usage_error(tmp_path: Path, arguments: list[str], message: str) -> None:
    """One line, no token, and no file."""
    assert message in one_line(run(tmp_path, "token", *arguments), USAGE)
    assert list(tmp_path.iterdir()) == []


def test_name_must_be_unique(tmp_path: Path) -> None:
    """The old token is unchanged."""
    run(tmp_path, "token", "tokens.txt", "--read", "--name", "press")
    before = (tmp_path / "tokens.txt").read_bytes()
    line = one_line(run(tmp_path, "token", "tokens.txt", "--write", "--name", "press"), USAGE)
    assert "name must be unique in tokens.txt, got 'press'" in line
    assert (tmp_path / "tokens.txt").read_bytes() == before


def test_file_that_is_no_token_file_is_rejected(tmp_path: Path) -> None:
    """The error has the number of the wrong line, and not its content."""
    (tmp_path / "notes.txt").write_text("# notes\nthe password is hunter2\n")
    line = one_line(run(tmp_path, "token", "notes.txt", "--read"), FAILURE)
    assert "notes.txt:2: must be RIGHTS sha256:HASH NAME" in line
    assert "hunter2" not in line
    assert (tmp_path / "notes.txt").read_text() == "# notes\nthe password is hunter2\n"


def test_file_writable_by_others_is_rejected_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "tokens.txt").touch()
    (tmp_path / "tokens.txt").chmod(0o666)
    line = one_line(run(tmp_path, "token", "tokens.txt", "--read"), USAGE)
    assert "got mode 0666; use: chmod go-w tokens.txt" in line
    assert (tmp_path / "tokens.txt").read_bytes() == b""


def test_path_that_cannot_be_written_is_named_with_the_reason(tmp_path: Path) -> None:
    for name, reason in (("missing/tokens.txt", "No such file or directory"), (".", "Is a directory")):
        assert f"{name}: {reason}" in one_line(run(tmp_path, "token", name, "--read"), INPUT_OUTPUT)


def test_failed_write_prints_no_token_and_leaves_no_partial_line(tmp_path: Path) -> None:
    run(tmp_path, "token", "tokens.txt", "--read")
    before = (tmp_path / "tokens.txt").read_bytes()
    done = run(tmp_path, "token", "tokens.txt", "--read", job=Job(file_bytes=len(before) + 10))
    assert "tokens.txt: File too large" in one_line(done, INPUT_OUTPUT)
    assert (tmp_path / "tokens.txt").read_bytes() == before


def test_help_has_an_example(tmp_path: Path) -> None:
    done = run(tmp_path, "token", "--help")
    assert done.status == OK
    assert "  minwise token tokens.txt --read --name reader\n" in done.out
