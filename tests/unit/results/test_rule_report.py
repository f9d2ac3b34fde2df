"""Preferred and protected values in reports and explanations: counts, notes, warnings, and the rule of a document."""

from typing import Any

import pyarrow as pa
import pytest

import minwise as mw
from minwise.results import DedupResult

FERRY = "the ferry leaves the old harbour at six in the morning and returns at noon with the mail"
MARKET = "the market opens at eight near the river and closes when the last fish of the day is sold"
ROWS = pa.table(
    {
        "id": ["crawl", "books", "wiki", "alone", "other"],
        "text": [f"{FERRY} today", FERRY, f"{FERRY} again", MARKET, MARKET],
        "site": ["crawl", "books", "wiki", "wiki", None],
    }
)


def deduplicated(**rules: Any) -> DedupResult:  # noqa: ANN401 - settings
    return mw.dedup(ROWS, threshold=0.6, shingle="word:3", **rules)


def test_values_that_rules_name_are_counted() -> None:
    result = deduplicated(prefer="site=books,wiki,video", protect=["site=crawl", "site=radio"])
    assert result.removed.column("id").to_pylist() == ["books", "wiki", "other"]
    counted = [{"value": "books", "rows": 1, "kept": 0}, {"value": "wiki", "rows": 2, "kept": 1}]
    never = [{"value": "crawl", "rows": 1, "kept": 1}, {"value": "radio", "rows": 0, "kept": 0}]
    assert result.report["keep_rules"] == {
        "prefer": {"column": "site", "values": [*counted, {"value": "video", "rows": 0, "kept": 0}]},
        "protect": [{"column": "site", "values": never}],
    }


def test_notes_say_what_is_protected_and_preferred_and_warnings_what_no_row_has() -> None:
    report = deduplicated(prefer="site=books,wiki,video", protect=["site=crawl", "site=radio"]).report
    assert report["notes"] == [
        "protected: 1 row with site=crawl, all kept",
        "preferred, in this order: site=books (0 of 1 rows kept), site=wiki (1 of 2 rows kept)",
    ]
    assert report["warnings"][-2:] == [
        "no row has site=video, named by prefer",
        "no row has site=radio, named by protect",
    ]


def test_a_report_without_rules_does_not_mention_them() -> None:
    report = deduplicated(keep="longest,last").report
    assert {"prefer", "protect", "keep_rules"} & {*report, *report["settings"]} == set()
    assert report["settings"]["keep"] == "longest,last"


@pytest.mark.parametrize(
    ("rules", "document", "rule"),
    [
        ({"protect": "site=crawl"}, "crawl", "protected: rows with site=crawl are never removed"),
        ({"protect": "site=crawl"}, "books", "protected: rows with site=crawl are never removed"),
        ({"prefer": "site=wiki,books"}, "wiki", "preferred: site=wiki is number 1 of the 2 preferred values"),
        ({"prefer": "site=wiki,books"}, "alone", "preferred: site=wiki is number 1 of the 2 preferred values"),
        ({"prefer": "site=radio"}, "crawl", ""),
        ({"keep": "longest"}, "wiki", ""),
    ],
)
def test_an_explanation_names_the_rule_of_the_kept_document(rules: dict[str, Any], document: str, rule: str) -> None:
    found = deduplicated(**rules).explain(document)
    assert found.rule == rule
    assert ("rule" in found.to_dict()) == bool(rule)
    shown = [text for name, text in found.facts() if name == "rule"]
    assert shown == ([] if not rule else [f"{found.witness.id} is {rule}" if found.witness else rule])
