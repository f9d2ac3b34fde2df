"""Entry point of ``python -m benchmarks.speed``: prepare, measure, print the table and write the record."""

from __future__ import annotations

import argparse

from benchmarks.environments import peer_python
from benchmarks.record_files import command_line
from benchmarks.speed.corpus import NAMES, Corpus, CorpusUnavailableError, prepare_corpus
from benchmarks.speed.jobs import PEERS, all_jobs
from benchmarks.speed.record import write_record
from benchmarks.speed.report import table
from benchmarks.speed.sketching import measure

ENGINES = ("minwise", "parquet", *PEERS)


def main() -> None:
    """Run the benchmark."""
    settings = parse_settings()
    corpora = prepare_corpora(settings.corpora, settings.megabytes)
    for engine in set(settings.engines) & set(PEERS):
        peer_python(engine)  # environments are created before the first measurement
    jobs = [job for job in all_jobs() if job.engine in settings.engines]
    sample_bytes = settings.sample_megabytes * 1_000_000
    measurements = measure(jobs, corpora, rounds=settings.rounds, sample_bytes=sample_bytes)
    print(f"\n{table(measurements)}\n")
    sizes = {"rounds": settings.rounds, "megabytes": settings.megabytes, "sample_megabytes": settings.sample_megabytes}
    everything = set(settings.engines) == set(ENGINES) and set(settings.corpora) == set(NAMES)
    if settings.record and everything:  # a partial run must not replace the record of the day
        print(f"written to {write_record(measurements, corpora, sizes)}")


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = command_line("speed", __doc__)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each job (default 3)")
    parser.add_argument("--megabytes", type=int, default=400, help="size of the corpus source (default 400)")
    parser.add_argument(
        "--sample-megabytes", type=int, default=128, help="size of the sample of it for the peers (default 128)"
    )
    parser.add_argument("--corpora", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    return parser.parse_args()


def prepare_corpora(names: list[str], megabytes: int) -> dict[str, Corpus]:
    """Return the available corpora, and print which are not available."""
    corpora: dict[str, Corpus] = {}
    for name in names:
        try:
            corpora[name] = prepare_corpus(name, megabytes)
        except CorpusUnavailableError as problem:
            print(f"SKIPPED {name}: {problem}")
            continue
        found = corpora[name]
        size = (
            f"{found.documents:,} documents, {found.text_bytes / 1e6:.0f} MB, {found.mean_bytes:,.0f} bytes on average"
        )
        print(f"{name}: {size}; {found.note}")
    return corpora


if __name__ == "__main__":
    main()
