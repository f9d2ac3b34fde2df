"""Whole files of program sources and documentation, and short passages of them."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import sysconfig
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow.parquet as pq

SHARED_TOOL = Path(__file__).parents[3] / "shared" / "tools" / "make_corpus.py"
MIN_FILE_BYTES, MAX_FILE_BYTES = 200, 1_000_000
MIN_WORDS, MAX_WORDS = 50, 400
WORD = re.compile(r"\w+")

Document = tuple[str, str]


def source_documents(cache: Path, target_bytes: int) -> tuple[Iterator[Document], str]:
    """Return whole files as documents, at least ``target_bytes`` if available, and a note on their origin."""
    if SHARED_TOOL.exists():
        return tool_documents(cache, target_bytes), f"packages read by {SHARED_TOOL.name}"
    return installed_documents(target_bytes), "sources and documentation installed on the machine"


def tool_documents(cache: Path, target_bytes: int) -> Iterator[Document]:
    """Yield the documents of the shared corpus tool."""
    made = cache / "made.parquet"
    subprocess.run([sys.executable, str(SHARED_TOOL), str(made), str(target_bytes)], check=True)
    for batch in pq.ParquetFile(made).iter_batches(batch_size=1000, columns=["id", "text"]):
        yield from zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
    made.unlink()


def installed_documents(target_bytes: int) -> Iterator[Document]:
    """Yield the texts installed on this machine, folder by folder, in path order."""
    total = 0
    for folder in installed_folders():
        for path in sorted(folder.rglob("*")):
            text = read_text(path)
            if text is None:
                continue
            yield str(path), text
            total += len(text.encode())
            if total >= target_bytes:
                return


def installed_folders() -> list[Path]:
    """Return the folders to read: those of Python, of the system, and of Rust."""
    python = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib")]
    system = [Path("/usr") / name for name in ("share/doc", "include", "lib/python3", "share/perl", "src")]
    return [*python, *system, Path.home() / ".cargo" / "registry" / "src", Path.home() / ".rustup"]


def read_text(path: Path) -> str | None:
    """Return the text of a file, or None if it is not UTF-8 text of a useful size."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        text = data.decode("utf-8")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        return None
    useful = MIN_FILE_BYTES <= len(data) <= MAX_FILE_BYTES and "\0" not in text
    return text if useful else None


def cut_passages(documents: Iterable[Document], *, max_words: int = MAX_WORDS) -> Iterator[Document]:
    """Split documents into passages of 50 to ``max_words`` words.

    The length of a passage depends only on the id of the document and the start of the passage.
    """
    for name, text in documents:
        starts = [match.start() for match in WORD.finditer(text)]
        first = 0
        while len(starts) - first >= MIN_WORDS:
            wanted = MIN_WORDS + zlib.crc32(f"{name}:{first}".encode()) % (max_words - MIN_WORDS + 1)
            stop = min(first + wanted, len(starts))
            end = starts[stop] if stop < len(starts) else len(text)
            yield f"{name}:{first}", text[starts[first] : end].rstrip()
            first = stop
