"""Files of other indexes, and names that lead out of the directory: refused; nothing outside is opened or deleted."""

import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.expect import error_message
from support.index_edits import edit_json
from support.plain_index import PlainIndex

import minwise as mw
from minwise.errors import FormatError
from minwise.index import OpenMode

TEXTS = [
    f"the tide table of harbour {number} says that the water is high at {number} past noon" for number in range(30)
]


def fill(path: Path, texts: list[str], seed: int | None = None) -> Path:
    """Create an index of one segment and some recent documents."""
    with mw.Index.create(path, seed=seed, shingle="word:2") as index:
        index.add(range(20), texts[:20])
        index.flush()
        index.add(range(20, len(texts)), texts[20:])
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return fill(tmp_path / "own.mw", TEXTS)


@pytest.mark.parametrize("seed", [None, 7])
@pytest.mark.parametrize("mode", ["r", "w"])
def test_a_segment_of_another_index_is_refused(tmp_path: Path, seed: int | None, mode: OpenMode) -> None:
    """Also with the same numbers of documents, bands and postings, and with the same seed."""
    own = fill(tmp_path / "own.mw", TEXTS, seed)
    other = fill(tmp_path / "other.mw", [f"{text} and again" for text in TEXTS], seed)
    shutil.copyfile(other / "segment-00000001.post", own / "segment-00000001.post")
    message = error_message(FormatError, lambda: mw.Index.open(own, mode))
    assert message.startswith(str(own / "segment-00000001.post"))
    assert "another segment" in message


def test_a_segment_with_the_same_trailer_is_found_by_verify(tmp_path: Path) -> None:
    """Equal texts in another order, with the same seed: only the document numbers in the blocks differ."""
    texts = [TEXTS[0]] * 19 + [TEXTS[1]]
    own, other = fill(tmp_path / "own.mw", texts, 3), fill(tmp_path / "other.mw", [*texts[1:], texts[0]], 3)
    segments = [PlainIndex(folder).segments[0] for folder in (own, other)]
    assert segments[0].trailer == segments[1].trailer, "otherwise opening finds it"
    shutil.copyfile(other / "segment-00000001.post", own / "segment-00000001.post")
    with mw.Index.open(own) as index:
        (damage,) = index.verify()
    assert damage.file == str(own / "segment-00000001.post")
    assert "another segment" in damage.what


def test_a_database_of_another_index_is_refused(tmp_path: Path, path: Path) -> None:
    other = fill(tmp_path / "other.mw", TEXTS)
    shutil.copyfile(other / "index.db", path / "index.db")
    message = error_message(FormatError, lambda: mw.Index.open(path))
    assert message.startswith(str(path / "segment-00000001.post"))


FIXED_NAMES = ("index.db", "index.db-wal", "index.db-shm", "head", "writer.lock")
NAMES = [
    "../other.mw/segment-00000001.post",
    "/etc/hostname",
    "segment-00000001.post/../../other.mw/segment-00000001.post",
    "segment-0000000１.post",
    "segment-1.post",
    "segment-00000009.post",
    "segment-000000001.post",
    "segment-00000001.post\n",
    "index.db",
    "",
    None,
    5,
]


@pytest.mark.parametrize("mode", ["r", "w"])
@pytest.mark.parametrize("name", NAMES)
def test_a_state_that_names_another_file_is_refused(tmp_path: Path, path: Path, name: object, mode: OpenMode) -> None:
    """A compaction deleted the segments of another index."""
    other = shutil.copytree(path, tmp_path / "other.mw")
    edit_json(path, 1, lambda state: state["segments"][0].update(name=name))
    message = error_message(FormatError, lambda: mw.Index.open(path, mode))
    assert message.startswith(str(path / "index.db"))
    assert "segment names must be" in message
    assert (other / "segment-00000001.post").exists()


def test_two_entries_for_one_segment_are_refused(path: Path) -> None:
    def repeat(state: dict[str, Any]) -> None:
        state["segments"].append({**state["segments"][0], "low": 20, "high": 20})

    edit_json(path, 1, repeat)
    assert "different names" in error_message(FormatError, lambda: mw.Index.open(path))


@pytest.mark.parametrize("mode", ["r", "w"])
@pytest.mark.parametrize(
    "name", ["index.db", "index.db-wal", "index.db-shm", "head", "writer.lock", "segment-00000001.post"]
)
def test_links_are_refused_and_their_targets_unchanged(tmp_path: Path, path: Path, name: str, mode: OpenMode) -> None:
    """The lock file was emptied through a link, and the head written."""
    target = tmp_path / "target"
    if (path / name).exists():
        (path / name).rename(target)
    else:
        target.write_bytes(b"the only copy of something\n")
    before = target.read_bytes()
    (path / name).symlink_to(target)
    message = error_message(FormatError, lambda: mw.Index.open(path, mode))
    assert message.startswith(f"{path / name}: ")
    assert "symbolic link" in message
    assert target.read_bytes() == before


def test_the_directory_itself_may_be_a_link(tmp_path: Path, path: Path) -> None:
    (tmp_path / "link.mw").symlink_to(path)
    with mw.Index.open(tmp_path / "link.mw", "w") as index:
        index.add(["new"], ["some words that are new here"])
        index.compact()
        assert index.verify() == []


def test_a_rollback_journal_is_refused(tmp_path: Path, path: Path) -> None:
    """SQLite rolls it back, and deletes the file that it names."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"not a list of journals")
    name = str(victim).encode()
    journal = b"\0" * 512 + b"\0\0\0\1" + name + len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big")
    (path / "index.db-journal").write_bytes(journal + bytes.fromhex("d9d505f920a163d7"))
    message = error_message(FormatError, lambda: mw.Index.open(path, "w"))
    assert message.startswith(str(path / "index.db-journal"))
    assert victim.exists()


TRIGGER = "CREATE TRIGGER extra AFTER INSERT ON documents BEGIN DELETE FROM texts; END"


@pytest.mark.parametrize("statement", ["CREATE VIEW extra AS SELECT 1", TRIGGER])
def test_other_objects_in_the_schema_are_refused(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path / "index.db")) as connection, connection:
        connection.execute(statement)
    assert "tables must be those of an index" in error_message(FormatError, lambda: mw.Index.open(path))


def test_a_link_among_leftover_segments_is_deleted_and_its_target_kept(tmp_path: Path, path: Path) -> None:
    """Leftover segments are deleted by the next writer; directories are never."""
    target = tmp_path / "target.post"
    target.write_bytes(b"mine")
    (path / "segment-00000077.post").symlink_to(target)
    (path / "segment-00000078.post").write_bytes(b"unfinished")
    (path / "segment-00000079.post").mkdir()
    mw.Index.open(path, "w").close()
    assert sorted(file.name for file in path.glob("segment-*")) == ["segment-00000001.post", "segment-00000079.post"]
    assert target.read_bytes() == b"mine"


# Modes


def modes(path: Path) -> dict[str, int]:
    """Return the mode of every file of an index, and of its directory."""
    return {file.name: stat.S_IMODE(file.lstat().st_mode) for file in (path, *path.iterdir())}


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o277])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


OPERATIONS: dict[str, Callable[[mw.Index], object]] = {
    "add": lambda index: index.add(["a", "b"], TEXTS[:2]),
    "add_unique": lambda index: index.add_unique(["c"], [TEXTS[0]]),
    "flush": lambda index: index.flush(),
    "add more": lambda index: index.add(range(20), TEXTS[:20]),
    "flush again": lambda index: index.flush(),
    "remove": lambda index: index.remove(["a"]),
    "query": lambda index: index.query(TEXTS[0]),
    "compact": lambda index: index.compact(),
    "verify": lambda index: index.verify(),
}


@pytest.mark.usefixtures("umask")
def test_only_the_owner_can_read_an_index_after_every_operation(tmp_path: Path) -> None:
    """The database holds the seed, and the segments keys that are made with it."""
    path = tmp_path / "private.mw"
    with mw.Index.create(path) as index, mw.Index.open(path) as reader:
        for name, operation in OPERATIONS.items():
            operation(index)
            reader.query(TEXTS[1])
            found = modes(path)
            assert found.pop(path.name) == 0o700
            assert set(FIXED_NAMES) <= found.keys()
            assert set(found.values()) == {0o600}, (name, found)
        index.backup(tmp_path / "copy.mw")
    assert {*modes(path).values()} == {*modes(tmp_path / "copy.mw").values()} == {0o700, 0o600}


@pytest.mark.usefixtures("umask")
def test_new_files_of_a_shared_index_have_the_mode_of_its_database(path: Path) -> None:
    """The mode that an administrator chose is kept."""
    for file in path.iterdir():
        file.chmod(0o660)
    path.chmod(0o2770)
    (path / "head").unlink()
    (path / "writer.lock").unlink()
    with mw.Index.open(path, "w") as index:
        index.add(["new"], ["some words that are new here"])
        index.compact()
        found = modes(path)
    assert found.pop(path.name) == 0o2770
    assert len(found) == 6
    assert set(found.values()) == {0o660}


def test_an_empty_directory_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "shared.mw").mkdir()
    (tmp_path / "shared.mw").chmod(0o750)
    mw.Index.create(tmp_path / "shared.mw").close()
    found = modes(tmp_path / "shared.mw")
    assert found.pop("shared.mw") == 0o750
    assert set(found.values()) == {0o600}
