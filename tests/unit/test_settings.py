"""Settings: sizes, limits, and the errors for wrong values of every option."""

import inspect
import math
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from support.expect import error_message

import minwise as mw
from minwise.errors import ConfigError
from minwise.inputs.document_values import ValueColumn
from minwise.inputs.find_files import FORMATS
from minwise.inputs.items import ItemSets
from minwise.keep_rules import KeepRule
from minwise.options import (
    AuditOptions,
    ClustersOptions,
    DedupOptions,
    IndexOptions,
    PairsOptions,
    definitions,
)
from minwise.server import ServerSettings
from minwise.settings import RunLimits, SearchSettings, parse_bytes, resolve_options, search_settings
from minwise.sketches import plan_by_area
from minwise.sketches.frequencies import FrequencyTable
from minwise.text.shingling import NORMALISATION

DOCUMENTS = [{"id": "a", "text": "one two three four five"}, {"id": "b", "text": "six seven eight nine ten"}]
CALLS: dict[str, Callable[..., Any]] = {"pairs": mw.pairs, "clusters": mw.clusters, "dedup": mw.dedup}
WRITERS: dict[str, Callable[..., Any]] = {"pairs": mw.write_pairs, "clusters": mw.write_clusters}


SEVERAL = "keep must be first, last, longest, shortest, max:COL or min:COL, or several of these separated by commas"
PREFER = "prefer must be a column and values such as source=wiki,books"
PROTECT = "protect must be a column and a value such as source=wiki"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("4GB", 4 * 10**9),
        ("4gb", 4 * 10**9),
        ("4G", 4 * 10**9),
        (" 512 MiB ", 512 * 2**20),
        ("1.5GB", 1_500_000_000),
        ("1KiB", 1024),
        ("1kb", 1000),
        ("2TB", 2 * 10**12),
        ("2TiB", 2 * 2**40),
        ("300000000", 300_000_000),
        ("300000000B", 300_000_000),
        (0, 0),
        (2**40, 2**40),
    ],
)
def test_sizes_have_decimal_and_binary_units(value: str | int, expected: int) -> None:
    assert parse_bytes("memory", value) == expected


@pytest.mark.parametrize(
    "value", ["", "GB", "4 G B", "4XB", "-4GB", "4iB", "4,5GB", "1e9", "inf", "nan", 1.5, None, True, [4], "9" * 400]
)
def test_wrong_size_is_rejected_with_the_setting(value: Any) -> None:  # noqa: ANN401 - anything
    message = error_message(ConfigError, lambda: parse_bytes("memory", value))
    assert message.startswith("memory must be a size such as 4GB or 512MiB, got ")


def test_limits_follow_from_memory_and_threads() -> None:
    """Batches are at most 32 MiB, and at most a 64th of a small memory."""
    large, small = RunLimits.of("4GB", 3), RunLimits.of("256MB", None)
    assert (large.memory, large.threads, large.batch_bytes) == (4 * 10**9, 3, 1 << 25)
    assert (small.memory, small.threads) == (256 * 10**6, 0)
    assert 64 * small.batch_bytes <= small.memory


@pytest.mark.parametrize("memory", ["255MB", 255_999_999, 0, -1, "0GB"])
def test_too_little_memory_is_rejected_with_the_minimum(memory: str | int) -> None:
    message = error_message(ConfigError, lambda: RunLimits.of(memory, None))
    assert message == f"memory must be at least 256MB, got {memory!r}"


def find_settings(**changed: Any) -> SearchSettings:  # noqa: ANN401 - any setting
    """Return settings that differ from the default in the given ones."""
    rule = KeepRule.of("first", changed.get("prefer"), changed.get("protect"))
    changed |= {name: getattr(rule, name) for name in ("prefer", "protect") if name in changed}
    return SearchSettings(plan=mw.plan(), shingler=mw.Shingler(), **changed)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"scheme": "oph"}, "scheme must be one of fast, minhash, got 'oph'"),
        ({"verify": "Exact"}, "verify must be one of exact, signature, none, got 'Exact'"),
        ({"group": None}, "group must be one of star, components, got None"),
        ({"max_bucket": 15}, "max_bucket must be a whole number from 16 to 10000, got 15"),
        ({"max_bucket": 16.0}, "max_bucket must be a whole number from 16 to 10000, got 16.0"),
        ({"keep": "best"}, "keep must be first, last, longest, shortest, max:COL or min:COL, got 'best'"),
        ({"keep": "max"}, "keep must be first, last, longest, shortest, max:COL or min:COL, got 'max'"),
        ({"keep": "max:"}, "keep must be first, last, longest, shortest, max:COL or min:COL, got 'max:'"),
        ({"keep": "first:x"}, "keep must be first, last, longest, shortest, max:COL or min:COL, got 'first:x'"),
        ({"keep": "longest,best"}, f"{SEVERAL}, got 'longest,best'"),
        ({"keep": "longest,"}, f"{SEVERAL}, got 'longest,'"),
        (
            {"keep": "first,longest"},
            "keep must have first as its last key, because it leaves no ties, got 'first,longest'",
        ),
        ({"prefer": "source"}, f"{PREFER}, got 'source'"),
        ({"prefer": "source="}, f"{PREFER}, got 'source='"),
        ({"prefer": "=wiki"}, f"{PREFER}, got '=wiki'"),
        ({"prefer": "source=wiki,,books"}, f"{PREFER}, got 'source=wiki,,books'"),
        ({"prefer": ["source=wiki"]}, f"{PREFER}, got ['source=wiki']"),
        ({"prefer": {"a": ["x"], "b": ["y"]}}, f"{PREFER}, got {{'a': ['x'], 'b': ['y']}}"),
        ({"prefer": {"source": "wiki"}}, f"{PREFER}, got {{'source': 'wiki'}}"),
        ({"prefer": {"source": [None]}}, f"{PREFER}, got {{'source': [None]}}"),
        ({"prefer": "source=wiki,wiki"}, "prefer must name each value once, got 'source=wiki,wiki'"),
        ({"protect": "source"}, f"{PROTECT}, got 'source'"),
        ({"protect": ["source=wiki", 7]}, f"{PROTECT}, got ['source=wiki', 7]"),
        ({"protect": 7}, f"{PROTECT}, got 7"),
        ({"protect": {"source": None}}, f"{PROTECT}, got {{'source': None}}"),
    ],
)
def test_error_of_a_wrong_setting_has_the_rule_and_the_value(changed: dict[str, Any], message: str) -> None:
    assert error_message(ConfigError, lambda: find_settings(**changed)) == message


@pytest.mark.parametrize(
    ("given", "rules"),
    [
        ({"prefer": "source=wiki,books"}, {"prefer": {"source": ["wiki", "books"]}}),
        ({"prefer": {"year": [2020, 2019.5, True]}}, {"prefer": {"year": ["2020", "2019.5", "true"]}}),
        ({"protect": "source=a=b,c"}, {"protect": {"source": ["a=b,c"]}}),
        (
            {"protect": ("source=wiki", "lang=de", "source=books")},
            {"protect": {"source": ["wiki", "books"], "lang": ["de"]}},
        ),
        ({"protect": {"source": ["wiki", "wiki"], "good": True}}, {"protect": {"source": ["wiki"], "good": ["true"]}}),
        ({"protect": ()}, {}),
    ],
)
def test_rules_by_values_are_columns_with_labels(given: dict[str, Any], rules: dict[str, Any]) -> None:
    settings = find_settings(**given).to_dict()
    assert {name: settings[name] for name in ("prefer", "protect") if name in settings} == rules


def test_columns_of_all_rules_are_read() -> None:
    settings = find_settings(keep="max:a,min:b,longest", prefer="c=x", protect=["a=1", "c=y"])
    labels = tuple(ValueColumn(name, is_label=True) for name in ("c", "a"))
    assert settings.value_columns == (ValueColumn("a"), ValueColumn("b"), *labels)


@pytest.mark.parametrize(("keep", "column"), [("first", None), ("max:score", "score"), ("min:a:b", "a:b")])
def test_keep_column_follows_the_first_colon(keep: str, column: str | None) -> None:
    assert find_settings(keep=keep).value_columns == (() if column is None else (ValueColumn(column),))


def test_every_setting_changes_the_dictionary() -> None:
    """The dictionary identifies the settings of an earlier run."""
    default = find_settings().to_dict()
    changes: list[dict[str, Any]] = [
        {"scheme": "minhash"},
        {"seed": 2},
        {"verify": "none"},
        {"group": "components"},
        {"keep": "last"},
        {"prefer": "source=wiki"},
        {"protect": "source=wiki"},
        {"max_bucket": 99},
        {"exact": True},
        {"measure": "containment"},
        {"discount": "common"},
        {"discount": "common", "frequencies": FrequencyTable(np.ones(2, dtype=np.uint32), 1, {})},
        {"elements": ItemSets(column="items", bag=True)},
        {"transpose": True},
        {"html": True},
        {"within": "dump"},
        {"across": "dump"},
    ]
    assert {name for change in changes for name in change} == {field.name for field in fields(SearchSettings)} - {
        "plan",
        "shingler",
    }
    changed = [find_settings(**change).to_dict() for change in changes]
    changed += [SearchSettings(plan=mw.plan(0.7), shingler=mw.Shingler()).to_dict()]
    shinglers = (None, mw.Shingler(bag=True))
    changed += [SearchSettings(plan=mw.plan(), shingler=shingler).to_dict() for shingler in shinglers]
    assert default not in changed


@pytest.mark.parametrize("name", CALLS)
def test_error_of_an_unknown_setting_lists_all_settings(name: str) -> None:
    message = error_message(ConfigError, lambda: CALLS[name](DOCUMENTS, unknown_setting=1))
    assert message.startswith("unknown setting 'unknown_setting'; settings are: ")
    listed = message.partition("settings are: ")[2].split(", ")
    assert {"threshold", "recall", "shingle", "verify", "max_bucket", "memory"} <= set(listed)


MISSPELT: dict[str, Callable[..., Any]] = {
    **{name: partial(call, DOCUMENTS) for name, call in CALLS.items()},
    **{f"write_{name}": partial(call, DOCUMENTS, "out.csv") for name, call in WRITERS.items()},
    "audit": partial(mw.audit, DOCUMENTS),
    "index": partial(mw.Index.create, "index"),
}


@pytest.mark.parametrize("call", MISSPELT.values(), ids=MISSPELT)
@pytest.mark.parametrize("name", ["treshold", "Threshold", "thresh_hold"])
def test_a_misspelt_setting_is_told_the_name_that_is_meant(call: Callable[..., Any], name: str) -> None:
    message = error_message(ConfigError, lambda: call(**{name: 0.5}))
    assert message == f"unknown setting {name!r}; did you mean 'threshold'?"


def test_a_misspelt_setting_of_the_server_is_told_the_name_that_is_meant() -> None:
    message = error_message(ConfigError, lambda: ServerSettings(index=Path("i"), max_inflight=3))  # type: ignore[call-arg]
    assert message == "unknown setting 'max_inflight'; did you mean 'max_in_flight'?"


# Wrong values of each option: of a wrong type, and outside of its range.
WRONG: dict[str, tuple[Any, ...]] = {
    "threshold": (0, -0.1, 1.1, math.nan, "0.8", None),
    "recall": (0, 1, -1, math.nan, "high"),
    "shingle": ("word", "word:0", "words:3", "", 5, None),
    "bag": ("yes", 2, None),
    **dict.fromkeys(NORMALISATION, ("yes", 2, None)),
    "scheme": ("oph", "", None, 1),
    "slots": (0, -1, 1.5, "256", None, 10**9),
    "bands": (0, -1, "5", 10**9),
    "rows": (0, -1, "5", 10**9),
    "seed": (-1, 2**64, 1.0, "1", None),
    "exact": ("yes", None, 1),
    "measure": ("cosine", "", None, True),
    "within": ("", 7, ["dump"]),
    "across": ("", 7, ["dump"]),
    "discount": ("rare", "", None, True),
    "frequencies": (3, True, ["x"]),
    "save_frequencies": (3, True, ["x"], "missing/x", "."),
    "verify": ("yes", None, True),
    "group": ("stars", None),
    "keep": ("best", "max", "max:", "longest,best", "first,longest", None, 5),
    "prefer": ("", "source", ["source=a"], {"a": ["x"], "b": ["y"]}, 5),
    "protect": ("", "source", {"source": None}, [5], 5),
    "max_bucket": (0, 15, 10**9, 1.5, "many", None),
    "group_by": ("", 5, ["a"]),
    "item": ("", 5, ["a"]),
    "weight": ("", 5, "nowhere"),
    "transpose": ("yes", 1, None, True),
    "separator": ("", 5, ","),
    "fields": ("", "name", "name:chars:3", 5),
    "weights": ("name=2", {"name": 2}),
    "html": ("yes", 1, None),
    "text_column": ("", [], [""], 5, [5], "nowhere", None),
    "id_column": ("", 5, "nowhere"),
    "delimiter": ("", ";;", "é", 5, ";"),
    "encoding": ("", "klingon", 5, "cp1252"),
    "on_error": ("ignore", None, 5),
    "memory": ("much", "1MB", -1, 0.5, None),
    "threads": (0, -1, 1.5, "2", 10**6),
    "work": (5,),
    "engine": ("dask", "", None, 5),
    "master": ("local[2]",),
    "spark_conf": ({"a": "b"},),
}
# Options that are only checked together with another one.
TOGETHER: dict[str, dict[str, Any]] = {
    "bands": {"rows": 4},
    "rows": {"bands": 10},
    "frequencies": {"discount": "common"},
    "save_frequencies": {"discount": "common"},
}
CASES = [(name, value) for name, values in WRONG.items() for value in values]


@pytest.mark.parametrize(("name", "value"), CASES, ids=[f"{name}={value!r}" for name, value in CASES])
def test_wrong_value_is_rejected_with_its_name(name: str, value: Any) -> None:  # noqa: ANN401 - anything
    """The message names the setting or the missing column, and shows the value."""
    message = error_message(mw.MinwiseError, lambda: mw.dedup(DOCUMENTS, **{**TOGETHER.get(name, {}), name: value}))
    assert ("column" if name.endswith("_column") else name) in message
    shown = type(value).__name__ if name == "keep" and not isinstance(value, str) else repr(value)
    assert shown in message or str(value) in message


@pytest.mark.parametrize("value", ["xls", 5, ""])
def test_wrong_format_is_rejected_with_its_name(value: Any, tmp_path: Path) -> None:  # noqa: ANN401 - anything
    """Only files have a format."""
    (tmp_path / "x.data").write_text("{}", encoding="utf-8")
    message = error_message(mw.MinwiseError, lambda: mw.pairs(tmp_path / "x.data", format=value))
    assert message.startswith(f"format must be one of {', '.join(FORMATS)}, got ")


def test_wrong_values_cover_every_option() -> None:
    """Except for a source, a progress receiver, and the format of a file (above)."""
    assert set(definitions(DedupOptions)) - WRONG.keys() == {"format", "against", "progress"}


@pytest.mark.parametrize("call", ["pairs", "clusters"])
@pytest.mark.parametrize("option", [{"keep": "last"}, {"keep": "nonsense"}, {"against": DOCUMENTS}])
def test_options_that_a_call_would_ignore_are_rejected(call: str, option: dict[str, Any]) -> None:
    """Pairs and clusters keep nothing, and have no reference corpus."""
    [name] = option
    assert name in error_message(ConfigError, lambda: CALLS[call](DOCUMENTS, **option))


@pytest.mark.parametrize("call", ["pairs", "clusters"])
@pytest.mark.parametrize("output", ["x.txt", "x", ".parquet/", 5])
def test_wrong_output_is_rejected_before_the_source_is_read(call: str, output: Any) -> None:  # noqa: ANN401 - anything
    """The source does not exist, which would be another error."""
    message = error_message(ConfigError, lambda: WRITERS[call]("nowhere.jsonl", output))
    assert message.startswith("output must ")


def test_output_of_dedup_must_be_a_path() -> None:
    assert "output must " in error_message(mw.MinwiseError, lambda: mw.dedup(DOCUMENTS, 5))  # type: ignore[call-overload]


def test_documents_in_memory_are_written_as_one_table(tmp_path: Path) -> None:
    """It has the kept rows with all columns."""
    rows = [*DOCUMENTS, {"id": "c", "text": "One two, three four five!"}]
    result = mw.dedup(rows, tmp_path / "out")
    assert pq.read_table(tmp_path / "out" / "kept" / "documents.parquet").to_pylist() == DOCUMENTS
    assert result.kept == DOCUMENTS


def test_missing_parents_of_outputs_are_created(tmp_path: Path) -> None:
    """For an output directory and for a table."""
    source = tmp_path / "x.jsonl"
    source.write_text('{"text": "one two"}\n', encoding="utf-8")
    mw.dedup(source, tmp_path / "new" / "folder" / "out")
    assert (tmp_path / "new" / "folder" / "out" / "report.json").exists()
    mw.write_pairs(source, tmp_path / "another" / "folder" / "pairs.csv")
    assert (tmp_path / "another" / "folder" / "pairs.csv").exists()


def test_bag_that_would_be_ignored_is_rejected() -> None:
    """A shingler has its own setting, and sets of a DataFrame have no repetitions."""
    assert "bag" in error_message(ConfigError, lambda: mw.pairs(DOCUMENTS, shingle=mw.Shingler("word:2"), bag=True))
    options = resolve_options(DedupOptions, None, {"shingle": "set", "bag": True})
    assert "bag" in error_message(ConfigError, lambda: search_settings(options, of_frame=True))


def test_shingle_setting_is_optional_for_shingle_sets() -> None:
    sets = mw.ShingleSets.from_sets([[1, 2], [1, 2]])
    assert mw.pairs(sets).to_pylist() == [{"left": 0, "right": 1, "similarity": 1.0}]


def test_numpy_numbers_are_valid_settings() -> None:
    options: dict[str, Any] = {"threshold": np.float64(0.7), "max_bucket": np.int64(20), "seed": np.uint64(3)}
    assert mw.dedup(DOCUMENTS, **options).report["counts"]["kept"] == 2


OPTION_CLASSES = (AuditOptions, PairsOptions, ClustersOptions, DedupOptions, IndexOptions)


@pytest.mark.parametrize("options", OPTION_CLASSES)
def test_every_setting_is_documented_with_its_default(options: type) -> None:
    for name, definition in definitions(options).items():
        assert definition.name == name
        assert definition.help[0].isupper()
        assert definition.help.endswith(".")
        assert definition.default is None or str(definition.default) in definition.documentation


@pytest.mark.parametrize("options", OPTION_CLASSES)
def test_defaults_are_valid_values(options: type) -> None:
    for definition in definitions(options).values():
        assert not definition.choices or definition.default in (*definition.choices, None)
        assert definition.default is not None or definition.optional or "None" in str(definition.type)


def test_defaults_of_the_plan_are_those_of_a_search() -> None:
    known = definitions(DedupOptions)
    assert mw.plan() == mw.plan(known["threshold"].default, known["recall"].default, slots=known["slots"].default)
    assert mw.Shingler().settings == mw.Shingler(known["shingle"].default).settings
    assert mw.FastSketch().slots == known["slots"].default


# Calls with explicit parameters, some of which are settings of a search.
EXPLICIT_CALLS = (
    mw.plan,
    plan_by_area,
    mw.Index.add_from,
    mw.Index.add_stream,
    mw.Index.query_from,
    mw.EuclideanLSH.plan,
    mw.EuclideanLSH.pairs,
    mw.EuclideanLSH.write_pairs,
    mw.EuclideanLSH.query,
    mw.EuclideanLSH.write_query,
    RunLimits.of,
    SearchSettings,
)


@pytest.mark.parametrize("call", EXPLICIT_CALLS, ids=lambda call: call.__qualname__)
def test_explicit_parameters_have_the_defaults_of_the_definitions(call: Callable[..., Any]) -> None:
    known = definitions(DedupOptions)
    if call is mw.Index.query_from:
        del known["threshold"]  # by default that of the index
    parameters = inspect.signature(call).parameters.values()
    shared = [parameter for parameter in parameters if parameter.name in known]
    assert shared
    for parameter in shared:
        if parameter.default is not inspect.Parameter.empty:
            assert parameter.default == known[parameter.name].default, parameter.name
