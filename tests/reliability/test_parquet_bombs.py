"""Parquet files of a few kilobytes that decode to gigabytes: memory stays within ``--memory`` and 300 MB.

A dictionary holds a text once and any number of rows refer to it; compression shrinks it a thousandfold.
"""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import MINWISE, TORTURE, without_stages

MEGABYTE = 10**6
# What the interpreter and its libraries may take besides the memory of a run.
BESIDES = 300 * MEGABYTE
GOOD = [f"good document number {number} of its own kind" for number in range(5)]
# Rows that are sketched or copied one by one; `make torture` takes more of them.
LONG_ROWS = 30 if TORTURE else 3


def repeated(text: bytes, rows: int) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return a column in which every row is the same text, which is in memory once."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]).view(pa.string()))


def write(folder: Path, table: pa.Table, **options: Any) -> None:  # noqa: ANN401 - of pyarrow
    """Write the bomb and a good file; the schema does not say that columns are dictionaries."""
    pq.write_table(table, folder / "bomb.parquet", compression="zstd", store_schema=False, **options)
    assert (folder / "bomb.parquet").stat().st_size < 100_000
    pq.write_table(pa.table({"id": [f"g{number}" for number in range(5)], "text": GOOD}), folder / "good.parquet")


def run_measured(folder: Path, memory: int, output: str = "out") -> tuple[str, int]:
    """Run the command on both files; check its peak memory; return its standard error and its quarantined rows."""
    command = [MINWISE, "dedup", "bomb.parquet", "good.parquet", "-o", output, "--memory", f"{memory}MB"]
    with subprocess.Popen(
        [*command, "--on-error", "quarantine"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        peak = 0
        while process.poll() is None:
            peak = max(peak, _high_water(process.pid))
            time.sleep(0.02)
        assert process.stderr
        error = process.stderr.read().decode()
    assert process.returncode == 0, error
    assert 0 < peak < memory * MEGABYTE + BESIDES
    return without_stages(error), peak


def _high_water(process: int) -> int:
    """Return the peak memory of a process so far, in bytes."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:")), 0)


def quarantined(folder: Path) -> dict[int, str]:
    """Return the reason for each quarantined row of the bomb; check that all rows are counted."""
    counts = json.loads((folder / "out/report.json").read_text())["counts"]
    rows = pq.read_metadata(folder / "bomb.parquet").num_rows + 5
    assert counts["read"] == rows == counts["kept"] + counts["removed"] + counts["quarantined"]
    path = folder / "out/quarantine.jsonl"
    faults = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    assert {fault["source"] for fault in faults} <= {"bomb.parquet"}
    return {fault["row"]: fault["reason"] for fault in faults}


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("rows", "megabytes"), [(100, 100), (2_000, 120)])
def test_texts_that_a_dictionary_repeats_are_not_decoded_if_one_takes_too_much(
    rows: int, megabytes: int, tmp_path: Path
) -> None:
    write(tmp_path, pa.table({"text": repeated(b"word " * (megabytes * MEGABYTE // 5), rows)}))
    run_measured(tmp_path, 256)
    # A length of four bytes is before the text; see VALUE_COPIES and SPARE_BYTES.
    size = megabytes * MEGABYTE + 4
    required = 7 * (size - 16 * MEGABYTE)
    reason = f"row group 0: a page of column text takes {size} bytes, which requires a memory of at least {required}"
    assert quarantined(tmp_path) == dict.fromkeys(range(rows), reason)


@pytest.mark.timeout(900)
def test_long_texts_after_short_ones_are_decoded_one_by_one(tmp_path: Path) -> None:
    """No sample of the first rows tells that a piece of 8,192 rows would take gigabytes."""
    short = [f"short text number {number} of its own" for number in range(2_000)]
    texts = pa.array([*[text.encode() for text in short], b"word " * (6 * MEGABYTE)]).view(pa.string())
    indices = pa.array([*range(2_000), *[2_000] * LONG_ROWS], pa.int32())
    write(
        tmp_path, pa.table({"text": pa.DictionaryArray.from_arrays(indices, texts)}), dictionary_pagesize_limit=1 << 30
    )
    run_measured(tmp_path, 256)
    assert quarantined(tmp_path) == {}
    assert pq.read_metadata(tmp_path / "out/kept/bomb.parquet").num_rows == 2_001


@pytest.mark.timeout(900)
def test_a_text_above_the_record_limit_is_quarantined(tmp_path: Path) -> None:
    """Alone where the memory suffices to decode its page, otherwise with the rows of that page."""
    texts = [b"one good text", b"word " * (28 * MEGABYTE), b"and another text"]
    write(tmp_path, pa.table({"text": pa.array(texts).view(pa.string())}), use_dictionary=False)
    run_measured(tmp_path, 1_000)
    assert quarantined(tmp_path) == {1: f"is longer than {1 << 27} bytes"}
    run_measured(tmp_path, 256, "small")
    counts = json.loads((tmp_path / "small/report.json").read_text())["counts"]
    assert (counts["kept"], counts["quarantined"]) == (5, 3)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("output", ["out", "-"])
def test_long_values_of_other_columns_are_copied_one_by_one(tmp_path: Path, output: str) -> None:
    texts = [f"text number {number} of the bomb" for number in range(LONG_ROWS)]
    write(tmp_path, pa.table({"text": texts, "blob": repeated(b"z" * 50 * MEGABYTE, LONG_ROWS)}))
    run_measured(tmp_path, 256, output)
    if output == "out":
        assert quarantined(tmp_path) == {}
        assert pq.read_metadata(tmp_path / "out/kept/bomb.parquet").num_rows == LONG_ROWS


@pytest.mark.timeout(900)
def test_rows_whose_other_columns_take_too_much_are_quarantined(tmp_path: Path) -> None:
    texts = [f"text number {number} of the bomb" for number in range(50)]
    write(tmp_path, pa.table({"text": texts, "blob": repeated(b"z" * 100 * MEGABYTE, 50)}))
    run_measured(tmp_path, 256)
    reasons = quarantined(tmp_path)
    assert list(reasons) == list(range(50))
    assert "a page of column blob takes 100000004 bytes" in reasons[0]
