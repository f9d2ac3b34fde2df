"""Line stream: JSON lines in, those that are no near-duplicate of an earlier one out, as soon as they are decided."""

import sys
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import from_numpy
from minwise.errors import ConfigError, InputError
from minwise.inputs.jsonl import JsonLinesReader, Line, arriving_lines
from minwise.inputs.source import Columns, Fault
from minwise.search.bands import FAULTY, Bander, KeyBlock
from minwise.search.workdir import Work
from minwise.settings import FindSettings, Limits

__all__ = ["LineStream"]


class LineStream:
    """Decides on lines in the order in which they come; the first of several near-duplicates is kept."""

    def __init__(self, settings: FindSettings, columns: Columns, work: Work, on_error: str, limits: Limits) -> None:
        if settings.shingler is None:
            raise ConfigError("shingle must be word:N, char:N or byte:N for a stream, got set")
        self._settings, self._shingler, self._limits = settings, settings.shingler, limits
        self._on_error = on_error
        self._bander = Bander(settings)
        self._reader = JsonLinesReader("standard input", columns)
        plan = settings.plan
        sets = str(work.folder / "sets")
        self._kept = _kernel.KeptDocuments(plan.bands, plan.threshold, settings.max_bucket, sets)
        self._counts = {"read": 0, "kept": 0, "removed": 0, "quarantined": 0}

    def run(self, source: BinaryIO, output: BinaryIO) -> dict[str, int]:
        """Copies what is kept; returns the counts."""
        for lines in arriving_lines(source, self._limits.batch_bytes):
            self._decide(lines, output)
            output.flush()
        if self._counts["read"] and self._counts["read"] == self._counts["quarantined"]:
            raise InputError(f"no document can be read: {self._counts['read']} lines, and none of them was usable")
        return {**self._counts, "capped": self._kept.capped}

    def _decide(self, lines: list[Line], output: BinaryIO) -> None:
        batch = self._reader.batch(self._counts["read"], lines)
        block = KeyBlock.of(self._settings, len(lines))
        invalid = self._bander.band(batch.texts, block, self._limits.threads)
        self._report([*batch.faults, *(Fault("standard input", batch.first + row, why) for row, why in invalid)])
        readable = np.flatnonzero(block.states != FAULTY)
        kept = readable[self._decide_on(batch.texts, block, readable)]
        for place in kept.tolist():
            line = lines[place][1]
            if isinstance(line, bytes):
                output.write(line if line.endswith(b"\n") else line + b"\n")
        self._count(len(lines), len(kept), len(readable))

    def _decide_on(self, texts: pa.Array, block: KeyBlock, readable: NDArray[np.int64]) -> NDArray[np.bool_]:
        sets = self._shingler.shingle(texts.take(from_numpy(readable)), threads=self._limits.threads or None)
        keys, contents = np.ascontiguousarray(block.keys[:, readable]), block.contents[readable]
        return self._kept.decide(keys, contents, sets.offsets, sets.hashes)

    def _count(self, read: int, kept: int, readable: int) -> None:
        for name, more in (
            ("read", read),
            ("kept", kept),
            ("removed", readable - kept),
            ("quarantined", read - readable),
        ):
            self._counts[name] += more

    def _report(self, faults: list[Fault]) -> None:
        """A stream has no place for what can not be read but standard error."""
        for fault in sorted(faults, key=lambda fault: fault.row or 0):
            if self._on_error == "fail":
                raise InputError(str(fault))
            if self._on_error == "quarantine" and sys.stderr is not None:
                sys.stderr.write(f"minwise: {fault}; left out\n")
