"""minwise dedup with several keep keys, --prefer and --protect: every format, settings files, explain and restore."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import OK, one_line, run

from minwise.api import dedup_stream
from minwise.errors import ConfigError

FERRY = "the ferry leaves the old harbour at six in the morning and returns at noon with the mail"
ROWS: list[dict[str, Any]] = [
    {"id": "a", "text": FERRY, "site": "crawl", "year": 2020},
    {"id": "b", "text": FERRY, "site": "books", "year": 2021},
    {"id": "c", "text": f"{FERRY} again", "site": "wiki", "year": 2021},
    {"id": "d", "text": FERRY, "site": "wiki", "year": 2019},
]
SEARCH = ("--threshold", "0.6", "--shingle", "word:3", "--quiet")


def write(folder: Path, name: str) -> None:
    """Write the rows to a file of the format of its name; a bad row and an empty one are in JSON lines."""
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(ROWS), folder / name)
    elif name.endswith(".csv"):
        lines = [",".join(map(str, row.values())) for row in ROWS]
        (folder / name).write_text("\n".join(["id,text,site,year", *lines, ""]), encoding="utf-8")
    else:
        more = [{"id": "bad", "text": None, "site": "wiki"}, {"id": "empty", "text": "", "site": "wiki", "year": 1}]
        text = "".join(json.dumps(row) + "\n" for row in [*ROWS, *more])
        (folder / name).write_text(text, encoding="utf-8")


def kept_ids(folder: Path, *arguments: str) -> list[str]:
    """Return the ids of the documents that a run did not remove."""
    done = run(folder, "dedup", *arguments, "-o", "out", "--overwrite", *SEARCH, "--on-error", "quarantine")
    assert done.status == OK, done
    removed = set(pq.read_table(folder / "out/removed.parquet").column("id").to_pylist())
    return [row["id"] for row in ROWS if row["id"] not in removed]


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet", "a.csv"])
@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (("--keep", "max:year,longest"), ["c"]),
        (("--keep", "max:year,shortest,last"), ["b"]),
        (("--keep", "shortest,last"), ["d"]),
        (("--prefer", "site=wiki,books"), ["c"]),
        (("--prefer", "site=wiki", "--keep", "min:year"), ["d"]),
        (("--prefer", "year=2021,2019", "--keep", "longest"), ["c"]),
        (("--protect", "site=wiki"), ["c", "d"]),
        (("--protect", "site=wiki", "--protect", "year=2020"), ["a", "c", "d"]),
    ],
)
def test_rules_decide_which_rows_stay(name: str, options: tuple[str, ...], ids: list[str], tmp_path: Path) -> None:
    write(tmp_path, name)
    assert kept_ids(tmp_path, name, *options) == ids


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet", "a.csv"])
def test_restore_gives_the_input_back(name: str, tmp_path: Path) -> None:
    write(tmp_path, name)
    before = (tmp_path / name).read_bytes()
    kept_ids(tmp_path, name, "--protect", "site=books", "--prefer", "site=wiki")
    done = run(tmp_path, "restore", "out", "--all", "-o", "back", "--quiet")
    assert done.status == OK, done
    back = tmp_path / "back/kept" / name
    if name.endswith(".parquet"):
        assert pq.read_table(back).equals(pq.read_table(tmp_path / name))
    else:
        assert back.read_bytes() == before


@pytest.mark.parametrize(
    "rules",
    [
        'keep = "max:year,last"\nprefer = "site=wiki,books"\nprotect = ["site=crawl", "year=2019"]\n',
        'keep = "max:year,last"\nprefer = {site = ["wiki", "books"]}\nprotect = {site = "crawl", year = [2019]}\n',
    ],
)
def test_a_settings_file_has_the_same_effect_as_options(rules: str, tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl")
    (tmp_path / "minwise.toml").write_text(f"[dedup]\n{rules}", encoding="utf-8")
    assert kept_ids(tmp_path, "a.jsonl") == ["a", "d"]
    settings = json.loads((tmp_path / "out/report.json").read_text())["settings"]
    expected = {"keep": "max:year,last", "prefer": {"site": ["wiki", "books"]}}
    assert settings | expected | {"protect": {"site": ["crawl"], "year": ["2019"]}} == settings


def test_explain_names_the_rule_of_a_finished_run(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl")
    kept_ids(tmp_path, "a.jsonl", "--protect", "site=crawl")
    lines = run(tmp_path, "explain", "out", "c").out.splitlines()
    assert "rule        a is protected: rows with site=crawl are never removed" in lines
    lines = run(tmp_path, "explain", "out", "a").out.splitlines()
    assert "rule         protected: rows with site=crawl are never removed" in lines


def test_summary_and_page_say_what_is_protected(tmp_path: Path) -> None:
    write(tmp_path, "a.csv")
    done = run(tmp_path, "dedup", "a.csv", "-o", "out", *SEARCH[:-1], "--protect", "site=wiki", "--protect", "site=x")
    assert done.status == OK, done
    shown = " ".join((done.out + done.err).split())
    assert "protected: 2 rows with site=wiki, all kept" in shown
    assert "no row has site=x, named by protect" in shown
    page = (tmp_path / "out/report.html").read_text(encoding="utf-8")
    assert "protected: 2 rows with site=wiki, all kept" in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--keep", "longest,best"), "--keep must be first, last, longest, shortest, max:COL or min:COL, or several"),
        (("--prefer", "wiki"), "--prefer must be a column and values such as source=wiki,books, got 'wiki'"),
        (("--protect", "wiki"), "--protect must be a column and a value such as source=wiki, got 'wiki'"),
        (("--protect", "nowhere=wiki"), "column 'nowhere' is in no file, or has no values"),
    ],
)
def test_a_wrong_rule_is_one_line(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl")
    done = run(tmp_path, "dedup", "a.jsonl", "-o", "out", *SEARCH, "--on-error", "quarantine", *options)
    assert message in one_line(done, done.status or 0)


@pytest.mark.parametrize("rule", [{"prefer": "site=wiki"}, {"protect": "site=wiki"}])
def test_rules_need_the_whole_input(rule: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"must be None for a stream, got .*; give files"):
        dedup_stream(BytesIO(b'{"text": "x"}\n'), BytesIO(), **rule)
