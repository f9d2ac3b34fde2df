"""Indexes and request bodies of the benchmark, built once and kept in the cache.

``python -m benchmarks.server.prepare DOCUMENTS shingles|text`` builds into ``~/.cache/minwise-bench/server``.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import cast

import minwise as mw
from benchmarks.server.texts import cut_pieces, questions, stored_texts
from benchmarks.speed.corpus import cache_dir, prepare_corpus
from minwise.index import StoreName

MEGABYTES = 400
# Documents added by one call.
BATCH = 20_000
# Distinct queries: half of them are near-copies of a stored text each, so that not always the same blocks are read.
QUESTIONS = 20_000
# Pieces from which the script of wrk composes new documents: enough for 10^60 texts.
PIECES = 50_000
# To be increased when the built files change.
VERSION = 1
SEED = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Input of a load.

    Attributes:
        index: Directory of the index, which must not be changed.
        questions: Query texts, one JSON string per line: near-copies and new texts alternate.
        pieces: Pieces of texts, one per line as a JSON string without quotation marks.
    """

    index: Path
    questions: Path
    pieces: Path

    def asked(self) -> list[str]:
        """Return the query texts."""
        return [json.loads(line) for line in self.questions.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    """Build the files of one index."""
    print(prepare(int(sys.argv[1]), cast("StoreName", sys.argv[2])).index)


def prepare(documents: int, store: StoreName) -> Prepared:
    """Return an index and its request bodies, built if they are not in the cache."""
    folder = cache_dir() / "server" / f"{documents}-{store}-{VERSION}-{mw.__version__}"
    done = Prepared(index=folder / "index.mw", questions=folder / "questions", pieces=folder / "pieces")
    if not folder.exists():
        print(f"building an index of {documents:,} documents with {store} ...", flush=True)
        part = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        build(part, documents, store)
        part.rename(folder)
    return done


def build(folder: Path, documents: int, store: StoreName) -> None:
    """Build the index, and write queries and pieces."""
    pieces = cut_pieces(prepare_corpus("short", MEGABYTES).path)
    sample: list[str] = []
    with mw.Index.create(
        folder / "index.mw", store_text=store == "text", sketch_only=store == "sketch", seed=SEED
    ) as index:
        for number, texts in enumerate(batches(stored_texts(pieces, documents))):
            first = number * BATCH
            index.add([f"document-{row:08}" for row in range(first, first + len(texts))], texts)
            sample += texts[:: max(1, documents // (8 * QUESTIONS))]
    write_lines(folder / "questions", [json.dumps(text) for text in questions(pieces, sample, QUESTIONS)])
    write_lines(folder / "pieces", [json.dumps(piece)[1:-1] for piece in pieces[:PIECES]])


def batches(texts: Iterator[str]) -> Iterator[list[str]]:
    """Yield texts in lists."""
    while batch := list(islice(texts, BATCH)):
        yield batch


def write_lines(path: Path, lines: list[str]) -> None:
    """Write lines; JSON strings contain no line breaks."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
