"""Outputs of other kinds than deduplications: they can be restored, and readers of another kind refuse them."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import USAGE, run
from support.restored_runs import contents, dedup, removed, restore

import minwise as mw
from minwise.errors import FormatError

TEXTS = ["the cat sat on the mat all day", "The cat sat on the mat, all day.", "a dog"]


@pytest.fixture
def other_kind(tmp_path: Path) -> Path:
    """Return a folder with the output of a deduplication under the names that other kinds use."""
    rows = (json.dumps({"id": number, "text": text}) for number, text in enumerate(TEXTS))
    (tmp_path / "in.jsonl").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    dedup(tmp_path, "in.jsonl")
    rows_table = pq.read_table(tmp_path / "out" / "clusters.parquet")
    for name in ("kept", "contaminated"):
        rows_table = rows_table.append_column(name, pa.array([True] * len(rows_table)))
    pq.write_table(rows_table, tmp_path / "out" / "documents.parquet")
    set_kind(tmp_path, "decontamination")
    return tmp_path


def set_kind(folder: Path, kind: str) -> None:
    path = folder / "out" / "report.json"
    report = json.loads(path.read_text(encoding="utf-8"))
    report["settings"] |= {"action": "remove", "min_share": 0.1, "min_ngrams": None}
    report["counts"]["contaminated"] = 1
    names = ("items", "uncheckable", "found", "hits", "ngrams", "common_ngrams")
    items = {"items": dict.fromkeys(names, 1), "most_found": []}
    path.write_text(json.dumps({**report, **items, "kind": kind}), encoding="utf-8")


def test_an_output_of_another_kind_is_restored(other_kind: Path) -> None:
    restore(other_kind, "--all")
    assert contents(other_kind / "back" / "kept") == {"in.jsonl": (other_kind / "in.jsonl").read_bytes()}
    assert removed(other_kind) == []
    restore(other_kind, ids=["1"])
    assert (other_kind / "back" / "kept" / "in.jsonl").read_bytes() == (other_kind / "in.jsonl").read_bytes()


def test_readers_of_deduplications_refuse_other_kinds_in_one_line(other_kind: Path) -> None:
    done = run(other_kind, "rethreshold", "out", "--threshold", "0.9", "-o", "higher")
    assert (done.status, done.out) == (USAGE, "")
    assert done.err.startswith("minwise: out: must be the output of minwise dedup")
    assert done.err.endswith(", got that of minwise decontaminate\n")
    assert done.err.count("\n") == 1


def test_an_unknown_kind_is_refused(other_kind: Path) -> None:
    set_kind(other_kind, "poems")
    with pytest.raises(FormatError, match="kind must be one of dedup, passages, decontamination, got 'poems'"):
        mw.restore(other_kind / "out", other_kind / "back")
