"""Text corpora as Parquet files in the cache.

A corpus is built once, from text that is installed on the machine or available from its package sources, in a fixed
order. The file has two columns, ``id`` and ``text``; a JSON file next to it describes it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.speed import languages, sources

SCHEMA = pa.schema([("id", pa.string()), ("text", pa.large_string())])
ROW_GROUP_BYTES = 16_000_000  # enough groups for parallel decoding, few enough for zstd to find repetitions
MIN_SOURCE_BYTES = 200_000_000
LANGUAGE_BYTES = 20_000_000
NAMES = ("source", "short", *languages.LANGUAGES)

Document = tuple[str, str]


class CorpusUnavailableError(RuntimeError):
    """Raised when the texts of a corpus are not available on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """A corpus in the cache.

    Attributes:
        name: One of `NAMES`.
        file: Name of the Parquet file inside `cache_dir`.
        documents: Number of documents.
        text_bytes: Length of all texts as UTF-8.
        sha256: Of all texts in order, each followed by a NUL byte.
        note: Origin and properties of the texts.
    """

    name: str
    file: str
    documents: int
    text_bytes: int
    sha256: str
    note: str

    @property
    def path(self) -> Path:
        """Path of the Parquet file."""
        return cache_dir() / self.file

    @property
    def mean_bytes(self) -> float:
        """Mean length of a document in bytes."""
        return self.text_bytes / max(1, self.documents)


def cache_dir() -> Path:
    """Return the folder outside the repository for corpora, packages and the environments of the peers."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "minwise-bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def prepare_corpus(name: str, megabytes: int) -> Corpus:
    """Return the corpus called ``name``, building it if the cache has none.

    Args:
        name: One of `NAMES`.
        megabytes: Size of ``source``; ``short`` gets half of it, a language 20 MB.

    Raises:
        CorpusUnavailableError: If no text was found.
    """
    stem = name if name in languages.LANGUAGES else f"{name}-{megabytes}mb"
    description = cache_dir() / f"{stem}.json"
    if not description.exists():
        print(f"building corpus {name} ...", flush=True)
        corpus = builder(name)(f"{stem}.parquet", megabytes * 1_000_000)
        description.write_text(json.dumps(asdict(corpus), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return Corpus(**json.loads(description.read_text(encoding="utf-8")))


def builder(name: str) -> Callable[[str, int], Corpus]:
    """Return the function that builds the corpus called ``name`` into a file, from a size in bytes."""
    if name == "source":
        return build_source
    if name == "short":
        return build_short
    return lambda file, _: build_language(name, file)


def build_source(file: str, target_bytes: int) -> Corpus:
    """Build the corpus of whole files: program sources and documentation."""
    documents, note = sources.source_documents(cache_dir(), target_bytes)
    corpus = write_corpus("source", file, documents, note)
    if corpus.text_bytes < MIN_SOURCE_BYTES:
        print(f"source: only {corpus.text_bytes / 1e6:.0f} MB found, {MIN_SOURCE_BYTES / 1e6:.0f} MB expected")
    return corpus


def build_short(file: str, target_bytes: int) -> Corpus:
    """Build the corpus of passages of 50 to 400 words of ``source``, with half its size."""
    source = prepare_corpus("source", target_bytes // 1_000_000)
    passages = sources.cut_passages(read_documents(source.path))
    return write_corpus("short", file, up_to(passages, target_bytes // 2), f"passages of 50-400 words of {source.file}")


def build_language(name: str, file: str) -> Corpus:
    """Build the corpus of one language."""
    lines, packages = languages.collect_lines(name, cache_dir() / "packages")
    documents = up_to(languages.repeat_documents(lines), LANGUAGE_BYTES)
    line_bytes = sum(len(line.encode()) + 1 for line in lines)
    note = f"{line_bytes / 1e6:.1f} MB of distinct lines of {', '.join(packages)}"
    if line_bytes < LANGUAGE_BYTES:
        note += f"; repeated {LANGUAGE_BYTES / max(1, line_bytes):.1f} times, with the lines shuffled each time"
    return write_corpus(name, file, documents, note)


def up_to(documents: Iterable[Document], limit_bytes: int) -> Iterator[Document]:
    """Yield documents until their texts reach ``limit_bytes``."""
    total = 0
    for document in documents:
        yield document
        total += len(document[1].encode())
        if total >= limit_bytes:
            return


def read_documents(path: Path) -> Iterator[Document]:
    """Yield the documents of a Parquet file in order."""
    for batch in pq.ParquetFile(path).iter_batches(batch_size=1000, columns=["id", "text"]):
        yield from zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)


def write_corpus(name: str, file: str, documents: Iterable[Document], note: str) -> Corpus:
    """Write documents to a zstd Parquet file in the cache and return its description."""
    digest, count, total = hashlib.sha256(), 0, 0
    part = cache_dir() / f"{file}.part"
    with pq.ParquetWriter(part, SCHEMA, compression="zstd") as writer:
        for group in row_groups(documents):
            writer.write_table(pa.table(list(zip(*group, strict=True)), schema=SCHEMA))
            for _, text in group:
                digest.update(text.encode() + b"\0")
                total += len(text.encode())
            count += len(group)
    if not count:
        raise CorpusUnavailableError(f"no text found for the corpus {name!r}")
    part.replace(cache_dir() / file)
    return Corpus(name=name, file=file, documents=count, text_bytes=total, sha256=digest.hexdigest(), note=note)


def row_groups(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Yield documents in lists of about `ROW_GROUP_BYTES`."""
    group: list[Document] = []
    held = 0
    for document in documents:
        group.append(document)
        held += len(document[1].encode())
        if held >= ROW_GROUP_BYTES:
            yield group
            group, held = [], 0
    if group:
        yield group
