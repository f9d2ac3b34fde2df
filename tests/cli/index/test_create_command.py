"""`minwise index create`: every option is a setting of the index; an error leaves nothing behind."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.commands import INPUT_OUTPUT, OK, USAGE, one_line, run

import minwise as mw


def settings_of(folder: Path, *options: str) -> dict[str, Any]:
    """Return the settings of an index created with some options."""
    done = run(folder, "index", "create", "new.mw", *options, "--json")
    assert (done.status, done.err) == (OK, "")
    created = json.loads(done.out)
    assert created["index"] == "new.mw"
    with mw.Index.open(folder / "new.mw") as index:
        assert index.stats()["settings"] == created["settings"]
        assert len(index) == 0
    return dict(created["settings"])


def test_default_index(tmp_path: Path) -> None:
    """Default settings, in a directory whose parents are created too."""
    done = run(tmp_path, "index", "create", "deep/er/news.mw")
    assert (done.status, done.err) == (OK, "")
    plan = mw.plan()
    layout = f"{plan.bands} bands × {plan.rows} rows find {plan.recall:.2%} of documents at 0.8"
    assert done.out == f"deep/er/news.mw: an empty index; {layout}\n"
    with mw.Index.open(tmp_path / "deep/er/news.mw") as index, mw.Index.create(tmp_path / "python.mw") as other:
        assert (len(index), index.store, index.plan, index.shingler.spec) == (0, "shingles", plan, "word:5")
        assert index.stats()["settings"] == other.stats()["settings"]


def test_every_option_is_a_setting(tmp_path: Path) -> None:
    options = ["--shingle", "char:9", "--bag", "--threshold", "0.6", "--scheme", "minhash", "--seed", "7"]
    created = settings_of(tmp_path, *options, "--bands", "12", "--rows", "4", "--max-bucket", "100", "--store-text")
    expected = {
        "shingle": "char:9", "bag": True, "threshold": 0.6, "scheme": "minhash", "seed": 7, "bands": 12, "rows": 4,
        "max_bucket": 100, "store": "text", "secret_seed": False,
    }  # fmt: skip
    assert {name: created[name] for name in expected} == expected


def test_recall_and_slots_decide_the_plan(tmp_path: Path) -> None:
    """The same plan as `minwise plan`."""
    created = settings_of(tmp_path, "--threshold", "0.7", "--recall", "0.9", "--slots", "128", "--sketch-only")
    plan = mw.plan(0.7, 0.9, slots=128)
    assert (created["bands"], created["rows"], created["store"]) == (plan.bands, plan.rows, "sketch")


def test_secret_seed_is_not_shown(tmp_path: Path) -> None:
    """Two indexes have different seeds, and no command prints them."""
    assert "seed" not in settings_of(tmp_path)
    (tmp_path / "new.mw").rename(tmp_path / "old.mw")
    assert "seed" not in settings_of(tmp_path)
    seeds = []
    for name in ("old.mw", "new.mw"):
        with mw.Index.open(tmp_path / name) as index:
            seeds.append(index.shingler.seed)
        shown = run(tmp_path, "index", "stats", name, "--json").out + run(tmp_path, "index", "stats", name).out
        assert str(seeds[-1]) not in shown
    assert seeds[0] != seeds[1]


def test_quiet_prints_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, "index", "create", "new.mw", "--quiet")
    assert (done.status, done.out, done.err) == (OK, "", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--store-text", "--sketch-only"], "exclude each other"),
        (["--threshold", "2"], "threshold must"),
        (["--recall", "1"], "recall must"),
        (["--shingle", "word:0"], "word:0"),
        (["--shingle", "set", "--store-text"], "--store-text must be left out for an index of sets or records"),
        (["--fields", "name"], "--fields must be NAME:char:N"),
        (["--weights", "name=2"], "--weights must be left out without fields or sets"),
        (["--seed", "-1"], "seed must"),
        (["--max-bucket", "1"], "--max-bucket must"),
        (["--bands", "5"], "rows"),
        (["--slots", "0"], "slots must"),
    ],
)
def test_invalid_setting(tmp_path: Path, options: list[str], message: str) -> None:
    """One line, exit code 2, and nothing is created."""
    assert message in one_line(run(tmp_path, "index", "create", "new.mw", *options), USAGE)
    assert list(tmp_path.iterdir()) == []


def test_existing_path_is_refused(folder: Path) -> None:
    """An index or a file is left unchanged."""
    before = sorted(path.name for path in (folder / "news.mw").iterdir())
    assert "news.mw" in one_line(run(folder, "index", "create", "news.mw"), USAGE)
    assert sorted(path.name for path in (folder / "news.mw").iterdir()) == before
    assert "in.jsonl" in one_line(run(folder, "index", "create", "in.jsonl"), USAGE)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_directory_without_write_permission(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    line = one_line(run(tmp_path, "index", "create", "locked/new.mw"), INPUT_OUTPUT)
    assert "locked" in line
    assert "Permission denied" in line


def test_directory_below_a_file(tmp_path: Path) -> None:
    """A file cannot contain a directory."""
    (tmp_path / "file").write_text("x")
    assert "file" in one_line(run(tmp_path, "index", "create", "file/new.mw"), INPUT_OUTPUT)
