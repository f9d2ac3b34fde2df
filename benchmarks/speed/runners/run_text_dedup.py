"""text-dedup: the function that its command maps over a dataset, with the faster of its hashes."""

from __future__ import annotations

import numpy as np
from text_dedup.minhash import embed_func  # type: ignore[import-not-found, unused-ignore]
from text_dedup.utils import xxh3_32hash  # type: ignore[import-not-found, unused-ignore]

from benchmarks.speed.runners.timing import as_list, parse_job, time_sketching

WORDS = 5
MAX_HASH, PRIME = np.uint32(2**32 - 1), np.uint64(2**61 - 1)  # the defaults of its command


def sketch(texts: list[str], slots: int) -> list[dict[str, object]]:
    """Return what the command stores for each text: its slots as the bytes of one band."""
    draw = np.random.RandomState(1)
    factors, summands = (draw.randint(low, PRIME, size=slots, dtype=np.uint64) for low in (1, 0))
    settings = {
        "num_perm": slots,
        "ngram_size": WORDS,
        "min_length": 1,
        "hashranges": [(0, slots)],
        "permutations": (factors, summands),
        "hash_func": xxh3_32hash,
        "dtype": np.uint64,
        "max_hash": MAX_HASH,
        "modulo_prime": PRIME,
    }
    return [embed_func(text, number, **settings) for number, text in enumerate(texts)]


if __name__ == "__main__":
    job = parse_job()
    time_sketching(job, as_list, lambda texts: sketch(texts, job.slots), packages=("text-dedup", "numpy"))
