"""Record files: the results of a benchmark run with the machine and the versions, as JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "record"


def command_line(benchmark: str, description: str | None) -> argparse.ArgumentParser:
    """Return the argument parser of a benchmark, with an option to write no record."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{benchmark}", description=description)
    parser.add_argument("--no-record", dest="record", action="store_false", help="only print the results")
    return parser


def write_json(content: dict[str, Any], *, benchmark: str) -> Path:
    """Write a record to `FOLDER` and return its path; a later run of the same day replaces an earlier one.

    Args:
        content: Measurements. The time, the machine and the versions of minwise and its libraries are added.
        benchmark: Name of the benchmark, with which the file name starts.
    """
    now = datetime.now(timezone.utc)
    path = FOLDER / f"{benchmark}-{now:%Y-%m-%d}-{slug(processor())}.json"
    FOLDER.mkdir(exist_ok=True)
    versions = {name: version(name) for name in ("minwise", "numpy", "pyarrow")} | {"python": platform.python_version()}
    whole = {"finished": now.isoformat(timespec="seconds"), "machine": machine(), **content}
    whole["versions"] = {**versions, **content.get("versions", {})}
    path.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


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
    """Return the name of the processor."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1] if found else platform.machine()


def slug(name: str) -> str:
    """Return a name in lower case with hyphens, for file names."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
