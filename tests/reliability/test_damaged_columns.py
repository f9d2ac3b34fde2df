"""Damaged pages of Parquet files: the rows are quarantined and counted, whichever column they are of."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import FAILURE, OK, digest, run

import minwise as mw
from minwise.errors import InputError
from minwise.inputs.parquet_pages import read_pages

ROWS, GROUP = 1000, 250
# Pages of about 1,000 bytes.
PAGES = {"use_dictionary": False, "data_page_size": 1000, "write_batch_size": 20, "compression": "zstd"}


def text(number: int) -> str:
    """Return a text of its own; rows 500 to 999 repeat rows 0 to 499."""
    return " ".join(f"word{number % 500}x{word}" for word in range(12))


@pytest.fixture
def table(tmp_path: Path) -> pa.Table:
    """Return a table of four row groups, written to ``x.parquet``: every text occurs twice."""
    numbers = range(ROWS)
    columns = {
        "id": [f"d{n}" for n in numbers],
        "text": [text(n) for n in numbers],
        "more": [f"{n} " * 40 for n in numbers],
    }
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=GROUP, **PAGES)
    return table


def damage(path: Path, column: int, group: int) -> None:
    """Overwrite the first bytes of the page in the middle of a column of a row group."""
    with pa.OSFile(str(path)) as raw:
        pages = list(read_pages(raw, pq.read_metadata(path).row_group(group).column(column)))
    start = pages[len(pages) // 2].start
    data = bytearray(path.read_bytes())
    data[start : start + 4] = bytes(4)
    path.write_bytes(data)


def check_output(folder: Path, table: pa.Table) -> list[int]:
    """Check that every row is kept, removed or quarantined, and witnesses are kept; return the quarantined rows."""
    counts = json.loads((folder / "report.json").read_text())["counts"]
    assert counts["read"] == ROWS == counts["kept"] + counts["removed"] + counts["quarantined"]
    kept = pq.read_table(folder / "kept/x.parquet")
    removed = pq.read_table(folder / "removed.parquet")
    faults = [json.loads(line) for line in (folder / "quarantine.jsonl").read_text().splitlines()]
    lost = [fault["row"] for fault in faults]
    assert [len(kept), len(removed), len(lost)] == [counts["kept"], counts["removed"], counts["quarantined"]]
    ids = table["id"].to_pylist()
    found = {*kept["id"].to_pylist(), *removed["id"].to_pylist(), *(ids[row] for row in lost)}
    assert found == set(ids)
    assert set(removed["kept_id"].to_pylist()) <= set(kept["id"].to_pylist())
    assert kept.to_pylist() == [row for row in table.to_pylist() if row["id"] in set(kept["id"].to_pylist())]
    # A text is lost only if both of its rows are.
    assert {text(row) for row in range(ROWS)} - set(kept["text"].to_pylist()) <= {text(row) for row in lost}
    return lost


@pytest.mark.parametrize("column", [1, 2], ids=["text", "another column"])
@pytest.mark.parametrize("options", [[], ["--work", "work"], ["--memory", "256MB", "--threads", "1"]])
def test_only_rows_from_the_damaged_page_on_are_quarantined(
    tmp_path: Path, table: pa.Table, column: int, options: list[str]
) -> None:
    damage(tmp_path / "x.parquet", column, 0)
    done = run(tmp_path, "dedup", "x.parquet", "-o", "out", *options)
    assert done.status == OK, done.err
    lost = check_output(tmp_path / "out", table)
    assert lost[0] > 0
    assert lost == list(range(lost[0], GROUP))
    reasons = {json.loads(line)["reason"] for line in (tmp_path / "out/quarantine.jsonl").read_text().splitlines()}
    assert all(reason.startswith("row group 0: cannot be read: ") for reason in reasons)
    # The second rows of the lost texts are kept, the others removed.
    kept = pq.read_table(tmp_path / "out/kept/x.parquet")["id"].to_pylist()
    assert kept == [f"d{row}" for row in (*range(lost[0]), *range(GROUP, 500), *(row + 500 for row in lost))]
    if "--work" in options:
        again = run(tmp_path, "dedup", "x.parquet", "-o", "out", *options)
        assert again.status == OK, again.err


def test_rows_that_cannot_be_copied_are_quarantined_by_a_decontamination(tmp_path: Path, table: pa.Table) -> None:
    """The damaged column is not compared, so that only the copy of the kept rows reads it."""
    (tmp_path / "items.csv").write_text(f"id,text\nq,{text(10)}\n", encoding="utf-8")
    damage(tmp_path / "x.parquet", 2, 0)
    done = run(tmp_path, "decontaminate", "x.parquet", "--evals", "items.csv", "-o", "out", "--action", "cut")
    assert done.status == OK, done.err
    counts = json.loads((tmp_path / "out/report.json").read_text())["counts"]
    faults = [json.loads(line)["row"] for line in (tmp_path / "out/quarantine.jsonl").read_text().splitlines()]
    assert faults == list(range(faults[0], GROUP))
    assert counts["removed"] == 2
    assert ROWS == counts["read"] == counts["kept"] + counts["removed"] + len(faults)
    assert pq.read_table(tmp_path / "out/kept/x.parquet").num_rows == counts["kept"]


@pytest.mark.parametrize("column", [1, 2], ids=["text", "another column"])
def test_a_damaged_page_ends_a_run_that_must_not_skip_rows(tmp_path: Path, table: pa.Table, column: int) -> None:
    damage(tmp_path / "x.parquet", column, 1)
    done = run(tmp_path, "dedup", "x.parquet", "-o", "out", "--on-error", "fail", "--quiet")
    assert done.status == FAILURE
    (line,) = done.err.splitlines()
    assert line.startswith("minwise: x.parquet: ")
    assert "row group 1: cannot be read: " in line
    assert line.endswith("--on-error quarantine to skip such rows")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.parquet"]


def test_all_inputs_are_looked_through_at_once(tmp_path: Path, table: pa.Table) -> None:
    """Two damaged files take two searches, not three."""
    pq.write_table(table.slice(0, 400), tmp_path / "y.parquet", row_group_size=GROUP, **PAGES)
    for name in ("x", "y"):
        damage(tmp_path / f"{name}.parquet", 2, 0)
    stages: list[str] = []
    paths = [str(tmp_path / f"{name}.parquet") for name in ("x", "y")]
    watch = lambda stage, done, total, unit: stages.append(stage) if done == 0 else None  # noqa: E731
    result = mw.dedup(mw.inputs.Files(paths), tmp_path / "out", on_error="quarantine", progress=watch)
    assert stages.count("read and sketch") == 2
    counts = result.report["counts"]
    assert counts["read"] == ROWS + 400 == counts["kept"] + counts["removed"] + counts["quarantined"]


def test_later_commands_know_the_rows_that_cannot_be_copied(tmp_path: Path, table: pa.Table) -> None:
    damage(tmp_path / "x.parquet", 2, 0)
    assert run(tmp_path, "dedup", "x.parquet", "-o", "out").status == OK
    lost = check_output(tmp_path / "out", table)
    done = run(tmp_path, "rethreshold", "out", "-o", "higher", "--threshold", "0.9")
    assert done.status == OK, done.err
    assert check_output(tmp_path / "higher", table) == lost
    (tmp_path / "ids").write_text("d500\n")
    done = run(tmp_path, "restore", "out", "-o", "restored", "--ids", "ids")
    assert done.status == OK, done.err
    assert "d500" in pq.read_table(tmp_path / "restored/kept/x.parquet")["id"].to_pylist()
    done = run(tmp_path, "dedup", "x.parquet", "-o", "-", "--quiet")
    assert (done.status, len(done.err.splitlines())) == (FAILURE, 1)
    assert "kept rows cannot be copied: row group 0" in done.err


def test_a_result_in_memory_says_that_rows_cannot_be_copied(tmp_path: Path, table: pa.Table) -> None:
    damage(tmp_path / "x.parquet", 2, 0)
    result = mw.dedup(str(tmp_path / "x.parquet"), on_error="quarantine")
    with pytest.raises(InputError, match="kept rows cannot be copied: row group 0: cannot be read"):
        result.write(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert digest(tmp_path).keys() == {"x.parquet"}
