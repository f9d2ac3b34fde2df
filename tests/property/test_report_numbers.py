"""The numbers of a report against counting in plain Python: similarities, near misses, clusters, bytes."""

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
from minwise.search import candidates

SEEDS = range(3)
FLOOR = 0.65
BORDERS = [number / 100 for number in range(1, 100)]


class Content:
    """What different documents hold, and how similar any two of them are, as long as it is not less than a floor."""

    def __init__(self, documents: list[Row], floor: float = FLOOR, *, by_bands: bool = True) -> None:
        self.tokens = [tuple(reference.tokens(one["text"])) for one in documents]
        self.distinct = list(dict.fromkeys(one for one in self.tokens if one))
        first = [self.tokens.index(one) for one in self.distinct]
        sets = Truth(tuple(documents[one]["text"] for one in first), floor, SHINGLE).sets
        self.pairs = all_pairs(sets, floor)
        if by_bands:
            assert_nothing_missed_by_chance(self.pairs, mw.plan(floor, bands=LAYOUT["bands"], rows=LAYOUT["rows"]))

    def kept(self, content: int, kept: set[int]) -> int | None:
        """The document that is kept of those with a content, if one is."""
        return next((one for one in sorted(kept) if self.tokens[one] == self.distinct[content]), None)

    def counts(self) -> list[int]:
        """Pairs by hundredths of similarity."""
        found = Counter(bisect_right(BORDERS, similarity) for similarity in self.pairs.values())
        return [found[number] for number in range(100)]

    def closest(self, threshold: float, kept: set[int]) -> list[tuple[float, int, int]]:
        """The most similar pairs of kept documents that are below a threshold."""
        found = []
        for (left, right), similarity in self.pairs.items():
            one, other = self.kept(left, kept), self.kept(right, kept)
            if similarity < threshold and one is not None and other is not None:
                found.append((-similarity, min(one, other), max(one, other)))
        return [(-similarity, left, right) for similarity, left, right in sorted(found)[:20]]


def shown(report: dict[str, Any]) -> list[tuple[float, int, int]]:
    """The near misses of a report, by row."""
    return [(one["similarity"], one["left"]["row"], one["right"]["row"]) for one in report["just_below"]["closest"]]


def kept_by(result: mw.DedupResult) -> set[int]:
    """Rows that are kept."""
    return {row for row, keep in enumerate(result.keep.tolist()) if keep}


@pytest.mark.parametrize("keep", ["first", "longest"])
@pytest.mark.parametrize("seed", SEEDS)
def test_similarities_and_near_misses(seed: int, keep: str) -> None:
    """Every pair of different documents down to the floor is in its bin; the closest of kept ones are named."""
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
    """Else the test above would compare nothing with nothing."""
    found = [len(mw.dedup(rows(texts(seed)), **LAYOUT).report["just_below"]["closest"]) for seed in SEEDS]
    assert sum(found) >= 3, found


@pytest.mark.parametrize("threshold", [0.72, 0.8, 0.805, 0.9])
@pytest.mark.parametrize("seed", SEEDS)
def test_near_misses_of_a_higher_threshold(seed: int, threshold: float) -> None:
    """They come from the near misses of the run and from its pairs, whichever are below."""
    documents = rows(texts(seed))
    floor = {0.72: 0.67, 0.8: 0.75, 0.805: 0.75, 0.9: 0.85}[threshold]
    content = Content(documents, floor)
    result = mw.dedup(documents, **LAYOUT).rethreshold(threshold)
    assert result.report["similarities"] == {"from": floor, "counts": content.counts()}
    below = sum(similarity < threshold for similarity in content.pairs.values())
    assert (result.report["just_below"]["from"], result.report["just_below"]["pairs"]) == (floor, below)
    assert shown(result.report) == content.closest(threshold, kept_by(result))


def test_near_misses_of_what_is_only_compared_against() -> None:
    """A kept document and one that is compared against can be a near miss; two of the latter are not looked at."""
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


def test_a_near_miss_of_one_that_is_only_compared_against() -> None:
    """Three of thirty words differ: 23 of 35 pairs of words are shared."""
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
def test_clusters(seed: int, group: str) -> None:
    """Sizes, the largest clusters and their least similar members are those of the tables."""
    result = mw.dedup(rows(texts(seed)), group=group, **LAYOUT)
    report = result.report
    sizes = Counter(row["cluster"] for row in result.clusters.to_pylist())
    several = {head: size for head, size in sizes.items() if size > 1}
    for one in report["clusters"]["sizes"]:
        assert one["clusters"] == sum(one["from"] <= size <= one["to"] for size in several.values())
    assert sum(one["clusters"] for one in report["clusters"]["sizes"]) == len(several)
    assert [one["size"] for one in report["largest_clusters"]] == sorted(several.values(), reverse=True)[:10]
    for cluster in report["largest_clusters"]:
        assert cluster["size"] == several[cluster["kept"]["id"]]
        members = [row for row in result.removed.to_pylist() if row["kept_id"] == cluster["kept"]["id"]]
        members.sort(key=lambda row: (row["similarity"], row["row"]))
        names = ("id", "source", "row", "similarity")
        assert cluster["members"] == [{name: row[name] for name in names} for row in members[:20]]


def test_members_of_a_large_cluster() -> None:
    """Only the first twenty of a cluster are named, in document order if they are all the same."""
    cluster = mw.dedup(["one two three four five six"] * 50).report["largest_clusters"][0]
    assert cluster["size"] == 50
    assert [one["row"] for one in cluster["members"]] == list(range(1, 21))


def test_unknown_similarities_are_null() -> None:
    """Components with estimates: who was joined through others comes first, with no similarity."""
    result = mw.dedup(rows(texts(0)), group="components", verify="signature", **LAYOUT)
    members = [one["similarity"] for cluster in result.report["largest_clusters"] for one in cluster["members"]]
    assert None in members
    assert set(members) <= {None, 1.0}
    for cluster in result.report["largest_clusters"]:
        known = [one["similarity"] is not None for one in cluster["members"]]
        assert known == sorted(known)


def test_without_verification_nothing_is_known() -> None:
    """Neither similarities nor near misses."""
    report = mw.dedup(rows(texts(0)), verify="none", **LAYOUT).report
    assert (report["similarities"], report["just_below"]) == (None, None)
    assert report["pairs"]["verified"] == report["pairs"]["candidates"] > 0


def test_estimates_have_near_misses_too() -> None:
    """All in the bins from the floor on, and the named ones below the threshold."""
    named = []
    for seed in SEEDS:
        report = mw.dedup(rows(texts(seed)), verify="signature", **LAYOUT).report
        assert sum(report["similarities"]["counts"]) == report["pairs"]["verified"] + report["just_below"]["pairs"]
        assert sum(report["similarities"]["counts"][:65]) == 0
        named += [one["similarity"] for one in report["just_below"]["closest"]]
    assert named
    assert all(FLOOR <= similarity < THRESHOLD for similarity in named)


@pytest.mark.parametrize("threshold", [THRESHOLD, 0.3])
def test_an_exact_join_misses_no_near_miss(threshold: float) -> None:
    """Also at a threshold at which bands would miss many."""
    documents = rows(texts(1))
    floor = {THRESHOLD: FLOOR, 0.3: 0.25}[threshold]
    content = Content(documents, floor, by_bands=False)
    result = mw.dedup(documents, exact=True, threshold=threshold, shingle=SHINGLE)
    assert result.report["similarities"] == {"from": floor, "counts": content.counts()}
    assert shown(result.report) == content.closest(threshold, kept_by(result))


def test_bytes_of_texts(tmp_path: Path) -> None:
    """UTF-8 bytes of the text, by what became of the document; not of what is only compared against."""
    ferry = "the ferry leaves the old harbour at six in the morning — every day"
    lines = [{"text": ferry}, {"text": "ünïcödé"}, {"text": ferry.upper()}, {"text": "from the other corpus " * 3}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (tmp_path / "raw.txt").write_bytes(b"not utf-8 \xff")
    (tmp_path / "old.jsonl").write_text(json.dumps({"text": "from the other corpus " * 3}) + "\n", encoding="utf-8")
    given = mw.Files([str(tmp_path / "in.jsonl"), str(tmp_path / "raw.txt")])
    report = mw.dedup(given, against=mw.Files([str(tmp_path / "old.jsonl")]), on_error="quarantine").report
    sizes = [len(str(line["text"]).encode()) for line in lines]
    assert report["counts"]["quarantined"] == 1
    assert report["text_bytes"] == {
        "read": sum(sizes) + 11,
        "kept": sizes[0] + sizes[1],
        "removed": sizes[2] + sizes[3],
        "quarantined": 11,
    }


def test_sets_have_no_bytes_of_text() -> None:
    """Nor has a set a text to count."""
    assert mw.dedup([{1, 2}, {1, 2}, {3}], shingle="set").report["text_bytes"] is None


def test_no_documents_to_speak_of() -> None:
    """A report of one document, and one of none that is similar."""
    for documents in (["one"], ["one two three", "four five six"]):
        report = mw.dedup(documents).report
        assert report["clusters"]["sizes"] == report["largest_clusters"] == report["just_below"]["closest"] == []
        assert sum(report["similarities"]["counts"]) == report["just_below"]["pairs"] == 0


def test_pieces_do_not_change_near_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even if fewer of them are remembered than there are, in pieces of a few candidates."""
    documents = rows(texts(2))
    monkeypatch.setattr("minwise.search.near_misses.CLOSEST", 5)
    found = []
    for pairs in (100, 1000, 1 << 22):
        monkeypatch.setattr(candidates, "CHUNK_PAIRS", pairs)
        found.append(mw.dedup(documents, **LAYOUT).report)
    assert found[0] == found[1] == found[2]


def test_every_pair_below_is_a_pair_of_the_lower_threshold() -> None:
    """Near misses at 0.7 are pairs at 0.65: both runs agree on how many there are."""
    documents = rows(texts(0))
    low = mw.dedup(documents, **{**LAYOUT, "threshold": FLOOR}).report
    high = mw.dedup(documents, **LAYOUT).report
    assert low["similarities"]["counts"][65:] == high["similarities"]["counts"][65:]
    assert low["pairs"]["verified"] == high["pairs"]["verified"] + high["just_below"]["pairs"]
    assert len(list(combinations(documents, 2))) > low["pairs"]["verified"]
