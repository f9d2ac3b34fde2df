"""Runs against earlier runs: the same rows as one run over everything, and refusals."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.expect import error_message
from support.growing_corpus import DAYS, SETTINGS, grow, kept_bytes, removed_ids, removed_table, run_day, write_days

import minwise as mw
from minwise.errors import ConfigError, FormatError, MinwiseError, MismatchError
from minwise.inputs import Files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a directory with ten days of documents."""
    monkeypatch.chdir(tmp_path)
    write_days(tmp_path)
    return tmp_path


def everything(folder: Path, **settings: Any) -> Path:  # noqa: ANN401 - any setting
    """Return the output of one run over all days."""
    mw.dedup(Files([f"{day}.jsonl" for day in DAYS]), folder / "everything", **{**SETTINGS, **settings})
    return folder / "everything"


@pytest.mark.parametrize("settings", [{}, {"exact": True}], ids=["bands", "exact"])
def test_ten_runs_keep_and_remove_the_same_rows_as_one(folder: Path, settings: dict[str, Any]) -> None:
    grow(folder, **settings)
    whole = everything(folder, **settings)
    kept, removed = kept_bytes(whole), removed_ids(whole)
    for day in DAYS:
        assert kept_bytes(folder / f"out-{day}") == {f"{day}.jsonl": kept[f"{day}.jsonl"]}
        assert removed_ids(folder / f"out-{day}") == [name for name in removed if name.startswith(day)]
    assert len(removed) > 100
    assert all(removed_ids(folder / f"out-{day}") for day in DAYS[1:])


def test_it_equals_against_the_kept_rows_of_all_earlier_runs(folder: Path) -> None:
    grow(folder, days=4)
    against = Files([f"{folder}/out-{day}/kept/{day}.jsonl" for day in DAYS[:3]])
    mw.dedup(folder / "day04.jsonl", "plain", against=against, **SETTINGS)
    for name in ("kept/day04.jsonl", "removed.parquet", "clusters.parquet", "report.json"):
        assert Path("plain", name).read_bytes() == Path("out-day04", name).read_bytes()
    recorded = json.loads(Path("out-day04/run.json").read_text())["against_run"]
    assert [Path(entry["path"]).name for entry in recorded] == ["out-day03"]


def test_several_runs_are_compared_with_once_each(folder: Path) -> None:
    grow(folder, days=3)
    run_day(folder, 3)
    run_day(folder, 3, out="several", against_run=["out-day03", "out-day01", "out-day02", "out-day03"])
    assert kept_bytes(folder / "several-day04") == kept_bytes(folder / "out-day04")
    assert {row["id"]: row["similarity"] for row in removed_table(folder / "several-day04")} == {
        row["id"]: row["similarity"] for row in removed_table(folder / "out-day04")
    }


def test_a_day_without_new_rows_is_followed(folder: Path) -> None:
    """Its kept files are empty, and the run after it is compared with the day before it."""
    run_day(folder, 0)
    shutil.copy("day01.jsonl", "day02.jsonl")
    assert run_day(folder, 1).report["counts"]["kept"] == 0
    shutil.copy("day01.jsonl", "day03.jsonl")
    assert run_day(folder, 2).report["counts"]["kept"] == 0


def test_restore_and_explain_of_a_run_against_a_run(folder: Path) -> None:
    grow(folder, days=2)
    row = next(row for row in removed_table(folder / "out-day02") if row["kept_id"].startswith("day01"))
    found = mw.explain("out-day02", row["id"])
    assert found.witness is not None
    assert (found.status, found.witness.id, found.witness.source) == ("removed", row["kept_id"], row["kept_source"])
    assert found.comparison is not None
    assert mw.explain("out-day02", row["kept_id"]).status == "reference"
    mw.restore("out-day02", "back")
    assert Path("back/kept/day02.jsonl").read_bytes() == Path("day02.jsonl").read_bytes()


def test_rethreshold_of_a_run_against_a_run(folder: Path) -> None:
    grow(folder, days=2)
    mw.rethreshold("out-day02", "higher", 0.8)
    raised = run_day(folder, 1, out="again", against_run="out-day01").rethreshold(0.8)
    assert removed_ids(folder / "higher") == raised.removed.to_arrow().column("id").to_pylist()
    assert json.loads(Path("higher/run.json").read_text())["against_run"]


def test_kept_tables_in_memory_are_read_again(folder: Path) -> None:
    rows = [json.loads(line) for line in Path("day01.jsonl").read_text().splitlines()]
    mw.dedup(rows, "first", **SETTINGS)
    result = mw.dedup(rows, against_run="first", **SETTINGS)
    assert result.report["counts"]["kept"] == sum(not row["text"] for row in rows)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": 0.7}, "threshold must be that of the earlier run out-day01, which has 0.6, got 0.7"),
        ({"seed": 2}, "seed must be that of the earlier run out-day01, which has 1, got 2"),
        ({"shingle": "word:3"}, "shingle must be that of the earlier run out-day01, which has 'word:2', got 'word:3'"),
        ({"lowercase": False}, "lowercase must be that of the earlier run out-day01, which has True, got False"),
        ({"html": True}, "html must be that of the earlier run out-day01, which has None, got True"),
        ({"text_column": "n"}, "text_column must be that of the earlier run out-day01, which has ['text'], got ['n']"),
        ({"id_column": "n"}, "id_column must be that of the earlier run out-day01, which has None, got 'n'"),
        ({"verify": "none"}, "verify must be that of the earlier run out-day01, which has 'exact', got 'none'"),
    ],
)
def test_other_settings_are_refused_with_both_values(folder: Path, settings: dict[str, Any], message: str) -> None:
    run_day(folder, 0)
    given = {**SETTINGS, **settings}
    found = error_message(MismatchError, lambda: mw.dedup("day02.jsonl", against_run="out-day01", **given))
    assert found == f"{message}; give the same settings as there"


def test_other_policies_are_accepted(folder: Path) -> None:
    run_day(folder, 0)
    result = mw.dedup("day02.jsonl", against_run="out-day01", **SETTINGS, keep="longest", max_bucket=100)
    assert result.report["counts"]["removed"]


def test_missing_and_changed_runs_are_refused_with_the_remedy(folder: Path) -> None:
    grow(folder, days=3)
    shutil.move("out-day01", "moved")
    message = error_message(MismatchError, lambda: run_day(folder, 3))
    assert message == (
        f"{folder}/out-day01: must be the earlier run that {folder}/out-day02 was run against, got none; "
        "give its new place as against_run='out-day01', too"
    )
    assert run_day(folder, 3, against_run=["moved", "out-day03"]).report["counts"]["removed"]
    run_day(folder, 0)
    message = error_message(MismatchError, lambda: mw.dedup("day04.jsonl", against_run="out-day03", **SETTINGS))
    assert message.endswith(f"written again since {folder}/out-day02 was run against it; run {folder}/out-day02 again")


def test_changed_kept_rows_are_refused(folder: Path) -> None:
    run_day(folder, 0)
    kept = Path("out-day01/kept/day01.jsonl")
    rows = kept.read_text().splitlines(keepends=True)
    kept.write_text("".join(rows[:-1]))
    message = error_message(MismatchError, lambda: mw.dedup("day02.jsonl", against_run="out-day01", **SETTINGS))
    assert message == (
        f"out-day01/kept: must have the {len(rows)} kept rows of the run, got {len(rows) - 1}; it has changed: "
        "run it again, or leave it out"
    )
    kept.unlink()
    message = error_message(MismatchError, lambda: mw.dedup("day02.jsonl", against_run="out-day01", **SETTINGS))
    assert message == (
        f"out-day01/kept: must have the {len(rows)} kept rows of the run, got no file; run it again, or leave it out"
    )


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("s3://bucket/out", ConfigError, "against_run must be a local directory, got s3://bucket/out; copy it to"),
        (7, ConfigError, "against_run must be a path, got 7"),
        (".", FormatError, "must be a directory that minwise dedup wrote, got one without report.json"),
    ],
)
def test_what_is_no_run_is_refused(folder: Path, given: Any, error: type[MinwiseError], message: str) -> None:  # noqa: ANN401
    assert message in error_message(error, lambda: mw.dedup("day02.jsonl", against_run=given, **SETTINGS))


def test_an_output_must_not_replace_the_earlier_run(folder: Path) -> None:
    run_day(folder, 0)
    message = error_message(
        ConfigError,
        lambda: mw.dedup("day02.jsonl", "out-day01", overwrite=True, against_run="out-day01", **SETTINGS),
    )
    assert message.startswith("output must not be or hold an input, got out-day01")
    inside = error_message(
        ConfigError, lambda: mw.dedup("day02.jsonl", "out-day01/next", against_run="out-day01", **SETTINGS)
    )
    assert inside == (
        "output must not be, hold or lie in an earlier run, got out-day01/next and out-day01; give another output"
    )


def test_passages_and_other_calls_refuse_it(folder: Path) -> None:
    run_day(folder, 0)
    options: Any = {"against_run": "out-day01"}
    message = error_message(ConfigError, lambda: mw.dedup("day02.jsonl", passages=True, **options))
    assert message == (
        "against_run must be left out with passages, which has no search for near-duplicates, got 'out-day01'"
    )
    assert "unknown setting 'against_run'" in error_message(ConfigError, lambda: mw.pairs("day02.jsonl", **options))
