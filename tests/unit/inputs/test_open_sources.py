"""Files, directories, patterns and URLs become sources in one order, whatever the order of the inputs."""

import os
from collections.abc import Iterator
from pathlib import Path

import fsspec  # type: ignore[import-untyped]
import numpy as np
import pytest
from support.expect import error_message
from support.source_rows import COMPRESS, TEXTS, ids_of, json_lines, texts_of, write

from minwise.errors import ConfigError, InputError
from minwise.inputs.open_sources import FORMATS, open_files
from minwise.inputs.source import Source


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty directory, the working directory of the test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def memory() -> Iterator[fsspec.AbstractFileSystem]:
    """Return the in-memory file system of fsspec, empty before and after."""
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]
    yield filesystem
    filesystem.store.clear()


def names(sources: list[Source]) -> list[str]:
    """Return the names of all files."""
    return [name for source in sources for name in source.locate(np.arange(source.known_rows() or 1))[0].to_pylist()]


def touch(*paths: str) -> None:
    """Create text files."""
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
def test_the_suffix_determines_the_format(name: str, kind: str, here: Path) -> None:
    """Compressed or not, in any case."""
    (here / name).write_bytes(b"")
    (found,), _ = open_files([name])
    assert (type(found).__name__, found.name) == (kind, name)


def test_a_json_file_is_json_lines_by_its_first_line_or_else_a_document(here: Path) -> None:
    (here / "lines.json").write_bytes(json_lines({"text": TEXTS}))
    (here / "lines.json.gz").write_bytes(COMPRESS[".gz"](json_lines({"text": TEXTS})))
    (here / "pretty.json").write_text('{\n "text": "x"\n}')
    kinds = [type(open_files([name])[0][0]).__name__ for name in ("lines.json", "lines.json.gz", "pretty.json")]
    assert kinds == ["JsonLinesFile", "JsonLinesFile", "TextFiles"]


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_applies_to_files_with_any_name(name: str, here: Path) -> None:
    (here / "data.bin").write_bytes(b"")
    (found,), _ = open_files(["data.bin"], format=name)
    expected = {"parquet": "Parquet", "jsonl": "JsonLines", "arrow": "Arrow", "text": "Text", "baskets": "Basket"}
    assert type(found).__name__.startswith(expected.get(name.removeprefix("named-"), "Delimited"))
    assert getattr(found, "delimiter", "\t") == ("," if name == "csv" else "\t")


def test_an_unknown_format_is_rejected(here: Path) -> None:
    touch("x")
    message = error_message(ConfigError, lambda: open_files(["x"], format="xml"))
    assert message == "format must be one of parquet, jsonl, csv, tsv, arrow, text, baskets, named-baskets, got 'xml'"


@pytest.mark.parametrize("name", ["x.dat", "x.txt", "x", "x.dat.gz"])
def test_with_sets_a_file_that_is_not_a_table_has_a_set_on_each_line(name: str, here: Path) -> None:
    touch(name, "t.csv")
    (found,), _ = open_files([name], sets=True)
    (table,), _ = open_files(["t.csv"], sets=True)
    assert (type(found).__name__, type(table).__name__) == ("BasketFile", "DelimitedFile")


def test_sources_are_ordered_by_the_bytes_of_their_names(here: Path) -> None:
    """A file named twice, in different ways, is read once."""
    touch("b.txt", "B.txt", "a/z.txt", "é.txt", "a-b.txt", "z.txt")
    inputs = ["z.txt", "é.txt", "./b.txt", "B.txt", "a-b.txt", "a", "a/../b.txt", str(here / "b.txt"), "a//z.txt"]
    expected = [str(here / "b.txt"), "B.txt", "a-b.txt", "a/z.txt", "z.txt", "é.txt"]
    for given in (inputs, inputs[::-1]):
        assert names(open_files(given)[0]) == expected


def test_neighbouring_text_files_are_one_source(here: Path) -> None:
    """Only neighbours, so that the order holds."""
    touch("a.txt", "b.txt", "d.txt")
    write(here / "c.jsonl", TEXTS)
    sources, _ = open_files(["d.txt", "c.jsonl", "b.txt", "a.txt"])
    assert [source.known_rows() for source in sources] == [2, None, 1]


def test_a_directory_is_tables_or_documents(here: Path) -> None:
    """Hidden files do not count; a few tables among other files are documents; other mixtures are rejected."""
    for name in ("data/b/x.parquet", "data/a.jsonl", "data/c.csv"):
        write(here / name, TEXTS)
    touch("data/.hidden", "data/_SUCCESS", "data/_tmp/x.txt", "data/.git/x")
    sources, root = open_files(["data"])
    assert [source.name for source in sources] == ["data/a.jsonl", "data/b/x.parquet", "data/c.csv"]
    assert [texts_of(source) for source in sources] == [TEXTS] * 3
    assert root == "data"
    touch("data/README")
    assert "3 of its 4 files are tables, data/README is not" in error_message(InputError, lambda: open_files(["data"]))
    listed = ["data/README", "data/a.jsonl", "data/b/x.parquet", "data/c.csv"]
    for name in ("text", "jsonl"):
        assert names(open_files(["data/"], format=name)[0]) == listed
    write(here / "tree/table.csv", TEXTS)
    touch("tree/a.py", "tree/b.py")
    (only,), _ = open_files(["tree"])
    assert names([only]) == ["tree/a.py", "tree/b.py", "tree/table.csv"]


def test_ids_of_documents_are_paths_relative_to_their_directory(here: Path) -> None:
    """The id of a file that was named itself is its name; ids that would be equal are complete paths."""
    touch("docs/a/x.txt", "docs/b.txt", "more/b.txt", "y.txt")
    (documents,), _ = open_files(["docs", "y.txt"])
    assert documents.default_ids(np.arange(3)).to_pylist() == ["a/x.txt", "b.txt", "y.txt"]
    (both,), _ = open_files(["docs", "more"])
    assert both.default_ids(np.arange(3)).to_pylist() == ["a/x.txt", "docs/b.txt", "more/b.txt"]
    os.chdir("docs")
    (dot,), _ = open_files(["."])
    assert dot.default_ids(np.arange(2)).to_pylist() == names([dot]) == ["a/x.txt", "b.txt"]


def test_default_ids_of_rows_are_name_and_row(here: Path) -> None:
    write(here / "x.jsonl", TEXTS)
    (found,), _ = open_files(["x.jsonl"])
    assert ids_of(found) == []
    assert found.default_ids(np.array([5, 0])).to_pylist() == ["x.jsonl:5", "x.jsonl:0"]
    assert found.locate(np.array([5, 0]))[0].to_pylist() == ["x.jsonl"] * 2


def test_links_to_directories_are_followed_but_not_in_circles(here: Path) -> None:
    touch("docs/x.txt", "elsewhere/y.txt")
    (here / "docs" / "loop").symlink_to(here / "docs")
    (here / "docs" / "more").symlink_to(here / "elsewhere")
    assert names(open_files(["docs"])[0]) == ["docs/more/y.txt", "docs/x.txt"]


def test_patterns_match_files(here: Path) -> None:
    """A file of that very name takes precedence; ``**`` matches directories; directories do not match."""
    touch("a/x.txt", "a/b/c/y.txt", "a/z.md", "a[1].txt", "a1.txt")
    assert names(open_files(["a/*.txt"])[0]) == ["a/x.txt"]
    assert names(open_files(["a/**/*.txt"])[0]) == ["a/b/c/y.txt", "a/x.txt"]
    assert names(open_files(["a[1].txt"])[0]) == ["a[1].txt"]
    assert names(open_files(["./a[12].t*"])[0]) == ["a1.txt"]
    assert error_message(InputError, lambda: open_files(["a/*.csv"])) == "a/*.csv: no file matches this pattern"
    assert error_message(InputError, lambda: open_files(["a/b/*"])).endswith("no file matches this pattern")


def test_missing_empty_and_unusable_inputs_are_rejected(here: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        open_files(["missing.txt"])
    assert caught.value.filename == "missing.txt"
    touch("empty/.hidden")
    assert error_message(InputError, lambda: open_files(["empty"])).startswith("empty: the directory must hold a file")
    os.mkfifo("pipe")
    assert "must be a file that can be read twice" in error_message(InputError, lambda: open_files(["pipe"]))
    error_message(InputError, lambda: open_files([""]))


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
def test_the_root_is_the_common_parent_directory(inputs: list[str], root: str, here: Path) -> None:
    """Never part of a name; copies keep the structure below it."""
    os.chdir(here)
    (here / "in").mkdir()
    touch("up")
    os.chdir("in")
    touch("a/b/x", "a/c/y", "z")
    sources, found = open_files(inputs)
    assert found == root
    for source in sources:
        source.copy_kept(np.ones(source.known_rows() or 0, dtype=np.bool_), here / "out", root)
    assert len([path for path in (here / "out").rglob("*") if path.is_file()]) == len(names(sources))


def test_inputs_whose_copies_would_have_the_same_name_are_rejected(here: Path) -> None:
    (here / "in").mkdir()
    touch("x", "in/_up/x")
    os.chdir("in")
    assert "same name" in error_message(InputError, lambda: open_files(["../x", "_up/x"]))


def test_urls_are_files_directories_and_patterns(memory: fsspec.AbstractFileSystem, tmp_path: Path) -> None:
    """In every format, read and copied, with their names as given."""
    for name in ("x.parquet", "a/x.jsonl", "a/x.arrow", "a/x.csv"):
        memory.pipe(f"/data/{name}", write(tmp_path / name, TEXTS, range(len(TEXTS))).read_bytes())
    memory.pipe("/data/a/x.jsonl.gz", COMPRESS[".gz"](json_lines({"text": TEXTS})))
    memory.pipe("/data/_SUCCESS", b"")
    sources, root = open_files(["memory://data"])
    listed = ["a/x.arrow", "a/x.csv", "a/x.jsonl", "a/x.jsonl.gz", "x.parquet"]
    assert root == "memory://data"
    assert [source.name for source in sources] == [f"memory://data/{name}" for name in listed]
    keep = np.arange(len(TEXTS)) % 2 == 0
    for source in sources:
        assert texts_of(source) == TEXTS
        assert source.copy_kept(keep, tmp_path / "out", root) == keep.sum()
    copies, _ = open_files([str(tmp_path / "out")])
    assert [texts_of(source) for source in copies] == [TEXTS[::2]] * 5
    assert [source.name for source in open_files(["memory://data/**/*.jsonl*"])[0]] == [
        "memory://data/a/x.jsonl",
        "memory://data/a/x.jsonl.gz",
    ]
    (single,), root = open_files(["memory://data/x.parquet", "memory:///data/x.parquet"])
    assert (root, single.known_rows()) == ("memory://" + single.name.removeprefix("memory://").rsplit("/", 1)[0], 7)


def test_urls_of_texts_and_of_missing_files(memory: fsspec.AbstractFileSystem) -> None:
    """The fingerprint changes with the file."""
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
    assert "no file matches" in error_message(InputError, lambda: open_files(["memory://docs/*.csv"]))
    memory.rm("/y.txt")
    with pytest.raises(FileNotFoundError) as gone:
        texts_of(found)
    assert gone.value.filename == "memory://y.txt"


def test_file_urls_are_read(here: Path) -> None:
    path = write(here / "x.parquet", TEXTS)
    (found,), root = open_files([f"file://{path}"])
    assert texts_of(found) == TEXTS
    assert root == f"file://{here}"
