"""Files: complete streams or the reason why not, errors that name the file, copies inside their folder."""

import errno
import gzip
import os
import struct
from pathlib import Path

import pyarrow as pa
import pytest
from support.expect import error_message
from support.source_rows import COMPRESS

from minwise.errors import ConfigError
from minwise.inputs.files import File, open_output, output_path, url_filesystem
from minwise.inputs.source import UnreadableError

BODY = os.urandom(150_000).hex().encode()
PACKED = [".gz", ".bz2", ".zst"]


def unpacked(tmp_path: Path, suffix: str, data: bytes) -> bytes:
    """Return the decompressed content of a file of these bytes."""
    path = tmp_path / f"file{suffix}"
    path.write_bytes(data)
    return b"".join(File(str(path)).chunks())


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_file_of_one_or_several_members_is_read_completely(suffix: str, tmp_path: Path) -> None:
    """As parallel compressors and ``cat`` make them, empty members too."""
    pack = COMPRESS[suffix]
    assert unpacked(tmp_path, suffix, pack(BODY)) == BODY
    assert unpacked(tmp_path, suffix, pack(BODY) + pack(b"") + pack(b"x") + pack(BODY)) == BODY + b"x" + BODY


@pytest.mark.parametrize("suffix", COMPRESS)
def test_an_empty_file_is_valid_only_without_compression(suffix: str, tmp_path: Path) -> None:
    """Compressors write a header even for empty input."""
    if suffix:
        with pytest.raises(UnreadableError, match=r"truncated .+: it is empty"):
            unpacked(tmp_path, suffix, b"")
    assert unpacked(tmp_path, suffix, COMPRESS[suffix](b"")) == b""


def test_padding_and_skippable_frames_are_skipped(tmp_path: Path) -> None:
    """Tapes pad gzip with zeros; pzstd writes skippable frames."""
    assert unpacked(tmp_path, ".gz", gzip.compress(BODY) + bytes(512)) == BODY
    frame = struct.pack("<II", 0x184D2A50, 4) + b"abcd"
    assert unpacked(tmp_path, ".zst", frame + COMPRESS[".zst"](BODY)) == BODY


@pytest.mark.parametrize("suffix", PACKED)
@pytest.mark.parametrize("share", [0.0001, 0.5, 0.9999])
def test_a_truncated_stream_yields_its_data_and_raises(suffix: str, share: float, tmp_path: Path) -> None:
    """Also in its second member."""
    path = tmp_path / f"file{suffix}"
    packed = COMPRESS[suffix](BODY)
    path.write_bytes(packed + packed[: max(5, int(share * len(packed)))])
    found: list[bytes] = []
    with pytest.raises(UnreadableError, match=r"truncated (gzip|bz2|zstd)"):
        found.extend(File(str(path)).chunks())
    assert (BODY + BODY).startswith(b"".join(found))
    assert len(b"".join(found)) >= 0.8 * len(BODY)


@pytest.mark.parametrize("suffix", PACKED)
def test_an_uncompressed_file_with_the_suffix_of_a_compression_is_unreadable(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match=f"although its name ends in {suffix}; rename it"):
        unpacked(tmp_path, suffix, b"not compressed")


def test_system_errors_are_raised_and_name_the_file(tmp_path: Path) -> None:
    for broken in (tmp_path / "missing.gz", tmp_path):
        with pytest.raises(OSError, match=str(broken)) as caught:
            list(File(str(broken)).chunks())
        assert caught.value.errno in (errno.ENOENT, errno.EISDIR)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("compression", [None, "gzip", "bz2", "zstd"])
def test_a_full_disk_is_an_error_with_errno_and_path(compression: str | None) -> None:
    def fill() -> None:
        with open_output(Path("/dev/full"), compression) as file:
            file.write(os.urandom(1 << 22))

    with pytest.raises(OSError, match="No space left") as caught:
        fill()
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, "/dev/full")


@pytest.mark.parametrize("compression", ["gzip", "bz2", "zstd"])
def test_the_same_bytes_compress_to_the_same_bytes(compression: str, tmp_path: Path) -> None:
    """The header has neither time nor name."""
    for name in ("one", "two"):
        with open_output(tmp_path / name, compression) as file:
            file.write(BODY)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert compression != "gzip" or (tmp_path / "one").read_bytes()[3:8] == bytes(5)


@pytest.mark.parametrize(
    ("name", "root", "expected"),
    [
        ("x.csv", "", "x.csv"),
        ("data/a/x.csv", "data", "a/x.csv"),
        ("/data/a/x.csv", "/data", "a/x.csv"),
        ("/x.csv", "", "x.csv"),
        ("../data/x.csv", "../data", "x.csv"),
        ("../x.csv", "", "_up/x.csv"),
        ("s3://bucket/a/x.csv", "s3://bucket", "a/x.csv"),
        ("s3://bucket/a/x.csv", "", "s3/bucket/a/x.csv"),
    ],
)
def test_a_copy_stays_in_its_folder(name: str, root: str, expected: str) -> None:
    assert output_path(name, Path("out"), root) == Path("out") / expected


def test_a_name_that_is_not_utf8_is_escaped(tmp_path: Path) -> None:
    """The file itself is opened by its original name."""
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt")
    Path(path).write_bytes(b"abc")
    file = File(path)
    assert file.name.endswith("/\\udcff.txt")
    assert b"".join(file.chunks()) == b"abc"


def test_a_missing_driver_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gcsfs", None)
    message = error_message(ConfigError, lambda: url_filesystem("gs://bucket/x.csv"))
    assert message.endswith("pip install fsspec gcsfs")
    assert "no-such" in error_message(ConfigError, lambda: url_filesystem("no-such://bucket/x.csv"))
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    assert error_message(ConfigError, lambda: url_filesystem("memory://x.csv")).endswith("pip install fsspec")


def test_a_fingerprint_changes_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(b"abc")
    before = File(str(path)).fingerprint()
    assert before == {"name": str(path), "bytes": 3, "modified": path.stat().st_mtime_ns}
    os.utime(path, ns=(1, 1))
    assert File(str(path)).fingerprint() != before
    assert pa.OSFile(str(path)).size() == 3
