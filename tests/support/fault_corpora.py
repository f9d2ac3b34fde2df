"""Corpora for the reliability tests: near-duplicates and copies in three files, the same in every run."""

import gzip
import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["NAMES", "documents", "write_corpus"]

NAMES = ("a.jsonl", "b.jsonl.gz", "c.parquet")


def documents(count: int, seed: int = 1) -> list[str]:
    """Return short texts of which about a tenth are copies of earlier ones and a sixth near-duplicates."""
    draw = random.Random(seed)
    words = [f"w{number:x}" for number in range(20_000)]
    texts: list[str] = []
    for _ in range(count):
        kind = draw.random() if texts else 1.0
        if kind < 0.1:
            texts.append(draw.choice(texts))
        elif kind < 0.27:
            changed = draw.choice(texts).split()
            changed[draw.randrange(len(changed))] = draw.choice(words)
            texts.append(" ".join(changed))
        else:
            texts.append(" ".join(draw.choices(words, k=draw.randrange(30, 60))))
    return texts


def write_corpus(folder: Path, count: int, seed: int = 1) -> Path:
    """Write texts as JSON lines, as gzipped JSON lines with two invalid rows, and as Parquet with another column."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = documents(count, seed)
    third = count // 3
    lines = [json.dumps({"id": f"d{number}", "text": text}) + "\n" for number, text in enumerate(texts[: 2 * third])]
    lines[third + 1] = '{"id": "null", "text": null}\n'
    lines[-1] = "no JSON\n"
    (folder / NAMES[0]).write_text("".join(lines[:third]), encoding="utf-8")
    with gzip.GzipFile(folder / NAMES[1], "wb", compresslevel=1, mtime=0) as file:
        file.write("".join(lines[third:]).encode())
    rest = range(2 * third, count)
    columns = {"id": [f"d{number}" for number in rest], "text": texts[2 * third :], "number": list(rest)}
    pq.write_table(pa.table(columns), folder / NAMES[2], row_group_size=max(1, third // 3))
    return folder
