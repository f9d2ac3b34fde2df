"""Run facts: a run in; what differs from run to run out, which is therefore in run.json and not in report.json."""

import os
import resource
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from minwise import _kernel
from minwise.engines.found import Found
from minwise.progress import Stopwatch

__all__ = ["RunFacts"]


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is known of a run beside its result.

    Attributes:
        watch: When it began, and how long its stages took.
        directory: Where it ran: relative names of inputs begin there.
        inputs: What changes when an input does, for each that is not only compared against, as of its beginning.
        memory_before: The most memory that the process had held when the run began: not all that it holds is the run's.
    """

    watch: Stopwatch
    directory: str
    inputs: list[dict[str, object]]
    memory_before: int

    @classmethod
    def begin(cls, inputs: list[dict[str, object]], watch: Stopwatch) -> "RunFacts":
        """The facts of a run that has read nothing yet: an input that changes from now on is not the one it read."""
        return cls(watch, str(Path.cwd()), inputs, _peak_memory_bytes())

    def go_on(self) -> "RunFacts":
        """The same run, which now does something more."""
        return replace(self, watch=self.watch.go_on())

    def to_dict(self, found: Found) -> dict[str, Any]:
        """Plain values, as of now."""
        corpus, limits = found.documents.corpus, found.limits
        return {
            "minwise": _kernel.VERSION,
            "started": self.watch.started.isoformat(timespec="seconds"),
            "seconds": round(self.watch.seconds, 3),
            "resumed": found.work.resumed,
            "stages": [{"stage": name, "seconds": round(seconds, 3)} for name, seconds in self.watch.stages],
            "peak_memory_bytes": _peak_memory_bytes(),
            "peak_memory_before_bytes": self.memory_before,
            "memory_limit_bytes": limits.memory,
            "threads": limits.threads or os.cpu_count() or 1,
            "directory": self.directory,
            "root": corpus.root,
            "columns": {"text": list(corpus.columns.text), "id": corpus.columns.id},
            "format": corpus.format,
            "inputs": self.inputs,
        }


def _peak_memory_bytes() -> int:
    """The most memory that this process has ever held; Linux counts in KiB, macOS in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
