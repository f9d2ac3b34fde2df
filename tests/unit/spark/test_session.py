"""Checks of a session that precede the start of a Java process."""

import socket
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession
from support.expect import error_message

from minwise.errors import ConfigError
from minwise.spark import session
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
def test_masters_of_spark_are_accepted(master: str) -> None:
    """They are returned unchanged."""
    assert check_master(master) == master


@pytest.mark.parametrize(
    "master", ["", "Local", "local[0]", "local[]", "spark://h", "http://h:1", "mesos://h:1", 3, None]
)
def test_other_masters_are_refused(master: object) -> None:
    """With the value and the rule."""
    message = error_message(ConfigError, lambda: check_master(master))
    assert message.startswith("master must be local[N], local[*], spark://HOST:PORT, yarn or k8s://URL, got ")


def test_settings_of_spark_become_strings() -> None:
    """Truth values as Spark writes them."""
    given = {"spark.a": True, "spark.b": 3, "spark.c": "x"}
    assert check_conf(given) == {"spark.a": "true", "spark.b": "3", "spark.c": "x"}


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({"executor.memory": "1g"}, "names that begin with spark., got 'executor.memory'"),
        ({"spark.a": None}, "spark_conf spark.a must be a string or a number"),
        (["spark.a"], "spark_conf must be settings of Spark by name"),
    ],
)
def test_wrong_settings_are_refused(conf: Any, message: str) -> None:  # noqa: ANN401 - any value of a caller
    """One line with the rule and the value."""
    assert message in error_message(ConfigError, lambda: check_conf(conf))


def test_two_different_masters_are_refused() -> None:
    """With both values."""
    message = error_message(ConfigError, lambda: open_session("local[2]", {"spark.master": "yarn"}))
    assert message == "master must be given once, got local[2] and spark.master yarn in spark_conf"


def test_an_unreachable_master_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark itself would retry for minutes."""
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(OSError, match="cannot be reached") as caught:
        open_session(f"spark://127.0.0.1:{port}")
    assert caught.value.filename == f"spark://127.0.0.1:{port}"


def test_missing_java_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With the required version and the remedy."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    message = error_message(ConfigError, session._check_java)
    assert (
        message == f"engine spark needs Java 17 or newer, got none in JAVA_HOME {tmp_path}; install it or set JAVA_HOME"
    )


def test_an_old_java_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With its version and path."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "got Java 8, " in error_message(ConfigError, session._check_java)


@pytest.mark.parametrize("package", ["pyspark", "pandas"])
def test_a_missing_package_is_reported(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the extra to install."""
    monkeypatch.setattr(session, "find_spec", lambda name: None if name == package else find_spec(name))
    message = error_message(ConfigError, lambda: open_session("local[2]"))
    assert message == f"engine spark needs {package}, which is not installed; install minwise with the extra spark"
