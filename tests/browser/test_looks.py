"""Looks: readable in light and dark, on a narrow screen, on paper, and without a script."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from support.browser import Visit
from support.page_shapes import SHAPES, Shape, alarming, audited, newsroom, without_similarities

from browser.conftest import Opener

schemes = pytest.mark.parametrize("scheme", ["light", "dark"])

# Contrast of every text that is seen with what is behind it, by the formula of WCAG 2; the worst ones.
CONTRASTS = """() => {
  const parse = (colour) => {
    const found = colour.match(/[\\d.]+/g).map(Number);
    return colour.startsWith("color(srgb") ? [...found.slice(0, 3).map((one) => one * 255), found[3] ?? 1]
      : [...found.slice(0, 3), found[3] ?? 1];
  };
  const over = (top, below) => top.slice(0, 3).map((one, place) => one * top[3] + below[place] * (1 - top[3]));
  const light = (colour) => {
    const linear = (one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    const parts = colour.map((one) => linear(one / 255));
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const behind = (one) => {
    const layers = [];
    for (let at = one; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
    return layers.reduceRight((below, top) => over(top, below), [255, 255, 255]);
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !one.checkVisibility() || one.closest("script, title, desc")) continue;
    const style = getComputedStyle(one);
    const colour = parse(one.namespaceURI.endsWith("svg") ? style.fill : style.color);
    const ground = behind(one);
    const [high, low] = [light(over(colour, ground)), light(ground)].sort((a, b) => b - a);
    found.push([(high + 0.05) / (low + 0.05), one.tagName, walker.currentNode.data.trim().slice(0, 40)]);
  }
  return found;
}"""

# What reaches beyond the page on the right, but for what scrolls by itself.
OUTSIDE = """width => [...document.querySelectorAll("main *")]
  .filter((one) => !one.closest(".scroll") && one.checkVisibility() && one.getBoundingClientRect().right > width + 0.5)
  .map((one) => one.outerHTML.slice(0, 90))"""


def background(visit: Visit) -> str:
    """The colour of the page."""
    return str(visit.one("body").evaluate("one => getComputedStyle(one).backgroundColor"))


@schemes
@pytest.mark.parametrize("make", [newsroom, alarming, audited, without_similarities])
def test_text_is_readable(visit: Opener, scheme: str, make: Callable[[], Shape]) -> None:
    """Every text, also in marks, alarms, charts and the bar, has a contrast of at least 4.5."""
    opened = visit(make().page(), color_scheme=scheme)
    opened.tick(1)
    contrasts = opened.page.evaluate(CONTRASTS)
    assert any(one[1] == "MARK" for one in contrasts)
    assert any(one[1] == "text" for one in contrasts)
    assert any(one[1] == "BUTTON" for one in contrasts)
    assert [one for one in contrasts if one[0] < 4.5] == []


@schemes
def test_marks_of_charts_stand_out(visit: Opener, scheme: str) -> None:
    """Bars, the curve and measured points have a contrast of at least 3 with the page (WCAG 1.4.11)."""
    opened = visit(audited().page(), color_scheme=scheme)
    ground = _light(background(opened))
    for selector, name in {
        "rect.bar": "fill",
        "rect.below": "fill",
        "rect.kept": "fill",
        "rect.similar": "fill",
        "path.curve": "stroke",
        ".measured circle": "fill",
        "line.threshold": "stroke",
    }.items():
        mark = _light(opened.all(selector).first.evaluate(f"one => getComputedStyle(one).{name}"))
        assert (max(mark, ground) + 0.05) / (min(mark, ground) + 0.05) >= 3, selector


def _light(colour: str) -> float:
    """Relative luminance of a colour such as ``rgb(1, 2, 3)``."""
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").rstrip(")").split(",")]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_dark_is_dark(visit: Opener) -> None:
    """The page follows the reader's setting, also while it is open."""
    opened = visit(newsroom().page(), color_scheme="light")
    assert _light(background(opened)) > 0.9
    opened.page.emulate_media(color_scheme="dark")
    assert _light(background(opened)) < 0.02


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_fits_every_screen(visit: Opener, name: str) -> None:
    """It opens without a complaint and never scrolls sideways, whatever is open; wide tables scroll by themselves."""
    opened = visit(SHAPES[name]().page())
    opened.open_all()
    assert opened.one("h1").is_visible()
    assert opened.all("#curve").count() == (name != "exact")
    for width in (360, 700, 1280):
        opened.page.set_viewport_size({"width": width, "height": 800})
        assert opened.page.evaluate("document.documentElement.scrollWidth") == width
        assert opened.page.evaluate(OUTSIDE, width) == []


@pytest.mark.parametrize("width", [360, 1280])
def test_words_of_charts_do_not_overlap(visit: Opener, width: int) -> None:
    """The numbers of each axis keep apart."""
    opened = visit(audited().page(), viewport={"width": width, "height": 800})
    for chart in opened.all("svg.plot").all():
        for axis in ("across", "up"):
            boxes = [box for text in chart.locator(f"text.{axis}").all() if (box := text.bounding_box()) is not None]
            spans = [
                (box["x"], box["x"] + box["width"]) if axis == "across" else (box["y"], box["y"] + box["height"])
                for box in boxes
            ]
            assert len(spans) > 1
            assert all(before[1] <= after[0] + 1 for before, after in pairwise(sorted(spans)))


def test_without_a_script(visit: Opener) -> None:
    """Everything but ticking works, and nothing is offered that does not."""
    opened = visit(newsroom().page(), java_script_enabled=False)
    opened.all("#clusters summary").first.click()
    assert opened.all("#clusters .member").first.is_visible()
    assert opened.all("#clusters mark").first.is_visible()
    assert opened.all("input[type=checkbox]").first.is_visible() is False
    assert "Tick what" not in opened.one("#clusters").inner_text()
    assert opened.one("#ticked").is_visible() is False
    assert opened.one("#similarity-chart svg").is_visible()


@schemes
def test_text_that_goes_on_below_fades(visit: Opener, scheme: str) -> None:
    """A box that scrolls has an edge all around and fades below; at its end no text lies under the fading."""
    shape = newsroom()
    cluster = shape.report["largest_clusters"][0]
    for one in (cluster["kept"], *cluster["members"]):
        lines = [f"line {line} of {one['row'] if line % 3 else 'all'} in one" for line in range(300)]
        shape.texts[one["source"], one["row"]] = "\n".join(lines)
    opened = visit(shape.page(), color_scheme=scheme)
    opened.all("#clusters summary").first.click()
    box = opened.all("#clusters .differences").first
    assert box.evaluate("one => one.scrollHeight > one.clientHeight + 100")
    assert box.evaluate("one => getComputedStyle(one).borderBottomWidth") == "1px"
    fading = "getComputedStyle(one, '::after')"
    assert background(opened) in box.evaluate(f"one => {fading}.backgroundImage")
    assert box.evaluate(f"one => {fading}.position + {fading}.bottom") == "sticky0px"
    box.evaluate("one => one.scrollTo(0, one.scrollHeight)")
    left_below = (
        "one => one.getBoundingClientRect().bottom - one.querySelector('.sides').getBoundingClientRect().bottom"
    )
    assert box.evaluate(left_below) >= box.evaluate(f"one => parseFloat({fading}.height)")
    names = box.locator(".names").bounding_box()
    top = box.bounding_box()
    assert names is not None
    assert top is not None
    assert names["y"] == pytest.approx(top["y"] + 1, abs=1)


def test_on_paper(visit: Opener) -> None:
    """No bar and no boxes, and bars keep their colour."""
    opened = visit(newsroom().page())
    opened.tick(1)
    opened.page.emulate_media(media="print")
    assert opened.one("#ticked").is_visible() is False
    assert opened.all("input[type=checkbox]").first.is_visible() is False
    assert opened.all("#clusters mark").first.is_visible()
    assert opened.page.pdf().startswith(b"%PDF")


def test_landmarks(visit: Opener) -> None:
    """A reader who does not see the page finds its parts."""
    opened = visit(newsroom().page())
    page = opened.page
    assert page.get_by_role("main").count() == 1
    assert page.get_by_role("banner").count() + page.locator("main header").count() == 1
    assert page.get_by_role("navigation", name="Sections").count() == 1
    for name in ("Figures", "Nothing alarming", "What was removed", "What nearly was removed", "Sources"):
        assert page.get_by_role("region", name=name, exact=True).first.is_visible(), name
    assert page.get_by_role("img", name="How similar the pairs are").count() == 1
