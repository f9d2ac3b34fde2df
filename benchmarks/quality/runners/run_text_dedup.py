"""text-dedup: its own command, with the bands it chooses. It returns clusters and does not verify their pairs."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.peers.runners.run_text_dedup import run_command
from benchmarks.quality.runners.harness import Answer, Job, answer_jobs


def answer(job: Job) -> Answer:
    """Return the cluster of each document."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, output = folder / "texts.parquet", folder / "out"
        pq.write_table(pa.table({"text": job.texts}), source)
        # With --debug it writes its clusters next to the kept documents.
        run_command(source, output, "--debug", words=job.words, slots=job.slots, threshold=job.threshold, processes=1)
        with (output / "uf.pkl").open("rb") as file:
            parents: dict[int, int] = pickle.load(file).parent
    return Answer(clusters=[root(parents, number) for number in range(len(job.texts))])


def root(parents: dict[int, int], number: int) -> int:
    """Return the root document of the cluster of ``number``."""
    while parents.get(number, number) != number:
        number = parents[number]
    return number


if __name__ == "__main__":
    answer_jobs(answer, packages=("text-dedup", "datasets", "numpy"))
