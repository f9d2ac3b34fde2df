"""Corpora of passages of real text: a million documents, and every tenth and hundredth of them."""

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

MAX_DOCUMENTS = 1_000_000
SOURCE_MEGABYTES = 1300  # enough for a million passages
# About a kilobyte on average. With longer passages the slowest peers would take hours for a million.
MAX_WORDS = 150


def prepare_passages(documents: int) -> Corpus:
    """Return a corpus of ``documents`` passages spread evenly over the million, building it if the cache has none.

    Raises:
        CorpusUnavailableError: If there is not enough text on this machine.
    """
    description = cache_dir() / f"passages-{documents}.json"
    if not description.exists():
        print(f"building {documents:,} passages ...", flush=True)
        corpus = build(documents, f"passages-{documents}.parquet")
        description.write_text(json.dumps(asdict(corpus), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return Corpus(**json.loads(description.read_text(encoding="utf-8")))


def build(documents: int, file: str) -> Corpus:
    """Write the passages to a file in the cache."""
    if documents == MAX_DOCUMENTS:
        source = prepare_corpus("source", SOURCE_MEGABYTES)
        passages = cut_passages(read_documents(source.path), max_words=MAX_WORDS)
        note = f"passages of 50-{MAX_WORDS} words of {source.file}; {source.note}"
        corpus = write_corpus("passages", file, islice(passages, documents), note)
    else:
        step = MAX_DOCUMENTS // documents
        all_passages = read_documents(prepare_passages(MAX_DOCUMENTS).path)
        corpus = write_corpus(
            "passages", file, every_nth(all_passages, step), f"one in {step} of passages-{MAX_DOCUMENTS}"
        )
    if corpus.documents < documents:
        raise CorpusUnavailableError(
            f"{documents:,} passages are needed, but the texts here yield only {corpus.documents:,}"
        )
    return corpus


def every_nth(documents: Iterable[Document], step: int) -> Iterator[Document]:
    """Yield every ``step``-th document, starting with the first."""
    return islice(documents, 0, None, step)
