"""A full disk: every operation reports it, nothing is lost, and the same index works again once there is space."""

import errno
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from support.index_faults.checks import differences
from support.index_faults.workload import SETTINGS, Document, Model, Operation
from support.small_disk import Disk, mounted

import minwise as mw
from minwise.index import OpenMode

TEXT_WORDS = 60
MAINTENANCE: dict[str, Callable[[mw.Index, Path], object]] = {
    "flush": lambda index, folder: index.flush(),
    "compact": lambda index, folder: index.compact(),
    "backup": lambda index, folder: index.backup(folder / "backup.mw"),
    "export": lambda index, folder: index.export(folder / "signatures.parquet"),
    "remove": lambda index, folder: index.remove(["d0"]),
}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """Mount a disk of 512 kB."""
    with mounted(tmp_path / "disk", "512k") as disk:
        yield disk


def add(index: mw.Index, model: Model, number: int, words: int = TEXT_WORDS) -> None:
    """Add a document to an index and, if that succeeds, to the model."""
    document = Document(
        f"d{number}", " ".join(f"w{number}x{position}" for position in range(words)), {"number": number}
    )
    index.add([document.id], [document.text], [document.metadata])
    model.apply(Operation(kind="add", ids=[document.id], texts=[document.text], metadata=[document.metadata]))


def fill(index: mw.Index, model: Model) -> None:
    """Add documents until there is no space for a small one."""
    for words in (2000, TEXT_WORDS, 5):
        with pytest.raises(OSError, match="No space left on device") as caught:
            add_without_end(index, model, words)
        assert caught.value.errno == errno.ENOSPC
        assert str(index.path) in str(caught.value)


def add_without_end(index: mw.Index, model: Model, words: int) -> None:
    """Add documents of a given length without end."""
    for number in count(len(model.documents)):
        add(index, model, number, words)


def assert_equal(index: mw.Index, model: Model) -> None:
    """Check that the index holds what the model does, undamaged."""
    assert differences(index, model, [*model.documents, f"d{len(model.documents)}", *model.removed]) == []
    assert index.verify() == []


@pytest.mark.parametrize("operation", MAINTENANCE)
def test_operation_on_a_full_disk(disk: Disk, operation: str) -> None:
    """Additions fail with one clear error, maintenance too or it needs no space; with space all of it succeeds."""
    model = Model()
    with mw.Index.create(disk.folder / "index.mw", **SETTINGS) as index:
        fill(index, model)
        assert len(model.documents) >= 5
        assert_equal(index, model)
        before = sorted(path.name for path in disk.folder.iterdir())
        try:
            MAINTENANCE[operation](index, disk.folder)
        except OSError as error:
            full = error.errno
            assert sorted(path.name for path in disk.folder.iterdir()) == before
        else:
            full = errno.ENOSPC
            model = after(operation, model)
        assert full == errno.ENOSPC
        assert_equal(index, model)
        disk.resize("64m")
        add(index, model, len(model.documents) + 100)
        if before == sorted(path.name for path in disk.folder.iterdir()):
            MAINTENANCE[operation](index, disk.folder)
            model = after(operation, model)
        assert_equal(index, model)
    with mw.Index.open(disk.folder / "index.mw", "w") as index:
        assert_equal(index, model)


def after(operation: str, model: Model) -> Model:
    """Return the expected content after a maintenance operation."""
    expected = model.copy()
    if operation == "remove":
        expected.apply(Operation(kind="remove", ids=["d0"]))
    return expected


def test_failed_create_leaves_nothing(disk: Disk) -> None:
    disk.resize("16k")
    with pytest.raises(OSError, match="No space left on device"):
        mw.Index.create(disk.folder / "index.mw", **SETTINGS)
    assert list(disk.folder.iterdir()) == []
    disk.resize("64m")
    with mw.Index.create(disk.folder / "index.mw", **SETTINGS) as index:
        add(index, Model(), 0)


def read_all(path: Path, mode: OpenMode, model: Model) -> str:
    """Open an index and check all of it; return the error, or an empty string."""
    try:
        with mw.Index.open(path, mode) as index:
            assert_equal(index, model)
    except OSError as error:
        return str(error)
    return ""


def test_index_is_opened_on_a_full_disk(disk: Disk) -> None:
    """Opening for reading and for writing succeeds, or reports that there is no space."""
    model = Model()
    path = disk.folder / "index.mw"
    with mw.Index.create(path, **SETTINGS) as index:
        for number in range(5):
            add(index, model, number)
    with pytest.raises(OSError, match="No space"):
        (disk.folder / "ballast").write_bytes(bytes(10**6))
    for mode in ("r", "w"):
        error = read_all(path, mode, model)
        assert error == "" or (str(path) in error and "No space left on device" in error)
    (disk.folder / "ballast").unlink()
    with mw.Index.open(path, "w") as index:
        assert_equal(index, model)
        add(index, model, 5)
        assert_equal(index, model)
