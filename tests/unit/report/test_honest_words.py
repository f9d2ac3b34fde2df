"""What the page says is so: of runs that were not compared, not measured, measured in part, or too large."""

import re
from typing import Any

import pytest
from support.page_shapes import Shape, audited, audited_completely, estimated, exact, newsroom, without_similarities
from test_page import read

from minwise.report.run_sections import effort
from minwise.sketches.planning import Plan
from minwise.sketches.s_curve import curve_chart, draw_curve

GB = 10**9


def audit_of(shape: Shape) -> dict[str, Any]:
    """The audit of a shape that has one."""
    assert shape.audit is not None
    return shape.audit


def test_an_exact_run_leaves_nothing_to_measure() -> None:
    """Nobody is sent to audit what can not be audited."""
    text = read(exact()).text
    assert "There is nothing to measure: an exact join found every pair." in text
    assert "Not measured yet" not in text
    assert "minwise audit" not in text


def test_what_was_not_measured_says_how() -> None:
    """With which of the documents they are compared, and both commands."""
    text = read(newsroom()).text
    assert "compares a sample of the documents with all of them, exactly" in text
    assert "minwise audit INPUT… --threshold 0.55 --shingle word:3 -o audit.json" in text
    assert "minwise report OUT --audit audit.json" in text


@pytest.mark.parametrize(
    ("peak", "before", "words", "look"),
    [
        (2 * GB, 1, "Peak memory 2 GB of 4 GB allowed (50.0%).", "bar"),
        (4 * GB, 1, "Peak memory 4 GB of 4 GB allowed (100%).", "bar"),
        (4 * GB + 1, 1, "Peak memory 4 GB, slightly more than the 4 GB allowed.", "bad"),
        (10 * GB, 1, "Peak memory 10 GB, 2.5 times the 4 GB allowed.", "bad"),
        (10 * GB, None, "Peak memory 10 GB, 2.5 times the 4 GB allowed.", "bad"),
        (10 * GB, 5 * GB, "2.5 times the 4 GB allowed; before the run began, the process had held 5 GB.", "bad"),
        (10 * GB, 10 * GB, "10 GB: the process had already held that much before the run began. 4 GB allowed.", ""),
    ],
)
def test_peak_memory(peak: int, before: int | None, words: str, look: str) -> None:
    """Of too much it is told how many times; what is not the run's is no alarm."""
    run = {"peak_memory_bytes": peak, "memory_limit_bytes": 4 * GB}
    section = effort(run if before is None else {**run, "peak_memory_before_bytes": before})
    assert words in section
    assert re.findall(r'<rect class="(\w+)"', section) == [look] * bool(look)


def test_bars_of_stages_are_shares_of_the_whole_time() -> None:
    """A full bar would be all of it; a stage of no time is still seen."""
    stages = [{"stage": "read", "seconds": 1.0}, {"stage": "write", "seconds": 0.5}, {"stage": "sort", "seconds": 0.0}]
    section = effort({"seconds": 4.0, "stages": stages})
    assert re.findall(r'width="([\d.]+)%"', section) == ["25.000", "12.500", "0.400"]
    assert "<span>25.0%</span>" in section
    alone = effort({"stages": stages})
    assert re.findall(r'width="([\d.]+)%"', alone)[0] == "66.667"


def test_members_that_nobody_compared_are_not_called_similar() -> None:
    """A cluster with one of them has no least similarity, even if others are identical to the kept one."""
    shape = without_similarities()
    clusters = shape.report["largest_clusters"]
    clusters[0]["members"][0]["similarity"] = None
    clusters[0]["members"][1]["similarity"] = 1.0
    headers = re.findall(r'<span class="quiet least">(.*?)</span>', shape.page())
    assert headers[0] == "1 not compared"
    for header, cluster in zip(headers, clusters, strict=True):
        unknown = sum(one["similarity"] is None for one in cluster["members"])
        assert header == (f"{unknown} not compared" if unknown else "least similar 1.0000")


def test_of_a_large_cluster_more_may_not_be_compared() -> None:
    """If all members that are named were not compared, nobody knows of the others."""
    shape = without_similarities()
    cluster = shape.report["largest_clusters"][0]
    cluster["size"] = 500
    for one in cluster["members"]:
        one["similarity"] = None
    assert f'<span class="quiet least">at least {len(cluster["members"])} not compared</span>' in shape.page()


def test_without_comparing_the_page_is_not_calm() -> None:
    """It neither says that nothing is alarming nor looks like it."""
    page = without_similarities().page()
    assert '<section id="alarms" class="neutral"' in page
    assert "Nothing was compared exactly" in page
    assert "Nothing alarming" not in page
    assert "is itself similar" not in page


def test_calm_says_what_was_looked_at() -> None:
    """With the size from which on a cluster can be too large, and whether similarities are estimates."""
    text = read(newsroom()).text
    assert "no cluster holds more than 1 % of all (looked at in corpora of 1,000 documents or more)" in text
    assert "similar to the one kept for it." in text
    assert "similar to the one kept for it, as far as signatures tell." in read(estimated()).text


def test_a_broken_promise_is_marked() -> None:
    """By a sign and a word in its row only, and below the table it is told how many break by chance."""
    shape = audited()
    tree = read(shape)
    assert sum(one == "outside" for one in tree.attributes("class")) == 2
    assert "0.45 – 0.50 200 100 0.5000 0.4300 – 0.5700 ≠ outside 0.6400" in tree.text
    assert "By chance alone, about one bin in 20 does." in tree.text
    audit_of(shape)["bins"][1]["promised"] = 0.57
    assert "outside" not in read(shape).text.replace("outside the", "")


def test_a_bin_without_pairs_promises_nothing() -> None:
    """Its interval is from nothing to all, which says nothing and marks nothing."""
    shape = audited()
    audit_of(shape)["bins"][3] |= {"low": 0.0, "high": 1.0}
    assert "0.55 – 0.60 0 0 – – –" in read(shape).text


def test_intervals_say_what_they_mean() -> None:
    """Of a sample and of all documents they mean something else, and all documents are counted, not estimated."""
    sample, whole = read(audited()).text, read(audited_completely()).text
    assert "comparing a sample of 20,000 documents with all 60,000, exactly" in sample
    assert "what another sample or seed, or other documents like these, would give, with 95% confidence" in sample
    assert "comparing all 37 documents with each other, exactly" in whole
    assert "The pairs of this corpus are counted for this seed, not estimated" in whole
    assert "what another seed, or other documents like these, would give, with 95% confidence" in whole
    assert "pairs, estimated" in sample
    assert "pairs, estimated" not in whole


def test_capped_buckets_are_told() -> None:
    """If there were some; an audit of an older version does not say."""
    shape = audited_completely()
    words = "3 buckets of more than 2,000 documents were capped: 1 candidate was left out, which the S-curve does not"
    assert words in read(shape).text
    audit_of(shape)["caps"] |= {"buckets": 0, "candidates_left_out": 0}
    assert "capped" not in read(shape).text
    del audit_of(shape)["caps"]
    assert "capped" not in read(shape).text


WORDS = [f"word{number:05}" for number in range(1500)]


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        ([*WORDS, "behind"], False),
        (["WORD00000", *WORDS[1:]], False),
        (["another", *WORDS[1:]], True),
        ([*WORDS[100:200], *WORDS[:100], *WORDS[200:]], True),
    ],
    ids=["later", "case", "word", "place"],
)
def test_long_texts_that_differ_later_say_so(other: list[str], differs: bool) -> None:
    """Of the first 10,000 characters it is told whether anything differs."""
    shape = newsroom()
    cluster = shape.report["largest_clusters"][0]
    shape.report["largest_clusters"], shape.report["just_below"] = [cluster], None
    for one in (cluster["kept"], *cluster["members"]):
        shape.texts[one["source"], one["row"]] = " ".join(WORDS if one is cluster["kept"] else other)
    page = shape.page()
    assert page.count("The first 10,000 characters.") == len(cluster["members"])
    assert ("Nothing in them differs." not in page) == differs


def test_words_of_the_curve_are_escaped_once() -> None:
    """A recall of nearly one is written with a sign of markup, on the page as in the file."""
    plan = Plan(threshold=0.9, bands=12, rows=4)
    for picture in (curve_chart(plan), draw_curve(plan)):
        assert "it is &gt; 0.9999." in picture
        assert "&amp;gt;" not in picture
