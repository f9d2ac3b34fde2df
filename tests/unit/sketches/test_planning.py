"""S-curve, layout of bands, and choice of a layout."""

import json
import time
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.expect import error_message

from minwise import _kernel
from minwise.errors import ConfigError
from minwise.sketches.planning import (
    CurvePoint,
    Plan,
    _gauss_rule,
    approximate_threshold,
    band_slices,
    candidate_probability,
    plan,
    plan_by_area,
)

EPSILON = float(np.finfo(float).eps)
thresholds = st.floats(0.05, 1)
recalls = st.floats(0.01, 0.999)


def layouts(slots: int) -> list[tuple[int, int]]:
    """Return every (bands, rows) that fits."""
    return [(bands, rows) for bands, rows in product(range(1, slots + 1), repeat=2) if bands * rows <= slots]


def exact_areas(threshold: Fraction, bands: int, rows: int) -> tuple[Fraction, Fraction]:
    """Return both areas as fractions, by integrating the binomial expansion of (1 − sʳ)ᵇ term by term."""

    def integral(end: Fraction) -> Fraction:
        terms = ((-1) ** k * comb(bands, k) * end ** (rows * k + 1) / (rows * k + 1) for k in range(bands + 1))
        return sum(terms, start=Fraction(0))

    left = integral(threshold)
    return threshold - left, integral(Fraction(1)) - left


def precise_areas(threshold: str, bands: int, rows: int) -> tuple[float, float]:
    """Return both areas computed with 400 digits, for layouts whose expansion is too long.

    Integration by parts gives (1 + br)·I(b) = [s·(1 − sʳ)ᵇ] + br·I(b−1) for I(b) = ∫(1 − sʳ)ᵇ ds.
    """
    with localcontext() as context:
        context.prec = 400
        t, missed = Decimal(threshold), Decimal(1)
        below, above = Decimal(0), 1 - t
        for b in range(1, bands + 1):
            missed *= 1 - t**rows
            below = (t * (1 - missed) + b * rows * below) / (1 + b * rows)
            above = (b * rows * above - t * missed) / (1 + b * rows)
        return float(below), float(above)


def test_curve_increases_from_zero_to_one() -> None:
    curve = candidate_probability(np.linspace(0, 1, 101), bands=16, rows=4)
    assert (curve[0], curve[-1]) == (0, 1)
    assert np.all(np.diff(curve) >= 0)


def test_curve_keeps_its_digits_near_zero() -> None:
    """b·sʳ is the first term of the curve, with a relative error of b·sʳ/2."""
    assert candidate_probability(0.001, bands=20, rows=6) == pytest.approx(20 * 1e-18, rel=1e-12)


def test_one_band_of_one_row_is_the_similarity() -> None:
    assert candidate_probability(0.37, bands=1, rows=1) == pytest.approx(0.37, rel=1e-15)


def test_curve_at_the_approximate_threshold() -> None:
    """At (1/b)^(1/r) the curve is 1 − (1 − 1/b)ᵇ, between 1 − 1/e and 3/4 for b ≥ 2."""
    for bands, rows in ((2, 8), (20, 5), (100, 2)):
        assert 1 - np.exp(-1) <= candidate_probability(approximate_threshold(bands, rows), bands, rows) <= 0.75 + 1e-12


def test_bands_cover_every_slot_once() -> None:
    slots = list(range(35))
    assert [slot for band in band_slices(bands=7, rows=5) for slot in slots[band]] == slots


@pytest.mark.parametrize(("bands", "rows", "message"), [(0, 5, "bands must be at least 1, got 0"), (5, -1, "rows")])
def test_invalid_layouts_are_refused(bands: int, rows: int, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        band_slices(bands, rows)


@pytest.mark.parametrize("similarity", [-0.1, 1.1, float("nan"), [0.5, float("nan")], "half", None])
def test_invalid_similarity_is_refused(similarity: Any) -> None:  # noqa: ANN401
    message = error_message(ConfigError, lambda: candidate_probability(similarity, bands=5, rows=4))
    assert message.startswith("similarity must be between 0 and 1")


@pytest.mark.parametrize(
    ("threshold", "recall", "layout"), [(0.8, 0.99, (26, 8)), (0.7, 0.99, (37, 6)), (1, 0.99, (1, 256))]
)
def test_documented_plans(threshold: float, recall: float, layout: tuple[int, int]) -> None:
    chosen = plan(threshold, recall)
    assert (chosen.bands, chosen.rows) == layout
    assert chosen.wanted_recall == recall


def test_defaults() -> None:
    assert plan() == plan(0.8, 0.99, slots=256)


@given(threshold=thresholds, recall=recalls, slots=st.integers(1, 40))
def test_plan_by_trying_every_layout(threshold: float, recall: float, slots: int) -> None:
    """The most rows, then the fewest bands, of all layouts that reach the recall; an error if there is none."""
    reaching = [
        (-rows, bands) for bands, rows in layouts(slots) if candidate_probability(threshold, bands, rows) >= recall
    ]
    if not reaching:
        error_message(ConfigError, lambda: plan(threshold, recall, slots=slots))
        return
    chosen = plan(threshold, recall, slots=slots)
    assert (-chosen.rows, chosen.bands) == min(reaching)


@given(threshold=thresholds, recall=recalls)
def test_a_plan_reaches_the_requested_recall(threshold: float, recall: float) -> None:
    """The recall is that of the curve, and planning for the reached recall gives the same layout."""
    chosen = plan(threshold, recall, slots=512)
    assert chosen.recall == chosen.probability(threshold) >= recall
    if chosen.recall < 1:
        again = plan(threshold, chosen.recall, slots=512)
        assert (again.bands, again.rows) == (chosen.bands, chosen.rows)


def test_a_fixed_layout_ignores_recall_and_slots() -> None:
    chosen = plan(0.8, 0.999, slots=16, bands=20, rows=5)
    assert (chosen.bands, chosen.rows, chosen.slots, chosen.wanted_recall) == (20, 5, 100, None)
    assert chosen.recall == pytest.approx(0.999644, abs=1e-6)


def test_the_largest_layout() -> None:
    assert plan(bands=1, rows=_kernel.MAX_SLOTS).slots == plan(bands=_kernel.MAX_SLOTS, rows=1).slots == 16_384
    message = error_message(ConfigError, lambda: plan(bands=129, rows=128))
    assert message == "bands·rows must be at most 16384 slots, got 129·128 = 16512"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bands": 4}, "bands and rows must be given together, got bands 4 without rows; give both or neither"),
        ({"rows": 4}, "bands and rows must be given together, got rows 4 without bands; give both or neither"),
        ({"bands": 0, "rows": 4}, "bands must be a whole number from 1 to 16384, got 0"),
        ({"bands": 4, "rows": 2.5}, "rows must be a whole number from 1 to 16384, got 2.5"),
        ({"slots": 0}, "slots must be a whole number from 1 to 16384, got 0"),
        ({"slots": 16_385}, "slots must be a whole number from 1 to 16384, got 16385"),
        ({"threshold": 0}, "threshold must be a number above 0 and at most 1, got 0"),
        ({"threshold": 1.01}, "threshold must be a number above 0 and at most 1, got 1.01"),
        ({"threshold": True}, "threshold must be a number above 0 and at most 1, got True"),
        ({"threshold": np.True_}, f"threshold must be a number above 0 and at most 1, got {np.True_!r}"),
        ({"threshold": "0.8"}, "threshold must be a number above 0 and at most 1, got '0.8'"),
        ({"threshold": float("nan")}, "threshold must be a number above 0 and at most 1, got nan"),
        ({"threshold": None}, "threshold must be a number above 0 and at most 1, got None"),
        ({"recall": 1}, "recall must be a number between 0 and 1, both excluded, got 1"),
        ({"recall": 0.0}, "recall must be a number between 0 and 1, both excluded, got 0.0"),
        ({"recall": "most"}, "recall must be a number between 0 and 1, both excluded, got 'most'"),
        ({"recall": float("inf")}, "recall must be a number between 0 and 1, both excluded, got inf"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_invalid_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    assert error_message(ConfigError, lambda: plan(**settings)) == message


def test_numpy_numbers_become_plain() -> None:
    """So that the plan can be written as JSON."""
    chosen = plan(np.float64(0.8), np.float64(0.99), slots=np.int64(256))  # type: ignore[arg-type]
    assert chosen == plan()
    given_layout = plan(np.float32(0.5), bands=np.int32(4), rows=np.uint8(3))  # type: ignore[arg-type]
    assert [type(given_layout.to_dict()[name]) for name in ("threshold", "bands", "rows")] == [float, int, int]


def test_the_error_of_an_unreachable_recall_contains_two_remedies() -> None:
    """Both work, and one slot fewer than the second names does not."""
    message = error_message(ConfigError, lambda: plan(0.01, 0.99))
    assert (
        message
        == "recall must be at most 0.9236 at threshold 0.01 with 256 slots, got 0.99: at least 459 slots reach it"
    )
    assert plan(0.01, 0.9236).slots == 256
    assert plan(0.01, 0.99, slots=459).rows == 1
    error_message(ConfigError, lambda: plan(0.01, 0.99, slots=458))


def test_a_recall_that_no_number_of_slots_reaches() -> None:
    """The message names no number of slots above the maximum."""
    message = error_message(ConfigError, lambda: plan(0.0001, 0.99, slots=1))
    limit = "recall must be at most 0.0001000 at threshold 0.0001 with 1 slot, got 0.99"
    assert message == f"{limit}: not even 16384 slots, the most, reach it"


def test_the_constructor_checks_the_layout_and_computes_the_recall() -> None:
    assert Plan(threshold=0.8, bands=20, rows=5).recall == pytest.approx(0.999644, abs=1e-6)
    assert "threshold" in error_message(ConfigError, lambda: Plan(threshold=2, bands=20, rows=5))
    assert "wanted_recall" in error_message(ConfigError, lambda: Plan(threshold=0.8, bands=20, rows=5, wanted_recall=1))


def test_probability_of_numbers_and_arrays() -> None:
    chosen = plan(bands=20, rows=5)
    assert type(chosen.probability(0.8)) is float
    grid = np.array([[0.2, 0.3], [0.4, 0.8]])
    assert chosen.probability(grid).tolist() == [[chosen.probability(float(s)) for s in row] for row in grid]


def test_table() -> None:
    """Twenty-one rounded steps from 0 to 1."""
    table = plan(bands=20, rows=5).table()
    assert [point.similarity for point in table] == [round(i / 20, 2) for i in range(21)]
    assert table[0] == CurvePoint(0, 0)
    assert table[-1] == CurvePoint(1, 1)
    assert table[16].probability == candidate_probability(0.8, bands=20, rows=5)


@pytest.mark.parametrize(
    ("step", "similarities"),
    [(1, [0, 1]), (0.3, [0, 0.3, 0.6, 0.9, 1]), (1 / 3, [0, 0.333333333333, 0.666666666667, 1])],
)
def test_a_table_of_any_step_ends_with_one_once(step: float, similarities: list[float]) -> None:
    assert [point.similarity for point in plan().table(step)] == similarities


@pytest.mark.parametrize("step", [0, -0.1, 1.5, 0.00001, float("nan"), "small"])
def test_invalid_steps_are_refused(step: Any) -> None:  # noqa: ANN401
    assert error_message(ConfigError, lambda: plan().table(step)).startswith("step must be")


@pytest.mark.parametrize("threshold", ["1/100", "1/10", "7/10", "4/5", "99/100"])
@pytest.mark.parametrize(("bands", "rows"), [(26, 8), (128, 2), (256, 1), (1, 256), (25, 10), (3, 85), (16, 16)])
def test_areas_equal_the_exact_integral(threshold: str, bands: int, rows: int) -> None:
    """With a relative error of 10⁻¹², even for small areas: 10⁻¹⁸³ for 256 bands of one row."""
    chosen = plan(float(Fraction(threshold)), bands=bands, rows=rows)
    below, above = exact_areas(Fraction(threshold), bands, rows)
    assert chosen.false_positive_area() == pytest.approx(float(below), rel=1e-12)
    assert chosen.false_negative_area() == pytest.approx(float(above), rel=1e-12)


@pytest.mark.parametrize("threshold", ["0.001", "0.5", "0.8", "0.99"])
@pytest.mark.parametrize(("bands", "rows"), [(16384, 1), (450, 20), (128, 128), (2, 8192), (1, 16384), (1024, 1)])
def test_areas_of_large_layouts(threshold: str, bands: int, rows: int) -> None:
    """With fewer nodes than the exact rule needs: eleven digits."""
    chosen = plan(float(threshold), bands=bands, rows=rows)
    below, above = precise_areas(threshold, bands, rows)
    assert chosen.false_positive_area() == pytest.approx(below, rel=1e-11, abs=1e-300)
    assert chosen.false_negative_area() == pytest.approx(above, rel=1e-11, abs=1e-300)


def test_areas_at_threshold_one() -> None:
    """No similarity is above it; the curve of a single slot is the diagonal."""
    chosen = plan(1, bands=1, rows=1)
    assert chosen.false_negative_area() == 0
    assert chosen.false_positive_area() == pytest.approx(0.5, rel=1e-14)
    assert chosen.false_candidate_rate == pytest.approx(0.5, rel=1e-14)


def test_false_candidate_rate_is_the_mean_of_the_curve_below_the_threshold() -> None:
    """By the midpoint rule."""
    chosen = plan(0.8)
    middles = (np.arange(100_000) + 0.5) / 100_000 * 0.8
    assert chosen.false_candidate_rate == pytest.approx(float(np.mean(chosen.probability(middles))), rel=1e-8)


@pytest.mark.parametrize(
    "weights", [("1/2", "1/2"), ("1/10", "9/10"), ("9/10", "1/10"), ("0", "1"), ("1", "0"), ("3", "2")]
)
@pytest.mark.parametrize("threshold", ["1/5", "1/2", "4/5", "1"])
def test_plan_by_area_by_brute_force(threshold: str, weights: tuple[str, str]) -> None:
    """Every layout of 24 slots, with exact areas; of equal ones the one with the fewest slots."""
    positive, negative = map(Fraction, weights)

    def cost(layout: tuple[int, int]) -> tuple[Fraction, int]:
        below, above = exact_areas(Fraction(threshold), *layout)
        return positive * below + negative * above, layout[0] * layout[1]

    chosen = plan_by_area(
        float(Fraction(threshold)),
        slots=24,
        false_positive_weight=float(positive),
        false_negative_weight=float(negative),
    )
    assert (chosen.bands, chosen.rows) == min(layouts(24), key=cost)


@pytest.mark.parametrize("threshold", [0.3, 0.7, 0.9])
def test_plan_by_area_with_256_slots(threshold: float) -> None:
    """Areas by the midpoint rule with five thousand steps: no layout is better by more than its error."""
    middles = (np.arange(5000) + 0.5) / 5000
    left, right = threshold * middles, threshold + (1 - threshold) * middles

    def cost(bands: int, rows: int) -> float:
        below = threshold * np.mean(candidate_probability(left, bands, rows))
        above = (1 - threshold) * np.mean(1 - candidate_probability(right, bands, rows))
        return float(below + above) / 2

    chosen = plan_by_area(threshold)
    least = min(cost(bands, rows) for bands, rows in layouts(256))
    assert cost(chosen.bands, chosen.rows) <= least + 1e-7


def test_plan_by_area_equals_the_choice_of_other_tools() -> None:
    """25 bands of 10 rows at 0.7, as in text-dedup and others with 256 permutations."""
    chosen = plan_by_area(0.7)
    assert (chosen.bands, chosen.rows, chosen.wanted_recall) == (25, 10, None)


def test_plan_by_area_is_fast() -> None:
    """Below 0.2 s of processor time; the best of three, because the machine may be busy."""
    seconds = []
    for _ in range(3):
        start = time.thread_time()
        plan_by_area(0.8, slots=256)
        seconds.append(time.thread_time() - start)
    assert min(seconds) < 0.2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"false_positive_weight": -1}, "false_positive_weight must be a number of at least 0, got -1"),
        ({"false_negative_weight": float("nan")}, "false_negative_weight must be a number of at least 0, got nan"),
        ({"false_negative_weight": float("inf")}, "false_negative_weight must be a number of at least 0, got inf"),
        ({"false_negative_weight": 10**400}, "false_negative_weight must be a number of at least 0, got "),
        ({"false_positive_weight": "1"}, "false_positive_weight must be a number of at least 0, got '1'"),
        ({"false_positive_weight": 0, "false_negative_weight": 0}, "must not both be 0"),
        ({"threshold": 0}, "threshold must be a number above 0 and at most 1, got 0"),
        ({"slots": 1.5}, "slots must be a whole number from 1 to 16384, got 1.5"),
    ],
)
def test_invalid_weights_are_refused(settings: dict[str, Any], message: str) -> None:
    assert message in error_message(ConfigError, lambda: plan_by_area(**settings))


def test_to_dict_is_ready_for_json() -> None:
    found = json.loads(json.dumps(plan().to_dict()))
    assert (found["bands"], found["rows"], found["slots"], found["wanted_recall"]) == (26, 8, 208, 0.99)
    assert found["recall"] == pytest.approx(plan().recall, rel=5e-10)
    assert found["steepest"] == pytest.approx(approximate_threshold(26, 8), rel=5e-10)
    assert found["false_candidate_rate"] == pytest.approx(found["false_positive_area"] / 0.8)
    assert json.loads(json.dumps(plan(bands=2, rows=2).to_dict()))["wanted_recall"] is None


@pytest.mark.parametrize("chosen", [plan(), plan(0.5), plan(0.2, slots=1024), plan(0.6, bands=20, rows=5)], ids=str)
def test_reported_numbers_do_not_depend_on_the_processor(chosen: Plan) -> None:
    """The last bits of powers and sums differ between processors; a report must not."""
    computed = [chosen.recall, chosen.steepest, chosen.false_positive_area(), chosen.false_negative_area()]
    reported = [chosen.to_dict()[name] for name in ("recall", "steepest", "false_positive_area", "false_negative_area")]
    for number, rounded in zip(computed, reported, strict=True):
        neighbours = (np.nextafter(number, 0), np.nextafter(number, 1))
        assert {rounded} == {float(f"{neighbour:.10g}") for neighbour in neighbours}


def test_a_plan_as_one_line_of_text() -> None:
    line = "26 bands × 8 rows (208 slots): recall 0.9916 at threshold 0.8, steepest near 0.67"
    assert str(plan()) == line
    assert str(plan(0.5, bands=1, rows=1)).startswith("1 band × 1 row (1 slot): recall 0.5000")


@pytest.mark.parametrize("name", ["curve.png", "curve", "svg", ".svg/curve"])
def test_only_svg_files_are_written(tmp_path: Path, name: str) -> None:
    message = error_message(ConfigError, lambda: plan().plot(tmp_path / name))
    assert message.startswith("plot must be a file that ends in .svg, got ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("slots", [1, 7, 256, 4096])
@pytest.mark.parametrize("threshold", [0.02, 0.3, 0.8, 1.0])
def test_a_plan_is_that_of_a_search_over_all_rows(slots: int, threshold: float) -> None:
    """All rows are computed at once, which must not change any plan: also recalls that a layout reaches exactly."""
    reached = {rows: candidate_probability(threshold, slots // rows, rows) for rows in range(slots, 0, -1)}
    exact = reached[min(3, slots)]
    for recall in (0.1, 0.9, 0.99, 0.99999, exact, np.nextafter(exact, 0), np.nextafter(exact, 1)):
        expected = next((rows for rows, share in reached.items() if share >= recall), None)
        if expected is not None and 0 < recall < 1:
            assert plan(threshold, recall, slots=slots).rows == expected


def test_the_rule_of_gauss_is_that_of_numpy() -> None:
    """The weights of the outermost points are the least exact: their error grows with the square of the nodes."""
    for nodes in (1, 2, 3, 17, 64):
        points, weights = np.polynomial.legendre.leggauss(nodes)
        found_points, found_weights = _gauss_rule(nodes)
        np.testing.assert_allclose(found_points, (points + 1) / 2, rtol=0, atol=4 * EPSILON)
        np.testing.assert_allclose(found_weights, weights / 2, rtol=4 * nodes**2 * EPSILON)
