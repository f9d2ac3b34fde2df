"""Charts: true to their numbers, inside their plot, and told to those who do not see them."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from minwise._internal.charts import Bar, Tick, bars, chart, even_ticks, line_at, log_height, log_ticks, share_bar

COUNTS = [1, 2, 7, 10, 99, 100, 12_345, 10**9]


def drawn(marks: list[str]) -> ElementTree.Element:
    """A chart of some marks, as a tree."""
    return ElementTree.fromstring(
        chart("one", "A <title>", "A & description", marks, across=[], up=[], across_label="x", up_label="y")
    )


def percent(value: str | None) -> float:
    """A length of the chart as a share."""
    assert value is not None
    assert value.endswith("%")
    return float(value[:-1]) / 100


def test_bars_stand_where_they_belong() -> None:
    """A rectangle hangs from its top, so top and height make the whole."""
    (rect,) = drawn(bars([Bar(0.25, 0.5, 0.4, "bar", "four tenths")])).iter("rect")
    assert [percent(rect.get(name)) for name in ("x", "width", "y", "height")] == [0.25, 0.25, 0.6, 0.4]
    assert rect.findtext("title") == "four tenths"


def test_one_of_a_million_is_seen_and_none_is_not() -> None:
    """A bar of nearly nothing has a height; nothing has no bar."""
    few, none = Bar(0, 0.5, 1e-6, "bar", "one"), Bar(0.5, 1, 0, "bar", "none")
    (rect,) = drawn(bars([few, none])).iter("rect")
    assert percent(rect.get("height")) > 0.01
    assert percent(rect.get("y")) + percent(rect.get("height")) == pytest.approx(1)


@pytest.mark.parametrize("most", COUNTS)
def test_even_ticks_are_at_their_share(most: int) -> None:
    """From 0, at most six, none above what there is."""
    ticks = even_ticks(most)
    assert 2 <= len(ticks) <= 6
    assert ticks[0] == Tick(0, "0")
    for tick in ticks:
        assert tick.place == pytest.approx(int(tick.words.replace(",", "")) / most)
        assert tick.place <= 1


@pytest.mark.parametrize("most", COUNTS)
def test_logarithmic_ticks_are_at_their_height(most: int) -> None:
    """From 1, as high as a bar of that count."""
    ticks = log_ticks(most)
    assert 1 <= len(ticks) <= 6
    assert ticks[0].words == "1"
    for tick in ticks:
        assert tick.place == log_height(int(tick.words.replace(",", "")), most)
        assert 0 < tick.place <= 1


def test_logarithmic_heights_grow_by_equal_steps() -> None:
    """Each power of ten as much as the one before; a count of one is not flat, a share below half is nothing."""
    one, ten, hundred = (log_height(count, 1000) for count in (1, 10, 100))
    assert ten - one == pytest.approx(hundred - ten)
    assert one > 0.05
    assert log_height(1000, 1000) == 1
    assert log_height(0, 1000) == log_height(0.01, 1000) == 0


@pytest.mark.parametrize(("place", "side"), [(0.0, "start"), (0.5, "middle"), (1.0, "end")])
def test_words_at_a_line_stay_inside(place: float, side: str) -> None:
    """They lean away from the nearer edge."""
    line, words = line_at(place, "threshold 0.8")
    assert line.count(f'"{100 * place:.3f}%"') == 2
    assert re.search(rf'class="threshold-words {side}"', words)


def test_parts_of_a_bar_follow_each_other() -> None:
    """A part of nothing has no mark."""
    rects = list(ElementTree.fromstring(share_bar((0.5, "a"), (0.0, "b"), (0.25, "c"))).iter("rect"))
    assert [(rect.get("class"), percent(rect.get("x")), percent(rect.get("width"))) for rect in rects] == [
        ("a", 0, 0.5),
        ("c", 0.5, 0.25),
    ]


def test_a_chart_is_told() -> None:
    """Role, title and description, tied together and escaped."""
    (svg,) = drawn([]).iter("svg")
    title, desc = svg.find("title"), svg.find("desc")
    assert title is not None
    assert desc is not None
    assert (svg.get("role"), svg.get("aria-labelledby")) == ("img", f"{title.get('id')} {desc.get('id')}")
    assert (title.text, desc.text) == ("A <title>", "A & description")
