"""Record: everything needed to judge a run later, as JSON named by date and processor."""

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
    """Write a run to the folder of records and return the file."""
    content = {
        "versions": versions(measurements),
        "settings": settings,
        "corpora": {name: asdict(corpus) for name, corpus in corpora.items()},
        "measurements": [entry(one, measurements) for one in measurements],
    }
    return write_json(content)


def entry(one: Measurement, every: Sequence[Measurement]) -> dict[str, Any]:
    """Return a measurement with its figures, its verdicts and all raw times."""
    summary = {"seconds": one.seconds, "megabytes_per_second": one.megabytes_per_second, "spread": one.spread}
    return {
        **asdict(one.job),
        **summary,
        "figures": figures(one, every),
        "targets": verdicts(one, every),
        "runs": one.runs,
    }


def versions(measurements: Sequence[Measurement]) -> dict[str, str]:
    """Return the versions of Python and of every engine and its libraries."""
    found = {"python": platform.python_version()}
    for one in measurements:
        found |= one.runs[0]["versions"]
    return dict(sorted(found.items()))
