"""Within and across: pairs, removed documents and clusters are those of comparing all pairs that the values allow."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.random_corpora import THRESHOLD, Pairs, rows, texts
from support.strategies import effort

import minwise as mw
from minwise import reference
from minwise.reference.banding import components, star
from minwise.results import DedupResult
from minwise.search import needed_pairs

from .test_exact_join import Sets, families, shrink, thresholds
from .test_promises import stars

RULES = ("within", "across")
# Every pair at the lowest threshold is missed with a probability of 2⁻³⁰.
BANDS: dict[str, Any] = {"bands": 30, "rows": 1, "threshold": 0.5}
VALUES = (None, "a", "b", "c")
Row = dict[str, Any]

rules = st.sampled_from(RULES)
Corpus = tuple[Sets, list[str | None]]


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    """Draw sets with a value each, of which the last one is not null."""
    sets = draw(families().filter(bool))
    values: list[str | None] = draw(st.lists(st.sampled_from(VALUES), min_size=len(sets), max_size=len(sets)))
    return sets, [*values[:-1], "a"]


ALIKE: Corpus = ([frozenset({1, 2})] * 6, ["a", "b", "a", None, None, "b"])


def made_rows(sets: Sets, values: list[str | None], *, reverse: bool = False) -> list[Row]:
    """Return a row for each set, of which the words are the elements; with ``reverse`` every third backwards."""
    made = []
    for number, (members, value) in enumerate(zip(sets, values, strict=True)):
        words = [f"w{element}" for element in sorted(members)]
        made.append({"id": number, "text": " ".join(words[::-1] if reverse and number % 3 else words), "value": value})
    return made


def allowed(sets: Sets, values: list[str | None], threshold: float, rule: Any) -> Pairs:  # noqa: ANN401 - a literal
    return reference.pairs_by_value(sets, values, threshold, rule)


def removals(result: DedupResult) -> dict[int, tuple[Any, Any]]:
    """Return the removed rows with their witnesses, which are negative if they are references, by number."""
    return {
        row["row"]: (row["kept_row"] - (100 if row["kept_source"] == "against" else 0), row["similarity"])
        for row in result.removed.to_pylist()
    }


def listed(table: Any) -> Pairs:  # noqa: ANN401 - a result table
    found = {(row["left"], row["right"]): row["similarity"] for row in table.to_pylist()}
    assert len(found) == table.num_rows
    return found


@effort(1)
@given(corpus=corpora(), threshold=thresholds, rule=rules)
@example(corpus=ALIKE, threshold=1.0, rule="across")
@example(corpus=ALIKE, threshold=1.0, rule="within")
def test_pairs_of_an_exact_join(corpus: Corpus, threshold: float, rule: str) -> None:
    sets, values = corpus
    given_rows = made_rows(sets, values, reverse=True)
    options: Any = {rule: "value"}
    table = mw.pairs(given_rows, shingle="word:1", exact=True, threshold=threshold, **options)
    assert listed(table) == allowed(sets, values, threshold, rule)


@effort(1)
@given(corpus=corpora(), rule=rules, exact=st.booleans(), border=st.integers(0, 8))
# The first reference has the value and the words of the last document, which it must not lead.
@example(corpus=([frozenset({1, 2})] * 4, ["a", "b", "b", "a"]), rule="across", exact=False, border=2)
@example(corpus=([frozenset({1, 2})] * 4, ["a", "b", "b", "a"]), rule="across", exact=False, border=0)
@example(corpus=ALIKE, rule="across", exact=False, border=0)
@example(corpus=ALIKE, rule="within", exact=False, border=1)
def test_removed_documents_and_witnesses(corpus: Corpus, rule: str, exact: bool, border: int) -> None:
    """With references, which take part by their own values; a copy of one value has the witness of the first."""
    sets, values = corpus
    border = min(border, len(sets) - 1)
    given_rows = made_rows(sets, values, reverse=True)
    against, own = given_rows[:border], given_rows[border:]
    options: Any = {rule: "value", "shingle": "word:1", **({"exact": True, "threshold": 0.5} if exact else BANDS)}
    result = mw.dedup(own, against=against or None, **options)
    pairs = allowed(sets, values, 0.5, rule)
    expected = star({pair: value for pair, value in pairs.items() if pair[1] >= border}, len(sets))[1]
    moved = {
        number - border: (witness - (100 if witness < border else border), similarity)
        for number, (witness, similarity) in expected.items()
    }
    assert removals(result) == moved
    assert result.report["counts"]["removed"] == len(expected)


@effort(0.5)
@given(corpus=corpora(), rule=rules, data=st.data())
def test_protected_documents(corpus: Corpus, rule: str, data: st.DataObject) -> None:
    """They come first, two of them are no pair, and none of them leads copies that are not protected."""
    sets, values = corpus
    locked = data.draw(st.lists(st.booleans(), min_size=len(sets), max_size=len(sets)))
    given_rows = [
        {**row, "locked": lock} for row, lock in zip(made_rows(sets, values, reverse=True), locked, strict=True)
    ]
    options: Any = {rule: "value", "protect": "locked=true", "shingle": "word:1", "exact": True, "threshold": 0.5}
    found = allowed(sets, values, 0.5, rule).items()
    pairs = {pair: value for pair, value in found if not all(locked[one] for one in pair)}
    order = sorted(range(len(sets)), key=lambda number: not locked[number])
    assert removals(mw.dedup(given_rows, **options)) == stars(pairs, order)[1]


@effort(1)
@given(corpus=corpora(), rule=rules, exact=st.booleans())
@example(corpus=([frozenset({1, 2})] * 4, ["a", "a", "b", "a"]), rule="across", exact=False)
@example(corpus=([frozenset({1, 2})] * 4, ["a"] * 4), rule="across", exact=True)
def test_clusters(corpus: Corpus, rule: str, exact: bool) -> None:
    """A copy of one value joins the component of the first only if that one has a pair."""
    sets, values = corpus
    given_rows = made_rows(sets, values)
    options: Any = {rule: "value", "shingle": "word:1", **({"exact": True, "threshold": 0.5} if exact else BANDS)}
    pairs = allowed(sets, values, 0.5, rule)
    joined = components(pairs, len(sets))
    witness = {removed: kept for removed, (kept, _) in star(pairs, len(sets))[1].items()}
    stars = [witness.get(number, number) for number in range(len(sets))]
    assert mw.clusters(given_rows, **options).column("cluster").to_pylist() == joined
    assert mw.clusters(given_rows, group="star", **options).column("cluster").to_pylist() == stars
    result = mw.dedup(given_rows, group="components", **options)
    assert {number: kept for number, (kept, _) in removals(result).items()} == {
        number: first for number, first in enumerate(joined) if number != first
    }


@effort(0.5)
@given(corpus=corpora(), threshold=thresholds, border=st.integers(0, 6))
def test_containment_across(corpus: Corpus, threshold: float, border: int) -> None:
    """Larger sets are decided first, a set lies in kept ones of other values; a copy has the fate of the first."""
    sets, values = corpus
    border = min(border, len(sets) - 1)
    given_rows = made_rows(sets, values)
    options: Any = {"measure": "containment", "shingle": "word:1", "threshold": threshold, "across": "value"}
    result = mw.dedup(given_rows[border:], against=given_rows[:border] or None, **options)
    found = {
        row["row"] + border: (row["kept_row"] + (0 if row["kept_source"] == "against" else border), row["containment"])
        for row in result.removed.to_pylist()
    }
    assert found == contained_star(sets, values, threshold, border)


def contained_star(sets: Sets, values: list[str | None], threshold: float, border: int) -> dict[int, tuple[int, float]]:
    kept, removed, leaders = [*range(border)], dict[int, tuple[int, float]](), dict[Any, int]()
    for inner in sorted(range(border, len(sets)), key=lambda number: -len(sets[number])):
        leader = leaders.setdefault((sets[inner], values[inner]), inner)
        if leader != inner and sets[inner]:
            if leader in removed:
                removed[inner] = removed[leader]
            else:
                kept.append(inner)
            continue
        outer = [one for one in kept if values[one] != values[inner] and len(sets[one]) >= len(sets[inner])]
        shares = [(reference.containment(sets[inner], sets[one]), one) for one in outer]
        best = max(shares, key=lambda share: share[0], default=(0.0, -1))
        if best[0] >= threshold and best[0] > 0:
            removed[inner] = (best[1], best[0])
        else:
            kept.append(inner)
    return removed


def parted(documents: list[Row]) -> Iterator[list[Row]]:
    for value in dict.fromkeys(row["name"] for row in documents):
        yield [row for row in documents if row["name"] == value]


SETTINGS: dict[str, dict[str, Any]] = {
    "bands": {"bands": 40, "rows": 2, "threshold": THRESHOLD},
    "longest": {"bands": 40, "rows": 2, "threshold": THRESHOLD, "keep": "longest"},
    "signature": {"verify": "signature", "threshold": THRESHOLD},
    "none": {"verify": "none", "threshold": THRESHOLD},
    "components": {"group": "components", "keep": "min:score", "threshold": THRESHOLD},
    "exact": {"exact": True, "threshold": THRESHOLD},
    "containment": {"measure": "containment", "threshold": 0.8},
    "capped": {"max_bucket": 16, "threshold": 0.5},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_within_is_a_run_for_each_value(name: str) -> None:
    """Also with a cap on buckets, which holds for each value."""
    base = texts(3)
    documents = rows((*base, *base[:20] * 3, *["the same few words again"] * 60), 3)
    options: Any = {"shingle": "word:2", **SETTINGS[name]}
    together = mw.dedup(documents, within="name", **options)
    apart = [mw.dedup(part, **options) for part in parted(documents)]
    columns = ("id", "kept_id", together.removed.column_names[-1])
    assert len(together.removed) > 20

    def key(row: Row) -> tuple[Any, ...]:
        return tuple(row[column] for column in columns)

    separate = [key(row) for result in apart for row in result.removed.to_pylist()]
    assert sorted(map(key, together.removed.to_pylist()), key=str) == sorted(separate, key=str)
    assert together.report["caps"]["candidates_left_out"] == sum(
        result.report["caps"]["candidates_left_out"] for result in apart
    )


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("group", ["star", "components"])
def test_needed_pairs_and_ranges_of_keys_change_nothing(
    group: Any,  # noqa: ANN401 - a literal
    rule: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Comparing only needed pairs, in small chunks, with the keys of a band split, gives the answer of all pairs."""
    documents = rows(texts(4) * 2, 4)
    options: Any = {"shingle": "word:2", "threshold": 0.6, "group": group, rule: "name"}
    expected = mw.dedup(documents, **options)
    monkeypatch.setattr(needed_pairs, "COMPLETE_PROPOSALS", 8)
    monkeypatch.setattr("minwise.search.candidates.CHUNK_PAIRS", 8)
    monkeypatch.setattr("minwise.search.candidates.SORTED_BYTES", 10**7)
    found = mw.dedup(documents, memory="256MB", **options)
    assert found.removed.to_pylist() == expected.removed.to_pylist()
    assert len(expected.removed) > 10
    assert found.rethreshold(0.8).removed.to_pylist() == expected.rethreshold(0.8).removed.to_pylist()
    exact = mw.dedup(documents, **{**options, "threshold": 0.8}, exact=True)
    assert found.rethreshold(0.8).removed.to_pylist() == exact.removed.to_pylist()
    assert found.threshold_steps(0.1)[-1].removed == expected.threshold_steps(0.1)[-1].removed


@pytest.mark.parametrize("rule", RULES)
def test_several_indexes_of_a_join_change_nothing(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = rows(texts(6), 6)
    options: Any = {"shingle": "word:2", "threshold": 0.6, rule: "name"}
    expected = [
        mw.pairs(documents, **options, **more).to_pylist() for more in ({"exact": True}, {"measure": "containment"})
    ]
    assert all(len(found) > 5 for found in expected)
    shrink(monkeypatch, 20_000)
    assert [
        mw.pairs(documents, **options, **more).to_pylist() for more in ({"exact": True}, {"measure": "containment"})
    ] == expected
