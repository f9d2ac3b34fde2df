"""An attacker who knows the code but not the seed, and two indexes: one that he reached, and one that he did not."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import minwise as mw

WORDS = 60
# Documents that are added together.
BATCH = 4_000
# Shingles that an attacker tries for each band: the more, the surer each slot of it is won.
TRIED = 20_000
VICTIMS = 8


def words(rng: random.Random, count: int) -> list[str]:
    """Words that are hardly ever the same twice."""
    return [f"w{rng.randrange(10**7)}" for _ in range(count)]


def fresh_text(rng: random.Random) -> str:
    """A text of its own."""
    return " ".join(words(rng, WORDS))


def near_copy(text: str, rng: random.Random) -> str:
    """The text with one other word in the middle: 5 of 56 shingles differ, so the similarity is 51/61 ≈ 0.84."""
    changed = text.split()
    changed[rng.randrange(10, WORDS - 10)] = words(rng, 1)[0]
    return " ".join(changed)


def winning_shingles(plan: mw.Plan, seed: int) -> list[str]:
    """Phrases of five words, one for each slot of the first band, that win it in nearly every document."""
    phrases = [" ".join(f"p{number}x{place}" for place in range(5)) for number in range(TRIED)]
    winners = first_band(phrases, plan, seed).argmin(axis=0).tolist()
    return [phrases[winner] for winner in dict.fromkeys(winners)]


def first_band(texts: Sequence[str], plan: mw.Plan, seed: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    """The slots of the first band of each text."""
    scheme, shingler = mw.FastSketch(slots=plan.slots, seed=seed), mw.Shingler("word:5", seed=seed)
    slots: np.ndarray[tuple[int, int], np.dtype[np.uint64]] = scheme.sketch_texts(texts, shingler).slots[:, : plan.rows]
    return slots


def carrier(winners: Sequence[str], rng: random.Random) -> str:
    """A text of its own that carries the phrases."""
    return " ".join([*winners, fresh_text(rng)])


@dataclass(frozen=True)
class Poisoned:
    """Two indexes with the same clean documents, of which one was poisoned as well.

    Attributes:
        clean: The one that was not.
        poisoned: The one that was.
        texts: The clean documents, under their place as id. Of the first few near-copies were added, the one behind
            them was copied.
        winners: The phrases that win a band under the default seed.
    """

    clean: mw.Index
    poisoned: mw.Index
    texts: list[str]
    winners: list[str]

    @property
    def victims(self) -> list[str]:
        """Those whose near-copies or copies were added."""
        return self.texts[: VICTIMS + 1]

    def close(self) -> None:
        """Lets go of both."""
        self.clean.close()
        self.poisoned.close()


def poison_an_index(folder: Path, clean: int, poisoned: int, seed: int) -> Poisoned:
    """Both indexes, with so many clean documents, and so many of the attacker: the three kinds in turn."""
    rng = random.Random(5)
    texts = [fresh_text(rng) for _ in range(clean)]
    one, other = (mw.Index.create(folder / name, seed=seed) for name in ("clean.mw", "poisoned.mw"))
    winners = winning_shingles(one.plan, seed=1)
    for index in (one, other):
        index.add(list(range(clean)), texts)
    made = _documents(texts, winners, rng)
    for start in range(0, poisoned, BATCH):
        ids = [f"poison {number}" for number in range(start, min(start + BATCH, poisoned))]
        other.add(ids, [next(made) for _ in ids])
    for index in (one, other):
        index.flush()
    return Poisoned(one, other, texts, winners)


def _documents(texts: Sequence[str], winners: Sequence[str], rng: random.Random) -> Iterator[str]:
    while True:
        yield carrier(winners, rng)
        yield near_copy(rng.choice(texts[:VICTIMS]), rng)
        yield texts[VICTIMS]
