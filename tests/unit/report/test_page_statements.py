"""Statements on the report page for runs that were not verified, not audited, audited in part, or used much memory."""

import re
from typing import Any

import pytest
from support.page_shapes import (
    Shape,
    audited,
    audited_completely,
    empty_corpus,
    estimated,
    exact,
    newsroom,
    nothing_removed,
    without_similarities,
)
from test_page import read

from minwise.report.run_sections import timing_section
from minwise.sketches.planning import Plan
from minwise.sketches.s_curve import curve_chart, draw_curve

GB = 10**9


def audit_of(shape: Shape) -> dict[str, Any]:
    """Return the audit of a shape that has one."""
    assert shape.audit is not None
    return shape.audit


def test_an_exact_run_is_not_to_be_audited() -> None:
    text = read(exact()).text
    assert "An exact join finds every pair, so there is nothing to measure." in text
    assert "Not measured." not in text
    assert "minwise audit" not in text


def test_a_page_without_an_audit_shows_both_commands() -> None:
    text = read(newsroom()).text
    assert "compares a sample of the documents with all of them, exactly" in text
    assert "minwise audit INPUT… --threshold 0.55 --shingle word:3 -o audit.json" in text
    assert "minwise report OUT --audit audit.json" in text


@pytest.mark.parametrize(
    ("peak", "before", "sentence", "style"),
    [
        (2 * GB, 1, "Peak memory 2 GB of 4 GB allowed (50.0%).", "bar"),
        (4 * GB, 1, "Peak memory 4 GB of 4 GB allowed (100%).", "bar"),
        (4 * GB + 1, 1, "Peak memory 4 GB, slightly more than the 4 GB allowed.", "bad"),
        (10 * GB, 1, "Peak memory 10 GB, 2.5 times the 4 GB allowed.", "bad"),
        (10 * GB, None, "Peak memory 10 GB, 2.5 times the 4 GB allowed.", "bad"),
        (10 * GB, 5 * GB, "2.5 times the 4 GB allowed; before the run, the process had reached 5 GB.", "bad"),
        (10 * GB, 10 * GB, "10 GB, which the process had reached before the run. 4 GB allowed.", ""),
    ],
)
def test_peak_memory_is_compared_with_the_limit(peak: int, before: int | None, sentence: str, style: str) -> None:
    """A peak from before the run is not marked."""
    run = {"peak_memory_bytes": peak, "memory_limit_bytes": 4 * GB}
    section = timing_section(run if before is None else {**run, "peak_memory_before_bytes": before})
    assert sentence in section
    assert re.findall(r'<rect class="(\w+)"', section) == [style] * bool(style)


def test_bars_of_stages_are_shares_of_the_whole_time() -> None:
    """A stage of no time has a visible bar too."""
    stages = [{"stage": "read", "seconds": 1.0}, {"stage": "write", "seconds": 0.5}, {"stage": "sort", "seconds": 0.0}]
    section = timing_section({"seconds": 4.0, "stages": stages})
    assert re.findall(r'width="([\d.]+)%"', section) == ["25.000", "12.500", "0.400"]
    assert "<span>25.0%</span>" in section
    without_total = timing_section({"stages": stages})
    assert re.findall(r'width="([\d.]+)%"', without_total)[0] == "66.667"


def test_a_cluster_with_members_that_were_not_compared_has_no_lowest_similarity() -> None:
    shape = without_similarities()
    clusters = shape.report["largest_clusters"]
    clusters[0]["members"][0]["similarity"] = None
    clusters[0]["members"][1]["similarity"] = 1.0
    headers = re.findall(r'<span class="quiet least">(.*?)</span>', shape.page())
    assert headers[0] == "1 not compared"
    for header, cluster in zip(headers, clusters, strict=True):
        unknown = sum(member["similarity"] is None for member in cluster["members"])
        assert header == (f"{unknown} not compared" if unknown else "least similar 1.0000")


def test_unlisted_members_of_a_large_cluster_may_not_be_compared_either() -> None:
    shape = without_similarities()
    cluster = shape.report["largest_clusters"][0]
    cluster["size"] = 500
    for member in cluster["members"]:
        member["similarity"] = None
    assert f'<span class="quiet least">at least {len(cluster["members"])} not compared</span>' in shape.page()


def test_without_verification_the_page_does_not_say_no_warnings() -> None:
    page = without_similarities().page()
    assert '<section id="warnings" class="neutral"' in page
    assert "Candidates were not verified" in page
    assert "No warnings" not in page
    assert "is itself similar" not in page


def test_no_warnings_says_what_was_checked() -> None:
    """With the minimum size of a corpus, and whether similarities are estimates."""
    text = read(newsroom()).text
    assert "no cluster holds more than 1 % of all (checked in corpora of at least 1,000 documents)" in text
    assert "similar to the kept one." in text
    assert "similar to the kept one, as estimated from signatures." in read(estimated()).text


@pytest.mark.parametrize(
    ("counts", "sources", "title", "why"),
    [
        ({"read": 0}, 0, "Nothing was read", "There were no inputs."),
        ({"read": 0}, 1, "Nothing was read", "The only input has no documents."),
        ({"read": 0}, 3, "Nothing was read", "All 3 inputs have no documents."),
        ({"read": 7, "quarantined": 7}, 1, "Nothing could be used", "All 7 documents are quarantined."),
        ({"read": 1, "quarantined": 1}, 1, "Nothing could be used", "The only document is quarantined."),
        (
            {"read": 5, "quarantined": 2, "empty": 3, "kept": 3},
            1,
            "Nothing was compared",
            "All 3 documents are without",
        ),
    ],
    ids=["no inputs", "empty file", "empty files", "quarantined", "one quarantined", "no tokens"],
)
def test_a_run_that_compared_nothing_says_why(counts: dict[str, int], sources: int, title: str, why: str) -> None:
    """Instead of "No warnings"; with what was left out of the inputs, and besides warnings if there are any."""
    shape = empty_corpus()
    shape.report["counts"] |= counts
    shape.report["sources"] = [
        {"source": f"{number}.jsonl", "rows": 0, "quarantined": 0, "kept": 0, "removed": 0} for number in range(sources)
    ]
    shape.report["inputs"] = {"read_as": [], "skipped": {"names that begin with a dot": 2}}
    page = shape.page()
    assert f">{title}</h2>" in page
    assert why in page
    assert ("2 entries (names that begin with a dot). Check the inputs" in page) == (title == "Nothing was read")
    assert "No warnings" not in page
    shape.report["unreadable"] = [{"source": "0.jsonl", "row": None, "reason": "broken"}]
    assert shape.page().count(why) == page.count(why)
    assert "1 warning" in shape.page()


def test_notes_and_what_was_left_out_of_the_inputs_are_shown() -> None:
    """Reports of older versions have neither."""
    shape = newsroom()
    assert "Notes" not in shape.page()
    shape.report["notes"] = ["Most documents are <short>; set `shingle='char:9'`.", "Another note."]
    shape.report["inputs"] = {
        "skipped": {"names that begin with a dot": 1, "files reached a second time": 3},
    }
    page = shape.page()
    assert "<li>Most documents are &lt;short&gt;; set <code>shingle=&#x27;char:9&#x27;</code>.</li>" in page
    assert "<li>Another note.</li>" in page
    skipped = "1 entry (names that begin with a dot), 3 entries (files reached a second time)"
    assert f"Left out of the inputs: {skipped}." in page


def test_an_expected_recall_outside_the_interval_is_marked() -> None:
    """By a sign and a word in its row only; a note below the table says how often this happens by chance."""
    shape = audited()
    tree = read(shape)
    assert sum(name == "outside" for name in tree.attributes("class")) == 2
    assert "0.45 – 0.50 200 100 0.5000 0.4300 – 0.5700 ≠ outside 0.6400" in tree.text
    assert "By chance alone, this happens in about one bin in 20." in tree.text
    audit_of(shape)["bins"][1]["promised"] = 0.57
    assert "outside" not in read(shape).text.replace("outside the", "")


def test_a_bin_without_pairs_has_no_recall() -> None:
    shape = audited()
    audit_of(shape)["bins"][3] |= {"low": 0.0, "high": 1.0}
    assert "0.55 – 0.60 0 0 – – –" in read(shape).text


def test_the_meaning_of_intervals_is_explained() -> None:
    """It differs between a sample and all documents, whose pairs are counted, not estimated."""
    sample, whole = read(audited()).text, read(audited_completely()).text
    assert "A sample of 20,000 documents was compared with all 60,000 exactly" in sample
    assert "95% confidence intervals for other samples, other seeds and similar documents." in sample
    assert "All 37 documents were compared with each other exactly" in whole
    assert "Pairs are counted for this corpus and seed, not estimated." in whole
    assert "95% confidence intervals for other seeds and similar documents." in whole
    assert "pairs, estimated" in sample
    assert "pairs, estimated" not in whole


def test_capped_buckets_are_reported() -> None:
    """Audits of older versions do not contain them."""
    shape = audited_completely()
    sentence = (
        "3 buckets of more than 2,000 documents were capped: 1 candidate was left out, which the S-curve does not"
    )
    assert sentence in read(shape).text
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
    ids=["later", "case", "word", "position"],
)
def test_the_page_says_whether_the_first_10000_characters_differ(other: list[str], differs: bool) -> None:
    shape = newsroom()
    cluster = shape.report["largest_clusters"][0]
    shape.report["largest_clusters"], shape.report["just_below"] = [cluster], None
    for document in (cluster["kept"], *cluster["members"]):
        words = WORDS if document is cluster["kept"] else other
        shape.texts[document["source"], document["row"]] = " ".join(words)
    page = shape.page()
    assert page.count("Only the first 10,000 characters are compared here") == len(cluster["members"])
    assert ("They do not differ" not in page) == differs


@pytest.mark.parametrize(
    ("other", "note"),
    [
        ("One two three four.", "The texts are identical."),
        ("ONE two, three four.", "The texts do not differ, except perhaps in case, punctuation and blanks."),
        ("One two three five.", None),
    ],
)
def test_texts_without_differences_are_said_to_have_none(other: str, note: str | None) -> None:
    """So that a side-by-side view in which nothing is marked is not taken for a fault."""
    shape = newsroom()
    cluster = shape.report["largest_clusters"][0]
    shape.report["largest_clusters"], shape.report["just_below"] = [cluster], None
    for document in (cluster["kept"], *cluster["members"]):
        shape.texts[document["source"], document["row"]] = (
            "One two three four." if document is cluster["kept"] else other
        )
    page = shape.page()
    assert page.count("The texts") == (0 if note is None else len(cluster["members"]))
    assert note is None or note in page


def test_a_run_that_removed_nothing_says_nothing_about_removed_documents() -> None:
    assert "Every removed document" not in nothing_removed().page()
    assert "Every removed document" in newsroom().page()


def test_text_of_the_curve_is_escaped_once() -> None:
    """A recall of nearly 1 is written with ``>``, on the page and in the file."""
    plan = Plan(threshold=0.9, bands=12, rows=4)
    for picture in (curve_chart(plan), draw_curve(plan)):
        assert "it is &gt; 0.9999." in picture
        assert "&amp;gt;" not in picture
