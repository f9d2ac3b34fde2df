"""rensa: RMinHash and its index, with candidates verified by signatures as in its README.

CMinHash has no index that lists pairs, only a deduplicator; the "rho" functions report that a document has a similar
one, but not which. Both are not used.
"""

from __future__ import annotations

from rensa import RMinHash, RMinHashLSH

from benchmarks.quality.runners.harness import Answer, Job, answer_jobs
from benchmarks.speed.runners.shingling import word_shingles


def answer(job: Job) -> Answer:
    """Return the candidates whose estimated similarity reaches the threshold."""
    sketches = []
    for text in job.texts:
        sketch = RMinHash(num_perm=job.slots, seed=job.seed)
        sketch.update(list(word_shingles(text, job.words)))
        sketches.append(sketch)
    index = RMinHashLSH(threshold=job.threshold, num_perm=job.slots, num_bands=job.bands)
    pairs: list[tuple[int, int]] = []
    for number, sketch in enumerate(sketches):
        others = set(index.query(sketch))
        pairs += [(other, number) for other in others if sketch.jaccard(sketches[other]) >= job.threshold]
        index.insert(number, sketch)
    return Answer(pairs=pairs)


if __name__ == "__main__":
    answer_jobs(answer, packages=("rensa",))
