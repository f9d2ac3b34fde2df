"""Temporary directories: deleted by their process, or by the next run after a kill, and never while they are used."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from minwise._internal.temporary import LOCK, UNOWNED_SECONDS, TemporaryFolder, delete_folders, output_writer, sweep
from minwise.errors import MinwiseError

HOLD = """
import sys, time
from pathlib import Path
from minwise._internal.temporary import TemporaryFolder
folder = TemporaryFolder(Path(sys.argv[1]))
(folder.path / "rows").write_text("rows")
print("ready", flush=True)
time.sleep(60)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_directory_is_deleted_on_close_and_on_collection(tmp_path: Path) -> None:
    with TemporaryFolder(tmp_path) as path:
        assert names(tmp_path) == [path.name]
    assert names(tmp_path) == []
    folder = TemporaryFolder(tmp_path)
    assert names(tmp_path) == [folder.path.name]
    del folder
    assert names(tmp_path) == []
    held = [TemporaryFolder(tmp_path)]
    delete_folders()
    assert not held[0].path.exists()
    assert names(tmp_path) == []


@pytest.mark.posix
def test_directory_is_private(tmp_path: Path) -> None:
    with TemporaryFolder(tmp_path) as path:
        assert path.stat().st_mode & 0o777 == 0o700


def test_next_run_deletes_what_a_killed_one_left(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == b"ready"
        left = names(tmp_path)
        sweep(tmp_path)
        assert names(tmp_path) == left, "deleted a directory in use"
        process.kill()
        process.wait()
    assert names(tmp_path) == left
    sweep(tmp_path)
    assert names(tmp_path) == []


def test_own_directory_is_in_use(tmp_path: Path) -> None:
    with TemporaryFolder(tmp_path) as path:
        sweep(tmp_path)
        assert path.exists()


def test_other_directories_stay(tmp_path: Path) -> None:
    """One of another machine, one that is being created, a link, a file, and names of others."""
    for name in (".minwise-other", ".minwise-new", "minwise-mine", "target"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rows").touch()
    (tmp_path / ".minwise-other" / LOCK).write_text("another-machine")
    (tmp_path / ".minwise-new" / LOCK).touch()
    (tmp_path / ".minwise-link").symlink_to("target")
    (tmp_path / ".minwise-file").touch()
    before = names(tmp_path)
    sweep(tmp_path)
    assert names(tmp_path) == before
    assert names(tmp_path / "target") == ["rows"]


def test_directory_without_an_owner_is_deleted_after_an_hour(tmp_path: Path) -> None:
    """Its process was killed between creating the directory and locking its file."""
    (tmp_path / ".minwise-half").mkdir()
    sweep(tmp_path)
    assert names(tmp_path) == [".minwise-half"]
    long_ago = (tmp_path / ".minwise-half").stat().st_mtime - UNOWNED_SECONDS - 1
    os.utime(tmp_path / ".minwise-half", (long_ago, long_ago))
    sweep(tmp_path)
    assert names(tmp_path) == []


def test_missing_parent_has_no_leftovers(tmp_path: Path) -> None:
    sweep(tmp_path / "missing")


def write(path: Path, *, overwrite: bool = False, meanwhile: bytes | None = None) -> None:
    """Write a file; another process may write it meanwhile."""
    with output_writer(path, overwrite=overwrite) as file:
        file.write(b"ours")
        if meanwhile is not None:
            path.write_bytes(meanwhile)


def write_half(path: Path) -> None:
    with output_writer(path) as file:
        file.write(b"half")
        raise ValueError("halfway")


def test_output_is_complete_or_absent(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="halfway"):
        write_half(tmp_path / "out.csv")
    assert names(tmp_path) == []
    write(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_bytes() == b"ours"
    assert names(tmp_path) == ["out.csv"]


def test_file_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    for number in (1, 2):
        with pytest.raises(MinwiseError) as caught:
            write(tmp_path / "out.csv", meanwhile=b"theirs")
        kept = tmp_path / f"out.result-{number}.csv"
        assert str(caught.value) == (
            f"output must be new or empty, got {tmp_path / 'out.csv'}, which another process wrote during the run; "
            f"the complete result is {kept}: rename or delete it"
        )
        assert kept.read_bytes() == b"ours"
        assert (tmp_path / "out.csv").read_bytes() == b"theirs"
    write(tmp_path / "out.csv", overwrite=True)
    assert (tmp_path / "out.csv").read_bytes() == b"ours"


def test_empty_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "out.csv").touch()
    write(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_bytes() == b"ours"
    assert names(tmp_path) == ["out.csv"]


def test_error_names_the_file_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        write(tmp_path / "missing" / "out.csv")
    assert caught.value.filename == str(tmp_path / "missing" / "out.csv")
