"""Signatures: sequence of rows, merging, and estimates."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.expect import error_message
from support.schemes import PACKED, WHOLE, every_scheme, name_of

import minwise as mw
from minwise.errors import ConfigError, InputError, MismatchError
from minwise.sketches import Estimate, OnePermutation, Signatures
from minwise.sketches.schemes import Scheme

# |X| = 600, |Y| = 500, 400 shared of 700; and two empty ones.
LEFT, RIGHT = range(600), range(200, 700)
SHARED, UNION = 400, 700
SETS = mw.ShingleSets.from_sets([LEFT, RIGHT, [], range(10_000, 10_300), []])

merging_schemes = pytest.mark.parametrize("scheme", WHOLE[:3], ids=name_of)


@every_scheme
def test_signatures_are_a_sequence(scheme: Scheme) -> None:
    signatures = scheme.sketch(SETS)
    assert len(signatures) == 5
    rows: Any = signatures
    assert len(list(rows)) == 5
    np.testing.assert_array_equal(signatures[-1], signatures[4])
    assert repr(signatures).startswith(f"Signatures(5 documents, scheme={scheme.settings.scheme!r}, slots=64")
    with pytest.raises(IndexError, match="no document 5 among 5"):
        signatures[5]
    with pytest.raises(IndexError, match="no document -6 among 5"):
        signatures[-6]


# Merging.


@merging_schemes
def test_merged_signatures_are_those_of_the_unions(scheme: Scheme) -> None:
    """sketch(A) | sketch(B) == sketch(A ∪ B), empty sets included, exactly."""
    left, right = [LEFT, [], [1], []], [RIGHT, [5], [], []]
    union = [{*a, *b} for a, b in zip(left, right, strict=True)]
    a, b, both = (scheme.sketch(mw.ShingleSets.from_sets(sets)) for sets in (left, right, union))
    np.testing.assert_array_equal((a | b).slots, both.slots)
    np.testing.assert_array_equal((a | b).empty, both.empty)
    assert (a | b).sizes is None


SMALL = mw.ShingleSets.from_sets([[1, 2, 3]])
WORDS = mw.Shingler("word:2")
FAST = mw.FastSketch(slots=16)

UNLIKE: dict[str, tuple[Signatures, Signatures, tuple[str, ...]]] = {
    "scheme": (FAST.sketch(SMALL), mw.MinHash(slots=16).sketch(SMALL), ("scheme", "'fast'", "'minhash'")),
    "slots": (FAST.sketch(SMALL), mw.FastSketch(slots=32).sketch(SMALL), ("slots", "16", "32")),
    "seed": (FAST.sketch(SMALL), mw.FastSketch(slots=16, seed=9).sketch(SMALL), ("seed", "1", "9")),
    "bits": (FAST.sketch(SMALL), FAST.bbit(8).sketch(SMALL), ("bits", "None", "8")),
    "densify": (
        OnePermutation(bins=16, densify="rotation").sketch(SMALL),
        OnePermutation(bins=16, densify="optimal").sketch(SMALL),
        ("densify", "'rotation'", "'optimal'"),
    ),
    "shingle": (
        FAST.sketch_texts(["a"], WORDS),
        FAST.sketch_texts(["a"], mw.Shingler("char:9")),
        ("shingle", "'word:2'", "'char:9'"),
    ),
    "normalisation": (
        FAST.sketch_texts(["a"], WORDS),
        FAST.sketch_texts(["a"], replace(WORDS, lowercase=False)),
        ("lowercase", "True", "False"),
    ),
    "texts and sets": (FAST.sketch_texts(["a"], WORDS), FAST.sketch(SMALL), ("shingle", "'word:2'", "'set'")),
    "seed of sets": (
        FAST.sketch(SMALL),
        FAST.sketch(mw.ShingleSets.from_sets([[1]], seed=4)),
        ("seed", "1", "4"),
    ),
}


@pytest.mark.parametrize("kind", UNLIKE)
def test_signatures_of_different_settings_are_neither_merged_nor_compared(kind: str) -> None:
    """The message contains the setting and both values, in either order."""
    left, right, parts = UNLIKE[kind]
    calls: list[Callable[[], object]] = [
        lambda: left | right,
        lambda: right | left,
        lambda: left.estimate(0, 0, other=right),
        lambda: right.estimate_many([(0, 0)], other=left),
    ]
    for call in calls:
        message = error_message(MismatchError, call)
        assert all(part in message for part in parts), message


def test_different_numbers_of_rows_are_not_merged() -> None:
    one, two = FAST.sketch(SMALL), FAST.sketch(mw.ShingleSets.from_sets([[1], [2]]))
    assert error_message(MismatchError, lambda: one | two) == "merged signatures must have as many rows, got 1 and 2"


@pytest.mark.parametrize("scheme", [*WHOLE[3:], *PACKED], ids=name_of)
def test_densified_and_packed_signatures_are_not_merged(scheme: Scheme) -> None:
    signatures = scheme.sketch(SMALL)
    message = error_message(ConfigError, lambda: signatures | signatures)
    name = "densify" if scheme.settings.densify else "bits"
    assert message.startswith(f"{name} must be None for signatures that are merged, got ")
    assert repr(getattr(scheme.settings, name)) in message


def test_merging_with_another_type_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        FAST.sketch(SMALL) | 5  # type: ignore[operator]


# Estimates.


@every_scheme
def test_intervals_contain_the_exact_values(scheme: Scheme) -> None:
    """At a confidence of 0.9999 the interval contains the true value; the seed is fixed.

    The interval does not allow for copied values in densified bins; with 64 bins and 700 elements hardly one is empty:
    64·(63/64)⁷⁰⁰ = 0.001.
    """
    signatures = scheme.sketch(SETS)
    exact = {
        "estimate": SHARED / UNION,
        "intersection": SHARED,
        "containment": SHARED / len(LEFT),
        "hamming": UNION - SHARED,
    }
    for name, truth in exact.items():
        found: Estimate = getattr(signatures, name)(0, 1, confidence=0.9999)
        assert found.low <= truth <= found.high, name
        assert found.low <= found.value <= found.high, name
        assert found.confidence == 0.9999


@every_scheme
def test_estimates_of_equal_and_of_disjoint_sets(scheme: Scheme) -> None:
    """Equal sets agree in every slot: exactly 1. Disjoint sets agree in bits only by chance."""
    signatures = scheme.sketch(SETS)
    assert signatures.estimate(1, 1).value == 1
    assert signatures.intersection(1, 1).value == pytest.approx(len(RIGHT))
    assert signatures.hamming(1, 1).value == 0
    assert signatures.containment(1, 1).value == 1
    assert signatures.estimate(0, 3, confidence=0.9999).low < 0.01
    if scheme.bits is None:
        assert signatures.estimate(0, 3).value == 0


@every_scheme
def test_estimates_of_empty_documents(scheme: Scheme) -> None:
    """The similarity is 0, and the distance is the size of the other document."""
    signatures = scheme.sketch(SETS)
    for pair in ((0, 2), (2, 0), (2, 2), (2, 4)):
        for measure in (signatures.estimate, signatures.intersection, signatures.containment):
            found = measure(*pair)
            assert (found.low, found.value, found.high) == (0, 0, 0)
    assert signatures.hamming(0, 2).value == len(LEFT)
    assert signatures.hamming(2, 4).value == 0


@every_scheme
def test_estimate_many_equals_single_estimates(scheme: Scheme) -> None:
    """In the order of the pairs, within one collection and across two."""
    signatures = scheme.sketch(SETS)
    other = scheme.sketch(mw.ShingleSets.from_sets([RIGHT, LEFT]))
    pairs = [(left, right) for left in range(5) for right in range(2)]
    assert list(signatures.estimate_many(pairs)) == [signatures.estimate(*pair) for pair in pairs]
    across = signatures.estimate_many(pairs, other=other)
    assert list(across) == [signatures.estimate(*pair, other=other) for pair in pairs]
    assert across[0] == signatures.estimate(0, 1)


@pytest.mark.parametrize(
    "pairs",
    [
        [(0, 1), (1, 0)],
        np.array([[0, 1], [1, 0]], dtype=np.uint8),
        np.asfortranarray(np.array([[0, 1], [1, 0]])),
        np.array([[0, 9, 1], [1, 9, 0]])[:, ::2],
    ],
    ids=["list", "narrow", "columns first", "strided"],
)
def test_pairs_in_any_layout(pairs: Any) -> None:  # noqa: ANN401 - anything like an array
    signatures = FAST.sketch(SETS)
    assert list(signatures.estimate_many(pairs)) == [signatures.estimate(0, 1), signatures.estimate(1, 0)]


def test_no_pairs_give_no_estimates() -> None:
    """Also for signatures of no documents."""
    for signatures in (FAST.sketch(SETS), FAST.sketch_texts([]), FAST.bbit(1).sketch_texts([])):
        assert len(signatures.estimate_many([])) == 0
        assert len(signatures.estimate_many(np.empty((0, 2), dtype=np.int64))) == 0


@every_scheme
@pytest.mark.parametrize(("pair", "number"), [((0, 5), 5), ((5, 0), 5), ((0, -1), -1), ((2**62, 0), 2**62)], ids=str)
def test_unknown_document_numbers_are_refused(scheme: Scheme, pair: tuple[int, int], number: int) -> None:
    """By every measure; negative numbers do not count from the end here."""
    signatures = scheme.sketch(SETS)
    for measure in (signatures.estimate, signatures.intersection, signatures.containment, signatures.hamming):
        message = error_message(InputError, lambda measure=measure: measure(*pair))  # type: ignore[misc]
        assert message == f"pairs: no document {number} among 5"


@pytest.mark.parametrize("number", [2**63, 2**64, 2**70, -(2**70)])
def test_numbers_beyond_64_bits_are_refused(number: int) -> None:
    assert str(number) in error_message(InputError, lambda: FAST.sketch(SETS).estimate(0, number))


@pytest.mark.parametrize(
    "pairs",
    [[(0,)], [(0, 1, 2)], [0, 1], [[0.0, 1.0]], "ab", None, {(0, 1)}, [("a", "b")], [(0, 1), (0,)], [(True, False)]],
    ids=str,
)
def test_invalid_pairs_are_refused(pairs: Any) -> None:  # noqa: ANN401 - anything
    message = error_message(InputError, lambda: FAST.sketch(SETS).estimate_many(pairs))
    assert message.startswith("pairs must be two columns of document numbers, got")


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 1.5, float("nan"), "0.9", None])
def test_invalid_confidence_is_refused(confidence: Any) -> None:  # noqa: ANN401 - anything
    """By every measure."""
    signatures = FAST.sketch(SETS)
    for measure in (signatures.estimate, signatures.intersection):
        message = error_message(ConfigError, lambda measure=measure: measure(0, 1, confidence=confidence))  # type: ignore[misc]
        assert message.startswith("confidence must be between 0 and 1, both excluded, got")


def test_estimates_with_another_type_are_refused() -> None:
    other: Any = SETS
    assert "ShingleSets" in error_message(InputError, lambda: FAST.sketch(SETS).estimate(0, 0, other=other))


@pytest.mark.parametrize("name", ["intersection", "containment", "hamming"])
def test_measures_without_sizes_are_refused(name: str) -> None:
    """With the remedy; merged signatures have no sizes either."""
    counted = FAST.sketch(SETS)
    for signatures in (FAST.sketch_texts(["a", "b"]), counted | counted):
        message = error_message(ConfigError, lambda s=signatures: getattr(s, name)(0, 1))  # type: ignore[misc]
        assert message.startswith("sizes must be counted for this estimate: sketch with sizes=True")
