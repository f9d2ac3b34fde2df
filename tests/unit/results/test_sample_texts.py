"""Texts that the page shows, from every format."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import minwise as mw
from minwise.inputs.memory_sources import SetsSource, TableSource, as_table
from minwise.inputs.open_sources import open_files
from minwise.inputs.source import Columns, Source
from minwise.results.report_writer import locate_documents, read_texts, shown_documents

TEXTS = [f"text {number} — ünïcödé" for number in range(300)]
ROWS = (299, 0, 7, 150)


def write(path: Path) -> Path:
    """Write the texts in the format of the suffix, in small parts."""
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"text": TEXTS}), path, row_group_size=40)
    elif path.suffix == ".arrow":
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, pa.schema([("text", pa.string())])) as out:
            out.write_table(pa.table({"text": TEXTS}), max_chunksize=40)
    elif path.suffix == ".csv":
        path.write_text("text\n" + "".join(f'"{text}"\n' for text in TEXTS), encoding="utf-8")
    else:
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.csv", "a.jsonl"])
@pytest.mark.parametrize("read_bytes", [100, 1 << 21])
def test_texts_of_every_format(name: str, read_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch size makes no difference."""
    monkeypatch.setattr("minwise.results.report_writer.READ_BYTES", read_bytes)
    sources = open_files([str(write(tmp_path / name))]).sources
    wanted = [(0, row) for row in ROWS]
    expected = {(0, row): TEXTS[row] for row in ROWS}
    assert read_texts(sources, Columns(), wanted) == expected


def test_text_files_are_found_by_their_names(tmp_path: Path) -> None:
    """A text file is row 0 of itself and a row of the source of all files; bytes that are not UTF-8 are replaced."""
    for number in range(4):
        (tmp_path / f"{number}.txt").write_bytes(b"file %d \xff" % number)
    table = str(write(tmp_path / "table.jsonl"))
    sources = open_files([str(tmp_path / "*.txt"), table]).sources
    shown = [(table, 8), (str(tmp_path / "2.txt"), 0), (str(tmp_path / "gone.txt"), 0), (table, 5)]
    located = locate_documents(sources, shown)
    assert list(located) == [shown[0], shown[1], shown[3]]
    texts = read_texts(sources, Columns(), list(located.values()))
    assert [texts[row] for row in located.values()] == [TEXTS[8], "file 2 \ufffd", TEXTS[5]]


@pytest.mark.parametrize("character", ["x", "ü", "漢", "𝄞"])
def test_long_texts_are_cut_after_20000_characters(character: str) -> None:
    text = f"a{character * 30_000}"
    sources: list[Source] = [TableSource(as_table([text]))]
    assert read_texts(sources, Columns(), [(0, 0)]) == {(0, 0): text[:20_000]}


def test_sets_nulls_missing_rows_and_unreadable_files_have_no_text(tmp_path: Path) -> None:
    sets = SetsSource(mw.ShingleSets.from_sets([{1, 2}, {3}]))
    table = TableSource(as_table(["one", None, "three"]))
    gone, broken = str(write(tmp_path / "gone.jsonl")), str(write(tmp_path / "broken.parquet"))
    files = open_files([broken, gone]).sources
    Path(gone).unlink()
    Path(broken).write_bytes(b"PAR1 no more")
    sources = [sets, table, *files]
    wanted = [(0, 0), (1, 0), (1, 1), (1, 2), (1, 99), (2, 3), (3, 3)]
    assert read_texts(sources, Columns(), wanted) == {(1, 0): "one", (1, 2): "three"}


def document(row: int) -> dict[str, Any]:
    """Return a document as a report names it."""
    return {"id": row, "source": "a", "row": row}


def test_documents_that_the_page_shows() -> None:
    """The kept one and three others of each of ten clusters, then both sides of ten pairs; each once."""
    clusters = [
        {"kept": document(100 * number), "members": [document(100 * number + member) for member in range(1, 20)]}
        for number in range(12)
    ]
    pairs = [{"left": document(0), "right": document(5000 + number)} for number in range(15)]
    shown = shown_documents({"largest_clusters": clusters, "just_below": {"closest": pairs}})
    assert shown[:5] == [("a", 0), ("a", 1), ("a", 2), ("a", 3), ("a", 100)]
    assert len(shown) == 10 * 4 + 10
    assert shown[-1] == ("a", 5009)
    assert shown_documents({"largest_clusters": clusters[:1], "just_below": None}) == shown[:4]
