"""Grouping: many runs, few runs, interrupted runs and rows that can not be used give the groups that there are."""

import json
import random
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.expect import complaint

import minwise as mw
from minwise.search import grouping
from minwise.search.workdir import Work

OPTIONS: dict[str, Any] = {"group_by": "user", "item": "movie", "threshold": 0.2, "memory": "256MB"}
ROWS = [
    (f"user{number % 40}", random.Random(number).randrange(30)) for number in random.Random(7).sample(range(4000), 900)
]


def long_table(rows: list[tuple[Any, Any]]) -> pa.Table:
    """A table of users and movies."""
    return pa.table({"user": [row[0] for row in rows], "movie": [row[1] for row in rows]})


def write_parts(folder: Path, rows: list[tuple[Any, Any]]) -> Path:
    """The rows in a Parquet file, a CSV file and JSON lines, in small row groups."""
    folder.mkdir()
    third = len(rows) // 3
    pq.write_table(long_table(rows[:third]), folder / "a.parquet", row_group_size=50)
    lines = [json.dumps({"user": user, "movie": str(movie)}) for user, movie in rows[third : 2 * third]]
    (folder / "b.jsonl").write_text("\n".join(lines))
    (folder / "c.csv").write_text("user,movie\n" + "".join(f"{user},{movie}\n" for user, movie in rows[2 * third :]))
    return folder


@pytest.fixture
def many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that take so much memory that a run has few of them."""
    monkeypatch.setattr(grouping, "ROW_BYTES", 256 * 10**6 // 8 // 20)


def by_hand(rows: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Every pair of users, by name, compared set by set."""
    sets: dict[str, set[Any]] = defaultdict(set)
    for user, movie in rows:
        sets[user].add(movie)
    users = sorted(sets)
    found = []
    for place, left in enumerate(users):
        for right in users[place + 1 :]:
            similarity = len(sets[left] & sets[right]) / len(sets[left] | sets[right])
            if similarity >= OPTIONS["threshold"]:
                found.append({"left": left, "right": right, "similarity": similarity})
    return found


def test_few_runs_and_many_give_the_same(many_runs: None) -> None:
    """That of comparing all with all."""
    with pytest.MonkeyPatch.context() as undone:
        undone.setattr(grouping, "ROW_BYTES", 128)
        few = mw.pairs(long_table(ROWS), exact=True, **OPTIONS)
    many = mw.pairs(long_table(ROWS), exact=True, **OPTIONS)
    assert few.equals(many)
    assert few.to_pylist() == by_hand(ROWS)


def test_runs_are_really_many(many_runs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tests above and below would say nothing."""
    written: list[str] = []
    write = Work.write

    def noting(self: Work, name: str, arrays: Any, **header: object) -> None:  # noqa: ANN401 - as given
        written.append(name)
        write(self, name, arrays, **header)

    monkeypatch.setattr(Work, "write", noting)
    folder = write_parts(tmp_path / "in", ROWS)
    mw.pairs(folder, **OPTIONS)
    assert len([name for name in written if name.startswith("rows-")]) > 5
    assert len([name for name in written if name.startswith("groups-")]) > 5


@pytest.mark.parametrize("failing", ["rows-000000", "rows-000003", "names-000002", "groups-000004", "group-order"])
def test_an_interrupted_run_goes_on(failing: str, many_runs: None, tmp_path: Path) -> None:
    """Wherever it stopped, with the same answer as without; no row counts twice, which would show in bags."""
    options = {**OPTIONS, "bag": True}
    folder = write_parts(tmp_path / "in", ROWS)
    expected = mw.pairs(folder, **options)
    with pytest.MonkeyPatch.context() as broken:
        for kind in ("write", "write_table"):
            broken.setattr(Work, kind, failing_at(failing, getattr(Work, kind)))
        with pytest.raises(OSError, match="no more"):
            mw.pairs(folder, work=tmp_path / "work", **options)
    assert mw.pairs(folder, work=tmp_path / "work", **options).equals(expected)
    assert mw.pairs(folder, work=tmp_path / "work", **options).equals(expected)


def failing_at(name: str, write: Any) -> Any:  # noqa: ANN401 - a method
    """A method that writes all pieces but one."""

    def fail(self: Work, piece: str, *arrays: Any, **header: object) -> None:  # noqa: ANN401 - as given
        if piece == name:
            raise OSError("no more")
        write(self, piece, *arrays, **header)

    return fail


def test_another_grouping_is_another_run(tmp_path: Path) -> None:
    """A work directory says so, with both values."""
    folder = write_parts(tmp_path / "in", ROWS[:9])
    mw.pairs(folder, work=tmp_path / "work", **OPTIONS)
    others: list[dict[str, Any]] = [{"transpose": True}, {"bag": True}, {"group_by": "movie", "item": "user"}]
    for other in others:
        run = partial(mw.pairs, folder, work=tmp_path / "work", **{**OPTIONS, **other})
        message = complaint(mw.MismatchError, run)
        assert "belongs to a run with settings." in message


def test_rows_that_can_not_be_used_are_counted_and_named(tmp_path: Path) -> None:
    """And never lost: a null user, a null item, a ragged row, a line that is no JSON; the rest is grouped."""
    (tmp_path / "a.csv").write_text("user,movie\nann,1\n,2\nann\nann,\nbob,1\n")
    (tmp_path / "b.jsonl").write_text('{"user": "cy", "movie": "1"}\n{"user": null, "movie": 1}\n{\n')
    report = mw.pairs([tmp_path / "a.csv", tmp_path / "b.jsonl"], tmp_path / "p.csv", on_error="quarantine", **OPTIONS)
    assert report["rows"] == {"read": 8, "quarantined": 5}
    assert report["counts"] == {"read": 3, "documents": 3, "empty": 0, "quarantined": 0}
    assert report["pairs"] == 3
    reasons = [(Path(fault["source"]).name, fault["row"], fault["reason"]) for fault in report["faults"]]
    assert reasons[:4] == [
        ("a.csv", 1, "user is empty"),
        ("a.csv", 2, "has 1 fields where the header has 2"),
        ("a.csv", 3, "movie is empty"),
        ("b.jsonl", 1, "user is null"),
    ]
    message = complaint(mw.InputError, lambda: mw.pairs(tmp_path / "a.csv", **OPTIONS))
    assert message == f"{tmp_path}/a.csv: row 1: user is empty; on-error quarantine goes on without it"


def test_nothing_but_unusable_rows_is_an_error(tmp_path: Path) -> None:
    """With the first reason."""
    (tmp_path / "a.csv").write_text("user,movie\n,1\n")
    message = complaint(mw.InputError, lambda: mw.pairs(tmp_path / "a.csv", on_error="skip", **OPTIONS))
    assert message == f"no row can be read; {tmp_path}/a.csv: row 0: user is empty"


def test_no_rows_are_no_groups(tmp_path: Path) -> None:
    """And no error."""
    (tmp_path / "a.csv").write_text("user,movie\n")
    assert mw.clusters(tmp_path / "a.csv", **OPTIONS).num_rows == 0


def test_groups_are_ordered_by_name(tmp_path: Path) -> None:
    """Numbers by value if all names are such, strings by their bytes if one is not."""
    numbers = [(10, 1), (9, 1), (-3, 1)]
    assert mw.clusters(long_table(numbers), **OPTIONS)["id"].to_pylist() == [-3, 9, 10]
    lines = [json.dumps({"user": user, "movie": 1}) for user in (9, "a", 10)]
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    assert mw.clusters(tmp_path / "x.jsonl", **OPTIONS)["id"].to_pylist() == ["10", "9", "a"]


def test_a_name_is_its_text_whatever_the_file(tmp_path: Path) -> None:
    """User 3 of a Parquet file is user 3 of a CSV file, which has no numbers."""
    pq.write_table(pa.table({"user": [3, 3], "movie": ["x", "y"]}), tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("user,movie\n3,z\n4,x\n4,y\n4,z\n")
    found = mw.pairs([tmp_path / "a.parquet", tmp_path / "b.csv"], **OPTIONS).to_pylist()
    assert found == [{"left": "3", "right": "4", "similarity": 1.0}]


def test_a_weight_of_nothing_leaves_an_empty_set() -> None:
    """The group is there, and similar to nobody."""
    table = pa.table({"user": ["a", "b"], "movie": [1, 1], "times": [0, 2]})
    clusters = mw.clusters(table, weight="times", **OPTIONS)
    assert clusters["size"].to_pylist() == [1, 1]


def test_a_group_that_is_too_large_is_quarantined(tmp_path: Path) -> None:
    """By its name, with how many elements it would have."""
    table = pa.table({"user": ["a", "a", "b"], "movie": [1, 2, 1], "times": [2**24, 1, 2]})
    report = mw.pairs(table, tmp_path / "p.csv", weight="times", on_error="quarantine", **OPTIONS)
    assert report["counts"]["quarantined"] == 1
    assert report["faults"][0]["reason"] == "group a has 16777217 elements, more than 16777216"
