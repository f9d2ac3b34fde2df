"""`minwise index add --assign`: the cluster that each document joins, and those that it merges."""

import json
from pathlib import Path

from support.commands import OK, USAGE, one_line, run


def test_decisions_name_clusters(tmp_path: Path) -> None:
    create = ("index", "create", "x.mw", "--shingle", "set", "--threshold", "0.3", "--assign", "--json")
    assert json.loads(run(tmp_path, *create).out)["settings"]["assign"] is True
    (tmp_path / "sets.jsonl").write_text('{"id":1,"text":["a","b"]}\n{"id":2,"text":["c","d"]}\n{"id":3,"text":[]}\n')
    (tmp_path / "more.jsonl").write_text('{"id":4,"text":["a","b","c","d"]}\n{"id":1,"text":["a","b"]}\n')
    lines = []
    for file in ("sets.jsonl", "more.jsonl"):
        done = run(tmp_path, "index", "add", "x.mw", file, "--assign")
        assert done.status == OK
        lines += [json.loads(line) for line in done.out.splitlines()]
    assert [(line["id"], line["fate"], line["cluster"], line["merged"]) for line in lines] == [
        (1, "added", 0, []),
        (2, "added", 1, []),
        (3, "added", 2, []),
        (4, "added", 0, [1]),
        (1, "unchanged", 0, []),
    ]
    assert "2 read: 1 added, 1 already present; 4 in x.mw" in done.err


def test_assign_needs_an_index_that_assigns(tmp_path: Path) -> None:
    run(tmp_path, "index", "create", "x.mw")
    (tmp_path / "a.jsonl").write_text('{"id":1,"text":"a"}\n')
    told = one_line(run(tmp_path, "index", "add", "x.mw", "a.jsonl", "--assign"), USAGE)
    assert told == "minwise: assign needs an index that was created with --assign, got x.mw\n"
