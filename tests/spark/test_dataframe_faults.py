"""Wrong arguments and unusable rows of DataFrames are reported in one line."""

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support.expect import error_message

import minwise as mw
from minwise.errors import ConfigError, InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id bigint, text string, title string, words array<string>, data binary, map map<string, int>"

# Arguments, and the beginning of the message; nothing is read.
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"text": "body"}, "df has no column 'body'; its columns are: id, text, title, words, data, map"),
    ({"id": "key"}, "df has no column 'key'; its columns are: id, text, title, words, data, map"),
    ({"text": "id"}, "df: id must be strings or bytes, got a column of bigint"),
    ({"id": "words"}, "df: words must be numbers, strings, dates or a struct of these, got array<string>"),
    (
        {"shingle": "set"},
        "df: text must be an array of whole numbers, strings or bytes with shingle='set', got a column of string",
    ),
    (
        {"shingle": "set", "text": ("words", "map")},
        "text must name one column with shingle='set', got ('words', 'map')",
    ),
    ({"text": ("text", "text")}, "text must name each column once, got ('text', 'text')"),
    ({"keep": "max:map"}, "df: map must be numbers, strings or dates, got a column of map<string,int>"),
    ({"keep": "max:year"}, "df has no column 'year'; its columns are: id, text, title, words, data, map"),
    ({"treshold": 0.8}, "unknown setting 'treshold'; did you mean 'threshold'?"),
    ({"exact": True}, "unknown setting 'exact'; settings are: threshold, recall, "),
    ({"threshold": 2}, "threshold must be"),
    ({"on_error": "ignore"}, "on_error must be one of fail, quarantine-rows, quarantine, skip, got 'ignore'"),
    ({"partitions": 0}, "partitions must be a whole number from 1 to 1000000, got 0"),
    ({"driver_edges": -1}, "driver_edges must be a whole number from 0 to 2147483648, got -1"),
    ({"work": ""}, "work must be a path or a URL, got ''"),
    ({"against": "known.parquet"}, "against must be DataFrame, got str"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str, spark: "SparkSession") -> None:
    """By name, with the value."""
    from minwise.spark import dedup

    df = spark.createDataFrame([], SCHEMA)
    assert error_message(mw.MinwiseError, lambda: dedup(df, **arguments)).startswith(message)


def test_only_dataframes_with_ids_of_one_type_are_accepted(spark: "SparkSession") -> None:
    """Lists, ids of two types, and ambiguous column names are refused."""
    from minwise.spark import clusters, dedup, pairs

    wrong: Any = ["a text"]
    message = "df must be DataFrame, got list; use minwise.pairs, clusters or dedup for what is no DataFrame"
    for call in (dedup, pairs, clusters):
        assert error_message(InputError, lambda call=call: call(wrong)) == message  # type: ignore[misc]
    df = spark.createDataFrame([], SCHEMA)
    others = spark.createDataFrame([], "id string, text string")
    message = "against must have ids of the same type as the DataFrame, got string and bigint; cast them"
    assert error_message(InputError, lambda: dedup(df, against=others)) == message
    twice = df.select("id", "text", df["title"].alias("text"))
    message = "df has more than one column 'text'; its columns are: id, text, text"
    assert error_message(InputError, lambda: dedup(twice)) == message
    message = error_message(ConfigError, lambda: pairs(df, keep="last"))  # type: ignore[call-arg]
    assert message.startswith("unknown setting 'keep'")


# Rows of id and text, arguments, and the message.
FAULTS: dict[str, tuple[list[tuple[Any, Any]], dict[str, Any], str]] = {
    "an id twice": (
        [(4, "a"), (3, "b"), (4, "c"), (3, "d"), (3, "a")],
        {},
        "df: id must be different in every row, got 3 3 times",
    ),
    "no id": ([(1, "a"), (None, "b"), (None, "c")], {}, "df: id must not be null, got 2 of 3 rows without one"),
    "no text": (
        [(1, "a"), (3, None), (2, None)],
        {},
        "df: id 2: text is null; set on_error='quarantine' to skip such rows",
    ),
    "no text anywhere": (
        [(8, None), (7, None)],
        {"on_error": "quarantine"},
        "no document can be read; df: id 7: text is null",
    ),
    "bytes that are no text": (
        [(1, b"a"), (2, b"\xff")],
        {},
        "df: id 2: is not valid UTF-8 at byte 0; set on_error='quarantine' to skip such rows",
    ),
    "sets with nothing in them": (
        [(1, ["a"]), (2, ["b", None])],
        {"shingle": "set"},
        "df: id 2: text holds a null; set on_error='quarantine' to skip such rows",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_first_row_that_cannot_be_used_is_named(name: str, spark: "SparkSession") -> None:
    """It is the one with the smallest id, whatever the order of rows."""
    from minwise.spark import dedup

    rows, arguments, message = FAULTS[name]
    kind = {"bytes": "binary", "list": "array<string>"}.get(type(rows[0][1]).__name__, "string")
    df = spark.createDataFrame(rows, f"id bigint, text {kind}")
    assert error_message(InputError, lambda: dedup(df, **arguments)) == message


def test_pyspark_is_imported_at_first_use() -> None:
    """Importing minwise and minwise.spark does not import it."""
    code = "import sys, minwise, minwise.spark; dir(minwise.spark); assert 'pyspark' not in sys.modules"
    later = "from minwise.spark import dedup; assert 'pyspark' in sys.modules"
    subprocess.run([sys.executable, "-c", f"{code}; {later}"], check=True)
