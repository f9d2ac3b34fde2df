"""Corpora with planted near-duplicates of every kind, and their pairs by comparing all texts."""

import random
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import minwise as mw
from minwise.sketches import Plan

THRESHOLD = 0.7
SHINGLE = "word:2"
# Enough bands that no pair at the threshold is missed: see `assert_nothing_missed_by_chance`.
LAYOUT: dict[str, Any] = {"bands": 40, "rows": 2, "shingle": SHINGLE, "threshold": THRESHOLD}

Pairs = dict[tuple[int, int], float]
Row = dict[str, Any]


@dataclass(frozen=True)
class Truth:
    """Texts with the similarities of all their pairs that reach the threshold."""

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
        """Every pair that reaches the threshold: |∩|/|∪|; two empty sets are not similar."""
        return all_pairs(self.sets, self.threshold)


def all_pairs(sets: list[frozenset[Any]], threshold: float) -> Pairs:
    """Return every pair of sets that reaches the threshold, by comparing all with all."""
    pairs = {}
    for left, right in combinations(range(len(sets)), 2):
        shared = len(sets[left] & sets[right])
        if shared and shared / len(sets[left] | sets[right]) >= threshold:
            pairs[left, right] = shared / len(sets[left] | sets[right])
    return pairs


def assert_nothing_missed_by_chance(pairs: Pairs, plan: Plan) -> None:
    """Assert that the expected number of missed pairs, a bound on the probability of any (Markov), is at most 10⁻⁶."""
    assert sum(1 - plan.probability(similarity) for similarity in pairs.values()) <= 1e-6


def words(rng: random.Random, count: int) -> list[str]:
    """Return random words, rarely with repetitions."""
    return [f"w{rng.randrange(10**6)}" for _ in range(count)]


def chain(rng: random.Random, length: int, steps: int) -> list[str]:
    """Return documents that each differ a little from the previous one, and the last much from the first."""
    document = words(rng, length)
    versions = [" ".join(document)]
    for _ in range(steps):
        for position in rng.sample(range(length), rng.choice((1, 1, 2, max(1, length // 20)))):
            document[position] = words(rng, 1)[0]
        versions.append(" ".join(document))
    return versions


def texts(seed: int) -> tuple[str, ...]:
    """Return chains, copies with other case and punctuation, reordered shingles, empty, short and unrelated texts."""
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
    """Return the texts as rows with an id, and columns for keep policies with ties, nulls and NaN."""
    rng = random.Random(seed)
    scores = (None, float("nan"), -1.0, 0.0, 2.5, 2.5, 7.0)
    names = (None, "", "a", "b", "B", "ä")
    return [
        {"id": f"d{number}", "text": text, "score": rng.choice(scores), "name": rng.choice(names)}
        for number, text in enumerate(given)
    ]


def number(identity: str) -> int:
    """Return the document to which `rows` gave this id."""
    return int(identity[1:])
