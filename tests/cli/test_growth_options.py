"""`minwise dedup --against-run`, `--save-state` and `--update`: options, settings files and refusals."""

from pathlib import Path

import pytest
from support.commands import FAILURE, INPUT_OUTPUT, OK, USAGE, Done, run
from support.growing_corpus import kept_bytes, removed_ids, write_days

SETTINGS = ("--shingle", "word:2", "--threshold", "0.6", "--quiet")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory with three days of documents, of which two are deduplicated with a state."""
    write_days(tmp_path, days=3)
    assert dedup(tmp_path, "day01.jsonl", "-o", "one", "--save-state").status == OK
    assert dedup(tmp_path, "day02.jsonl", "-o", "two", "--against-run", "one", "--save-state").status == OK
    return tmp_path


def dedup(folder: Path, *arguments: str) -> Done:
    """Run `minwise dedup`."""
    return run(folder, "dedup", *arguments, *SETTINGS)


def test_runs_can_be_given_again_and_in_a_settings_file(folder: Path) -> None:
    assert dedup(folder, "day03.jsonl", "-o", "last", "--against-run", "two").status == OK
    assert dedup(folder, "day03.jsonl", "-o", "both", "--against-run", "two", "--against-run", "one").status == OK
    (folder / "minwise.toml").write_text('[dedup]\nagainst_run = ["one", "two"]\nsave_state = true\n')
    assert dedup(folder, "day03.jsonl", "-o", "file").status == OK
    for other in ("both", "file"):
        assert kept_bytes(folder / other) == kept_bytes(folder / "last")
        assert removed_ids(folder / other) == removed_ids(folder / "last")
    assert (folder / "file/state").is_dir()


def test_an_index_is_updated(folder: Path) -> None:
    create = ("index", "create", "seen.mw", "--seed", "1", *SETTINGS)
    assert run(folder, *create).status == OK
    for name in ("day01", "day02"):
        assert dedup(folder, f"{name}.jsonl", "-o", f"updated-{name}", "--update", "seen.mw").status == OK
    assert kept_bytes(folder / "updated-day02") == kept_bytes(folder / "two")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--against-run", "two", "--seed", "2"), FAILURE, "--seed must be that of the earlier run two, which has 1"),
        (("--against-run", "nowhere"), INPUT_OUTPUT, "nowhere: No such file or directory"),
        (("--update", "nowhere"), INPUT_OUTPUT, "nowhere: No such index"),
        (("--save-state", "--exact"), USAGE, "--exact must be False with --save-state"),
        (("--passages", "--against-run", "two"), USAGE, "--against-run must be left out with passages"),
    ],
)
def test_errors_name_options_in_one_line(folder: Path, arguments: tuple[str, ...], status: int, message: str) -> None:
    done = run(folder, "dedup", "day03.jsonl", "-o", "out", "--quiet", *arguments)
    if "--passages" not in arguments:
        done = dedup(folder, "day03.jsonl", "-o", "out", *arguments)
    assert (done.status, done.out) == (status, "")
    assert message in done.err
    assert done.err.count("\n") == 1


def test_standard_output_has_no_state_and_no_index(folder: Path) -> None:
    done = dedup(folder, "day03.jsonl", "-o", "-", "--save-state")
    assert done.status == USAGE
    assert "--save-state writes to a directory: give one as -o" in done.err
    assert dedup(folder, "day03.jsonl", "-o", "-", "--update", "two").status == USAGE
