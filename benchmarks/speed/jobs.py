"""Jobs: which engine sketches which texts, with which settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest

from benchmarks.speed.languages import LANGUAGES

PEERS = {"datasketch": ("minhash",), "rensa": ("rminhash", "cminhash", "rho")}
PEER_SLOTS = (128, 256)
THREADS = (1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One thing to measure; it runs in a process of its own, once per round.

    Attributes:
        engine: ``minwise``, ``datasketch``, ``rensa``, or ``parquet`` for reading the file.
        scheme: Which of the engine's sketches.
        corpus: Name of the corpus.
        shingles: Kind and length of the shingles.
        slots: Slots of a signature.
        threads: Cores the engine may use.
        sample: Only the first documents, enough for every peer to be busy for seconds; or the whole corpus.
    """

    engine: str
    scheme: str
    corpus: str
    shingles: str = "word:5"
    slots: int = 256
    threads: int = 1
    sample: bool = False


def all_jobs() -> list[Job]:
    """Return every job in the order of one round: ours and others in turn, since the machine's mood changes."""
    others = [
        *peer_jobs(),
        *(Job(engine="parquet", scheme="read", corpus=name, threads=THREADS[-1]) for name in ("source", "short")),
    ]
    return interleave(ours_jobs(), others)


def ours_jobs() -> list[Job]:
    """Return our own jobs: what has a target first, the rest for information."""
    fast = Job(engine="minwise", scheme="fast", corpus="source")
    pairs = [replace(fast, corpus=name, threads=threads) for name in ("source", "short") for threads in THREADS]
    samples = [
        replace(fast, corpus=job.corpus, slots=job.slots, sample=True, threads=threads)
        for threads in THREADS
        for job in peer_jobs()
    ]
    languages = [replace(fast, corpus=name) for name in LANGUAGES]
    other_shingles = [replace(fast, shingles=shingles) for shingles in ("byte:8", "char:9")]
    other_schemes = [replace(fast, scheme="minhash", slots=128), replace(fast, scheme="oph")]
    return [*pairs, *dict.fromkeys(samples), *languages, *other_schemes, *other_shingles]


def peer_jobs() -> list[Job]:
    """Return the peers' jobs: both sizes on ``source``, the larger on ``short``."""
    settings = [("source", slots) for slots in PEER_SLOTS] + [("short", PEER_SLOTS[-1])]
    return [
        Job(engine=engine, scheme=scheme, corpus=corpus, slots=slots, sample=True)
        for corpus, slots in settings
        for engine, schemes in PEERS.items()
        for scheme in schemes
    ]


def interleave(first: Iterable[Job], second: Iterable[Job]) -> list[Job]:
    """Return the jobs of both in turn, then what is left of the longer."""

    def turns() -> Iterator[Job]:
        for pair in zip_longest(first, second):
            yield from (job for job in pair if job is not None)

    return list(turns())
