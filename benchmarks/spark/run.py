"""Process that applies one method to a corpus and prints the time that it took.

``python -m benchmarks.spark.run METHOD CORPUS WARM_UP FOLDER --bound SECONDS``: Spark is started, and the method is
applied twice to a small corpus, before the measurement. If it takes longer than the bound, the process ends and reports
that the method has not finished.
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
from benchmarks.spark.methods import METHODS
from benchmarks.spark.session import open_session

WARM_UPS = 2


def main() -> None:
    """Apply a method and print the measurement as JSON."""
    settings = parse_settings()
    session = open_session(settings.folder)
    method, files = METHODS[settings.method], file_names(settings.corpus)
    for number in range(WARM_UPS):
        method(session, file_names(settings.warm_up), settings.folder / f"warm-up-{number}")
    timer = threading.Timer(settings.bound, give_up, [settings.bound])
    timer.start()
    began = time.time()
    parts = method(session, files, settings.folder / "out")
    ended = time.time()
    timer.cancel()
    session.stop()
    measured = {"seconds": sum(parts.values()), "parts": parts, "began": began, "ended": ended}
    print(json.dumps({"finished": True, **measured}))


def parse_settings() -> argparse.Namespace:
    """Return the settings given on the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.run", description=__doc__)
    parser.add_argument("method", choices=sorted(METHODS))
    parser.add_argument("corpus", type=Path)
    parser.add_argument("warm_up", type=Path)
    parser.add_argument("folder", type=Path, help="directory of the output, the event log and temporary files")
    parser.add_argument("--bound", type=float, required=True, help="seconds")
    return parser.parse_args()


def file_names(folder: Path) -> list[str]:
    """Return the files of a corpus."""
    return sorted(map(str, folder.glob("part-*.parquet")))


def give_up(bound: float) -> None:
    """Kill the process and its children: Java would otherwise run on during the next measurement."""
    print(json.dumps({"finished": False, "seconds": bound, "parts": {}}), flush=True)
    for pid in list(family(os.getpid()))[1:]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main()
