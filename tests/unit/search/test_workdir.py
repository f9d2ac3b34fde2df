"""Files of a work directory: a flipped bit, a cut or an added byte is an error that names the file, or harmless.

By default 100 bits and 20 cuts of a file of each kind; `make torture` tries every bit and every cut.
"""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support.commands import TORTURE

from minwise._internal.array_files import Arrays
from minwise.errors import FormatError
from minwise.search.workdir import WorkDirectory

ARRAYS: Arrays = {
    "low": np.arange(5, dtype=np.uint32),
    "high": np.arange(5, dtype=np.uint64) * 7,
    "none": np.empty(0, dtype=np.uint8),
}
TABLE = pa.table({"id": pa.array(["a", "b", None]), "rank": pa.array([3, None, 1])})
VALUES = {"rows": [1, 2, 3], "name": "ferry", "share": 0.25, "nested": {"none": None}}


def read_arrays(work: WorkDirectory) -> object:
    file = work.open("file")
    return {name: file.read(name).tolist() for name in ARRAYS}, file.header["after"]


def map_arrays(work: WorkDirectory) -> object:
    file = work.open("file")
    return {name: file.map(name).tolist() for name in ARRAYS}, file.header["after"]


def read_parts(work: WorkDirectory) -> object:
    """Read as the kernel does: by offset in the file."""
    file = work.open("file")
    starts = {name: file.position(name) for name in ARRAYS}
    content = (work.folder / "file").read_bytes()
    return {name: content[start : start + ARRAYS[name].nbytes] for name, start in starts.items()}


def read_sealed(work: WorkDirectory) -> object:
    path, length = work.verified("file")
    return path.read_bytes()[:length]


def write_sealed(work: WorkDirectory) -> None:
    with work.sealed("file") as file:
        file.write(b"one ")
        file.write(memoryview(b"ferry"))


FILES: dict[str, tuple[Callable[[WorkDirectory], object], Callable[[WorkDirectory], object]]] = {
    "arrays": (lambda work: work.write("file", ARRAYS, after=7), read_arrays),
    "mapped arrays": (lambda work: work.write("file", ARRAYS, after=7), map_arrays),
    "parts of arrays": (lambda work: work.write("file", ARRAYS, after=7), read_parts),
    "table": (lambda work: work.write_table("file", TABLE), lambda work: work.read_table("file").to_pydict()),
    "JSON": (lambda work: work.write_json("file", VALUES), lambda work: work.read_json("file")),
    "other content": (write_sealed, read_sealed),
}


def damages(content: bytes) -> list[bytes]:
    """Return the content with a bit flipped, cut, and with a byte added."""
    draw = random.Random(2)
    bits, cuts = range(8 * len(content)), range(len(content))
    flips = bits if TORTURE else draw.sample(bits, 100)
    ends = cuts if TORTURE else draw.sample(cuts, 20)
    return [*(flipped(content, bit) for bit in flips), *(content[:end] for end in ends), content + b"\0"]


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.mark.parametrize(("write", "read"), FILES.values(), ids=FILES)
def test_damage_is_an_error_or_harmless(
    tmp_path: Path, write: Callable[[WorkDirectory], object], read: Callable[[WorkDirectory], object]
) -> None:
    work = WorkDirectory(tmp_path, durable=False)
    write(work)
    expected, content, reported = read(work), (tmp_path / "file").read_bytes(), 0
    tried = damages(content)
    for damaged in tried:
        (tmp_path / "file").write_bytes(damaged)
        try:
            found = read(work)
        except FormatError as error:
            message = str(error)
            reported += 1
        else:
            message = str(tmp_path / "file")
            assert found == expected, damaged
        assert message.startswith(str(tmp_path / "file")), message
    assert reported > len(tried) // 2, "only padding and white space are harmless"


def test_mapped_array_is_verified_once(tmp_path: Path) -> None:
    """Each use of a part must not read the whole array again."""
    work = WorkDirectory(tmp_path, durable=False)
    work.write("file", ARRAYS)
    file = work.open("file")
    assert file.map("low").tolist() == [0, 1, 2, 3, 4]
    (tmp_path / "file").unlink()
    file.verify("low")
