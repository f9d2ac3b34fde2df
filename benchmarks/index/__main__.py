"""Entry point of ``python -m benchmarks.index``: prepare, measure, print the table and write the record."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.environments import peer_python
from benchmarks.processes import run_self_timed
from benchmarks.record_files import command_line, write_json
from benchmarks.speed.corpus import cache_dir, prepare_corpus
from benchmarks.targets import Target, figure_table

MEGABYTES = 400
TARGETS = {
    target.figure: target
    for target in (
        Target(figure="documents/s, sketches, 1M", wanted=50_000),
        Target(figure="documents/s, sketches, 10M", wanted=50_000),
        Target(figure="10M: seconds per document relative to 1M", wanted=1.2, at_most=True),
        Target(figure="bytes per document", wanted=400, at_most=True),
        Target(figure="10M: query p50, ms", wanted=0.5, at_most=True),
        Target(figure="10M: query p99, ms", wanted=1.0, at_most=True),
        Target(figure="10M: resident MB", wanted=300, at_most=True),
        Target(figure="1M: open, ms", wanted=250, at_most=True),
        Target(figure="10M: removals/s", wanted=50_000),
        Target(figure="texts: speedup over datasketch in memory", wanted=20),
        Target(figure="texts: query p50 relative to datasketch", wanted=1, at_most=True),
        Target(figure="durable addition relative to fsync", wanted=2, at_most=True),
    )
}

Measured = dict[str, Any]


def main() -> None:
    """Run the benchmark."""
    settings = parse_settings()
    corpus = prepare_corpus("short", MEGABYTES)
    with tempfile.TemporaryDirectory(prefix="index-", dir=cache_dir()) as name:
        folder = Path(name)
        single = [run("single", str(corpus.path), str(new_directory(folder))) for _ in range(settings.rounds)]
        texts = compare_texts(corpus.path, settings.texts, folder, settings.rounds)
        growth = {str(count): grow(count, corpus.path, folder) for count in settings.documents}
    found = figures(single, texts, growth)
    print(f"\n{figure_table(found, TARGETS)}")
    if settings.record:
        content = {
            "settings": vars(settings),
            "corpus": asdict(corpus),
            "single": single,
            "texts": texts,
            "growth": growth,
            "figures": found,
        }
        print(f"written to {write_json(content, benchmark='index')}")


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = command_line("index", __doc__)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each small part (default 3)")
    parser.add_argument("--texts", type=int, default=20_000, help="texts added to both indexes")
    parser.add_argument(
        "--documents", type=int, nargs="+", default=[1_000_000, 10_000_000], help="sizes to which an index grows"
    )
    return parser.parse_args()


def run(part: str, *words: str, python: str = sys.executable) -> Measured:
    """Run a part in its own process and return its result with peak memory and load of the machine."""
    measured = run_self_timed([python, "-m", f"benchmarks.index.{part}", *words])
    shown = {name: value for name, value in measured.items() if not isinstance(value, list)}
    print(part, *words[:1], json.dumps(shown), flush=True)
    return measured


def new_directory(folder: Path) -> Path:
    """Create a new directory and return it."""
    return Path(tempfile.mkdtemp(dir=folder))


def compare_texts(path: Path, documents: int, folder: Path, rounds: int) -> dict[str, list[Measured]]:
    """Add the same texts to an index of minwise and of datasketch, alternately."""
    pythons = {"minwise": sys.executable, "datasketch": str(peer_python("datasketch"))}
    measured: dict[str, list[Measured]] = {name: [] for name in pythons}
    for _ in range(rounds):
        for name, python in pythons.items():
            words = (name, str(path), str(documents), str(new_directory(folder)))
            measured[name].append(run("texts", *words, python=python))
    return measured


def grow(documents: int, path: Path, folder: Path) -> dict[str, Measured]:
    """Fill an index to a size, then open and use it."""
    index = str(new_directory(folder) / "index.mw")
    built = run("growth", "build", index, str(documents), str(path))
    return {"build": built, "use": run("growth", "use", index, str(path))}


def least(runs: list[Measured], name: str) -> float:
    """Return the figure of the best round; everything above it is noise of the machine."""
    return float(min(run[name] for run in runs))


def figures(
    single: list[Measured], texts: dict[str, list[Measured]], growth: dict[str, dict[str, Measured]]
) -> dict[str, float]:
    """Return the figures that have targets."""
    ours, theirs = texts["minwise"], texts["datasketch"]
    found = {
        "durable addition relative to fsync": median(run["add_p50"] / run["sync_p50"] for run in single),
        "texts: speedup over datasketch in memory": least(theirs, "seconds") / least(ours, "seconds"),
        "texts: query p50 relative to datasketch": least(ours, "query_p50") / least(theirs, "query_p50"),
    }
    small, large = (growth.get(str(count)) for count in (1_000_000, 10_000_000))
    if small:
        found["documents/s, sketches, 1M"] = small["build"]["documents"] / small["build"]["seconds"]
        found["1M: open, ms"] = 1e3 * small["use"]["open_seconds"]
    if large:
        found |= {
            "documents/s, sketches, 10M": large["build"]["documents"] / large["build"]["seconds"],
            "bytes per document": large["build"]["bytes_per_document"],
            "10M: query p50, ms": 1e3 * large["use"]["query_p50"],
            "10M: query p99, ms": 1e3 * large["use"]["query_p99"],
            "10M: resident MB": large["use"]["resident_bytes"] / 1e6,
            "10M: removals/s": large["use"]["removed_per_second"],
        }
    if small and large:
        rates = [size["build"]["seconds"] / size["build"]["documents"] for size in (small, large)]
        found["10M: seconds per document relative to 1M"] = rates[1] / rates[0]
    return found


if __name__ == "__main__":
    main()
