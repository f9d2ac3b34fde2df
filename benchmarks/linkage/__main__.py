"""Entry point of ``python -m benchmarks.linkage``: measure how well records with typos are matched."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import minwise as mw
from benchmarks.linkage.data import FIELDS, THRESHOLD, WEIGHTS, read_people
from benchmarks.record_files import command_line, write_json
from benchmarks.targets import Target, align_rows

FEBRL = Path(__file__).parents[3] / "shared" / "data" / "er" / "febrl"
THRESHOLDS = (0.2, THRESHOLD, 0.3, 0.4)
TARGETS = (
    Target(figure="pairs completeness", wanted=0.99),
    Target(figure="reduction ratio", wanted=0.99),
)


def main() -> None:
    """Run the benchmark."""
    settings = parse_settings()
    if not settings.febrl.is_dir():
        sys.exit(f"{settings.febrl}: the Febrl datasets are missing; set --febrl DIR")
    runs = [run for number in (1, 2, 3) for run in measure(settings.febrl, number)]
    print(
        align_rows(
            [["dataset", "threshold", "completeness", "reduction", "quality", "seconds", "target"], *rows(runs)],
            text_columns=1,
        )
    )
    if settings.record:
        content = {"settings": {"fields": FIELDS, "weights": WEIGHTS, "threshold": THRESHOLD}, "runs": runs}
        print(f"written to {write_json(content, benchmark='linkage')}")


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = command_line("linkage", __doc__)
    parser.add_argument("--febrl", type=Path, default=FEBRL, help="directory of dataset1.csv to dataset3.csv")
    return parser.parse_args()


def measure(folder: Path, number: int) -> list[dict[str, Any]]:
    """Return the quality of the pairs of one dataset at every threshold, with bands and with an exact join."""
    people = read_people(folder, number)
    runs = []
    for threshold in THRESHOLDS:
        for exact in (False, True):
            options: dict[str, Any] = {"fields": FIELDS, "weights": WEIGHTS, "threshold": threshold, "exact": exact}
            with tempfile.TemporaryDirectory() as output:
                start = time.perf_counter()
                report = mw.write_pairs(people, f"{output}/p.csv", id_column="rec_id", truth="entity", **options)
                seconds = round(time.perf_counter() - start, 2)
            quality = report["blocking"]
            runs.append({"set": number, "threshold": threshold, "exact": exact, "seconds": seconds, **quality})
    return runs


def rows(runs: list[dict[str, Any]]) -> list[list[str]]:
    """Return a row for each run with bands, with the verdict on its targets."""
    lines = []
    for run in runs:
        if run["exact"]:
            continue
        figures = [f"{run[name]:.4f}" for name in ("pairs_completeness", "reduction_ratio", "pairs_quality")]
        values = (run["pairs_completeness"], run["reduction_ratio"])
        has_target = run["set"] == 1 and run["threshold"] == THRESHOLD
        verdict = "; ".join(target.verdict(value) for target, value in zip(TARGETS, values, strict=True))
        lines.append(
            [
                f"febrl{run['set']}",
                f"{run['threshold']}",
                *figures,
                f"{run['seconds']:.1f}",
                verdict if has_target else "",
            ]
        )
    return lines


if __name__ == "__main__":
    main()
