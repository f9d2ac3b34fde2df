"""Settings of sets, groups and records that contradict each other are rejected by name in one line."""

from pathlib import Path
from typing import Any

import pytest
from support.expect import error_message

import minwise as mw
from minwise.api import estimate_run
from minwise.errors import ConfigError, InputError

ROWS = [{"user": "ann", "movie": 1, "times": 1, "text": "x"}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group_by": "user"}, "item must be a column, given with group_by, got None"),
        ({"item": "movie"}, "group_by must be a column, given with item, got None"),
        ({"group_by": "", "item": "movie"}, "group_by must be a name, got ''"),
        ({"group_by": "user", "item": 5}, "item must be a name, got 5"),
        (
            {"group_by": "user", "item": "user"},
            "group_by, item and weight must be columns of their own, got user, user",
        ),
        ({"weight": "times"}, "weight must be left out without group_by or sets, got 'times'"),
        ({"weight": "times", "shingle": "set"}, "set 0: times must be a list of numbers, one for each item, got int"),
        ({"transpose": True}, "transpose must be left out without shingle set, got True"),
        ({"transpose": "yes"}, "transpose must be one of False, True, got 'yes'"),
        ({"separator": ","}, "separator must be left out without shingle set, got ','"),
        ({"separator": "", "shingle": "set"}, "separator must be a string, got ''"),
        ({"weights": "name=2"}, "weights must be left out without fields or sets, got 'name=2'"),
        ({"fields": "text:whole", "group_by": "user"}, "group_by must be left out with fields, got 'user'"),
        ({"fields": "text:whole", "shingle": "word:2"}, "shingle must be left out with fields, got 'word:2'"),
        ({"fields": "text:whole", "text_column": "user"}, "text_column must be left out with fields, got 'user'"),
        ({"group_by": "user", "item": "movie", "shingle": "char:3"}, "shingle must be left out with group_by, got"),
        ({"group_by": "user", "item": "movie", "html": True}, "html must be left out with group_by, got True"),
        ({"shingle": "set", "html": True}, "html must be left out with shingle set, got True"),
        ({"html": 1}, "html must be one of False, True, got 1"),
        ({"shingle": "set", "text_column": ["a", "b"]}, "text_column must be one column with shingle set, got"),
        (
            {"group_by": "missing", "item": "movie"},
            "no row can be read; row 0: has no column 'missing'; its",
        ),
        ({"fields": "missing:whole"}, "its only row cannot be used: has no column 'missing'; its columns are: "),
        ({"group_by": "user", "item": "movie", "engine": "spark"}, "group_by must be left out with engine spark"),
    ],
)
def test_settings_without_effect_are_rejected(options: dict[str, Any], message: str) -> None:
    on_error: dict[str, Any] = (
        {} if "missing" not in str(options) or "fields" in options else {"on_error": "quarantine"}
    )
    assert error_message(mw.MinwiseError, lambda: mw.pairs(ROWS, **options, **on_error)).startswith(message)


@pytest.mark.parametrize("options", [{"group_by": "user", "item": "movie"}, {"transpose": True, "shingle": "set"}])
def test_dedup_of_groups_is_rejected(options: dict[str, Any]) -> None:
    """A group consists of many rows, so the rows to remove are undefined."""
    [name, *_] = options
    for call in (mw.dedup, estimate_run):
        message = error_message(ConfigError, lambda call=call: call(ROWS, **options))  # type: ignore[misc]
        assert message.startswith(f"{name} must be left out with dedup: a group consists of several rows")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"truth": ""}, "truth must be a name, got ''"),
        ({"truth": "user", "group_by": "user", "item": "movie"}, "truth must be left out with group_by and transpose"),
        ({"truth": "missing"}, "truth cannot be read; has no column 'missing'"),
    ],
)
def test_truth_without_effect_is_rejected(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    output = tmp_path / "p.csv"
    assert error_message(mw.MinwiseError, lambda: mw.write_pairs(ROWS, output, **options)).startswith(message)
    assert not output.exists()


def test_truth_needs_an_output() -> None:
    call: Any = mw.pairs
    assert error_message(ConfigError, lambda: call(ROWS, truth="user")).startswith("unknown setting 'truth'")


def test_hashed_sets_cannot_be_transposed_or_be_bags() -> None:
    sets = mw.ShingleSets.from_sets([[1], [1]])
    assert "ShingleSets" in error_message(ConfigError, lambda: mw.pairs(sets, transpose=True))
    assert "ShingleSets" in error_message(ConfigError, lambda: mw.pairs(sets, bag=True))
    assert "items must all be" in error_message(InputError, lambda: mw.pairs([[1, "x"]], shingle="set", transpose=True))


def test_basket_formats_need_shingle_set(tmp_path: Path) -> None:
    (tmp_path / "x.dat").write_text("a b\n")
    message = error_message(ConfigError, lambda: mw.pairs(tmp_path / "x.dat", format="baskets"))
    assert message == "format must be that of a table or text, got baskets, which needs shingle set"
