"""Seed of an index: random and secret unless given, never shown; equal given seeds make equal indexes."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from support.index_oracle import storing

import minwise as mw
from minwise.cli.command import command

TEXTS = [
    "the ferry leaves the old harbour at six in the morning and the gulls follow it far out to the open sea",
    "the ferry leaves the old harbour at six in the morning and the gulls follow it far out to the sea",
    "a lighthouse keeper paints the iron stairs in green every seventh year before the storms begin",
]
IDS: list[str | int] = ["a", "b", 3]


def spellings(seed: int) -> list[bytes]:
    """Return a seed as it might be printed or stored."""
    texts = [str(seed), f"{seed:x}", f"{seed:X}", str(seed - 2**64)]
    return [*(text.encode() for text in texts), seed.to_bytes(8, "little"), seed.to_bytes(8, "big")]


def assert_hidden(seed: int, shown: bytes) -> None:
    """Check that no spelling of the seed occurs in an output."""
    assert seed > 2**32, "a small seed may be printed by chance"
    assert [spelling for spelling in spellings(seed) if spelling in shown] == []


@pytest.fixture(params=["shingles", "text", "sketch"])
def secret(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, int]:
    """Return an index with a random seed, and that seed."""
    with mw.Index.create(tmp_path / "news.mw", **storing(request.param)) as index:
        index.add(IDS, TEXTS, [{"n": 1}, None, {}])
        return index.path, index.scheme.seed


def damage(path: Path) -> None:
    """Flip a bit in every page of the database."""
    data = bytearray((path / "index.db").read_bytes())
    for offset in range(2000, len(data), 4096):
        data[offset] ^= 4
    (path / "index.db").write_bytes(data)


def outcome(call: Callable[[], object]) -> str:
    """Return the result of a call, or the error that it raises."""
    try:
        return repr(call())
    except (mw.MinwiseError, OSError) as error:
        return f"{error} {error!r}"


def error_messages(index: mw.Index, path: Path) -> str:
    """Return the messages of all kinds of errors."""
    other = mw.FastSketch(slots=index.plan.slots).sketch_texts(TEXTS[:1])
    mine = index.scheme.sketch_texts(TEXTS[:1], mw.Shingler("word:2", seed=index.scheme.seed))
    damaged = shutil.copytree(path, path.with_name("damaged.mw"))
    damage(damaged)
    calls: list[Callable[[], object]] = [
        lambda: index.add(["a"], ["something else"]),
        lambda: index.add([""], ["x"]),
        lambda: index.add(["x"], []),
        lambda: index.add_signatures(["x"], other),
        lambda: index.add_signatures(["x"], mine),
        lambda: index.query("x", 0.1),
        lambda: index.query("x", where=1),  # type: ignore[arg-type]
        lambda: index.get("missing"),
        lambda: mw.Index.open(path, "w"),
        lambda: mw.Index.open(path, "x"),  # type: ignore[arg-type]
        lambda: mw.Index.create(path),
        lambda: mw.Index.open(damaged).verify(),
        lambda: mw.Index.open(damaged).query(TEXTS[0]),
    ]
    return "\n".join(map(outcome, calls))


def test_secret_seed_is_not_shown(secret: tuple[Path, int]) -> None:
    """It does not appear in descriptions, errors, answers or exported files."""
    path, seed = secret
    with mw.Index.open(path, "w") as index:
        shown = [
            repr(index),
            str(index),
            json.dumps(index.stats()),
            repr(index.query_many(TEXTS)),
            repr(index.get("a")),
        ]
        shown += [repr(index.verify()), repr(index.plan), error_messages(index, path)]
        index.export(path.with_name("signatures.parquet"))
        assert_hidden(seed, "\n".join(shown).encode())
    exported = path.with_name("signatures.parquet")
    assert_hidden(seed, exported.read_bytes())
    assert_hidden(seed, repr(pq.read_schema(exported).metadata).encode())


def test_given_seed_is_shown(tmp_path: Path) -> None:
    """It is no secret, and another such index needs it."""
    with mw.Index.create(tmp_path / "open.mw", seed=2**63 + 5) as index:
        assert index.stats()["settings"]["seed"] == 2**63 + 5


def test_no_command_shows_a_secret_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not appear on standard output or error, as text or JSON, on success or failure."""
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text("".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(TEXTS)))
    Path("ids.txt").write_text("0\n")
    lines = [
        "create news.mw --json",
        "add news.mw in.jsonl",
        "add news.mw in.jsonl --unique --on-duplicate-id skip",
        "query news.mw in.jsonl -o - --json",
        "query news.mw in.jsonl --threshold 0.1",
        "stats news.mw",
        "stats news.mw --json",
        "verify news.mw",
        "remove news.mw --ids ids.txt",
        "compact news.mw",
        "backup news.mw copy.mw",
        "export news.mw signatures.parquet --json",
        "create news.mw",
    ]
    runs = [CliRunner().invoke(command, ["index", *line.split()]) for line in lines]
    with mw.Index.open("news.mw") as index:
        assert len(index) == len(TEXTS) - 1
        shown = b"\n".join(run.output_bytes for run in runs)
        assert b"0.8" in shown
        assert_hidden(index.scheme.seed, shown)


def test_random_seeds_differ(tmp_path: Path) -> None:
    """The keys differ too: the same text is in other buckets."""
    keys = []
    for number in range(3):
        with mw.Index.create(tmp_path / f"{number}.mw") as index:
            index.add(IDS, TEXTS)
            index.flush()
            keys.append((index.scheme.seed, index.shingler.seed, (index.path / "segment-00000001.post").read_bytes()))
    seeds, shingle_seeds, segments = (set(column) for column in zip(*keys, strict=True))
    assert len(seeds) == len(shingle_seeds) == len(segments) == 3


def test_equal_seeds_make_equal_indexes(tmp_path: Path) -> None:
    """After the same calls every file except the lock is equal, and so are the answers."""
    for name, seed in (("one", 7), ("two", 7), ("other", 8)):
        with mw.Index.create(tmp_path / name, seed=seed, store_text=True) as index:
            index.add(IDS, TEXTS, [{"n": 1}, None, {}])
            index.flush()
            index.remove(["b"])
            index.add(["c"], TEXTS[:1])
    one, two, other = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir() if path.name != "writer.lock"}
        for name in ("one", "two", "other")
    )
    assert one == two
    assert one.keys() == other.keys() == {"index.db", "head", "segment-00000001.post"}
    assert one["index.db"] != other["index.db"]
    assert one["segment-00000001.post"] != other["segment-00000001.post"]
    answers = [mw.Index.open(tmp_path / name).query(TEXTS[0]) for name in ("one", "two")]
    assert answers[0] == answers[1]
    assert [hit.id for hit in answers[0]] == ["a", "c"]
