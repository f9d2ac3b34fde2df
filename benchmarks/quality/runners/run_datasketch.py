"""datasketch: its index with the bands it chooses; all results, or those verified by signatures."""

from __future__ import annotations

from datasketch import MinHash, MinHashLSH

from benchmarks.quality.runners.harness import Answer, Job, answer_jobs
from benchmarks.speed.runners.shingling import word_shingles


def answer(job: Job) -> Answer:
    """Return the query results of each document; in mode ``checked`` only those estimated to reach the threshold."""
    index = MinHashLSH(threshold=job.threshold, num_perm=job.slots)
    sets = [[shingle.encode() for shingle in word_shingles(text, job.words)] for text in job.texts]
    sketches = MinHash.bulk(sets, num_perm=job.slots, seed=job.seed)
    pairs: list[tuple[int, int]] = []
    for number, sketch in enumerate(sketches):
        others = (int(other) for other in index.query(sketch))
        pairs += [
            (other, number)
            for other in others
            if job.mode != "checked" or sketch.jaccard(sketches[other]) >= job.threshold
        ]
        index.insert(number, sketch)
    return Answer(pairs=pairs)


if __name__ == "__main__":
    answer_jobs(answer, packages=("datasketch", "numpy"))
