"""Corpora with planted near-duplicates of every kind, and what a plain comparison of all pairs finds in them."""

import random
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import minwise as mw

THRESHOLD = 0.7
SHINGLE = "word:2"
# So many bands that no pair at the threshold is missed: see `assert_nothing_missed_by_chance`.
LAYOUT: dict[str, Any] = {"bands": 40, "rows": 2, "shingle": SHINGLE, "threshold": THRESHOLD}

Pairs = dict[tuple[int, int], float]
Row = dict[str, Any]


@dataclass(frozen=True)
class Truth:
    """Texts with the similarity of all of their pairs that reach the threshold."""

    texts: tuple[str, ...]
    threshold: float = THRESHOLD
    shingle: str = SHINGLE

    @cached_property
    def sets(self) -> list[frozenset[int]]:
        """The shingles of each text, as plain Python sets."""
        sets = mw.Shingler(self.shingle).shingle(list(self.texts))
        return [frozenset(members.tolist()) for members in sets]

    @cached_property
    def pairs(self) -> Pairs:
        """Every pair that reaches the threshold: |∩|/|∪|, two empty sets are not alike."""
        return all_pairs(self.sets, self.threshold)


def all_pairs(sets: list[frozenset[Any]], threshold: float) -> Pairs:
    """Every pair of sets that reaches the threshold, by comparing all with all."""
    found = {}
    for left, right in combinations(range(len(sets)), 2):
        shared = len(sets[left] & sets[right])
        if shared and shared / len(sets[left] | sets[right]) >= threshold:
            found[left, right] = shared / len(sets[left] | sets[right])
    return found


def assert_nothing_missed_by_chance(pairs: Pairs, plan: mw.Plan) -> None:
    """The expected number of missed pairs, which bounds the chance of missing any (Markov), is at most 10⁻⁶."""
    assert sum(1 - plan.probability(similarity) for similarity in pairs.values()) <= 1e-6


def words(rng: random.Random, count: int) -> list[str]:
    """Words that are hardly ever the same twice."""
    return [f"w{rng.randrange(10**6)}" for _ in range(count)]


def chain(rng: random.Random, length: int, steps: int) -> list[str]:
    """Documents of which each differs a little from the one before, and the last much from the first."""
    document = words(rng, length)
    found = [" ".join(document)]
    for _ in range(steps):
        for place in rng.sample(range(length), rng.choice((1, 1, 2, max(1, length // 20)))):
            document[place] = words(rng, 1)[0]
        found.append(" ".join(document))
    return found


def texts(seed: int) -> tuple[str, ...]:
    """Chains, copies that differ in case and signs, same shingles in another order, empty, short and unrelated ones."""
    rng = random.Random(seed)
    made = [text for _ in range(4) for text in chain(rng, rng.randrange(25, 70), rng.randrange(4, 9))]
    made += [rng.choice((text, text.upper(), text.replace(" ", ", "))) for text in rng.choices(made, k=14)]
    ring = words(rng, 12)
    made += [" ".join([*ring[turn:], *ring[:turn], ring[turn]]) for turn in range(3)]  # one set, three token sequences
    made += ["", "   ", "...", "one", "One!", "two", "one two", "one two three", "漢字", "漢字。"]
    made += [" ".join(words(rng, rng.randrange(5, 60))) for _ in range(12)]
    rng.shuffle(made)
    return tuple(made)


def rows(given: tuple[str, ...], seed: int = 0) -> list[Row]:
    """The texts as rows with an id, and columns to prefer by that have ties, gaps and what is not a number."""
    rng = random.Random(seed)
    scores = (None, float("nan"), -1.0, 0.0, 2.5, 2.5, 7.0)
    names = (None, "", "a", "b", "B", "ä")
    return [
        {"id": f"d{number}", "text": text, "score": rng.choice(scores), "name": rng.choice(names)}
        for number, text in enumerate(given)
    ]


def number(identity: str) -> int:
    """The document that `rows` gave this id."""
    return int(identity[1:])
