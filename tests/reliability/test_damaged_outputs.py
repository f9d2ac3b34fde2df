"""Damaged files of a finished run: every call that reads them works or fails in one line that is no bug report.

Each round changes one file of an output directory: a value of its JSON, a column of its table, or bytes. The seed of a
round is its number, so that a failing round is repeated by its number.
"""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import TORTURE

import minwise as mw
from minwise.errors import MinwiseError
from minwise.results import write_report

ROUNDS = 2000 if TORTURE else 80
TWO_LINES = "a\nb"  # a valid name of a file
VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1, 2**31, 2**63 - 1, 2**64, 10**30, -(2**63), 0.5, -0.5, 1e308, 5e-324),
    *("", "x", "../../x", "\0", TWO_LINES, "/", [], {}, [[]], {"": None}, [None], ["x", 1], {"from": "x"}),
]
DEEP = "[" * 200_000


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with inputs, and the outputs of two runs on them and of an audit."""
    folder = tmp_path_factory.mktemp("finished")
    chance = random.Random(7)
    words = ["".join(chance.choices("abcdefgh", k=5)) for _ in range(200)]
    texts = [" ".join(chance.choices(words, k=30)) for _ in range(40)]
    texts += [f"{text} again" for text in texts[:12]] + texts[:5]
    rows = [json.dumps({"id": f"d{row}", "text": text}) for row, text in enumerate(texts)]
    (folder / "a.jsonl").write_text("\n".join([*rows, "not JSON"]), encoding="utf-8")
    (folder / "ref.jsonl").write_text("\n".join(rows[:3]), encoding="utf-8")
    (folder / "texts").mkdir()
    for number, text in enumerate(texts[:9]):
        (folder / "texts" / f"{number}.txt").write_text(text, encoding="utf-8")
    options: dict[str, Any] = {"on_error": "quarantine", "against": folder / "ref.jsonl"}
    mw.dedup(folder / "a.jsonl", folder / "table", **options)
    mw.dedup(folder / "texts", folder / "files", threshold=0.6)
    mw.audit(folder / "a.jsonl", folder / "table" / "audit.json", on_error="quarantine")
    return folder


def calls(output: Path, scratch: Path) -> Iterator[Callable[[], object]]:
    """Yield every call that reads an output directory."""
    yield partial(write_report, output)
    for number, ids in enumerate([None, ["d40"], ["0.txt"]]):
        yield partial(mw.restore, output, scratch / f"restored{number}", ids=ids)
    for given in ("d40", "d1", "0.txt", "a.jsonl:57"):
        yield lambda given=given: repr(mw.explain(output, given))  # type: ignore[misc]
    yield lambda: mw.explain(output, "d20", search=True)._repr_html_()
    yield partial(mw.rethreshold, output, scratch / "higher", threshold=0.95)


def outcome(call: Callable[[], object]) -> str:
    """Return "" if a call works, "refused" if it fails in one line, otherwise the raw error."""
    try:
        call()
    except (MinwiseError, OSError) as error:
        return "refused" if "\n" not in str(error).replace(TWO_LINES, "") else f"several lines: {error}"
    except Exception as error:
        return repr(error)
    return ""


def damage_json(path: Path, chance: random.Random) -> str:
    """Change one value, or drop a key, of a JSON file or of one of its lines."""
    lines = path.read_text(encoding="utf-8")
    values = json.loads(lines)
    parents = list(containers(values))
    parent = chance.choice(parents)
    keys = list(parent) if isinstance(parent, dict) else list(range(len(parent)))
    if not keys:
        return "nothing"
    key = chance.choice(keys)
    if chance.random() < 0.2:
        del parent[key]
        what = f"without {key!r}"
    else:
        parent[key] = chance.choice(VALUES)
        what = f"{key!r} is {parent[key]!r}"
    path.write_text(json.dumps(values), encoding="utf-8")
    return f"{path.name}: {what}"


def containers(values: object) -> Iterator[Any]:
    """Yield every object and array within a JSON value."""
    if isinstance(values, (dict, list)):
        yield values
        for value in values.values() if isinstance(values, dict) else values:
            yield from containers(value)


def damage_table(path: Path, chance: random.Random) -> str:
    """Change the type, the values or the rows of one column of a table, or drop it."""
    table = pq.read_table(path)
    at = chance.randrange(table.num_columns)
    name, column = table.column_names[at], table.column(at)
    replacements: list[Callable[[], pa.Array]] = [
        lambda: pa.nulls(len(column)),
        lambda: pa.array([[1]] * len(column)),
        lambda: pa.array([chance.choice([-1, 10**6, 2**62]) for _ in column]),
        lambda: pa.array([f"\0{row}" for row in range(len(column))]),
        lambda: pa.array([b"\xff\xfe"] * len(column)),
        lambda: pa.array([1.5] * len(column)),
        lambda: column.combine_chunks()[::-1],
        lambda: pa.array([None if chance.random() < 0.3 else value.as_py() for value in column], column.type),
    ]
    kind = chance.randrange(len(replacements) + 2)
    if kind < len(replacements):
        table = table.set_column(at, name, replacements[kind]())
    else:
        table = table.drop_columns([name]) if kind == len(replacements) else pa.concat_tables([table, table])
    pq.write_table(table, path)
    return f"{path.name}: column {name}, change {kind}"


def damage_bytes(path: Path, chance: random.Random) -> str:
    """Cut, flip, repeat or replace bytes of a file."""
    data = bytearray(path.read_bytes())
    kind, at = chance.randrange(6), chance.randrange(max(1, len(data)))
    if kind == 0:
        del data[at:]
    elif kind == 1 and data:
        data[at] ^= 1 << chance.randrange(8)
    elif kind == 2:
        data[at:at] = chance.randbytes(8)
    elif kind == 3:
        data = bytearray(DEEP.encode())
    elif kind == 4:
        data = bytearray(b"\xff\xfe\x00")
    else:
        data[at:at] = b"1" * 5000
    path.write_bytes(data)
    return f"{path.name}: bytes, change {kind}"


def exchange_files(output: Path, other: Path, chance: random.Random) -> str:
    """Replace a file by that of another run."""
    name = chance.choice(["report.json", "run.json", "removed.parquet", "clusters.parquet"])
    shutil.copy(other / name, output / name)
    return f"{name} of another run"


def damage(output: Path, other: Path, chance: random.Random) -> str:
    """Damage one file of an output directory and describe how."""
    kind = chance.randrange(10)
    names = [name for name in ("report.json", "run.json", "audit.json") if (output / name).exists()]
    tables = ["removed.parquet", "clusters.parquet"]
    if kind < 5:
        return damage_json(output / chance.choice(names), chance)
    if kind < 7:
        return damage_table(output / chance.choice(tables), chance)
    if kind < 9:
        lines = [name for name in ("quarantine.jsonl",) if (output / name).exists()]
        return damage_bytes(output / chance.choice([*names, *tables, *lines]), chance)
    return exchange_files(output, other, chance)


@pytest.mark.timeout(3000)
def test_damaged_outputs_are_refused_in_one_line(finished: Path, tmp_path: Path) -> None:
    raw: list[str] = []
    refused = 0
    for number in range(ROUNDS):
        chance, scratch = random.Random(number), tmp_path / str(number)
        name, other = chance.sample(["table", "files"], 2)
        shutil.copytree(finished / name, scratch / "out")
        what = damage(scratch / "out", finished / other, chance)
        results = [outcome(call) for call in calls(scratch / "out", scratch)]
        refused += results.count("refused")
        raw += [f"round {number}, {what}: {result}" for result in results if result not in ("", "refused")]
        shutil.rmtree(scratch)
    assert not raw, "\n".join([f"{len(raw)} raw errors", *raw[:40]])
    assert refused > ROUNDS  # most rounds damage what most calls read
