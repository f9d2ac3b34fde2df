"""Spark sessions: use the active one, or start one and stop it afterwards.

pyspark is imported when a session is opened, so that a missing package or Java is reported in one line.
"""

import errno
import os
import re
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from minwise.checks import show
from minwise.errors import ConfigError
from minwise.spark.errors import is_of_spark, reason_of, text_of
from minwise.spark.java_process import JavaProcess, check_java, check_system, configured_elsewhere, variables

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

__all__ = ["check_conf", "check_master", "close_session", "open_session", "spark_session"]

LOCAL = r"local(?:\[(?:\*|[1-9]\d*)(?:, ?[1-9]\d*)?\])?|local-cluster\[[1-9]\d*, ?[1-9]\d*, ?[1-9]\d*\]"
MASTER = re.compile(rf"{LOCAL}|spark://[^\s,/]+:\d+(?:,[^\s,/]+:\d+)*|yarn|k8s://\S+")
MASTERS = "local[N], local[*], spark://HOST:PORT, yarn or k8s://URL"
CONF_NAME = re.compile(r"spark\.[^\s=]+")
# A master that listens accepts at once; one behind a firewall never does.
CONNECT_SECONDS = 10
LEAST_VERSION = 4
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


def check_master(master: object) -> str:
    """Return a master URL that Spark understands, or raise ConfigError. It is not contacted."""
    if not isinstance(master, str) or not MASTER.fullmatch(master):
        raise ConfigError(f"master must be {MASTERS}, got {show(master)}")
    return master


def check_conf(conf: object) -> dict[str, str]:
    """Return Spark settings by name, with numbers and truth values as the strings that Spark reads."""
    if not isinstance(conf, Mapping):
        raise ConfigError(f"spark_conf must be settings of Spark by name, got {show(conf)}")
    return {_check_name(name): _conf_value(str(name), value) for name, value in conf.items()}


def _check_name(name: object) -> str:
    if not isinstance(name, str) or not CONF_NAME.fullmatch(name):
        raise ConfigError(f"spark_conf must be of names that begin with spark., got {show(name)}")
    return name


def _conf_value(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, (str, int, float)):
        raise ConfigError(f"spark_conf {name} must be a string or a number, got {show(value)}")
    return str(value)


@dataclass
class _OwnSession:
    """Session that was started here; a process has at most one.

    Attributes:
        session: The session.
        java: Java process that it runs in.
        handler: Previous handler of the interrupt signal; pyspark installs its own.
        users: Number of calls that have opened the session and not closed it yet.
    """

    session: "SparkSession"
    java: JavaProcess
    handler: Any
    users: int = 1


_own: _OwnSession | None = None


class _ContextExistsError(Exception):
    """Another thread of this process already has a Spark context."""


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
            active session.
        OSError: If the master cannot be reached.
    """
    wanted = check_conf(conf or {})
    master = _single_master(master, wanted)
    _check_packages()
    warnings.filterwarnings("ignore", PANDAS_WARNING, FutureWarning)
    session = _active_session()
    if session is None:
        try:
            return _start_session(master, dict(wanted), memory)
        except _ContextExistsError:
            session = _session_of_process()
    _refuse_contradiction(session, wanted)
    if _own is not None and _own.session is session:
        _own.users += 1
    return session


def close_session(session: "SparkSession") -> None:
    """Stop a session that :func:`open_session` has started, after its last user has closed it; leave any other."""
    global _own
    if _own is None or _own.session is not session:
        return
    _own.users -= 1
    if _own.users:
        return
    ending, _own = _own, None
    _stop(session)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, ending.handler)
    ending.java.end()


def _stop(session: "SparkSession") -> None:
    """Stop a session, even one whose Java process has ended."""
    context = session.sparkContext
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for stop in (session.stop, context.stop):  # without Java, the first fails half-way and the second completes it
            with suppress(Exception):  # the work is done, or its failure is reported already
                stop()


def _single_master(master: str | None, wanted: dict[str, str]) -> str | None:
    """Return the master, which may also be given as ``spark.master``, and store it in the settings."""
    if master is not None:
        check_master(master)
        other = wanted.setdefault("spark.master", master)
        if other != master:
            raise ConfigError(f"master must be given once, got {master} and spark.master {other} in spark_conf")
    return None if "spark.master" not in wanted else check_master(wanted["spark.master"])


def _check_packages() -> None:
    for package in ("pyspark", "pandas"):
        if find_spec(package) is None:
            raise ConfigError(
                f"engine spark needs {package}, which is not installed; install minwise with the extra spark"
            )
    import pyspark

    if int(pyspark.__version__.partition(".")[0]) < LEAST_VERSION:
        raise ConfigError(f"engine spark needs pyspark {LEAST_VERSION} or newer, got {pyspark.__version__}")


def _active_session() -> "SparkSession | None":
    """Return the active session of this thread."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def _session_of_process() -> "SparkSession":
    """Return the session of the context that this process already has, whichever thread started it."""
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


def _refuse_contradiction(session: "SparkSession", wanted: dict[str, str]) -> None:
    for name, value in wanted.items():
        current = None
        with suppress(Exception):  # the session does not have the setting
            current = session.conf.get(name)
        if current != value:
            has = "has none" if current is None else f"has {current}"
            setting = "master" if name == "spark.master" else f"spark_conf {name}"
            raise ConfigError(
                f"{setting} must be that of the active Spark session, which {has}, got {value}; leave it out, "
                "or stop that session"
            )


def _start_session(master: str | None, wanted: dict[str, str], memory: int | None) -> "SparkSession":
    global _own
    check_system()
    if not configured_elsewhere():
        check_java()
        master = wanted["spark.master"] = master or "local[*]"
        if memory is not None and _is_local(master):
            wanted.setdefault("spark.driver.memory", f"{memory // 2 >> 20}m")
    if master is not None and master.startswith("spark://"):
        _check_reachable(master)
    handler = signal.getsignal(signal.SIGINT)
    java = JavaProcess(wanted, _environment(master, wanted))
    try:
        session = _new_session(wanted)
    except BaseException as error:
        why = reason_of(text_of(error)) if is_of_spark(error) else None  # asks the Java process, which ends below
        java.end()
        if why is None:
            raise
        raise ConfigError(f"engine spark could not be started: {why}") from None
    _own = _OwnSession(session, java, handler)
    return session


def _new_session(wanted: dict[str, str]) -> "SparkSession":
    """Return a session with the wanted settings, in the Java process that is running."""
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    conf = SparkConf().setAll(list(wanted.items()))  # on top of what spark-submit and spark-defaults.conf set
    master = conf.get("spark.master", "local[*]") or "local[*]"
    for name, value in {**DEFAULTS, **(LOCAL_DEFAULTS if _is_local(master) else {})}.items():
        conf.setIfMissing(name, value)
    with variables(_environment(master, wanted)):
        session = SparkSession(_new_context(conf))
    try:
        session.conf.get("spark.master")  # makes Spark check the settings of SQL, which it otherwise does later
    except BaseException:
        _stop(session)
        raise
    return session


def _new_context(conf: Any) -> "SparkContext":  # noqa: ANN401 - a SparkConf
    from pyspark import SparkContext

    try:
        return SparkContext(conf=conf)
    except ValueError as error:
        if "multiple SparkContexts" in str(error):
            raise _ContextExistsError from None
        raise


def _is_local(master: str | None) -> bool:
    return master is not None and master.startswith("local")


def _environment(master: str | None, conf: Mapping[str, str]) -> dict[str, str]:
    """Return what Spark reads from variables only: the Python of executors, and an address that needs no look-up."""
    environment: dict[str, str] = {}
    if _is_local(master):
        python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        defaults = {**python, "SPARK_LOCAL_IP": "127.0.0.1"}
        environment = {name: value for name, value in defaults.items() if not os.environ.get(name)}
    if "spark.pyspark.python" in conf:
        environment["PYSPARK_PYTHON"] = conf["spark.pyspark.python"]
    return environment


def _check_reachable(master: str) -> None:
    """Raise OSError if no address of the master accepts a connection; Spark itself would retry for minutes."""
    failure = OSError(errno.EHOSTUNREACH, "cannot be reached", master)
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS):
                return
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or "no answer"
            failure = OSError(errno.EHOSTUNREACH, f"{address} cannot be reached: {why}", master)
    raise failure
