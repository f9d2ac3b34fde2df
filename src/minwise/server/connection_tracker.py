"""Connection tracker: the state of every connection, and which one to evict when there are too many."""

from collections import OrderedDict
from typing import Generic, TypeVar

__all__ = ["ConnectionTracker"]

Member = TypeVar("Member")
State = OrderedDict[Member, float]


class ConnectionTracker(Generic[Member]):
    """Connections by state, each state in the order in which the connections entered it. Every operation is O(1).

    Attributes:
        idle: Connections between requests, with the time since when.
        receiving: Connections whose request is incomplete.
        responding: Connections whose request is processed or whose response is being sent.
        lingering: Connections that were refused and are about to close; they do not count.
    """

    def __init__(self, grace_seconds: float) -> None:
        """Create an empty tracker.

        Args:
            grace_seconds: How long after a response a connection is expected to send another request.
        """
        self._grace = grace_seconds
        self.idle: State[Member] = OrderedDict()
        self.receiving: State[Member] = OrderedDict()
        self.responding: State[Member] = OrderedDict()
        self.lingering: State[Member] = OrderedDict()
        self._states: dict[Member, State[Member]] = {}

    def __len__(self) -> int:
        return len(self._states) - len(self.lingering)

    def move(self, member: Member, state: State[Member], now: float) -> None:
        """Set the state of a new or known connection; one that is in it already keeps its position."""
        before = self._states.get(member)
        if before is state:
            return
        if before is not None:
            del before[member]
        state[member] = now
        self._states[member] = state

    def forget(self, member: Member) -> None:
        """Remove a connection, if it is known."""
        state = self._states.pop(member, None)
        if state is not None:
            del state[member]

    def next_to_evict(self, now: float) -> Member | None:
        """Return the connection to evict: the longest idle, then the slowest sender; None if all are responding.

        A connection that was answered within the grace period comes last. Otherwise new connections that send nothing
        would evict clients that reuse theirs for one request after another.
        """
        idle, since = next(iter(self.idle.items()), (None, now))
        if idle is not None and now - since >= self._grace:
            return idle
        return next(iter(self.receiving), idle)
