"""`minwise index` on records and sets: every command works, or refuses in one line."""

from pathlib import Path

import pytest
from support.commands import OK, USAGE, Done, Job, one_line, run
from support.small_corpus import parse_json_lines

PEOPLE = "id,name,phone,city\n1,Ann Miller,555-1234,Bonn\n2,Anne Miller,(555) 1234,Ulm\n3,Bob Stone,555-9999,Bonn\n"
NEW = "id,name,phone\nx,Ann Millar,5551234\ny,Nobody,1\n"
STREAM = b'{"id": "s1", "name": "Ann Millar", "phone": "5551234"}\n{"id": "s2", "name": "Zoe", "phone": 7}\n'


def index(folder: Path, *arguments: str, job: Job | None = None) -> Done:
    return run(folder, "index", *arguments, job=job)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Return a directory with an index of three people."""
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "new.csv").write_text(NEW)
    options = ("--fields", "name:char:3 phone:digits", "--weights", "phone=2", "--threshold", "0.5", "--seed", "1")
    assert index(tmp_path, "create", "people.mw", *options).status == OK
    done = index(tmp_path, "add", "people.mw", "people.csv", "--metadata-column", "city")
    assert (done.status, done.out) == (OK, "3 read: 3 added; 3 in people.mw\n")
    return tmp_path


def test_records_are_found_by_their_fields(people: Path) -> None:
    first, second = parse_json_lines(index(people, "query", "people.mw", "new.csv", "--where", "city=Bonn").out)
    assert [(hit["id"], hit["similarity"]) for hit in first["hits"]] == [("1", 0.8)]
    assert second == {"id": "y", "hits": [], "truncated": False}


def test_an_index_of_records_is_maintained_as_any_other(people: Path) -> None:
    assert index(people, "remove", "people.mw", "3").out.startswith("1 removed")
    assert index(people, "compact", "people.mw").status == OK
    assert index(people, "backup", "people.mw", "copy.mw").out == "2 documents in copy.mw\n"
    assert index(people, "export", "copy.mw", "out.parquet").out == "2 signatures in out.parquet\n"
    assert index(people, "verify", "copy.mw").status == OK
    assert "fields     name:char:3, phone:digits:3 (weight 2)\n" in index(people, "stats", "people.mw").out


def test_a_stream_of_records_is_deduplicated(people: Path) -> None:
    (people / "stream.jsonl").write_bytes(STREAM)
    job = Job(stdin=str(people / "stream.jsonl"))
    done = index(people, "add", "people.mw", "-", "--unique", "-o", "kept.jsonl", job=job)
    assert [row["fate"] for row in parse_json_lines(done.out)] == ["duplicate", "added"]
    assert (people / "kept.jsonl").read_bytes() == STREAM.splitlines(keepends=True)[1]


def test_sets_are_lists_or_delimited_strings(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"id": "a", "items": ["tea", "jam"]}\n')
    (tmp_path / "in.csv").write_text("id,items\nq,jam;tea\n")
    assert index(tmp_path, "create", "baskets.mw", "--shingle", "set", "--bag").status == OK
    assert index(tmp_path, "add", "baskets.mw", "in.jsonl", "--text-column", "items").status == OK
    done = index(tmp_path, "query", "baskets.mw", "in.csv", "--text-column", "items", "--separator", ";")
    assert [hit["id"] for row in parse_json_lines(done.out) for hit in row["hits"]] == ["a"]
    assert "items      of sets, repeated ones count\n" in index(tmp_path, "stats", "baskets.mw").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add", "people.mw", "people.csv", "--text-column", "name"], "--text-column must be left out for an index of"),
        (["add", "people.mw", "people.csv", "--separator", ";"], "--separator must be left out unless"),
        (["add", "people.mw", "new.csv", "--unique", "-o", "kept.jsonl"], "source must be a stream of JSON lines"),
        (["query", "people.mw", "new.csv", "--passages"], "passages need an index that stores texts"),
    ],
)
def test_what_does_not_apply_is_refused(people: Path, arguments: list[str], message: str) -> None:
    assert message in one_line(index(people, *arguments), USAGE)
