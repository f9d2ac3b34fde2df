"""People like you also liked: from likes to similar users to what to show them next.

Users are sets of what they like, and sets that are alike are what minwise finds. What similar users like and you do
not know yet is weighed by how similar they are. To see whether that is worth anything, one like of every user is
hidden, and we count how often it is among the first ten suggestions; what is most popular is suggested for comparison.

    python examples/collaborative_filtering.py [LIKES]

LIKES is a .csv file with a user and an item on each line, or a text file with a basket per line, its name first.
Without it, the invoices of ../shared/data/sets are used if they are there, else examples/likes.csv.
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
# So many items are suggested.
SHOWN = 10
# Of users with fewer likes none is hidden: there would be too little left to go by.
LEAST_LIKES = 4

Likes = dict[str, set[str]]
Neighbours = dict[str, list[tuple[float, str]]]


def read_likes(path: Path) -> Likes:
    """What each user likes."""
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
    """For each user those who are similar, with how much."""
    rows = [(user, item) for user, items in likes.items() for item in sorted(items)]
    table = pa.table({"user": [user for user, _ in rows], "item": [item for _, item in rows]})
    neighbours: Neighbours = defaultdict(list)
    for pair in mw.pairs(table, group_by="user", item="item", threshold=threshold).to_pylist():
        neighbours[pair["left"]].append((pair["similarity"], pair["right"]))
        neighbours[pair["right"]].append((pair["similarity"], pair["left"]))
    return neighbours


def suggest(user: str, likes: Likes, neighbours: Neighbours) -> list[str]:
    """What users who are like this one like too, and this one does not know: most similar users weigh most."""
    scores: Counter[str] = Counter()
    for similarity, other in neighbours.get(user, []):
        for item in likes[other] - likes[user]:
            scores[item] += similarity  # type: ignore[assignment]
    return sorted(scores, key=lambda item: (-scores[item], item))[:SHOWN]


def hide_one_each(likes: Likes) -> tuple[Likes, dict[str, str]]:
    """The likes without one of each user, and which one that is: chosen by a hash, so always the same."""
    hidden = {
        user: min(items, key=lambda item: blake2b(f"{user}\n{item}".encode()).digest())
        for user, items in likes.items()
        if len(items) >= LEAST_LIKES
    }
    return {user: items - {hidden.get(user, "")} for user, items in likes.items()}, hidden


def popular(likes: Likes) -> list[str]:
    """Items, the most liked first."""
    counts = Counter(item for items in likes.values() for item in items)
    return sorted(counts, key=lambda item: (-counts[item], item))


def measure(likes: Likes, threshold: float) -> dict[str, int]:
    """How often the hidden like is among the suggestions, for users who have a similar one."""
    seen, hidden = hide_one_each(likes)
    neighbours, ranking = similar_users(seen, threshold), popular(seen)
    asked = [user for user in hidden if neighbours.get(user)]
    by_similar = sum(hidden[user] in suggest(user, seen, neighbours) for user in asked)
    # At most as many of the popular ones are known already as the user has likes.
    by_popular = sum(
        hidden[user] in [item for item in ranking[: SHOWN + len(seen[user])] if item not in seen[user]][:SHOWN]
        for user in asked
    )
    return {"asked": len(asked), "similar": by_similar, "popular": by_popular}


def main(path: Path) -> None:
    """Print what is found."""
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
    similar, favourite = (f"{found[name]:,} ({found[name] / found['asked']:.1%})" for name in ("similar", "popular"))
    print(f"a hidden like is among {SHOWN} suggestions for {similar} of {found['asked']:,} users,")  # noqa: T201
    print(f"and for {favourite} if what is most popular is suggested")  # noqa: T201


if __name__ == "__main__":
    given = Path(sys.argv[1]) if len(sys.argv) > 1 else INVOICES if INVOICES.exists() else HERE / "likes.csv"
    main(given)
