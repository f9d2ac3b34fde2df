"""Command ``python -m benchmarks.server``: load a server with wrk, print the table and write the record."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from benchmarks.processes import run_self_timed
from benchmarks.record_files import command_line, write_json
from benchmarks.server.load import CONNECTIONS, Measured, Served, serving
from benchmarks.server.prepare import Prepared, prepare
from benchmarks.speed.corpus import cache_dir
from benchmarks.targets import Target, figure_table

# Documents of one request in the batch load.
BATCH = 100
# Queries whose answers are checked before the load.
CHECKED_QUERIES = 200
TARGETS = {
    target.figure: target
    for target in (
        Target(figure="query: requests/s", wanted=2_000),
        Target(figure="query: p99, ms", wanted=20, at_most=True),
        Target(figure="add: durable documents/s", wanted=1_000),
    )
}
# Kinds of load: health checks, queries, queries with passages, single additions, batches of additions.
KINDS = ("healthz", "query", "passages", "add", "batch")
# Approximate bytes that adding a text of 2 kB appends to the log, and the number of syncs that are measured.
APPENDED_BYTES, SYNCS = 3 * 4096, 300
# Longer than any request takes.
SETTLING_SECONDS = 1.5

Rounds = dict[str, list[Measured]]


def main() -> None:
    """Run the benchmark."""
    settings = parse_settings()
    plain, texts = prepare(settings.documents, "shingles"), prepare(settings.texts, "text")
    rounds: Rounds = {name: [] for name in KINDS}
    kernel = [run_kernel(plain) for _ in range(settings.rounds)]
    with copied(texts.index) as index:
        memory = {"passages": run_queries(index, texts, settings, rounds, "passages")}
    with copied(plain.index) as index:
        memory["query"] = run_queries(index, plain, settings, rounds, "query")
        memory["add"] = run_additions(index, plain, settings, rounds)
    figures = figures_of(rounds)
    print(f"\n{figure_table(figures, TARGETS)}")
    if settings.record:
        content = {
            "settings": {**vars(settings), "connections": CONNECTIONS, "batch": BATCH},
            "wrk": wrk_version(),
            "kernel": kernel,
            "rounds": rounds,
            "memory": memory,
            "figures": figures,
        }
        print(f"written to {write_json(content, benchmark='server')}")


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = command_line("server", __doc__)
    parser.add_argument("--rounds", type=int, default=3, help="number of loads of each kind (default 3)")
    parser.add_argument("--seconds", type=float, default=10, help="duration of each load (default 10)")
    parser.add_argument(
        "--documents", type=int, default=1_000_000, help="documents in the index of queries and additions"
    )
    parser.add_argument("--texts", type=int, default=100_000, help="documents in the index that stores texts")
    return parser.parse_args()


def run_kernel(prepared: Prepared) -> Measured:
    """Return the rates of the same queries without a server."""
    words = [str(prepared.index), str(prepared.questions)]
    measured: Measured = run_self_timed([sys.executable, "-m", "benchmarks.server.kernel", *words])
    print("kernel", json.dumps(measured), flush=True)
    return measured


def run_queries(index: Path, prepared: Prepared, settings: argparse.Namespace, rounds: Rounds, name: str) -> Measured:
    """Load a server with queries, alternating with health checks; return its memory."""
    with serving(index) as server:
        check_answers(server, prepared)
        server.load(settings.seconds / 2, "query", str(prepared.questions))  # warm-up
        for _ in range(settings.rounds):
            if name == "query":
                note(rounds, "healthz", server.load(settings.seconds / 2, "get", "/healthz"))
            note(rounds, name, server.load(settings.seconds, "query", str(prepared.questions)))
        return server.memory()


def run_additions(index: Path, prepared: Prepared, settings: argparse.Namespace, rounds: Rounds) -> Measured:
    """Load a server with new documents, single and in batches; check that all acknowledged ones are stored."""
    with serving(index) as server:
        for number in range(settings.rounds):
            for name, count in (("add", 1), ("batch", BATCH)):
                before = settled_documents(server)
                words = (str(prepared.pieces), f"{name}-{number}-", str(count))
                sync = sync_seconds(index.parent)
                measured = server.load(settings.seconds, "add", *words)
                stored = settled_documents(server) - before
                unacknowledged = stored - measured["requests"] * count
                if not 0 <= unacknowledged <= CONNECTIONS * count:  # those in flight when wrk disconnected
                    raise SystemExit(f"{measured['requests']} x {count} documents acknowledged, {stored} stored")
                figures = {"documents_per_second": measured["per_second"] * count, "stored": stored, "sync_p50": sync}
                note(rounds, name, {**measured, **figures})
        return server.memory()


def settled_documents(server: Served) -> int:
    """Return the number of documents after the requests in flight at the end of the load are done."""
    count, before = -1, -2
    while count != before:
        time.sleep(SETTLING_SECONDS)
        count, before = int(server.ask("/v1/stats")["documents"]), count
    return count


def sync_seconds(folder: Path) -> float:
    """Return the median duration of a sync of the disk."""
    times = []
    file = os.open(folder / "synced", os.O_WRONLY | os.O_CREAT)
    for number in range(SYNCS):
        os.pwrite(file, os.urandom(APPENDED_BYTES), number * APPENDED_BYTES)
        start = time.perf_counter()
        os.fsync(file)
        times.append(time.perf_counter() - start)
    os.close(file)
    return median(times)


def note(rounds: Rounds, name: str, measured: Measured) -> None:
    """Record and print a load; stop if it has errors."""
    errors = {kind: count for kind, count in measured.items() if kind.endswith("_errors") and count}
    if errors:
        raise SystemExit(f"{name}: {errors}")
    rounds[name].append({**measured, "load": os.getloadavg()[0]})
    print(name, json.dumps(rounds[name][-1]), flush=True)


def check_answers(server: Served, prepared: Prepared) -> None:
    """Stop if near-copies are not found or new texts have hits: the benchmark would measure something else."""
    found = [bool(server.ask("/v1/query", {"text": text})["hits"]) for text in prepared.asked()[:CHECKED_QUERIES]]
    if sum(found[::2]) < 0.9 * len(found[::2]) or any(found[1::2]):
        raise SystemExit(
            f"{sum(found[::2])} of {len(found[::2])} near-copies have hits, and {sum(found[1::2])} new texts"
        )


@contextmanager
def copied(index: Path) -> Iterator[Path]:
    """Provide a copy of an index that may be changed."""
    with tempfile.TemporaryDirectory(prefix="server-", dir=cache_dir()) as folder:
        copy = Path(shutil.copytree(index, Path(folder) / index.name))
        os.sync()  # so that writing the copy is not measured
        yield copy


def figures_of(rounds: Rounds) -> dict[str, float]:
    """Return the figures that have targets: medians of the rounds."""
    return {
        "query: requests/s": median(load["per_second"] for load in rounds["query"]),
        "query: p99, ms": 1e3 * median(load["p99"] for load in rounds["query"]),
        "add: durable documents/s": median(load["documents_per_second"] for load in rounds["add"]),
    }


def wrk_version() -> str:
    """Return the version of wrk."""
    output = subprocess.run(["wrk", "-v"], capture_output=True, encoding="utf-8", check=False).stdout
    found = re.search(r"wrk (?:debian/)?(\S+)", output)
    return found[1] if found else "unknown"


if __name__ == "__main__":
    main()
