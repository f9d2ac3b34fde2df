"""SVG drawing of the S-curve: valid, true to the formula, and accessible."""

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
    """Return the drawing as a tree."""
    return ElementTree.fromstring(draw_curve(chosen))


def points(root: ElementTree.Element, style: str) -> Floats:
    """Return the points of the path of a class, as similarity and probability."""
    (path,) = (one for one in root.iter(f"{SVG}path") if one.get("class") == style)
    drawn = np.array(re.findall(r"[ML]([\d.]+) ([\d.]+)", path.get("d", "")), dtype=np.float64)
    return np.column_stack([(drawn[:, 0] - LEFT) / (RIGHT - LEFT), (BOTTOM - drawn[:, 1]) / (BOTTOM - TOP)])


def assert_on_curve(chosen: Plan, drawn: Floats) -> None:
    """Assert that each point is on the curve up to rounding; as the curve increases, two ends suffice."""
    sideways, upwards = ROUNDING / (RIGHT - LEFT), ROUNDING / (BOTTOM - TOP)
    low = chosen.probability(np.clip(drawn[:, 0] - sideways, 0, 1))
    high = chosen.probability(np.clip(drawn[:, 0] + sideways, 0, 1))
    assert np.all(drawn[:, 1] >= low - upwards)
    assert np.all(drawn[:, 1] <= high + upwards)


def labels(root: ElementTree.Element) -> str:
    """Return all text of the drawing."""
    return " | ".join(text.text or "" for text in root.iter(f"{SVG}text"))


@every_plan
def test_the_drawn_curve_equals_the_formula(chosen: Plan) -> None:
    """From 0 to 1, without a step of more than a fiftieth in either direction."""
    drawn = points(parse(chosen), "curve")
    assert_on_curve(chosen, drawn)
    assert drawn[0].tolist() == [0, 0]
    assert drawn[-1].tolist() == [1, 1]
    steps = np.diff(drawn, axis=0)
    assert np.all(steps >= 0)
    assert np.max(steps) < 0.02


@every_plan
def test_areas_are_between_curve_and_threshold(chosen: Plan) -> None:
    """All points but the last are on the curve, on the correct side; the last closes the area below or above."""
    for style, corner in (("false-positive", 0), ("false-negative", 1)):
        drawn = points(parse(chosen), style)
        assert_on_curve(chosen, drawn[:-1])
        side = drawn[:, 0] - chosen.threshold
        assert np.all((side if corner else -side) >= -1e-4)
        assert drawn[-1] == pytest.approx([chosen.threshold, corner], abs=1e-4)


@every_plan
def test_drawn_areas_have_the_stated_size(chosen: Plan) -> None:
    """By the shoelace formula, up to the error of straight lines between the points and of rounding."""
    for style, area in (
        ("false-positive", chosen.false_positive_area()),
        ("false-negative", chosen.false_negative_area()),
    ):
        x, y = points(parse(chosen), style).T
        shoelace = abs(float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))) / 2
        assert shoelace == pytest.approx(area, abs=2e-4)


@every_plan
def test_threshold_and_recall_are_marked(chosen: Plan) -> None:
    root = parse(chosen)
    (line,) = (one for one in root.iter(f"{SVG}line") if one.get("class") == "threshold")
    (mark,) = root.iter(f"{SVG}circle")
    x = LEFT + (RIGHT - LEFT) * chosen.threshold
    for position in (line.get("x1"), line.get("x2"), mark.get("cx")):
        assert float(position or "") == pytest.approx(x, abs=ROUNDING)
    assert float(mark.get("cy") or "") == pytest.approx(BOTTOM - (BOTTOM - TOP) * chosen.recall, abs=ROUNDING)


def test_the_labels() -> None:
    written = labels(parse(plan()))
    for phrase in ("26 bands × 8 rows", "false positives: area 0.1751", "false negatives: area 0.000136"):
        assert phrase in written
    for phrase in ("threshold 0.8", "recall 0.9916", "similarity of two documents", "probability of a candidate pair"):
        assert phrase in written
    assert written.count("| 0.2 | 0.2 |") == 1


def test_a_recall_below_one_is_not_shown_as_one() -> None:
    """Four decimals would round it up."""
    assert "recall > 0.9999" in labels(parse(plan(0.97, bands=20, rows=20)))


@every_plan
def test_labels_stay_inside_the_drawing(chosen: Plan) -> None:
    """Bold DejaVu, the widest font of the list, has on average 7.6 units per character of size 13; the heading 13."""
    for text in parse(chosen).iter(f"{SVG}text"):
        if text.get("transform"):
            continue
        x, y = float(text.get("x") or ""), float(text.get("y") or "")
        width = len(text.text or "") * (13 if text.get("class") == "heading" else 7.6)
        start = {"end": x - width, "middle": x - width / 2}.get(text.get("text-anchor", "start"), x)
        assert start >= 0
        assert start + width <= WIDTH
        assert 0 < y < HEIGHT


def test_accessible_title_and_description() -> None:
    root = parse(plan())
    title, desc = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert desc is not None
    assert (root.get("role"), root.get("aria-labelledby")) == ("img", f"{title.get('id')} {desc.get('id')}")
    assert title.text == "S-curve of 26 bands × 8 rows"
    for number in ("0.8", "0.9916", "0.67", "0.1751", "0.000136"):
        assert number in (desc.text or "")


def test_every_colour_has_a_dark_variant() -> None:
    style = parse(plan()).findtext(f"{SVG}style") or ""
    light, _, dark = style.partition("@media (prefers-color-scheme: dark)")
    coloured = set(re.findall(r"(\S+) \{[^}]*#[0-9a-f]{6}", light))
    assert len(coloured) > 8
    assert coloured == set(re.findall(r"(\S+) \{ [^}]*#[0-9a-f]{6}", dark))


def test_the_drawing_loads_no_other_file() -> None:
    """The only address is the namespace of the format."""
    text = draw_curve(plan())
    assert text.count("http") == 1
    assert not re.search(r"<script|href|url\(|@import|@font-face|<image", text)


@every_plan
def test_equal_plans_give_equal_bytes(chosen: Plan) -> None:
    assert draw_curve(chosen) == draw_curve(chosen)


@pytest.mark.parametrize("name", ["curve.svg", "CURVE.SVG", "a b.svg"])
def test_plot_replaces_the_file(tmp_path: Path, name: str) -> None:
    """No other file is left in the directory."""
    path = tmp_path / name
    path.write_text("old", encoding="utf-8")
    plan().plot(str(path))
    assert path.read_text(encoding="utf-8") == draw_curve(plan())
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_plot_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "curve.svg"
    path.write_text("old", encoding="utf-8")

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        plan().plot(path)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_directory_is_an_error_with_the_path_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        plan().plot(tmp_path / "nowhere" / "curve.svg")
    assert caught.value.filename == str(tmp_path / "nowhere" / "curve.svg")
