"""datasketch: its bulk generator, which shares the permutations and calls ``update_batch`` per document."""

from __future__ import annotations

from datasketch import MinHash

from benchmarks.speed.runners.shingling import word_shingles
from benchmarks.speed.runners.timing import as_list, parse_job, time_sketching


def sketch(texts: list[str], slots: int) -> list[MinHash]:
    """Return one MinHash per text."""
    sets = ([shingle.encode() for shingle in word_shingles(text)] for text in texts)
    return list(MinHash.generator(sets, num_perm=slots))


if __name__ == "__main__":
    job = parse_job()
    time_sketching(job, as_list, lambda texts: sketch(texts, job.slots), packages=("datasketch", "numpy"))
