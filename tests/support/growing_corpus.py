"""Corpus that arrives in days, with near-duplicates and copies within a day and of earlier days."""

import json
import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import minwise as mw
from minwise.results import DedupResult

__all__ = ["DAYS", "SETTINGS", "grow", "kept_bytes", "removed_ids", "removed_table", "run_day", "write_days"]

DAYS = [f"day{number:02}" for number in range(1, 11)]
SETTINGS: dict[str, Any] = {"shingle": "word:2", "threshold": 0.6}
WORDS = [f"word{number}" for number in range(400)]


def write_days(folder: Path, *, seed: int = 1, rows: int = 30, days: int = 10, faults: bool = False) -> None:
    """Write a file of JSON lines for each day: a third are new, the others are edits and copies of any earlier row.

    With ``faults``, each day also has a row without a text, and one that is no JSON.
    """
    draw, texts = random.Random(seed), list[list[str]]()
    for day in DAYS[:days]:
        lines = []
        for row in range(rows):
            words = draw.choices(WORDS, k=30) if not texts or draw.random() < 0.33 else list(draw.choice(texts))
            for _ in range(draw.randrange(3)):
                words[draw.randrange(len(words))] = draw.choice(WORDS)
            texts.append(words)
            text = "" if draw.random() < 0.02 else " ".join(words)
            lines.append(json.dumps({"id": f"{day}-{row}", "text": text, "n": row}))
        if faults:
            lines[rows // 2 : rows // 2] = ['{"id": "none", "text": null}', '{"id": "broken", "te']
        (folder / f"{day}.jsonl").write_text("\n".join(lines) + "\n")


def run_day(folder: Path, number: int, *, out: str = "out", **settings: Any) -> DedupResult:  # noqa: ANN401
    """Deduplicate one day against the run of the day before it."""
    earlier = {"against_run": folder / f"{out}-{DAYS[number - 1]}"} if number else {}
    name = DAYS[number]
    options: dict[str, Any] = {**SETTINGS, **earlier, **settings}
    result: DedupResult = mw.dedup(folder / f"{name}.jsonl", folder / f"{out}-{name}", **options)
    return result


def grow(folder: Path, days: int = 10, **settings: Any) -> None:  # noqa: ANN401 - any setting
    """Deduplicate all days, each against the run before it."""
    for number in range(days):
        run_day(folder, number, **settings)


def kept_bytes(output: Path) -> dict[str, bytes]:
    """Return the kept files of an output."""
    return {path.name: path.read_bytes() for path in (output / "kept").iterdir()}


def removed_table(output: Path) -> list[dict[str, Any]]:
    """Return the removed rows of an output."""
    rows: list[dict[str, Any]] = pq.read_table(output / "removed.parquet").to_pylist()
    return rows


def removed_ids(output: Path) -> list[str]:
    """Return the ids of the removed rows of an output."""
    return [row["id"] for row in removed_table(output)]
