"""The shim sees every change, and lets fail what it is told to."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.index_faults.children import quick_folder
from support.index_faults.faults import COMPILER, NO_COMPILER, Manner, ask
from support.index_faults.power_cut import Disk, Survival, Tree, read_tree
from support.index_faults.programs import change_files, use_sqlite, write_with_fault
from support.index_faults.trace import Kind, Operation, read_trace

pytestmark = pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty directory that can be watched."""
    with quick_folder() as place:
        (place / "watched").mkdir()
        yield place / "watched"


def replay(operations: list[Operation]) -> Tree:
    """What a directory that was empty holds when everything survives."""
    disk = Disk()
    for operation in operations:
        disk.apply(operation)
    return disk.after_cut(Survival(writes=True, names=True))


def traced(folder: Path) -> list[Operation]:
    """What happened in the watched directory."""
    return read_trace(folder.parent / "trace", folder)


def test_a_replay_gives_the_directory_itself(folder: Path) -> None:
    """No call that changes a file goes by unseen: copies within the kernel, appends, duplicated descriptors."""
    ask(change_files, {"folder": str(folder), "trace": str(folder.parent / "trace")})
    operations = traced(folder)
    assert replay(operations) == read_tree(folder)
    assert {one.kind for one in operations} == set(Kind) - {Kind.MARK, Kind.READ, Kind.UNKNOWN}
    assert not any(one.error or one.injected for one in operations)


@pytest.mark.parametrize("close", [True, False], ids=["closed", "left open"])
def test_sqlite_is_seen(folder: Path, close: bool) -> None:
    """Its writes and syncs of the log and of the database; the index of the log is mapped and is not needed again."""
    ask(use_sqlite, {"folder": str(folder), "trace": str(folder.parent / "trace"), "close": close})
    operations = traced(folder)
    seen = {(one.kind, one.path) for one in operations}
    assert {(kind, path) for kind in (Kind.WRITE, Kind.SYNC) for path in ("index.db", "index.db-wal")} <= seen
    expected, found = replay(operations), read_tree(folder)
    for tree in (expected, found):
        tree.pop("index.db-shm", None)
    assert expected == found
    assert found.keys() == ({"index.db"} if close else {"index.db", "index.db-wal"})
    syncs = [one.path for one in operations[: [one.path for one in operations].index("end 4")] if one.kind == Kind.SYNC]
    assert syncs.count("index.db-wal") >= 5, "a commit is synced"


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ({"kinds": [Kind.WRITE], "nth": 2, "error": errno.ENOSPC},
         [10, "write 28", 10, "fsync", "pread", "rename", 10, "unlink"]),
        ({"kinds": [Kind.WRITE], "nth": 1, "error": errno.EIO, "manner": Manner.SHORT},
         [5, 10, 10, "fsync", "pread", "rename", 10, "unlink"]),
        ({"kinds": [Kind.WRITE], "nth": 1, "error": errno.ENOSPC, "manner": Manner.SHORT_THEN_ONCE},
         [5, "write 28", 10, "fsync", "pread", "rename", 10, "unlink"]),
        ({"kinds": [Kind.WRITE, Kind.RENAME], "nth": 3, "error": errno.ENOSPC, "manner": Manner.ONWARD},
         [10, 10, "write 28", "fsync", "pread", "rename 28", 10, "unlink 2"]),
        ({"kinds": [Kind.SYNC], "nth": 1, "error": errno.EIO},
         [10, 10, 10, "fsync 5", "pread", "rename", 10, "unlink"]),
        ({"kinds": [Kind.RENAME], "nth": 1, "error": errno.EIO},
         [10, 10, 10, "fsync", "pread", "rename 5", 10, "unlink 2"]),
        ({"kinds": [Kind.READ], "nth": 1, "error": errno.EIO},
         [10, 10, 10, "fsync", "pread 5", "rename", 10, "unlink"]),
    ],
    ids=["write", "short", "short then write", "full disk", "sync", "rename", "read"],
)  # fmt: skip
def test_what_is_told_to_fail_fails(folder: Path, fault: dict[str, object], expected: list[object]) -> None:
    """Nothing else does, the trace says it, and a replay without the failed calls gives the directory itself."""
    job = {"folder": str(folder), "trace": str(folder.parent / "trace"), "fault": {"manner": Manner.ONCE, **fault}}
    assert ask(write_with_fault, job) == expected
    operations = traced(folder)
    failed = sum(isinstance(one, str) and one[-1].isdigit() for one in expected[:6])
    assert sum(one.injected for one in operations if one.error) == failed
    assert replay(operations) == read_tree(folder)
