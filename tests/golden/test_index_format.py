"""docs/index-format.md is correct and complete: an index can be read from its description alone."""

import random
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from freeze_index import FROZEN, IDS, STORES, TEXTS, VERSIONS
from support.plain_index import NO_KEY, PlainIndex, Posting

import minwise as mw
from minwise import reference
from minwise.index import database, store, view, writer
from minwise.reference.banding import band_keys

PAGE = (Path(__file__).parents[2] / "docs" / "index-format.md").read_text(encoding="utf-8")


@pytest.fixture(params=STORES)
def plain(request: pytest.FixtureRequest) -> PlainIndex:
    """Return a frozen index of the current version, read as the page describes."""
    return PlainIndex(FROZEN / f"{request.param}.mw")


@pytest.mark.parametrize("store", STORES)
def test_older_versions_differ_in_the_identity_of_segments_only(store: str) -> None:
    """As the page says: version 1 has no size and no checksums in the state."""
    for version in VERSIONS[:-1]:
        old, new = PlainIndex(FROZEN.parent / f"version-{version}" / f"{store}.mw"), PlainIndex(FROZEN / f"{store}.mw")
        assert old.settings == {**new.settings, "version": version}
        for segment in new.state["segments"]:
            for name in ("bytes", "trailer", "blocks"):
                del segment[name]
        assert old.state == new.state
        assert old.segments == new.segments


def expected_body(text: str, settings: dict[str, Any]) -> bytes:
    """Return the body of a document: its elements, or the low bits of its signature."""
    elements = reference.shingle_hashes(text, settings["shingle"], seed=settings["seed"])
    if settings["store"] != "sketch":
        return struct.pack(f"<{len(elements)}Q", *elements)
    slots = reference.fast_sketch(elements, settings["bands"] * settings["rows"], settings["seed"]).tolist()
    return struct.pack(f"<{len(slots)}H", *(slot % 2**16 for slot in slots)) if len(elements) else b""


def expected_keys(text: str, settings: dict[str, Any]) -> list[int]:
    """Return the band keys of a document."""
    bands, rows, seed = (settings[name] for name in ("bands", "rows", "seed"))
    elements = reference.shingle_hashes(text, settings["shingle"], seed=seed)
    return band_keys(reference.fast_sketch(elements, bands * rows, seed), bands, rows, seed)


def expected_postings(texts: dict[int, str], names: dict[int, str], settings: dict[str, Any]) -> list[set[Posting]]:
    """Return band keys and id hashes of documents, computed by the reference implementation."""
    keys = {(key, number) for number, text in texts.items() for key in expected_keys(text, settings) if key != NO_KEY}
    hashes = {(min(reference.hash_item(name, settings["seed"]), NO_KEY - 1), number) for number, name in names.items()}
    return [keys, hashes]


def test_documents(plain: PlainIndex) -> None:
    """Ids with their types, metadata and bodies."""
    assert [document.id for document in plain.documents.values()] == ["ß", -4, "5", "7", "8", "9", "2"]
    assert {str(document.id) for document in plain.documents.values()} == set(map(str, IDS))
    assert plain.documents[2].metadata == {"lang": "de", "deep": {"x": [1, 2.5]}}
    assert (plain.documents[3].metadata, plain.documents[4].metadata) == (None, {})
    for number, document in plain.documents.items():
        assert document.body == expected_body(TEXTS[number], plain.settings)
    stored = {number: TEXTS[number] for number in plain.documents} if plain.settings["store"] == "text" else {}
    assert plain.texts == stored


def test_state(plain: PlainIndex) -> None:
    """Counts, digest, bitmap and head match the content."""
    state = plain.state
    assert (state["next"], state["flushed"], state["documents"]) == (10, 7, 7)
    assert plain.removed == {0, 1, 5} == set(range(state["next"])) - set(plain.documents)
    assert all(len(bits) == 4096 and first % 32_768 == 0 for first, bits in plain.contents("removed").items())
    assert plain.digest() == state["digest"]
    assert plain.head() == state["commit"]
    assert list(plain.recent) == [7, 8, 9]
    assert [(segment.low, segment.high, len(segment.bands) + len(segment.ids)) for segment in plain.segments] == [
        (segment["low"], segment["high"], segment["postings"]) for segment in state["segments"]
    ]
    assert [(segment.bytes, segment.trailer, segment.blocks) for segment in plain.segments] == [
        (segment["bytes"], segment["trailer"], segment["blocks"]) for segment in state["segments"]
    ]


def test_postings(plain: PlainIndex) -> None:
    """Every document has the postings that the reference implementation computes, and there are no others."""
    texts = {number: TEXTS[number] for number in plain.documents}
    names = {number: str(document.id) for number, document in plain.documents.items()}
    assert list(plain.postings()) == expected_postings(texts, names, plain.settings)


def test_fingerprint(plain: PlainIndex) -> None:
    """The page contains the text."""
    (probe,) = re.findall(r"```text\n(.*)\n```", PAGE)
    keys = expected_keys(probe, plain.settings)
    content = struct.pack(f"<{len(keys)}Q", *keys) + expected_body(probe, plain.settings)
    assert plain.fingerprint == reference.hash_item(content, 0)


def test_index_of_many_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of several levels, buckets longer than a block, keys of every width, and removed documents."""
    monkeypatch.setattr(writer, "FLUSH_DOCUMENTS", 60)
    rng = random.Random(1)
    texts = [" ".join(rng.choices("abcdefgh", k=rng.randrange(6))) for _ in range(1000)]
    with mw.Index.create(tmp_path / "many.mw", shingle="word:1", bands=5, rows=1, threshold=0.5, seed=3) as index:
        for start in range(0, 1000, 23):
            index.add(list(range(start, min(start + 23, 1000))), texts[start : start + 23])
            index.remove([start + 1, start + 5])
    plain = PlainIndex(tmp_path / "many.mw")
    assert len(plain.segments) > 1
    assert max(len(segment.bands) for segment in plain.segments) > 1000
    assert len(plain.documents) == 1000 - len(plain.removed) == plain.state["documents"]
    names = {number: str(number) for number in plain.documents}
    expected = expected_postings({number: texts[number] for number in names}, names, plain.settings)
    assert list(plain.postings()) == expected
    assert plain.digest() == plain.state["digest"]


def fields(table: str) -> set[str]:
    """Return the names in the first column of a table of the page that describes a JSON object."""
    rows = re.findall(r"^\| (`.*?) \|", PAGE.split(f"row {table}", 1)[1].split("\n#", 1)[0], re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_page_names_every_field(plain: PlainIndex) -> None:
    """Both rows of the manifest, and no other field."""
    assert fields("0, the settings") == set(plain.settings)
    assert fields("1, the state") == set(plain.state)
    assert all(f"`{name}`" in PAGE for name in plain.state["segments"][0])


def test_page_names_every_table_and_file() -> None:
    """Also the statements that create the tables."""
    for table, statement in store.SCHEMA.items():
        assert f"`{table}`" in PAGE
        assert statement.replace(table, "documents", 1) in PAGE
    for name in (database.DATABASE, database.HEAD, database.LOCK, store.SEGMENT.format(1)):
        assert f"`{name}`" in PAGE


def test_the_page_states_the_limits_of_the_program() -> None:
    for number in (writer.FLUSH_DOCUMENTS, writer.MAX_DOCUMENTS, view.REMOVED_NUMBERS, store.CHECKPOINT_PAGES):
        assert f"{number:,}" in PAGE
    assert f"A row of {view.REMOVED_NUMBERS // 8:,} bytes" in PAGE
    assert "pages of 4,096 bytes" in PAGE
    assert (FROZEN / "text.mw" / "index.db").read_bytes()[16:18] == (4096).to_bytes(2, "big")
    assert "four or more" in PAGE
    assert writer.FANOUT == 4
    assert "a tenth of the pages" in PAGE
    assert store.MIN_FREE_SHARE == 0.1
