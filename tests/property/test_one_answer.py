"""One answer: the same bytes for any threads, batches, memory, order of files and sizes of parts.

By default every scenario runs with a few arrangements that differ in everything; with the environment variable
MINWISE_TORTURE set, with all combinations.
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
from minwise.options import VerifyName
from minwise.results import pairs as pair_module
from minwise.search import candidates, first_pass, verification
from minwise.settings import RunLimits

DOCUMENTS = 600
SHARDS = ("a/one.parquet", "a/two.jsonl", "b.csv")
SEARCH: dict[str, Any] = {"threshold": 0.7, "shingle": "word:2", "bands": 14, "rows": 3, "on_error": "quarantine"}
SCENARIOS: dict[str, dict[str, Any]] = {
    "star": {},
    "capped": {"keep": "longest", "max_bucket": 16, "scheme": "minhash"},
    "components": {"group": "components", "keep": "last"},
    "estimates": {"verify": "signature", "keep": "shortest"},
    "ranked": {"keep": "max:score", "verify": "none"},
    "discount": {"discount": "common"},
}


@dataclass(frozen=True, kw_only=True)
class Arrangement:
    """Values that must not change the result."""

    threads: int | None = None
    memory: str = "4GB"
    batch_bytes: int = 1 << 25
    order: tuple[int, ...] = (0, 1, 2)
    part_documents: int = 1 << 18
    ranges: int = 1
    chunk_pairs: int = 1 << 22
    spill_elements: int = 1 << 23
    table_rows: int = 1 << 16

    def apply(self, patch: pytest.MonkeyPatch, verify: VerifyName = "exact") -> None:
        """Set the internal sizes of the engine; the call passes those that are settings."""
        given = RunLimits.of
        patch.setattr(RunLimits, "of", lambda *limits: replace(given(*limits), batch_bytes=self.batch_bytes))
        patch.setattr(first_pass, "PART_DOCUMENTS", self.part_documents)
        quarter = RunLimits.of(self.memory, None).memory // 4
        patch.setattr(candidates, "SORTED_BYTES", quarter * self.ranges // DOCUMENTS if self.ranges > 1 else 40)
        # Without exact verification the engine takes a sixteenth of it, and there are many more pairs.
        patch.setattr(candidates, "CHUNK_PAIRS", self.chunk_pairs * (1 if verify == "exact" else 64))
        patch.setattr(verification, "SPILL_ELEMENTS", self.spill_elements)
        patch.setattr(pair_module, "EXPANDED_PAIRS", 4 * self.chunk_pairs)
        patch.setattr(pair_module, "TABLE_ROWS", self.table_rows)


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
    """Return rows with chains, copies and unrelated texts, repeated ids, scores with ties and gaps, and null texts."""
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
    """Write a third of the rows each: Parquet, JSON lines with numbers then strings as ids, and CSV without ids."""
    third = len(rows) // 3
    (folder / "a").mkdir(parents=True)
    table = pa.Table.from_pylist(rows[:third])
    pq.write_table(table, folder / SHARDS[0], row_group_size=37)
    lines = [
        json.dumps({**row, "id": row["id"] if number < 3 * third // 2 else str(row["id"])})
        for number, row in enumerate(rows)
    ]
    lines[third + 5] = '{"id": 7, "text": "cut off'
    (folder / SHARDS[1]).write_text("\n".join(lines[third : 2 * third]) + "\n", encoding="utf-8")
    with (folder / SHARDS[2]).open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(["text", "score"])
        out.writerows([row["text"], row["score"]] for row in rows[2 * third :] if row["text"] is not None)


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the three files."""
    folder = tmp_path_factory.mktemp("one_answer")
    write_shards(folder, corpus())
    return folder


def digest(path: Path) -> str:
    """Return one hash of the names and bytes of all files in a folder."""
    total = sha256()
    for file in sorted(entry for entry in path.rglob("*") if entry.is_file()):
        # These two files contain time and memory of a run, which are never the same twice.
        data = b"" if file.name in ("run.json", "report.html") else file.read_bytes()
        total.update(f"{file.relative_to(path)} {len(data)}\n".encode() + data)
    return total.hexdigest()


def answer(arrangement: Arrangement, scenario: str, folder: Path) -> dict[str, str]:
    """Return hashes of everything that dedup, pairs and clusters write and return for the shards."""
    options = {**SEARCH, **SCENARIOS[scenario], "memory": arrangement.memory, "threads": arrangement.threads}
    keep, group = options.pop("keep", "first"), options.pop("group", "star")
    files = [SHARDS[index] for index in arrangement.order]
    with pytest.MonkeyPatch.context() as patch:
        arrangement.apply(patch, options.get("verify", "exact"))
        result = mw.dedup(files, folder / "dedup" / "out", keep=keep, group=group, **options)
        reports = [
            mw.write_pairs(files, folder / "pairs" / name, sources=True, **options) for name in ("p.jsonl", "p.parquet")
        ]
        reports.append(mw.write_clusters(files, folder / "clusters" / "c.csv", group=group, **options))
        tables = [result.kept, result.removed, result.clusters]
    (folder / "tables").write_text(json.dumps([table.to_pydict() for table in tables]), encoding="utf-8")
    (folder / "reports").write_text(json.dumps(reports), encoding="utf-8")
    hashes = {name: digest(folder / name) for name in ("dedup/out", "pairs", "clusters")}
    return hashes | {name: sha256((folder / name).read_bytes()).hexdigest() for name in ("tables", "reports")}


@cache
def usual_answer(scenario: str, folder: Path) -> dict[str, str]:
    """Return the hashes of the default arrangement; the shards are in the current directory."""
    return answer(USUAL, scenario, make_folders(folder / f"usual-{scenario}"))


def make_folders(folder: Path) -> Path:
    """Create a folder for the output of each call; return their parent."""
    for name in ("dedup", "pairs", "clusters"):
        (folder / name).mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    "arrangement", ARRANGEMENTS, ids=lambda given: "-".join(str(value) for value in asdict(given).values())
)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_arrangement_gives_the_same_bytes(
    scenario: str, arrangement: Arrangement, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every output file, table and report."""
    monkeypatch.chdir(shards)
    assert answer(arrangement, scenario, make_folders(tmp_path / "run")) == usual_answer(scenario, shards)


def test_the_small_arrangement_makes_several_files(
    shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every kind; otherwise the test above would compare a run with itself."""
    monkeypatch.chdir(shards)
    work = tmp_path / "work"
    with pytest.MonkeyPatch.context() as patch:
        SMALL.apply(patch)
        mw.pairs([SHARDS[index] for index in SMALL.order], memory=SMALL.memory, work=work, **SEARCH)
    names = sorted(path.name for path in work.iterdir())
    files = {
        kind: sum(name.startswith(f"{kind}-") for name in names) for kind in ("part", "sets", "verified", "expanded")
    }
    assert all(count >= 3 for count in files.values()), files
    assert json.loads((work / "ranges").read_bytes())["parts"] == 3


@pytest.mark.parametrize("policy", ["first", "max:score"])
@pytest.mark.parametrize("part_documents", [50, 1 << 18])
def test_the_type_of_ids_does_not_depend_on_the_parts(
    policy: str, part_documents: int, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers in one file and no ids in the other: all become strings, also if a part has only one kind."""
    monkeypatch.chdir(shards)
    monkeypatch.setattr(first_pass, "PART_DOCUMENTS", part_documents)
    result = mw.dedup([SHARDS[0], SHARDS[2]], keep=policy, **SEARCH)
    ids = result.clusters.column("id").to_pylist()
    numbers = {str(row["id"]) for row in pq.read_table(SHARDS[0]).to_pylist() if row["text"] is not None}
    assert {identity for identity in ids if not identity.startswith(SHARDS[2])} == numbers
    assert f"{SHARDS[2]}:0" in ids


@pytest.mark.parametrize("arrangement", [USUAL, Arrangement(batch_bytes=256, part_documents=50)], ids=["one", "many"])
def test_repeated_ids_are_counted_across_parts(
    arrangement: Arrangement, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number 5 and the string "5" are one id, as in the tables, in whichever parts they are."""
    lines = [{"id": number, "text": f"number {number}"} for number in range(60)]
    lines += [{"id": str(number), "text": f"string {number}"} for number in range(60)]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    arrangement.apply(monkeypatch)
    assert mw.dedup(tmp_path / "x.jsonl").report["duplicate_ids"] == 60


def test_one_changed_letter_changes_the_hashes(shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shards)
    usual = usual_answer("star", shards)
    rows = corpus()
    rows[0]["text"] = f"{rows[0]['text']}x"
    write_shards(tmp_path / "other", rows)
    monkeypatch.chdir(tmp_path / "other")
    other = answer(USUAL, "star", make_folders(tmp_path / "run"))
    assert other["dedup/out"] != usual["dedup/out"]
    assert other["tables"] != usual["tables"]
