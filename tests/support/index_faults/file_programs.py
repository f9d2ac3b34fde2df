"""Small programs that change files in every way, for the tests of the shim and of the power-cut simulator."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from support.index_faults.children import Channel
from support.index_faults.shim import Fault, Shim

__all__ = ["change_files", "use_sqlite", "write_with_fault"]


def change_files(channel: Channel) -> None:
    """Make every call that changes a file or a name."""
    job = channel.receive()
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
    channel.send(True)


def copy_range(source: str, target: str) -> None:
    """Copy a file within the kernel."""
    with Path(source).open("rb") as reader, Path(target).open("wb") as writer:
        os.copy_file_range(reader.fileno(), writer.fileno(), 30, offset_dst=2)
        os.copy_file_range(reader.fileno(), writer.fileno(), 5)


def use_folder_descriptors() -> None:
    """Create, rename and delete relative to an open directory, and sync it."""
    folder = os.open("sub", os.O_RDONLY)
    os.close(os.open("inside", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.rename("inside", "moved", src_dir_fd=folder, dst_dir_fd=folder)
    os.mkdir("other", dir_fd=folder)
    os.rmdir("other", dir_fd=folder)
    os.unlink("moved", dir_fd=folder)
    os.fsync(folder)
    os.close(folder)


def use_sqlite(channel: Channel) -> None:
    """Use a database like the index: a write-ahead log, synced commits, a checkpoint."""
    job = channel.receive()
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
    channel.send(True)
    os._exit(0)  # leave open files open


def write_with_fault(channel: Channel) -> None:
    """Write, sync, rename and delete with one fault; send the result of each call."""
    job: dict[str, Any] = channel.receive()
    folder = Path(job["folder"])
    shim = Shim()
    shim.watch(folder, Path(job["trace"]))
    shim.fail(Fault(**job["fault"]))
    results: list[int | str] = []

    def record(call: Callable[..., object], *arguments: object) -> None:
        try:
            result = call(*arguments)
            results.append(result if isinstance(result, int) else call.__name__)
        except OSError as error:
            results.append(f"{call.__name__} {error.errno}")

    file = os.open(folder / "a", os.O_CREAT | os.O_RDWR)
    for _ in range(3):
        record(os.write, file, b"0123456789")
    record(os.fsync, file)
    record(os.pread, file, 4, 0)
    record(os.rename, folder / "a", folder / "b")
    shim.release()
    record(os.write, file, b"0123456789")
    record(os.unlink, folder / "b")
    channel.send(results)
