"""Translation of Spark's exceptions into one-line errors of minwise.

A failure in an executor reaches the driver as text: a Python traceback, or a Java stack trace around one.
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

__all__ = ["is_of_spark", "reason_of", "spark_errors"]

# The lines after a Python traceback, up to an empty or an indented one.
RAISED = re.compile(r"^.*Traceback \(most recent call last\):\n(?:[ \t].*\n)+((?:\S.*\n?)+)", re.MULTILINE)
CAUSE = re.compile(r"^Caused by: ((?:[\w$]+\.)+[\w$]+: .+)$", re.MULTILINE)
# Text around a reason: the call, the task, Spark's own exception and the error class; packages of Java classes.
BEFORE = re.compile(
    r"\A(?:An error occurred while calling \S+\s+:|.*\(TID \d+\) \([^)]*\):|[\w.]+\.SparkException:|\[[A-Z_.]+\]|\s)+"
)
AFTER = re.compile(r"\.?\s*(?:Consider setting .*|SQLSTATE: \w+.*)$")
PACKAGES = re.compile(r"\b(?:[a-z][\w$]*\.)+(?=[A-Z])")
NUMBERED = re.compile(r"\[Errno (\d+)\] (.*?)(?:: '(.*)')?")
FULL = re.compile(r"No space left on device|Disk quota exceeded")
# Messages of py4j when the Java process is gone; one that names a call and no reason is one of them.
LOST = re.compile(
    r"Answer from Java side is empty|Error while (?:sending|receiving)|An error occurred while trying to connect|"
    r"\AAn error occurred while calling \S+\Z"
)
ENDED = "Spark's own process has ended, or was ended for taking too much memory"


@contextmanager
def spark_errors(stage: str) -> Iterator[None]:
    """Turn exceptions of Spark inside the block into errors of minwise that name the stage and the reason in one line.

    Raises:
        MinwiseError: With the reason, and with the class that an executor raised.
        OSError: If an executor raised one, or if a disk is full.
    """
    try:
        yield
    except Exception as error:
        if not is_of_spark(error):
            raise
        raise _translated(error, stage) from None


def is_of_spark(error: BaseException) -> bool:
    """Return whether Spark or the connection to it raised the error."""
    from pyspark.errors import PySparkException

    modules = [kind.__module__ for kind in type(error).__mro__]  # by name: a client of Spark Connect may lack py4j
    if isinstance(error, OSError):
        modules = [str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(error.__traceback__)]
    return isinstance(error, PySparkException) or any(module.startswith("py4j.") for module in modules)


def _translated(error: Exception, stage: str) -> Exception:
    reason = reason_of(error)
    if FULL.search(_text_of(error)):
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), f"spark: {stage}")
    return _rebuilt(*reason.partition(": ")[::2]) or MinwiseError(f"spark: {stage}: {reason}")


def _rebuilt(kind: str, message: str) -> Exception | None:
    """Return the error that an executor raised, if it is one of minwise or of the operating system."""
    module, _, name = kind.rpartition(".")
    if module == errors.__name__ and name in errors.__all__:
        known: type[Exception] = getattr(errors, name)
        return known(message)
    builtin = getattr(builtins, kind, None)
    if not (isinstance(builtin, type) and issubclass(builtin, OSError)):
        return None
    numbered = NUMBERED.fullmatch(message)
    return OSError(int(numbered[1]), *numbered.groups()[1:]) if numbered else builtin(message)


def reason_of(error: BaseException | str) -> str:
    r"""Return the root cause in an exception or a message of Spark, on one line.

    >>> reason_of("An error occurred while calling o1.count.\n: java.lang.OutOfMemoryError: Java heap space\n\tat x")
    'OutOfMemoryError: Java heap space'
    """
    text = error if isinstance(error, str) else _text_of(error)
    if LOST.search(text) or isinstance(error, OSError):
        return ENDED
    *_, raised = ["", *RAISED.findall(text)]
    *_, cause = [text, *CAUSE.findall(text)]
    line = " ".join(raised.split()) or PACKAGES.sub("", BEFORE.sub("", cause).partition("\n")[0])
    if "No module named" in line:
        return f"{line} on an executor, where minwise must be installed; see the guide to Spark"
    return AFTER.sub("", line) or "no reason was given"


def _text_of(error: BaseException) -> str:
    """Return the message of an error. That of a Java error comes from the Java process, if it still runs."""
    try:
        return str(error)
    except Exception:
        return ENDED
