"""Tables with odd columns and names: every command answers, or fails in one line."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc
from support.commands import FAILURE, OK, TORTURE, one_line, run
from support.expect import error_message
from support.odd_columns import ODD_COLUMNS, TEXTS

import minwise as mw
from minwise.errors import InputError, MinwiseError

QUARANTINE = ("--on-error", "quarantine", "--quiet")
COMMANDS: dict[str, tuple[str, ...]] = {
    "a column that is only copied": ("dedup", "-o", "out"),
    "a column of an object": ("dedup", "-o", "-"),
    "text": ("dedup", "-o", "out", "--text-column", "odd"),
    "field": ("dedup", "-o", "out", "--text-column", "odd.a"),
    "id": ("pairs", "-o", "-", "--id-column", "odd"),
    "keep": ("dedup", "-o", "out", "--keep", "max:odd"),
    "item": ("clusters", "-o", "out.jsonl", "--group-by", "id", "--item", "odd"),
    "group": ("clusters", "-o", "out.jsonl", "--group-by", "odd", "--item", "id"),
    "proposal": ("dedup", "-o", "out", "--text-column", "none"),
}


def table(odd: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return a table with an odd column."""
    return pa.table({"text": TEXTS, "id": ["a", "b", "c", "d"], "odd": odd})


def write_arrow(rows: Any, path: Path) -> None:  # noqa: ANN401 - as above
    """Write an Arrow file."""
    with ipc.new_file(path, rows.schema) as writer:
        writer.write_table(rows)


WRITE: dict[str, Callable[[Any, Path], None]] = {"in.arrow": write_arrow, "in.parquet": pq.write_table}


def write(rows: Any, folder: Path) -> list[str]:  # noqa: ANN401 - as above
    """Write a table in every format that has its types, and return the names of the files."""
    for name, write_table in WRITE.items():
        with suppress(pa.ArrowException):
            write_table(rows, folder / name)
    return [name for name in WRITE if (folder / name).exists() and (folder / name).stat().st_size > 100]


def check(folder: Path, *arguments: str) -> None:
    """Run a command, which must succeed or fail in one line."""
    done = run(folder, *arguments)
    if done.status != OK:
        one_line(done, FAILURE)


@pytest.mark.parametrize("use", COMMANDS)
@pytest.mark.parametrize("kind", ODD_COLUMNS if TORTURE else ["unknown time zone", "equal names in a struct"])
def test_a_command_uses_an_odd_column_or_fails_in_one_line(kind: str, use: str, tmp_path: Path) -> None:
    command, *options = COMMANDS[use]
    for name in write(table(ODD_COLUMNS[kind]), tmp_path):
        check(tmp_path, command, name, *options, *QUARANTINE, *(["--overwrite"] if options[1] != "-" else []))


def test_odd_columns_are_copied_with_their_types(tmp_path: Path) -> None:
    """Arrow files can have 64 levels."""
    columns = {name: column for name, column in ODD_COLUMNS.items() if name != "990 levels"}
    rows = pa.table({"text": TEXTS, **columns})
    write_arrow(rows, tmp_path / "in.arrow")
    assert run(tmp_path, "dedup", "in.arrow", "-o", "out", "--quiet").status == OK
    copied = ipc.open_file(tmp_path / "out" / "kept" / "in.arrow").read_all()
    assert copied.equals(pa.concat_tables([rows[:1], rows[2:]]))


@pytest.mark.parametrize("kind", ODD_COLUMNS if TORTURE else ["unknown time zone", "nanoseconds"])
def test_odd_metadata_of_an_index_are_json_or_a_quarantined_row(kind: str, tmp_path: Path) -> None:
    for name in write(table(ODD_COLUMNS[kind]), tmp_path):
        check(tmp_path, "index", "create", f"{name}.mw")
        done = run(tmp_path, "index", "add", f"{name}.mw", name, "--metadata-column", "odd", *QUARANTINE[:2])
        assert done.status in (OK, FAILURE)
        assert all(line.startswith("minwise: ") for line in done.err.splitlines())
        check(tmp_path, "index", "query", f"{name}.mw", name)


@pytest.mark.parametrize("kind", ODD_COLUMNS)
def test_odd_columns_in_memory_are_used_or_raise_an_error_of_minwise(kind: str, tmp_path: Path) -> None:
    rows = table(ODD_COLUMNS[kind])
    uses: list[Callable[[], object]] = [
        lambda: mw.dedup(rows),
        lambda: mw.dedup(rows, output=tmp_path / "out"),
        lambda: mw.dedup(rows, text_column="odd"),
        lambda: mw.dedup(rows, text_column="odd.a"),
        lambda: mw.pairs(rows, id_column="odd"),
        lambda: mw.dedup(rows, keep="max:odd"),
    ]
    for use in uses:
        with suppress(MinwiseError):
            repr(use())


NOT_UTF8 = "é".encode(), b"\xff\xff"


@pytest.mark.parametrize("odd", [[1, 2, 3, 4], [{"é": 1}] * 4], ids=["column", "field"])
def test_a_column_name_that_is_not_utf8_is_one_line_that_shows_it(odd: list[Any], tmp_path: Path) -> None:
    rows = table(odd).rename_columns({"odd": "é" if odd == [1, 2, 3, 4] else "odd"})
    for name in write(rows, tmp_path):
        path = tmp_path / name
        path.write_bytes(path.read_bytes().replace(*NOT_UTF8))
        done = run(tmp_path, "dedup", name, "-o", "out", "--quiet")
        reason = r"has a column name that is not valid UTF-8: \xff\xff"
        assert one_line(done, FAILURE) == f"minwise: {name}: {reason}\n"
    damaged = ipc.open_file(tmp_path / "in.arrow").read_all()
    assert reason in error_message(InputError, lambda: mw.dedup(damaged))


def test_equal_column_names_are_not_written_as_one_object(tmp_path: Path) -> None:
    rows = pa.Table.from_arrays([pa.array(TEXTS), pa.array([1] * 4), pa.array([2] * 4)], ["text", "a", "a"])
    write_arrow(rows, tmp_path / "in.arrow")
    done = run(tmp_path, "dedup", "in.arrow", "-o", "-", "--quiet")
    assert "has more than one column 'a', which an object cannot have" in one_line(done, FAILURE)
    assert run(tmp_path, "dedup", "in.arrow", "-o", "out", "--quiet").status == OK


@pytest.mark.parametrize(("levels", "begin"), [(150, "["), (300, '{"a":'), (990, "["), (990, '{"a":')])
def test_deeply_nested_metadata_are_stored_or_quarantined(begin: str, levels: int, tmp_path: Path) -> None:
    """Whatever the depth, rows with such values in columns that are not used are documents like others."""
    value = begin * levels + '"x"' + ("}" if "a" in begin else "]") * levels
    lines = [f'{{"id": "{row}", "text": "{text}", "m": {value}}}\n' for row, text in enumerate(TEXTS)]
    (tmp_path / "in.jsonl").write_text("".join(lines) + '{"id": "last", "text": "a text of its own", "m": 1}\n')
    assert run(tmp_path, "index", "create", "i.mw").status == OK
    done = run(tmp_path, "index", "add", "i.mw", "in.jsonl", "--metadata-column", "m", "--on-error", "quarantine")
    assert done.status == OK
    assert ("metadata must have at most 200 levels of lists and objects" in done.err) == (levels > 200)
    assert run(tmp_path, "index", "query", "i.mw", "in.jsonl").status == OK
    for column in ("m", "none"):
        check(tmp_path, "dedup", "in.jsonl", "-o", f"{column}.out", "--text-column", column, "--quiet")
    done = run(tmp_path, "dedup", "in.jsonl", "-o", "-", "--quiet")
    assert len(done.out.splitlines()) == len(TEXTS)
