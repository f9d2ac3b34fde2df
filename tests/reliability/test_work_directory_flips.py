"""One flipped bit in a file of a work directory: the run names the file and the remedy, or its result is right.

By default a seeded sample of one bit in every file of each work directory; `make torture` flips 20 bits of each.
`tests/unit/search/test_workdir.py` flips every bit of a file of each kind.
"""

import random
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import FAILURE, OK, TORTURE, Job, digest, one_line, run
from support.fault_corpora import NAMES

FLIPS = 20 if TORTURE else 1
# Small sizes, so that a small run has several files of each kind.
SMALL_SIZES = {
    "minwise.search.first_pass.PART_DOCUMENTS": 300,
    "minwise.search.candidates.CHUNK_PAIRS": 200,
    "minwise.search.verification.SPILL_ELEMENTS": 10_000,
}
DEDUP = ("dedup", *NAMES, "-o", "out", "--quiet", "--bands", "4", "--rows", "8", "--group", "components")
GROUPS = ("clusters", "r.csv", "-o", "out.csv", "--quiet", "--group-by", "user", "--item", "film")
VECTORS = ("vectors", "pairs", "v.parquet", "--radius", "1", "-o", "out.csv", "--quiet")


@dataclass(frozen=True)
class Interrupted:
    """A run and the file operation before which it is killed; None for a run that ends, and whose output is deleted."""

    arguments: tuple[str, ...]
    before: str | None


RUNS = {
    "candidates": Interrupted(DEDUP, "/sets-000000"),
    "sets": Interrupted(DEDUP, "/verified-000000"),
    "finished": Interrupted(DEDUP, None),
    "grouped rows": Interrupted(GROUPS, "/groups-000000"),
    "groups": Interrupted(GROUPS, "/part-000000"),
    "vectors": Interrupted(VECTORS, "/verified-000000"),
}


@pytest.fixture
def inputs(folder: Path) -> Path:
    """Return a folder with the small corpus, ratings, and a table of vectors whose second half is near the first."""
    ratings = [f"{user},{film}\n" for user in range(60) for film in range(user % 20, user % 20 + 8)]
    (folder / "r.csv").write_text("user,film\n" + "".join(ratings))
    draw = np.random.default_rng(5).normal(size=(40, 3)).astype(np.float32)
    vectors = np.concatenate([draw, draw + 0.01]).tolist()
    pq.write_table(pa.table({"vector": pa.array(vectors, pa.list_(pa.float32()))}), folder / "v.parquet")
    return folder


def output(folder: Path) -> object:
    """Return the content of the output, a directory or a file; None if there is none."""
    found = digest(folder / "out") if (folder / "out").is_dir() else None
    return (folder / "out.csv").read_bytes() if (folder / "out.csv").exists() else found


def clear(folder: Path) -> None:
    shutil.rmtree(folder / "out", ignore_errors=True)
    (folder / "out.csv").unlink(missing_ok=True)


def interrupt(folder: Path, given: Interrupted) -> None:
    """Leave a work directory as the run leaves it when it is killed."""
    trap: dict[str, object] = {"log": str(folder / "log"), "act": "kill"}
    command = (*given.arguments, "--work", "work")
    assert run(folder, *command, job=Job(constants=SMALL_SIZES, trap=trap)).status == OK
    clear(folder)
    if given.before is not None:
        events = (folder / "log").read_text().splitlines()
        point = next(n for n, line in enumerate(events) if line.startswith("replace") and given.before in line)
        shutil.rmtree(folder / "work")
        killed = run(folder, *command, job=Job(constants=SMALL_SIZES, trap={"point": point, "act": "kill"}))
        assert killed.status == -signal.SIGKILL


def flips(work: Path) -> Iterator[tuple[Path, int, int]]:
    """Yield files of a work directory, each with the offset of a byte and a bit of it to flip."""
    draw = random.Random(11)
    for path in sorted(path for path in work.rglob("*") if path.is_file() and path.stat().st_size):
        for offset in draw.sample(range(path.stat().st_size), FLIPS):
            yield path.relative_to(work), offset, 1 << draw.randrange(8)


@pytest.mark.timeout(7200 if TORTURE else 300)
@pytest.mark.parametrize("given", RUNS.values(), ids=RUNS)
def test_flipped_bit_is_reported_or_harmless(inputs: Path, given: Interrupted) -> None:
    assert run(inputs, *given.arguments).status == OK
    expected = output(inputs)
    clear(inputs)
    interrupt(inputs, given)
    (inputs / "work").rename(inputs / "intact")
    wrong, reported = [], 0
    for name, offset, bit in flips(inputs / "intact"):
        shutil.copytree(inputs / "intact", inputs / "work")
        content = bytearray((inputs / "work" / name).read_bytes())
        content[offset] ^= bit
        (inputs / "work" / name).write_bytes(content)
        done = run(inputs, *given.arguments, "--work", "work", job=Job(constants=SMALL_SIZES))
        if done.status == OK:
            if output(inputs) != expected:
                wrong.append((str(name), offset, bit, "another result"))
        else:
            message = one_line(done, FAILURE)
            reported += 1
            if f"work/{name}" not in message or "delete the work directory and start again" not in message:
                wrong.append((str(name), offset, bit, message))
            if output(inputs) is not None:
                wrong.append((str(name), offset, bit, "an output after an error"))
        clear(inputs)
        shutil.rmtree(inputs / "work")
    assert not wrong
    assert reported
