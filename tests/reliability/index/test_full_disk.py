"""A disk that is really full: whatever is tried says so, nothing is lost, and with room the same index goes on."""

import errno
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from support.index_faults.checks import deviations
from support.index_faults.workload import SETTINGS, Document, Model, Operation
from support.small_disk import Disk, mounted

import minwise as mw

TEXT_WORDS = 60
UPKEEP: dict[str, Callable[[mw.Index, Path], object]] = {
    "flush": lambda index, folder: index.flush(),
    "compact": lambda index, folder: index.compact(),
    "backup": lambda index, folder: index.backup(folder / "backup.mw"),
    "export": lambda index, folder: index.export(folder / "signatures.parquet"),
    "remove": lambda index, folder: index.remove(["d0"]),
}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk of 512 kB."""
    with mounted(tmp_path / "disk", "512k") as disk:
        yield disk


def add(index: mw.Index, model: Model, number: int, words: int = TEXT_WORDS) -> None:
    """Adds a document to an index and, if that does not fail, to the model."""
    document = Document(f"d{number}", " ".join(f"w{number}x{at}" for at in range(words)), {"number": number})
    index.add([document.id], [document.text], [document.metadata])
    model.apply(Operation(kind="add", ids=[document.id], texts=[document.text], metadata=[document.metadata]))


def fill(index: mw.Index, model: Model) -> None:
    """Adds documents until there is no room for even a small one."""
    for words in (2000, TEXT_WORDS, 5):
        with pytest.raises(OSError, match="No space left on device") as caught:
            add_for_ever(index, model, words)
        assert caught.value.errno == errno.ENOSPC
        assert str(index.path) in str(caught.value)


def add_for_ever(index: mw.Index, model: Model, words: int) -> None:
    """Adds documents of a length, one by one."""
    for number in count(len(model.documents)):
        add(index, model, number, words)


def assert_as(index: mw.Index, model: Model) -> None:
    """The index holds what the model does, undamaged."""
    assert deviations(index, model, [*model.documents, f"d{len(model.documents)}", *model.gone]) == []
    assert index.verify() == []


@pytest.mark.parametrize("upkeep", UPKEEP)
def test_a_full_disk(disk: Disk, upkeep: str) -> None:
    """Adds fail with one clear error, upkeep too or it needs no room; all is there; with room all of it works."""
    model = Model()
    with mw.Index.create(disk.folder / "index.mw", **SETTINGS) as index:
        fill(index, model)
        assert len(model.documents) >= 5
        assert_as(index, model)
        before = sorted(path.name for path in disk.folder.iterdir())
        try:
            UPKEEP[upkeep](index, disk.folder)
        except OSError as error:
            full = error.errno
            assert sorted(path.name for path in disk.folder.iterdir()) == before
        else:
            full = errno.ENOSPC
            model = after(upkeep, model)
        assert full == errno.ENOSPC
        assert_as(index, model)
        disk.resize("64m")
        add(index, model, len(model.documents) + 100)
        if before == sorted(path.name for path in disk.folder.iterdir()):
            UPKEEP[upkeep](index, disk.folder)
            model = after(upkeep, model)
        assert_as(index, model)
    with mw.Index.open(disk.folder / "index.mw", "w") as index:
        assert_as(index, model)


def after(upkeep: str, model: Model) -> Model:
    """What the index holds after some upkeep."""
    other = model.copy()
    if upkeep == "remove":
        other.apply(Operation(kind="remove", ids=["d0"]))
    return other


def test_no_room_for_an_index(disk: Disk) -> None:
    """Nothing is left of it; with room it can be made."""
    disk.resize("16k")
    with pytest.raises(OSError, match="No space left on device"):
        mw.Index.create(disk.folder / "index.mw", **SETTINGS)
    assert list(disk.folder.iterdir()) == []
    disk.resize("64m")
    with mw.Index.create(disk.folder / "index.mw", **SETTINGS) as index:
        add(index, Model(), 0)


def read_all(path: Path, mode: str, model: Model) -> str:
    """Opens an index and looks at all of it; why it could not be opened, if so."""
    try:
        with mw.Index.open(path, mode) as index:
            assert_as(index, model)
    except OSError as error:
        return str(error)
    return ""


def test_a_full_disk_in_which_an_index_is_opened(disk: Disk) -> None:
    """To read it, and to write it: either works, or says that there is no room."""
    model = Model()
    path = disk.folder / "index.mw"
    with mw.Index.create(path, **SETTINGS) as index:
        for number in range(5):
            add(index, model, number)
    with pytest.raises(OSError, match="No space"):
        (disk.folder / "ballast").write_bytes(bytes(10**6))
    for mode in ("r", "w"):
        told = read_all(path, mode, model)
        assert told == "" or (str(path) in told and "No space left on device" in told)
    (disk.folder / "ballast").unlink()
    with mw.Index.open(path, "w") as index:
        assert_as(index, model)
        add(index, model, 5)
        assert_as(index, model)
