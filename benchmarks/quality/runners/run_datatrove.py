"""datatrove: its first three MinHash steps: signatures, buckets and clusters. The fourth removes documents."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

from datatrove.data import Document  # type: ignore[import-not-found, unused-ignore]
from datatrove.pipeline.dedup.minhash import (  # type: ignore[import-not-found, unused-ignore]
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupSignature,
)

from benchmarks.quality.runners.harness import Answer, Job, answer_jobs


class BlankTokens:
    """Tokenizer that splits at blanks."""

    def word_tokenize(self, text: str) -> list[str]:
        """Return the words."""
        return text.split()


def answer(job: Job) -> Answer:
    """Return the cluster of each document; a document without candidates is its own cluster."""
    config = MinhashConfig(n_grams=job.words, num_buckets=job.bands, hashes_per_bucket=job.rows, seed=job.seed)
    with tempfile.TemporaryDirectory() as name:
        folders = [f"{name}/{step}" for step in ("signatures", "buckets", "clusters")]
        signing = MinhashDedupSignature(folders[0], config)
        if job.plain:
            signing.word_tokenizer = BlankTokens()
        signing.run(Document(text=text, id=str(number)) for number, text in enumerate(job.texts))
        matching = MinhashDedupBuckets(folders[0], folders[1], config=config)
        for bucket in range(job.bands):
            matching.run(rank=bucket, world_size=job.bands)
        MinhashDedupCluster(folders[1], folders[2], config=config, save_cluster_id=True).run()
        clusters = read_clusters(Path(folders[2]) / "000000.clusters")
    single = range(len(clusters), len(clusters) + len(job.texts))
    return Answer(clusters=[clusters.get(number, single[number]) for number in range(len(job.texts))])


def read_clusters(path: Path) -> dict[int, int]:
    """Return the cluster of each document that has one; without a file no document has one."""
    return dict(struct.iter_unpack("<2I", path.read_bytes())) if path.exists() else {}


if __name__ == "__main__":
    answer_jobs(answer, packages=("datatrove", "numpy", "spacy"))
