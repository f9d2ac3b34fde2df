"""minwise dedup --copies, --drop-all, --mark, --add-weight, --votes and --target: files, reports, errors, restoring."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from support.commands import FAILURE, OK, USAGE, digest, run
from support.restored_runs import contents, restore

import minwise as mw
from minwise.errors import ConfigError
from minwise.inputs import Files

FERRY = "the ferry to the island leaves at nine and returns at noon"
OLD = "an old text that only the reference corpus and one row have"
# Two clusters of the input, one with a reference document, an empty row and rows of which no other is similar.
ROWS = [
    ("ferry", FERRY, "news"),
    ("ferry-2", f"{FERRY}!", "blog"),
    ("empty", "", "blog"),
    ("alone", "nothing else says what this row says", "blog"),
    ("old", OLD, "wiki"),
    ("ferry-3", FERRY.upper(), "news"),
    ("ferry-4", f"{FERRY} today", None),
]
SETTINGS = ("--threshold", "0.6", "--shingle", "word:2", "--on-error", "quarantine")
MARKS = ("cluster", "cluster_size", "cluster_rank", "similarity", "kept")
MARKED = {
    "ferry": ("ferry", 4, 1, None, True),
    "ferry-2": ("ferry", 4, 2, 1.0, False),
    "empty": ("empty", 1, 1, None, True),
    "alone": ("alone", 1, 1, None, True),
    "old": ("reference", 2, 2, 1.0, False),
    "ferry-3": ("ferry", 4, 3, 1.0, False),
    "ferry-4": ("ferry", 4, 4, 11 / 12, False),
}


def table() -> pa.Table:
    return pa.Table.from_pylist([{"id": one, "text": text, "site": site} for one, text, site in ROWS])


def write_csv(path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\r\n")
        out.writerow(["id", "text", "site"])
        out.writerows(ROWS)


def write_json_lines(path: Path) -> None:
    lines = [json.dumps({"id": one, "text": text, "site": site}) for one, text, site in ROWS]
    lines.insert(3, '{"id": "bad", "text": 7}')
    path.write_text("\n".join(lines), encoding="utf-8")


WRITERS: dict[str, Callable[[Path], Any]] = {
    "in.parquet": lambda path: pq.write_table(table(), path, row_group_size=3),
    "in.arrow": lambda path: feather.write_feather(table(), str(path), chunksize=3),
    "in.csv": write_csv,
    "in.jsonl": write_json_lines,
    "in.json": lambda path: path.write_text(json.dumps(table().to_pylist(), indent=1)),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "reference.jsonl").write_text(json.dumps({"id": "reference", "text": OLD, "site": "wiki"}))
    return tmp_path


def dedup(folder: Path, name: str, *arguments: str, out: str = "out") -> dict[str, Any]:
    """Run `minwise dedup` against the reference corpus; return the report."""
    given = (name, "--against", "reference.jsonl", *SETTINGS, "-o", out, *arguments)
    done = run(folder, "dedup", *given, "--quiet")
    assert (done.status, done.out, done.err) == (OK, "", "")
    report: dict[str, Any] = json.loads((folder / out / "report.json").read_text(encoding="utf-8"))
    return report


def kept(folder: Path, name: str, out: str = "out") -> dict[str, dict[str, Any]]:
    path = folder / out / "kept" / name
    if name.endswith(".csv"):
        rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    elif name.endswith(".jsonl"):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    elif name.endswith(".json"):
        rows = json.loads(path.read_text(encoding="utf-8"))
    else:
        rows = (feather.read_table(str(path)) if name.endswith(".arrow") else pq.read_table(path)).to_pylist()
    return {row["id"]: row for row in rows}


def filled(value: Any) -> Any:  # noqa: ANN401 - a value of a row
    """Return a value; None for an empty field of CSV."""
    return value or None if isinstance(value, str) else value


def value_of(value: Any) -> Any:  # noqa: ANN401 - as above
    """Return a number or a flag, which is a string in CSV."""
    return json.loads(value) if isinstance(value, str) and value else filled(value)


def removed(folder: Path, out: str = "out") -> dict[str, tuple[str, float]]:
    rows = pq.read_table(folder / out / "removed.parquet").to_pylist()
    return {row["id"]: (row["kept_id"], row["similarity"]) for row in rows}


@pytest.mark.parametrize("name", WRITERS)
def test_marked_rows_keep_their_order_and_columns_and_are_restored(folder: Path, name: str) -> None:
    WRITERS[name](folder / name)
    report = dedup(folder, name, "--mark", "--votes", "site", "--add-weight", "w=min(size, 3) / rank")
    rows = kept(folder, name)
    assert list(rows) == [one for one, _, _ in ROWS]
    votes = {"ferry": 2, "empty": 1, "alone": 1, "reference": 1}
    names = ("text", "site", *MARKS, "votes", "w")
    for (one, text, site), row in zip(ROWS, rows.values(), strict=True):
        cluster, size, rank, similarity, is_kept = MARKED[one]
        weight = min(size, 3) / rank
        assert list(row) == ["id", *names]
        assert [filled(row[name]) for name in names[:2]] == [text or None, site]
        assert [value_of(row[name]) for name in names[3:]] == [size, rank, similarity, is_kept, votes[cluster], weight]
        assert row["cluster"] == cluster
    assert report["counts"]["kept"] == 3
    assert report["counts"]["removed"] == 4
    plain = dedup(folder, name, out="plain")
    assert report["counts"] == plain["counts"]
    for tables in ("removed.parquet", "quarantine.jsonl"):
        assert [path.read_bytes() for path in sorted(folder.glob(f"out/{tables}"))] == [
            path.read_bytes() for path in sorted(folder.glob(f"plain/{tables}"))
        ]
    clusters = pq.read_table(folder / "out" / "clusters.parquet")
    assert clusters.drop_columns(["votes"]).equals(pq.read_table(folder / "plain" / "clusters.parquet"))
    assert clusters["votes"].to_pylist() == [votes[cluster] for cluster in clusters["cluster"].to_pylist()]
    restore(folder, "--all")
    assert contents(folder / "back" / "kept") == {name: (folder / name).read_bytes()}
    assert "data-id=" not in (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert "data-id=" in (folder / "plain" / "report.html").read_text(encoding="utf-8")


def test_ids_of_a_marked_run_are_refused(folder: Path) -> None:
    write_json_lines(folder / "in.jsonl")
    dedup(folder, "in.jsonl", "--mark")
    (folder / "ids.txt").write_text("ferry-2\n")
    done = run(folder, "restore", "out", "--ids", "ids.txt", "-o", "back", "--quiet")
    assert (done.status, done.err.count("\n")) == (USAGE, 1)
    assert "out: ids must be left out: the run marked its rows and removed none" in done.err


def test_so_many_copies_of_each_cluster_are_kept(folder: Path) -> None:
    """The reference document is the first of its cluster."""
    write_csv(folder / "in.csv")
    report = dedup(folder, "in.csv", "--copies", "2")
    assert list(kept(folder, "in.csv")) == ["ferry", "ferry-2", "empty", "alone", "old"]
    assert removed(folder) == {"ferry-3": ("ferry", 1.0), "ferry-4": ("ferry", pytest.approx(11 / 12))}
    assert report["settings"]["copies"] == 2
    assert report["counts"] | {"kept": 5, "removed": 2, "removed_identical": 1} == report["counts"]
    assert report["clusters"]["of_two_or_more"] == 2
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert "Up to 2 documents of each cluster were kept" in page
    [cluster] = report["largest_clusters"]
    assert (cluster["size"], cluster["removed"], len(cluster["members"])) == (4, 2, 2)
    assert "in removed.parquet." not in page
    restore(folder, "--all")
    assert contents(folder / "back" / "kept") == {"in.csv": (folder / "in.csv").read_bytes()}
    restore(folder, ids=["ferry-4"])
    assert b"ferry-4" in (folder / "back" / "kept" / "in.csv").read_bytes()
    assert run(folder, "report", "out", "--quiet").status == OK


def test_no_document_of_a_cluster_is_kept(folder: Path) -> None:
    write_json_lines(folder / "in.jsonl")
    report = dedup(folder, "in.jsonl", "--drop-all")
    assert list(kept(folder, "in.jsonl")) == ["empty", "alone"]
    witness = {one: other for one, (other, _) in removed(folder).items()}
    expected = {"ferry": "ferry-2", "ferry-2": "ferry", "old": "reference", "ferry-3": "ferry", "ferry-4": "ferry"}
    assert witness == expected
    counts = report["counts"]
    assert counts["read"] == counts["kept"] + counts["removed"] + counts["quarantined"] == 8
    restore(folder, "--all")
    assert contents(folder / "back" / "kept") == {"in.jsonl": (folder / "in.jsonl").read_bytes()}
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert '<span class="quiet">removed, too</span>' in page


def test_explanations_know_the_ending(folder: Path) -> None:
    write_csv(folder / "in.csv")
    dedup(folder, "in.csv", "--copies", "2", "--votes", "site", out="copies")
    dedup(folder, "in.csv", "--drop-all", out="none")
    dedup(folder, "in.csv", "--mark", out="marked")
    shown = {}
    for out, one in (("copies", "ferry-2"), ("copies", "ferry-4"), ("none", "ferry"), ("marked", "ferry-2")):
        done = run(folder, "explain", out, one)
        assert done.status == OK
        shown[out, one] = " ".join(done.out.split())
    assert "kept: one of the first 2 documents of the cluster of ferry" in shown["copies", "ferry-2"]
    assert "4 documents, that of ferry" in shown["copies", "ferry-2"]
    assert "2 distinct values of site in the cluster" in shown["copies", "ferry-2"]
    assert "removed: a near-duplicate of ferry, which is kept" in shown["copies", "ferry-4"]
    assert "removed: a near-duplicate of ferry-2; no document of their cluster is kept" in shown["none", "ferry"]
    assert "3 documents removed for ferry" in shown["none", "ferry"]
    assert "the run marked its rows: all of them are in the directory kept" in shown["marked", "ferry-2"]
    result = mw.dedup(Files([str(folder / "in.csv")]), threshold=0.6, shingle="word:2", copies=2)
    assert "one of the first 2 documents" in repr(result.explain("ferry-2"))


@pytest.mark.parametrize("ending", [("--copies", "2"), ("--drop-all",), ("--mark", "--add-weight", "w=size")])
def test_a_higher_threshold_has_the_same_ending(folder: Path, ending: tuple[str, ...]) -> None:
    write_csv(folder / "in.csv")
    dedup(folder, "in.csv", *ending)
    assert run(folder, "rethreshold", "out", "--threshold", "0.95", "-o", "higher", "--quiet").status == OK
    dedup(folder, "in.csv", *ending, "--threshold", "0.95", out="again")
    assert contents(folder / "higher" / "kept") == contents(folder / "again" / "kept")
    assert removed(folder, "higher") == removed(folder, "again")


def test_the_chosen_threshold_is_in_the_report_and_other_steps_count_alike(folder: Path) -> None:
    write_csv(folder / "in.csv")
    report = dedup(folder, "in.csv", "--copies", "3", "--target", "6")
    assert report["target"] == {"wanted": 6.0, "documents": 6, "threshold": 0.6, "kept": 6}
    report = dedup(folder, "in.csv", "--target", "0.5", out="half")
    assert report["target"]["threshold"] == report["settings"]["threshold"] == 0.92
    assert report["target"] | {"documents": 4, "kept": 4} == report["target"]
    page = (folder / "half" / "report.html").read_text(encoding="utf-8")
    assert "4 documents were wanted: the threshold 0.92 was chosen, which leaves 4." in page
    report = dedup(folder, "in.csv", "--target", "1", out="few")
    assert "target: 1 document wanted, and the lowest threshold 0.6 leaves 3; set a lower threshold" in " ".join(
        report["warnings"]
    )
    steps = run(folder, "thresholds", "in.csv", "--copies", "3", "--from", "0.6", "--shingle", "word:2", "--json")
    assert json.loads(steps.out)["steps"][0]["kept"] == 6


def test_weights_are_in_the_report_and_the_summary(folder: Path) -> None:
    write_json_lines(folder / "in.jsonl")
    given = ("in.jsonl", *SETTINGS, "-o", "out", "--add-weight", "weight=min(size, 3)")
    done = run(folder, "dedup", *given)
    assert done.status == OK
    sentence = "Column weight = min(size, 3): 4 kept rows together weigh 6, on average 1.5."
    assert sentence in " ".join(done.out.split())
    assert sentence in (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert {one: row["weight"] for one, row in kept(folder, "in.jsonl").items()} == {
        "ferry": 3.0,
        "empty": 1.0,
        "alone": 1.0,
        "old": 1.0,
    }
    report = json.loads((folder / "out" / "report.json").read_text())
    assert report["weights"] == {"name": "weight", "expression": "min(size, 3)", "total": 6.0, "rows": 4}


def test_marks_go_to_standard_output(folder: Path) -> None:
    write_json_lines(folder / "in.jsonl")
    done = run(folder, "dedup", "in.jsonl", *SETTINGS, "--mark", "-o", "-", "--quiet")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [row["kept"] for row in rows] == [True, False, True, True, True, False, False]


def test_settings_files_have_the_same_names(folder: Path) -> None:
    write_json_lines(folder / "in.jsonl")
    (folder / "minwise.toml").write_text(
        '[dedup]\nmark = true\nadd_weight = "w=1/size"\ncopies = 2\nmark_names = {cluster = "dup_id", kept = "keep"}\n'
    )
    dedup(folder, "in.jsonl")
    row = kept(folder, "in.jsonl")["ferry-2"]
    assert (row["dup_id"], row["keep"], row["w"]) == ("ferry", True, 0.25)


def test_several_endings_use_one_work_directory(folder: Path) -> None:
    """No run takes the output of another ending for its own."""
    write_json_lines(folder / "in.jsonl")
    dedup(folder, "in.jsonl", "--work", "state")
    for ending in (("--copies", "2"), ("--mark",), ("--drop-all",), ()):
        fresh = dedup(folder, "in.jsonl", *ending, "--overwrite", out="fresh")
        assert dedup(folder, "in.jsonl", *ending, "--work", "state", "--overwrite") == fresh
        assert contents(folder / "out" / "kept") == contents(folder / "fresh" / "kept")
        assert json.loads((folder / "out" / "run.json").read_text())["resumed"]
        done = run(
            folder,
            "dedup",
            "in.jsonl",
            "--against",
            "reference.jsonl",
            *SETTINGS,
            *ending,
            "-o",
            "out",
            "--work",
            "state",
        )
        assert "out was already published from this work directory; nothing to do" in " ".join(done.out.split())
    done = run(
        folder,
        "dedup",
        "in.jsonl",
        "--against",
        "reference.jsonl",
        *SETTINGS,
        "--target",
        "3",
        "-o",
        "other",
        "--work",
        "state",
        "--quiet",
    )
    assert (done.status, done.err.count("\n")) == (FAILURE, 1)
    assert "--work" in done.err


REFUSALS = [
    ({"copies": 0}, "copies must be"),
    ({"copies": 2, "drop_all": True}, "copies must be left out with drop_all"),
    ({"mark_names": "cluster=c"}, "mark_names must be left out without mark"),
    ({"mark": True, "mark_names": "clusters=c"}, "mark_names must be such as"),
    ({"mark": True, "mark_names": "cluster=c kept=c"}, "added columns must have different names, got 'c' twice"),
    ({"mark": True, "mark_names": {"cluster": ""}}, "mark_names must be such as"),
    ({"mark": True, "mark_names": "cluster=site"}, "has a column 'site' already"),
    ({"add_weight": "text=1"}, "has a column 'text' already"),
    ({"add_weight": "w"}, "add_weight must be NAME=EXPRESSION"),
    ({"add_weight": "w=size**2"}, "add_weight must be NAME=EXPRESSION"),
    ({"add_weight": "w=votes"}, "votes must name a column if add_weight uses votes"),
    (
        {"add_weight": "w=4 - size"},
        "add_weight must be finite and at least 0, got 4 - size, negative at size 7, rank 1",
    ),
    ({"add_weight": "w=1/(size - 1)"}, "not a number at size 1, rank 1"),
    ({"votes": ""}, "votes must be a column"),
    ({"target": 0}, "target must be a number of documents"),
    ({"target": 10, "verify": "none"}, "verify must be exact or signature with target"),
]


@pytest.mark.parametrize(("options", "message"), REFUSALS, ids=[str(options) for options, _ in REFUSALS])
def test_wrong_settings_are_refused_in_one_line(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    rows = [{"text": f"{FERRY}{'!' * number}", "site": "a"} for number in range(7)]
    with pytest.raises(ConfigError, match=r"^[^\n]+$") as caught:
        mw.dedup(rows, tmp_path / "out", **options)
    assert message in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_column_of_votes_must_exist(folder: Path) -> None:
    write_csv(folder / "in.csv")
    done = run(folder, "dedup", "in.csv", "--votes", "nowhere", "-o", "out", "--quiet")
    assert (done.status, done.err.count("\n")) == (FAILURE, 1)
    assert "has no column 'nowhere'" in done.err


def test_a_column_without_values_is_refused_before_the_search(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "one two"}\n{"text": "one two"}\n')
    done = run(tmp_path, "dedup", "in.jsonl", "--votes", "nowhere", "-o", "out")
    assert done.status == USAGE
    assert "column 'nowhere' is in no file, or has no values" in done.err
    assert "band" not in done.err


def test_formats_without_columns_are_refused(folder: Path) -> None:
    (folder / "texts").mkdir()
    (folder / "texts" / "a.txt").write_text(FERRY)
    done = run(folder, "dedup", "texts", "--mark", "-o", "out", "--quiet")
    assert (done.status, done.err.count("\n")) == (USAGE, 1)
    assert "cannot get a column 'cluster': its rows are texts or sets without columns" in done.err
    done = run(folder, "dedup", "texts", "--passages", "--mark", "-o", "out", "--quiet")
    assert (done.status, done.err.count("\n")) == (USAGE, 1)


def test_empty_inputs_have_every_ending(folder: Path) -> None:
    (folder / "in.csv").write_text("id,text,site\n")
    report = dedup(folder, "in.csv", "--mark", "--add-weight", "w=size", "--target", "0.5", "--votes", "site")
    assert report["counts"]["read"] == report["weights"]["rows"] == 0
    assert (folder / "out" / "kept" / "in.csv").read_text().strip() == f"id,text,site,{','.join(MARKS)},votes,w"


def test_an_output_of_one_kept_document_has_its_old_bytes(folder: Path) -> None:
    """Settings with their defaults change no file."""
    write_csv(folder / "in.csv")
    dedup(folder, "in.csv")
    dedup(folder, "in.csv", "--copies", "1", out="again")
    assert digest(folder / "out") == digest(folder / "again")
    assert "ending" not in (folder / "out" / "report.json").read_text()
    assert run(folder, "dedup", "in.csv", "--copies", "x", "-o", "never").status == USAGE
