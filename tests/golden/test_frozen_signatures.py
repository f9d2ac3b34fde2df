"""Frozen values of every hash and every scheme, which detect a change of the format in DESIGN before it reaches a file.

`frozen_signatures.json` was written by `python tests/golden/test_frozen_signatures.py`; numbers are in hexadecimal.
Run it again only together with a new FORMAT_VERSION.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import minwise as mw
from minwise.sketches import OnePermutation
from minwise.sketches.schemes import Scheme
from minwise.sketches.signatures import FORMAT_VERSION
from minwise.text import UNICODE_VERSION

FROZEN = Path(__file__).with_name("frozen_signatures.json")

TEXTS = [
    "The tide table on the harbour wall is older than the wall, and the wall is older than the harbour.",
    "Der Leuchtturmwärter zählt die Schiffe: eins, zwei, drei – und fängt von vorne an, eins, zwei, drei.",
    "灯台の光は、夜の海を静かに照らしている。船は港へ帰る。",
    "Маяк светит всю ночь; Ｆｕｌｌ－ｗｉｄｔｈ and e\u0301 cafe\u0301, ﬁne ½ ①",
    "คลื่นกระทบฝั่ง مدّ وجزر 👩‍🚀🌊 snake_case 3.14",
    "short",
    "",
]
SHINGLERS = {
    "word:5": mw.Shingler("word:5"),
    "char:9": mw.Shingler("char:9"),
    "byte:8": mw.Shingler("byte:8"),
    "word:1 bag": mw.Shingler("word:1", bag=True),
    "char:2 bag, 32 bits": mw.Shingler("char:2", bag=True, hash_bits=32),
    "word:3, 32 bits": mw.Shingler("word:3", hash_bits=32),
    "word:2, seed 99": mw.Shingler("word:2", seed=99),
    "char:4, everything on": mw.Shingler("char:4", strip_accents=True, strip_punctuation=True, mask_digits=True),
    "char:4, everything off": mw.Shingler("char:4", nfkc=False, lowercase=False, collapse_whitespace=False),
}
ITEMS: list[int | str | bytes] = [
    *(0, 1, -1, 3, 255, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63), -(2**63) - 1, 2**200),
    *("", "3", "x", "sixteen bytes ab", "seventeen bytes a", "ß", "港", "🌊"),
    *(b"", b"3", b"\x00", b"\xff" * 33),
]
SCHEMES: dict[str, Scheme] = {
    "minhash": mw.MinHash(slots=256),
    "minhash, seed 99": mw.MinHash(slots=100, seed=99),
    "minhash, 1 bit": mw.MinHash(slots=256).bbit(1),
    "minhash, 8 bits": mw.MinHash(slots=256).bbit(8),
    "fast": mw.FastSketch(slots=256),
    "fast, 7 slots, seed 99": mw.FastSketch(slots=7, seed=99),
    "fast, 4 bits": mw.FastSketch(slots=256).bbit(4),
    "oph": OnePermutation(bins=16),
    "oph, rotation": OnePermutation(bins=64, densify="rotation"),
    "oph, optimal": OnePermutation(bins=64, densify="optimal"),
    "oph, optimal, 16 bits": OnePermutation(bins=64, densify="optimal").bbit(16),
}
# Enough of each row to detect any change; the property tests cover later slots.
KEPT = 8


def hexadecimal(numbers: Iterable[int]) -> str:
    """Return numbers as a line of text."""
    return " ".join(f"{number:x}" for number in numbers)


def shingle_hashes(shingler: mw.Shingler) -> list[str]:
    """Return the number of elements of each text, and the smallest of them."""
    sets = shingler.shingle(TEXTS)
    return [f"{len(sets[number])}: {hexadecimal(sets[number][:KEPT].tolist())}" for number in range(len(sets))]


def item_hashes() -> dict[str, str]:
    """Return the element of each item."""
    sets = mw.ShingleSets.from_sets([[item] for item in ITEMS])
    return {repr(item): hexadecimal(sets[number].tolist()) for number, item in enumerate(ITEMS)}


def first_slots(scheme: Scheme) -> list[str]:
    """Return the first slots of each text, as bytes where they are packed."""
    return [hexadecimal(row[:KEPT].tolist()) for row in scheme.sketch_texts(TEXTS, mw.Shingler("word:2")).slots]


def values() -> dict[str, Any]:
    """Return all values to freeze."""
    return {
        "format_version": FORMAT_VERSION,
        "unicode_version": UNICODE_VERSION,
        "shingles": {name: shingle_hashes(shingler) for name, shingler in SHINGLERS.items()},
        "items": item_hashes(),
        "slots": {name: first_slots(scheme) for name, scheme in SCHEMES.items()},
    }


def frozen() -> dict[str, Any]:
    """Return the frozen values."""
    content: dict[str, Any] = json.loads(FROZEN.read_text(encoding="utf-8"))
    return content


def assert_unchanged(what: str, found: object, expected: object) -> None:
    """Assert that a value is the frozen one; the message contains the remedy."""
    assert found == expected, (
        f"{what} changed: every stored signature is now wrong. Undo the change, or raise FORMAT_VERSION "
        f"(now {FORMAT_VERSION}) and write {FROZEN.name} again"
    )


def test_versions() -> None:
    """The frozen values belong to the current format and Unicode version."""
    assert_unchanged("FORMAT_VERSION without its frozen values", FORMAT_VERSION, frozen()["format_version"])
    assert_unchanged("the Unicode version", UNICODE_VERSION, frozen()["unicode_version"])


@pytest.mark.parametrize("name", SHINGLERS)
def test_shingle_hashes(name: str) -> None:
    """Normalisation, tokens, rolling sum, bags and narrowing."""
    assert_unchanged(f"the shingle hashes of {name}", shingle_hashes(SHINGLERS[name]), frozen()["shingles"][name])


def test_item_hashes() -> None:
    """Integers, strings and bytes."""
    assert_unchanged("the hashes of items", item_hashes(), frozen()["items"])


@pytest.mark.parametrize("name", SCHEMES)
def test_first_slots(name: str) -> None:
    """Every scheme, whole and packed."""
    assert_unchanged(f"the slots of {name}", first_slots(SCHEMES[name]), frozen()["slots"][name])


def test_every_frozen_value_is_tested() -> None:
    content = frozen()
    assert set(content["shingles"]) == set(SHINGLERS)
    assert set(content["slots"]) == set(SCHEMES)


if __name__ == "__main__":
    FROZEN.write_text(json.dumps(values(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
