"""The picture of the S-curve: valid, true to the formula, and readable without seeing it."""

import os
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from minwise.sketches.planning import Plan, plan, plan_by_area
from minwise.sketches.s_curve import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, draw_curve

Floats = NDArray[np.float64]

SVG = "{http://www.w3.org/2000/svg}"
ROUNDING = 0.0051  # of a coordinate with two decimals
PLANS = {
    "default": plan(),
    "by area": plan_by_area(0.7),
    "one slot": plan(0.5, bands=1, rows=1),
    "threshold one": plan(1.0),
    "low threshold": plan(0.05, bands=128, rows=1),
    "low recall": plan(0.9, bands=2, rows=128),
    "low both": plan(0.15, bands=2, rows=3),
    "steepest": plan(0.9, bands=1, rows=16_384),
    "widest": plan(0.97, bands=16_384, rows=1),
    "odd threshold": plan(0.123456789, 0.9),
}
every_plan = pytest.mark.parametrize("chosen", PLANS.values(), ids=PLANS)


def parse(chosen: Plan) -> ElementTree.Element:
    """The picture as a tree."""
    return ElementTree.fromstring(draw_curve(chosen))


def points(root: ElementTree.Element, style: str) -> Floats:
    """The points of the path of a class, as similarity and probability."""
    (path,) = (one for one in root.iter(f"{SVG}path") if one.get("class") == style)
    drawn = np.array(re.findall(r"[ML]([\d.]+) ([\d.]+)", path.get("d", "")), dtype=np.float64)
    return np.column_stack([(drawn[:, 0] - LEFT) / (RIGHT - LEFT), (BOTTOM - drawn[:, 1]) / (BOTTOM - TOP)])


def assert_on_curve(chosen: Plan, drawn: Floats) -> None:
    """Each point lies on the curve but for its rounding either way; as the curve climbs, two ends tell."""
    sideways, upwards = ROUNDING / (RIGHT - LEFT), ROUNDING / (BOTTOM - TOP)
    low = chosen.probability(np.clip(drawn[:, 0] - sideways, 0, 1))
    high = chosen.probability(np.clip(drawn[:, 0] + sideways, 0, 1))
    assert np.all(drawn[:, 1] >= low - upwards)
    assert np.all(drawn[:, 1] <= high + upwards)


def words(root: ElementTree.Element) -> str:
    """All that is written in the picture."""
    return " | ".join(text.text or "" for text in root.iter(f"{SVG}text"))


@every_plan
def test_curve_is_that_of_the_formula(chosen: Plan) -> None:
    """From 0 to 1, without a jump of more than a fiftieth either way."""
    drawn = points(parse(chosen), "curve")
    assert_on_curve(chosen, drawn)
    assert drawn[0].tolist() == [0, 0]
    assert drawn[-1].tolist() == [1, 1]
    steps = np.diff(drawn, axis=0)
    assert np.all(steps >= 0)
    assert np.max(steps) < 0.02


@every_plan
def test_areas_lie_between_curve_and_threshold(chosen: Plan) -> None:
    """All points but the last are the curve's, on the right side; the last closes the area below or above."""
    for style, corner in (("false-positive", 0), ("false-negative", 1)):
        drawn = points(parse(chosen), style)
        assert_on_curve(chosen, drawn[:-1])
        side = drawn[:, 0] - chosen.threshold
        assert np.all((side if corner else -side) >= -1e-4)
        assert drawn[-1] == pytest.approx([chosen.threshold, corner], abs=1e-4)


@every_plan
def test_drawn_areas_have_the_stated_size(chosen: Plan) -> None:
    """By the shoelace formula, to what straight lines between the points and rounding cost."""
    for style, area in (
        ("false-positive", chosen.false_positive_area()),
        ("false-negative", chosen.false_negative_area()),
    ):
        x, y = points(parse(chosen), style).T
        shoelace = abs(float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))) / 2
        assert shoelace == pytest.approx(area, abs=2e-4)


@every_plan
def test_threshold_and_recall_are_marked(chosen: Plan) -> None:
    """A line from top to bottom, and a mark where it meets the curve."""
    root = parse(chosen)
    (line,) = (one for one in root.iter(f"{SVG}line") if one.get("class") == "threshold")
    (mark,) = root.iter(f"{SVG}circle")
    x = LEFT + (RIGHT - LEFT) * chosen.threshold
    for place in (line.get("x1"), line.get("x2"), mark.get("cx")):
        assert float(place or "") == pytest.approx(x, abs=ROUNDING)
    assert float(mark.get("cy") or "") == pytest.approx(BOTTOM - (BOTTOM - TOP) * chosen.recall, abs=ROUNDING)


def test_what_is_written() -> None:
    """Title, areas, threshold, recall and all ticks."""
    written = words(parse(plan()))
    for phrase in ("26 bands × 8 rows", "false positives: area 0.1751", "false negatives: area 0.000136"):
        assert phrase in written
    for phrase in ("threshold 0.8", "recall 0.9916", "similarity of two documents", "probability of a candidate pair"):
        assert phrase in written
    assert written.count("| 0.2 | 0.2 |") == 1


def test_a_recall_that_is_not_one_is_not_called_one() -> None:
    """Four decimals would round it up."""
    assert "recall > 0.9999" in words(parse(plan(0.97, bands=20, rows=20)))


@every_plan
def test_words_stay_inside(chosen: Plan) -> None:
    """Bold DejaVu, the widest font of the list, has 7.6 units per character of size 13 on average; the heading 13."""
    for text in parse(chosen).iter(f"{SVG}text"):
        if text.get("transform"):
            continue
        x, y = float(text.get("x") or ""), float(text.get("y") or "")
        width = len(text.text or "") * (13 if text.get("class") == "heading" else 7.6)
        start = {"end": x - width, "middle": x - width / 2}.get(text.get("text-anchor", "start"), x)
        assert start >= 0
        assert start + width <= WIDTH
        assert 0 < y < HEIGHT


def test_for_screen_readers() -> None:
    """A title and a description that say what is to be seen, tied to the picture."""
    root = parse(plan())
    title, desc = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert desc is not None
    assert (root.get("role"), root.get("aria-labelledby")) == ("img", f"{title.get('id')} {desc.get('id')}")
    assert title.text == "S-curve of 26 bands × 8 rows"
    for number in ("0.8", "0.9916", "0.67", "0.1751", "0.000136"):
        assert number in (desc.text or "")


def test_light_and_dark() -> None:
    """Every class that has a colour has one for the dark, too."""
    style = parse(plan()).findtext(f"{SVG}style") or ""
    light, _, dark = style.partition("@media (prefers-color-scheme: dark)")
    coloured = set(re.findall(r"(\S+) \{[^}]*#[0-9a-f]{6}", light))
    assert len(coloured) > 8
    assert coloured == set(re.findall(r"(\S+) \{ [^}]*#[0-9a-f]{6}", dark))


def test_nothing_is_loaded() -> None:
    """Neither script nor link nor font nor image; the only address is the name of the format."""
    text = draw_curve(plan())
    assert text.count("http") == 1
    assert not re.search(r"<script|href|url\(|@import|@font-face|<image", text)


@every_plan
def test_the_same_bytes_again(chosen: Plan) -> None:
    """A plan has one picture."""
    assert draw_curve(chosen) == draw_curve(chosen)


@pytest.mark.parametrize("name", ["curve.svg", "CURVE.SVG", "a b.svg"])
def test_plot_writes_the_picture(tmp_path: Path, name: str) -> None:
    """Replaces what was there, and leaves nothing beside it."""
    path = tmp_path / name
    path.write_text("old", encoding="utf-8")
    plan().plot(str(path))
    assert path.read_text(encoding="utf-8") == draw_curve(plan())
    assert list(tmp_path.iterdir()) == [path]


def test_plot_is_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure on the way leaves the old file."""
    path = tmp_path / "curve.svg"
    path.write_text("old", encoding="utf-8")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        plan().plot(path)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """The file's own name is in the error."""
    with pytest.raises(FileNotFoundError) as caught:
        plan().plot(tmp_path / "nowhere" / "curve.svg")
    assert caught.value.filename == str(tmp_path / "nowhere" / "curve.svg")
