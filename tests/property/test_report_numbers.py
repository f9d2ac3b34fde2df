"""Numbers of a report equal counts in plain Python: similarities, near misses, clusters, bytes."""

import json
from bisect import bisect_right
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from support.random_corpora import (
    LAYOUT,
    SHINGLE,
    THRESHOLD,
    Row,
    Truth,
    all_pairs,
    assert_nothing_missed_by_chance,
    rows,
    texts,
)

import minwise as mw
from minwise import reference
from minwise.inputs import Files
from minwise.options import GroupName
from minwise.results import DedupResult
from minwise.search import candidates

SEEDS = range(3)
FLOOR = 0.65
BORDERS = [number / 100 for number in range(1, 100)]


class Content:
    """Distinct contents of documents, and the similarities of all pairs of them down to a floor."""

    def __init__(self, documents: list[Row], floor: float = FLOOR, *, by_bands: bool = True) -> None:
        self.tokens = [tuple(reference.tokens(row["text"])) for row in documents]
        self.distinct = list(dict.fromkeys(tokens for tokens in self.tokens if tokens))
        first = [self.tokens.index(tokens) for tokens in self.distinct]
        sets = Truth(tuple(documents[document]["text"] for document in first), floor, SHINGLE).sets
        self.pairs = all_pairs(sets, floor)
        if by_bands:
            assert_nothing_missed_by_chance(self.pairs, mw.plan(floor, bands=LAYOUT["bands"], rows=LAYOUT["rows"]))

    def kept(self, content: int, kept: set[int]) -> int | None:
        """Return the kept document with a content, if there is one."""
        return next((row for row in sorted(kept) if self.tokens[row] == self.distinct[content]), None)

    def counts(self) -> list[int]:
        """Return the number of pairs in each hundredth of similarity."""
        counts = Counter(bisect_right(BORDERS, similarity) for similarity in self.pairs.values())
        return [counts[number] for number in range(100)]

    def closest(self, threshold: float, kept: set[int]) -> list[tuple[float, int, int]]:
        """Return the most similar pairs of kept documents below a threshold."""
        pairs = []
        for (left, right), similarity in self.pairs.items():
            first, second = self.kept(left, kept), self.kept(right, kept)
            if similarity < threshold and first is not None and second is not None:
                pairs.append((-similarity, min(first, second), max(first, second)))
        return [(-similarity, left, right) for similarity, left, right in sorted(pairs)[:20]]


def shown(report: dict[str, Any]) -> list[tuple[float, int, int]]:
    """Return the near misses of a report, by row."""
    return [(pair["similarity"], pair["left"]["row"], pair["right"]["row"]) for pair in report["just_below"]["closest"]]


def kept_by(result: DedupResult) -> set[int]:
    """Return the kept rows."""
    return {row for row, keep in enumerate(result.keep.tolist()) if keep}


@pytest.mark.parametrize("keep", ["first", "longest"])
@pytest.mark.parametrize("seed", SEEDS)
def test_similarities_and_near_misses(seed: int, keep: str) -> None:
    """Every pair of distinct documents down to the floor is in its bin; the closest kept ones are named."""
    documents = rows(texts(seed))
    content = Content(documents)
    result = mw.dedup(documents, keep=keep, **LAYOUT)
    report = result.report
    assert report["similarities"] == {"from": FLOOR, "counts": content.counts()}
    below = sum(similarity < THRESHOLD for similarity in content.pairs.values())
    assert below > 0
    assert (report["just_below"]["from"], report["just_below"]["pairs"]) == (FLOOR, below)
    assert shown(report) == content.closest(THRESHOLD, kept_by(result))
    assert sum(report["similarities"]["counts"]) == report["pairs"]["verified"] + below


def test_there_are_near_misses_to_name() -> None:
    """Otherwise the test above would compare empty lists."""
    found = [len(mw.dedup(rows(texts(seed)), **LAYOUT).report["just_below"]["closest"]) for seed in SEEDS]
    assert sum(found) >= 3, found


@pytest.mark.parametrize("threshold", [0.72, 0.8, 0.805, 0.9])
@pytest.mark.parametrize("seed", SEEDS)
def test_near_misses_of_a_higher_threshold(seed: int, threshold: float) -> None:
    """They come from the near misses and from the pairs of the run."""
    documents = rows(texts(seed))
    floor = {0.72: 0.67, 0.8: 0.75, 0.805: 0.75, 0.9: 0.85}[threshold]
    content = Content(documents, floor)
    result = mw.dedup(documents, **LAYOUT).rethreshold(threshold)
    assert result.report["similarities"] == {"from": floor, "counts": content.counts()}
    below = sum(similarity < threshold for similarity in content.pairs.values())
    assert (result.report["just_below"]["from"], result.report["just_below"]["pairs"]) == (floor, below)
    assert shown(result.report) == content.closest(threshold, kept_by(result))


def test_near_misses_with_documents_compared_against() -> None:
    """A pair of two documents that are only compared against is not counted."""
    documents = rows(texts(1))
    against, mine = documents[:30], documents[30:]
    content = Content(documents)
    protected = {content.tokens[row] for row in range(30)}
    expected = [
        similarity
        for (left, right), similarity in content.pairs.items()
        if not {content.distinct[left], content.distinct[right]} <= protected
    ]
    report = mw.dedup(mine, against=against, **LAYOUT).report
    assert sum(report["similarities"]["counts"]) == len(expected)
    assert report["just_below"]["pairs"] == sum(similarity < THRESHOLD for similarity in expected) > 0


def test_a_near_miss_with_a_document_compared_against_is_named() -> None:
    """Three of thirty words differ: 23 of 35 word pairs are shared."""
    words = [f"word{number}" for number in range(30)]
    other = ["else" if number in (5, 15, 25) else word for number, word in enumerate(words)]
    report = mw.dedup([{"text": " ".join(other)}], against=[{"text": " ".join(words)}], **LAYOUT).report
    assert report["just_below"] == {
        "from": FLOOR,
        "pairs": 1,
        "closest": [
            {
                "similarity": 23 / 35,
                "left": {"id": 0, "source": "against", "row": 0},
                "right": {"id": 0, "source": "", "row": 0},
            }
        ],
    }


@pytest.mark.parametrize("group", ["star", "components"])
@pytest.mark.parametrize("seed", SEEDS)
def test_clusters_of_the_report_are_those_of_the_tables(seed: int, group: GroupName) -> None:
    """Sizes, the largest clusters and their least similar members."""
    result = mw.dedup(rows(texts(seed)), group=group, **LAYOUT)
    report = result.report
    sizes = Counter(row["cluster"] for row in result.clusters.to_pylist())
    several = {head: size for head, size in sizes.items() if size > 1}
    for entry in report["clusters"]["sizes"]:
        assert entry["clusters"] == sum(entry["from"] <= size <= entry["to"] for size in several.values())
    assert sum(entry["clusters"] for entry in report["clusters"]["sizes"]) == len(several)
    assert [cluster["size"] for cluster in report["largest_clusters"]] == sorted(several.values(), reverse=True)[:10]
    for cluster in report["largest_clusters"]:
        assert cluster["size"] == several[cluster["kept"]["id"]]
        members = [row for row in result.removed.to_pylist() if row["kept_id"] == cluster["kept"]["id"]]
        members.sort(key=lambda row: (row["similarity"], row["row"]))
        names = ("id", "source", "row", "similarity")
        assert cluster["members"] == [{name: row[name] for name in names} for row in members[:20]]


def test_twenty_members_of_a_large_cluster_are_named() -> None:
    """In document order if all are identical."""
    cluster = mw.dedup(["one two three four five six"] * 50).report["largest_clusters"][0]
    assert cluster["size"] == 50
    assert [member["row"] for member in cluster["members"]] == list(range(1, 21))


def test_unknown_similarities_are_null() -> None:
    """In components with estimates, documents connected through others come first, with no similarity."""
    result = mw.dedup(rows(texts(0)), group="components", verify="signature", **LAYOUT)
    members = [member["similarity"] for cluster in result.report["largest_clusters"] for member in cluster["members"]]
    assert None in members
    assert set(members) <= {None, 1.0}
    for cluster in result.report["largest_clusters"]:
        known = [member["similarity"] is not None for member in cluster["members"]]
        assert known == sorted(known)


def test_without_verification_similarities_and_near_misses_are_unknown() -> None:
    report = mw.dedup(rows(texts(0)), verify="none", **LAYOUT).report
    assert (report["similarities"], report["just_below"]) == (None, None)
    assert report["pairs"]["verified"] == report["pairs"]["candidates"] > 0


def test_near_misses_of_estimates() -> None:
    """No pair is below the floor, and the named pairs are below the threshold."""
    named = []
    for seed in SEEDS:
        report = mw.dedup(rows(texts(seed)), verify="signature", **LAYOUT).report
        assert sum(report["similarities"]["counts"]) == report["pairs"]["verified"] + report["just_below"]["pairs"]
        assert sum(report["similarities"]["counts"][:65]) == 0
        named += [pair["similarity"] for pair in report["just_below"]["closest"]]
    assert named
    assert all(FLOOR <= similarity < THRESHOLD for similarity in named)


@pytest.mark.parametrize("threshold", [THRESHOLD, 0.3])
def test_an_exact_join_misses_no_near_miss(threshold: float) -> None:
    """Also at a threshold where bands would miss many."""
    documents = rows(texts(1))
    floor = {THRESHOLD: FLOOR, 0.3: 0.25}[threshold]
    content = Content(documents, floor, by_bands=False)
    result = mw.dedup(documents, exact=True, threshold=threshold, shingle=SHINGLE)
    assert result.report["similarities"] == {"from": floor, "counts": content.counts()}
    assert shown(result.report) == content.closest(threshold, kept_by(result))


def test_text_bytes_by_status(tmp_path: Path) -> None:
    """UTF-8 bytes of the texts of the input, without documents that are only compared against."""
    ferry = "the ferry leaves the old harbour at six in the morning — every day"
    lines = [{"text": ferry}, {"text": "ünïcödé"}, {"text": ferry.upper()}, {"text": "from the other corpus " * 3}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (tmp_path / "raw.txt").write_bytes(b"not utf-8 \xff")
    (tmp_path / "old.jsonl").write_text(json.dumps({"text": "from the other corpus " * 3}) + "\n", encoding="utf-8")
    given = Files([str(tmp_path / "in.jsonl"), str(tmp_path / "raw.txt")])
    report = mw.dedup(given, against=Files([str(tmp_path / "old.jsonl")]), on_error="quarantine").report
    sizes = [len(str(line["text"]).encode()) for line in lines]
    assert report["counts"]["quarantined"] == 1
    assert report["text_bytes"] == {
        "read": sum(sizes) + 11,
        "kept": sizes[0] + sizes[1],
        "removed": sizes[2] + sizes[3],
        "quarantined": 11,
    }


def test_sets_have_no_text_bytes() -> None:
    assert mw.dedup([{1, 2}, {1, 2}, {3}], shingle="set").report["text_bytes"] is None


def test_a_report_without_similar_documents() -> None:
    for documents in (["one"], ["one two three", "four five six"]):
        report = mw.dedup(documents).report
        assert report["clusters"]["sizes"] == report["largest_clusters"] == report["just_below"]["closest"] == []
        assert sum(report["similarities"]["counts"]) == report["just_below"]["pairs"] == 0


def test_the_chunk_size_does_not_change_near_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if fewer are stored than there are."""
    documents = rows(texts(2))
    monkeypatch.setattr("minwise.search.verification.CLOSEST", 5)
    reports = []
    for pairs in (100, 1000, 1 << 22):
        monkeypatch.setattr(candidates, "CHUNK_PAIRS", pairs)
        reports.append(mw.dedup(documents, **LAYOUT).report)
    assert reports[0] == reports[1] == reports[2]


def test_near_misses_are_pairs_of_a_lower_threshold() -> None:
    """Near misses at 0.7 are pairs at 0.65: both runs have the same counts."""
    documents = rows(texts(0))
    low = mw.dedup(documents, **{**LAYOUT, "threshold": FLOOR}).report
    high = mw.dedup(documents, **LAYOUT).report
    assert low["similarities"]["counts"][65:] == high["similarities"]["counts"][65:]
    assert low["pairs"]["verified"] == high["pairs"]["verified"] + high["just_below"]["pairs"]
    assert len(list(combinations(documents, 2))) > low["pairs"]["verified"]
