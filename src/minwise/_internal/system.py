"""Values and limits of the operating system that Windows does not have, or has in another form."""

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

__all__ = ["is_read_only", "peak_memory_bytes", "raise_file_limit", "return_freed_memory"]


def return_freed_memory() -> None:
    """Return memory that is freed, but held by Arrow or the C library, to the system.

    The allocator of glibc keeps pages below the highest one in use: after a join of 150 MB of text, 120 MB.
    """
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):  # other C libraries have no such call
            ctypes.CDLL(None).malloc_trim(0)


if sys.platform == "win32":

    def peak_memory_bytes() -> int | None:
        """Return the peak memory of this process; None on Windows, where it is not measured."""
        return None

    def raise_file_limit(wanted: int) -> int | None:
        """Allow this process to open ``wanted`` files; return None, since Windows has no limit that matters."""
        return None

    def is_read_only(folder: Path) -> bool:
        """Return whether a file system is mounted read-only; False on Windows, where it is not known."""
        return False

else:
    import resource

    def peak_memory_bytes() -> int | None:
        """Return the peak memory of this process; Linux counts in KiB, macOS in bytes."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

    def raise_file_limit(wanted: int) -> int | None:
        """Allow this process to open ``wanted`` files; return the limit of the system if it is lower, else None."""
        allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        if most != resource.RLIM_INFINITY and most < wanted:
            return most
        if allowed != resource.RLIM_INFINITY and allowed < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
        return None

    def is_read_only(folder: Path) -> bool:
        """Return whether the file system of a directory is mounted read-only."""
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
