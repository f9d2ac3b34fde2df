"""Arrow and NumPy files that are damaged, or truncated while they are read: faults and errors, never a signal."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc
from support import arrow_damage
from support.commands import OK, TORTURE, run

# Before the checks, 2 of 1,000 such files ended the process or raised another error than minwise's.
SEEDS = 20_000 if TORTURE else 400
PROCESSES = 4


def child(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a Python program to its end."""
    command = [sys.executable, *(["-c", script] if "\n" in script else [script]), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


@pytest.mark.parametrize("part", range(PROCESSES))
def test_a_damaged_arrow_file_never_ends_the_process_or_raises_a_raw_error(part: int, tmp_path: Path) -> None:
    progress, each = tmp_path / "seed", SEEDS // PROCESSES
    done = child(arrow_damage.__file__, part * each, (part + 1) * each, progress)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), f"at seed {progress.read_text()}"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("column", ["text", "more"])
def test_every_row_of_a_damaged_batch_is_counted_whichever_column_it_is_of(
    column: str, stream: bool, tmp_path: Path
) -> None:
    """Batch 1 of 4 has an offset outside its buffer; every text occurs in batches 0 and 2, and in 1 and 3."""
    texts = [[f"text {row} of part {part % 2} of the harbour" for row in range(50)] for part in range(4)]
    parts = [{"text": pa.array(rows), "more": pa.array(rows)} for rows in texts]
    _, offsets, data = parts[1][column].buffers()
    damaged = np.frombuffer(offsets, dtype=np.int32, count=51).copy()
    damaged[7] = 1 << 30
    parts[1][column] = pa.Array.from_buffers(pa.string(), 50, [None, pa.py_buffer(damaged), data])
    batches = [pa.record_batch(part) for part in parts]
    with (ipc.new_stream if stream else ipc.new_file)(tmp_path / "in.arrow", batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    done = run(tmp_path, "dedup", "in.arrow", "-o", "out", "--quiet", "--exact")
    assert done.status == OK, done.err
    counts = json.loads((tmp_path / "out" / "report.json").read_text())["counts"]
    names = ("read", "kept", "removed", "quarantined")
    assert [counts[name] for name in names] == [200, 100, 50, 50]


TRUNCATED_ARROW = """
import os, sys
from minwise.inputs.arrow_ipc import ArrowFile
from minwise.inputs.files import File
from minwise.inputs.source import Columns
faults = []
for batch in ArrowFile(File(sys.argv[1])).batches(Columns()):
    os.truncate(sys.argv[1], int(sys.argv[2]))
    batch.values.validate(full=True)
    faults += batch.faults
print(len(faults), faults[-1].row, faults[-1].reason)
"""

TRUNCATED_NPY = """
import os, sys
from minwise.vectors.sources import open_vectors
faults, source = [], open_vectors(sys.argv[1])
for batch in source.blocks(1 << 16):
    os.truncate(sys.argv[1], int(sys.argv[2]))
    batch.values.validate(full=True)
    faults += batch.faults
print(len(faults), faults[-1].row, faults[-1].reason)
"""


def write_arrow(path: Path, *, stream: bool) -> None:
    """Write 40 batches of a megabyte of text each."""
    rows = pa.table({"text": ["a harbour " * 1000] * 100})
    with (ipc.new_stream if stream else ipc.new_file)(path, rows.schema) as writer:
        for _ in range(40):
            writer.write_table(rows)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kept_bytes", [0, 5_000_000])
def test_an_arrow_file_that_is_truncated_while_it_is_read_has_a_fault(
    stream: bool, kept_bytes: int, tmp_path: Path
) -> None:
    write_arrow(tmp_path / "in.arrow", stream=stream)
    done = child(TRUNCATED_ARROW, tmp_path / "in.arrow", kept_bytes)
    assert done.returncode == 0, done.stderr
    assert "record batch" in done.stdout


def test_an_npy_file_that_is_truncated_while_it_is_read_has_a_fault(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", np.ones((100_000, 64), dtype=np.float32))
    done = child(TRUNCATED_NPY, tmp_path / "in.npy", 1 << 20)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1 None truncated file: it was shortened while it was read\n"


TRUNCATED_SEARCH = """
import os, sys
import minwise.vectors.lsh, minwise.vectors.pairs
from minwise.errors import InputError
search = minwise.vectors.lsh.EuclideanLSH.plan(sys.argv[1], radius=0.5)
copy = minwise.vectors.pairs._VectorSearch.write_matrix
def truncate(self):
    copy(self)
    os.truncate(sys.argv[1], 4096)
minwise.vectors.pairs._VectorSearch.write_matrix = truncate
try:
    search.fit(sys.argv[1]).pairs(0.5)
except InputError as error:
    print(error)
print(os.listdir(os.environ["TMPDIR"]))
"""


def test_a_search_of_vectors_that_are_truncated_meanwhile_fails_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setitem(os.environ, "TMPDIR", str(tmp_path / "temporary"))
    rng = np.random.default_rng(5)
    np.save(tmp_path / "in.npy", np.repeat(rng.normal(size=(2_000, 64)), 2, axis=0).astype(np.float32))
    done = child(TRUNCATED_SEARCH, tmp_path / "in.npy")
    assert done.returncode == 0, done.stderr
    message, left = done.stdout.splitlines()
    assert "in.npy" in message
    assert left == "[]"
