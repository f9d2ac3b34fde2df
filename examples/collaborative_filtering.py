"""Collaborative filtering: suggest items that similar users like.

A user is the set of liked items, and minwise finds similar sets. Items that similar users like and the user does not
have yet are ranked by the sum of the similarities. To evaluate the suggestions, one like of every user is hidden, and
the program counts how often it is among the first ten suggestions. The most popular items serve as the baseline.

    python examples/collaborative_filtering.py [LIKES]

LIKES is a .csv file with a user and an item on each line, or a text file with a basket per line, its name first.
Without LIKES, the program reads the invoices of ../shared/data/sets if they exist, otherwise examples/likes.csv.
"""

import csv
import sys
from collections import Counter, defaultdict
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa

import minwise as mw

HERE = Path(__file__).parent
INVOICES = HERE.parents[1] / "shared" / "data" / "sets" / "onlineretail_invoices.txt"
# Number of suggested items.
SUGGESTIONS = 10
# No like is hidden for users with fewer likes: too few would remain to find similar users.
MIN_LIKES = 4

Likes = dict[str, set[str]]
Neighbours = dict[str, list[tuple[float, str]]]


def read_likes(path: Path) -> Likes:
    """Return the liked items of each user."""
    likes: Likes = defaultdict(set)
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as file:
            _, *rows = csv.reader(file)
        for user, item in rows:
            likes[user].add(item)
    else:
        for user, *items in map(str.split, path.read_text(encoding="utf-8").splitlines()):
            likes[user].update(items)
    return dict(likes)


def similar_users(likes: Likes, threshold: float) -> Neighbours:
    """Return the similar users of each user, with their similarities."""
    rows = [(user, item) for user, items in likes.items() for item in sorted(items)]
    table = pa.table({"user": [user for user, _ in rows], "item": [item for _, item in rows]})
    neighbours: Neighbours = defaultdict(list)
    for pair in mw.pairs(table, group_by="user", item="item", threshold=threshold).to_pylist():
        neighbours[pair["left"]].append((pair["similarity"], pair["right"]))
        neighbours[pair["right"]].append((pair["similarity"], pair["left"]))
    return neighbours


def suggest(user: str, likes: Likes, neighbours: Neighbours) -> list[str]:
    """Return the items that similar users like and this user does not have, ranked by summed similarity."""
    scores: Counter[str] = Counter()
    for similarity, other in neighbours.get(user, []):
        for item in likes[other] - likes[user]:
            scores[item] += similarity  # type: ignore[assignment]
    return sorted(scores, key=lambda item: (-scores[item], item))[:SUGGESTIONS]


def hide_one_each(likes: Likes) -> tuple[Likes, dict[str, str]]:
    """Return the likes without one item per user, and the hidden items; a hash selects them, so they never change."""
    hidden = {
        user: min(items, key=lambda item: blake2b(f"{user}\n{item}".encode()).digest())
        for user, items in likes.items()
        if len(items) >= MIN_LIKES
    }
    return {user: items - {hidden.get(user, "")} for user, items in likes.items()}, hidden


def popular(likes: Likes) -> list[str]:
    """Return the items, the most liked first."""
    counts = Counter(item for items in likes.values() for item in items)
    return sorted(counts, key=lambda item: (-counts[item], item))


def measure(likes: Likes, threshold: float) -> dict[str, int]:
    """Count how often the hidden like is among the suggestions, for users that have a similar user."""
    seen, hidden = hide_one_each(likes)
    neighbours, ranking = similar_users(seen, threshold), popular(seen)
    tested = [user for user in hidden if neighbours.get(user)]
    by_similar = sum(hidden[user] in suggest(user, seen, neighbours) for user in tested)
    # At most len(seen[user]) popular items are already liked, so a longer prefix of the ranking is not needed.
    by_popular = sum(
        hidden[user]
        in [item for item in ranking[: SUGGESTIONS + len(seen[user])] if item not in seen[user]][:SUGGESTIONS]
        for user in tested
    )
    return {"tested": len(tested), "similar": by_similar, "popular": by_popular}


def main(path: Path) -> None:
    """Print similar users, suggestions and their hit rate."""
    likes = read_likes(path)
    threshold = 0.4 if path.suffix == ".csv" else 0.2
    items = {item for liked in likes.values() for item in liked}
    print(f"{len(likes):,} users like {len(items):,} items, {sum(map(len, likes.values())):,} likes")  # noqa: T201
    neighbours = similar_users(likes, threshold)
    pairs = sum(map(len, neighbours.values())) // 2
    print(f"{pairs:,} pairs of users are at least {threshold} similar; {len(neighbours):,} users are in one")  # noqa: T201
    user = min(neighbours)
    others = ", ".join(f"{other} ({value:.2f})" for value, other in sorted(neighbours[user], reverse=True)[:3])
    print(f"{user} is like {others}")  # noqa: T201
    print(f"people like {user} also liked: {', '.join(suggest(user, likes, neighbours)[:3])}")  # noqa: T201
    found = measure(likes, threshold)
    similar, favourite = (f"{found[name]:,} ({found[name] / found['tested']:.1%})" for name in ("similar", "popular"))
    print(f"a hidden like is among {SUGGESTIONS} suggestions for {similar} of {found['tested']:,} users,")  # noqa: T201
    print(f"and for {favourite} if what is most popular is suggested")  # noqa: T201


if __name__ == "__main__":
    default = INVOICES if INVOICES.exists() else HERE / "likes.csv"
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else default)
