"""Sets of items from columns with and without types, and the reasons for rows and columns that are rejected."""

import math
from typing import Any

import pyarrow as pa
import pytest

import minwise as mw
from minwise.errors import ConfigError
from minwise.inputs.elements import Elements
from minwise.inputs.items import GroupedItems, ItemLists, ItemSets, SingleValue, split_items
from minwise.inputs.records import Field, RecordFields, parse_fields

ITEMS = ItemSets(column="items")
WEIGHT_RULE = "times must be a whole number from 0 to 16777216, or a number from 0.001 to 1000"
GROUPED = GroupedItems(group="user", item="movie", weight="times")


def sets_of(elements: Elements, column: pa.Array) -> list[list[int] | None]:
    """Return the sets of a column with a type."""
    return list(elements.from_arrow([column])[0].to_pylist())


@pytest.mark.parametrize(
    "column",
    [
        pa.array([["x", "y", "x"], []]),
        pa.array([["x", "y", "x"], []], pa.large_list(pa.large_string())),
        pa.array([["x", "y", "x"], []], pa.list_(pa.string_view())),
        pa.array([["x", "y", "x"], []], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
        pa.array([["no"], ["x", "y", "x"], []]).slice(1),
    ],
    ids=lambda column: str(column.type),
)
def test_lists_of_every_type_give_the_sets_of_sets_given_directly(column: pa.Array) -> None:
    expected = [sorted(hashes.tolist()) for hashes in mw.ShingleSets.from_sets([["x", "y"], []])]
    assert sets_of(ITEMS, column) == expected
    assert ITEMS.type_problem("items", column.type) is None


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint64()], ids=str)
def test_numbers_of_every_width_are_equal_and_differ_from_their_digits(kind: pa.DataType) -> None:
    expected = [sorted(hashes.tolist()) for hashes in mw.ShingleSets.from_sets([[3, 5]])]
    assert sets_of(ITEMS, pa.array([[5, 3]], pa.list_(kind))) == expected
    assert sets_of(ITEMS, pa.array([["5", "3"]])) != expected
    large = pa.array([[2**64 - 1]], pa.list_(pa.uint64()))
    assert sets_of(ITEMS, large) == [mw.ShingleSets.from_sets([[2**64 - 1]])[0].tolist()]


def test_rows_without_types_give_the_same_sets() -> None:
    """Lists as in JSON, and strings as in CSV with a separator; bytes are text."""
    split = ItemSets(column="items", separator=" ")
    made, reasons = split.from_values([[["x", 3]], ["x y"], [b"x y"], None])
    assert split.from_arrow([pa.array(["x y x", "y"])])[0].to_pylist()[0] == made.to_pylist()[1]
    assert split.from_arrow([pa.array(["x y x", "y"]).dictionary_encode()])[0].to_pylist()[0] == made.to_pylist()[1]
    expected = [sorted(hashes.tolist()) for hashes in mw.ShingleSets.from_sets([["x", 3], ["x", "y"], ["x", "y"]])]
    assert made.to_pylist() == [*expected, None]
    assert reasons == {3: ""}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "items is null"),
        (["x", None], "items holds a null item"),
        ([1.5], "items of items must be whole numbers or strings, got float"),
        ([True], "items of items must be whole numbers or strings, got bool"),
        ([["x"]], "items of items must be whole numbers or strings, got list"),
        (5, "items must be a list of items with shingle set, got int"),
        ("x", "items must be a list of items with shingle set, got a string; set separator to split strings"),
        (b"x \xff", "items is not valid UTF-8 at byte 2"),
    ],
)
@pytest.mark.parametrize("elements", [ITEMS, ItemLists(column="items")], ids=["sets", "lists"])
def test_a_value_that_is_not_a_set_has_a_reason(elements: Elements, value: Any, reason: str) -> None:  # noqa: ANN401 - anything
    made, reasons = elements.from_values([[["x"]], [value]])
    assert reasons == {1: reason}
    assert made.is_null().to_pylist() == [False, True]


def test_null_lists_and_null_items_have_a_reason() -> None:
    made, reasons = ITEMS.from_arrow([pa.array([["x"], None, ["x", None], []])])
    assert reasons == {1: "items is null", 2: "items holds a null item"}
    assert made.is_null().to_pylist() == [False, True, True, False]


@pytest.mark.parametrize(
    ("elements", "kind", "problem"),
    [
        (ITEMS, pa.int64(), "x must be a list of items with shingle set, got a column of int64"),
        (ITEMS, pa.string(), "x must be a list of items with shingle set, got a column of string; set separator"),
        (ItemLists(column="x"), pa.string(), "x must be a list of items with shingle set, got a column of string; "),
        (ITEMS, pa.list_(pa.float64()), "items of x must be whole numbers or strings, got a column of list<"),
        (SingleValue(column="x"), pa.float64(), "x must be whole numbers or strings, got a column of double"),
        (GROUPED, pa.list_(pa.int8()), "x must be whole numbers or strings, got a column of list<"),
        (GroupedItems(group="a", item="b", weight="x"), pa.string(), "x must be numbers, got a column of string"),
        (RecordFields(fields=(Field("x", "whole"),)), pa.list_(pa.int8()), "x must be strings, numbers or dates, got"),
    ],
)
def test_columns_of_a_wrong_type_are_rejected(elements: Elements, kind: pa.DataType, problem: str) -> None:
    assert (elements.type_problem("x", kind) or "").startswith(problem)


@pytest.mark.parametrize(
    ("separator", "line", "items"),
    [
        (None, " a  b\tc\n", ["a", "b", "c"]),
        (",", "whole milk, curd ,,\n", ["whole milk", "curd"]),
        ("||", "a b||c|d", ["a b", "c|d"]),
        (",", "  \n", []),
    ],
)
def test_separators_split_items_and_white_space_is_stripped(separator: str | None, line: str, items: list[str]) -> None:
    assert split_items(line, separator) == items
    if separator is not None:
        assert ItemLists(column="items", separator=separator).from_values([[line]])[0].to_pylist() == [items]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ((None, 1, 1), "user is null"),
        (("", 1, 1), "user is empty"),
        (("ann", None, 1), "movie is null"),
        (("ann", "", 1), "movie is empty"),
        (("ann", 1.5, 1), "movie must be whole numbers or strings, got float"),
        (("ann", 1, None), "times is null"),
        (("ann", 1, -1), f"{WEIGHT_RULE}, got -1"),
        (("ann", 1, 1e-4), f"{WEIGHT_RULE}, got 0.0001"),
        (("ann", 1, 1000.5), f"{WEIGHT_RULE}, got 1000.5"),
        (("ann", 1, float("nan")), f"{WEIGHT_RULE}, got nan"),
        (("ann", 1, float("inf")), f"{WEIGHT_RULE}, got inf"),
        (("ann", 1, 2**70), f"{WEIGHT_RULE}, got {2**70}"),
        (("ann", 1, "many"), f"{WEIGHT_RULE}, got many"),
        (("ann", 1, True), f"{WEIGHT_RULE}, got True"),
        ((b"\xff", 1, 1), "user is not valid UTF-8 at byte 0"),
    ],
)
def test_rows_without_a_valid_group_item_or_weight_have_a_reason(row: tuple[Any, ...], reason: str) -> None:
    made, reasons = GROUPED.from_values([("ann", 1, 1), row, (b"ann", b"x", b"2"), ("ann", 7, 3.0)])
    assert reasons == {1: reason}
    assert made.is_null().to_pylist() == [False, True, False, False]
    assert [row["count"] for row in made.to_pylist() if row] == [1, 2, 3]


def test_typed_rows_without_a_valid_group_item_or_weight_have_a_reason() -> None:
    users = pa.array(["ann", None, "", "bob", "bob", "bob"])
    movies = pa.array([1, 1, 1, None, 1, 1])
    times = pa.array([2.0, 1, 1, 1, -1, 1e-4])
    made, reasons = GROUPED.from_arrow([users, movies, times])
    assert reasons == {
        1: "user is null",
        2: "user is empty",
        3: "movie is null",
        4: f"{WEIGHT_RULE}, got -1.0",
        5: f"{WEIGHT_RULE}, got 0.0001",
    }
    assert made.is_null().to_pylist() == [False] + 5 * [True]
    assert made[0].as_py()["count"] == 2


def test_transposed_groups_are_identified_by_the_item() -> None:
    transposed = GroupedItems(group="user", item="movie", transposed=True)
    assert transposed.columns == ("movie", "user")
    made, _ = transposed.from_values([(7, "ann")])
    assert made[0].as_py() == {"key": 7, "element": mw.ShingleSets.from_sets([["ann"]])[0].item(), "count": 1}


@pytest.mark.parametrize(
    ("fields", "weights", "message"),
    [
        ("", None, "fields must be NAME:char:N"),
        ("name", None, "fields must be NAME:char:N"),
        ("name:chars:3", None, "fields must be NAME:char:N"),
        ("name:char:0", None, "fields must be NAME:char:N"),
        ("name:char", None, "fields must be NAME:char:N"),
        (":char:3", None, "fields must be NAME:char:N"),
        ("name:byte:3", None, "fields must be NAME:char:N"),
        ("name:whole:3", None, "fields must be NAME:char:N"),
        ("'name:whole", None, "fields must be NAME:char:N"),
        ("name:whole name:whole", None, "fields must be named once each, got 'name' twice"),
        (5, None, "fields must be a string or a mapping, got 5"),
        ({"name": 3}, None, "fields must be NAME:char:N"),
        ("name:whole", "name", "weights must be NAME=N, separated by spaces, got 'name'"),
        ("name:whole", "nam=2", "weights must be of fields, got 'nam'; fields are: name"),
        ("name:whole", "name=0", "weights of name must be numbers from 0.001 to 1000, got '0'"),
        ("name:whole", "name=-1", "weights of name must be numbers from 0.001 to 1000, got '-1'"),
        ("name:whole", "name=nan", "weights of name must be numbers from 0.001 to 1000, got 'nan'"),
        ("name:whole", "name=two", "weights of name must be numbers from 0.001 to 1000, got 'two'"),
        ("name:whole", {"name": math.inf}, "weights of name must be numbers from 0.001 to 1000, got inf"),
        ("name:whole", {"name": True}, "weights of name must be numbers from 0.001 to 1000, got True"),
    ],
)
def test_wrong_fields_and_weights_are_rejected_in_one_line(fields: Any, weights: Any, message: str) -> None:  # noqa: ANN401 - anything
    with pytest.raises(ConfigError) as caught:
        parse_fields(fields, weights)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_settings_of_fields_can_be_parsed_again() -> None:
    """Sorted by name, names with spaces in quotation marks."""
    records = RecordFields(fields=parse_fields({"sur name": "char:3", "b": "digits"}, {"sur name": 2}), bag=True)
    assert records.settings == {
        "shingle": "set",
        "bag": True,
        "fields": "b:digits:3 'sur name:char:3'",
        "weights": "'sur name=2'",
    }
    again = parse_fields(records.settings["fields"], records.settings["weights"])
    assert again == records.fields


def test_records_of_columns_and_of_values_are_the_same() -> None:
    """Numbers and dates by their text, a null without shingles; equal values of different fields stay distinct."""
    records = RecordFields(fields=parse_fields("a:whole b:whole", None))
    columns = [pa.array(["x", None, "5"]), pa.array([5, 7, None])]
    typed, untyped = records.from_arrow(columns)[0], records.from_values([["x", 5], [None, 7], [b"5", ""]])[0]
    assert typed.equals(untyped)
    assert [len(elements) for elements in typed.to_pylist()] == [2, 1, 1]
    assert typed[2].as_py()[0] not in typed[0].as_py()
    assert records.from_values([[["x"], 1]])[1] == {0: "a must be a string or a number, got list"}
    broken = pa.array([b"ok", b"\xff"]).cast(pa.large_binary())
    assert records.from_arrow([broken, broken])[1] == {1: "a is not valid UTF-8 at byte 0"}
