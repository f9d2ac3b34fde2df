"""NumberedLine stream: deduplicate JSON lines as they arrive and write each kept line at once.

The command ``minwise dedup - -o -`` and :func:`minwise.api.dedup_stream` use it in place of an engine. Only the band
keys of kept lines stay in memory; their shingles go to a temporary file.
"""

import sys
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from minwise import _kernel
from minwise._internal.arrays import from_numpy
from minwise._internal.formatting import CappedLines
from minwise.errors import ConfigError, InputError
from minwise.inputs.jsonl import JsonLinesReader, NumberedLine, read_available_lines
from minwise.inputs.source import Columns, Fault, UnreadableError
from minwise.options import lists_faults
from minwise.search.bands import FAULTY, Bander, KeyBlock
from minwise.search.workdir import WorkDirectory
from minwise.settings import RunLimits, SearchSettings

__all__ = ["LineStream"]


class LineStream:
    """Decides on lines in their order of arrival; the first of several near-duplicates is kept."""

    def __init__(
        self, settings: SearchSettings, columns: Columns, work: WorkDirectory, on_error: str, limits: RunLimits
    ) -> None:
        if settings.shingler is None:
            raise ConfigError("shingle must be word:N, char:N or byte:N for a stream, got set")
        self._settings, self._shingler, self._limits = settings, settings.shingler, limits
        self._on_error = on_error
        self._bander = Bander(settings)
        self._reader = JsonLinesReader("standard input", columns)
        plan = settings.plan
        sets = str(work.folder / "sets")
        self._kept = _kernel.KeptDocuments(plan.bands, plan.threshold, settings.max_bucket, sets)
        self._faults = CappedLines(_print_fault)
        self._counts = {"read": 0, "kept": 0, "removed": 0, "quarantined": 0}

    def run(self, source: BinaryIO, output: BinaryIO) -> dict[str, int]:
        """Copy the kept lines of ``source`` to ``output``; return the counts.

        Raises:
            InputError: If no line can be read, or the source is not text.
        """
        try:
            for lines in read_available_lines(source, self._limits.batch_bytes, "utf-8"):
                self._copy_kept(lines, output)
                output.flush()
        except UnreadableError as error:
            raise InputError(f"standard input {error}") from None
        finally:
            self._faults.finish()
        if self._counts["read"] and self._counts["read"] == self._counts["quarantined"]:
            raise InputError(f"no document can be read: {self._counts['read']} lines, and none of them was usable")
        return {**self._counts, "capped": self._kept.capped}

    def _copy_kept(self, lines: list[NumberedLine], output: BinaryIO) -> None:
        batch = self._reader.batch(self._counts["read"], lines)
        block = KeyBlock.allocate(self._settings, len(lines))
        invalid = self._bander.band(batch.values, block, self._limits.threads)
        faults = (Fault("standard input", batch.first + row, reason) for row, reason in invalid)
        self._report([*batch.faults, *faults])
        readable = np.flatnonzero(block.states != FAULTY)
        kept = readable[self._decide(batch.values, block, readable)]
        for index in kept.tolist():
            line = lines[index][1]
            if isinstance(line, bytes):
                output.write(line if line.endswith(b"\n") else line + b"\n")
        self._count(len(lines), len(kept), len(readable))

    def _decide(self, texts: pa.Array, block: KeyBlock, readable: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a flag for each readable line that is kept."""
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
        """Write the first faults to standard error, and count the others: a stream has no quarantine file."""
        for fault in sorted(faults, key=lambda fault: fault.row or 0):
            if self._on_error == "fail":
                raise InputError(str(fault))
            if lists_faults(self._on_error):
                self._faults.add(fault.source, str(fault))


def _print_fault(line: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"minwise: {line}; left out\n")
