"""rensa: its bulk functions with a generator, which is faster than a list of sets.

``rho`` is for information: it uses a sample of the shingles of a long document.
"""

from __future__ import annotations

from rensa import CMinHash, RMinHash

from benchmarks.speed.runners.shingling import word_shingles
from benchmarks.speed.runners.timing import as_list, parse_job, time_sketching

SKETCHES = {
    "rminhash": RMinHash.digest_matrix_from_token_sets,
    "cminhash": CMinHash.from_token_sets,
    "rho": RMinHash.digest_matrix_from_token_sets_rho,
}
SEED = 1

if __name__ == "__main__":
    job = parse_job()
    sketch = SKETCHES[job.scheme]
    time_sketching(
        job,
        as_list,
        lambda texts: sketch((word_shingles(text) for text in texts), job.slots, SEED),
        packages=("rensa",),
    )
