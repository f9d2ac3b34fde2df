"""Exclusive locks of files and directories."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from minwise._internal.locks import lock_file, locked_directory

# Tries to lock a file in another process: exit code 3 if it is locked already.
TRY = """
import sys
from minwise._internal.locks import lock_file
with open(sys.argv[1], "r+b") as file:
    try:
        lock_file(file)
    except BlockingIOError:
        sys.exit(3)
"""
# Locks a file, says so, and holds it until standard input ends.
HOLD = TRY + "    print('locked', flush=True); sys.stdin.read()"


def _try_lock(path: Path) -> int:
    return subprocess.run([sys.executable, "-c", TRY, str(path)], check=False).returncode


def test_lock_excludes_other_files_and_processes_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w+b") as file, path.open("r+b") as other:
        lock_file(file)
        with pytest.raises(BlockingIOError):
            lock_file(other)
        assert _try_lock(path) == 3
    assert _try_lock(path) == 0


def test_locked_file_can_be_read_and_written_and_keeps_its_position(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_bytes(b"42 is the owner")
    with path.open("r+b") as file:
        file.seek(3)
        lock_file(file)
        assert path.read_bytes() == b"42 is the owner"
        assert file.read() == b"is the owner"


def test_waiting_for_a_lock_ends_when_its_process_ends(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline().strip() == b"locked"
    with path.open("r+b") as file:
        waiting = threading.Thread(target=lock_file, args=(file,), kwargs={"wait": True})
        waiting.start()
        assert waiting.is_alive()
        holder.kill()
        waiting.join(60)
        assert not waiting.is_alive()
        assert _try_lock(path) == 3
    holder.communicate()


def test_locked_directory_can_be_renamed_and_leaves_no_file(tmp_path: Path) -> None:
    folder, renamed = tmp_path / "folder.tmp", tmp_path / "folder"
    folder.mkdir()
    with locked_directory(folder):
        with pytest.raises(BlockingIOError), locked_directory(folder):
            pass
        folder.rename(renamed)
    assert list(tmp_path.iterdir()) == [renamed]
    with locked_directory(renamed):
        pass
