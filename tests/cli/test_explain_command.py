"""minwise explain: what it shows of removed, kept, quarantined and reference documents, and its errors."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.commands import FAILURE, INPUT_OUTPUT, OK, one_line, run
from support.small_corpus import FERRY, ROWS, TRAIN, json_lines

# 15 shingles of 21: a similarity of 0.714.
MISS = f"{TRAIN} on a grey day in november"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A finished run on two files, with a bad row, a near miss, and an id that three rows share."""
    (tmp_path / "in").mkdir()
    shared = [{"id": "same", "text": f"{word} " * 9} for word in ("one", "two", "three")]
    (tmp_path / "in/a.jsonl").write_bytes(json_lines(ROWS) + b'{"id": "bad", "text": null}\n')
    (tmp_path / "in/b.jsonl").write_bytes(json_lines([*shared, {"id": "miss", "text": MISS}]))
    done = run(tmp_path, "dedup", "in", "-o", "out", "--quiet", "--on-error", "quarantine", "--threshold", "0.75")
    assert done.status == OK, done
    return tmp_path


def explained(folder: Path, *arguments: str) -> str:
    done = run(folder, "explain", "out", *arguments)
    assert (done.status, done.err) == (OK, "")
    return done.out


def test_a_removed_document_has_its_witness_similarity_cluster_and_passages(folder: Path) -> None:
    assert explained(folder, "d4").splitlines() == [
        "document    d4 (in/a.jsonl:4)",
        "decision    removed: a near-duplicate of d1, which is kept",
        "similarity  0.9375, exact; the threshold is 0.75",
        "cluster     1 document removed for d1",
        "            0.9375  d4",
        "",
        "⟦in both texts⟧   ⟪in both, at another position⟫   in one text only",
        "",
        "< d4",
        "> d1",
        f"< ⟦{TRAIN}⟧ a",
        f"> ⟦{TRAIN}⟧",
    ]


def test_a_kept_document_has_its_cluster_and_near_misses(folder: Path) -> None:
    lines = explained(folder, "d1").splitlines()
    assert lines[1:4] == [
        "decision     kept: no kept document before it reaches the threshold",
        "cluster      1 document removed for d1",
        "             0.9375  d4",
    ]
    assert lines[4] == "near misses  0.7142  miss"
    assert "> miss" in lines


def test_the_same_for_programs(folder: Path) -> None:
    found: dict[str, Any] = json.loads(explained(folder, "d2", "--json"))
    assert found["document"] == {"id": "d2", "source": "in/a.jsonl", "row": 2}
    assert (found["status"], found["threshold"], found["size"]) == ("removed", 0.75, 2)
    assert found["witness"] == {"id": "d0", "source": "in/a.jsonl", "row": 0, "similarity": 1.0}
    assert found["comparison"]["similarity"] == 1.0
    assert found["comparison"]["passages"] == [{"left": [0, len(FERRY)], "right": [0, len(FERRY)], "moved": False}]


def test_source_and_row_name_a_document(folder: Path) -> None:
    assert explained(folder, "in/a.jsonl:4") == explained(folder, "d4")


def test_a_quarantined_row_has_its_reason(folder: Path) -> None:
    assert explained(folder, "in/a.jsonl:5").splitlines() == [
        "document  in/a.jsonl:5",
        "decision  quarantined: text is null",
    ]


def test_a_changed_input_is_named_and_the_rest_is_shown(folder: Path) -> None:
    with (folder / "in/a.jsonl").open("a") as file:
        file.write("\n")
    lines = explained(folder, "d4").splitlines()
    assert lines[1] == "decision    removed: a near-duplicate of d1, which is kept"
    assert lines[5].startswith("note        Some texts are not shown: in/a.jsonl has changed since the run: ")
    assert len(lines) == 6
    (folder / "in/a.jsonl").unlink()
    assert "in/a.jsonl has been deleted since the run" in explained(folder, "d4")


def test_unknown_id(folder: Path) -> None:
    line = one_line(run(folder, "explain", "out", "mis"), FAILURE)
    assert line == "minwise: out: no document has the id 'mis'; the closest ids are 'miss'\n"
    line = one_line(run(folder, "explain", "out", "in/c.jsonl:0"), FAILURE)
    assert line == "minwise: out: no document has the id 'in/c.jsonl:0'; clusters.parquet lists all ids\n"


def test_ambiguous_id(folder: Path) -> None:
    line = one_line(run(folder, "explain", "out", "same"), FAILURE)
    expected = "several documents have the id 'same': in/b.jsonl:0, in/b.jsonl:1, in/b.jsonl:2"
    assert line == f"minwise: out: {expected}; give one of these instead of the id\n"
    assert "document     same (in/b.jsonl:1)" in explained(folder, "in/b.jsonl:1")


def test_a_directory_that_is_no_output(folder: Path) -> None:
    assert "No such file or directory" in one_line(run(folder, "explain", "nowhere", "d1"), INPUT_OUTPUT)
    assert "must be a directory that minwise dedup wrote" in one_line(run(folder, "explain", "in", "d1"), FAILURE)


def test_a_reference_document_and_a_skipped_row(folder: Path) -> None:
    arguments = ("in/b.jsonl", "--against", "in/a.jsonl", "--on-error", "skip", "--threshold", "0.7")
    assert run(folder, "dedup", *arguments, "-o", "out", "--overwrite", "--quiet").status == OK
    lines = explained(folder, "d1").splitlines()
    assert lines[1] == "decision  only compared against; never removed and never written"
    assert lines[2] == "cluster   1 document removed for d1"
    skipped = explained(folder, "in/a.jsonl:5").splitlines()[1]
    assert skipped == "decision  quarantined: it could not be read; the run skipped such rows and recorded no reason"
