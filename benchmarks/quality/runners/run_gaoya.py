"""gaoya: its string index, which shingles in Rust and verifies candidates by their signatures."""

from __future__ import annotations

from gaoya.minhash import MinHashStringIndex  # type: ignore[import-not-found, unused-ignore]

from benchmarks.quality.runners.harness import Answer, Job, answer_jobs


def answer(job: Job) -> Answer:
    """Return the query results of each document."""
    index = MinHashStringIndex(
        hash_size=32,
        jaccard_threshold=job.threshold,
        num_bands=job.bands,
        band_size=job.rows,
        analyzer="word",
        lowercase=True,
        ngram_range=(job.words, job.words),
    )
    for number, text in enumerate(job.texts):
        index.insert_document(number, text)
    pairs = [
        (number, int(other)) for number, text in enumerate(job.texts) for other in index.query(text) if other > number
    ]
    return Answer(pairs=pairs)


if __name__ == "__main__":
    answer_jobs(answer, packages=("gaoya",))
