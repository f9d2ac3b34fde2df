"""Two tables: pairs are those of comparing every document of one table with every document of the other."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.expect import error_message
from support.strategies import effort

import minwise as mw
from minwise import reference
from minwise.errors import ConfigError, InputError, MinwiseError
from minwise.reference.banding import components, star
from minwise.results import pairs as pair_module
from minwise.search import candidates, exact_join, first_pass, verification

from .test_exact_join import Sets, families, thresholds

Pairs = dict[tuple[int, int], float]
# Copies in each table and across them, an empty set, and ties.
LEFT: Sets = [frozenset(range(6)), frozenset({1, 2}), frozenset(), frozenset(range(6)), frozenset({7, 8, 9})]
RIGHT: Sets = [frozenset(range(5)), frozenset(range(6)), frozenset({1, 2}), frozenset(range(5)), frozenset({7, 8})]


def tables() -> st.SearchStrategy[tuple[Sets, Sets]]:
    """Draw two tables of similar sets, with copies in and across them."""

    def divided(sets: Sets, sides: list[int]) -> tuple[Sets, Sets]:
        left = [members for members, side in zip(sets, sides, strict=False) if side != 1]
        right = [members for members, side in zip(sets, sides, strict=False) if side != 0]
        return left, right

    sides = st.lists(st.integers(0, 2), min_size=24, max_size=24)
    return st.builds(divided, families(), sides).filter(all)


def listed(sets: Sets) -> list[list[int]]:
    return [list(members) for members in sets]


def linked(left: Sets, right: Sets, **options: Any) -> Pairs:  # noqa: ANN401 - any settings
    """Return the pairs of two tables by document number; each pair once, in document order."""
    table = mw.pairs(listed(left), among=listed(right), shingle="set", **options)
    measure = table.column_names[2]
    found = {(row["left"], row["right"]): row[measure] for row in table.to_pylist()}
    assert len(found) == table.num_rows
    assert list(found) == sorted(found)
    return found


def similar(left: Sets, right: Sets, threshold: float) -> Pairs:
    """Return the pairs by definition."""
    found = {}
    for (first, one), (second, other) in product(enumerate(left), enumerate(right)):
        similarity = len(one & other) / max(1, len(one | other))
        if one and other and similarity >= threshold:
            found[first, second] = similarity
    return found


@effort(1)
@given(given_tables=tables(), threshold=thresholds)
@example(given_tables=(LEFT, RIGHT), threshold=0.3)
@example(given_tables=(RIGHT, LEFT), threshold=1.0)
def test_exact_pairs_are_those_of_comparing_both_tables(given_tables: tuple[Sets, Sets], threshold: float) -> None:
    assert linked(*given_tables, exact=True, threshold=threshold) == similar(*given_tables, threshold)


@effort(1)
@given(given_tables=tables(), threshold=thresholds)
@example(given_tables=(LEFT, RIGHT), threshold=0.3)
def test_bands_find_what_they_find_in_one_table(given_tables: tuple[Sets, Sets], threshold: float) -> None:
    """The pairs of a search in both tables at once, without those inside a table."""
    (left, right), options = given_tables, {"bands": 20, "rows": 2, "threshold": threshold}
    at_once = mw.pairs(listed([*right, *left]), shingle="set", **options).to_pylist()  # type: ignore[arg-type]
    crossing = {
        (row["right"] - len(right), row["left"]): row["similarity"]
        for row in at_once
        if row["left"] < len(right) <= row["right"]
    }
    assert linked(left, right, **options) == crossing


@effort(1)
@given(given_tables=tables(), threshold=thresholds)
@example(given_tables=(LEFT, RIGHT), threshold=0.8)
@example(given_tables=(RIGHT, LEFT), threshold=0.8)
def test_contained_pairs_are_of_the_first_table_in_the_second(
    given_tables: tuple[Sets, Sets], threshold: float
) -> None:
    left, right = given_tables
    expected = {
        (first, second): reference.containment(one, other)
        for (first, one), (second, other) in product(enumerate(left), enumerate(right))
        if one and len(one) <= len(other) and reference.containment(one, other) >= threshold
    }
    assert linked(left, right, measure="containment", threshold=threshold) == expected


@effort(0.5)
@given(given_tables=tables(), threshold=st.sampled_from((0.2, 0.5, 0.9)), exact=st.booleans())
@example(given_tables=(LEFT, RIGHT), threshold=0.3, exact=True)
def test_weighted_pairs_are_those_of_one_table_with_the_same_frequencies(
    tmp_path_factory: pytest.TempPathFactory, given_tables: tuple[Sets, Sets], threshold: float, exact: bool
) -> None:
    (left, right), file = given_tables, tmp_path_factory.mktemp("weights") / "frequencies"
    layout = {"exact": True} if exact else {"bands": 20, "rows": 2}
    options: dict[str, Any] = {"discount": "common", "threshold": threshold, **layout}
    found = linked(left, right, save_frequencies=file, **options)
    at_once = mw.pairs(listed([*right, *left]), shingle="set", frequencies=file, **options).to_pylist()
    crossing = {
        (row["right"] - len(right), row["left"]): row["weighted_similarity"]
        for row in at_once
        if row["left"] < len(right) <= row["right"]
    }
    assert found == crossing


@effort(1)
@given(given_tables=tables(), threshold=thresholds, group=st.sampled_from(("star", "components")))
@example(given_tables=(LEFT, RIGHT), threshold=0.3, group="star")
@example(given_tables=(LEFT, RIGHT), threshold=0.3, group="components")
@example(given_tables=([frozenset({1})] * 3, [frozenset({2})] * 2), threshold=0.5, group="components")
def test_clusters_are_those_of_the_pairs_of_both_tables(
    given_tables: tuple[Sets, Sets],
    threshold: float,
    group: Any,  # noqa: ANN401 - a choice
) -> None:
    """Documents of one table, identical ones too, are together only because of the other table."""
    left, right = given_tables
    border, total = len(right), len(left) + len(right)
    pairs = {(second, border + first): value for (first, second), value in similar(left, right, threshold).items()}
    if group == "components":
        names = components(pairs, total)
    else:
        witnesses = star(pairs, total)[1]
        names = [witnesses[number][0] if number in witnesses else number for number in range(total)]
    table = mw.clusters(
        listed(left), among=listed(right), shingle="set", exact=True, threshold=threshold, group=group
    ).to_pylist()
    order = [*range(border, total), *range(border)]
    assert [document(row["table"], row["id"], border) for row in table] == order
    assert [document(row["cluster_table"], row["cluster"], border) for row in table] == [names[one] for one in order]
    assert [row["size"] for row in table] == [list(names).count(names[one]) for one in order]


def document(table: str, number: int, border: int) -> int:
    """Return the number of a document among those of both tables, second table first."""
    return number if table == "right" else border + number


def corpora() -> tuple[list[str], list[str]]:
    """Return two tables of texts in families, with copies in and across the tables."""
    rng = np.random.default_rng(11)
    sides: tuple[list[str], list[str]] = ([], [])
    for family in range(60):
        words = [f"w{family}x{number}" for number in range(20)]
        for _ in range(10):
            kept = [word for word in words if rng.random() > 0.05]
            sides[int(rng.integers(2))].append(" ".join(kept))
    for side, other in (sides, sides[::-1]):
        side.extend(other[:3] * 2)
    return sides


SEARCH: dict[str, Any] = {"shingle": "word:1", "threshold": 0.7}
VARIANTS: dict[str, dict[str, Any]] = {
    "bands": {},
    "capped": {"max_bucket": 16, "bands": 30, "rows": 1},
    "exact": {"exact": True},
    "weighted": {"discount": "common"},
    "containment": {"measure": "containment"},
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("threads", [1, 3])
def test_memory_and_threads_never_change_the_pairs(monkeypatch: pytest.MonkeyPatch, variant: str, threads: int) -> None:
    left, right = corpora()
    options = {**SEARCH, **VARIANTS[variant]}
    usual = mw.pairs(left, among=right, **options)
    assert usual.num_rows > 500
    monkeypatch.setattr(candidates, "SORTED_BYTES", 10**6)
    monkeypatch.setattr(candidates, "CHUNK_PAIRS", 500)
    monkeypatch.setattr(first_pass, "PART_DOCUMENTS", 64)
    monkeypatch.setattr(verification, "SPILL_ELEMENTS", 700)
    monkeypatch.setattr(pair_module, "EXPANDED_PAIRS", 300)
    monkeypatch.setattr(exact_join._Join, "_cuts", lambda join: list(range(len(join.files) + 1)))
    assert mw.pairs(left, among=right, memory="256MB", threads=threads, **options) == usual


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_interrupted_run_resumes(tmp_path: Path, variant: str) -> None:
    """After an interruption in each stage."""
    left, right = corpora()
    options = {**SEARCH, **VARIANTS[variant]}
    stages: list[str] = []
    usual = mw.pairs(left, among=right, progress=lambda stage, *_: stages.append(stage), **options)
    for stage in dict.fromkeys(stages):

        def stop(name: str, done: int, total: int | None, unit: str, at: str = stage) -> None:
            if name == at and done:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            mw.pairs(left, among=right, work=tmp_path / stage, progress=stop, **options)
        assert mw.pairs(left, among=right, work=tmp_path / stage, **options) == usual


def test_the_cap_leaves_out_and_counts_pairs_of_both_tables(tmp_path: Path) -> None:
    """Identical documents are found in a capped bucket, too."""
    left = [[1, 2, 3, 100 + number] for number in range(30)] + [[1, 2, 3, 7]]
    right = [[1, 2, 3, 200 + number] for number in range(30)] + [[1, 2, 3, 7]]
    options: dict[str, Any] = {"shingle": "set", "threshold": 0.5, "bands": 1, "rows": 1, "max_bucket": 16}
    found = {(row["left"], row["right"]) for row in mw.pairs(left, among=right, **options).to_pylist()}
    report = mw.write_pairs(left, tmp_path / "pairs.csv", among=right, **options)
    assert (30, 30) in found
    assert report["caps"]["candidates_left_out"] > 0
    largest = report["caps"]["largest_bucket"]
    uncapped = mw.pairs(left, among=right, **{**options, "max_bucket": 2000}).num_rows
    assert len(found) - 1 <= uncapped - report["caps"]["candidates_left_out"] <= len(found)
    assert largest > 32


def test_copies_above_the_cap_are_represented_by_the_first() -> None:
    found = linked([frozenset({1, 2})] * 40, [frozenset({1, 2})] * 20, threshold=1.0, max_bucket=16)
    assert found.keys() == set(product(range(16), range(16)))


def test_counts_are_of_both_tables(tmp_path: Path) -> None:
    report = mw.write_pairs(["a b c d e f", ""], tmp_path / "p.csv", among=["a b c d e f", "x", "y"])
    assert report["counts"] == {"read": 5, "documents": 5, "empty": 1, "quarantined": 0}
    assert {side: counts["read"] for side, counts in report["tables"].items()} == {"left": 2, "right": 3}


def test_truth_counts_pairs_of_both_tables(tmp_path: Path) -> None:
    """Entities of one table only are not to be found; a row without a value is an entity of its own."""
    left = [{"name": name, "who": who} for name, who in [("ann", "a"), ("anne", "a"), ("bob", None), ("eve", "e")]]
    right = [{"name": name, "who": who} for name, who in [("ann", "a"), ("bob", None), ("zoe", "e"), ("mia", "m")]]
    options: dict[str, Any] = {"fields": {"name": "char:2"}, "threshold": 0.5, "exact": True}
    quality = mw.write_pairs(left, tmp_path / "p.csv", among=right, truth="who", **options)["blocking"]
    assert quality == {
        "truth": "who",
        "records": 8,
        "all_pairs": 16,
        "true_pairs": 3,
        "true_pairs_found": 2,
        "pairs_completeness": 2 / 3,
        "reduction_ratio": 1 - 3 / 16,
        "pairs_quality": 2 / 3,
    }


def test_field_similarities_are_those_of_each_field_alone() -> None:
    left = [{"id": 1, "name": "anna", "town": "york"}, {"id": 2, "name": "bela", "town": None}]
    right = [{"id": 1, "name": "annas", "town": "cork"}, {"id": 2, "name": "bela", "town": "bath"}]
    options: dict[str, Any] = {"threshold": 0.1, "exact": True}
    fields = {"town": "char:2", "name": "char:2"}
    both = mw.pairs(left, among=right, fields=fields, weights="name=3", field_similarities=True, **options)
    assert both.column_names == ["left", "right", "similarity", "name_similarity", "town_similarity"]
    assert [(row["left"], row["right"]) for row in both.to_pylist()] == [(1, 1), (2, 2)]
    assert both["town_similarity"].to_pylist() == [2 / 4, None]
    alone = mw.pairs(left, among=right, fields={"name": "char:2"}, **options)
    assert both["name_similarity"].to_pylist() == alone["similarity"].to_pylist() == [3 / 4, 1.0]


@pytest.mark.parametrize("variant", [{}, {"exact": True}, {"measure": "containment"}])
def test_field_similarities_of_one_table_include_copies(variant: dict[str, Any]) -> None:
    rows = [{"name": "anna", "town": "york"}] * 3 + [{"name": "anna", "town": "cork"}, {"name": "anna"}]
    table = mw.pairs(rows, fields="name:char:2 town:char:2", threshold=0.3, field_similarities=True, **variant)
    assert table.num_rows == 10
    assert set(table["name_similarity"].to_pylist()) == {1.0}
    towns = {frozenset((row["left"], row["right"])): row["town_similarity"] for row in table.to_pylist()}
    assert towns[frozenset((0, 1))] == 1.0
    assert towns[frozenset((2, 3))] == 0.5
    assert towns[frozenset((3, 4))] is None


@pytest.mark.parametrize(
    ("kind", "arguments", "words"),
    [
        (InputError, {"among": []}, "none in among"),
        (ConfigError, {"among": ["a"], "engine": "spark"}, "among must be left out with engine spark"),
        (ConfigError, {"among": ["a"], "group_by": "a", "item": "b"}, "group_by must be left out with among"),
        (ConfigError, {"among": ["a"], "field_similarities": True}, "field_similarities must be left out"),
        (ConfigError, {"among": ["a"], "field_similarities": 3}, "field_similarities"),
    ],
)
def test_wrong_values_are_refused_in_one_line(kind: type[MinwiseError], arguments: dict[str, Any], words: str) -> None:
    assert words in error_message(kind, lambda: mw.pairs(["a"], **arguments))


def test_the_same_file_in_both_tables_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    with pytest.raises(ConfigError, match=r"among must be other files, got .*a.jsonl in both tables"):
        mw.pairs(str(tmp_path / "a.jsonl"), among=f"{tmp_path}/../{tmp_path.name}/a.jsonl")


def test_a_file_without_rows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text\n")
    with pytest.raises(InputError, match="got none in the first table"):
        mw.pairs(str(tmp_path / "a.csv"), among=["a"])


def test_against_is_refused() -> None:
    with pytest.raises(ConfigError, match="unknown setting 'against'"):
        mw.pairs(["a"], among=["a"], against=["b"])  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="unknown setting 'among'"):
        mw.dedup(["a"], among=["a"], against=["b"])  # type: ignore[call-overload]
