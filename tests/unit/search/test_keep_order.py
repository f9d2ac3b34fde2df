"""Keep orders by example; tests/property/test_grouping.py compares them with a plain sort."""

import numpy as np
import pyarrow as pa
import pytest

from minwise.search.clustering import KeepOrder

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
    order = KeepOrder.for_policy(policy, 5, lengths=LENGTHS, keep_values=SCORES)
    assert order.document_at.tolist() == expected
    assert order.rank_of.tolist() == [expected.index(document) for document in range(5)]


@pytest.mark.parametrize("policy", ["first", "last", "longest", "shortest", "max:score", "min:score"])
@pytest.mark.parametrize("protected", [0, 1, 3, 5])
def test_protected_documents_come_first_in_document_order(policy: str, protected: int) -> None:
    order = KeepOrder.for_policy(
        policy, 5, protected=protected, lengths=LENGTHS, keep_values=SCORES
    ).document_at.tolist()
    whole = KeepOrder.for_policy(policy, 5, lengths=LENGTHS, keep_values=SCORES).document_at.tolist()
    assert order[:protected] == list(range(protected))
    assert order[protected:] == [document for document in whole if document >= protected]


def test_equal_values_keep_document_order() -> None:
    order = KeepOrder.for_policy("max:score", 4, lengths=None, keep_values=pa.array(["x"] * 4))
    assert order.document_at.tolist() == [0, 1, 2, 3]


def test_large_integers_are_not_rounded_to_floats() -> None:
    order = KeepOrder.for_policy("max:score", 2, lengths=None, keep_values=pa.array([2**53, 2**53 + 1]))
    assert order.document_at.tolist() == [1, 0]


def test_no_documents_have_an_empty_order() -> None:
    assert (
        KeepOrder.for_policy("longest", 0, lengths=np.empty(0, dtype=np.uint64), keep_values=None).document_at.tolist()
        == []
    )
