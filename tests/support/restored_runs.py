"""Runs that are then restored, for the tests of it."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from support.commands import OK, hidden, run

__all__ = ["contents", "dedup", "removed", "restore"]


def dedup(folder: Path, *arguments: str) -> None:
    """A run that went well, to `out`."""
    done = run(folder, "dedup", *arguments, "-o", "out", "--quiet")
    assert (done.status, done.out, done.err) == (OK, "", "")


def restore(folder: Path, *arguments: str, ids: list[str] | None = None) -> str:
    """What a restoration that went well prints; it leaves nothing beside its directory."""
    if ids is not None:
        (folder / "ids.txt").write_text("".join(f"{one}\n" for one in ids), encoding="utf-8")
        arguments = ("--ids", "ids.txt", *arguments)
    done = run(folder, "restore", "out", *arguments, "-o", "back", "--overwrite")
    assert (done.status, done.err) == (OK, "")
    assert hidden(folder) == []
    return done.out


def removed(folder: Path, output: str = "back") -> list[Any]:
    """The ids of what stays removed."""
    return list(pq.read_table(folder / output / "removed.parquet").column("id").to_pylist())


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of every file below a folder, by its path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
