"""Opening: files, directories, patterns and URLs become sources in one order, whatever the order they are named in."""

import os
from collections.abc import Iterator
from pathlib import Path

import fsspec  # type: ignore[import-untyped]
import numpy as np
import pytest
from support.expect import complaint
from support.source_rows import COMPRESS, TEXTS, ids_of, json_lines, texts_of, write

from minwise.errors import ConfigError, InputError
from minwise.inputs.open_sources import FORMATS, open_files
from minwise.inputs.source import Source


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory to be in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def memory() -> Iterator[fsspec.AbstractFileSystem]:
    """The file system of fsspec in memory, empty before and after."""
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]
    yield filesystem
    filesystem.store.clear()


def names(sources: list[Source]) -> list[str]:
    """Of all files."""
    return [name for one in sources for name in one.locate(np.arange(one.known_rows() or 1))[0].to_pylist()]


def touch(*paths: str) -> None:
    """Makes text files."""
    for path in paths:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(path)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("x.parquet", "ParquetFile"),
        ("x.pq", "ParquetFile"),
        ("x.jsonl", "JsonLinesFile"),
        ("x.NDJSON.GZ", "JsonLinesFile"),
        ("x.csv.zst", "DelimitedFile"),
        ("x.tsv.bz2", "DelimitedFile"),
        ("x.arrow", "ArrowFile"),
        ("x.ipc", "ArrowFile"),
        ("x.feather", "ArrowFile"),
        ("x.txt", "TextFiles"),
        ("x.md.gz", "TextFiles"),
        ("x", "TextFiles"),
        ("parquet", "TextFiles"),
    ],
)
def test_the_name_tells_the_format(name: str, kind: str, here: Path) -> None:
    """Compressed or not, in any case."""
    (here / name).write_bytes(b"")
    (found,), _ = open_files([name])
    assert (type(found).__name__, found.name) == (kind, name)


def test_json_is_lines_if_it_looks_like_lines(here: Path) -> None:
    """Else a document."""
    (here / "lines.json").write_bytes(json_lines({"text": TEXTS}))
    (here / "lines.json.gz").write_bytes(COMPRESS[".gz"](json_lines({"text": TEXTS})))
    (here / "pretty.json").write_text('{\n "text": "x"\n}')
    kinds = [type(open_files([name])[0][0]).__name__ for name in ("lines.json", "lines.json.gz", "pretty.json")]
    assert kinds == ["JsonLinesFile", "JsonLinesFile", "TextFiles"]


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_can_be_told(name: str, here: Path) -> None:
    """For files with any name."""
    (here / "data.bin").write_bytes(b"")
    (found,), _ = open_files(["data.bin"], format=name)
    expected = {"parquet": "Parquet", "jsonl": "JsonLines", "arrow": "Arrow", "text": "Text", "baskets": "Basket"}
    assert type(found).__name__.startswith(expected.get(name.removeprefix("named-"), "Delimited"))
    assert getattr(found, "delimiter", "\t") == ("," if name == "csv" else "\t")


def test_an_unknown_format_is_refused(here: Path) -> None:
    """With those there are."""
    touch("x")
    message = complaint(ConfigError, lambda: open_files(["x"], format="xml"))
    assert message == "format must be one of parquet, jsonl, csv, tsv, arrow, text, baskets, named-baskets, got 'xml'"


@pytest.mark.parametrize("name", ["x.dat", "x.txt", "x", "x.dat.gz"])
def test_what_is_no_table_has_a_set_on_each_line(name: str, here: Path) -> None:
    """If sets are what is looked for; a table stays one."""
    touch(name, "t.csv")
    (found,), _ = open_files([name], sets=True)
    (table,), _ = open_files(["t.csv"], sets=True)
    assert (type(found).__name__, type(table).__name__) == ("BasketFile", "DelimitedFile")


def test_order_is_by_bytes_and_not_by_arguments(here: Path) -> None:
    """Files named twice, in whatever way, count once."""
    touch("b.txt", "B.txt", "a/z.txt", "é.txt", "a-b.txt", "z.txt")
    inputs = ["z.txt", "é.txt", "./b.txt", "B.txt", "a-b.txt", "a", "a/../b.txt", str(here / "b.txt"), "a//z.txt"]
    expected = [str(here / "b.txt"), "B.txt", "a-b.txt", "a/z.txt", "z.txt", "é.txt"]
    for given in (inputs, inputs[::-1]):
        assert names(open_files(given)[0]) == expected


def test_texts_are_grouped_between_tables(here: Path) -> None:
    """Neighbours only, so that the order holds."""
    touch("a.txt", "b.txt", "d.txt")
    write(here / "c.jsonl", TEXTS)
    sources, _ = open_files(["d.txt", "c.jsonl", "b.txt", "a.txt"])
    assert [one.known_rows() for one in sources] == [2, None, 1]


def test_a_directory_of_tables_and_one_of_anything_else(here: Path) -> None:
    """What is hidden counts for neither; a few tables among other files are documents, and no mixture is guessed at."""
    for name in ("data/b/x.parquet", "data/a.jsonl", "data/c.csv"):
        write(here / name, TEXTS)
    touch("data/.hidden", "data/_SUCCESS", "data/_tmp/x.txt", "data/.git/x")
    sources, root = open_files(["data"])
    assert [one.name for one in sources] == ["data/a.jsonl", "data/b/x.parquet", "data/c.csv"]
    assert [texts_of(one) for one in sources] == [TEXTS] * 3
    assert root == "data"
    touch("data/README")
    assert "3 of its 4 files are tables, data/README is not" in complaint(InputError, lambda: open_files(["data"]))
    listed = ["data/README", "data/a.jsonl", "data/b/x.parquet", "data/c.csv"]
    for name in ("text", "jsonl"):
        assert names(open_files(["data/"], format=name)[0]) == listed
    write(here / "tree/table.csv", TEXTS)
    touch("tree/a.py", "tree/b.py")
    (only,), _ = open_files(["tree"])
    assert names([only]) == ["tree/a.py", "tree/b.py", "tree/table.csv"]


def test_ids_of_documents_are_relative_to_their_directory(here: Path) -> None:
    """Those of files named themselves are as named; two that would be the same are whole."""
    touch("docs/a/x.txt", "docs/b.txt", "more/b.txt", "y.txt")
    (one,), _ = open_files(["docs", "y.txt"])
    assert one.default_ids(np.arange(3)).to_pylist() == ["a/x.txt", "b.txt", "y.txt"]
    (two,), _ = open_files(["docs", "more"])
    assert two.default_ids(np.arange(3)).to_pylist() == ["a/x.txt", "docs/b.txt", "more/b.txt"]
    os.chdir("docs")
    (dot,), _ = open_files(["."])
    assert dot.default_ids(np.arange(2)).to_pylist() == names([dot]) == ["a/x.txt", "b.txt"]


def test_ids_of_rows_are_name_and_number(here: Path) -> None:
    """Unless the file has ids."""
    write(here / "x.jsonl", TEXTS)
    (found,), _ = open_files(["x.jsonl"])
    assert ids_of(found) == []
    assert found.default_ids(np.array([5, 0])).to_pylist() == ["x.jsonl:5", "x.jsonl:0"]
    assert found.locate(np.array([5, 0]))[0].to_pylist() == ["x.jsonl"] * 2


def test_links_to_directories_are_followed_but_not_in_circles(here: Path) -> None:
    """A link is a name like any other."""
    touch("docs/x.txt", "elsewhere/y.txt")
    (here / "docs" / "loop").symlink_to(here / "docs")
    (here / "docs" / "more").symlink_to(here / "elsewhere")
    assert names(open_files(["docs"])[0]) == ["docs/more/y.txt", "docs/x.txt"]


def test_patterns(here: Path) -> None:
    """Unless there is a file of that very name; ``**`` goes down; directories do not match."""
    touch("a/x.txt", "a/b/c/y.txt", "a/z.md", "a[1].txt", "a1.txt")
    assert names(open_files(["a/*.txt"])[0]) == ["a/x.txt"]
    assert names(open_files(["a/**/*.txt"])[0]) == ["a/b/c/y.txt", "a/x.txt"]
    assert names(open_files(["a[1].txt"])[0]) == ["a[1].txt"]
    assert names(open_files(["./a[12].t*"])[0]) == ["a1.txt"]
    assert complaint(InputError, lambda: open_files(["a/*.csv"])) == "a/*.csv: no file matches this pattern"
    assert complaint(InputError, lambda: open_files(["a/b/*"])).endswith("no file matches this pattern")


def test_what_is_not_there(here: Path) -> None:
    """A missing file, an empty directory, a pipe, no name at all."""
    with pytest.raises(FileNotFoundError) as caught:
        open_files(["missing.txt"])
    assert caught.value.filename == "missing.txt"
    touch("empty/.hidden")
    assert complaint(InputError, lambda: open_files(["empty"])).startswith("empty: the directory must hold a file")
    os.mkfifo("pipe")
    assert "must be a file that can be read twice" in complaint(InputError, lambda: open_files(["pipe"]))
    complaint(InputError, lambda: open_files([""]))


@pytest.mark.parametrize(
    ("inputs", "root"),
    [
        (["a/b/x", "a/c/y"], "a"),
        (["a/b/x"], "a/b"),
        (["a/b/x", "z"], ""),
        (["a/b/x", "../up"], ""),
        (["a/b", "a"], "a"),
    ],
)
def test_the_root_is_what_all_have_in_common(inputs: list[str], root: str, here: Path) -> None:
    """A directory, never part of a name; copies go below it."""
    os.chdir(here)
    (here / "in").mkdir()
    touch("up")
    os.chdir("in")
    touch("a/b/x", "a/c/y", "z")
    sources, found = open_files(inputs)
    assert found == root
    for one in sources:
        one.copy_kept(np.ones(one.known_rows() or 0, dtype=np.bool_), here / "out", root)
    assert len([path for path in (here / "out").rglob("*") if path.is_file()]) == len(names(sources))


def test_copies_that_would_get_one_name_are_refused(here: Path) -> None:
    """Rather than written over each other."""
    (here / "in").mkdir()
    touch("x", "in/_up/x")
    os.chdir("in")
    assert "same name" in complaint(InputError, lambda: open_files(["../x", "_up/x"]))


def test_urls_are_files_directories_and_patterns(memory: fsspec.AbstractFileSystem, tmp_path: Path) -> None:
    """Of every format, read, copied, and named as they were given."""
    for name in ("x.parquet", "a/x.jsonl", "a/x.arrow", "a/x.csv"):
        memory.pipe(f"/data/{name}", write(tmp_path / name, TEXTS, range(len(TEXTS))).read_bytes())
    memory.pipe("/data/a/x.jsonl.gz", COMPRESS[".gz"](json_lines({"text": TEXTS})))
    memory.pipe("/data/_SUCCESS", b"")
    sources, root = open_files(["memory://data"])
    listed = ["a/x.arrow", "a/x.csv", "a/x.jsonl", "a/x.jsonl.gz", "x.parquet"]
    assert root == "memory://data"
    assert [one.name for one in sources] == [f"memory://data/{name}" for name in listed]
    keep = np.arange(len(TEXTS)) % 2 == 0
    for one in sources:
        assert texts_of(one) == TEXTS
        assert one.copy_kept(keep, tmp_path / "out", root) == keep.sum()
    copies, _ = open_files([str(tmp_path / "out")])
    assert [texts_of(one) for one in copies] == [TEXTS[::2]] * 5
    assert [one.name for one in open_files(["memory://data/**/*.jsonl*"])[0]] == [
        "memory://data/a/x.jsonl",
        "memory://data/a/x.jsonl.gz",
    ]
    (single,), root = open_files(["memory://data/x.parquet", "memory:///data/x.parquet"])
    assert (root, single.known_rows()) == ("memory://" + single.name.removeprefix("memory://").rsplit("/", 1)[0], 7)


def test_urls_of_texts_and_of_nothing(memory: fsspec.AbstractFileSystem) -> None:
    """With a fingerprint that changes with the file."""
    memory.pipe("/docs/a/x.txt", b"one")
    memory.pipe("/y.txt", b"two")
    (found,), _ = open_files(["memory://docs", "memory://*.txt"])
    assert texts_of(found) == ["one", "two"]
    assert found.default_ids(np.arange(2)).to_pylist() == ["a/x.txt", "memory://y.txt"]
    before = found.fingerprint()
    memory.pipe("/y.txt", b"TWO")
    assert found.fingerprint() != before
    with pytest.raises(FileNotFoundError) as caught:
        open_files(["memory://docs/missing.csv"])
    assert caught.value.filename == "memory://docs/missing.csv"
    assert "no file matches" in complaint(InputError, lambda: open_files(["memory://docs/*.csv"]))
    memory.rm("/y.txt")
    with pytest.raises(FileNotFoundError) as gone:
        texts_of(found)
    assert gone.value.filename == "memory://y.txt"


def test_local_urls(here: Path) -> None:
    """``file://`` goes the same way."""
    path = write(here / "x.parquet", TEXTS)
    (found,), root = open_files([f"file://{path}"])
    assert texts_of(found) == TEXTS
    assert root == f"file://{here}"
