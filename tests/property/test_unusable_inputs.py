"""Whole inputs that cannot be used: named and refused, or left out and counted, in every mix of good and bad files."""

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from support.expect import error_message

import minwise as mw
from minwise.errors import InputError
from minwise.inputs import Files
from minwise.options import OnError

WORDS = ["ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine", "rowan", "willow", "yew"]


def text(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=8))


def rows_of(rng: random.Random, column: str) -> list[dict[str, Any]]:
    return [{"n": number, column: text(rng)} for number in range(rng.randint(1, 30))]


def write_file(folder: Path, name: str, rng: random.Random, kind: str) -> int | None:
    """Write one input; return its number of rows, of which none can be used unless the kind is good."""
    rows = rows_of(rng, "text" if kind != "other column" else "content")
    path = folder / name
    if kind == "damaged":
        path.write_bytes(b"PAR1 not a table PAR1" if path.suffix == ".parquet" else b"ARROW1 not a table")
        return None
    if kind == "null":
        rows = [{**row, "text": None} for row in rows]
    if kind == "some null":
        rows += [{"n": -1, "text": None}]
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".csv":
        names = list(rows[0])
        path.write_text("\n".join([",".join(names), *(",".join(str(row[name]) for name in names) for row in rows)]))
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=7)
    else:
        feather.write_feather(pa.Table.from_pylist(rows), path)
    return len(rows)


def mixture(folder: Path, seed: int) -> tuple[list[str], dict[str, int | None]]:
    """Write files of all formats; return their names, and the rows of those that cannot be used."""
    rng = random.Random(seed)
    bad: dict[str, int | None] = {}
    write_file(folder, "a.jsonl", rng, "good")
    names = ["a.jsonl"]
    for number in range(rng.randint(2, 6)):
        suffix = rng.choice(["jsonl", "csv", "parquet", "arrow"])
        kinds = {"csv": ["good", "other column"], "jsonl": ["good", "some null", "null", "other column"]}
        kind = rng.choice(kinds.get(suffix, ["good", "some null", "null", "other column", "damaged"]))
        names.append(f"f{number}.{suffix}")
        rows = write_file(folder, names[-1], rng, kind)
        if kind not in ("good", "some null"):
            bad[names[-1]] = rows
    return names, bad


@pytest.mark.parametrize("seed", range(30))
def test_every_row_is_kept_removed_or_quarantined(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names, bad = mixture(tmp_path, seed)
    if bad:
        message = error_message(InputError, lambda: mw.dedup(Files(names), on_error="quarantine-rows"))
        assert any(message.startswith(f"{name}: ") for name in bad)
        assert message.endswith("; set on_error='quarantine' to go on without this input")
        first = next(name for name in bad if message.startswith(name))
        assert bad[first] is None or first.endswith("jsonl") or f"{bad[first]:,} rows" in message or bad[first] == 1
    else:
        assert mw.dedup(Files(names), on_error="quarantine-rows").report["unreadable"] == []
    going_on: tuple[OnError, ...] = ("quarantine", "skip")
    for on_error in going_on:
        report = mw.dedup(Files(names), tmp_path / f"out-{on_error}", on_error=on_error).report
        counts = report["counts"]
        assert counts["read"] == counts["kept"] + counts["removed"] + counts["quarantined"]
        sources = {row["source"]: row for row in report["sources"]}
        for name, rows in bad.items():
            assert (sources[name]["rows"], sources[name]["kept"]) == (rows or 0, 0)
            assert sources[name]["quarantined"] == (rows or 0)
        assert counts["read"] == sum(row["rows"] for row in report["sources"])
    listed = tmp_path / "out-quarantine" / "quarantine.jsonl"
    faults = [json.loads(line) for line in listed.read_text().splitlines()] if listed.exists() else []
    assert sum(fault["row"] is not None for fault in faults) == counts["quarantined"]
    assert {fault["source"] for fault in report["inputs"]["faults"]} >= set(bad)


def test_an_unusable_file_is_named_as_unreadable_with_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"text": ["one two three"]}), "a.parquet")
    pq.write_table(pa.table({"content": ["four five six"] * 200}), "b.parquet")
    report = mw.dedup("*.parquet", "out", on_error="quarantine").report
    assert [fault["source"] for fault in report["unreadable"]] == ["b.parquet"]
    assert report["counts"] | {"read": 201, "kept": 1, "quarantined": 200} == report["counts"]
    (entry,) = report["inputs"]["faults"]
    assert (entry["source"], entry["faults"], entry["whole"], len(entry["first"])) == ("b.parquet", 200, True, 5)
    message = error_message(InputError, lambda: mw.dedup("*.parquet", on_error="quarantine-rows"))
    assert message.startswith("b.parquet: none of its 200 rows can be used: has no column 'text'")
    assert "did you mean text_column='content'?" in message


def test_one_unreadable_file_among_loose_texts_is_a_bad_row(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").write_bytes(b"\xff\xfe\x00" if number == 1 else b"one two three %d" % number)
    report = mw.dedup(tmp_path, on_error="quarantine-rows", encoding="utf-8").report
    assert (report["counts"]["read"], report["counts"]["quarantined"]) == (3, 1)


def test_pairs_clusters_audit_groups_and_index_refuse_an_unusable_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_text('{"id": 1, "text": "one two three four", "u": "x", "i": 1}\n')
    Path("b.jsonl").write_text('{"id": 2, "body": "one two three four", "u": "x"}\n')
    files = Files(["a.jsonl", "b.jsonl"])
    on_error: OnError = "quarantine-rows"
    with mw.Index.create("x.mw") as index:
        calls: list[Any] = [
            lambda: mw.write_pairs(files, "p.jsonl", on_error=on_error),
            lambda: mw.write_clusters(files, "c.jsonl", on_error=on_error),
            lambda: mw.audit(files, on_error=on_error),
            lambda: mw.pairs(files, group_by="u", item="i", on_error=on_error),
            lambda: index.add_from(files, on_error=on_error),
        ]
        for call in calls:
            message = error_message(InputError, call)
            assert message.startswith("b.jsonl: row 0: has no column ")
            assert message.endswith("; set on_error='quarantine' to go on without this input")
        counts = index.add_from(files, on_error="quarantine")
        assert (counts["read"], counts["added"] + counts["unchanged"], counts["quarantined"]) == (2, 1, 1)


def test_loose_texts_are_one_input_whatever_is_between_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources are ordered by name, so tables can separate text files; the answer must not depend on it."""
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("one two three")
    Path("b.jsonl").write_text('{"text": "four five six"}\n')
    Path("c.txt").write_bytes(b"\x89PNG\r\n\x1a\n")
    names = Files(["a.txt", "b.jsonl", "c.txt"])
    assert mw.dedup(names, on_error="quarantine-rows").report["counts"]["quarantined"] == 1
    with mw.Index.create("x.mw") as index:
        assert index.add_from(names, on_error="quarantine-rows")["added"] == 2
        with pytest.raises(InputError, match=r"c\.txt: its only row cannot be used: "):
            index.add_from(Files(["b.jsonl", "c.txt"]), on_error="quarantine-rows")
    with pytest.raises(InputError, match=r"c\.txt: its only row cannot be used: "):
        mw.dedup(Files(["b.jsonl", "c.txt"]), on_error="quarantine-rows")
