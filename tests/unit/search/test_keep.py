"""Keep orders by example; against a plain sort they are held in tests/property/test_grouping.py."""

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
    """Of equals the first document; whoever has no score comes last, whichever end is wanted."""
    order = KeepOrder.of(policy, 5, lengths=LENGTHS, ranks=SCORES)
    assert order.document_at.tolist() == expected
    assert order.number_of.tolist() == [expected.index(document) for document in range(5)]


@pytest.mark.parametrize("policy", ["first", "last", "longest", "shortest", "max:score", "min:score"])
@pytest.mark.parametrize("protected", [0, 1, 3, 5])
def test_protected_documents_come_first_in_document_order(policy: str, protected: int) -> None:
    """The others as if these were not there."""
    order = KeepOrder.of(policy, 5, protected=protected, lengths=LENGTHS, ranks=SCORES).document_at.tolist()
    whole = KeepOrder.of(policy, 5, lengths=LENGTHS, ranks=SCORES).document_at.tolist()
    assert order[:protected] == list(range(protected))
    assert order[protected:] == [document for document in whole if document >= protected]


def test_last_among_equals_is_still_the_first_of_them() -> None:
    """A column of one value orders nothing."""
    order = KeepOrder.of("max:score", 4, lengths=None, ranks=pa.array(["x"] * 4))
    assert order.document_at.tolist() == [0, 1, 2, 3]


def test_numbers_beyond_what_floats_can_tell_apart_are_told_apart() -> None:
    """2⁵³ and 2⁵³+1 as whole numbers."""
    order = KeepOrder.of("max:score", 2, lengths=None, ranks=pa.array([2**53, 2**53 + 1]))
    assert order.document_at.tolist() == [1, 0]


def test_no_documents_have_an_order() -> None:
    """An empty one."""
    assert KeepOrder.of("longest", 0, lengths=np.empty(0, dtype=np.uint64), ranks=None).document_at.tolist() == []
