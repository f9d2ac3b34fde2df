"""Corpora of the benchmark: folders of Parquet files with the columns ``id`` and ``text``."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.scale.jobs import ScaleJob, prepare
from benchmarks.speed.corpus import cache_dir, prepare_corpus, read_documents
from benchmarks.speed.sources import cut_passages

# Size of the corpus of whole files that passages are taken from; enough for every number of documents.
MEGABYTES = 1300
FILES = 8  # so that each of a few cores has several to read
SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkCorpus:
    """Folder of documents, whose ids are their numbers from 0.

    Attributes:
        folder: Path of the folder.
        documents: Number of documents.
        text_bytes: Length of all texts as UTF-8.
        sha256: Of all texts in order, each followed by a NUL byte.
        note: Description of the documents.
    """

    folder: str
    documents: int
    text_bytes: int
    sha256: str
    note: str

    @property
    def files(self) -> list[Path]:
        """The Parquet files, in the order of documents."""
        return sorted(Path(self.folder).glob("part-*.parquet"))


def passages(documents: int) -> SparkCorpus:
    """Return a passage of each of the first files of ``source``, so that the length of files does not matter."""
    folder = cache_dir() / "spark" / f"passages-{documents}"
    if not (folder / "_corpus.json").exists():
        print(f"cutting {documents:,} passages ...", flush=True)
        source = prepare_corpus("source", MEGABYTES)
        texts = list(islice(one_passage_each(source.path), documents))
        write_files(folder, texts, f"a passage of 50-400 words of each file of {source.file}; shorter files whole")
    return SparkCorpus(**json.loads((folder / "_corpus.json").read_text(encoding="utf-8")))


def one_passage_each(source: Path) -> Iterator[str]:
    """Yield a passage of each document, chosen by its id alone; short documents unchanged."""
    for name, text in read_documents(source):
        cut = [passage for _, passage in cut_passages([(name, text)])] or [text]
        yield cut[zlib.crc32(name.encode()) % len(cut)]


def write_files(folder: Path, texts: list[str], note: str) -> None:
    """Write texts to files of equal length and, last, the description of the corpus."""
    folder.mkdir(parents=True, exist_ok=True)
    bounds = [number * len(texts) // FILES for number in range(FILES + 1)]
    for number in range(FILES):
        first, stop = bounds[number : number + 2]
        table = pa.table([range(first, stop), texts[first:stop]], schema=SCHEMA)
        pq.write_table(table, folder / f"part-{number:05}.parquet", compression="zstd")
    digest, size = hash_texts(texts)
    corpus = SparkCorpus(folder=str(folder), documents=len(texts), text_bytes=size, sha256=digest, note=note)
    (folder / "_corpus.json").write_text(json.dumps(asdict(corpus), indent=1) + "\n", encoding="utf-8")


def mixed(documents: int) -> SparkCorpus:
    """Return the synthetic documents of `benchmarks.scale`, a tenth of them near-duplicates."""
    made, files = prepare(ScaleJob(name="size", kind="mixed", documents=documents, memory="2GB"))
    return SparkCorpus(
        folder=str(files[0].parent),
        documents=documents,
        text_bytes=made.text_bytes,
        sha256=made.sha256,
        note="made-up documents of 54 words, a tenth of them near-duplicates",
    )


def hash_texts(texts: Iterable[str]) -> tuple[str, int]:
    """Return the SHA-256 of all texts in order, and their length."""
    digest, size = hashlib.sha256(), 0
    for text in texts:
        encoded = text.encode()
        digest.update(encoded + b"\0")
        size += len(encoded)
    return digest.hexdigest(), size
