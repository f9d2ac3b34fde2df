"""Record of a run of the speed benchmark."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.record_files import write_json
from benchmarks.speed.corpus import Corpus
from benchmarks.speed.report import figures, verdicts
from benchmarks.speed.sketching import Measurement


def write_record(measurements: Sequence[Measurement], corpora: Mapping[str, Corpus], settings: dict[str, int]) -> Path:
    """Write the record of a run and return its path."""
    content = {
        "versions": versions(measurements),
        "settings": settings,
        "corpora": {name: asdict(corpus) for name, corpus in corpora.items()},
        "measurements": [entry(measurement, measurements) for measurement in measurements],
    }
    return write_json(content, benchmark="speed")


def entry(measurement: Measurement, measurements: Sequence[Measurement]) -> dict[str, Any]:
    """Return a measurement with its figures, verdicts and all raw times."""
    summary = {
        "seconds": measurement.seconds,
        "megabytes_per_second": measurement.megabytes_per_second,
        "spread": measurement.spread,
    }
    return {
        **asdict(measurement.job),
        **summary,
        "figures": figures(measurement, measurements),
        "targets": verdicts(measurement, measurements),
        "runs": measurement.runs,
    }


def versions(measurements: Sequence[Measurement]) -> dict[str, str]:
    """Return the versions of Python and of every engine and its libraries."""
    found = {"python": platform.python_version()}
    for measurement in measurements:
        found |= measurement.runs[0]["versions"]
    return dict(sorted(found.items()))
