"""Keep rules, values and endings together: rows and marks are those of the readable reference, one after the other."""

from typing import Any

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st
from support.strategies import effort

import minwise as mw
from minwise import reference
from minwise.reference.endings import Mark, Removed

from .test_keep_rules import COPIES, SCHEMA, THRESHOLD, Row, Rules, number_of, order_of, rules, tables

JOINS: list[dict[str, Any]] = [{"exact": True}, {"bands": 64, "rows": 1}]
MARKS = ("cluster", "cluster_size", "cluster_rank", "similarity", "kept", "votes")
Clusters = dict[int, Removed]


def expected_clusters(rows: list[Row], order: list[int], never: int, rule: Any) -> Clusters:  # noqa: ANN401 - a literal
    """Return every document of a cluster but the first, by number, from the pairs that values and protection allow."""
    sets = [frozenset(rows[number]["text"].split()) for number in order]
    values = [rows[number]["site"] if rule is not None else None for number in order]
    found = reference.pairs_by_value(sets, values, THRESHOLD, rule or "within")
    pairs = {pair: similarity for pair, similarity in found.items() if pair[1] >= never}
    removed = reference.star(pairs, len(order))[1]
    return {order[rank]: Removed(order[kept], similarity) for rank, (kept, similarity) in removed.items()}


def ended(clusters: Clusters, rank_of: list[int], never: int, copies: int) -> Clusters:
    """Return what is removed if ``copies`` of each cluster are kept; none of them if it is 0."""
    if not copies:
        return reference.drop_clusters(clusters, rank_of, never)
    return reference.keep_copies(clusters, rank_of, copies)


def mark_columns(marks: list[Mark], votes: list[int], removed: Clusters, references: int) -> list[tuple[Any, ...]]:
    """Return the marks of the input, whose rows have the numbers after those of the references."""
    return [
        (mark.cluster, mark.size, mark.rank, mark.similarity, number not in removed, votes[number])
        for number, mark in enumerate(marks)
        if number >= references
    ]


@effort(2)
@given(
    rows=tables(),
    found=rules(),
    rule=st.sampled_from([None, "within", "across"]),
    copies=st.integers(0, 3),
    references=st.integers(0, 3),
    join=st.sampled_from(JOINS),
)
@example(COPIES, Rules("longest,last", None, [("site", "wiki")]), "across", 2, 1, JOINS[1])
@example(COPIES, Rules("first", ("site", ["books"]), [("site", "crawl")]), None, 0, 0, JOINS[1])
@example(COPIES, Rules("last", None, []), "within", 0, 2, JOINS[0])
def test_removed_rows_and_marks(
    rows: list[Row], found: Rules, rule: str | None, copies: int, references: int, join: dict[str, Any]
) -> None:
    references = min(references, len(rows) - 1)
    rows = [{**row, "id": number} for number, row in enumerate(rows)]
    rows[-1] = {**rows[-1], "site": rows[-1]["site"] or "7", "year": rows[-1]["year"] or 1999, "score": 0.5}
    order, never = order_of(rows, found, references)
    rank_of = sorted(range(len(rows)), key=order.__getitem__)
    clusters = expected_clusters(rows, order, never, rule)
    removed = ended(clusters, rank_of, never, copies)
    marks = reference.mark_documents(clusters, rank_of)
    votes = reference.count_votes(marks, [row["year"] for row in rows])

    table = pa.Table.from_pylist(rows, schema=SCHEMA.append(pa.field("id", pa.int64())))
    options: dict[str, Any] = {"shingle": "word:1", "threshold": THRESHOLD, **join, **found.settings()}
    options |= {"drop_all": True} if not copies else {"copies": copies}
    options |= {} if rule is None else {rule: "site"}
    options |= {"against": table.slice(0, references)} if references else {}
    result = mw.dedup(table.slice(references), mark=True, votes="year", **options)
    assert {
        number_of(row, references): Removed(number_of(row, references, "kept_"), row["similarity"])
        for row in result.removed.to_pylist()
    } == removed
    kept = result.kept.select(MARKS).to_pylist()
    assert [tuple(row.values()) for row in kept] == mark_columns(marks, votes, removed, references)
