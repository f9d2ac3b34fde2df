"""Exceptions of Spark become one-line errors of the class that an executor raised. These tests need no cluster."""

import errno

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import PySparkException
from support.expect import error_message

import minwise as mw
from minwise.errors import ConfigError, InputError
from minwise.spark.errors import reason_of, spark_errors

PYTHON = """An error occurred while calling o98.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 3 in stage 1.0 failed 4 times, most recent \
failure: Lost task 3.3 in stage 1.0 (TID 9) (10.0.0.7 executor 1): org.apache.spark.api.python.PythonException: \
Traceback (most recent call last):
  File "worker.py", line 1227, in main
    process()
{raised}

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:572)
\tat java.base/java.lang.Thread.run(Thread.java:840)

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2844)
"""


def raise_in_spark(text: str) -> None:
    """Raise an exception of Spark inside a stage."""
    with spark_errors("candidates"):
        raise PySparkException(text)


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        ("minwise.errors.InputError: a.jsonl: row 3: is null", InputError, "a.jsonl: row 3: is null"),
        ("minwise.errors.ConfigError: s3://b: takes s3fs", ConfigError, "s3://b: takes s3fs"),
        ("KeyError: 'text'", mw.MinwiseError, "spark: candidates: KeyError: 'text'"),
        ("ValueError: two\nlines", mw.MinwiseError, "spark: candidates: ValueError: two lines"),
    ],
)
def test_an_error_of_an_executor_keeps_its_class(raised: str, kind: type[mw.MinwiseError], message: str) -> None:
    """Errors of minwise keep class and message; others are reported with the stage."""
    assert error_message(kind, lambda: raise_in_spark(PYTHON.format(raised=raised))) == message


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (PYTHON.format(raised="FileNotFoundError: [Errno 2] No such file or directory: 'a.txt'"), errno.ENOENT),
        (PYTHON.format(raised="OSError: [Errno 28] No space left on device"), errno.ENOSPC),
        ("java.io.IOException: No space left on device\n\tat java.io.FileOutputStream.writeBytes", errno.ENOSPC),
    ],
)
def test_an_error_of_the_system_keeps_its_errno(text: str, number: int) -> None:
    """The command then ends with the exit code of a full disk, whichever process reports it."""
    with pytest.raises(OSError, match=r"\w") as caught:
        raise_in_spark(text)
    assert caught.value.errno == number


def test_a_missing_package_on_an_executor_has_a_remedy() -> None:
    """It is the most frequent mistake."""
    text = PYTHON.format(raised="ModuleNotFoundError: No module named 'minwise'")
    message = error_message(mw.MinwiseError, lambda: raise_in_spark(text))
    assert message.startswith("spark: candidates: ModuleNotFoundError: No module named 'minwise' on an executor")
    assert "guide" in message


def test_other_exceptions_pass_unchanged() -> None:
    """They are not from Spark."""
    with pytest.raises(ZeroDivisionError), spark_errors("candidates"):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "An error occurred while calling o1.x.\n: java.lang.OutOfMemoryError: Java heap space\n\tat x",
            "OutOfMemoryError: Java heap space",
        ),
        ("[PATH_NOT_FOUND] Path does not exist: file:/a. SQLSTATE: 42K03", "Path does not exist: file:/a"),
        ("", "no reason was given"),
    ],
)
def test_the_reason_is_one_line_without_package_names(text: str, reason: str) -> None:
    """Only what the user can act on remains."""
    assert reason_of(text) == reason
