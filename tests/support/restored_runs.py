"""Runs of `minwise dedup` and `minwise restore` for the tests of restoring."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from support.commands import OK, hidden, run

__all__ = ["contents", "dedup", "removed", "restore"]


def dedup(folder: Path, *arguments: str) -> None:
    """Run `minwise dedup` to `out`; assert that it succeeds."""
    done = run(folder, "dedup", *arguments, "-o", "out", "--quiet")
    assert (done.status, done.out, done.err) == (OK, "", "")


def restore(folder: Path, *arguments: str, ids: list[str] | None = None) -> str:
    """Run `minwise restore` to `back`; assert that it succeeds and leaves no other files; return its output."""
    if ids is not None:
        (folder / "ids.txt").write_text("".join(f"{identity}\n" for identity in ids), encoding="utf-8")
        arguments = ("--ids", "ids.txt", *arguments)
    done = run(folder, "restore", "out", *arguments, "-o", "back", "--overwrite")
    assert (done.status, done.err) == (OK, "")
    assert hidden(folder) == []
    return done.out


def removed(folder: Path, output: str = "back") -> list[Any]:
    """Return the ids of the removed documents."""
    return list(pq.read_table(folder / output / "removed.parquet").column("id").to_pylist())


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file below a folder, by its path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
