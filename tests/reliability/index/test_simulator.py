"""Power-cut simulator: synced data survives, and nothing else is certain."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from support.index_faults.children import fast_folder
from support.index_faults.file_programs import use_sqlite
from support.index_faults.power_cut import SECTOR_BYTES, Disk, Survival, Tree, cuts, write_tree
from support.index_faults.shim import COMPILER, NO_COMPILER, ask
from support.index_faults.trace import Kind, Operation, read_trace

STRICT = Survival()
EVERYTHING = Survival(writes=True, names=True)
NAMES_ONLY = Survival(names=True)
DRAWS = 200


def create(path: str) -> Operation:
    """Return the creation of a file."""
    return Operation(Kind.CREATE, path)


def write(path: str, payload: bytes, offset: int = 0) -> Operation:
    """Return a write to a file."""
    return Operation(Kind.WRITE, path, number=offset, payload=payload)


def sync(path: str) -> Operation:
    """Return a sync of a file or directory."""
    return Operation(Kind.SYNC, path)


def rename(path: str, new: str) -> Operation:
    """Return a rename."""
    return Operation(Kind.RENAME, path, new)


def left(*operations: Operation, survival: Survival = STRICT, names_follow: bool = False) -> Tree:
    """Return what a cut leaves after these operations on an empty disk."""
    disk = Disk(names_follow=names_follow)
    for operation in operations:
        disk.apply(operation)
    return disk.after_cut(survival)


def all_draws(*operations: Operation) -> list[Tree]:
    """Return what a cut may leave, for many seeds."""
    return [left(*operations, survival=Survival(seed=str(seed))) for seed in range(DRAWS)]


def test_unsynced_file_is_lost() -> None:
    """Its name is lost too; if only its directory was synced, the file exists and is empty."""
    written = (create("a"), write("a", b"text"))
    assert left(*written) == left(*written, names_follow=True) == {}
    assert left(*written, sync(".")) == {"a": b""}
    assert left(*written, survival=NAMES_ONLY) == {"a": b""}
    assert left(*written, survival=EVERYTHING) == {"a": b"text"}


def test_file_survives_with_its_content_at_the_last_sync() -> None:
    """Later writes and truncations are lost."""
    synced = (create("a"), sync("."), write("a", b"first"), sync("a"))
    assert left(*synced) == {"a": b"first"}
    assert left(*synced, write("a", b"second", 3)) == {"a": b"first"}
    assert left(*synced, Operation(Kind.TRUNCATE, "a", number=2)) == {"a": b"first"}
    assert left(*synced, write("a", b"second", 3), sync("a")) == {"a": b"firsecond"}
    assert left(*synced, Operation(Kind.TRUNCATE, "a", number=2), sync("a")) == {"a": b"fi"}
    assert left(*synced, Operation(Kind.EXTEND, "a", number=7), sync("a")) == {"a": b"first\0\0"}
    assert left(*synced, Operation(Kind.EXTEND, "a", number=2), sync("a")) == {"a": b"first"}


def test_new_name_is_durable_with_its_file_only_beyond_posix() -> None:
    """POSIX requires a sync of the directory too."""
    synced = (create("a"), write("a", b"text"), sync("a"))
    assert left(*synced) == {}
    assert left(*synced, sync(".")) == left(*synced, names_follow=True) == {"a": b"text"}
    assert left(create("a"), rename("a", "b"), sync("b"), names_follow=True) == {"a": b""}


def test_rename_is_durable_with_its_directory() -> None:
    """Before that the old name returns; an unsynced file is empty under the new name."""
    files = (create("a"), write("a", b"old"), sync("a"), create("b"), write("b", b"new"), sync("b"), sync("."))
    disk = (*files, rename("b", "a"))
    assert left(*disk) == {"a": b"old", "b": b"new"}
    assert left(*disk, sync("a")) == {"a": b"old", "b": b"new"}
    assert left(*disk, sync(".")) == {"a": b"new"}
    assert left(create("a"), write("a", b"text"), rename("a", "b"), sync(".")) == {"b": b""}
    assert {str(tree) for tree in all_draws(*disk)} == {str({"a": b"old", "b": b"new"}), str({"a": b"new"})}


def test_deletion_is_durable_with_its_directory() -> None:
    """Before that the file may return."""
    synced = (create("a"), write("a", b"text"), sync("a"), sync("."), Operation(Kind.UNLINK, "a"))
    assert left(*synced) == {"a": b"text"}
    assert left(*synced, survival=NAMES_ONLY) == {}
    assert left(*synced, sync(".")) == {}
    again = (*synced, create("a"), write("a", b"other"))
    assert left(*again) == left(*again, sync("a")) == {"a": b"text"}
    assert left(*again, sync("a"), sync(".")) == left(*again, sync("a"), names_follow=True) == {"a": b"other"}


def test_new_directory_is_durable_with_its_parent() -> None:
    """A file in a new directory needs syncs of both directories."""
    made = (Operation(Kind.MKDIR, "d"), create("d/a"), write("d/a", b"text"), sync("d/a"))
    assert left(*made) == left(*made, sync("d")) == {}
    assert left(*made, sync(".")) == {"d": {}}
    assert left(*made, sync("."), sync("d")) == {"d": {"a": b"text"}}
    assert left(*made, sync("d"), names_follow=True) == {"d": {"a": b"text"}}
    moved = (*made, sync("d"), create("b"), sync("b"), sync("."), rename("b", "d/b"))
    assert left(*moved) == {"d": {"a": b"text"}, "b": b""}
    assert left(*moved, sync("d")) == {"d": {"a": b"text", "b": b""}, "b": b""}
    assert left(*moved, sync("d"), sync(".")) == {"d": {"a": b"text", "b": b""}}
    assert left(*moved, rename("d", "e"), sync(".")) == {"e": {"a": b"text"}}


def test_failed_operations_have_no_effect() -> None:
    """Unknown operations are refused."""
    made = (create("a"), sync("."), write("a", b"text"), sync("a"))
    assert left(*made, Operation(Kind.WRITE, "a", error=28), sync("a")) == {"a": b"text"}
    assert left(*made, Operation(Kind.RENAME, "a", "b", error=5), sync(".")) == {"a": b"text"}
    with pytest.raises(NotImplementedError, match="unknown"):
        left(create("a"), Operation(Kind.UNKNOWN, "a"))


def test_writes_before_a_failed_sync_are_lost() -> None:
    """The writes before the failed sync are lost, although a process still reads them; later ones are not."""
    failed = (create("a"), sync("."), write("a", b"text"), Operation(Kind.SYNC, "a", error=5))
    assert left(*failed, survival=EVERYTHING) == {"a": b"text"}
    assert left(*failed) == left(*failed, sync("a")) == {"a": b""}
    assert left(*failed, write("a", b"X", 3), sync("a")) == {"a": b"\0\0\0X"}
    assert left(*failed, write("a", b"text"), sync("a")) == {"a": b"text"}


def test_random_outcomes_tear_writes_at_sectors() -> None:
    """Every mixture of old and new sectors occurs, equal for equal seeds, and no sector is mixed."""
    old, new = b"o" * 2 * SECTOR_BYTES, b"n" * 2 * SECTOR_BYTES
    operations = (create("a"), write("a", old), sync("a"), sync("."), write("a", new))
    trees = all_draws(*operations)
    halves = (old[:SECTOR_BYTES], new[:SECTOR_BYTES])
    assert {str(tree) for tree in trees} == {str({"a": first + second}) for first in halves for second in halves}
    assert trees == all_draws(*operations)


def test_random_outcomes_leave_zeros_in_an_extended_file() -> None:
    trees = all_draws(create("a"), sync("."), write("a", b"n" * 2 * SECTOR_BYTES))
    assert {"a": b"n" * SECTOR_BYTES + bytes(SECTOR_BYTES)} in trees
    assert {"a": b""} in trees


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield an empty directory that can be watched."""
    with fast_folder() as parent:
        (parent / "watched").mkdir()
        yield parent / "watched"


@pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)
@pytest.mark.parametrize("names_follow", [True, False])
def test_sqlite_keeps_committed_rows(folder: Path, names_follow: bool) -> None:
    """A cut at every operation leaves exactly the committed rows, or also those of the running transaction."""
    ask(use_sqlite, {"folder": str(folder), "trace": str(folder.parent / "trace"), "close": True})
    operations = read_trace(folder.parent / "trace", folder)
    disk = Disk(names_follow=names_follow)
    for number in cuts(disk, operations):
        marks = [call.path for call in operations[:number] if call.kind == Kind.MARK]
        for survival in (STRICT, EVERYTHING, Survival(seed=str(number))):
            found = rows(folder.parent / "cut", disk.after_cut(survival))
            if "end delete" in marks:
                assert found == [1, 2, 3, 4], (number, survival)
            else:
                done = sum(mark.startswith("end") for mark in marks)
                assert len(found) - done in ((0, 1) if done < 5 else (0, -1)), (number, survival)


@pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)
def test_database_without_syncs_loses_committed_rows(folder: Path) -> None:
    """The check detects missing syncs of the log."""
    ask(use_sqlite, {"folder": str(folder), "trace": str(folder.parent / "trace"), "close": False})
    disk = Disk()
    for operation in read_trace(folder.parent / "trace", folder):
        if (operation.kind, operation.path) != (Kind.SYNC, "index.db-wal"):
            disk.apply(operation)
        if operation.path == "end 4":
            break
    assert rows(folder.parent / "cut", disk.after_cut(STRICT)) == []


def rows(folder: Path, tree: Tree) -> list[int]:
    """Return the rows of a database that a cut left; none if it has no table yet."""
    write_tree(tree, folder)
    connection = apsw.Connection(str(folder / "index.db"))
    try:
        return [number for (number,) in connection.execute("SELECT number FROM documents ORDER BY number")]
    except apsw.SQLError:
        return []
    finally:
        connection.close()
        shutil.rmtree(folder)
