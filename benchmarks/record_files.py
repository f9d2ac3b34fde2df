"""Recording: where results are kept, and on which machine they were had."""

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
    """Return the command line of a benchmark, which can be told to record nothing."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{benchmark}", description=description)
    parser.add_argument("--no-record", dest="record", action="store_false", help="print only")
    return parser


def write_json(content: dict[str, Any], *, benchmark: str = "") -> Path:
    """Write a run to `FOLDER` and return the file; a later run of the same day replaces an earlier one.

    Args:
        content: What was measured; the time and the machine are put before it, and our own versions among its own.
        benchmark: What the file's name starts with; nothing for the speed of sketching.
    """
    now = datetime.now(timezone.utc)
    name = "-".join(part for part in (benchmark, f"{now:%Y-%m-%d}", slug(processor())) if part)
    path = FOLDER / f"{name}.json"
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
