"""Decontamination of rows that are all contaminated: memory stays bounded."""

import json
import random
from pathlib import Path

import pytest
from support.commands import OK
from support.peak_memory import PROMISED_BYTES, run_measured

ROWS, MORE_ROWS = 150_000, 500_000
# What a row adds at most, by action: twice what DESIGN.md states ("Evaluation items"), because the arrays of blocks and
# the whole array are there while they are joined. And what differs from run to run.
ROW_BYTES = {"remove": 220, "cut": 270, "mark": 270}
SPARE_BYTES = 15 * 10**6


def write_rows(folder: Path, rows: int) -> None:
    """Write 2,000 items, and rows that each have one of them and two words of their own."""
    draw = random.Random(8)
    items = [" ".join(f"w{draw.randrange(2000)}" for _ in range(8)) for _ in range(2000)]
    (folder / "items.jsonl").write_text("".join(f"{json.dumps({'text': item})}\n" for item in items))
    with (folder / "train.jsonl").open("w") as train:
        train.writelines(f'{{"text": "{row} {draw.choice(items)} a{row}"}}\n' for row in range(rows))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("action", ["remove", "cut", "mark"])
def test_many_contaminated_rows_stay_within_the_memory_limit(tmp_path: Path, action: str) -> None:
    """Hits are in files; only the best hit of each row, and its cuts, are in memory."""
    peaks = []
    for rows in (ROWS, MORE_ROWS):
        write_rows(tmp_path, rows)
        options = ("--action", action, "--common-count", str(rows), "--memory", "256MB", "--overwrite", "--quiet")
        done = run_measured(tmp_path, "decontaminate", "train.jsonl", "--evals", "items.jsonl", "-o", "out", *options)
        assert (done.status, done.error) == (OK, "")
        report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
        assert report["counts"]["contaminated"] == rows
        peaks.append(done.peak)
    assert peaks[1] < PROMISED_BYTES
    assert peaks[1] - peaks[0] < ROW_BYTES[action] * (MORE_ROWS - ROWS) + SPARE_BYTES
