"""Run estimates: documents and bytes of text within a quarter of what the run reports, on files of uneven texts."""

import csv
import gzip
import json
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import minwise as mw
from minwise.api import estimate_run
from minwise.inputs import Files
from minwise.search import run_estimate

WORDS = ["harbour", "ferry", "gull", "morning", "sea", "letter", "bridge", "museum", "soup", "notice", "market"]
TOLERANCE = 0.25


def texts(count: int, seed: int = 1) -> list[str]:
    """Return texts of 3 to 3,000 words, most of them short."""
    chance = Random(seed)
    return [" ".join(chance.choices(WORDS, k=round(3 * 1000 ** chance.random()))) for _ in range(count)]


def lines(rows: list[str]) -> str:
    """Return JSON lines with more than the text in them."""
    return "".join(
        json.dumps({"id": f"document-{row}", "note": "é" * 9, "text": text}) + "\n" for row, text in enumerate(rows)
    )


def write_jsonl(folder: Path) -> None:
    """Write a large file and small ones, of texts of different lengths."""
    rows = sorted(texts(1500), key=len)
    (folder / "a.jsonl").write_text(lines(rows[:1200]))
    for number, start in enumerate(range(1200, 1500, 50)):
        (folder / f"b{number}.jsonl").write_text(lines(rows[start : start + 50]))


def write_compressed(folder: Path) -> None:
    """Write files of different sizes."""
    rows = texts(1500)
    for name, start, end in (("a", 0, 1200), ("b", 1200, 1490), ("c", 1490, 1500)):
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(lines(rows[start:end]).encode()))


def write_csv(folder: Path) -> None:
    """Write fields with line breaks in them."""
    for number in range(3):
        with (folder / f"{number}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "text"])
            writer.writerows(
                (row, text.replace(" sea ", "\n")) for row, text in enumerate(texts(100 * 5**number, number))
            )


def write_parquet(folder: Path) -> None:
    """Write row groups of short texts before row groups of long ones."""
    rows = sorted(texts(1500), key=len)
    pq.write_table(pa.table({"text": rows[:1400]}), folder / "a.parquet", row_group_size=50)
    pq.write_table(pa.table({"text": rows[1400:]}), folder / "b.parquet")


def write_arrow(folder: Path) -> None:
    """Write one file."""
    feather.write_feather(pa.table({"text": texts(800)}), folder / "a.arrow", compression="uncompressed", chunksize=20)


def write_texts(folder: Path) -> None:
    """Write many small files and a few large ones."""
    for row, text in enumerate(sorted(texts(800), key=len)):
        (folder / f"{row:04}.txt").write_text(text)


def write_compressed_texts(folder: Path) -> None:
    """Write many small files and a few large ones, compressed."""
    for row, text in enumerate(texts(500)):
        (folder / f"{row:04}.txt.gz").write_bytes(gzip.compress(text.encode()))


CORPORA = {
    "jsonl": write_jsonl,
    "compressed jsonl": write_compressed,
    "csv": write_csv,
    "parquet": write_parquet,
    "arrow": write_arrow,
    "texts": write_texts,
    "compressed texts": write_compressed_texts,
}


@pytest.mark.parametrize("sampled", [False, True], ids=["read whole", "sampled"])
@pytest.mark.parametrize("write", CORPORA.values(), ids=CORPORA)
def test_estimate_is_close_to_the_report_of_the_run(
    write: object, sampled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small corpora are read whole; smaller constants make them large ones."""
    assert callable(write)
    write(tmp_path)
    if sampled:
        monkeypatch.setattr(run_estimate, "READ_BYTES", 1 << 18)
        monkeypatch.setattr(run_estimate, "WINDOW_BYTES", 1 << 12)
    estimate = estimate_run(Files([str(tmp_path)]))
    report = mw.dedup(Files([str(tmp_path)])).report
    assert estimate.documents == pytest.approx(report["counts"]["read"], rel=TOLERANCE if sampled else 0)
    assert estimate.text_bytes == pytest.approx(report["text_bytes"]["read"], rel=TOLERANCE if sampled else 0)
    assert estimate.source_bytes == sum(path.stat().st_size for path in tmp_path.iterdir())


def test_many_sources_are_sampled_in_proportion_to_their_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_estimate, "READ_SOURCES", 10)
    rows = texts(900)
    for number in range(300):
        (tmp_path / f"{number}.jsonl").write_text(lines(rows[3 * number : 3 * number + 3]))
    estimate = estimate_run(Files([str(tmp_path)]))
    assert estimate.documents == pytest.approx(900, rel=TOLERANCE)
    assert estimate.text_bytes == pytest.approx(sum(map(len, rows)), rel=TOLERANCE)


def test_disk_has_room_for_input_keys_and_shingles(tmp_path: Path) -> None:
    write_jsonl(tmp_path)
    estimate = estimate_run(Files([str(tmp_path)]))
    assert estimate.plan is not None
    assert estimate.disk_bytes > estimate.source_bytes + 8 * estimate.plan.bands * estimate.documents
    exact = estimate_run(Files([str(tmp_path)]), exact=True)
    assert exact.disk_bytes > estimate.disk_bytes


@pytest.mark.parametrize("count", [1, 2])
def test_counts_have_their_nouns(count: int, tmp_path: Path) -> None:
    for row in range(count):
        (tmp_path / f"{row}.txt").write_text("a text")
    shown = str(estimate_run(Files([str(tmp_path)])))
    assert f"; {count} document{'s' if count > 1 else ''}, {6 * count} B of text" in shown


def test_estimate_warns_of_a_document_that_needs_more_than_the_limit() -> None:
    """The base is 165 MB, and a document needs three times its size; no record of a file is as large."""
    warnings = [estimate_run([text], memory="256MB").warning for text in ("ab " * 50_000_000, "ab")]
    assert "a document of 150 MB needs about 615 MB, more than the limit of 256 MB and 300 MB" in warnings[0]
    assert warnings[1] == ""
