"""Units of a text: the kernel against regular expressions, and the stated rules by example."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minwise import reference
from minwise.text.units import UnitName, unit_starts

TEXTS = st.text(st.sampled_from("aé漢 \t\n\r\x85\u2028\u3000.!…。？.\"”“」)«'"), max_size=30)
NAMES = st.sampled_from(["line", "sentence", "paragraph"])


@settings(max_examples=400, deadline=None)
@given(TEXTS, NAMES)
def test_kernel_finds_the_units_of_the_reference(text: str, unit: UnitName) -> None:
    assert unit_starts(text, unit).tolist() == reference.unit_starts(text, unit)


@pytest.mark.parametrize(
    ("unit", "units"),
    [
        ("line", ["One.\r\n", "\n", "  Two\u2028", "three"]),
        ("sentence", ["It costs 3.14, she said. ", "“Really?!” ", "Yes...\n", "No"]),
        ("sentence", ["彼は「行く。", "帰る！」", "と言った。", "“好。”", "Good. ", "ठीक है। ", "हाँ"]),
        ("sentence", ["A title\n\n", "A sentence\nin two lines. "]),
        ("paragraph", ["One\ntwo\r\n \t\r\n\n", "three\n"]),
    ],
)
def test_a_text_is_divided_into(unit: UnitName, units: list[str]) -> None:
    starts = [sum(map(len, units[:number])) for number in range(len(units))]
    assert unit_starts("".join(units), unit).tolist() == starts
