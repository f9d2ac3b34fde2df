"""Regression tests of the index; each fails without its fix."""

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
from minwise.errors import ConfigError, FormatError
from minwise.index import Added
from minwise.inputs import Files

TEXTS = [f"text number {number} is about {number * 7} and nothing else but {number * 13}" for number in range(40)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of an index of ten documents."""
    with mw.Index.create(tmp_path / "a.mw", seed=1, shingle="word:2") as index:
        index.add(range(10), TEXTS[:10])
    return tmp_path / "a.mw"


def test_a_segment_is_written_to_the_index_after_a_change_of_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index opened by a relative path wrote its segment to the new working directory."""
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


@pytest.mark.posix
def test_a_forked_process_cannot_write(path: Path) -> None:
    """Parent and child each committed a state that replaced that of the other."""
    with mw.Index.open(path, "w") as index:
        child = os.fork()
        if child == 0:
            try:
                index.add(["child"], ["of another process"])
            except ConfigError as error:
                os._exit(0 if "every process opens its own" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        index.add(["parent"], ["of this process"])
        assert index.verify() == []


@pytest.mark.posix
def test_adds_to_a_deleted_index_are_rejected(path: Path) -> None:
    """They were acknowledged, and lost with the deleted files."""
    index = mw.Index.open(path, "w")
    shutil.rmtree(path)
    with pytest.raises(OSError, match="deleted or replaced"):
        index.add(["b"], ["a lost text"])
    index.close()


def test_removed_documents_do_not_hide_a_live_one(tmp_path: Path) -> None:
    """A thousand removed copies preceded it in the buckets, so it was not found and was added again."""
    with mw.Index.create(tmp_path / "a.mw", seed=1) as index:
        index.add(range(1000), ["not found: there is no page at this address"] * 1000)
        index.flush()
        index.remove(range(1000))
        first, second = index.add_unique(["x", "y"], ["not found: there is no page at this address"] * 2)
        assert (first.fate, second.fate, second.duplicate_of) == ("added", "duplicate", "x")


def test_the_lock_is_released_on_garbage_collection(path: Path) -> None:
    """In a notebook, an index that was opened again under the same name was rejected."""
    held = [mw.Index.open(path, "w")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        held.clear()
        gc.collect()
    mw.Index.open(path, "w").close()


def test_a_segment_with_the_content_of_another_is_rejected(tmp_path: Path) -> None:
    """It is a valid file, but lookups in it failed without any message."""
    with mw.Index.create(tmp_path / "a.mw") as index:
        for first in (0, 10):
            index.add(range(first, first + 10), TEXTS[first : first + 10])
            index.flush()
    first_segment, second_segment = sorted((tmp_path / "a.mw").glob("segment-*.post"))
    shutil.copyfile(second_segment, first_segment)
    with pytest.raises(FormatError, match=first_segment.name):
        mw.Index.open(tmp_path / "a.mw")


def test_files_of_other_programs_are_not_deleted(tmp_path: Path) -> None:
    """Their names begin and end like those of the index."""
    (tmp_path / ".a.mw.precious.tmp").mkdir()
    with mw.Index.create(tmp_path / "a.mw") as index:
        index.add([1], TEXTS[:1])
    (tmp_path / "a.mw" / "segment-notes.post").write_text("mine")
    mw.Index.open(tmp_path / "a.mw", "w").close()
    assert (tmp_path / ".a.mw.precious.tmp").exists()
    assert (tmp_path / "a.mw" / "segment-notes.post").exists()


@pytest.mark.parametrize("ids", [np.arange(20, 22), list(np.arange(20, 22)), np.array(["20", "21"])])
def test_ids_may_be_numpy_values(path: Path, ids: Any) -> None:  # noqa: ANN401 - an array or a list
    """They were rejected in a list and accepted in an array."""
    with mw.Index.open(path, "w") as index:
        assert index.add(ids, TEXTS[20:22]) == Added(added=2)
        assert 20 in index
        assert None not in index


def test_large_integers_in_metadata_stay_integers(path: Path) -> None:
    with mw.Index.open(path, "w") as index:
        index.add(["b"], ["some text"], [{"n": 2**70}])
        assert index.get("b").metadata == {"n": 2**70}


def test_where_filters_before_candidates_are_capped(tmp_path: Path) -> None:
    """Only the first few candidates were compared with the condition."""
    with mw.Index.create(tmp_path / "a.mw", seed=1) as index:
        index.add(range(60), TEXTS[:1] * 60, [{"lang": "de"}] * 60)
        index.add(["en"], TEXTS[:1], [{"lang": "en"}])
        assert [hit.id for hit in index.query(TEXTS[0], where={"lang": "en"})] == ["en"]


def test_a_repeated_line_is_kept_once(path: Path) -> None:
    """The second is in the index already, unchanged; the output had it again."""
    line = json.dumps({"id": "new", "text": "something that is not there yet"}).encode() + b"\n"
    with mw.Index.open(path, "w") as index:
        for _ in range(2):  # a second run still writes it, so that an interrupted one can be completed
            kept = io.BytesIO()
            index.add_stream(io.BytesIO(line * 3), kept)
            assert kept.getvalue() == line


def test_an_index_cannot_be_added_to_itself(path: Path) -> None:
    """Its files were read as texts."""
    with mw.Index.open(path, "w") as index, pytest.raises(ConfigError, match="the index itself"):
        index.add_from(Files([str(path)]))


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file system that takes any bytes")
def test_a_path_that_is_not_utf8_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="UTF-8"):
        mw.Index.create(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.mw"))


def test_an_index_can_be_created_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path ``.`` has no name."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    mw.Index.create(".").close()
    mw.Index.open(tmp_path / "here").close()


def test_the_secret_seed_is_not_in_any_representation(tmp_path: Path) -> None:
    with mw.Index.create(tmp_path / "a.mw") as index:
        seed = str(index.shingler.seed)
        signatures = index.scheme.sketch_texts(TEXTS, index.shingler)
        for value in (index.shingler, index.scheme, index.scheme.settings, signatures):
            assert seed not in repr(value)
