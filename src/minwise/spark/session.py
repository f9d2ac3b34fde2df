"""Spark sessions: use the active one, or start one and stop it afterwards.

pyspark is imported when a session is opened, so that a missing package or Java is reported in one line.
"""

import errno
import logging
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minwise._internal.temporary import TemporaryFolder
from minwise.checks import show
from minwise.errors import ConfigError
from minwise.spark.errors import ENDED, is_of_spark, reason_of

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

__all__ = ["check_conf", "check_master", "close_session", "open_session", "spark_session"]

LOCAL = r"local(?:\[(?:\*|[1-9]\d*)(?:, ?[1-9]\d*)?\])?|local-cluster\[[1-9]\d*, ?[1-9]\d*, ?[1-9]\d*\]"
MASTER = re.compile(rf"{LOCAL}|spark://[^\s,/]+:\d+(?:,[^\s,/]+:\d+)*|yarn|k8s://\S+")
MASTERS = "local[N], local[*], spark://HOST:PORT, yarn or k8s://URL"
CONF_NAME = re.compile(r"spark\.[^\s=]+")
# A master that listens accepts at once; one behind a firewall never does.
CONNECT_SECONDS = 10
LEAST_VERSION = 4
OLDEST_JAVA = 17
FAILED = "engine spark could not be started"
# pyspark warns at every mapInArrow, although it uses nothing of pandas.
PANDAS_WARNING = "PySpark does not yet fully support pandas"

# Used unless set in spark_conf, in spark-defaults.conf or for spark-submit. Everything else, adaptive execution and
# reused Python workers included, is Spark's own default.
DEFAULTS = {
    "spark.app.name": "minwise",
    # Transfer columns between Java and Python unchanged, not row by row.
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Java and Python both hold a batch. Spark's own limit is 10,000 rows, which may be 10,000 books.
    "spark.sql.execution.arrow.maxBytesPerBatch": "64m",
    # Spark's progress bars would overwrite ours.
    "spark.ui.showConsoleProgress": "false",
}
# Additional defaults where all of Spark runs on this machine.
LOCAL_DEFAULTS = {
    # Other machines need not reach it, and the host name, which not every machine can resolve, is not looked up.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # The web page of a local run would listen on all addresses of the machine.
    "spark.ui.enabled": "false",
}
# Java options of a local master, unless Spark is configured elsewhere. The JVM does little work itself: without its
# second compiler, it needs 6 instead of 12 CPU seconds to start a session, 20 instead of 37 including the search of 40
# documents, and then 11 instead of 17 for 40,000 (two cores, shared).
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1"
# Settings that take effect at the start of the Java process, of which a Python process has one.
SETTINGS_OF_JAVA = {"spark.driver.memory", "spark.driver.extraJavaOptions", "spark.driver.extraClassPath"}
# spark-submit reads the file spark-env.sh before it starts Java. This one redirects the output of both to a file, and
# then reads the configuration of the user.
SPARK_ENV = """exec >> {log} 2>&1
SPARK_CONF_DIR={folder}
if [ -f "$SPARK_CONF_DIR/spark-env.sh" ]; then . "$SPARK_CONF_DIR/spark-env.sh"; fi
"""
# Calls of Java that may fail before a session is stopped.
CONNECTION_ATTEMPTS = 5
# Part of Java's message that it runs a context already, and how long that one may take to stop.
STILL_RUNNING = "SPARK-2243"
STOP_SECONDS = 60
# Lines that are printed before the reason of a failed start.
PREAMBLE = re.compile(r"\s|$|WARNING:|Using Spark|\d\d/\d\d/\d\d |Error occurred during|Error: (?:Could not create|A )")


def check_master(master: object) -> str:
    """Return a master URL that Spark understands, or raise ConfigError. It is not contacted."""
    if not isinstance(master, str) or not MASTER.fullmatch(master):
        raise ConfigError(f"master must be {MASTERS}, got {show(master)}")
    return master


def check_conf(conf: object) -> dict[str, str]:
    """Return Spark settings by name, with numbers and truth values as the strings that Spark reads."""
    if not isinstance(conf, Mapping):
        raise ConfigError(f"spark_conf must be settings of Spark by name, got {show(conf)}")
    for name, value in conf.items():
        if not isinstance(name, str) or not CONF_NAME.fullmatch(name):
            raise ConfigError(f"spark_conf must be of names that begin with spark., got {show(name)}")
        if not isinstance(value, (str, int, float)):
            raise ConfigError(f"spark_conf {name} must be a string or a number, got {show(value)}")
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in conf.items()}


@dataclass
class _OwnSession:
    """Session that was started here, and the number of calls that have opened and not closed it."""

    session: "SparkSession"
    users: int = 1


_own: _OwnSession | None = None


@contextmanager
def spark_session(
    master: str | None, conf: Mapping[str, Any] | None = None, *, memory: int | None = None
) -> "Iterator[SparkSession]":
    """Open a session with :func:`open_session` and close it at the end of the block."""
    session = open_session(master, conf, memory=memory)
    try:
        yield session
    finally:
        close_session(session)


def open_session(
    master: str | None, conf: Mapping[str, Any] | None = None, *, memory: int | None = None
) -> "SparkSession":
    """Return the active session of this process, or start one.

    Args:
        master: Master URL. Default: the one set by spark-submit or spark-defaults.conf, otherwise all cores of this
            machine.
        conf: Spark settings; they take precedence over the defaults of minwise.
        memory: Bytes that this machine may use. With a local master, half of them are for Java and the rest is left to
            Python.

    Raises:
        ConfigError: If pyspark or Java is missing or too old, a setting is wrong, or one differs from that of the
            active session or of the Java process that this process has already.
        OSError: If the master cannot be reached.
    """
    wanted = _with_master(master, check_conf(conf or {}))
    _check_packages()
    from pyspark.sql import SparkSession

    warnings.filterwarnings("ignore", PANDAS_WARNING, FutureWarning)
    try:
        session = SparkSession.getActiveSession()
        return _start_session(wanted, memory) if session is None else _shared(session, wanted)
    except Exception as error:
        if not is_of_spark(error):
            raise
        why = reason_of(error)
        raise ConfigError(f"{FAILED}: {why}{'; start a new Python process' if why == ENDED else ''}") from None


def close_session(session: "SparkSession") -> None:
    """Stop a session that :func:`open_session` has started, after its last user has closed it; leave any other.

    Its Java process stays until Python ends, and later sessions of this Python process run in it, with its memory.
    """
    global _own
    if _own is None or _own.session is not session:
        return
    _own.users -= 1
    if _own.users:
        return
    _own = None
    context = session.sparkContext
    _reconnect(context)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for stop in (session.stop, context.stop):  # without Java, the first fails half-way and the second completes it
            with suppress(Exception):  # the work is done, or its failure is reported already
                stop()


def _reconnect(context: "SparkContext") -> None:
    """Call Java until it answers, a few times at most.

    An interrupt closes the connection of this thread. On a busy machine a new one can be refused at first, and a
    context that could not be stopped then would run until Python ends.
    """
    for _ in range(CONNECTION_ATTEMPTS):
        with suppress(Exception):
            context.version  # noqa: B018 - asks Java
            return


def _with_master(master: str | None, wanted: dict[str, str]) -> dict[str, str]:
    """Return the settings with the master, which may also be given as ``spark.master``."""
    if master is not None and wanted.setdefault("spark.master", check_master(master)) != master:
        other = wanted["spark.master"]
        raise ConfigError(f"master must be given once, got {master} and spark.master {other} in spark_conf")
    if "spark.master" in wanted:
        check_master(wanted["spark.master"])
    return wanted


def _check_packages() -> None:
    for package in ("pyspark", "pandas"):
        if find_spec(package) is None:
            raise ConfigError(
                f"engine spark needs {package}, which is not installed; install minwise with the extra spark"
            )
    import pyspark

    if int(pyspark.__version__.partition(".")[0]) < LEAST_VERSION:
        raise ConfigError(f"engine spark needs pyspark {LEAST_VERSION} or newer, got {pyspark.__version__}")


def _shared(session: "SparkSession", wanted: Mapping[str, str]) -> "SparkSession":
    """Return a session that is running; raise ConfigError if a wanted setting differs from its own."""
    for name, value in wanted.items():
        current = None
        with suppress(Exception):  # the session does not have the setting
            current = session.conf.get(name)
        _refuse_other(name, value, current, "the active Spark session", "stop that session")
    if _own is not None and _own.session is session:
        _own.users += 1
    return session


def _refuse_other(name: str, value: str, current: str | None, owner: str, remedy: str) -> None:
    if current != value:
        setting = "master" if name == "spark.master" else f"spark_conf {name}"
        has = "has none" if current is None else f"has {current}"
        raise ConfigError(f"{setting} must be that of {owner}, which {has}, got {value}; leave it out, or {remedy}")


def _start_session(given: dict[str, str], memory: int | None) -> "SparkSession":
    """Start a session, unless another thread has one or a context of Spark, which is used instead."""
    from pyspark.sql import SparkSession

    global _own
    wanted = _with_start_defaults(given, memory)
    _silence_py4j()
    with _restored_state():
        _start_java(wanted)
        _refuse_other_java(given)
        is_new = _start_context(wanted)
    session = SparkSession.builder.getOrCreate()
    if not is_new:
        return _shared(session, given)
    _own = _OwnSession(session)
    try:
        session.conf.get("spark.master")  # makes Spark check the settings of SQL, which it otherwise does later
    except BaseException:
        close_session(session)
        raise
    return session


def _refuse_other_java(given: Mapping[str, str]) -> None:
    """Raise ConfigError if Java was started for an earlier session, with other settings."""
    from pyspark import SparkContext

    for name in sorted(SETTINGS_OF_JAVA & given.keys()):
        current = SparkContext.getSystemProperty(name)
        _refuse_other(name, given[name], current, "this process's Java", "start a new Python process")


def _start_context(wanted: Mapping[str, str]) -> bool:
    """Start the context of the session; return False if another thread has one.

    The builder would start it too, but would also change the settings of a session that another thread has.
    """
    from pyspark import SparkConf

    conf = SparkConf().setAll(list(wanted.items()))  # on top of what spark-submit and spark-defaults.conf set
    master = str(conf.get("spark.master"))
    for name, value in {**DEFAULTS, **(LOCAL_DEFAULTS if master.startswith("local") else {})}.items():
        conf.setIfMissing(name, value)
    _set_variables(master, wanted)
    deadline = time.monotonic() + STOP_SECONDS
    try:
        while not _created_context(conf, wait=time.monotonic() < deadline):
            time.sleep(0.1)
    except ValueError as error:
        if "multiple SparkContexts" not in str(error):
            raise
        return False
    return True


def _created_context(conf: "SparkConf", *, wait: bool) -> bool:
    """Start a context; return False if Java is still stopping the one before, and `wait` allows to try again."""
    from pyspark import SparkContext

    try:
        SparkContext(conf=conf)
    except Exception as error:
        if not wait or STILL_RUNNING not in str(error):
            raise
        return False
    return True


def _with_start_defaults(given: Mapping[str, str], memory: int | None) -> dict[str, str]:
    """Return the settings with those that are needed before Java starts; raise if it or the master is missing."""
    if sys.platform == "win32":
        raise ConfigError("engine spark needs Linux or macOS to start Spark, got Windows; use engine='local', or WSL")
    wanted = dict(given)
    if not _is_configured():
        _check_java()
        if wanted.setdefault("spark.master", "local[*]").startswith("local"):
            for process in ("driver", "executor"):
                wanted.setdefault(f"spark.{process}.extraJavaOptions", JAVA_OPTIONS)
            if memory is not None:
                wanted.setdefault("spark.driver.memory", f"{memory // 2 >> 20}m")
    if wanted.get("spark.master", "").startswith("spark://"):
        _check_reachable(wanted["spark.master"])
    return wanted


def _is_configured() -> bool:
    """Return whether Spark's own files or variables may set the master, Java and other settings."""
    folder = Path(os.environ.get("SPARK_CONF_DIR") or f"{os.environ.get('SPARK_HOME')}/conf")
    files = any((folder / name).exists() for name in ("spark-defaults.conf", "spark-env.sh"))
    return files or any(name in os.environ for name in ("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT"))


def _check_java() -> None:
    """Raise ConfigError unless there is a Java that Spark can run on."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if java is None:
        found = f"none in JAVA_HOME {home}" if home else "none"
        raise ConfigError(f"engine spark needs Java {OLDEST_JAVA} or newer, got {found}; install it or set JAVA_HOME")
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    if version is not None and int(version[1]) < OLDEST_JAVA:
        got = f"Java {version[1]}, {java}"
        raise ConfigError(f"engine spark needs Java {OLDEST_JAVA} or newer, got {got}; set JAVA_HOME to a newer one")


def _check_reachable(master: str) -> None:
    """Raise OSError if no address of the master accepts a connection; Spark itself would retry for minutes."""
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS):
                return
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or "no answer"
    raise OSError(errno.EHOSTUNREACH, f"{address} cannot be reached: {why}", master)


def _silence_py4j() -> None:
    """Drop the messages of py4j: it logs tracebacks for an interrupt and a lost connection, also as the root logger."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


@contextmanager
def _restored_state() -> Iterator[None]:
    """Restore the variables that are set to start Spark, and the interrupt handler.

    The handler of pyspark calls Java, which fails while another call is running.
    """
    names = ("SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_PYTHON", "SPARK_LOCAL_IP")
    before = {name: os.environ.get(name) for name in names}
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)


def _set_variables(master: str, wanted: Mapping[str, str]) -> None:
    """Set what Spark reads from variables only: the Python of executors, and an address that needs no look-up."""
    if master.startswith("local"):
        os.environ["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON") or sys.executable
        os.environ["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP") or "127.0.0.1"
    if "spark.pyspark.python" in wanted:
        os.environ["PYSPARK_PYTHON"] = wanted["spark.pyspark.python"]


def _start_java(wanted: Mapping[str, str]) -> None:
    """Start the Java process without a visible log, unless this Python process has one already.

    Settings of queries are left to the session, because later sessions inherit those of the Java process.
    """
    from pyspark import SparkContext
    from pyspark.errors import PySparkException

    _set_variables(wanted.get("spark.master", ""), wanted)
    settings = [f"{name}={value}" for name, value in wanted.items() if not name.startswith("spark.sql.")]
    options = [word for setting in settings for word in ("--conf", setting)]
    submit = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{shlex.join(options)} {submit}"
    with TemporaryFolder() as folder:
        log = folder / "log"
        log.touch()
        if "spark.log.level" not in wanted:
            _redirect_output(folder, log)
        try:
            SparkContext.getSystemProperty("java.version")  # starts the process
        except PySparkException as error:
            printed = _printed_reason(log.read_text(encoding="utf-8", errors="replace"))
            raise ConfigError(f"{FAILED}: {printed or reason_of(error)}") from None


def _redirect_output(folder: Path, log: Path) -> None:
    """Set a configuration directory that redirects the output of Java, if Spark would read its spark-env.sh."""
    if " " in str(folder) or "SPARK_ENV_LOADED" in os.environ:
        return
    of_user = os.environ.get("SPARK_CONF_DIR")
    quoted = shlex.quote(of_user) if of_user else '"$SPARK_HOME/conf"'
    (folder / "spark-env.sh").write_text(SPARK_ENV.format(log=shlex.quote(str(log)), folder=quoted), encoding="utf-8")
    os.environ["SPARK_CONF_DIR"] = str(folder)


def _printed_reason(output: str) -> str:
    """Return why Java did not start; an empty string if it printed no reason."""
    _, found, exception = output.partition('Exception in thread "main" ')
    lines = [line for line in output.splitlines() if not PREAMBLE.match(line)]
    return reason_of(exception) if found else lines[0].removeprefix("Error: ") if lines else ""
