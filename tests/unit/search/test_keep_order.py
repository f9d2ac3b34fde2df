"""Keep orders by example; tests/property/test_grouping.py compares them with a plain sort."""

import numpy as np
import pyarrow as pa
import pytest
from support.keep_orders import order_of

from minwise.search.clustering import KeepOrder, by_number

LENGTHS = np.array([5, 9, 5, 0, 9], dtype=np.uint64)
SCORES = pa.array([2.0, None, 7.0, float("nan"), 2.0])


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("first", [0, 1, 2, 3, 4]),
        ("last", [4, 3, 2, 1, 0]),
        ("longest", [1, 4, 0, 2, 3]),
        ("shortest", [3, 0, 2, 1, 4]),
        ("max:score", [2, 0, 4, 1, 3]),
        ("min:score", [0, 4, 2, 1, 3]),
    ],
)
def test_order_of_a_policy(policy: str, expected: list[int]) -> None:
    """Of equals the first document; documents without a score come last in both directions."""
    order = order_of(policy, 5, lengths=LENGTHS, values={"score": SCORES})
    assert order.document_at.tolist() == expected
    assert order.rank_of.tolist() == [expected.index(document) for document in range(5)]


@pytest.mark.parametrize("policy", ["first", "last", "longest", "shortest", "max:score", "min:score"])
@pytest.mark.parametrize("protected", [0, 1, 3, 5])
def test_protected_documents_come_first_in_document_order(policy: str, protected: int) -> None:
    order = order_of(policy, 5, references=protected, lengths=LENGTHS, values={"score": SCORES}).document_at.tolist()
    whole = order_of(policy, 5, lengths=LENGTHS, values={"score": SCORES}).document_at.tolist()
    assert order[:protected] == list(range(protected))
    assert order[protected:] == [document for document in whole if document >= protected]


def test_equal_values_keep_document_order() -> None:
    order = order_of("max:score", 4, values={"score": pa.array(["x"] * 4)})
    assert order.document_at.tolist() == [0, 1, 2, 3]


def test_large_integers_are_not_rounded_to_floats() -> None:
    order = order_of("max:score", 2, values={"score": pa.array([2**53, 2**53 + 1])})
    assert order.document_at.tolist() == [1, 0]


def test_no_documents_have_an_empty_order() -> None:
    assert order_of("longest", 0, lengths=np.empty(0, dtype=np.uint64)).document_at.tolist() == []


def test_several_keys_decide_one_after_the_other() -> None:
    values = {"score": SCORES, "year": pa.array([2000, 1990, 2010, None, 1990])}
    assert order_of("max:score,longest,first", 5, lengths=LENGTHS, values=values).document_at.tolist() == [
        2,
        4,
        0,
        1,
        3,
    ]
    assert order_of("min:year, max:score", 5, values=values).document_at.tolist() == [4, 1, 0, 2, 3]
    assert order_of("longest,last", 5, lengths=LENGTHS).document_at.tolist() == [4, 1, 2, 0, 3]


def test_rows_that_are_never_removed_come_first_in_the_order_of_the_keys() -> None:
    never = np.array([False, True, False, True, True])
    order = KeepOrder.of(5, [by_number(-LENGTHS.astype(np.int64))], references=1, never_removed=never)
    assert (order.protected, order.document_at.tolist()) == (4, [0, 1, 4, 3, 2])
    assert KeepOrder.of(5, never_removed=never).document_at.tolist() == [1, 3, 4, 0, 2]
    assert not KeepOrder.of(5, never_removed=never).is_document_order
    assert KeepOrder.of(5, references=2).protected == 2
