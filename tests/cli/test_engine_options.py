"""`--engine`, `--master` and `--spark-conf`: what can not be done is told in a line before anything is started."""

import json
from pathlib import Path

import pytest
from support.commands import USAGE, one_line, run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the command runs, with a file."""
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": 1, "text": "one"}) + "\n")
    return tmp_path


REFUSED = {
    "master without spark": (["--master", "local[2]"], "master must be left out with engine local, got 'local[2]'"),
    "settings without spark": (["--spark-conf", "spark.a=1"], "spark_conf must be left out with engine local"),
    "no setting": (["--engine", "spark", "--spark-conf", "spark.a"], "spark-conf must be KEY=VALUE, got 'spark.a'"),
    "not of spark": (["--engine", "spark", "--spark-conf", "a=1"], "names that begin with spark., got 'a'"),
    "no such master": (["--engine", "spark", "--master", "lokal"], "master must be local[N], "),
    "exact": (["--engine", "spark", "--exact"], "exact must be left out with engine spark"),
    "work elsewhere": (["--work", "s3://b/w"], "work must be a directory of this machine with engine local"),
}


@pytest.mark.parametrize("command", ["dedup", "pairs", "clusters"])
@pytest.mark.parametrize("name", REFUSED)
def test_refusals(command: str, name: str, folder: Path) -> None:
    """One line with the setting, the rule and the value; nothing is written."""
    options, told = REFUSED[name]
    output = "out" if command == "dedup" else "out.csv"
    done = run(folder, command, "a.jsonl", "-o", output, *options)
    assert told in one_line(done, USAGE)
    assert [path.name for path in folder.iterdir()] == ["a.jsonl"]


def test_an_engine_that_there_is_not(folder: Path) -> None:
    """The choices are named."""
    done = run(folder, "pairs", "a.jsonl", "-o", "out.csv", "--engine", "dask")
    assert done.status == USAGE
    assert "'local', 'spark'" in done.err


def test_standard_input_is_not_for_spark(folder: Path) -> None:
    """Nobody but this process can read it."""
    done = run(folder, "pairs", "-", "-o", "out.csv", "--engine", "spark")
    assert "engine must be local with - as input" in one_line(done, USAGE)
