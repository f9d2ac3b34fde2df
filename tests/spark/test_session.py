"""Sessions that minwise starts: quiet, stopped after the last use, and replaced by a new one in the same Java process.

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
from pyspark.sql import SparkSession
from support.spark.processes import DRIVER, children, command_line

QUICK = {{"spark.driver.extraJavaOptions": "{FAST_JAVA}"}}

def java():
    return children(os.getpid(), DRIVER)

def waiting(mark):
    def wait(batches):
        open(mark, "w").close()
        time.sleep(600)
        yield from batches

    return wait

def interrupt(mark):  # not before the task runs: on a busy machine, planning takes seconds
    while not os.path.exists(mark):
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)

def refusal(master, conf):
    try:
        open_session(master, conf)
    except ConfigError as error:
        return str(error)
    raise AssertionError("not refused")
"""
OWN = """
for conf, reason in (
    ({"spark.driver.memory": "little"}, "Invalid maximum heap size: -Xmxlittle"),
    ({"spark.driver.memory": "1k"}, "Too small maximum heap"),
    ({"spark.driver.extraJavaOptions": "-Xmx3g"}, "Not allowed to specify max heap(Xmx) memory settings"),
):
    message = refusal("local[1]", {**QUICK, **conf})
    assert message.startswith(f"engine spark could not be started: {reason}"), message
    assert java() == []
handler, environment = signal.getsignal(signal.SIGINT), dict(os.environ)
processes = []
for partitions in ("7", None):  # the second session runs in the Java process of the first, without its settings of SQL
    conf = {} if partitions is None else {"spark.sql.shuffle.partitions": partitions}
    session = open_session("local[1]", {**conf, "spark.driver.memory": "600m"})
    (process,) = java()
    assert {"-Xmx600m", "-XX:TieredStopAtLevel=1"} <= set(command_line(process))
    assert signal.getsignal(signal.SIGINT) is handler
    assert session.range(5).count() == 5
    assert session.conf.get("spark.sql.shuffle.partitions") == (partitions or "200")
    assert session.conf.get("spark.sql.execution.arrow.maxBytesPerBatch") in ("64m", str(64 << 20))
    again = []
    thread = threading.Thread(target=lambda: again.append(open_session(None)))
    thread.start()
    thread.join()
    assert again == [session]
    assert "must be that of the active Spark session, which has local[1], got local[3]" in refusal("local[3]", {})
    close_session(session)
    assert session.range(5).count() == 5  # the thread has not closed it
    close_session(session)
    assert SparkSession.getActiveSession() is None
    processes.append(process)
assert len(set(processes)) == 1
message = refusal("local[1]", {"spark.driver.memory": "700m"})
assert "must be that of this process's Java, which has 600m, got 700m; leave it out, or start a new" in message, message
changed = set(dict(os.environ).items()) ^ set(environment.items())
assert {name for name, _ in changed} <= {"SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"}, changed  # of pyspark
message = refusal("local[1]", {"spark.sql.shuffle.partitions": "few"})
assert message.startswith("engine spark could not be started: The value 'few' in the config"), message
assert signal.getsignal(signal.SIGINT) is handler
session = open_session("local[1]", {})
mark = os.environ["MARK"]
threading.Thread(target=interrupt, args=(mark,)).start()
try:
    with spark_errors("candidates"):
        session.range(1).mapInArrow(waiting(mark), "id long").count()
except KeyboardInterrupt:
    close_session(session)
else:
    raise AssertionError
session = open_session("local[1]", {})
assert session.range(5).count() == 5
(process,) = java()
os.kill(process, signal.SIGKILL)
try:
    with spark_errors("candidates"):
        session.range(5).count()
except MinwiseError as error:
    assert str(error).startswith("spark: candidates: Spark's own process has ended"), error
else:
    raise AssertionError
for _ in range(2):
    message = refusal("local[1]", {})
    assert message.startswith("engine spark could not be started: Spark's own process has ended"), message
    assert message.endswith("; start a new Python process")
    close_session(session)
"""
CONFIGURED = """
session = open_session(None)
assert session.conf.get("spark.master") == "local[1]"
assert session.sparkContext.appName == "of the user"
assert session.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"
(process,) = java()
assert "-Xmx640m" in command_line(process)
assert not any("TieredStopAtLevel" in argument for argument in command_line(process))
assert session.range(5).mapInArrow(lambda batches: batches, "id long").count() == 5
close_session(session)
"""
OF_THE_CALLER = """
from pyspark import SparkContext

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
mine = builder.config("spark.driver.host", "127.0.0.1").config("spark.log.level", "ERROR").getOrCreate()
processes = java()
session = open_session(None)
assert session is mine
close_session(session)
assert mine.range(5).count() == 5
mine.stop()
session = open_session("local[1]", {"spark.log.level": "INFO"})  # in the Java process that the user started
assert session.range(5).count() == 5
close_session(session)
context = SparkContext("local[1]", "only a context")
session = open_session(None)
assert session.sparkContext is context
close_session(session)
assert session.range(5).count() == 5
assert java() == processes
"""


def run(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a new Python process."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([TESTS, os.environ.get("PYTHONPATH", "")])}
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_PYTHON", "SPARK_LOCAL_IP"):
        environment.pop(name, None)
    environment |= variables
    return subprocess.run(
        [sys.executable, "-c", PREPARE + program], env=environment, capture_output=True, text=True, check=False
    )


def is_quiet(done: subprocess.CompletedProcess[str]) -> bool:
    """Return whether a program succeeded and printed nothing."""
    return (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_own_session_is_quiet_and_its_failures_are_explained_in_one_line(tmp_path: Path) -> None:
    """In one process, because each start of Java takes seconds.

    A start that fails is refused with what Java or Spark printed, and a later one succeeds. Two sessions follow each
    other, each shared by two threads and stopped after its last use; the settings of Java are those of the first. An
    interrupt reaches the caller at once. After Java was killed, every start is refused.
    """
    done = run(OWN, MARK=str(tmp_path / "mark"))
    assert is_quiet(done), done


def test_the_configuration_of_the_user_is_used(tmp_path: Path) -> None:
    """Settings of spark-defaults.conf and variables of spark-env.sh take precedence over those of minwise."""
    defaults = ["spark.master local[1]", "spark.app.name of the user", "spark.driver.bindAddress 127.0.0.1"]
    (tmp_path / "spark-defaults.conf").write_text("\n".join(defaults))
    (tmp_path / "spark-env.sh").write_text("SPARK_DRIVER_MEMORY=640m\n")
    done = run(CONFIGURED, SPARK_CONF_DIR=str(tmp_path))
    assert is_quiet(done), done


def test_the_session_of_the_caller_is_used_and_left_alone() -> None:
    """So are its Java process and a context without a session. A session after it shows Spark's log if that is set."""
    done = run(OF_THE_CALLER)
    assert (done.returncode, done.stdout) == (0, ""), done
    assert 'Setting Spark log level to "INFO"' in done.stderr
