"""Record: everything needed to judge a run later, as JSON named by date and processor."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from benchmarks.speed.corpus import Corpus
from benchmarks.speed.report import figures, verdicts
from benchmarks.speed.sketching import Measurement

FOLDER = Path(__file__).parents[1] / "record"


def write_record(measurements: Sequence[Measurement], corpora: Mapping[str, Corpus], settings: dict[str, int]) -> Path:
    """Write a run to `FOLDER` and return the file; a later run of the same day replaces an earlier one."""
    now = datetime.now(timezone.utc)
    path = FOLDER / f"{now:%Y-%m-%d}-{slug(processor())}.json"
    content = {
        "finished": now.isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(measurements),
        "settings": settings,
        "corpora": {name: asdict(corpus) for name, corpus in corpora.items()},
        "measurements": [entry(one, measurements) for one in measurements],
    }
    FOLDER.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


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


def machine() -> dict[str, str | int]:
    """Return processor, cores, memory and system."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cores = len(os.sched_getaffinity(0))
    return {
        "processor": processor(),
        "cores": cores,
        "memory_bytes": memory,
        "system": f"{platform.system()} {platform.machine()}",
    }


def processor() -> str:
    """Return the processor's name."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1] if found else platform.machine()


def slug(name: str) -> str:
    """Return a name fit for a file: lower case, hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
