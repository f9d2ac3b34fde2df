"""`explain` names exactly the evidence of the tables and of the pairs, for every document of random corpora."""

from pathlib import Path
from typing import Any

import pytest
from support.random_corpora import LAYOUT, THRESHOLD, Truth, all_pairs, rows, texts
from support.small_corpus import json_lines

import minwise as mw
from minwise.inputs import Files
from minwise.options import GroupName
from minwise.results import DedupResult, Explanation


def refs(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation without the passages."""
    values = explanation.to_dict()
    del values["comparison"]
    return values


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    made = [{"id": row["id"], "text": row["text"]} for row in rows(texts(3))]
    Path("in").mkdir()
    Path("in/a.jsonl").write_bytes(json_lines(made[:30]))
    Path("in/b.jsonl").write_bytes(json_lines(made[30:]))
    return tmp_path / "out"


def run(output: Path, group: GroupName) -> DedupResult:
    return mw.dedup(Files(["in"]), output, group=group, **LAYOUT)


@pytest.mark.parametrize("group", ["star", "components"])
def test_every_removed_document_has_the_witness_of_the_table(out: Path, group: GroupName) -> None:
    result = run(out, group)
    removed = result.removed.to_pylist()
    assert len(removed) > 20
    for row in removed:
        found = mw.explain(out, row["id"])
        assert found.status == "removed"
        assert (found.document.source, found.document.row) == (row["source"], row["row"])
        assert found.witness is not None
        assert (found.witness.id, found.witness.source, found.witness.row) == (
            row["kept_id"],
            row["kept_source"],
            row["kept_row"],
        )
        assert found.witness.similarity == row["similarity"]
        if found.comparison is not None and found.comparison.shared:
            assert found.comparison.similarity == pytest.approx(row["similarity"], abs=0)
        members = [one for one in removed if one["kept_id"] == row["kept_id"]]
        assert found.size == len(members) + 1
        assert [(one.id, one.similarity) for one in found.members] == [
            (one["id"], one["similarity"]) for one in members[:10]
        ]


def test_every_kept_document_has_its_cluster_and_near_misses(out: Path) -> None:
    result = run(out, "star")
    sizes = {row["id"]: row["size"] for row in result.clusters.to_pylist()}
    kept = set(result.kept["id"].to_pylist())
    closest = result.report["just_below"]["closest"]
    assert 0 < len(closest) < 20
    for identity in sorted(kept):
        found = mw.explain(out, identity)
        near = [pair for pair in closest if identity in (pair["left"]["id"], pair["right"]["id"])]
        other = [pair["right" if pair["left"]["id"] == identity else "left"]["id"] for pair in near]
        assert (found.status, found.size, found.notes) == ("kept", sizes[identity], ())
        assert [one.id for one in found.near_misses] == other
        if near:
            assert found.comparison is not None
            assert found.comparison.similarity == near[0]["similarity"] < result.threshold


@pytest.mark.parametrize("group", ["star", "components"])
def test_a_result_in_memory_explains_the_same(out: Path, group: GroupName) -> None:
    result = run(out, group)
    for identity in result.clusters["id"].to_pylist():
        assert refs(result.explain(identity)) == refs(mw.explain(out, identity))


@pytest.mark.parametrize("seed", [3, 4])
def test_a_search_finds_the_most_similar_kept_documents(out: Path, seed: int) -> None:
    """Its near misses are those of comparing the document with every kept one in plain Python."""
    Path("in/b.jsonl").write_bytes(json_lines([{"id": f"e{n}", "text": text} for n, text in enumerate(texts(seed))]))
    result = run(out, "star")
    kept = {row["id"]: row["text"] for row in result.kept.to_pylist()}
    sets = Truth(tuple(kept.values())).sets
    similar = all_pairs(sets, THRESHOLD / 2)
    names = list(kept)
    for number, identity in enumerate(names[:30]):
        found = mw.explain(out, identity, search=True)
        expected = sorted((value for pair, value in similar.items() if number in pair), reverse=True)[:10]
        assert [one.similarity for one in found.near_misses] == expected
        for one in found.near_misses:
            assert similar[tuple(sorted((number, names.index(str(one.id)))))] == one.similarity  # type: ignore[index]
        assert refs(result.explain(identity, search=True)) == refs(found)


def test_more_near_misses_than_the_report_names_are_noted(out: Path) -> None:
    base = [f"w{number}" for number in range(32)]  # 31 shingles of 47: a similarity of 0.66
    near = [" ".join([*base, *(f"x{number}y{word}" for word in range(8))]) for number in range(8)]
    Path("in/b.jsonl").write_bytes(json_lines([{"id": f"n{n}", "text": text} for n, text in enumerate(near)]))
    result = mw.dedup(Files(["in/b.jsonl"]), out, **{**LAYOUT, "threshold": 0.68})
    assert result.report["just_below"]["pairs"] > 20
    (note,) = mw.explain(out, "n7").notes
    assert note.startswith("only the 20 closest near misses of all documents are known; search=True compares this")
    assert mw.explain(out, "n7", search=True).notes == ()
    assert len(mw.explain(out, "n7", search=True).near_misses) == 7
    assert [one.id for one in result.explain("n7").near_misses] == [f"n{number}" for number in range(7)]


def test_a_search_needs_unchanged_inputs(out: Path) -> None:
    result = run(out, "star")
    kept = next(row["id"] for row in result.kept.to_pylist() if row["source"] == "in/a.jsonl")
    with Path("in/b.jsonl").open("a") as file:
        file.write("\n")
    with pytest.raises(mw.MinwiseError, match=r"in/b\.jsonl has changed since the run.*can only be searched with its"):
        mw.explain(out, kept, search=True)


def test_integer_ids_and_documents_in_memory() -> None:
    result = mw.dedup(["one two three four five", "One two three four five!", "six"])
    assert result.explain(1).witness == result.explain("1").witness
    with pytest.raises(mw.MinwiseError, match="the result: no document has the id '7'; clusters"):
        result.explain(7)
    with pytest.raises(mw.MinwiseError, match="id must be a string or a whole number, got None"):
        result.explain(None)  # type: ignore[arg-type]


def test_sets_have_no_passages() -> None:
    found = mw.dedup(mw.ShingleSets.from_sets([{1, 2, 3, 4}, {1, 2, 3, 4, 5}]), threshold=0.8).explain(1)
    assert found.comparison is None
    assert found.notes == ("documents are sets of items, so there are no passages",)


def test_documents_joined_through_others_say_so(out: Path) -> None:
    result = run(out, "components")
    (first, *_) = [row["id"] for row in result.removed.to_pylist() if row["similarity"] < result.threshold]
    assert "below the threshold 0.7: joined through other documents" in repr(mw.explain(out, first))
