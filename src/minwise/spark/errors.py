"""Errors: what Spark raises in, one line of ours out.

What went wrong in an executor reaches the driver as text: a Python traceback, or a Java one around it. Of that text the
reason is taken, and where it is one of our own errors or one of the system's, it is raised again as what it was.
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

# The last line of a Python traceback, and what follows it until Java's own lines begin.
RAISED = re.compile(
    r"Traceback \(most recent call last\):\n(?:[ \t]+[^\n]*\n)+(?P<kind>[\w.]+)(?:: (?P<words>.*?))?"
    r"(?=\n+(?:\s+at |\s*SQLSTATE|Driver stacktrace|During handling|The above exception|Caused by|$)|\n*\Z)",
    re.MULTILINE | re.DOTALL,
)
CAUSE = re.compile(r"^Caused by: ((?:[\w$]+\.)+[\w$]+: .+)$", re.MULTILINE)
# What Spark puts before the reason: classes, calls, and which task it was.
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
    """Turns what Spark raises into an error of ours that names the stage and the reason, in one line.

    Args:
        stage: What was being done.

    Raises:
        MinwiseError: The reason; of the class it had where an executor raised it.
        OSError: If an executor met one. A full disk is one however it is told.
    """
    try:
        yield
    except Exception as error:
        translated = _translated(error, stage)
        if translated is None:
            raise
        raise translated from None


def _translated(error: Exception, stage: str) -> Exception | None:
    """The error as one of ours; None if it does not come from Spark."""
    if not is_of_spark(error):
        return None
    text = text_of(error)
    if isinstance(error, OSError) or LOST.search(text):
        return MinwiseError(f"spark: {stage}: {ENDED}")
    if FULL.search(text):
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), f"spark: {stage}")
    *_, raised = [None, *RAISED.finditer(text)]
    own = None if raised is None else _as_it_was(raised["kind"], _one_line(raised["words"] or ""))
    return own or MinwiseError(f"spark: {stage}: {reason_of(text)}")


def is_of_spark(error: BaseException) -> bool:
    """Whether Spark raised it, or the connection to it."""
    from pyspark.errors import PySparkException

    if isinstance(error, OSError):
        rooms = [str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(error.__traceback__)]
        return any(room.startswith("py4j.") for room in rooms)
    # By name, since who talks to a Spark Connect server need not have py4j.
    return isinstance(error, PySparkException) or "py4j.protocol" in {kind.__module__ for kind in type(error).__mro__}


def text_of(error: BaseException) -> str:
    """What an error says. One of Java's is asked for it there, if Java is still there."""
    try:
        return str(error)
    except Exception:
        return ENDED


def _as_it_was(kind: str, words: str) -> Exception | None:
    """The error that an executor raised, if it is one of ours or one of the system's."""
    room, _, name = kind.rpartition(".")
    if room == errors.__name__ and name in errors.__all__:
        known: type[Exception] = getattr(errors, name)
        return known(words)
    builtin = getattr(builtins, name, None)
    if room or not (isinstance(builtin, type) and issubclass(builtin, OSError)):
        return None
    numbered = NUMBERED.fullmatch(words)
    if numbered is None:
        return builtin(words)
    return OSError(int(numbered[1]), numbered[2], numbered[3])


def reason_of(text: str) -> str:
    r"""The reason in what Spark says, on one line.

    >>> reason_of("An error occurred while calling o1.count.\n: java.lang.OutOfMemoryError: Java heap space\n\tat x")
    'OutOfMemoryError: Java heap space'
    """
    *_, raised = [None, *RAISED.finditer(text)]
    if raised is not None:
        return _with_remedy(_one_line(": ".join(filter(None, (raised["kind"], raised["words"])))))
    *_, cause = [None, *CAUSE.findall(text)]
    lines = [line for line in BEFORE.sub("", cause or text).splitlines() if line.strip()]
    return _with_remedy(PACKAGES.sub("", AFTER.sub("", _one_line(lines[0])))) if lines else "no reason was given"


def _with_remedy(reason: str) -> str:
    if "No module named" in reason:
        return f"{reason} on an executor, which needs minwise installed; the guide to Spark says how to ship it"
    return reason


def _one_line(text: str) -> str:
    return " ".join(text.split())
