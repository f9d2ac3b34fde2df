"""Session: a master and settings in; a SparkSession out, which is ended afterwards only if it was made here.

pyspark is imported when a session is opened and not before, so that whoever can not have one is told why in one line.
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

from minwise.config import show
from minwise.errors import ConfigError
from minwise.spark.errors import is_of_spark, reason_of, text_of
from minwise.spark.jvm import Jvm, check_java, configured_elsewhere, variables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_conf", "check_master", "close_session", "open_session", "spark_session"]

LOCAL = r"local(?:\[(?:\*|[1-9]\d*)(?:, ?[1-9]\d*)?\])?|local-cluster\[[1-9]\d*, ?[1-9]\d*, ?[1-9]\d*\]"
MASTER = re.compile(rf"{LOCAL}|spark://[^\s,/]+:\d+(?:,[^\s,/]+:\d+)*|yarn|k8s://\S+")
MASTERS = "local[N], local[*], spark://HOST:PORT, yarn or k8s://URL"
CONF_NAME = re.compile(r"spark\.[^\s=]+")
# A master that listens answers at once; one behind a firewall never does.
CONNECT_SECONDS = 10
LEAST_VERSION = 4
# Said at every mapInArrow, though nothing of pandas is used there.
OF_PANDAS = "PySpark does not yet fully support pandas"

# What is set unless somebody has set it, here, in spark-defaults.conf or for spark-submit. Everything else, adaptive
# execution and reused Python workers among it, is as Spark has it.
DEFAULTS = {
    "spark.app.name": "minwise",
    # Columns go between Java and Python as they are, not row by row.
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A batch is held by Java and by Python at once. Spark counts 10,000 rows, which may be 10,000 books.
    "spark.sql.execution.arrow.maxBytesPerBatch": "64m",
    # Bars of Spark's own would run through ours.
    "spark.ui.showConsoleProgress": "false",
}
# What is set besides where all of Spark is on this machine.
LOCAL_DEFAULTS = {
    # Nobody else has to reach it, and the name of the machine, which is not always known to it, is not asked for.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # A page about a run of this machine would listen on all its addresses.
    "spark.ui.enabled": "false",
}


def check_master(master: object) -> str:
    """A master URL that Spark understands; whether it can be reached is not asked."""
    if not isinstance(master, str) or not MASTER.fullmatch(master):
        raise ConfigError(f"master must be {MASTERS}, got {show(master)}")
    return master


def check_conf(conf: object) -> dict[str, str]:
    """Settings of Spark by name. Numbers and truth values become what Spark reads."""
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
class _Own:
    """The session that was made here; a process has at most one.

    Attributes:
        session: It.
        jvm: What it runs in.
        handler: What an interrupt led to before.
        users: How many have opened it and not closed it yet.
    """

    session: "SparkSession"
    jvm: Jvm
    handler: Any
    users: int = 1


_own: _Own | None = None


@contextmanager
def spark_session(
    master: str | None, conf: Mapping[str, Any] | None = None, *, memory: int | None = None
) -> "Iterator[SparkSession]":
    """A session as :func:`open_session` gives it, closed at the end."""
    session = open_session(master, conf, memory=memory)
    try:
        yield session
    finally:
        close_session(session)


def open_session(
    master: str | None, conf: Mapping[str, Any] | None = None, *, memory: int | None = None
) -> "SparkSession":
    """The session that is active, if there is one, or else a new one.

    Args:
        master: Where it runs. If not given: where spark-submit or spark-defaults.conf say, otherwise all cores of this
            machine.
        conf: Settings of Spark; they win over ours.
        memory: Bytes that this machine may use. Where all of Spark runs on it, half of them are for Java and the rest
            is left to Python.

    Raises:
        ConfigError: If pyspark or Java is missing or too old, a setting is wrong, or one differs from that of the
            session that is active.
        OSError: If the master can not be reached.
    """
    wanted = check_conf(conf or {})
    master = _one_master(master, wanted)
    _check_packages()
    warnings.filterwarnings("ignore", OF_PANDAS, FutureWarning)
    active = _active_session()
    if active is not None:
        _refuse_contradiction(active, wanted)
        if _own is not None and _own.session is active:
            _own.users += 1
        return active
    return _make_session(master, wanted, memory)


def close_session(session: "SparkSession") -> None:
    """Ends a session that :func:`open_session` has made, once all who opened it have closed it; leaves any other."""
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
    ending.jvm.end()


def _stop(session: "SparkSession") -> None:
    """Stops a session; one whose process has ended already is forgotten."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    with warnings.catch_warnings(), suppress(Exception):  # what it was for is done, or has failed and is told
        warnings.simplefilter("ignore")
        session.stop()
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def _one_master(master: str | None, wanted: dict[str, str]) -> str | None:
    """The master, which may be given among the settings too, and is one of them from here on."""
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
    """The session of this thread, or else that of this process."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext._active_spark_context
    if _own is not None and context is not None:
        return _own.session
    return SparkSession.getActiveSession() or (None if context is None else SparkSession(context))


def _refuse_contradiction(session: "SparkSession", wanted: dict[str, str]) -> None:
    for name, value in wanted.items():
        there = None
        with suppress(Exception):  # it has no such setting
            there = session.conf.get(name)
        if there != value:
            has = "has none" if there is None else f"has {there}"
            called = "master" if name == "spark.master" else f"spark_conf {name}"
            raise ConfigError(
                f"{called} must be that of the Spark session that is active, which {has}, got {value}; leave it out, "
                "or stop that session"
            )


def _make_session(master: str | None, wanted: dict[str, str], memory: int | None) -> "SparkSession":
    global _own
    elsewhere = configured_elsewhere()
    if not elsewhere:
        check_java()
        master = wanted["spark.master"] = master or "local[*]"
        if memory is not None and _is_local(master):
            wanted.setdefault("spark.driver.memory", f"{memory // 2 >> 20}m")
    if master is not None and master.startswith("spark://"):
        _check_reachable(master)
    handler = signal.getsignal(signal.SIGINT)
    jvm = Jvm(wanted, _environment(master, wanted))
    try:
        session = _session_in(jvm, wanted)
    except BaseException as error:
        why = reason_of(text_of(error)) if is_of_spark(error) else None  # asked of Java, which ends below
        jvm.end()
        if why is None:
            raise
        raise ConfigError(f"engine spark could not be started: {why}") from None
    _own = _Own(session, jvm, handler)
    return session


def _session_in(jvm: Jvm, wanted: dict[str, str]) -> "SparkSession":
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    conf = SparkConf(_jvm=jvm.gateway.jvm).setAll(list(wanted.items()))
    master = conf.get("spark.master", "local[*]") or "local[*]"
    for name, value in {**DEFAULTS, **(LOCAL_DEFAULTS if _is_local(master) else {})}.items():
        conf.setIfMissing(name, value)
    with variables(_environment(master, wanted)):
        session = SparkSession(SparkContext(conf=conf, gateway=jvm.gateway))
    try:
        session.conf.get("spark.master")  # only now are the settings of SQL looked at
    except BaseException:
        _stop(session)
        raise
    return session


def _is_local(master: str | None) -> bool:
    return master is not None and master.startswith("local")


def _environment(master: str | None, conf: Mapping[str, str]) -> dict[str, str]:
    """What Spark takes from variables only: which Python executors run, and an address that needs no look-up."""
    ours: dict[str, str] = {}
    if _is_local(master):
        python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        ours = {
            name: value for name, value in {**python, "SPARK_LOCAL_IP": "127.0.0.1"}.items() if not os.environ.get(name)
        }
    if "spark.pyspark.python" in conf:
        ours["PYSPARK_PYTHON"] = conf["spark.pyspark.python"]
    return ours


def _check_reachable(master: str) -> None:
    """Raises if nobody listens at any of the addresses; Spark itself would try for minutes."""
    failure = OSError(errno.EHOSTUNREACH, "can not be reached", master)
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS):
                return
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or "no answer"
            failure = OSError(errno.EHOSTUNREACH, f"{address} can not be reached: {why}", master)
    raise failure
