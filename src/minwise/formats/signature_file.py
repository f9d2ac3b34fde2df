"""The signature file: the settings of signatures and their arrays, in the layout of array files."""

from os import PathLike
from typing import Any

from minwise.formats.array_file import Arrays, FileKind, read_array_file, write_array_file

__all__ = ["FORMAT_VERSION", "read_signature_file", "write_signature_file"]

# Changes with the layout of the file or with any bit of DESIGN §3.
FORMAT_VERSION = 1
KIND = FileKind(b"MINWSIG\n", FORMAT_VERSION, "signature file", "sketch the texts again")


def write_signature_file(path: str | PathLike[str], header: dict[str, Any], arrays: Arrays) -> None:
    """Writes header and arrays to ``path``; the file appears whole or not at all."""
    write_array_file(path, KIND, header, arrays)


def read_signature_file(path: str | PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """Reads header and arrays, and checks every byte of both.

    Raises:
        FormatError: If anything is not as it was written.
    """
    return read_array_file(path, KIND)
