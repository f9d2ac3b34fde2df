"""Signature files: round trips, and refusal of every damaged, forged or unknown file."""

import json
import os
import pickle
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.expect import error_message
from support.schemes import assert_same_slots, every_scheme, name_of

import minwise as mw
from minwise import _kernel
from minwise._internal import array_files as array_file
from minwise.errors import FormatError, MismatchError
from minwise.sketches import Signatures
from minwise.sketches.schemes import Scheme
from minwise.text import UNICODE_VERSION

SMALL = mw.ShingleSets.from_sets([[1, 2, 3]])
WORDS = mw.Shingler("word:2")
FAST = mw.FastSketch(slots=16)


def assert_same(left: Signatures, right: Signatures) -> None:
    """Assert that all contents of two signatures are equal."""
    assert_same_slots(left, right)
    assert (left.sizes is None) == (right.sizes is None)
    if left.sizes is not None:
        np.testing.assert_array_equal(left.sizes, right.sizes)


TEXTS = ["one two three four", "", "eins zwei drei", "一二三四"]


def sample(scheme: Scheme, *, sizes: bool = True) -> Signatures:
    """Return the signatures of a few texts."""
    return scheme.sketch_texts(TEXTS, WORDS, sizes=sizes)


@every_scheme
@pytest.mark.parametrize("sizes", [True, False], ids=["sizes", "no sizes"])
def test_a_loaded_file_equals_what_was_saved(scheme: Scheme, sizes: bool, tmp_path: Path) -> None:
    """For every scheme, with and without sizes; the settings can be checked on loading."""
    saved = sample(scheme, sizes=sizes)
    saved.save(tmp_path / "signatures")
    loaded = Signatures.load(str(tmp_path / "signatures"), scheme=scheme, shingler=WORDS)
    assert_same(saved, loaded)
    assert loaded.estimate(0, 2) == saved.estimate(0, 2)
    assert loaded.estimate(0, 0, other=saved).value == 1


@pytest.mark.parametrize(
    "signatures",
    [
        FAST.sketch_texts([]),
        FAST.bbit(1).sketch_texts([], sizes=True),
        mw.FastSketch(slots=1).sketch_texts(["a"]),
        FAST.sketch(SMALL),
        FAST.sketch(mw.ShingleSets(SMALL.offsets, SMALL.hashes)),
        mw.FastSketch(slots=16, seed=2**64 - 1).sketch_texts(["a"], mw.Shingler(seed=2**64 - 1, bag=True)),
        mw.MinHash(slots=300).sketch_texts(["a few words"] * 3000),
    ],
    ids=["no documents", "no packed documents", "one slot", "sets", "unknown settings", "greatest seed", "many"],
)
def test_unusual_signatures_round_trip(signatures: Signatures, tmp_path: Path) -> None:
    signatures.save(tmp_path / "signatures")
    assert_same(signatures, Signatures.load(tmp_path / "signatures"))


def test_settings_given_as_numpy_numbers_round_trip(tmp_path: Path) -> None:
    number: Any = np.int64
    scheme = mw.FastSketch(slots=number(16), seed=number(5), bits=number(8))
    signatures = scheme.sketch_texts(TEXTS, mw.Shingler("word:2", seed=number(3)))
    signatures.save(tmp_path / "signatures")
    assert_same(signatures, Signatures.load(tmp_path / "signatures"))


def test_equal_signatures_give_equal_bytes(tmp_path: Path) -> None:
    """No time, name or random number is in the file; also from another process."""
    sample(FAST).save(tmp_path / "a")
    sample(FAST).save(tmp_path / "b")
    Signatures.load(tmp_path / "a").save(tmp_path / "c")
    program = f"""
import minwise as mw
mw.FastSketch(slots=16).sketch_texts({TEXTS!r}, mw.Shingler("word:2"), sizes=True).save({str(tmp_path / "d")!r})
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert len({(tmp_path / name).read_bytes() for name in "abcd"}) == 1


def header_of(data: bytes) -> dict[str, Any]:
    """Return the header of a signature file, by the layout documented in its module."""
    magic, version, length, _ = struct.unpack("<8sIII", data[:20])
    assert (magic, version) == (b"MINWSIG\n", 1)
    header: dict[str, Any] = json.loads(data[20 : 20 + length])
    return header


def test_a_file_describes_itself(tmp_path: Path) -> None:
    """Plain JSON, then arrays at multiples of 64 that NumPy alone can read."""
    signatures = sample(mw.MinHash(slots=8).bbit(4))
    signatures.save(tmp_path / "signatures")
    data = (tmp_path / "signatures").read_bytes()
    header = header_of(data)
    assert header["settings"] == {"scheme": "minhash", "slots": 8, "seed": 1, "bits": 4, "densify": None}
    assert header["shingle_settings"] == WORDS.settings
    assert header["unicode_version"] == UNICODE_VERSION
    assert header["written_by"] == f"minwise {mw.__version__}"
    assert header["file_bytes"] == len(data)
    entries = {entry["name"]: entry for entry in header["arrays"]}
    assert list(entries) == ["slots", "sizes", "empty"]
    assert all(entry["position"] % 64 == 0 for entry in entries.values())
    sizes = np.frombuffer(data, dtype="<u8", count=4, offset=entries["sizes"]["position"])
    np.testing.assert_array_equal(sizes, signatures.sizes)


SMALL_FILES = [mw.FastSketch(slots=2), mw.MinHash(slots=3), mw.MinHash(slots=16).bbit(1)]


@pytest.fixture(params=SMALL_FILES, ids=name_of)
def small_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file small enough to damage in every possible way."""
    path = tmp_path / "signatures"
    sample(request.param).save(path)
    assert path.stat().st_size < 1500
    return path


def loads(path: Path) -> bool:
    """Return whether a file is read; if not, the error must be a one-line FormatError that names it."""
    fault: FormatError | None = None
    try:
        Signatures.load(path)
    except FormatError as error:
        fault = error
    if fault is not None:
        assert str(fault).startswith(f"{path}: ")
        assert "\n" not in str(fault)
        assert fault.__cause__ is None
        assert fault.__context__ is None or fault.__suppress_context__
    return fault is None


def test_a_file_truncated_at_any_length_is_refused(small_file: Path) -> None:
    data = small_file.read_bytes()
    for length in range(len(data) - 1, -1, -1):
        os.truncate(small_file, length)
        assert not loads(small_file), f"{length} of {len(data)} bytes"


@pytest.mark.parametrize("tail", [b"\0", b"\n", b"x" * 64])
def test_a_file_with_appended_bytes_is_refused(small_file: Path, tail: bytes) -> None:
    small_file.write_bytes(small_file.read_bytes() + tail)
    assert not loads(small_file)


def test_every_flipped_bit_is_detected(small_file: Path) -> None:
    """All bits one by one, including the padding."""
    data = small_file.read_bytes()
    unnoticed = set()
    with small_file.open("r+b", buffering=0) as file:
        for position, byte in enumerate(data):
            for bit in range(8):
                file.seek(position)
                file.write(bytes([byte ^ 1 << bit]))
                if loads(small_file):
                    unnoticed.add(position)
            file.seek(position)
            file.write(bytes([byte]))
    assert small_file.read_bytes() == data
    assert not unnoticed - padding(data), "flips in header or arrays went unnoticed"
    assert not unnoticed, f"flips in {len(unnoticed)} bytes of padding went unnoticed"


def padding(data: bytes) -> set[int]:
    """Return the offsets of a file that are neither header nor array."""
    _, _, length, _ = struct.unpack("<8sIII", data[:20])
    used = set(range(20 + length))
    for entry in header_of(data)["arrays"]:
        width = int(entry["dtype"][1:])
        used |= set(range(entry["position"], entry["position"] + width * int(np.prod(entry["shape"]))))
    return set(range(len(data))) - used


def test_another_format_version_is_refused(small_file: Path) -> None:
    """With both versions and the remedy, before any other check."""
    data = small_file.read_bytes()
    for version in (0, 2, 2**32 - 1):
        small_file.write_bytes(data[:8] + struct.pack("<I", version) + data[12:])
        message = error_message(FormatError, lambda: Signatures.load(small_file))
        assert message == f"{small_file}: the format version must be 1, got {version}; sketch the texts again"


OTHER_FORMATS: dict[str, bytes] = {
    "nothing": b"",
    "text": b"just some text, longer than any prefix",
    "pickle": pickle.dumps({"settings": {}}),
    "zeros": bytes(4096),
    "numpy": b"\x93NUMPY\x01\x00" + bytes(100),
    "only the magic": b"MINWSIG\n",
    "magic and version": b"MINWSIG\n" + struct.pack("<I", 1),
    "a header of 4 GB": b"MINWSIG\n" + struct.pack("<III", 1, 2**32 - 1, 0),
}


@pytest.mark.parametrize("kind", OTHER_FORMATS)
def test_a_file_of_another_format_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_bytes(OTHER_FORMATS[kind])
    assert not loads(path)


def sealed(header: bytes, *, file_bytes: int = 0) -> bytes:
    """Return a file with a given header and a valid checksum."""
    covered = np.frombuffer(struct.pack("<II", 1, len(header)) + header, dtype=np.uint8)
    file = struct.pack("<8sIII", b"MINWSIG\n", 1, len(header), _kernel.crc32c(covered, 0)) + header
    return file.ljust(file_bytes, b"\0")


SETTINGS = {"scheme": "fast", "slots": 2, "seed": 1, "bits": None, "densify": None}
ZEROS = np.zeros(16, dtype=np.uint8)
ENTRY = {"name": "slots", "dtype": "u8", "shape": [1, 2], "position": 4032, "crc32c": _kernel.crc32c(ZEROS, 0)}
FORGED: dict[str, Any] = {
    "no object": [],
    "no length": {},
    "no arrays": {"arrays": None},
    "no slots": {"arrays": []},
    "unknown type": {"arrays": [{**ENTRY, "dtype": "O8"}]},
    "negative shape": {"arrays": [{**ENTRY, "shape": [-1, 2]}]},
    "shape beyond the file": {"arrays": [{**ENTRY, "shape": [2**40, 2]}]},
    "position beyond the file": {"arrays": [{**ENTRY, "position": 5000}]},
    "negative position": {"arrays": [{**ENTRY, "position": -1}]},
    "one dimension": {"arrays": [{**ENTRY, "shape": [2]}]},
    "fewer slots than it says": {"settings": {**SETTINGS, "slots": 3}},
    "unknown scheme": {"settings": {**SETTINGS, "scheme": "guess"}},
    "unknown setting": {"settings": {**SETTINGS, "mood": "good"}},
    "settings missing": {"settings": None},
    "bits that are not packed": {"settings": {**SETTINGS, "bits": 8}},
    "sizes of another length": {"arrays": [ENTRY, {**ENTRY, "name": "sizes", "shape": [2]}]},
}


def forged(changes: Any) -> bytes:  # noqa: ANN401 - a header, or any JSON value
    """Return a file with valid checksums and an invalid header."""
    header = {"settings": SETTINGS, "shingle_settings": None, "arrays": [ENTRY], "file_bytes": 4048}
    changed = {**header, "unicode_version": UNICODE_VERSION, **changes} if changes else changes
    return sealed(json.dumps(changed).encode().ljust(4032 - struct.calcsize("<8sIII")), file_bytes=4048)


def test_a_valid_handmade_file_is_read(tmp_path: Path) -> None:
    """So that the forged files below are refused only for their fault."""
    path = tmp_path / "made"
    path.write_bytes(forged({"arrays": [ENTRY]}))
    assert Signatures.load(path).slots.tolist() == [[0, 0]]


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_header_is_refused(kind: str, tmp_path: Path) -> None:
    """Although its checksum is valid."""
    path = tmp_path / "forged"
    path.write_bytes(forged(FORGED[kind]))
    assert not loads(path)


def test_a_header_that_is_not_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "forged"
    for header in (b"{", b"\xff" * 40, b"[" * 100_000):
        path.write_bytes(sealed(header))
        assert not loads(path)


def test_loading_runs_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file loads with pickle and eval disabled."""
    sample(FAST).save(tmp_path / "signatures")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("loading must not run code")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    monkeypatch.setattr("builtins.eval", refuse)
    assert_same(Signatures.load(tmp_path / "signatures"), sample(FAST))
    source = Path(array_file.__file__).read_text(encoding="utf-8")
    assert "import pickle" not in source
    assert "allow_pickle" not in source


@pytest.mark.parametrize(
    ("scheme", "parts"),
    [
        (mw.MinHash(slots=16), ("scheme", "'fast'", "'minhash'")),
        (mw.FastSketch(slots=32), ("slots", "16", "32")),
        (mw.FastSketch(slots=16, seed=9), ("seed", "1", "9")),
        (mw.FastSketch(slots=16, bits=4), ("bits", "None", "4")),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_file_of_another_scheme_is_refused(scheme: Scheme, parts: tuple[str, ...], tmp_path: Path) -> None:
    """With the file, the setting and both values."""
    sample(FAST).save(tmp_path / "signatures")
    message = error_message(MismatchError, lambda: Signatures.load(tmp_path / "signatures", scheme=scheme))
    assert all(part in message for part in (str(tmp_path / "signatures"), *parts)), message


@pytest.mark.parametrize(
    ("shingler", "parts"),
    [
        (mw.Shingler("char:9"), ("shingle", "'word:2'", "'char:9'")),
        (mw.Shingler("word:2", seed=3), ("seed", "1", "3")),
        (mw.Shingler("word:2", bag=True), ("bag", "False", "True")),
        (mw.Shingler("word:2", nfkc=False), ("nfkc", "True", "False")),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_file_of_other_shingles_is_refused(shingler: mw.Shingler, parts: tuple[str, ...], tmp_path: Path) -> None:
    """With the file, the setting and both values."""
    sample(FAST).save(tmp_path / "signatures")
    message = error_message(MismatchError, lambda: Signatures.load(tmp_path / "signatures", shingler=shingler))
    assert all(part in message for part in (str(tmp_path / "signatures"), *parts)), message


def test_signatures_of_another_unicode_version_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its words may differ; the file contains the version, and the message both."""
    monkeypatch.setattr(_kernel, "UNICODE_VERSION", "3.2.0")
    sample(FAST).save(tmp_path / "signatures")
    monkeypatch.undo()
    call = lambda: Signatures.load(tmp_path / "signatures").estimate(0, 0, other=sample(FAST))  # noqa: E731
    message = error_message(MismatchError, call)
    assert "3.2.0" in message
    assert UNICODE_VERSION in message


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "Ctrl-C"])
@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace"])
def test_a_save_that_fails_leaves_the_old_file(
    step: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other file is left in the directory."""
    path = tmp_path / "signatures"
    sample(FAST).save(path)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(step, fail)
    with pytest.raises(type(error)):
        sample(mw.FastSketch(slots=32)).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_save_that_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(5, "Input/output error")))
    with pytest.raises(OSError, match="Input/output error"):
        sample(FAST).save(tmp_path / "signatures")
    assert list(tmp_path.iterdir()) == []


def test_saving_replaces_an_existing_file(tmp_path: Path) -> None:
    path = tmp_path / "signatures"
    path.write_bytes(b"something else, and longer" * 1000)
    sample(FAST).save(path)
    assert_same(Signatures.load(path), sample(FAST))


def test_a_failed_save_names_the_path_of_the_caller(tmp_path: Path) -> None:
    """Not that of the temporary file."""
    path = tmp_path / "no such folder" / "signatures"
    with pytest.raises(FileNotFoundError) as caught:
        sample(FAST).save(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Signatures.load(tmp_path / "nowhere")
