"""Run: a process of its own that goes one way with a corpus and says how long that took.

``python -m benchmarks.spark.run WAY CORPUS WARM_UP FOLDER --bound SECONDS``: Spark is started and a small corpus goes
the same way twice before the clock starts. If the clock reaches the bound, the process ends and says that it has not
finished.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import threading
import time
from pathlib import Path

from benchmarks.processes import family
from benchmarks.spark.session import open_session
from benchmarks.spark.ways import WAYS

WARM_UPS = 2


def main() -> None:
    """Go one way and print what came of it."""
    settings = parse_settings()
    session = open_session(settings.folder)
    way, files = WAYS[settings.way], file_names(settings.corpus)
    for number in range(WARM_UPS):
        way(session, file_names(settings.warm_up), settings.folder / f"warm-up-{number}")
    timer = threading.Timer(settings.bound, give_up, [settings.bound])
    timer.start()
    began = time.time()
    parts = way(session, files, settings.folder / "out")
    ended = time.time()
    timer.cancel()
    session.stop()
    told = {"seconds": sum(parts.values()), "parts": parts, "began": began, "ended": ended}
    print(json.dumps({"finished": True, **told}))


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.run", description=__doc__)
    parser.add_argument("way", choices=sorted(WAYS))
    parser.add_argument("corpus", type=Path)
    parser.add_argument("warm_up", type=Path)
    parser.add_argument("folder", type=Path, help="gets the output, the event log and what Spark spills")
    parser.add_argument("--bound", type=float, required=True, help="seconds")
    return parser.parse_args()


def file_names(folder: Path) -> list[str]:
    """Return the files of a corpus."""
    return sorted(map(str, folder.glob("part-*.parquet")))


def give_up(bound: float) -> None:
    """End the process and all it started: Java would otherwise go on while the next way is timed."""
    print(json.dumps({"finished": False, "seconds": bound, "parts": {}}), flush=True)
    for pid in list(family(os.getpid()))[1:]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main()
