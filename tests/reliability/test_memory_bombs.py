"""Documents that would take many times their size: peak memory stays within ``--memory`` and 300 MB.

Each bomb is a document below the record limit of 128 MiB, or close to it.
"""

import gzip
import json
import random
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.commands import TORTURE
from support.peak_memory import PROMISED_BYTES, run_measured

import minwise as mw

MEGABYTE = 10**6
OPTIONS = ("-o", "out", "--memory", "256MB")


@dataclass(frozen=True)
class Bomb:
    """An input and what becomes of it.

    Attributes:
        name: Name of the file.
        content: Returns its content in pieces.
        options: Further options of the command.
        counts: Rows that are read, kept and quarantined.
        reason: Part of the reason why rows are quarantined.
    """

    name: str
    content: Callable[[], Iterator[str]]
    counts: tuple[int, int, int]
    options: tuple[str, ...] = ()
    reason: str = ""


def json_lines(*texts: str, times: int = 1) -> Iterator[str]:
    """Yield a line for each text, repeated ``times`` times; a piece at a time, because all of it is large."""
    for number, text in enumerate(texts):
        yield f'{{"id": {number}, "text": "'
        for _ in range(times):
            yield text
        yield '"}\n'


def csv_records(*texts: str, times: int) -> Iterator[str]:
    """Yield a header and a record for each text, repeated ``times`` times, in quotation marks."""
    yield "id,text\n"
    for number, text in enumerate(texts):
        yield f'{number},"'
        for _ in range(times):
            yield text
        yield '"\n'


def random_letters(count: int) -> str:
    """Return letters without repeated shingles of nine."""
    return "".join(random.Random(5).choices(string.ascii_letters + string.digits, k=count))


WORDS = " ".join(f"word{number * 7919 % 99991}" for number in range(100_000))
LARGE = 120 * MEGABYTE // len(WORDS)
# Distinct shingles of nine random letters: more than 2**24.
MANY_LETTERS = 17 * MEGABYTE
BOMBS = [
    Bomb("words.jsonl", lambda: json_lines(WORDS, WORDS + " x y z ", "q " + WORDS, times=LARGE), (3, 1, 0)),
    Bomb("endless.jsonl.gz", lambda: json_lines("a" * MEGABYTE, "b" * MEGABYTE, times=120), (2, 2, 0)),
    Bomb("emoji.jsonl", lambda: json_lines("\U0001f600 " + "ab\\n" * MEGABYTE, times=30), (1, 1, 0)),
    Bomb("array.json", lambda: iter(['[{"text": "', *[WORDS] * LARGE, '"}]']), (1, 1, 0)),
    Bomb("lines.txt", lambda: iter([WORDS] * LARGE), (1, 1, 0)),
    Bomb("quoted.csv", lambda: csv_records(WORDS, WORDS + '\n ""x"" y z ', "q " + WORDS, times=LARGE), (3, 1, 0)),
    Bomb("line.tsv", lambda: iter(["text\tid\n", *[WORDS] * LARGE, "\t1"]), (1, 1, 0)),
    Bomb("unclosed.csv", lambda: iter(["id,text\n", '1,"a b\n', *[f"2,{WORDS}\n"] * LARGE]), (1 + LARGE, 1, 1), (),
         "opens a quotation mark that is never closed"),
    Bomb("fields.csv", lambda: iter(["text\n", "ab," * 40 * MEGABYTE, "\na b c\n"]), (2, 1, 1), (),
         "more than 1048576 fields"),
    Bomb("growing.jsonl", lambda: json_lines("\ufdfa" * MEGABYTE, times=10 if TORTURE else 3), (1, 1, 0),
         ("--shingle", "char:5")),
    Bomb("distinct.jsonl", lambda: json_lines(random_letters(MANY_LETTERS), "two words"), (2, 1, 1),
         ("--shingle", "char:9"), "distinct shingles"),
    Bomb("marks.jsonl", lambda: json_lines("a" + "\u0301" * 30 * MEGABYTE, "two words"), (2, 1, 1), (),
         "combining marks in a row"),
    Bomb("values.jsonl", lambda: iter(['{"text": "a", "x": [', "{}," * 20 * MEGABYTE, '{}]}\n{"text": "b c"}\n']),
         (2, 1, 1), (), "more than 4194304 values"),
    Bomb("tags.html", lambda: iter(["<p>x" * 4 * MEGABYTE]), (1, 0, 1), ("--html",), "tags"),
    Bomb("long.html.gz", lambda: iter(["<p>word " * MEGABYTE] * 3), (1, 0, 1), ("--html",), "HTML page of more than"),
]  # fmt: skip


def write(path: Path, pieces: Iterator[str]) -> None:
    """Write a file, compressed if its name says so."""
    with gzip.open(path, "wb", compresslevel=1) if path.suffix == ".gz" else path.open("wb") as file:
        for piece in pieces:
            file.write(piece.encode())


@pytest.mark.timeout(900)
@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.name)
def test_bomb_stays_within_the_promised_memory(tmp_path: Path, bomb: Bomb) -> None:
    (tmp_path / "input").mkdir()
    write(tmp_path / "input" / bomb.name, bomb.content())
    (tmp_path / "input/good.txt").write_text("a good text of several words")
    inputs = [f"input/{bomb.name}", "input/good.txt"]
    done = run_measured(tmp_path, "dedup", *inputs, *OPTIONS, *bomb.options)
    assert (done.status, done.error) == (0, "")
    counts = json.loads((tmp_path / "out/report.json").read_text())["counts"]
    read, kept, quarantined = bomb.counts
    assert (counts["read"], counts["kept"], counts["quarantined"]) == (read + 1, kept + 1, quarantined)
    assert bomb.reason in (tmp_path / "out/quarantine.jsonl").read_text() if quarantined else True
    assert 0 < done.peak < PROMISED_BYTES


def test_document_that_cannot_be_shingled_is_quarantined_by_an_index(tmp_path: Path) -> None:
    write(tmp_path / "marks.jsonl", json_lines("a" + "\u0301" * MEGABYTE, "two words"))
    with mw.Index.create(tmp_path / "index.mw") as index:
        added = index.add_from(str(tmp_path / "marks.jsonl"), on_error="quarantine")
    assert (added["read"], added["added"], added["quarantined"]) == (2, 1, 1)
