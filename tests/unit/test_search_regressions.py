"""Regression tests of pairs, clusters and dedup; each fails without its fix."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.expect import error_message

import minwise as mw
from minwise.errors import ConfigError, MismatchError
from minwise.inputs import Files
from minwise.search.bands import NO_DOCUMENT, band_buckets

SHARED = "alpha beta gamma delta epsilon zeta"


def write_lines(path: Path, *texts: str) -> None:
    """Write JSON lines with ids of the file name and the row."""
    path.write_text("".join(f'{{"id": "{path.stem}{row}", "text": "{text}"}}\n' for row, text in enumerate(texts)))


def test_swapped_inputs_and_against_are_another_run(tmp_path: Path) -> None:
    """The manifest had the number of files compared against, not their names."""
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    write_lines(first, SHARED, "no other file has this row at all")
    write_lines(second, SHARED, "another text that is only here")
    mw.dedup(str(second), tmp_path / "out", against=str(first), work=tmp_path / "work")
    message = error_message(
        MismatchError,
        lambda: mw.dedup(str(first), tmp_path / "again", against=str(second), work=tmp_path / "work"),
    )
    assert "a.jsonl" in message
    assert "b.jsonl" in message
    assert not (tmp_path / "again").exists()


def test_rows_with_sets_are_not_sets_of_their_keys() -> None:
    """Every row has the key `text`, so all rows were equal."""
    rows = [{"text": [1, 2, 3]}, {"text": [4, 5, 6]}, {"text": [4, 5, 6]}]
    assert mw.dedup(rows, shingle="set").removed.column("row").to_pylist() == [2]


def test_a_table_of_sets_keeps_its_ids_and_columns() -> None:
    table = pa.table({"id": ["p", "q", "r"], "text": [[1, 2], [1, 2], [3]], "rank": [1, 5, 2]})
    result = mw.dedup(table, shingle="set", keep="max:rank")
    assert result.kept.to_pydict() == {"id": ["q", "r"], "text": [[1, 2], [3]], "rank": [5, 2]}
    assert result.removed.column("kept_id").to_pylist() == ["q"]


@pytest.mark.parametrize(
    "ranks",
    [
        pa.array(np.array([1, 2], dtype=np.float16)),
        pa.array(["1", "2"], pa.string_view()),
        pa.array([b"1", b"2"], pa.binary_view()),
    ],
    ids=["half", "string view", "binary view"],
)
def test_keep_columns_that_arrow_cannot_sort_are_supported(ranks: pa.Array) -> None:
    result = mw.dedup(pa.table({"text": [SHARED, SHARED], "rank": ranks}), keep="max:rank")
    assert result.removed.column("kept_row").to_pylist() == [1]


def test_digits_in_text_columns_of_two_widths_are_compared_as_text(tmp_path: Path) -> None:
    """Where files had string and large_string, both became numbers, and 10 came before 9."""
    for name, kind, rank in (("a", pa.string(), "10"), ("b", pa.large_string(), "9")):
        columns = {"text": pa.array([SHARED]), "rank": pa.array([rank], kind)}
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    result = mw.dedup(tmp_path, keep="max:rank")
    assert Path(result.removed.column("kept_source")[0].as_py()).name == "b.parquet"


def test_copies_of_a_removed_document_are_counted_as_identical() -> None:
    """They are removed for another document, with its similarity, but they are identical to an earlier one."""
    long = " ".join(f"word{number}" for number in range(60))
    result = mw.dedup([long, f"{long} x", f"{long} x", f"{long} x"])
    assert result.report["counts"]["removed"] == 3
    assert result.report["counts"]["removed_identical"] == 2
    assert max(result.removed.column("similarity").to_pylist()) < 1


def test_an_output_that_cannot_be_renamed_is_rejected_at_once(tmp_path: Path) -> None:
    """A link was rejected only after all the work."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    write_lines(tmp_path / "a.jsonl", SHARED)
    message = error_message(ConfigError, lambda: mw.dedup(str(tmp_path / "a.jsonl"), tmp_path / "link"))
    assert "link" in message


def test_a_work_directory_among_the_inputs_is_rejected(tmp_path: Path) -> None:
    """Its files became documents of the next run."""
    write_lines(tmp_path / "a.jsonl", SHARED)
    message = error_message(ConfigError, lambda: mw.dedup(str(tmp_path), work=tmp_path / "state"))
    assert "state" in message


def test_buckets_of_a_band_are_not_expanded_to_pairs() -> None:
    """All pairs of all buckets of a band were held in memory."""
    keys = np.repeat(np.arange(1, 41, dtype=np.uint64) << np.uint64(50), 100)
    members = np.arange(len(keys), dtype=np.uint32)
    members[7] = NO_DOCUMENT
    rows, shared = band_buckets([keys], members, 0, 1).shared(2000, 0, 1)
    assert len(shared) == len(keys) - 1
    assert len(rows) == len(keys) - 1 - 40
    assert int((rows[:, 2] - rows[:, 1]).sum()) == 39 * (100 * 99 // 2) + 99 * 98 // 2


@pytest.mark.posix
def test_a_parquet_file_of_one_repeated_text_is_read_in_bounded_memory(tmp_path: Path) -> None:
    """Batches were sized by the bytes of the dictionary, so that 0.4 MB became 3.7 GB."""
    texts = pa.DictionaryArray.from_arrays(np.zeros(3000, dtype=np.int32), ["x" * 513_000])
    pq.write_table(pa.table({"text": texts}), tmp_path / "bomb.parquet", store_schema=False)
    program = (
        "import re, sys, minwise as mw; mw.dedup(sys.argv[1], sys.argv[2], memory='256MB');"
        r"print(re.search(r'VmHWM:\s+(\d+)', open('/proc/self/status').read())[1])"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "bomb.parquet"), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) * 1024 < 256e6 + 300e6


def test_a_text_longer_than_a_file_name_is_a_text() -> None:
    """The check whether it is a file raised an error."""
    text = " ".join(f"word{number}" for number in range(100))
    assert mw.pairs([text, text]).num_rows == 1


def test_text_files_with_absolute_and_relative_paths_are_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report names the common parent of text files, which such a mixture lacks; it was a ValueError."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.txt").write_text("one two three four five six seven", encoding="utf-8")
    (tmp_path / "two.txt").write_text("one two three four five six seven", encoding="utf-8")
    report = mw.dedup(Files(["one.txt", str(tmp_path / "two.txt")])).report
    assert [row["source"] for row in report["sources"]] == [". (2 files)"]


def test_an_output_may_be_named_against(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table in memory that is compared against has the name against, but is not a file of that name."""
    monkeypatch.chdir(tmp_path)
    mw.dedup(["one two three four five"], "against", against=["six seven eight nine ten"])
    assert (tmp_path / "against" / "kept").is_dir()


def test_pairs_of_vectors_written_to_a_url_leave_no_local_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The URL was treated as a path, next to which the files of the run were written."""
    monkeypatch.chdir(tmp_path)
    points = [[0.0, 0.0], [3.0, 4.0]]
    report = mw.EuclideanLSH.plan(points, radius=6.0).fit(points).write_pairs(6.0, "memory://bucket/near.parquet")
    assert report["pairs"] == 1
    assert list(tmp_path.iterdir()) == []
