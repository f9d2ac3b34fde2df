"""Runs against saved states: the bytes of runs that read the kept rows again, without any of their texts."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.expect import error_message
from support.growing_corpus import DAYS, SETTINGS, grow, kept_bytes, removed_ids, run_day, write_days

import minwise as mw
from minwise.api import estimate_run
from minwise.errors import ConfigError, FormatError, MinwiseError
from minwise.inputs import Files
from minwise.search import state_writer, stored_documents, stored_state, verification

SAME = ("removed.parquet", "clusters.parquet")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a directory with ten days of documents."""
    monkeypatch.chdir(tmp_path)
    write_days(tmp_path)
    return tmp_path


def same_output(first: Path, second: Path) -> None:
    """Assert that two outputs have the same kept rows and tables."""
    assert kept_bytes(first) == kept_bytes(second)
    for name in SAME:
        assert (first / name).read_bytes() == (second / name).read_bytes()


def grow_twice(folder: Path, days: int, **settings: Any) -> None:  # noqa: ANN401 - any setting
    """Write `plain/DAY` by reading kept rows, and `saved/DAY` from states alone, under the same names."""
    grow(folder, days=days, **settings)
    (folder / "plain").mkdir()
    for day in DAYS[:days]:
        (folder / f"out-{day}").rename(folder / "plain" / day)
    for number in range(days):
        run_day(folder, number, save_state=True, **settings)
        (folder / f"out-{DAYS[number]}" / "kept").rename(folder / f"kept-{DAYS[number]}")
    (folder / "saved").mkdir()
    for day in DAYS[:days]:
        (folder / f"out-{day}").rename(folder / "saved" / day)
        (folder / f"kept-{day}").rename(folder / "saved" / day / "kept")


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"group": "components"},
        {"keep": "max:n", "max_bucket": 16, "threads": 1},
        {"recall": 0.5, "id_column": "n"},
        {"scheme": "minhash", "memory": "256MB", "bag": True},
    ],
    ids=["star", "components", "kept by a column", "whole ids", "minhash"],
)
def test_ten_days_from_states_have_the_bytes_of_kept_rows(folder: Path, settings: dict[str, Any]) -> None:
    """The kept rows of earlier days are not there."""
    grow_twice(folder, 10, **settings)
    for day in DAYS:
        same_output(folder / "plain" / day, folder / "saved" / day)
    assert sum(len(removed_ids(folder / "saved" / day)) for day in DAYS) > 100


def test_faulty_rows_are_in_no_state(folder: Path) -> None:
    write_days(folder, days=4, faults=True)
    grow_twice(folder, 4, on_error="quarantine")
    for day in DAYS[:4]:
        same_output(folder / "plain" / day, folder / "saved" / day)
        assert len((folder / "saved" / day / "quarantine.jsonl").read_text().splitlines()) == 2


def test_buckets_above_the_cap_are_cut_alike(folder: Path) -> None:
    """Every band has a bucket of most documents, of which each is paired with the first members only."""
    grow_twice(folder, 4, shingle="char:2", threshold=0.8, bands=3, rows=1, max_bucket=16)
    for day in DAYS[1:4]:
        same_output(folder / "plain" / day, folder / "saved" / day)
    assert json.loads((folder / "saved/day04/report.json").read_text())["caps"]["buckets"] > 0


def test_a_finished_run_saves_a_state_later(folder: Path) -> None:
    run_day(folder, 0, work="work")
    message = error_message(ConfigError, lambda: run_day(folder, 0, work="work", save_state=True))
    assert message.startswith("output must be new or empty")
    assert not run_day(folder, 0, work="work", save_state=True, overwrite=True).published
    assert run_day(folder, 0, work="work", save_state=True).published
    assert Path("out-day01/state/state").is_file()


def test_small_parts_and_chunks_give_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_writer, "PART_DOCUMENTS", 5)
    monkeypatch.setattr(stored_documents, "CHUNK_DOCUMENTS", 3)
    grow_twice(folder, 4)
    assert len(list((folder / "saved/day01/state").glob("part-*"))) > 2
    for day in DAYS[:4]:
        same_output(folder / "plain" / day, folder / "saved" / day)


def test_reports_count_the_same_documents(folder: Path) -> None:
    grow_twice(folder, 3)
    plain, saved = (json.loads((folder / name / "day03/report.json").read_text()) for name in ("plain", "saved"))
    for name in ("counts", "sources", "clusters", "settings", "similarities", "just_below"):
        assert plain[name] == saved[name]


def test_several_files_and_ids_of_several_types(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files in an order of their own, ids that are missing, whole numbers or strings, and a file without kept rows."""
    monkeypatch.setattr(verification, "SPILL_ELEMENTS", 100)
    rows = [json.loads(line) for line in Path("day01.jsonl").read_text().splitlines()]
    Path("in/b").mkdir(parents=True)
    ids = [None if number % 3 == 1 else number for number in range(len(rows))]
    lines = [json.dumps({"text": row["text"], "id": identity}) for row, identity in zip(rows, ids, strict=True)]
    Path("in/b/a.jsonl").write_text("\n".join(lines[:20]) + "\n")
    pq.write_table(pa.table({"text": [row["text"] for row in rows[20:]]}), "in/b.parquet")
    shutil.copy("in/b.parquet", "in/z.parquet")
    mw.dedup("in", "first", save_state=True, **SETTINGS)
    mw.dedup(Files(["day02.jsonl", "day01.jsonl"]), "second", against_run="first", **SETTINGS)
    assert len(list(Path("first/state").glob("sets-*"))) == 2
    shutil.rmtree("first/state")
    mw.dedup(Files(["day02.jsonl", "day01.jsonl"]), "plain", against_run="first", **SETTINGS)
    same_output(folder / "plain", folder / "second")
    named = pq.read_table("plain/removed.parquet").column("kept_source").to_pylist()
    assert {"first/kept/b/a.jsonl", "first/kept/b.parquet"} <= set(named)


def test_documents_in_memory_and_sets(folder: Path) -> None:
    rows = [{**json.loads(line)} for line in Path("day01.jsonl").read_text().splitlines()]
    sets = [{"id": row["id"], "text": row["text"].split()} for row in rows]
    for name, table in {"texts": pa.Table.from_pylist(rows).drop(["id"]), "sets": pa.Table.from_pylist(sets)}.items():
        given: dict[str, Any] = {"threshold": 0.6, "shingle": "set" if name == "sets" else "word:2"}
        mw.dedup(table, f"{name}-first", save_state=True, **given)
        mw.dedup(table, f"{name}-second", against_run=f"{name}-first", **given)
        shutil.rmtree(f"{name}-first/state")
        mw.dedup(table, f"{name}-plain", against_run=f"{name}-first", **given)
        same_output(folder / f"{name}-plain", folder / f"{name}-second")
        assert len(removed_ids(folder / f"{name}-second")) > 20


def test_a_run_with_a_work_directory_resumes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_day(folder, 0, save_state=True)
    run_day(folder, 1, out="plain", against_run="out-day01")
    search = verification.CandidateVerifier.spill_sets

    def interrupt(self: verification.CandidateVerifier) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(verification.CandidateVerifier, "spill_sets", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_day(folder, 1, against_run="out-day01", work="work")
    monkeypatch.setattr(verification.CandidateVerifier, "spill_sets", search)
    shutil.move("out-day01/state", "away")
    Path("out-day01/state").mkdir()
    for path in Path("away").iterdir():
        if not path.name.startswith("keys-"):  # looked up already
            shutil.copy(path, "out-day01/state")
    run_day(folder, 1, against_run="out-day01", work="work")
    same_output(folder / "plain-day02", folder / "out-day02")


def test_explain_restore_and_rethreshold(folder: Path) -> None:
    run_day(folder, 0, save_state=True)
    result = run_day(folder, 1, against_run="out-day01")
    row = next(row for row in result.removed.to_arrow().to_pylist() if row["kept_id"].startswith("day01"))
    assert result.explain(row["id"]).witness == mw.explain("out-day02", row["id"]).witness
    assert mw.explain("out-day02", row["id"]).comparison is not None
    assert mw.explain("out-day02", row["kept_id"]).status == "reference"
    mw.restore("out-day02", "back")
    assert Path("back/kept/day02.jsonl").read_bytes() == Path("day02.jsonl").read_bytes()
    mw.rethreshold("out-day02", "higher", 0.8)
    assert removed_ids(folder / "higher") == result.rethreshold(0.8).removed.to_arrow().column("id").to_pylist()


def test_a_dry_run_needs_no_kept_rows(folder: Path) -> None:
    run_day(folder, 0, save_state=True)
    shutil.rmtree("out-day01/kept")
    assert estimate_run("day02.jsonl", against_run="out-day01", **SETTINGS).documents == 30


@pytest.mark.parametrize("name", ["state", "files", "part-00000", "ids-00000", "keys-00000-00001", "sets-000000"])
def test_damage_is_found_and_named(folder: Path, name: str) -> None:
    """One changed byte in the middle or near the end of any file that is read."""
    run_day(folder, 0, save_state=True)
    path = Path("out-day01/state", name)
    data = bytearray(path.read_bytes())
    data[len(data) - 40 if name != "state" else len(data) // 2] ^= 1
    path.write_bytes(data)
    message = error_message(MinwiseError, lambda: mw.dedup("day01.jsonl", against_run="out-day01", **SETTINGS))
    assert f"out-day01/state/{name}" in message
    assert "\n" not in message


def test_a_state_of_another_run_is_refused(folder: Path) -> None:
    run_day(folder, 0, save_state=True)
    grow(folder, days=2, out="other", save_state=True)
    shutil.rmtree("out-day01/state")
    shutil.copytree("other-day02/state", "out-day01/state")
    message = error_message(FormatError, lambda: mw.dedup("day02.jsonl", against_run="out-day01", **SETTINGS))
    assert message.startswith("out-day01/state: must be the state of ")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"exact": True}, "exact must be False with save_state, which needs the keys of bands and sets without"),
        ({"measure": "containment"}, "measure must be jaccard with save_state"),
        ({"discount": "common"}, "discount must be none with save_state"),
        ({"verify": "signature"}, "verify must be exact with save_state"),
        ({"engine": "spark"}, "save_state must be left out with engine spark, got True"),
        ({"save_state": 1}, "save_state must be one of False, True, got 1"),
    ],
)
def test_what_has_no_state_is_refused(folder: Path, settings: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"save_state": True, **settings}
    assert error_message(ConfigError, lambda: mw.dedup("day01.jsonl", "out", **given)).startswith(message)
    assert not Path("out").exists()


def test_text_files_have_no_state(folder: Path) -> None:
    Path("texts").mkdir()
    Path("texts/a.txt").write_text("one two three")
    message = error_message(ConfigError, lambda: mw.dedup("texts", "out", save_state=True))
    rule = "save_state must be left out with text files, each of which is a document"
    assert message == f"{rule}, got texts/a.txt; give tables or lines"


def test_states_and_kept_rows_can_be_mixed(folder: Path) -> None:
    """A run without a state between two with one: the same rows are kept and removed."""
    grow(folder, days=4, out="plain")
    run_day(folder, 0, save_state=True)
    run_day(folder, 1)
    run_day(folder, 2, save_state=True)
    run_day(folder, 3)
    for day in DAYS[:4]:
        assert kept_bytes(folder / f"plain-{day}") == kept_bytes(folder / f"out-{day}")
        assert removed_ids(folder / f"plain-{day}") == removed_ids(folder / f"out-{day}")


def test_sums_of_sets_detect_a_changed_element() -> None:
    elements = np.array([1, 2**64 - 1, 5], dtype=np.uint64)
    sizes = np.array([2, 0, 1])
    assert stored_state.element_sums(sizes, elements).tolist() == [0, 0, 5]
