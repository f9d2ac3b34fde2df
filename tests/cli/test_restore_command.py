"""`minwise restore` as a user runs it: every format, every kind of id and name, and its output."""

import gzip
import json
import os
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.commands import FAILURE, OK, execute, one_line, run
from support.restored_runs import contents, dedup, removed, restore
from support.small_corpus import COMPRESSORS, FAULTS, FERRY, KEPT, ROWS, TABLES, decompressed, json_lines, read, write

import minwise as mw

FORMATS = [*TABLES, "in.parquet", "in.arrow", "in.feather", "in.ipc"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the working directory, after a run that removed d2 and d4."""
    write(tmp_path / "in.jsonl", ROWS)
    dedup(tmp_path, "in.jsonl")
    return tmp_path


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_and_compression(tmp_path: Path, name: str) -> None:
    """All: unchanged files. One id: its row with all columns, in order. Both ids: the same bytes, if rows are lines."""
    write(tmp_path / "corpus" / name, ROWS)
    dedup(tmp_path, f"corpus/{name}")
    before = contents(tmp_path / "out")
    assert restore(tmp_path, "--all") == "restored 2 of 2 removed documents; 5 rows in back/kept\n"
    assert contents(tmp_path / "back/kept") == contents(tmp_path / "corpus")
    assert pq.read_table(tmp_path / "back/removed.parquet") == pq.read_table(tmp_path / "out/removed.parquet").slice(2)

    assert restore(tmp_path, ids=["d2"]) == "restored 1 of 2 removed documents; 4 rows in back/kept\n"
    rows = read(tmp_path / "corpus" / name)
    assert read(tmp_path / "back/kept" / name) == [row for row in rows if row["id"] != "d4"]
    assert pq.read_table(tmp_path / "back/removed.parquet") == pq.read_table(tmp_path / "out/removed.parquet").slice(1)
    assert sorted(path.name for path in (tmp_path / "back").iterdir()) == ["kept", "removed.parquet"]

    assert restore(tmp_path, ids=["d4", "d2"]) == "restored 2 of 2 removed documents; 5 rows in back/kept\n"
    assert read(tmp_path / "back/kept" / name) == rows
    if name in TABLES:
        assert decompressed(tmp_path / "back/kept" / name) == decompressed(tmp_path / "corpus" / name)
    assert contents(tmp_path / "out") == before


def test_files_of_one_name_in_several_directories(tmp_path: Path) -> None:
    """Each copy has the path that it has in OUT."""
    for directory in ("a", "b", "b/deep"):
        write(tmp_path / "corpus" / directory / "in.jsonl", ROWS)
    dedup(tmp_path, "corpus")
    assert restore(tmp_path, "--all") == "restored 12 of 12 removed documents; 15 rows in back/kept\n"
    assert contents(tmp_path / "back/kept") == contents(tmp_path / "corpus")


@pytest.mark.parametrize(
    ("given", "packing"), [("texts/*", ""), (".", ""), *(("texts", packing) for packing in COMPRESSORS)]
)
def test_a_directory_of_texts(tmp_path: Path, given: str, packing: str) -> None:
    """A document is a file, and its id is the file name."""
    texts = tmp_path / "corpus" / "texts"
    texts.mkdir(parents=True)
    for row in ROWS:
        (texts / f"{row['id']}.txt{packing}").write_bytes(COMPRESSORS[packing](row["text"].encode()))
    corpus = tmp_path / "corpus"
    done = run(corpus, "dedup", given, "-o", "../out", "--quiet")
    assert done.status == OK
    ids = removed(tmp_path, "out")
    assert len(ids) == 2
    assert restore(tmp_path, ids=ids[:1]) == "restored 1 of 2 removed documents; 4 rows in back/kept\n"
    kept = {path.name for path in (tmp_path / "back/kept").rglob("*.txt*")}
    assert kept == {f"{name}.txt{packing}" for name in (*KEPT, "d2")}
    assert removed(tmp_path) == ids[1:]
    restore(tmp_path, "--all")
    here = {path.name: path.read_bytes() for path in (tmp_path / "back/kept").rglob("*.txt*")}
    assert here == {path.name: path.read_bytes() for path in texts.iterdir()}


def test_texts_between_tables(tmp_path: Path) -> None:
    """Text files before, between and after tables, with one that cannot be read."""
    names = ["a.txt", "b.txt", "c.jsonl", "d.txt", "e.parquet", "f.txt", "g.txt"]
    for number, name in enumerate(names):
        if name.endswith(".txt"):
            (tmp_path / name).write_text(f"{FERRY} {number if name == 'g.txt' else ''}")
        else:
            write(tmp_path / name, ROWS)
    (tmp_path / "d.txt").write_bytes(b"\xff\xfe")
    dedup(tmp_path, *names)
    restore(tmp_path, ids=["b.txt", "g.txt"])
    restored = contents(tmp_path / "back/kept")
    assert set(restored) == {"a.txt", "b.txt", "c.jsonl", "e.parquet", "g.txt"}
    assert removed(tmp_path) == ["d0", "d2", "d4", *(row["id"] for row in ROWS), "f.txt"]
    restore(tmp_path, "--all")
    assert contents(tmp_path / "back/kept") == {name: contents(tmp_path)[name] for name in names}


@pytest.mark.parametrize("fault", FAULTS)
def test_unreadable_rows_are_restored_with_all(tmp_path: Path, fault: str) -> None:
    """Unchanged; with ids only documents are restored."""
    name, content, row, _ = FAULTS[fault]
    (tmp_path / name).write_bytes(content)
    write(tmp_path / "in.jsonl", ROWS)
    dedup(tmp_path, name, "in.jsonl", "--on-error", "quarantine")
    line = restore(tmp_path, "--all")
    assert (", 1 of which cannot be read," in line) == (row is not None or fault == "other columns")
    assert (tmp_path / "back/kept" / name).read_bytes() == content
    counts = json.loads((tmp_path / "out/report.json").read_text())["counts"]
    assert f" {counts['read']:,} rows" in line
    line = restore(tmp_path, ids=["d4"])
    assert f"; {counts['kept'] + 1:,} rows in" in line
    assert read(tmp_path / "back/kept/in.jsonl")[-1]["id"] == "d4"


# An id, and the line of a file that means it.
IDS = {
    "plain": "plain",
    "two words": "two words",
    " spaces ": '" spaces "',
    "line\nbreak": '"line\\nbreak"',
    '"quoted"': '"\\"quoted\\""',
    "tab\there": "tab\there",
    "ünïcödé \U0001f40d": "ünïcödé \U0001f40d",
    "snake": '"\\u0073nake"',
    "a\u2028b\x85c\x0bd": "a\u2028b\x85c\x0bd",
    "carriage\rreturn": "carriage\rreturn",
    "<script>alert(1)</script>": "<script>alert(1)</script>",
    "-": "-",
    "007": "007",
    "../../etc": "../../etc",
}


@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_ids_of_all_kinds(tmp_path: Path, ending: str) -> None:
    """With blank lines between, a byte order mark and both line endings."""
    rows = [
        {"id": "first", "text": FERRY},
        *({"id": identity, "text": FERRY} for identity in IDS),
        {"id": "7", "text": FERRY},
    ]
    write(tmp_path / "in.jsonl", rows)
    dedup(tmp_path, "in.jsonl")
    lines = f"{ending}{ending}".join(IDS.values()) + ending
    (tmp_path / "ids.txt").write_bytes("\ufeff".encode() + lines.encode())
    line = restore(tmp_path, "--ids", "ids.txt")
    assert line == f"restored {len(IDS)} of {len(IDS) + 1} removed documents; {len(IDS) + 1} rows in back/kept\n"
    kept = (tmp_path / "back/kept/in.jsonl").read_text(encoding="utf-8").split("\n")
    assert [json.loads(line)["id"] for line in kept[:-1]] == ["first", *IDS]
    assert removed(tmp_path) == ["7"]


@pytest.mark.parametrize("name", ["in.parquet", "in.jsonl"])
def test_numeric_ids_are_found_by_their_digits(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, [{"id": number - 3, "text": FERRY} for number in range(6)])
    dedup(tmp_path, name)
    restore(tmp_path, ids=["-1", "2"])
    assert [row["id"] for row in read(tmp_path / "back/kept" / name)] == [-3, -1, 2]
    assert removed(tmp_path) == [-2, 0, 1]


def test_default_ids_can_be_restored(tmp_path: Path) -> None:
    """They are the name of the file and the row."""
    rows = [{"text": row["text"]} for row in ROWS]
    write(tmp_path / "in.jsonl", rows)
    dedup(tmp_path, "in.jsonl")
    restore(tmp_path, ids=["in.jsonl:4"])
    assert read(tmp_path / "back/kept/in.jsonl") == [rows[0], rows[1], rows[3], rows[4]]


def test_an_id_restores_all_removed_documents_with_it(tmp_path: Path) -> None:
    """Once, even if the id is given twice."""
    write(tmp_path / "in.jsonl", [{"id": "same", "text": FERRY}] * 3 + [{"id": "other", "text": FERRY}])
    dedup(tmp_path, "in.jsonl")
    assert (
        restore(tmp_path, "--all", ids=["same", "same"]) == "restored 2 of 3 removed documents; 3 rows in back/kept\n"
    )
    assert [row["id"] for row in read(tmp_path / "back/kept/in.jsonl")] == ["same"] * 3


def test_ids_from_standard_input(folder: Path) -> None:
    done = execute(folder, "restore", "out", "--ids", "-", "-o", "back", stdin=b"d4\n")
    assert (done.returncode, done.stderr) == (OK, b"")
    assert done.stdout == b"restored 1 of 2 removed documents; 4 rows in back/kept\n"


def test_an_empty_list_of_ids_is_refused(folder: Path) -> None:
    (folder / "ids.txt").write_text("\n")
    message = one_line(run(folder, "restore", "out", "--ids", "ids.txt", "-o", "back"), FAILURE)
    assert message == "minwise: ids.txt: must list the ids to restore, one per line, got none\n"
    assert not (folder / "back").exists()


def test_a_new_text_file_in_the_input_directory_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    for row in ROWS:
        (tmp_path / "texts" / f"{row['id']}.txt").write_text(row["text"])
    dedup(tmp_path, "texts")
    (tmp_path / "texts" / "d11.txt").write_text("new")
    assert restore(tmp_path, "--all") == "restored 2 of 2 removed documents; 5 rows in back/kept\n"
    assert "d11.txt" not in contents(tmp_path / "back/kept")


@pytest.mark.parametrize(
    ("directory", "given"),
    [
        ("here", ["in.jsonl"]),
        ("here", ["../beside/in.jsonl", "in.jsonl"]),
        ("here/deep", ["../in.jsonl", "../../beside/in.jsonl"]),
        ("here", ["{}/beside/in.jsonl", "in.jsonl"]),
        ("beside", ["texts", "in.jsonl", "{}/here/texts"]),
    ],
)
def test_restoring_from_another_directory(
    tmp_path: Path, directory: str, given: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inputs are found by the directory of the run; the copies have the paths of OUT/kept."""
    for name in ("here", "beside"):
        write(tmp_path / name / "in.jsonl", ROWS)
        (tmp_path / name / "texts").mkdir()
        (tmp_path / name / "texts" / "one.txt").write_text(f"{name} has a text of its own")
    (tmp_path / "here/deep").mkdir()
    (tmp_path / "elsewhere").mkdir()
    inputs = [path.format(tmp_path) for path in given]
    done = run(tmp_path / directory, "dedup", *inputs, "-o", f"{tmp_path}/out", "--quiet")
    assert (done.status, done.err) == (OK, "")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert mw.restore("../out", "same", ids=[])["restored"] == 0
    assert contents(tmp_path / "elsewhere/same/kept") == contents(tmp_path / "out/kept")
    done = run(tmp_path / "elsewhere", "restore", "../out", "--all", "-o", "back")
    assert (done.status, done.err) == (OK, "")
    names = {path.relative_to(tmp_path / "elsewhere/back/kept") for path in files(tmp_path / "elsewhere/back/kept")}
    assert names == {path.relative_to(tmp_path / "out/kept") for path in files(tmp_path / "out/kept")}
    copies = {path.read_bytes() for path in files(tmp_path / "elsewhere/back/kept")}
    assert json_lines(ROWS) in copies
    assert copies <= {path.read_bytes() for name in ("here", "beside") for path in files(tmp_path / name)}


def files(folder: Path) -> list[Path]:
    """Return all files below a folder."""
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "name", [b"a b.jsonl", b"[x]*.jsonl", b"\xff.jsonl", b"\\udcff.jsonl", b"-x.jsonl", "é%20.jsonl".encode()]
)
def test_file_names_of_all_kinds(tmp_path: Path, name: bytes) -> None:
    """Spaces, names like a pattern or an escape, and bytes that are not UTF-8."""
    path = tmp_path / os.fsdecode(name)
    path.write_bytes(json_lines(ROWS))
    done = execute(tmp_path, "dedup", "--quiet", "-o", "out", b"./" + name)
    assert (done.returncode, done.stderr) == (OK, b"")
    restore(tmp_path, ids=["d2", "d4"])
    assert (tmp_path / "back/kept" / os.fsdecode(name)).read_bytes() == json_lines(ROWS)
    path.write_bytes(b"changed")
    line = one_line(run(tmp_path, "restore", "out", "--all", "-o", "other"), FAILURE)
    assert "has changed since the run: 7 bytes now" in line


def test_format_and_columns_are_those_of_the_run(folder: Path) -> None:
    shutil.rmtree(folder / "out")
    (folder / "in.jsonl").rename(folder / "corpus.dump")
    dedup(folder, "corpus.dump", "--format", "jsonl", "--text-column", "text", "--id-column", "year")
    restore(folder, ids=["2001"])
    kept = (folder / "back/kept/corpus.dump").read_text().splitlines()
    assert [json.loads(line)["id"] for line in kept] == ["d0", "d1", "d2", "d3"]


def test_documents_removed_for_another_corpus_are_restored(tmp_path: Path) -> None:
    """Nothing of the other corpus is."""
    write(tmp_path / "old.jsonl", ROWS[:2])
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "bad.txt").write_bytes(b"\xff")
    write(tmp_path / "in.jsonl", ROWS)
    (tmp_path / "a.txt").write_bytes(b"\xff")
    (tmp_path / "b.txt").write_text("a text that is fine")
    dedup(tmp_path, "in.jsonl", "a.txt", "b.txt", "--against", "old", "--against", "old.jsonl")
    assert restore(tmp_path, ids=["d1"]) == "restored 1 of 4 removed documents; 3 rows in back/kept\n"
    assert [row["id"] for row in read(tmp_path / "back/kept/in.jsonl")] == ["d1", "d3"]
    assert removed(tmp_path) == ["d0", "d2", "d4"]
    restore(tmp_path, "--all")
    assert sorted(contents(tmp_path / "back/kept")) == ["a.txt", "b.txt", "in.jsonl"]
    assert read(tmp_path / "back/kept/in.jsonl") == ROWS


@pytest.mark.parametrize("options", [["--group", "components"], ["--keep", "longest"], ["--verify", "none"]])
def test_runs_with_other_settings_can_be_restored(tmp_path: Path, options: list[str]) -> None:
    write(tmp_path / "in.parquet", ROWS)
    dedup(tmp_path, "in.parquet", *options)
    gone = removed(tmp_path, "out")
    assert len(gone) == 2
    restore(tmp_path, ids=gone[1:])
    assert read(tmp_path / "back/kept/in.parquet") == [row for row in ROWS if row["id"] != gone[0]]


def test_a_resumed_run_can_be_restored(tmp_path: Path) -> None:
    """The second run had nothing to do."""
    write(tmp_path / "in.jsonl", ROWS)
    for _ in range(2):
        dedup(tmp_path, "in.jsonl", "--work", "work")
    restore(tmp_path, ids=["d4"])
    assert [row["id"] for row in read(tmp_path / "back/kept/in.jsonl")] == ["d0", "d1", "d3", "d4"]


def test_output_with_json_and_quiet(folder: Path) -> None:
    """One JSON object, or nothing."""
    done = run(folder, "restore", "out", "--all", "-o", "one", "--json")
    expected = {"output": "one", "restored": 2, "still_removed": 0, "quarantined": 0, "rows": 5}
    assert (done.status, json.loads(done.out), done.err) == (OK, expected, "")
    done = run(folder, "restore", "out", "--all", "-o", "two", "--quiet")
    assert (done.status, done.out, done.err) == (OK, "", "")


def test_rows_before_damage_are_restored_by_id(tmp_path: Path) -> None:
    whole = gzip.compress(json_lines([{"id": n, "text": FERRY if n < 2 else f"text {n} " * 9} for n in range(4000)]))
    (tmp_path / "in.jsonl.gz").write_bytes(whole[:-30])
    dedup(tmp_path, "in.jsonl.gz")
    counts = json.loads((tmp_path / "out/report.json").read_text())["counts"]
    assert restore(tmp_path, ids=["1"]).endswith(f"; {counts['kept'] + 1:,} rows in back/kept\n")


def test_an_id_of_several_documents_needs_all(tmp_path: Path) -> None:
    write(tmp_path / "in.jsonl", [{"id": name, "text": FERRY} for name in ("a", "b", "b", "c")])
    dedup(tmp_path, "in.jsonl")
    (tmp_path / "ids.txt").write_text("b\n")
    arguments = ("restore", "out", "--ids", "ids.txt", "-o", "back")
    line = one_line(run(tmp_path, *arguments), FAILURE)
    assert line == "minwise: out: 2 removed documents have the id 'b'; add --all to restore all of them\n"
    assert run(tmp_path, *arguments, "--all").status == OK
    assert [row["id"] for row in read(tmp_path / "back/kept/in.jsonl")] == ["a", "b", "b"]


@pytest.mark.parametrize("name", [b"caf\xe9", b"two\nlines", b"\xff\n\x1b[31m"])
def test_any_name_of_a_directory_and_of_its_files_is_read_again(name: bytes, tmp_path: Path) -> None:
    """Bytes that are not UTF-8 and line feeds, also in the path of the working directory."""
    folder = tmp_path / os.fsdecode(name)
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("the file system refuses such names")
    for number in range(4):
        text = f"a text of several words that is long enough to be compared, number {number // 2}"
        (folder / os.fsdecode(b"%s %d.txt" % (name, number))).write_text(text)
    for where, given in ((tmp_path, folder.name), (folder, ".")):
        output = f"{tmp_path}/out{len(given)}"
        done = run(where, "dedup", given, "-o", output)
        assert (done.status, done.err) == (OK, "")
        for command in (
            ("report", output),
            ("restore", output, "--all", "-o", f"{output}-all"),
            ("rethreshold", output, "--threshold", "0.9", "-o", f"{output}-higher"),
        ):
            done = run(tmp_path, *command)
            assert (done.status, done.err) == (OK, ""), command
        restored = sorted(path.read_bytes() for path in Path(f"{output}-all/kept").iterdir())
        assert restored == sorted(path.read_bytes() for path in folder.iterdir())
