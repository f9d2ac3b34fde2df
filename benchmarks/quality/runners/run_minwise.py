"""minwise: pairs or clusters, with the bands of its plan."""

from __future__ import annotations

from typing import Any

import minwise as mw
from benchmarks.quality.runners.harness import Answer, Job, answer_jobs


def answer(job: Job) -> Answer:
    """Return pairs or clusters; the mode is a scheme, a verification and optionally a grouping."""
    scheme, verify, *group = job.mode.split()
    options: dict[str, Any] = {
        "threshold": job.threshold,
        "shingle": f"word:{job.words}",
        "scheme": scheme,
        "slots": job.slots,
        "seed": job.seed,
        "verify": verify,
        "threads": 1,
    }
    if group:
        clusters = mw.clusters(job.texts, **options | {"group": group[0]})
        return Answer(clusters=[int(cluster) for cluster in clusters["cluster"].to_pylist()])
    found = mw.pairs(job.texts, **options)
    return Answer(pairs=[(int(row["left"]), int(row["right"])) for row in found.to_pylist()])


if __name__ == "__main__":
    answer_jobs(answer, packages=("minwise",))
