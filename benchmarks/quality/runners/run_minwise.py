"""minwise: bands as its plan chooses them, candidates checked by their sets or by their signatures."""

from __future__ import annotations

import minwise as mw
from benchmarks.quality.runners.answering import Answer, Job, answer_jobs


def answer(job: Job) -> Answer:
    """Return all pairs; the way is a scheme and how candidates are checked."""
    scheme, verify = job.way.split()
    found = mw.pairs(
        job.texts,
        threshold=job.threshold,
        shingle=f"word:{job.words}",
        scheme=scheme,
        slots=job.slots,
        verify=verify,
        threads=1,
    )
    return Answer(pairs=[(int(row["left"]), int(row["right"])) for row in found.to_pylist()])


if __name__ == "__main__":
    answer_jobs(answer, packages=("minwise",))
