"""minwise passages: output, preview, options and errors."""

import json
from pathlib import Path

import pytest
from support.commands import OK, USAGE, run

HEADER = "Published under the terms of the town library, all rights reserved"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = {"a": f"{HEADER}. Ferries leave at noon.", "b": f"Boats! {HEADER}; nothing else.", "c": "Nothing at all."}
    lines = [json.dumps({"id": name, "text": text}) for name, text in texts.items()]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


def test_passages_are_listed_with_their_first_occurrence(folder: Path) -> None:
    done = run(folder, "passages", "docs.jsonl", "--min-tokens", "5", "-o", "-", "--sources", "--quiet")
    assert (done.status, done.err) == (OK, "")
    [row] = map(json.loads, done.out.splitlines())
    assert row == {
        "id": "b",
        "start": 7,
        "end": 7 + len(HEADER),
        "other_id": "a",
        "other_start": 0,
        "other_end": len(HEADER),
        "tokens": 11,
        "source": "docs.jsonl",
        "row": 1,
        "other_source": "docs.jsonl",
        "other_row": 0,
    }


def test_preview_shows_the_text_and_the_share_of_repeated_tokens(folder: Path) -> None:
    done = run(folder, "passages", "docs.jsonl", "--min-tokens", "5")
    assert done.status == OK
    assert "Published under the terms" in done.out
    assert "1 passage in 3 documents" in done.out
    assert "11 of 32 tokens repeat earlier text (34.4%)" in done.out


def test_keep_decides_which_occurrence_is_listed(folder: Path) -> None:
    done = run(folder, "passages", "docs.jsonl", "--min-tokens", "5", "--keep", "last", "-o", "-", "--quiet")
    assert [json.loads(line)["id"] for line in done.out.splitlines()] == ["a"]


def test_passages_of_the_reference_corpus_are_not_listed(folder: Path) -> None:
    options = ("--against", "docs.jsonl", "--min-tokens", "5", "-o", "-", "--quiet")
    (folder / "new.txt").write_text(HEADER.upper(), encoding="utf-8")
    done = run(folder, "passages", "new.txt", *options)
    assert [(row["id"], row["other_id"]) for row in map(json.loads, done.out.splitlines())] == [("new.txt", "a")]


def test_faulty_rows_are_reported_and_skipped(folder: Path) -> None:
    with (folder / "docs.jsonl").open("a", encoding="utf-8") as file:
        file.write('\n{"id": "d", "text": null}')
    strict = run(folder, "passages", "docs.jsonl", "-o", "found.csv", "--quiet", "--on-error", "fail")
    assert strict.status not in (OK, USAGE)
    assert "row 3" in strict.err
    done = run(folder, "passages", "docs.jsonl", "--min-tokens", "5", "--on-error", "quarantine", "--json")
    report = json.loads(done.out)
    assert (report["counts"]["quarantined"], report["passages"], report["covered_tokens"]) == (1, 1, 11)


@pytest.mark.parametrize("tokens", ["0", "100001"])
def test_wrong_length_is_refused(folder: Path, tokens: str) -> None:
    done = run(folder, "passages", "docs.jsonl", "--min-tokens", tokens)
    assert done.status == USAGE
    assert done.err == f"minwise: --min-tokens must be a whole number from 1 to 100000, got {tokens}\n"


def test_repeated_units_are_counted(folder: Path) -> None:
    with (folder / "docs.jsonl").open("a", encoding="utf-8") as file:
        file.write('\n{"id": "d", "text": "NOTHING at all! Nothing else."}')
    units = ("passages", "docs.jsonl", "--unit", "sentence", "--min-tokens", "2")
    done = run(folder, *units, "-o", "-", "--quiet")
    assert (done.status, done.err) == (OK, "")
    [row] = map(json.loads, done.out.splitlines())
    place = {"id": "d", "start": 0, "end": 15, "other_id": "c", "other_start": 0, "other_end": 15}
    assert row == {**place, "tokens": 3, "count": 2}
    preview = run(folder, *units)
    assert "count  passage, first occurrence  text" in preview.out
    assert "1 repeated sentence in 4 documents" in preview.out
    report = json.loads(run(folder, *units, "--min-count", "3", "--json").out)
    assert (report["unit"], report["min_count"], report["passages"]) == ("sentence", 3, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--min-count", "3"),
            "--min-count must be left out without unit, got 3; set --unit line, for example",
        ),
        (
            ("--unit", "line", "--min-count", "1"),
            "--min-count must be a whole number from 2 to 4294967295, got 1",
        ),
        (
            ("--unit", "line", "--min-tokens", "65536"),
            "--min-tokens must be a whole number from 1 to 65535, got 65536",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused(folder: Path, options: tuple[str, ...], message: str) -> None:
    done = run(folder, "passages", "docs.jsonl", *options)
    assert (done.status, done.err) == (USAGE, f"minwise: {message}\n")
