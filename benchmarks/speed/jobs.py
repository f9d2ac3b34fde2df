"""Jobs of the benchmark: engine, corpus and settings."""

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
    """A measurement to make; it runs in its own process, once per round.

    Attributes:
        engine: ``minwise``, ``datasketch``, ``rensa``, or ``parquet`` for reading the file.
        scheme: Sketching scheme of the engine.
        corpus: Name of the corpus.
        shingles: Kind and length of the shingles.
        slots: Slots of a signature.
        threads: Number of cores.
        sample: Whether only the first documents are sketched, enough to keep every peer busy for seconds.
    """

    engine: str
    scheme: str
    corpus: str
    shingles: str = "word:5"
    slots: int = 256
    threads: int = 1
    sample: bool = False


def all_jobs() -> list[Job]:
    """Return every job in the order of a round; minwise and peers alternate because the load of the machine varies."""
    others = [
        *peer_jobs(),
        *(Job(engine="parquet", scheme="read", corpus=name, threads=THREADS[-1]) for name in ("source", "short")),
    ]
    return interleave(minwise_jobs(), others)


def minwise_jobs() -> list[Job]:
    """Return the jobs of minwise: those with targets first, the others for information."""
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
    """Return the jobs of the peers: both numbers of slots on ``source``, the larger on ``short``."""
    settings = [("source", slots) for slots in PEER_SLOTS] + [("short", PEER_SLOTS[-1])]
    return [
        Job(engine=engine, scheme=scheme, corpus=corpus, slots=slots, sample=True)
        for corpus, slots in settings
        for engine, schemes in PEERS.items()
        for scheme in schemes
    ]


def interleave(first: Iterable[Job], second: Iterable[Job]) -> list[Job]:
    """Return the jobs of both alternately, then the rest of the longer."""

    def turns() -> Iterator[Job]:
        for pair in zip_longest(first, second):
            yield from (job for job in pair if job is not None)

    return list(turns())
