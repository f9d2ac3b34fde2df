"""`minwise pairs`, `clusters` and `dedup` of sets and records: the same result in every format, one-line errors."""

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from support.commands import FAILURE, OK, USAGE, one_line, run

ROWS = [("ann", "a", 2), ("ann", "b", 1), ("bob", "a", 1), ("bob", "b", 1), ("cy", "x", 3), ("bob", "c", 1)]
GROUPED = ("--group-by", "user", "--item", "movie", "--threshold", "0.5")
# ann {a, b} and bob {a, b, c}; weighted, {a: 2, b: 1} and {a: 1, b: 1, c: 1}.
PAIR, WEIGHTED = 2 / 3, 2 / 4
PEOPLE: list[dict[str, Any]] = [
    {"id": "1", "name": "Marta Lind", "phone": "55-20-18", "who": "m"},
    {"id": "2", "name": "Martha Lind", "phone": "552018", "who": "m"},
    {"id": "3", "name": "Pavel Orel", "phone": "990", "who": "p"},
    {"id": "4", "name": "Ines Varga", "phone": "", "who": None},
]
FIELDS = ("--fields", "name:char:2 phone:digits", "--weights", "phone=2", "--threshold", "0.5")


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write a table in the format of the file name."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix in (".csv", ".tsv"):
        lines = [list(rows[0]), *(["" if value is None else str(value) for value in row.values()] for row in rows)]
        path.write_text("".join(("," if path.suffix == ".csv" else "\t").join(line) + "\n" for line in lines))
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        feather.write_feather(pa.Table.from_pylist(rows), path)


def found(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """Return the pairs that a command prints."""
    done = run(folder, "pairs", *arguments, "-o", "-", "--quiet")
    assert (done.status, done.err) == (OK, "")
    return [json.loads(line) for line in done.out.splitlines()]


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.tsv", "x.parquet", "x.arrow"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_groups_of_a_long_table_in_every_format_and_row_order(tmp_path: Path, name: str, shuffled: bool) -> None:
    """As sets, and as bags by weight."""
    rows = [{"user": user, "movie": movie, "times": times} for user, movie, times in ROWS]
    random.Random(3).shuffle(rows) if shuffled else None
    write_rows(tmp_path / name, rows)
    assert found(tmp_path, name, *GROUPED) == [{"left": "ann", "right": "bob", "similarity": PAIR}]
    weighted = found(tmp_path, name, *GROUPED, "--weight", "times")
    assert weighted == [{"left": "ann", "right": "bob", "similarity": WEIGHTED}]
    transposed = found(tmp_path, name, *GROUPED, "--transpose")
    assert [(row["left"], row["right"]) for row in transposed] == [("a", "b"), ("a", "c"), ("b", "c")]


@pytest.mark.parametrize("name", ["x.dat", "x.txt", "x"])
def test_each_line_of_a_file_that_is_not_a_table_is_a_basket(tmp_path: Path, name: str) -> None:
    """Ids are file name and line."""
    (tmp_path / name).write_text("a b\n\nc a b\nb a a\n")
    rows = found(tmp_path, name, "--shingle", "set", "--threshold", "0.5")
    assert [(row["left"], row["right"], row["similarity"]) for row in rows] == [
        (f"{name}:0", f"{name}:2", 2 / 3),
        (f"{name}:0", f"{name}:3", 1.0),
        (f"{name}:2", f"{name}:3", 2 / 3),
    ]
    bags = found(tmp_path, name, "--shingle", "set", "--bag", "--threshold", "0.5")
    assert [row["similarity"] for row in bags] == [2 / 3, 2 / 3, 2 / 4]


@pytest.mark.parametrize("name", ["x.jsonl", "x.parquet", "x.arrow"])
def test_a_list_column_is_a_set_per_row(tmp_path: Path, name: str) -> None:
    write_rows(tmp_path / name, [{"id": "p", "items": ["a", "b"]}, {"id": "q", "items": ["b", "a"]}])
    rows = found(tmp_path, name, "--shingle", "set", "--text-column", "items")
    assert rows == [{"left": "p", "right": "q", "similarity": 1.0}]


def test_a_string_is_split_at_the_separator(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id,items\n1,whole milk;curd\n2,curd; whole milk\n3,whole curd milk\n")
    rows = found(tmp_path, "x.csv", "--shingle", "set", "--text-column", "items", "--separator", ";")
    assert rows == [{"left": "1", "right": "2", "similarity": 1.0}]


def test_named_baskets_with_equal_names_stay_two_baskets(tmp_path: Path) -> None:
    """Also with --transpose."""
    (tmp_path / "x.txt").write_text("i1\ta b\ni1\ta b\ni2\tc\n")
    arguments = ("x.txt", "--shingle", "set", "--format", "named-baskets")
    assert found(tmp_path, *arguments) == [{"left": "i1", "right": "i1", "similarity": 1.0}]
    assert found(tmp_path, *arguments, "--transpose") == [{"left": "a", "right": "b", "similarity": 1.0}]


def test_clusters_of_groups_have_a_row_per_group(tmp_path: Path) -> None:
    write_rows(tmp_path / "x.csv", [{"user": user, "movie": movie} for user, movie, _ in ROWS])
    done = run(tmp_path, "clusters", "x.csv", *GROUPED, "-o", "c.csv")
    assert done.status == OK
    assert "1 cluster among 3 documents" in done.out
    assert "grouped from 6 rows" in done.out
    assert (tmp_path / "c.csv").read_text().splitlines()[1:] == ['"ann","ann",2', '"bob","ann",2', '"cy","cy",1']


def test_removed_baskets_can_be_restored(tmp_path: Path) -> None:
    (tmp_path / "x.dat").write_text("a  b\nb a\nc\n")
    assert run(tmp_path, "dedup", "x.dat", "--shingle", "set", "-o", "out").status == OK
    assert (tmp_path / "out/kept/x.dat").read_text() == "a  b\nc\n"
    assert run(tmp_path, "restore", "out", "--all", "-o", "back").status == OK
    assert (tmp_path / "back/kept/x.dat").read_text() == "a  b\nb a\nc\n"
    assert run(tmp_path, "report", "out").status == OK


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.parquet"])
def test_records_have_one_similarity_of_all_fields(tmp_path: Path, name: str) -> None:
    """With a truth column the report has the quality of the pairs."""
    write_rows(tmp_path / name, PEOPLE)
    done = run(tmp_path, "pairs", name, *FIELDS, "--truth", "who", "-o", "p.csv", "--json")
    report = json.loads(done.out)
    assert report["blocking"] == {
        "truth": "who",
        "records": 4,
        "all_pairs": 6,
        "true_pairs": 1,
        "true_pairs_found": 1,
        "pairs_completeness": 1.0,
        "reduction_ratio": 1 - 1 / 6,
        "pairs_quality": 1.0,
    }
    # The names have nine and ten letter pairs, eight of them shared; the four digit shingles count twice.
    assert found(tmp_path, name, *FIELDS) == [{"left": "1", "right": "2", "similarity": (8 + 2 * 4) / (11 + 2 * 4)}]
    done = run(tmp_path, "pairs", name, *FIELDS, "--truth", "who", "-o", "p.csv", "--overwrite")
    assert "pairs completeness 1.0000: 1 of 1 true pairs" in done.out
    assert run(tmp_path, "dedup", name, *FIELDS, "-o", "out").status == OK
    assert run(tmp_path, "audit", name, *FIELDS).status == OK


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("long.csv", "--group-by", "user"), "item must be a column"),
        (("long.csv", "--group-by", "missing", "--item", "movie"), "has no column 'missing'"),
        (("long.csv", *GROUPED, "--weight", "nothing"), "has no column 'nothing'"),
        (("long.csv", *GROUPED, "--weight", "tiny", "--on-error", "fail"), "tiny must be a whole number from 0 to"),
        (("long.csv", *GROUPED, "--weight", "none"), "weight must be above 0 in at least one row, got 0 in all 2 rows"),
        (("long.csv", *GROUPED, "--weight", "minus", "--on-error", "fail"), "minus must be a whole number from 0 to"),
        (("long.csv", "--fields", "user:chars"), "fields must be NAME:char:N"),
        (
            ("long.csv", "--fields", "user:whole", "--weights", "user=half"),
            "weights of user must be numbers from 0.001",
        ),
        (("long.csv", "--fields", "user:whole", "--truth", "missing"), "truth cannot be read"),
        (("lists.parquet", "--shingle", "set"), "items of text must be whole numbers or strings, got a column of list"),
        (
            ("texts.jsonl", "--shingle", "set"),
            "text must be a list of items with shingle set, got a string; set separator",
        ),
        (("plain.txt", *GROUPED), "has no column 'user': a text file is one text and nothing else"),
    ],
)
def test_errors_are_one_line_and_write_no_output(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "long.csv").write_text("user,movie,tiny,minus,none\nann,a,0.0005,-1,0\nbob,a,0.0005,-1,0\n")
    (tmp_path / "plain.txt").write_text("a b")
    (tmp_path / "texts.jsonl").write_text('{"text": "a b"}')
    pq.write_table(pa.table({"text": [[0.5], [0.25]]}), tmp_path / "lists.parquet")
    done = run(tmp_path, "pairs", *arguments, "-o", "p.csv")
    assert done.status in (FAILURE, USAGE)
    assert message in one_line(done, done.status)
    assert not (tmp_path / "p.csv").exists()


def test_faulty_rows_are_left_out_and_reported(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("user,movie,times\nann,a,1\nann,b,-2\nann,b,nan\n,b,1\nbob,a,1\nbob,\n")
    done = run(tmp_path, "pairs", "x.csv", *GROUPED, "--weight", "times", "-o", "p.csv")
    assert done.status == OK
    assert "1 pair among 2 documents" in done.out
    assert "4 rows could not be read and are left out" in done.out
    assert (
        "x.csv: row 1: times must be a whole number from 0 to 16777216, or a number from 0.001 to 1000, got -2"
        in done.out
    )
    assert "x.csv: row 4: has 2 fields where the header has 3" not in done.out
    assert "x.csv: row 5: has 2 fields where the header has 3" in done.out
