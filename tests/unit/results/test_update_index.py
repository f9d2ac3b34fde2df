"""Deduplication against an index, to which the kept rows are added."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.expect import error_message
from support.growing_corpus import DAYS, SETTINGS, kept_bytes, removed_ids, removed_table, run_day, write_days

import minwise as mw
from minwise.errors import ConfigError, InputError, MinwiseError, MismatchError
from minwise.results import DedupResult


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a directory with ten days of documents and an empty index."""
    monkeypatch.chdir(tmp_path)
    write_days(tmp_path)
    mw.Index.create("seen.mw", seed=1, **SETTINGS).close()
    return tmp_path


def update_day(number: int, **settings: Any) -> DedupResult:  # noqa: ANN401 - any setting
    """Deduplicate a day against the index."""
    name = DAYS[number]
    options: dict[str, Any] = {**SETTINGS, "update": "seen.mw", **settings}
    result: DedupResult = mw.dedup(f"{name}.jsonl", f"updated-{name}", **options)
    return result


def documents_in(index: str) -> int:
    """Return the number of documents of an index."""
    with mw.Index.open(index) as opened:
        return len(opened)


@pytest.mark.parametrize("settings", [{}, {"keep": "longest"}, {"group": "components"}], ids=str)
def test_five_days_keep_and_remove_the_rows_of_runs_against_kept_rows(folder: Path, settings: dict[str, Any]) -> None:
    kept = 0
    for number, day in enumerate(DAYS[:5]):
        run_day(folder, number, **settings)
        kept += update_day(number, **settings).report["counts"]["kept"]
        assert kept_bytes(folder / f"out-{day}") == kept_bytes(folder / f"updated-{day}")
        assert removed_ids(folder / f"out-{day}") == removed_ids(folder / f"updated-{day}")
        assert documents_in("seen.mw") == kept
    found = {row["id"]: row["similarity"] for row in removed_table(folder / "updated-day05")}
    assert found == {row["id"]: row["similarity"] for row in removed_table(folder / "out-day05")}
    assert {row["kept_source"] for row in removed_table(folder / "updated-day05")} > {str(folder / "seen.mw")}


def test_the_same_rows_again_give_the_same_result(folder: Path) -> None:
    """As after a crash between the output and the last batch: a row is not compared with itself."""
    update_day(0)
    update_day(1)
    before = documents_in("seen.mw"), kept_bytes(folder / "updated-day02"), removed_ids(folder / "updated-day02")
    update_day(1, overwrite=True)
    after = documents_in("seen.mw"), kept_bytes(folder / "updated-day02"), removed_ids(folder / "updated-day02")
    assert before == after


def test_the_index_is_closed_afterwards(folder: Path) -> None:
    """Also if the run fails; a result that is still in use needs no index."""
    result = update_day(0)
    error_message(ConfigError, lambda: update_day(0))
    with mw.Index.open("seen.mw", "w") as index:
        index.remove(["day01-0"])
    assert result.rethreshold(0.9).report["counts"]["kept"] >= result.report["counts"]["kept"]


def test_explain_and_restore(folder: Path) -> None:
    update_day(0)
    result = update_day(1)
    row = next(row for row in removed_table(folder / "updated-day02") if row["kept_id"].startswith("day01"))
    found = mw.explain("updated-day02", row["id"])
    assert found.witness is not None
    assert found.witness.id == row["kept_id"]
    assert result.explain(row["id"]).witness == found.witness
    mw.restore("updated-day02", "back")
    assert Path("back/kept/day02.jsonl").read_bytes() == Path("day02.jsonl").read_bytes()
    message = error_message(ConfigError, lambda: mw.rethreshold("updated-day02", "higher", 0.8))
    assert "to which its kept rows were added; it cannot be computed again" in message


def test_one_run_can_use_an_index_and_earlier_runs(folder: Path) -> None:
    run_day(folder, 0, save_state=True)
    run_day(folder, 1)
    update_day(1, against_run="out-day01")
    result = update_day(2, against_run="out-day01")
    run_day(folder, 2)
    assert set(removed_ids(folder / "updated-day03")) == set(removed_ids(folder / "out-day03"))
    assert result.report["counts"]["removed"]


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"threshold": 0.7}, MismatchError, "threshold must be that of the index "),
        ({"seed": 2}, MismatchError, "seed must be that of the index "),
        ({"shingle": "word:3"}, MismatchError, "shingle must be that of the index "),
        ({"exact": True}, ConfigError, "exact must be False with update, which needs the keys of bands"),
        ({"measure": "containment"}, ConfigError, "measure must be jaccard with update"),
        ({"discount": "common"}, ConfigError, "discount must be none with update"),
        ({"verify": "none"}, ConfigError, "verify must be exact with update"),
        ({"engine": "spark"}, ConfigError, "update must be left out with engine spark, got 'seen.mw'"),
        ({"update": 5}, ConfigError, "update must be a path, got 5"),
    ],
)
def test_what_an_index_cannot_decide_is_refused(
    folder: Path, settings: dict[str, Any], error: type[MinwiseError], message: str
) -> None:
    assert error_message(error, lambda: update_day(0, **settings)).startswith(message)
    assert not Path("updated-day01").exists()


@pytest.mark.parametrize(
    ("created", "message"),
    [
        ({"sketch_only": True, "seed": 1}, "update must be an index of texts with their shingles, got one of sketches"),
        ({}, "update must be an index with a known seed, got a secret one"),
    ],
)
def test_an_index_of_another_kind_is_refused(folder: Path, created: dict[str, Any], message: str) -> None:
    mw.Index.create("other.mw", **SETTINGS, **created).close()
    assert error_message(ConfigError, lambda: update_day(0, update="other.mw")).startswith(message)


def test_it_needs_an_output_and_different_ids(folder: Path) -> None:
    options: Any = {**SETTINGS, "update": "seen.mw"}
    message = error_message(ConfigError, lambda: mw.dedup("day01.jsonl", **options))
    assert message == "output must be a directory with update, which adds what is kept, got none"
    rows = [{"id": "a", "text": "one two three four"}, {"id": "a", "text": "five six seven eight"}]
    Path("same.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    message = error_message(InputError, lambda: mw.dedup("same.jsonl", "same", **options))
    assert message == "ids of kept rows must be different to be added to an index, got 'a' twice"
    assert documents_in("seen.mw") == 0
