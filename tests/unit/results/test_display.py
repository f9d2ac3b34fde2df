"""What results show in a terminal and in a notebook."""

import pickle
import re
import unicodedata
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import minwise as mw
from minwise.results import ResultTable
from minwise.results.display import Preview

ATTACK = '<script>alert("x")</script><img src=x onerror=alert(1)> \x1b[31m\u202e'
BODY = "the night ferry leaves from the north pier and comes back in the {} with the mail"
TEXTS = [f"{ATTACK} {BODY.format(time)}" for time in ("morning", "morning", "evening", "morning hours")] + ["alone"]
ROWS = [{"id": f"{ATTACK}/{number}", "text": text} for number, text in enumerate(TEXTS)]
SETTINGS: dict[str, Any] = {"shingle": "word:2", "threshold": 0.6}
SHINGLER = mw.Shingler("word:2")
OPEN: list[mw.Index] = []
POINTS = np.eye(9, 8, dtype=np.float32)
VECTORS = mw.EuclideanLSH(width=2.0, hashes=1, tables=4).fit(POINTS)


def index_of(tmp_path: Path, *, closed: bool) -> mw.Index:
    folder = tmp_path / f"{'a-long-name-' * 8}{closed}.mw"
    index = mw.Index.create(folder, seed=1, **SETTINGS)
    index.add(["a"], [TEXTS[0]])
    OPEN.append(index)
    if closed:
        index.close()
    return index


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    """Close every index that a test opened."""
    yield
    while OPEN:
        OPEN.pop().close()


RESULTS: dict[str, Callable[[Path], Any]] = {
    "dedup": lambda _: mw.dedup(ROWS, **SETTINGS),
    "dedup without removals": lambda _: mw.dedup(["a b c", "d e f"]),
    "dedup of nothing": lambda _: mw.dedup([]),
    "exact dedup": lambda _: mw.dedup(ROWS, exact=True, **SETTINGS),
    "dedup by components": lambda _: mw.dedup(ROWS, group="components", verify="signature", **SETTINGS),
    "dedup of sets": lambda _: mw.dedup([{1, 2}, {1, 2}, {3}], shingle="set"),
    "dedup at a higher threshold": lambda _: mw.dedup(ROWS, **SETTINGS).rethreshold(0.9),
    "thresholds": lambda _: mw.dedup(ROWS, **SETTINGS).rethreshold(0.7).thresholds,
    "explanation of a removed document": lambda _: mw.dedup(ROWS, **SETTINGS).explain(ROWS[2]["id"]),
    "explanation of a kept document": lambda _: mw.dedup(ROWS, **SETTINGS).explain(ROWS[4]["id"]),
    "removed": lambda _: mw.dedup(ROWS, **SETTINGS).removed,
    "clusters of a dedup": lambda _: mw.dedup(ROWS, **SETTINGS).clusters,
    "pairs": lambda _: mw.pairs(ROWS, **SETTINGS),
    "pairs with sources": lambda _: mw.pairs(ROWS, sources=True, **SETTINGS),
    "pairs of sets": lambda _: mw.pairs([{1, 2}, {1, 2}, {3}], shingle="set"),
    "pairs without similarities": lambda _: mw.pairs(ROWS, verify="none", **SETTINGS),
    "no pairs": lambda _: mw.pairs(["a", "b"]),
    "clusters": lambda _: mw.clusters(ROWS, **SETTINGS),
    "no clusters": lambda _: mw.clusters([]),
    "comparison": lambda _: mw.compare(TEXTS[0], TEXTS[2], shingler=SHINGLER),
    "comparison of bytes": lambda _: mw.compare(b"\xff<b>", b"\xfe<b>", shingler=mw.Shingler("byte:1")),
    "audit": lambda _: mw.audit(ROWS, **SETTINGS),
    "audit without pairs": lambda _: mw.audit(["a", "b"]),
    "plan": lambda _: mw.plan(0.7, bands=12, rows=3),
    "index": lambda folder: index_of(folder, closed=False),
    "closed index": lambda folder: index_of(folder, closed=True),
    "pairs of vectors": lambda _: VECTORS.pairs(0.5),
    "neighbours": lambda _: VECTORS.query(POINTS[:2], top=2),
    "signatures": lambda _: mw.FastSketch().sketch_texts(TEXTS),
    "shingle sets": lambda _: SHINGLER.shingle(TEXTS),
}
ALL_RESULTS = pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS)


def columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


@ALL_RESULTS
def test_the_short_form_fits_a_terminal_and_has_no_control_characters(
    make: Callable[[Path], Any], tmp_path: Path
) -> None:
    lines = repr(make(tmp_path)).split("\n")
    assert 1 <= len(lines) <= 9
    assert all(columns(line) <= 80 for line in lines)
    assert all(line.isprintable() and line == line.rstrip() for line in lines)


class Elements(HTMLParser):
    """Collects the elements of a page and checks that they are nested."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@ALL_RESULTS
def test_html_escapes_texts_and_loads_nothing(make: Callable[[Path], Any], tmp_path: Path) -> None:
    html = make(tmp_path)._repr_html_()
    page = Elements()
    page.feed(html)
    assert page.open == []
    assert not page.names & {"script", "img", "link", "iframe", "b"}
    assert not {name for name in page.attributes if name.startswith("on") or name in ("src", "href")}
    assert "url(" not in html
    assert "\x1b" not in html
    assert "\u202e" not in html


@ALL_RESULTS
def test_styles_of_a_cell_apply_to_that_cell_only(make: Callable[[Path], Any], tmp_path: Path) -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", make(tmp_path)._repr_html_(), re.DOTALL)
    rules = re.sub(r"@media[^{]*\{", "", style)
    selectors = [one.strip() for rule in re.findall(r"([^{}]+)\{", rules) for one in rule.split(",")]
    assert selectors
    assert all(selector.startswith(".minwise") for selector in selectors)


def test_a_deduplication_shows_counts_plan_clusters_and_three_examples() -> None:
    rows = [{"id": f"{group}-{number}", "text": f"{BODY.format('morning')} {group} {number}"}
            for group in ("one two three", "four five six", "seven eight nine", "ten eleven twelve")
            for number in range(3)]  # fmt: skip
    result = mw.dedup(rows, shingle="word:2", threshold=0.9)
    counts = result.report["counts"]
    assert repr(result).startswith(f"DedupResult: {counts['kept']} of 12 documents kept\n")
    assert f"removed   {counts['removed']} (0 identical" in repr(result)
    html = result._repr_html_()
    assert f"{result.report['plan']['bands']} bands" in html
    assert "Largest clusters" in html
    assert html.count('<div class="sides') == 3
    assert html.count("kept: ") == 3
    assert BODY.format("morning")[:40] in html


def test_pairs_show_both_texts() -> None:
    pairs = mw.pairs(["one two three four five six", "One, two, three, four, five, six!", "seven"])
    assert repr(pairs) == (
        "1 pair\n"
        "left  right  similarity  left text                  right text\n"
        "   0      1      1.0000  one two three four five…   One, two, three, four, f…"
    )
    assert '<td class="text">One, two, three, four, five, six!</td>' in pairs._repr_html_()


def test_clusters_show_members_of_the_largest_ones() -> None:
    texts = [*(f"lonely text number {number} here" for number in range(20)), *["all of these are the same text"] * 3]
    found = mw.clusters(texts)
    assert repr(found).split("\n") == [
        "23 documents, 1 cluster of two or more",
        "id  cluster  size  text",
        "20       20     3  all of these are the same text",
        "21       20     3  all of these are the same text",
        "… and 21 more",
    ]


def test_texts_of_small_files_are_shown_and_missing_files_do_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text("text\n" + "one two three four five six\n" * 2, encoding="utf-8")
    shown, unread = mw.pairs(file), mw.pairs(file)
    assert "one two three" in repr(shown)
    file.unlink()
    assert "one two three" in repr(shown)
    assert "one two three" not in repr(unread)


def test_a_table_of_a_million_rows_shows_a_few() -> None:
    million = pa.table({"left": pa.array(range(10**6)), "right": pa.array(range(10**6))})
    table = ResultTable(million, Preview("1,000,000 pairs"))
    assert len(repr(table)) < 300
    assert repr(table).endswith("… and 999,994 more")
    assert len(table._repr_html_()) < 10_000


def test_long_and_wide_values_are_shortened() -> None:
    rows = [
        {"id": f"corpus/{'deep/' * 30}{number}.txt", "text": "渡し船は毎朝六時に北の桟橋を出る" * 9}
        for number in range(2)
    ]
    lines = repr(mw.pairs(rows, shingle="char:3")).split("\n")
    assert all(columns(line) <= 80 for line in lines)
    assert "0.txt" in lines[2]
    assert "1.txt" in lines[2]
    assert "渡し船" in lines[2]


def test_a_result_table_behaves_as_an_arrow_table(tmp_path: Path) -> None:
    table = mw.pairs(ROWS, **SETTINGS)
    plain = table.to_arrow()
    assert isinstance(plain, pa.Table)
    assert table == plain
    assert table.equals(plain)
    assert table.equals(mw.pairs(ROWS, **SETTINGS))
    assert table != plain.slice(1)
    assert table != 5
    assert table["left"].equals(plain["left"])
    assert table[0].equals(plain[0])
    assert table.column(1).equals(plain.column(1))
    assert (len(table), table.num_rows, table.num_columns, table.shape) == (6, 6, 3, (6, 3))
    assert (table.column_names, table.schema) == (plain.column_names, plain.schema)
    assert table.select(["left"]).slice(1).to_pydict() == plain.select(["left"]).slice(1).to_pydict()
    assert (table.to_pylist(), table.to_pydict()) == (plain.to_pylist(), plain.to_pydict())
    assert pa.table(table).equals(plain)
    assert pl.DataFrame(plain).equals(pl.DataFrame(table))
    pd.testing.assert_frame_equal(table.to_pandas(), plain.to_pandas())
    assert [column.to_pylist() for column in table] == [column.to_pylist() for column in plain.columns]
    pq.write_table(table.table, tmp_path / "pairs.parquet")
    assert pq.read_table(tmp_path / "pairs.parquet").equals(plain)
    copied = pickle.loads(pickle.dumps(table))
    assert copied == table
    with pytest.raises(AttributeError):
        table.no_such_attribute  # noqa: B018 - the access raises
    with pytest.raises(TypeError):
        hash(table)
