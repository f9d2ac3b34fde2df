"""Text files: one document each, in batches of many; a fault affects only its own file."""

from pathlib import Path

import numpy as np
import pytest
from support.source_rows import COMPRESS, TEXTS, faults_of, kept, masks, texts_of

from minwise.inputs import row_reader
from minwise.inputs.files import File
from minwise.inputs.source import Columns, Fault
from minwise.inputs.text_files import LinesFile, TextFiles


def source(folder: Path, texts: list[bytes], suffix: str = "") -> TextFiles:
    """Return the source of one file per text."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{number}.txt{suffix}" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(COMPRESS[suffix](text))
    return TextFiles([File(str(path)) for path in paths], [path.name for path in paths])


ENCODED = [text.encode() for text in TEXTS]


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("mask", range(5))
def test_files_are_read_and_the_kept_ones_copied_byte_for_byte(suffix: str, mask: int, tmp_path: Path) -> None:
    files = source(tmp_path / "in", ENCODED, suffix)
    assert texts_of(files) == texts_of(files, batch_bytes=1) == TEXTS
    keep = masks(len(TEXTS))[mask]
    assert files.copy_kept(keep, tmp_path / "out", str(tmp_path)) == keep.sum()
    copies = {path.name: path.read_bytes() for path in tmp_path.glob("out/in/*")}
    assert copies == {path.name: path.read_bytes() for path in kept(sorted(tmp_path.glob("in/*")), keep)}


def test_names_and_ids_of_rows_are_those_of_the_files(tmp_path: Path) -> None:
    files = source(tmp_path, ENCODED)
    rows = np.array([3, 0])
    assert files.locate(rows)[0].to_pylist() == [str(tmp_path / "3.txt"), str(tmp_path / "0.txt")]
    assert files.locate(rows)[1].tolist() == [0, 0]
    assert files.default_ids(rows).to_pylist() == ["3.txt", "0.txt"]
    assert files.known_rows() == len(TEXTS)
    assert files.size_bytes() == sum(map(len, ENCODED))


def test_a_fingerprint_changes_with_any_of_the_files(tmp_path: Path) -> None:
    files = source(tmp_path, ENCODED)
    before = files.fingerprint()
    assert (before["files"], before["bytes"]) == (len(TEXTS), files.size_bytes())
    (tmp_path / "3.txt").write_bytes(bytes(len(ENCODED[3])))
    assert files.fingerprint() != before


def test_a_byte_order_mark_is_part_of_the_copy_but_not_of_the_text(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are part of both."""
    files = source(tmp_path / "in", [b"\xef\xbb\xbfabc", b"a\xff"])
    (batch,) = files.batches(Columns())
    assert batch.values.to_pylist() == [b"abc", b"a\xff"]
    files.copy_kept(np.ones(2, dtype=np.bool_), tmp_path / "out", str(tmp_path / "in"))
    assert (tmp_path / "out" / "0.txt").read_bytes() == b"\xef\xbb\xbfabc"


def test_faults_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file too long, also when decompressed, or truncated; the row is 0."""
    monkeypatch.setattr(row_reader, "MAX_RECORD_BYTES", 50)
    files = source(tmp_path, [b"a", bytes(51), b"b" * 50, b"c"], ".gz")
    (tmp_path / "3.txt.gz").write_bytes((tmp_path / "3.txt.gz").read_bytes()[:-3])
    assert texts_of(files) == ["a", None, "b" * 50, None]
    names = [str(tmp_path / f"{row}.txt.gz") for row in range(4)]
    too_long, truncated = faults_of(files)
    assert too_long == Fault(names[1], 0, "is longer than 50 bytes")
    assert (truncated.source, truncated.row, truncated.reason[:14]) == (names[3], 0, "truncated gzip")


def test_only_wanted_files_are_opened(tmp_path: Path) -> None:
    files = source(tmp_path, ENCODED)
    for row in (0, 3, 6):
        (tmp_path / f"{row}.txt").unlink()
    wanted = np.array([False, True, True, False, True, True, False])
    found = [(batch.first, len(batch)) for batch in files.batches(Columns(), wanted=wanted)]
    assert found == [(1, 2), (4, 2)]
    assert texts_of(files, wanted=wanted) == [TEXTS[1], TEXTS[2], TEXTS[4], TEXTS[5]]
    with pytest.raises(FileNotFoundError):
        texts_of(files)


LINES = b"\xef\xbb\xbfthe harbour wakes\n\n  \t\nthe ferry leaves\r\na\xff\nlast"
ROWS = [b"the harbour wakes", b"the ferry leaves", b"a\xff", b"last"]


def lines(path: Path, content: bytes) -> LinesFile:
    """Return the source of a file with a document on each line."""
    path.write_bytes(content)
    return LinesFile(File(str(path)))


@pytest.mark.parametrize("suffix", COMPRESS)
def test_lines_are_documents_and_kept_lines_are_copied_byte_for_byte(suffix: str, tmp_path: Path) -> None:
    """Blank lines are not rows; line ends and a byte order mark belong to the copy but not to the text."""
    file = lines(tmp_path / f"x.txt{suffix}", COMPRESS[suffix](LINES))
    for size in (1, 1000):
        found = [text for batch in file.batches(Columns(), batch_bytes=size) for text in batch.values.to_pylist()]
        assert found == ROWS
    assert file.default_ids(np.array([1])).to_pylist() == [f"{file.name}:1"]
    keep = np.array([True, True, False, True])
    assert file.copy_kept(keep, tmp_path / "out", str(tmp_path)) == 3
    (copied,) = File(str(tmp_path / "out" / f"x.txt{suffix}")).chunks()
    assert copied == b"\xef\xbb\xbfthe harbour wakes\nthe ferry leaves\r\nlast\n"


def test_a_line_that_is_too_long_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_reader, "MAX_RECORD_BYTES", 20)
    file = lines(tmp_path / "x.txt", b"short\n" + b"x" * 50 + b"\nalso short\n")
    assert texts_of(file) == ["short", None, "also short"]
    assert faults_of(file) == [Fault(file.name, 1, "is longer than 20 bytes")]
    file.copy_kept(np.array([False, True, True]), tmp_path / "out", str(tmp_path))
    assert (tmp_path / "out" / "x.txt").read_bytes() == b"also short\n"


def test_lines_have_no_columns(tmp_path: Path) -> None:
    file = lines(tmp_path / "x.txt", LINES)
    (fault,) = file.batches(Columns(metadata=("lang",)))
    assert fault.faults[0].reason == "has no column 'lang': a line is one text and nothing else"


def test_a_source_says_how_text_files_are_read(tmp_path: Path) -> None:
    """The alternative is mentioned if a .txt file has several lines; other files cannot be doubted."""
    assert lines(tmp_path / "x.txt", LINES).reading() == "one document per line"
    assert source(tmp_path, [b"one line\n", b""]).reading() == "one document per file"
    several = "one document per file; format='lines' reads one per line"
    for suffix in COMPRESS:
        assert source(tmp_path, [b"", b"two\nlines"], suffix).reading() == several
    (tmp_path / "x.py").write_text("two\nlines")
    assert TextFiles([File(str(tmp_path / "x.py"))], ["x.py"]).reading() is None
