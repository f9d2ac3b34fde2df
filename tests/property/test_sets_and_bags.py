"""Sets, bags and groups: similarities computed by hand, any order of rows, and swapping sets and items twice."""

import random
from collections import Counter, defaultdict
from itertools import combinations
from typing import Any

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

import minwise as mw
from minwise.inputs.elements import MAX_ELEMENTS, build_sets, hash_values, mix_hashes
from minwise.inputs.records import RecordFields, parse_fields
from minwise.reference.hashing import mix

items = st.one_of(st.integers(0, 12), st.sampled_from(["a", "b", "Ä", "a b", "3"]))
counts = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 6), max_size=8)
memberships = st.lists(
    st.tuples(st.sampled_from(["ann", "bob", "cy", "dee"]), st.integers(0, 9), st.integers(0, 4)), max_size=40
)
# For tests that take a whole run, or six.
FEW = 20
# So low that every pair with a common element reaches it.
EVERY: dict[str, Any] = {"threshold": 0.0001, "exact": True}


def weighted(left: Counter[Any], right: Counter[Any]) -> float:
    """Return Σmin/Σmax, by definition."""
    names = left | right
    most = sum(max(left[name], right[name]) for name in names)
    return sum(min(left[name], right[name]) for name in names) / most if most else 0.0


def similar(groups: dict[Any, Counter[Any]]) -> dict[tuple[Any, Any], float]:
    """Return every pair of groups with a common element, in order."""
    pairs = {(one, other): weighted(groups[one], groups[other]) for one, other in combinations(sorted(groups), 2)}
    return {pair: value for pair, value in pairs.items() if value > 0}


def found(table: pa.Table) -> dict[tuple[Any, Any], float]:
    """Return the pairs of a result."""
    return {(row["left"], row["right"]): row["similarity"] for row in table.to_pylist()}


@given(left=counts, right=counts)
@example(left={}, right={})
@example(left={"a": 3}, right={"a": 5, "b": 1})
def test_expansion_is_sum_of_minima_over_sum_of_maxima(left: dict[str, int], right: dict[str, int]) -> None:
    """Exactly: both are quotients of the same integers."""
    names, times = [*left, *right], [*left.values(), *right.values()]
    owners = pa.array([0] * len(left) + [1] * len(right), pa.int64()).to_numpy()
    made, reasons = build_sets(owners, hash_values(names, 1), pa.array(times, pa.int64()).to_numpy(), 2)
    sets = mw.ShingleSets(made.offsets.to_numpy(), made.values.to_numpy())
    assert reasons == {}
    assert mw.jaccard(sets[0], sets[1]) == weighted(Counter(left), Counter(right))


@settings(max_examples=FEW)
@given(st.lists(st.lists(items, max_size=8), max_size=8))
def test_bags_in_memory(baskets: list[list[Any]]) -> None:
    """A list of lists is a list of bags; 3 and "3" differ."""
    groups = {number: Counter((type(item), item) for item in basket) for number, basket in enumerate(baskets)}
    assert found(mw.pairs(baskets, shingle="set", bag=True, **EVERY)) == similar(groups)


@settings(max_examples=FEW)
@given(memberships, st.randoms(use_true_random=False))
def test_groups_do_not_depend_on_the_order_of_rows(rows: list[tuple[str, int, int]], shuffler: random.Random) -> None:
    """Sets, bags by repetition and bags by weight, each as computed by hand."""
    shuffled = [*rows]
    shuffler.shuffle(shuffled)
    weights: list[dict[str, Any]] = (
        [{"weight": "times"}] if any(times for *_, times in rows) else []
    )  # 0 alone is refused
    for options in ({}, {"bag": True}, *weights):
        groups: dict[str, Counter[Any]] = defaultdict(Counter)
        for user, item, times in rows:
            groups[user][item] += times if "weight" in options else 1
        if not options:
            groups = {user: Counter(dict.fromkeys(group, 1)) for user, group in groups.items()}
        results = [
            mw.pairs(table_of(order), group_by="user", item="movie", **options, **EVERY) for order in (rows, shuffled)
        ]
        assert results[0].equals(results[1])
        assert found(results[0]) == similar(groups)


def table_of(rows: list[tuple[str, int, int]]) -> pa.Table:
    """Return a long table."""
    users, movies, times = zip(*rows, strict=True) if rows else ((), (), ())
    kinds = [("user", pa.string()), ("movie", pa.int64()), ("times", pa.int64())]
    return pa.table([list(users), list(movies), list(times)], schema=pa.schema(kinds))


@settings(max_examples=FEW)
@given(memberships)
def test_transposing_twice_is_the_identity(rows: list[tuple[str, int, int]]) -> None:
    """For a long table, and for lists: swapping users and items twice gives the original."""
    table = table_of(rows)
    users = found(mw.pairs(table, group_by="user", item="movie", **EVERY))
    assert found(mw.pairs(table, group_by="movie", item="user", transpose=True, **EVERY)) == users
    movies = found(mw.pairs(table, group_by="user", item="movie", transpose=True, **EVERY))
    assert found(mw.pairs(table, group_by="movie", item="user", **EVERY)) == movies
    by_user, by_movie = (lists_of(rows, side) for side in (0, 1))
    assert found(mw.pairs([*by_user.values()], shingle="set", transpose=True, **EVERY)) == movies
    assert found(mw.pairs([*by_movie.values()], shingle="set", transpose=True, **EVERY)) == users


def lists_of(rows: list[tuple[str, int, int]], side: int) -> dict[Any, list[Any]]:
    """Return the lists of one side of a long table, each with its values of the other side."""
    lists: dict[Any, list[Any]] = defaultdict(list)
    for row in rows:
        lists[row[side]].append(row[1 - side])
    return lists


@given(st.lists(st.tuples(st.text("abc ", max_size=6), st.text("12-", max_size=5)), min_size=2, max_size=2))
def test_records_weigh_their_fields(rows: list[tuple[str, str]]) -> None:
    """The sum over fields of weight times shared shingles, divided by that of all shingles."""
    weights = {"name": 3, "phone": 2}
    records = RecordFields(fields=parse_fields({"name": "char:2", "phone": "digits:2"}, weights))
    made, _ = records.from_values(rows)
    sets = mw.ShingleSets(made.offsets.to_numpy(), made.values.to_numpy())
    bags: list[Counter[Any]] = []
    for name, phone in rows:
        digits = "".join(filter(str.isdigit, phone))
        fields = zip(weights, mw.Shingler("char:2").shingle([name, digits]), strict=True)
        counts = {(field, element): weights[field] for field, elements in fields for element in elements.tolist()}
        bags.append(Counter(counts))
    assert mw.jaccard(sets[0], sets[1]) == weighted(*bags)


@given(st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_mixing_is_that_of_the_specification(words: list[int]) -> None:
    """Bit for bit, so that bags of sets are the bags of the appendix of DESIGN."""
    array = pa.array(words, pa.uint64()).to_numpy()
    assert mix_hashes(array).tolist() == [mix(word) for word in words]


def test_a_bag_with_too_many_elements_is_rejected() -> None:
    """The reason contains the number; other bags are not affected."""
    owners, hashes = pa.array([0, 1, 1], pa.int64()).to_numpy(), hash_values(["a", "a", "b"], 1)
    made, reasons = build_sets(owners, hashes, pa.array([2, MAX_ELEMENTS, 1], pa.int64()).to_numpy(), 3)
    assert reasons == {1: f"has {MAX_ELEMENTS + 1} elements, more than {MAX_ELEMENTS}"}
    assert [None if items is None else len(items) for items in made.to_pylist()] == [2, None, 0]
