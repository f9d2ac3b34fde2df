"""Small programs that change files in every way there is, for the tests of the shim and of the simulator."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from support.index_faults.children import Line
from support.index_faults.faults import Fault, Shim

__all__ = ["change_files", "use_sqlite", "write_with_fault"]


def change_files(line: Line) -> None:
    """Every call that changes a file or a name, from Python."""
    job = line.receive()
    folder = Path(job["folder"])
    Shim().watch(folder, Path(job["trace"]))
    os.chdir(folder)
    (folder / "a").write_bytes(b"0123456789")
    file = os.open("a", os.O_RDWR)
    again = os.dup(file)
    os.pwrite(again, b"AB", 4)
    os.lseek(file, 8, os.SEEK_SET)
    os.writev(again, [b"xy", b"z"])
    os.pwritev(file, [b"p", b"q"], 20)
    os.ftruncate(file, 30)
    os.posix_fallocate(file, 0, 40)
    os.fsync(file)
    os.close(again)
    os.close(file)
    with Path("a").open("ab") as appended:
        appended.write(b"end")
    Path("sub/deep").mkdir(parents=True)
    shutil.copyfile("a", "sub/copy")
    copy_range("a", "sub/range")
    Path("sub/copy").rename("sub/deep/renamed")
    os.link("a", "linked")
    os.truncate("linked", 5)
    Path("sub/range").write_bytes(b"new")
    use_folder_descriptors()
    (folder / ".." / folder.name / "round" / "about").parent.mkdir()
    shutil.rmtree("round")
    Path("b").touch()
    Path("b").unlink()
    line.send(True)


def copy_range(source: str, target: str) -> None:
    """Copies a file within the kernel."""
    with Path(source).open("rb") as reader, Path(target).open("wb") as writer:
        os.copy_file_range(reader.fileno(), writer.fileno(), 30, offset_dst=2)
        os.copy_file_range(reader.fileno(), writer.fileno(), 5)


def use_folder_descriptors() -> None:
    """Makes, renames and deletes relative to an open directory, and syncs it."""
    folder = os.open("sub", os.O_RDONLY)
    os.close(os.open("inside", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.rename("inside", "moved", src_dir_fd=folder, dst_dir_fd=folder)
    os.mkdir("other", dir_fd=folder)
    os.rmdir("other", dir_fd=folder)
    os.unlink("moved", dir_fd=folder)
    os.fsync(folder)
    os.close(folder)


def use_sqlite(line: Line) -> None:
    """A database as the index uses one: a write-ahead log, commits that are synced, a checkpoint."""
    job = line.receive()
    shim = Shim()
    shim.watch(Path(job["folder"]), Path(job["trace"]))
    connection = apsw.Connection(str(Path(job["folder"]) / "index.db"))
    connection.execute("PRAGMA journal_mode = wal")
    connection.execute("PRAGMA synchronous = full")
    connection.execute("CREATE TABLE documents (number INTEGER PRIMARY KEY, record BLOB)")
    for number in range(5):
        shim.mark(f"begin {number}")
        connection.execute("INSERT INTO documents VALUES (?, ?)", (number, bytes([number]) * 3000))
        shim.mark(f"end {number}")
    connection.execute("PRAGMA wal_checkpoint(RESTART)")
    connection.execute("DELETE FROM documents WHERE number = 0")
    shim.mark("end delete")
    if job["close"]:
        connection.close()
    line.send(True)
    os._exit(0)  # without closing what is left open


def write_with_fault(line: Line) -> None:
    """Writes, syncs, renames and deletes with one fault; answers with what each call came to."""
    job: dict[str, Any] = line.receive()
    folder = Path(job["folder"])
    shim = Shim()
    shim.watch(folder, Path(job["trace"]))
    shim.fail(Fault(**job["fault"]))
    results: list[int | str] = []

    def note(call: Callable[..., object], *arguments: object) -> None:
        try:
            result = call(*arguments)
            results.append(result if isinstance(result, int) else call.__name__)
        except OSError as error:
            results.append(f"{call.__name__} {error.errno}")

    file = os.open(folder / "a", os.O_CREAT | os.O_RDWR)
    for _ in range(3):
        note(os.write, file, b"0123456789")
    note(os.fsync, file)
    note(os.pread, file, 4, 0)
    note(os.rename, folder / "a", folder / "b")
    shim.release()
    note(os.write, file, b"0123456789")
    note(os.unlink, folder / "b")
    line.send(results)
