"""Crowd: who is connected, and who has to go when there is no room for one more."""

from collections import OrderedDict
from typing import Generic, TypeVar

__all__ = ["Crowd"]

Member = TypeVar("Member")
Place = OrderedDict[Member, float]


class Crowd(Generic[Member]):
    """Connections by what they wait for, each kind in the order in which they began to; every step takes the same time.

    Attributes:
        idle: Those that have their answers and have asked for nothing more, and since when.
        unfinished: Those of whose request something is missing.
        answered: Those whose request is worked on, or whose answer is on its way.
        leaving: Those that are hung up on; they do not count.
    """

    def __init__(self, grace_seconds: float) -> None:
        """Nobody yet.

        Args:
            grace_seconds: So long after an answer a client is not idle, but about to ask again.
        """
        self._grace = grace_seconds
        self.idle: Place[Member] = OrderedDict()
        self.unfinished: Place[Member] = OrderedDict()
        self.answered: Place[Member] = OrderedDict()
        self.leaving: Place[Member] = OrderedDict()
        self._places: dict[Member, Place[Member]] = {}

    def __len__(self) -> int:
        return len(self._places) - len(self.leaving)

    def move(self, member: Member, place: Place[Member], now: float) -> None:
        """Somebody comes, or waits for something else; who stays where it is keeps its turn."""
        before = self._places.get(member)
        if before is place:
            return
        if before is not None:
            del before[member]
        place[member] = now
        self._places[member] = place

    def forget(self, member: Member) -> None:
        """Somebody is gone."""
        place = self._places.pop(member, None)
        if place is not None:
            del place[member]

    def first_to_go(self, now: float) -> Member | None:
        """Who is missed least: the longest idle, then who takes longest to send a request; nobody if all are answered.

        Who was answered a moment ago goes last. Otherwise those who come and send nothing would push out whoever uses a
        connection again and again.
        """
        idle, since = next(iter(self.idle.items()), (None, now))
        if idle is not None and now - since >= self._grace:
            return idle
        return next(iter(self.unfinished), idle)
