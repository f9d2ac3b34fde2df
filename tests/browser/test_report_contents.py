"""The report of a real run in a browser: what a person sees there is what report.json says."""

import json
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from support.browser import Visit
from support.page_shapes import NEWSROOM, audited, newsroom

import minwise as mw
from browser.conftest import Opener

ENCODINGS = Path(sysconfig.get_paths()["stdlib"]) / "encodings"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of a run over Python's own codecs, many of which are made from one template."""
    folder = tmp_path_factory.mktemp("codecs") / "out"
    mw.dedup(str(ENCODINGS / "*.py"), threshold=0.6, output=folder)
    return folder


@pytest.fixture
def report(out: Path) -> dict[str, Any]:
    """What report.json says."""
    facts: dict[str, Any] = json.loads((out / "report.json").read_text(encoding="utf-8"))
    return facts


@pytest.fixture
def opened(out: Path, visit: Opener) -> Visit:
    """Its page."""
    return visit(out / "report.html")


def table(visit: Visit, name: str) -> list[list[str]]:
    """The cells of a table, row by row."""
    rows = visit.page.get_by_role("region", name=name).locator("tbody tr")
    return [row.locator("th, td").all_inner_texts() for row in rows.all()]


def test_the_figures_are_those_of_the_report(opened: Visit, report: dict[str, Any]) -> None:
    """Documents and bytes; the headline says the same in words."""
    counts = report["counts"]
    for name in ("read", "kept", "removed", "quarantined", "empty"):
        assert opened.value(f"#figure-{name}") == counts[name]
    assert opened.value("#figure-identical") == counts["removed_identical"]
    assert opened.value("#figure-similar") == counts["removed"] - counts["removed_identical"]
    for name in ("read", "kept", "removed", "quarantined"):
        stated = opened.all(f"#figure-{name} data").nth(1).get_attribute("value")
        assert stated == str(report["text_bytes"][name])
    assert opened.one("h1").inner_text() == f"{counts['kept']} of {counts['read']} documents kept."


def test_the_tables_are_those_of_the_report(opened: Visit, report: dict[str, Any]) -> None:
    """Similarities, cluster sizes and sources, number by number."""
    opened.open_all()
    pairs = [int(row[1]) for row in table(opened, "Pairs by similarity")]
    assert pairs == report["similarities"]["counts"][100 - len(pairs) :]
    assert sum(pairs) == sum(report["similarities"]["counts"])
    sizes = [int(row[1]) for row in table(opened, "Clusters by size")]
    assert sizes == [one["clusters"] for one in report["clusters"]["sizes"]]
    (source,) = table(opened, "Sources")
    expected = report["sources"][0]
    names = ("rows", "kept", "removed", "quarantined")
    assert source == [expected["source"], source[1], *(str(expected[name]) for name in names)]
    assert source[1].strip() == f"{expected['removed'] / expected['rows']:.1%}"


def test_every_chart_has_marks_to_see(opened: Visit) -> None:
    """Each mark has a size on the screen, and each chart a title and a description."""
    charts = opened.all("svg[role=img]")
    assert charts.count() == 3
    for chart in charts.all():
        marks = chart.locator("rect, path, circle").all()
        assert marks
        for mark in marks:
            box = mark.bounding_box()
            assert box is not None
            assert box["height"] >= 1
            assert box["width"] >= 1
        words = [chart.locator(f"> {part}").text_content() or "" for part in ("title", "desc")]
        assert all(len(one) > 10 for one in words)


def test_bars_are_as_high_as_their_counts(opened: Visit, report: dict[str, Any]) -> None:
    """The tallest fills the plot, the others their share of it, to a pixel; the least is still seen."""
    counts = [count for count in report["similarities"]["counts"] if count]
    plot = opened.one("#similarity-chart .plot").bounding_box()
    boxes = [bar.bounding_box() for bar in opened.all("#similarity-chart rect").all()]
    assert plot is not None
    assert len(boxes) == len(counts)
    for box, count in zip(boxes, counts, strict=True):
        assert box is not None
        assert box["height"] == pytest.approx(max(count / max(counts), 0.012) * plot["height"], abs=1.6)


def test_bars_below_the_threshold_have_another_tone(opened: Visit, report: dict[str, Any]) -> None:
    """On the left of the line, which stands at the threshold."""
    below = [one.bounding_box() for one in opened.all("#similarity-chart rect.below").all()]
    above = [one.bounding_box() for one in opened.all("#similarity-chart rect.bar").all()]
    line = opened.one("#similarity-chart line.threshold").bounding_box()
    assert line is not None
    assert below
    assert above
    assert all(one is not None and one["x"] + one["width"] <= line["x"] + 2 for one in below)
    assert all(one is not None and one["x"] >= line["x"] - 2 for one in above)
    tones = {name: _fill(opened, f"#similarity-chart rect.{name}") for name in ("below", "bar")}
    assert tones["below"] != tones["bar"]
    assert sum(report["similarities"]["counts"][:60]) == report["just_below"]["pairs"]


def _fill(visit: Visit, selector: str) -> str:
    return str(visit.all(selector).first.evaluate("one => getComputedStyle(one).fill"))


def test_a_cluster_opens_by_click(opened: Visit, report: dict[str, Any]) -> None:
    """And shows its members, least similar first, with their differences to the kept one."""
    cluster, expected = opened.all("#clusters details.cluster").first, report["largest_clusters"][0]
    assert not cluster.locator(".member").first.is_visible()
    cluster.locator("summary").click()
    members = cluster.locator(".member")
    assert members.count() == len(expected["members"])
    assert [text.split()[0] for text in members.locator(".similarity").all_inner_texts()] == [
        f"{int(one['similarity'] * 10_000 + 1e-6) / 10_000:.4f}" for one in expected["members"]
    ]
    assert Path(expected["members"][0]["id"]).name in members.first.inner_text()
    assert members.locator("mark").first.is_visible()


def test_differences_are_the_texts_themselves(opened: Visit, report: dict[str, Any]) -> None:
    """What is marked stands in both texts, and what only one has is there as well."""
    kept, member = (report["largest_clusters"][0][name] for name in ("kept", "members"))
    texts = [Path(one["source"]).read_text(encoding="utf-8") for one in (kept, member[0])]
    cluster = opened.all("#clusters details.cluster").first
    cluster.locator("summary").click()
    shown = cluster.locator(".member").first
    marked = [one.strip() for one in shown.locator("mark").all_text_contents() if one.strip()]
    assert marked
    for one in marked:
        assert all(" ".join(one.split()) in " ".join(text.split()) for text in texts)
    for text in texts:
        assert text.splitlines()[0] in shown.inner_text()


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_a_cluster_opens_by_keyboard(opened: Visit, key: str) -> None:
    """It takes the focus, shows it, and opens; the box inside is ticked by the keyboard, too."""
    summary = opened.all("#clusters summary").first
    summary.focus()
    opened.page.keyboard.press(key)
    assert opened.all("#clusters .member").first.is_visible()
    opened.page.keyboard.press("Tab")
    box = opened.all("#clusters input").first
    while not box.evaluate("one => one === document.activeElement"):
        opened.page.keyboard.press("Tab")
    assert box.evaluate("one => getComputedStyle(one).outlineStyle") != "none"
    opened.page.keyboard.press("Space")
    assert box.is_checked()
    assert opened.one("#ticked").is_visible()


def test_what_nearly_was_removed(opened: Visit, report: dict[str, Any]) -> None:
    """The closest pairs, most similar first, with their differences."""
    pairs = opened.all("#just-below details")
    assert pairs.count() == min(10, len(report["just_below"]["closest"]))
    assert f"{report['just_below']['pairs']:,} candidate pairs" in opened.one("#just-below").inner_text()
    pairs.first.locator("summary").click()
    assert pairs.first.locator("mark").first.is_visible()


def test_links_lead_to_sections(opened: Visit) -> None:
    """Each brings its section to the top."""
    links = opened.all("nav a")
    assert links.count() == 8
    links.last.click()
    assert opened.one("#effort").evaluate("one => one.getBoundingClientRect().top < innerHeight")


def test_the_newsroom_is_calm(visit: Opener, tmp_path: Path) -> None:
    """Nothing alarming is said to be so."""
    mw.dedup(str(NEWSROOM), output=tmp_path / "out")
    opened = visit(tmp_path / "out" / "report.html")
    assert opened.one("#alarms h2").inner_text() == "Nothing alarming"


def test_alarms_come_first(visit: Opener, tmp_path: Path) -> None:
    """Those of report.json, above everything but the figures."""
    rows = [json.dumps({"text": f"one two three four five six {number // 9}"}) for number in range(18)]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows), encoding="utf-8")
    mw.dedup(str(tmp_path / "rows.jsonl"), shingle="word:1", threshold=0.7, output=tmp_path / "out")
    warnings = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))["warnings"]
    opened = visit(tmp_path / "out" / "report.html")
    assert warnings
    assert opened.all("#alarms li").all_inner_texts() == warnings
    alarms, charts = (opened.one(name).bounding_box() for name in ("#alarms", "#similarities"))
    assert alarms is not None
    assert charts is not None
    assert alarms["y"] < charts["y"]


def test_bars_of_stages_fill_their_share(visit: Opener) -> None:
    """Of a box that stands for the whole time, as the number beside it says."""
    shape = newsroom()
    opened = visit(shape.page())
    stages = zip(shape.run["stages"], opened.all("#effort .with-bar").all(), strict=True)
    for stage, cell in stages:
        whole, bar = (cell.locator(name).bounding_box() for name in ("svg", "rect"))
        assert whole is not None
        assert bar is not None
        assert bar["width"] == pytest.approx(whole["width"] * stage["seconds"] / shape.run["seconds"], abs=1)


def test_an_audit_is_drawn_on_the_curve(visit: Opener) -> None:
    """Each measured recall at its place, on an interval that reaches to both sides of it."""
    shape = audited()
    opened = visit(shape.page())
    plot = opened.one("#curve .plot").bounding_box()
    assert plot is not None
    assert shape.audit is not None
    bins = [one for one in shape.audit["bins"] if one["value"] is not None]
    for one, mark in zip(bins, opened.all("#curve .measured").all(), strict=True):
        dot, line = (mark.locator(name).bounding_box() for name in ("circle", "line"))
        assert dot is not None
        assert line is not None
        middle = dot["x"] + dot["width"] / 2
        assert middle == pytest.approx(plot["x"] + plot["width"] * (one["from"] + one["to"]) / 2, abs=1)
        top = plot["y"] + plot["height"] * (1 - one["high"])
        assert line["y"] == pytest.approx(top, abs=1.5)
        assert line["height"] == pytest.approx(plot["height"] * (one["high"] - one["low"]), abs=3)
    assert opened.all("#audit-chart rect").count() == 30
