"""Changes: the fingerprint of an input as it was in, what is different about it now, for a person to read, out."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from minwise.formats.files import File
from minwise.formats.text_files import TextFiles

__all__ = ["change_of"]

NANOSECONDS = 10**9


def change_of(files: Sequence[File], before: Mapping[str, Any]) -> str | None:
    """What is different about the files of an input, in one line that names the file; None if nothing is.

    Args:
        files: The files of the input, as they are now.
        before: The fingerprint that the input had.
    """
    try:
        return _change_of_texts(files, before) if "files" in before else _change_of_file(files[0], before)
    except FileNotFoundError as error:
        return f"{error.filename} is gone since the run"


def _change_of_file(file: File, before: Mapping[str, Any]) -> str | None:
    now = file.fingerprint()
    if now["bytes"] != before["bytes"]:
        return f"{file.name} has changed since the run: {_bytes(now['bytes'])} now, {_bytes(before['bytes'])} then"
    if now["modified"] != before["modified"]:
        times = f"modified {_time(now['modified'])} now, {_time(before['modified'])} then"
        return f"{file.name} has changed since the run: {times}"
    return None


def _change_of_texts(files: Sequence[File], before: Mapping[str, Any]) -> str | None:
    """Of many files only the sum is known, and when the last of them was modified."""
    now = TextFiles(files, [file.name for file in files]).fingerprint()
    if now["digest"] == before["digest"]:
        return None
    for file in files:
        modified = file.fingerprint()["modified"]
        if _is_later(modified, before["modified"]):
            times = f"modified {_time(modified)} now, {_time(before['modified'])} at the latest then"
            return f"{file.name} has changed since the run: {times}"
    what = files[0].name if len(files) == 1 else f"one of the {len(files):,} files from {files[0].name} on"
    if now["bytes"] != before["bytes"]:
        whole = "" if len(files) == 1 else "together "
        return f"{what} has changed since the run: {whole}{_bytes(now['bytes'])} now, {_bytes(before['bytes'])} then"
    return f"{what} has changed since the run: its size or the time when it was modified"


def _is_later(one: object, other: object) -> bool:
    return isinstance(one, int) and isinstance(other, int) and one > other


def _bytes(count: object) -> str:
    return f"{count:,} bytes" if isinstance(count, int) else f"{count} bytes"


def _time(modified: object) -> str:
    """A time in nanoseconds as a person reads it, to the last digit; the version of a server as it is."""
    if not isinstance(modified, int):
        return str(modified)
    seconds, rest = divmod(modified, NANOSECONDS)
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S}.{rest:09d} UTC"
