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
from minwise.inputs.find_files import FORMATS
from minwise.inputs.open_sources import open_files, open_sources
from minwise.inputs.source import Columns, Source


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
    (found,) = open_files([name]).sources
    assert (type(found).__name__, found.name) == (kind, name)


def test_the_content_of_a_json_file_determines_its_format(here: Path) -> None:
    """Lines or an array, with white space or a byte order mark before them, compressed or not."""
    lines = json_lines({"text": TEXTS})
    for name, content in (
        ("lines.json", lines),
        ("blank.json", b"\n \n" + lines),
        ("lines.json.gz", COMPRESS[".gz"](lines)),
        ("array.json", b'[{"text": "x"}]'),
        ("long.json", b"\xef\xbb\xbf\n [" + b" " * (1 << 18) + b"]"),
    ):
        (here / name).write_bytes(content)
        kind = type(open_files([name]).sources[0]).__name__
        assert kind == ("JsonArrayFile" if name in ("array.json", "long.json") else "JsonLinesFile"), name


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ('{\n "text": "x"\n}', "one object over several lines"),
        ('"x"', "a value of type str"),
        ("hello there, this is a text", "text that begins with 'hello there, this is'"),
    ],
)
def test_a_json_file_that_is_no_table_is_refused_with_what_was_found(content: str, found: str, here: Path) -> None:
    (here / "x.json").write_text(content)
    message = error_message(InputError, lambda: open_files(["x.json"]))
    assert message == (
        f"x.json: must be a JSON array or one JSON object per line, got {found}; "
        "set format='text' for one document per file"
    )
    assert texts_of(open_files(["x.json"], format="text").sources[0]) == [content]
    (here / "folder").mkdir()
    (here / "folder" / "x.json").write_text(content)
    assert message.partition(":")[2] in error_message(InputError, lambda: open_files(["folder"]))


def test_a_json_object_in_a_source_tree_is_a_document_like_the_others(here: Path) -> None:
    touch("tree/a.py")
    (here / "tree" / "package.json").write_text('{\n "name": "x"\n}')
    assert names(open_files(["tree"]).sources) == ["tree/a.py", "tree/package.json"]


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_applies_to_files_with_any_name(name: str, here: Path) -> None:
    (here / "data.bin").write_bytes(b"")
    (found,) = open_files(["data.bin"], format=name).sources
    expected = {"parquet": "Parquet", "jsonl": "JsonLines", "arrow": "Arrow", "text": "Text", "baskets": "Basket"}
    expected |= {"json": "JsonArray", "lines": "Lines"}
    assert type(found).__name__.startswith(expected.get(name.removeprefix("named-"), "Delimited"))
    assert getattr(found, "usual", "\t") == ("," if name == "csv" else "\t")


def test_an_unknown_format_is_rejected(here: Path) -> None:
    touch("x")
    message = error_message(ConfigError, lambda: open_files(["x"], format="xml"))
    assert message == f"format must be one of {', '.join(FORMATS)}, got 'xml'"


@pytest.mark.parametrize("name", ["x.dat", "x.txt", "x", "x.dat.gz"])
def test_with_sets_a_file_that_is_not_a_table_has_a_set_on_each_line(name: str, here: Path) -> None:
    touch(name, "t.csv")
    (found,) = open_files([name], sets=True).sources
    (table,) = open_files(["t.csv"], sets=True).sources
    assert (type(found).__name__, type(table).__name__) == ("BasketFile", "DelimitedFile")


def test_sources_are_ordered_by_the_bytes_of_their_names(here: Path) -> None:
    """A file named twice, in different ways, is read once."""
    touch("b.txt", "B.txt", "a/z.txt", "é.txt", "a-b.txt", "z.txt")
    inputs = ["z.txt", "é.txt", "./b.txt", "B.txt", "a-b.txt", "a", "a/../b.txt", str(here / "b.txt"), "a//z.txt"]
    expected = [str(here / "b.txt"), "B.txt", "a-b.txt", "a/z.txt", "z.txt", "é.txt"]
    for given in (inputs, inputs[::-1]):
        assert names(open_files(given).sources) == expected


def test_neighbouring_text_files_are_one_source(here: Path) -> None:
    """Only neighbours, so that the order holds."""
    touch("a.txt", "b.txt", "d.txt")
    write(here / "c.jsonl", TEXTS)
    sources = open_files(["d.txt", "c.jsonl", "b.txt", "a.txt"]).sources
    assert [source.known_rows() for source in sources] == [2, None, 1]


def test_a_directory_of_tables_skips_the_files_of_their_writers(here: Path) -> None:
    """As Spark and Hive do; each entry is counted once, by reason."""
    for name in ("data/b/x.parquet", "data/a.jsonl", "data/c.csv", "data/_year=2024/x.csv"):
        write(here / name, TEXTS)
    touch("data/.hidden", "data/.git/x", "data/b/.part-0.crc", "data/part-0.crc")
    touch("data/_SUCCESS", "data/b/_metadata", "data/_common_metadata", "data/_committed_12", "data/_started_12")
    touch("data/_delta_log/0.json", "data/_delta_log/1.json", "data/_temporary/0/x.csv")
    touch("data/_tmp/x.txt", "data/_tmp/y.txt", "data/_notes.txt")
    opened = open_files(["data"])
    listed = ["data/_year=2024/x.csv", "data/a.jsonl", "data/b/x.parquet", "data/c.csv"]
    assert [source.name for source in opened.sources] == listed
    assert [texts_of(source) for source in opened.sources] == [TEXTS] * 4
    assert opened.root == "data"
    assert opened.skipped == {
        "marker files of table writers": 8,
        "names that begin with a dot": 3,
        "names that begin with an underscore, among tables": 2,
    }


def test_names_of_loose_files_may_begin_with_an_underscore(here: Path) -> None:
    touch("tree/__init__.py", "tree/a.py", "tree/_private/b.py", "tree/__pycache__/a.pyc", "tree/.venv/c.py")
    touch("tree/_SUCCESS")
    opened = open_files(["tree"])
    assert names(opened.sources) == ["tree/__init__.py", "tree/_private/b.py", "tree/a.py"]
    assert opened.skipped == {
        "caches of compiled Python": 1,
        "marker files of table writers": 1,
        "names that begin with a dot": 1,
    }
    touch("only/__init__.py")
    assert names(open_files(["only"]).sources) == ["only/__init__.py"]


@pytest.mark.parametrize("given", ["data", "data/*", "data/**"])
def test_tables_and_loose_files_in_one_directory_are_refused(given: str, here: Path) -> None:
    """However many there are of each; a format decides."""
    write(here / "data/a.jsonl", TEXTS)
    touch("data/README.md", "data/NOTES.md", "data/MORE.md")
    assert error_message(InputError, lambda: open_files([given])) == (
        f"{given}: 1 of its 4 files are tables, data/MORE.md is not; name the tables with a pattern such as "
        "'data/*.jsonl', or set format='text' for one document per file"
    )
    listed = ["data/MORE.md", "data/NOTES.md", "data/README.md", "data/a.jsonl"]
    for name in ("text", "jsonl", "lines"):
        assert names(open_files([given], format=name).sources) == listed
    assert names(open_files(["data/*.jsonl"]).sources) == ["data/a.jsonl"]


def test_marker_files_do_not_match_a_pattern(here: Path) -> None:
    write(here / "data/a.jsonl", TEXTS)
    touch("data/_SUCCESS", "data/.a.jsonl.crc")
    opened = open_files(["data/*"])
    assert (names(opened.sources), opened.skipped) == (["data/a.jsonl"], {"marker files of table writers": 1})


def test_ids_of_documents_are_paths_relative_to_their_directory(here: Path) -> None:
    """The id of a file that was named itself is its name; ids that would be equal are complete paths."""
    touch("docs/a/x.txt", "docs/b.txt", "more/b.txt", "y.txt")
    (documents,) = open_files(["docs", "y.txt"]).sources
    assert documents.default_ids(np.arange(3)).to_pylist() == ["a/x.txt", "b.txt", "y.txt"]
    (both,) = open_files(["docs", "more"]).sources
    assert both.default_ids(np.arange(3)).to_pylist() == ["a/x.txt", "docs/b.txt", "more/b.txt"]
    os.chdir("docs")
    (dot,) = open_files(["."]).sources
    assert dot.default_ids(np.arange(2)).to_pylist() == names([dot]) == ["a/x.txt", "b.txt"]


def test_default_ids_of_rows_are_name_and_row(here: Path) -> None:
    write(here / "x.jsonl", TEXTS)
    (found,) = open_files(["x.jsonl"]).sources
    assert ids_of(found) == []
    assert found.default_ids(np.array([5, 0])).to_pylist() == ["x.jsonl:5", "x.jsonl:0"]
    assert found.locate(np.array([5, 0]))[0].to_pylist() == ["x.jsonl"] * 2


def test_links_to_directories_are_followed_but_not_in_circles(here: Path) -> None:
    touch("docs/x.txt", "elsewhere/y.txt")
    (here / "docs" / "loop").symlink_to(here / "docs")
    (here / "docs" / "more").symlink_to(here / "elsewhere")
    (here / "elsewhere" / "back").symlink_to(here / "docs")
    opened = open_files(["docs"])
    assert names(opened.sources) == ["docs/more/y.txt", "docs/x.txt"]
    assert opened.skipped == {"links to directories that are read already": 2}


def test_a_file_that_is_reached_twice_is_read_once_under_its_own_name(here: Path) -> None:
    """Through links or by its name; hard links are separate files."""
    touch("docs/b.txt", "docs/z/c.txt")
    (here / "docs" / "a.txt").symlink_to("b.txt")
    (here / "docs" / "d").symlink_to("z")
    (here / "docs" / "hard.txt").hardlink_to(here / "docs" / "b.txt")
    opened = open_files(["docs"])
    assert names(opened.sources) == ["docs/b.txt", "docs/hard.txt", "docs/z/c.txt"]
    assert opened.skipped == {"files reached a second time": 1, "links to directories that are read already": 1}
    again = open_files(["docs", "docs/b.txt", "./docs/a.txt", f"file://{here}/docs/b.txt"])
    assert len(names(again.sources)) == 3
    assert again.skipped["files reached a second time"] == 4


@pytest.mark.posix
def test_links_to_nothing_and_special_files_are_counted(here: Path) -> None:
    touch("docs/x.txt")
    (here / "docs" / "gone").symlink_to("missing")
    (here / "docs" / "self").symlink_to("self")
    os.mkfifo("docs/pipe")
    opened = open_files(["docs"])
    assert names(opened.sources) == ["docs/x.txt"]
    assert opened.skipped == {"links to nothing": 2, "pipes, sockets and devices": 1}
    (here / "docs" / "to_pipe").symlink_to("pipe")
    for given in ("docs", "docs/*", f"file://{here}/docs"):
        assert open_files([given]).skipped == {"links to nothing": 2, "pipes, sockets and devices": 2}


def test_entries_without_permission_are_counted(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a directory and by a pattern; a directory that was given is an error."""
    touch("docs/x.txt", "docs/hidden.txt", "docs/closed/y.txt")
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith(("hidden.txt", "closed")))
    for given, count in (("docs", 2), ("docs/*", 1)):
        opened = open_files([given])
        assert names(opened.sources) == ["docs/x.txt"]
        assert opened.skipped == {"files and directories without permission to read them": count}


@pytest.mark.posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may read everything")
def test_modes_decide_on_permission(here: Path) -> None:
    touch("docs/x.txt", "docs/hidden.txt", "docs/closed/y.txt")
    for name in ("hidden.txt", "closed"):
        (here / "docs" / name).chmod(0)
    opened = open_files(["docs"])
    (here / "docs" / "closed").chmod(0o700)
    assert opened.skipped == {"files and directories without permission to read them": 2}


def test_files_that_are_all_empty_are_refused(here: Path) -> None:
    """An empty file beside others has no rows."""
    for name in ("x.jsonl", "y.jsonl"):
        (here / name).write_bytes(b"")
    one = error_message(InputError, lambda: open_sources("x.jsonl", Columns(), None))
    assert one == "x.jsonl: nothing to read, 0 bytes; check the path, or the program that wrote it"
    assert error_message(InputError, lambda: open_sources("*.jsonl", Columns(), None)).startswith(
        "2 files from x.jsonl"
    )
    write(here / "z.jsonl", TEXTS)
    assert len(open_sources("*.jsonl", Columns(), None).sources) == 3


def test_patterns_match_files(here: Path) -> None:
    """A file of that very name takes precedence; ``**`` matches directories; directories do not match."""
    touch("a/x.txt", "a/b/c/y.txt", "a/z.md", "a[1].txt", "a1.txt")
    assert names(open_files(["a/*.txt"]).sources) == ["a/x.txt"]
    assert names(open_files(["a/**/*.txt"]).sources) == ["a/b/c/y.txt", "a/x.txt"]
    assert names(open_files(["a[1].txt"]).sources) == ["a[1].txt"]
    assert names(open_files(["./a[12].t*"]).sources) == ["a1.txt"]
    assert error_message(InputError, lambda: open_files(["a/*.csv"])) == "a/*.csv: no file matches this pattern"
    assert error_message(InputError, lambda: open_files(["a/b/*"])).endswith("no file matches this pattern")


def test_missing_and_empty_inputs_are_rejected(here: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        open_files(["missing.txt"])
    assert caught.value.filename == "missing.txt"
    touch("empty/.hidden")
    assert error_message(InputError, lambda: open_files(["empty"])).startswith("empty: the directory must hold a file")
    error_message(InputError, lambda: open_files([""]))


@pytest.mark.posix
def test_pipes_are_rejected(here: Path) -> None:
    os.mkfifo("pipe")
    assert "must be a file that can be read twice" in error_message(InputError, lambda: open_files(["pipe"]))


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
    opened = open_files(inputs)
    assert opened.root == root
    for source in opened.sources:
        source.copy_kept(np.ones(source.known_rows() or 0, dtype=np.bool_), here / "out", root)
    assert len([path for path in (here / "out").rglob("*") if path.is_file()]) == len(names(opened.sources))


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
    memory.pipe("/data/_delta_log/0.json", b"")
    memory.pipe("/data/_delta_log/1.json", b"")
    memory.pipe("/data/.git/x", b"")
    memory.pipe("/data/_tmp/x.csv", b"")
    opened = open_files(["memory://data"])
    sources, root = opened.sources, opened.root
    listed = ["a/x.arrow", "a/x.csv", "a/x.jsonl", "a/x.jsonl.gz", "x.parquet"]
    assert root == "memory://data"
    assert opened.skipped == {
        "marker files of table writers": 2,
        "names that begin with a dot": 1,
        "names that begin with an underscore, among tables": 1,
    }
    assert [source.name for source in sources] == [f"memory://data/{name}" for name in listed]
    keep = np.arange(len(TEXTS)) % 2 == 0
    for source in sources:
        assert texts_of(source) == TEXTS
        assert source.copy_kept(keep, tmp_path / "out", root) == keep.sum()
    copies = open_files([str(tmp_path / "out")]).sources
    assert [texts_of(source) for source in copies] == [TEXTS[::2]] * 5
    assert [source.name for source in open_files(["memory://data/**/*.jsonl*"]).sources] == [
        "memory://data/a/x.jsonl",
        "memory://data/a/x.jsonl.gz",
    ]
    twice = open_files(["memory://data/x.parquet", "memory:///data/x.parquet"])
    (single,), root = twice.sources, twice.root
    assert twice.skipped == {"files reached a second time": 1}
    assert (root, single.known_rows()) == ("memory://" + single.name.removeprefix("memory://").rsplit("/", 1)[0], 7)


def test_urls_of_texts_and_of_missing_files(memory: fsspec.AbstractFileSystem) -> None:
    """The fingerprint changes with the file."""
    memory.pipe("/docs/a/x.txt", b"one")
    memory.pipe("/y.txt", b"two")
    (found,) = open_files(["memory://docs", "memory://*.txt"]).sources
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
    opened = open_files([f"file://{path}"])
    assert texts_of(opened.sources[0]) == TEXTS
    assert opened.root == f"file://{here}"
