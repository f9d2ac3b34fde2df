"""`minwise pairs` and `minwise clusters` without an output: the first rows with the beginnings of their texts."""

import json
from pathlib import Path

import pytest
from rich.cells import cell_len
from support.commands import OK, execute, run
from support.pseudo_terminal import in_terminal, plain

FERRY = "the ferry leaves the old harbour at six in the morning and the gulls follow it far out to the open sea"
TRAIN = (
    "港の朝は早い。\x1b[2J the slow train waits at the river bridge until the freight has crossed and the signal lifts"
)
ROWS = [FERRY, FERRY.upper(), TRAIN, "alone on its page", TRAIN]
FIND = ("--threshold", "0.5")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the working directory, with a table whose ids are longer than a third of a terminal."""
    ids = [f"archive/of/the/harbour/office/page-{row}.txt:{row}" for row in range(len(ROWS))]
    rows = [json.dumps({"id": name, "text": text}) for name, text in zip(ids, ROWS, strict=True)]
    (tmp_path / "a.jsonl").write_text("\n".join(rows) + "\n")
    return tmp_path


def test_pairs_without_output_show_both_texts_the_total_and_how_to_get_all(folder: Path) -> None:
    done = run(folder, "pairs", "a.jsonl", *FIND)
    assert (done.status, done.err) == (OK, "")
    lines = done.out.splitlines()
    assert lines[0].split() == ["similarity", "left,", "right", "text"]
    assert lines[1].split(maxsplit=2)[0] == "1.0000"
    assert "page-0.txt:0  the ferry leaves" in lines[1]
    assert "page-1.txt:1  THE FERRY LEAVES" in lines[2]
    assert any(line.startswith("2 pairs among 5 documents in ") for line in lines)
    assert "-o FILE" in lines[-2]
    assert list(folder.iterdir()) == [folder / "a.jsonl"]


def test_clusters_without_output_show_members_below_each_other(folder: Path) -> None:
    lines = run(folder, "clusters", "a.jsonl", *FIND).out.splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["size", "2"]
    assert ["page-0" in lines[1], "page-1" in lines[2], "page-2" in lines[3], "page-4" in lines[4]] == [True] * 4
    assert any(line.startswith("2 clusters among 5 documents in ") for line in lines)


@pytest.mark.parametrize("command", ["pairs", "clusters"])
@pytest.mark.parametrize("columns", [60, 80, 140])
def test_table_fits_the_terminal_and_names_whole_files(folder: Path, command: str, columns: int) -> None:
    """Control characters of texts reach no terminal."""
    shown = in_terminal(folder, command, "a.jsonl", *FIND, columns=columns)
    assert "\x1b[2J" not in shown
    rows = [line for line in plain(shown) if "page-" in line]
    assert len(rows) == 4
    assert max(cell_len(line) for line in rows) <= columns
    assert all("…/page-" in line or "office/page-" in line for line in rows)


def test_json_has_the_first_rows_and_quiet_only_the_table(folder: Path) -> None:
    printed = json.loads(run(folder, "pairs", "a.jsonl", "--json", *FIND).out)
    assert (printed["pairs"], len(printed["first"]), printed["run"]["output"]) == (2, 2, None)
    assert printed["first"][0]["left_text"] == FERRY
    quiet = run(folder, "pairs", "a.jsonl", "--quiet", *FIND).out
    assert quiet.splitlines()[0].startswith("similarity")
    assert "documents in" not in quiet


def test_only_the_first_rows_of_many_are_shown(folder: Path) -> None:
    (folder / "many.jsonl").write_text((json.dumps({"text": FERRY}) + "\n") * 30)
    done = run(folder, "pairs", "many.jsonl", *FIND)
    assert "435 pairs among 30 documents" in done.out
    assert done.out.count("many.jsonl:") == 20
    assert run(folder, "clusters", "many.jsonl", *FIND).out.count("many.jsonl:") == 20


@pytest.mark.parametrize("texts", [[FERRY], [FERRY, "other"]], ids=["one", "two"])
def test_without_pairs_there_is_no_table(folder: Path, texts: list[str]) -> None:
    (folder / "few.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    done = run(folder, "pairs", "few.jsonl", *FIND)
    noun = "document" if len(texts) == 1 else "documents"
    assert done.status == OK
    assert done.out.startswith(f"0 pairs among {len(texts)} {noun} in ")
    assert "similarity" not in done.out


def test_texts_of_standard_input_and_of_sets_without_texts(folder: Path) -> None:
    done = execute(folder, "pairs", "-", *FIND, stdin=(folder / "a.jsonl").read_bytes())
    assert b"THE FERRY" in done.stdout
    (folder / "sets.jsonl").write_text('{"id": "x", "text": ["a", "b"]}\n{"id": "y", "text": ["a", "b"]}\n')
    done = execute(folder, "pairs", "sets.jsonl", "--shingle", "set")
    assert [line.split() for line in done.stdout.decode().splitlines()[1:3]] == [["1.0000", "x"], ["y"]]
