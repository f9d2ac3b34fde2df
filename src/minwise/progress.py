"""Progress: what long work tells those who watch it."""

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

__all__ = ["Progress", "Silence", "Stage"]


class Stage(Protocol):
    """A stage that is under way."""

    def advance(self, amount: int) -> None:
        """So much more is done."""

    def reach(self, amount: int) -> None:
        """So much is done by now."""


class Progress(Protocol):
    """Whoever watches."""

    def stage(self, name: str, total: int | None, unit: str, *, done: int = 0) -> AbstractContextManager[Stage]:
        """A stage begins: ``total`` of ``unit`` are to be done, of which an earlier run did ``done``."""


class Silence:
    """Nobody watches."""

    def stage(self, name: str, total: int | None, unit: str, *, done: int = 0) -> AbstractContextManager[Stage]:
        """A stage of which nobody hears."""
        return nullcontext(self)

    def advance(self, amount: int) -> None:
        """Nobody hears of it."""

    def reach(self, amount: int) -> None:
        """Nobody hears of it."""
