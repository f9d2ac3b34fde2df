"""Translation of Spark's exceptions into one-line errors of minwise.

A failure in an executor reaches the driver as text: a Python traceback, or a Java stack trace around one. The reason is
extracted from the text. If it is an error of minwise or of the operating system, it is raised again with its class.
"""

import builtins
import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb

from minwise import errors
from minwise.errors import MinwiseError

__all__ = ["is_of_spark", "reason_of", "spark_errors", "text_of"]

# The last line of a Python traceback, and what follows it up to the lines of Java.
RAISED = re.compile(
    r"Traceback \(most recent call last\):\n(?:[ \t]+[^\n]*\n)+(?P<kind>[\w.]+)(?:: (?P<message>.*?))?"
    r"(?=\n+(?:\s+at |\s*SQLSTATE|Driver stacktrace|During handling|The above exception|Caused by|$)|\n*\Z)",
    re.MULTILINE | re.DOTALL,
)
CAUSE = re.compile(r"^Caused by: ((?:[\w$]+\.)+[\w$]+: .+)$", re.MULTILINE)
# Text that Spark puts before the reason: classes, calls and the task.
BEFORE = re.compile(
    r"^(?:An error occurred while calling [\w.]+\.?|:|Job aborted due to stage failure:|"
    r"Task \d+ in stage [\d.]+ failed \d+ times, most recent failure:|"
    r"Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \(.*? executor \w+\):|"
    r"(?:[\w$]+\.)+(?:SparkException|Py4JException):|\[[A-Z_.]+\]|\s)+"
)
AFTER = re.compile(r"\.?\s*(?:Consider setting .*|SQLSTATE: \w+.*)$")
PACKAGES = re.compile(r"\b(?:[a-z][\w$]*\.)+(?=[A-Z])")
NUMBERED = re.compile(r"\[Errno (\d+)\] (.*?)(?:: '(.*)')?", re.DOTALL)
FULL = re.compile(r"No space left on device|Disk quota exceeded")
# Messages of py4j when the Java process is gone; one that names a call and no reason is one of them.
LOST = re.compile(
    r"Answer from Java side is empty|Error while (?:sending|receiving)|An error occurred while trying to connect|"
    r"\AAn error occurred while calling [\w.]+\Z"
)
ENDED = "Spark's own process has ended, or was ended for taking too much memory"


@contextmanager
def spark_errors(stage: str) -> Iterator[None]:
    """Turn exceptions of Spark inside the block into errors of minwise that name the stage and the reason in one line.

    Args:
        stage: Name of the stage.

    Raises:
        MinwiseError: With the reason, and with the class that an executor raised.
        OSError: If an executor raised one, or if a disk is full.
    """
    try:
        yield
    except Exception as error:
        translated = _translated(error, stage)
        if translated is None:
            raise
        raise translated from None


def _translated(error: Exception, stage: str) -> Exception | None:
    """Return the error as one of minwise; None if it does not come from Spark."""
    if not is_of_spark(error):
        return None
    text = text_of(error)
    if isinstance(error, OSError) or LOST.search(text):
        return MinwiseError(f"spark: {stage}: {ENDED}")
    if FULL.search(text):
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), f"spark: {stage}")
    *_, raised = [None, *RAISED.finditer(text)]
    own = None if raised is None else _rebuilt(raised["kind"], _one_line(raised["message"] or ""))
    return own or MinwiseError(f"spark: {stage}: {reason_of(text)}")


def is_of_spark(error: BaseException) -> bool:
    """Return whether Spark or the connection to it raised the error."""
    from pyspark.errors import PySparkException

    if isinstance(error, OSError):
        modules = [str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(error.__traceback__)]
        return any(module.startswith("py4j.") for module in modules)
    # By name, because a Spark Connect client may not have py4j.
    return isinstance(error, PySparkException) or "py4j.protocol" in {kind.__module__ for kind in type(error).__mro__}


def text_of(error: BaseException) -> str:
    """Return the message of an error. That of a Java error comes from the Java process, if it still runs."""
    try:
        return str(error)
    except Exception:
        return ENDED


def _rebuilt(kind: str, message: str) -> Exception | None:
    """Return the error that an executor raised, if it is one of minwise or of the operating system."""
    module, _, name = kind.rpartition(".")
    if module == errors.__name__ and name in errors.__all__:
        known: type[Exception] = getattr(errors, name)
        return known(message)
    builtin = getattr(builtins, name, None)
    if module or not (isinstance(builtin, type) and issubclass(builtin, OSError)):
        return None
    numbered = NUMBERED.fullmatch(message)
    if numbered is None:
        return builtin(message)
    return OSError(int(numbered[1]), numbered[2], numbered[3])


def reason_of(text: str) -> str:
    r"""Return the reason in a message of Spark, on one line.

    >>> reason_of("An error occurred while calling o1.count.\n: java.lang.OutOfMemoryError: Java heap space\n\tat x")
    'OutOfMemoryError: Java heap space'
    """
    *_, raised = [None, *RAISED.finditer(text)]
    if raised is not None:
        return _with_remedy(_one_line(": ".join(filter(None, (raised["kind"], raised["message"])))))
    *_, cause = [None, *CAUSE.findall(text)]
    lines = [line for line in BEFORE.sub("", cause or text).splitlines() if line.strip()]
    return _with_remedy(PACKAGES.sub("", AFTER.sub("", _one_line(lines[0])))) if lines else "no reason was given"


def _with_remedy(reason: str) -> str:
    if "No module named" in reason:
        return f"{reason} on an executor, where minwise must be installed; see the guide to Spark"
    return reason


def _one_line(text: str) -> str:
    return " ".join(text.split())
