"""Report page of a real run in a browser: it shows the numbers of report.json."""

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
    """Return the output of a run on the codecs of Python, many of which were generated from one template."""
    folder = tmp_path_factory.mktemp("codecs") / "out"
    mw.dedup(str(ENCODINGS / "*.py"), threshold=0.6, output=folder)
    return folder


@pytest.fixture
def report(out: Path) -> dict[str, Any]:
    """Return the content of report.json."""
    content: dict[str, Any] = json.loads((out / "report.json").read_text(encoding="utf-8"))
    return content


@pytest.fixture
def opened(out: Path, visit: Opener) -> Visit:
    """Open its page."""
    return visit(out / "report.html")


def table(visit: Visit, name: str) -> list[list[str]]:
    """Return the cells of a table by row."""
    rows = visit.page.get_by_role("region", name=name).locator("tbody tr")
    return [row.locator("th, td").all_inner_texts() for row in rows.all()]


def test_the_figures_are_those_of_the_report(opened: Visit, report: dict[str, Any]) -> None:
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
    opened.open_all()
    pairs = [int(row[1]) for row in table(opened, "Pairs by similarity")]
    assert pairs == report["similarities"]["counts"][100 - len(pairs) :]
    assert sum(pairs) == sum(report["similarities"]["counts"])
    sizes = [int(row[1]) for row in table(opened, "Clusters by size")]
    assert sizes == [size["clusters"] for size in report["clusters"]["sizes"]]
    (source,) = table(opened, "Sources")
    expected = report["sources"][0]
    names = ("rows", "kept", "removed", "quarantined")
    assert source == [expected["source"], source[1], *(str(expected[name]) for name in names)]
    assert source[1].strip() == f"{expected['removed'] / expected['rows']:.1%}"


def test_every_chart_has_visible_marks_a_title_and_a_description(opened: Visit) -> None:
    charts = opened.all("svg[role=img]")
    assert charts.count() == 4
    for chart in charts.all():
        marks = chart.locator("rect, path, circle").all()
        assert marks
        for mark in marks:
            box = mark.bounding_box()
            assert box is not None
            assert box["height"] >= 1
            assert box["width"] >= 1
        texts = [chart.locator(f"> {part}").text_content() or "" for part in ("title", "desc")]
        assert all(len(text) > 10 for text in texts)


def test_heights_of_bars_are_proportional_to_counts(opened: Visit, report: dict[str, Any]) -> None:
    """To a pixel; the lowest bar is still visible."""
    counts = [count for count in report["similarities"]["counts"] if count]
    plot = opened.one("#similarity-chart .plot").bounding_box()
    boxes = [bar.bounding_box() for bar in opened.all("#similarity-chart rect").all()]
    assert plot is not None
    assert len(boxes) == len(counts)
    for box, count in zip(boxes, counts, strict=True):
        assert box is not None
        assert box["height"] == pytest.approx(max(count / max(counts), 0.012) * plot["height"], abs=1.6)


def test_bars_below_the_threshold_are_left_of_its_line_in_another_colour(opened: Visit, report: dict[str, Any]) -> None:
    below = [bar.bounding_box() for bar in opened.all("#similarity-chart rect.below").all()]
    above = [bar.bounding_box() for bar in opened.all("#similarity-chart rect.bar").all()]
    line = opened.one("#similarity-chart line.threshold").bounding_box()
    assert line is not None
    assert below
    assert above
    assert all(box is not None and box["x"] + box["width"] <= line["x"] + 2 for box in below)
    assert all(box is not None and box["x"] >= line["x"] - 2 for box in above)
    colours = {name: _fill(opened, f"#similarity-chart rect.{name}") for name in ("below", "bar")}
    assert colours["below"] != colours["bar"]
    assert sum(report["similarities"]["counts"][:60]) == report["just_below"]["pairs"]


def _fill(visit: Visit, selector: str) -> str:
    return str(visit.all(selector).first.evaluate("one => getComputedStyle(one).fill"))


def test_a_cluster_opens_by_click(opened: Visit, report: dict[str, Any]) -> None:
    """It shows its members, least similar first, with their differences from the kept document."""
    cluster, expected = opened.all("#clusters details.cluster").first, report["largest_clusters"][0]
    assert not cluster.locator(".member").first.is_visible()
    cluster.locator("summary").click()
    members = cluster.locator(".member")
    assert members.count() == len(expected["members"])
    assert [text.split()[0] for text in members.locator(".similarity").all_inner_texts()] == [
        f"{int(member['similarity'] * 10_000 + 1e-6) / 10_000:.4f}" for member in expected["members"]
    ]
    assert Path(expected["members"][0]["id"]).name in members.first.inner_text()
    assert members.locator("mark").first.is_visible()


def test_differences_are_the_texts_themselves(opened: Visit, report: dict[str, Any]) -> None:
    """Shared passages are in both texts, and marked parts in one; the rest of each text is shown too."""
    kept, member = (report["largest_clusters"][0][name] for name in ("kept", "members"))
    texts = [Path(document["source"]).read_text(encoding="utf-8") for document in (kept, member[0])]
    cluster = opened.all("#clusters details.cluster").first
    cluster.locator("summary").click()
    shown = cluster.locator(".member").first
    whole = [" ".join(text.split()) for text in texts]
    shared = shown.locator(".shared").all_text_contents()
    assert shared
    assert all(" ".join(passage.split()) in text for passage in shared for text in whole)
    for side, text in enumerate(whole, start=1):
        marked = shown.locator(f".pair:not(.names) .side:nth-child({side}) mark.only").all_text_contents()
        assert all(" ".join(part.split()) in text for part in marked)
    for text in texts:
        assert text.splitlines()[0] in shown.inner_text()


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_a_cluster_opens_by_keyboard(opened: Visit, key: str) -> None:
    """It can be focused, and the checkbox inside is operated by keyboard too."""
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
    assert opened.one("#selection").is_visible()


def test_pairs_just_below_the_threshold_show_their_differences(opened: Visit, report: dict[str, Any]) -> None:
    pairs = opened.all("#just-below details")
    assert pairs.count() == min(10, len(report["just_below"]["closest"]))
    assert f"{report['just_below']['pairs']:,} candidate pairs" in opened.one("#just-below").inner_text()
    pairs.first.locator("summary").click()
    assert pairs.first.locator("mark").first.is_visible()


def test_links_scroll_to_sections(opened: Visit) -> None:
    links = opened.all("nav a")
    assert links.count() == 9
    links.last.click()
    assert opened.one("#timing").evaluate("one => one.getBoundingClientRect().top < innerHeight")


def test_the_newsroom_has_no_warnings(visit: Opener, tmp_path: Path) -> None:
    mw.dedup(str(NEWSROOM), output=tmp_path / "out")
    opened = visit(tmp_path / "out" / "report.html")
    assert opened.one("#warnings h2").inner_text() == "No warnings"


def test_warnings_are_above_the_charts(visit: Opener, tmp_path: Path) -> None:
    rows = [json.dumps({"text": f"one two three four five six {number // 9}"}) for number in range(18)]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows), encoding="utf-8")
    mw.dedup(str(tmp_path / "rows.jsonl"), shingle="word:1", threshold=0.7, output=tmp_path / "out")
    warnings = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))["warnings"]
    opened = visit(tmp_path / "out" / "report.html")
    assert warnings
    assert opened.all("#warnings li").all_inner_texts() == warnings
    listed, charts = (opened.one(name).bounding_box() for name in ("#warnings", "#similarities"))
    assert listed is not None
    assert charts is not None
    assert listed["y"] < charts["y"]


def test_bars_of_stages_are_shares_of_the_total_time(visit: Opener) -> None:
    shape = newsroom()
    opened = visit(shape.page())
    stages = zip(shape.run["stages"], opened.all("#timing .with-bar").all(), strict=True)
    for stage, cell in stages:
        whole, bar = (cell.locator(name).bounding_box() for name in ("svg", "rect"))
        assert whole is not None
        assert bar is not None
        assert bar["width"] == pytest.approx(whole["width"] * stage["seconds"] / shape.run["seconds"], abs=1)


def test_an_audit_is_drawn_on_the_curve(visit: Opener) -> None:
    """Each measured recall in the middle of its bin, on a line over its interval."""
    shape = audited()
    opened = visit(shape.page())
    plot = opened.one("#curve .plot").bounding_box()
    assert plot is not None
    assert shape.audit is not None
    bins = [entry for entry in shape.audit["bins"] if entry["value"] is not None]
    for entry, mark in zip(bins, opened.all("#curve .measured").all(), strict=True):
        dot, line = (mark.locator(name).bounding_box() for name in ("circle", "line"))
        assert dot is not None
        assert line is not None
        middle = dot["x"] + dot["width"] / 2
        assert middle == pytest.approx(plot["x"] + plot["width"] * (entry["from"] + entry["to"]) / 2, abs=1)
        top = plot["y"] + plot["height"] * (1 - entry["high"])
        assert line["y"] == pytest.approx(top, abs=1.5)
        assert line["height"] == pytest.approx(plot["height"] * (entry["high"] - entry["low"]), abs=3)
    assert opened.all("#audit-chart rect").count() == 30
