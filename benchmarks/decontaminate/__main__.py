"""Measure a decontamination on a corpus of real text: ``python -m benchmarks.decontaminate``.

One row of ten is taken out of the corpus, and the items are cut from these rows: questions of 8 to 60 words. The rest
is the training corpus. Measured are the bytes of text that the kernel scans per CPU second, the memory of the table,
and for some thresholds how many planted items and how many controls are hits.

The corpus has near-copies, so these items may be in its other rows. For wrong hits, items of the same lengths are cut
from news, which programs and their documentation cannot contain: every flagged row is wrong.
"""

import argparse
import random
import resource
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import minwise as mw
from benchmarks.quality.corpora import DATA, read_documents
from benchmarks.record_files import command_line, write_json
from benchmarks.speed.corpus import prepare_corpus
from benchmarks.targets import Target, figure_table
from minwise import _kernel
from minwise.inputs import Files
from minwise.search.contamination import item_table, scan_chunk
from minwise.search.contamination_audit import PLANTED

WORDS = (8, 60)
KERNEL = Target(figure="MB of text per CPU second of the kernel", wanted=300)
SHARES = (0.01, 0.05, 0.1, 0.3, 0.5, 0.8)
FOREIGN = DATA / "text" / "articles_2500"
Figures = dict[str, Any]


def cpu_seconds() -> float:
    """Return the CPU time of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def cut_items(texts: list[str], count: int) -> list[str]:
    """Return pieces of texts."""
    generator = random.Random(1)
    items: list[str] = []
    while len(items) < count:
        words = generator.choice(texts)[:20_000].split()
        length = generator.randint(*WORDS)
        if len(words) >= length:
            start = generator.randrange(len(words) - length + 1)
            items.append(" ".join(words[start : start + length]))
    return items


def main() -> None:
    """Run the benchmark."""
    settings = parse_settings()
    corpus = prepare_corpus("source", settings.megabytes)
    texts = pq.read_table(corpus.path, columns=["text"]).column("text").to_pylist()
    items = cut_items(texts[::10], settings.items)
    train = [text for number, text in enumerate(texts) if number % 10]
    table = item_table(mw.Shingler("word:1"), 13, pa.array(items, pa.large_string()))
    scans = [scan_seconds(table, train) for _ in range(settings.rounds)]
    size = sum(len(text.encode()) for text in train)
    figures = {KERNEL.figure: size / 1e6 / min(scans)}
    of_table = {"items": len(items), "grams": table.grams, "bytes": table.nbytes}
    print(f"{size / 1e6:,.0f} MB of {corpus.note}; table: {table.nbytes / 1e6:.1f} MB for {table.grams:,} n-grams")
    print(figure_table(figures, {KERNEL.figure: KERNEL}))
    with TemporaryDirectory() as name:
        path = Path(name) / "train.parquet"
        pq.write_table(pa.table({"text": train}), path)
        shares = [measure_share(path, items, share) for share in SHARES]
        foreign = measure_foreign(path, settings.items) if FOREIGN.is_dir() else []
    if settings.record:
        runs = {
            "scan_cpu_seconds": scans,
            "text_bytes": size,
            "table": of_table,
            "min_share": shares,
            "foreign": foreign,
        }
        content = {"settings": vars(settings), "corpus": asdict(corpus), "runs": runs, "figures": figures}
        print(f"written to {write_json(content, benchmark='decontaminate')}")


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = command_line("decontaminate", __doc__)
    parser.add_argument("--rounds", type=int, default=5, help="scans of the kernel, of which the best counts")
    parser.add_argument("--megabytes", type=int, default=300, help="size of the corpus")
    parser.add_argument("--items", type=int, default=20_000, help="evaluation items")
    return parser.parse_args()


def scan_seconds(table: "_kernel.ItemTable", train: list[str]) -> float:
    """Return the CPU seconds of the kernel, on one thread."""
    values = pa.array(train, pa.large_string())
    began = cpu_seconds()
    scan_chunk(table, values, 1)
    return cpu_seconds() - began


def measure_foreign(path: Path, count: int) -> list[Figures]:
    """Return the rows that are flagged for items of news, all of them wrongly, for each threshold."""
    items, runs = cut_items(read_documents(FOREIGN)[1], count), []
    for share in SHARES:
        counts = mw.decontaminate(Files([str(path)]), items, min_share=share).report["counts"]
        runs.append({"min_share": share, "flagged": counts["contaminated"], "rows": counts["documents"]})
        print("  ".join(f"{name} {value}" for name, value in runs[-1].items()), flush=True)
    return runs


def share_rows(record: Figures) -> Iterator[tuple[str, ...]]:
    """Yield a row for each threshold of a record: recall by edits, wrong hits, and flagged rows."""
    rows = record["corpus"]["documents"] - len(range(0, record["corpus"]["documents"], 10))
    foreign = {run["min_share"]: f"{run['flagged']} of {run['rows']:,}" for run in record["runs"]["foreign"]}
    for run in record["runs"]["min_share"]:
        recall = (f"{value:.0%}".replace("%", " %") for value in run["recall"][1:])
        controls, flagged = f"{run['controls']} of {PLANTED}", f"{run['rows']:,} of {rows:,}"
        yield f"{run['min_share']:g}", *recall, controls, foreign[run["min_share"]], flagged


def measure_share(path: Path, items: list[str], share: float) -> Figures:
    """Return recall by kind of copy, controls that are hits, contaminated rows and seconds, for one threshold."""
    began, cpu = time.monotonic(), cpu_seconds()
    report = mw.decontaminate(Files([str(path)]), items, min_share=share, audit=True).report
    found = {
        "min_share": share,
        "recall": [kind["value"] for kind in report["audit"]["recall"]],
        "controls": report["audit"]["precision"]["flagged"],
        "rows": report["counts"]["contaminated"],
        "seconds": round(time.monotonic() - began, 2),
        "cpu_seconds": round(cpu_seconds() - cpu, 2),
    }
    print("  ".join(f"{name} {value}" for name, value in found.items()), flush=True)
    return found


if __name__ == "__main__":
    main()
