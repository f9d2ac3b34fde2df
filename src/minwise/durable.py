"""Durable: what makes the names of new and renamed files last."""

import os
from pathlib import Path

__all__ = ["sync_directory"]


def sync_directory(folder: Path) -> None:
    """Makes the names in a directory last."""
    directory = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
