"""Making and opening an index: where it can not be, what it can not be asked, and what is left behind."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import minwise as mw

TEXTS = ["one two three four five six seven", "eight nine ten eleven twelve thirteen"]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A small index."""
    with mw.Index.create(tmp_path / "a.mw", seed=1) as index:
        index.add([1, "b"], TEXTS)
    return tmp_path / "a.mw"


@pytest.fixture
def read_only(made: Path) -> Iterator[Path]:
    """The same index where nobody can write."""
    folder = made.parent
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a disk for reading")
    if subprocess.run(["mount", "--bind", str(folder), str(folder)], check=False, capture_output=True).returncode:
        pytest.skip("this machine does not let root mount a disk, as in a container")
    subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
    yield made
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_can_only_be_read(read_only: Path) -> None:
    """Is enough for asking; writing says why it can not be."""
    with mw.Index.open(read_only) as index:
        assert [hit.id for hit in index.query(TEXTS[0])] == [1]
        assert index.verify() == []
    with pytest.raises(OSError, match="Read-only"):
        mw.Index.open(read_only, "w")


def test_a_closed_index(made: Path) -> None:
    """Says so; closing it again does nothing."""
    index = mw.Index.open(made)
    index.close()
    index.close()
    with pytest.raises(mw.ConfigError, match="closed"):
        index.query("anything")


def test_a_reader_does_not_write(made: Path) -> None:
    """And is told how it could."""
    with mw.Index.open(made) as index:
        for change in (lambda: index.add(["c"], ["new"]), lambda: index.remove([1]), index.flush, index.compact):
            with pytest.raises(mw.ConfigError, match="mode 'w'"):
                change()
        assert len(index) == 2


@pytest.mark.parametrize("wrong", ["", True, 1.5, None, b"x", "\ud800"])
def test_what_is_no_id(made: Path, wrong: object) -> None:
    """A whole number or a string with something in it; anything else is refused, and nothing is added."""
    with mw.Index.open(made, "w") as index:
        with pytest.raises(mw.InputError, match="id 1 must be"):
            index.add(["c", wrong], ["new", "newer"])  # type: ignore[list-item]
        assert len(index) == 2


def test_as_many_texts_as_ids(made: Path) -> None:
    """And as much metadata."""
    with mw.Index.open(made, "w") as index:
        with pytest.raises(mw.InputError, match="as many texts as ids, got 1 and 2"):
            index.add(["c", "d"], ["new"])
        with pytest.raises(mw.InputError, match="as many metadata as ids, got 1 and 2"):
            index.add(["c", "d"], ["new", "newer"], [{}])
        with pytest.raises(mw.InputError, match=r"write \[id\]"):
            index.add("c", ["new"])


@pytest.mark.parametrize("threshold", [0.79, 1.01, "0.9", True, float("nan")])
def test_thresholds_that_can_not_be_asked_for(made: Path, threshold: float) -> None:
    """Below the planned one documents would be missed without a word."""
    with mw.Index.open(made) as index, pytest.raises(mw.ConfigError, match=r"threshold must be from 0\.8"):
        index.query(TEXTS[0], threshold=threshold)


@pytest.mark.parametrize("settings", [{"shingle": "set"}, {"shingle": mw.Shingler()}, {"store": "all"}, {"seed": -1}])
def test_settings_that_an_index_can_not_have(tmp_path: Path, settings: dict[str, object]) -> None:
    """One line, and nothing on disk."""
    with pytest.raises(mw.ConfigError):
        mw.Index.create(tmp_path / "a.mw", **settings)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_ids_keep_their_type(made: Path) -> None:
    """But 1 and "1" are the same id."""
    with mw.Index.open(made, "w") as index:
        assert index.get("1").id == 1
        assert index.add(["1"], [TEXTS[0]]) == mw.Added(unchanged=1)
        assert index.add(["1"], ["something else"], on_duplicate_id="replace") == mw.Added(replaced=1)
        assert index.get(1).id == "1"
        with pytest.raises(mw.InputError, match="is not in the index"):
            index.get(7)
