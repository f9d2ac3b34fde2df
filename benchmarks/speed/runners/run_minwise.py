"""minwise: signatures of an Arrow column in one call."""

from __future__ import annotations

import minwise as mw
from benchmarks.speed.runners.timing import parse_job, time_sketching
from minwise.sketches import OnePermutation


def make_scheme(name: str, slots: int) -> mw.FastSketch | mw.MinHash | OnePermutation:
    """Return the scheme with a name."""
    if name == "oph":
        return OnePermutation(bins=slots)
    return mw.MinHash(slots=slots) if name == "minhash" else mw.FastSketch(slots=slots)


if __name__ == "__main__":
    job = parse_job()
    scheme = make_scheme(job.scheme, job.slots)
    shingler = mw.Shingler(job.shingles)
    time_sketching(
        job,
        lambda column: column,
        lambda texts: scheme.sketch_texts(texts, shingler, threads=job.threads).slots,
        packages=("minwise", "numpy", "pyarrow"),
    )
