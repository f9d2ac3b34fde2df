"""Other similarities beside the plain one: ``python -m benchmarks.exact.measures`` compares dedup with itself.

Containment is measured on whole files, and ``--discount common`` on the million passages of the peers. Both commands of
a comparison read the same corpus with their defaults, alternately. The ratio is of processor seconds, which depend less
on what else the machine does than wall time.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers.passages import prepare_passages
from benchmarks.processes import run_measured
from benchmarks.record_files import command_line, write_json
from benchmarks.speed.corpus import Corpus, cache_dir, prepare_corpus
from benchmarks.targets import Target, align_rows, figure_table

Runs = dict[str, list[dict[str, Any]]]
PLAIN = "plain"


@dataclass(frozen=True)
class Comparison:
    """A similarity that is compared with the plain one.

    Attributes:
        name: Its name.
        options: Options of ``minwise dedup``.
        corpus: Returns the corpus.
    """

    name: str
    options: tuple[str, ...]
    corpus: Callable[[argparse.Namespace], Corpus]

    @property
    def targets(self) -> dict[str, Target]:
        """Figures with an aim."""
        return {
            figure: Target(figure=figure, wanted=2, at_most=True)
            for figure in (f"{self.name}: times the processor seconds", f"{self.name}: times the memory")
        }


COMPARISONS = (
    Comparison("containment", ("--measure", "containment"), lambda given: prepare_corpus("source", given.megabytes)),
    Comparison("discount", ("--discount", "common"), lambda given: prepare_passages(given.passages)),
)


def main() -> None:
    """Run the benchmark."""
    settings = parse_settings()
    results, figures, targets = dict[str, Any](), dict[str, float](), dict[str, Target]()
    for comparison in (one for one in COMPARISONS if one.name in settings.only):
        corpus = comparison.corpus(settings)
        runs = measure(comparison, corpus, settings)
        figures |= dict(zip(comparison.targets, ratios(runs, comparison.name), strict=True))
        targets |= comparison.targets
        results[comparison.name] = {"corpus": asdict(corpus), "runs": runs}
        print(f"\n{corpus.documents:,} documents, {corpus.text_bytes / 1e6:,.0f} MB of {corpus.note}")
        header = ("similarity", "seconds", "processor s", "peak MB", "removed")
        print(align_rows([header, *(row(name, done) for name, done in runs.items())], text_columns=1))
    print(f"\n{figure_table(figures, targets)}")
    if settings.record:
        content = {"settings": vars(settings), **results, "figures": figures}
        print(f"written to {write_json(content, benchmark='measures')}")


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = command_line("exact.measures", __doc__)
    names = [comparison.name for comparison in COMPARISONS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="comparisons to run")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each command (default 3)")
    parser.add_argument("--megabytes", type=int, default=1300, help="size of the corpus of whole files")
    parser.add_argument(
        "--passages", type=int, default=1_000_000, help="passages: a million, or one in ten or a hundred"
    )
    parser.add_argument("--memory", help="memory limit of all commands (default: theirs)")
    return parser.parse_args()


def measure(comparison: Comparison, corpus: Corpus, settings: argparse.Namespace) -> Runs:
    """Run both commands alternately."""
    runs: Runs = {PLAIN: [], comparison.name: []}
    with tempfile.TemporaryDirectory(prefix="measures-", dir=cache_dir()) as folder:
        for _ in range(settings.rounds):
            for name, done in runs.items():
                options = () if name == PLAIN else comparison.options
                done.append(run_dedup(options, corpus.path, Path(folder) / "kept", settings.memory))
                print("  ".join(row(name, done[-1:])), flush=True)
    return runs


def run_dedup(options: tuple[str, ...], source: Path, output: Path, memory: str | None) -> dict[str, Any]:
    """Run dedup and return time, memory and the number of removed rows."""
    given = [*options, "--overwrite", "--json", *(["--memory", memory] if memory else [])]
    run = run_measured([sys.executable, "-m", "minwise", "dedup", str(source), "-o", str(output), *given])
    removed = run.result("dedup")["counts"]["removed"]
    shutil.rmtree(output)
    measured = {"seconds": run.seconds, "cpu_seconds": run.cpu_seconds, "peak_bytes": run.peak_bytes, "load": run.load}
    return {**measured, "removed": removed}


def ratios(runs: Runs, name: str) -> tuple[float, float]:
    """Return the ratio of the best processor seconds, and that of the largest memory."""
    cpu = {one: min(run["cpu_seconds"] for run in done) for one, done in runs.items()}
    peak = {one: max(run["peak_bytes"] for run in done) for one, done in runs.items()}
    return cpu[name] / cpu[PLAIN], peak[name] / peak[PLAIN]


def row(name: str, runs: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return the cells of a command: its best round, and its largest memory."""
    seconds, cpu = (f"{min(run[figure] for run in runs):.2f}" for figure in ("seconds", "cpu_seconds"))
    peak = max(run["peak_bytes"] for run in runs)
    return name, seconds, cpu, f"{peak / 1e6:,.0f}", f"{runs[0]['removed']:,}"


if __name__ == "__main__":
    main()
