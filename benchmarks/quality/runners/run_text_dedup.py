"""text-dedup: its own command, with the bands it chooses itself. It leaves clusters, whose pairs nobody looks at."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.endtoend.runners.run_text_dedup import OFFLINE
from benchmarks.quality.runners.answering import Answer, Job, answer_jobs


def answer(job: Job) -> Answer:
    """Return the cluster of each document."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(pa.table({"text": job.texts}), folder / "texts.parquet")
        run_command(job, folder)
        with (folder / "out" / "uf.pkl").open("rb") as file:
            parents: dict[int, int] = pickle.load(file).parent
    return Answer(clusters=[root(parents, number) for number in range(len(job.texts))])


def run_command(job: Job, folder: Path) -> None:
    """Run ``text_dedup.minhash``; with ``--debug`` it leaves its clusters beside what it keeps."""
    options = {
        "path": "parquet",
        "data_files": folder / "texts.parquet",
        "split": "train",
        "cache_dir": folder / "cache",
        "output": folder / "out",
        "column": "text",
        "ngram": job.words,
        "min_length": 1,
        "num_perm": job.slots,
        "threshold": job.threshold,
        "num_proc": 1,
        "hash_func": "xxh3",
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "text_dedup.minhash", *words, "--debug"]
    subprocess.run(
        command,
        env={**os.environ, **OFFLINE, "HF_HOME": str(folder / "cache")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )


def root(parents: dict[int, int], number: int) -> int:
    """Return the document that stands for the cluster of ``number``."""
    while parents.get(number, number) != number:
        number = parents[number]
    return number


if __name__ == "__main__":
    answer_jobs(answer, packages=("text-dedup", "datasets", "numpy"))
