"""Sessions that minwise starts: quiet, with their own settings, and ended with their Java process.

Each program runs in a separate process, because the other tests share a session.
"""

import os
import subprocess
import sys
from pathlib import Path

from support.spark.cluster import FAST_JAVA

TESTS = str(Path(__file__).parents[1])
PREPARE = f"""
import os, signal, threading, time
from minwise.errors import ConfigError, MinwiseError
from minwise.spark.errors import spark_errors
from minwise.spark.session import close_session, open_session
from support.spark.processes import DRIVER, children, command_line

QUICK = {{"spark.driver.extraJavaOptions": "{FAST_JAVA}"}}

def java():
    return children(os.getpid(), DRIVER)
"""
OWN = """
for memory in ("600m", "700m"):  # the second session has its own Java process, with its own settings
    before = dict(os.environ), signal.getsignal(signal.SIGINT)
    session = open_session("local[1]", {**QUICK, "spark.driver.memory": memory})
    (process,) = java()
    assert f"-Xmx{memory}" in command_line(process)
    assert session.range(5).count() == 5
    again = []
    thread = threading.Thread(target=lambda: again.append(open_session(None)))
    thread.start()
    thread.join()
    assert again == [session]
    try:
        open_session("local[3]")
    except ConfigError as error:
        assert "must be that of the active Spark session, which has local[1], got local[3]" in str(error)
    close_session(session)
    assert java() == [process]  # the thread has not closed it
    close_session(session)
    assert java() == []
    assert signal.getsignal(signal.SIGINT) is before[1]
"""
KILLED = """
session = open_session("local[1]", QUICK)
(process,) = java()
os.kill(process, signal.SIGKILL)
try:
    with spark_errors("candidates"):
        session.range(5).count()
except MinwiseError as error:
    assert str(error).startswith("spark: candidates: Spark's own process has ended"), error
close_session(session)
session = open_session("local[1]", QUICK)
assert session.range(5).count() == 5
close_session(session)
assert java() == []
"""
OF_THE_CALLER = """
from pyspark import SparkContext
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
mine = builder.config("spark.driver.host", "127.0.0.1").config("spark.log.level", "ERROR").getOrCreate()
processes = java()
session = open_session(None)
assert session is mine
close_session(session)
assert mine.range(5).count() == 5
mine.stop()
session = open_session("local[1]")  # in the Java process that the user started
assert session.range(5).count() == 5
close_session(session)
context = SparkContext("local[1]", "only a context")
session = open_session(None)
assert session.sparkContext is context
close_session(session)
assert session.range(5).count() == 5
assert java() == processes
"""
REFUSED = """
for conf, reason in (
    ({"spark.driver.memory": "little"}, "Invalid maximum heap size: -Xmxlittle"),
    ({"spark.sql.shuffle.partitions": "few"}, "The value 'few' in the config"),
):
    try:
        open_session("local[1]", {**QUICK, **conf})
    except ConfigError as error:
        assert str(error).startswith(f"engine spark could not be started: {reason}"), error
    else:
        raise AssertionError(conf)
    assert java() == []
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a new Python process."""
    environment = {**os.environ, "PYTHONPATH": TESTS}
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_PYTHON", "SPARK_LOCAL_IP"):
        environment.pop(name, None)
    return subprocess.run(
        [sys.executable, "-c", PREPARE + program], env=environment, capture_output=True, text=True, check=False
    )


def is_quiet(done: subprocess.CompletedProcess[str]) -> bool:
    """Return whether a program succeeded and printed nothing."""
    return (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_own_session_is_quiet_and_ends_with_its_java_process() -> None:
    """Twice in one process, with different memory, and shared by two threads."""
    done = run(OWN)
    assert is_quiet(done), done


def test_a_session_whose_java_process_was_killed_is_replaced() -> None:
    """The failure is reported in one line, and the next session works."""
    done = run(KILLED)
    assert (done.returncode, done.stdout) == (0, ""), done


def test_the_session_of_the_caller_is_used_and_left_alone() -> None:
    """So are its Java process and a context without a session."""
    done = run(OF_THE_CALLER)
    assert (done.returncode, done.stdout) == (0, ""), done


def test_a_start_that_fails_is_explained_in_one_line() -> None:
    """With what Java or Spark said; no process is left."""
    done = run(REFUSED)
    assert is_quiet(done), done
