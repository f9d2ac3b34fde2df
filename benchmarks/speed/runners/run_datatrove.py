"""datatrove: shingles and signatures of its first MinHash step, document by document, without writing files."""

from __future__ import annotations

import tempfile

from datatrove.pipeline.dedup.minhash import (  # type: ignore[import-not-found, unused-ignore]
    MinhashConfig,
    MinhashDedupSignature,
)

from benchmarks.speed.runners.timing import as_list, parse_job, time_sketching

WORDS = 5


def sketch(texts: list[str], slots: int) -> list[object]:
    """Return one signature per text."""
    with tempfile.TemporaryDirectory() as folder:
        config = MinhashConfig(n_grams=WORDS, num_buckets=1, hashes_per_bucket=slots)
        step = MinhashDedupSignature(folder, config)
        return [step.get_signature(shingles) for text in texts if (shingles := step.get_shingles(text)).size]


if __name__ == "__main__":
    job = parse_job()
    time_sketching(job, as_list, lambda texts: sketch(texts, job.slots), packages=("datatrove", "numpy", "spacy"))
