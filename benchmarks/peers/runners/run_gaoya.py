"""gaoya: its string index, which shingles in Rust, with bulk insertion and bulk queries on all cores."""

from __future__ import annotations

from gaoya.minhash import MinHashStringIndex  # type: ignore[import-not-found, unused-ignore]

from benchmarks.peers.runners.pipeline import Settings, deduplicate

ROWS = 8


def choose_kept(texts: list[str], settings: Settings) -> list[bool]:
    """Return which documents have no similar earlier kept document."""
    index = MinHashStringIndex(
        hash_size=32,
        jaccard_threshold=settings.threshold,
        num_bands=settings.slots // ROWS,
        band_size=ROWS,
        analyzer="word",
        lowercase=True,
        ngram_range=(5, 5),
        id_container="smallvec",
    )
    index.par_bulk_insert_docs(list(range(len(texts))), texts)
    kept: list[bool] = []
    for number, similar in enumerate(index.par_bulk_query(texts)):
        kept.append(not any(other < number and kept[other] for other in similar))
    return kept


if __name__ == "__main__":
    deduplicate(choose_kept, packages=("gaoya",))
