"""Frozen indexes: every version is read with the same content, and the current one written with the same bytes."""

import json
import re
import shutil
from functools import partial
from pathlib import Path

import pytest
from freeze_index import FROZEN, STORES, TEXTS, VERSIONS, contents, make
from support.expect import error_message
from support.index_edits import edit_json
from support.plain_index import PlainIndex

import minwise as mw
from minwise.errors import FormatError, MismatchError
from minwise.index import OpenMode, StoreName
from minwise.index.settings import FORMAT_VERSION
from minwise.sketches import Scheme
from minwise.text import UNICODE_VERSION


def files(path: Path) -> list[str]:
    """Return the names in a directory."""
    return sorted(entry.name for entry in path.iterdir())


@pytest.fixture(params=[(version, store) for version in VERSIONS for store in STORES])
def frozen(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a copy of a frozen index: opening one leaves a lock and a shared memory file in its directory."""
    version, store = request.param
    return shutil.copytree(FROZEN.parent / f"version-{version}" / f"{store}.mw", tmp_path / "frozen.mw")


def test_a_frozen_index_has_the_same_documents_and_answers(frozen: Path) -> None:
    with mw.Index.open(frozen) as index:
        expected = json.loads((FROZEN / f"{index.store}.json").read_text(encoding="utf-8"))
        assert contents(index) == expected
        assert (len(index), "a" in index, "6" in index, 2 in index) == (7, False, False, True)
        assert index.verify() == []


def test_a_frozen_index_can_be_changed_and_compacted(frozen: Path) -> None:
    with mw.Index.open(frozen, "w") as index:
        assert index.add(["new"], TEXTS[:1]) == (1, 0, 0, 0)
        assert index.query(TEXTS[0])[0].id == "new"
        assert index.remove(["2", "a"]) == 1
        index.compact()
        assert index.verify() == []
        assert len(index) == 7
    assert [name for name in files(frozen) if name.endswith(".post")] == ["segment-00000004.post"]


def test_a_commit_turns_an_older_version_into_the_current_one(frozen: Path) -> None:
    """With the sizes and checksums of its segments; merged segments have all of them."""
    version = PlainIndex(frozen).settings["version"]
    mw.Index.open(frozen, "w").close()
    assert PlainIndex(frozen).settings["version"] == version
    with mw.Index.open(frozen, "w") as index:
        index.remove(["2"])
    plain = PlainIndex(frozen)
    assert plain.settings["version"] == FORMAT_VERSION
    for segment, stored in zip(plain.segments, plain.state["segments"], strict=True):
        assert (segment.bytes, segment.trailer) == (stored["bytes"], stored["trailer"])
        assert stored["blocks"] == (segment.blocks if version == FORMAT_VERSION else None)
    with mw.Index.open(frozen, "w") as index:
        index.compact()
        assert index.verify() == []
    plain = PlainIndex(frozen)
    assert [segment.blocks for segment in plain.segments] == [stored["blocks"] for stored in plain.state["segments"]]


@pytest.mark.parametrize("store", STORES)
def test_same_calls_write_the_same_bytes_index(store: StoreName, tmp_path: Path) -> None:
    """Every row, every segment and the head, so that a change of the format is detected."""
    make(tmp_path / "again.mw", store)
    original = FROZEN / f"{store}.mw"
    assert files(tmp_path / "again.mw") == files(original)
    changed = f"the format changed: undo that, or raise FORMAT_VERSION (now {FORMAT_VERSION}) and run freeze_index.py"
    assert PlainIndex(tmp_path / "again.mw").records == PlainIndex(original).records, changed
    for name in files(original):
        if name != "index.db":  # SQLite stores its own version there
            assert (tmp_path / "again.mw" / name).read_bytes() == (original / name).read_bytes(), changed


def test_frozen_files_are_those_of_a_closed_index() -> None:
    """There is no log and no lock, and the version is current."""
    assert FORMAT_VERSION == VERSIONS[-1] == 2
    for store in STORES:
        assert files(FROZEN / f"{store}.mw") == ["head", "index.db", "segment-00000001.post", "segment-00000002.post"]


@pytest.mark.parametrize("mode", ["r", "w"])
def test_newer_version_is_refused(frozen: Path, mode: OpenMode) -> None:
    edit_json(frozen, 0, lambda settings: settings.update(version=5))
    message = error_message(FormatError, lambda: mw.Index.open(frozen, mode))
    assert message.startswith(f"{frozen / 'index.db'}: ")
    assert "version 1, 2, 3 or 4, got 5" in message


def test_an_index_of_texts_is_not_of_the_version_of_sets(frozen: Path) -> None:
    edit_json(frozen, 0, lambda settings: settings.update(version=3))
    message = error_message(FormatError, lambda: mw.Index.open(frozen))
    assert "shingle must be set" in message


def test_another_unicode_version_is_refused(frozen: Path) -> None:
    """Texts would be cut differently."""
    edit_json(frozen, 0, lambda settings: settings.update(unicode_version="9.0.0"))
    message = error_message(MismatchError, lambda: mw.Index.open(frozen))
    assert message.startswith(f"{frozen / 'index.db'}: ")
    assert "9.0.0" in message
    assert UNICODE_VERSION in message


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("max_bucket", 3, "from 16 to 10000, got 3"),
        ("threshold", 2, "at most 1, got 2"),
        ("scheme", "oph", "one of fast, minhash, got 'oph'"),
        ("store", "tape", "one of shingles, text, sketch, got 'tape'"),
        ("shingle", "word:0", "from 1 to 10000, got 'word:0'"),
        ("later", 1, "later"),
    ],
)
def test_invalid_settings_in_the_manifest_are_refused(frozen: Path, name: str, value: object, rule: str) -> None:
    """Although their checksum is valid."""
    edit_json(frozen, 0, lambda settings: settings.update({name: value}))
    message = error_message(FormatError, lambda: mw.Index.open(frozen))
    assert message.startswith(f"{frozen / 'index.db'}: ")
    assert rule in message


@pytest.mark.parametrize(
    ("name", "value"),
    [("seed", 5), ("rows", 3), ("shingle", "word:3"), ("bag", True), ("scheme", "minhash"), ("lowercase", False)],
)
def test_changed_settings_are_refused(frozen: Path, name: str, value: object) -> None:
    """No document would be found with them; the error names both fingerprints."""
    edit_json(frozen, 0, lambda settings: settings.update({name: value}))
    message = error_message(MismatchError, lambda: mw.Index.open(frozen))
    assert message.startswith(f"{frozen / 'index.db'}: ")
    theirs = PlainIndex(frozen).contents("manifest")[2].hex()
    assert re.search(f"fingerprint {theirs} there, (?!{theirs})[0-9a-f]{{16}} here", message)


def test_signatures_of_other_settings_are_refused(tmp_path: Path) -> None:
    path = shutil.copytree(FROZEN / "sketch.mw", tmp_path / "sketch.mw")
    schemes: list[tuple[Scheme, str, str]] = [
        (mw.FastSketch(slots=99), "99", "16"),
        (mw.MinHash(slots=16), "minhash", "fast"),
    ]
    with mw.Index.open(path, "w") as index:
        for scheme, theirs, ours in schemes:
            add = partial(index.add_signatures, ["x"], scheme.sketch_texts(TEXTS[:1], index.shingler))
            message = error_message(MismatchError, add)
            assert theirs in message
            assert ours in message
        mine = index.scheme.sketch_texts(TEXTS[:1], index.shingler)
        assert index.add_signatures(["x"], mine) == (1, 0, 0, 0)
        assert index.query(TEXTS[0])[0].id == "x"
