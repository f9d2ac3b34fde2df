"""Lazily imported attributes of a package."""

import sys
from pathlib import Path

import pytest

from minwise._internal.lazy import lazy_attributes


def test_attributes_are_imported_on_first_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "lazy_example"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "numbers.py").write_text("answer = 42\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    names: dict[str, object] = {"__name__": "lazy_example", "__all__": ["answer", "public"], "_private": 1}
    get_attribute, list_attributes = lazy_attributes(names, {"answer": "numbers"})
    assert list_attributes() == ["answer", "public"]
    assert "lazy_example.numbers" not in sys.modules
    assert get_attribute("answer") == names["answer"] == 42
    with pytest.raises(AttributeError, match="module 'lazy_example' has no attribute 'other'"):
        get_attribute("other")
