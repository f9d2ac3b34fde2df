"""The shim traces every change, and fails the chosen calls."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.index_faults.children import fast_folder
from support.index_faults.file_programs import change_files, use_sqlite, write_with_fault
from support.index_faults.power_cut import Disk, Survival, Tree, read_tree
from support.index_faults.shim import COMPILER, NO_COMPILER, Manner, ask
from support.index_faults.trace import Kind, Operation, read_trace

pytestmark = pytest.mark.skipif(COMPILER is None, reason=NO_COMPILER)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield an empty directory that can be watched."""
    with fast_folder() as parent:
        (parent / "watched").mkdir()
        yield parent / "watched"


def replay(operations: list[Operation]) -> Tree:
    """Return the content of an empty directory after all operations, if everything survives."""
    disk = Disk()
    for operation in operations:
        disk.apply(operation)
    return disk.after_cut(Survival(writes=True, names=True))


def traced(folder: Path) -> list[Operation]:
    """Return the operations in the watched directory."""
    return read_trace(folder.parent / "trace", folder)


def test_replay_of_the_trace_equals_the_directory(folder: Path) -> None:
    """Every call that changes a file is traced: copies within the kernel, appends, duplicated descriptors."""
    ask(change_files, {"folder": str(folder), "trace": str(folder.parent / "trace")})
    operations = traced(folder)
    assert replay(operations) == read_tree(folder)
    assert {call.kind for call in operations} == set(Kind) - {Kind.MARK, Kind.READ, Kind.UNKNOWN}
    assert not any(call.error or call.injected for call in operations)


@pytest.mark.parametrize("close", [True, False], ids=["closed", "left open"])
def test_sqlite_calls_are_traced(folder: Path, close: bool) -> None:
    """Writes and syncs of log and database are traced; the shared memory of the log is mapped, and not needed again."""
    ask(use_sqlite, {"folder": str(folder), "trace": str(folder.parent / "trace"), "close": close})
    operations = traced(folder)
    seen = {(call.kind, call.path) for call in operations}
    assert {(kind, path) for kind in (Kind.WRITE, Kind.SYNC) for path in ("index.db", "index.db-wal")} <= seen
    expected, found = replay(operations), read_tree(folder)
    for tree in (expected, found):
        tree.pop("index.db-shm", None)
    assert expected == found
    assert found.keys() == ({"index.db"} if close else {"index.db", "index.db-wal"})
    commits = operations[: [call.path for call in operations].index("end 4")]
    syncs = [call.path for call in commits if call.kind == Kind.SYNC]
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
def test_only_the_chosen_call_fails(folder: Path, fault: dict[str, object], expected: list[object]) -> None:
    """No other call fails, the trace shows it, and a replay without the failed calls gives the directory."""
    job = {"folder": str(folder), "trace": str(folder.parent / "trace"), "fault": {"manner": Manner.ONCE, **fault}}
    assert ask(write_with_fault, job) == expected
    operations = traced(folder)
    failed = sum(isinstance(result, str) and result[-1].isdigit() for result in expected[:6])
    assert sum(call.injected for call in operations if call.error) == failed
    assert replay(operations) == read_tree(folder)
