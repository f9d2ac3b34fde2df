"""Frozen indexes of sets and records: read with the same content, written with the same bytes, as specified."""

import json
import shutil
import struct
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from freeze_index import DOCUMENTS, FROZEN_SETS, KINDS, make_sets, set_contents
from support.plain_index import NO_KEY, PlainIndex

import minwise as mw
from minwise import reference
from minwise.index.settings import SETS_VERSION
from minwise.reference.banding import band_keys
from minwise.reference.hashing import mix

GOLDEN = 0x9E3779B97F4A7C15
PAGE = (Path(__file__).parents[2] / "docs" / "index-format.md").read_text(encoding="utf-8")
PROBE = PAGE.split("```text\n", 1)[1].split("\n", 1)[0]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def hash_of(item: int | str, seed: int) -> int:
    return reference.hash_item(item, seed)


def expand(counts: dict[int, int]) -> list[int]:
    """Return the elements of a bag: the i-th further occurrence of an element is one of its own."""
    copies = chain.from_iterable([(element, i) for i in range(count)] for element, count in counts.items())
    return sorted(mix((element + i * GOLDEN) % 2**64) if i else element for element, i in copies)


def elements_of(document: Any, settings: dict[str, Any]) -> list[int]:  # noqa: ANN401 - a set or a record
    """Return the elements of a set or record, as the page specifies them."""
    seed = settings["seed"]
    counts: dict[int, int] = {}
    if "fields" not in settings:
        for item in document:
            counts[hash_of(item, seed)] = counts.get(hash_of(item, seed), 0) + 1
        return expand(counts)
    for name, kind in settings["fields"].items():
        text = "" if document[name] is None else str(document[name])
        text = "".join(filter("0123456789".__contains__, text)) if kind.startswith("digits") else text
        spec = "char:10000" if kind == "whole" else kind.replace("digits", "char")
        for shingle in reference.shingle_hashes(text, spec, seed=seed):
            counts[mix(int(shingle) ^ hash_of(name, seed))] = settings["weights"][name]
    return expand(counts)


def keys_of(elements: list[int], settings: dict[str, Any]) -> list[int]:
    bands, rows, seed = (settings[name] for name in ("bands", "rows", "seed"))
    return band_keys(reference.fast_sketch(elements, bands * rows, seed), bands, rows, seed)


def test_a_frozen_index_has_the_same_documents_and_answers(kind: str, tmp_path: Path) -> None:
    path = shutil.copytree(FROZEN_SETS / f"{kind}.mw", tmp_path / "frozen.mw")
    with mw.Index.open(path, "w") as index:
        assert set_contents(index, kind) == json.loads((FROZEN_SETS / f"{kind}.json").read_text(encoding="utf-8"))
        assert index.verify() == []
        index.remove([0])
        index.compact()
        assert [hit.id for hit in index.query(DOCUMENTS[kind][1])] == [1]
    assert PlainIndex(path).settings["version"] == SETS_VERSION == 3


def test_same_calls_write_the_same_bytes(kind: str, tmp_path: Path) -> None:
    make_sets(tmp_path / "again.mw", kind)
    original = FROZEN_SETS / f"{kind}.mw"
    assert PlainIndex(tmp_path / "again.mw").records == PlainIndex(original).records
    assert (tmp_path / "again.mw" / "head").read_bytes() == (original / "head").read_bytes()
    segment = "segment-00000001.post"
    assert (tmp_path / "again.mw" / segment).read_bytes() == (original / segment).read_bytes()


def test_bodies_and_postings_are_those_of_the_page(kind: str) -> None:
    plain = PlainIndex(FROZEN_SETS / f"{kind}.mw")
    expected: set[tuple[int, int]] = set()
    for number, document in plain.documents.items():
        elements = elements_of(DOCUMENTS[kind][number], plain.settings)
        assert document.body == struct.pack(f"<{len(elements)}Q", *elements)
        expected |= {(key, number) for key in keys_of(elements, plain.settings) if key != NO_KEY}
    assert next(iter(plain.postings())) == expected


def test_fingerprint(kind: str) -> None:
    plain = PlainIndex(FROZEN_SETS / f"{kind}.mw")
    probe = dict.fromkeys(plain.settings.get("fields", ()), PROBE) or [*PROBE.split(), 1891]
    elements = elements_of(probe, plain.settings)
    content = struct.pack(f"<{plain.settings['bands']}Q", *keys_of(elements, plain.settings))
    assert plain.fingerprint == reference.hash_item(content + struct.pack(f"<{len(elements)}Q", *elements), 0)


def test_the_page_names_every_setting(kind: str) -> None:
    section = PAGE.split("Settings of version 3", 1)[1].split("\n#", 1)[0]
    known = {"version", "unicode_version", "threshold", "bands", "rows", "wanted_recall", "scheme", "max_bucket"}
    known |= {"store", "seed", "secret_seed"}
    assert all(f"`{name}`" in section for name in {*PlainIndex(FROZEN_SETS / f"{kind}.mw").settings} - known)
