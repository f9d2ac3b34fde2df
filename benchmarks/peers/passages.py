"""Passages: a million documents of real text, and every tenth and every hundredth of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice

from benchmarks.speed.corpus import (
    Corpus,
    CorpusUnavailableError,
    Document,
    cache_dir,
    prepare_corpus,
    read_documents,
    write_corpus,
)
from benchmarks.speed.sources import cut_passages

MOST_DOCUMENTS = 1_000_000
SOURCE_MEGABYTES = 1300  # enough for a million passages
# About a kilobyte on average. With longer ones a million would take the slowest peers hours.
MOST_WORDS = 150


def prepare_passages(documents: int) -> Corpus:
    """Return a corpus of ``documents`` passages spread evenly over the million, building it if the cache has none.

    Raises:
        CorpusUnavailableError: If the texts that can be had here do not make so many.
    """
    facts = cache_dir() / f"passages-{documents}.json"
    if not facts.exists():
        print(f"building {documents:,} passages ...", flush=True)
        corpus = build(documents, f"passages-{documents}.parquet")
        facts.write_text(json.dumps(asdict(corpus), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return Corpus(**json.loads(facts.read_text(encoding="utf-8")))


def build(documents: int, file: str) -> Corpus:
    """Write the passages to a file of the cache."""
    if documents == MOST_DOCUMENTS:
        source = prepare_corpus("source", SOURCE_MEGABYTES)
        passages = cut_passages(read_documents(source.path), most_words=MOST_WORDS)
        note = f"passages of 50-{MOST_WORDS} words of {source.file}; {source.note}"
        corpus = write_corpus("passages", file, islice(passages, documents), note)
    else:
        step = MOST_DOCUMENTS // documents
        every = read_documents(prepare_passages(MOST_DOCUMENTS).path)
        corpus = write_corpus("passages", file, every_nth(every, step), f"one in {step} of passages-{MOST_DOCUMENTS}")
    if corpus.documents < documents:
        raise CorpusUnavailableError(f"{documents:,} passages are wanted, the texts here make {corpus.documents:,}")
    return corpus


def every_nth(documents: Iterable[Document], step: int) -> Iterator[Document]:
    """Yield the first document and each that is ``step`` after one."""
    return islice(documents, 0, None, step)
