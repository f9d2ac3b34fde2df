"""`minwise index query`: an answer for every document, with the requested fields, as soon as it is found."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.commands import FAILURE, INPUT_OUTPUT, OK, USAGE, Done, Job, one_line, run
from support.piped import DEADLINE_SECONDS, next_line, running
from support.small_corpus import FERRY, ROWS, TRAIN, json_lines, parse_json_lines, write

import minwise as mw

NEAR = mw.compare(TRAIN, f"{TRAIN} a").similarity


def query(folder: Path, *arguments: str, job: Job | None = None) -> Done:
    """Run the command on the index of the folder."""
    return run(folder, "index", "query", "news.mw", *arguments, job=job)


def answers(folder: Path, *arguments: str) -> dict[str, list[Any]]:
    """Return the ids of all hits, by document."""
    done = query(folder, *arguments)
    assert done.status == OK, done
    return {answer["id"]: [hit["id"] for hit in answer["hits"]] for answer in parse_json_lines(done.out)}


def test_every_document_gets_an_answer(filled: Path) -> None:
    """One line each, in order: the most similar hit first, with similarity and metadata; counts on standard error."""
    done = query(filled, "in.jsonl")
    assert (done.status, done.err) == (OK, "minwise: 5 asked: 5 with near-duplicates, 9 hits\n")
    first, second, *_, last = parse_json_lines(done.out)
    metadata = {row["id"]: {"year": row["year"], "note": row["note"]} for row in ROWS}
    assert first == {
        "id": "d0",
        "hits": [
            {"id": "d0", "similarity": 1.0, "metadata": metadata["d0"], "exact": True},
            {"id": "d2", "similarity": 1.0, "metadata": metadata["d2"], "exact": True},
        ],
        "truncated": False,
    }
    assert [(hit["id"], hit["similarity"]) for hit in second["hits"]] == [("d1", 1.0), ("d4", NEAR)]
    assert [(hit["id"], hit["similarity"]) for hit in last["hits"]] == [("d4", 1.0), ("d1", NEAR)]


@pytest.mark.parametrize("name", ["fresh.parquet", "fresh.csv.gz", "fresh.arrow"])
def test_every_format(filled: Path, name: str) -> None:
    """A document without an id gets one of its file and row."""
    write(filled / name, [{"body": FERRY}, {"body": "nothing like anything before it"}])
    assert answers(filled, name, "--text-column", "body") == {f"{name}:0": ["d0", "d2"], f"{name}:1": []}


def test_threshold_top_and_where_limit_the_hits(filled: Path) -> None:
    assert answers(filled, "in.jsonl", "--threshold", "0.99")["d1"] == ["d1"]
    assert answers(filled, "in.jsonl", "--top", "1")["d0"] == ["d0"]
    assert answers(filled, "in.jsonl", "--where", "year=2001")["d0"] == ["d2"]
    assert answers(filled, "in.jsonl", "--where", "year=2001", "--where", "note=first")["d0"] == []
    assert answers(filled, "in.jsonl", "--where", "note=first")["d0"] == ["d0"]
    assert answers(filled, "in.jsonl", "--where", 'note="first"')["d0"] == ["d0"]
    assert answers(filled, "in.jsonl", "--where", "note=")["d0"] == ["d2"]
    assert answers(filled, "in.jsonl", "--where", 'year="2001"')["d0"] == []
    assert answers(filled, "in.jsonl", "--where", "nothing=null")["d0"] == []


def test_without_a_threshold_each_line_says_what_it_cannot_know(filled: Path) -> None:
    done = query(filled, "in.jsonl", "--threshold", "0", "--top", "1")
    assert (done.status, done.err) == (OK, "minwise: 5 asked: 5 with hits, 5 hits\n")
    for row in parse_json_lines(done.out):
        assert [(hit["similarity"], hit["recall"]) for hit in row["hits"]] == [(1.0, 1.0)]
        assert 0 < row["complete_above"] < 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--threshold", "0.5"], "0.8"),
        (["--threshold", "0.5"], "0 is no threshold"),
        (["--threshold", "1.5"], "threshold must"),
        (["--top", "0"], "top must"),
        (["--where", "year"], "where must be KEY=VALUE, got year"),
        (["--where", "=5"], "where must be KEY=VALUE"),
        (["--where", "a=1", "--where", "a=2"], "got a twice"),
        (["--passages"], "stores texts"),
        (["--memory", "x"], "memory must"),
        (["--threads", "9999"], "threads must"),
        (["-o", ""], "output must"),
        (["-o", "in.jsonl", "--overwrite"], "output must not be one of the inputs"),
    ],
)
def test_wrong_arguments(filled: Path, options: list[str], message: str) -> None:
    """Exit code 2 and one line, before anything is read."""
    assert message in one_line(query(filled, "in.jsonl", *options), USAGE)
    assert (filled / "in.jsonl").read_bytes() == json_lines(ROWS)


def test_output_file(filled: Path) -> None:
    """The lines are the same, and the summary is printed to standard output, as text, as JSON or not at all."""
    printed = query(filled, "in.jsonl", "--quiet")
    assert printed.err == ""
    done = query(filled, "in.jsonl", "-o", "found.jsonl")
    assert (done.status, done.out, done.err) == (OK, "5 asked: 5 with near-duplicates, 9 hits\n", "")
    assert (filled / "found.jsonl").read_text(encoding="utf-8") == printed.out
    counts = json.loads(query(filled, "in.jsonl", "-o", "found.jsonl", "--overwrite", "--json").out)
    assert counts.pop("run")["output"] == "found.jsonl"
    assert counts == {"index": "news.mw", "asked": 5, "with_hits": 5, "hits": 9, "truncated": 0, "left_out": 0}


def test_answers_before_the_input_ends(filled: Path) -> None:
    """A line is answered before the next is written; documents added meanwhile are found."""
    first, second = json_lines(
        [ROWS[0], {"text": "a text that is not in the index yet, as far as we know"}]
    ).splitlines(keepends=True)
    with running(filled, "index", "query", "news.mw", "-", "--quiet") as process:
        assert process.stdin
        process.stdin.write(first)
        assert [hit["id"] for hit in json.loads(next_line(process))["hits"]] == ["d0", "d2"]
        process.stdin.write(second)
        assert json.loads(next_line(process)) == {"id": "-:1", "hits": [], "truncated": False}
        with mw.Index.open(filled / "news.mw", "w") as index:
            index.add(["new"], [json.loads(second)["text"]])
            process.stdin.write(second)
            assert [hit["id"] for hit in json.loads(next_line(process))["hits"]] == ["new"]
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert (process.returncode, out, err) == (OK, b"", b"")


def test_unreadable_rows_are_reported(filled: Path) -> None:
    """Named on standard error and left out; `fail` ends there; `skip` only counts."""
    (filled / "bad.jsonl").write_bytes(b"{oops\n" + json_lines(ROWS[:1]))
    done = query(filled, "bad.jsonl")
    assert [answer["id"] for answer in parse_json_lines(done.out)] == ["d0"]
    fault, counts = done.err.splitlines()
    assert fault.startswith("minwise: bad.jsonl: row 0: line 1 is not JSON")
    assert counts.endswith(", 1 could not be read")
    assert "bad.jsonl: row 0" in one_line(query(filled, "bad.jsonl", "--on-error", "fail"), FAILURE)
    assert query(filled, "bad.jsonl", "--on-error", "skip").err.splitlines() == [counts]
    (filled / "bad.jsonl").write_bytes(b"{oops\n")
    assert query(filled, "bad.jsonl").err.splitlines()[-1].startswith("minwise: bad.jsonl: row 0: line 1")


def test_full_disk_is_named(filled: Path) -> None:
    assert "/dev/full: No space left" in one_line(query(filled, "in.jsonl", "-o", "/dev/full"), INPUT_OUTPUT)


def test_passages(tmp_path: Path) -> None:
    """The longest passage of both texts with its offsets in each."""
    write(tmp_path / "in.jsonl", ROWS)
    start, end = FERRY[: len(FERRY) // 2], FERRY[len(FERRY) // 2 :]
    with mw.Index.create(tmp_path / "news.mw", threshold=0.3, shingle="word:2", store_text=True) as index:
        index.add(["whole", "turned"], [FERRY, f"{end} {start}"])
    (answer,) = parse_json_lines(query(tmp_path, "in.jsonl", "--top", "2", "--passages").out)[:1]
    whole, turned = (hit["passage"] for hit in answer["hits"])
    assert whole == {"text": FERRY, "query": [0, len(FERRY)], "document": [0, len(FERRY)]}
    left, right = turned["query"], turned["document"]
    assert FERRY[left[0] : left[1]] == turned["text"] == f"{end} {start}"[right[0] : right[1]]
    assert len(turned["text"]) > len(FERRY) / 3


def test_similarities_of_sketches_are_estimates(tmp_path: Path) -> None:
    """An index that stores only sketches gives estimates, marked as such."""
    write(tmp_path / "in.jsonl", ROWS)
    with mw.Index.create(tmp_path / "news.mw", sketch_only=True, seed=1) as index:
        index.add_from(tmp_path / "in.jsonl")
    (hit, *_) = parse_json_lines(query(tmp_path, "in.jsonl").out)[1]["hits"]
    assert (hit["id"], hit["similarity"], hit["exact"]) == ("d1", 1.0, False)
    assert "stores texts" in one_line(query(tmp_path, "in.jsonl", "--passages"), USAGE)


def test_truncated_search_is_reported(tmp_path: Path) -> None:
    """The answer says why and what was left out, and the summary counts it."""
    with mw.Index.create(tmp_path / "news.mw", max_bucket=16, seed=1) as index:
        index.add(range(40), [f"{FERRY} and the number of this one is {number}" for number in range(40)])
    write(tmp_path / "in.jsonl", ROWS[:1])
    done = query(tmp_path, "in.jsonl", "--top", "100", "--max-candidates", "9")
    (answer,) = parse_json_lines(done.out)
    assert (answer["truncated"], answer["truncated_by"]) == (True, "candidates")
    assert answer["left_out"] > 0
    (more,) = parse_json_lines(query(tmp_path, "in.jsonl", "--top", "100").out)
    assert (more["truncated_by"], more["left_out"]) == ("bucket", 0)
    assert more["capped_buckets"] > 0
    assert done.err.endswith(" hits, 1 search shortened\n")


def test_containment_says_which_text_lies_in_the_other(filled: Path) -> None:
    write(filled / "quote.jsonl", [{"id": "quote", "text": " ".join(TRAIN.split()[:-1])}])
    done = query(filled, "quote.jsonl", "--measure", "containment", "--threshold", "1", "--quiet")
    (answer,) = parse_json_lines(done.out)
    assert [(hit["id"], hit["similarity"], hit["contained"]) for hit in answer["hits"]] == [
        ("d1", 1.0, "query"),
        ("d4", 1.0, "query"),
    ]
    assert all(0 < hit["recall"] <= 1 for hit in answer["hits"])
    refused = query(filled, "quote.jsonl", "--measure", "containment", "--threshold", "0")
    assert "threshold must be above 0" in one_line(refused, USAGE)
