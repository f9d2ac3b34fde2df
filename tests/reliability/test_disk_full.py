"""A disk that is full: one line, exit code 74, nothing partial and nothing left over, and a way to go on."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.commands import INPUT_OUTPUT, OK, Job, digest, hidden, one_line, run
from support.fault_corpora import NAMES
from support.small_disk import Disk, mounted

FULL = "No space left on device"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk of 64 kB."""
    with mounted(tmp_path / "disk", "64k") as disk:
        yield disk


@pytest.fixture(scope="module")
def whole(small: Path) -> dict[str, str]:
    """The output of a run with all the room it wants."""
    assert run(small, "dedup", *NAMES, "-o", "roomy", "--quiet").status == OK
    return digest(small / "roomy")


@pytest.mark.parametrize("size", ["8k", "64k", "160k", "220k", "300k"])
def test_no_room_for_the_work(disk: Disk, place: Path, whole: dict[str, str], size: str) -> None:
    """Wherever it runs out, from the manifest to the verified pairs; with more room it goes on from there."""
    disk.resize(size)
    arguments = ["dedup", *NAMES, "-o", "out", "--work", str(disk.folder / "work"), "--quiet"]
    line = one_line(run(place, *arguments), INPUT_OUTPUT)
    assert FULL in line
    assert not (place / "out").exists()
    assert hidden(place) == []
    assert not list((disk.folder / "work").glob(".*.tmp"))
    disk.resize("64m")
    done = run(place, *arguments)
    assert (done.status, done.err) == (OK, "")
    assert digest(place / "out") == whole


@pytest.mark.parametrize("size", ["4k", "32k", "80k", "112k"])
@pytest.mark.parametrize("options", [["--work", "work"], []], ids=["work", "temporary"])
def test_no_room_for_the_output(disk: Disk, place: Path, whole: dict[str, str], size: str, options: list[str]) -> None:
    """Wherever it runs out, in copies of every format or in tables; without --work, the pieces lie there as well."""
    disk.resize(size)
    output = disk.folder / "out"
    arguments = ["dedup", *NAMES, "-o", str(output), *options, "--quiet"]
    line = one_line(run(place, *arguments), INPUT_OUTPUT)
    assert FULL in line
    assert list(disk.folder.iterdir()) == []
    disk.resize("64m")
    done = run(place, *arguments)
    assert (done.status, done.err) == (OK, "")
    assert digest(output) == whole
    assert hidden(disk.folder) == []


def test_no_room_beside_an_output_that_is_to_be_replaced(disk: Disk, place: Path) -> None:
    """The old one stays as it was."""
    disk.resize("64k")
    (disk.folder / "out").mkdir()
    (disk.folder / "out" / "old").write_text("old")
    line = one_line(
        run(place, "dedup", *NAMES, "-o", str(disk.folder / "out"), "--work", "work", "--overwrite"), INPUT_OUTPUT
    )
    assert FULL in line
    assert (disk.folder / "out" / "old").read_text() == "old"
    assert [path.name for path in disk.folder.iterdir()] == ["out"]


@pytest.mark.parametrize("name", ["pairs.parquet", "pairs.csv", "pairs.jsonl"])
def test_no_room_for_a_table(disk: Disk, place: Path, name: str) -> None:
    """Of pairs: no half of a table, and no temporary file."""
    disk.resize("8k")
    (disk.folder / "ballast").write_bytes(bytes(8000))
    line = one_line(run(place, "pairs", *NAMES, "-o", str(disk.folder / name), "--work", "work"), INPUT_OUTPUT)
    assert FULL in line
    assert [path.name for path in disk.folder.iterdir()] == ["ballast"]


@pytest.mark.parametrize("what", ["work", "output", "pairs.csv"])
def test_which_disk_is_full(disk: Disk, place: Path, what: str) -> None:
    """The line names a file on it, by a name that the user knows."""
    disk.resize("8k")
    (disk.folder / "ballast").write_bytes(bytes(8000))
    options = {
        "work": ["dedup", "-o", "out", "--work", str(disk.folder / "work")],
        "output": ["dedup", "-o", str(disk.folder / "out"), "--work", "work"],
        "pairs.csv": ["pairs", "-o", str(disk.folder / "pairs.csv"), "--work", "work"],
    }[what]
    line = one_line(run(place, *options, *NAMES), INPUT_OUTPUT)
    assert str(disk.folder) in line
    assert ".tmp" not in line


@pytest.mark.parametrize("limit", [200, 5_000, 30_000, 60_000])
def test_a_limit_on_the_size_of_files(place: Path, whole: dict[str, str], limit: int) -> None:
    """`ulimit -f`: one line as well, and without the limit the run goes on."""
    arguments = ["dedup", *NAMES, "-o", "out", "--work", "work", "--quiet"]
    line = one_line(run(place, *arguments, job=Job(file_bytes=limit)), INPUT_OUTPUT)
    assert "File too large" in line
    assert not (place / "out").exists()
    assert hidden(place) == []
    assert run(place, *arguments).status == OK
    assert digest(place / "out") == whole


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_not_be_written(place: Path) -> None:
    """The name and the reason."""
    (place / "locked").mkdir(mode=0o500)
    line = one_line(run(place, "dedup", *NAMES, "-o", "locked/out"), INPUT_OUTPUT)
    assert "locked" in line
    assert "Permission denied" in line


def test_an_input_that_disappears(place: Path) -> None:
    """Between the first pass and the copies: one line that names it, and nothing at OUT."""
    assert run(place, "dedup", *NAMES, "-o", "first", "--work", "work").status == OK
    shutil.rmtree(place / "first")
    (place / "a.jsonl").unlink()
    line = one_line(run(place, "dedup", *NAMES, "-o", "out", "--work", "work"), INPUT_OUTPUT)
    assert "a.jsonl" in line
    assert not (place / "out").exists()


@pytest.mark.parametrize("how", ["--all", "--ids"])
@pytest.mark.parametrize("size", ["4k", "32k", "80k"])
def test_no_room_for_what_is_restored(disk: Disk, place: Path, how: str, size: str) -> None:
    """Nothing of it stays; with more room the same command does it."""
    assert run(place, "dedup", *NAMES, "-o", "out", "--quiet").status == OK
    removed = pq.read_table(place / "out/removed.parquet").column("id").to_pylist()
    (place / "ids.txt").write_text("\n".join(removed))
    arguments = [
        "restore",
        "out",
        *(["--all"] if how == "--all" else ["--ids", "ids.txt"]),
        "-o",
        f"{disk.folder}/back",
    ]
    disk.resize(size)
    assert FULL in one_line(run(place, *arguments), INPUT_OUTPUT)
    assert list(disk.folder.iterdir()) == []
    disk.resize("64m")
    assert run(place, *arguments).status == OK
    assert sorted(path.name for path in (disk.folder / "back/kept").iterdir()) == sorted(NAMES)


def test_no_room_for_a_new_page(disk: Disk, place: Path) -> None:
    """The old one stays."""
    disk.resize("64m")
    output = disk.folder / "out"
    assert run(place, "dedup", *NAMES, "-o", str(output), "--quiet").status == OK
    before = digest(output)
    disk.resize(f"{sum(path.stat().st_blocks for path in output.rglob('*')) // 2 + 8}k")
    assert FULL in one_line(run(place, "report", str(output)), INPUT_OUTPUT)
    assert digest(output) == before
