"""Distinct values of arrays, with sets of Python as the oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from minwise._internal.sorted_arrays import distinct


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.uint32])
@given(data=st.data())
def test_values_are_distinct_and_ascending(dtype: type, data: st.DataObject) -> None:
    values = data.draw(arrays.arrays(dtype, st.integers(0, 40), elements=arrays.from_dtype(np.dtype(dtype))))
    before = values.copy()
    found = distinct(values)
    assert found.dtype == dtype
    assert found.tolist() == sorted(set(values.tolist()))
    assert (values == before).all()


@given(st.lists(st.integers(0, 3)))
def test_repeated_values_remain_once(values: list[int]) -> None:
    assert distinct(np.array(values, dtype=np.int64)).tolist() == sorted(set(values))


def test_values_of_a_matrix_are_those_of_its_cells() -> None:
    assert distinct(np.array([[3, 1], [2, 3]])).tolist() == [1, 2, 3]
