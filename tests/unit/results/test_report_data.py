"""Counts and warnings of a report, which files and DataFrames share."""

import pytest

from minwise.errors import MinwiseError
from minwise.report.cluster_section import MANY_DOCUMENTS
from minwise.results.report_data import removal_counts, report_warnings

NOTHING = {"chained": 0, "documents": MANY_DOCUMENTS, "largest": MANY_DOCUMENTS // 100, "losses": [("a.csv", 5, 10)]}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, []),
        (
            {"chained": 1234},
            [
                "removed although less similar to the kept one than the threshold: 1,234 documents; "
                "they were joined through others. group='star' removes none of these"
            ],
        ),
        (
            {"largest": MANY_DOCUMENTS // 100 + 1},
            [f"one cluster holds {MANY_DOCUMENTS // 100 + 1} of {MANY_DOCUMENTS} documents, more than 1 %: that of 7"],
        ),
        ({"documents": MANY_DOCUMENTS - 1, "largest": MANY_DOCUMENTS - 1}, []),
        (
            {"losses": [("a.csv", 6, 10), ("b.csv", 1, 1)]},
            ["a.csv loses 6 of its 10 documents, more than half"],
        ),
    ],
)
def test_warnings_begin_above_their_limits(changed: dict[str, object], expected: list[str]) -> None:
    arguments = {**NOTHING, **changed}
    assert report_warnings(**arguments, largest_id=lambda: 7) == expected  # type: ignore[arg-type]


def test_counts_that_lose_a_document_are_refused() -> None:
    counts = {"read": 10, "quarantined": 1}
    assert removal_counts(counts, 6, 3, 2) == {**counts, "kept": 6, "removed": 3, "removed_identical": 2}
    for kept, removed in ((6, 2), (-1, 10)):
        with pytest.raises(MinwiseError, match="a bug in minwise"):
            removal_counts(counts, kept, removed, 0)
