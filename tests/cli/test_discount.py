"""`--discount common`: outputs, explanations, the report page, restored rows, tables of frequencies, and refusals."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.commands import FAILURE, INPUT_OUTPUT, OK, USAGE, Done, digest, one_line, run
from support.small_corpus import json_lines

# A frame of 84 words with markup, and contents of 20: 80 of 120 shingles of two pages are in both.
FRAME = "<b>Guide</b> & more: " + " ".join(f"frame{number}" for number in range(80))
PAGES = [f"{FRAME} {' '.join(f'page{page}word{word}' for word in range(20))}" for page in range(9)]
COPY = PAGES[4].replace("page4word19", "edited")
ROWS = [{"id": f"p{number}", "text": text} for number, text in enumerate([*PAGES, COPY])]
COMMON = ("--discount", "common", "--threshold", "0.6")
TABLE = "common.frequencies"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the working directory, with nine pages of one frame and an edited copy."""
    (tmp_path / "in.jsonl").write_bytes(json_lines(ROWS))
    return tmp_path


def ran(folder: Path, *arguments: str) -> Done:
    done = run(folder, *arguments)
    assert done.status == OK, done
    return done


def removed(folder: Path, output: str = "out") -> list[dict[str, Any]]:
    return list(pq.read_table(folder / output / "removed.parquet").to_pylist())


def test_dedup_removes_copies_and_keeps_pages_of_one_frame(folder: Path) -> None:
    ran(folder, "dedup", "in.jsonl", "-o", "plain", "--threshold", "0.5", "--quiet")
    ran(folder, "dedup", "in.jsonl", "-o", "out", *COMMON, "--quiet")
    assert len(removed(folder, "plain")) == 9
    [row] = removed(folder)
    assert (row["id"], row["kept_id"]) == ("p9", "p4")
    assert row["similarity"] > row["weighted_similarity"] >= 0.6
    assert json.loads((folder / "out/report.json").read_text())["settings"]["discount"] == "common"


def test_pairs_and_clusters_have_the_weighted_similarity(folder: Path) -> None:
    ran(folder, "dedup", "in.jsonl", "-o", "out", *COMMON, "--quiet")
    [row] = removed(folder)
    done = ran(folder, "pairs", "in.jsonl", "-o", "-", *COMMON, "--quiet")
    assert json.loads(done.out) == {
        "left": "p4",
        "right": "p9",
        "weighted_similarity": row["weighted_similarity"],
    }
    assert "weighted" in ran(folder, "pairs", "in.jsonl", *COMMON).out
    done = ran(folder, "clusters", "in.jsonl", "-o", "-", *COMMON, "--quiet")
    clusters = {found["id"]: found["cluster"] for found in map(json.loads, done.out.splitlines())}
    assert clusters["p9"] == clusters["p4"]


def test_thresholds_count_by_weighted_similarity(folder: Path) -> None:
    counted = {}
    for options in ((), ("--discount", "common")):
        done = ran(folder, "thresholds", "in.jsonl", "--from", "0.5", "--step", "0.1", "--json", *options)
        counted[bool(options)] = [step["removed"] for step in json.loads(done.out)["steps"]]
    assert counted[False][0] == 9
    assert max(counted[True]) == 1
    assert "0.4" in ran(folder, "thresholds", "in.jsonl", "--from", "0.4", "--discount", "common").out


def test_explain_names_the_weighted_similarity(folder: Path) -> None:
    ran(folder, "dedup", "in.jsonl", "-o", "out", *COMMON, "--quiet")
    lines = ran(folder, "explain", "out", "p9").out.splitlines()
    weighted = removed(folder)[0]["weighted_similarity"]
    assert lines[1].endswith("removed: a near-duplicate of p4, which is kept")
    assert lines[2].split() == f"weighted {int(weighted * 10_000) / 10_000:.4f}, exact; the threshold is 0.6".split()
    kept = ran(folder, "explain", "out", "p1", "--search").out
    assert "kept: no kept document before it reaches the threshold" in kept
    assert "weighted similarities are known of near misses only" in kept
    assert "--search finds no others" in kept


def test_report_page_lists_the_common_phrases_escaped(folder: Path) -> None:
    ran(folder, "dedup", "in.jsonl", "-o", "out", *COMMON, "--quiet")
    page = (folder / "out/report.html").read_text(encoding="utf-8")
    assert "These phrases are in many documents, so they count for little." in page
    assert "Guide&lt;/b&gt; &amp; more: frame0 frame1" in page
    assert "<b>Guide" not in page
    assert "an audit does not weight elements" in page
    assert "minwise audit" not in page
    phrases = json.loads((folder / "out/report.json").read_text())["common_phrases"]
    assert (phrases[0]["documents"], phrases[0]["weight"]) == (10, 0.015625)


def test_an_audit_without_weights_does_not_belong_to_a_weighted_run(folder: Path) -> None:
    ran(folder, "dedup", "in.jsonl", "-o", "out", *COMMON, "--quiet")
    ran(folder, "audit", "in.jsonl", "--threshold", "0.6", "-o", "audit.json", "--quiet")
    assert "discount" in one_line(run(folder, "report", "out", "--audit", "audit.json"), FAILURE)


def test_restore_all_gives_the_input_back(folder: Path) -> None:
    ran(folder, "dedup", "in.jsonl", "-o", "out", *COMMON, "--quiet")
    ran(folder, "restore", "out", "--all", "-o", "back", "--quiet")
    assert (folder / "back/kept/in.jsonl").read_bytes() == (folder / "in.jsonl").read_bytes()


def test_rethreshold_keeps_both_similarities(folder: Path) -> None:
    ran(folder, "dedup", "in.jsonl", "-o", "out", *COMMON, "--quiet")
    ran(folder, "rethreshold", "out", "--threshold", "0.7", "-o", "same", "--quiet")
    ran(folder, "rethreshold", "out", "--threshold", "0.99", "-o", "stricter", "--quiet")
    assert removed(folder, "same") == removed(folder)
    assert removed(folder, "stricter") == []


def test_a_saved_table_gives_the_weights_of_another_run(folder: Path) -> None:
    ran(folder, "dedup", "in.jsonl", "-o", "out", *COMMON, "--save-frequencies", TABLE, "--quiet")
    (folder / "two.jsonl").write_bytes(json_lines([ROWS[4], ROWS[9]]))
    pair = ("pairs", "two.jsonl", "-o", "-", *COMMON, "--quiet", "--threshold", "0.1")
    with_table = json.loads(ran(folder, *pair, "--frequencies", TABLE).out)
    assert with_table["weighted_similarity"] == removed(folder)[0]["weighted_similarity"]
    assert json.loads(ran(folder, *pair).out) != with_table


@pytest.mark.parametrize("command", [("dedup", "in.jsonl", "-o", "out"), ("pairs", "in.jsonl", "-o", "out.csv")])
def test_an_existing_table_is_replaced_with_overwrite_only(folder: Path, command: tuple[str, ...]) -> None:
    (folder / TABLE).write_text("precious")
    before = digest(folder)
    arguments = (*command, *COMMON, "--save-frequencies", TABLE)
    assert one_line(run(folder, *arguments), USAGE) == (
        f"minwise: --save-frequencies must be a new or empty file, got {TABLE} with 8 bytes; "
        "give another file or --overwrite\n"
    )
    assert digest(folder) == before
    ran(folder, *arguments, "--overwrite")
    assert (folder / TABLE).read_bytes().startswith(b"MINWFRQ\n")


def test_thresholds_names_no_option_that_it_does_not_have(folder: Path) -> None:
    (folder / TABLE).write_text("precious")
    done = run(folder, "thresholds", "in.jsonl", "--discount", "common", "--save-frequencies", TABLE)
    assert one_line(done, USAGE).endswith("with 8 bytes; give another file\n")


@pytest.mark.parametrize("place", ["", "missing/common.frequencies"])
def test_a_table_that_cannot_be_written_is_refused_before_anything_is_read(folder: Path, place: str) -> None:
    place = place or str(folder)
    done = run(folder, "dedup", "in.jsonl", "-o", "out", *COMMON, "--save-frequencies", place)
    message = f"minwise: --save-frequencies must be a file in an existing directory, got {place}\n"
    assert one_line(done, USAGE) == message
    assert not (folder / "out").exists()


def damaged_table(folder: Path) -> str:
    ran(folder, "pairs", "in.jsonl", "-o", "-", *COMMON, "--save-frequencies", TABLE, "--quiet")
    content = bytearray((folder / TABLE).read_bytes())
    content[-9] ^= 1
    (folder / TABLE).write_bytes(content)
    return TABLE


def other_file(folder: Path) -> str:
    (folder / "other").write_bytes(b"this is no table of frequencies")
    return "other"


def of_other_shingles(folder: Path) -> str:
    ran(folder, "pairs", "in.jsonl", "-o", "-", *COMMON, "--shingle", "word:3", "--save-frequencies", TABLE, "--quiet")
    return TABLE


@pytest.mark.parametrize(
    ("make", "status", "words"),
    [
        (lambda _: "missing", INPUT_OUTPUT, "missing: No such file or directory"),
        (str, INPUT_OUTPUT, "Is a directory"),
        (damaged_table, FAILURE, "save it again with --save-frequencies"),
        (other_file, FAILURE, "other: not a table of frequencies; it must start with b'MINWFRQ"),
        (of_other_shingles, FAILURE, "--frequencies must be of documents with shingle 'word:5', got 'word:3'"),
    ],
    ids=["missing", "directory", "damaged", "other file", "other shingles"],
)
def test_a_bad_table_is_refused_in_one_line(folder: Path, make: Any, status: int, words: str) -> None:  # noqa: ANN401
    table = make(folder)
    for command in (("dedup", "in.jsonl", "-o", "out"), ("pairs", "in.jsonl", "-o", "out.csv")):
        assert words in one_line(run(folder, *command, *COMMON, "--frequencies", table), status)
    assert not (folder / "out").exists()
    assert not (folder / "out.csv").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--measure", "containment"), "--measure must be jaccard with discount common, got "),
        (("--verify", "signature"), "--verify must be exact with discount common, got "),
        (("--scheme", "minhash"), "--scheme must be fast with discount common, got "),
    ],
)
def test_settings_that_contradict_the_discount_are_refused(folder: Path, options: tuple[str, ...], words: str) -> None:
    assert words in one_line(run(folder, "pairs", "in.jsonl", "-o", "out.csv", *COMMON, *options), USAGE)


@pytest.mark.parametrize("option", ["--frequencies", "--save-frequencies"])
def test_a_table_needs_the_discount(folder: Path, option: str) -> None:
    message = one_line(run(folder, "pairs", "in.jsonl", "-o", "out.csv", option, "x"), USAGE)
    assert f"{option} must be left out without discount common" in message
