"""A full disk: one line, exit code 74, no partial output and no leftovers; with space the same command completes."""

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
    """Mount a disk of 64 kB."""
    with mounted(tmp_path / "disk", "64k") as disk:
        yield disk


@pytest.fixture(scope="module")
def complete(small: Path) -> dict[str, str]:
    """Return the output of a run with enough space."""
    assert run(small, "dedup", *NAMES, "-o", "complete", "--quiet").status == OK
    return digest(small / "complete")


@pytest.mark.parametrize("size", ["8k", "64k", "160k", "220k", "300k"])
def test_run_resumes_after_its_work_directory_was_full(
    disk: Disk, folder: Path, complete: dict[str, str], size: str
) -> None:
    """At each size the disk is full at another stage, from the manifest to the verified pairs."""
    disk.resize(size)
    arguments = ["dedup", *NAMES, "-o", "out", "--work", str(disk.folder / "work"), "--quiet"]
    line = one_line(run(folder, *arguments), INPUT_OUTPUT)
    assert FULL in line
    assert not (folder / "out").exists()
    assert hidden(folder) == []
    assert not list((disk.folder / "work").glob(".*.tmp"))
    disk.resize("64m")
    done = run(folder, *arguments)
    assert (done.status, done.err) == (OK, "")
    assert digest(folder / "out") == complete


@pytest.mark.parametrize("size", ["4k", "32k", "80k", "112k"])
@pytest.mark.parametrize("options", [["--work", "work"], []], ids=["work", "temporary"])
def test_no_output_remains_on_a_full_disk(
    disk: Disk, folder: Path, complete: dict[str, str], size: str, options: list[str]
) -> None:
    """At each size another file does not fit: a copy of some format or a table; without --work, also the work files."""
    disk.resize(size)
    output = disk.folder / "out"
    arguments = ["dedup", *NAMES, "-o", str(output), *options, "--quiet"]
    line = one_line(run(folder, *arguments), INPUT_OUTPUT)
    assert FULL in line
    assert list(disk.folder.iterdir()) == []
    disk.resize("64m")
    done = run(folder, *arguments)
    assert (done.status, done.err) == (OK, "")
    assert digest(output) == complete
    assert hidden(disk.folder) == []


def test_old_output_is_unchanged_if_the_new_one_does_not_fit(disk: Disk, folder: Path) -> None:
    disk.resize("64k")
    (disk.folder / "out").mkdir()
    (disk.folder / "out" / "old").write_text("old")
    line = one_line(
        run(folder, "dedup", *NAMES, "-o", str(disk.folder / "out"), "--work", "work", "--overwrite"), INPUT_OUTPUT
    )
    assert FULL in line
    assert (disk.folder / "out" / "old").read_text() == "old"
    assert [path.name for path in disk.folder.iterdir()] == ["out"]


@pytest.mark.parametrize("name", ["pairs.parquet", "pairs.csv", "pairs.jsonl"])
def test_no_partial_table_remains_on_a_full_disk(disk: Disk, folder: Path, name: str) -> None:
    disk.resize("8k")
    (disk.folder / "ballast").write_bytes(bytes(8000))
    line = one_line(run(folder, "pairs", *NAMES, "-o", str(disk.folder / name), "--work", "work"), INPUT_OUTPUT)
    assert FULL in line
    assert [path.name for path in disk.folder.iterdir()] == ["ballast"]


@pytest.mark.parametrize("target", ["work", "output", "pairs.csv"])
def test_error_names_the_full_disk(disk: Disk, folder: Path, target: str) -> None:
    """The line names a file on that disk, and not its temporary name."""
    disk.resize("8k")
    (disk.folder / "ballast").write_bytes(bytes(8000))
    options = {
        "work": ["dedup", "-o", "out", "--work", str(disk.folder / "work")],
        "output": ["dedup", "-o", str(disk.folder / "out"), "--work", "work"],
        "pairs.csv": ["pairs", "-o", str(disk.folder / "pairs.csv"), "--work", "work"],
    }[target]
    line = one_line(run(folder, *options, *NAMES), INPUT_OUTPUT)
    assert str(disk.folder) in line
    assert ".tmp" not in line


@pytest.mark.parametrize("limit", [200, 5_000, 30_000, 60_000])
def test_run_resumes_after_a_limit_on_file_sizes(folder: Path, complete: dict[str, str], limit: int) -> None:
    """`ulimit -f` gives one line, too."""
    arguments = ["dedup", *NAMES, "-o", "out", "--work", "work", "--quiet"]
    line = one_line(run(folder, *arguments, job=Job(file_bytes=limit)), INPUT_OUTPUT)
    assert "File too large" in line
    assert not (folder / "out").exists()
    assert hidden(folder) == []
    assert run(folder, *arguments).status == OK
    assert digest(folder / "out") == complete


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_error_names_a_directory_without_write_permission(folder: Path) -> None:
    (folder / "locked").mkdir(mode=0o500)
    line = one_line(run(folder, "dedup", *NAMES, "-o", "locked/out"), INPUT_OUTPUT)
    assert "locked" in line
    assert "Permission denied" in line


def test_deleted_input_is_named(folder: Path) -> None:
    """The input is deleted between the first pass and the copies; no output is written."""
    assert run(folder, "dedup", *NAMES, "-o", "first", "--work", "work").status == OK
    shutil.rmtree(folder / "first")
    (folder / "a.jsonl").unlink()
    line = one_line(run(folder, "dedup", *NAMES, "-o", "out", "--work", "work"), INPUT_OUTPUT)
    assert "a.jsonl" in line
    assert not (folder / "out").exists()


@pytest.mark.parametrize("choice", ["--all", "--ids"])
@pytest.mark.parametrize("size", ["4k", "32k", "80k"])
def test_no_restored_file_remains_on_a_full_disk(disk: Disk, folder: Path, choice: str, size: str) -> None:
    """With more space the same command completes."""
    assert run(folder, "dedup", *NAMES, "-o", "out", "--quiet").status == OK
    removed = pq.read_table(folder / "out/removed.parquet").column("id").to_pylist()
    (folder / "ids.txt").write_text("\n".join(removed))
    arguments = [
        "restore",
        "out",
        *(["--all"] if choice == "--all" else ["--ids", "ids.txt"]),
        "-o",
        f"{disk.folder}/back",
    ]
    disk.resize(size)
    assert FULL in one_line(run(folder, *arguments), INPUT_OUTPUT)
    assert list(disk.folder.iterdir()) == []
    disk.resize("64m")
    assert run(folder, *arguments).status == OK
    assert sorted(path.name for path in (disk.folder / "back/kept").iterdir()) == sorted(NAMES)


def test_old_report_page_is_unchanged_if_the_new_one_does_not_fit(disk: Disk, folder: Path) -> None:
    disk.resize("64m")
    output = disk.folder / "out"
    assert run(folder, "dedup", *NAMES, "-o", str(output), "--quiet").status == OK
    before = digest(output)
    disk.resize(f"{sum(path.stat().st_blocks for path in output.rglob('*')) // 2 + 8}k")
    assert FULL in one_line(run(folder, "report", str(output)), INPUT_OUTPUT)
    assert digest(output) == before
