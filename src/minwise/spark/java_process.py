"""Java process of the Spark driver: check that Java is there, start the process with its output captured, end it.

Spark logs to the standard error of this process even when nothing is wrong. The output is read through a named pipe:
its last lines explain a failed start, and only messages that need an action are passed on.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from minwise._internal.temporary import TemporaryFolder
from minwise.errors import ConfigError
from minwise.spark.errors import is_of_spark, reason_of, text_of

__all__ = ["JavaProcess", "check_java", "check_system", "configured_elsewhere", "variables"]

OLDEST_JAVA = 17
# Lines of output that are kept: a Java stack trace and what precedes it.
KEPT_LINES = 300
# Seconds until the process is killed. It has nothing left to do by then.
END_SECONDS = 20
# This setting shows Spark's log instead of dropping it.
LOG_LEVEL = "spark.log.level"
NOTICES = {
    "Initial job has not accepted any resources": "no executor accepts work yet: all are busy, or none has the cores "
    "and the memory that were requested; waiting",
}
# Lines that explain a failed start, the most specific pattern first.
REASONS = tuple(
    re.compile(pattern)
    for pattern in (
        r"^Exception in thread \"main\" (?P<why>.+)",
        r"^(?:Error: )?(?P<why>(?:Invalid|Unrecognized|Could not find) .+)",
        r"^Error: (?P<why>(?!A JNI|A fatal|Could not create).+)",
        r"^(?P<why>.*(?:No such file|not found|is not set|Permission denied).*)",
        r"^(?P<why>[^\s].*)",
    )
)
# pyspark starts $SPARK_HOME/bin/spark-submit and lets it inherit standard output, where our results go, and standard
# error. This one redirects both and runs the real one.
SPARK_SUBMIT = """#!/bin/sh
: > {started}
exec {redirection}
SPARK_HOME={home}
export SPARK_HOME
exec {home}/bin/spark-submit "$@"
"""


def check_system() -> None:
    """Raise ConfigError on Windows, where a shell script and a named pipe cannot start and watch Spark."""
    if sys.platform == "win32":
        raise ConfigError("engine spark needs Linux or macOS to start Spark, got Windows; use engine='local', or WSL")


def check_java() -> None:
    """Raise ConfigError unless there is a Java that Spark can run on."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if java is None:
        found = f"none in JAVA_HOME {home}" if home else "none"
        raise ConfigError(f"engine spark needs Java {OLDEST_JAVA} or newer, got {found}; install it or set JAVA_HOME")
    answer = subprocess.run(
        [java, "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stdout)
    if version is not None and int(version[1]) < OLDEST_JAVA:
        got = f"Java {version[1]}, {java}"
        raise ConfigError(f"engine spark needs Java {OLDEST_JAVA} or newer, got {got}; set JAVA_HOME to a newer one")


def configured_elsewhere() -> bool:
    """Return whether Spark's own files or variables may set the master and other settings."""
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (home and f"{home}/conf")
    files = [Path(folder) / name for name in ("spark-defaults.conf", "spark-env.sh")] if folder else []
    variables_set = any(name in os.environ for name in ("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT"))
    return variables_set or any(file.exists() for file in files)


class JavaProcess:
    """Java process that the Spark driver of this Python process runs in."""

    def __init__(self, conf: Mapping[str, str], environment: Mapping[str, str]) -> None:
        """Start the process, or use the one that this Python process already has.

        Args:
            conf: Settings that must be known at the start.
            environment: Additional environment variables of the process.

        Raises:
            ConfigError: If it cannot start, with the reason.
        """
        self._tail: deque[str] = deque(maxlen=KEPT_LINES)
        self._reader: threading.Thread | None = None
        with TemporaryFolder() as folder:
            self._is_own = self._start(folder, conf, environment)

    def _start(self, folder: Path, conf: Mapping[str, str], environment: Mapping[str, str]) -> bool:
        """Start the process unless there is one; return whether it was started."""
        from pyspark import SparkContext

        failure: Exception | None = None
        output = folder / "output"
        _write_spark_submit(folder, ">&2" if LOG_LEVEL in conf else f"> {shlex.quote(str(output))} 2>&1")
        arguments = [argument for name, value in conf.items() for argument in ("--conf", f"{name}={value}")]
        submit = f"{shlex.join(arguments)} {os.environ.get('PYSPARK_SUBMIT_ARGS', 'pyspark-shell')}"
        launch = {"SPARK_HOME": str(folder), "PYSPARK_SUBMIT_ARGS": submit}
        with self._reading(output), variables({**environment, **launch}):
            try:
                SparkContext.getSystemProperty("java.version")  # starts the process if there is none
            except Exception as error:
                failure = error
        if failure is not None:
            raise self._explained(failure) from None
        return (folder / "started").exists()

    @contextmanager
    def _reading(self, path: Path) -> Iterator[None]:
        """Create a named pipe and read it in a thread until every writer has closed it."""
        reading, writing = _make_named_pipe(path)
        self._reader = threading.Thread(target=self._read, args=(reading,), name="minwise-spark-log", daemon=True)
        self._reader.start()
        try:
            yield
        finally:
            os.close(writing)

    def _read(self, reading: int) -> None:
        pending = dict(NOTICES)
        with open(reading, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._tail.append(line.rstrip("\n"))
                for sign in [sign for sign in pending if sign in line]:
                    _print_notice(pending.pop(sign))

    def _explained(self, failure: Exception) -> Exception:
        """Return why the process did not start: what it printed, or else what pyspark raised."""
        self._finish_reading()
        why = self._printed_reason()
        if not why and not (is_of_spark(failure) or isinstance(failure, OSError)):
            return failure
        return ConfigError(f"engine spark could not be started: {why or reason_of(text_of(failure))}")

    def _printed_reason(self) -> str:
        lines = [line for line in self._tail if line.strip() and not line.startswith(("WARNING:", "Using Spark's"))]
        for pattern in REASONS:
            for line in lines:
                found = pattern.match(line)
                if found is not None:
                    return reason_of(found["why"])
        return ""

    def _finish_reading(self) -> None:
        if self._reader is not None:
            self._reader.join(END_SECONDS)

    def end(self) -> None:
        """End the process if it was started here."""
        if self._is_own:
            _end_process()
            self._finish_reading()


def _make_named_pipe(path: Path) -> tuple[int, int]:
    """Return both ends; while the second is open, a reader waits until the process has opened the pipe."""
    if sys.platform == "win32":
        raise NotImplementedError  # check_system has refused it
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writing = os.open(path, os.O_WRONLY)
    os.set_blocking(reading, True)
    return reading, writing


def _write_spark_submit(folder: Path, redirection: str) -> None:
    """Write a Spark home whose spark-submit redirects its output and creates the file ``started``."""
    started, home = (shlex.quote(str(path)) for path in (folder / "started", _spark_home()))
    script = folder / "bin" / "spark-submit"
    script.parent.mkdir()
    script.write_text(SPARK_SUBMIT.format(started=started, redirection=redirection, home=home))
    script.chmod(0o700)


def _spark_home() -> Path:
    """Return the Spark that pyspark would start: that of SPARK_HOME, or the one that is installed with pyspark."""
    import pyspark

    given, package = os.environ.get("SPARK_HOME"), Path(pyspark.__file__).parent
    downloaded = package / "spark-distribution"  # where pip puts it if PYSPARK_HADOOP_VERSION is set
    home = Path(given).absolute() if given else downloaded if downloaded.exists() else package
    if not (home / "bin" / "spark-submit").exists():
        raise ConfigError(f"SPARK_HOME must be a directory with bin/spark-submit, got {home}; correct it or unset it")
    return home


def _end_process() -> None:
    """End the Java process of this Python process, and make pyspark start a new one for the next session.

    The only use of private pyspark state (``SparkContext._gateway`` and ``_jvm``, the same in pyspark 4.0 to 4.3).
    pyspark has no public function for it: ``stop()`` ends the session and leaves the process, with its heap of
    ``spark.driver.memory``, until Python ends, and the next session in this Python process would silently get the
    memory and Java options of the first. Without these attributes the process is left to end with Python.
    """
    from pyspark import SparkContext

    gateway = getattr(SparkContext, "_gateway", None)
    if gateway is None:
        return
    process: subprocess.Popen[bytes] = gateway.proc
    with suppress(Exception):  # the process may have ended by itself
        gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    with suppress(OSError):
        assert process.stdin is not None
        process.stdin.close()  # the process ends when its standard input does
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def variables(wanted: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables of this process inside the block."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)


def _print_notice(notice: str) -> None:
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(f"minwise: spark: {notice}\n")
            sys.stderr.flush()
