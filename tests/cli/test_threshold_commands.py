"""minwise thresholds and minwise rethreshold."""

import json
from pathlib import Path

import pytest
from support.commands import FAILURE, OK, USAGE, digest, one_line, run
from support.small_corpus import ROWS, json_lines

import minwise as mw
from minwise.inputs import Files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in.jsonl").write_bytes(json_lines(ROWS))
    return tmp_path


def test_thresholds_show_counts_and_a_pair_for_each_step(folder: Path) -> None:
    done = run(folder, "thresholds", "in.jsonl", "--from", "0.8", "--step", "0.1")
    assert (done.status, done.err) == (OK, "")
    lines = done.out.splitlines()
    assert lines[:6] == [
        "5 documents",
        "threshold  removed  of all  kept  pairs in this step",
        "      0.8        2   40.0%     3                   0",
        "      0.9        2   40.0%     3                   1",
        "        1        1   20.0%     4                   0",
        "",
    ]
    assert lines[6] == "0.9 to 1, such as 0.9375: d1 and d4"
    assert lines[7].endswith("the frozen river⟧")
    assert lines[8].endswith("the frozen river⟧ a")
    assert lines[10] == "1, such as 1.0000: d0 and d2"
    assert lines[11].startswith("  = ⟦the ferry leaves")


def test_thresholds_for_programs_equal_those_of_python(folder: Path) -> None:
    done = run(folder, "thresholds", "in.jsonl", "--json", "--shingle", "word:2", "--keep", "longest")
    found = json.loads(done.out)
    result = mw.dedup(folder / "in.jsonl", threshold=0.5, shingle="word:2", keep="longest")
    assert found["documents"] == 5
    assert [step["threshold"] for step in found["steps"]][:3] == [0.5, 0.55, 0.6]
    assert [step["removed"] for step in found["steps"]] == [step.removed for step in result.thresholds]
    (example,) = [step["example"] for step in found["steps"][:-1] if step["example"] is not None]
    assert (example["left"]["id"], example["texts"][1]) == ("d4", ROWS[1]["text"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--from", "0"), "'--from': 0.0 is not in the range 0<x<=1"),
        (("--from", "2"), "'--from': 2.0 is not in the range 0<x<=1"),
        (("--step", "0.001"), "'--step': 0.001 is not in the range 0.01<=x<=1"),
        (("--verify", "none"), "'--verify': 'none' is not one of"),
    ],
)
def test_wrong_thresholds_are_refused_before_anything_is_read(
    folder: Path, arguments: tuple[str, ...], expected: str
) -> None:
    done = run(folder, "thresholds", "missing.jsonl", *arguments)
    assert (done.status, done.out) == (USAGE, "")
    assert expected in done.err


def test_rethreshold_writes_what_the_library_writes(folder: Path) -> None:
    assert run(folder, "dedup", "in.jsonl", "-o", "out", "--quiet", "--threshold", "0.7").status == OK
    done = run(folder, "rethreshold", "out", "--threshold", "0.95", "-o", "new", "--json")
    assert (done.status, done.err) == (OK, "")
    assert json.loads(done.out)["counts"]["removed"] == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        on_error = json.loads(Path("out/run.json").read_text())["options"]["on_error"]
        mw.dedup(Files(["in.jsonl"]), threshold=0.7, on_error=on_error).rethreshold(0.95).write("library")
    assert digest(folder / "new") == digest(folder / "library")


def test_rethreshold_summary_and_refusals(folder: Path) -> None:
    assert run(folder, "dedup", "in.jsonl", "-o", "out", "--quiet").status == OK
    done = run(folder, "rethreshold", "out", "--threshold", "1", "-o", "new")
    assert "removed  1 (" in done.out
    line = one_line(run(folder, "rethreshold", "out", "--threshold", "0.9", "-o", "new"), USAGE)
    assert line.startswith("minwise: output must be new or empty, got new")
    assert run(folder, "rethreshold", "out", "--threshold", "0.9", "-o", "new", "--overwrite", "--quiet").status == OK
    line = one_line(run(folder, "rethreshold", "out", "--threshold", "0.7", "-o", "low"), USAGE)
    rule = "--threshold must be from 0.8, that of out, to 1, got 0.7; run minwise dedup for a lower one"
    assert line == f"minwise: {rule}\n"
    (folder / "in.jsonl").write_bytes(json_lines(ROWS[:3]))
    line = one_line(run(folder, "rethreshold", "out", "--threshold", "0.9", "-o", "later"), FAILURE)
    assert "in.jsonl has changed since the run" in line
    assert "out can only be computed again from its unchanged input" in line
    assert not (folder / "later").exists()
