"""Values and limits of the operating system that Windows does not have, or has in another form."""

import os
import sys
from pathlib import Path

__all__ = ["is_read_only", "peak_memory_bytes", "raise_file_limit"]

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
