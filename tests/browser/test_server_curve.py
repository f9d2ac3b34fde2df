"""S-curve view: every number equals that of `minwise.plan`."""

import re
from collections.abc import Iterator
from itertools import pairwise

import pytest
from server.running import Server, serving
from support.browser import Visit

import minwise as mw
from browser.conftest import Opener
from minwise._internal.formatting import format_percent, format_probability
from minwise.errors import ConfigError
from minwise.sketches import Plan

SETTINGS = [
    (26, 8, 0.8),
    (1, 1, 0.5),
    (200, 1, 0.05),
    (5, 40, 0.95),
    (49, 2, 0.3),
    (2000, 8, 0.3),
    (1, 16384, 0.999),
    (16384, 1, 0.001),
    (20, 5, 1.0),
    (3, 7, 0.123),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve an empty index with its own plan."""
    path = tmp_path_factory.mktemp("index") / "planned.mw"
    mw.Index.create(path, threshold=0.6, recall=0.95, slots=100).close()
    with serving(path) as running:
        yield running


def choose(visit: Visit, bands: int, rows: int, threshold: float) -> None:
    """Type the numbers; few bands first, since not all combinations are valid."""
    for name, value in (("bands", 1), ("rows", rows), ("bands", bands), ("threshold", threshold)):
        visit.one(f"#{name}-number").fill(str(value))


def assert_shown(visit: Visit, plan: Plan) -> None:
    """Check that all figures, the plot and the table are those of a plan."""
    figures = {
        "recall": format_probability(plan.recall),
        "steepest": f"{plan.steepest:.2f}",
        "slots": f"{plan.slots:,}",
        "false-candidates": format_percent(plan.false_candidate_rate, 1),
        "false-positive": format_probability(plan.false_positive_area()),
        "false-negative": format_probability(plan.false_negative_area()),
    }
    shown = "all => Object.fromEntries(all.map(one => [one.id, one.innerText]))"
    assert visit.all("#curve dd.large").evaluate_all(shown) == figures
    table = visit.all("#curve-table tr").evaluate_all(
        "all => all.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    assert table == [[f"{one.similarity:.2f}", format_probability(one.probability)] for one in plan.table(step=0.05)]
    numbers = visit.all("#curve .dial input[type=number]").evaluate_all("all => all.map(one => Number(one.value))")
    assert numbers == [plan.bands, plan.rows, plan.threshold]
    points = re.findall(r"([\d.]+) ([\d.]+)", visit.one("#plot path.curve").get_attribute("d") or "")
    assert len(points) > 100
    for x, y in points:
        # Both are rounded to 0.01 of 100; where the curve is steep, the rounding of the similarity dominates.
        near = [100 - 100 * plan.probability(min(max((float(x) + off) / 100, 0), 1)) for off in (-0.005, 0.005)]
        assert min(near) - 0.006 <= float(y) <= max(near) + 0.006


def test_numbers_are_those_of_the_plan(go: Opener, server: Server) -> None:
    """From one slot to the maximum number of slots."""
    visit = go(server.url, "#curve")
    for bands, rows, threshold in SETTINGS:
        choose(visit, bands, rows, threshold)
        assert_shown(visit, Plan(threshold=threshold, bands=bands, rows=rows))


def test_explanation_contains_the_numbers(go: Opener, server: Server) -> None:
    """With formulas and a recommendation."""
    visit = go(server.url, "#curve")
    choose(visit, 26, 8, 0.8)
    explanation = " ".join(visit.one("#sentences").inner_text().split())
    for words in (
        "sketched into 208 slots",
        "divided into 26 bands of 8 rows",
        "A pair of similarity 0.8 agrees in all 8 rows of one band with probability 0.88 = 16.8%",
        "in at least one of 26 bands with 1 − (1 − 0.88)26 = 99.2%",
        "A pair half as similar, 0.4, agrees in all 8 rows of one band with 0.48 = 0.0655%",
        "in at least one of 26 bands with 1.7%",
        "steepest near 0.67, below the threshold: few pairs are missed",
    ):
        assert words in explanation
    choose(visit, 5, 40, 0.95)
    assert (
        "so 50.3% of the pairs at the threshold are missed. More bands give them more chances"
        in visit.one("#sentences").inner_text()
    )
    choose(visit, 200, 1, 0.05)
    assert "agrees in the only row of one band" in visit.one("#sentences").inner_text()
    assert "most pairs below it are compared unnecessarily" in visit.one("#sentences").inner_text()


def test_the_view_opens_at_the_plan_of_the_index(go: Opener, server: Server) -> None:
    """Also if it is not the first view; a layout that was chosen before stays."""
    own = mw.plan(0.6, 0.95, slots=100)
    for view in ("#curve", "#find"):
        visit = go(server.url, view)
        visit.page.get_by_role("link", name="S-curve").click()
        visit.wait_for("#planned", f"This index has {own.bands} bands × {own.rows} rows")
        assert_shown(visit, own)
    choose(visit, 20, 5, 0.7)
    visit.page.get_by_role("link", name="Index").click()
    with visit.page.expect_response("**/v1/plan"):
        visit.page.get_by_role("button", name="Refresh").click()
    visit.page.get_by_role("link", name="S-curve").click()
    assert_shown(visit, Plan(threshold=0.7, bands=20, rows=5))


def test_plan_of_the_index_and_best_plan_are_shown(go: Opener, server: Server) -> None:
    """And the error of the service where there is no plan."""
    visit = go(server.url, "#curve")
    visit.refusals.add(422)
    visit.page.get_by_role("button", name="Use the plan of this index").click()
    own = mw.plan(0.6, 0.95, slots=100)
    visit.wait_for("#planned", f"This index has {own.bands} bands × {own.rows} rows")
    assert_shown(visit, own)
    visit.one("#threshold-number").fill("0.7")
    assert visit.one("#planned").inner_text() == ""
    visit.one("#wished").fill("0.999")
    visit.one("#budget").fill("512")
    visit.one("#budget").press("Enter")
    best = mw.plan(0.7, 0.999, slots=512)
    visit.wait_for("#planned", f"{best.bands} bands × {best.rows} rows, {best.slots} slots")
    assert_shown(visit, best)
    visit.one("#budget").fill("2")
    visit.page.get_by_role("button", name="Best plan").click()
    with pytest.raises(ConfigError) as refused:
        mw.plan(0.7, 0.999, slots=2)
    visit.wait_for("#curve-trouble", str(refused.value))
    assert_shown(visit, best)


def test_sliders_work_with_the_keyboard(go: Opener, server: Server) -> None:
    """Arrow keys, Home and End; a typed number extends the slider."""
    visit = go(server.url, "#curve")
    choose(visit, 26, 8, 0.8)
    for name, key, wanted in (
        ("bands", "ArrowRight", (27, 8, 0.8)),
        ("rows", "ArrowLeft", (27, 7, 0.8)),
        ("threshold", "ArrowDown", (27, 7, 0.79)),
        ("rows", "End", (27, 32, 0.79)),
        ("bands", "Home", (1, 32, 0.79)),
        ("threshold", "End", (1, 32, 1.0)),
    ):
        visit.one(f"#{name}").focus()
        visit.page.keyboard.press(key)
        bands, rows, threshold = wanted
        assert_shown(visit, Plan(threshold=threshold, bands=bands, rows=rows))
    visit.one("#bands-number").fill("300")
    visit.one("#bands").focus()
    visit.page.keyboard.press("ArrowLeft")
    assert visit.one("#bands-number").input_value() == "299"


def test_invalid_numbers_are_rejected(go: Opener, server: Server) -> None:
    """Too many slots show an error; an invalid number is replaced by the last valid one."""
    visit = go(server.url, "#curve")
    choose(visit, 26, 8, 0.8)
    visit.one("#bands-number").fill("10000")
    visit.wait_for("#curve-trouble", "Bands · rows must be at most 16,384 slots, got 10,000 · 8 = 80,000.")
    visit.one("#bands-number").fill("26")
    assert visit.one("#curve-trouble").is_hidden()
    for name, wrong in (("bands", "0"), ("bands", "2.5"), ("rows", ""), ("threshold", "1.5"), ("threshold", "0")):
        visit.one(f"#{name}-number").fill(wrong)
        visit.one(f"#{name}-number").blur()
        assert_shown(visit, Plan(threshold=0.8, bands=26, rows=8))


def test_random_pair_matches_its_description(go: Opener, server: Server) -> None:
    """A higher similarity agrees in more slots, and another pair in other slots."""
    visit = go(server.url, "#curve")
    choose(visit, 26, 8, 0.5)
    before = drawn(visit)
    visit.page.get_by_role("button", name="Draw another pair").click()
    assert drawn(visit) != before
    agreed = [sum(drawn(visit))]
    for threshold in (0.7, 0.9):
        visit.one("#threshold-number").fill(str(threshold))
        agreed.append(sum(drawn(visit)))
    assert agreed == sorted(agreed)
    visit.one("#threshold-number").fill("1")
    assert drawn(visit) == [8] * 26
    choose(visit, 2000, 8, 0.5)
    visit.wait_for("#drawn-words", "16,000 slots are too many to draw one by one.")
    assert visit.all("#drawn svg").count() == 0


def drawn(visit: Visit) -> list[int]:
    """Return in how many rows each band agrees, after checking the description."""
    rows = visit.all("#drawn svg").evaluate_all("all => all.map(band => band.querySelectorAll('.agree').length)")
    assert len(rows) == 26
    fired = rows.count(8)
    assert visit.all("#drawn svg.fires").count() == fired
    said = visit.one("#drawn-words").inner_text()
    assert f"agree here in {sum(rows)} of 208 slots" in said
    end = "No band agrees" if fired == 0 else "1 band agrees" if fired == 1 else f"{fired} bands agree "
    assert end in said
    return list(rows)


def test_plot_labels_fit_on_any_screen(go: Opener, server: Server) -> None:
    """Labels do not overlap for any threshold, and the plot has a text alternative."""
    visit = go(server.url, "#curve")
    for width in (360, 1280):
        visit.page.set_viewport_size({"width": width, "height": 800})
        for threshold in (0.01, 0.3, 0.5, 0.8, 1):
            visit.one("#threshold-number").fill(str(threshold))
            assert visit.page.evaluate("document.documentElement.scrollWidth") == width
            for axis in ("across", "up"):
                assert_apart(visit, axis)
            box = visit.one("#plot text.strong").bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
    label = (
        visit.page.get_by_role("img", name="Probability of comparing two documents").get_attribute("aria-label") or ""
    )
    assert f"At the threshold 1 it is {format_probability(1)}" in label


def assert_apart(visit: Visit, axis: str) -> None:
    """Check that the numbers of an axis do not overlap."""
    ends = "[box.left, box.right]" if axis == "across" else "[box.top, box.bottom]"
    measured = f"all => all.map(one => one.getBoundingClientRect()).map(box => {ends})"
    spans = sorted(visit.all(f"#plot text.{axis}").evaluate_all(measured))
    assert len(spans) == 6
    assert all(before[1] <= after[0] + 1 for before, after in pairwise(spans))
