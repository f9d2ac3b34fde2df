"""Decompression bombs and endless lines: the record is quarantined, and memory stays bounded.

Bombs have 250 MB by default; `make torture` makes them 2 GB.
"""

import gzip
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.commands import MINWISE, TORTURE, digest, without_stages

BOMB_BYTES = (2_000 if TORTURE else 250) * 10**6
CHUNK = b"a" * 10**7
# The interpreter with Arrow takes 150 MB; a record of at most 128 MiB is held a few times.
MAX_BYTES = 700 * 10**6
GOOD = [
    json.dumps({"id": f"g{number}", "text": f"good document number {number} of its own kind"}) for number in range(5)
]


def lines_with_a_bomb() -> Iterator[bytes]:
    """Yield two good lines, one that is too long, and three more good lines."""
    yield "".join(f"{line}\n" for line in GOOD[:2]).encode()
    yield b'{"id": "bomb", "text": "'
    for _ in range(BOMB_BYTES // len(CHUNK)):
        yield CHUNK
    yield b'"}\n'
    yield "".join(f"{line}\n" for line in GOOD[2:]).encode()


def peak_memory(folder: Path, *arguments: str) -> tuple[int, int, str]:
    """Run the command; return its exit code, its peak memory in bytes, and its standard error but for stage lines."""
    with subprocess.Popen(
        [MINWISE, *arguments], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        peak = 0
        while process.poll() is None:
            peak = max(peak, high_water(process.pid))
            time.sleep(0.02)
        assert process.stderr
        return process.returncode, peak, without_stages(process.stderr.read().decode())


def high_water(process: int) -> int:
    """Return the peak memory of a process so far, in bytes."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:")), 0)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["bomb.jsonl.gz", "long.jsonl", "long.csv"])
def test_too_long_line_is_quarantined_and_the_others_are_kept(tmp_path: Path, name: str) -> None:
    if name.endswith(".gz"):
        with gzip.open(tmp_path / name, "wb", compresslevel=1) as file:
            file.writelines(lines_with_a_bomb())
        assert (tmp_path / name).stat().st_size < BOMB_BYTES / 100
    elif name.endswith(".jsonl"):
        with (tmp_path / name).open("wb") as plain:
            plain.writelines(lines_with_a_bomb())
    else:
        with (tmp_path / name).open("wb") as plain:
            plain.write(b"id,text\ng0,good one\ng1,another good one\nbomb,")
            plain.writelines(CHUNK for _ in range(BOMB_BYTES // len(CHUNK)))
            plain.write(b"\ng2,three\ng3,four words of text\ng4,five\n")
    status, peak, error = peak_memory(tmp_path, "dedup", name, "-o", "out", "--memory", "256MB")
    assert (status, error) == (0, "")
    assert 0 < peak < MAX_BYTES
    faults = [json.loads(line) for line in (tmp_path / "out/quarantine.jsonl").read_text().splitlines()]
    assert [(fault["source"], fault["row"]) for fault in faults] == [(name, 2)]
    assert "longer than" in faults[0]["reason"]
    counts = json.loads((tmp_path / "out/report.json").read_text())["counts"]
    assert (counts["read"], counts["kept"], counts["quarantined"]) == (6, 5, 1)
    (tmp_path / name).unlink()


@pytest.mark.timeout(900)
def test_too_long_text_file_is_quarantined_and_the_others_are_kept(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts/good.txt").write_text("a good text of several words")
    with gzip.open(tmp_path / "texts/bomb.txt.gz", "wb", compresslevel=1) as file:
        file.writelines(CHUNK for _ in range(BOMB_BYTES // len(CHUNK)))
    status, peak, error = peak_memory(tmp_path, "dedup", "texts/bomb.txt.gz", "texts/good.txt", "-o", "out")
    assert (status, error) == (0, "")
    assert 0 < peak < MAX_BYTES
    assert "bomb.txt.gz" in (tmp_path / "out/quarantine.jsonl").read_text()
    assert "kept/good.txt" in digest(tmp_path / "out")


@pytest.mark.timeout(900)
def test_too_long_line_of_a_stream_is_reported_and_skipped(tmp_path: Path) -> None:
    with subprocess.Popen(
        [MINWISE, "dedup", "-", "-o", "-"],
        cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin
        for chunk in lines_with_a_bomb():
            process.stdin.write(chunk)
            peak = high_water(process.pid)
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0
    assert peak < MAX_BYTES
    assert out.decode().splitlines() == GOOD
    assert b"row 2" in err
    assert b"longer than" in err
