"""Staging: where the files of a result are while it is not whole."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Staging"]


@dataclass(frozen=True)
class Staging:
    """A directory that is being filled.

    Attributes:
        folder: A directory of this machine.
        url: Where its files will go if they go elsewhere: who writes from several machines writes there.
    """

    folder: Path
    url: str | None = None
