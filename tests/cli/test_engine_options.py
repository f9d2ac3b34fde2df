"""`--engine`, `--master` and `--spark-conf`: wrong combinations are rejected in one line before Spark is started."""

import json
from pathlib import Path

import pytest
from support.commands import USAGE, one_line, run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the working directory, with one file."""
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": 1, "text": "one"}) + "\n")
    return tmp_path


WRONG = {
    "master without spark": (["--master", "local[2]"], "master must be left out with engine local, got 'local[2]'"),
    "conf without spark": (["--spark-conf", "spark.a=1"], "--spark-conf must be left out with engine local"),
    "conf without value": (
        ["--engine", "spark", "--spark-conf", "spark.a"],
        "spark-conf must be KEY=VALUE, got 'spark.a'",
    ),
    "conf of another program": (["--engine", "spark", "--spark-conf", "a=1"], "names that begin with spark., got 'a'"),
    "unknown master": (["--engine", "spark", "--master", "lokal"], "master must be local[N], "),
    "exact": (["--engine", "spark", "--exact"], "exact must be left out with engine spark"),
}


@pytest.mark.parametrize("command", ["dedup", "pairs", "clusters"])
@pytest.mark.parametrize("name", WRONG)
def test_wrong_combination_is_a_usage_error(command: str, name: str, folder: Path) -> None:
    """One line has the setting, the rule and the value; nothing is written."""
    options, message = WRONG[name]
    output = "out" if command == "dedup" else "out.csv"
    done = run(folder, command, "a.jsonl", "-o", output, *options)
    assert message in one_line(done, USAGE)
    assert [path.name for path in folder.iterdir()] == ["a.jsonl"]


def test_error_of_an_unknown_engine_lists_the_engines(folder: Path) -> None:
    done = run(folder, "pairs", "a.jsonl", "-o", "out.csv", "--engine", "dask")
    assert done.status == USAGE
    assert "'local', 'spark'" in done.err


def test_standard_input_is_rejected_with_spark(folder: Path) -> None:
    """Only this process can read it."""
    done = run(folder, "pairs", "-", "-o", "out.csv", "--engine", "spark")
    assert "engine must be local with - as input" in one_line(done, USAGE)
