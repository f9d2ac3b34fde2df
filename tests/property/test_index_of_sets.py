"""Indexes of sets and records answer as brute force does, whatever is added, removed, flushed and compacted."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.strategies import effort

import minwise as mw

ITEMS = st.one_of(st.integers(-3, 12), st.sampled_from(["a", "b", "3", "ü", ""]))
NAMES = st.sampled_from(["Ann Miller", "Anne Miller", "Ann", "Bob", "", "BOB", "Çelik"])
PHONES = st.one_of(st.none(), st.integers(0, 40), st.sampled_from(["555-1234", "(555) 12 34", "none"]))
RECORDS = st.fixed_dictionaries({"name": NAMES, "phone": PHONES})
WEIGHTS = {"name": 1, "phone": 3}
# One band of one row per slot, so that every similar document is found but for a chance below 1e-10 at 0.25.
LAYOUT: dict[str, Any] = {"threshold": 0.25, "bands": 100, "rows": 1}


def jaccard(left: Counter[Any], right: Counter[Any]) -> float:
    """Return the shared share of two bags; empty ones are similar to nothing."""
    both = (left | right).total()
    return (left & right).total() / both if both else 0.0


def record_elements(record: dict[str, Any]) -> Counter[Any]:
    """Return the shingles of a record by field, as often as their field weighs."""
    phone = "" if record["phone"] is None else "".join(filter(str.isdigit, str(record["phone"])))
    elements: Counter[Any] = Counter()
    for field, text in (("name", record["name"]), ("phone", phone)):
        for element in mw.Shingler("char:2").shingle([text])[0].tolist():
            elements[field, element] = WEIGHTS[field]
    return elements


def check(
    documents: list[Any], queries: list[Any], bags: list[Counter[Any]], settings: dict[str, Any], cut: int
) -> None:
    """Compare every answer of an index, of which some documents are removed, with brute force."""
    with TemporaryDirectory() as folder:
        with mw.Index.create(Path(folder) / "x.mw", **LAYOUT, **settings) as index:
            index.add(range(cut), documents[:cut])
            index.flush()
            index.add(range(cut, len(documents)), documents[cut:])
            index.remove(range(0, len(documents), 5))
            index.compact()
        with mw.Index.open(Path(folder) / "x.mw") as index:
            answers = index.query_many(queries, top=100)
            assert index.verify() == []
    stored = [number for number in range(len(documents)) if number % 5]
    for answer, query in zip(answers, bags[len(documents) :], strict=True):
        found = sorted((-jaccard(query, bags[number]), number) for number in stored)
        expected = [(number, -negative) for negative, number in found if -negative >= LAYOUT["threshold"]]
        assert [(hit.id, hit.similarity) for hit in answer] == expected


@effort(4)
@given(
    documents=st.lists(st.lists(ITEMS, max_size=8), max_size=30),
    queries=st.lists(st.lists(ITEMS, max_size=8), max_size=4),
    bag=st.booleans(),
    cut=st.integers(0, 30),
)
def test_sets(documents: list[Any], queries: list[Any], *, bag: bool, cut: int) -> None:
    bags = [Counter(items) if bag else Counter(set(items)) for items in [*documents, *queries]]
    check(documents, queries, bags, {"shingle": "set", "bag": bag, "seed": 11}, min(cut, len(documents)))


@effort(4)
@given(documents=st.lists(RECORDS, max_size=20), queries=st.lists(RECORDS, max_size=3), cut=st.integers(0, 20))
def test_records(documents: list[Any], queries: list[Any], cut: int) -> None:
    bags = [record_elements(record) for record in [*documents, *queries]]
    settings = {"fields": "name:char:2 phone:digits:2", "weights": WEIGHTS, "seed": 12}
    check(documents, queries, bags, settings, min(cut, len(documents)))
