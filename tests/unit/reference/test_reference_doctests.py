"""What the docstrings of the teaching modules show is what comes out."""

import doctest
import importlib

import pytest

ROOMS = ("bbit", "hashing", "matrix", "normalise", "sizing", "sketch", "text", "universal")


@pytest.mark.parametrize(
    "module", ["minwise.estimate", "minwise.plan", *(f"minwise.reference.{room}" for room in ROOMS)]
)
def test_examples_in_docstrings(module: str) -> None:
    """Every example runs and prints what it says."""
    assert doctest.testmod(importlib.import_module(module)).failed == 0


def test_door_is_sorted_and_complete() -> None:
    """Each room's names are at the door, once (that they are sorted is ruff's to check)."""
    package = importlib.import_module("minwise.reference")
    rooms = [importlib.import_module(f"minwise.reference.{room}") for room in ROOMS]
    assert sorted(package.__all__) == sorted(name for room in rooms for name in room.__all__)
    assert all(hasattr(package, name) for name in package.__all__)
