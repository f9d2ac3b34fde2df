"""`minwise pairs --among` and `minwise clusters --among`: tables, truth, similarities of fields, and refusals."""

import csv
from pathlib import Path

import pytest
from support.commands import OK, USAGE, one_line, run


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """Return the working directory, with two tables of people."""
    (tmp_path / "a.csv").write_text("id,name,town,who\n1,Marta Lind,Kiel,m\n2,Pavel Orel,,p\n")
    (tmp_path / "b.csv").write_text(
        "id,name,town,who\n1,Pavel Orell,Bonn,p\n2,Martha Lind,Kiel,m\n3,Marta Lind,Bonn,x\n"
    )
    return tmp_path


FIELDS = ("--fields", "name:char:2 town:whole", "--threshold", "0.5")


def test_pairs_of_two_tables_are_linked(tables: Path) -> None:
    """With the similarity of each field, and recall and precision of the pairs of both tables."""
    done = run(
        tables, "pairs", "a.csv", "--among", "b.csv", *FIELDS, "--field-similarities", "--truth", "who", "-o", "p.csv"
    )
    assert (done.status, done.err) == (OK, "")
    assert "3 pairs among 5 documents (2 and 3)" in done.out
    assert "pairs completeness 1.0000: 2 of 2 true pairs" in done.out
    assert "reduction ratio 0.5000: of 6 possible pairs" in done.out
    rows = list(csv.DictReader((tables / "p.csv").read_text().splitlines()))
    assert [(row["left"], row["right"]) for row in rows] == [("1", "2"), ("1", "3"), ("2", "1")]
    assert [row["town_similarity"] for row in rows] == ["1", "0", ""]


def test_clusters_of_two_tables_name_the_table_of_each_id(tables: Path) -> None:
    done = run(tables, "clusters", "a.csv", "--among", "b.csv", *FIELDS, "-o", "c.csv", "--group", "star")
    assert (done.status, done.err) == (OK, "")
    assert (tables / "c.csv").read_text().splitlines() == [
        '"table","id","cluster_table","cluster","size"',
        '"left","1","right","3",2',
        '"left","2","right","1",2',
        '"right","1","right","1",2',
        '"right","2","right","2",1',
        '"right","3","right","3",2',
    ]


def test_several_files_of_the_second_table_and_sources_are_listed(tables: Path) -> None:
    (tables / "c.csv").write_text("id,name,town\n9,Marta Lind,Kiel\n")
    found = ("pairs", "a.csv", "--among", "c.csv", "--among", "b.csv", *FIELDS, "--sources", "-o", "p.csv")
    assert run(tables, *found).status == OK
    rows = list(csv.DictReader((tables / "p.csv").read_text().splitlines()))
    assert [(row["left_source"], row["right_source"], row["right"]) for row in rows] == [
        ("a.csv", "b.csv", "2"),
        ("a.csv", "b.csv", "3"),
        ("a.csv", "c.csv", "9"),
        ("a.csv", "b.csv", "1"),
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--among", "a.csv"], "--among must be other files, got a.csv in both tables"),
        (["--among", "empty.csv"], "two tables can be linked only if both have rows, got none in among"),
        (["--among", "absent.csv"], "absent.csv"),
        (["--among", "b.csv", "--engine", "spark"], "--among must be left out with engine spark"),
        (["--among", "b.csv", "--against", "b.csv"], "--against"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_second_tables_are_refused_in_one_line(tables: Path, arguments: list[str], words: str) -> None:
    (tables / "empty.csv").write_text("id,name,town\n")
    done = run(tables, "pairs", "a.csv", *arguments, *FIELDS, "-o", "p.csv")
    assert done.status != OK
    assert words in done.err
    assert not (tables / "p.csv").exists()


def test_field_similarities_need_fields(tables: Path) -> None:
    done = run(tables, "pairs", "a.csv", "--text-column", "name", "--field-similarities", "-o", "p.csv")
    assert "--field-similarities must be left out without fields" in one_line(done, USAGE)


def test_previews_of_two_tables_are_shown(tables: Path) -> None:
    for command in (["pairs", "--field-similarities"], ["clusters"]):
        done = run(tables, *command, "a.csv", "--among", "b.csv", *FIELDS)
        assert (done.status, done.err) == (OK, "")
        assert "among 5 documents (2 and 3)" in done.out
