"""Charts of the report: positions, ticks and accessible descriptions."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from minwise._internal.charts import (
    Bar,
    Tick,
    chart,
    draw_bars,
    linear_ticks,
    log_height,
    log_ticks,
    stacked_bar,
    vertical_line,
)

COUNTS = [1, 2, 7, 10, 99, 100, 12_345, 10**9]


def drawn(marks: list[str]) -> ElementTree.Element:
    """Return a chart with these marks, as a tree."""
    return ElementTree.fromstring(
        chart("one", "A <title>", "A & description", marks, x_ticks=[], y_ticks=[], x_label="x", y_label="y")
    )


def percent(value: str | None) -> float:
    """Return a length of the chart as a share."""
    assert value is not None
    assert value.endswith("%")
    return float(value[:-1]) / 100


def test_a_bar_has_its_position_and_height() -> None:
    """Top and height of a rectangle add up to the whole."""
    (rect,) = drawn(draw_bars([Bar(0.25, 0.5, 0.4, "bar", "four tenths")])).iter("rect")
    assert [percent(rect.get(name)) for name in ("x", "width", "y", "height")] == [0.25, 0.25, 0.6, 0.4]
    assert rect.findtext("title") == "four tenths"


def test_a_small_count_has_a_visible_bar_and_zero_has_none() -> None:
    few, none = Bar(0, 0.5, 1e-6, "bar", "one"), Bar(0.5, 1, 0, "bar", "none")
    (rect,) = drawn(draw_bars([few, none])).iter("rect")
    assert percent(rect.get("height")) > 0.01
    assert percent(rect.get("y")) + percent(rect.get("height")) == pytest.approx(1)


@pytest.mark.parametrize("most", COUNTS)
def test_linear_ticks_are_at_their_share(most: int) -> None:
    ticks = linear_ticks(most)
    assert 2 <= len(ticks) <= 6
    assert ticks[0] == Tick(0, "0")
    for tick in ticks:
        assert tick.position == pytest.approx(int(tick.label.replace(",", "")) / most)
        assert tick.position <= 1


@pytest.mark.parametrize("most", COUNTS)
def test_logarithmic_ticks_are_at_their_height(most: int) -> None:
    ticks = log_ticks(most)
    assert 1 <= len(ticks) <= 6
    assert ticks[0].label == "1"
    for tick in ticks:
        assert tick.position == log_height(int(tick.label.replace(",", "")), most)
        assert 0 < tick.position <= 1


def test_logarithmic_heights_grow_by_equal_steps() -> None:
    """A count of 1 has a visible height; an estimate below a half has none."""
    one, ten, hundred = (log_height(count, 1000) for count in (1, 10, 100))
    assert ten - one == pytest.approx(hundred - ten)
    assert one > 0.05
    assert log_height(1000, 1000) == 1
    assert log_height(0, 1000) == log_height(0.01, 1000) == 0


@pytest.mark.parametrize(("position", "side"), [(0.0, "start"), (0.5, "middle"), (1.0, "end")])
def test_the_label_of_a_line_stays_inside_the_plot(position: float, side: str) -> None:
    line, label = vertical_line(position, "threshold 0.8")
    assert line.count(f'"{100 * position:.3f}%"') == 2
    assert re.search(rf'class="threshold-words {side}"', label)


def test_parts_of_a_stacked_bar_are_adjacent() -> None:
    """An empty part has no rectangle."""
    rects = list(ElementTree.fromstring(stacked_bar((0.5, "a"), (0.0, "b"), (0.25, "c"))).iter("rect"))
    assert [(rect.get("class"), percent(rect.get("x")), percent(rect.get("width"))) for rect in rects] == [
        ("a", 0, 0.5),
        ("c", 0.5, 0.25),
    ]


def test_a_chart_has_an_escaped_title_and_description() -> None:
    (svg,) = drawn([]).iter("svg")
    title, desc = svg.find("title"), svg.find("desc")
    assert title is not None
    assert desc is not None
    assert (svg.get("role"), svg.get("aria-labelledby")) == ("img", f"{title.get('id')} {desc.get('id')}")
    assert (title.text, desc.text) == ("A <title>", "A & description")
