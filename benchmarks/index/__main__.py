"""Entry point of ``python -m benchmarks.index``: prepare, measure, print the table and write the record."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.environments import peer_python
from benchmarks.peers.passages import MAX_DOCUMENTS, prepare_passages
from benchmarks.processes import run_self_timed
from benchmarks.record_files import command_line, write_json
from benchmarks.speed.corpus import Corpus, cache_dir, prepare_corpus
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
        Target(figure="passages: first round, p50, ms", wanted=0.5, at_most=True),
        Target(figure="passages: first round, p99, ms", wanted=5, at_most=True),
        Target(figure="passages: second round, p50, ms", wanted=0.5, at_most=True),
        Target(figure="passages: second round, p99, ms", wanted=5, at_most=True),
        Target(figure="passages: answers cut short, %", wanted=0.1, at_most=True),
        Target(figure="passages: recall of top 10, %", wanted=99),
        Target(figure="passages: recall of top 1000, %", wanted=99),
    )
}

Measured = dict[str, Any]


def main() -> None:
    """Run the benchmark."""
    settings = parse_settings()
    with tempfile.TemporaryDirectory(prefix="index-", dir=cache_dir()) as folder:
        measured = {part: PARTS[part](settings, Path(folder)) for part in settings.parts}
    found = figures(measured)
    print(f"\n{figure_table(found, TARGETS)}")
    if settings.record:
        content = {"settings": vars(settings), "corpora": corpora(settings), **measured, "figures": found}
        # The pages show the newest record of all parts; that of some parts has their names.
        name = "index" if settings.parts == [*PARTS] else "-".join(settings.parts)
        print(f"written to {write_json(content, benchmark=name)}")


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = command_line("index", __doc__)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each small part (default 3)")
    parser.add_argument("--texts", type=int, default=20_000, help="texts added to both indexes")
    parser.add_argument(
        "--documents", type=int, nargs="+", default=[1_000_000, 10_000_000], help="sizes to which an index grows"
    )
    parser.add_argument("--passages", type=int, default=MAX_DOCUMENTS, help="passages of real text to query")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=[*PARTS], help="parts to run (default all)")
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


def short_texts() -> Corpus:
    """Return passages of about 2 kB."""
    return prepare_corpus("short", MEGABYTES)


def corpora(settings: argparse.Namespace) -> list[dict[str, Any]]:
    """Return descriptions of the corpora that the parts read."""
    passages = [prepare_passages(settings.passages)] if "passages" in settings.parts else []
    short = [short_texts()] if set(settings.parts) - {"passages"} else []
    return [asdict(corpus) for corpus in (*short, *passages)]


def add_single(settings: argparse.Namespace, folder: Path) -> list[Measured]:
    """Add single documents durably."""
    return [run("single", str(short_texts().path), str(new_directory(folder))) for _ in range(settings.rounds)]


def compare_texts(settings: argparse.Namespace, folder: Path) -> dict[str, list[Measured]]:
    """Add the same texts to an index of minwise and of datasketch, alternately."""
    pythons = {"minwise": sys.executable, "datasketch": str(peer_python("datasketch"))}
    measured: dict[str, list[Measured]] = {name: [] for name in pythons}
    for _ in range(settings.rounds):
        for name, python in pythons.items():
            words = (name, str(short_texts().path), str(settings.texts), str(new_directory(folder)))
            measured[name].append(run("texts", *words, python=python))
    return measured


def grow(settings: argparse.Namespace, folder: Path) -> dict[str, dict[str, Measured]]:
    """Fill an index to each size, then open and use it."""
    measured, path = {}, str(short_texts().path)
    for documents in settings.documents:
        index = str(new_directory(folder) / "index.mw")
        built = run("growth", "build", index, str(documents), path)
        measured[str(documents)] = {"build": built, "use": run("growth", "use", index, path)}
    return measured


def query_passages(settings: argparse.Namespace, folder: Path) -> dict[str, Measured]:
    """Fill an index with passages of real text, then query it for some of them."""
    corpus, index = prepare_passages(settings.passages), str(new_directory(folder) / "index.mw")
    return {job: run("passages", job, index, str(corpus.path)) for job in ("build", "use")}


PARTS: dict[str, Callable[[argparse.Namespace, Path], Any]] = {
    "single": add_single,
    "texts": compare_texts,
    "growth": grow,
    "passages": query_passages,
}


def least(runs: list[Measured], name: str) -> float:
    """Return the figure of the best round; everything above it is noise of the machine."""
    return float(min(run[name] for run in runs))


def figures(measured: Measured) -> dict[str, float]:
    """Return the figures of the parts that were run, which have targets."""
    functions: dict[str, Callable[[Any], dict[str, float]]] = {
        "single": single_figures,
        "texts": text_figures,
        "growth": growth_figures,
        "passages": passage_figures,
    }
    found: dict[str, float] = {}
    for part, runs in measured.items():
        found |= functions[part](runs)
    return found


def single_figures(single: list[Measured]) -> dict[str, float]:
    """Return the figure of single additions."""
    return {"durable addition relative to fsync": median(run["add_p50"] / run["sync_p50"] for run in single)}


def text_figures(texts: dict[str, list[Measured]]) -> dict[str, float]:
    """Return the figures relative to datasketch."""
    ours, theirs = texts["minwise"], texts["datasketch"]
    return {
        "texts: speedup over datasketch in memory": least(theirs, "seconds") / least(ours, "seconds"),
        "texts: query p50 relative to datasketch": least(ours, "query_p50") / least(theirs, "query_p50"),
    }


def growth_figures(growth: dict[str, dict[str, Measured]]) -> dict[str, float]:
    """Return the figures of a million and of ten million documents."""
    found: dict[str, float] = {}
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


def passage_figures(passages: dict[str, Measured]) -> dict[str, float]:
    """Return the figures of queries for passages; a round is the first or second one after opening the index."""
    use = passages["use"]
    return {
        "passages: first round, p50, ms": 1e3 * use["first_p50"],
        "passages: first round, p99, ms": 1e3 * use["first_p99"],
        "passages: second round, p50, ms": 1e3 * use["warm_p50"],
        "passages: second round, p99, ms": 1e3 * use["warm_p99"],
        "passages: answers cut short, %": 100 * use["first_truncated"],
        "passages: recall of top 10, %": 100 * use["recall_10"],
        "passages: recall of top 1000, %": 100 * use["recall_1000"],
    }


if __name__ == "__main__":
    main()
