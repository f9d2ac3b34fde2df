"""Sets with weights of their own: sketches, pairs and nearest sets are those of the reference."""

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.expect import error_message
from support.strategies import effort

import minwise as mw
from minwise import _kernel
from minwise.errors import InputError
from minwise.inputs.weights import build_weighted_sets, own_keys
from minwise.reference.nearest import nearest_sets
from minwise.reference.weighting import (
    HELD_ONE,
    held_sketch,
    held_weight,
    min_max_similarity,
    rarity_weight,
    table_counts,
    table_slot,
)
from minwise.sketches.frequencies import table_bits

Bag = dict[int, float]
Held = dict[int, int]

# 200 bands of one slot miss a pair of similarity 0.3 with a probability of 0.7²⁰⁰ < 10⁻³⁰.
SURE: dict[str, Any] = {"bands": 200, "rows": 1}
TABLE: dict[str, Any] = {"shingle": "set", "text_column": "items", "weight": "weights"}
EQUAL = np.zeros(2, dtype=np.uint32)

weights = st.one_of(
    st.floats(0.001, 1000, allow_nan=False), st.integers(1, 1000).map(float), st.sampled_from([0.25, 0.5, 1.5])
)
bags = st.lists(st.dictionaries(st.integers(0, 30), weights, max_size=12), min_size=1, max_size=20)


def rows_of(sets: list[Bag]) -> list[dict[str, Any]]:
    """Return sets as rows of a table, with two columns of lists."""
    return [{"items": list(one), "weights": list(one.values())} for one in sets]


def held(sets: list[Bag]) -> list[Held]:
    return [{item: held_weight(weight) for item, weight in one.items()} for one in sets]


def true_pairs(sets: list[Bag], threshold: float) -> dict[tuple[int, int], float]:
    found, values = {}, held(sets)
    for right, second in enumerate(values):
        for left, first in enumerate(values[:right]):
            similarity = min_max_similarity(first, second)
            if similarity >= threshold:
                found[left, right] = similarity
    return found


def pairs_of(table: Any) -> dict[tuple[Any, Any], float]:  # noqa: ANN401 - a table of pairs
    return {(row["left"], row["right"]): list(row.values())[-1] for row in table.to_pylist()}


def elements_of(one: Bag) -> tuple[np.ndarray, Held]:
    """Return the elements of a set, and the weights that they hold by their keys."""
    hashes = np.array([hash_of(item) for item in one], dtype=np.uint64)
    owners = np.zeros(len(one), dtype=np.int64)
    built, reasons = build_weighted_sets(owners, hashes, np.array(list(one.values()), dtype=np.float64), 1)
    assert not reasons
    elements = np.array(built[0].as_py(), dtype=np.uint64)
    by_key = dict(zip(own_keys(hashes).tolist(), (held_weight(weight) for weight in one.values()), strict=True))
    return elements, by_key


def hash_of(item: int) -> int:
    return int(mw.ShingleSets.from_sets([[item]])[0][0])


@effort(1)
@given(one=st.dictionaries(st.integers(0, 2**62), weights, max_size=30))
@example(
    one={1: 1000.0, 2: 0.001, 3: 2097151 / 2**22}
)  # the last has 21 digits, and is rounded to 20 ones and one more
def test_elements_hold_the_weights_of_the_reference(one: Bag) -> None:
    elements, by_key = elements_of(one)
    assert elements.tolist() == sorted(elements.tolist())
    found = _kernel.Weights(EQUAL, 1, 1, None, True).of(elements) * HELD_ONE
    assert dict(zip(own_keys(elements).tolist(), found.tolist(), strict=True)) == by_key
    assert all(
        math.isclose(
            by_key[own_keys(np.array([hash_of(i)], dtype=np.uint64)).tolist()[0]] / HELD_ONE, weight, rel_tol=2e-4
        )
        for i, weight in one.items()
    )


@effort(1)
@given(
    one=st.dictionaries(st.integers(0, 2**62), weights, max_size=8),
    slots=st.sampled_from([1, 2, 3, 16, 63, 64, 100]),
    seed=st.integers(0, 9),
)
@example(one={}, slots=4, seed=1)
@example(one={0: 0.001}, slots=100, seed=1)
@example(one={0: 0.0039062, 1: 0.00391, 2: 1000.0}, slots=64, seed=1)
def test_sketches_equal_the_reference(one: Bag, slots: int, seed: int) -> None:
    elements, by_key = elements_of(one)
    scale = _kernel.Weights(EQUAL, 1, 1, None, True)
    sketcher = _kernel.Sketcher(scheme="fast", slots=slots, seed=seed, weights=scale)
    row = np.zeros((1, slots), dtype=np.uint64)
    sketcher.sketch_sets(np.array([0, len(elements)], dtype=np.int64), elements, row, None, 1)
    assert row[0].tolist() == held_sketch(by_key, slots, seed).tolist()


@effort(1)
@given(sets=bags, threshold=st.sampled_from([0.3, 0.5, 0.8, 1.0]), exact=st.booleans())
@example(sets=[{1: 0.5, 2: 1.5}, {1: 0.5, 2: 1.0}, {1: 0.5, 2: 1.5}], threshold=0.3, exact=False)
@example(sets=[{}, {1: 1.0}, {1: 0.3}, {1: 0.3, 2: 0.001}], threshold=0.3, exact=True)
def test_pairs_are_those_of_comparing_all_with_all(sets: list[Bag], threshold: float, exact: bool) -> None:
    found_by: dict[str, Any] = {"exact": True} if exact else SURE
    found = pairs_of(mw.pairs(rows_of(sets), threshold=threshold, **TABLE, **found_by))
    assert found == true_pairs(sets, threshold)


@effort(1)
@given(sets=bags, top=st.integers(1, 4))
def test_the_nearest_are_those_of_comparing_all_with_all(sets: list[Bag], top: int) -> None:
    found = [tuple(row.values()) for row in mw.nearest(rows_of(sets), top=top, **TABLE).to_pylist()]
    values, expected = held(sets), []
    for left, first in enumerate(values):
        others = [(-min_max_similarity(first, second), right) for right, second in enumerate(values) if right != left]
        near = [one for one in sorted(others) if one[0] < 0][:top]
        expected += [(left, right, -value, rank) for rank, (value, right) in enumerate(near, 1)]
    assert found == expected


@effort(1)
@given(sets=bags, threshold=st.sampled_from([0.3, 0.6]), exact=st.booleans())
def test_a_discount_multiplies_the_weights(sets: list[Bag], threshold: float, exact: bool) -> None:
    found_by: dict[str, Any] = {"exact": True} if exact else SURE
    found = pairs_of(mw.pairs(rows_of(sets), threshold=threshold, discount="common", **TABLE, **found_by))
    values = [elements_of(one)[1] for one in sets]
    distinct = {tuple(sorted(one.items())) for one in values if one}
    bits = table_bits(sum(map(len, distinct)))
    counts = table_counts([dict(one) for one in distinct], bits)

    def discounted(one: Held) -> Held:
        rarity = {key: rarity_weight(int(counts[table_slot(key, bits)]), len(distinct)) for key in one}
        return {key: max(1, weight * rarity[key] >> 20) for key, weight in one.items()}

    expected = {}
    for right, second in enumerate(values):
        for left, first in enumerate(values[:right]):
            similarity = min_max_similarity(discounted(first), discounted(second))
            if similarity >= threshold:
                expected[left, right] = similarity
    assert found == expected


def some_bags(count: int, seed: int) -> list[Bag]:
    rng = random.Random(seed)
    families = [{rng.randrange(400): rng.choice([0.3, 1.7, 2.5, 40.0]) for _ in range(30)} for _ in range(count // 5)]
    return [
        {item: weight * rng.uniform(0.8, 1.2) for item, weight in rng.choice(families).items() if rng.random() < 0.9}
        for _ in range(count)
    ]


def test_rows_of_one_item_and_lists_give_the_same_pairs_in_every_order(tmp_path: Path) -> None:
    sets = some_bags(60, 3)
    expected = pairs_of(mw.pairs(rows_of(sets), threshold=0.5, exact=True, **TABLE))
    assert len(expected) > 30
    rows = [{"user": user, "item": item, "w": weight} for user, one in enumerate(sets) for item, weight in one.items()]
    for seed in range(2):
        random.Random(seed).shuffle(rows)
        table = mw.pairs(rows, group_by="user", item="item", weight="w", threshold=0.5, exact=True)
        assert pairs_of(table) == expected
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    found = mw.pairs(tmp_path / "rows.parquet", group_by="user", item="item", weight="w", threshold=0.5, exact=True)
    assert pairs_of(found) == expected


def test_weights_of_rows_are_rounded_and_added_in_any_order() -> None:
    part = 5000.4 / HELD_ONE  # three of them are 15,000 units, and 15,001 if they were rounded after adding them up
    rows = [{"user": "u", "item": "a", "w": part} for _ in range(3)]
    rows += [{"user": "v", "item": "a", "w": 1.5}, {"user": "u", "item": "b", "w": 1}]
    expected = min_max_similarity({1: 15_000, 2: HELD_ONE}, {1: held_weight(1.5)})
    for seed in range(3):
        random.Random(seed).shuffle(rows)
        found = mw.pairs(rows, group_by="user", item="item", weight="w", threshold=0.001, exact=True)
        assert pairs_of(found) == {("u", "v"): expected}


def test_whole_weights_in_a_real_column_are_counts() -> None:
    rows = [{"user": user, "item": item, "w": float(item % 3 + user % 2)} for user in range(20) for item in range(12)]
    rows += [{"user": user, "item": 99, "w": 2000.0} for user in (0, 1)]  # more than a weight that is not a count
    counted = [{**row, "w": int(row["w"])} for row in rows]
    options: dict[str, Any] = {"group_by": "user", "item": "item", "weight": "w", "threshold": 0.6}
    assert mw.pairs(rows, **options).to_pylist() == mw.pairs(counted, **options).to_pylist()


def test_weights_of_items_hold_in_every_set() -> None:
    sets = [["tea", "milk", "tea"], ["tea", "jam"], ["milk", "jam", "tea"]]
    weights = {"tea": 2.5, "milk": 0.25}
    values = [{"tea": 2.5, "milk": 0.25}, {"tea": 2.5, "jam": 1.0}, {"milk": 0.25, "jam": 1.0, "tea": 2.5}]
    scaled = [{item: round(weight * 4) for item, weight in one.items()} for one in values]
    expected = {
        (left, right): min_max_similarity(scaled[left], scaled[right]) for left, right in [(0, 1), (0, 2), (1, 2)]
    }
    assert pairs_of(mw.pairs(sets, shingle="set", weights=weights, threshold=0.1, **SURE)) == expected
    assert pairs_of(mw.pairs(sets, shingle="set", weights="tea=2.5 milk=0.25", threshold=0.1, **SURE)) == expected
    assert pairs_of(mw.pairs(sets, shingle="set", weights=weights, threshold=0.1, seed=9, **SURE)) == expected
    nearest = nearest_sets([frozenset(one) for one in sets], top=1, weight=lambda item: int(weights.get(item, 1) * 4))
    found = mw.nearest(sets, shingle="set", weights=weights, top=1).to_pylist()
    assert [tuple(row.values()) for row in found] == nearest
    bag = mw.pairs(sets[:2], shingle="set", bag=True, weights=weights, threshold=0.1, **SURE)
    assert pairs_of(bag) == {(0, 1): 2.5 / (5 + 0.25 + 1)}


def test_numbers_as_names_weigh_numbers_and_strings() -> None:
    for sets in ([[1, 2], [1, 3]], [["1", "2"], ["1", "3"]]):
        assert pairs_of(mw.pairs(sets, shingle="set", weights="1=3", threshold=0.1, **SURE)) == {(0, 1): 0.6}
    assert pairs_of(mw.pairs([[1, 2], [1, 3]], shingle="set", weights={1: 3}, threshold=0.1, **SURE)) == {(0, 1): 0.6}


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([2, -1.5], "w must be 0 or a number from 0.001 to 1000, got -1.5"),
        ([2, math.nan], "w must be 0 or a number from 0.001 to 1000, got nan"),
        ([2, math.inf], "w must be 0 or a number from 0.001 to 1000, got inf"),
        ([0.0, 0.0], "w must not be 0 for every item of a set"),
        ([1.5], "w must be a list of numbers, one for each item, got 1 for 2"),
        ([1.5, None], "w must be 0 or a number from 0.001 to 1000, got None"),
    ],
)
def test_a_set_with_bad_weights_is_refused_in_one_line(weights: list[Any], message: str) -> None:
    rows = [{"items": ["a", "b"], "w": [1.5, 2.0]}, {"items": ["a", "b"], "w": weights}]
    told = error_message(InputError, lambda: mw.pairs(rows, shingle="set", text_column="items", weight="w"))
    assert told == f"set 1: {message}"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-0.5, "got -0.5"),
        (math.nan, "got nan"),
        (math.inf, "got inf"),
        (1e-9, "got 1e-09"),
    ],
)
def test_a_row_with_a_bad_weight_is_refused_in_one_line(value: float, message: str) -> None:
    rows = [{"user": "u", "item": "a", "w": 1.5}, {"user": "v", "item": "a", "w": value}]
    told = error_message(InputError, lambda: mw.pairs(rows, group_by="user", item="item", weight="w"))
    rule = "w must be a whole number from 0 to 16777216, or a number from 0.001 to 1000"
    assert told == f"row 1: {rule}, {message}; set on_error='quarantine' to skip such rows"


def test_weights_of_zero_alone_are_refused() -> None:
    rows = [{"user": user, "item": "a", "w": 0.0} for user in "uv"]
    told = error_message(InputError, lambda: mw.pairs(rows, group_by="user", item="item", weight="w"))
    assert told == "weight must be above 0 in at least one row, got 0 in all 2 rows"


def test_a_sum_of_weights_that_no_element_can_hold_is_a_fault_of_its_group() -> None:
    rows = [{"user": user, "item": "a", "w": weight} for user, weight in [("u", 800.5), ("u", 300.0), ("v", 1.5)]]
    rows.append({"user": "w", "item": "a", "w": 1.5})
    told = error_message(InputError, lambda: mw.pairs(rows, group_by="user", item="item", weight="w"))
    assert "group u has an item whose weights add up to less than 0.001 or more than 1000" in told
    options: dict[str, Any] = {"group_by": "user", "item": "item", "weight": "w", "threshold": 0.5}
    found = mw.pairs(rows, on_error="quarantine", **options).to_pylist()
    assert found == [{"left": "v", "right": "w", "similarity": 1.0}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": {"a": -1}}, "weights of a must be numbers from 0.001 to 1000, got -1"),
        ({"weights": {"a": math.nan}}, "weights of a must be numbers from 0.001 to 1000, got nan"),
        ({"weights": {"a": math.inf}}, "weights of a must be numbers from 0.001 to 1000, got inf"),
        ({"weights": {"a": 0}}, "weights of a must be numbers from 0.001 to 1000, got 0"),
        ({"weights": {1.5: 2}}, "weights must be of items, whole numbers or strings, got 1.5"),
        (
            {"weights": [[1, 2]]},
            "weights must be a string or a mapping, got [[1, 2]]; give the weights of each set in a"
            " column that weight names",
        ),
        (
            {"weights": {"a": 2}, "verify": "none"},
            "verify must be exact with weights that are not whole numbers, got 'none'",
        ),
        (
            {"weights": {"a": 2}, "measure": "containment"},
            "measure must be jaccard with weights that are not whole numbers, got 'containment'",
        ),
        ({"weights": {"a": 2}, "transpose": True}, "weights must be left out with transpose, got {'a': 2}"),
        ({"weight": "w"}, "weight must be a column of a table, got 'w' with sets that have none"),
    ],
)
def test_settings_that_contradict_weights_are_refused(options: dict[str, Any], message: str) -> None:
    call = lambda: mw.pairs([["a", "b"], ["a"]], shingle="set", **options)  # noqa: E731
    assert error_message(mw.MinwiseError, call) == message
