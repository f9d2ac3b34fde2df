"""Prepare: an index of many texts and the bodies that wrk sends, built once and kept in the cache.

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
# Documents that are added with one call.
BATCH = 20_000
# Different texts to ask for: half of them are like one stored text each, so that not the same few are read again.
QUESTIONS = 20_000
# Pieces that new documents are put together from by wrk's script: 10^60 texts.
PIECES = 50_000
# Changes with anything that decides what is built.
VERSION = 1
SEED = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What a load needs.

    Attributes:
        index: The directory of the index, which nobody may change.
        questions: A text per line as a JSON string: near-copies and new ones in turn.
        pieces: A piece of a text per line as a JSON string without its quotation marks.
    """

    index: Path
    questions: Path
    pieces: Path

    def asked(self) -> list[str]:
        """Return the questions as texts."""
        return [json.loads(line) for line in self.questions.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    """Build one."""
    print(prepare(int(sys.argv[1]), cast("StoreName", sys.argv[2])).index)


def prepare(documents: int, store: StoreName) -> Prepared:
    """Return an index of so many documents and its bodies, built if the cache has none."""
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
    """Fill the index, and write what is sent."""
    pieces = cut_pieces(prepare_corpus("short", MEGABYTES).path)
    sample: list[str] = []
    with mw.Index.create(folder / "index.mw", store=store, seed=SEED) as index:
        for number, texts in enumerate(batches(stored_texts(pieces, documents))):
            first = number * BATCH
            index.add([f"document-{one:08}" for one in range(first, first + len(texts))], texts)
            sample += texts[:: max(1, documents // (8 * QUESTIONS))]
    write_lines(folder / "questions", [json.dumps(text) for text in questions(pieces, sample, QUESTIONS)])
    write_lines(folder / "pieces", [json.dumps(piece)[1:-1] for piece in pieces[:PIECES]])


def batches(texts: Iterator[str]) -> Iterator[list[str]]:
    """Yield texts in lists."""
    while batch := list(islice(texts, BATCH)):
        yield batch


def write_lines(path: Path, lines: list[str]) -> None:
    """Write a line each; JSON strings have no line breaks."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
