"""Corpora for both engines: every format, every fault, one large bucket, documents of 50 MB."""

import gzip
import json
import random
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from support.random_corpora import chain, words
from support.small_corpus import COMPRESSORS, FAULTS, write

Row = dict[str, Any]

TABLES = ("a.jsonl.gz", "b.csv.bz2", "c.tsv.zst", "d.arrow", "e.parquet", "f.csv", "g.jsonl", "h.feather")


def texts(seed: int, chains: int) -> list[str]:
    """Return chains, copies that differ in case, texts without a shingle, and unrelated ones."""
    rng = random.Random(seed)
    made = [text for _ in range(chains) for text in chain(rng, rng.randrange(10, 40), rng.randrange(2, 6))]
    made += [rng.choice((text, text.upper(), text.replace(" ", ", "))) for text in rng.choices(made, k=len(made) // 4)]
    made += ["", "?", "one", "One", "漢字 と かな", "漢字、と、かな"]
    made += [" ".join(words(rng, rng.randrange(5, 40))) for _ in range(len(made) // 3)]
    rng.shuffle(made)
    return made


def rows(seed: int, chains: int) -> list[Row]:
    """Return documents of two text columns, with characters that formats must escape, and a keep column."""
    rng = random.Random(seed)
    titles = ("", "a title", 'with "quotes", commas\tand a tab', "two\nlines", "ünïcödé")
    return [
        {"key": number, "title": rng.choice(titles), "body": text, "year": rng.choice((1970, 1990, 1991, 2020))}
        for number, text in enumerate(texts(seed, chains))
    ]


def write_tables(folder: Path, seed: int, chains: int = 25) -> None:
    """Write the documents to tables of every format; the ids of some are strings."""
    made = rows(seed, chains)
    for number, name in enumerate(TABLES):
        part = made[number :: len(TABLES)]
        if name.startswith("g."):
            part = [{**row, "key": f"g{row['key']}"} for row in part]
        write(folder / name, part)
    pq.write_table(pq.read_table(folder / "e.parquet"), folder / "e.parquet", row_group_size=5)


def write_dialects(folder: Path, seed: int, chains: int = 12) -> None:
    """Write tables of other delimiters and encodings, and a JSON array; executors have to detect the same."""
    folder.mkdir(parents=True)
    made = [(number, f"für Köln, {text}") for number, text in enumerate(texts(seed, chains)) if text.isascii()]
    for name, delimiter, encoding in (("a.csv", ";", "cp1252"), ("b.csv", "\t", "utf-16"), ("c.tsv", "|", "utf-8")):
        lines = [f"{number}{delimiter}{text}\r\n" for number, text in made]
        (folder / name).write_bytes("".join([f" id {delimiter} text\r\n", *lines]).encode(encoding))
        made = [(number + len(made), f"{text} again") for number, text in made[::2]]
    (folder / "d.json").write_text(json.dumps([{"id": number, "text": text} for number, text in made], indent=2))
    (folder / "e.csv").write_bytes("id,text\n1,Паром уходит в шесть часов утра\n".encode("cp1251"))


def write_texts(folder: Path, seed: int, chains: int = 8) -> None:
    """Write a document per file, some compressed, some with bytes that are no text."""
    folder.mkdir(parents=True)
    for number, (text, packing) in enumerate(zip(texts(seed, chains), cycle(("", "", ".gz", ".zst")), strict=False)):
        data = text.encode() + (b" \xff\xfe" if number % 9 == 0 else b"")
        (folder / f"{number:04}.txt{packing}").write_bytes(COMPRESSORS[packing](data))


def write_faults(folder: Path, seed: int) -> None:
    """Write every fault that a row or a file can have, among rows without fault."""
    for number, (name, content, _, _) in enumerate(FAULTS.values()):
        stem, _, form = name.partition(".")
        (folder / f"{number:02}").mkdir(parents=True)
        (folder / f"{number:02}" / f"{stem}.{form}").write_bytes(content)
    good = [{"id": row["key"], "text": row["body"]} for row in rows(seed, 25)]
    lines = [json.dumps(row).encode() + b"\n" for row in good]
    for row, line in (
        (3, b'{"id": 1, "text": null}\n'),
        (7, b"{oops\n"),
        (8, b'{"text": "\xff\xfe"}\n'),
        (20, b"\n"),
    ):
        lines[row] = line
    (folder / "lines.jsonl").write_bytes(b"".join(lines))
    (folder / "cut.jsonl.gz").write_bytes(gzip.compress(b"".join(lines) * 40, mtime=0)[:-30])
    write_damaged(folder / "damaged.parquet", good)
    nulls = [{**row, "text": None if number % 7 == 0 else row["text"]} for number, row in enumerate(good)]
    pq.write_table(pa.Table.from_pylist(nulls), folder / "nulls.parquet", row_group_size=9)


def write_damaged(path: Path, rows: list[Row]) -> None:
    """Write a Parquet file of several row groups of which the third cannot be read."""
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=len(rows) // 6, use_dictionary=False)
    column = pq.ParquetFile(path).metadata.row_group(2).column(1)
    data = bytearray(path.read_bytes())
    start = column.data_page_offset
    data[start : start + column.total_compressed_size] = bytes(column.total_compressed_size)
    path.write_bytes(data)


def with_large_bucket(documents: int, bucket: int) -> Iterator[Row]:
    """Yield short texts, ``bucket`` of which share a bucket in every band although no two of them are identical.

    These contain the same twelve words, each in a different order, so that their sets of single words are equal.
    """
    rng = random.Random(6)
    ring = words(rng, 12)
    seen: set[str] = set()
    every = documents // bucket
    for number in range(documents):
        if number % every:
            yield {"id": number, "text": " ".join(words(rng, 12))}
            continue
        while (text := " ".join(rng.sample(ring, len(ring)))) in seen:
            pass
        seen.add(text)
        yield {"id": number, "text": text}


def huge_text(rng: random.Random, size: int) -> str:
    """Return a text of ``size`` bytes whose words hardly ever repeat."""
    return rng.randbytes(size // 9 * 4).hex(" ", 4)


def changed(text: str, words: int) -> str:
    """Return the text with ``words`` of its words replaced, spread evenly."""
    step = len(text) // words // 9 * 9
    cut = bytearray(text, "ascii")
    for start in islice(range(0, len(cut) - 9, step), words):
        cut[start : start + 8] = b"another_"
    return cut.decode("ascii")
