"""Appearance of the report page: light and dark, narrow screens, print, and without scripts."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from support.browser import Visit
from support.page_shapes import SHAPES, Shape, audited, newsroom, with_warnings, without_similarities

from browser.conftest import Opener

schemes = pytest.mark.parametrize("scheme", ["light", "dark"])

# Contrast of every visible text with its background, by the formula of WCAG 2.
CONTRASTS = """() => {
  const parse = (colour) => {
    const found = colour.match(/[\\d.]+/g).map(Number);
    return colour.startsWith("color(srgb") ? [...found.slice(0, 3).map((part) => part * 255), found[3] ?? 1]
      : [...found.slice(0, 3), found[3] ?? 1];
  };
  const over = (top, below) => top.slice(0, 3).map((part, index) => part * top[3] + below[index] * (1 - top[3]));
  const light = (colour) => {
    const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    const parts = colour.map((part) => linear(part / 255));
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
    return layers.reduceRight((below, top) => over(top, below), [255, 255, 255]);
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const ignored = !walker.currentNode.data.trim() || !element.checkVisibility();
    if (ignored || element.closest("script, title, desc")) continue;
    const style = getComputedStyle(element);
    const colour = parse(element.namespaceURI.endsWith("svg") ? style.fill : style.color);
    const ground = behind(element);
    const [high, low] = [light(over(colour, ground)), light(ground)].sort((a, b) => b - a);
    found.push([(high + 0.05) / (low + 0.05), element.tagName, walker.currentNode.data.trim().slice(0, 40)]);
  }
  return found;
}"""

# Elements that extend beyond the right edge, except for those that scroll.
OUTSIDE = """width => [...document.querySelectorAll("main *")]
  .filter((item) => !item.closest(".scroll") && item.checkVisibility())
  .filter((item) => item.getBoundingClientRect().right > width + 0.5)
  .map((item) => item.outerHTML.slice(0, 90))"""


def background(visit: Visit) -> str:
    """Return the background colour of the page."""
    return str(visit.one("body").evaluate("one => getComputedStyle(one).backgroundColor"))


@schemes
@pytest.mark.parametrize("make", [newsroom, with_warnings, audited, without_similarities])
def test_text_is_readable(visit: Opener, scheme: str, make: Callable[[], Shape]) -> None:
    """Every text, also in marks, warnings, charts and the bar, has a contrast of at least 4.5."""
    opened = visit(make().page(), color_scheme=scheme)
    opened.select(1)
    contrasts = opened.page.evaluate(CONTRASTS)
    assert {"MARK", "text", "BUTTON"} <= {tag for _, tag, _ in contrasts}
    assert [entry for entry in contrasts if entry[0] < 4.5] == []


@schemes
def test_marks_of_charts_have_enough_contrast(visit: Opener, scheme: str) -> None:
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
    """Return the relative luminance of a colour such as ``rgb(1, 2, 3)``."""
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").rstrip(")").split(",")]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_page_follows_the_colour_scheme(visit: Opener) -> None:
    """Also while it is open."""
    opened = visit(newsroom().page(), color_scheme="light")
    assert _light(background(opened)) > 0.9
    opened.page.emulate_media(color_scheme="dark")
    assert _light(background(opened)) < 0.02


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_fits_every_screen(visit: Opener, name: str) -> None:
    """It opens without errors and never scrolls sideways; wide tables scroll by themselves."""
    opened = visit(SHAPES[name]().page())
    opened.open_all()
    assert opened.one("h1").is_visible()
    assert opened.all("#curve").count() == (name != "exact")
    for width in (360, 700, 1280):
        opened.page.set_viewport_size({"width": width, "height": 800})
        assert opened.page.evaluate("document.documentElement.scrollWidth") == width
        assert opened.page.evaluate(OUTSIDE, width) == []


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("ranges", [2, 4, 5, 6, 12])
def test_axis_labels_do_not_overlap(visit: Opener, width: int, ranges: int) -> None:
    shape = audited()
    ends = [2**number for number in range(1, ranges + 1)]
    shape.report["clusters"]["sizes"] = [{"from": end // 2 + 1, "to": end, "clusters": 5} for end in ends]
    opened = visit(shape.page(), viewport={"width": width, "height": 800})
    for chart in opened.all("svg.plot").all():
        for axis in ("across", "up"):
            boxes = [box for text in chart.locator(f"text.{axis}").all() if (box := text.bounding_box()) is not None]
            spans = [
                (box["x"], box["x"] + box["width"]) if axis == "across" else (box["y"], box["y"] + box["height"])
                for box in boxes
            ]
            assert len(spans) > 1
            assert all(before[1] <= after[0] + 1 for before, after in pairwise(sorted(spans)))


def test_without_scripts_everything_but_selection_works(visit: Opener) -> None:
    opened = visit(newsroom().page(), java_script_enabled=False)
    opened.all("#clusters summary").first.click()
    assert opened.all("#clusters .member").first.is_visible()
    assert opened.all("#clusters mark").first.is_visible()
    assert opened.all("input[type=checkbox]").first.is_visible() is False
    assert "Select documents" not in opened.one("#clusters").inner_text()
    assert opened.one("#selection").is_visible() is False
    assert opened.one("#similarity-chart svg").is_visible()


@schemes
def test_text_that_continues_below_fades_out(visit: Opener, scheme: str) -> None:
    """A scrolling box has a border and fades at the bottom; at its end no text is under the fade."""
    shape = newsroom()
    cluster = shape.report["largest_clusters"][0]
    for document in (cluster["kept"], *cluster["members"]):
        lines = [f"line {line} of {document['row'] if line % 3 else 'all'} in one" for line in range(300)]
        shape.texts[document["source"], document["row"]] = "\n".join(lines)
    opened = visit(shape.page(), color_scheme=scheme)
    opened.all("#clusters summary").first.click()
    box = opened.all("#clusters .differences").first
    assert box.evaluate("one => one.scrollHeight > one.clientHeight + 100")
    assert box.evaluate("one => getComputedStyle(one).borderBottomWidth") == "1px"
    fade = "getComputedStyle(one, '::after')"
    assert background(opened) in box.evaluate(f"one => {fade}.backgroundImage")
    assert box.evaluate(f"one => {fade}.position + {fade}.bottom") == "sticky0px"
    box.evaluate("one => one.scrollTo(0, one.scrollHeight)")
    space_below = (
        "one => one.getBoundingClientRect().bottom - one.querySelector('.sides').getBoundingClientRect().bottom"
    )
    assert box.evaluate(space_below) >= box.evaluate(f"one => parseFloat({fade}.height)")
    names = box.locator(".names").bounding_box()
    top = box.bounding_box()
    assert names is not None
    assert top is not None
    assert names["y"] == pytest.approx(top["y"] + 1, abs=1)


def test_print_has_no_checkboxes_and_no_selection_bar(visit: Opener) -> None:
    opened = visit(newsroom().page())
    opened.select(1)
    opened.page.emulate_media(media="print")
    assert opened.one("#selection").is_visible() is False
    assert opened.all("input[type=checkbox]").first.is_visible() is False
    assert opened.all("#clusters mark").first.is_visible()
    assert opened.page.pdf().startswith(b"%PDF")


def test_the_page_has_landmarks_for_screen_readers(visit: Opener) -> None:
    opened = visit(newsroom().page())
    page = opened.page
    assert page.get_by_role("main").count() == 1
    assert page.get_by_role("banner").count() + page.locator("main header").count() == 1
    assert page.get_by_role("navigation", name="Sections").count() == 1
    for name in ("Figures", "No warnings", "Removed documents", "Pairs just below the threshold", "Sources"):
        assert page.get_by_role("region", name=name, exact=True).first.is_visible(), name
    assert page.get_by_role("img", name="Similarity of pairs").count() == 1
