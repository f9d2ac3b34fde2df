"""Grouping of rows: few and many runs, interrupted runs and unusable rows give the correct groups."""

import json
import random
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.expect import error_message

import minwise as mw
from minwise.errors import InputError, MismatchError
from minwise.search import grouping
from minwise.search.workdir import WorkDirectory

OPTIONS: dict[str, Any] = {"group_by": "user", "item": "movie", "threshold": 0.2, "memory": "256MB"}
ROWS = [
    (f"user{number % 40}", random.Random(number).randrange(30)) for number in random.Random(7).sample(range(4000), 900)
]


def long_table(rows: list[tuple[Any, Any]]) -> pa.Table:
    """Return a table of users and movies."""
    return pa.table({"user": [row[0] for row in rows], "movie": [row[1] for row in rows]})


def write_parts(folder: Path, rows: list[tuple[Any, Any]]) -> Path:
    """Write the rows to a Parquet file, a JSON lines file and a CSV file, in small row groups."""
    folder.mkdir()
    third = len(rows) // 3
    pq.write_table(long_table(rows[:third]), folder / "a.parquet", row_group_size=50)
    lines = [json.dumps({"user": user, "movie": str(movie)}) for user, movie in rows[third : 2 * third]]
    (folder / "b.jsonl").write_text("\n".join(lines))
    (folder / "c.csv").write_text("user,movie\n" + "".join(f"{user},{movie}\n" for user, movie in rows[2 * third :]))
    return folder


@pytest.fixture
def many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make rows so large that a run has few of them."""
    monkeypatch.setattr(grouping, "ROW_BYTES", 256 * 10**6 // 8 // 20)


def expected_pairs(rows: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Return every similar pair of users, ordered by name, by comparing all sets."""
    sets: dict[str, set[Any]] = defaultdict(set)
    for user, movie in rows:
        sets[user].add(movie)
    users = sorted(sets)
    pairs = []
    for index, left in enumerate(users):
        for right in users[index + 1 :]:
            similarity = len(sets[left] & sets[right]) / len(sets[left] | sets[right])
            if similarity >= OPTIONS["threshold"]:
                pairs.append({"left": left, "right": right, "similarity": similarity})
    return pairs


def test_few_and_many_runs_find_the_same_pairs(many_runs: None) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "ROW_BYTES", 128)
        few = mw.pairs(long_table(ROWS), exact=True, **OPTIONS)
    many = mw.pairs(long_table(ROWS), exact=True, **OPTIONS)
    assert few.equals(many)
    assert few.to_pylist() == expected_pairs(ROWS)


def test_the_fixture_makes_many_runs(many_runs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    write = WorkDirectory.write

    def recording_write(self: WorkDirectory, name: str, arrays: Any, **header: object) -> None:  # noqa: ANN401 - as given
        written.append(name)
        write(self, name, arrays, **header)

    monkeypatch.setattr(WorkDirectory, "write", recording_write)
    folder = write_parts(tmp_path / "in", ROWS)
    mw.pairs(folder, **OPTIONS)
    assert len([name for name in written if name.startswith("rows-")]) > 5
    assert len([name for name in written if name.startswith("groups-")]) > 5


@pytest.mark.parametrize("failing", ["rows-000000", "rows-000003", "names-000002", "groups-000004", "group-order"])
def test_an_interrupted_run_resumes(failing: str, many_runs: None, tmp_path: Path) -> None:
    """The result does not depend on where it stopped; a row that counts twice would show in bags."""
    options = {**OPTIONS, "bag": True}
    folder = write_parts(tmp_path / "in", ROWS)
    expected = mw.pairs(folder, **options)
    with pytest.MonkeyPatch.context() as broken:
        for kind in ("write", "write_table"):
            broken.setattr(WorkDirectory, kind, failing_at(failing, getattr(WorkDirectory, kind)))
        with pytest.raises(OSError, match="no more"):
            mw.pairs(folder, work=tmp_path / "work", **options)
    assert mw.pairs(folder, work=tmp_path / "work", **options).equals(expected)
    assert mw.pairs(folder, work=tmp_path / "work", **options).equals(expected)


def failing_at(name: str, write: Any) -> Any:  # noqa: ANN401 - a method
    """Return a method that writes all files except one."""

    def fail(self: WorkDirectory, file_name: str, *arrays: Any, **header: object) -> None:  # noqa: ANN401 - as given
        if file_name == name:
            raise OSError("no more")
        write(self, file_name, *arrays, **header)

    return fail


def test_a_work_directory_refuses_a_run_with_other_grouping(tmp_path: Path) -> None:
    folder = write_parts(tmp_path / "in", ROWS[:9])
    mw.pairs(folder, work=tmp_path / "work", **OPTIONS)
    others: list[dict[str, Any]] = [{"transpose": True}, {"bag": True}, {"group_by": "movie", "item": "user"}]
    for other in others:
        run = partial(mw.pairs, folder, work=tmp_path / "work", **{**OPTIONS, **other})
        message = error_message(MismatchError, run)
        assert "belongs to a run with settings." in message


def test_unusable_rows_are_counted_and_named(tmp_path: Path) -> None:
    """A null user, a null item, a ragged row, a line that is not JSON; the other rows are grouped."""
    (tmp_path / "a.csv").write_text("user,movie\nann,1\n,2\nann\nann,\nbob,1\n")
    (tmp_path / "b.jsonl").write_text('{"user": "cy", "movie": "1"}\n{"user": null, "movie": 1}\n{\n')
    report = mw.write_pairs(
        [tmp_path / "a.csv", tmp_path / "b.jsonl"], tmp_path / "p.csv", on_error="quarantine", **OPTIONS
    )
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
    message = error_message(InputError, lambda: mw.pairs(tmp_path / "a.csv", **OPTIONS))
    assert message == f"{tmp_path}/a.csv: row 1: user is empty; set on_error='quarantine' to skip such rows"


def test_only_unusable_rows_are_an_error_with_the_first_reason(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,movie\n,1\n")
    message = error_message(InputError, lambda: mw.pairs(tmp_path / "a.csv", on_error="skip", **OPTIONS))
    assert message == f"no row can be read; {tmp_path}/a.csv: row 0: user is empty"


def test_no_rows_give_no_groups_and_no_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,movie\n")
    assert mw.clusters(tmp_path / "a.csv", **OPTIONS).num_rows == 0


def test_groups_are_ordered_by_name(tmp_path: Path) -> None:
    """Numbers by value if all names are numbers, otherwise strings by their bytes."""
    numbers = [(10, 1), (9, 1), (-3, 1)]
    assert mw.clusters(long_table(numbers), **OPTIONS)["id"].to_pylist() == [-3, 9, 10]
    lines = [json.dumps({"user": user, "movie": 1}) for user in (9, "a", 10)]
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    assert mw.clusters(tmp_path / "x.jsonl", **OPTIONS)["id"].to_pylist() == ["10", "9", "a"]


def test_names_are_compared_as_text(tmp_path: Path) -> None:
    """User 3 of a Parquet file is user 3 of a CSV file, which has no types."""
    pq.write_table(pa.table({"user": [3, 3], "movie": ["x", "y"]}), tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("user,movie\n3,z\n4,x\n4,y\n4,z\n")
    found = mw.pairs([tmp_path / "a.parquet", tmp_path / "b.csv"], **OPTIONS).to_pylist()
    assert found == [{"left": "3", "right": "4", "similarity": 1.0}]


def test_a_weight_of_zero_gives_an_empty_set_in_no_pair() -> None:
    table = pa.table({"user": ["a", "b"], "movie": [1, 1], "times": [0, 2]})
    clusters = mw.clusters(table, weight="times", **OPTIONS)
    assert clusters["size"].to_pylist() == [1, 1]


def test_a_group_that_is_too_large_is_quarantined(tmp_path: Path) -> None:
    table = pa.table({"user": ["a", "a", "b"], "movie": [1, 2, 1], "times": [2**24, 1, 2]})
    report = mw.write_pairs(table, tmp_path / "p.csv", weight="times", on_error="quarantine", **OPTIONS)
    assert report["counts"]["quarantined"] == 1
    assert report["faults"][0]["reason"] == "group a has 16777217 elements, more than 16777216"
