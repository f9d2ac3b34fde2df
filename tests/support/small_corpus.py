"""Five documents, two of which are near-duplicates of others, in every format; and files with faults."""

import bz2
import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

FERRY = "the ferry leaves the old harbour at six in the morning and the gulls follow it far out to the open sea"
TRAIN = "a train crosses the high bridge while snow falls on the roofs of the villages along the frozen river"
# In document order: kept, kept, duplicate of the first (equal but for case), kept, duplicate of the second.
ROWS: list[dict[str, Any]] = [
    {"id": "d0", "text": FERRY, "year": 1990, "note": "first"},
    {"id": "d1", "text": TRAIN, "year": 1991, "note": 'with "quotes", commas'},
    {"id": "d2", "text": FERRY.upper(), "year": 2001, "note": ""},
    {"id": "d3", "text": "something else entirely, of which there is only one", "year": 1970, "note": "ünïcödé"},
    {"id": "d4", "text": f"{TRAIN} {TRAIN.split()[0]}", "year": 1980, "note": "near"},
]
KEPT = ["d0", "d1", "d3"]


def zstd(data: bytes) -> bytes:
    """Return a frame as the zstd tool writes it."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": zstd,
}


def decompressed(path: Path) -> bytes:
    """Return the decompressed bytes of a file."""
    with pa.input_stream(str(path), compression="detect") as stream:
        return bytes(stream.read())


def json_lines(rows: list[dict[str, Any]]) -> bytes:
    """Return rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def parse_json_lines(lines: str) -> list[dict[str, Any]]:
    """Return JSON lines as objects."""
    return [json.loads(line) for line in lines.splitlines()]


def delimited(rows: list[dict[str, Any]], delimiter: str) -> bytes:
    """Return rows as CSV or TSV."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows in the format and compression of the file name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = path.name.split(".")
    form, compression = parts[1], "." + parts[2] if len(parts) > 2 else ""
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif form in ("arrow", "feather", "ipc"):
        table = pa.Table.from_pylist(rows)
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    else:
        data = json_lines(rows) if form == "jsonl" else delimited(rows, "\t" if form == "tsv" else ",")
        path.write_bytes(COMPRESSORS[compression](data))
    return path


def read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file; those of CSV are strings."""
    form = path.name.split(".")[1]
    if form == "parquet":
        return list(pq.read_table(path).to_pylist())
    if form in ("arrow", "feather", "ipc"):
        with pa.OSFile(str(path)) as file:
            return list(pa.ipc.open_file(file).read_all().to_pylist())
    text = decompressed(path).decode()
    if form == "jsonl":
        return parse_json_lines(text)
    return list(csv.DictReader(io.StringIO(text, newline=""), delimiter="\t" if form == "tsv" else ","))


def report(folder: Path, output: str = "out") -> dict[str, Any]:
    """Return the report of a run; check that its counts add up."""
    found = dict(json.loads((folder / output / "report.json").read_text(encoding="utf-8")))
    counts = found["counts"]
    assert counts["read"] == counts["kept"] + counts["removed"] + counts["quarantined"]
    assert counts["read"] == sum(row["rows"] for row in found["sources"] if not row.get("against"))
    assert counts["removed"] == pq.read_metadata(folder / output / "removed.parquet").num_rows
    assert counts["documents"] == pq.read_metadata(folder / output / "clusters.parquet").num_rows
    return found


def kept_ids(folder: Path, name: str, output: str = "out") -> list[Any]:
    """Return the ids of the kept rows of a file."""
    return [row["id"] for row in read(folder / output / "kept" / name)]


TABLES = [f"in.{form}{packing}" for form in ("jsonl", "csv", "tsv") for packing in COMPRESSORS]
# File name, file content (all other rows are valid), and the row and reason of the fault.
GOOD = json_lines(ROWS[:2])
FAULTS: dict[str, tuple[str, bytes, int | None, str]] = {
    "null": ("bad.jsonl", GOOD + b'{"id": "x", "text": null}\n', 2, "text is null"),
    "number": ("bad.jsonl", GOOD + b'{"id": "x", "text": 7}\n', 2, "text must be a string, got int"),
    "no column": ("bad.jsonl", GOOD + b'{"id": "x"}\n', 2, "has no column 'text'"),
    "utf-8": ("bad.jsonl", GOOD + b'{"id": "x", "text": "\xff\xfe"}\n', 2, "not valid UTF-8"),
    "json": ("bad.jsonl", b"{oops\n" + GOOD, 0, "line 1 is not JSON"),
    "list": ("bad.jsonl", GOOD + b"[1]\n", 2, "must be a JSON object, got list"),
    "csv utf-8": ("bad.csv", delimited(ROWS[:2], ",") + b"x,\xff\xfe,1,\n", 2, "not valid UTF-8"),
    "gzip": ("bad.jsonl.gz", gzip.compress(GOOD * 3000)[:-20], None, "truncated gzip"),
    "parquet": ("bad.parquet", b"PAR1 this is no Parquet file PAR1", None, ""),
    "empty parquet": ("bad.parquet", b"", None, ""),
    "other columns": ("bad.csv", b"name,body\nx,y\n", None, "has no column 'text'; its columns are: name, body"),
    "text": ("bad.txt", b"good \xff\xfe", 0, "not valid UTF-8"),
}
