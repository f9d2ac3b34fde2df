"""Damaged compressed files: every row before the damage is read, whatever the size of reads and chunks."""

import bz2
import gzip
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from minwise import dedup
from minwise.inputs import decompression, files
from minwise.inputs.files import File
from minwise.inputs.source import UnreadableError

ROWS = 3000
STRAY = b"garbage!"


def corpus() -> bytes:
    """Return JSON lines of 400 kB, several blocks of each compression at its smallest block size."""
    chance = random.Random(5)
    words = ["".join(chance.choices("abcdefghijklmno", k=7)) for _ in range(2000)]
    rows = (b'{"id":%d,"text":"%s"}\n' % (row, " ".join(chance.choices(words, k=14)).encode()) for row in range(ROWS))
    return b"".join(rows)


def zstd(data: bytes) -> bytes:
    """Compress as a stream, in blocks of 128 KiB."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue().to_pybytes())


def compress(suffix: str, data: bytes) -> bytes:
    """Compress data by the suffix of a file name."""
    compressors: dict[str, Callable[[bytes], bytes]] = {
        ".gz": gzip.compress,
        ".bz2": lambda data: bz2.compress(data, 1),
        ".zst": zstd,
    }
    return compressors[suffix](data)


def read(path: Path) -> tuple[bytes, str]:
    """Return the bytes before the damage, and the reason after them."""
    found = b""
    try:
        for chunk in File(str(path)).stored_chunks():
            found += chunk
    except UnreadableError as error:
        return found, str(error)
    return found, ""


def read_in_all_sizes(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[bytes, str]:
    """Return what all sizes of chunks and reads give alike."""
    found = set()
    for chunk, size in [(1 << 17, 1 << 16), (1 << 20, 1 << 16), (1000, 999), (77, 1 << 16), (1 << 17, 1)]:
        monkeypatch.setattr(files, "CHUNK_BYTES", chunk)
        monkeypatch.setattr(decompression, "READ_BYTES", size)
        found.add(read(path))
    (only,) = found
    return only


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
class TestDamage:
    def test_stray_bytes_after_the_end_lose_nothing(
        self, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        data, path = corpus(), tmp_path / f"x.jsonl{suffix}"
        stored = compress(suffix, data)
        path.write_bytes(stored + STRAY)
        assert read_in_all_sizes(path, monkeypatch)[0] == data
        name = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}[suffix]
        offset = int(read(path)[1].removeprefix(f"damaged {name} at byte ").split(":")[0])
        assert len(stored) <= offset < len(stored) + len(STRAY)

    def test_several_members_are_one_text(self, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        data, path = corpus(), tmp_path / f"x.jsonl{suffix}"
        path.write_bytes(
            b"".join(compress(suffix, data[start : start + 99_999]) for start in range(0, len(data), 99_999))
        )
        assert read_in_all_sizes(path, monkeypatch) == (data, "")

    def test_a_truncated_file_gives_its_beginning(
        self, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        data, path = corpus(), tmp_path / f"x.jsonl{suffix}"
        stored = compress(suffix, data)
        path.write_bytes(stored[: len(stored) * 3 // 4])
        beginning, reason = read_in_all_sizes(path, monkeypatch)
        assert reason.startswith("truncated ")
        assert data.startswith(beginning)
        assert len(beginning) > len(data) // 3  # all blocks but the last one and a half of at most 128 KiB

    def test_any_flipped_bit_gives_the_same_bytes_in_all_sizes(
        self, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        data, path = corpus(), tmp_path / f"x.jsonl{suffix}"
        stored, chance = compress(suffix, data), random.Random(8)
        for _ in range(6):
            flipped = bytearray(stored)
            flipped[chance.randrange(len(stored))] ^= 1 << chance.randrange(8)
            path.write_bytes(flipped)
            read_in_all_sizes(path, monkeypatch)

    def test_a_run_counts_all_rows_and_one_fault(self, suffix: str, tmp_path: Path) -> None:
        path = tmp_path / f"x.jsonl{suffix}"
        path.write_bytes(compress(suffix, corpus()) + STRAY)
        result = dedup(path, on_error="quarantine", progress=None)
        counts = result.report["counts"]
        assert (counts["read"], counts["kept"], counts["removed"]) == (ROWS, ROWS, 0)
        (fault,) = result.report["unreadable"]
        assert (fault["row"], fault["reason"][:7]) == (None, "damaged")

    def test_other_content_is_named(self, suffix: str, tmp_path: Path) -> None:
        path = tmp_path / f"x.jsonl{suffix}"
        path.write_bytes(b'{"text": "not compressed"}\n')
        assert "although its name ends in" in read(path)[1]


def test_padding_with_zeros_is_no_damage(tmp_path: Path) -> None:
    for suffix in (".gz", ".bz2"):
        path = tmp_path / f"x.jsonl{suffix}"
        path.write_bytes(compress(suffix, b"one\n") + bytes(600) + compress(suffix, b"two\n") + bytes(70_000))
        assert read(path) == (b"one\ntwo\n", "")


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_thousands_of_empty_members_are_no_damage(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"corpus.jsonl{suffix}"
    path.write_bytes(compress(suffix, b"") * 5000 + compress(suffix, b"text\n") + compress(suffix, b"") * 5000)
    assert read(path) == (b"text\n", "")
