"""Who goes first when there is no room."""

from minwise.server.crowd import Crowd

GRACE = 1.0


def crowd_of(**members: tuple[str, float]) -> Crowd[str]:
    """A crowd of members, each at a place since a time."""
    crowd = Crowd[str](GRACE)
    for name, (place, since) in members.items():
        crowd.move(name, getattr(crowd, place), since)
    return crowd


def order(crowd: Crowd[str], now: float) -> str:
    """All that may go, the first first."""
    names = ""
    while (name := crowd.first_to_go(now)) is not None:
        names += name
        crowd.move(name, crowd.leaving, now)
    return names


def test_the_idle_go_first_and_then_who_takes_longest() -> None:
    """Of each kind the one that has waited longest; never somebody who is answered."""
    crowd = crowd_of(
        a=("unfinished", 0), b=("idle", 1), c=("answered", 0), d=("idle", 2), e=("unfinished", 3), f=("leaving", 0)
    )
    assert len(crowd) == 5
    assert order(crowd, 2 + GRACE) == "bdae"
    assert len(crowd) == 1


def test_who_was_answered_a_moment_ago_goes_last() -> None:
    """It is about to ask again."""
    assert order(crowd_of(a=("idle", 5), b=("unfinished", 6), c=("unfinished", 7)), 5 + GRACE / 2) == "bca"


def test_only_waiting_for_something_else_changes_the_turn() -> None:
    """Who trickles does not get a later turn by it; who was answered meanwhile does."""
    crowd = crowd_of(a=("unfinished", 0), b=("unfinished", 1))
    crowd.move("a", crowd.unfinished, 2)
    assert crowd.first_to_go(3) == "a"
    crowd.move("a", crowd.answered, 3)
    crowd.move("a", crowd.unfinished, 4)
    assert order(crowd, 5) == "ba"


def test_who_is_gone_is_forgotten() -> None:
    """Wherever it was, and also if it was never there."""
    crowd = crowd_of(a=("idle", 0), b=("leaving", 0))
    for name in "abc":
        crowd.forget(name)
    assert len(crowd) == 0
    assert crowd.first_to_go(10) is None
    assert not crowd.leaving
