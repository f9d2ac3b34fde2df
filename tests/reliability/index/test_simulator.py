"""The simulator of power cuts: what was synced survives, and nothing else is certain."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from support.index_faults.children import quick_folder
from support.index_faults.faults import COMPILER, NO_COMPILER, ask
from support.index_faults.power_cut import SECTOR_BYTES, Disk, Survival, Tree, cuts, write_tree
from support.index_faults.programs import use_sqlite
from support.index_faults.trace import Kind, Operation, read_trace

STRICT = Survival()
EVERYTHING = Survival(writes=True, names=True)
NAMES_ONLY = Survival(names=True)
DRAWS = 200


def create(path: str) -> Operation:
    """A new file."""
    return Operation(Kind.CREATE, path)


def write(path: str, payload: bytes, at: int = 0) -> Operation:
    """Bytes into a file."""
    return Operation(Kind.WRITE, path, number=at, payload=payload)


def sync(path: str) -> Operation:
    """A sync of a file or directory."""
    return Operation(Kind.SYNC, path)


def rename(path: str, new: str) -> Operation:
    """Another name."""
    return Operation(Kind.RENAME, path, new)


def left(*operations: Operation, survival: Survival = STRICT, names_follow: bool = False) -> Tree:
    """What a cut leaves after these operations on an empty disk."""
    disk = Disk(names_follow=names_follow)
    for operation in operations:
        disk.apply(operation)
    return disk.after_cut(survival)


def all_draws(*operations: Operation) -> list[Tree]:
    """What a cut may leave, many times by chance."""
    return [left(*operations, survival=Survival(seed=str(seed))) for seed in range(DRAWS)]


def test_a_file_that_was_not_synced_is_lost() -> None:
    """With its name; if only its directory was synced, it is there and empty."""
    written = (create("a"), write("a", b"text"))
    assert left(*written) == left(*written, names_follow=True) == {}
    assert left(*written, sync(".")) == {"a": b""}
    assert left(*written, survival=NAMES_ONLY) == {"a": b""}
    assert left(*written, survival=EVERYTHING) == {"a": b"text"}


def test_a_file_survives_as_it_was_when_it_was_synced() -> None:
    """What came later is lost: bytes, and that it was cut."""
    synced = (create("a"), sync("."), write("a", b"first"), sync("a"))
    assert left(*synced) == {"a": b"first"}
    assert left(*synced, write("a", b"second", 3)) == {"a": b"first"}
    assert left(*synced, Operation(Kind.TRUNCATE, "a", number=2)) == {"a": b"first"}
    assert left(*synced, write("a", b"second", 3), sync("a")) == {"a": b"firsecond"}
    assert left(*synced, Operation(Kind.TRUNCATE, "a", number=2), sync("a")) == {"a": b"fi"}
    assert left(*synced, Operation(Kind.EXTEND, "a", number=7), sync("a")) == {"a": b"first\0\0"}
    assert left(*synced, Operation(Kind.EXTEND, "a", number=2), sync("a")) == {"a": b"first"}


def test_a_new_name_follows_its_file_only_where_file_systems_do_more_than_posix() -> None:
    """By the letter of POSIX the directory has to be synced too."""
    synced = (create("a"), write("a", b"text"), sync("a"))
    assert left(*synced) == {}
    assert left(*synced, sync(".")) == left(*synced, names_follow=True) == {"a": b"text"}
    assert left(create("a"), rename("a", "b"), sync("b"), names_follow=True) == {"a": b""}


def test_a_rename_is_durable_with_its_directory() -> None:
    """Before, the old name is back, whatever is done to the file; a file that was not synced is empty under the new."""
    files = (create("a"), write("a", b"old"), sync("a"), create("b"), write("b", b"new"), sync("b"), sync("."))
    disk = (*files, rename("b", "a"))
    assert left(*disk) == {"a": b"old", "b": b"new"}
    assert left(*disk, sync("a")) == {"a": b"old", "b": b"new"}
    assert left(*disk, sync(".")) == {"a": b"new"}
    assert left(create("a"), write("a", b"text"), rename("a", "b"), sync(".")) == {"b": b""}
    assert {str(one) for one in all_draws(*disk)} == {str({"a": b"old", "b": b"new"}), str({"a": b"new"})}


def test_a_deletion_is_durable_with_its_directory() -> None:
    """Before, the file may be back."""
    synced = (create("a"), write("a", b"text"), sync("a"), sync("."), Operation(Kind.UNLINK, "a"))
    assert left(*synced) == {"a": b"text"}
    assert left(*synced, survival=NAMES_ONLY) == {}
    assert left(*synced, sync(".")) == {}
    again = (*synced, create("a"), write("a", b"other"))
    assert left(*again) == left(*again, sync("a")) == {"a": b"text"}
    assert left(*again, sync("a"), sync(".")) == left(*again, sync("a"), names_follow=True) == {"a": b"other"}


def test_directories_are_names_in_others() -> None:
    """A file in a new directory needs both."""
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


def test_what_failed_did_nothing() -> None:
    """A write, a rename; what is not known is refused."""
    made = (create("a"), sync("."), write("a", b"text"), sync("a"))
    assert left(*made, Operation(Kind.WRITE, "a", error=28), sync("a")) == {"a": b"text"}
    assert left(*made, Operation(Kind.RENAME, "a", "b", error=5), sync(".")) == {"a": b"text"}
    with pytest.raises(NotImplementedError, match="unknown"):
        left(create("a"), Operation(Kind.UNKNOWN, "a"))


def test_after_a_sync_that_failed_the_next_one_lies() -> None:
    """What it was to make durable is lost, although a process still reads it; what is written anew is not."""
    failed = (create("a"), sync("."), write("a", b"text"), Operation(Kind.SYNC, "a", error=5))
    assert left(*failed, survival=EVERYTHING) == {"a": b"text"}
    assert left(*failed) == left(*failed, sync("a")) == {"a": b""}
    assert left(*failed, write("a", b"X", 3), sync("a")) == {"a": b"\0\0\0X"}
    assert left(*failed, write("a", b"text"), sync("a")) == {"a": b"text"}


def test_chance_tears_writes_at_sectors() -> None:
    """Every mixture of old and new sectors comes, the same one for the same seed, and none within a sector."""
    old, new = b"o" * 2 * SECTOR_BYTES, b"n" * 2 * SECTOR_BYTES
    operations = (create("a"), write("a", old), sync("a"), sync("."), write("a", new))
    trees = all_draws(*operations)
    halves = (old[:SECTOR_BYTES], new[:SECTOR_BYTES])
    assert {str(one) for one in trees} == {str({"a": first + second}) for first in halves for second in halves}
    assert trees == all_draws(*operations)


def test_chance_leaves_zeros_where_a_file_only_grew() -> None:
    """The end of the file may be there and its bytes not."""
    trees = all_draws(create("a"), sync("."), write("a", b"n" * 2 * SECTOR_BYTES))
    assert {"a": b"n" * SECTOR_BYTES + bytes(SECTOR_BYTES)} in trees
    assert {"a": b""} in trees


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty directory that can be watched."""
    with quick_folder() as place:
        (place / "watched").mkdir()
        yield place / "watched"


@pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)
@pytest.mark.parametrize("names_follow", [True, False])
def test_sqlite_loses_nothing_that_it_committed(folder: Path, names_follow: bool) -> None:
    """A cut at every operation leaves exactly what was committed, or that and the transaction that was under way."""
    ask(use_sqlite, {"folder": str(folder), "trace": str(folder.parent / "trace"), "close": True})
    operations = read_trace(folder.parent / "trace", folder)
    disk = Disk(names_follow=names_follow)
    for number in cuts(disk, operations):
        marks = [one.path for one in operations[:number] if one.kind == Kind.MARK]
        for survival in (STRICT, EVERYTHING, Survival(seed=str(number))):
            found = rows(folder.parent / "cut", disk.after_cut(survival))
            if "end delete" in marks:
                assert found == [1, 2, 3, 4], (number, survival)
            else:
                done = sum(mark.startswith("end") for mark in marks)
                assert len(found) - done in ((0, 1) if done < 5 else (0, -1)), (number, survival)


@pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)
def test_a_database_that_syncs_nothing_loses_what_it_committed(folder: Path) -> None:
    """The same check notices it if the syncs of the log are left out."""
    ask(use_sqlite, {"folder": str(folder), "trace": str(folder.parent / "trace"), "close": False})
    disk = Disk()
    for operation in read_trace(folder.parent / "trace", folder):
        if (operation.kind, operation.path) != (Kind.SYNC, "index.db-wal"):
            disk.apply(operation)
        if operation.path == "end 4":
            break
    assert rows(folder.parent / "cut", disk.after_cut(STRICT)) == []


def rows(place: Path, tree: Tree) -> list[int]:
    """The rows of a database that a cut left; none if it has no table yet."""
    write_tree(tree, place)
    connection = apsw.Connection(str(place / "index.db"))
    try:
        return [number for (number,) in connection.execute("SELECT number FROM documents ORDER BY number")]
    except apsw.SQLError:
        return []
    finally:
        connection.close()
        shutil.rmtree(place)
