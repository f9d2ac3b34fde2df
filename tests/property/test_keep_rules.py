"""Keep rules: the kept documents are those of comparing all sets with all in the keep order of the reference.

Several keys, preferred and protected values, with stars, components and containment, and with a reference corpus.
"""

from itertools import combinations
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.strategies import effort

import minwise as mw
from minwise import reference

Row = dict[str, Any]

SITES, YEARS = ("wiki", "books", "crawl", "7"), (1999, 2020, 2021)
KEYS = ("longest", "shortest", "max:year", "min:year", "max:site", "min:score")
SCHEMA = pa.schema([("text", pa.string()), ("site", pa.string()), ("year", pa.int64()), ("score", pa.float64())])
THRESHOLD = 0.6


class Rules(NamedTuple):
    """Settings of a keep order."""

    keep: str = "first"
    prefer: tuple[str, list[str]] | None = None
    protect: list[tuple[str, str]] = []  # noqa: RUF012 - never changed

    def settings(self) -> dict[str, Any]:
        """Return the settings of a call."""
        prefer = None if self.prefer is None else {self.prefer[0]: self.prefer[1]}
        return {"keep": self.keep, "prefer": prefer, "protect": [f"{name}={value}" for name, value in self.protect]}


@st.composite
def rules(draw: st.DrawFn) -> Rules:
    keys = draw(st.lists(st.sampled_from(KEYS), max_size=3, unique=True))
    ends = ["first", "last"] + ([""] if keys else [])
    keep = ",".join(filter(None, [*keys, draw(st.sampled_from(ends))]))
    years = st.sampled_from([str(year) for year in YEARS])
    preferences = st.tuples(st.just("site"), st.lists(st.sampled_from(SITES), min_size=1, unique=True)) | st.tuples(
        st.just("year"), st.lists(years, min_size=1, unique=True)
    )
    protected = st.tuples(st.just("site"), st.sampled_from(SITES)) | st.tuples(st.just("year"), years)
    return Rules(keep, draw(st.none() | preferences), draw(st.lists(protected, max_size=2)))


@st.composite
def tables(draw: st.DrawFn) -> list[Row]:
    """Draw rows with texts of few words, so that many are similar or equal; each column has a value somewhere."""
    words = st.lists(st.sampled_from("abcdefgh"), min_size=0, max_size=8).map(
        lambda chosen: " ".join(sorted(set(chosen)))
    )
    rows = st.fixed_dictionaries(
        {
            "text": words,
            "site": st.none() | st.sampled_from(SITES),
            "year": st.none() | st.sampled_from(YEARS),
            "score": st.none() | st.sampled_from([0.5, 2.0, -1.0]),
        }
    )
    known = {"text": "a b c d", "site": "wiki", "year": 2020, "score": 0.5}
    return [known, *draw(st.lists(rows, max_size=14))]


def expected_stars(texts: list[str], order: list[int], never: int) -> dict[int, tuple[int, float]]:
    """Return the witness of each removed row; two that are never removed are no pair."""
    pairs = {}
    for low, high in combinations(range(len(order)), 2):
        similarity = _jaccard(texts[order[low]], texts[order[high]])
        if similarity >= THRESHOLD and high >= never:
            pairs[low, high] = similarity
    _, removed = reference.star(pairs, len(order))
    return {order[rank]: (order[witness], value) for rank, (witness, value) in removed.items()}


def expected_components(texts: list[str], order: list[int], never: int) -> dict[int, int]:
    pairs = [
        (low, high)
        for low, high in combinations(range(len(order)), 2)
        if _jaccard(texts[order[low]], texts[order[high]]) >= THRESHOLD and high >= never
    ]
    first = reference.components(pairs, len(order))
    return {order[rank]: order[first[rank]] for rank in range(never, len(order)) if first[rank] != rank}


def expected_contained(texts: list[str], order: list[int], never: int) -> dict[int, float]:
    """Return the containment of each removed row, which lies in an equally large or larger kept one."""
    sets = [set(text.split()) for text in texts]
    free = sorted(order[never:], key=lambda number: -len(sets[number]))
    kept, removed = list(order[:never]), {}
    for number in free:
        larger = [sets[other] for other in kept if len(sets[other]) >= len(sets[number])]
        share = max((len(sets[number] & other) / max(1, len(sets[number])) for other in larger), default=0.0)
        if sets[number] and share >= THRESHOLD:
            removed[number] = share
        else:
            kept.append(number)
    return removed


def _jaccard(left: str, right: str) -> float:
    one, other = set(left.split()), set(right.split())
    return len(one & other) / len(one | other) if one and other else 0.0


def removals(documents: list[Row], found: Rules, references: int = 0, **options: Any) -> list[Row]:  # noqa: ANN401 - settings
    table = pa.Table.from_pylist(documents, schema=SCHEMA)
    against = {"against": table.slice(0, references)} if references else {}
    settings = {"shingle": "word:1", "threshold": THRESHOLD, **options}
    result = mw.dedup(table.slice(references), **against, **found.settings(), **settings)
    removed: list[Row] = result.removed.to_pylist()
    assert sum(result.keep) == len(documents) - references - len(removed)
    return removed


def order_of(rows: list[Row], found: Rules, references: int) -> tuple[list[int], int]:
    """Return the keep order of all rows, those of the reference corpus first, and how many are never removed."""
    own, never = reference.keep_order(rows[references:], *found)
    return [*range(references), *(number + references for number in own)], references + never


def number_of(row: Row, references: int, prefix: str = "") -> int:
    return int(row[f"{prefix}row"]) + (0 if row[f"{prefix}source"] == "against" else references)


WIKI = {"text": "a b c d", "site": "wiki", "year": None, "score": None}
COPIES = [{**WIKI, "site": site, "year": 2020, "score": 0.5} for site in ("crawl", "wiki", "books", "wiki", "crawl")]


@pytest.mark.parametrize("join", [{"exact": True}, {"bands": 64, "rows": 1}])
@effort(1)
@given(rows=tables(), found=rules(), references=st.integers(0, 3))
@example(rows=COPIES, found=Rules("longest,last", ("site", ["books"]), [("site", "wiki")]), references=0)
@example(rows=COPIES, found=Rules("first", None, [("site", "wiki")]), references=2)
@example(rows=COPIES, found=Rules("max:score,min:year,last", ("year", ["2020"]), []), references=0)
def test_stars_are_those_of_the_keep_order(
    join: dict[str, Any], rows: list[Row], found: Rules, references: int
) -> None:
    """Protected copies stay; the other copies are removed for the first of them."""
    references = min(references, len(rows) - 1)
    rows = [*rows, COPIES[1]]  # a row of the input with a value in each column
    expected = expected_stars([row["text"] for row in rows], *order_of(rows, found, references))
    removed = {
        number_of(row, references): (number_of(row, references, "kept_"), row["similarity"])
        for row in removals(rows, found, references, **join)
    }
    assert removed == expected


@effort(1)
@given(rows=tables(), found=rules(), references=st.integers(0, 3))
@example(rows=COPIES, found=Rules("longest", None, [("site", "wiki")]), references=0)
def test_components_keep_the_first_row_and_those_that_are_protected(
    rows: list[Row], found: Rules, references: int
) -> None:
    references = min(references, len(rows) - 1)
    rows = [*rows, COPIES[1]]
    expected = expected_components([row["text"] for row in rows], *order_of(rows, found, references))
    removed = removals(rows, found, references, group="components", exact=True)
    assert {number_of(row, references): number_of(row, references, "kept_") for row in removed} == expected


@effort(1)
@given(rows=tables(), found=rules(), references=st.integers(0, 3))
@example(rows=COPIES, found=Rules("longest", None, [("site", "wiki")]), references=0)
def test_protected_rows_lie_in_no_other_one(rows: list[Row], found: Rules, references: int) -> None:
    references = min(references, len(rows) - 1)
    rows = [*rows, COPIES[1]]
    expected = expected_contained([row["text"] for row in rows], *order_of(rows, found, references))
    removed = removals(rows, found, references, measure="containment")
    assert {number_of(row, references): row["containment"] for row in removed} == expected
