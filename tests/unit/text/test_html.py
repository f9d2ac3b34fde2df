"""Visible text of HTML pages."""

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.expect import error_message

import minwise as mw
from minwise.errors import ConfigError
from minwise.text.html import html_to_text


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("", ""),
        ("plain", "plain"),
        ("<p>one<p>two", "one\ntwo"),
        ("w<b>or</b>d and <i>more</i>", "word and more"),
        ("<div>a<p>b</p>c<br>d</div>e", "a\nb\nc\nd\ne"),
        ("<table><tr><td>x<td>y</table>", "x\ny"),
        ("<ul><li>one</li><li>two</li></ul>", "one\ntwo"),
        ("<head><title>no</title><style>p{}</style></head><body>yes", "yes"),
        ("a<script>if (1 < 2) document.write('<p>no')</script>b", "ab"),
        ("a<style>b{}</style><noscript>no</noscript><template><p>no</template>", "a"),
        ("a<!-- <p>no --><svg><style>no</style><text>no</text></svg>z", "az"),
        ("R&amp;D &lt;b&gt; caf&eacute; &#8364;5&nbsp;only", "R&D <b> café €5 only"),
        ("<p>spread \n  over\tlines", "spread\nover lines"),
        ("<p>never closed <b>and <i>nested</p> badly", "never closed and nested\nbadly"),
        ("text <p attr='<p>quoted'>more", "text\nmore"),
        ("cut off <p", "cut off"),
        ("<textarea>no</textarea><select><option>no</select>yes", "yes"),
        ("<div>" * 5000 + "deep", "deep"),
    ],
)
def test_visible_text_follows_the_rules_of_browsers(page: str, text: str) -> None:
    assert html_to_text(pa.array([page]))[0].to_pylist() == [text.encode()]


def test_column_types_nulls_and_invalid_utf8() -> None:
    """Invalid UTF-8 is returned unchanged, for the kernel to report."""
    pages = [b"<p>a", None, b"\xff<p>"]
    for kind in (pa.binary(), pa.large_binary()):
        assert html_to_text(pa.array(pages, kind))[0].to_pylist() == [b"a", None, b"\xff<p>"]
    assert html_to_text(pa.array(["<p>a", None]))[0].to_pylist() == [b"a", None]
    assert len(html_to_text(pa.nulls(0, pa.large_string()))[0]) == 0


def test_pages_with_other_markup_are_near_duplicates(tmp_path: Path) -> None:
    """With ``html=True`` the pages are copies, without it they are not; kept files are copied unchanged."""
    words = "the ferry leaves the old harbour at six in the morning"
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "a.html").write_text(f"<html><head><script>var a=1</script></head><p>{words}</p>")
    (pages / "b.html").write_text(f"<div class=x><style>p{{}}</style><b>{words.upper()}</b></div>")
    (pages / "c.html").write_bytes(b"<p>\xff")
    options: dict[str, Any] = {"on_error": "quarantine"}
    assert mw.pairs(pages, **options).num_rows == 0
    assert mw.pairs(pages, html=True, **options).to_pylist() == [
        {"left": "a.html", "right": "b.html", "similarity": 1.0}
    ]
    result = mw.dedup(pages, tmp_path / "out", html=True, **options)
    assert (tmp_path / "out" / "kept" / "a.html").read_bytes() == (pages / "a.html").read_bytes()
    assert result.report["settings"]["html"] is True
    assert result.report["counts"]["quarantined"] == 1
    assert result.kept["text"].to_pylist() == [words]


def test_a_missing_package_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "selectolax.lexbor", None)
    message = error_message(ConfigError, lambda: mw.pairs(["<p>a"], html=True))
    assert message == "html requires the package selectolax; install minwise with the extra html"


@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 100_000,
        f"<p {' '.join(f'a{number}=1' for number in range(100_000))}>x",
        "".join(f"<font size={number}>" for number in range(1000)) + "<p>x" * 100_000,
        "<table><tr><td>" * 100_000,
    ],
    ids=["nested", "attributes", "reopened", "tables"],
)
@pytest.mark.timeout(60)
def test_page_of_unbounded_cost_is_quarantined(page: str) -> None:
    """The parser takes 26 s for the first page and 66 s for the second, and the square of that for longer ones."""
    result = mw.dedup([page, "<p>good text"], html=True, on_error="quarantine")
    assert result.report["counts"]["quarantined"] == 1
    assert result.report["counts"]["kept"] == 1
    assert "is an HTML page" in str(result.report)


def test_refused_pages_keep_the_faults_of_other_rows_in_order() -> None:
    pages = ["<b>" * 10_000, None, "<p>good", "<i>" * 10_000]
    result = mw.dedup(pa.table({"text": pages}), html=True, on_error="quarantine")
    counts = result.report["counts"]
    assert (counts["read"], counts["kept"], counts["quarantined"]) == (4, 1, 3)
