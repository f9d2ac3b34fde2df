"""FastSketchLSH: its index; every candidate counts, because it has no threshold."""

from __future__ import annotations

import math

from FastSketchLSH import LSH  # type: ignore[import-not-found, unused-ignore]

from benchmarks.quality.runners.harness import Answer, Job, answer_jobs
from benchmarks.speed.runners.run_fastsketchlsh import sketch


def answer(job: Job) -> Answer:
    """Return the candidates of each document."""
    sketches = sketch(job.texts, job.slots, seed=job.seed, words=job.words)
    # Its bands must fill all slots: as many as the layout has, rounded to a power of two.
    index = LSH(num_perm=job.slots, num_bands=1 << round(math.log2(job.bands)), num_threads=1)
    index.insert(sketches)
    found = enumerate(index.query(sketches))
    return Answer(pairs=[(number, int(other)) for number, others in found for other in others if other > number])


if __name__ == "__main__":
    answer_jobs(answer, packages=("FastSketchLSH", "numpy"))
