"""Jvm: settings in; the Java process that Spark's driver runs in, quiet, and its end out.

Spark writes its log to the standard error of that process, also where all is well. Here it is read, its last lines are
kept to explain a failure, and only what somebody has to act on is passed on.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from minwise.errors import ConfigError
from minwise.spark.errors import reason_of

__all__ = ["Jvm", "check_java", "configured_elsewhere", "variables"]

OLDEST_JAVA = 17
# Lines of its log that are kept: a Java traceback with what led to it.
KEPT_LINES = 300
# How long it may take to end; it has nothing more to do then.
END_SECONDS = 20
# Shows Spark's log in place of dropping it.
LOG_LEVEL = "spark.log.level"
NOTICES = {
    "Initial job has not accepted any resources": "no executor takes work yet: all are busy, or none has the cores and "
    "the memory that were asked for; waiting",
}
# Lines that say why it could not start, the most telling first.
TELLING = tuple(
    re.compile(pattern)
    for pattern in (
        r"^Exception in thread \"main\" (?P<why>.+)",
        r"^(?:Error: )?(?P<why>(?:Invalid|Unrecognized|Could not find) .+)",
        r"^Error: (?P<why>(?!A JNI|A fatal|Could not create).+)",
        r"^(?P<why>.*(?:No such file|not found|is not set|Permission denied).*)",
        r"^(?P<why>[^\s].*)",
    )
)


def check_java() -> None:
    """Raises if there is no Java here that Spark can run on."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if java is None:
        where = f"none in JAVA_HOME {home}" if home else "none"
        raise ConfigError(f"engine spark needs Java {OLDEST_JAVA} or newer, got {where}; install it or set JAVA_HOME")
    told = subprocess.run([java, "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', told.stdout)
    if version is not None and int(version[1]) < OLDEST_JAVA:
        got = f"Java {version[1]}, {java}"
        raise ConfigError(f"engine spark needs Java {OLDEST_JAVA} or newer, got {got}; set JAVA_HOME to a newer one")


def configured_elsewhere() -> bool:
    """Whether files or variables of Spark's own may say where and how to run."""
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (home and f"{home}/conf")
    files = [Path(folder) / name for name in ("spark-defaults.conf", "spark-env.sh")] if folder else []
    told = any(name in os.environ for name in ("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT"))
    return told or any(file.exists() for file in files)


class Jvm:
    """The Java process behind a session.

    Attributes:
        gateway: The way to it.
    """

    def __init__(self, conf: Mapping[str, str], environment: Mapping[str, str]) -> None:
        """Starts it, or takes the one that this process has already.

        Args:
            conf: What it must know when it starts.
            environment: Variables that it is to have.

        Raises:
            ConfigError: If it can not start, with the reason.
        """
        from pyspark import SparkContext

        self._tail: deque[str] = deque(maxlen=KEPT_LINES)
        self._reader: threading.Thread | None = None
        self.gateway: Any = SparkContext._gateway
        self._is_own = self.gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ
        if self.gateway is None:
            self.gateway = self._launch(conf, environment)

    def _launch(self, conf: Mapping[str, str], environment: Mapping[str, str]) -> Any:  # noqa: ANN401 - has no types
        from pyspark import SparkConf
        from pyspark.errors import PySparkRuntimeError
        from pyspark.java_gateway import launch_gateway

        given = SparkConf(loadDefaults=False).setAll(list(conf.items()))
        with self._listening(shown=LOG_LEVEL in conf) as streams, variables(environment):
            try:
                return launch_gateway(given, streams)  # type: ignore[no-untyped-call]
            except (PySparkRuntimeError, OSError) as error:
                failure = error
        self._finish_reading()
        why = self.reason() or " ".join(str(failure).split())
        raise ConfigError(f"engine spark could not be started: {why}")

    @contextmanager
    def _listening(self, *, shown: bool) -> Iterator[dict[str, Any]]:
        """Where the process writes to: standard output is ours alone, for results go there."""
        if shown:
            yield {"stdout": 2}
            return
        reading, writing = os.pipe()
        self._reader = threading.Thread(target=self._read, args=(reading,), name="minwise-spark-log", daemon=True)
        self._reader.start()
        try:
            yield {"stdout": writing, "stderr": writing}
        finally:
            os.close(writing)

    def _read(self, reading: int) -> None:
        waiting = dict(NOTICES)
        with open(reading, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._tail.append(line.rstrip("\n"))
                for sign in [sign for sign in waiting if sign in line]:
                    _tell(waiting.pop(sign))

    def _finish_reading(self) -> None:
        if self._reader is not None:
            self._reader.join(END_SECONDS)

    def reason(self) -> str:
        """Why it did not start, by what it wrote; empty if it wrote nothing."""
        lines = [line for line in self._tail if line.strip() and not line.startswith(("WARNING:", "Using Spark's"))]
        for pattern in TELLING:
            for line in lines:
                found = pattern.match(line)
                if found is not None:
                    return reason_of(found["why"])
        return ""

    def end(self) -> None:
        """Ends it, if it was started here."""
        if not self._is_own:
            return
        from pyspark import SparkContext

        process: subprocess.Popen[bytes] = self.gateway.proc
        with suppress(Exception):  # it may have ended by itself
            self.gateway.shutdown()
        if SparkContext._gateway is self.gateway:
            SparkContext._gateway = SparkContext._jvm = None
        with suppress(OSError):
            assert process.stdin is not None
            process.stdin.close()  # by which it knows that nobody needs it any more
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        self._finish_reading()


@contextmanager
def variables(wanted: Mapping[str, str]) -> Iterator[None]:
    """Sets variables of this process for a while."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)


def _tell(notice: str) -> None:
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(f"minwise: spark: {notice}\n")
            sys.stderr.flush()
