"""Commands in a process in which the modules and functions of POSIX are absent, see support.windows_stand_in."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from support.windows_stand_in import FORBIDDEN

import minwise as mw

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the stand-in for Windows needs Linux")

ROOT = Path(__file__).parents[2]
DOCS = str(ROOT / "examples" / "newsroom" / "docs.jsonl")
DEDUP = ("dedup", DOCS, "--shingle", "word:3", "--threshold", "0.5", "--quiet")
STAND_IN = [sys.executable, "-m", "support.windows_stand_in"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), *sys.path])}
# Opens an index for writing, says so, and waits until standard input ends.
WRITER = (
    'import sys, minwise; index = minwise.Index.open(sys.argv[1], "w"); print("open", flush=True); sys.stdin.read()'
)


def _run(*words: str, folder: Path, status: int = 0) -> str:
    """Return what a command prints to both streams."""
    done = subprocess.run(
        [*STAND_IN, "-m", "minwise", *words],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    assert "Traceback" not in done.stdout, done.stdout
    assert done.returncode == status, done.stdout
    return done.stdout


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_stand_in_hides_posix() -> None:
    code = """
import os, sys
for name in ("fcntl", "resource", "termios", "pwd", "grp", "uvloop"):
    try:
        __import__(name)
    except ModuleNotFoundError:
        continue
    raise SystemExit(name)
assert not [name for name in ("fork", "pread", "sched_getaffinity", "statvfs", "mkfifo") if hasattr(os, name)]
from minwise._internal import locks
assert locks.LOCKED_BYTE and sys.platform == "linux" and locks.sys.platform == "win32"
"""
    subprocess.run([*STAND_IN, "-c", code], env=ENVIRONMENT, check=True)


@pytest.mark.parametrize("extra", [(), ("--work", "work")], ids=["temporary", "durable"])
def test_dedup_gives_the_same_files(tmp_path: Path, extra: tuple[str, ...]) -> None:
    _run(*DEDUP, "-o", "clean", *extra, folder=tmp_path)
    mw.dedup(DOCS, shingle="word:3", threshold=0.5).write(tmp_path / "here")
    assert _files(tmp_path / "clean" / "kept") == _files(tmp_path / "here" / "kept")
    assert (tmp_path / "clean" / "removed.parquet").read_bytes() == (tmp_path / "here" / "removed.parquet").read_bytes()
    assert not [path for path in tmp_path.rglob("*") if FORBIDDEN & set(path.name)]
    assert json.loads((tmp_path / "clean" / "run.json").read_bytes())["peak_memory_bytes"] is None


def test_dedup_fills_an_empty_directory_and_replaces_a_full_one(tmp_path: Path) -> None:
    (tmp_path / "clean").mkdir()
    _run(*DEDUP, "-o", "clean", folder=tmp_path)
    (tmp_path / "clean" / "other").touch()
    _run(*DEDUP, "-o", "clean", "--overwrite", folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["clean"]
    assert not (tmp_path / "clean" / "other").exists()


def test_engine_spark_is_refused_in_one_line(tmp_path: Path) -> None:
    printed = _run(*DEDUP, "-o", "clean", "--engine", "spark", folder=tmp_path, status=2)
    assert printed == (
        "minwise: engine spark needs Linux or macOS to start Spark, got Windows; use --engine local, or WSL\n"
    )


def test_index_is_written_queried_compacted_and_backed_up(tmp_path: Path) -> None:
    _run("index", "create", "news.mw", folder=tmp_path)
    assert "40 added" in _run("index", "add", "news.mw", DOCS, folder=tmp_path)
    assert "0 added, 40 already present" in _run("index", "add", "news.mw", DOCS, folder=tmp_path)
    assert "40 asked: 38 with near-duplicates" in _run("index", "query", "news.mw", DOCS, folder=tmp_path)
    _run("index", "compact", "news.mw", folder=tmp_path)
    _run("index", "backup", "news.mw", "copy.mw", folder=tmp_path)
    assert "every checksum is right" in _run("index", "verify", "copy.mw", folder=tmp_path)
    with mw.Index.open(tmp_path / "copy.mw") as index:
        assert len(index) == 40


def test_second_writer_of_an_index_is_refused(tmp_path: Path) -> None:
    _run("index", "create", "news.mw", folder=tmp_path)
    writer = [*STAND_IN, "-c", WRITER, "news.mw"]
    with subprocess.Popen(
        writer, cwd=tmp_path, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "open\n"
        printed = _run("index", "add", "news.mw", DOCS, folder=tmp_path, status=2)
    rule = f"is open for writing in process {first.pid}; one process writes at a time"
    assert printed == f"minwise: index {tmp_path / 'news.mw'} {rule}\n"


def test_server_answers_and_stops(tmp_path: Path) -> None:
    _run("index", "create", "news.mw", folder=tmp_path)
    _run("token", "tokens", "--read", folder=tmp_path)
    _run("token", "tokens", "--read", "--write", folder=tmp_path)
    command = [*STAND_IN, "-m", "minwise", "serve", "--index", "news.mw", "--port", "0", "--token-file", "tokens"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        with urllib.request.urlopen(f"{address}healthz", timeout=60) as answer:
            assert answer.status == 200
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
