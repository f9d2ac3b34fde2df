"""What can be told about a session before any Java process is started."""

import socket
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from support.expect import complaint

from minwise.errors import ConfigError
from minwise.spark import java_process, session
from minwise.spark.session import check_conf, check_master, open_session


@pytest.mark.parametrize(
    "master",
    [
        "local",
        "local[2]",
        "local[*]",
        "local[2,3]",
        "local-cluster[2,1,1024]",
        "spark://h:7077",
        "yarn",
        "k8s://https://h",
    ],
)
def test_masters_that_spark_knows(master: str) -> None:
    """Each passes as it is."""
    assert check_master(master) == master


@pytest.mark.parametrize(
    "master", ["", "Local", "local[0]", "local[]", "spark://h", "http://h:1", "mesos://h:1", 3, None]
)
def test_masters_that_it_does_not(master: object) -> None:
    """The value and what would be right."""
    told = complaint(ConfigError, lambda: check_master(master))
    assert told.startswith("master must be local[N], local[*], spark://HOST:PORT, yarn or k8s://URL, got ")


def test_settings_of_spark_become_text() -> None:
    """Truth as Spark writes it."""
    given = {"spark.a": True, "spark.b": 3, "spark.c": "x"}
    assert check_conf(given) == {"spark.a": "true", "spark.b": "3", "spark.c": "x"}


@pytest.mark.parametrize(
    ("conf", "told"),
    [
        ({"executor.memory": "1g"}, "names that begin with spark., got 'executor.memory'"),
        ({"spark.a": None}, "spark_conf spark.a must be a string or a number"),
        (["spark.a"], "spark_conf must be settings of Spark by name"),
    ],
)
def test_settings_that_are_none(conf: Any, told: str) -> None:  # noqa: ANN401 - whatever a user passes
    """One line with the rule and the value."""
    assert told in complaint(ConfigError, lambda: check_conf(conf))


def test_a_master_is_given_once() -> None:
    """Both values are shown."""
    told = complaint(ConfigError, lambda: open_session("local[2]", {"spark.master": "yarn"}))
    assert told == "master must be given once, got local[2] and spark.master yarn in spark_conf"


def test_a_master_that_nobody_answers_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, not after the minutes that Spark would try."""
    monkeypatch.setattr(session, "_active_session", lambda: None)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(OSError, match="cannot be reached") as caught:
        open_session(f"spark://127.0.0.1:{port}")
    assert caught.value.filename == f"spark://127.0.0.1:{port}"


def test_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is needed and what to set."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    told = complaint(ConfigError, java_process.check_java)
    assert told == f"engine spark needs Java 17 or newer, got none in JAVA_HOME {tmp_path}; install it or set JAVA_HOME"


def test_with_an_old_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The version and where it is."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "got Java 8, " in complaint(ConfigError, java_process.check_java)


@pytest.mark.parametrize("package", ["pyspark", "pandas"])
def test_without_a_package(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The remedy is a command."""
    monkeypatch.setattr(session, "find_spec", lambda name: None if name == package else find_spec(name))
    told = complaint(ConfigError, lambda: open_session("local[2]"))
    assert told == f"engine spark needs {package}, which is not installed; install minwise with the extra spark"
