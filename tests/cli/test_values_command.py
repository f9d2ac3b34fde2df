"""`--within` and `--across`: outputs, the table per value, explanations, restored rows, settings files and refusals."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import OK, USAGE, Done, Job, one_line, run
from support.small_corpus import json_lines

import minwise as mw

FERRY = "the night ferry between the islands will stop running at the end of october"
ROWS: list[dict[str, Any]] = [
    {"id": "c1", "source": "crawl", "text": FERRY},
    {"id": "c2", "source": "crawl", "text": FERRY},
    {"id": "w1", "source": "wiki", "text": f"{FERRY} again"},
    {"id": "n1", "text": FERRY},
    {"id": "n2", "source": None, "text": FERRY},
    {"id": "e1", "source": "wiki", "text": ""},
    {"id": "f1", "source": "wiki", "text": 7},
]
SEARCH = ("--shingle", "word:2", "--threshold", "0.7", "--on-error", "quarantine")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the working directory, with copies of two sources, rows without one, an empty and a faulty row."""
    (tmp_path / "in.jsonl").write_bytes(json_lines(ROWS))
    return tmp_path


def ran(folder: Path, *arguments: str) -> Done:
    done = run(folder, *arguments)
    assert done.status == OK, done
    return done


def removed(folder: Path) -> dict[str, str]:
    table = pq.read_table(folder / "out/removed.parquet")
    return dict(zip(table.column("id").to_pylist(), table.column("kept_id").to_pylist(), strict=True))


def report(folder: Path) -> Any:  # noqa: ANN401 - JSON
    return json.loads((folder / "out/report.json").read_text(encoding="utf-8"))


def test_within_removes_rows_of_one_value(folder: Path) -> None:
    ran(folder, "dedup", "in.jsonl", "-o", "out", "--within", "source", *SEARCH, "--quiet")
    assert removed(folder) == {"c2": "c1", "n2": "n1"}
    assert report(folder)["settings"]["within"] == "source"
    assert report(folder)["values"] == {
        "column": "source",
        "setting": "within",
        "values": [
            {"value": "wiki", "read": 3, "kept": 2, "removed": 0, "quarantined": 1},
            {"value": "crawl", "read": 2, "kept": 1, "removed": 1, "quarantined": 0},
            {"value": None, "read": 2, "kept": 1, "removed": 1, "quarantined": 0},
        ],
    }
    page = (folder / "out/report.html").read_text(encoding="utf-8")
    assert '<a href="#values">values</a>' in page
    assert "Only documents with the same value of <code>source</code> were compared." in page
    values = pq.read_table(folder / "out/clusters.parquet").column("value").to_pylist()
    assert values == ["crawl", "crawl", "wiki", None, None, "wiki"]


def test_across_removes_rows_of_another_value_and_keeps_or_removes_copies_together(folder: Path) -> None:
    ran(folder, "dedup", "in.jsonl", "-o", "out", "--across", "source", *SEARCH, "--quiet")
    assert removed(folder) == {"w1": "c1", "n1": "c1", "n2": "c1"}
    assert report(folder)["counts"]["removed_identical"] == 1
    assert report(folder)["values"]["values"][0] == {
        "value": "wiki",
        "read": 3,
        "kept": 1,
        "removed": 1,
        "quarantined": 1,
    }


@pytest.mark.parametrize("rule", ["within", "across"])
def test_restored_rows_are_those_of_the_input(folder: Path, rule: str) -> None:
    ran(folder, "dedup", "in.jsonl", "-o", "out", f"--{rule}", "source", *SEARCH, "--quiet")
    ran(folder, "restore", "out", "--all", "-o", "again", "--quiet")
    assert (folder / "again/kept/in.jsonl").read_bytes() == (folder / "in.jsonl").read_bytes()


def test_explanations_name_the_value(folder: Path) -> None:
    ran(folder, "dedup", "in.jsonl", "-o", "out", "--within", "source", *SEARCH, "--quiet")
    assert "compared    only with documents of source=crawl\n" in ran(folder, "explain", "out", "c2").out
    assert "only with documents of no source\n" in ran(folder, "explain", "out", "n1").out
    assert json.loads(ran(folder, "explain", "out", "c2", "--json").out)["compared"].endswith("source=crawl")
    assert "compared" not in ran(folder, "explain", "out", "in.jsonl:6").out
    done = run(folder, "explain", "out", "w1", "--search")
    assert (
        one_line(done, USAGE)
        == "minwise: search must be left out for a run with within, got True: see its near misses\n"
    )


def test_a_run_in_memory_gives_the_tables_of_the_command(folder: Path) -> None:
    ran(folder, "dedup", "in.jsonl", "-o", "out", "--across", "source", *SEARCH, "--quiet")
    rows = [row for row in ROWS if row["id"] != "f1"]
    result = mw.dedup(rows, across="source", shingle="word:2", threshold=0.7)
    expected = pq.read_table(folder / "out/clusters.parquet").drop_columns(["source"])
    assert result.clusters.to_arrow().drop_columns(["source"]).to_pylist() == expected.to_pylist()
    assert "not with documents of source=wiki" in repr(result.explain("w1"))


def test_settings_of_a_file(folder: Path) -> None:
    (folder / "minwise.toml").write_text('within = "source"\nshingle = "word:2"\nthreshold = 0.7\non_error = "skip"\n')
    done = ran(folder, "pairs", "in.jsonl", "-o", "-", "--quiet")
    assert [json.loads(line)["left"] for line in done.out.splitlines()] == ["c1", "n1"]
    done = ran(folder, "clusters", "in.jsonl", "-o", "-", "--quiet")
    assert [json.loads(line)["cluster"] for line in done.out.splitlines()] == ["c1", "c1", "w1", "n1", "n1", "e1"]


def test_a_raised_threshold_keeps_the_rule(folder: Path) -> None:
    ran(folder, "dedup", "in.jsonl", "-o", "out", "--across", "source", *SEARCH, "--quiet")
    ran(folder, "rethreshold", "out", "--threshold", "0.99", "-o", "higher", "--quiet")
    table = pq.read_table(folder / "higher/removed.parquet")
    assert table.column("id").to_pylist() == ["n1", "n2"]


def test_labels_of_every_type_are_strings(folder: Path) -> None:
    """Numbers by their shortest form, so that files may have them as numbers or as strings."""
    numbers = {"text": [FERRY, FERRY], "year": [2020.0, 2021.5]}
    pq.write_table(pa.table(numbers), folder / "a.parquet")
    (folder / "b.csv").write_text(f"text,year\n{FERRY},2020\n{FERRY},2021.5\n")
    done = ran(folder, "pairs", "a.parquet", "b.csv", "--within", "year", "-o", "-", "--quiet")
    found = [(row["left"], row["right"]) for row in map(json.loads, done.out.splitlines())]
    assert found == [("a.parquet:0", "b.csv:0"), ("a.parquet:1", "b.csv:1")]


def test_a_report_lists_a_thousand_values(folder: Path) -> None:
    texts = [f"document number {number} has some words of its own" for number in range(1203)]
    rows = [{"text": text, "site": f"s{number}"} for number, text in enumerate(texts)]
    (folder / "in.jsonl").write_bytes(json_lines([*rows, {"text": texts[7], "site": "s7"}]))
    ran(folder, "dedup", "in.jsonl", "-o", "out", "--within", "site", "--quiet")
    values = report(folder)["values"]
    assert values["values"][:2] == [
        {"value": "s7", "read": 2, "kept": 1, "removed": 1, "quarantined": 0},
        {"value": "s0", "read": 1, "kept": 1, "removed": 0, "quarantined": 0},
    ]
    assert len(values["values"]) == 1000
    assert values["rest"] == {"values": 203, "read": 203, "kept": 203, "removed": 0, "quarantined": 0}
    assert "there are 1,153 more values" in (folder / "out/report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("rule", ["within", "across"])
def test_an_input_without_rows_has_no_values(folder: Path, rule: str) -> None:
    (folder / "none.csv").write_text("id,source,text\n")
    for against in ((), ("--against", "in.jsonl")):
        ran(
            folder, "dedup", "none.csv", "-o", "out", "--overwrite", f"--{rule}", "source", *SEARCH, *against, "--quiet"
        )
        assert report(folder)["values"]["values"] == []


@pytest.mark.parametrize("call", ["dedup", "pairs", "clusters"])
def test_a_column_without_values_is_refused(folder: Path, call: str) -> None:
    done = run(folder, call, "in.jsonl", "--within", "sorce", "-o", "out.csv", *SEARCH, "--quiet")
    assert "'sorce'" in one_line(done, USAGE)


def test_refused_combinations_are_one_line(folder: Path) -> None:
    for arguments, start in (
        (("--within", "source", "--across", "id"), "--across must be left out with within"),
        (("--across", "source", "--among", "in.jsonl"), "--across must be left out with among"),
        (("--within", "source", "--group-by", "id", "--item", "text"), "--group-by must be left out with within"),
    ):
        done = run(folder, "pairs", "in.jsonl", "-o", "out.csv", *arguments)
        assert one_line(done, USAGE).startswith(f"minwise: {start}")
    done = run(folder, "dedup", "-", "-o", "-", "--within", "source", job=Job(stdin=str(folder / "in.jsonl")))
    assert one_line(done, USAGE) == "minwise: --within must be None for a stream, got 'source'; give files\n"
    done = run(folder, "dedup", "in.jsonl", "-o", "x", "--passages", "--within", "source")
    assert "within" in one_line(done, USAGE)


def test_sets_and_texts_in_memory_have_no_column() -> None:
    for source in ([["a", "b"], ["a", "b"]], mw.ShingleSets.from_sets([[1, 2], [1, 2]])):
        with pytest.raises(mw.MinwiseError) as caught:
            mw.pairs(source, shingle="set", within="source")
        assert "source" in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(mw.MinwiseError) as caught:
        mw.dedup([FERRY, FERRY], across="source")
    assert "'source'" in str(caught.value)


def test_tables_are_linked_within_a_value(folder: Path) -> None:
    (folder / "second.jsonl").write_bytes(json_lines([{"id": "s1", "source": "wiki", "text": FERRY}]))
    for exact in ((), ("--exact",)):
        options = ("--within", "source", *SEARCH, *exact)
        done = ran(folder, "pairs", "in.jsonl", "--among", "second.jsonl", "-o", "-", "--quiet", *options)
        assert [json.loads(line)["left"] for line in done.out.splitlines()] == ["w1"]
