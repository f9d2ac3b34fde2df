"""Row groups follow from the rows alone, whatever the pieces."""

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minwise.inputs import table_writer
from minwise.inputs.columns import row_bytes


@given(
    sizes=st.lists(st.integers(0, 12), max_size=30),
    cuts=st.lists(st.integers(0, 30), max_size=6),
    rows=st.integers(1, 9),
    most=st.integers(1, 30),
)
def test_row_groups_are_as_large_as_the_limits_allow(sizes: list[int], cuts: list[int], rows: int, most: int) -> None:
    batch = pa.record_batch({"text": pa.array(["x" * size for size in sizes], pa.string())})
    ends = sorted({0, *(cut for cut in cuts if cut < len(sizes)), len(sizes)})
    pieces = [batch[start:stop] for start, stop in pairwise(ends)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_writer, "GROUP_ROWS", rows)
        patch.setattr(table_writer, "GROUP_BYTES", most)
        groups = [table["text"] for table in table_writer.row_groups(pieces, batch.schema)]
    assert all(group.num_chunks == 1 for group in groups)
    assert [list(map(len, group.to_pylist())) for group in groups] == expected_groups(sizes, rows, most)


def expected_groups(sizes: list[int], rows: int, most: int) -> list[list[int]]:
    """Apply the rule row by row."""
    groups: list[list[int]] = []
    for size in sizes:
        if not groups or len(groups[-1]) == rows or sum(groups[-1]) + size > most:
            groups.append([])
        groups[-1].append(size)
    return groups


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array(["a", None, "ccc"]), [1, 0, 3]),
        (pa.array(["a", None, "ccc"]).dictionary_encode(), [1, 0, 3]),
        (pa.array(["a", None, "ccc"]).cast(pa.string_view()), [1, 0, 3]),
        (pa.array([["a", "bb"], None, []]), [3, 0, 0]),
        (pa.array([[1, 2], None, []], pa.large_list(pa.int64())), [16, 0, 0]),
        (pa.array([{"a": "xx", "b": 1}, {"a": "", "b": 2}]), [10, 8]),
        (pa.array([[("k", "vvv")]], pa.map_(pa.string(), pa.string())), [3]),
        (pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2)), [16]),
        (pa.array([1, None]), [8, 8]),
    ],
)
def test_bytes_of_a_value_do_not_depend_on_its_array(array: Any, expected: list[int]) -> None:  # noqa: ANN401 - pyarrow has no types
    assert row_bytes(array).tolist() == expected
    longer = pa.concat_arrays([array, array])
    assert row_bytes(longer[1 : 1 + len(array)]).tolist() == (expected * 2)[1 : 1 + len(array)]
