"""Order in which connections are evicted."""

from minwise.server.connection_tracker import ConnectionTracker

GRACE = 1.0


def tracker_of(**connections: tuple[str, float]) -> ConnectionTracker[str]:
    """Return a tracker of connections, each in a state since a time."""
    tracker = ConnectionTracker[str](GRACE)
    for name, (state, since) in connections.items():
        tracker.move(name, getattr(tracker, state), since)
    return tracker


def eviction_order(tracker: ConnectionTracker[str], now: float) -> str:
    """Evict all connections that may be evicted; return their names in order."""
    names = ""
    while (name := tracker.next_to_evict(now)) is not None:
        names += name
        tracker.move(name, tracker.lingering, now)
    return names


def test_idle_connections_are_evicted_first_and_then_the_slowest_senders() -> None:
    """Of each state the connection that entered it first; never one that is responding."""
    tracker = tracker_of(
        a=("receiving", 0), b=("idle", 1), c=("responding", 0), d=("idle", 2), e=("receiving", 3), f=("lingering", 0)
    )
    assert len(tracker) == 5
    assert eviction_order(tracker, 2 + GRACE) == "bdae"
    assert len(tracker) == 1


def test_a_recently_answered_connection_is_evicted_last() -> None:
    """Its client is about to send another request."""
    assert eviction_order(tracker_of(a=("idle", 5), b=("receiving", 6), c=("receiving", 7)), 5 + GRACE / 2) == "bca"


def test_only_a_change_of_state_changes_the_order() -> None:
    """A client that sends byte by byte does not gain time; one that was answered meanwhile does."""
    tracker = tracker_of(a=("receiving", 0), b=("receiving", 1))
    tracker.move("a", tracker.receiving, 2)
    assert tracker.next_to_evict(3) == "a"
    tracker.move("a", tracker.responding, 3)
    tracker.move("a", tracker.receiving, 4)
    assert eviction_order(tracker, 5) == "ba"


def test_a_forgotten_connection_leaves_no_trace() -> None:
    """Whatever its state was, and also if it was never tracked."""
    tracker = tracker_of(a=("idle", 0), b=("lingering", 0))
    for name in "abc":
        tracker.forget(name)
    assert len(tracker) == 0
    assert tracker.next_to_evict(10) is None
    assert not tracker.lingering
