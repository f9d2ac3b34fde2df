"""Entry point of ``python -m benchmarks.bounds``: time the stages of a run and their lower bounds.

A bound is work that the stage cannot avoid, measured alone: decoding the same pages, copying the same number of bytes,
encoding the same rows. The bound of sketching is the kernel itself on texts in memory, so its ratio shows the overhead
of reading and writing. Parts of a bound that need all cores are added; of parts that run in parallel, on a core each,
the longest counts.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import minwise as mw
from benchmarks.peers.engines import SHINGLES, THRESHOLD
from benchmarks.peers.passages import prepare_passages
from benchmarks.record_files import command_line, write_json
from benchmarks.speed.corpus import cache_dir
from benchmarks.targets import align_rows
from minwise.inputs import Files
from minwise.options import DedupOptions
from minwise.progress import NullProgress, Stage
from minwise.search.bands import Bander, KeyBlock
from minwise.search.candidates import MEMBER_BYTES
from minwise.search.verification import OUTLINE_BYTES
from minwise.settings import resolve_options, search_settings

KEY_BYTES, PAIR_BYTES, ELEMENT_BYTES = 8, 8, 8
SAMPLE = 10_000
BLOCK_BYTES = 1 << 26
# Stages whose bounds run in parallel: pages are decoded on one core and encoded on another.
PARALLEL = ("write",)
COLUMNS = ("stage", "seconds", "bounds", "seconds of bounds", "ratio")


class Totals(NullProgress):
    """Progress listener that stores the total of each stage."""

    def __init__(self) -> None:
        self.by_stage: dict[str, int] = {}

    def stage(self, name: str, total: int | None, unit: str, *, done: int = 0) -> AbstractContextManager[Stage]:
        """Store the total of a stage that starts."""
        self.by_stage[name] = total or 0
        return super().stage(name, total, unit, done=done)


def main() -> None:
    """Measure, print the table and write the record."""
    settings = parse_settings()
    corpus = prepare_passages(settings.documents)
    measured = [measure(corpus.path) for _ in range(settings.rounds)]
    rounds, pairs = [stages for stages, _ in measured], measured[0][1]
    rows = [best(name, rounds) for name in rounds[0]]
    print(f"\n{align_rows([COLUMNS, *(cells(row) for row in rows)], text_columns=1)}\n")
    if settings.record:
        content = {"settings": {"rounds": settings.rounds}, "corpus": asdict(corpus), "pairs": pairs, "stages": rows}
        print(f"written to {write_json(content, benchmark='bounds')}")


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = command_line("bounds", __doc__)
    parser.add_argument("--documents", type=int, default=1_000_000, help="passages of the peers' corpus")
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds, of which the best counts (default 3)")
    return parser.parse_args()


def measure(source: Path) -> tuple[dict[str, dict[str, float]], dict[str, int]]:
    """Return the seconds of each stage and of its bounds by name, and the numbers of pairs."""
    totals = Totals()
    with tempfile.TemporaryDirectory(prefix="bounds-", dir=cache_dir()) as name:
        out = Path(name) / "out"
        mw.dedup(Files([str(source)]), out, threshold=THRESHOLD, shingle=SHINGLES, progress=totals)
        stages = {stage["stage"]: float(stage["seconds"]) for stage in read_json(out / "run.json")["stages"]}
        report = read_json(out / "report.json")
        names = ("candidates", "verified", "compared", "sampled_one_in")
        pairs = {"proposed": totals.by_stage["verify"], **{name: int(report["pairs"][name]) for name in names}}
        # Pairs whose sets are read: the bitmaps exclude the others.
        similar = pairs["verified"] + report["just_below"]["pairs"]
        read_sets = pairs["compared"] * similar // max(1, pairs["candidates"])
        (kept,) = (out / "kept").glob("*.parquet")
        bounds = {
            "read and sketch": {"decoding pages": read(source), "sketching in memory": sketch(source)},
            "band": {"keys of all bands": copy_bytes(KEY_BYTES * report["counts"]["read"] * report["plan"]["bands"])},
            "shingle candidates": {"decoding pages": read(source)},
            "verify": {
                "merging pairs": copy_bytes(MEMBER_BYTES * pairs["proposed"] + PAIR_BYTES * pairs["compared"]),
                "outlines of pairs": copy_bytes(OUTLINE_BYTES * pairs["compared"]),
                "sets that are compared": copy_bytes(ELEMENT_BYTES * mean_elements(source) * read_sets),
            },
            "write": {"decoding pages": read(source), "encoding pages": encode(kept)},
        }
    return {name: {"stage": stages[name], **bounds[name]} for name in bounds}, pairs


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file."""
    return dict(json.loads(path.read_text(encoding="utf-8")))


def seconds(work: Callable[[], object]) -> float:
    """Return the wall time of a call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def read(source: Path) -> float:
    """Return the seconds to decode a file on all cores."""
    return seconds(lambda: pq.read_table(source))


def sketch(source: Path) -> float:
    """Return the seconds to compute the band keys of the texts in memory on all cores."""
    texts = pq.read_table(source, columns=["text"])["text"]
    settings = search_settings(resolve_options(DedupOptions, None, {"threshold": THRESHOLD, "shingle": SHINGLES}))
    bander, block = Bander(settings), KeyBlock.allocate(settings, len(texts))
    return seconds(lambda: [bander.band(chunk, block, len(os.sched_getaffinity(0))) for chunk in texts.chunks])


def mean_elements(source: Path) -> int:
    """Return the mean number of shingles of the first `SAMPLE` documents."""
    texts = pq.read_table(source, columns=["text"])["text"].slice(0, SAMPLE)
    return len(mw.Shingler(SHINGLES).shingle(texts).hashes) // len(texts)


def encode(kept: Path) -> float:
    """Return the seconds to encode a table on one core."""
    table = pq.read_table(kept)
    return seconds(lambda: pq.write_table(table, pa.BufferOutputStream(), compression="zstd"))


def copy_bytes(count: int) -> float:
    """Return the seconds to copy ``count`` bytes in memory on one core."""
    block, target = np.ones(BLOCK_BYTES, dtype=np.uint8), np.empty(BLOCK_BYTES, dtype=np.uint8)

    def copy() -> None:
        for done in range(0, count, BLOCK_BYTES):
            np.copyto(target[: count - done], block[: count - done])

    copy()
    return seconds(copy)


def best(name: str, rounds: list[dict[str, dict[str, float]]]) -> dict[str, Any]:
    """Return the minimum of every figure of a stage over the rounds."""
    least = {key: min(stages[name][key] for stages in rounds) for key in rounds[0][name]}
    taken = least.pop("stage")
    bound = max(least.values()) if name in PARALLEL else sum(least.values())
    return {"stage": name, "seconds": taken, "bounds": least, "times": taken / bound}


def cells(row: dict[str, Any]) -> list[str]:
    """Return the cells of a row of the table."""
    parts = " + ".join(f"{value:.2f}" for value in row["bounds"].values())
    return [row["stage"], f"{row['seconds']:.2f}", ", ".join(row["bounds"]), parts, f"{row['times']:.1f}"]


if __name__ == "__main__":
    main()
