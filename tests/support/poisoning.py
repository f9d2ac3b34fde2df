"""Attack on an index by a party that knows the code but not the seed, next to an index without the attack."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import minwise as mw
from minwise.sketches import Plan

WORDS = 60
# Documents per call.
BATCH = 4_000
# Shingles tried for each band: the more, the more certainly each slot is won.
TRIED = 20_000
VICTIMS = 8


def words(rng: random.Random, count: int) -> list[str]:
    """Return words that hardly ever repeat."""
    return [f"w{rng.randrange(10**7)}" for _ in range(count)]


def fresh_text(rng: random.Random) -> str:
    """Return a unique text."""
    return " ".join(words(rng, WORDS))


def near_copy(text: str, rng: random.Random) -> str:
    """Return the text with one other word in the middle: 5 of 56 shingles differ, so the similarity is 51/61 ≈ 0.84."""
    changed = text.split()
    changed[rng.randrange(10, WORDS - 10)] = words(rng, 1)[0]
    return " ".join(changed)


def winning_shingles(plan: Plan, seed: int) -> list[str]:
    """Return phrases of five words, one for each slot of the first band, that win it in nearly every document."""
    phrases = [" ".join(f"p{number}x{position}" for position in range(5)) for number in range(TRIED)]
    winners = first_band(phrases, plan, seed).argmin(axis=0).tolist()
    return [phrases[winner] for winner in dict.fromkeys(winners)]


def first_band(texts: Sequence[str], plan: Plan, seed: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    """Return the slots of the first band of each text."""
    scheme, shingler = mw.FastSketch(slots=plan.slots, seed=seed), mw.Shingler("word:5", seed=seed)
    slots: np.ndarray[tuple[int, int], np.dtype[np.uint64]] = scheme.sketch_texts(texts, shingler).slots[:, : plan.rows]
    return slots


def carrier(winners: Sequence[str], rng: random.Random) -> str:
    """Return a unique text that contains the phrases."""
    return " ".join([*winners, fresh_text(rng)])


@dataclass(frozen=True)
class Poisoned:
    """Two indexes with the same clean documents, of which one was poisoned as well.

    Attributes:
        clean: The index without the attack.
        poisoned: The index with the attack.
        texts: The clean documents; the id is the position. The attack adds near-copies of the first few, and copies of
            the next one.
        winners: The phrases that win a band under the default seed.
    """

    clean: mw.Index
    poisoned: mw.Index
    texts: list[str]
    winners: list[str]

    @property
    def victims(self) -> list[str]:
        """The documents whose near-copies or copies were added."""
        return self.texts[: VICTIMS + 1]

    def close(self) -> None:
        """Close both indexes."""
        self.clean.close()
        self.poisoned.close()


def build_poisoned(folder: Path, clean: int, poisoned: int, seed: int, **options: int) -> Poisoned:
    """Build both indexes, with numbers of clean documents and of documents of the attack: three kinds in turn."""
    rng = random.Random(5)
    texts = [fresh_text(rng) for _ in range(clean)]
    clean_index, poisoned_index = (
        mw.Index.create(folder / name, seed=seed, **options)  # type: ignore[arg-type]
        for name in ("clean.mw", "poisoned.mw")
    )
    winners = winning_shingles(clean_index.plan, seed=1)
    for index in (clean_index, poisoned_index):
        index.add(list(range(clean)), texts)
    attack = _documents(texts, winners, rng)
    for start in range(0, poisoned, BATCH):
        ids = [f"poison {number}" for number in range(start, min(start + BATCH, poisoned))]
        poisoned_index.add(ids, [next(attack) for _ in ids])
    for index in (clean_index, poisoned_index):
        index.flush()
    return Poisoned(clean_index, poisoned_index, texts, winners)


def _documents(texts: Sequence[str], winners: Sequence[str], rng: random.Random) -> Iterator[str]:
    while True:
        yield carrier(winners, rng)
        yield near_copy(rng.choice(texts[:VICTIMS]), rng)
        yield texts[VICTIMS]
