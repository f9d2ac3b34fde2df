"""minwise nearest: output, preview, options and errors."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.commands import FAILURE, OK, USAGE, run

TEXTS = {"a": "red green blue", "b": "red green", "c": "red", "d": "violet"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [json.dumps({"id": name, "text": text}) for name, text in TEXTS.items()]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "known.csv").write_text("id,text\nx,red green blue\ny,green\n", encoding="utf-8")
    return tmp_path


def listed(folder: Path, *options: str) -> list[dict[str, Any]]:
    """Return the rows of a run that writes to standard output."""
    done = run(folder, "nearest", "docs.jsonl", "--shingle", "word:1", *options, "-o", "-", "--quiet")
    assert (done.status, done.err) == (OK, "")
    return [json.loads(line) for line in done.out.splitlines()]


def test_nearest_documents_are_listed_by_rank(folder: Path) -> None:
    rows = [tuple(row.values()) for row in listed(folder, "--top", "2")]
    assert rows[:3] == [("a", "b", 2 / 3, 1), ("a", "c", 1 / 3, 2), ("b", "a", 2 / 3, 1)]
    assert {row[0] for row in rows} == {"a", "b", "c"}, "d has no word in common with another document"


def test_documents_of_other_files_are_listed_with_sources(folder: Path) -> None:
    first = listed(folder, "--among", "known.csv", "--top", "1", "--sources")[0]
    assert first == {
        "left": "a",
        "left_source": "docs.jsonl",
        "left_row": 0,
        "right": "x",
        "right_source": "known.csv",
        "right_row": 0,
        "similarity": 1.0,
        "rank": 1,
    }


def test_pairs_can_be_mutual_and_one_to_one(folder: Path) -> None:
    options = ("--among", "known.csv", "--mutual", "--one-to-one", "--at-least", "0.3")
    assert [(row["left"], row["right"]) for row in listed(folder, *options)] == [("a", "x"), ("b", "y")]


def test_preview_shows_both_texts_and_counts(folder: Path) -> None:
    done = run(folder, "nearest", "docs.jsonl", "--shingle", "word:1", "--top", "1")
    assert done.status == OK
    assert "similarity  left, right  text" in done.out
    assert "3 pairs of 4 documents in " in done.out
    assert "1 document without any pair" in done.out


def test_report_has_settings_and_counts(folder: Path) -> None:
    options = ("--shingle", "word:1", "--among", "known.csv", "--top", "1", "-o", "found.parquet", "--json")
    report = json.loads(run(folder, "nearest", "docs.jsonl", *options).out)
    assert (report["pairs"], report["without"], report["among"]) == (3, 1, 2)
    assert (report["settings"]["top"], report["settings"]["shingle"]) == (1, "word:1")


def test_users_with_similar_likes_are_found_by_group(folder: Path) -> None:
    (folder / "likes.csv").write_text("user,film\nana,1\nana,2\nben,1\nben,2\ncay,2\n", encoding="utf-8")
    options = ("--group-by", "user", "--item", "film", "--top", "1", "-o", "-", "--quiet")
    rows = [json.loads(line) for line in run(folder, "nearest", "likes.csv", *options).out.splitlines()]
    assert [(row["left"], row["right"]) for row in rows] == [("ana", "ben"), ("ben", "ana"), ("cay", "ana")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--top", "0"), "--top must be a whole number from 1 to 1000, got 0"),
        (("--at-least", "1.5"), "--at-least must be a number from 0 to 1, got 1.5"),
        (("--at-least", "-0.1"), "--at-least must be a number from 0 to 1, got -0.1"),
        (("--at-least", "nan"), "--at-least must be a number from 0 to 1, got nan"),
        (("--engine", "spark"), "--engine must be local for nearest documents, got 'spark'"),
        (
            ("--group-by", "id", "--item", "text", "--among", "known.csv"),
            "--among must be left out with --group-by, which groups the rows of one corpus",
        ),
    ],
)
def test_wrong_settings_are_refused_in_one_line(folder: Path, options: tuple[str, ...], message: str) -> None:
    done = run(folder, "nearest", "docs.jsonl", *options)
    assert (done.status, done.err) == (USAGE, f"minwise: {message}\n")


def test_an_empty_side_is_refused_in_one_line(folder: Path) -> None:
    (folder / "none.csv").write_text("id,text\n", encoding="utf-8")
    done = run(folder, "nearest", "none.csv", "--quiet")
    assert (done.status, done.err) == (FAILURE, "minwise: the input must have at least one document, got none\n")
    done = run(folder, "nearest", "docs.jsonl", "--among", "none.csv", "--quiet")
    rest = "must have at least one document, got none; leave it out to search the input itself"
    assert (done.status, done.err) == (FAILURE, f"minwise: --among {rest}\n")
