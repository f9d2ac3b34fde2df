"""Containment: a killed run resumes with the same bytes."""

import json
import random
import re
import shutil
import signal
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import OK, TORTURE, Done, Job, digest, hidden, run
from support.fault_corpora import NAMES
from support.peak_memory import PROMISED_BYTES, run_measured

# Small sizes, so that a small run has several parts, files of sets, and indexes of their prefixes.
SMALL_SIZES = {
    "minwise.search.first_pass.PART_DOCUMENTS": 150,
    "minwise.search.verification.SPILL_ELEMENTS": 2000,
    "minwise.search.exact_join.PREFIX_BYTES": 10**6,
}
# Kill points of a run; every file operation with `make torture`.
POINTS = 10**6 if TORTURE else 40
SETTINGS = ("--measure", "containment", "--threshold", "0.7", "--shingle", "word:2", "--quiet")
LIMIT = ("--memory", "256MB")
# Documents of a run whose memory is measured, and the middle number of their words.
DOCUMENTS, WORDS = 20_000, 450


def dedup(folder: Path, name: str, *, trap: dict[str, object] | None = None) -> Done:
    """Run the command on the small corpus with small sizes."""
    job = Job(constants=SMALL_SIZES, trap=trap)
    return run(folder, "dedup", *NAMES, "part.jsonl", "-o", name, "--work", f"{name}.work", *SETTINGS, *LIMIT, job=job)


@pytest.mark.timeout(1200)
def test_run_resumes_after_a_kill_at_any_file_operation(folder: Path) -> None:
    lines = (folder / NAMES[0]).read_text(encoding="utf-8").splitlines()
    parts = [" ".join(json.loads(line)["text"].split()[:20]) for line in lines[::4]]
    rows = (json.dumps({"id": f"p{number}", "text": text}) + "\n" for number, text in enumerate(parts))
    (folder / "part.jsonl").write_text("".join(rows), encoding="utf-8")
    assert run(folder, "dedup", *NAMES, "part.jsonl", "-o", "whole", *SETTINGS).status == OK
    expected = digest(folder / "whole")
    assert json.loads((folder / "whole/report.json").read_text(encoding="utf-8"))["counts"]["removed"] > len(parts)
    assert dedup(folder, "events", trap={"log": str(folder / "log"), "act": "kill"}).status == OK
    seen = (folder / "log").read_text(encoding="utf-8").splitlines()
    written = set(re.findall(r"/(part|sets|candidates|contained)-(\d+)", "\n".join(seen)))
    assert min(Counter(kind for kind, _ in written).values()) > 1, "a kind of work file is written only once"
    draw = random.Random(6)
    for number in sorted(draw.sample(range(len(seen)), min(POINTS, len(seen)))):
        trap = {"point": number, "after": draw.random() < 0.5, "act": "kill"}
        assert dedup(folder, "out", trap=trap).status == -signal.SIGKILL, seen[number]
        assert not (folder / "out").exists() or digest(folder / "out") == expected, seen[number]
        assert dedup(folder, "out").status == OK, seen[number]
        assert digest(folder / "out") == expected, seen[number]
        assert not hidden(folder), seen[number]
        shutil.rmtree(folder / "out")
        shutil.rmtree(folder / "out.work")


def write_texts(path: Path) -> None:
    """Write texts of very different lengths, every twentieth of which lies in another one."""
    draw = np.random.default_rng(5)
    vocabulary = np.array([f"word{number}" for number in range(50_000)], dtype=object)
    with pq.ParquetWriter(path, pa.schema({"text": pa.string()}), compression="zstd") as writer:
        for _ in range(DOCUMENTS // 1000):
            sizes = np.maximum(20, draw.lognormal(np.log(WORDS), 1.2, 950)).astype(np.int64)
            texts = [" ".join(vocabulary[draw.integers(0, len(vocabulary), size)]) for size in sizes.tolist()]
            texts += [" ".join(text.split()[5:15]) for text in texts[:50]]
            writer.write_table(pa.table({"text": texts}))


@pytest.mark.timeout(900)
def test_memory_of_the_join_is_returned_before_rows_are_written(tmp_path: Path) -> None:
    """The C library would hold 120 MB of it, beside what writing takes."""
    write_texts(tmp_path / "in.parquet")
    peaks = []
    for options in ((), ("--measure", "containment")):
        done = run_measured(tmp_path, "dedup", "in.parquet", "-o", "out", "--overwrite", "--quiet", *LIMIT, *options)
        assert (done.status, done.error) == (OK, "")
        peaks.append(done.peak)
    assert max(peaks) < PROMISED_BYTES
    assert peaks[1] < peaks[0] + 120 * 10**6
