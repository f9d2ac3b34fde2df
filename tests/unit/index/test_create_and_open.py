"""Creating and opening an index: settings, ids, closed and read-only indexes."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import minwise as mw
from minwise.errors import ConfigError, InputError
from minwise.index import Added

TEXTS = ["one two three four five six seven", "eight nine ten eleven twelve thirteen"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Create an index of two documents."""
    with mw.Index.create(tmp_path / "a.mw", seed=1) as index:
        index.add([1, "b"], TEXTS)
    return tmp_path / "a.mw"


@pytest.fixture
def read_only(path: Path) -> Iterator[Path]:
    """Mount the same index read-only."""
    folder = path.parent
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a disk for reading")
    if subprocess.run(["mount", "--bind", str(folder), str(folder)], check=False, capture_output=True).returncode:
        pytest.skip("this machine does not let root mount a disk, as in a container")
    subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
    yield path
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.posix
def test_index_on_a_read_only_file_system_can_be_queried(read_only: Path) -> None:
    with mw.Index.open(read_only) as index:
        assert [hit.id for hit in index.query(TEXTS[0])] == [1]
        assert index.verify() == []
    with pytest.raises(OSError, match="Read-only"):
        mw.Index.open(read_only, "w")


def test_closed_index_refuses_queries(path: Path) -> None:
    index = mw.Index.open(path)
    index.close()
    index.close()
    with pytest.raises(ConfigError, match="closed"):
        index.query("anything")


def test_index_open_for_reading_refuses_changes(path: Path) -> None:
    with mw.Index.open(path) as index:
        for change in (lambda: index.add(["c"], ["new"]), lambda: index.remove([1]), index.flush, index.compact):
            with pytest.raises(ConfigError, match="mode 'w'"):
                change()
        assert len(index) == 2


@pytest.mark.parametrize("invalid", ["", True, 1.5, None, b"x", "\ud800"])
def test_invalid_id_adds_nothing(path: Path, invalid: object) -> None:
    with mw.Index.open(path, "w") as index:
        with pytest.raises(InputError, match="id 1 must be"):
            index.add(["c", invalid], ["new", "newer"])  # type: ignore[list-item]
        assert len(index) == 2


def test_numbers_of_ids_texts_and_metadata_must_match(path: Path) -> None:
    with mw.Index.open(path, "w") as index:
        with pytest.raises(InputError, match="as many texts as ids, got 1 and 2"):
            index.add(["c", "d"], ["new"])
        with pytest.raises(InputError, match="as many metadata as ids, got 1 and 2"):
            index.add(["c", "d"], ["new", "newer"], [{}])
        with pytest.raises(InputError, match=r"write \[id\]"):
            index.add("c", ["new"])


@pytest.mark.parametrize("threshold", [0.79, 1.01, "0.9", True, float("nan")])
def test_query_threshold_must_not_be_below_that_of_the_index(path: Path, threshold: float) -> None:
    """Below it, documents would be missed without notice."""
    with mw.Index.open(path) as index, pytest.raises(ConfigError, match=r"threshold must be from 0\.8"):
        index.query(TEXTS[0], threshold=threshold)


def test_query_takes_one_text_and_query_many_a_list(path: Path) -> None:
    with mw.Index.open(path) as index:
        assert index.query_many(TEXTS) == [index.query(text) for text in TEXTS]
        assert index.query(TEXTS[0].encode()) == index.query(TEXTS[0])
        assert index.query_many([]) == []
        with pytest.raises(InputError, match="text must be one string or bytes, got list; use query_many for a list"):
            index.query(TEXTS)
        with pytest.raises(InputError, match=r"got one str; write \[text\]"):
            index.query_many(TEXTS[0])


@pytest.mark.parametrize(
    "settings",
    [
        {"shingle": "set", "store_text": True},
        {"shingle": mw.Shingler()},
        {"store_text": "all"},
        {"store_text": True, "sketch_only": True},
        {"seed": -1},
    ],
)
def test_invalid_settings_create_nothing(tmp_path: Path, settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        mw.Index.create(tmp_path / "a.mw", **settings)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_ids_keep_their_type_but_1_and_string_1_are_equal(path: Path) -> None:
    with mw.Index.open(path, "w") as index:
        assert index.get("1").id == 1
        assert index.add(["1"], [TEXTS[0]]) == Added(unchanged=1)
        assert index.add(["1"], ["something else"], on_duplicate_id="replace") == Added(replaced=1)
        assert index.get(1).id == "1"
        with pytest.raises(InputError, match="is not in the index"):
            index.get(7)
