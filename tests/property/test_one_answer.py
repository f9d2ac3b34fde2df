"""One answer: the same bytes whatever the threads, batches, memory, order of files and sizes of pieces.

By default every scenario meets a few arrangements that differ from each other in everything; with the environment
variable MINWISE_TORTURE set, all combinations.
"""

import csv
import json
import os
import random
from dataclasses import asdict, dataclass, replace
from functools import cache
from hashlib import sha256
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.random_corpora import chain, words

import minwise as mw
from minwise.results import pairs as table_columns
from minwise.results import pairs as table_of_pairs
from minwise.search import candidates, first_pass, spilled_sets
from minwise.settings import Limits

DOCUMENTS = 600
SHARDS = ("a/one.parquet", "a/two.jsonl", "b.csv")
SEARCH: dict[str, Any] = {"threshold": 0.7, "shingle": "word:2", "bands": 14, "rows": 3, "on_error": "quarantine"}
SCENARIOS: dict[str, dict[str, Any]] = {
    "star": {},
    "capped": {"keep": "longest", "max_bucket": 16, "scheme": "minhash"},
    "components": {"group": "components", "keep": "last"},
    "estimates": {"verify": "signature", "keep": "shortest"},
    "ranked": {"keep": "max:score", "verify": "none"},
}


@dataclass(frozen=True, kw_only=True)
class Arrangement:
    """Everything that must not matter."""

    threads: int | None = None
    memory: str = "4GB"
    batch_bytes: int = 1 << 25
    order: tuple[int, ...] = (0, 1, 2)
    part_documents: int = 1 << 18
    ranges: int = 1
    chunk_pairs: int = 1 << 22
    spill_elements: int = 1 << 23
    table_rows: int = 1 << 16

    def apply(self, patch: pytest.MonkeyPatch, verify: str = "exact") -> None:
        """Sets the sizes inside of the engine; those that a user can give are left to the call."""
        given = Limits.of
        patch.setattr(Limits, "of", lambda *limits: replace(given(*limits), batch_bytes=self.batch_bytes))
        patch.setattr(first_pass, "PART_DOCUMENTS", self.part_documents)
        quarter = Limits.of(self.memory, None).memory // 4
        patch.setattr(candidates, "SORTED_BYTES", quarter * self.ranges // DOCUMENTS if self.ranges > 1 else 40)
        # Without exact verification the engine takes a sixteenth of it, and has many more pairs.
        patch.setattr(candidates, "CHUNK_PAIRS", self.chunk_pairs * (1 if verify == "exact" else 64))
        patch.setattr(spilled_sets, "SPILL_ELEMENTS", self.spill_elements)
        patch.setattr(table_of_pairs, "EXPANDED_PAIRS", 4 * self.chunk_pairs)
        for module in (table_columns, table_of_pairs):
            patch.setattr(module, "TABLE_ROWS", self.table_rows)


USUAL = Arrangement()
SMALL = Arrangement(
    threads=1,
    memory="256MB",
    batch_bytes=1 << 10,
    order=(2, 0, 1),
    part_documents=128,
    ranges=3,
    chunk_pairs=800,
    spill_elements=1000,
    table_rows=150,
)
FEW = (
    SMALL,
    Arrangement(threads=8, batch_bytes=1 << 15, order=(1, 2, 0), part_documents=200, chunk_pairs=1000),
    Arrangement(threads=2, memory="256MB", order=(2, 1, 0), ranges=7, spill_elements=2000),
)
ALL = tuple(
    replace(
        USUAL,
        threads=threads,
        batch_bytes=size,
        memory=memory,
        order=order,
        part_documents=part,
        ranges=ranges,
        **pieces,
    )
    for threads, size, memory, order, part, ranges, pieces in product(
        (1, 2, 8),
        (1 << 10, 1 << 15, 1 << 25),
        ("256MB", "4GB"),
        tuple(permutations(range(3)))[1::2],
        (64, 1 << 18),
        (1, 5),
        ({}, {"chunk_pairs": 800, "spill_elements": 1000, "table_rows": 150}),
    )
)
ARRANGEMENTS = ALL if os.environ.get("MINWISE_TORTURE") else FEW


def corpus() -> list[dict[str, Any]]:
    """Rows with chains, copies and unrelated texts, ids that repeat, scores with ties and gaps, and missing texts."""
    rng = random.Random(20)
    texts = [text for _ in range(40) for text in chain(rng, rng.randrange(8, 40), rng.randrange(2, 7))]
    texts += rng.choices(texts, k=60)
    for number in range(6):  # more copies than a small cap allows
        texts += [" ".join(texts[number].split()[::-1])] * 18
    texts += ["", "one", "One", "?"] * 5
    texts += [" ".join(words(rng, rng.randrange(5, 40))) for _ in range(DOCUMENTS - len(texts))]
    rng.shuffle(texts)
    scores = (None, 0.5, 1.5, 1.5, 9.25)
    rows = [
        {"id": number - number % 7 // 6, "text": text, "score": rng.choice(scores)} for number, text in enumerate(texts)
    ]
    for row in rng.sample(rows, 4):
        row["text"] = None
    return rows


def write_shards(folder: Path, rows: list[dict[str, Any]]) -> None:
    """A third of the rows each: Parquet, JSON lines whose ids are numbers, then strings, and CSV without ids."""
    third = len(rows) // 3
    (folder / "a").mkdir(parents=True)
    table = pa.Table.from_pylist(rows[:third])
    pq.write_table(table, folder / SHARDS[0], row_group_size=37)
    lines = [
        json.dumps({**row, "id": row["id"] if one < 3 * third // 2 else str(row["id"])}) for one, row in enumerate(rows)
    ]
    lines[third + 5] = '{"id": 7, "text": "cut off'
    (folder / SHARDS[1]).write_text("\n".join(lines[third : 2 * third]) + "\n", encoding="utf-8")
    with (folder / SHARDS[2]).open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(["text", "score"])
        out.writerows([row["text"], row["score"]] for row in rows[2 * third :] if row["text"] is not None)


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the three files."""
    folder = tmp_path_factory.mktemp("one_answer")
    write_shards(folder, corpus())
    return folder


def digest(path: Path) -> str:
    """One hash of the names and bytes of everything in a folder."""
    total = sha256()
    for file in sorted(one for one in path.rglob("*") if one.is_file()):
        # These two are there to say how long a run took and how much memory, which is never the same twice.
        data = b"" if file.name in ("run.json", "report.html") else file.read_bytes()
        total.update(f"{file.relative_to(path)} {len(data)}\n".encode() + data)
    return total.hexdigest()


def answer(arrangement: Arrangement, scenario: str, folder: Path) -> dict[str, str]:
    """A hash of all that dedup, pairs and clusters write and return about the shards, each."""
    options = {**SEARCH, **SCENARIOS[scenario], "memory": arrangement.memory, "threads": arrangement.threads}
    keep, group = options.pop("keep", "first"), options.pop("group", "star")
    files = [SHARDS[place] for place in arrangement.order]
    with pytest.MonkeyPatch.context() as patch:
        arrangement.apply(patch, options.get("verify", "exact"))
        result = mw.dedup(files, folder / "dedup" / "out", keep=keep, group=group, **options)
        reports = [
            mw.pairs(files, folder / "pairs" / name, sources=True, **options) for name in ("p.jsonl", "p.parquet")
        ]
        reports.append(mw.clusters(files, folder / "clusters" / "c.csv", group=group, **options))
        tables = [result.kept, result.removed, result.clusters]
    (folder / "tables").write_text(json.dumps([table.to_pydict() for table in tables]), encoding="utf-8")
    (folder / "reports").write_text(json.dumps(reports), encoding="utf-8")
    hashes = {name: digest(folder / name) for name in ("dedup/out", "pairs", "clusters")}
    return hashes | {name: sha256((folder / name).read_bytes()).hexdigest() for name in ("tables", "reports")}


@cache
def usual_answer(scenario: str, folder: Path) -> dict[str, str]:
    """What the usual arrangement gives; the current directory holds the shards."""
    return answer(USUAL, scenario, made(folder / f"usual-{scenario}"))


def made(folder: Path) -> Path:
    """The folder, with one for each call's output."""
    for name in ("dedup", "pairs", "clusters"):
        (folder / name).mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    "arrangement", ARRANGEMENTS, ids=lambda one: "-".join(str(value) for value in asdict(one).values())
)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_arrangement_gives_the_same_bytes(
    scenario: str, arrangement: Arrangement, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file of the output, every table and every report."""
    monkeypatch.chdir(shards)
    assert answer(arrangement, scenario, made(tmp_path / "run")) == usual_answer(scenario, shards)


def test_the_arrangements_do_what_they_say(shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The small one makes several pieces of every kind: else the test above would compare a run with itself."""
    monkeypatch.chdir(shards)
    work = tmp_path / "work"
    with pytest.MonkeyPatch.context() as patch:
        SMALL.apply(patch)
        mw.pairs([SHARDS[place] for place in SMALL.order], memory=SMALL.memory, work=work, **SEARCH)
    names = sorted(path.name for path in work.iterdir())
    pieces = {
        kind: sum(name.startswith(f"{kind}-") for name in names) for kind in ("part", "sets", "verified", "expanded")
    }
    assert all(count >= 3 for count in pieces.values()), pieces
    assert json.loads((work / "ranges").read_bytes()) == {"parts": 3}


@pytest.mark.parametrize("policy", ["first", "max:score"])
@pytest.mark.parametrize("part_documents", [50, 1 << 18])
def test_ids_of_some_files_do_not_depend_on_the_pieces(
    policy: str, part_documents: int, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers in one file and none in the other: all become strings, also where a piece holds only one kind."""
    monkeypatch.chdir(shards)
    monkeypatch.setattr(first_pass, "PART_DOCUMENTS", part_documents)
    result = mw.dedup([SHARDS[0], SHARDS[2]], keep=policy, **SEARCH)
    ids = result.clusters.column("id").to_pylist()
    numbers = {str(one["id"]) for one in pq.read_table(SHARDS[0]).to_pylist() if one["text"] is not None}
    assert {one for one in ids if not one.startswith(SHARDS[2])} == numbers
    assert f"{SHARDS[2]}:0" in ids


@pytest.mark.parametrize("arrangement", [USUAL, Arrangement(batch_bytes=256, part_documents=50)], ids=["one", "many"])
def test_repeated_ids_are_counted_across_pieces(
    arrangement: Arrangement, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number 5 and the string "5" are one id, as they are in the tables, whichever pieces they are in."""
    lines = [{"id": one, "text": f"number {one}"} for one in range(60)]
    lines += [{"id": str(one), "text": f"string {one}"} for one in range(60)]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    arrangement.apply(monkeypatch)
    assert mw.dedup(tmp_path / "x.jsonl").report["duplicate_ids"] == 60


def test_one_letter_more_is_another_answer(shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hashes see what they are meant to see."""
    monkeypatch.chdir(shards)
    usual = usual_answer("star", shards)
    rows = corpus()
    rows[0]["text"] = f"{rows[0]['text']}x"
    write_shards(tmp_path / "other", rows)
    monkeypatch.chdir(tmp_path / "other")
    other = answer(USUAL, "star", made(tmp_path / "run"))
    assert other["dedup/out"] != usual["dedup/out"]
    assert other["tables"] != usual["tables"]
