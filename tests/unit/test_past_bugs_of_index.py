"""Bugs of the index that were found and fixed, each with the case that showed it."""

import gc
import io
import json
import os
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minwise as mw

TEXTS = [f"text number {number} is about {number * 7} and nothing else but {number * 13}" for number in range(40)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An index of ten documents."""
    with mw.Index.create(tmp_path / "a.mw", seed=1, shingle="word:2") as index:
        index.add(range(10), TEXTS[:10])
    return tmp_path / "a.mw"


def test_a_segment_went_to_another_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opened by a relative path, the working directory changed, flushed: the segment was written where it was then."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two" / "a.mw").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "one")
    with mw.Index.create("a.mw") as index:
        index.add([1], TEXTS[:1])
        monkeypatch.chdir(tmp_path / "two")
        index.flush()
        assert index.stats()["documents"] == 1
    assert list((tmp_path / "two" / "a.mw").iterdir()) == []
    with mw.Index.open(tmp_path / "one" / "a.mw") as index:
        assert [hit.id for hit in index.query(TEXTS[0])] == [1]


def test_a_forked_process_wrote_too(path: Path) -> None:
    """Parent and child each committed a state of their own over that of the other."""
    with mw.Index.open(path, "w") as index:
        child = os.fork()
        if child == 0:
            try:
                index.add(["child"], ["of another process"])
            except mw.ConfigError as error:
                os._exit(0 if "every process opens its own" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        index.add(["parent"], ["of this process"])
        assert index.verify() == []


def test_adds_to_a_deleted_index_were_acknowledged(path: Path) -> None:
    """And lost with the files that nobody could find any more."""
    index = mw.Index.open(path, "w")
    shutil.rmtree(path)
    with pytest.raises(OSError, match="deleted or replaced"):
        index.add(["b"], ["lost for ever"])
    index.close()


def test_removed_documents_hid_a_living_one(tmp_path: Path) -> None:
    """A thousand removed copies stood in the buckets before it, so it was not found and came in again and again."""
    with mw.Index.create(tmp_path / "a.mw", seed=1) as index:
        index.add(range(1000), ["not found: there is no page at this address"] * 1000)
        index.flush()
        index.remove(range(1000))
        first, second = index.add_unique(["x", "y"], ["not found: there is no page at this address"] * 2)
        assert (first.fate, second.fate, second.duplicate_of) == ("added", "duplicate", "x")


def test_a_forgotten_index_kept_the_lock(path: Path) -> None:
    """In a notebook the same name was opened again, and refused for ever."""
    held = [mw.Index.open(path, "w")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        held.clear()
        gc.collect()
    mw.Index.open(path, "w").close()


def test_a_segment_in_the_place_of_another(tmp_path: Path) -> None:
    """It is whole, but another's: what is looked up in it is not found, and nothing said so."""
    with mw.Index.create(tmp_path / "a.mw") as index:
        for first in (0, 10):
            index.add(range(first, first + 10), TEXTS[first : first + 10])
            index.flush()
    one, two = sorted((tmp_path / "a.mw").glob("segment-*.post"))
    shutil.copyfile(two, one)
    with pytest.raises(mw.FormatError, match=one.name):
        mw.Index.open(tmp_path / "a.mw")


def test_foreign_files_were_deleted(tmp_path: Path) -> None:
    """Those whose names begin and end like ours."""
    (tmp_path / ".a.mw.precious.tmp").mkdir()
    with mw.Index.create(tmp_path / "a.mw") as index:
        index.add([1], TEXTS[:1])
    (tmp_path / "a.mw" / "segment-notes.post").write_text("mine")
    mw.Index.open(tmp_path / "a.mw", "w").close()
    assert (tmp_path / ".a.mw.precious.tmp").exists()
    assert (tmp_path / "a.mw" / "segment-notes.post").exists()


@pytest.mark.parametrize("ids", [np.arange(20, 22), list(np.arange(20, 22)), np.array(["20", "21"])])
def test_ids_of_numpy(path: Path, ids: Any) -> None:  # noqa: ANN401 - an array or a list
    """Were refused one by one, and taken as an array."""
    with mw.Index.open(path, "w") as index:
        assert index.add(ids, TEXTS[20:22]) == mw.Added(added=2)
        assert 20 in index
        assert None not in index


def test_large_numbers_in_metadata(path: Path) -> None:
    """Came back as floats."""
    with mw.Index.open(path, "w") as index:
        index.add(["b"], ["some text"], [{"n": 2**70}])
        assert index.get("b").metadata == {"n": 2**70}


def test_what_many_others_hid_from_where(tmp_path: Path) -> None:
    """Only the first few candidates were looked at before the condition was."""
    with mw.Index.create(tmp_path / "a.mw", seed=1) as index:
        index.add(range(60), TEXTS[:1] * 60, [{"lang": "de"}] * 60)
        index.add(["en"], TEXTS[:1], [{"lang": "en"}])
        assert [hit.id for hit in index.query(TEXTS[0], where={"lang": "en"})] == ["en"]


def test_a_line_that_comes_twice_was_kept_twice(path: Path) -> None:
    """The second is there already, unchanged; the output had it again."""
    line = json.dumps({"id": "new", "text": "something that is not there yet"}).encode() + b"\n"
    with mw.Index.open(path, "w") as index:
        for _ in range(2):  # and a second run still gives it, so that an interrupted one can be completed
            kept = io.BytesIO()
            index.add_stream(io.BytesIO(line * 3), kept)
            assert kept.getvalue() == line


def test_an_index_was_added_to_itself(path: Path) -> None:
    """Its files were taken for texts."""
    with mw.Index.open(path, "w") as index, pytest.raises(mw.ConfigError, match="the index itself"):
        index.add_from(mw.Files([str(path)]))


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file system that takes any bytes")
def test_a_path_that_is_not_utf_8(tmp_path: Path) -> None:
    """Ended in an error of another library."""
    with pytest.raises(mw.ConfigError, match="UTF-8"):
        mw.Index.create(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.mw"))


def test_the_empty_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``.`` it has no name."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    mw.Index.create(".").close()
    mw.Index.open(tmp_path / "here").close()


def test_the_seed_in_the_shape_of_settings(tmp_path: Path) -> None:
    """The shingler and the scheme of an index know its secret, and told it to whoever printed them."""
    with mw.Index.create(tmp_path / "a.mw") as index:
        seed = str(index.shingler.seed)
        signatures = index.scheme.sketch_texts(TEXTS, index.shingler)
        for one in (index.shingler, index.scheme, index.scheme.settings, signatures):
            assert seed not in repr(one)
